"""Values as JSON lines: one event or result to a line, whatever content it carries.

A line is UTF-8, ends with one line feed and holds no other character that a reader may take for the
end of a line. What JSON cannot say is replaced rather than refused, since a hook or a database may
put anything into `data`: NaN and infinity become null, half of a surrogate pair becomes U+FFFD,
bytes become base64, other objects their text, and what stands deeper than readers follow, or in
itself, becomes "…".
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

# Line ends to str.splitlines() and to JavaScript before 2019; JSON itself lets them stand.
_LINE_ENDS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}

DEEPEST = 200  # levels that are written when the whole cannot be; pydantic writes at most about 250
CUT = "…"


def line(value: BaseModel | Mapping[str, Any]) -> str:
    """The value as one line of JSON, line feed included. Raises nothing for what a value holds."""
    try:
        written = to_json(value, fallback=str, inf_nan_mode="null")
    except (PydanticSerializationError, RecursionError):
        written = to_json(_writable(value, ()), fallback=str, inf_nan_mode="null")
    return written.decode("utf-8").translate(_LINE_ENDS) + "\n"


def _writable(value: Any, inside: tuple[int, ...]) -> Any:
    """The value with what JSON cannot say replaced; `inside` are the ids of what it stands in."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    if not isinstance(value, (BaseModel, Mapping, list, tuple, set, frozenset)):
        return _scalar(value)
    if len(inside) >= DEEPEST or id(value) in inside:
        return CUT
    inside = (*inside, id(value))
    if isinstance(value, BaseModel):
        return {name: _writable(entry, inside) for name, entry in _said(value).items()}
    if isinstance(value, Mapping):
        return {_key(key): _writable(entry, inside) for key, entry in value.items()}
    return [_writable(entry, inside) for entry in value]


def _said(value: BaseModel) -> dict[str, Any]:
    """What a model says, one level of it: pydantic itself refuses to copy what is nested deeply."""
    fields = type(value).model_fields
    said = {name: getattr(value, name) for name, declared in fields.items() if not declared.exclude}
    return {**said, **(value.model_extra or {})}


def _key(key: Any) -> Any:
    return _writable(key, ()) if isinstance(key, (str, bytes)) else key


def _scalar(value: Any) -> Any:
    """Numbers and the like as they are; the text of anything else where JSON has no word for it."""
    try:
        to_json(value, fallback=str)
    except (PydanticSerializationError, RecursionError):
        return _writable(str(value), ())
    return value
