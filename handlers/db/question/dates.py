"""Spans of time: what "last month" or "March 2024" means on a given day. Pure; weeks begin on
Monday."""

from __future__ import annotations

import calendar
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from groundhook.handlers.db.question.when import DateUnitName

OLDEST_YEAR, FIRST_YEAR, LAST_YEAR = 1000, 1900, 2100  # of fields with years, of any number
LONGEST = 10_000  # units; further back there is nothing to find, and dates end


@dataclass(frozen=True)
class Span:
    """From `start` (included) to `end` (not included), both with the time zone of `now`.
    `yearless`: the question named no year, and the latest span that has begun is used; `weekday`:
    it named the day of a week alone, and the latest one is used. `note` reports how it was read."""

    start: datetime
    end: datetime
    yearless: bool = False
    weekday: bool = False
    note: str = ""


def is_year(number: float, first: int = FIRST_YEAR) -> bool:
    return first <= number <= LAST_YEAR


def midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def day(moment: datetime) -> Span:
    start = midnight(moment)
    return Span(start, start + timedelta(days=1))


def shifted(moment: datetime, unit: DateUnitName, count: int) -> datetime:
    """Return the time `count` units later. A day that the month does not have becomes its last
    day."""
    count = max(-LONGEST, min(LONGEST, count))
    if unit in ("hour", "day", "week"):
        return (
            moment
            + {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}[
                unit
            ]
            * count
        )
    months = (
        moment.year * 12 + moment.month - 1 + count * {"month": 1, "quarter": 3, "year": 12}[unit]
    )
    year, month = divmod(max(12, min(9998 * 12, months)), 12)
    last = calendar.monthrange(year, month + 1)[1]
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


def current(now: datetime, unit: DateUnitName) -> Span:
    """The day, week, month, quarter or year that `now` is in."""
    starts: dict[DateUnitName, Callable[[datetime], datetime]] = {
        "hour": lambda at: at.replace(minute=0, second=0, microsecond=0),
        "day": midnight,
        "week": lambda at: midnight(at) - timedelta(days=at.weekday()),
        "month": lambda at: midnight(at).replace(day=1),
        "quarter": lambda at: midnight(at).replace(day=1, month=(at.month - 1) // 3 * 3 + 1),
        "year": lambda at: midnight(at).replace(day=1, month=1),
    }
    start = starts[unit](now)
    return Span(start, shifted(start, unit, 1))


def previous(now: datetime, unit: DateUnitName) -> Span:
    start = current(now, unit).start
    return Span(shifted(start, unit, -1), start)


def rolling(now: datetime, unit: DateUnitName, count: int) -> Span:
    """The last `count` units up to the end of today."""
    start = shifted(now, unit, -count)
    return Span(start if unit == "hour" else midnight(start), day(now).end)


def following(now: datetime, unit: DateUnitName) -> Span:
    """The day, week, month, quarter or year after this one."""
    start = current(now, unit).end
    return Span(start, shifted(start, unit, 1))


def coming(now: datetime, unit: DateUnitName, count: int) -> Span:
    """From the beginning of today to the end of the day in `count` units."""
    end = shifted(now, unit, count)
    return Span(now, end) if unit == "hour" else Span(midnight(now), day(end).end)


def year(now: datetime, number: int) -> Span:
    return current(midnight(now).replace(year=number, month=1, day=1), "year")


def years(now: datetime, first: int, count: int) -> Span:
    start = year(now, first).start
    return Span(start, shifted(start, "year", count))


def month(now: datetime, number: int, in_year: int | None) -> Span:
    """Return that month of the year; without a year the latest one that has begun."""
    within = in_year or (now.year if number <= now.month else now.year - 1)
    return replace(
        current(midnight(now).replace(year=within, month=number, day=1), "month"),
        yearless=in_year is None,
    )


def nearest(now: datetime, span: Span) -> Span:
    """Return a span without a year moved to the next year if that is nearer."""
    if not span.yearless or now - span.start < timedelta(days=183):
        return span
    return Span(shifted(span.start, "year", 1), shifted(span.end, "year", 1))


def earlier(span: Span, unit: DateUnitName, count: int = 1) -> Span:
    """Return the same span some weeks or years before."""
    return Span(shifted(span.start, unit, -count), shifted(span.end, unit, -count))


def whole_year(now: datetime, kind: str, start: str, end: str) -> int | None:
    """Return the year whose first and last moments are these two values of a condition, if they
    are."""
    near = int(start[:4]) if start[:4].isdecimal() else FIRST_YEAR
    spans = [(number, year(now, number)) for number in (near, near + 1)]
    return next(
        (
            number
            for number, span in spans
            if (stored(span.start, kind), stored(span.end, kind)) == (start, end)
        ),
        None,
    )


def part_of_year(now: datetime, number: int, months: int, in_year: int | None) -> Span:
    """Return a quarter or a half; without a year the latest one that has begun."""
    first = (number - 1) * months + 1
    latest = now.year if first <= now.month else now.year - 1
    start = midnight(now).replace(year=in_year or latest, month=first, day=1)
    return Span(start, shifted(start, "month", months), yearless=in_year is None)


def season(now: datetime, first: int, in_year: int) -> Span:
    """Return the three months from `first`; a winter begins in the December of its year."""
    start = midnight(now).replace(year=in_year, month=first, day=1)
    span = Span(start, shifted(start, "month", 3))
    last = span.end - timedelta(days=1)
    return replace(span, note=f"the season was read as {start:%Y-%m} to {last:%Y-%m}")


def latest_season(now: datetime, first: int) -> Span:
    """Return the latest such season that has begun."""
    span = season(now, first, now.year)
    return span if span.start <= now else season(now, first, now.year - 1)


def season_of(now: datetime, which: str, first: int) -> Span:
    """Return the season of "last", "this" or "next"."""
    begun = latest_season(now, first)
    following_one = season(now, first, begun.start.year + 1)
    if which == "next":
        return following_one
    if which == "this":
        return following_one if begun.end <= now and begun.start.year < now.year else begun
    return begun if begun.end <= now else season(now, first, begun.start.year - 1)


def weekday(now: datetime, number: int, *, before_today: bool) -> Span:
    """The latest such day; today counts unless `before_today`."""
    back = (now.isoweekday() - number) % 7
    return day(now - timedelta(days=back or (7 if before_today else 0)))


def weekday_of(now: datetime, which: str, number: int) -> Span:
    """Return the day of "last Friday", "this Friday" or "next Friday"."""
    if which == "next":
        return coming_weekday(now, number)
    return weekday(now, number, before_today=which != "this")


def month_of(now: datetime, which: str, number: int) -> Span:
    """Return the month of "last March", "this March" or "next March"."""
    year = {
        "this": now.year,
        "next": now.year + (number <= now.month),
        "previous": now.year - (number >= now.month),
    }[which]
    return month(now, number, year)


def unit_of(now: datetime, which: str, unit: DateUnitName) -> Span:
    """Return the time of "last month", "the last month" (rolling), "this month" or "next month"."""
    if which == "rolling":
        return rolling(now, unit, 1)
    return {"this": current, "next": following, "previous": previous}[which](now, unit)


def weekend(now: datetime, weeks: int) -> Span:
    """The Saturday and Sunday of this week, or of one some weeks later."""
    monday = shifted(current(now, "week").start, "week", weeks)
    return Span(monday + timedelta(days=5), monday + timedelta(days=7))


def coming_weekday(now: datetime, number: int) -> Span:
    """The first such day after today."""
    return day(now + timedelta(days=(number - now.isoweekday() - 1) % 7 + 1))


def stored(moment: datetime, kind: str) -> str:
    """Format a moment for a condition: the day for a date field, UTC to the second for a
    timestamp."""
    if kind == "date":
        return moment.date().isoformat()
    utc = moment.astimezone(UTC) if moment.tzinfo else moment
    return utc.replace(tzinfo=None).isoformat(sep=" ", timespec="seconds")
