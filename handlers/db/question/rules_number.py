"""Rules for numbers: comparisons, ranges, lists, units, ages, verbs such as "costs"."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.question import sense, when
from groundhook.handlers.db.question.bounds import ABOUT, ROUGHLY, Bound, postfixed, read_bound
from groundhook.handlers.db.question.cursor import COUNTED, TIMES, Cursor, without_point
from groundhook.handlers.db.question.daytimes import time_of_day
from groundhook.handlers.db.question.number_fields import (
    RECORDS,
    bounded_field,
    fitted,
    rated,
    units_of,
)
from groundhook.handlers.db.question.parsed import Parsed, constraint
from groundhook.handlers.db.question.rules_age import aged
from groundhook.handlers.db.question.rules_length import lasting
from groundhook.handlers.db.question.rules_time import between_dates
from groundhook.handlers.db.question.time_fields import of_no_field


def number(cursor: Cursor, draft: Parsed, i: int, of: Field | None = None) -> Parsed | None:
    """ "under $100", "at least 4 stars", "$50-$100", "49, 100 or 249 euros", "100 or less", "$100"
    alone (exactly that), "4 stars" (at least). `of` is the field that was named before."""
    bound = read_bound(cursor, i, of)
    if bound is None:
        return None
    if _is_within(cursor, i, bound):
        if cursor.named(cursor.back(i), TIMES):  # "departing in 2 hours"
            return of_no_field(i, cursor.past_one(bound.last.end, when.DateUnit))
        bound = replace(bound, op="<=")
    return _joined(cursor, draft, bound) or _of_bound(cursor, draft, i, bound)


def _of_bound(cursor: Cursor, draft: Parsed, i: int, bound: Bound) -> Parsed | None:
    """Return the condition of a bound that begins at `i`: on an age, a length of time or a
    number."""
    spent = bound.of is not None or _is_spent(cursor, i, bound)
    if bound.led and not spent and (old := aged(cursor, bound)) is not None:
        return old
    if cursor.time_unit(bound.last.end):
        return lasting(cursor, bound)
    if _lasts(cursor, bound):
        return of_no_field(i, cursor.after(bound.last.end))
    found = bounded_field(cursor, draft, i, bound)
    unclear = bound.bare and unread(cursor, draft)
    return _condition(cursor, i, bound, *found) if found and not unclear else None


def _is_spent(cursor: Cursor, i: int, bound: Bound) -> bool:
    """Return whether a bound is of what is paid ("for under 20") or of a time that is no age ("for
    over two years", "with 5 years")."""
    timed = cursor.time_unit(bound.last.end)
    return cursor.is_(i - 1, when.Lasting) or (timed and cursor.is_(i - 1, sense.Having))


def _is_within(cursor: Cursor, i: int, bound: Bound) -> bool:
    """Return whether a bound is the length of time of "in 15 minutes", "in 2 hours"."""
    time = bound.last.kind == "duration" or cursor.time_unit(bound.last.end)
    exact = not bound.led and bound.op == "=" and time and not cursor.is_(i - 1, sense.Between)
    return exact and cursor.is_(i - 1, sense.Preposition) and cursor.is_(i - 1, when.DateRelation)


def _joined(cursor: Cursor, draft: Parsed, bound: Bound) -> Parsed | None:
    """The "over 2" of "over 2 and under 5 tonnes", "at least 2, at most 3 rooms": the field and the
    unit are said behind the second number only."""
    end, at = bound.last.end, cursor.past_one(cursor.joint(bound.last.end), sense.But)
    other = read_bound(cursor, at, bound.of) if at > end else None
    if other is None or not _opposed(cursor, bound, other, at):
        return None
    found = number(cursor, draft, at, bound.of)
    says = found is not None and (other.last.kind or found.end > other.last.end)
    (where,) = found.wheres if found and says and len(found.wheres) == 1 else (None,)
    if where is None or not isinstance(where.value, (int, float)):
        return None
    scaled = round(bound.last.value * where.value / other.last.value, 6)
    return constraint(end, where.field, bound.op, without_point(scaled))


def _opposed(cursor: Cursor, bound: Bound, other: Bound, at: int) -> bool:
    """Return whether two bounds are the ends of one range, or leave out what is between them.
    The first one has no unit of its own."""
    alone = bound.led and other.led and not bound.last.kind and bound.kind == other.kind
    if not alone or {bound.op[0], other.op[0]} != {"<", ">"} or not other.last.value:
        return False
    lower, upper = (bound, other) if bound.op[0] == ">" else (other, bound)
    apart = any(cursor.is_(i, sense.Or) for i in range(bound.last.end, at))
    return (lower.last.value > upper.last.value) == apart


def _lasts(cursor: Cursor, bound: Bound) -> bool:
    """Return whether a field of years is followed by a length of time: "built for two years"."""
    year = bound.of is not None and cursor.lexicon.is_kind(bound.of, "year")
    return year and cursor.is_(bound.last.end, when.DateUnit)


def unread(cursor: Cursor, draft: Parsed) -> bool:
    """Return whether a comparison before was not understood: it may have been of this number."""
    return any(cursor.is_(i, sense.Compare, sense.Between) for i in draft.not_understood)


def _condition(cursor: Cursor, i: int, bound: Bound, field: Field, end: int) -> Parsed:
    """Return the condition of a bound on a field, whose words end at `end`. A number with a unit
    that the field does not have is reported."""
    fits = [fitted(cursor, amount.in_kind(bound.kind), field) for amount in bound.amounts]
    values = [fit.value for fit in fits if fit is not None]
    if len(values) < len(fits):
        return of_no_field(i, end)
    records = end > bound.last.end and cursor.is_(bound.last.end, *RECORDS)
    note = f"{cursor.text(i, end)!r} was read as {field.name!r}; records are not counted"
    op, value, end = _compared(cursor, bound, values, end)
    notes = (note,) if records else _notes(cursor, i, bound, field, end)
    return replace(constraint(end, field.name, op, value), notes=notes)


def _notes(cursor: Cursor, i: int, bound: Bound, field: Field, end: int) -> tuple[str, ...]:
    """Return notes on a unit that is not known, and on other fields that fit as well."""
    if bound.last.scale and not units_of(cursor, field):
        typed = cursor.text(i, end)
        return (f"the unit of {field.name!r} is not known: {typed!r} was read without one",)
    named = bound.of is not None or any(cursor.names(at, field) for at in range(i, end))
    kind = bound.last.kind or bound.kind or "money"
    return () if named else cursor.doubts(i, end, kind, field)


def _compared(
    cursor: Cursor, bound: Bound, values: list[int | float], end: int
) -> tuple[str, Any, int]:
    """Return the operator and the value of a condition, and the position after its words."""
    if bound.op == ABOUT:
        near = [without_point(round(values[0] * share, 4)) for share in (1 - ROUGHLY, 1 + ROUGHLY)]
        return "between", near, end
    if len(values) > 1:
        return bound.op, sorted(values) if bound.op == "between" else values, end
    stars = bound.bare and bound.op == "=" and bound.last.kind == "rating"  # "4 stars": at least
    op, end = postfixed(cursor, end) or (">=" if stars else bound.op, end)  # "4 seats or more"
    return op, values[0], _past_adjective(cursor, end)


def _past_adjective(cursor: Cursor, i: int) -> int:
    """ "500 pages long": the position after an adjective that only repeats the kind."""
    word = cursor.take(i, sense.Adjective)
    return word[1] if word and word[0].kind and not cursor.is_(word[1], sense.ModelRef) else i


def between(cursor: Cursor, draft: Parsed, i: int, of: Field | None = None) -> Parsed | None:
    """ "between $50 and $100", "from March to May", "between 4 and 5 stars", "departing between 2
    and 4 pm". Bare numbers are no dates."""
    word = cursor.take(i, sense.Between)
    if word is None:
        return None
    days = between_dates(cursor, draft, word[1], of)
    if days is not None or of is None or of.kind not in TIMES:
        return days or number(cursor, draft, i, of)
    bound = read_bound(cursor, i, of)
    return time_of_day(cursor, draft, i, of) or (of_no_field(i, bound.last.end) if bound else None)


def verb_led(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "weighs more than 5", "earning over 90,000", "costs between 10 and 20"."""
    for verb in cursor.all(i, sense.NumberVerb):
        field = cursor.field_of_kind(verb.kind)
        at = cursor.past(cursor.after(i), sense.ValueLink, sense.Filler)
        if field is not None and _amount_of_verb(cursor, at, verb.kind):
            found = number(cursor, draft, at, field)
            doubts = cursor.doubts(i, found.end, verb.kind, field) if found else ()
            return replace(found, notes=(*found.notes, *doubts)) if found else None
    return None


def _amount_of_verb(cursor: Cursor, i: int, kind: str) -> bool:
    """Return whether the number behind a verb is what the verb speaks of: not the one of "makes 4
    servings"."""
    amount = cursor.amount(cursor.past_one(i, sense.Compare, sense.Between))
    if amount is None or (amount.kind and amount.in_kind(kind).kind != kind):
        return False
    other = (*COUNTED, sense.ModelRef, sense.FieldRef)
    counted = cursor.unknown(amount.end) or cursor.is_(amount.end, *other)
    rate = cursor.is_(amount.end, sense.Single, sense.Per) or rated(cursor, amount.end)
    return not counted or bool(rate)


def of_age(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "aged 30", "aged over 60", "aged between 20 and 30", "40 years old", "30 to 40 years old",
    "who are 35"."""
    word = cursor.take(i, sense.Adjective)
    if word is None or word[0].kind != "age":
        return _years_old(cursor, i)
    born = cursor.date_of_kind("birth")
    own = None if born else cursor.lexicon.of_kind("age")
    if own is not None:
        return number(cursor, draft, word[1], own)
    bound = read_bound(cursor, word[1]) if born else None
    return aged(cursor, replace(bound, kind="age")) if bound else None


def _years_old(cursor: Cursor, i: int) -> Parsed | None:
    """ "40 years old", "30 to 40 years old", "35"."""
    bound = read_bound(cursor, i)
    if bound is None or bound.led:
        return None
    years = cursor.take(bound.last.end, when.DateUnit)
    old = years is not None and cursor.is_(years[1], when.Old, sense.Adjective)
    if years is not None and years[0].unit == "year" and old:
        last = replace(bound.last, end=years[1])
        return aged(cursor, replace(bound, amounts=(*bound.amounts[:-1], last), kind="age"))
    alone = len(bound.amounts) == 1 and cursor.is_(i - 1, sense.ValueLink)
    return aged(cursor, bound) if alone and cursor.ended(bound.last.end) else None
