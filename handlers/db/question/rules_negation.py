"""Rules for negations: "not from Apple", "without orders"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from groundhook.handlers.db.question import sense, when
from groundhook.handlers.db.question.cursor import TIMES, Cursor
from groundhook.handlers.db.question.draft import OPPOSITE, Draft, Parsed, constraint, negation_of
from groundhook.handlers.db.question.rules_field import field_led
from groundhook.handlers.db.question.rules_number import between, compare, verb_led
from groundhook.handlers.db.question.rules_time import compared_date, date_led
from groundhook.handlers.db.question.rules_value import prepositioned, values
from groundhook.host.core.types.query_language import Where

# What belongs to the verb before it.
GOVERNED = (sense.Compare, sense.Preposition, when.DateRelation, sense.Between, when.Period)


def negation(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """ "not from Apple", "except discontinued ones", "without a description", "not more than 50",
    "neither paid nor sent"."""
    again = cursor.is_(i, sense.Nor) and any(cursor.is_(at, sense.Not) for at in range(i))
    if not (cursor.is_(i, sense.Not) or again):
        return None
    direct = cursor.after(i)
    later = cursor.past(direct, sense.Filler, sense.ValueLink, sense.Contains)
    behind_verb = _behind_verb(cursor, i, later)
    for at in dict.fromkeys((direct, later, *behind_verb)):
        found = _passive(cursor, at) or _negated(cursor, draft, at)
        if found is not None and found.refused:
            return _unplaced(replace(found, end=direct), range(i, direct))
        if found is not None:
            return _unplaced(found, range(later, later + (at in behind_verb)))
    unknown = cursor.is_unknown_word(later)
    return Parsed(later + 1, excluded=(later,)) if unknown else None


def _unplaced(found: Parsed, places: range) -> Parsed:
    """Return the result with words that are reported and not searched for."""
    return replace(found, not_understood=tuple(places), idle=tuple(places))


def _negated(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """Return the opposite of the condition that begins here; `refused` if no query can express
    it."""
    if (same := _of_same_field(cursor, draft, i)) is not None:
        return same
    for rule in (verb_led, compare, preposition_rule, field_led, values_rule, condition):
        found = rule(cursor, draft, i, True)
        if found is not None and _of_some(cursor, found.wheres):
            return Parsed(i, refused=True)
        if found is not None:
            return (
                _nor_what_follows(cursor, draft, found) if found.end == cursor.after(i) else found
            )
    if (within := _not_within(cursor, draft, i)) is not None:
        return within
    if cursor.is_(i, sense.RelationRef) and _goes_on(cursor, cursor.after(i)):
        return Parsed(i, refused=True)
    if related := cursor.take(i, sense.RelationRef):  # "customers without orders"
        return constraint(related[1], related[0].relation, "null")
    act = cursor.act(i)  # "customers who never ordered"
    return constraint(i + 1, act, "null") if act else None


def _of_same_field(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """ "who speak German but not French": the second value is one of the first one's field."""
    last = draft.pieces[-1][2][-1] if draft.pieces else None
    before = cursor.lexicon.fields.get(last.field) if last and last.group is None else None
    rivals = {one.field.name for one in cursor.all(i, sense.ValueRef)}
    if before is None or before.name not in rivals or len(rivals) < 2:
        return None
    return values(cursor, i, True, before)


def _behind_verb(cursor: Cursor, no: int, i: int) -> list[int]:
    """Return where the rest of a negated clause begins after an unknown verb: "not painted in red",
    "do not last longer than", "never learned French". `no` is the position of the "not"."""
    if not cursor.is_unknown_word(i):
        return []
    rest = cursor.past(i + 1, sense.Filler)
    of_verb = any(word.of_verb for word in cursor.all(no, sense.Not))
    governed = cursor.is_(rest, *GOVERNED) or (
        of_verb and cursor.is_(rest, sense.ValueRef, sense.FieldRef)
    )
    return [i + 1, rest] if rest > i + 1 or governed else []


def _passive(cursor: Cursor, i: int) -> Parsed | None:
    """ "not published in German", "not sold in Rome": of a verb that names a field and the value
    after it not both hold."""
    for reference in cursor.all(i, sense.FieldRef):
        field, after = reference.field, cursor.after(i)
        found = None if cursor.is_(i, sense.ValueRef) else prepositioned(cursor, after, True)
        if found is None or "." in field.name:
            continue
        if field.kind == "boolean":
            without = (Where(field=field.name, value=False),)
        elif field.kind in TIMES and field.nullable:
            without = (Where(field=field.name, op="null"),)
        elif field.kind in TIMES or cursor.lexicon.is_kind(field, "year"):
            return found
        else:
            continue
        return replace(found, wheres=(Where(any_of=(*without, *found.wheres)),))
    return None


def _of_some(cursor: Cursor, wheres: Sequence[Where]) -> bool:
    """Return whether conditions are on many related records that are not the current topic:
    "without overdue invoices" differs from having some that are not overdue."""
    fields = [cursor.lexicon.fields.get(where.field) for where in wheres]
    many = (field for field in fields if field is not None and cursor.many(field))
    return any(not field.name.startswith(f"{cursor.about.relation}.") for field in many)


def _goes_on(cursor: Cursor, i: int) -> bool:
    """Return whether further conditions apply to the excluded related records: "without orders
    since March"."""
    for at in dict.fromkeys((i, cursor.past(i, sense.Filler, sense.ValueLink))):
        ends = [rule(cursor, Draft(), at) for rule in (date_led, compared_date)]
        compared = cursor.is_(at, sense.Compare, sense.Between) or any(
            end is not None for end in ends
        )
        if compared or any(cursor.many(one.field) for one in cursor.all(at, sense.ValueRef)[:1]):
            return True
    return False


def _nor_what_follows(cursor: Cursor, draft: Draft, found: Parsed) -> Parsed:
    """ "not paid or cancelled": after a "not", neither of two single words holds."""
    while cursor.is_(found.end, sense.Or) and not cursor.is_(found.end, sense.Nor):
        at = cursor.after(found.end)
        more = field_led(cursor, draft, at, True) or values(cursor, at, True)
        if more is None or more.end != cursor.after(at):
            break
        found = replace(found, end=more.end, wheres=(*found.wheres, *more.wheres))
    return found


def _not_within(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """ "not between 50 and 100", "not in October", "price not between 50 and 100", "not older than
    a month"."""
    field = draft.mention if cursor.is_(i - 2, sense.FieldRef) else None
    for rule in (between, compared_date, date_led):
        found = rule(cursor, draft, i, field) or rule(cursor, draft, i)
        if (
            found
            and found.wheres
            and all(where.op in (*OPPOSITE, "between") for where in found.wheres)
        ):
            return negation_of(found, cursor.lexicon.fields)
    return None


def condition(cursor: Cursor, _: Draft, i: int, negated: bool = False) -> Parsed | None:
    """ "in stock", "sold out"."""
    opposite = {">": "=", "=": ">"}
    for found in cursor.all(i, sense.Condition):
        field = cursor.field_of_kind(found.kind)
        if field is not None:
            op = opposite[found.op] if negated else found.op
            return constraint(cursor.after(i), field.name, op, found.value)
    return None


def values_rule(cursor: Cursor, _: Draft, i: int, negated: bool = False) -> Parsed | None:
    found = values(cursor, i, negated)
    verb = _negated_behind(cursor, i, found.end) if found and not negated else None
    if verb is None:
        return found
    found, idle = values(cursor, i, True), tuple(range(*verb))
    return replace(found, end=verb[1], not_understood=idle, idle=idle) if found else None


def _negated_behind(cursor: Cursor, i: int, end: int) -> tuple[int, int] | None:
    """ "which books did Ada Sato not write", "Bücher, die Ada Sato nicht geschrieben hat": return
    where the unknown verb behind the "not" begins and ends."""
    verb = cursor.after(end) if cursor.is_(end, sense.Not) else end
    subject = (
        cursor.is_(i - 1, sense.Auxiliary) or cursor.lexicon.vocabulary.file.dates.verbs_behind
    )
    if verb == end or not subject:
        return None
    known = cursor.is_(verb, sense.Filler, sense.Preposition)
    last = cursor.past(verb if known else verb + 1, sense.Filler, sense.Preposition)
    if not (known or cursor.unknown(verb)) or not cursor.ended(last):
        return None
    return (last if known else verb, last)


def preposition_rule(cursor: Cursor, _: Draft, i: int, negated: bool = False) -> Parsed | None:
    return prepositioned(cursor, i, negated)
