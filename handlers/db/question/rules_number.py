"""Rules for numbers: comparisons, ranges, units, ages, verbs such as "costs"."""

from __future__ import annotations

from dataclasses import replace

from groundhook.handlers.db.question import dates, sense, when
from groundhook.handlers.db.question.cursor import COUNTED, NUMBERS, Amount, Cursor
from groundhook.handlers.db.question.draft import Draft, Parsed, constraint
from groundhook.handlers.db.question.number_fields import (
    measured,
    number_field,
    of_unit,
    past_unit,
    rated,
)
from groundhook.handlers.db.question.rules_age import aged
from groundhook.handlers.db.question.rules_list import equal_to, postfixed, unread
from groundhook.handlers.db.question.rules_time import between_dates, lasting
from groundhook.handlers.db.question.time_fields import field_before
from groundhook.handlers.db.schema import Field

ABOUT, ROUGHLY = "~", 0.1  # how far from a number "about" reaches


def compare(cursor: Cursor, draft: Draft, i: int, of: Field | None = None) -> Parsed | None:
    """ "under $100", "at least 4 stars", "more than 50 in stock", "minimum rating 4". `of` is the
    field that was named before."""
    found = _comparison(cursor, i)
    if found is None:
        return None
    word, at = found
    if of is None:
        of, at = _named_within(cursor, at)
    amount = cursor.amount(at) or _single_unit(cursor, at)
    if amount is None:
        return None
    if cursor.time_unit(amount.end):
        return lasting(cursor, amount, word.op) if word.op != ABOUT else None
    if of is None and (old := aged(cursor, amount, word)) is not None:
        return old
    field = _field_of(cursor, draft, i, amount, word.kind, of)
    return _compared(cursor, field, amount, word.op) if field else None


def _comparison(cursor: Cursor, i: int) -> tuple[sense.Compare, int] | None:
    """ "under", "under the age of"."""
    word = cursor.take(i, sense.Compare)
    age = cursor.take(word[1], sense.Adjective) if word else None
    if word and age and age[0].kind == "age" and not word[0].kind:
        return sense.Compare(word[0].op, "age"), age[1]
    return word


def _named_within(cursor: Cursor, i: int) -> tuple[Field | None, int]:
    """The "rating" of "minimum rating of 4", and the position of the number."""
    named = cursor.take(i, sense.FieldRef)
    if named is None or named[0].field.kind not in NUMBERS:
        return None, i
    return named[0].field, cursor.past(named[1], sense.ValueLink)


def _single_unit(cursor: Cursor, i: int) -> Amount | None:
    """The "an hour" of "longer than an hour"."""
    single = cursor.take(i, sense.Single)
    return Amount(1, "", single[1]) if single and cursor.time_unit(single[1]) else None


def _field_of(
    cursor: Cursor, draft: Draft, i: int, amount: Amount, kind: str, of: Field | None
) -> tuple[Field, int] | None:
    """Return the field of a number that is compared, and the position after the words for it."""
    own = of_unit(cursor, amount, of)
    if own is not None:
        return own, past_unit(cursor, own, amount.end)
    before = field_before(cursor, draft, i)
    return measured(cursor, amount, kind) or number_field(cursor, amount, kind, before)


def _compared(cursor: Cursor, found: tuple[Field, int], amount: Amount, op: str) -> Parsed | None:
    """Return the condition on a field with the position after it."""
    field, end = found
    amount = replace(amount, value=cursor.in_unit_of(field, amount))
    if op == ABOUT:
        return _range(field, *_about(amount), end)
    if op == ">=" and (upper := up_to(cursor, end)):
        return _range(field, amount, upper, past_unit(cursor, field, upper.end))
    if op == "=" and end == amount.end:
        return equal_to(cursor, field, amount)
    op, end = postfixed(cursor, end) or (op, end)  # "rated 2 stars or lower"
    end = _past_adjective(cursor, end)
    return constraint(end, field.name, op, amount.value)


def up_to(cursor: Cursor, i: int) -> Amount | None:
    """The "to 4.5" of "rated 4 to 4.5"; an "and" begins another condition."""
    return None if cursor.is_(i, sense.And) else cursor.upper(i)


def amount_led(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """ "$50-$100", "100 or less", "4+ stars", "$100" alone (exactly that), "4 stars" (at least)."""
    amount = cursor.amount(i)
    if amount is None or cursor.is_(i - 1, sense.Than):
        return None
    if cursor.time_unit(amount.end):
        return _of_time(cursor, amount)
    upper = cursor.upper(amount.end)
    named = cursor.number_named(upper.end) if upper else None
    if upper is not None and (amount.kind or upper.kind or named):
        return _ranged(cursor, amount, upper, named)
    return (
        _named_behind(cursor, amount)
        or _of_year(cursor, amount)
        or _with_postfix(cursor, draft, i, amount)
        or _with_unit(cursor, draft, amount)
    )


def _of_time(cursor: Cursor, amount: Amount) -> Parsed | None:
    """ "10 years experience", "2 hours"."""
    after = cursor.past_one(cursor.after(amount.end), sense.ValueLink)
    if (named := cursor.number_named(after)) is not None:
        return constraint(cursor.after(after), named.name, "=", amount.value)
    hours = any(unit.unit == "hour" for unit in cursor.all(amount.end, when.DateUnit))
    return lasting(cursor, amount, "=") if hours else None


def _ranged(cursor: Cursor, lower: Amount, upper: Amount, named: Field | None) -> Parsed | None:
    """ "$50-$100", "4 to 6 seats"."""
    kind = lower.kind or upper.kind
    field = cursor.field_of_kind(kind) if kind else named
    return _range(field, *cursor.range_of(lower, upper), upper.end) if field else None


def _named_behind(cursor: Cursor, amount: Amount) -> Parsed | None:
    """ "4 seats", "4 seats or more"."""
    field = cursor.number_named(amount.end) if amount.kind in ("", "duration") else None
    if field is None:
        return None
    after = cursor.after(amount.end)
    op, end = postfixed(cursor, after) or ("=", after)
    return constraint(_past_adjective(cursor, end), field.name, op, amount.value)


def _of_year(cursor: Cursor, amount: Amount) -> Parsed | None:
    """The "2019" of "2019 Ford Focus"."""
    year = cursor.tokens[amount.end - 1].norm.isdecimal() and dates.is_year(amount.value)
    if not year or amount.kind or not cursor.is_(amount.end, sense.ModelRef, sense.ValueRef):
        return None
    field = cursor.lexicon.of_kind("year")
    return constraint(amount.end, field.name, "=", amount.value) if field else None


def _with_postfix(cursor: Cursor, draft: Draft, i: int, amount: Amount) -> Parsed | None:
    """ "100 or less", "4+ stars", "18 or older"."""
    found = postfixed(cursor, amount.end)
    if found is None:
        return None
    op, end = found
    unit = cursor.take(end, sense.Unit)
    kind = amount.kind or (unit[0].kind if unit else "")
    here = replace(amount, kind=kind, end=unit[1] if unit else end)
    if (old := aged(cursor, here, sense.Compare(op))) is not None:
        return old
    before = field_before(cursor, draft, i)
    field = measured(cursor, here, "") or number_field(cursor, here, "", before)
    if field is None:
        return None
    return constraint(field[1], field[0].name, op, cursor.in_unit_of(field[0], amount))


def _with_unit(cursor: Cursor, draft: Draft, amount: Amount) -> Parsed | None:
    """ "$100": exactly that; "4 stars": at least."""
    if unread(cursor, draft, sense.Compare, sense.Between):
        return None  # a comparison that was not understood may have been of this number
    if (found := measured(cursor, amount, "")) is not None:
        return constraint(found[1], found[0].name, "=", cursor.in_unit_of(found[0], amount))
    clear = amount.kind in ("money", "rating", "duration")
    field = cursor.field_of_kind(amount.kind) if clear else None
    if field is not None and amount.kind == "rating":
        return constraint(amount.end, field.name, ">=", amount.value)
    return equal_to(cursor, field, amount) if field else None


def of_age(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """ "aged 30", "aged over 60", "aged between 20 and 30", "40 years old", "30 to 40 years old",
    "who are 35"."""
    word = cursor.take(i, sense.Adjective)
    if word is not None and word[0].kind == "age":
        return _aged(cursor, draft, word[1])
    return _years_old(cursor, i) if cursor.born() else None


def _aged(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """What follows "aged", of a date of birth or of a field with ages."""
    own = None if cursor.born() else cursor.lexicon.of_kind("age")
    if own is None and cursor.born() is None:
        return None
    found = (
        compare(cursor, draft, i, own)
        or between(cursor, draft, i, own)
        or between_numbers(cursor, i, own)
    )
    amount = cursor.amount(i)
    if found is not None or amount is None:
        return found
    op, end = postfixed(cursor, amount.end) or ("=", amount.end)
    if own is not None:
        return constraint(end, own.name, op, amount.value)
    return aged(cursor, replace(amount, end=end), sense.Compare(op, "age"))


def _years_old(cursor: Cursor, i: int) -> Parsed | None:
    """ "40 years old", "30 to 40 years old", "35"."""
    amount = cursor.amount(i)
    if amount is None:
        return None
    upper = cursor.upper(amount.end)
    years = cursor.take((upper or amount).end, when.DateUnit)
    old = years is not None and cursor.is_(years[1], when.Old, sense.Adjective)
    if years is not None and years[0].unit == "year" and old:
        if upper is not None:
            return between_numbers(cursor, i, None)
        return aged(cursor, replace(amount, end=years[1]), sense.Compare("=", "age"))
    alone = upper is None and cursor.is_(i - 1, sense.ValueLink) and cursor.ended(amount.end)
    return aged(cursor, amount, sense.Compare("=")) if alone else None


def verb_led(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """ "weighs more than 5", "earning over 90,000", "costs between 10 and 20", "earns the most"."""
    for verb in cursor.all(i, sense.NumberVerb):
        field = cursor.field_of_kind(verb.kind)
        at = cursor.past(cursor.after(i), sense.ValueLink, sense.Filler)
        most = cursor.take(at, sense.Superlative)
        if field is not None and most:
            order = draft.sort(field.name, most[0].order)
            one = 1 if draft.person or draft.singular else None
            return Parsed(most[1], orders=(order,) if order else (), limit=one)
        if field is not None and _amount_of_verb(cursor, at, verb.kind):
            return _of_verb(cursor, draft, at, field)
    return None


def _amount_of_verb(cursor: Cursor, i: int, kind: str) -> bool:
    """Return whether the number behind a verb is what the verb speaks of: not the one of "makes 4
    servings"."""
    amount = cursor.amount(cursor.past_one(i, sense.Compare, sense.Between))
    if amount is None or amount.kind not in ("", kind):
        return False
    other = (*COUNTED, sense.ModelRef, sense.FieldRef)
    counted = cursor.unknown(amount.end) or cursor.is_(amount.end, *other)
    rate = cursor.is_(amount.end, sense.Single, sense.Per) or rated(cursor, amount.end)
    return not counted or bool(rate)


def _of_verb(cursor: Cursor, draft: Draft, i: int, field: Field) -> Parsed | None:
    """The number or the comparison behind a verb."""
    amount = cursor.amount(i)
    if found := compare(cursor, draft, i, field):
        return found
    if amount is None:
        return between(cursor, draft, i, field)
    more = postfixed(cursor, amount.end)
    if more is not None:
        return constraint(more[1], field.name, more[0], amount.value)
    return equal_to(cursor, field, amount)


def _past_adjective(cursor: Cursor, i: int) -> int:
    """ "500 pages long": the position after an adjective that only repeats the kind."""
    word = cursor.take(i, sense.Adjective)
    return word[1] if word and word[0].kind and not cursor.is_(word[1], sense.ModelRef) else i


def between(cursor: Cursor, draft: Draft, i: int, of: Field | None = None) -> Parsed | None:
    """ "between $50 and $100", "from March to May", "between 4 and 5 stars"."""
    word = cursor.take(i, sense.Between)
    if word is None:
        return None
    return between_dates(cursor, draft, word[1], of) or between_numbers(cursor, word[1], of)


def between_numbers(cursor: Cursor, i: int, of: Field | None) -> Parsed | None:
    """ "4 and 5 stars", "20 to 30" of ages."""
    lower = cursor.amount(i)
    upper = cursor.upper(lower.end) if lower else None
    if lower is None or upper is None:
        return None
    lower, upper = cursor.range_of(lower, upper)
    if of is not None:
        return range_on(cursor, of, lower, upper)
    if ages := _between_ages(cursor, lower, upper):
        return ages
    kind = upper.kind or lower.kind
    found = measured(cursor, upper, "") or number_field(cursor, replace(upper, kind=kind), "")
    if found is None:
        return None
    return _range(found[0], *_in_unit_of(cursor, found[0], lower, upper), found[1])


def _between_ages(cursor: Cursor, lower: Amount, upper: Amount) -> Parsed | None:
    """ "20 and 30 years": a condition on the date of birth."""
    years = cursor.take(upper.end, when.DateUnit)
    if rated(cursor, upper.end) or (years and years[0].unit != "year"):
        return None
    end = years[1] if years else upper.end
    most = aged(cursor, replace(upper, end=end), sense.Compare("<="))
    least = aged(cursor, replace(lower, end=end), sense.Compare(">="))
    return Parsed(most.end, (*most.wheres, *least.wheres)) if most and least else None


def range_on(cursor: Cursor, field: Field, lower: Amount, upper: Amount) -> Parsed | None:
    """Return the range of a field that was named before it."""
    if field.kind not in NUMBERS:
        return None
    ends = _in_unit_of(cursor, field, *cursor.range_of(lower, upper))
    return _range(field, *ends, past_unit(cursor, field, upper.end))


def _in_unit_of(
    cursor: Cursor, field: Field, lower: Amount, upper: Amount
) -> tuple[Amount, Amount]:
    """Return both ends in the unit of a field; in "1 to 4 kg" the unit belongs to both."""
    if upper.scale and not lower.scale:
        lower = replace(lower, kind=upper.kind, scale=upper.scale)
    in_unit = cursor.in_unit_of
    return (
        replace(lower, value=in_unit(field, lower)),
        replace(upper, value=in_unit(field, upper)),
    )


def _about(amount: Amount) -> tuple[Amount, Amount]:
    """ "around $1000": a tenth less and a tenth more."""
    ends = [round(amount.value * share, 4) for share in (1 - ROUGHLY, 1 + ROUGHLY)]
    lower, upper = (int(end) if end == int(end) else end for end in ends)
    return replace(amount, value=lower), replace(amount, value=upper)


def _range(field: Field, one: Amount, other: Amount, end: int) -> Parsed:
    return constraint(end, field.name, "between", sorted((one.value, other.value)))
