"""Queries in the dialect of other packages, in the form that `handlers.db.query.dsl` parses. Pure.

    {"from": "orders as o", "select": ["status", ":COUNT(id) as total"], "groups": "status",
     "wheres": [{":price": "Price", ">": 100}], "orders": [{"field": "total", "sort": "desc"}]}

is

    {"model": "orders", "groups": ["status"], "aggregates": [{"function": "count", "field": "id",
     "as": "total"}], "wheres": [{"field": "price", "op": ">", "value": 100}],
     "orders": [{"field": "total", "order": "desc"}]}

Unknown parts stay as they are, for the linter to report.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_FUNCTION = re.compile(
    r"^:?\s*(?P<function>count|sum|avg|min|max)\s*\(\s*(?P<distinct>distinct\s+)?(?P<field>\*|[\w.]+)"
    r"\s*\)(?:\s+(?:as\s+)?(?P<name>\w+))?$",
    re.IGNORECASE,
)
_NAMED = re.compile(r"^(?P<field>[\w.]+)(?:\s+as\s+\w+)?$", re.IGNORECASE)
# What is between two commas outside of brackets.
_PART = re.compile(r"(?>(?:[^,(]++|\([^)]*+\)?+)+)")
_GROUPS = ("or", "and", "wheres")
_CONDITION = {
    *("field", "column", "op", "value", "any_of", "all_of", "comment"),
    *("related", "count", "none", "all", "every", "other"),
    *_GROUPS,
}
_DIRECTIONS = ("sort", "option", "direction")


def translate(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a query with the names and forms of `QueryDSL`."""
    query = _name_model(raw)
    aggregates: list[Any] = list(query.get("aggregates") or ())
    if isinstance(query.get("select"), (list, str)):
        query["select"] = _select_fields(_list(query["select"]), aggregates)
    if "groups" in query:
        query["groups"] = [_translate_group(each) for each in _list(query["groups"])]
    if "orders" in query:
        query["orders"] = [_translate_order(each, aggregates) for each in _list(query["orders"])]
    if isinstance(query.get("wheres"), list):
        query["wheres"] = [_translate_where(each) for each in query["wheres"]]
    if isinstance(query.get("havings"), list):
        query["havings"] = [_translate_having(each, aggregates) for each in query["havings"]]
    if aggregates:
        query.update(aggregates=aggregates, select=_without_groups(query))
    if isinstance(query.get("limit"), str) and query["limit"].isdecimal():
        query["limit"] = int(query["limit"])
    return query


def _without_groups(query: Mapping[str, Any]) -> list[Any]:
    """Return the selected fields that the query does not group by."""
    groups = query.get("groups") or ()
    return [field for field in query.get("select") or () if field not in groups]


def _name_model(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the query with `model` instead of `from` or `table`; an alias is dropped."""
    query = dict(raw)
    source = query.pop("from", None) or query.pop("table", None)
    if isinstance(source, str) and source.strip() and not query.get("model"):
        query["model"] = source.split()[0]
    return query


def _list(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [part.strip() for part in _PART.findall(value) if part.strip()]
    return value if isinstance(value, list) else [value]


def _select_fields(entries: list[Any], aggregates: list[Any]) -> list[Any]:
    """Return the plain fields; add those that are functions to `aggregates`."""
    fields = []
    for entry in entries:
        figure = _parse_aggregate(entry)
        if figure is not None:
            if figure not in aggregates:
                aggregates.append(figure)
        elif entry != "*":
            fields.append(_name_field(entry))
    return fields


def _parse_aggregate(entry: Any) -> dict[str, Any] | None:
    found = _FUNCTION.match(entry.strip()) if isinstance(entry, str) else None
    if found is None:
        return None
    figure: dict[str, Any] = {"function": found["function"].lower(), "field": found["field"]}
    if found["distinct"]:
        figure["distinct"] = True
    if found["name"]:
        figure["as"] = found["name"]
    return figure


def _name_field(entry: Any) -> Any:
    if isinstance(entry, Mapping):
        entry = entry.get("field", entry.get("column", entry))
    found = _NAMED.match(entry.strip()) if isinstance(entry, str) else None
    return found["field"] if found else entry


def _translate_group(entry: Any) -> Any:
    """Return a field to group by, or a part of a date: that of `{"field": …, "by": "month"}`."""
    return entry if isinstance(entry, Mapping) and "by" in entry else _name_field(entry)


def _translate_order(entry: Any, aggregates: list[Any]) -> Any:
    if isinstance(entry, str):
        if not entry.strip():
            return entry
        *before, last = entry.split()
        field, order = entry.strip(), "asc"
        if before and last.lower() in ("asc", "desc"):
            field, order = field[: -len(last)].rstrip(), last.lower()
        return {"field": _name_order(field, aggregates), "order": order}
    if not isinstance(entry, Mapping):
        return entry
    made = {key: value for key, value in entry.items() if key not in _DIRECTIONS}
    given = next((entry[key] for key in _DIRECTIONS if key in entry), None)
    if given is not None and "order" not in made:
        made["order"] = given
    if isinstance(made.get("order"), str):
        made["order"] = made["order"].lower()
    if isinstance(made.get("field"), str):
        made["field"] = _name_order(made["field"], aggregates)
    return made


def _name_order(field: str, aggregates: list[Any]) -> str:
    """Return the name to sort by: that of an aggregate where the field is written as one."""
    figure = _parse_aggregate(field)
    if figure is None:
        return field
    same = ("function", "field", "distinct")
    for known in aggregates:
        if all(known.get(key) == figure.get(key) for key in same):
            return _name_aggregate(known)
    aggregates.append(figure)
    return _name_aggregate(figure)


def _name_aggregate(figure: Mapping[str, Any]) -> str:
    """Return the name of an aggregate in orders and results, as `Aggregate.called` does."""
    plain = str(figure["field"]).replace(".", "_")
    unnamed = figure["function"] if plain == "*" else f"{figure['function']}_{plain}"
    return str(figure.get("as") or unnamed)


def _translate_where(entry: Any) -> Any:
    """Return a condition; of `{":price": "Price", ">": 100}` the field, operator and value."""
    if not isinstance(entry, Mapping):
        return entry
    where = {key: value for key, value in entry.items() if key != "comment"}
    for key in _GROUPS:
        if isinstance(where.get(key), list):
            where[key] = [_translate_where(each) for each in where[key]]
    other = where.get("other")
    if isinstance(other, Mapping) and isinstance(other.get("wheres"), list):
        where["other"] = {**other, "wheres": [_translate_where(each) for each in other["wheres"]]}
    return _name_operator(_name_marked_field(where))


def _translate_having(entry: Any, aggregates: list[Any]) -> Any:
    """Return a condition on a figure, by its name where it is written as a function."""
    if not isinstance(entry, Mapping):
        return entry
    having = _name_operator(_name_marked_field(dict(entry)))
    for key in _GROUPS:
        if isinstance(having.get(key), list):
            having[key] = [_translate_having(each, aggregates) for each in having[key]]
    if isinstance(having.get("field"), str):
        having["field"] = _name_order(having["field"], aggregates)
    return having


def _name_marked_field(where: dict[Any, Any]) -> dict[Any, Any]:
    """Return the condition with its field under `field`: `":price"` is a key of its own."""
    if where.get("field") or where.get("column"):
        return where
    texts = (key for key in where if isinstance(key, str))
    found = next((key for key in texts if key.startswith(":") and key != ":"), None)
    if found is None:
        return where
    rest = {key: value for key, value in where.items() if key != found}
    return {**rest, "field": found[1:]}


def _name_operator(where: dict[Any, Any]) -> dict[Any, Any]:
    """Return the condition with `op` and `value`: `">": 100` has them as key and value."""
    operators = [key for key in where if key not in _CONDITION]
    has_field = where.get("field") or where.get("column")
    if len(operators) != 1 or not has_field or "op" in where or "value" in where:
        return where
    rest = {key: value for key, value in where.items() if key != operators[0]}
    return {**rest, "op": operators[0], "value": where[operators[0]]}
