"""Rules for named fields, and for values that the model is known to have."""

from __future__ import annotations

from groundhook.handlers.db.question import dates, sense, when
from groundhook.handlers.db.question.cursor import NUMBERS, TIMES, Cursor
from groundhook.handlers.db.question.draft import Draft, Parsed, constraint, negation_of
from groundhook.handlers.db.question.rules_list import equal_to, postfixed
from groundhook.handlers.db.question.rules_number import between, compare, range_on
from groundhook.handlers.db.question.rules_time import compared_date, date_led
from groundhook.handlers.db.question.rules_value import prepositioned, values
from groundhook.handlers.db.question.tokens import phrase_of
from groundhook.handlers.db.schema import Field
from groundhook.host.core.types.query_language import Order

LONGEST_LITERAL = 5  # words of a value that is not known


def field_led(cursor: Cursor, draft: Draft, i: int, negated: bool = False) -> Parsed | None:
    """ "price under 100", "rating of at least 4", "category: books", "released since March", "not
    featured"."""
    for reference in cursor.all(i, sense.FieldRef):
        field, after = reference.field, cursor.after(i)
        if draft.listing and cursor.is_(after, sense.But):
            continue
        at = (
            cursor.past(after, sense.Link, sense.Filler)
            if not cursor.is_(after, sense.Contains)
            else after
        )
        no = cursor.take(at, sense.Not)
        if no and cursor.is_(no[1], sense.FieldRef, sense.RelationRef):
            no, at = None, after  # "on a scholarship with no siblings"
        against = negated != (no is not None)
        end = condition_on(cursor, draft, field, after, against) if no is None else None
        end = end or condition_on(cursor, draft, field, no[1] if no else at, against)
        end = end or _alone(cursor, field, i - 1, after, no[1] if no else at, against)
        if end is not None:
            return end
    return None


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
            at - 1, when.DateRelation
        ):  # "customer since 2020": the name's last word says how the time relates to it
            end = date_led(cursor, draft, at - 1, field)
            if end is not None:
                return end
        at = (
            at
            if cursor.is_(at, sense.FieldRef)
            else cursor.past(at, when.Falls, sense.Link, sense.Filler)
            if cursor.is_(at, when.Falls)
            else at
        )
        return (
            between(cursor, draft, at, field)
            or compared_date(cursor, draft, at, field)
            or date_led(cursor, draft, at, field)
        )
    if field.kind in ("text", "json"):
        end = values(cursor, at, negated, field) or values(
            cursor, cursor.past(at, sense.Link, sense.Filler), negated, field
        )
        return end or _option(cursor, field, at, negated) or _contains(cursor, field, at, negated)
    return None


def _unsaid(cursor: Cursor, draft: Draft, field: Field, at: int) -> Parsed | None:
    """Return the opposite of the condition on the field that begins at this position."""
    found = condition_on(cursor, draft, field, at, False)
    return negation_of(found, cursor.lexicon.fields) if found is not None else None


def _alone(
    cursor: Cursor, field: Field, before: int, after: int, at: int, negated: bool
) -> Parsed | None:
    """A field followed by a link word at most: a flag, a sort order, an unknown value, or a missing
    value."""
    if (direction := cursor.take(after, sense.Direction)) and not cursor.many(field):
        return Parsed(direction[1], orders=(Order(field=field.name, order=direction[0].order),))
    if field.kind == "boolean":
        truth = cursor.take(at, sense.Truth) if cursor.is_(after, sense.Link) else None
        value = truth[0].value if truth else True
        return constraint(truth[1] if truth else after, field.name, "=", value != negated)
    if (
        field.kind == "text"
        and not field.options
        and cursor.is_(after, sense.Equals)
        and not cursor.is_(before, sense.QuestionWord)  # "which state is Dallas in?" asks for it
        and (found := literal(cursor, at))
    ):
        return constraint(found[1], field.name, "!=" if negated else "=", found[0])
    if (
        negated
        and (none := lacking(cursor, field))
        and not cursor.is_(after, sense.Link, sense.Equals)
    ):
        return constraint(after, field.name, "=", none)  # "without insurance"
    last = cursor.ended(cursor.past_one(after, sense.Link))  # "die nicht bezahlt sind"
    if negated and field.nullable and (last or not cursor.is_(after, sense.Link, sense.Equals)):
        return constraint(after, field.name, "null")
    if (
        negated
        and field.kind in NUMBERS
        and not _is_key(cursor, field)
        and not cursor.is_(after, sense.Link, sense.Equals, sense.Compare, sense.Between)
    ):
        return constraint(after, field.name, "=", 0)  # "no renewals"
    return None


def _is_key(cursor: Cursor, field: Field) -> bool:
    schema = cursor.lexicon.schema
    keys = {schema.key, *(relation.foreign for relation in schema.relations.values())}
    return field.name in keys or cursor.lexicon.is_kind(field, "year")


def happened(cursor: Cursor, field: Field, i: int, end: int) -> bool:
    """ "discharged patients", "patients who were discharged": an optional time that is set."""
    if not field.nullable or field.kind not in TIMES or "." in field.name:
        return False
    if cursor.is_(end, sense.ModelRef):
        return True
    ended = cursor.ended(end) or cursor.is_(end, sense.And, sense.Or, sense.Having)
    if ended and i > 1 and cursor.is_(i - 1, sense.Relative):
        return True
    at = i
    while (
        at > 0
        and cursor.is_(at - 1, sense.Filler, sense.Link)
        and not cursor.is_(at - 1, sense.ModelRef)
    ):
        at -= 1
    return cursor.is_(at - 1, sense.ModelRef) and (ended or prepositioned(cursor, end) is not None)


def lacking(cursor: Cursor, field: Field) -> str | None:
    """Return the option that means absence: "none", "no"."""
    phrases = cursor.lexicon.vocabulary.phrases
    absences = (
        option
        for option in field.options
        if any(isinstance(meaning, sense.Not) for meaning in phrases.get(phrase_of(option), ()))
    )
    return next(absences, None)


def _number(cursor: Cursor, field: Field, at: int) -> Parsed | None:
    amount = cursor.amount(at)
    if (
        amount is None
        or cursor.is_(at - 1, sense.Than)
        or (cursor.is_(at - 1, when.DateRelation) and dates.is_year(amount.value))
    ):
        return None  # "sick days in 2026"
    until = cursor.take(amount.end, sense.BetweenAnd)
    if until and not cursor.is_(amount.end, sense.And) and (upper := cursor.amount(until[1])):
        return range_on(cursor, field, amount, upper)  # "a runtime of 90 to 120 minutes"
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
            cursor.after(end)
            if cursor.is_(end, sense.And, sense.Or)
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
    word = cursor.take(at, sense.Contains)
    if word and (known := values(cursor, word[1], negated, field)):
        return known
    found = literal(cursor, word[1]) if word and not negated else None
    if found is None:
        return None
    return constraint(found[1], field.name, "like", found[0])
