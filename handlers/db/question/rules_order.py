"""Rules for sort orders and limits."""

from __future__ import annotations

from dataclasses import replace

from groundhook.core.types.query_language import Order, Where
from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.question import dates, sense, when
from groundhook.handlers.db.question.cursor import NUMBERS, TIMES, Cursor
from groundhook.handlers.db.question.parsed import Parsed
from groundhook.handlers.db.question.rules_figure import computed, extreme
from groundhook.handlers.db.question.rules_group import grouping
from groundhook.handlers.db.question.sense import Sorting
from groundhook.handlers.db.question.tokens import phrase_of

MOST = 1000
DESCRIBING = (sense.ValueRef, sense.ModelRef, sense.OrderWord, sense.Not)  # "unpaid invoice"


def limit(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "top 5", "first 3 orders", "the last 10 orders", "5 cheapest", "newest 5", "10 active
    products"."""
    if cursor.is_(i - 1, sense.Than):
        return None
    number = cursor.whole(cursor.after(i), MOST)
    if number is not None and cursor.is_(i, sense.Top, sense.First):
        return _first_ones(cursor, draft, i, number)
    return _newest(cursor, draft, i) or _last_records(cursor, draft, i) or _some(cursor, draft, i)


def _newest(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "newest 5"."""
    number = cursor.whole(cursor.after(i), MOST) if cursor.is_(i, sense.OrderWord) else None
    found = order_words(cursor, draft, i) if number else None
    if number is None or found is None or cursor.time_unit(number[1]):
        return None
    return replace(found, end=number[1], limit=number[0])


def _some(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "5 cheapest", "10 active products"."""
    count = cursor.whole(i, MOST)
    if count is None or i - 1 in draft.idle or not _counts_records(cursor, count[1]):
        return None
    return None if _ends_name(cursor, i) else Parsed(count[1], limit=count[0])


def _ends_name(cursor: Cursor, i: int) -> bool:
    """Return whether the number here may belong to the name before it: "is Aurora 4 sailing"."""
    before = cursor.back(i)
    names = cursor.all(before, sense.ValueRef) if cursor.after(before) == i else ()
    return any(cursor.lexicon.is_kind(one.field, "name") for one in names)


def _first_ones(cursor: Cursor, draft: Parsed, i: int, number: tuple[int, int]) -> Parsed | None:
    """ "top 5", "first 3"; "top 3 brands" are not records."""
    if _names_text(cursor, number[1]):
        return None
    ordered = cursor.anywhere(sense.OrderWord, sense.SortBy, sense.Superlative)
    best = cursor.is_(i, sense.Top) and not ordered
    orders = _by_kind(cursor, draft, ("popularity", "rating"), "desc") if best else ()
    return Parsed(number[1], orders=orders, limit=number[0])


def order_words(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "cheapest", "highest rating", "earns the most", "sorted by price", "top products". A
    singular ("the cheapest laptop", "who has the highest salary") requests one record only."""
    end = cursor.after(i)
    if cursor.is_(end, sense.Than):
        return None  # a comparison, misspelt or not known
    if found := extreme(cursor, i) or _of_verb(cursor, i):
        orders = draft.sort(found[0].name, found[1])
        one = cursor.asks_who() or _one(cursor, i, found[2])
        return _ordered(draft, found[2], orders, one=one) if orders else None
    rules = (_beside_date, _of_named, _of_kinds, _sorting)
    return next(filter(None, (rule(cursor, draft, i) for rule in rules)), None)


def _of_verb(cursor: Cursor, i: int) -> tuple[Field, Sorting, int] | None:
    """ "earns the most", "cost least": a field to sort by, its direction, and the position after
    the words."""
    verb = cursor.take(i, sense.NumberVerb)
    most = cursor.take(cursor.past_one(verb[1], sense.Filler), sense.Superlative) if verb else None
    field = cursor.field_of_kind(verb[0].kind) if verb else None
    return (field, most[0].order, most[1]) if most and field else None


def _of_kinds(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "cheapest", "the highest payment"."""
    end, ambiguous = cursor.after(i), cursor.is_(i, sense.Superlative)
    if _names_text(cursor, end):
        return None  # "the most popular genre" is not an order of records
    if cursor.is_(i, sense.OrderWord) and _names_related(cursor, end):
        return Parsed(end, refused=True).unplaced(range(i, end))  # no other model is meant
    for word in cursor.all(i, sense.OrderWord):
        if ambiguous and "turnover" in word.kinds and not _beside_model(cursor, i):
            continue
        if orders := _by_kind(cursor, draft, word.kinds, word.order):
            who = cursor.asks_who() and cursor.ended(end)  # "who has been with us the longest"
            found = _ordered(draft, end, orders, one=who or _one(cursor, i, end))
            return replace(found, notes=_notes(cursor, i, word, orders[0]))
    return None


def _notes(cursor: Cursor, i: int, word: sense.OrderWord, order: Order) -> tuple[str, ...]:
    """Return notes on a word that also says something of the records, and on other fields that fit
    as well."""
    end, field = cursor.after(i), cursor.lexicon.fields[order.field]
    if word.vague:
        typed = cursor.text(i, end)
        return (f"{typed!r} was read as an order by {order.field!r}, not as a condition",)
    kind = next((kind for kind in word.kinds if cursor.lexicon.is_kind(field, kind)), "")
    return cursor.doubts(i, end, kind, field)


def _of_named(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "slowest response", "most recently restored": the order by the field that is named behind
    the word, if it is of its kind."""
    end = cursor.after(i)
    field = None if cursor.is_(end, sense.ModelRef) else cursor.named(end, (*NUMBERS, *TIMES))
    for word in cursor.all(i, sense.OrderWord) if field and not cursor.many(field) else ():
        date = "date" in word.kinds and field is not None and field.kind in TIMES
        if field and (date or cursor.lexicon.is_kind(field, *word.kinds)):
            orders = draft.sort(field.name, word.order)
            found = _ordered(draft, cursor.after(end), orders, one=_one(cursor, i, end))
            return replace(found, notes=_notes(cursor, i, word, orders[0])) if orders else None
    return None


def _beside_date(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "restored most recently": the order by the date that is named before the word."""
    date, end = draft.mention, cursor.after(i)
    if date is None or date.kind not in TIMES or not cursor.names(cursor.back(i), date):
        return None
    for word in cursor.all(i, sense.OrderWord):
        if word.kinds == ("date",):
            orders = draft.sort(date.name, word.order)
            return _ordered(draft, end, orders, one=cursor.asks_who() or _one(cursor, i, end))
    return None


def extreme_of_each(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "highest salary per office": a number for each group. With any other word the question may
    request records, or more figures."""
    other = cursor.said(sense.Person) or cursor.past(0, sense.Filler) < i
    found = None if other else extreme(cursor, i)
    if found is None or found[0].kind not in NUMBERS or "." in found[0].name:
        return None
    field, order, end = found
    groups = _last_grouping(cursor, end) if cursor.is_(end, sense.Per, sense.SortBy) else ()
    figure = computed(len(cursor.tokens), "max" if order == "desc" else "min", field)
    return replace(figure, groups=groups) if groups else None


def _last_grouping(cursor: Cursor, i: int) -> tuple[str, ...]:
    """Return the groups of the "per office" that ends the question; empty for other words, and for
    the model itself."""
    at = cursor.past_one(cursor.after(i), sense.Filler)
    groups, end = grouping(cursor, at), cursor.after(at)
    first = cursor.lexicon.fields.get(groups[0]) if groups else None
    whole = cursor.ended(end) and end + 1 >= len(cursor.tokens)
    text = first is not None and first.kind == "text" and not cursor.is_(at, sense.ModelRef)
    return tuple(groups) if text and whole else ()


def _ordered(draft: Parsed, end: int, orders: tuple[Order, ...], *, one: bool) -> Parsed:
    """Return an order; a singular also limits the result to one record."""
    single = draft.limit is None and (draft.singular or one)
    return Parsed(end, orders=orders, limit=1 if single else None)


def _sorting(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "sorted by price", "the oldest ones first", "top products", "who joined
    first"."""
    end = cursor.after(i)
    if cursor.is_(i, sense.SortBy):
        return _sorted_by(cursor, draft, end)
    if cursor.is_(i, sense.First) and draft.orders and cursor.ended(end):
        return Parsed(end)
    if cursor.is_(i, sense.First) and cursor.ended(end):
        return _earliest(cursor, draft, end)
    if cursor.is_(i, sense.Top) and cursor.is_(end, sense.ModelRef, sense.ValueRef):
        orders = _by_kind(cursor, draft, ("popularity", "rating"), "desc")
        return Parsed(end, orders=orders) if orders else None
    return None


def _earliest(cursor: Cursor, draft: Parsed, end: int) -> Parsed | None:
    """ "who joined first"."""
    if draft.mention is None or draft.mention.kind not in TIMES:
        return None
    orders = draft.sort(draft.mention.name, "asc")
    return _ordered(draft, end, orders, one=cursor.said(sense.Person)) if orders else None


def _beside_model(cursor: Cursor, i: int) -> bool:
    """Return whether the model's name is beside a superlative: "the highest payment", "lowest three
    payments", "the highest cash payment"; in Hebrew before it."""
    _, at = cursor.whole(cursor.after(i), MOST) or (0, cursor.after(i))
    at = cursor.past(at, sense.ValueRef, unless=sense.ModelRef)
    return cursor.is_(at, sense.ModelRef) or cursor.is_(i - 1, sense.ModelRef)


def _names_text(cursor: Cursor, i: int) -> bool:
    """Return whether the words here name a text field, and neither the model nor a value."""
    text = cursor.named(i, ("text",)) is not None
    return text and not cursor.is_(i, sense.ModelRef, sense.ValueRef)


def _names_related(cursor: Cursor, i: int) -> bool:
    """Return whether the words here name related records: "repairs by the cheapest mechanic" are
    not the cheapest repairs."""
    own = cursor.is_(i, sense.ModelRef, sense.ValueRef)
    return cursor.is_(i, sense.RelationRef) and not own


def _one(cursor: Cursor, i: int, end: int) -> bool:
    """ "cheapest laptop", "which laptop is the cheapest": return whether one record is requested by
    an order from `i` to `end`."""
    asking = (at for at in range(i) if cursor.is_(at, sense.QuestionWord))
    return any(_names_one(cursor, at) for at in (end, *map(cursor.after, asking)))


def _names_one(cursor: Cursor, i: int) -> bool:
    """Return whether the words here name one record, with words before it that narrow the choice:
    "laptop", "flight"."""
    before = cursor.back(i) - 1
    while _describes(cursor, i):
        end = cursor.after(i)
        if not _describes(cursor, end):
            counted = cursor.is_(i, sense.ModelRef) or _is_counted(cursor, i)
            the = cursor.is_(before, when.Definite)
            return (counted or the) and cursor.is_singular(end)
        i = end
    return False


def _describes(cursor: Cursor, i: int) -> bool:
    """ "unpaid", "covered", "recently acquired": return whether the words here narrow the choice of
    records, or name them."""
    fields = () if cursor.is_(i, sense.Filler) else cursor.fields(i)
    flag = any(one.kind == "boolean" or one.kind in TIMES for one in fields)
    return flag or cursor.is_(i, *DESCRIBING)


def _is_counted(cursor: Cursor, i: int) -> bool:
    """Return whether a value in the singular is one record: "laptop" of a category called
    "Laptops", "reptile" of classes in the singular. "Audio" beside "Laptops" is called so
    itself."""
    last, stem = cursor.tokens[cursor.after(i) - 1].norm, cursor.lexicon.vocabulary.stem
    for value in cursor.all(i, sense.ValueRef):
        options = [phrase_of(option)[-1] for option in value.field.options]
        singular = bool(options) and all(stem(option) == option for option in options)
        if singular or phrase_of(value.value)[-1:] != (last,):
            return True
    return False


def _sorted_by(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "price", "price descending", "number of seats", "city and name", after "sorted by"."""
    at = cursor.past(i, sense.Filler, sense.FigureWord, most=2)
    word = cursor.take(at, sense.OrderWord)
    if word and not _names_related(cursor, word[1]):
        orders = _by_kind(cursor, draft, word[0].kinds, word[0].order)
        return Parsed(word[1], orders=orders) if orders else None
    field = cursor.take(at, sense.FieldRef)
    return _by_fields(cursor, draft, field[0].field, field[1]) if field else None


def _by_fields(cursor: Cursor, draft: Parsed, field: Field, i: int) -> Parsed | None:
    """Return the order by a field whose name ends here, and by those that are listed after it."""
    if cursor.many(field):
        return None
    direction, end = _direction(cursor, i) or (None, i)
    orders = draft.sort(field.name, direction or _usual(cursor, field))
    if (further := _next_sorted(cursor, end)) is not None:
        more = _sorted_by(cursor, draft, further)
        return replace(more, orders=(*orders, *more.orders)) if more else Parsed(end, orders=orders)
    last = cursor.ended(end) or cursor.is_(end, sense.Filler, sense.And)
    return Parsed(end, orders=orders) if direction or last else None  # "by brand Apple" is no order


def _next_sorted(cursor: Cursor, i: int) -> int | None:
    """Return the position of the next field to sort by: "by city and name", "by city, then
    name"."""
    at = cursor.joint(i)
    after = cursor.after(at)
    if at == i or not cursor.is_(at, sense.FieldRef) or cursor.is_(at, sense.ValueRef):
        return None
    return at if cursor.ended(after) or cursor.is_(after, sense.And, sense.Direction) else None


def _direction(cursor: Cursor, i: int) -> tuple[Sorting, int] | None:
    """ "descending", ", highest first"."""
    comma = i + 1 if cursor.is_mark(i, ",") else i
    for at in cursor.steps(comma, sense.Filler, most=1):
        word, first = cursor.take(at, sense.Ordering), cursor.is_(cursor.after(at), sense.First)
        if word and (first or cursor.is_(at, sense.Direction)):
            return word[0].order, cursor.past_one(word[1], sense.First)
    return None


def _usual(cursor: Cursor, field: Field) -> str:
    """Return the usual direction of a field: dates and ratings descend, and so do numbers after
    "top"."""
    best_first = [cursor.field_of_kind("rating"), cursor.field_of_kind("popularity")]
    top = field.kind in NUMBERS and cursor.anywhere(sense.Top)
    if cursor.lexicon.is_kind(field, "ahead"):
        return "asc"
    return "desc" if top or field.kind in TIMES or field in best_first else "asc"


def _by_kind(
    cursor: Cursor, draft: Parsed, kinds: tuple[str, ...], order: str
) -> tuple[Order, ...]:
    """Return the order by the first of these kinds for which the model has a field; empty without
    one."""
    for kind in kinds:
        days = {"date": cursor.lexicon.day_field, "birth": cursor.lexicon.date_of_kind("birth")}
        named = cursor.field_of_kind(kind) or cursor.lexicon.date_of_kind(kind)
        field = days.get(kind, named)
        field = cursor.lexicon.of_kind(kind) if field is not None and cursor.many(field) else field
        if field is not None:
            return draft.sort(field.name, order)
    return ()


def _last_records(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "the last 5 orders", "my last order", "my next appointment"."""
    which: set[str] = {period.which for period in cursor.all(i, when.Period)}
    number, end = cursor.whole(cursor.after(i), MOST) or (None, cursor.after(i))
    day, model = cursor.lexicon.day_field, cursor.take(end, sense.ModelRef)
    if not which - {"counted"} or "this" in which or day is None or model is None:
        return None
    ahead = "next" in which
    now = Where(field=day.name, op=">=", value=dates.stored(cursor.now, day.kind))
    orders = draft.sort(day.name, "asc" if ahead else "desc")
    most = number or (1 if cursor.is_singular(model[1]) else None)
    return Parsed(end, (now,) if ahead else (), orders, limit=most)


def _counts_records(cursor: Cursor, i: int) -> bool:
    """Return whether a number before this position counts records: "5 cheapest", "10 active
    products", "3 laptops"."""
    at, seen = cursor.past_one(i, sense.Filler), False
    while cursor.is_(at, sense.ValueRef, sense.OrderWord, sense.Superlative):
        values = cursor.all(at, sense.ValueRef)
        category = any(cursor.lexicon.is_category(value.field) for value in values)
        seen = seen or category or cursor.is_(at, sense.OrderWord)
        at = cursor.after(at)
        if cursor.is_(at, sense.FieldRef):  # "5 lowest calorie lunches"
            seen, at = True, cursor.after(at)
    return seen or cursor.is_(at, sense.ModelRef)
