"""Rules for times: "since March", "older than 3 months", "longer than 2 hours"."""

from __future__ import annotations

from groundhook.handlers.db.question import dates, sense, when
from groundhook.handlers.db.question.cursor import Amount, Cursor
from groundhook.handlers.db.question.dates import Span
from groundhook.handlers.db.question.draft import OPPOSITE, Draft, Parsed, constraint
from groundhook.handlers.db.question.language_file import DateWords
from groundhook.handlers.db.question.periods import duration
from groundhook.handlers.db.question.rules_age import aged
from groundhook.handlers.db.question.times import dated, days, span, year_of
from groundhook.handlers.db.question.when import DateUnitName
from groundhook.handlers.db.schema import Field
from groundhook.host.core.types.query_language import Where

TIMES = ("date", "moment")


def date_led(cursor: Cursor, draft: Draft, i: int, of: Field | None = None) -> Parsed | None:
    """ "last month", "since March", "before 2024", "in the last 7 days", "upcoming", "before 1950
    built"."""
    if of is not None and not _tells_time(cursor, of):
        return None
    if (
        not cursor.is_(i, when.Period)
        and (ahead := cursor.take(i, when.Ahead))
        and (day := of or _time_named(cursor, i) or cursor.lexicon.day_field)
        and day.kind in TIMES
    ):
        if ahead[0].due and of is None and not cursor.lexicon.is_kind(day, "ahead"):
            return None
        op = ">=" if ahead[0].future else "<"
        return constraint(ahead[1], day.name, op, dates.stored(cursor.now, day.kind))
    earlier = field_before(cursor, draft, i)
    earlier = earlier if earlier and _tells_time(cursor, earlier) else None
    found = dated(cursor, i, year=of is not None or earlier is not None)
    if found is None:
        return None
    relation, span, end = found
    behind = [
        reference.field
        for reference in cursor.all(end, sense.FieldRef)
        if _tells_time(cursor, reference.field)
    ]
    if of is None and behind and not dated(cursor, cursor.at(end)[1], year=True):
        of, end = behind[0], cursor.at(end)[1]
    if of is None and earlier is None and of_unknown_verb(cursor, i, end):
        return _of_no_field(i, end)
    topic = cursor.about.relation if relation in ("before", "after") else ""
    year = (_year_field(cursor, end, topic) if topic else None) or _year_field(cursor, end)
    field = of or earlier or year or main_date(cursor, i)
    if field is None:
        return None
    part = field.kind == "integer" and (span.start.month, span.end.month) != (1, 1)
    if part or (span.yearless and field == cursor.lexicon.birth_field):
        return _of_no_field(i, end)  # "born in May" is about no year, "written in May" no number
    more = cursor.take(end, when.DatePostfix) if relation == "during" else None
    if more is not None:
        relation, end = more[0].relation, more[1]
    return _within(end, field, relation, _near(cursor, draft, field, span))


def compared_date(cursor: Cursor, draft: Draft, i: int, of: Field | None = None) -> Parsed | None:
    """ "older than 3 months", "less than a week old", "more than ten years ago"."""
    word, field = cursor.take(i, sense.Compare), of or cursor.lexicon.day_field
    born = cursor.born()
    length = duration(cursor, word[1]) if word else None
    if word is None or length is None or field is None or field.kind not in TIMES:
        return None
    count, unit, end = length
    if of is None and of_unknown_verb(cursor, i, cursor.past(end, when.Old, when.Ago, most=1)):
        return _of_no_field(i, cursor.past(end, when.Old, when.Ago, most=1))
    if of is None and born and unit == "year" and not cursor.is_(end, when.Ago):
        return aged(cursor, Amount(count, "", end), word[0], False)
    years = cursor.lexicon.of_kind("year") if of is None and unit == "year" else None
    if years is not None and word[0].kind == "date":  # of a building with a year of construction
        return constraint(end, years.name, word[0].op, cursor.now.year - count)
    if of is None and cursor.lexicon.is_kind(field, "ahead"):
        return None
    old = cursor.is_(end, when.Old, when.Ago)
    if word[0].kind != "date" and not old:
        return None
    # More than three months old is before a day, newer than three months after it.
    op = OPPOSITE[word[0].op] if old and word[0].kind != "date" else word[0].op
    moment = dates.midnight(dates.shifted(cursor.now, unit, -count))
    end = cursor.at(end)[1] if old else end
    op = "<" if op.startswith("<") else ">="
    return constraint(end, field.name, op, dates.stored(moment, field.kind))


def of_unknown_verb(cursor: Cursor, start: int, end: int) -> bool:
    """Return whether a time from `start` to `end` is that of an unknown verb: "promoted in 2019",
    "who graduated last year"."""
    words = cursor.lexicon.vocabulary.file.dates
    behind = words.verbs_behind and cursor.unknown(end) and _past_form(cursor, end, words)
    if behind and cursor.ended(cursor.past(end + 1, sense.Filler, sense.Link)):
        return True
    at = start - 1
    while at > 0 and cursor.is_(at, sense.Filler, sense.Link):
        at -= 1
    aside = cursor.is_(at, sense.OtherModel) and not cursor.is_(
        at, sense.FieldRef, sense.RelationRef, sense.ModelRef
    )
    if at < 0 or not (cursor.unknown(at) or aside) or cursor.tokens[at].kind != "word":
        return False
    subject = at > 1 and cursor.is_(at - 1, sense.Auxiliary)
    return subject or _past_form(cursor, at, words)


def _past_form(cursor: Cursor, i: int, words: DateWords) -> bool:
    """Return whether a word has the form of a verb in the past."""
    norm = cursor.typed[i].norm if i < len(cursor.typed) else ""
    begins = not words.verb_beginnings or norm.startswith(words.verb_beginnings)
    ends = not words.verb_endings or norm.endswith(words.verb_endings)
    return begins and ends and bool(words.verb_beginnings or words.verb_endings)


def _of_no_field(start: int, end: int) -> Parsed:
    """A time that is reported: no field is known to be meant."""
    places = tuple(range(start, end))
    return Parsed(end, unplaced=places, idle=places)


def _time_named(cursor: Cursor, i: int) -> Field | None:
    """ "expired items": return the date that the word itself names."""
    return next(
        (one.field for one in cursor.all(i, sense.FieldRef) if one.field.kind in TIMES), None
    )


def main_date(cursor: Cursor, i: int) -> Field | None:
    """Return the date of a time that no field is named for; behind a verb such as "placed" the one
    on which the record was made."""
    made = cursor.lexicon.made_field if cursor.is_(i - 1, sense.MadeVerb) else None
    return made or cursor.lexicon.day_field


def _year_field(cursor: Cursor, end: int, relation: str = "") -> Field | None:
    """Return the number field for a year alone ("from 2024"), if the model has one."""
    alone = (
        cursor.tokens[end - 1].kind == "number"
        and cursor.tokens[end - 1].norm.isdecimal()
        and len(cursor.tokens[end - 1].norm) == 4
    )
    file = cursor.lexicon.vocabulary.file
    decade = cursor.is_(end - 1, when.Decade) or cursor.tokens[end - 1].norm in file.dates.decades
    if decade:
        return cursor.lexicon.of_kind("year", relation)
    before = cursor.is_(end - 2, when.Month) or (
        end > 2 and cursor.tokens[end - 2].kind == "number"
    )
    return cursor.lexicon.of_kind("year", relation) if alone and not before else None


def field_before(cursor: Cursor, draft: Draft, i: int) -> Field | None:
    """Return the field of the condition that "and", "or" or "but" joins to the one that begins
    here."""
    if not cursor.continues(i) or not draft.pieces:
        return None
    return cursor.lexicon.fields.get(draft.pieces[-1][2][-1].field)


SHORTEST_MINUTE = 4  # letters: the "min" of a column's name is no minute
SHORTER: dict[DateUnitName, tuple[DateUnitName | None, int]] = {
    "hour": (None, 60),  # minutes, which are no unit of dates
    "day": ("hour", 24),
    "week": ("day", 7),
    "year": ("month", 12),
}


def lasting(cursor: Cursor, amount: Amount, op: str) -> Parsed | None:
    """ "longer than 2 hours" of a field in minutes, "more than two weeks" of one in days."""
    unit = cursor.take(amount.end, when.DateUnit)
    if unit is None or cursor.is_(unit[1], when.Old, when.Ago):
        return None
    file = cursor.lexicon.vocabulary.file
    minutes = [word for word in file.units["duration"] if len(word) > SHORTEST_MINUTE]
    name, (shorter, factor) = unit[0].unit, SHORTER.get(unit[0].unit, (unit[0].unit, 1))
    for words, times in (
        (file.dates.units[name], 1),
        (file.dates.units[shorter] if shorter else minutes, factor),
    ):
        field = cursor.lexicon.in_unit_of_time(words)
        if field is not None:
            return constraint(unit[1], field.name, op, amount.value * times)
    return None


def _near(cursor: Cursor, draft: Draft, field: Field, span: Span) -> Span:
    """Return a time without a year in its most likely year: the year named before ("in 2025, but
    not in March"), else the nearest for dates in the future, else the latest."""
    year = year_of(cursor, draft, field) if span.yearless else None
    if year is not None:
        return dates.earlier(span, "year", span.start.year - year)
    if not cursor.lexicon.is_kind(field, "ahead"):
        return span
    if span.weekday and span.end <= cursor.now:
        return dates.earlier(span, "week", -1)  # "arriving on Friday"
    return dates.nearest(cursor.now, span)


def _tells_time(cursor: Cursor, field: Field) -> bool:
    """Return whether a field is a date, or a number that is a year."""
    return field.kind in TIMES or (
        field.kind == "integer" and cursor.lexicon.is_kind(field, "year")
    )


def between_dates(cursor: Cursor, draft: Draft, i: int, of: Field | None) -> Parsed | None:
    field = of or main_date(cursor, i - 1)
    if field and field.kind in TIMES and (found := days(cursor, i)):
        if of is None and of_unknown_verb(cursor, i - 1, found[1]):
            return _of_no_field(i - 1, found[1])
        return _within(found[1], field, "during", _near(cursor, draft, field, found[0]))
    first = span(cursor, i, announced=True, year=True)
    until = cursor.take(first[1], sense.BetweenAnd) if first else None
    last = span(cursor, until[1], announced=True, year=True) if until else None
    if not (first and last and field and _tells_time(cursor, field)):
        return None
    if of is None and of_unknown_verb(cursor, i - 1, last[1]):
        return _of_no_field(i - 1, last[1])
    years = of is None and _year_field(cursor, first[1]) and _year_field(cursor, last[1])
    field = years or field
    start, end = (_near(cursor, draft, field, span[0]) for span in (first, last))
    if start.start > end.start:
        # "from November to February" began a year earlier, "from Friday to Monday" a
        # week earlier.
        has_year = any(
            token.day or dates.FIRST_YEAR <= token.number <= dates.LAST_YEAR
            for token in cursor.tokens[i : first[1]]
        )
        start, end = (
            (end, start)
            if has_year
            else (
                dates.earlier(start, "week" if cursor.is_(first[1] - 1, when.Weekday) else "year"),
                end,
            )
        )
    return _within(last[1], field, "during", Span(start.start, end.end))


def _within(end: int, field: Field, relation: str, span: Span) -> Parsed:
    """The field lies in a span, before it or after it. `end` is the position after the words."""
    year = field.kind == "integer"
    first, last = (
        at.year if year else dates.stored(at, field.kind) for at in (span.start, span.end)
    )
    since, until = (
        Where(field=field.name, op=op, value=value) for op, value in ((">=", first), ("<", last))
    )
    wheres = {
        "before": (Where(field=field.name, op="<", value=first),),
        "until": (until,),
        "after": (Where(field=field.name, op=">=", value=last),),
        "during": (since, until),
    }
    notes = (span.note,) if span.note else ()
    return Parsed(end, wheres.get(relation, (since,)), notes=notes)
