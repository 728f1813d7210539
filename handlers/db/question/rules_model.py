"""Rules for the names of models: the model's own ("order 1042") and those of related models
("invoices of customer 42")."""

from __future__ import annotations

from dataclasses import replace

from groundhook.handlers.db.question import sense, when
from groundhook.handlers.db.question.cursor import Cursor
from groundhook.handlers.db.question.parsed import About, Parsed
from groundhook.host.core.types.query_language import Where

AFTER_A_RECORD = (
    sense.Filler,
    sense.And,
    sense.Or,
    sense.ValueLink,
    sense.Compare,
    sense.Between,
    when.DateRelation,
    when.Period,
)


def named(cursor: Cursor, _: Parsed, i: int) -> Parsed | None:
    """The model's name; a singular with a number after it is one record: "order 1042"."""
    model = cursor.take(i, sense.ModelRef)
    if model is None or corrected(cursor, i, model[1]):
        return None
    last, schema = cursor.tokens[model[1] - 1].norm, cursor.lexicon.schema
    singular = cursor.lexicon.vocabulary.stem(last) == last
    # In "customer orders" the second name is the model that the question wants.
    aside = (singular and cursor.is_(model[1], sense.RelationRef, sense.OtherModel)) or (
        i > 0 and cursor.is_(i - 1, sense.Per, sense.SortBy)
    )
    at = None if aside else i
    found = Parsed(model[1], named_at=at, singular=singular, about=About("", cursor.about.title))
    return _numbered(cursor, found, schema.key)


def _numbered(cursor: Cursor, found: Parsed, key: str) -> Parsed:
    """The name with the number of a record after it: "order 1042", "invoices of customer 42"."""
    number = _record_number(cursor, found.end)
    if number is None or cursor.lexicon.schema.fields[key].kind != "integer":
        return found
    return replace(found, end=number[1], wheres=(Where(field=key, value=number[0]),))


def _record_number(cursor: Cursor, i: int) -> tuple[int, int] | None:
    """Return the number of one record after the singular of its model's name, and the position
    after it."""
    last, number = cursor.tokens[i - 1].norm, cursor.whole(i, 10**12)
    if (
        number is None
        or cursor.lexicon.vocabulary.stem(last) != last
        or cursor.tokens[i].kind != "number"
    ):
        return None
    return number if cursor.ended(number[1]) or cursor.is_(number[1], *AFTER_A_RECORD) else None


def related(cursor: Cursor, _: Parsed, i: int) -> Parsed | None:
    """The name of a related model: it becomes the current topic. A singular with a number after it
    is one record: "invoices of customer 42"."""
    relation = cursor.take(i, sense.RelationRef)
    if relation is None or corrected(cursor, i, relation[1]):
        return None
    found = Parsed(relation[1], about=About(relation[0].relation, relation[0].title))
    known = cursor.lexicon.schema.relations[relation[0].relation]
    return found if known.many else _numbered(cursor, found, known.foreign)


def corrected(cursor: Cursor, start: int, end: int) -> bool:
    """Return whether a misspelt word was corrected to one that changes nothing: it is searched for
    instead. The name of a model does change something."""
    root = cursor.lexicon.vocabulary.root
    wrong = any(
        root(cursor.tokens[i].norm) != root(cursor.typed[i].norm) for i in range(start, end)
    )
    return wrong and not cursor.is_(start, sense.ModelRef)
