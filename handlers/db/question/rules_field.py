"""Rules for named fields, and for values that the model is known to have."""

from __future__ import annotations

from dataclasses import replace

from groundhook.handlers.db.dsl import MATCH_NONE
from groundhook.handlers.db.question import dates
from groundhook.handlers.db.question.cursor import NUMBERS, Cursor
from groundhook.handlers.db.question.draft import Draft, Parsed, constraint, negation_of
from groundhook.handlers.db.question.meanings import (
    And,
    Between,
    But,
    Compare,
    Contains,
    DateRelation,
    Direction,
    Equals,
    Falls,
    FieldRef,
    Filler,
    Link,
    ModelRef,
    Not,
    Or,
    Preposition,
    Single,
    Than,
    Truth,
    ValueRef,
)
from groundhook.handlers.db.question.rules_list import equal_to, postfixed
from groundhook.handlers.db.question.rules_number import between, compare
from groundhook.handlers.db.question.rules_time import TIMES, compared_date, date_led
from groundhook.handlers.db.question.tokens import phrase_of
from groundhook.handlers.db.schema import Field
from groundhook.host.core.types.query_language import Order, Where

LONGEST_LITERAL = 5  # words of a value that is not known


def field_led(cursor: Cursor, draft: Draft, i: int, negated: bool) -> Parsed | None:
    """ "price under 100", "rating of at least 4", "category: books", "released since March", "not
    featured"."""
    for reference in cursor.all(i, FieldRef):
        field, after = reference.field, cursor.at(i)[1]
        if draft.listing and cursor.is_(after, But):
            continue
        at = cursor.past(after, Link, Filler) if not cursor.is_(after, Contains) else after
        no = cursor.take(at, Not)
        against = negated != (no is not None)
        end = condition_on(cursor, draft, field, after, against) if no is None else None
        end = end or condition_on(cursor, draft, field, no[1] if no else at, against)
        end = end or _alone(cursor, field, after, no[1] if no else at, against)
        if end is not None:
            return end
    return None


def values(cursor: Cursor, i: int, negated: bool, of: Field | None = None) -> Parsed | None:
    """ "Apple", "Apple or Samsung", "electronics category", "delivered, shipped and paid"."""
    found = [
        meaning
        for meaning in cursor.all(i, ValueRef)
        if of is None or meaning.field.name == of.name
    ]
    if not found:
        return None
    end = cursor.at(i)[1]
    behind = {reference.field.name: reference.field for reference in cursor.all(end, FieldRef)}
    named = [meaning for meaning in found if meaning.field.name in behind]
    own = [meaning for meaning in found if meaning.field.options and "." not in meaning.field.name]
    chosen = next(iter(named or own or found))
    listed = [chosen.value]
    while (more := _next_value(cursor, end, chosen.field)) is not None:
        listed.append(more[0])
        end = more[1]
    if any(reference.field.name == chosen.field.name for reference in cursor.all(end, FieldRef)):
        end = cursor.at(end)[1]
    if chosen.field.name in cursor.lexicon.lists:
        return Parsed(end, _containing(cursor, chosen.field, listed, range(i, end), negated))
    many = len(listed) > 1
    op = ("not in" if many else "!=") if negated else ("in" if many else "=")
    also = _fields_alike(cursor, found, chosen, listed) if of is None and not named else []
    if not also:
        return constraint(end, chosen.field.name, op, listed if many else listed[0])
    each = [
        Where(field=name, op=op, value=listed if many else listed[0])
        for name in (chosen.field.name, *also)
    ]
    names = " and ".join(where.field for where in each)
    note = f"{cursor.text(i, end)!r} was looked for in {names}"
    return Parsed(end, tuple(each) if negated else (Where(any_of=tuple(each)),), notes=(note,))


def _containing(
    cursor: Cursor, field: Field, pieces: list[str], words: range, negated: bool
) -> tuple[Where, ...]:
    """Return the condition that a list contains these values, any of them, or none."""
    if negated:
        return (Where(field=field.name, op=MATCH_NONE, value=pieces),)
    each = [Where(field=field.name, op="like", value=piece) for piece in pieces]
    either = len(each) > 1 and any(cursor.is_(at, Or) for at in words)
    return (Where(any_of=tuple(each)),) if either else tuple(each)


def _fields_alike(
    cursor: Cursor, found: list[ValueRef], chosen: ValueRef, listed: list[str]
) -> list[str]:
    """Return other fields of the same record that have these values too, if the question names none
    of them: "flights Oslo". A name that is the value of another field ("Apple") does not count."""
    path = chosen.field.name.rpartition(".")[0]
    if chosen.field.options or cursor.lexicon.is_kind(chosen.field, "name"):
        return []
    near = [
        value.field
        for value in found
        if value.field.name.rpartition(".")[0] == path and value.value in listed
    ]
    others = [field for field in near if field.name != chosen.field.name and not field.options]
    return [field.name for field in others if not cursor.lexicon.is_kind(field, "name")]


def excepted(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """ "all makes but Volvo"."""
    if not (draft.listing and cursor.is_(i, But)):
        return None
    return values(cursor, cursor.past(cursor.at(i)[1], Single, most=1), True)


def prepositioned(cursor: Cursor, i: int, negated: bool = False) -> Parsed | None:
    """ "from Oslo", "to Rome": the word before a value selects one of several fields."""
    at = cursor.past(cursor.at(i)[1], Filler, most=1) if cursor.is_(i, Preposition) else i
    for word in cursor.all(i, Preposition):
        for field in cursor.lexicon.texts_of_kind(word.kind):
            for start in dict.fromkeys((cursor.at(i)[1], at)):
                parsed = values(cursor, start, negated, field)
                if parsed is None:
                    continue
                found = cursor.all(start, ValueRef)
                value = next(one.value for one in found if one.field.name == field.name)
                alike = _fields_alike(cursor, found, ValueRef(field, value), [value])
                if not alike or _told_apart(cursor, alike):
                    return parsed
                note = (
                    f"{cursor.text(start, parsed.end)!r} was looked for in {field.name}; it is"
                    f" also a value of {' and '.join(alike)}"
                )
                return replace(parsed, notes=(*parsed.notes, note))
    return None


def _told_apart(cursor: Cursor, names: list[str]) -> bool:
    """Return whether each field has a preposition that selects it: "from", "to"."""
    kinds = cursor.lexicon.vocabulary.file.prepositions
    return any(one.name in names for kind in kinds for one in cursor.lexicon.texts_of_kind(kind))


def literal(cursor: Cursor, i: int) -> tuple[str, int] | None:
    """A quoted text, or unknown words, as they were typed."""
    if i < len(cursor.tokens) and cursor.tokens[i].kind == "quoted" and cursor.typed[i].text:
        return cursor.typed[i].text, i + 1
    end = i
    while end - i < LONGEST_LITERAL and cursor.unknown(end):
        end += 1
    return (cursor.text(i, end), end) if end > i else None


def condition_on(
    cursor: Cursor, draft: Draft, field: Field, at: int, negated: bool
) -> Parsed | None:
    """Return the condition on the field that begins at this position."""
    if field.kind in NUMBERS:
        end = compare(cursor, draft, at, negated, field)
        if end is None and negated:
            return _unsaid(cursor, draft, field, at)
        if end is None and field.kind == "integer" and cursor.lexicon.is_kind(field, "year"):
            end = between(cursor, draft, at, field) or date_led(cursor, draft, at, field)
        return end or between(cursor, draft, at, field) or _number(cursor, field, at)
    if field.kind in TIMES and negated:
        return _unsaid(cursor, draft, field, at)
    if field.kind in TIMES:
        if cursor.is_(
            at - 1, DateRelation
        ):  # "customer since 2020": the name's last word says how the time relates to it
            end = date_led(cursor, draft, at - 1, field)
            if end is not None:
                return end
        at = (
            at
            if cursor.is_(at, FieldRef)
            else cursor.past(at, Falls, Link, Filler)
            if cursor.is_(at, Falls)
            else at
        )
        return (
            between(cursor, draft, at, field)
            or compared_date(cursor, draft, at, field)
            or date_led(cursor, draft, at, field)
        )
    if field.kind == "text":
        end = values(cursor, at, negated, field) or values(
            cursor, cursor.past(at, Link, Filler), negated, field
        )
        return end or _option(cursor, field, at, negated) or _contains(cursor, field, at, negated)
    return None


def _unsaid(cursor: Cursor, draft: Draft, field: Field, at: int) -> Parsed | None:
    """Return the opposite of the condition on the field that begins at this position."""
    found = condition_on(cursor, draft, field, at, False)
    return negation_of(found, cursor.lexicon.fields) if found is not None else None


def _alone(cursor: Cursor, field: Field, after: int, at: int, negated: bool) -> Parsed | None:
    """A field followed by a link word at most: a flag, a sort order, an unknown value, or a missing
    value."""
    if (direction := cursor.take(after, Direction)) and not cursor.many(field):
        return Parsed(direction[1], orders=(Order(field=field.name, order=direction[0].order),))
    if field.kind == "boolean":
        truth = cursor.take(at, Truth) if cursor.is_(after, Link) else None
        value = truth[0].value if truth else True
        return constraint(truth[1] if truth else after, field.name, "=", value != negated)
    if (
        field.kind == "text"
        and not field.options
        and cursor.is_(after, Equals)
        and (found := literal(cursor, at))
    ):
        return constraint(found[1], field.name, "!=" if negated else "=", found[0])
    if negated and (none := lacking(cursor, field)) and not cursor.is_(after, Link, Equals):
        return constraint(after, field.name, "=", none)  # "without insurance"
    if negated and field.nullable and not cursor.is_(after, Link, Equals):
        return constraint(after, field.name, "null")
    if (
        negated
        and field.kind == "integer"
        and not cursor.is_(after, Link, Equals, Compare, Between)
    ):
        return constraint(after, field.name, "=", 0)  # "no renewals"
    return None


def happened(cursor: Cursor, field: Field, i: int, end: int) -> bool:
    """ "discharged patients", "patients who were discharged": an optional time that is set."""
    if not field.nullable or field.kind not in TIMES or "." in field.name:
        return False
    if cursor.is_(end, ModelRef):
        return True
    at = i
    while at > 0 and cursor.is_(at - 1, Filler, Link) and not cursor.is_(at - 1, ModelRef):
        at -= 1
    return cursor.is_(at - 1, ModelRef) and (cursor.ended(end) or cursor.is_(end, And, Or))


def lacking(cursor: Cursor, field: Field) -> str | None:
    """Return the option that means absence: "none", "no"."""
    phrases = cursor.lexicon.vocabulary.phrases
    absences = (
        option
        for option in field.options
        if any(isinstance(meaning, Not) for meaning in phrases.get(phrase_of(option), ()))
    )
    return next(absences, None)


def _number(cursor: Cursor, field: Field, at: int) -> Parsed | None:
    amount = cursor.amount(at)
    if (
        amount is None
        or cursor.is_(at - 1, Than)
        or (
            cursor.is_(at - 1, DateRelation) and dates.FIRST_YEAR <= amount.value <= dates.LAST_YEAR
        )
    ):
        return None  # "sick days in 2026"
    postfix = postfixed(cursor, amount.end)
    if postfix is None:
        return equal_to(cursor, field, amount)
    return constraint(postfix[1], field.name, postfix[0], amount.value)


def _option(cursor: Cursor, field: Field, at: int, negated: bool) -> Parsed | None:
    """ "grade 2", "grade 1 or 2": options that are numbers without a known order."""
    found: list[str] = []
    end = at
    while (
        at < len(cursor.tokens)
        and cursor.tokens[at].kind == "number"
        and cursor.tokens[at].norm in field.options
    ):
        found.append(cursor.tokens[at].norm)
        end = at + 1
        at = (
            cursor.at(end)[1]
            if cursor.is_(end, And, Or)
            else end + 1
            if cursor.is_mark(end, ",")
            else len(cursor.tokens)
        )
    if not found:
        return None
    if postfix := postfixed(cursor, end):
        rest = range(end, postfix[1])
        return Parsed(postfix[1], unplaced=(end - 1, *rest), idle=tuple(rest))
    many = len(found) > 1
    op = ("not in" if many else "!=") if negated else ("in" if many else "=")
    return constraint(end, field.name, op, found if many else found[0])


def _contains(cursor: Cursor, field: Field, at: int, negated: bool) -> Parsed | None:
    word = cursor.take(at, Contains)
    found = literal(cursor, word[1]) if word and not negated else None
    if found is None:
        return None
    return constraint(found[1], field.name, "like", found[0])


def _next_value(cursor: Cursor, i: int, field: Field) -> tuple[str, int] | None:
    at, joined = i, False
    while cursor.is_mark(at, ",") or cursor.is_(at, And, Or):
        at, joined = max(cursor.at(at)[1], at + 1), True
    words = cursor.all(at, Preposition)
    other = bool(words) and all(
        field not in cursor.lexicon.texts_of_kind(word.kind) for word in words
    )
    further = at if other else cursor.past(at, Filler, Link, most=2)  # "to Rome or from Dublin"
    for start in dict.fromkeys((at, further)) if joined else ():
        value = next(
            (
                meaning
                for meaning in cursor.all(start, ValueRef)
                if meaning.field.name == field.name
            ),
            None,
        )
        if value is not None:
            return value.value, cursor.at(start)[1]
    return None
