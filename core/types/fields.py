"""Payload fields of a knowledge base: their types, and the conversion of values from files and
filters. Pure.

A field holds one value or a list of values of its type. Values are those of JSON; a `datetime` is
text in UTC (`2024-05-01T00:00:00Z`), so that equal moments are equal text.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, Literal

FieldType = Literal["keyword", "text", "integer", "float", "boolean", "datetime"]
Scalar = str | int | float | bool
FieldValue = Scalar | list[Scalar]
Fields = Mapping[str, FieldValue]

LARGEST = 2**53  # larger integers are not exact in JavaScript, nor in the engine's ranges
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_WHOLE = re.compile(r"[+-]?\d{1,40}")
_WANTED = {
    "keyword": "text",
    "text": "text",
    "integer": "a whole number",
    "float": "a number",
    "boolean": "true or false",
    "datetime": "a date or a time, such as 2024-05-01 or 2024-05-01T09:30:00Z",
}


def field_value(value: Any, type: FieldType) -> FieldValue | None:
    """Return `value` as a value, or a list of values, of `type`; None for an empty value (null, "",
    an empty list). Text is parsed. Raises ValueError with a message for the author."""
    if isinstance(value, (list, tuple)):
        values = [scalar for each in value if (scalar := scalar_value(each, type)) is not None]
        return values or None
    return scalar_value(value, type)


def scalar_value(value: Any, type: FieldType) -> Scalar | None:
    """Return one value of `type` as `field_value` does. Raises ValueError."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    made: Scalar | None = _MAKERS[type](value)
    if made is None:
        raise ValueError(f"should be {_WANTED[type]}, not {_shorten(value)}")
    return made


def _convert_to_text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, (str, int, float)):
        return unicodedata.normalize("NFC", str(value).strip())
    return None


def _integer(value: Any) -> int | None:
    if isinstance(value, str):
        value = int(value) if _WHOLE.fullmatch(value := value.strip()) else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST
    return int(value) if whole else None


def _float(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number + 0.0 if math.isfinite(number) else None  # + 0.0: no negative zero


def _boolean(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return _BOOLEANS.get(str(value).strip().lower()) if isinstance(value, (str, int)) else None


def _datetime(value: Any) -> str | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        return None
    try:
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        return None
    return moment.isoformat().replace("+00:00", "Z")


_MAKERS: Mapping[str, Any] = {
    "keyword": _convert_to_text,
    "text": _convert_to_text,
    "integer": _integer,
    "float": _float,
    "boolean": _boolean,
    "datetime": _datetime,
}


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
