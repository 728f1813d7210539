"""Describes a database query in words, for people: `product where price < 100 and brand = Apple,
price ascending`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

FUNCTIONS = {
    "count": "how many",
    "sum": "sum of",
    "avg": "average of",
    "min": "least",
    "max": "greatest",
}
WORDS = {
    "in": "is one of",
    "not in": "is none of",
    "like": "contains",
    "match": "has",
    "match any": "has any of",
    "match none": "has none of",
    "null": "is missing",
    "not null": "is there",
}
MOST_VALUES = 8  # values of a list that are shown


def in_words(dsl: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each query of a search's `dsl`, which is one query or has several under
    `queries`."""
    for query in dsl.get("queries") or [dsl]:
        yield _describe(query)


def _describe(query: Mapping[str, Any]) -> str:
    figures = [_describe_figure(one) for one in query.get("aggregates", ())]
    text = f"{', '.join(figures)} of {query['model']}" if figures else str(query["model"])
    if query.get("wheres"):
        text += f" where {_join_conditions(query['wheres'], 'and')}"
    if query.get("groups"):
        text += f", for each {' and '.join(map(_describe_group, query['groups']))}"
    if query.get("havings"):
        text += f", having {_join_conditions(query['havings'], 'and')}"
    ways = {"asc": "ascending", "desc": "descending"}
    orders = [f"{one['field']} {ways[one.get('order', 'desc')]}" for one in query.get("orders", ())]
    return text + "".join(f", {order}" for order in orders)


def _describe_group(group: str | Mapping[str, Any]) -> str:
    return group if isinstance(group, str) else f"{group['by']} of {group['field']}"


def _describe_figure(one: Mapping[str, Any]) -> str:
    field = one.get("field", "*")
    if field == "*":
        return FUNCTIONS["count"]
    different = "different " if one.get("distinct") else ""
    return f"{FUNCTIONS[one['function']]} {different}{field}"


def _join_conditions(wheres: Sequence[Mapping[str, Any]], joined: str) -> str:
    return f" {joined} ".join(_describe_condition(where) for where in wheres)


def _describe_condition(where: Mapping[str, Any]) -> str:
    for word in ("or", "and"):
        if isinstance(where.get(word), Sequence):
            return f"({_join_conditions(where[word], word)})"
    if where.get("related"):
        return _describe_related(where)
    name = "any text" if where["field"] == "*" else where["field"]
    op, value = WORDS.get(where["op"], where["op"]), where.get("value")
    if where["op"] in ("null", "not null"):
        return f"{name} {op}"
    if isinstance(where.get("other"), Mapping):
        return f"{name} {op} {_describe_other(where['other'])}"
    if where["op"] == "between" and isinstance(value, Sequence) and len(value) == 2:
        return f"{name} between {value[0]} and {value[1]}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        more = ", …" if len(value) > MOST_VALUES else ""
        return f"{name} {op} {', '.join(map(str, value[:MOST_VALUES]))}{more}"
    return f"{name} {op} {_format(value)}"


def _describe_related(where: Mapping[str, Any]) -> str:
    met = where.get("wheres")
    text = f"{where['related']} where {_join_conditions(met, 'and')}" if met else where["related"]
    if where.get("count"):
        bars = " and ".join(f"{op} {number}" for op, number in where["count"].items())
        return f"(number of {text}) {bars}"
    word = "no" if where.get("none") else "all" if where.get("all") else "some"
    return f"({word} {text})"


def _describe_other(other: Mapping[str, Any]) -> str:
    if not other.get("function"):
        return str(other["field"])
    text = _describe_figure({"field": "*", **other})
    if other.get("model"):
        text += f" of {other['model']}"
    if other.get("wheres"):
        text += f" where {_join_conditions(other['wheres'], 'and')}"
    return f"({text})"


def _format(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
