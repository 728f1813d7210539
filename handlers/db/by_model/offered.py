"""What a language model is shown of the models of a database: a bounded part of what the identity
may see. Pure.

`schemas` has every model that the identity may see, without hidden columns and without relations to
others: queries of the model are linted against it, so that a name outside it does not exist for the
model. `tables` are those that the prompt shows, with the fields that fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from groundhook.handlers.db.model.schema import Field, Schema
from groundhook.handlers.db.question.question import TokenizedQuestion
from groundhook.handlers.db.question.scope import OfferedModel, QuestionScope
from groundhook.handlers.db.question.values import NamedValues

MOST_TABLES = 8
MOST_FIELDS = 24  # of one table
MOST_EXAMPLES = 3  # values of a field
LONGEST_EXAMPLE = 40  # characters
MOST_VALUES = 16  # of the question
LONGEST_NAME = 4  # words


@dataclass(frozen=True)
class OfferedTable:
    """A table of the prompt. `examples` are values of its fields, as JSON; `searched`: queries may
    be of its records, not only go through them; `rows` is their number, "" where it is not
    known."""

    schema: Schema
    fields: tuple[Field, ...]
    examples: Mapping[str, Sequence[Any]]
    searched: bool
    rows: str = ""

    @property
    def omitted(self) -> int:
        """The number of fields that are not shown."""
        return len(self.schema.fields) - len(self.fields)


@dataclass(frozen=True)
class Offered:
    """The tables of a prompt, all models that queries may name, and the values in the question as
    (path, value)."""

    tables: tuple[OfferedTable, ...]
    schemas: Mapping[str, Schema]
    searched: tuple[str, ...]
    values: tuple[tuple[str, str], ...] = ()

    def table(self, model: str) -> OfferedTable | None:
        return next((each for each in self.tables if each.schema.id == model), None)


@dataclass
class _Ranked:
    offer: OfferedModel
    scope: QuestionScope
    score: int = 0
    named: set[str] = field(default_factory=set)  # fields that the question names
    values: list[tuple[str, str]] = field(default_factory=list)


def choose(
    question: TokenizedQuestion, offers: Sequence[OfferedModel], scopes: Sequence[QuestionScope]
) -> Offered:
    """Return what a model is shown for a question: all tables and fields if they are few, else
    those that the question names first. Examples of other than short texts are added by
    `with_rows`."""
    ranked = [_rank(question, offer, scope) for offer, scope in zip(offers, scopes, strict=True)]
    chosen = ranked
    if len(ranked) > MOST_TABLES:
        best = sorted(ranked, key=lambda each: -each.score)[: MOST_TABLES - 2]
        chosen = [each for each in ranked if each in best]
    visible = {offer.schema.id: offer for offer in (*_related(offers), *offers)}
    schemas = {id: _without_hidden(offer, visible) for id, offer in visible.items()}
    named = {each.offer.schema.id: each.named for each in chosen}
    on_the_way = [one.schema.id for one in _related([each.offer for each in chosen])]
    searched = tuple(offer.schema.id for offer in offers)
    tables = (
        _table(schemas[id], visible[id], named.get(id, set()), searched=id in searched)
        for id in list(dict.fromkeys([*named, *on_the_way]))[:MOST_TABLES]
    )
    values = dict.fromkeys(value for each in chosen for value in each.values)
    return Offered(tuple(tables), schemas, searched, tuple(values)[:MOST_VALUES])


def _related(offers: Sequence[OfferedModel]) -> list[OfferedModel]:
    return [related for offer in offers for related in offer.related.values()]


def with_rows(offered: Offered, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> Offered:
    """Return the same with examples from a few rows of each table, for fields without any."""
    tables = (
        replace(each, examples=_examples_of(each, rows.get(each.schema.id, ())))
        for each in offered.tables
    )
    return replace(offered, tables=tuple(tables))


def _examples_of(
    table: OfferedTable, rows: Sequence[Mapping[str, Any]]
) -> dict[str, Sequence[Any]]:
    found = dict(table.examples)
    for one in table.fields:
        if one.name not in found and not one.long and one.kind != "json":
            values = (row.get(one.name) for row in rows)
            found[one.name] = list(dict.fromkeys(v for v in values if v not in (None, "")))
    return found


def _rank(question: TokenizedQuestion, offer: OfferedModel, scope: QuestionScope) -> _Ranked:
    """Rate how much of the question names the model, its fields and its values."""
    ranked = _Ranked(offer, scope)
    for i in range(len(question)):
        for end in range(i + 1, min(len(question), i + LONGEST_NAME) + 1):
            stems = question.stems(i, end)
            ranked.score += 4 * (stems in scope.nouns)
            for one in scope.fields.get(stems, ()):
                ranked.score += 2
                ranked.named.add(one.name)
    for each in (scope, *scope.related.values()):
        for found in NamedValues.of(question, each).at.values():
            for value in found:
                if value.free or value.exact:
                    ranked.score += 3 if each is scope else 1
                    ranked.named.add(value.field.name)
                    path = f"{offer.schema.id}: {value.field.name}"
                    ranked.values += [(path, spelling) for spelling in value.spellings[:2]]
    return ranked


def _without_hidden(offer: OfferedModel, visible: Mapping[str, OfferedModel]) -> Schema:
    """Return the schema of a model without hidden fields, and without relations to models that the
    identity may not see."""
    schema = offer.schema
    return replace(
        schema,
        fields={one.name: one for one in schema.visible},
        relations={
            name: relation
            for name, relation in schema.relations.items()
            if name in offer.related or all(model in visible for model in relation.models)
        },
    )


def _table(schema: Schema, offer: OfferedModel, named: set[str], *, searched: bool) -> OfferedTable:
    fields = list(schema.fields.values())
    if len(fields) > MOST_FIELDS:
        links = {relation.foreign for relation in schema.relations.values()}
        first = named | {*schema.keys, schema.title, *schema.title_fields} | links
        ranked = sorted(fields, key=lambda one: (one.name not in named, one.name not in first))
        kept = ranked[:MOST_FIELDS]
        fields = [one for one in fields if one in kept]
    counts = {one.name: offer.samples.get(one.name, {}) for one in fields}
    examples = {
        name: sorted(values, key=lambda value: (-values[value], value))[:MOST_EXAMPLES]
        for name, values in counts.items()
        if values
    }
    rows = max((sum(values.values()) for values in counts.values()), default=0)
    return OfferedTable(schema, tuple(fields), examples, searched, _count(rows))


def _count(rows: int) -> str:
    if not rows:
        return ""
    return f"{rows} rows" if rows < 5000 else "5000 rows or more"
