"""The JSON Schema of a model's answer, made of the tables that it is shown: one alternative for
each table, with the names of its own fields. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from groundhook.core.types.query_language import BucketUnit, Function
from groundhook.core.types.uses import list_of, object_of
from groundhook.handlers.db.by_model.offered import Offered, OfferedTable
from groundhook.handlers.db.query.dsl import COMPARISONS, PLAIN

MOST_NAMES = 400  # in all tables; endpoints refuse longer schemas, or take long to prepare them
MOST_READINGS = 3

_TEXT = {"type": "string"}
_PLAIN_VALUE = {"type": ["string", "number", "boolean", "null"]}
_VALUE = {"anyOf": [_PLAIN_VALUE, {"type": "array", "items": _PLAIN_VALUE}]}


def answer_schema(offered: Offered) -> dict[str, Any]:
    """Return the schema of an answer: a query, a refusal, or a question back."""
    tables = [table for table in offered.tables if table.searched]
    names = {table.schema.id: _paths(table, offered) for table in tables}
    whole = sum(map(len, names.values())) <= MOST_NAMES
    queries = [_query(table, names[table.schema.id] if whole else []) for table in tables]
    query = queries[0] if len(queries) == 1 else {"anyOf": queries}
    return {
        "type": "object",
        "properties": {
            "query": {"$ref": "#/$defs/query"},
            "unused": {"type": "array", "items": _TEXT},
            "cannot": _TEXT,
            "ask": _TEXT,
            "readings": {
                "type": "array",
                "items": {"$ref": "#/$defs/query"},
                "maxItems": MOST_READINGS,
            },
        },
        "additionalProperties": False,
        "$defs": {"query": query},
    }


def _paths(table: OfferedTable, offered: Offered) -> list[str]:
    """Return the names of a table's fields, and those of related records as paths."""
    own = [one.name for one in table.fields]
    for relation in table.schema.relations.values():
        own.append(relation.name)
        there = offered.table(relation.model)
        own += [f"{relation.name}.{one.name}" for one in there.fields] if there else []
    return own


def _query(table: OfferedTable, names: Sequence[str]) -> dict[str, Any]:
    field = {"type": "string", "enum": list(names)} if names else _TEXT
    relations = list(table.schema.relations)
    where = _where(field, object_of(field=field), relations)
    figure = object_of(
        function={"type": "string", "enum": list(get_args(Function))},
        field={"type": "string"},
        may={"as": _TEXT, "distinct": {"type": "boolean"}},
    )
    bucket = object_of(field=field, by={"type": "string", "enum": list(get_args(BucketUnit))})
    order = object_of(field=_TEXT, order={"type": "string", "enum": ["asc", "desc"]})
    having = object_of(field=_TEXT, op={"type": "string", "enum": list(COMPARISONS)}, value=_VALUE)
    return object_of(
        model={"type": "string", "enum": [table.schema.id]},
        may={
            "select": list_of(field),
            "wheres": list_of({"anyOf": [*where, object_of(**{"or": list_of({"anyOf": where})})]}),
            "groups": list_of({"anyOf": [field, bucket]}),
            "aggregates": list_of(figure),
            "havings": list_of(having),
            "orders": list_of(order),
            "limit": {"type": "integer"},
            "offset": {"type": "integer"},
            "distinct": {"type": "boolean"},
            "ties": {"type": "boolean"},
        },
    )


def _where(
    field: dict[str, Any], other: dict[str, Any], relations: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the forms of one condition. Conditions on related records name fields of another
    table, which are not listed a second time."""
    compared = {"type": "string", "enum": list(COMPARISONS)}
    op = {"type": "string", "enum": list(PLAIN)}
    figure = object_of(
        function={"type": "string", "enum": list(get_args(Function))},
        field=_TEXT,
        may={"model": _TEXT},
    )
    found = [
        object_of(field=field, op=op, may={"value": _VALUE}),
        object_of(field=field, op=compared, other={"anyOf": [other, figure]}),
    ]
    if relations:
        inner = object_of(field=_TEXT, op=op, may={"value": _VALUE})
        found.append(
            object_of(
                related={"type": "string", "enum": list(relations)},
                may={
                    "wheres": list_of(inner),
                    "none": {"type": "boolean"},
                    "all": {"type": "boolean"},
                    "count": {"type": "object", "additionalProperties": {"type": "integer"}},
                },
            )
        )
    return found
