"""How values are written for readers: amounts, units, durations, dates. Pure.

`data` of an item keeps the exact values; only texts are written this way.
"""

from __future__ import annotations

import re
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

from groundhook.core.json_lines import as_json
from groundhook.core.types.model_spec import ColumnFormat
from groundhook.handlers.db.model.coerce import to_json
from groundhook.handlers.db.model.schema import Field

MAX_TEXT = 2000  # characters of one value; `data` has the whole
LARGEST, LEAST = 15, -30  # powers of ten; numbers beyond are written as the database returns them
_SECONDS = {"ms": Decimal("0.001"), "s": Decimal(1), "min": Decimal(60), "h": Decimal(3600)}
_DATE_PARTS = {"year": 4, "month": 7, "day": 10, "minute": 16}  # characters of an ISO date
_MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d) 00:00:00")
_PLAIN = ColumnFormat()


def written(
    value: Any, of: Field | None = None, *, average: bool = False, timed: bool = False
) -> str:
    """Return the text of a value of a field; "" for no value. `average`: it is rounded to two
    decimals, a small one to three digits. Midnight is written only for a field whose other moments
    have a time (`timed`)."""
    if value is None:
        return ""
    value = to_json(value)
    form = (of.format if of else None) or _PLAIN
    if isinstance(value, bool):
        return "yes" if value else "no"
    is_number = isinstance(value, int | float) or (of is not None and of.kind == "number")
    number = _decimal(value) if is_number else None
    if number is not None:
        return _number(number, form, average=average)
    text = as_json(value) if isinstance(value, (dict, list)) else str(value)
    if of is not None and of.kind in ("date", "moment"):
        text = _date(text, form, timed=timed)
    elif of is None:
        text = _date(text, _PLAIN, timed=timed)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _date(text: str, form: ColumnFormat, *, timed: bool) -> str:
    if form.date:
        return text[: _DATE_PARTS[form.date]]
    midnight = None if timed else _MIDNIGHT.fullmatch(text)
    return midnight[1] if midnight else text


def has_time(value: Any) -> bool:
    """Return whether a value is a moment with a time of day."""
    return isinstance(value, datetime) and (value.hour, value.minute, value.second) != (0, 0, 0)


def _number(number: Decimal, form: ColumnFormat, *, average: bool) -> str:
    if form.duration:
        return _duration(number * _SECONDS[form.duration])
    decimals = 2 if form.decimals is None and form.currency else form.decimals
    if decimals is not None:
        text = f"{_rounded(number, decimals):f}"
    elif average:
        text = _plain(_rounded(number, 2 if abs(number) >= 1 else 2 - min(number.adjusted(), 0)))
    else:
        text = _plain(number)
    unit = form.currency or form.unit
    return f"{text} {unit}" if unit else text


def _duration(seconds: Decimal) -> str:
    """Return `4:24`, `1:02:03`, or `0.35 s` below one second."""
    sign, seconds = ("-" if seconds < 0 else ""), abs(seconds)
    if 0 < seconds < 1:
        return f"{sign}{_plain(_rounded(seconds, 3))} s"
    minutes, rest = divmod(int(_rounded(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours}:{minutes:02}:{rest:02}" if hours else f"{sign}{minutes}:{rest:02}"


def _decimal(value: Any) -> Decimal | None:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    if not number.is_finite():
        return None
    return number if not number or LEAST < number.adjusted() < LARGEST else None


def _rounded(number: Decimal, decimals: int) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-min(decimals, 12)), ROUND_HALF_UP)


def _plain(number: Decimal) -> str:
    """Return a number without zeros at its end and without an exponent."""
    text = f"{number:f}"
    return (text.rstrip("0").rstrip(".") or "0") if "." in text else text
