"""Rules for several numbers of one field: "49, 100 or 249 euros", "3 or 4 rooms", "price 49 or
100"."""

from __future__ import annotations

from groundhook.handlers.db.question.cursor import Amount, Cursor, Draft
from groundhook.handlers.db.question.meanings import (
    Compare,
    Condition,
    DateUnit,
    ModelRef,
    OrderWord,
    Postfix,
    Than,
    ValueRef,
)
from groundhook.handlers.db.schema import Field


def amounts(cursor: Cursor, draft: Draft, i: int) -> int | None:
    """Several numbers, of which the last says what all of them are; "5 in stock"."""
    found = _amounts(cursor, i)
    if len(found) == 1 and not cursor.is_(i - 1, Than):
        return _in_stock(cursor, draft, found[0])
    last = found[-1] if len(found) > 1 else None
    if last is None or cursor.is_(i - 1, Than) or not _plain(cursor, last):
        return None
    kind = next((each.kind for each in reversed(found) if each.kind), "")
    named = cursor.number_named(last.end)
    field = (
        named
        if named is not None and kind in ("", "duration")
        else cursor.field_of_kind(kind)
        if kind not in ("", "rating")
        else None
    )
    if field is None or any(cursor.is_(at, Compare) for at in draft.unplaced):
        return None
    draft.add(field.name, "in", [each.value for each in found])
    return cursor.at(last.end)[1] if field == named else last.end


def _in_stock(cursor: Cursor, draft: Draft, amount: Amount) -> int | None:
    stock = cursor.take(amount.end, Condition) if amount.kind in ("", "quantity") else None
    field = cursor.field_of_kind(stock[0].kind) if stock and stock[0].op == ">" else None
    if stock is None or field is None or cursor.is_(stock[1], ModelRef, ValueRef):
        return None  # "5 in-stock lamps" are five lamps
    draft.add(field.name, "=", amount.value)
    return stock[1]


def equal_to(cursor: Cursor, draft: Draft, field: Field, amount: Amount) -> int:
    """Add that the field has this number or one of those behind it → the position after them."""
    found = [amount, *(_following(cursor, amount.end))]
    while len(found) > 1 and not (
        _plain(cursor, found[-1]) and cursor.number_named(found[-1].end) in (None, field)
    ):
        found.pop()
    values = [each.value for each in found]
    draft.add(field.name, "in" if len(found) > 1 else "=", values if len(found) > 1 else values[0])
    return found[-1].end


def _amounts(cursor: Cursor, i: int) -> list[Amount]:
    first = cursor.amount(i)
    return [first, *_following(cursor, first.end)] if first is not None else []


def _following(cursor: Cursor, i: int) -> list[Amount]:
    """The amounts that commas, "and" or "or" join to what ends here."""
    found: list[Amount] = []
    while (at := cursor.joint(i)) > i and (amount := cursor.amount(at)) is not None:
        found.append(amount)
        i = amount.end
    return found


def _plain(cursor: Cursor, amount: Amount) -> bool:
    """Whether nothing behind the number makes it a comparison, a length of time or a number of
    records."""
    return not cursor.is_(amount.end, Postfix, OrderWord) and not (
        cursor.is_(amount.end, DateUnit) and cursor.number_named(amount.end) is None
    )
