"""The model of a table of cells, and its rows: types by the values of each column. Pure.

A column has a type if nearly all of its cells fit it; the cells that do not are named by line.
Signs of decimals and the order of days and months are decided by column, where its cells leave no
choice, else by the locale. A date that may be two days is not guessed: without a locale it is an
error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from groundhook.core.errors import ConfigError
from groundhook.handlers.db.model.importing import options_of, title_of, words_of

FITTING = 0.95  # share of a column's cells that have its type; the others are wrong
LEAST_CELLS = 10  # of a column in which some may be wrong
MOST_ROWS = 1_000_000
YEAR, MONTHS = 4, 12  # digits of a year; months of one
LONGEST_NUMBER, LONGEST_STRING = 15, 255  # digits, since longer ones are names; characters
INDEXED_ROWS = 5000  # rows from which short texts are indexed, since questions name their values
NOTHING = frozenset({"", "null", "none", "nil", "nan", "n/a", "na", "-", "–", "\\n", "?"})
TYPES = ("string", "text", "integer", "decimal", "double", "boolean", "date", "datetime", "json")
_NUMBERED = ("nr", "number", "nummer")  # ends of names of keys
# Columns whose digits are no number.
_CODES = frozenset(
    ["phone", "telephone", "mobile", "fax", "zip", "postcode", "plz", "telefon", "telefonnummer"]
)
_WORDS = (("true", "false"), ("yes", "no"), ("y", "n"), ("ja", "nein"), ("כן", "לא"))
_CURRENCIES = {"€": "EUR", "$": "USD", "£": "GBP", "₪": "ILS", "¥": "JPY"}
_UNIT = r"€|\$|£|₪|¥|EUR|USD|GBP|ILS|JPY|CHF|%"
_AMOUNT = re.compile(
    rf"(?P<before>{_UNIT})?\s?(?P<sign>[+-])?(?P<digits>\d[\d.,'’\s]*+)(?P<after>{_UNIT})?"
)
_NUMBERS = {
    ".": re.compile(r"(?:\d{1,3}(?:[,'’ \u00a0\u202f]\d{3})+|\d+)(?:\.\d+)?"),
    ",": re.compile(r"(?:\d{1,3}(?:[.'’ \u00a0\u202f]\d{3})+|\d+)(?:,\d+)?"),
}
_FLOATING = re.compile(r"[+-]?\d{1,15}\.\d{1,30}|[+-]?\d(?:\.\d{1,30})?[eE][+-]?\d{1,2}")
_DAY = re.compile(
    r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})(?:[T ](\d{1,2}:\d\d(?::\d\d(?:\.\d{1,6})?)?)"
    r"(Z|[+-]\d\d:?\d\d)?)?"
)

Cells = Sequence[tuple[int, Any]]  # line and value


@dataclass(frozen=True)
class CellReading:
    """One way to read the cells of a column. `read` raises ValueError for a cell that does not
    fit."""

    type: str
    read: Callable[[Any], Any]
    called: str


@dataclass
class Column:
    """A column: its content in the model, its values by row, the lines of its wrong cells with
    what they have, and remarks."""

    content: dict[str, Any]
    values: list[Any]
    wrong: list[tuple[int, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    called: str = ""


@dataclass
class Tabular:
    """The content of a model, and its rows."""

    content: dict[str, Any]
    columns: list[Column]
    names: dict[str, str]  # header → name of the column

    def rows(self) -> Iterator[dict[str, Any]]:
        named = [(one.content["name"], one.values) for one in self.columns]
        for number in range(len(self.columns[0].values)):
            yield {name: values[number] for name, values in named}


def tabular(
    table: str,
    rows: Sequence[tuple[int, Mapping[str, Any]]],
    *,
    locale: str = "",
    types: Mapping[str, str] | None = None,
    known: Mapping[str, str] | None = None,
) -> Tabular:
    """Return the model of a table, and its rows. `rows` are the cells by header, each row with its
    line; `locale` decides where cells leave a choice; `types` are those of columns by name or
    header, `known` those that columns of these names have in a table that exists.
    Raises ConfigError for a table without columns, for a type or column that is unknown, and for
    dates that may be two days."""
    headers = list(dict.fromkeys(header for _, row in rows for header in row))
    if not headers or len(rows) > MOST_ROWS:
        raise ConfigError(
            f"the file has {len(rows)} rows, and up to {MOST_ROWS} are imported"
            if headers
            else "the file has no rows",
            hint="load it with the tools of the database, and run `groundhook db import`",
        )
    names = _names(headers)
    before = {header: (known or {}).get(name, "") for header, name in names.items()}
    given = before | _given(types or {}, names)
    columns = []
    for header in headers:
        cells = [(line, row.get(header)) for line, row in rows]
        columns.append(_column(header, names[header], cells, locale, given.get(header, "")))
    content: dict[str, Any] = {"name": words_of(table), "table": {"name": table}}
    columns = _with_key(columns, len(rows))
    listed = [one.content for one in columns]
    if title := title_of(listed):
        content["title"] = title
    content["columns"] = listed
    return Tabular(content, columns, names)


def _names(headers: Sequence[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for number, header in enumerate(headers, 1):
        plain = re.sub(r"\W+", "_", words_of(header).lower()).strip("_") or f"column_{number}"
        taken = set(names.values())
        more = (f"{plain}_{again}" for again in range(2, len(headers) + 2))
        names[header] = plain if plain not in taken else next(n for n in more if n not in taken)
    return names


def _given(types: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    headers = {**{name: header for header, name in names.items()}, **{h: h for h in names}}
    for column, type in types.items():
        if column not in headers:
            known = ", ".join(names.values())
            raise ConfigError(f"the file has no column {column!r}", hint=f"known: {known}")
        if type not in TYPES:
            raise ConfigError(f"no type {type!r}", hint=f"known: {', '.join(TYPES)}")
    return {headers[column]: type for column, type in types.items()}


# ------------------------------------------------------------------------------------------ columns


def _column(header: str, name: str, cells: Cells, locale: str, type: str) -> Column:
    filled = [
        (line, value.strip() if isinstance(value, str) else value)
        for line, value in cells
        if not _is_nothing(value, "")
    ]
    reading = _reading(header, [value for _, value in filled], locale, type)
    label = words_of(header) if re.fullmatch(r"\w*", header) else header.strip()
    column = Column({"name": name, "type": reading.type, "label": label}, [], called=reading.called)
    for line, value in cells:
        read = None
        if not _is_nothing(value, reading.type):
            try:
                read = reading.read(value.strip() if isinstance(value, str) else value)
            except (ValueError, ArithmeticError):
                column.wrong.append((line, str(value)[:60]))
        column.values.append(read)
    _describe(column, [str(value) for _, value in filled])
    return column


def _is_nothing(value: Any, type: str) -> bool:
    """Return whether a cell is empty; in a column of other than texts so is "n/a"."""
    if value is None:
        return True
    text = value.strip().lower() if isinstance(value, str) else None
    return text in ("", "\\n") or (type not in ("", "string", "text") and text in NOTHING)


def _describe(column: Column, texts: Sequence[str]) -> None:
    """Add the details of a column's type: options, an index, decimals, a currency."""
    content, values = column.content, [value for value in column.values if value is not None]
    if len(values) < len(column.values):
        content["nullable"] = True
    if content["type"] == "decimal":
        content.update(precision=18, scale=max(_decimals(values), default=0) or 2)
    elif content["type"] == "string" and (options := options_of(content["label"], values)):
        content.update(type="enum", option=options)
    elif content["type"] == "string" and len(column.values) >= INDEXED_ROWS:
        content["index"] = True
    units = Counter(filter(None, map(_unit_of, texts)))
    if content["type"] in ("integer", "decimal") and len(units) == 1:
        (unit,) = units
        content["format"] = {"unit": "%"} if unit == "%" else {"currency": unit}


def _decimals(values: Iterable[Any]) -> Iterator[int]:
    for value in values:
        exponent = value.as_tuple().exponent
        yield min(10, max(0, -exponent)) if isinstance(exponent, int) else 0


def _reading(header: str, values: Sequence[Any], locale: str, type: str) -> CellReading:
    """Return how the cells of a column are read: the first way that all fit, else the one that
    nearly all fit."""
    filled = [value for value in values if not _is_nothing(value, "date")]
    long = any(len(str(value)) > LONGEST_STRING for value in values)
    text = CellReading(type or ("text" if long else "string"), _text, "")
    if not filled or type in ("string", "text"):
        return text
    readings = [one for one in _readings(header, values, locale) if type in ("", one.type)]
    shares = [_share(one, filled) for one in readings]
    least = FITTING if len(filled) >= LEAST_CELLS else 1
    best = max(shares, default=0.0)
    return readings[shares.index(best)] if shares and (type or best >= least) else text


def _share(reading: CellReading, values: Sequence[Any]) -> float:
    fitting = 0
    for value in values:
        try:
            reading.read(value)
            fitting += 1
        except (ValueError, ArithmeticError):
            continue
    return fitting / len(values) if values else 0


def _readings(header: str, values: Sequence[Any], locale: str) -> Iterator[CellReading]:
    if any(isinstance(value, (dict, list)) for value in values):
        yield CellReading("json", lambda value: value, "")
        return
    texts = [value for value in values if isinstance(value, str)]
    yield CellReading("boolean", _boolean, "")
    if not _has_codes(header, texts):
        point = _point(texts, locale)
        note = f"as {_EXAMPLES[point]}" if _has_signs(texts) else ""
        yield CellReading("integer", lambda value: _integer(value, point), note)
        yield CellReading("decimal", lambda value: _number(value, point), note)
        yield CellReading("double", lambda value: _double(value, point), note)
    first = _first_part(header, texts, locale)
    timed = any((found := _DAY.fullmatch(text)) and found[5] for text in texts)
    timed |= any(isinstance(value, datetime) and value.time() != _MIDNIGHT for value in values)
    kind = "datetime" if timed else "date"
    slashed = any("/" in text for text in texts)
    order = ("day/month" if first == "day" else "month/day") if slashed else ""
    yield CellReading(kind, lambda value: _moment(value, first, timed=timed), order)


_MIDNIGHT = datetime.min.time()
_EXAMPLES = {".": "1,234.5", ",": "1.234,5"}


# -------------------------------------------------------------------------------------------- cells


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = value.lower() if isinstance(value, str) else ""
    for pair in _WORDS:
        if word in pair:
            return word == pair[0]
    raise ValueError


def _integer(value: Any, point: str) -> int:
    number = _number(value, point)
    digits = str(value).strip().lstrip("+-")
    if number != number.to_integral_value() or (digits[:1] == "0" and len(digits) > 1):
        raise ValueError
    return int(number)


def _number(value: Any, point: str) -> Decimal:
    if isinstance(value, (bool, date, datetime)):
        raise ValueError
    if isinstance(value, (int, float)):
        return Decimal(str(value))
    found = _AMOUNT.fullmatch(str(value))
    digits = found["digits"].strip() if found else ""
    if not (found and _NUMBERS[point].fullmatch(digits)):
        raise ValueError
    plain = "".join(sign for sign in digits if sign.isdigit() or sign == point)
    if len(plain) > LONGEST_NUMBER:
        raise ValueError
    return Decimal((found["sign"] or "") + plain.replace(",", "."))


def _double(value: Any, point: str) -> float:
    """Read a number as programs write their floating point numbers: `1e-05`, or with
    more digits than a decimal has."""
    if isinstance(value, str) and _FLOATING.fullmatch(value):
        return float(value)
    return float(_number(value, point))


def _unit_of(text: str) -> str:
    found = _AMOUNT.fullmatch(text)
    unit = (found["before"] or found["after"] or "") if found else ""
    return _CURRENCIES.get(unit, unit)


def _has_codes(header: str, texts: Sequence[str]) -> bool:
    """Return whether the digits of a column are names: zeros in front, or a phone number."""
    words = {word.lower() for word in words_of(header).split()}
    zeros = sum(len(text) > 1 and text[0] == "0" and text.isdecimal() for text in texts)
    return bool(words & _CODES) or zeros > 0


def _has_signs(texts: Sequence[str]) -> bool:
    return any("." in text or "," in text for text in texts)


def _point(texts: Sequence[str], locale: str) -> str:
    """Return the sign before decimals: the one that more cells allow, else that of the locale."""
    amounts = [found["digits"].strip() for text in texts if (found := _AMOUNT.fullmatch(text))]
    fits = {
        point: sum(bool(form.fullmatch(digits)) for digits in amounts)
        for point, form in _NUMBERS.items()
    }
    if fits["."] != fits[","]:
        return max(fits, key=lambda point: fits[point])
    return "," if locale and not locale.startswith(("en", "he", "zh", "ja")) else "."


def _first_part(header: str, texts: Sequence[str], locale: str) -> str:
    """Return which part is first in dates such as 03/04/2026: `day` or `month`. Raises ConfigError
    where neither the cells nor the locale say it."""
    found = list(filter(None, map(_DAY.fullmatch, texts)))
    parts = [
        (int(match[1]), int(match[3]))
        for match in found
        if match[2] != "." and len(match[1]) < YEAR
    ]
    for at, first in enumerate(("day", "month")):
        if any(each[at] > MONTHS for each in parts):
            return first
    open = any(one != two for one, two in parts) and len(found) >= FITTING * len(texts)
    if locale or not open:
        return "month" if locale in ("en", "en-US") else "day"
    raise ConfigError(
        f"the dates of {header!r} may have the day or the month first, such as {texts[0]!r}",
        hint="say which by --locale en-GB (day/month) or --locale en-US (month/day)",
    )


def _moment(value: Any, first: str, *, timed: bool) -> date | datetime:
    if isinstance(value, datetime):
        return value if timed else value.date()
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day) if timed else value
    found = _DAY.fullmatch(str(value))
    if found is None:
        raise ValueError
    year, month, day = _parts(found, first)
    if not timed:
        return date(year, month, day)
    clock = (found[5] or "0:00").zfill(5) if len(found[5] or "") < 5 else found[5]
    moment = datetime.fromisoformat(f"{year:04}-{month:02}-{day:02}T{clock}{found[6] or ''}")
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def _parts(found: re.Match[str], first: str) -> tuple[int, int, int]:
    """Return year, month and day. Raises ValueError where none has the digits of a year."""
    one, two, three = int(found[1]), int(found[3]), int(found[4])
    if len(found[1]) == YEAR:
        return one, two, three
    if len(found[4]) != YEAR:
        raise ValueError
    return (three, two, one) if first == "day" or found[2] == "." else (three, one, two)


# ---------------------------------------------------------------------------------------------- key


def _with_key(columns: list[Column], number: int) -> list[Column]:
    """Return the columns with a key: one that is called like a key and has a different value in
    each row, else a number for each row."""
    names = {one.content["name"] for one in columns}
    for one in columns:
        name = one.content["name"]
        called = name.split("_")[-1] in ("id", "key", "code", "no") or name.endswith(_NUMBERED)
        fits = one.content["type"] in ("integer", "string") and not one.content.get("nullable")
        if called and fits and not one.wrong and len(set(one.values)) == number:
            content = one.content
            content.pop("index", None)
            if content["type"] == "integer":
                content["type"] = "ID"
            else:
                content["primary"] = True
            one.notes.append("the key")
            return columns
    name = "id" if "id" not in names else "row_number"
    made = Column({"name": name, "type": "ID", "label": "Row"}, list(range(1, number + 1)))
    made.notes.append("added as the key: the number of the row")
    return [made, *columns]
