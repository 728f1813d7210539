"""Values as JSON lines: one event or result to a line, whatever content it carries.

A line is UTF-8, ends with one line feed and holds no other character that a reader may take for the end of a line. What
JSON cannot say is replaced rather than refused, since a hook or a database may put anything into `data`: NaN and infinity become
null, half of a surrogate pair becomes U+FFFD, bytes become base64, other objects their text.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

# Line ends to str.splitlines() and to JavaScript before 2019; JSON itself lets them stand.
_LINE_ENDS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def line(value: BaseModel | Mapping[str, Any]) -> str:
    """The value as one line of JSON, line feed included."""
    try:
        written = to_json(value, fallback=str, inf_nan_mode="null")
    except PydanticSerializationError:
        plain = value.model_dump() if isinstance(value, BaseModel) else value
        written = to_json(_writable(plain), fallback=str, inf_nan_mode="null")
    return written.decode("utf-8").translate(_LINE_ENDS) + "\n"


def _writable(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case Mapping():
            return {_writable(key) if isinstance(key, (str, bytes)) else key: _writable(entry) for key, entry in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_writable(entry) for entry in value]
        case _:
            return value
