"""Which field a bound is for, and where the words that say so end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.question import dates, sense, when
from groundhook.handlers.db.question.bounds import Bound
from groundhook.handlers.db.question.cursor import NUMBERS, Amount, Cursor, without_point
from groundhook.handlers.db.question.lexicon import OF_SIDE, words_of
from groundhook.handlers.db.question.parsed import Parsed
from groundhook.handlers.db.question.time_fields import field_before

Found = tuple[Field, int]  # a field, and the position after the words for it
Rate = tuple[
    Callable[[Field], bool], int
]  # whether a field is such a rate, and the end of its words
RECORDS = (sense.RelationRef, sense.OtherModel)
# Kinds of numbers that no unit of another kind is for.
APART = ("money", "rating", "year", "age", "duration", "percent")
# Kinds of fields that a unit of measure is for.
LIKE = {
    "length": ("length", "height", "width", "depth", "distance"),
    "area": ("area", "size"),
    **{kind: (kind,) for kind in ("weight", "volume", "speed", "percent")},
}
LONGEST_LIFE = 120  # years
HOURS = 24  # of a day


def bounded_field(cursor: Cursor, draft: Parsed, i: int, bound: Bound) -> Found | None:
    """Return the field of a bound that begins at `i`: "€40 a day" is about a price for a day."""
    found = _find_field(cursor, draft, i, bound)
    rate = rated(cursor, found[1]) if found else None
    if found is None or rate is None:
        return found
    prices = [found[0], *cursor.lexicon.numbers_of_kind("money")]
    field = next((one for one in prices if _fits(cursor, rate, one)), None)
    return (field, rate[1]) if field else found


def _find_field(cursor: Cursor, draft: Parsed, i: int, bound: Bound) -> Found | None:
    """Return the field of a bound: the one that is named, or that the words beside it select, or a
    price."""
    if bound.of is not None:
        own = _of_unit(cursor, bound.last, bound.of)
        return own, _past_unit(cursor, own, bound.last.end)
    named = _named_behind(cursor, bound) or _number_of(cursor, bound)
    said = _in_stock(cursor, bound) or named or _measured(cursor, bound)
    if not (said or bound.led):
        return _of_year(cursor, bound) or _of_clear_unit(cursor, bound)
    return said or _of_comparison(cursor, draft, i, bound)


def _of_comparison(cursor: Cursor, draft: Parsed, i: int, bound: Bound) -> Found | None:
    """Return the field of a comparison that names none: by its unit, by what it compares, by the
    verb after it, by the condition before ("under 20 or over 1000"), or a price. None if the word
    after it makes it a count of something else."""
    end, kind = bound.last.end, bound.last.kind or bound.kind
    if kind:
        # "deeper than 2 metres" is about a depth
        like = bound.kind in LIKE.get(kind, ()) and cursor.field_of_kind(bound.kind)
        known = None if bound.kind in OF_SIDE else cursor.field_of_kind(kind)
        return _until(like or known, end)
    for verb in cursor.all(end, sense.NumberVerb):  # "die mehr als 50000 verdienen"
        if (field := cursor.field_of_kind(verb.kind)) is not None:
            return field, cursor.after(end)
    paid = cursor.field_of_kind("money") if cursor.is_(i - 1, when.Lasting) else None
    same = paid or _as_before(cursor, draft, i, bound)  # "for under 20"
    return _until(same or _unnamed(cursor, bound), end)


def _as_before(cursor: Cursor, draft: Parsed, i: int, bound: Bound) -> Field | None:
    """Return the field of the condition before "or" and "and"."""
    before = field_before(cursor, draft, i)
    if before is None or before.kind not in NUMBERS or _excludes(cursor, draft, i, bound):
        return None
    return before


def _excludes(cursor: Cursor, draft: Parsed, i: int, bound: Bound) -> bool:
    """ "under 5 hours but over 500": return whether no number could be within both the condition
    before and the bound."""
    last, value = draft.last, bound.last.value
    if last is None or not isinstance(last.value, (int, float)) or cursor.is_(i - 1, sense.Or):
        return False
    ops = last.op[0], bound.op[0]
    return (ops == ("<", ">") and value >= last.value) or (
        ops == (">", "<") and value <= last.value
    )


def _until(field: Field | None, end: int) -> Found | None:
    return (field, end) if field else None


def _in_stock(cursor: Cursor, bound: Bound) -> Found | None:
    """ "more than 5 in stock"; "5 in-stock lamps" are five lamps."""
    amount = bound.last
    stock = cursor.take(amount.end, sense.Condition) if amount.kind in ("", "quantity") else None
    if stock is None:
        return None
    counts = stock[0].op != ">" or cursor.is_(stock[1], sense.ModelRef, sense.ValueRef)
    return (
        None if counts and not bound.led else _until(cursor.field_of_kind(stock[0].kind), stock[1])
    )


def _named_behind(cursor: Cursor, bound: Bound) -> Found | None:
    """The "seats" of "more than 4 seats"; in "over 50 who earn …" nothing is named."""
    amount = bound.last
    # behind "who" and "but" another clause begins
    most = int(bound.led and not cursor.is_(amount.end, sense.But))
    for at in cursor.steps(amount.end, sense.Filler, most=most, unless=sense.Relative):
        field, end = cursor.number_named(at), cursor.after(at)
        if field and cursor.is_(at, when.DateUnit) and cursor.lexicon.is_kind(field, "year"):
            continue  # "two years" are no year
        measured = amount.scale or cursor.is_(amount.end, sense.ValueLink)  # "5 euros of damage"
        of_unit = field and measured and fitted(cursor, amount, field)
        if field and (amount.kind in ("", "duration") or of_unit):
            return field, end
    return None


def _number_of(cursor: Cursor, bound: Bound) -> Found | None:
    """The "Number of employees" of "more than 50 employees", where the employees are records of
    another model, which are not counted."""
    amount, end = bound.last, cursor.after(bound.last.end)
    if not bound.led or amount.kind or not cursor.is_(amount.end, *RECORDS):
        return None
    noun = cursor.lexicon.vocabulary.stem(cursor.tokens[end - 1].norm)
    own = (one for one in cursor.lexicon.schema.visible if one.kind == "integer")
    fields = [one for one in own if _is_number_of(cursor, one, noun)]
    return (fields[0], end) if len(fields) == 1 else None


def _is_number_of(cursor: Cursor, field: Field, noun: str) -> bool:
    """Return whether a field is called "Number of employees", "planned employees" or "employee
    count"."""
    words, count = cursor.lexicon.vocabulary, cursor.lexicon.vocabulary.kinds.get("quantity", ())
    names = [text.split() for text in words_of(field) if " " in text]
    called = any(words.stem(name[-2 if name[-1] in count else -1]) == noun for name in names)
    return called and not (cursor.is_key(field) or cursor.lexicon.is_kind(field, *APART))


def _measured(cursor: Cursor, bound: Bound) -> Found | None:
    """Return the field that has the unit of the bound, and the position after an adjective that
    selects it: "1000 km long"."""
    amount = bound.last.in_kind(bound.kind)
    if not amount.scale:
        return None
    adjective = cursor.take(amount.end, sense.Adjective)
    known = adjective if adjective and adjective[0].kind else None
    fields = cursor.lexicon.with_unit(amount.kind, known[0].kind if known else bound.kind)
    return (fields[0], known[1] if known else amount.end) if fields else None


def _of_year(cursor: Cursor, bound: Bound) -> Found | None:
    """The "2019" of "2019 Ford Focus"."""
    amount = bound.last
    year = cursor.tokens[amount.end - 1].norm.isdecimal() and dates.is_year(amount.value)
    if not year or amount.kind:
        return None
    described = cursor.is_(amount.end, sense.ModelRef, sense.ValueRef)
    return _until(cursor.lexicon.of_kind("year"), amount.end) if described else None


def _of_clear_unit(cursor: Cursor, bound: Bound) -> Found | None:
    """ "$100", "4 stars"."""
    amount = bound.last
    clear = amount.kind in ("money", "rating", "duration") or (
        bound.op == "between" and amount.kind
    )
    return _until(cursor.field_of_kind(amount.kind), amount.end) if clear else None


def _unnamed(cursor: Cursor, bound: Bound) -> Field | None:
    """Return the field of a mere number: a price, or the only number there is. Of persons it may be
    an age."""
    amount, price = bound.last, cursor.field_of_kind("money")
    end = amount.end
    counts = cursor.unknown(end) or cursor.counts(end) or cursor.is_(end, sense.ModelRef)
    if counts or _may_be_hours(cursor, bound):
        return None
    if not cursor.lexicon.of_persons:
        return price or cursor.only_number()
    return price if amount.value > LONGEST_LIFE or rated(cursor, end) else None


def _may_be_hours(cursor: Cursor, bound: Bound) -> bool:
    """ "between 9 and 11", of records that have a time of the day."""
    timed = any(one.kind == "moment" for one in cursor.lexicon.schema.visible)
    hours = all(one.value % 1 == 0 and 0 <= one.value <= HOURS for one in bound.amounts)
    return timed and hours and bound.op == "between"


def _of_unit(cursor: Cursor, amount: Amount, named: Field) -> Field:
    """ "tickets under 30 euros", of tickets that are counted: the unit selects another field than
    the name before the number."""
    kinds, measured = _kinds_of(cursor, named), bool(units_of(cursor, named))
    if named.kind != "integer" or measured or "money" in kinds:
        return named
    price = cursor.field_of_kind("money") if amount.kind == "money" else None
    fields = [] if not kinds.isdisjoint(APART) else cursor.lexicon.with_unit(amount.kind)
    return price or next(iter(fields), named)


def units_of(cursor: Cursor, field: Field) -> dict[str, float]:
    """Return the units of measure of a field, by kind."""
    return {unit.kind: unit.scale for unit in cursor.lexicon.units_of(field) if unit.scale}


def fitted(cursor: Cursor, amount: Amount, field: Field) -> Amount | None:
    """Return the amount in the unit of a field: 1.5 kg are 1500 for a field in grams. None if the
    field has no such unit."""
    if any(unit.kind == "duration" for unit in amount.units):
        return _in_time_of(cursor, amount, field)
    scales = units_of(cursor, field)
    for unit in amount.units:
        if unit.scale and unit.kind in scales:
            value = without_point(round(amount.value * unit.scale / scales[unit.kind], 6))
            return replace(amount, value=value, kind=unit.kind)
    return amount if _has_unit(cursor, amount, field, measured=bool(scales)) else None


def _has_unit(cursor: Cursor, amount: Amount, field: Field, *, measured: bool) -> bool:
    """Return whether a field may have an amount whose unit was not converted. `measured`: the field
    has units of measure."""
    kinds = {amount.kind, *(unit.kind for unit in amount.units if not unit.scale)}
    if amount.scale and kinds == {amount.kind}:
        return not measured and _is_measured(cursor, amount, field)
    return not _is_apart(cursor, field) or not kinds.isdisjoint(_kinds_of(cursor, field))


def _in_time_of(cursor: Cursor, amount: Amount, field: Field) -> Amount | None:
    """Return a number of minutes in the unit of time of a field; None if that is longer than an
    hour."""
    names = cursor.lexicon.vocabulary.file
    words = words_of(field)
    longer = next((unit for unit, each in names.dates.units.items() if words & set(each)), None)
    if longer is None or words & set(names.units["duration"]):
        return amount if _kinds_of(cursor, field) & {"duration", "extent"} == {"duration"} else None
    hours = without_point(round(amount.value / 60, 6))
    return replace(amount, value=hours) if longer == "hour" else None


def _is_measured(cursor: Cursor, amount: Amount, field: Field) -> bool:
    """Return whether a field without a unit is named after what a unit measures, and after nothing
    else."""
    words, kinds = words_of(field), cursor.lexicon.vocabulary.kinds
    like = {word for kind in LIKE[amount.kind] for word in kinds.get(kind, ())}
    other = {word for kind in APART for word in kinds.get(kind, ())} - like
    return bool(words & like) and words.isdisjoint(other)


def _is_apart(cursor: Cursor, field: Field) -> bool:
    """Return whether a field is of a kind that no unit of another kind is for."""
    return bool(units_of(cursor, field)) or not _kinds_of(cursor, field).isdisjoint(APART)


def _kinds_of(cursor: Cursor, field: Field) -> set[str]:
    """Return the kinds of a number field; "" is that of a number without a unit."""
    kinds = cursor.lexicon.vocabulary.kinds
    return {"", *(kind for kind in kinds if cursor.lexicon.is_kind(field, kind))}


def rated(cursor: Cursor, i: int) -> Rate | None:
    """ "a day", "per month": return whether a field is an amount for that time, and the position
    after it."""
    word = cursor.is_(i, sense.Per, sense.Single)
    unit = cursor.take(cursor.after(i), when.DateUnit) if word else None
    if unit is None:
        return None
    names = cursor.lexicon.vocabulary.file.dates
    words = {*names.units[unit[0].unit], *names.rates.get(unit[0].unit, ())}
    return (lambda field: cursor.lexicon.mentions(field, words)), unit[1]


def _fits(cursor: Cursor, rated: Rate, field: Field) -> bool:
    """Return whether a field is an amount for that time; salaries are those of a year."""
    yearly = any(unit.unit == "year" for unit in cursor.all(rated[1] - 1, when.DateUnit))
    return rated[0](field) or (yearly and cursor.lexicon.is_kind(field, "earnings"))


def _past_unit(cursor: Cursor, field: Field, i: int) -> int:
    """Return the position after the unit of a number with a known field."""
    end = cursor.after(i) if cursor.names(i, field) or cursor.is_(i, sense.Unit) else i
    rate = rated(cursor, end)
    return rate[1] if rate and _fits(cursor, rate, field) else end
