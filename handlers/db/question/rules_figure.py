"""Rules for questions that request a number over records: "how many", "average price", "per
category"."""

from __future__ import annotations

from groundhook.handlers.db.question import sense, when
from groundhook.handlers.db.question.cursor import NUMBERS, TIMES, Cursor
from groundhook.handlers.db.question.number_fields import rated
from groundhook.handlers.db.question.parsed import Parsed, figure_of
from groundhook.handlers.db.question.rules_field import condition_on
from groundhook.handlers.db.schema import Field
from groundhook.host.core.types.query_language import Aggregate, Order

MOST = 1000  # groups
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
        return _extreme(cursor, i) or _most(cursor, draft, i)
    end, own = cursor.after(i), _called_so(cursor, i)
    if own is not None and (cursor.is_(end, sense.Compare, sense.Between) or cursor.number(end)):
        return condition_on(cursor, draft, own, end)  # "a total of 100"
    if not any(word.function == "count" for word in words):
        return _computed(cursor, draft, i, own)
    if own is None:
        return _count(cursor, end)
    note = f"{cursor.text(i, end)!r} was read as the sum of {own.name!r}"
    return Parsed(end, aggregates=(figure_of("sum", own.name),), notes=(note,))


def _computed(cursor: Cursor, draft: Parsed, i: int, own: Field | None) -> Parsed | None:
    """ "average price", "total of the fines", "revenue"; `own`: the field named by the first
    word."""
    words, end = cursor.all(i, sense.FigureWord), cursor.after(i)
    function = next((word for word in words if not word.kind), words[0]).function
    earned = None if cursor.is_(i - 1, sense.SortBy) else _of_kind(cursor, i)
    if earned is not None:
        return Parsed(end, aggregates=(figure_of(function, earned.name),))  # "revenue"
    at, model, named = _towards(cursor, end)
    if named is not None:
        return Parsed(cursor.after(at), aggregates=(figure_of(function, named.name),))
    if (field := _behind(cursor, at, function)) is not None:
        made = (figure_of(function, field.name),)
        return Parsed(cursor.after(at), aggregates=made, named_at=model)
    mention = draft.mention if not draft.aggregates else None  # "the price on average"
    for whole in (mention, _of_records(cursor, at, own, model)):
        if whole is not None and _measured(cursor, whole, function):
            return Parsed(end, aggregates=(figure_of(function, whole.name),))
    return _in_total(cursor, draft, i, at, function)


def _behind(cursor: Cursor, i: int, function: str) -> Field | None:
    """The "price" of "average price", which no number of its own follows."""
    if cursor.number(cursor.past(cursor.after(i), sense.ValueLink)) is not None:
        return None
    fields = (one.field for one in cursor.all(i, sense.FieldRef))
    return next((field for field in fields if _measured(cursor, field, function)), None)


def _towards(cursor: Cursor, at: int) -> tuple[int, int | None, Field | None]:
    """Skip the words between a figure and its field. Returns the position after them, the position
    of the model's name, and the field of a word that names both ("average revenue", "total amount
    of")."""
    model = None
    while cursor.is_(
        at, sense.Filler, sense.ValueLink, sense.FigureWord, sense.ModelRef
    ) and not cursor.is_(at, sense.FieldRef):
        if (named := _of_kind(cursor, at) or _called_so(cursor, at)) is not None:
            return at, model, named
        model = at if cursor.is_(at, sense.ModelRef) else model  # "average order value"
        at = cursor.after(at)
    return at, model, None


def _in_total(cursor: Cursor, draft: Parsed, i: int, at: int, function: str) -> Parsed | None:
    """ "… in total", "how much did customers from France spend", "how much was paid by card"."""
    end = cursor.after(i)
    rest = range(at, len(cursor.tokens))
    again = any(one.function == function for one in draft.aggregates)
    if again or (function == "sum" and any(_of_kind(cursor, place) for place in rest)):
        return Parsed(end)
    paid = cursor.lexicon.of_kind("turnover") if function == "sum" else None
    spoken = draft.aggregates or draft.named_at is not None or cursor.is_(i, sense.FieldRef)
    if paid is None or spoken:
        return None
    return Parsed(end, aggregates=(figure_of("sum", paid.name),))


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


def ranked(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "top 3 brands by revenue", "top 5 cities by number of customers"."""
    top = cursor.take(i, sense.Top)
    number = cursor.whole(top[1], MOST) if top else None
    at = number[1] if number else cursor.after(i)
    group = grouping(cursor, at) if top else []
    by = cursor.after(at)
    if (
        not group
        or cursor.is_(at, sense.ModelRef, sense.ValueRef)
        or not cursor.is_(by, sense.SortBy)
    ):
        return None
    found = _ranking(cursor, cursor.after(by))
    if found is None or not found.aggregates:
        return None
    order = Order(field=found.aggregates[0].called, order="desc")
    limit = number[0] if number else None
    return Parsed(
        found.end, orders=(order,), aggregates=found.aggregates, groups=tuple(group), limit=limit
    )


def _ranking(cursor: Cursor, i: int) -> Parsed | None:
    """Return the figure by which groups are ranked."""
    named = [one.field for one in cursor.all(i, sense.FieldRef)]
    paid = next((one for one in named if cursor.lexicon.is_kind(one, "turnover")), None)
    earned = _of_kind(cursor, i) or (paid if paid and _measured(cursor, paid, "sum") else None)
    if earned is None:
        return figure(cursor, Parsed(), i)
    return Parsed(cursor.after(i), aggregates=(figure_of("sum", earned.name),))


def grouped(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "per genre", "by city", "for each airline", "per status and country". A word that may also
    sort ("by") groups only if the question requests a number."""
    requested = cursor.anywhere(sense.FigureWord)
    ordered = cursor.anywhere(sense.OrderWord, sense.Superlative)
    # "the newest per author" is no number
    clear = not (ordered or cursor.is_(i, sense.SortBy, sense.Each))
    if not cursor.is_(i, sense.Per, sense.SortBy) or not (requested or clear):
        return None
    at = cursor.after(i)
    if not requested and cursor.is_(i - 1, sense.NumberVerb):
        return Parsed(cursor.after(at))  # "cost per night" is the name of a price
    at = at if cursor.is_(at, sense.FieldRef) else cursor.past_one(at, sense.Filler)
    names = grouping(cursor, at)
    if not names:
        return _rate(cursor, draft, i)
    made = () if draft.aggregates else (_counted_or_earned(cursor, draft.mention),)
    more, end = _second_grouping(cursor, cursor.after(at))
    return Parsed(end, aggregates=made, groups=(*names, *more))


def _rate(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """The "per month" of "the average salary per month", if that is what the salary is for."""
    rate = rated(cursor, i)
    fields = (cursor.lexicon.fields.get(one.field) for one in draft.aggregates)
    same = rate and any(field is not None and rate[0](field) for field in fields)
    return Parsed(rate[1]) if rate and same else None


def _second_grouping(cursor: Cursor, i: int) -> tuple[list[str], int]:
    """The "and country" of "per status and country", and the position after it."""
    at = cursor.past_one(cursor.joint(i), sense.Filler, sense.Per)
    other = cursor.is_(at, sense.ValueRef, sense.ModelRef, sense.FigureWord)
    names = [] if cursor.joint(i) == i or other else grouping(cursor, at)
    return names, cursor.after(at) if names else i


def _counted_or_earned(cursor: Cursor, mention: Field | None) -> Aggregate:
    """Return the figure of each group: the sum in "revenue by city", else the count."""
    earned = mention is not None and cursor.lexicon.is_kind(mention, "turnover")
    if mention is not None and earned and _measured(cursor, mention, "sum"):
        return figure_of("sum", mention.name)
    return figure_of("count")


def grouping(cursor: Cursor, at: int) -> list[str]:
    """Return the groups that the words here name: a field, or related records; empty for other
    words."""
    related = cursor.all(at, sense.RelationRef)
    for field in (one.field for one in cursor.all(at, sense.FieldRef)):
        key = related and cursor.is_key(field)  # "per hotel" is not the key of the hotel
        if not (key or field.kind == "number" or field.long or cursor.many(field)):
            return [field.name]
    titles = (one.title for one in related if one.title and not cursor.many(one.title))
    title = next(titles, None)
    return _each(cursor, title) if title else []


def _each(cursor: Cursor, title: Field) -> list[str]:
    """Return the fields that tell related records apart: two may have the same name."""
    relation = cursor.lexicon.schema.relations.get(title.name.rpartition(".")[0])
    return [title.name, *([relation.foreign] if relation else [])]


def _count(cursor: Cursor, i: int) -> Parsed | None:
    at = cursor.past(i, sense.Filler, sense.ValueLink, most=2)
    if different := cursor.take(at, sense.Different):
        named = cursor.take(different[1], sense.FieldRef)
        if named is None or cursor.many(named[0].field):
            return None
        made = figure_of("count", named[0].field.name, distinct=True)
        return Parsed(named[1], aggregates=(made,))
    counted = cursor.number_named(at)
    if counted is not None and not cursor.is_(at, sense.ModelRef, sense.RelationRef):
        if not _summed(cursor, counted, at):
            return Parsed(i)  # "how many seats are left" asks for what the records say
        return Parsed(cursor.after(at), aggregates=(figure_of("sum", counted.name),))
    people = cursor.is_(at, sense.Unit) and not cursor.is_(at, sense.ModelRef, sense.RelationRef)
    living = cursor.field_of_kind("population") if people else None
    if living is not None:
        return Parsed(cursor.after(at), mention=living)  # "how many people live in Texas"
    return Parsed(i, aggregates=(figure_of("count"),))


def _summed(cursor: Cursor, field: Field, i: int) -> bool:
    """ "how many hours did we work": return whether the question is about what several records did
    together. Seats and inhabitants are what each record has."""
    of_each = any(cursor.lexicon.is_kind(field, kind) for kind in OF_EACH)
    if of_each or not _measured(cursor, field, "sum") or _names_one(cursor, i):
        return False
    rest = range(i, len(cursor.tokens))
    figures = {one.function for at in rest for one in cursor.all(at, sense.FigureWord)}
    return figures == {"sum"} or (not figures and cursor.anywhere(sense.Auxiliary, since=i))


def _names_one(cursor: Cursor, i: int) -> bool:
    """Return whether a record is named by its title from this position on."""
    title, rest = cursor.lexicon.schema.title, range(i, len(cursor.tokens))
    return any(one.field.name == title for at in rest for one in cursor.all(at, sense.ValueRef))


def _extreme(cursor: Cursor, i: int) -> Parsed | None:
    """ "what is the highest fee"; "the doctor with the highest fee" is a record."""
    question_word = cursor.take(i, sense.AskedValue)
    at = cursor.past_one(question_word[1], sense.Filler) if question_word else i
    word = cursor.take(at, sense.Superlative) if question_word else None
    if word is None:
        return None
    at = cursor.past_one(word[1], sense.ModelRef)
    named = cursor.take(word[1], sense.FieldRef) or cursor.take(
        at, sense.FieldRef
    )  # "highest payment amount"
    if named is None or not _measured(cursor, named[0].field, "max"):
        return None
    made = figure_of(OF_ORDER[word[0].order], named[0].field.name)
    return Parsed(named[1], aggregates=(made,))


def _most(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "which brand has the most products", "which city bought the most bottles": the group with
    the most records, or with the greatest sum, or the fewest."""
    at = _past_group_verb(cursor, i)
    word = cursor.take(at, sense.Superlative)
    group = draft.mention or cursor.about.title
    made = _counted_most(cursor, word[1], draft.mention) if word else None
    if word is None or made is None or group is None or cursor.many(group):
        return None
    if group.kind in (*NUMBERS, *TIMES):
        return None
    return Parsed(
        cursor.after(word[1]),
        orders=(Order(field=made.called, order=word[0].order),),
        aggregates=(made,),
        groups=(group.name,) if draft.mention else tuple(_each(cursor, group)),
        limit=draft.limit or 1,
        named_at=at,
    )


def _counted_most(cursor: Cursor, i: int, group: Field | None) -> Aggregate | None:
    """The "products" or the "bottles" of which a group has the most."""
    if cursor.is_(i, sense.ModelRef):
        return figure_of("count")
    asking = (cursor.after(at) for at in range(i) if cursor.is_(at, sense.QuestionWord))
    if group is None or not any(cursor.names(at, group) for at in asking):
        return None
    field = cursor.number_named(i)
    if field is None or any(cursor.lexicon.is_kind(field, kind) for kind in NOT_SUMMED):
        return None
    return figure_of("sum", field.name) if field.kind == "integer" else None


def _past_group_verb(cursor: Cursor, i: int) -> int:
    """ "which brand makes the most products": the position after the verb behind the group."""
    verb = cursor.unknown(i) or cursor.is_(i, sense.Preposition, sense.NumberVerb)
    verb = verb or cursor.named(i, TIMES) is not None  # "bought", of a date
    if not verb or not cursor.is_(i - 1, sense.FieldRef, sense.RelationRef):
        return i
    return cursor.past_one(max(cursor.after(i), i + 1), when.Definite)


def _called_so(cursor: Cursor, i: int) -> Field | None:
    """Return the model's number field with the name that begins a figure of several words: "amount
    of", of payments with an amount."""
    alone, end = cursor.lexicon.meanings(cursor.tokens[i : i + 1], 0)
    if cursor.after(i) - i != 2 or not end:
        return None
    named = [one.field for one in alone if isinstance(one, sense.FieldRef)]
    return next(
        (field for field in named if _measured(cursor, field, "sum") and "." not in field.name),
        None,
    )


def _of_records(cursor: Cursor, i: int, own: Field | None, model: int | None) -> Field | None:
    """ "total of paid invoices", "average payment": records that are sums of money themselves, in
    the place of a field. `model`: the position of their name, if it came before."""
    while cursor.is_(i, sense.Filler, sense.ValueLink, sense.ValueRef) and not cursor.is_(
        i, sense.ModelRef
    ):
        i = cursor.after(i)
    named = model is not None or cursor.is_(i, sense.ModelRef)
    return own or cursor.lexicon.of_kind("turnover") if named else None


def _of_kind(cursor: Cursor, i: int) -> Field | None:
    """Return the field whose figure a word requests by itself; a field with that name comes
    first."""
    kind = next((word.kind for word in cursor.all(i, sense.FigureWord) if word.kind), "")
    if not kind or _is_compared(
        cursor, cursor.past(cursor.after(i), sense.ValueLink, sense.Filler)
    ):
        return None  # "revenue over 500" is a condition
    called = [one.field for one in cursor.all(i, sense.FieldRef)]
    if not called:
        return cursor.lexicon.of_kind(kind)
    requested = i == 0 or cursor.is_(cursor.back(i), sense.AskedValue)
    for field in called if requested else ():
        if cursor.lexicon.is_kind(field, kind) and _measured(cursor, field, "sum"):
            return field
    return None


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
