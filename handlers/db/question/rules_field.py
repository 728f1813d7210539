"""Rules for named fields, and for values that the model is known to have."""

from __future__ import annotations

from dataclasses import replace

from groundhook.core.types.query_language import Order
from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.query.dsl import MATCH
from groundhook.handlers.db.question import dates, sense, when
from groundhook.handlers.db.question.bounds import postfixed, read_bound
from groundhook.handlers.db.question.cursor import NUMBERS, TIMES, Cursor
from groundhook.handlers.db.question.parsed import Parsed, constraint
from groundhook.handlers.db.question.rules_length import compared_date
from groundhook.handlers.db.question.rules_number import between, number
from groundhook.handlers.db.question.rules_time import date_led
from groundhook.handlers.db.question.rules_value import prepositioned, values
from groundhook.handlers.db.question.tokens import phrase_of
from groundhook.handlers.db.question.wheres import (
    AROUND_PIECE,
    has_opposite,
    opposite,
    require_one_of,
)

LONGEST_LITERAL = 5  # words of a value that is not known


def field_led(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "price under 100", "rating of at least 4", "category: books", "released since March", "price
    is not over 100"."""
    after = cursor.after(i)
    if cursor.said(sense.Everything) and cursor.is_(after, sense.But):
        return None
    no, starts = _past_link(cursor, after)
    for field in cursor.fields(i):
        tried = (condition_on(cursor, draft, field, start) for start in starts)
        found = next(filter(None, tried), None) or _alone(cursor, field, i, starts[-1])
        if no and found and not has_opposite(found.wheres):  # "without sorting"
            return Parsed(found.end).unplaced(range(i, found.end))
        if no:
            found = negated(cursor, found) if found else _missing(cursor, field, after)
        if found:
            return found
    return None


def negated(cursor: Cursor, found: Parsed) -> Parsed:
    """Return the opposite of conditions."""
    return replace(found, wheres=opposite(found.wheres, cursor.lexicon.fields))


def _past_link(cursor: Cursor, i: int) -> tuple[bool, tuple[int, ...]]:
    """ "is", "is not": return whether there is a "not" between a field and its condition, and where
    the condition may begin."""
    at = i if cursor.is_(i, sense.Contains) else cursor.past(i, sense.ValueLink, sense.Filler)
    no = cursor.take(at, sense.Not)
    if no is None:
        # also behind "is" alone: of "is in May" all three words may be without a condition
        return False, tuple(dict.fromkeys((i, cursor.past(i, sense.ValueLink), at)))
    if cursor.is_(no[1], sense.FieldRef, sense.RelationRef):
        return False, (i,)  # "on a scholarship with no siblings"
    return True, (no[1],)


def literal(cursor: Cursor, i: int) -> tuple[str, int] | None:
    """A quoted text, or unknown words, as they were typed."""
    if cursor.token(i).kind == "quoted" and cursor.typed[i].text:
        return cursor.typed[i].text, i + 1
    end = i
    while end - i < LONGEST_LITERAL and cursor.unknown(end):
        end += 1
    return (cursor.text(i, end), end) if end > i else None


def condition_on(cursor: Cursor, draft: Parsed, field: Field, at: int) -> Parsed | None:
    """Return the condition on the field that begins at this position."""
    if field.kind in NUMBERS:
        return _on_number(cursor, draft, field, at)
    if field.kind in TIMES:
        return _on_time(cursor, draft, field, at)
    return _on_text(cursor, field, at) if field.kind in ("text", "json") else None


def _on_number(cursor: Cursor, draft: Parsed, field: Field, at: int) -> Parsed | None:
    years = field.kind == "integer" and cursor.lexicon.is_kind(field, "year")
    rule = compared_date if cursor.is_(at, sense.Compare) else date_led
    if years and (dated := rule(cursor, draft, at, field)):
        return dated
    amount = cursor.amount(at) if cursor.is_(at - 1, when.DateRelation) else None
    if (amount and dates.is_year(amount.value)) or _of_other_field(cursor, field, at):
        return None  # "sick days in 2026", "tankers with 4 seats"
    return between(cursor, draft, at, field) or number(cursor, draft, at, field)


def _of_other_field(cursor: Cursor, field: Field, at: int) -> bool:
    """Return whether the words of a bound name another field than the one before it: "4 seats",
    "heavier than 12 tonnes"."""
    bound = read_bound(cursor, at, field)
    end, kind = (bound.last.end, bound.kind) if bound else (at, "")
    if kind and cursor.field_of_kind(kind) and not cursor.lexicon.is_kind(field, kind):
        return True
    other = cursor.number_named(end) if bound and not cursor.is_(end, sense.Unit) else None
    if other is None or cursor.time_unit(end) or cursor.names(end, field):
        return False
    after = cursor.past(cursor.after(end), sense.ValueLink)
    return not (cursor.is_(after, sense.Compare, sense.Between) or cursor.number(after))


def _on_time(cursor: Cursor, draft: Parsed, field: Field, at: int) -> Parsed | None:
    # "customer since 2020": the name's last word says how the time relates to it
    related = cursor.is_(at - 1, when.DateRelation)
    if related and (found := date_led(cursor, draft, at - 1, field)):
        return found
    if cursor.is_(at, when.Falls) and not cursor.is_(at, sense.FieldRef):
        at = cursor.past(at, when.Falls, sense.ValueLink, sense.Filler, unless=when.Period)
    tried = (rule(cursor, draft, at, field) for rule in (between, compared_date, date_led))
    return next(filter(None, tried), None)


def _on_text(cursor: Cursor, field: Field, at: int) -> Parsed | None:
    past = cursor.past(at, sense.ValueLink, sense.Filler)
    if (begins := cursor.take(past, sense.StartsWith)) is not None:
        return _begins_with(cursor, field, begins[1])
    known = values(cursor, at, field) or values(cursor, past, field)
    return known or _option(cursor, field, at) or _contains(cursor, field, at)


def _begins_with(cursor: Cursor, field: Field, i: int) -> Parsed | None:
    """The "A" of "name starts with A", also if it is a word of the language."""
    text = cursor.typed[i].text if cursor.token(i).kind in ("word", "quoted", "number") else ""
    pattern = not {"%", "_"}.isdisjoint(text) or text != text.strip(AROUND_PIECE)
    return constraint(i + 1, field.name, "like", f"{text}%") if text and not pattern else None


def _alone(cursor: Cursor, field: Field, i: int, at: int) -> Parsed | None:
    """The field at `i` with a link word at most up to `at`: a sort order, a flag, an unknown
    value ("Acme", of a brand that no sampled record has)."""
    after = cursor.after(i)
    direction = cursor.take(after, sense.Direction)
    if direction and not cursor.many(field):
        return Parsed(direction[1], orders=(Order(field=field.name, order=direction[0].order),))
    linked = cursor.is_(after, sense.ValueLink)
    if field.kind == "boolean":
        return _flag(field, after, cursor.take(at, sense.Truth) if linked else None)
    if linked and cursor.is_(at, sense.Missing):
        return constraint(cursor.after(at), field.name, "null") if field.nullable else None
    return _unknown_value(cursor, field, i, at) if cursor.is_(after, sense.Equals) else None


def _unknown_value(cursor: Cursor, field: Field, i: int, at: int) -> Parsed | None:
    """The "Acme" of "brand is Acme"; in "which state is Dallas in?" no state is."""
    new = field.kind == "text" and not field.options and not cursor.is_(i - 1, sense.QuestionWord)
    found = literal(cursor, at) if new else None
    return constraint(found[1], field.name, "=", found[0]) if found else None


def _flag(field: Field, after: int, truth: tuple[sense.Truth, int] | None) -> Parsed:
    """A flag that is named alone, or with a "yes" or "no" behind it."""
    value, end = (truth[0].value, truth[1]) if truth else (True, after)
    return constraint(end, field.name, "=", value)


def missing(cursor: Cursor, i: int) -> Parsed | None:
    """ "without insurance", "no renewals": the field here has no value."""
    tried = (_missing(cursor, one, cursor.after(i)) for one in cursor.fields(i))
    return next(filter(None, tried), None)


def _missing(cursor: Cursor, field: Field, i: int) -> Parsed | None:
    """ "without insurance", "die nicht bezahlt sind", "no renewals"; `i` is the position after the
    field."""
    linked = cursor.is_(i, sense.ValueLink, sense.Equals)
    if _goes_on(cursor, field, i):
        return None
    if not linked and (none := lacking(cursor, field)):
        return constraint(i, field.name, "=", none)
    last = cursor.ended(cursor.past_one(i, sense.ValueLink))
    if field.nullable and (last or not linked):
        return constraint(i, field.name, "null")
    compared = linked or cursor.is_(i, sense.Compare, sense.Between)
    counted = field.kind in NUMBERS and not compared and not _names_record(cursor, field)
    return constraint(i, field.name, "=", 0) if counted else None


def _goes_on(cursor: Cursor, field: Field, i: int) -> bool:
    """ "not delivered after 6 pm", "pages not descending": return whether more follows."""
    no, times = cursor.past_one(i, sense.ValueLink), cursor.all(i, when.DateRelation)
    if cursor.is_(no, sense.Not):
        return not cursor.ended(cursor.after(no))
    timed = cursor.is_(i, sense.Between) or any(word.relation != "during" for word in times)
    return timed and field.kind in TIMES


def _names_record(cursor: Cursor, field: Field) -> bool:
    """Return whether a number is a key or a year: no record has 0 of it."""
    return cursor.is_key(field) or cursor.lexicon.is_kind(field, "year")


def happened(cursor: Cursor, field: Field, i: int, end: int) -> bool:
    """ "discharged patients", "patients who were discharged": an optional time that is set."""
    if not field.nullable or field.kind not in TIMES or "." in field.name:
        return False
    if cursor.is_(end, sense.ModelRef):
        return True
    last = cursor.ended(end) or cursor.is_(end, sense.And, sense.Or, sense.But, sense.Having)
    if last and i > 1 and cursor.is_(i - 1, sense.Relative):
        return True
    governed = last or prepositioned(cursor, end) is not None
    return governed and _is_of_model(cursor, i)


def _is_of_model(cursor: Cursor, i: int) -> bool:
    """Return whether the model's name is before a position, with fillers and values between at
    most: "lessons that were missed but paid"."""
    before = (at for at in reversed(cursor.starts) if at < i)
    first = next((at for at in before if not _is_between(cursor, at)), i)
    return cursor.is_(first, sense.ModelRef)


def _is_between(cursor: Cursor, i: int) -> bool:
    known = cursor.is_(i, sense.Filler, sense.ValueLink, sense.And, sense.ValueRef)
    return (known or cursor.is_mark(i, ",")) and not cursor.is_(i, sense.ModelRef)


def lacking(cursor: Cursor, field: Field) -> str | None:
    """Return the option that means absence: "none", "no"."""
    known = cursor.lexicon.vocabulary.phrases
    absent = (one for one in field.options if sense.has(known.get(phrase_of(one), ()), sense.Not))
    return next(absent, None)


def _option(cursor: Cursor, field: Field, at: int) -> Parsed | None:
    """ "grade 2", "grade 1 or 2": options that are numbers without a known order."""
    found: list[str] = []
    end = at
    while cursor.is_number(at) and cursor.tokens[at].norm in field.options:
        found.append(cursor.tokens[at].norm)
        end, at = at + 1, cursor.joint(at + 1)
        if at == end:
            break
    if not found:
        return None
    if postfix := postfixed(cursor, end):
        rest = range(end, postfix[1])
        return Parsed(postfix[1], not_understood=(end - 1, *rest), idle=tuple(rest))
    return Parsed(end, (require_one_of(field.name, found),))


def _contains(cursor: Cursor, field: Field, at: int) -> Parsed | None:
    if not cursor.is_(at, sense.Contains):
        return None
    known, found = values(cursor, cursor.after(at), field), literal(cursor, cursor.after(at))
    if known or found is None:
        return known
    if "%" in found[0] and "." not in field.name:  # for "like" the sign stands for any characters
        return constraint(found[1], field.name, MATCH, [found[0]])
    return constraint(found[1], field.name, "like", found[0])
