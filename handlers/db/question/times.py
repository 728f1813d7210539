"""Times in a question: "since March", "5 March 2024", "the third quarter of 2025", "the 1990s",
"winter 2024/25".

Each function reads the time at a position of a cursor and returns it with the position after it."""

from __future__ import annotations

import re
from dataclasses import replace

from groundhook.handlers.db.question import dates, sense, when
from groundhook.handlers.db.question.cursor import TIMES, Cursor
from groundhook.handlers.db.question.dates import Span
from groundhook.handlers.db.question.periods import relative

ENDS = ("after", "until")  # "by the end of the year"
_NAMED_PART = re.compile("([qh])([1-4])")  # "Q3", "H1"
_MONTHS = {"q": 3, "h": 6}


def dated(cursor: Cursor, i: int, *, year: int = 0) -> tuple[str, Span, int] | None:
    """A time with the word before it that relates to it: ("since", span, end). `year`: from which
    number on a bare one is a year; 0 for none."""
    relation = cursor.take(i, when.DateRelation)
    if relation is None:
        found = span(cursor, i, announced=year > 0, year=year)
        return ("during", *found) if found else None
    at, year = relation[1], year or dates.FIRST_YEAR * cursor.is_(i, when.BeforeYear)
    for _ in range(3):  # "in the", "since the end of" do not change what is meant
        found = span(cursor, at, announced=True, year=year)
        if found is not None:
            return (_relation(cursor, i, relation[0]), *found)
        unit = cursor.take(cursor.after(at), when.DateUnit)
        if unit and cursor.is_(at, when.Definite) and relation[0].relation in ENDS:
            return relation[0].relation, dates.current(cursor.now, unit[0].unit), unit[1]
        if not cursor.is_(at, sense.Filler, sense.ValueLink):
            return None
        at = cursor.after(at)
    return None


def _relation(cursor: Cursor, i: int, word: when.DateRelation) -> str:
    """Return how a word relates to the time after it. "Starting next month" is a time in that
    month where the verb names a date of the model, and otherwise any time from then on."""
    verb = cursor.tokens[i].norm.endswith(cursor.lexicon.vocabulary.file.dates.verb_endings)
    begins = word.relation == "since" and verb and cursor.named(i, TIMES)
    named = cursor.named(cursor.back(i), TIMES)  # "hired starting 2020" is about the hiring
    return "during" if begins and not named else word.relation


def span(cursor: Cursor, i: int, *, announced: bool, year: int) -> tuple[Span, int] | None:
    """A time. `announced`: a word before it introduces a time, so that "may" can be a month;
    `year`: from which number on one is a year; 0 for none."""
    if i >= len(cursor.tokens):
        return None
    return (
        _day(cursor, i)
        or relative(cursor, i)
        or _season(cursor, i, announced=announced)
        or _part_of_year(cursor, i)
        or _month(cursor, i, announced=announced)
        or _day_month(cursor, i)
        or (_weekday(cursor, i) if announced else None)
        or _decade_of(cursor, i)
        or (_whole_year(cursor, i, year) if year else None)
    )


def _day(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    """ "2024-03-05", "yesterday"."""
    day = cursor.tokens[i].day
    if day is not None:
        return dates.day(cursor.now.replace(year=day.year, month=day.month, day=day.day)), i + 1
    word = cursor.take(i, when.DayWord)
    return (dates.day(dates.shifted(cursor.now, "day", word[0].days)), word[1]) if word else None


def _weekday(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    """ "on Friday": the latest one. "On a Friday" is any."""
    weekday = cursor.take(i, when.Weekday)
    if weekday is None or cursor.is_(i - 1, sense.Single):
        return None
    return replace(dates.weekday(cursor.now, weekday[0].number), weekday=True), weekday[1]


def _whole_year(cursor: Cursor, i: int, first: int) -> tuple[Span, int] | None:
    number = _year(cursor, i, first)
    return (dates.years(cursor.now, number), i + 1) if number else None


def _decade_of(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    """ "1990s", "90s", "nineties"."""
    decade = _first_year(cursor, i)
    return (dates.years(cursor.now, decade[0], 10), decade[1]) if decade else None


def _first_year(cursor: Cursor, i: int) -> tuple[int, int] | None:
    """Return the first year of a decade, and the position after the words."""
    if word := cursor.take(i, when.Decade):
        return word[0].year, word[1]
    endings = cursor.lexicon.vocabulary.file.dates.decades
    joined = cursor.is_word(i + 1, endings) and cursor.typed[i].group == cursor.typed[i + 1].group
    if not joined or not cursor.tokens[i].norm.endswith("0"):
        return None
    number = int(cursor.tokens[i].number)
    if number < 100:
        number += 1900 if number > cursor.now.year % 100 else 2000
    return (number, i + 2) if dates.is_year(number) else None


def _year(cursor: Cursor, i: int, first: int = dates.FIRST_YEAR) -> int | None:
    number = int(cursor.tokens[i].number) if cursor.is_number(i) else 0
    digits = number and cursor.tokens[i].norm.isdecimal()
    return number if digits and dates.is_year(number, first) else None


def _season(cursor: Cursor, i: int, *, announced: bool) -> tuple[Span, int] | None:
    """ "autumn 2026", "winter 2024/25", "in spring"."""
    season = cursor.take(i, when.Season)
    if season is None:
        return None
    end, year = season[1], _year_behind(cursor, season[1])
    if year is not None:
        following = cursor.tokens[year[1]].number if cursor.is_number(year[1]) else 0
        end = year[1] + (following in (year[0] + 1, (year[0] + 1) % 100))
    elif not announced or cursor.is_(i, sense.ValueRef):
        return None
    months = dates.part(cursor.now, season[0].first, 3, year[0] if year else None)
    return replace(months, yearless=False, season=True), end


def _part_of_year(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    """ "Q3 2025", "the third quarter of 2025", "the first half of the year"."""
    if named := _NAMED_PART.fullmatch(cursor.tokens[i].norm):
        number, months, end = int(named[2]), _MONTHS[named[1]], i + 1
    elif found := _counted_part(cursor, i):
        number, months, end = found
    else:
        return None
    if number * months > 12:
        return None
    years = (_year_behind(cursor, at) for at in cursor.steps(end, sense.ValueLink, most=1))
    year = next(filter(None, years), None)
    first = (number - 1) * months + 1
    span = dates.part(cursor.now, first, months, year[0] if year else None)
    return span, year[1] if year else end


def _counted_part(cursor: Cursor, i: int) -> tuple[int, int, int] | None:
    """Return the number of a quarter or a half, its months, and the position after it; in Hebrew
    the number comes last."""
    nth, of = cursor.take(i, when.Nth), _unit_of_parts(cursor, i)
    if nth is not None:
        of = _unit_of_parts(cursor, nth[1])
    elif of is not None:
        nth = cursor.take(cursor.past_one(of[1], sense.Filler), when.Nth)
    if nth is None or of is None:
        return None
    return nth[0].number, of[0], max(nth[1], of[1])


def _unit_of_parts(cursor: Cursor, i: int) -> tuple[int, int] | None:
    """Return the months of a quarter or a half, and the position after the word."""
    if half := cursor.take(i, when.Half):
        return 6, half[1]
    unit = cursor.take(i, when.DateUnit)
    return (3, unit[1]) if unit and unit[0].unit == "quarter" else None


def _month(cursor: Cursor, i: int, *, announced: bool) -> tuple[Span, int] | None:
    """ "March", "March 2024", "March 5", "March 5th, 2024"."""
    month = cursor.take(i, when.Month)
    if month is None:
        return None
    number, end = month[0].number, month[1]
    if year := _year_behind(cursor, end):
        return dates.part(cursor.now, number, 1, year[0]), year[1]
    if day := cursor.whole(end, 31):
        return _on(cursor, day[0], number, _ordinal(cursor, day[1]))
    if not announced and cursor.is_(i, when.Unclear):
        return None
    return dates.part(cursor.now, number, 1, _year_ahead(cursor, end)), end


def _day_month(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    """ "5 March", "5th of March 2024"."""
    day = cursor.whole(i, 31)
    at = cursor.past(_ordinal(cursor, day[1]), sense.ValueLink) if day else i
    month = cursor.take(at, when.Month) if day else None
    return _on(cursor, day[0], month[0].number, month[1]) if day and month else None


def _on(cursor: Cursor, day: int, month: int, end: int) -> tuple[Span, int] | None:
    year = _year_behind(cursor, end + 1 if cursor.is_mark(end, ",") else end)
    span = dates.part(cursor.now, month, 1, year[0] if year else _year_ahead(cursor, end))
    moment = dates.shifted(span.start, "day", day - 1)
    found = replace(dates.day(moment), yearless=span.yearless)
    return (found, year[1] if year else end) if moment < span.end else None


def _year_ahead(cursor: Cursor, i: int) -> int | None:
    """The year of "March or April 2025", where it follows only the last month."""
    at = i + 1 if cursor.is_mark(i, ",") else i
    at = cursor.past(at, sense.And, sense.Or, sense.BetweenAnd, when.DateRelation)
    following = _month(cursor, at, announced=True) or _day_month(cursor, at) if at > i else None
    return following[0].start.year if following and not following[0].yearless else None


def _year_behind(cursor: Cursor, i: int) -> tuple[int, int] | None:
    """ "2025", "of 2025", "in 2025", "of last year"."""
    relation = cursor.take(i, when.DateRelation)
    at = relation[1] if relation and relation[0].relation == "during" else i
    if counted := relative(cursor, at):
        number = counted[0].start.year
        return (number, counted[1]) if counted[0] == dates.years(cursor.now, number) else None
    year = _year(cursor, at) if at == i or cursor.is_(i, when.BeforeYear) else None
    other = at > i and cursor.is_(at + 1, sense.Unit, sense.FieldRef)
    return (year, at + 1) if year and not other else None


def days(cursor: Cursor, i: int) -> tuple[Span, int] | None:
    """ "10 and 20 March", "the 10th to the 20th of March": days of one month, which follows the
    second day."""
    first = cursor.whole(cursor.past_one(i, sense.Filler), 31)
    until = cursor.take(_ordinal(cursor, first[1]), sense.BetweenAnd) if first else None
    last = _day_month(cursor, cursor.past_one(until[1], sense.Filler)) if until else None
    if first is None or last is None or first[0] > last[0].start.day:
        return None
    return replace(last[0], start=last[0].start.replace(day=first[0])), last[1]


def _ordinal(cursor: Cursor, i: int) -> int:
    ordinal = (
        i < len(cursor.tokens)
        and cursor.tokens[i].norm in cursor.lexicon.vocabulary.file.dates.ordinals
    )
    return i + 1 if ordinal else i
