"""Rules for lengths of time: "older than 3 months", "with us for two years", "longer than 2
hours"."""

from __future__ import annotations

from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.question import dates, sense, when
from groundhook.handlers.db.question.bounds import ABOUT, Bound
from groundhook.handlers.db.question.cursor import TIMES, Amount, Cursor, without_point
from groundhook.handlers.db.question.parsed import Parsed, constraint
from groundhook.handlers.db.question.periods import Duration, duration
from groundhook.handlers.db.question.rules_time import named_behind
from groundhook.handlers.db.question.time_fields import has_times, of_no_field, of_unknown_verb
from groundhook.handlers.db.question.when import DateUnitName
from groundhook.handlers.db.question.wheres import OPPOSITE

SHORTEST_MINUTE = 4  # letters: the "min" of a column's name is no minute
SHORTER: dict[DateUnitName, tuple[DateUnitName | None, int]] = {
    "hour": (None, 60),  # minutes, which are no unit of dates
    "day": ("hour", 24),
    "week": ("day", 7),
    "year": ("month", 12),
}


def compared_date(cursor: Cursor, draft: Parsed, i: int, of: Field | None = None) -> Parsed | None:
    """ "older than 3 months", "less than a week old", "more than ten years ago", "for more than two
    years"."""
    read = _compared_length(cursor, i)
    if read is None:
        return None
    word, length = read
    if of is None and word.kind == "date" and (behind := named_behind(cursor, length.end)):
        of, length = behind[0], length._replace(end=behind[1])
    if cursor.is_(i - 1, when.Lasting) and not cursor.is_(length.end, when.Old, when.Ago):
        return None if of or length.unit == "hour" else _tenure(cursor, i, word, length)
    if of is not None:
        return _compared_with_now(cursor, of, word, length)
    return _compared_unnamed(cursor, i, word, length)


def _compared_length(cursor: Cursor, i: int) -> tuple[sense.Compare, Duration] | None:
    """Return the comparison here and the length of time behind it."""
    word = _compared_ago(cursor, i) or cursor.take(i, sense.Compare)
    length = duration(cursor, word[1]) if word else None
    return (word[0], length) if word and length else None


def _compared_ago(cursor: Cursor, i: int) -> tuple[sense.Compare, int] | None:
    """ "vor mehr als drei Jahren": how long ago, said before the number."""
    before = any(word.relation == "before" for word in cursor.all(i, when.DateRelation))
    word = cursor.take(cursor.after(i), sense.Compare) if before else None
    if word is None or word[0].kind or word[0].op not in OPPOSITE:
        return None
    return sense.Compare(OPPOSITE[word[0].op], "date"), word[1]


def _tenure(cursor: Cursor, i: int, word: sense.Compare, length: Duration) -> Parsed | None:
    """ "with us for more than two years": how long ago something began, of persons that they joined
    us. None where a number says how long it lasts; where both may be meant it is reported."""
    begun = cursor.date_of_kind("begun")
    lasts = lasting(cursor, Bound(word.op, (Amount(length.number, "", length.end - 1),)))
    if lasts and not (begun and cursor.lexicon.of_persons):
        return None
    if begun is None or lasts:
        return of_no_field(i, length.end)
    return _bound_of_length(cursor, begun, OPPOSITE[word.op], length)


def _compared_unnamed(
    cursor: Cursor, i: int, word: sense.Compare, length: Duration
) -> Parsed | None:
    """ "older than 10 years", of a person, or of a building with its year; else of the main
    date."""
    years, end = length.unit == "year", cursor.past_one(length.end, when.Old, when.Ago)
    if of_unknown_verb(cursor, i, end):
        return of_no_field(i, end)
    if years and cursor.date_of_kind("birth") and not cursor.is_(length.end, when.Ago):
        return None  # an age
    built = cursor.lexicon.of_kind("year") if years and word.kind == "date" else None
    if built is not None:
        return constraint(length.end, built.name, word.op, cursor.now.year - length.number)
    main = cursor.lexicon.day_field
    if main is None or cursor.lexicon.is_kind(main, "ahead"):
        return None
    return _compared_with_now(cursor, main, word, length)


def _compared_with_now(
    cursor: Cursor, field: Field, word: sense.Compare, length: Duration
) -> Parsed | None:
    """The field is further from now than a length of time, or nearer."""
    old = cursor.is_(length.end, when.Old, when.Ago)
    exact = field.kind in TIMES or length.unit == "year"
    if not (exact and has_times(cursor, field) and (old or word.kind == "date")):
        return None
    # More than three months old is before a day, newer than three months after it.
    op = word.op if word.kind == "date" else OPPOSITE[word.op]
    return _bound_of_length(cursor, field, op, length)


def _bound_of_length(cursor: Cursor, field: Field, op: str, length: Duration) -> Parsed:
    """Return the condition that a date is before or after the day some time ago."""
    moment = dates.midnight(dates.shifted(cursor.now, length.unit, -length.number))
    end = cursor.past_one(length.end, when.Old, when.Ago)
    value = moment.year if field.kind == "integer" else dates.stored(moment, field.kind)
    return constraint(end, field.name, "<" if op.startswith("<") else ">=", value)


def lasting(cursor: Cursor, bound: Bound) -> Parsed | None:
    """ "longer than 2 hours" of a field in minutes, "more than two weeks" of one in days, "10 years
    experience"."""
    unit = cursor.take(bound.last.end, when.DateUnit)
    if unit is None or bound.op == ABOUT or cursor.is_(unit[1], when.Old, when.Ago):
        return None
    found = _in_unit(cursor, bound, unit[0].unit, unit[1])
    if found is None:
        return None
    field, end, factor = found
    values = [without_point(amount.value * factor) for amount in bound.amounts]
    return constraint(end, field.name, bound.op, values if len(values) > 1 else values[0])


def _in_unit(
    cursor: Cursor, bound: Bound, name: DateUnitName, end: int
) -> tuple[Field, int, int] | None:
    """Return the number field for a length of time, the position after its words, and how many of
    its units one of the length's is. A bare number of a longer unit than hours needs its name."""
    if bound.bare:
        after = cursor.past_one(end, sense.ValueLink)
        if (named := cursor.number_named(after)) is not None:
            return named, cursor.after(after), 1
        if name != "hour":
            return None
    file = cursor.lexicon.vocabulary.file
    minutes = [word for word in file.units["duration"] if len(word) > SHORTEST_MINUTE]
    shorter, factor = SHORTER.get(name, (name, 1))
    words = {1: file.dates.units[name], factor: file.dates.units[shorter] if shorter else minutes}
    for times, units in words.items():
        if (field := cursor.lexicon.in_unit_of_time(units, bound.of)) is not None:
            return field, end, times
    return None
