"""Rules for sort orders and limits."""

from __future__ import annotations

from groundhook.handlers.db.question import dates
from groundhook.handlers.db.question.cursor import NUMBERS, Cursor, Draft
from groundhook.handlers.db.question.meanings import (
    And,
    Direction,
    FieldRef,
    Filler,
    First,
    ModelRef,
    Not,
    OrderWord,
    Period,
    SortBy,
    Superlative,
    Than,
    Top,
    ValueRef,
)
from groundhook.handlers.db.question.tokens import phrase_of
from groundhook.handlers.db.schema import Field

MOST = 1000


def limit(cursor: Cursor, draft: Draft, i: int) -> int | None:
    """ "top 5", "first 3 orders", "the last 10 orders", "5 cheapest", "newest 5", "10 active
    products"."""
    if cursor.is_(i - 1, Than):
        return None
    lead = cursor.at(i)[1]
    number = cursor.whole(lead, MOST)
    if number is not None and cursor.is_(i, Top, First) and _names_text(cursor, number[1]):
        return None  # "top 3 brands"
    if number is not None and cursor.is_(i, Top, First):
        draft.limit = number[0]
        if cursor.is_(i, Top) and not _orders(cursor):
            _sort_by_kind(cursor, draft, ("popularity", "rating"), "desc")
        return number[1]
    if (
        number is not None
        and cursor.is_(i, OrderWord)
        and not cursor.time_unit(number[1])
        and order_words(cursor, draft, i)
    ):
        draft.limit = number[0]
        return number[1]
    if cursor.is_(i, Period) and _last_records(
        cursor, draft, lead, {period.which for period in cursor.all(i, Period)}
    ):
        return number[1] if number else lead
    count = cursor.whole(i, MOST)
    if count is None or i - 1 in draft.idle or not _counts_records(cursor, count[1]):
        return None
    draft.limit = count[0]
    return count[1]


def order_words(cursor: Cursor, draft: Draft, i: int) -> int | None:
    """ "cheapest", "highest rating", "sorted by price descending", "top products". Of one record
    ("the cheapest laptop", "who has the highest salary") only that one is asked for."""
    if cursor.is_(cursor.at(i)[1], Than):
        return None  # a comparison, misspelt or not known
    if superlative := cursor.take(i, Superlative):
        at = cursor.past(superlative[1], Filler, most=1)
        field = cursor.take(at, FieldRef) or cursor.take(
            cursor.past(at, ModelRef, most=1), FieldRef
        )  # "highest payment amount"
        if (
            field
            and field[0].field.kind in ("integer", "number", "date", "moment")
            and not cursor.many(field[0].field)
        ):
            if not draft.sort(field[0].field.name, superlative[0].order):
                return None
            if draft.limit is None and (
                draft.singular
                or (draft.person and draft.named_at is None)
                or _one(cursor, field[1])
            ):
                draft.limit = 1
            return field[1]
    if cursor.is_(i, OrderWord) and _names_text(cursor, cursor.at(i)[1]):
        return None  # "the most popular genre" is no order of records
    for word in cursor.all(i, OrderWord):
        if cursor.is_(i, Superlative) and "turnover" in word.kinds and not _beside_model(cursor, i):
            continue
        if _sort_by_kind(cursor, draft, word.kinds, word.order):
            end = cursor.at(i)[1]
            if (
                draft.limit is None
                and not cursor.is_(i, SortBy)
                and (draft.singular or _one(cursor, end))
            ):
                draft.limit = 1
            return end
    if cursor.is_(i, SortBy):
        return _sorted_by(cursor, draft, cursor.at(i)[1])
    if cursor.is_(i, First) and draft.orders and cursor.ended(cursor.at(i)[1]):
        return cursor.at(i)[1]  # "the oldest ones first"
    if cursor.is_(i, Top) and cursor.is_(cursor.at(i)[1], ModelRef, ValueRef):
        return (
            cursor.at(i)[1]
            if _sort_by_kind(cursor, draft, ("popularity", "rating"), "desc")
            else None
        )
    return None


def _beside_model(cursor: Cursor, i: int) -> bool:
    """Whether the model is named beside a superlative: "the highest payment", "lowest three
    payments", in Hebrew before it."""
    number = cursor.whole(cursor.at(i)[1], MOST)
    at = number[1] if number else cursor.at(i)[1]
    while cursor.is_(at, ValueRef) and not cursor.is_(at, ModelRef):  # "the highest cash payment"
        at = cursor.at(at)[1]
    return cursor.is_(at, ModelRef) or cursor.is_(i - 1, ModelRef)


def _names_text(cursor: Cursor, i: int) -> bool:
    """Whether a text field is named here, and neither the model nor a value."""
    texts = [one for one in cursor.all(i, FieldRef) if one.field.kind == "text"]
    return bool(texts) and not cursor.is_(i, ModelRef, ValueRef)


def _one(cursor: Cursor, i: int) -> bool:
    """Whether what is named here, with words before it that choose among records, is one record:
    "laptop", "flight"."""
    stem = cursor.lexicon.vocabulary.stem
    while i < len(cursor.tokens) and cursor.is_(
        i, ValueRef, ModelRef, OrderWord, Not
    ):  # "unpaid invoice"
        end = cursor.at(i)[1]
        if not cursor.is_(end, ValueRef, ModelRef, OrderWord, Not):
            last = cursor.tokens[end - 1].norm
            # "laptop" of a category that is called "Laptops"; "audio" is called so itself.
            plural = any(
                phrase_of(value.value)[-1:] != (last,) for value in cursor.all(i, ValueRef)
            )
            return (cursor.is_(i, ModelRef) or plural) and stem(last) == last
        i = end
    return False


def _sorted_by(cursor: Cursor, draft: Draft, i: int) -> int | None:
    at = cursor.past(i, Filler, most=1)
    if word := cursor.take(at, OrderWord):
        return word[1] if _sort_by_kind(cursor, draft, word[0].kinds, word[0].order) else None
    field = cursor.take(at, FieldRef)
    if field is None or cursor.many(field[0].field):
        return None
    comma = field[1] + 1 if cursor.is_mark(field[1], ",") else field[1]
    direction = _direction(cursor, comma) or _direction(cursor, cursor.past(comma, Filler, most=1))
    end = direction[1] if direction else field[1]
    further = _next_sorted(cursor, end)
    if (
        direction is None
        and further is None
        and not (cursor.ended(field[1]) or cursor.is_(field[1], Filler, And))
    ):
        return None  # "by brand Apple" sorts nothing
    draft.sort(field[0].field.name, direction[0] if direction else _usual(cursor, field[0].field))
    return (_sorted_by(cursor, draft, further) or end) if further is not None else end


def _next_sorted(cursor: Cursor, i: int) -> int | None:
    """Where the next field to sort by stands: "by city and name", "by city, then name"."""
    at = cursor.joint(i)
    after = cursor.at(at)[1]
    if at == i or not cursor.is_(at, FieldRef) or cursor.is_(at, ValueRef):
        return None
    return at if cursor.ended(after) or cursor.is_(after, And, Direction) else None


def _direction(cursor: Cursor, i: int) -> tuple[str, int] | None:
    """ "descending", "highest first"."""
    if direction := cursor.take(i, Direction):
        return direction[0].order, direction[1]
    orders = [word.order for word in cursor.at(i)[0] if isinstance(word, (Superlative, OrderWord))]
    end = cursor.at(i)[1]
    return (orders[0], cursor.at(end)[1]) if orders and cursor.is_(end, First) else None


def _usual(cursor: Cursor, field: Field) -> str:
    """Dates and ratings are read from the newest and the best on, and where the top ones are asked
    for numbers too."""
    best_first = [cursor.field_of_kind("rating"), cursor.field_of_kind("popularity")]
    top = field.kind in NUMBERS and any(cursor.is_(i, Top) for i in range(len(cursor.tokens)))
    return "desc" if top or field.kind in ("date", "moment") or field in best_first else "asc"


def _sort_by_kind(cursor: Cursor, draft: Draft, kinds: tuple[str, ...], order: str) -> bool:
    for kind in kinds:
        days = {"date": cursor.lexicon.day_field, "birth": cursor.lexicon.birth_field}
        field = days[kind] if kind in days else cursor.field_of_kind(kind)
        field = cursor.lexicon.of_kind(kind) if field is not None and cursor.many(field) else field
        if field is not None:
            return draft.sort(field.name, order)
    return False


def _orders(cursor: Cursor) -> bool:
    """Whether the question says an order anywhere: then "top 5" is only a number."""
    return any(cursor.is_(i, OrderWord, SortBy, Superlative) for i in range(len(cursor.tokens)))


def _last_records(cursor: Cursor, draft: Draft, at: int, which: set[str]) -> bool:
    """ "the last 5 orders", "my last order", "my next appointment"."""
    period = cursor.whole(at, MOST)
    day, model = cursor.lexicon.day_field, cursor.take(period[1] if period else at, ModelRef)
    if day is None or model is None or "this" in which or which == {"counted"}:
        return False
    last = cursor.tokens[model[1] - 1].norm
    singular = cursor.lexicon.vocabulary.stem(last) == last
    if "next" in which:
        draft.add(day.name, ">=", dates.stored(cursor.now, day.kind))
    draft.sort(day.name, "asc" if "next" in which else "desc")
    draft.limit = period[0] if period else 1 if singular else draft.limit
    return True


def _counts_records(cursor: Cursor, i: int) -> bool:
    """Whether a number before this position counts records: "5 cheapest", "10 active products", "3
    laptops"."""
    at, seen = cursor.past(i, Filler, most=1), False
    while cursor.is_(at, ValueRef, OrderWord, Superlative):
        category = any(
            cursor.lexicon.is_category(value.field) for value in cursor.all(at, ValueRef)
        )
        seen = seen or category or cursor.is_(at, OrderWord)
        at = cursor.at(at)[1]
        if cursor.is_(at, FieldRef):  # "5 lowest calorie lunches"
            seen, at = True, cursor.at(at)[1]
    return seen or cursor.is_(at, ModelRef)
