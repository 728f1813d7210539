"""QueryDSL: a query on one model as a value. Values stay data: they are never part of a statement's
text.

    {"model": "order", "select": ["number", "product.name"],
     "wheres": [{"field": "total", "op": ">", "value": 100}, {"or": [{"field": "city", "value":
     "Berlin"}, …]}], "orders": [{"field": "ordered_at", "order": "desc"}], "limit": 10}

    {"model": "order", "groups": ["product.brand"], "aggregates": [{"function": "sum", "field":
    "total", "as": "revenue"}],
     "orders": [{"field": "revenue"}]}

`column` is an alias of `field`. A field may belong to a related record, over at most two relations:
`product.brand.name`. The operators `null` and `not null` on a relation itself test whether related
records exist.

Three operators search all text fields at once; their field is `*` and their value a list of words
or phrases: `match` requires all of them, `match any` at least one, `match none` none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import AliasChoices, ConfigDict, ValidationError
from pydantic import Field as Setting

from groundhook.core.errors import SourceError
from groundhook.core.types.base import Few, Value, dotted, validate_known, validation_problems
from groundhook.core.types.query_language import (
    Aggregate,
    Order,
    Where,
    Wheres,
)
from groundhook.handlers.db.model.schema import Schema, route

EVERY_TEXT = "*"
MATCH, MATCH_ANY, MATCH_NONE = "match", "match any", "match none"
MATCHES = frozenset({MATCH, MATCH_ANY, MATCH_NONE})

PLAIN = ("=", "!=", ">", ">=", "<", "<=", "like", "in", "not in", "between", "null", "not null")
OPERATORS = (*PLAIN, MATCH, MATCH_ANY, MATCH_NONE)
SYNONYMS = {
    "": "=",
    "==": "=",
    "eq": "=",
    "<>": "!=",
    "ne": "!=",
    "neq": "!=",
    "gt": ">",
    "gte": ">=",
    "ge": ">=",
    "lt": "<",
    "lte": "<=",
    "le": "<=",
    "contains": "like",
    "nin": "not in",
    "notin": "not in",
    "is null": "null",
    "isnull": "null",
    "is not null": "not null",
    "notnull": "not null",
}
IS = {"is": "=", "is not": "!="}
LISTS = frozenset({"in", "not in", "between", *MATCHES})
ORDERED = frozenset({">", ">=", "<", "<=", "between"})
NULL_OPERATORS = frozenset({"null", "not null"})


class QueryDSL(Value):
    """One query on one model. With `aggregates` or `groups` the result is one row of figures per
    group instead of records."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, title="QueryDSL")

    model: str = Setting(description="The model's id")
    select: Few[tuple[str, ...]] = Setting(
        default=(), description="Fields to return; none: every visible field"
    )
    wheres: Wheres = Setting(default=(), description="Conditions, all of which must hold")
    groups: Few[tuple[str, ...]] = Setting(
        default=(),
        validation_alias=AliasChoices("groups", "group_by", "groupBy"),
        description="Fields to group by",
    )
    aggregates: Few[tuple[Aggregate, ...]] = Setting(
        default=(), description="Figures over all that match, or over each group"
    )
    orders: Few[tuple[Order, ...]] = Setting(
        default=(), description="Sort orders: fields, or names of aggregates"
    )
    limit: int | None = Setting(
        default=None, ge=1, description="Most rows; none: the caller's limit"
    )

    @property
    def computed(self) -> bool:
        """Whether the result is figures instead of records."""
        return bool(self.groups or self.aggregates)

    def wire(self) -> dict[str, Any]:
        """Return the query as JSON, without defaults."""
        values = self.model_dump(mode="json", by_alias=True, exclude={"wheres", "aggregates"})
        values["wheres"] = [where.wire() for where in self.wheres]
        values["aggregates"] = [
            one.model_dump(mode="json", by_alias=True, exclude_defaults=True)
            for one in self.aggregates
        ]
        order = ("model", "select", "wheres", "groups", "aggregates", "orders", "limit")
        return {key: values[key] for key in order if key == "model" or values[key]}


def parse(raw: Mapping[str, Any]) -> QueryDSL:
    """Parse a query from JSON. Raises SourceError that names the key."""
    try:
        dsl, unknown = validate_known(QueryDSL, raw)
    except ValidationError as exc:
        path, message = validation_problems(exc)[0]
        raise SourceError(f"the query's {dotted(path)!r}: {message}") from exc
    if unknown:
        raise SourceError(f"the query has an {unknown[0]}")
    return dsl


def conditions(wheres: Sequence[Where]) -> Iterator[Where]:
    """Yield the conditions on fields, also those inside groups."""
    for where in wheres:
        if where.group is None:
            yield where
        else:
            yield from conditions(where.group)


def models_of(dsl: QueryDSL, schemas: Mapping[str, Schema]) -> list[str]:
    """Return the models that a query reads: its own, and those of the relations in its names."""
    names = [
        *dsl.select,
        *dsl.groups,
        *(order.field for order in dsl.orders),
        *(one.field for one in dsl.aggregates),
    ]
    names += [where.field for where in conditions(dsl.wheres)]
    routes = [route(schemas[dsl.model], name, schemas) for name in names if name != EVERY_TEXT]
    return list(
        dict.fromkeys(
            [dsl.model, *(hop.model for one in routes if one is not None for hop in one.hops)]
        )
    )


def normalize_operator(op: str) -> str | None:
    """Return the canonical spelling of an operator; None if it is unknown. `is` and `is not` become
    `=` and `!=`."""
    text = " ".join(op.lower().replace("_", " ").split())
    canonical = IS.get(text) or SYNONYMS.get(text, text)
    return canonical if canonical in OPERATORS else None
