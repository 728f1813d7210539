"""Rules for numbers and times: comparisons, ranges, dates, ages."""

from __future__ import annotations

from dataclasses import replace

from groundhook.handlers.db.question import dates, sense, when
from groundhook.handlers.db.question.cursor import COUNTED, NUMBERS, Amount, Cursor
from groundhook.handlers.db.question.draft import OPPOSITE, Draft, Parsed, constraint
from groundhook.handlers.db.question.number_fields import (
    measured,
    number_field,
    of_unit,
    past_unit,
    rated,
)
from groundhook.handlers.db.question.rules_age import aged
from groundhook.handlers.db.question.rules_list import equal_to, postfixed
from groundhook.handlers.db.question.rules_time import between_dates, lasting
from groundhook.handlers.db.question.time_fields import field_before
from groundhook.handlers.db.schema import Field

ABOUT, ROUGHLY = "~", 0.1  # how far from a number "about" reaches


def compare(
    cursor: Cursor, draft: Draft, i: int, negated: bool = False, of: Field | None = None
) -> Parsed | None:
    """ "under $100", "at least 4 stars", "more than 50 in stock", "minimum rating 4". `of` is the
    field that was named before."""
    word = cursor.take(i, sense.Compare)
    if word is None:
        return None
    at = word[1]
    if (age := cursor.take(at, sense.Adjective)) and age[0].kind == "age" and not word[0].kind:
        word, at = (sense.Compare(word[0].op, "age"), at), age[1]  # "under the age of 40"
    between = cursor.take(at, sense.FieldRef) if of is None else None
    if between is not None and between[0].field.kind in NUMBERS:
        of, at = between[0].field, cursor.past(between[1], sense.Link)
    amount = cursor.amount(at)
    single = cursor.take(at, sense.Single)
    if amount is None and single and cursor.time_unit(single[1]):
        amount = Amount(1, "", single[1])  # "longer than an hour"
    if amount is not None and cursor.time_unit(amount.end):
        return (
            lasting(cursor, amount, OPPOSITE[word[0].op] if negated else word[0].op)
            if word[0].op in OPPOSITE
            else None
        )
    if amount is None:
        return None
    if of is None and (old := aged(cursor, amount, word[0], negated)) is not None:
        return old
    of = of_unit(cursor, amount, of)
    found = (of, past_unit(cursor, of, amount.end)) if of else None
    found = found or measured(cursor, amount, word[0].kind)
    found = found or number_field(cursor, amount, word[0].kind, field_before(cursor, draft, i))
    if found is None:
        return None
    amount = replace(amount, value=cursor.in_unit_of(found[0], amount))
    if word[0].op == ABOUT:
        return _range(found[0], *_about(amount), found[1]) if not negated else None
    until = (
        cursor.take(found[1], sense.BetweenAnd)
        if word[0].op == ">=" and not cursor.is_(found[1], sense.And)
        else None
    )
    if upper := cursor.amount(until[1]) if until and not negated else None:
        return _range(
            found[0], amount, upper, past_unit(cursor, found[0], upper.end)
        )  # "rated 4 to 4.5"
    if word[0].op == "=" and not negated and found[1] == amount.end:
        return equal_to(cursor, found[0], amount)
    more = postfixed(cursor, found[1])  # "rated 2 stars or lower"
    op = more[0] if more else word[0].op
    end = _past_adjective(cursor, more[1] if more else found[1])
    return constraint(end, found[0].name, OPPOSITE[op] if negated else op, amount.value)


def amount_led(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """ "$50-$100", "100 or less", "4+ stars", "$100" alone (exactly that), "4 stars" (at least)."""
    amount = cursor.amount(i)
    if amount is None or cursor.is_(i - 1, sense.Than):
        return None
    if cursor.time_unit(amount.end):
        after = cursor.past_one(cursor.after(amount.end), sense.Link)
        if (named := cursor.number_named(after)) is not None:  # "10 years experience"
            return constraint(cursor.after(after), named.name, "=", amount.value)
        hours = any(unit.unit == "hour" for unit in cursor.all(amount.end, when.DateUnit))
        return lasting(cursor, amount, "=") if hours else None
    until = cursor.take(amount.end, sense.BetweenAnd)
    upper = cursor.amount(until[1]) if until else None
    named = cursor.number_named(upper.end) if upper else None
    if upper is not None and (amount.kind or upper.kind or named):
        field = (
            cursor.field_of_kind(amount.kind or upper.kind) if amount.kind or upper.kind else named
        )
        return _range(field, *cursor.range_of(amount, upper), upper.end) if field else None
    if (named := cursor.number_named(amount.end)) and (
        not amount.kind or amount.kind == "duration"
    ):
        after = cursor.after(amount.end)
        more = postfixed(cursor, after)
        op, end = more or ("=", after)
        return constraint(_past_adjective(cursor, end), named.name, op, amount.value)
    if (year := _of_year(cursor, amount)) is not None:
        return constraint(amount.end, year.name, "=", amount.value)
    if postfix := postfixed(cursor, amount.end):
        return _with_postfix(cursor, amount, postfix, field_before(cursor, draft, i))
    exact = measured(cursor, amount, "") or (cursor.field_of_kind(amount.kind), amount.end)
    field = exact[0] if amount.kind in ("money", "rating", "duration") or amount.scale else None
    if field is None or any(cursor.is_(at, sense.Compare, sense.Between) for at in draft.unplaced):
        return None  # a comparison that was not understood may have been of this number
    if amount.kind == "rating":
        return constraint(amount.end, field.name, ">=", amount.value)
    if amount.scale:
        return constraint(exact[1], field.name, "=", cursor.in_unit_of(field, amount))
    return equal_to(cursor, field, amount)


def _of_year(cursor: Cursor, amount: Amount) -> Field | None:
    """ "2019 Ford Focus": return the field of a year before what it describes."""
    alone = cursor.tokens[amount.end - 1].norm.isdecimal() and not amount.kind
    year = alone and dates.FIRST_YEAR <= amount.value <= dates.LAST_YEAR
    describes = cursor.is_(amount.end, sense.ModelRef, sense.ValueRef)
    return cursor.lexicon.of_kind("year") if year and describes else None


def of_age(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """ "aged 30", "aged over 60", "aged between 20 and 30", "40 years old", "30 to 40 years old",
    "who are 35"."""
    lexicon, word, amount = cursor.lexicon, cursor.take(i, sense.Adjective), cursor.amount(i)
    if (born := cursor.born()) is None and lexicon.of_kind("age") is None:
        return None
    if word is not None and word[0].kind == "age":
        own = None if born else lexicon.of_kind("age")
        at = word[1]
        found = compare(cursor, draft, at, False, own) or between(cursor, draft, at, own)
        amount = cursor.amount(at)
        until = cursor.take(amount.end, sense.BetweenAnd) if amount else None
        if found is None and until and cursor.amount(until[1]):  # "im Alter von 30 bis 40"
            return _between_numbers(cursor, draft, at, own)
        if found is not None or amount is None:
            return found
        op, end = postfixed(cursor, amount.end) or ("=", amount.end)
        if own is not None:
            return constraint(end, own.name, op, amount.value)
        return aged(cursor, replace(amount, end=end), sense.Compare(op, "age"), False)
    if amount is None or born is None:
        return None
    until = cursor.take(amount.end, sense.BetweenAnd)
    upper = cursor.amount(until[1]) if until else None
    years = cursor.take((upper or amount).end, when.DateUnit)
    if (
        years is None
        or years[0].unit != "year"
        or not cursor.is_(years[1], when.Old, sense.Adjective)
    ):
        alone = upper is None and cursor.is_(i - 1, sense.Link) and cursor.ended(amount.end)
        return aged(cursor, amount, sense.Compare("=", ""), False) if alone else None
    if upper is not None:
        return _between_numbers(cursor, draft, i, None)
    return aged(cursor, replace(amount, end=years[1]), sense.Compare("=", "age"), False)


def verb_led(cursor: Cursor, draft: Draft, i: int, negated: bool = False) -> Parsed | None:
    """ "weighs more than 5", "earning over 90,000", "costs between 10 and 20"."""
    for verb in cursor.all(i, sense.NumberVerb):
        field, at = (
            cursor.field_of_kind(verb.kind),
            cursor.past(cursor.after(i), sense.Link, sense.Filler),
        )
        if field is not None and (most := cursor.take(at, sense.Superlative)) and not negated:
            order = draft.sort(field.name, most[0].order)  # "who earns the most"
            one = 1 if draft.person or draft.singular else None
            return Parsed(most[1], orders=(order,) if order else (), limit=one)
        compared = cursor.is_(at, sense.Compare, sense.Between)
        amount = cursor.amount(cursor.after(at) if compared else at)
        if field is None or amount is None or amount.kind not in ("", verb.kind):
            continue
        after = amount.end
        other = cursor.unknown(after) or cursor.is_(after, *COUNTED, sense.ModelRef, sense.FieldRef)
        if other and not (cursor.is_(after, sense.Single, sense.Per) or rated(cursor, after)):
            continue  # "makes 4 servings"
        if compared:
            return compare(cursor, draft, at, negated, field) or (
                between(cursor, draft, at, field) if not negated else None
            )
        more = postfixed(cursor, after)
        if negated:
            return None
        return (
            constraint(more[1], field.name, more[0], amount.value)
            if more
            else equal_to(cursor, field, amount)
        )
    return None


def _past_adjective(cursor: Cursor, i: int) -> int:
    """ "500 pages long": the position after an adjective that only repeats the kind."""
    word = cursor.take(i, sense.Adjective)
    return word[1] if word and word[0].kind and not cursor.is_(word[1], sense.ModelRef) else i


def _with_postfix(
    cursor: Cursor, amount: Amount, postfix: tuple[str, int], before: Field | None
) -> Parsed | None:
    """ "100 or less", "4+ stars", "18 or older"."""
    op, end = postfix
    unit = cursor.take(end, sense.Unit)
    kind = amount.kind or (unit[0].kind if unit else "")
    here = replace(amount, kind=kind, end=unit[1] if unit else end)
    if (old := aged(cursor, here, sense.Compare(op), False)) is not None:
        return old
    found = measured(cursor, here, "") or number_field(cursor, here, "", before)
    if found is None:
        return None
    return constraint(found[1], found[0].name, op, cursor.in_unit_of(found[0], amount))


def between(cursor: Cursor, draft: Draft, i: int, of: Field | None = None) -> Parsed | None:
    """ "between $50 and $100", "from March to May", "between 4 and 5 stars"."""
    word = cursor.take(i, sense.Between)
    if word is None:
        return None
    return between_dates(cursor, draft, word[1], of) or _between_numbers(cursor, draft, word[1], of)


def _about(amount: Amount) -> tuple[Amount, Amount]:
    """ "around $1000": a tenth less and a tenth more."""
    ends = [round(amount.value * share, 4) for share in (1 - ROUGHLY, 1 + ROUGHLY)]
    lower, upper = (int(end) if end == int(end) else end for end in ends)
    return replace(amount, value=lower), replace(amount, value=upper)


def _between_numbers(cursor: Cursor, draft: Draft, i: int, of: Field | None) -> Parsed | None:
    lower = cursor.amount(i)
    until = cursor.take(lower.end, sense.BetweenAnd) if lower else None
    upper = cursor.amount(until[1]) if until else None
    if lower is None or upper is None:
        return None
    lower, upper = cursor.range_of(lower, upper)
    found = (
        (of, upper.end)
        if of
        else measured(cursor, upper, "")
        or number_field(cursor, Amount(upper.value, upper.kind or lower.kind, upper.end), "")
    )
    if found is not None and upper.scale:
        lower = replace(lower, kind=upper.kind, scale=lower.scale or upper.scale)
        lower, upper = (
            replace(one, value=cursor.in_unit_of(found[0], one)) for one in (lower, upper)
        )
    years = cursor.take(upper.end, when.DateUnit)
    if of is None and not rated(cursor, upper.end) and (years is None or years[0].unit == "year"):
        here = replace(upper, end=years[1] if years else upper.end)
        most = aged(cursor, here, sense.Compare("<="), False)
        least = aged(cursor, replace(lower, end=here.end), sense.Compare(">="), False)
        if most is not None and least is not None:
            return Parsed(most.end, (*most.wheres, *least.wheres))
    return (
        _range(found[0], lower, upper, found[1])
        if found and found[0] and found[0].kind in NUMBERS
        else None
    )


def range_on(cursor: Cursor, field: Field, lower: Amount, upper: Amount) -> Parsed:
    """Return the range of a field that was named before it."""
    lower, upper = cursor.range_of(lower, upper)
    lower, upper = (replace(one, value=cursor.in_unit_of(field, one)) for one in (lower, upper))
    return _range(field, lower, upper, past_unit(cursor, field, upper.end))


def _range(field: Field, one: Amount, other: Amount, end: int) -> Parsed:
    return constraint(end, field.name, "between", sorted((one.value, other.value)))
