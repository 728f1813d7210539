"""A language model that reads every question rightly: it answers with the reference query, as far
as this module can write it in the query language. It shows what the linter, the account of words
and the language let through, not how well a model reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from groundhook.core.errors import UnknownName
from groundhook.core.tool_ports import ModelReply
from groundhook.core.types.events import StreamEnd
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.turn import Message
from groundhook.core.types.uses import JsonReply
from groundhook.host.turn.delegation import DelegateTargets, TurnDelegates

_SELECT = re.compile(
    r"SELECT (?P<what>[^()]*?(?:\([^()]*\))?) FROM (?P<table>\w+)(?: WHERE (?P<where>.+?))?"
    r"(?: GROUP BY (?P<group>\w+))?(?: ORDER BY (?P<order>[\w ,]+?))?(?: LIMIT (?P<limit>\d+))?",
    re.DOTALL,
)
_COMPARED = re.compile(r"(\w+) ?(<=|>=|!=|<>|=|<|>) ?('(?:[^']|'')*'|-?[\d.]+)")
_LISTED = re.compile(r"(\w+) (NOT )?IN \(([^()]*)\)")
_LIKE = re.compile(r"(\w+) (NOT )?LIKE '(.*)'")
_NULL = re.compile(r"(\w+) IS (NOT )?NULL")
_BETWEEN = re.compile(r"(\w+) BETWEEN (\S+) AND (\S+)")
_OF_RELATED = re.compile(r"(\w+) ?(?:=|IN) ?\(SELECT (?:\w+\.)?id FROM (\w+) WHERE (.+)\)")
_FIGURE = re.compile(r"(count|sum|avg|min|max)\((DISTINCT )?(\*|\w+)\)", re.IGNORECASE)


class Unwritten(Exception):
    """A reference that is not written in the query language here."""


@dataclass
class PerfectReader:
    """Answers for one question at a time; `unwritten` counts the references that it cannot
    write."""

    models: Mapping[str, ModelSpec]
    sql: str = ""
    unwritten: int = 0
    asked: int = 0
    problems: list[str] = field(default_factory=list)

    def delegates(self) -> TurnDelegates:
        async def model(
            _: str, messages: Sequence[Message], __: JsonReply, ___: int | None
        ) -> ModelReply:
            self.asked += 1
            self.problems += [each.text for each in messages[3:] if each.role == "user"]
            answer = self._answer()
            return ModelReply(text=json.dumps(answer), data=answer, finish_reason="stop")

        async def assistant(id: str, _: Any, __: JsonReply) -> tuple[StreamEnd, str]:
            raise UnknownName("assistant", id, [])

        return TurnDelegates(
            DelegateTargets(
                model=model,
                assistant=assistant,
                server=lambda name: name,
                permit=lambda *_: None,
                servers=_NoServers(),
            )
        )

    def _answer(self) -> dict[str, Any]:
        if not self.sql:
            return {"cannot": "the data does not say"}
        try:
            return {"query": written(self.sql, self.models), "unused": []}
        except Unwritten:
            self.unwritten += 1
            return {"cannot": "not written here"}


class _NoServers:
    async def ask(self, server: str, *_: Any) -> dict[str, Any]:
        raise UnknownName("MCP server", server, [])

    def start_ms(self, _: str) -> int:
        return 0


def written(sql: str, models: Mapping[str, ModelSpec]) -> dict[str, Any]:
    """Return a reference in the query language. Raises Unwritten."""
    found = _SELECT.fullmatch(sql)
    if found is None:
        raise Unwritten(sql)
    model = _model_of(found["table"], models)
    query: dict[str, Any] = {"model": model}
    if found["where"]:
        query["wheres"] = _wheres(found["where"], models[model], models)
    _write_figures(query, found["what"], found["group"])
    if found["order"]:
        names = [each.strip() for each in found["order"].split(",")]
        query["orders"] = [_order(each, query) for each in names if each != "id"]
    if found["limit"]:
        query["limit"] = int(found["limit"])
    return query


def _write_figures(query: dict[str, Any], what: str, group: str | None) -> None:
    figures = [match for each in what.split(", ") if (match := _FIGURE.fullmatch(each.strip()))]
    if figures:
        query["aggregates"] = [
            {"function": one[1].lower(), "field": one[3], "distinct": bool(one[2]), "as": "figure"}
            for one in figures
        ]
    elif what != "id":
        raise Unwritten(what)
    if group:
        query["groups"] = [group]


def _order(text: str, query: Mapping[str, Any]) -> dict[str, str]:
    name, _, direction = text.partition(" ")
    if name.isdecimal():
        name = "figure" if "aggregates" in query else name
    return {"field": name, "order": "desc" if direction == "DESC" else "asc"}


def _model_of(table: str, models: Mapping[str, ModelSpec]) -> str:
    for id, model in models.items():
        if model.table.name == table:
            return id
    raise Unwritten(table)


def _wheres(text: str, model: ModelSpec, models: Mapping[str, ModelSpec]) -> list[dict[str, Any]]:
    either = _split(text, " OR ")
    if len(either) > 1:
        joined = [_wheres(each, model, models) for each in either]
        return [{"or": [each[0] if len(each) == 1 else {"and": each} for each in joined]}]
    return [_where(each, model, models) for each in _split(text, " AND ")]


def _where(text: str, model: ModelSpec, models: Mapping[str, ModelSpec]) -> dict[str, Any]:
    text = text.strip()
    if text.startswith("(") and text.endswith(")"):
        inner = _wheres(text[1:-1], model, models)
        return inner[0] if len(inner) == 1 else {"and": inner}
    if found := _OF_RELATED.fullmatch(text):
        return _of_related(found, model, models)
    if found := _COMPARED.fullmatch(text):
        return {"field": found[1], "op": found[2].replace("<>", "!="), "value": _value(found[3])}
    if found := _LISTED.fullmatch(text):
        values = [_value(each.strip()) for each in found[3].split(",")]
        return {"field": found[1], "op": "not in" if found[2] else "in", "value": values}
    if found := _NULL.fullmatch(text):
        return {"field": found[1], "op": "not null" if found[2] else "null"}
    if found := _BETWEEN.fullmatch(text):
        return {"field": found[1], "op": "between", "value": [_value(found[2]), _value(found[3])]}
    if (found := _LIKE.fullmatch(text)) and not found[2]:
        return {"field": found[1], "op": "like", "value": found[3]}
    raise Unwritten(text)


def _of_related(
    found: re.Match[str], model: ModelSpec, models: Mapping[str, ModelSpec]
) -> dict[str, Any]:
    """Return a condition on a related record: `customer_id IN (SELECT id FROM … WHERE …)`."""
    there = _model_of(found[2], models)
    for name, relation in model.relations.items():
        if relation.model == there and relation.foreign == found[1]:
            return {"related": name, "wheres": _wheres(found[3], models[there], models)}
    raise Unwritten(found[0])


def _split(text: str, by: str) -> list[str]:
    """Split at a word outside of brackets and quotes; BETWEEN keeps its AND."""
    parts, depth, quoted, start, at = [], 0, False, 0, 0
    while at < len(text):
        sign = text[at]
        quoted ^= sign == "'"
        depth += (sign == "(") - (sign == ")") if not quoted else 0
        ends = not (quoted or depth) and text.startswith(by, at)
        if ends and not re.search(r" BETWEEN \S+$", text[start:at]):
            parts.append(text[start:at])
            start = at + len(by)
        at += 1
    return [*parts, text[start:]]


def _value(text: str) -> Any:
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise Unwritten(text) from None
