"""Writes values as JSON lines: one event or result on each line, for any content.

A line is UTF-8, ends with one line feed and has no other character that a reader may treat as the
end of a line. Values that JSON does not have are replaced, since a hook or a database may put
anything into `data`: NaN and infinity become null, half of a surrogate pair becomes U+FFFD, bytes
become base64, other objects their text; a value that is nested too deeply, or in itself, becomes
"…".
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

# str.splitlines() and JavaScript before 2019 treat these as line ends; JSON allows them in text.
_LINE_ENDS = {"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}

DEEPEST = 200  # levels of a value that are written; pydantic writes at most about 250
CUT = "…"


def line_bytes(value: BaseModel | Mapping[str, Any]) -> bytes:
    """Return the bytes of `line` in UTF-8, without decoding what is ASCII."""
    try:
        written = to_json(value, fallback=str, inf_nan_mode="null")
    except (PydanticSerializationError, RecursionError):
        return line(value).encode()
    if written.isascii():
        return written + b"\n"
    return f"{_one_line(written)}\n".encode()


def line(value: BaseModel | Mapping[str, Any]) -> str:
    """Return the value as one line of JSON with its line feed. Does not raise for any content."""
    return as_json(value) + "\n"


def as_json(value: Any) -> str:
    """Return the value as JSON on one line, without a line feed. Does not raise for any content."""
    try:
        written = to_json(value, fallback=str, inf_nan_mode="null")
    except (PydanticSerializationError, RecursionError):
        written = to_json(_make_writable(value, ()), fallback=str, inf_nan_mode="null")
    return _one_line(written)


def _one_line(json: bytes) -> str:
    text = json.decode("utf-8")
    # `str.translate` takes a hundred times as long for text that is not ASCII.
    for sign, escaped in _LINE_ENDS.items():
        text = text.replace(sign, escaped)
    return text


def _make_writable(value: Any, inside: tuple[int, ...]) -> Any:
    """Return the value with replacements for everything that JSON does not have; `inside` are the
    ids of the objects around it."""
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
        return {name: _make_writable(entry, inside) for name, entry in _fields(value).items()}
    if isinstance(value, Mapping):
        return {_key(key): _make_writable(entry, inside) for key, entry in value.items()}
    return [_make_writable(entry, inside) for entry in value]


def _fields(value: BaseModel) -> dict[str, Any]:
    """Return the fields of a model, one level deep: pydantic refuses to copy deeply nested
    values."""
    fields = type(value).model_fields
    declared_fields = {
        name: getattr(value, name) for name, declared in fields.items() if not declared.exclude
    }
    return {**declared_fields, **(value.model_extra or {})}


def _key(key: Any) -> Any:
    return _make_writable(key, ()) if isinstance(key, (str, bytes)) else key


def _scalar(value: Any) -> Any:
    """Return a value that JSON has unchanged; the text of any other."""
    try:
        to_json(value, fallback=str)
    except (PydanticSerializationError, RecursionError):
        return _make_writable(str(value), ())
    return value
