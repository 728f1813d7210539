"""Rules for negations: "not from Apple", "without orders"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from groundhook.core.types.query_language import Where
from groundhook.handlers.db.question import sense, when
from groundhook.handlers.db.question.cursor import TIMES, Cursor
from groundhook.handlers.db.question.joining import of_some
from groundhook.handlers.db.question.parsed import Parsed, constraint
from groundhook.handlers.db.question.rules_field import field_led, missing, negated
from groundhook.handlers.db.question.rules_length import compared_date
from groundhook.handlers.db.question.rules_number import between, number, verb_led
from groundhook.handlers.db.question.rules_time import date_led
from groundhook.handlers.db.question.rules_value import prepositioned, values
from groundhook.handlers.db.question.wheres import has_opposite

Rule = Callable[[Cursor, Parsed, int], Parsed | None]
# What belongs to the verb before it.
GOVERNED = (sense.Compare, sense.Preposition, when.DateRelation, sense.Between, when.Period)


def negation(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "not from Apple", "without a description", "not more than 50", "neither paid nor sent",
    "except those to Berlin"."""
    again = cursor.is_(i, sense.Nor) and any(cursor.is_(at, sense.Not) for at in range(i))
    if not (cursor.is_(i, sense.Not) or again):
        return None
    if (records := _excepted(cursor, i)) is not None:
        return records
    direct = cursor.after(i)
    *steps, later = cursor.steps(direct, sense.Filler, sense.ValueLink, sense.Contains)
    behind_verb = _behind_verb(cursor, i, later)
    for at in dict.fromkeys((*steps, later, *behind_verb)):
        found = _passive(cursor, at) or _against(cursor, draft, at)
        if found is not None and found.refused:
            return replace(found, end=direct).unplaced(range(i, direct))
        if found is not None:
            return found.unplaced(range(later, later + (at in behind_verb)))
    unknown = cursor.is_unknown_word(later)
    return Parsed(later + 1, excluded=(later,)) if unknown else None


def excepted(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "all makes but Volvo", "all orders but those to Berlin"."""
    if not (cursor.said(sense.Everything) and cursor.is_(i, sense.But)):
        return None
    after = cursor.after(i)
    the = cursor.is_(after, when.Definite)  # "all but the cheapest": no condition
    return _excepted(cursor, i) or (Parsed(after).unplaced(range(i, after)) if the else None)


def _excepted(cursor: Cursor, i: int) -> Parsed | None:
    """ "except those to Berlin", "but the paid ones", "besides Volvo": begins a description of
    records. Behind other words than these "the ones" are described too."""
    after = cursor.after(i)
    first = cursor.past(after, when.Definite, sense.Single, most=1)
    at = cursor.past(first, sense.ValueRef, sense.Condition, sense.FieldRef)
    described = cursor.is_(at, sense.Pronoun)
    if cursor.is_(i, sense.Except, sense.But):
        value = cursor.is_(first, sense.ValueRef, sense.Condition)
        described = described or value or cursor.is_(at, sense.ModelRef)
    return Parsed(after, exceptions=(i,)) if described else None


def _against(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """Return the opposite of the condition that begins here; `refused` if no query can express
    it."""
    found, at = _opposite(cursor, draft, i), i
    while found and found.end == cursor.after(at) and cursor.is_(found.end, sense.Or):
        at = cursor.after(found.end)
        more = None if cursor.is_(found.end, sense.Nor) else _opposite(cursor, draft, at)
        if more is None or more.end != cursor.after(at):
            break  # only of single words neither holds: "not paid or cancelled"
        found = replace(found, end=more.end, wheres=(*found.wheres, *more.wheres))
    return found or _without(cursor, i)


def _opposite(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """Return the opposite of one condition."""
    found = _of_same_field(cursor, draft, i) or _first_of(OF_FIELDS, cursor, draft, i)
    value = cursor.is_(i, sense.ValueRef) and cursor.number_named(i)  # "not tankers"
    if found is None and not value and (lacking := missing(cursor, i)) is not None:
        return lacking
    found = found or _first_of(OTHERS, cursor, draft, i)
    if found is None:
        return None
    refused = of_some(cursor, found.wheres) or not has_opposite(found.wheres)
    return Parsed(i, refused=True) if refused else negated(cursor, found)


def _without(cursor: Cursor, i: int) -> Parsed | None:
    """ "customers without orders", "who never ordered"."""
    if cursor.is_(i, sense.RelationRef) and _goes_on(cursor, cursor.after(i)):
        return Parsed(i, refused=True)
    if related := cursor.take(i, sense.RelationRef):
        return constraint(related[1], related[0].relation, "null")
    act = cursor.act(i)
    return constraint(i + 1, act, "null") if act else None


def _first_of(rules: Sequence[Rule], cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """Return the first condition that one of these rules reads here."""
    tried = (rule(cursor, draft, i) for rule in rules)
    return next((found for found in tried if found and found.wheres), None)


def _of_same_field(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "who speak German but not French": the second value is one of the first one's field."""
    before = cursor.lexicon.fields.get(draft.last.field) if draft.last else None
    rivals = {one.field.name for one in cursor.all(i, sense.ValueRef)}
    if before is None or before.name not in rivals or len(rivals) < 2:
        return None
    return values(cursor, i, before)


def _behind_verb(cursor: Cursor, no: int, i: int) -> list[int]:
    """Return where the rest of a negated clause begins after an unknown verb: "not painted in red",
    "do not last longer than", "never learned French". `no` is the position of the "not"."""
    rest = cursor.past(i + 1, sense.Filler)
    of_verb = any(word.of_verb for word in cursor.all(no, sense.Not))
    object_of = of_verb and cursor.is_(rest, sense.ValueRef, sense.FieldRef)
    governed = rest > i + 1 or object_of or cursor.is_(rest, *GOVERNED)
    return [i + 1, rest] if governed and cursor.is_unknown_word(i) else []


def _passive(cursor: Cursor, i: int) -> Parsed | None:
    """ "not published in German", "not sold in Rome": of a verb that names a field and the value
    after it not both hold."""
    found = None if cursor.is_(i, sense.ValueRef) else prepositioned(cursor, cursor.after(i))
    for field in cursor.fields(i) if found else ():
        if found is None or "." in field.name:
            continue
        against, without = negated(cursor, found), None
        if field.kind == "boolean":
            without = Where(field=field.name, value=False)
        elif field.kind in TIMES and field.nullable:
            without = Where(field=field.name, op="null")
        if without is not None:
            return replace(against, wheres=(Where(any_of=(without, *against.wheres)),))
        if field.kind in TIMES or cursor.lexicon.is_kind(field, "year"):
            return against
    return None


def _goes_on(cursor: Cursor, i: int) -> bool:
    """Return whether further conditions apply to the excluded related records: "without orders
    since March"."""
    for at in (i, cursor.past(i, sense.Filler, sense.ValueLink)):
        timed = any(rule(cursor, Parsed(), at) for rule in (date_led, compared_date))
        valued = any(cursor.many(one.field) for one in cursor.all(at, sense.ValueRef)[:1])
        if timed or valued or cursor.is_(at, sense.Compare, sense.Between):
            return True
    return False


def condition(cursor: Cursor, _: Parsed, i: int) -> Parsed | None:
    """ "in stock", "sold out", "former"."""
    for found in cursor.all(i, sense.Condition):
        optional = cursor.date_of_kind(found.kind) if found.value is None else None
        field = optional or cursor.field_of_kind(found.kind)
        if field is not None:
            return constraint(cursor.after(i), field.name, found.op, found.value)
    return None


def values_rule(cursor: Cursor, _: Parsed, i: int) -> Parsed | None:
    found = values(cursor, i)
    verb = _negated_behind(cursor, i, found.end) if found else None
    if found is None or verb is None:
        return found
    return replace(negated(cursor, found), end=verb[1]).unplaced(range(*verb))


def time_rule(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """A time; in "die dieses Jahr nicht geprüft wurden" the "not" and its verb come behind it."""
    found = date_led(cursor, draft, i)
    behind = cursor.lexicon.vocabulary.file.dates.verbs_behind
    if found is None or not (behind and cursor.is_(found.end, sense.Not)):
        return found
    verb = cursor.after(found.end)
    tried = (date_led(cursor, draft, i, field) for field in cursor.fields(verb))
    of_verb = next((one for one in tried if one and one.wheres and one.end == found.end), None)
    return replace(negated(cursor, of_verb), end=cursor.after(verb)) if of_verb else found


def _negated_behind(cursor: Cursor, i: int, end: int) -> tuple[int, int] | None:
    """ "which books did Ada Sato not write", "Bücher, die Ada Sato nicht geschrieben hat": return
    where the unknown verb behind the "not" begins and ends."""
    verb = cursor.past_one(end, sense.Not)
    behind = cursor.lexicon.vocabulary.file.dates.verbs_behind
    if verb == end or not (behind or cursor.is_(i - 1, sense.Auxiliary)):
        return None
    known = cursor.is_(verb, sense.Filler, sense.Preposition)
    last = cursor.past(verb if known else verb + 1, sense.Filler, sense.Preposition)
    if not (known or cursor.unknown(verb)) or not cursor.ended(last):
        return None
    return (last if known else verb, last)


def preposition_rule(cursor: Cursor, _: Parsed, i: int) -> Parsed | None:
    return prepositioned(cursor, i)


# What a "not" may be about. A field without a value comes between these.
OF_FIELDS: Sequence[Rule] = (verb_led, number, preposition_rule, field_led)
OTHERS: Sequence[Rule] = (values_rule, condition, between, compared_date, date_led)
