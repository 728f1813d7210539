"""Which field a time is about."""

from __future__ import annotations

from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.question import sense, when
from groundhook.handlers.db.question.cursor import TIMES, Cursor
from groundhook.handlers.db.question.parsed import Parsed

VOWELS = frozenset("aeiouyäöü")  # without one there is no verb before its ending
SHORT_ENDING = 3  # letters


def field_before(cursor: Cursor, draft: Parsed, i: int) -> Field | None:
    """Return the field of the condition that "and", "or" or "but" joins to the one that begins
    here."""
    last = draft.last if cursor.continues(i) else None
    return cursor.lexicon.fields.get(last.field) if last else None


def has_times(cursor: Cursor, field: Field | None) -> bool:
    """Return whether a field is a date, or a number that is a year."""
    if field is None:
        return False
    year = field.kind == "integer" and cursor.lexicon.is_kind(field, "year")
    return field.kind in TIMES or year


def unnamed_field(cursor: Cursor, i: int, end: int, relation: str = "during") -> Field | None:
    """Return the field of a time from `i` to `end` that no field is named for: of a year alone the
    one with years, of the current topic first."""
    topic = cursor.about.relation if relation in ("before", "after") else ""
    of_topic = year_field(cursor, end, topic) if topic else None
    return of_topic or year_field(cursor, end) or main_date(cursor, i)


def main_date(cursor: Cursor, i: int) -> Field | None:
    """Return the date of a time that no field is named for; behind a verb such as "placed" the one
    on which the record was made."""
    made = cursor.lexicon.date_of_kind("made") if cursor.is_(i - 1, sense.MadeVerb) else None
    return made or cursor.lexicon.day_field


def year_field(cursor: Cursor, end: int, relation: str = "") -> Field | None:
    """Return the number field for the year alone, or the decade, that ends here ("from 2024"), if
    the model has one."""
    last = cursor.tokens[end - 1]
    decade = cursor.is_(end - 1, when.Decade) or (
        last.norm in cursor.lexicon.vocabulary.file.dates.decades
    )
    year = last.kind == "number" and last.norm.isdecimal() and len(last.norm) == 4
    of_day = cursor.is_(end - 2, when.Month) or cursor.is_number(end - 2)
    found = decade or (year and not of_day)
    return cursor.lexicon.of_kind("year", relation) if found else None


def of_no_field(start: int, end: int) -> Parsed:
    """A time that is reported: no field is known to be meant."""
    return Parsed(end).unplaced(range(start, end))


def of_unknown_verb(cursor: Cursor, start: int, end: int) -> bool:
    """Return whether a time from `start` to `end` is that of an unknown verb: "promoted in 2019",
    "who graduated last year"."""
    return _verb_behind(cursor, end) or _verb_before(cursor, start)


def _verb_behind(cursor: Cursor, i: int) -> bool:
    """ "die 2019 befördert wurden"."""
    unknown = cursor.unknown(i) or cursor.is_(i, sense.NumberVerb)
    verb = cursor.lexicon.vocabulary.file.dates.verbs_behind and unknown
    last = cursor.past(i + 1, sense.Filler, sense.ValueLink)
    return verb and _in_past(cursor, i) and cursor.ended(last)


def _verb_before(cursor: Cursor, i: int) -> bool:
    at = i - 1
    while at > 0 and cursor.is_(at, sense.Filler, sense.ValueLink) and not names_event(cursor, at):
        at -= 1
    known = cursor.is_(at, sense.FieldRef, sense.RelationRef, sense.ModelRef)
    aside = cursor.is_(at, sense.OtherModel) and not known
    if not (cursor.is_unknown_word(at) or aside or names_event(cursor, at)):
        return False
    subject = at > 1 and cursor.is_(at - 1, sense.Auxiliary)
    return subject or _in_past(cursor, at)


def names_event(cursor: Cursor, i: int) -> bool:
    """Return whether a verb would say what happened at a time: "treated", not "made" or "dated"."""
    other = (sense.MadeVerb, sense.Preposition, sense.FieldRef, sense.ModelRef, when.Falls)
    asked = cursor.is_(i - 2, sense.Auxiliary) and cursor.is_(i - 1, sense.Filler)  # "did we sell"
    past = asked or _in_past(cursor, i)
    return past and cursor.is_(i, sense.LeadIn) and not cursor.is_(i, *other)


def _in_past(cursor: Cursor, i: int) -> bool:
    """Return whether a word has the form of a verb in the past: "promoted", and not "bring"."""
    words, norm = cursor.lexicon.vocabulary.file.dates, cursor.typed[i].norm
    if not (words.verb_beginnings or words.verb_endings):
        return False
    endings = (ending for ending in words.verb_endings if norm.endswith(ending))
    spoken = any(
        len(ending) > SHORT_ENDING or not VOWELS.isdisjoint(norm.removesuffix(ending))
        for ending in endings
    )
    begins = not words.verb_beginnings or norm.startswith(words.verb_beginnings)
    return begins and (spoken or not words.verb_endings)
