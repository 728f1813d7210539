"""Times that are counted from today: "last month", "the next 7 days", "3 weeks ago", "last summer";
and lengths of time.

Each function reads the time at a position of a cursor and returns it with the position after it."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from groundhook.handlers.db.question import dates, sense, when
from groundhook.handlers.db.question.cursor import Cursor
from groundhook.handlers.db.question.dates import Span
from groundhook.handlers.db.question.when import DateUnitName, Which


class Duration(NamedTuple):
    """A length of time, and the position after its words."""

    number: int
    unit: DateUnitName
    end: int


def relative(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    """Return the time that is counted from today."""
    return _weekend(cursor, i) or _period(cursor, i) or _ago(cursor, i)


def duration(cursor: Cursor, i: int) -> Duration | None:
    """ "3 months", "a week", "fortnight"."""
    at = cursor.past_one(i, sense.Single)
    if length := cursor.take(at, when.Length):
        return Duration(length[0].count, length[0].unit, length[1])
    count = (1, at) if at > i else cursor.whole(i, dates.LONGEST)
    # "30 full weeks"; "30 a month" is no length of time
    steps = cursor.steps(count[1], sense.Filler, most=1, unless=sense.Single) if count else ()
    for start in steps:
        if count and (unit := cursor.take(start, when.DateUnit)):
            return Duration(count[0], unit[0].unit, unit[1])
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
    """ "last month", "the next 7 days", "this Friday", "next March"; some languages say "month
    last"."""
    words: set[Which] = {period.which for period in cursor.all(i, when.Period)}
    if "rolling" in words and cursor.is_(i - 1, when.Definite):
        words.discard("previous")  # "the last month" is the one up to today
    if words:
        return _counted(cursor, cursor.after(i), words)
    length = duration(cursor, i)
    end = length.end if length else cursor.past_one(i, when.DateUnit, when.Season, when.Month)
    for at in cursor.steps(end, sense.Filler, most=1) if end > i else ():
        if word := cursor.take(at, when.PeriodBehind):
            found = _counted(cursor, i, {word[0].which})
            return (found[0], word[1]) if found else None
    return None


def _counted(cursor: Cursor, i: int, words: set[Which]) -> tuple[Span, int] | None:
    """Return the time that begins here, of "last", "this" or "next"."""
    which: Which = "next" if "next" in words else "this" if "this" in words else "previous"
    if which != "this" and (length := duration(cursor, i)):
        counted = dates.coming if which == "next" else dates.rolling
        return counted(cursor.now, length.unit, length.number), length.end
    unit = cursor.take(i, when.DateUnit)
    if unit and not (words & {"rolling", "counted"} and _plural(cursor, i)):
        if which == "previous" and "previous" not in words:
            return dates.rolling(cursor.now, unit[0].unit, 1), unit[1]
        later = {"next": 1, "this": 0, "previous": -1}[which]
        return dates.current(cursor.now, unit[0].unit, later), unit[1]
    return None if words == {"counted"} else _named_time(cursor, i, which)


def _named_time(cursor: Cursor, i: int, which: Which) -> tuple[Span, int] | None:
    """The "Friday" of "last Friday"; a season or a month in its place."""
    if weekday := cursor.take(i, when.Weekday):
        begun = dates.weekday(cursor.now, weekday[0].number)
        return dates.recurring(cursor.now, which, begun, "week"), weekday[1]
    if season := cursor.take(i, when.Season):
        begun = replace(dates.part(cursor.now, season[0].first, 3, None), season=True)
        return dates.recurring(cursor.now, which, begun, "year"), season[1]
    if month := cursor.take(i, when.Month):
        begun = dates.part(cursor.now, month[0].number, 1, None)
        return dates.recurring(cursor.now, which, begun, "year"), month[1]
    return None


def _plural(cursor: Cursor, i: int) -> bool:
    """Return whether a unit is in the plural: the number of "recent weeks" is unknown."""
    units = cursor.lexicon.vocabulary.file.dates.units.values()
    return not (cursor.is_singular(i + 1) or cursor.is_word(i, {unit[0] for unit in units}))


def _ago(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    length = duration(cursor, i)
    ago = cursor.take(length.end, when.Ago) if length else None
    if length is None or ago is None:
        return None
    return dates.day(dates.shifted(cursor.now, length.unit, -length.number)), ago[1]
