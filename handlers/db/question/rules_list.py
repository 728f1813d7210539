"""Rules for the words around a number: several numbers of one field ("49, 100 or 249 euros", "price
49 or 100"), a comparison after it ("4 or more")."""

from __future__ import annotations

from groundhook.handlers.db.question import sense, when
from groundhook.handlers.db.question.cursor import Amount, Cursor
from groundhook.handlers.db.question.draft import Draft, Parsed, constraint
from groundhook.handlers.db.schema import Field


def amounts(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """Several numbers, with the unit or field after the last one; "5 in stock"."""
    found = [] if cursor.is_(i - 1, sense.Than) else _amounts(cursor, i)
    if len(found) < 2:
        return _in_stock(cursor, found[0]) if found else None
    field = _field_of(cursor, found) if _plain(cursor, found[-1]) else None
    if field is None or unread(cursor, draft, sense.Compare):
        return None
    return constraint(field[1], field[0].name, "in", [each.value for each in found])


def _field_of(cursor: Cursor, found: list[Amount]) -> tuple[Field, int] | None:
    """Return the field that the last of several numbers names, by its name or its unit."""
    end, kind = found[-1].end, next((each.kind for each in reversed(found) if each.kind), "")
    named = cursor.number_named(end) if kind in ("", "duration") else None
    if named is not None:
        return named, cursor.after(end)
    field = cursor.field_of_kind(kind) if kind != "rating" else None
    return (field, end) if field else None


def unread(cursor: Cursor, draft: Draft, *kinds: type[sense.Sense]) -> bool:
    """Return whether the question has such a word before that was not understood."""
    return any(cursor.is_(i, *kinds) for i in draft.not_understood)


def _in_stock(cursor: Cursor, amount: Amount) -> Parsed | None:
    stock = cursor.take(amount.end, sense.Condition) if amount.kind in ("", "quantity") else None
    field = cursor.field_of_kind(stock[0].kind) if stock and stock[0].op == ">" else None
    if stock is None or field is None or cursor.is_(stock[1], sense.ModelRef, sense.ValueRef):
        return None  # "5 in-stock lamps" are five lamps
    return constraint(stock[1], field.name, "=", amount.value)


def equal_to(cursor: Cursor, field: Field, amount: Amount) -> Parsed:
    """The field has this number or one of those after it."""
    found = [amount, *(_following(cursor, amount.end))]
    while len(found) > 1 and not (
        _plain(cursor, found[-1]) and cursor.number_named(found[-1].end) in (None, field)
    ):
        found.pop()
    values = [each.value for each in found]
    several = len(values) > 1
    value = values if several else values[0]
    return constraint(found[-1].end, field.name, "in" if several else "=", value)


def _amounts(cursor: Cursor, i: int) -> list[Amount]:
    first = cursor.amount(i)
    return [first, *_following(cursor, first.end)] if first is not None else []


def _following(cursor: Cursor, i: int) -> list[Amount]:
    """Return the amounts joined by commas, "and" or "or" to the one that ends here."""
    found: list[Amount] = []
    while (at := cursor.joint(i)) > i and (amount := cursor.amount(at)) is not None:
        found.append(amount)
        i = amount.end
    return found


def _plain(cursor: Cursor, amount: Amount) -> bool:
    """Return whether nothing after the number makes it a comparison, a length of time or a number
    of records."""
    return not cursor.is_(amount.end, sense.Postfix, sense.OrderWord) and not (
        cursor.is_(amount.end, when.DateUnit) and cursor.number_named(amount.end) is None
    )


def postfixed(cursor: Cursor, i: int) -> tuple[str, int] | None:
    """A comparison after its number: "4 or more", "$100 and above". Before another number it
    belongs to that one."""
    if postfix := cursor.take(i, sense.Postfix):
        following = (
            postfix[1],
            cursor.past_one(postfix[1], sense.Filler),
        )  # "… and less than 800"
        return (
            (postfix[0].op, postfix[1])
            if all(cursor.number(at) is None for at in following)
            else None
        )
    word = (
        cursor.take(cursor.after(i), sense.Compare) if cursor.is_(i, sense.And, sense.Or) else None
    )
    if word is None or word[0].kind or cursor.number(word[1]) is not None:
        return None
    return word[0].op[0] + "=", word[1]
