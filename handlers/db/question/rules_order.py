"""Rules for sort orders and limits."""

from __future__ import annotations

from dataclasses import replace

from groundhook.handlers.db.question import dates, sense, when
from groundhook.handlers.db.question.cursor import NUMBERS, Cursor
from groundhook.handlers.db.question.draft import Draft, Parsed
from groundhook.handlers.db.question.sense import Sorting
from groundhook.handlers.db.question.tokens import phrase_of
from groundhook.handlers.db.schema import Field
from groundhook.host.core.types.query_language import Order, Where

MOST = 1000


def limit(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """ "top 5", "first 3 orders", "the last 10 orders", "5 cheapest", "newest 5", "10 active
    products"."""
    if cursor.is_(i - 1, sense.Than):
        return None
    lead = cursor.after(i)
    number = cursor.whole(lead, MOST)
    if number is not None and cursor.is_(i, sense.Top, sense.First):
        return _first_ones(cursor, draft, i, number)
    counted = number is not None and not cursor.time_unit(number[1])
    if (
        number
        and counted
        and cursor.is_(i, sense.OrderWord)
        and (found := order_words(cursor, draft, i))
    ):
        return replace(found, end=number[1], limit=number[0])
    if cursor.is_(i, when.Period):
        which = {str(period.which) for period in cursor.all(i, when.Period)}
        if found := _last_records(cursor, draft, lead, which):
            return replace(found, end=number[1] if number else lead)
    count = cursor.whole(i, MOST)
    if count is None or i - 1 in draft.idle or not _counts_records(cursor, count[1]):
        return None
    return Parsed(count[1], limit=count[0])


def _first_ones(cursor: Cursor, draft: Draft, i: int, number: tuple[int, int]) -> Parsed | None:
    """ "top 5", "first 3"; "top 3 brands" are not records."""
    if _names_text(cursor, number[1]):
        return None
    best = cursor.is_(i, sense.Top) and not _orders(cursor)
    orders = _by_kind(cursor, draft, ("popularity", "rating"), "desc") if best else ()
    return Parsed(number[1], orders=orders, limit=number[0])


def order_words(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """ "cheapest", "highest rating", "sorted by price descending", "top products". A singular ("the
    cheapest laptop", "who has the highest salary") requests one record only."""
    end = cursor.after(i)
    if cursor.is_(end, sense.Than):
        return None  # a comparison, misspelt or not known
    if extreme := _extreme(cursor, i):
        order = draft.sort(extreme[0].name, extreme[1])
        one = (draft.person and draft.named_at is None) or _one(cursor, extreme[2])
        return _ordered(draft, extreme[2], (order,), one=one) if order else None
    if cursor.is_(i, sense.OrderWord) and _names_text(cursor, end):
        return None  # "the most popular genre" is not an order of records
    for word in cursor.all(i, sense.OrderWord):
        alone = "turnover" in word.kinds and not _beside_model(cursor, i)
        if cursor.is_(i, sense.Superlative) and alone:
            continue
        if orders := _by_kind(cursor, draft, word.kinds, word.order):
            if cursor.is_(i, sense.SortBy):
                return Parsed(end, orders=orders)
            return _ordered(draft, end, orders, one=_one(cursor, end))
    return _sorting(cursor, draft, i)


def _extreme(cursor: Cursor, i: int) -> tuple[Field, Sorting, int] | None:
    """ "highest payment amount": returns a field to sort by, its direction, and the position after
    it."""
    superlative = cursor.take(i, sense.Superlative)
    if superlative is None:
        return None
    at = cursor.past_one(superlative[1], sense.Filler)
    field = cursor.take(at, sense.FieldRef) or cursor.take(
        cursor.past_one(at, sense.ModelRef), sense.FieldRef
    )
    if field is None or cursor.many(field[0].field):
        return None
    sortable = field[0].field.kind in (*NUMBERS, "date", "moment")
    return (field[0].field, superlative[0].order, field[1]) if sortable else None


def _ordered(draft: Draft, end: int, orders: tuple[Order, ...], *, one: bool) -> Parsed:
    """Return an order; a singular also limits the result to one record."""
    single = draft.limit is None and (draft.singular or one)
    return Parsed(end, orders=orders, limit=1 if single else None)


def _sorting(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """ "sorted by price", "the oldest ones first", "top products"."""
    end = cursor.after(i)
    if cursor.is_(i, sense.SortBy):
        return _sorted_by(cursor, draft, end)
    if cursor.is_(i, sense.First) and draft.orders and cursor.ended(end):
        return Parsed(end)
    if cursor.is_(i, sense.Top) and cursor.is_(end, sense.ModelRef, sense.ValueRef):
        orders = _by_kind(cursor, draft, ("popularity", "rating"), "desc")
        return Parsed(end, orders=orders) if orders else None
    return None


def _beside_model(cursor: Cursor, i: int) -> bool:
    """Return whether the model's name is beside a superlative: "the highest payment", "lowest three
    payments"; in Hebrew before it."""
    number = cursor.whole(cursor.after(i), MOST)
    at = number[1] if number else cursor.after(i)
    while cursor.is_(at, sense.ValueRef) and not cursor.is_(
        at, sense.ModelRef
    ):  # "the highest cash payment"
        at = cursor.after(at)
    return cursor.is_(at, sense.ModelRef) or cursor.is_(i - 1, sense.ModelRef)


def _names_text(cursor: Cursor, i: int) -> bool:
    """Return whether the words here name a text field, and neither the model nor a value."""
    texts = [one for one in cursor.all(i, sense.FieldRef) if one.field.kind == "text"]
    return bool(texts) and not cursor.is_(i, sense.ModelRef, sense.ValueRef)


def _one(cursor: Cursor, i: int) -> bool:
    """Return whether the words here name one record, with words before it that narrow the choice:
    "laptop", "flight"."""
    stem, before = cursor.lexicon.vocabulary.stem, cursor.back(i) - 1
    while i < len(cursor.tokens) and cursor.is_(
        i, sense.ValueRef, sense.ModelRef, sense.OrderWord, sense.Not
    ):  # "unpaid invoice"
        end = cursor.after(i)
        if not cursor.is_(end, sense.ValueRef, sense.ModelRef, sense.OrderWord, sense.Not):
            last = cursor.tokens[end - 1].norm
            # "laptop" of a category that is called "Laptops"; "audio" is called so itself.
            plural = any(
                phrase_of(value.value)[-1:] != (last,) for value in cursor.all(i, sense.ValueRef)
            )
            the = cursor.is_(before, when.Definite)
            return (cursor.is_(i, sense.ModelRef) or plural or the) and stem(last) == last
        i = end
    return False


def _sorted_by(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    at = cursor.past(i, sense.Filler, sense.FigureWord, most=2)  # "by number of seats"
    if word := cursor.take(at, sense.OrderWord):
        orders = _by_kind(cursor, draft, word[0].kinds, word[0].order)
        return Parsed(word[1], orders=orders) if orders else None
    field = cursor.take(at, sense.FieldRef)
    if field is None or cursor.many(field[0].field):
        return None
    comma = field[1] + 1 if cursor.is_mark(field[1], ",") else field[1]
    direction = _direction(cursor, comma) or _direction(
        cursor, cursor.past_one(comma, sense.Filler)
    )
    end = direction[1] if direction else field[1]
    further = _next_sorted(cursor, end)
    if (
        direction is None
        and further is None
        and not (cursor.ended(field[1]) or cursor.is_(field[1], sense.Filler, sense.And))
    ):
        return None  # "by brand Apple" sorts nothing
    way = direction[0] if direction else _usual(cursor, field[0].field)
    made = draft.sort(field[0].field.name, way)
    more = _sorted_by(cursor, draft, further) if further is not None else None
    orders = (made,) if made else ()
    return Parsed(more.end if more else end, orders=(*orders, *(more.orders if more else ())))


def _next_sorted(cursor: Cursor, i: int) -> int | None:
    """Return the position of the next field to sort by: "by city and name", "by city, then
    name"."""
    at = cursor.joint(i)
    after = cursor.after(at)
    if at == i or not cursor.is_(at, sense.FieldRef) or cursor.is_(at, sense.ValueRef):
        return None
    return at if cursor.ended(after) or cursor.is_(after, sense.And, sense.Direction) else None


def _direction(cursor: Cursor, i: int) -> tuple[str, int] | None:
    """ "descending", "highest first"."""
    if direction := cursor.take(i, sense.Direction):
        return direction[0].order, direction[1]
    orders = [
        word.order
        for word in cursor.at(i)[0]
        if isinstance(word, (sense.Superlative, sense.OrderWord))
    ]
    end = cursor.after(i)
    return (orders[0], cursor.after(end)) if orders and cursor.is_(end, sense.First) else None


def _usual(cursor: Cursor, field: Field) -> str:
    """Return the usual direction of a field: dates and ratings descend, and so do numbers after
    "top"."""
    best_first = [cursor.field_of_kind("rating"), cursor.field_of_kind("popularity")]
    top = field.kind in NUMBERS and any(cursor.is_(i, sense.Top) for i in range(len(cursor.tokens)))
    if cursor.lexicon.is_kind(field, "ahead"):
        return "asc"
    return "desc" if top or field.kind in ("date", "moment") or field in best_first else "asc"


def _by_kind(cursor: Cursor, draft: Draft, kinds: tuple[str, ...], order: str) -> tuple[Order, ...]:
    """Return the order by the first of these kinds for which the model has a field; empty without
    one."""
    for kind in kinds:
        days = {"date": cursor.lexicon.day_field, "birth": cursor.lexicon.birth_field}
        field = days[kind] if kind in days else cursor.field_of_kind(kind)
        field = cursor.lexicon.of_kind(kind) if field is not None and cursor.many(field) else field
        if field is not None:
            made = draft.sort(field.name, order)
            return (made,) if made else ()
    return ()


def _orders(cursor: Cursor) -> bool:
    """Return whether the question names an order anywhere: then "top 5" is only a number."""
    return any(
        cursor.is_(i, sense.OrderWord, sense.SortBy, sense.Superlative)
        for i in range(len(cursor.tokens))
    )


def _last_records(cursor: Cursor, draft: Draft, at: int, which: set[str]) -> Parsed | None:
    """ "the last 5 orders", "my last order", "my next appointment"."""
    period = cursor.whole(at, MOST)
    day, model = cursor.lexicon.day_field, cursor.take(period[1] if period else at, sense.ModelRef)
    if day is None or model is None or "this" in which or which == {"counted"}:
        return None
    last = cursor.tokens[model[1] - 1].norm
    singular = cursor.lexicon.vocabulary.stem(last) == last
    ahead = "next" in which
    now = Where(field=day.name, op=">=", value=dates.stored(cursor.now, day.kind))
    order = draft.sort(day.name, "asc" if ahead else "desc")
    most = period[0] if period else 1 if singular else None
    return Parsed(at, (now,) if ahead else (), (order,) if order else (), limit=most)


def _counts_records(cursor: Cursor, i: int) -> bool:
    """Return whether a number before this position counts records: "5 cheapest", "10 active
    products", "3 laptops"."""
    at, seen = cursor.past_one(i, sense.Filler), False
    while cursor.is_(at, sense.ValueRef, sense.OrderWord, sense.Superlative):
        category = any(
            cursor.lexicon.is_category(value.field) for value in cursor.all(at, sense.ValueRef)
        )
        seen = seen or category or cursor.is_(at, sense.OrderWord)
        at = cursor.after(at)
        if cursor.is_(at, sense.FieldRef):  # "5 lowest calorie lunches"
            seen, at = True, cursor.after(at)
    return seen or cursor.is_(at, sense.ModelRef)
