"""Times that are counted from today: "last month", "the next 7 days", "3 weeks ago", "last summer";
and lengths of time.

Each function reads the time at a position of a cursor and returns it with the position after it."""

from __future__ import annotations

from groundhook.handlers.db.question import dates, sense, when
from groundhook.handlers.db.question.cursor import Cursor
from groundhook.handlers.db.question.dates import Span
from groundhook.handlers.db.question.when import DateUnitName


def relative(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    """Return the time that is counted from today."""
    return _weekend(cursor, i) or _period(cursor, i) or _period_behind(cursor, i) or _ago(cursor, i)


def duration(cursor: Cursor, i: int) -> tuple[int, DateUnitName, int] | None:
    """ "3 months", "a week", "fortnight"."""
    single = cursor.take(i, sense.Single)
    if length := cursor.take(single[1] if single else i, when.Length):
        return length[0].count, length[0].unit, length[1]
    count = (1, single[1]) if single else cursor.whole(i, dates.LONGEST)
    unit = (
        cursor.take(count[1], when.DateUnit)
        or cursor.take(cursor.past(count[1], sense.Filler, most=1), when.DateUnit)
        if count
        else None
    )
    return (count[0], unit[0].unit, unit[1]) if count and unit else None


def _weekend(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    """ "this weekend", "last weekend", "next weekend", "the weekend"."""
    which = {period.which for period in cursor.all(i, when.Period)}
    weekend = cursor.take(cursor.at(i)[1] if which else i, when.Weekend)
    if weekend is None:
        return None
    weeks = 1 if "next" in which else -1 if which and "this" not in which else 0
    return dates.weekend(cursor.now, weeks), weekend[1]


def _period(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    which = {period.which for period in cursor.all(i, when.Period)}
    if not which:
        return None
    after = cursor.at(i)[1]
    if "next" in which:
        return _coming(cursor, after)
    if "this" not in which and (length := duration(cursor, after)):
        return dates.rolling(cursor.now, length[1], length[0]), length[2]
    unit = cursor.take(after, when.DateUnit)
    if which == {"counted"} and (unit is None or _plural(cursor, unit[1] - 1)):
        return None  # "recent weeks": their number is unknown
    if unit:
        if "rolling" in which and _plural(cursor, unit[1] - 1):
            return None
        the_last = "rolling" in which and i > 0 and cursor.is_(i - 1, when.Definite)
        if "previous" in which and not the_last:
            return dates.previous(cursor.now, unit[0].unit), unit[1]
        whole = (
            dates.current(cursor.now, unit[0].unit)
            if "this" in which
            else dates.rolling(cursor.now, unit[0].unit, 1)
        )
        return whole, unit[1]
    if weekday := cursor.take(after, when.Weekday):
        return dates.weekday(
            cursor.now, weekday[0].number, before_today="this" not in which
        ), weekday[1]
    if season := cursor.take(after, when.Season):
        way = "this" if "this" in which else "previous"
        return dates.season_of(cursor.now, way, season[0].first), season[1]
    if month := cursor.take(after, when.Month):
        year = (
            cursor.now.year
            if "this" in which or month[0].number < cursor.now.month
            else cursor.now.year - 1
        )
        return dates.month(cursor.now, month[0].number, year), month[1]
    return None


def _plural(cursor: Cursor, i: int) -> bool:
    words, norm = cursor.lexicon.vocabulary, cursor.tokens[i].norm
    singular = any(norm == unit[0] for unit in words.file.dates.units.values())
    return not singular and words.stem(norm) != norm


def _period_behind(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    """A period in a language that says "month last" and "3 months last"."""
    season = cursor.take(i, when.Season)
    word = cursor.take(season[1], when.PeriodBehind) if season else None
    if season and word:
        return dates.season_of(cursor.now, word[0].which, season[0].first), word[1]
    length, unit = duration(cursor, i), cursor.take(i, when.DateUnit)
    counted = length or ((0, unit[0].unit, unit[1]) if unit else None)
    if counted is None:
        return None
    count, name, end = counted
    word = cursor.take(end, when.PeriodBehind) or cursor.take(
        cursor.past(end, sense.Filler, most=1), when.PeriodBehind
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
    if unit := cursor.take(i, when.DateUnit):
        return dates.following(cursor.now, unit[0].unit), unit[1]
    if weekday := cursor.take(i, when.Weekday):
        return dates.coming_weekday(cursor.now, weekday[0].number), weekday[1]
    if season := cursor.take(i, when.Season):
        return dates.season_of(cursor.now, "next", season[0].first), season[1]
    if month := cursor.take(i, when.Month):
        year = cursor.now.year + (month[0].number <= cursor.now.month)
        return dates.month(cursor.now, month[0].number, year), month[1]
    return None


def _ago(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    length = duration(cursor, i)
    ago = cursor.take(length[2], when.Ago) if length else None
    return (
        (dates.day(dates.shifted(cursor.now, length[1], -length[0])), ago[1])
        if length and ago
        else None
    )
