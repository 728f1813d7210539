"""QueryDSL: a query on one model as a value. Values are data for ever: nothing behind it turns one
into the text of a statement.

    {"model": "order", "select": ["number", "product.name"],
     "wheres": [{"field": "total", "op": ">", "value": 100}, {"or": [{"field": "city", "value":
     "Berlin"}, …]}], "orders": [{"field": "ordered_at", "order": "desc"}], "limit": 10}

    {"model": "order", "groups": ["product.brand"], "aggregates": [{"function": "sum", "field":
    "total", "as": "revenue"}],
     "orders": [{"field": "revenue"}]}

`column` may be said for `field`. A field may be one of a related record, over at most two
relations: `product.brand.name`. The conditions `null` and `not null` on a relation itself ask
whether there are related records.

Three conditions look into every text field at once; their field is `*` and their value a list of
words or phrases: `match` wants all of them, `match any` at least one, `match none` none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import AliasChoices, ConfigDict, ValidationError
from pydantic import Field as Setting

from groundhook.handlers.db.schema import Schema, route
from groundhook.host.core.errors import SourceError
from groundhook.host.core.types.base import Few, Value, dotted, problems, read
from groundhook.host.core.types.search import Aggregate, Order, Where, Wheres

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
NOTHING = frozenset({"null", "not null"})


class QueryDSL(Value):
    """One query on one model. With `aggregates` or `groups` the answer is figures, one row a group,
    instead of records."""

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
        """Whether the answer is figures rather than records."""
        return bool(self.groups or self.aggregates)

    def wire(self) -> dict[str, Any]:
        """As JSON, without what was not said."""
        said = self.model_dump(mode="json", by_alias=True, exclude={"wheres", "aggregates"})
        said["wheres"] = [where.wire() for where in self.wheres]
        said["aggregates"] = [
            one.model_dump(mode="json", by_alias=True, exclude_defaults=True)
            for one in self.aggregates
        ]
        order = ("model", "select", "wheres", "groups", "aggregates", "orders", "limit")
        return {key: said[key] for key in order if key == "model" or said[key]}


def parse(raw: Mapping[str, Any]) -> QueryDSL:
    """A query that came from outside as JSON. Raises SourceError that names the key."""
    try:
        dsl, unknown = read(QueryDSL, raw)
    except ValidationError as exc:
        path, message = problems(exc)[0]
        raise SourceError(f"the query's {dotted(path)!r}: {message}") from exc
    if unknown:
        raise SourceError(f"the query has an {unknown[0]}")
    return dsl


def conditions(wheres: Sequence[Where]) -> Iterator[Where]:
    """The conditions on fields, out of their groups."""
    for where in wheres:
        if where.group is None:
            yield where
        else:
            yield from conditions(where.group)


def reached(dsl: QueryDSL, schemas: Mapping[str, Schema]) -> list[str]:
    """The models that a query reads: its own, and those that its names lead over."""
    names = [
        *dsl.select,
        *dsl.groups,
        *(order.field for order in dsl.orders),
        *(one.field for one in dsl.aggregates),
    ]
    names += [where.field for where in conditions(dsl.wheres)]
    found = [route(schemas[dsl.model], name, schemas) for name in names if name != EVERY_TEXT]
    return list(
        dict.fromkeys(
            [dsl.model, *(hop.model for one in found if one is not None for hop in one.hops)]
        )
    )


def operator(op: str) -> str | None:
    """The one spelling of an operator; None for one that is not known. `is` and `is not` become `=`
    and `!=`."""
    said = " ".join(op.lower().replace("_", " ").split())
    found = IS.get(said) or SYNONYMS.get(said, said)
    return found if found in OPERATORS else None
