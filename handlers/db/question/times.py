"""Times in a question ("last month", "since March", "3 weeks ago", "5 March 2024", "the next 7
days") and lengths of time.

Each function reads the time at a position of a cursor and returns it with the position after it."""

from __future__ import annotations

from dataclasses import replace

from groundhook.handlers.db.question import dates, sense
from groundhook.handlers.db.question.cursor import Cursor
from groundhook.handlers.db.question.dates import Span
from groundhook.handlers.db.question.draft import Draft
from groundhook.handlers.db.question.sense import DateUnitName
from groundhook.handlers.db.schema import Field


def duration(cursor: Cursor, i: int) -> tuple[int, DateUnitName, int] | None:
    """ "3 months", "a week", "fortnight"."""
    single = cursor.take(i, sense.Single)
    if length := cursor.take(single[1] if single else i, sense.Length):
        return length[0].count, length[0].unit, length[1]
    count = (1, single[1]) if single else cursor.whole(i, dates.LONGEST)
    unit = (
        cursor.take(count[1], sense.DateUnit)
        or cursor.take(cursor.past(count[1], sense.Filler, most=1), sense.DateUnit)
        if count
        else None
    )
    return (count[0], unit[0].unit, unit[1]) if count and unit else None


def dated(cursor: Cursor, i: int, *, year: bool = False) -> tuple[str, Span, int] | None:
    """A time with the word before it that relates to it: ("since", span, end). `year`: a bare
    number may be a year."""
    relation = cursor.take(i, sense.DateRelation)
    if relation is None:
        found = span(cursor, i, announced=year, year=year)
        return ("during", *found) if found else None
    at, year = relation[1], year or cursor.is_(i, sense.BeforeYear)
    for _ in range(3):  # "in the", "since the end of" do not change what is meant
        found = span(cursor, at, announced=True, year=year)
        if found is not None:
            return (relation[0].relation, *found)
        if not cursor.is_(at, sense.Filler, sense.Link):
            return None
        at = cursor.at(at)[1]
    return None


def span(cursor: Cursor, i: int, *, announced: bool, year: bool) -> tuple[Span, int] | None:
    """A time. `announced`: a word before it introduces a time, so that "may" can be a month;
    `year`: a number such as 2024 can be a year."""
    if i >= len(cursor.tokens):
        return None
    token, now = cursor.tokens[i], cursor.now
    if token.day is not None:
        moment = now.replace(year=token.day.year, month=token.day.month, day=token.day.day)
        return dates.day(moment), i + 1
    if word := cursor.take(i, sense.DayWord):
        return dates.day(dates.shifted(now, "day", word[0].days)), word[1]
    found = (
        _weekend(cursor, i)
        or _period(cursor, i)
        or _period_behind(cursor, i)
        or _ago(cursor, i)
        or _quarter(cursor, i)
        or _month(cursor, i, announced=announced)
        or _day_month(cursor, i)
    )
    if found is not None:
        return found
    if (
        announced
        and not cursor.is_(i - 1, sense.Single)
        and (weekday := cursor.take(i, sense.Weekday))
    ):
        latest = dates.weekday(now, weekday[0].number, before_today=False)
        return replace(latest, weekday=True), weekday[1]
    number = _year(cursor, i) if year else None
    if (decade := _decade_of(cursor, i)) is not None:
        return dates.years(now, decade[0], 10), decade[1]
    return (dates.year(now, number), i + 1) if number else None


def _decade_of(cursor: Cursor, i: int) -> tuple[int, int] | None:
    """ "1990s", "90s", "nineties": return the first year and the position after it."""
    if word := cursor.take(i, sense.Decade):
        return word[0].year, word[1]
    if not _decade(cursor, i):
        return None
    number = int(cursor.tokens[i].number)
    if number < 100:
        number += 1900 if number > cursor.now.year % 100 else 2000
    return (number, i + 2) if dates.FIRST_YEAR <= number <= dates.LAST_YEAR else None


def _decade(cursor: Cursor, i: int) -> bool:
    """ "1990s": the number and its ending are one word."""
    ended = (
        i + 1 < len(cursor.tokens)
        and cursor.tokens[i + 1].norm in cursor.lexicon.vocabulary.file.dates.decades
    )
    return (
        ended
        and cursor.tokens[i].group == cursor.tokens[i + 1].group
        and cursor.tokens[i].norm.endswith("0")
    )


def _year(cursor: Cursor, i: int) -> int | None:
    if (
        i >= len(cursor.tokens)
        or cursor.tokens[i].kind != "number"
        or not cursor.tokens[i].norm.isdecimal()
    ):
        return None
    number = int(cursor.tokens[i].norm)
    return number if dates.FIRST_YEAR <= number <= dates.LAST_YEAR else None


def _weekend(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    """ "this weekend", "last weekend", "next weekend", "the weekend"."""
    which = {period.which for period in cursor.all(i, sense.Period)}
    weekend = cursor.take(cursor.at(i)[1] if which else i, sense.Weekend)
    if weekend is None:
        return None
    weeks = 1 if "next" in which else -1 if which and "this" not in which else 0
    return dates.weekend(cursor.now, weeks), weekend[1]


def _period(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    which = {period.which for period in cursor.all(i, sense.Period)}
    if not which:
        return None
    after = cursor.at(i)[1]
    if "next" in which:
        return _coming(cursor, after)
    if "this" not in which and (length := duration(cursor, after)):
        return dates.rolling(cursor.now, length[1], length[0]), length[2]
    unit = cursor.take(after, sense.DateUnit)
    if which == {"counted"} and (unit is None or _plural(cursor, unit[1] - 1)):
        return None  # "recent weeks": their number is unknown
    if unit:
        if "rolling" in which and _plural(cursor, unit[1] - 1):
            return None
        the_last = "rolling" in which and i > 0 and cursor.is_(i - 1, sense.Definite)
        if "previous" in which and not the_last:
            return dates.previous(cursor.now, unit[0].unit), unit[1]
        whole = (
            dates.current(cursor.now, unit[0].unit)
            if "this" in which
            else dates.rolling(cursor.now, unit[0].unit, 1)
        )
        return whole, unit[1]
    if weekday := cursor.take(after, sense.Weekday):
        return dates.weekday(
            cursor.now, weekday[0].number, before_today="this" not in which
        ), weekday[1]
    if month := cursor.take(after, sense.Month):
        year = (
            cursor.now.year
            if "this" in which or month[0].number < cursor.now.month
            else cursor.now.year - 1
        )
        return dates.month(cursor.now, month[0].number, year), month[1]
    return None


def _plural(cursor: Cursor, i: int) -> bool:
    return cursor.lexicon.vocabulary.stem(cursor.tokens[i].norm) != cursor.tokens[i].norm


def _period_behind(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    """A period in a language that says "month last" and "3 months last"."""
    length, unit = duration(cursor, i), cursor.take(i, sense.DateUnit)
    counted = length or ((0, unit[0].unit, unit[1]) if unit else None)
    if counted is None:
        return None
    count, name, end = counted
    word = cursor.take(end, sense.PeriodBehind) or cursor.take(
        cursor.past(end, sense.Filler, most=1), sense.PeriodBehind
    )
    return (_relative(cursor, word[0].which, name, count), word[1]) if word else None


def _relative(cursor: Cursor, which: str, unit: DateUnitName, count: int) -> Span:
    if count:
        return (
            dates.coming(cursor.now, unit, count)
            if which == "next"
            else dates.rolling(cursor.now, unit, count)
        )
    if which == "rolling":
        return dates.rolling(cursor.now, unit, 1)
    made = {"this": dates.current, "next": dates.following}.get(which, dates.previous)
    return made(cursor.now, unit)


def _coming(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    """ "next week", "the next 7 days", "next Friday", "next March"."""
    if length := duration(cursor, i):
        return dates.coming(cursor.now, length[1], length[0]), length[2]
    if unit := cursor.take(i, sense.DateUnit):
        return dates.following(cursor.now, unit[0].unit), unit[1]
    if weekday := cursor.take(i, sense.Weekday):
        return dates.coming_weekday(cursor.now, weekday[0].number), weekday[1]
    if month := cursor.take(i, sense.Month):
        year = cursor.now.year + (month[0].number <= cursor.now.month)
        return dates.month(cursor.now, month[0].number, year), month[1]
    return None


def _ago(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    length = duration(cursor, i)
    ago = cursor.take(length[2], sense.Ago) if length else None
    return (
        (dates.day(dates.shifted(cursor.now, length[1], -length[0])), ago[1])
        if length and ago
        else None
    )


def _quarter(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    norm = cursor.tokens[i].norm
    if len(norm) != 2 or norm[0] != "q" or norm[1] not in "1234":
        return None
    year = _year(cursor, i + 1)
    return dates.quarter(cursor.now, int(norm[1]), year), i + 2 if year else i + 1


def _month(cursor: Cursor, i: int, *, announced: bool) -> tuple[Span, int] | None:
    """ "March", "March 2024", "March 5", "March 5th, 2024"."""
    month = cursor.take(i, sense.Month)
    if month is None:
        return None
    number, end = month[0].number, month[1]
    if year := _year_behind(cursor, end):
        return dates.month(cursor.now, number, year[0]), year[1]
    if day := cursor.whole(end, 31):
        return _on(cursor, day[0], number, _ordinal(cursor, day[1]))
    if not (announced or month[0].clear):
        return None
    return dates.month(cursor.now, number, _year_ahead(cursor, end)), end


def _day_month(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    """ "5 March", "5th of March 2024"."""
    day = cursor.whole(i, 31)
    month = (
        cursor.take(cursor.past(_ordinal(cursor, day[1]), sense.Link), sense.Month) if day else None
    )
    return _on(cursor, day[0], month[0].number, month[1]) if day and month else None


def _on(cursor: Cursor, day: int, month: int, end: int) -> tuple[Span, int] | None:
    comma = end + 1 if cursor.is_mark(end, ",") else end
    year = _year(cursor, comma)
    span = dates.month(cursor.now, month, year or _year_ahead(cursor, end))
    moment = dates.shifted(span.start, "day", day - 1)
    return (
        (replace(dates.day(moment), yearless=span.yearless), comma + 1 if year else end)
        if moment < span.end
        else None
    )


def _year_ahead(cursor: Cursor, i: int) -> int | None:
    """The year of "March or April 2025", where it follows only the last month."""
    while cursor.is_(i, sense.And, sense.Or, sense.BetweenAnd) or cursor.is_mark(i, ","):
        at = cursor.past(
            cursor.at(i)[1] if cursor.at(i)[0] else i + 1,
            sense.DateRelation,
            sense.And,
            sense.Or,
            most=2,
        )
        day = cursor.whole(at, 31)
        later = cursor.take(
            cursor.past(_ordinal(cursor, day[1]), sense.Link) if day else at, sense.Month
        )
        if later is None:
            return None
        i = later[1]
        number = None if day else cursor.whole(i, 31)
        comma = _ordinal(cursor, number[1]) if number else i
        if year := _year(cursor, i) or _year(
            cursor, comma + 1 if cursor.is_mark(comma, ",") else comma
        ):
            return year
        i = comma
    return None


def _year_behind(cursor: Cursor, i: int) -> tuple[int, int] | None:
    """ "2025", "of 2025", "in 2025"."""
    relation = cursor.take(i, sense.DateRelation) if cursor.is_(i, sense.BeforeYear) else None
    at = relation[1] if relation and relation[0].relation == "during" else i
    year = _year(cursor, at)
    return (
        (year, at + 1)
        if year and (at == i or not cursor.is_(at + 1, sense.Unit, sense.FieldRef))
        else None
    )


def year_of(cursor: Cursor, draft: Draft, field: Field) -> int | None:
    """Return the year that the question already set for a field."""
    for _, _, made in draft.pieces:
        values = {
            where.op: str(where.value)
            for where in made
            if where.group is None and where.field == field.name
        }
        year = dates.whole_year(cursor.now, field.kind, values.get(">=", ""), values.get("<", ""))
        if year is not None:
            return year
    return None


def days(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    """ "10 and 20 March", "the 10th to the 20th of March": days of one month, which follows the
    second day."""
    first = cursor.whole(cursor.past(i, sense.Filler, most=1), 31)
    until = cursor.take(_ordinal(cursor, first[1]), sense.BetweenAnd) if first else None
    last = _day_month(cursor, cursor.past(until[1], sense.Filler, most=1)) if until else None
    if first is None or last is None or first[0] > last[0].start.day:
        return None
    return replace(last[0], start=last[0].start.replace(day=first[0])), last[1]


def _ordinal(cursor: Cursor, i: int) -> int:
    ordinal = (
        i < len(cursor.tokens)
        and cursor.tokens[i].norm in cursor.lexicon.vocabulary.file.dates.ordinals
    )
    return i + 1 if ordinal else i
