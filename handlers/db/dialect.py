"""Queries in the dialect of other packages, in the form that `handlers.db.dsl` parses. Pure.

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
_ORDER = re.compile(r"^(?P<field>\S.*?)(?:\s+(?P<order>asc|desc))?$", re.IGNORECASE)
_GROUPS = ("or", "and", "wheres")
_CONDITION = {"field", "column", "op", "value", "any_of", "all_of", "comment", *_GROUPS}
_DIRECTIONS = ("sort", "option", "direction")


def translated(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a query with the names and forms of `QueryDSL`."""
    made = dict(raw)
    source = made.pop("from", None) or made.pop("table", None)
    if isinstance(source, str) and source.strip() and not made.get("model"):
        made["model"] = source.split()[0]
    aggregates: list[Any] = list(made.get("aggregates") or ())
    if isinstance(made.get("select"), (list, str)):
        made["select"] = _selected(_listed(made["select"]), aggregates)
    if "groups" in made:
        made["groups"] = [_name(each) for each in _listed(made["groups"])]
    if "orders" in made:
        made["orders"] = [_order(each, aggregates) for each in _listed(made["orders"])]
    if isinstance(made.get("wheres"), list):
        made["wheres"] = [_where(each) for each in made["wheres"]]
    if aggregates:
        made["aggregates"] = aggregates
        groups = made.get("groups") or ()
        made["select"] = [field for field in made.get("select") or () if field not in groups]
    if isinstance(made.get("limit"), str) and made["limit"].isdecimal():
        made["limit"] = int(made["limit"])
    return made


def _listed(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [part.strip() for part in re.split(r",(?![^(]*\))", value) if part.strip()]
    return value if isinstance(value, list) else [value]


def _selected(entries: list[Any], aggregates: list[Any]) -> list[Any]:
    """Return the plain fields; add those that are functions to `aggregates`."""
    fields = []
    for entry in entries:
        figure = _figure(entry)
        if figure is not None:
            if figure not in aggregates:
                aggregates.append(figure)
        elif entry != "*":
            fields.append(_name(entry))
    return fields


def _figure(entry: Any) -> dict[str, Any] | None:
    found = _FUNCTION.match(entry.strip()) if isinstance(entry, str) else None
    if found is None:
        return None
    figure: dict[str, Any] = {"function": found["function"].lower(), "field": found["field"]}
    if found["distinct"]:
        figure["distinct"] = True
    if found["name"]:
        figure["as"] = found["name"]
    return figure


def _name(entry: Any) -> Any:
    if isinstance(entry, Mapping):
        entry = entry.get("field", entry.get("column", entry))
    found = _NAMED.match(entry.strip()) if isinstance(entry, str) else None
    return found["field"] if found else entry


def _order(entry: Any, aggregates: list[Any]) -> Any:
    if isinstance(entry, str):
        found = _ORDER.match(entry.strip())
        if found is None:
            return entry
        order = (found["order"] or "asc").lower()
        return {"field": _sorted_by(found["field"], aggregates), "order": order}
    if not isinstance(entry, Mapping):
        return entry
    made = {key: value for key, value in entry.items() if key not in _DIRECTIONS}
    given = next((entry[key] for key in _DIRECTIONS if key in entry), None)
    if given is not None and "order" not in made:
        made["order"] = given
    if isinstance(made.get("order"), str):
        made["order"] = made["order"].lower()
    if isinstance(made.get("field"), str):
        made["field"] = _sorted_by(made["field"], aggregates)
    return made


def _sorted_by(field: str, aggregates: list[Any]) -> str:
    """Return the name to sort by: that of an aggregate where the field is written as one."""
    figure = _figure(field)
    if figure is None:
        return field
    same = ("function", "field", "distinct")
    for known in aggregates:
        if all(known.get(key) == figure.get(key) for key in same):
            return _called(known)
    aggregates.append(figure)
    return _called(figure)


def _called(figure: Mapping[str, Any]) -> str:
    """Return the name of an aggregate in orders and results, as `Aggregate.called` does."""
    plain = str(figure["field"]).replace(".", "_")
    unnamed = figure["function"] if plain == "*" else f"{figure['function']}_{plain}"
    return str(figure.get("as") or unnamed)


def _where(entry: Any) -> Any:
    """Return a condition; of `{":price": "Price", ">": 100}` the field, operator and value."""
    if not isinstance(entry, Mapping):
        return entry
    made = {
        key: [_where(each) for each in value]
        if key in _GROUPS and isinstance(value, list)
        else value
        for key, value in entry.items()
    }
    marked = [key for key in made if isinstance(key, str) and key.startswith(":") and key[1:]]
    if marked and not made.get("field") and not made.get("column"):
        made["field"] = marked[0][1:]
        del made[marked[0]]
    operators = [key for key in made if key not in _CONDITION]
    if (
        len(operators) == 1
        and "op" not in made
        and "value" not in made
        and (made.get("field") or made.get("column"))
    ):
        made["op"] = operators[0]
        made["value"] = made.pop(operators[0])
    made.pop("comment", None)
    return made
