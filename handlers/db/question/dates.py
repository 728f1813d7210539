"""Spans of time: what "last month" or "March 2024" means on a given day. Pure; weeks begin on
Monday."""

from __future__ import annotations

import calendar
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from groundhook.handlers.db.question.language_file import TimeUnit, Which

OLDEST_YEAR, FIRST_YEAR, LAST_YEAR = 1000, 1900, 2100  # of fields with years, of any number
LONGEST = 10_000  # units; further back there is nothing to find, and dates end
MONTHS = {"month": 1, "quarter": 3, "year": 12}


@dataclass(frozen=True)
class TimeSpan:
    """From `start` (included) to `end` (not included), both with the time zone of `now`.
    `yearless`: the question named no year, and the latest span that has begun is used."""

    start: datetime
    end: datetime
    yearless: bool = False


def is_year(number: float, first: int = FIRST_YEAR) -> bool:
    return first <= number <= LAST_YEAR


def midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def shifted(moment: datetime, unit: TimeUnit, count: int) -> datetime:
    """Return the time `count` units later. A day that the month does not have becomes its last
    day."""
    count = max(-LONGEST, min(LONGEST, count))
    if unit not in MONTHS:
        return moment + timedelta(**{f"{unit}s": count})
    months = moment.year * 12 + moment.month - 1 + count * MONTHS[unit]
    year, month = divmod(max(12, min(9998 * 12, months)), 12)
    last = calendar.monthrange(year, month + 1)[1]
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


def moved(span: TimeSpan, unit: TimeUnit, count: int) -> TimeSpan:
    """Return the same span some units later."""
    start, end = (shifted(at, unit, count) for at in (span.start, span.end))
    return replace(span, start=start, end=end)


def current(now: datetime, unit: TimeUnit, later: int = 0) -> TimeSpan:
    """Return the hour, day, week, month, quarter or year that `now` is in, or one some units
    later."""
    start = now.replace(minute=0, second=0, microsecond=0) if unit == "hour" else midnight(now)
    if unit == "week":
        start -= timedelta(days=start.weekday())
    elif unit in MONTHS:
        months = MONTHS[unit]
        start = start.replace(day=1, month=(start.month - 1) // months * months + 1)
    start = shifted(start, unit, later)
    return TimeSpan(start, shifted(start, unit, 1))


def day(moment: datetime) -> TimeSpan:
    return current(moment, "day")


def rolling(now: datetime, unit: TimeUnit, count: int) -> TimeSpan:
    """The last `count` units up to the end of today."""
    start = shifted(now, unit, -count)
    return TimeSpan(start if unit == "hour" else midnight(start), day(now).end)


def coming(now: datetime, unit: TimeUnit, count: int) -> TimeSpan:
    """From the beginning of today to the end of the day in `count` units."""
    end = shifted(now, unit, count)
    return TimeSpan(now, end) if unit == "hour" else TimeSpan(midnight(now), day(end).end)


def years(now: datetime, first: int, count: int = 1) -> TimeSpan:
    start = midnight(now).replace(year=first, month=1, day=1)
    return TimeSpan(start, shifted(start, "year", count))


def part(now: datetime, first: int, months: int, in_year: int | None) -> TimeSpan:
    """Return the months of a year from the `first` on; without a year the latest that have
    begun."""
    year = in_year or now.year - (first > now.month)
    start = midnight(now).replace(year=year, month=first, day=1)
    return TimeSpan(start, shifted(start, "month", months), yearless=in_year is None)


def weekday(now: datetime, number: int) -> TimeSpan:
    """Return the latest such day; it may be today."""
    return day(now - timedelta(days=(now.isoweekday() - number) % 7))


def weekend(now: datetime, weeks: int) -> TimeSpan:
    """Return the Saturday and Sunday of this week, or of one some weeks later."""
    monday = current(now, "week", weeks).start
    return TimeSpan(monday + timedelta(days=5), monday + timedelta(days=7))


def recurring(now: datetime, which: Which, begun: TimeSpan, unit: TimeUnit) -> TimeSpan:
    """Return the span of "last", "this" or "next", of one that recurs every `unit` and has begun
    the last time at `begun`: "last Friday", "next March", "this summer"."""
    begun, over = replace(begun, yearless=False), begun.end <= now
    if which == "this":
        return moved(begun, unit, int(over and unit == "year" and begun.start.year < now.year))
    return moved(begun, unit, 1) if which == "next" else moved(begun, unit, int(over) - 1)


def nearest(now: datetime, span: TimeSpan) -> TimeSpan:
    """Return a span without a year moved to the next year if that is nearer."""
    near = not span.yearless or now - span.start < timedelta(days=183)
    return span if near else moved(span, "year", 1)


def stored(moment: datetime, kind: str) -> str:
    """Format a moment for a condition: the day for a date field, UTC to the second for a
    timestamp."""
    if kind == "date":
        return moment.date().isoformat()
    utc = moment.astimezone(UTC) if moment.tzinfo else moment
    return utc.replace(tzinfo=None).isoformat(sep=" ", timespec="seconds")
