"""Conditions on dates: "last month", "since March 2024", "hired before 2020", "in the next 7 days",
"built after 1990"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from groundhook.core.types.query_language import Where
from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.question import dates
from groundhook.handlers.db.question.clauses import Clause, Here
from groundhook.handlers.db.question.dates import TimeSpan
from groundhook.handlers.db.question.language_file import TimeUnit, Which
from groundhook.handlers.db.question.question import TokenizedQuestion
from groundhook.handlers.db.question.scope import TIMES

Ends = list[tuple[TimeSpan, int]]
LAST_DAY, DECADE, HALF = 31, 10, 6
QUARTER = 3
QUARTERS = ("q1", "q2", "q3", "q4")


def time_conditions(here: Here, i: int) -> Iterator[Clause]:
    """Yield the conditions on dates and years that begin at a position."""
    question = here.question
    for at in question.leads(i, "having", "relatives"):
        for end, one in _time_fields(here, at):
            for behind in question.past(end, "be", "of"):
                yield from _bounded(here, behind, one, _said_in_name(question, end))
    for start in question.past(i, "made_verbs"):
        for clause in _bounded(here, start, None):
            for end, one in _time_fields(here, clause.end):  # "2019 erschienen"
                same = (each for each in _bounded(here, start, one) if each.end == clause.end)
                yield from (replace(each, end=end) for each in same)
            yield clause


def _time_fields(here: Here, i: int) -> list[tuple[int, Field]]:
    found = here.fields_at(i, *TIMES)
    years = here.fields_at(i, "integer")
    return found + [(end, one) for end, one in years if here.scope.is_kind(one, "year")]


def _said_in_name(question: TokenizedQuestion, end: int) -> str:
    """Return the relation that a name ends with: "with us since"."""
    said = [relation for stop, relation in question.all(end - 1, "date_relations") if stop == end]
    return str(said[0]) if said else "during"


def _bounded(here: Here, i: int, one: Field | None, plain: str = "during") -> Iterator[Clause]:
    """Yield the conditions of a time, of a field or of the model's own date. `plain` is how a time
    without a preposition is meant."""
    question = here.question
    for start, relation in [(i, plain), *question.all(i, "date_relations")]:
        for span, end in spans(question, start):
            behind = question.all(end, "date_after_date") if relation == "during" else ()
            for stop, how in [(end, relation), *behind]:
                fields = [one] if one else _own_dates(here, how, start, end, bare=start == i)
                for field in fields:
                    if wheres := _conditions(field, how, _fitting(here, span, field)):
                        kind = "c" if one else "z"
                        yield Clause(kind, stop, wheres, yearless=span.yearless)


def _own_dates(here: Here, relation: str, start: int, end: int, *, bare: bool) -> list[Field]:
    """Return the fields of a time for which no field is named: a year alone is of one with years,
    and who joined "since 2020" is a member since then."""
    scope = here.scope
    year = _is_years(here.question, start, end)
    if bare and year:
        return []  # "over 2000": a number, unless a word makes it a time
    years = scope.of_kind("year", ("integer",)) if year else []
    begun = scope.of_kind("begun", TIMES) if relation == "since" and scope.of_persons else []
    return years or begun or scope.day


def _is_years(question: TokenizedQuestion, start: int, end: int) -> bool:
    """Return whether a time is a year alone, or several: "2015 to 2018"."""
    numbers = [token for token in question.tokens[start:end] if token.kind == "number"]
    decades = question.words.file.dates.decades
    links = [
        i
        for i in range(start, end)
        if question.tokens[i].kind != "number" and question.norm(i) not in decades
    ]
    joined = all(question.is_(i, "between_and") or question.is_(i, "between") for i in links)
    return bool(numbers) and joined and all(dates.is_year(token.number) for token in numbers)


def _fitting(here: Here, span: TimeSpan, field: Field) -> TimeSpan:
    """Return a time without a year in the next year where that is nearer, of dates ahead, unless
    the question is about what was."""
    past = set(here.question.words.file.dates.past)
    told = any(token.norm in past for token in here.question.tokens)
    ahead = span.yearless and not told and here.scope.is_kind(field, "ahead")
    return dates.nearest(here.question.now, span) if ahead else span


def _conditions(field: Field, relation: str, span: TimeSpan) -> tuple[Where, ...]:
    parts: list[tuple[str, Any]]
    if field.kind in TIMES:
        start, end = (dates.stored(at, field.kind) for at in (span.start, span.end))
        parts = [(">=", start), (">=", end), ("<", start), ("<", end)]
        during = [parts[0], parts[3]]
    else:
        first, last = span.start.year, span.end.year - 1
        if dates.years(span.start, first, last - first + 1) != replace(span, yearless=False):
            return ()
        parts = [(">=", first), (">", last), ("<", first), ("<=", last)]
        during = [("=", first) if first == last else ("between", (first, last))]
    bounds = dict(zip(("since", "after", "before", "until"), parts, strict=True))
    chosen = [bounds[relation]] if relation in bounds else during
    return tuple(Where(field=field.name, op=op, value=value) for op, value in chosen)


# -------------------------------------------------------------------------------------------- times


def spans(question: TokenizedQuestion, i: int) -> Ends:
    """Return the times at a position, the longest alone. They are the same for every model."""
    if i >= len(question):
        return []
    if i not in question.times:
        found = [*_simple(question, i), *_ranges(question, i)]
        longest = max((end for _, end in found), default=0)
        question.times[i] = list(dict.fromkeys(each for each in found if each[1] == longest))
    return question.times[i]


def _simple(question: TokenizedQuestion, i: int) -> Ends:
    starts = question.past(i, "articles", "date_definite")
    found = [each for start in dict.fromkeys(starts) for each in _absolute(question, start)]
    return [*found, *_counted(question, i), *_ago(question, i)]


def _ranges(question: TokenizedQuestion, i: int) -> Ends:
    """ "between March and May 2025", "2019 to 2021", "10 to 20 March"."""
    found: Ends = []
    starts = [end for end, _ in question.all(i, "between")]
    for start in [*starts, i]:
        for first, end in [*_simple(question, start), *_days_before(question, start)]:
            for at, _ in question.all(end, "between_and"):
                if start == i and question.is_(end, "and"):
                    continue
                for last, stop in _simple(question, at):
                    begin = _same_year(question, first, last)
                    if begin.start < last.end:
                        found.append(
                            (TimeSpan(begin.start, last.end, yearless=last.yearless), stop)
                        )
    return found


def _days_before(question: TokenizedQuestion, i: int) -> Ends:
    """The "10" of "10 to 20 March"."""
    if not (day := _day_number(question, i)):
        return []
    for at, _ in question.all(day[1], "between_and"):
        for last, _ in _day_month(question, at):
            if day[0] <= last.start.day:
                start = last.start.replace(day=day[0])
                return [(TimeSpan(start, last.end, yearless=last.yearless), day[1])]
    return []


def _same_year(question: TokenizedQuestion, first: TimeSpan, last: TimeSpan) -> TimeSpan:
    """Return the begin of a range in the year of its end: "January and March 2026"."""
    if not first.yearless or last.start >= question.now.replace(month=1, day=1):
        return first
    start = dates.shifted(first.start, "year", last.start.year - first.start.year)
    return TimeSpan(start if start < last.end else dates.shifted(start, "year", -1), first.end)


def _absolute(question: TokenizedQuestion, i: int) -> Ends:
    if i >= len(question):
        return []
    now, token, found = question.now, question.tokens[i], []
    if token.day is not None:
        day = dates.midnight(now).replace(
            year=token.day.year, month=token.day.month, day=token.day.day
        )
        found.append((dates.day(day), i + 1))
    for end, days in question.all(i, "date_days"):
        found.append((dates.current(now, "day", days), end))
    if year := _year(question, i):
        found.append((dates.years(now, year), i + 1))
        decades = question.words.file.dates.decades
        if year % DECADE == 0 and question.norm(i + 1) in decades:
            found.append((dates.years(now, year, DECADE), i + 2))
    for end, year in question.all(i, "date_decade_words"):
        found.append((dates.years(now, year, DECADE), end))
    for end, month in question.all(i, "date_months"):
        of_year, stop = _year_behind(question, end)
        clear = question.norm(i) not in question.words.file.dates.unclear
        if clear or of_year or question.is_(i - 1, "date_relations"):
            found.append((dates.part(now, month, 1, of_year), stop))
    for end, month in question.all(i, "date_seasons"):
        of_year, stop = _year_behind(question, end)
        found.append((dates.part(now, month, 3, of_year), stop))
    for end, day in question.all(i, "date_weekdays"):
        found.append((replace(dates.weekday(now, day), yearless=True), end))
    return [*found, *_day_month(question, i), *_parts_of_years(question, i)]


def _day_month(question: TokenizedQuestion, i: int) -> Ends:
    """ "5 March 2026", "March 5", "the 5th of March"."""
    found: Ends = []
    places = []
    if day := _day_number(question, i):
        for at in question.past(day[1], "of"):
            places += [(day[0], month, end) for end, month in question.all(at, "date_months")]
    for end, month in question.all(i, "date_months"):
        if (day := _day_number(question, end)) and day[0] <= LAST_DAY:
            places.append((day[0], month, day[1]))
    for number, month, end in places:
        year, stop = _year_behind(question, end)
        whole = dates.part(question.now, month, 1, year)
        try:
            start = whole.start.replace(day=number)
        except ValueError:
            continue
        if year is None and start > question.now:
            start = dates.shifted(start, "year", -1)
        found.append((replace(dates.day(start), yearless=year is None), stop))
    return found


def _parts_of_years(question: TokenizedQuestion, i: int) -> Ends:
    """ "third quarter of 2025", "Q2 2025", "first half of 2026"."""
    found: Ends = []
    parts = [
        (end, nth, 3)
        for at, nth in question.all(i, "date_nth")
        for end, unit in question.all(at, "date_units")
        if unit == "quarter"
    ]
    parts += [
        (end, nth, HALF)
        for at, nth in question.all(i, "date_nth")
        for end, _ in question.all(at, "date_half")
    ]
    if question.norm(i) in QUARTERS:
        parts.append((i + 1, QUARTERS.index(question.norm(i)) + 1, QUARTER))
    for end, nth, months in parts:
        if nth * months <= 12:
            year, stop = _year_behind(question, end)
            found.append((dates.part(question.now, (nth - 1) * months + 1, months, year), stop))
    return found


def _year_behind(question: TokenizedQuestion, i: int) -> tuple[int | None, int]:
    for at in [*(end for end, _ in question.all(i, "of")), i + question.is_mark(i, ","), i]:
        for start in question.past(at, "date_relations"):
            if year := _year(question, start):
                return year, start + 1
    return None, i


def _year(question: TokenizedQuestion, i: int) -> int:
    token = question.tokens[i] if i < len(question) else None
    plain = token is not None and token.kind == "number" and token.norm.isdecimal()
    if token is None or not plain or len(token.norm) != 4 or token.money:
        return 0
    return int(token.number) if dates.is_year(token.number, dates.OLDEST_YEAR) else 0


def _day_number(question: TokenizedQuestion, i: int) -> tuple[int, int] | None:
    token = question.tokens[i] if i < len(question) else None
    if token is None or token.kind != "number" or not token.norm.isdecimal() or token.money:
        return None
    if not 0 < token.number <= LAST_DAY:
        return None
    ordinal = question.norm(i + 1) in question.words.file.dates.ordinals
    return int(token.number), i + 1 + ordinal


def _counted(question: TokenizedQuestion, i: int) -> Ends:
    """ "last month", "the next 7 days", "this Friday"; in some languages "month last"."""
    found: Ends = []
    at = max((end for end, _ in question.all(i, "date_definite")), default=i)
    words = question.all(at, "date_periods")
    both = {"previous", "rolling"} <= {which for _, which in words}
    for end, which in words:
        # "last month" is the one before, "the last month" the one up to today
        other = "previous" if at > i else "rolling"
        if not (both and which == other and question.is_(end, "date_units")):
            found += _period(question, end, which)
    for end, _ in _units(question, i):
        for stop, which in question.all(end, "date_periods_behind"):
            found += [(span, stop) for span, last in _period(question, i, which) if last == end]
    return found


def _units(question: TokenizedQuestion, i: int) -> Iterator[tuple[int, str]]:
    """Yield the ends of the times that some languages put before "last"."""
    yield from question.all(i, "date_units")
    for key in ("date_months", "date_weekdays", "date_seasons"):
        yield from ((end, key) for end, _ in question.all(i, key))
    if length := duration(question, i):
        yield length[2], length[1]


def _period(question: TokenizedQuestion, i: int, which: Which) -> Ends:
    now, found = question.now, []
    length = duration(question, i)
    if length and (length[0] > 1 or which in ("rolling", "counted")):
        count, unit, end = length
        if which == "next":
            found.append((dates.coming(now, unit, count), end))
        elif which != "this":
            found.append((dates.rolling(now, unit, count), end))
    later = {"previous": -1, "this": 0, "next": 1}.get(which)
    if later is None:
        return found
    found += [(dates.current(now, unit, later), end) for end, unit in question.all(i, "date_units")]
    found += [(dates.weekend(now, later), end) for end, _ in question.all(i, "date_weekend")]
    for end, day in question.all(i, "date_weekdays"):
        found.append((dates.recurring(now, which, dates.weekday(now, day), "week"), end))
    for key, months in (("date_months", 1), ("date_seasons", 3)):
        for end, first in question.all(i, key):
            begun = dates.part(now, first, months, None)
            found.append((dates.recurring(now, which, begun, "year"), end))
    return found


def duration(question: TokenizedQuestion, i: int) -> tuple[int, TimeUnit, int] | None:
    """Return the number, the unit and the end of a length of time: "3 months", "a fortnight"."""
    for at in question.past(i, "articles"):
        for end, (count, unit) in question.all(at, "date_lengths"):
            return count, unit, end
    amount = question.number(i)
    if amount and amount.value % 1 == 0 and 0 < amount.value < dates.LONGEST:
        for end, unit in question.all(amount.end, "date_units"):
            return int(amount.value), unit, end
    for at in question.past(i, "articles"):
        for end, unit in question.all(at, "date_units"):
            return 1, unit, end
    return None


def _ago(question: TokenizedQuestion, i: int) -> Ends:
    """ "3 weeks ago", "vor 3 Wochen"."""
    length = duration(question, i)
    if length is None:
        return []
    count, unit, end = length
    ends = [stop for stop, _ in question.all(end, "date_ago")]
    before = any(
        relation == "before"
        for start in range(max(0, i - 2), i)
        for stop, relation in question.all(start, "date_relations")
        if stop == i
    )
    moment = dates.shifted(question.now, unit, -count)
    found = [(dates.current(moment, "day"), stop) for stop in ends]
    if before and not ends and question.words.language != "en":
        found.append((dates.current(moment, "day"), end))
    return found
