"""Which field a number is about, and where the words that say so end."""

from __future__ import annotations

from collections.abc import Callable

from groundhook.handlers.db.question import sense, when
from groundhook.handlers.db.question.cursor import NUMBERS, Amount, Cursor
from groundhook.handlers.db.schema import Field

Rate = tuple[
    Callable[[Field], bool], int
]  # whether a field is such a rate, and the end of its words
SAYS_MORE: tuple[type[sense.Sense], ...] = (
    sense.Compare,
    sense.ValueLink,
    sense.Between,
    sense.Superlative,
)  # of the field before it


def number_field(
    cursor: Cursor, amount: Amount, kind: str, before: Field | None = None
) -> tuple[Field, int] | None:
    """Return the field that a number is about, and the position after the words that name it: "€40
    a day" is about a price for a day."""
    found = _number_field(cursor, amount, kind, before)
    if found is None:
        return None
    rate = rated(cursor, found[1])
    prices = [found[0], *cursor.lexicon.numbers_of_kind("money")]
    field = next((one for one in prices if rate and _fits(cursor, rate, one)), None)
    return (field, rate[1]) if rate and field is not None else found


def _number_field(
    cursor: Cursor, amount: Amount, kind: str, before: Field | None = None
) -> tuple[Field, int] | None:
    """Return the field that a number is about. In this order: the field named after it, of its
    unit, of the comparison, of the verb after it, of the condition `before` ("under 20 or over
    1000"), a price. None if the word after it makes it a count of something else."""
    end = amount.end
    stock = cursor.take(end, sense.Condition) if amount.kind in ("", "quantity") else None
    if stock is not None:
        return _until(cursor.field_of_kind(stock[0].kind), stock[1])
    named = _named_behind(cursor, end) if amount.kind in ("", "duration") else None
    if named is not None:
        return named
    if amount.kind or kind:
        return _until(cursor.field_of_kind(amount.kind or kind), end)
    for verb in cursor.all(end, sense.NumberVerb):  # "die mehr als 50000 verdienen"
        if (field := cursor.field_of_kind(verb.kind)) is not None:
            return field, cursor.after(end)
    return _until(before if before and before.kind in NUMBERS else _unnamed(cursor, end), end)


def _until(field: Field | None, end: int) -> tuple[Field, int] | None:
    return (field, end) if field else None


def _named_behind(cursor: Cursor, i: int) -> tuple[Field, int] | None:
    """The "seats" of "more than 4 seats", which no number of its own follows."""
    for at in (i, cursor.past_one(i, sense.Filler)):
        field, end = cursor.number_named(at), cursor.after(at)
        if field and not _says_more(cursor, end, field):
            return field, end
    return None


def _unnamed(cursor: Cursor, end: int) -> Field | None:
    """Return the field of a mere number: a price, or the only number there is. Of persons it is an
    age."""
    if cursor.unknown(end) or cursor.counts(end) or cursor.is_(end, sense.ModelRef):
        return None
    only = None if cursor.lexicon.of_persons else cursor.only_number()
    return cursor.field_of_kind("money") or only


def measured(cursor: Cursor, amount: Amount, kind: str) -> tuple[Field, int] | None:
    """Return the field that has the amount's unit, and the position after the unit and an adjective
    that selects the field: "1000 km long"."""
    adjective = cursor.take(amount.end, sense.Adjective) if amount.scale else None
    known = adjective if adjective and adjective[0].kind else None
    end = known[1] if known else amount.end
    fields = cursor.lexicon.with_unit(amount.kind, known[0].kind if known else kind)
    return (fields[0], end) if amount.scale and fields else None


def of_unit(cursor: Cursor, amount: Amount, named: Field | None) -> Field | None:
    """ "tickets under 30 euros", of tickets that are counted: the unit selects another field than
    the name before the number."""
    own = cursor.field_of_kind(amount.kind) if amount.kind == "money" else None
    return own if named and own and not cursor.lexicon.is_kind(named, "money") else named


def _says_more(cursor: Cursor, i: int, field: Field) -> bool:
    """Return whether the number that follows a field belongs to it: not one with another unit."""
    amount = cursor.amount(cursor.after(i)) if cursor.is_(i, sense.Compare) else None
    if amount is not None and of_unit(cursor, amount, field) != field:
        return False
    return cursor.number(i) is not None or cursor.is_(i, *SAYS_MORE)


def rated(cursor: Cursor, i: int) -> Rate | None:
    """ "a day", "per month": return whether a field is an amount for that time, and the position
    after it."""
    word = i if cursor.is_(i, sense.Per, sense.Single) else None
    unit = cursor.take(cursor.after(i), when.DateUnit) if word is not None else None
    if unit is None:
        return _rated_by_name(cursor, cursor.after(i)) if word is not None else None
    dates_file = cursor.lexicon.vocabulary.file.dates
    words = {*dates_file.units[unit[0].unit], *dates_file.rates.get(unit[0].unit, ())}
    return (lambda field: cursor.lexicon.mentions(field, words)), unit[1]


def _rated_by_name(cursor: Cursor, i: int) -> Rate | None:
    """ "a night" of a "Price per night": the word is one of the name of a price."""
    prices = cursor.lexicon.numbers_of_kind("money")
    word = cursor.tokens[i].norm if i < len(cursor.tokens) else ""
    if not word or not any(cursor.lexicon.mentions(field, [word]) for field in prices):
        return None
    return (lambda field: cursor.lexicon.mentions(field, [word])), i + 1


def _fits(cursor: Cursor, rated: Rate, field: Field) -> bool:
    """Return whether a field is an amount for that time; salaries are those of a year."""
    yearly = any(unit.unit == "year" for unit in cursor.all(rated[1] - 1, when.DateUnit))
    return rated[0](field) or (yearly and cursor.lexicon.is_kind(field, "earnings"))


def past_unit(cursor: Cursor, field: Field, i: int) -> int:
    """Return the position after the unit of a number with a known field."""
    end = cursor.after(i) if cursor.names(i, field) or cursor.is_(i, sense.Unit) else i
    rate = rated(cursor, end)
    return rate[1] if rate and _fits(cursor, rate, field) else end
