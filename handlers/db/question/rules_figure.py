"""Rules for questions that request a number over records: "how many", "average price", "per
category"."""

from __future__ import annotations

from dataclasses import replace

from groundhook.core.types.query_language import Order
from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.question import sense, when
from groundhook.handlers.db.question.cursor import NUMBERS, TIMES, Cursor
from groundhook.handlers.db.question.parsed import Parsed, figure_of
from groundhook.handlers.db.question.rules_field import condition_on

OF_EACH = ("stock", "population", "capacity")  # of a number that every record has for itself
NOT_SUMMED = (*OF_EACH, "money", "rating", "year", "age", "size")
OF_ORDER = {"asc": "min", "desc": "max"}


def figure(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "how many", "number of", "average price", "total of the fines", "on average", "how many
    different cities"."""
    words = cursor.all(i, sense.FigureWord)
    if cursor.is_(i - 1, sense.Compare):
        return None  # "a price below average"
    if not words:
        return _asked(cursor, i)
    end, own = cursor.after(i), _called_so(cursor, i)
    if own is not None and (cursor.is_(end, sense.Compare, sense.Between) or cursor.number(end)):
        return condition_on(cursor, draft, own, end)  # "a total of 100"
    if not any(word.function == "count" for word in words):
        return _computed(cursor, draft, i, own)
    if own is None:
        return _count(cursor, draft, end)
    note = f"{cursor.text(i, end)!r} was read as the sum of {own.name!r}"
    return replace(computed(end, "sum", own), notes=(note,))


def computed(end: int, function: str, field: Field) -> Parsed:
    return Parsed(end, aggregates=(figure_of(function, field.name),))


def _computed(cursor: Cursor, draft: Parsed, i: int, own: Field | None) -> Parsed | None:
    """ "average price", "total of the fines", "revenue"; `own`: the field named by the first
    word."""
    words, end = cursor.all(i, sense.FigureWord), cursor.after(i)
    function = next((word for word in words if not word.kind), words[0]).function
    earned = None if cursor.is_(i - 1, sense.SortBy) else of_kind(cursor, i)
    if earned is not None:
        return computed(end, function, earned)  # "revenue"
    if all(word.kind for word in words):
        # "how much money", of records that have none
        return Parsed(end).unplaced(range(i, end))
    return _of_words_behind(cursor, draft, i, own, function)


def _of_words_behind(
    cursor: Cursor, draft: Parsed, i: int, own: Field | None, function: str
) -> Parsed | None:
    """Return the figure of what the words behind it name, or of what was named before."""
    end = cursor.after(i)
    at, model, named = _towards(cursor, end)
    if (field := named or _behind(cursor, at, function)) is not None:
        if function == "sum" and _asks_verb(cursor, i, field):
            return Parsed(end)
        return replace(computed(cursor.after(at), function, field), named_at=model)
    mention = draft.mention if not draft.aggregates else None  # "the price on average"
    for whole in (mention, _of_records(cursor, at, own, model)):
        if whole is not None and _measured(cursor, whole, function):
            return computed(end, function, whole)
    asked = _own_total(cursor, i) if function == "sum" else None
    return computed(end, "sum", asked) if asked else _in_total(cursor, draft, i, at, function)


def _asks_verb(cursor: Cursor, i: int, field: Field) -> bool:
    """ "how much does a ticket cost": return whether a verb names what is requested, and the field
    only whose."""
    rest = range(cursor.after(i), len(cursor.tokens)) if cursor.is_(i, sense.AskedValue) else ()
    kinds = [verb.kind for at in rest for verb in cursor.all(at, sense.NumberVerb)]
    known = [kind for kind in kinds if cursor.field_of_kind(kind)]
    return bool(known) and not cursor.lexicon.is_kind(field, *known)


def _behind(cursor: Cursor, i: int, function: str) -> Field | None:
    """The "price" of "average price", which no bound of its own follows."""
    if _is_compared(cursor, cursor.past(cursor.after(i), sense.ValueLink)):
        return None
    return next((one for one in cursor.fields(i) if _measured(cursor, one, function)), None)


def _towards(cursor: Cursor, at: int) -> tuple[int, int | None, Field | None]:
    """Skip the words between a figure and its field. Returns the position after them, the position
    of the model's name, and the field of a word that names both ("average revenue", "total amount
    of")."""
    model, between = None, (sense.Filler, sense.ValueLink, sense.FigureWord, sense.ModelRef)
    while cursor.past(at, *between, most=1, unless=sense.FieldRef) > at:
        if (named := of_kind(cursor, at) or _called_so(cursor, at)) is not None:
            return at, model, named
        model = at if cursor.is_(at, sense.ModelRef) else model  # "average order value"
        at = cursor.after(at)
    return at, model, None


def _in_total(cursor: Cursor, draft: Parsed, i: int, at: int, function: str) -> Parsed | None:
    """ "… in total", "how much did customers from France spend", "how much was paid by card"."""
    rest = range(at, len(cursor.tokens))
    again = any(one.function == function for one in draft.aggregates)
    if again or (function == "sum" and any(of_kind(cursor, place) for place in rest)):
        return Parsed(cursor.after(i))
    paid = cursor.lexicon.of_kind("turnover") if function == "sum" else None
    spoken = draft.aggregates or draft.named_at is not None or cursor.is_(i, sense.FieldRef)
    return None if paid is None or spoken else computed(cursor.after(i), "sum", paid)


def _own_total(cursor: Cursor, i: int) -> Field | None:
    """The field called "total" of "what is the total"."""
    fields = cursor.fields(i) if cursor.is_(cursor.back(i), sense.AskedValue) else ()
    return next((one for one in fields if is_earned(cursor, one)), None)


def figures(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "average, min and max price", "total and average of invoices"."""
    functions, last, at = [], i, i
    while (function := _function(cursor, at)) is not None:
        functions.append(function)
        last, at = at, cursor.joint(cursor.after(at))
        if at == cursor.after(last):
            break
    if len(functions) < 2:
        return None
    alone = Parsed(mention=draft.mention, named_at=draft.named_at, pieces=draft.pieces)
    found = figure(cursor, alone, last)
    if found is None or len(found.aggregates) != 1:
        return None
    made = tuple(figure_of(function, found.aggregates[0].field) for function in functions)
    return Parsed(found.end, aggregates=made, named_at=found.named_at)


def _function(cursor: Cursor, i: int) -> str | None:
    """The "average" of a field that is named later."""
    words = (word for word in cursor.all(i, sense.FigureWord) if not word.kind)
    return next((word.function for word in words if word.function != "count"), None)


def is_earned(cursor: Cursor, field: Field) -> bool:
    return cursor.lexicon.is_kind(field, "turnover") and _measured(cursor, field, "sum")


def _count(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    at = cursor.past(i, sense.Filler, sense.ValueLink, most=2)
    if cursor.is_(at, sense.Different):
        named = cursor.take(cursor.after(at), sense.FieldRef)
        if named is None or cursor.many(named[0].field):
            return None
        made = figure_of("count", named[0].field.name, distinct=True)
        return Parsed(named[1], aggregates=(made,))
    end, records = cursor.after(at), cursor.is_(at, sense.ModelRef, sense.RelationRef)
    counted = None if records else cursor.number_named(at)
    if counted is not None:  # "how many seats are left" asks for what the records say
        return computed(end, "sum", counted) if _summed(cursor, counted, at) else Parsed(i)
    people = cursor.is_(at, sense.Unit) and not records
    if people and (living := cursor.field_of_kind("population")):
        return Parsed(end, mention=living)  # "how many people live in Texas"
    return _count_records(cursor, draft, i, at)


def _count_records(cursor: Cursor, draft: Parsed, i: int, at: int) -> Parsed:
    """ "how many", before the records or the related records at `at`."""
    related = None if cursor.is_(at, sense.ModelRef) else cursor.take(at, sense.RelationRef)
    if related is not None:
        return _count_related(cursor, i, related[0].relation, related[1])
    groups = _of_mention(cursor, draft, i)
    made = figure_of("count")
    orders = (Order(field=made.called, order="desc"),) if groups else ()
    return Parsed(i, aggregates=(made,), groups=groups, orders=orders)


def _count_related(cursor: Cursor, i: int, relation: str, end: int) -> Parsed:
    """The "patients" of "how many patients does each doctor have", asked of appointments: each
    counts once. Of several related records of each record there is no number."""
    known = cursor.lexicon.schema.relations[relation]
    if known.many:
        return Parsed(end).unplaced(range(i, end))
    # not the foreign key: it is also that of records which the identity may not see
    counted = f"{relation}.{known.key}"
    return Parsed(i, aggregates=(figure_of("count", counted, distinct=True),))


def _of_mention(cursor: Cursor, draft: Parsed, i: int) -> tuple[str, ...]:
    """The "grapes" of "grapes by number of wines"; `i` is the position after the figure."""
    figure = next((at for at in range(i) if cursor.after(at) == i), 0)
    text = draft.mention if draft.mention and draft.mention.kind == "text" else None
    alone = text and cursor.is_(figure - 1, sense.SortBy) and not draft.groups
    return (text.name,) if text and alone and not cursor.many(text) else ()


def _summed(cursor: Cursor, field: Field, i: int) -> bool:
    """ "how many hours did we work": return whether the question is about what several records did
    together. Seats and inhabitants are what each record has."""
    of_each = cursor.lexicon.is_kind(field, *OF_EACH)
    if of_each or not _measured(cursor, field, "sum") or _names_one(cursor, i):
        return False
    rest = range(i, len(cursor.tokens))
    figures = {one.function for at in rest for one in cursor.all(at, sense.FigureWord)}
    return figures == {"sum"} or (not figures and cursor.anywhere(sense.Auxiliary, since=i))


def _names_one(cursor: Cursor, i: int) -> bool:
    """Return whether a record is named by its title from this position on."""
    title, rest = cursor.lexicon.schema.title, range(i, len(cursor.tokens))
    return any(one.field.name == title for at in rest for one in cursor.all(at, sense.ValueRef))


def _asked(cursor: Cursor, i: int) -> Parsed | None:
    """ "what is the highest fee"; "the doctor with the highest fee" is a record."""
    at = cursor.past_one(cursor.after(i), sense.Filler)
    found = extreme(cursor, at) if cursor.is_(i, sense.AskedValue) else None
    return computed(found[2], OF_ORDER[found[1]], found[0]) if found else None


def extreme(cursor: Cursor, i: int) -> tuple[Field, sense.Sorting, int] | None:
    """ "highest payment amount": returns a number, its direction, and the position after it. Of
    what is "most borrowed" there is no date."""
    superlative = cursor.take(i, sense.Superlative)
    at = cursor.past_one(cursor.after(i), sense.Filler)
    places = (at, cursor.past_one(at, sense.ModelRef)) if superlative else ()
    at = next((one for one in places if cursor.is_(one, sense.FieldRef)), i)
    field = next(iter(cursor.fields(at)), None)
    if superlative is None or field is None or not _measured(cursor, field, "avg"):
        return None
    return field, superlative[0].order, cursor.after(at)


def _called_so(cursor: Cursor, i: int) -> Field | None:
    """Return the model's number field with the name that begins a figure of several words: "amount
    of", of payments with an amount."""
    if cursor.after(i) - i != 2:
        return None
    alone, _ = cursor.lexicon.meanings(cursor.tokens[i : i + 1], 0)
    named = (one.field for one in alone if isinstance(one, sense.FieldRef))
    own = (one for one in named if "." not in one.name and _measured(cursor, one, "sum"))
    return next(own, None)


def _of_records(cursor: Cursor, i: int, own: Field | None, model: int | None) -> Field | None:
    """ "total of paid invoices", "average payment": records that are sums of money themselves, in
    the place of a field. `model`: the position of their name, if it came before."""
    between = (sense.Filler, sense.ValueLink, sense.ValueRef)
    at = cursor.past(i, *between, most=len(cursor.tokens), unless=sense.ModelRef)
    named = model is not None or cursor.is_(at, sense.ModelRef)
    return own or cursor.lexicon.of_kind("turnover") if named else None


def of_kind(cursor: Cursor, i: int) -> Field | None:
    """Return the field whose figure a word requests by itself; a field with that name comes
    first."""
    kind = next((word.kind for word in cursor.all(i, sense.FigureWord) if word.kind), "")
    at = cursor.past(cursor.after(i), sense.ValueLink, sense.Filler)
    if not kind or _is_compared(cursor, at):
        return None  # "revenue over 500" is a condition
    called = cursor.fields(i)
    if not called:
        return cursor.lexicon.of_kind(kind)
    requested = i == 0 or cursor.is_(cursor.back(i), sense.AskedValue)
    fits = (one for one in called if cursor.lexicon.is_kind(one, kind))
    return next((one for one in fits if requested and _measured(cursor, one, "sum")), None)


def _is_compared(cursor: Cursor, i: int) -> bool:
    """Return whether a comparison or a number is here, and not the year of "revenue in 2025"."""
    in_year = cursor.is_(i - 1, when.BeforeYear) and not cursor.is_(i - 1, sense.ValueLink)
    number = cursor.number(i) is not None and not in_year
    return number or cursor.is_(i, sense.Compare, sense.Between)


def _measured(cursor: Cursor, field: Field, function: str) -> bool:
    """Return whether the field has values of which such a figure can be computed."""
    if cursor.many(field) or (cursor.is_key(field) and function in ("sum", "avg")):
        return False
    return field.kind in NUMBERS or (field.kind in TIMES and function in ("min", "max"))
