"""Rules for numbers of each group: "per category", "top 3 brands by revenue", "which brand has the
most products"."""

from __future__ import annotations

from dataclasses import replace

from groundhook.core.types.query_language import Aggregate, Order
from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.question import sense, when
from groundhook.handlers.db.question.cursor import NUMBERS, TIMES, Cursor
from groundhook.handlers.db.question.number_fields import rated
from groundhook.handlers.db.question.parsed import Parsed, figure_of
from groundhook.handlers.db.question.rules_figure import (
    NOT_SUMMED,
    computed,
    figure,
    is_earned,
    of_kind,
)

MOST = 1000  # groups


def ranked(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "top 3 brands by revenue", "top 5 cities by number of customers"."""
    if not cursor.is_(i, sense.Top):
        return None
    limit, at = cursor.whole(cursor.after(i), MOST) or (None, cursor.after(i))
    by, records = cursor.after(at), cursor.is_(at, sense.ModelRef, sense.ValueRef)
    groups = [] if records or not cursor.is_(by, sense.SortBy) else grouping(cursor, at)
    found = _ranking(cursor, cursor.after(by)) if groups else None
    if found is None or not found.aggregates:
        return None
    order = Order(field=found.aggregates[0].called, order="desc")
    return replace(found, orders=(order,), groups=tuple(groups), limit=limit)


def _ranking(cursor: Cursor, i: int) -> Parsed | None:
    """Return the figure by which groups are ranked."""
    paid = (one for one in cursor.fields(i) if is_earned(cursor, one))
    earned = of_kind(cursor, i) or next(paid, None)
    return computed(cursor.after(i), "sum", earned) if earned else figure(cursor, Parsed(), i)


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
    more, end = _second_grouping(cursor, cursor.after(at))
    if not draft.aggregates and _is_unclear(cursor, draft.mention, i):
        return Parsed(end).unplaced(range(i, end))
    made = () if draft.aggregates else (_counted_or_earned(cursor, draft.mention),)
    return Parsed(end, aggregates=made, groups=(*names, *more))


def rate_of_bound(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """The "per serving" of "under 400 calories per serving", which is reported: no field is known
    to be such a rate."""
    bounded = draft.last is not None and draft.pieces[-1].end == i
    number = bounded and draft.last is not None and isinstance(draft.last.value, (int, float))
    if not number or not cursor.is_(i, sense.Per) or cursor.anywhere(sense.FigureWord):
        return None
    end = cursor.after(cursor.past_one(cursor.after(i), sense.Filler))
    return Parsed(end).unplaced(range(i, end))


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


def _is_unclear(cursor: Cursor, mention: Field | None, i: int) -> bool:
    """ "damage per kind": return whether a number is named for each group of which nobody says
    whether it is summed."""
    number = mention is not None and mention.kind in NUMBERS and not is_earned(cursor, mention)
    return number and mention is not None and cursor.names(cursor.back(i), mention)


def _counted_or_earned(cursor: Cursor, mention: Field | None) -> Aggregate:
    """Return the figure of each group: the sum in "revenue by city", else the count."""
    earned = mention if mention and is_earned(cursor, mention) else None
    return figure_of("sum", earned.name) if earned else figure_of("count")


def grouping(cursor: Cursor, at: int) -> list[str]:
    """Return the groups that the words here name: a field, or related records; empty for other
    words."""
    related = cursor.all(at, sense.RelationRef)
    for field in cursor.fields(at):
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


def most(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "which brand has the most products", "which city bought the most bottles": the group with
    the most records, or with the greatest sum, or the fewest."""
    at = _past_group_verb(cursor, i)
    word = cursor.take(at, sense.Superlative)
    own = _asked_person(cursor) or draft.mention
    group = own or cursor.about.title
    made = _counted_most(cursor, word[1], own) if word else None
    if word is None or made is None or group is None or cursor.many(group):
        return None
    if group.kind in (*NUMBERS, *TIMES):
        return None
    return Parsed(
        cursor.after(word[1]),
        orders=(Order(field=made.called, order=word[0].order),),
        aggregates=(made,),
        groups=(group.name,) if own else tuple(_each(cursor, group)),
        limit=draft.limit or 1,
        named_at=at,
    )


def _asked_person(cursor: Cursor) -> Field | None:
    """The "customer" of "who bought the most bottles", asked of sales."""
    if cursor.lexicon.of_persons or not cursor.asks_who():
        return None
    texts = (one for one in cursor.lexicon.schema.visible if one.kind == "text")
    persons = cursor.lexicon.vocabulary.persons
    return next((one for one in texts if cursor.lexicon.mentions(one, persons)), None)


def _counted_most(cursor: Cursor, i: int, group: Field | None) -> Aggregate | None:
    """The "products" or the "bottles" of which a group has the most."""
    if cursor.is_(i, sense.ModelRef):
        return figure_of("count")
    asking = (cursor.after(at) for at in range(i) if cursor.is_(at, sense.QuestionWord))
    asked = group is not None and any(cursor.names(at, group) for at in asking)
    if not asked and group != _asked_person(cursor):
        return None
    field = cursor.named(i, ("integer",))
    counted = field and not cursor.lexicon.is_kind(field, *NOT_SUMMED)
    return figure_of("sum", field.name) if field and counted else None


def _past_group_verb(cursor: Cursor, i: int) -> int:
    """ "which brand makes the most products": the position after the verb behind the group."""
    verb = cursor.unknown(i) or cursor.is_(i, sense.Preposition, sense.NumberVerb)
    verb = verb or cursor.named(i, TIMES) is not None  # "bought", of a date
    if not verb or not cursor.is_(i - 1, sense.FieldRef, sense.RelationRef):
        return i
    return cursor.past_one(max(cursor.after(i), i + 1), when.Definite)
