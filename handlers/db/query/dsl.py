"""QueryDSL: a query on one model as a value. Values stay data: they are never part of a statement's
text.

    {"model": "order", "select": ["number", "product.name"],
     "wheres": [{"field": "total", "op": ">", "value": 100}, {"or": [{"field": "city", "value":
     "Berlin"}, …]}], "orders": [{"field": "ordered_at", "order": "desc"}], "limit": 10}

    {"model": "order", "groups": ["product.brand", {"field": "ordered_at", "by": "month"}],
     "aggregates": [{"function": "sum", "field": "total", "as": "revenue"}],
     "havings": [{"field": "revenue", "op": ">", "value": 1000}], "orders": [{"field": "revenue"}]}

    {"model": "customer", "wheres": [
      {"related": "orders", "wheres": [{"field": "shipped_at", "op": ">", "other": {"field":
       "promised_at"}}], "count": {">": 6}},
      {"field": "credit", "op": ">", "other": {"function": "avg", "field": "credit"}}]}

`column` is an alias of `field`. A field may belong to a related record, over at most two relations:
`product.brand.name`. The operators `null` and `not null` on a relation itself test whether related
records exist.

Three operators search all text fields at once; their field is `*` and their value a list of words
or phrases: `match` requires all of them, `match any` at least one, `match none` none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import AliasChoices, ConfigDict, ValidationError, model_validator
from pydantic import Field as Setting

from groundhook.core.errors import SourceError
from groundhook.core.types.base import Few, Value, dotted, validate_known, validation_problems
from groundhook.core.types.query_language import (
    Aggregate,
    Group,
    Order,
    Where,
    Wheres,
    group_field,
)
from groundhook.handlers.db.model.schema import Schema, full_id, route

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
COMPARISONS = ("=", "!=", ">", ">=", "<", "<=")
MAX_OFFSET = 1_000_000


class QueryDSL(Value):
    """One query on one model. With `aggregates` or `groups` the result is one row of figures per
    group instead of records."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, title="QueryDSL")

    model: str = Setting(description="The model's id")
    select: Few[tuple[str, ...]] = Setting(
        default=(), description="Fields to return; none: every visible field"
    )
    wheres: Wheres = Setting(default=(), description="Conditions, all of which must hold")
    distinct: bool = Setting(
        default=False,
        description="Different combinations of the fields in `select`, as `groups` gives them",
    )
    groups: Few[tuple[Group, ...]] = Setting(
        default=(),
        validation_alias=AliasChoices("groups", "group_by", "groupBy"),
        description="Fields to group by, or parts of dates",
    )
    aggregates: Few[tuple[Aggregate, ...]] = Setting(
        default=(), description="Figures over all that match, or over each group"
    )
    havings: Wheres = Setting(
        default=(), description="Conditions on figures of each group, by the names of aggregates"
    )
    orders: Few[tuple[Order, ...]] = Setting(
        default=(),
        description=(
            "Sort orders: fields, or names of aggregates. Without any, groups are sorted by the"
            " first figure, descending; parts of dates in order of time"
        ),
    )
    limit: int | None = Setting(
        default=None, ge=1, description="Most rows; none: the caller's limit"
    )
    ties: bool = Setting(
        default=False,
        description="Also return the rows beyond the limit that equal its last one in `orders`",
    )
    offset: int = Setting(default=0, ge=0, le=MAX_OFFSET, description="Rows to skip")

    @model_validator(mode="before")
    @classmethod
    def _group_distinct(cls, raw: Any) -> Any:
        """Turn `distinct` into the groups that it means."""
        if not isinstance(raw, Mapping) or raw.get("distinct") is not True:
            return raw
        grouped = any(raw.get(key) for key in ("groups", "group_by", "groupBy", "aggregates"))
        if grouped or not raw.get("select"):
            raise ValueError(
                "'distinct' needs the fields in 'select', and neither 'groups' nor 'aggregates'"
            )
        return {**raw, "distinct": False, "groups": raw["select"], "select": ()}

    @property
    def computed(self) -> bool:
        """Whether the result is figures instead of records."""
        return bool(self.groups or self.aggregates)

    def wire(self) -> dict[str, Any]:
        """Return the query as JSON, without defaults."""
        lists = {"wheres", "havings", "aggregates", "groups"}
        values = self.model_dump(mode="json", by_alias=True, exclude=lists)
        values["wheres"] = [where.wire() for where in self.wheres]
        values["havings"] = [having.wire() for having in self.havings]
        for name, parts in (("aggregates", self.aggregates), ("groups", self.groups)):
            values[name] = [
                one
                if isinstance(one, str)
                else one.model_dump(mode="json", by_alias=True, exclude_defaults=True)
                for one in parts
            ]
        order = (
            *("model", "select", "wheres", "groups", "aggregates", "havings", "orders"),
            *("limit", "ties", "offset"),
        )
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
    """Yield the conditions on fields and on related records, also those inside groups; not the
    conditions that related records meet."""
    for where in wheres:
        if where.group is None:
            yield where
        else:
            yield from conditions(where.group)


def models_of(dsl: QueryDSL, schemas: Mapping[str, Schema]) -> list[str]:
    """Return the models that a query reads: its own, those of the relations in its names, and those
    of its conditions on related records and of the figures that it compares with."""
    here = schemas[dsl.model]
    names = [
        *dsl.select,
        *map(group_field, dsl.groups),
        *(order.field for order in dsl.orders),
        *(one.field for one in dsl.aggregates),
    ]
    found = [model for name in names for model in _models_on_the_way(here, name, schemas)]
    return list(dict.fromkeys([dsl.model, *found, *_models_read(here, dsl.wheres, schemas)]))


def _models_read(
    here: Schema, wheres: Sequence[Where], schemas: Mapping[str, Schema]
) -> Iterator[str]:
    """Yield the models that conditions on records of `here` read."""
    for where in conditions(wheres):
        yield from _models_on_the_way(here, where.name, schemas)
        if where.related:
            reached = route(here, where.related, schemas)
            if reached is not None:
                yield from _models_read(reached.schema, where.all_of or (), schemas)
        if where.other is not None:
            other = where.other
            there = schemas.get(model_named(here, other.model, schemas))
            if there is not None:
                yield there.id
                yield from _models_on_the_way(there, other.field, schemas)
                yield from _models_read(there, other.wheres, schemas)


def _models_on_the_way(here: Schema, name: str, schemas: Mapping[str, Schema]) -> Iterator[str]:
    found = route(here, name, schemas) if name and name != EVERY_TEXT else None
    if found is not None:
        yield from (model for hop in found.hops for model in hop.models)


def model_named(here: Schema, name: str, schemas: Mapping[str, Schema]) -> str:
    """Return the full id of a model that a query on `here` names: one of the same assistant first;
    `here` itself without a name."""
    return full_id(here.id, name, schemas) if name else here.id


def normalize_operator(op: str) -> str | None:
    """Return the canonical spelling of an operator; None if it is unknown. `is` and `is not` become
    `=` and `!=`."""
    text = " ".join(op.lower().replace("_", " ").split())
    canonical = IS.get(text) or SYNONYMS.get(text, text)
    return canonical if canonical in OPERATORS else None
