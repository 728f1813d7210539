"""Conversion of values to the type of a field's column, and of column values to JSON. Pure.

Timestamps are stored in UTC without an offset; a value with an offset is converted.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from groundhook.core.errors import SourceError
from groundhook.handlers.db.model.schema import Field

MAX_INTEGER = 2**63 - 1
LARGEST = 300  # power of ten: a little less than that of a float


def coerce(field: Field, value: Any) -> Any:
    """Convert `value` to the Python type of the field's column; for an enum, to the option as
    declared. Raises SourceError that names field and value if it does not fit."""
    try:
        return _CONVERTERS[field.kind](field, value)
    except (ValueError, InvalidOperation, OverflowError) as exc:
        raise SourceError(
            f"the value {_short(value)} does not fit the field {field.name!r}: {exc}"
        ) from exc


def to_json(value: Any) -> Any:
    """Convert a column's value to JSON: dates to ISO 8601 text, decimals to numbers if they are
    exact as numbers, else to text."""
    if isinstance(value, datetime):
        return (value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value).isoformat(
            sep=" "
        )
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return _number(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "replace")
    if value is None or isinstance(value, (str, int, float, bool, list, dict)):
        return value
    return str(value)


def _number(value: Decimal) -> int | float | str:
    # JSON has no number of thousands of digits, which a `numeric` of PostgreSQL may have.
    if not value.is_finite() or value.adjusted() > LARGEST:
        return str(value)
    if value == value.to_integral_value():
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else str(value)


def _text(field: Field, value: Any) -> str:
    if isinstance(value, bool):
        value = "true" if value else "false"
    if isinstance(value, (dict, list, tuple)) or value is None:
        raise ValueError("it is not text")
    text = to_json(value) if not isinstance(value, str) else value
    text = str(text)
    text.encode("utf-8")  # a lone surrogate cannot be stored or compared
    if "\0" in text:
        raise ValueError("it has a NUL character")
    return next((option for option in field.options if option.casefold() == text.casefold()), text)


def _integer(_: Field, value: Any) -> int | Decimal:
    number = _decimal(value)
    if abs(number) > MAX_INTEGER:
        raise ValueError("it is too large")
    return int(number) if number == number.to_integral_value() else number


def _float(_: Field, value: Any) -> Decimal:
    return _decimal(value)


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
        raise ValueError("it is not a number")
    try:
        number = Decimal(value.strip() if isinstance(value, str) else str(value))
    except InvalidOperation:
        raise ValueError("it is not a number") from None
    if not number.is_finite():
        raise ValueError("it is not a finite number")
    if abs(number.adjusted()) > LARGEST:
        raise ValueError("it is too large")
    return number


def _boolean(_: Field, value: Any) -> bool:
    known = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    text = str(value).strip().lower()
    if not isinstance(value, (bool, int, str)) or text not in known:
        raise ValueError("it is neither true nor false")
    return known[text]


def _date(_: Field, value: Any) -> date:
    moment = _moment(_, value)
    return moment.date()


def _moment(_: Field, value: Any) -> datetime:
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, date):
        moment = datetime(value.year, value.month, value.day)
    elif isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError("it is not a date") from None
    else:
        raise ValueError("it is not a date")
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def _json(_: Field, value: Any) -> Any:
    try:
        json.dumps(value, allow_nan=False)
    except TypeError as exc:
        raise ValueError("it is not JSON") from exc
    return value


_CONVERTERS = {
    "text": _text,
    "integer": _integer,
    "number": _float,
    "boolean": _boolean,
    "date": _date,
    "moment": _moment,
    "json": _json,
}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"
