"""Times that are counted from today: "last month", "the next 7 days", "3 weeks ago", "last summer";
and lengths of time.

Each function reads the time at a position of a cursor and returns it with the position after it."""

from __future__ import annotations

from typing import NamedTuple

from groundhook.handlers.db.question import dates, sense, when
from groundhook.handlers.db.question.cursor import Cursor
from groundhook.handlers.db.question.dates import Span
from groundhook.handlers.db.question.when import DateUnitName


class Duration(NamedTuple):
    """A length of time, and the position after its words."""

    number: int
    unit: DateUnitName
    end: int


def relative(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    """Return the time that is counted from today."""
    return _weekend(cursor, i) or _period(cursor, i) or _period_behind(cursor, i) or _ago(cursor, i)


def duration(cursor: Cursor, i: int) -> Duration | None:
    """ "3 months", "a week", "fortnight"."""
    at = cursor.past_one(i, sense.Single)
    if length := cursor.take(at, when.Length):
        return Duration(length[0].count, length[0].unit, length[1])
    count = (1, at) if at > i else cursor.whole(i, dates.LONGEST)
    unit = _unit(cursor, count[1]) if count else None
    return Duration(count[0], unit[0], unit[1]) if count and unit else None


def _unit(cursor: Cursor, i: int) -> tuple[DateUnitName, int] | None:
    """ "weeks", "full weeks"."""
    for at in (i, cursor.past_one(i, sense.Filler)):
        if unit := cursor.take(at, when.DateUnit):
            return unit[0].unit, unit[1]
    return None


def _weekend(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    """ "this weekend", "last weekend", "next weekend", "the weekend"."""
    which = {period.which for period in cursor.all(i, when.Period)}
    weekend = cursor.take(cursor.after(i) if which else i, when.Weekend)
    if weekend is None or cursor.is_(i - 1, sense.Single):
        return None  # "on a weekend" is any
    weeks = 1 if "next" in which else -1 if which and "this" not in which else 0
    return dates.weekend(cursor.now, weeks), weekend[1]


def _period(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    """ "last month", "the next 7 days", "this Friday", "next March"."""
    words: set[str] = {period.which for period in cursor.all(i, when.Period)}
    if not words:
        return None
    if "rolling" in words and cursor.is_(i - 1, when.Definite):
        words.discard("previous")  # "the last month" is the one up to today
    which = next((one for one in ("next", "this") if one in words), "previous")
    at = cursor.after(i)
    found = _several_units(cursor, at, which) or _one_unit(cursor, at, words, which)
    return found or (None if words == {"counted"} else _named_time(cursor, at, which))


def _several_units(cursor: Cursor, i: int, which: str) -> tuple[Span, int] | None:
    """The "7 days" of "the next 7 days"."""
    length = duration(cursor, i) if which != "this" else None
    if length is None:
        return None
    counted = dates.coming if which == "next" else dates.rolling
    return counted(cursor.now, length.unit, length.number), length.end


def _one_unit(cursor: Cursor, i: int, words: set[str], which: str) -> tuple[Span, int] | None:
    """The "month" of "last month"."""
    unit = cursor.take(i, when.DateUnit)
    if unit is None or (words & {"rolling", "counted"} and _plural(cursor, i)):
        return None  # "recent weeks": their number is unknown
    rolling = which == "previous" and "previous" not in words
    return dates.unit_of(cursor.now, "rolling" if rolling else which, unit[0].unit), unit[1]


def _named_time(cursor: Cursor, i: int, which: str) -> tuple[Span, int] | None:
    """The "Friday" of "last Friday"; a season or a month in its place."""
    if weekday := cursor.take(i, when.Weekday):
        return dates.weekday_of(cursor.now, which, weekday[0].number), weekday[1]
    if season := cursor.take(i, when.Season):
        return dates.season_of(cursor.now, which, season[0].first), season[1]
    if month := cursor.take(i, when.Month):
        return dates.month_of(cursor.now, which, month[0].number), month[1]
    return None


def _plural(cursor: Cursor, i: int) -> bool:
    units = cursor.lexicon.vocabulary.file.dates.units.values()
    return not (cursor.is_singular(i + 1) or cursor.is_word(i, {unit[0] for unit in units}))


def _period_behind(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    """A period in a language that says "month last" and "3 months last"."""
    if season := cursor.take(i, when.Season):
        word = cursor.take(season[1], when.PeriodBehind)
        return (
            (dates.season_of(cursor.now, word[0].which, season[0].first), word[1]) if word else None
        )
    length, unit = duration(cursor, i), cursor.take(i, when.DateUnit)
    end = length.end if length else unit[1] if unit else i
    word = cursor.take(end, when.PeriodBehind) or cursor.take(
        cursor.past_one(end, sense.Filler), when.PeriodBehind
    )
    if word and length:
        counted = dates.coming if word[0].which == "next" else dates.rolling
        return counted(cursor.now, length.unit, length.number), word[1]
    return (
        (dates.unit_of(cursor.now, word[0].which, unit[0].unit), word[1]) if word and unit else None
    )


def _ago(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    length = duration(cursor, i)
    ago = cursor.take(length.end, when.Ago) if length else None
    if length is None or ago is None:
        return None
    return dates.day(dates.shifted(cursor.now, length.unit, -length.number)), ago[1]
