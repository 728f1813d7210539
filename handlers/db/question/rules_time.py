"""Rules for times: "since March", "between March and May", "expired"."""

from __future__ import annotations

from dataclasses import replace

from groundhook.core.types.query_language import Where
from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.question import dates, sense, when
from groundhook.handlers.db.question.cursor import NUMBERS, TIMES, Cursor
from groundhook.handlers.db.question.dates import Span
from groundhook.handlers.db.question.parsed import Parsed, constraint
from groundhook.handlers.db.question.time_fields import (
    field_before,
    has_times,
    main_date,
    of_no_field,
    of_unknown_verb,
    unnamed_field,
    year_field,
)
from groundhook.handlers.db.question.times import dated, days, span
from groundhook.handlers.db.question.when import DateUnitName


def date_led(cursor: Cursor, draft: Parsed, i: int, of: Field | None = None) -> Parsed | None:
    """ "last month", "since March", "before 2024", "in the last 7 days", "upcoming", "before 1950
    built"."""
    own = [one for one in cursor.fields(i) if "." not in one.name] if of is None else []
    if any(one.kind == "boolean" for one in own) or (of is not None and not has_times(cursor, of)):
        return None  # of a field called "weekends" no weekend is meant
    return _any_weekend(cursor, i) or _ahead(cursor, i, of) or _dated(cursor, draft, i, of)


def _any_weekend(cursor: Cursor, i: int) -> Parsed | None:
    """ "on a weekend": reported, unless the model has a field that is called so."""
    if not (cursor.is_(i, when.Weekend) and cursor.is_(i - 1, sense.Single)):
        return None
    own = any("." not in one.name for one in cursor.fields(i))
    return None if own else of_no_field(i, cursor.after(i))


def _ahead(cursor: Cursor, i: int, of: Field | None) -> Parsed | None:
    """ "upcoming", "overdue", "expired items"."""
    word = cursor.take(i, when.Ahead)
    day = of or _date_of(cursor, i, word[0]) if word else None
    if word is None or day is None or day.kind not in TIMES or cursor.is_(i, when.Period):
        return None
    if word[0].due and of is None and not cursor.lexicon.is_kind(day, "ahead"):
        return None
    op = ">=" if word[0].future else "<"
    return constraint(word[1], day.name, op, dates.stored(cursor.now, day.kind))


def _date_of(cursor: Cursor, i: int, word: when.Ahead) -> Field | None:
    """Return the date of such a word: one that is called so, that of its kind, or the main one."""
    main = cursor.date_of_kind(word.kind) if word.kind else cursor.lexicon.day_field
    return cursor.named(i, TIMES) or main


def _dated(cursor: Cursor, draft: Parsed, i: int, of: Field | None) -> Parsed | None:
    known = of or _timed_before(cursor, draft, i)
    time = _time_of(cursor, i, known)
    if time is None:
        return None
    relation, span, end = time
    if of is None and (behind := named_behind(cursor, end)):
        known, end = behind
    if known is None and of_unknown_verb(cursor, i, end):
        return of_no_field(i, end)
    field = known or unnamed_field(cursor, i, end, relation)
    if field is None:
        return None
    near = _near(cursor, draft, field, span)
    no_such = not _has_such(cursor, field, near, named=known is not None)
    if no_such or _is_yearly(cursor, i, end, field):
        return of_no_field(i, end)
    relation, end = _postfixed(cursor, relation, end)
    found = _within(end, field, relation, near)
    return replace(found, notes=(*found.notes, *_note_status(cursor, i, field, known)))


def _time_of(cursor: Cursor, i: int, known: Field | None) -> tuple[str, Span, int] | None:
    """Return the time here; in "vor 1800 entstanden", where a field of years is named behind it, a
    year of long ago."""
    if (found := dated(cursor, i, year=_first_year(known) if known else 0)) is not None:
        return found
    time = dated(cursor, i, year=dates.OLDEST_YEAR)
    behind = named_behind(cursor, time[2]) if time else None
    return time if behind and behind[0].kind == "integer" else None


def _timed_before(cursor: Cursor, draft: Parsed, i: int) -> Field | None:
    """Return the date of the condition to which "and" or "or" joins the one that begins here."""
    before = field_before(cursor, draft, i)
    return before if has_times(cursor, before) else None


def _note_status(cursor: Cursor, i: int, field: Field, known: Field | None) -> tuple[str, ...]:
    """Return a note on the time of "closed this week", where "closed" is an option that is a verb
    in the past: when a record became that is not known, unless a field is `known` for it."""
    endings, at = cursor.lexicon.vocabulary.file.dates.verb_endings, cursor.back(i)
    behind = known is None and cursor.after(at) == i
    for one in cursor.all(at, sense.ValueRef) if behind else ():
        verb = one.value.endswith(endings) and " " not in one.value
        if one.field.options and verb and "." not in one.field.name:
            read = f"the time was read as {field.name!r}"
            return (f"when records became {one.value!r} is not known; {read}",)
    return ()


def _is_yearly(cursor: Cursor, i: int, end: int, field: Field) -> bool:
    """ "birthday today": return whether a time is meant in every year."""
    year = any(dates.is_year(cursor.token(at).number) for at in range(i, end))
    birth = field == cursor.date_of_kind("birth")
    return birth and cursor.anywhere(when.Birthday) and not year


def named_behind(cursor: Cursor, i: int) -> tuple[Field, int] | None:
    """ "before 1950 built": the field that is named after its time, and has no other."""
    field = next((one for one in cursor.fields(i) if has_times(cursor, one)), None)
    end = cursor.after(i)
    return (field, end) if field and not dated(cursor, end, year=dates.FIRST_YEAR) else None


def _first_year(field: Field | None) -> int:
    """Return the first number that is a year of a field: any of four digits, where it has years."""
    return dates.OLDEST_YEAR if field and field.kind == "integer" else dates.FIRST_YEAR


def _has_such(cursor: Cursor, field: Field, span: Span, *, named: bool) -> bool:
    """Return whether a field can have such a time: a birthday is not of one year, a number not in
    May, and a "next inspection", unless it is named, not in the past."""
    if field.kind in NUMBERS:
        return (span.start.month, span.end.month) == (1, 1)
    if not named and cursor.lexicon.is_kind(field, "to_come"):
        return False
    return not (span.yearless and field == cursor.lexicon.date_of_kind("birth"))


def _postfixed(cursor: Cursor, relation: str, end: int) -> tuple[str, int]:
    """ "2024 or newer": return how the time bounds the field, and the position after the words."""
    word = cursor.take(end, when.DatePostfix) if relation == "during" else None
    return (word[0].relation, word[1]) if word else (relation, end)


def _near(cursor: Cursor, draft: Parsed, field: Field, span: Span) -> Span:
    """Return a time without a year in its most likely year: the one named before ("in 2025, but not
    in March"), else the nearest for dates in the future, else the latest, also of what happened."""
    if span.yearless and (year := dict(draft.years).get(field.name)):
        return dates.moved(span, "year", year - span.start.year)
    if not cursor.lexicon.is_kind(field, "ahead") or cursor.anywhere(when.Happened):
        return span
    if span.weekday and span.end <= cursor.now:
        return dates.moved(span, "week", 1)  # "arriving on Friday"
    return dates.nearest(cursor.now, span)


def between_dates(cursor: Cursor, draft: Parsed, i: int, of: Field | None) -> Parsed | None:
    """ "between March and May", "from 10 to 20 March"; `i` is the position after the "between"."""
    field = of or main_date(cursor, i - 1)
    if field is None or not has_times(cursor, field):
        return None
    found = _days(cursor, draft, i, field) or _from_to(cursor, draft, i, field, named=bool(of))
    if found is None:
        return None
    field, span, end = found
    unknown = of is None and of_unknown_verb(cursor, i - 1, end)
    if unknown or not _has_such(cursor, field, span, named=of is not None):
        return of_no_field(i - 1, end)
    return _within(end, field, "during", span)


def _days(cursor: Cursor, draft: Parsed, i: int, field: Field) -> tuple[Field, Span, int] | None:
    """ "10 and 20 March"."""
    found = days(cursor, i) if field.kind in TIMES else None
    return (field, _near(cursor, draft, field, found[0]), found[1]) if found else None


def _from_to(
    cursor: Cursor, draft: Parsed, i: int, field: Field, *, named: bool
) -> tuple[Field, Span, int] | None:
    """ "March and May", "2015 to 2020"; `named`: the question names the field."""
    year = _first_year(field if named else None)
    first = span(cursor, i, announced=True, year=year)
    until = cursor.take(first[1], sense.BetweenAnd) if first else None
    last = span(cursor, until[1], announced=True, year=year) if until else None
    if first is None or last is None:
        return None
    if not named and year_field(cursor, first[1]):
        field = year_field(cursor, last[1]) or field
    start, end = (_near(cursor, draft, field, each) for each in (first[0], last[0]))
    if start.start > end.start:
        start, end = _in_order(cursor, range(i, first[1]), start, end)
    return field, Span(start.start, end.end), last[1]


def _in_order(cursor: Cursor, places: range, start: Span, end: Span) -> tuple[Span, Span]:
    """Return both in order: "from November to February" began a year earlier, "from Friday to
    Monday" a week earlier. `places` are those of the words for the start."""
    for token in (cursor.tokens[i] for i in places):
        if token.day or dates.is_year(token.number):
            return end, start
    unit: DateUnitName = "week" if cursor.is_(places[-1], when.Weekday) else "year"
    return dates.moved(start, unit, -1), end


def _within(end: int, field: Field, relation: str, span: Span) -> Parsed:
    """The field lies in a span, before it or after it. `end` is the position after the words."""
    first, last = (
        at.year if field.kind in NUMBERS else dates.stored(at, field.kind)
        for at in (span.start, span.end)
    )
    before, after = (("<", first), (">=", last))
    bounds = {
        "before": [before],
        "until": [("<", last)],
        "after": [after],
        "during": [(">=", first), ("<", last)],
    }
    wheres = (
        Where(field=field.name, op=op, value=value)
        for op, value in bounds.get(relation, [(">=", first)])
    )
    whole = relation == "during" and span.end == dates.shifted(span.start, "year", 1)
    years = ((field.name, span.start.year),) if whole and span.start.month == 1 else ()
    return Parsed(end, tuple(wheres), notes=(span.note,) if span.note else (), years=years)
