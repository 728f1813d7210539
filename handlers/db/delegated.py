"""Queries that an assistant or an MCP tool writes: `uses.query`. What it answers is linted, and
goes back with what is wrong.

It is shown the schemas of the models that are searched, and no records. What it writes is a query
like any other: the conditions of the caller are ANDed with it, and the limits of the identity last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groundhook.handlers.db.dsl import QueryDSL, parse
from groundhook.handlers.db.linter import lint
from groundhook.handlers.db.question.reading import Reading
from groundhook.handlers.db.schema import Field, Schema
from groundhook.host.core.errors import UnknownName
from groundhook.host.core.ports import Scope
from groundhook.host.core.types.delegation import QUERY, QueryAnswer, QueryAsk
from groundhook.host.core.types.search import SearchRequest

TRIES = 3  # the first, and two with the linter's words
MOST = 5  # queries of one answer


async def read_by(
    doer: str, request: SearchRequest, schemas: Mapping[str, Schema], limit: int, scope: Scope
) -> list[Reading]:
    """The question as somebody else read it. Raises DelegateError."""
    models = list(request.models or ())

    def wrong(answer: QueryAnswer) -> str:
        if not 0 < len(answer.queries) <= MOST:
            return f"should hold 1 to {MOST} queries, not {len(answer.queries)}"
        return "; ".join(
            [problem for raw in answer.queries for problem in _problems(raw, models, schemas)][:5]
        )

    settings = scope.settings.query
    asked = QueryAsk(
        query=request.query,
        models=tuple(described(schemas[model]) for model in models),
        wheres=tuple(where.wire() for where in request.wheres or ()),
        orders=tuple(order.model_dump() for order in request.orders or ()),
        limit=limit,
        now=scope.now().isoformat(),
        language=settings.language,
    )
    how: dict[str, Any] = {"timeout_ms": settings.timeout_ms, "hint": "search.query.timeout_ms"}
    answer = await scope.delegates.ask(QUERY, doer, asked, **how, wrong=wrong, tries=TRIES)
    queries = [parse({**raw, "model": _model(raw, models)}) for raw in answer.queries]
    notes = tuple(f"{doer}: {text}" for text in answer.warnings)
    return [_reading(query, notes if number == 0 else ()) for number, query in enumerate(queries)]


def described(schema: Schema) -> dict[str, Any]:
    """A model as whoever writes queries needs to know it."""
    relations = {
        name: {"model": each.model, "many": each.many} for name, each in schema.relations.items()
    }
    fields = [_described(field) for field in schema.visible]
    said = {
        "model": schema.id,
        "name": schema.name,
        "key": schema.key,
        "fields": fields,
        "relations": relations,
    }
    return {name: value for name, value in said.items() if value}


def _described(field: Field) -> dict[str, Any]:
    said = {
        "name": field.name,
        "kind": field.kind,
        "label": field.label,
        "comment": field.comment,
        "values": list(field.options),
    }
    return {name: value for name, value in said.items() if value}


def _problems(
    raw: Mapping[str, Any], models: Sequence[str], schemas: Mapping[str, Schema]
) -> list[str]:
    try:
        model = _model(raw, models)
    except UnknownName as exc:
        return [str(exc)]
    return [
        str(problem)
        for problem in lint({**raw, "model": model}, schemas)
        if problem.severity == "error"
    ]


def _model(raw: Mapping[str, Any], models: Sequence[str]) -> str:
    """The full id of a query's model, which need not be said where there is one. Raises
    UnknownName."""
    said = raw.get("model") or (models[0] if len(models) == 1 else "")
    for id in models:
        if said in (id, id.rpartition(".")[2]):
            return id
    raise UnknownName("model", str(said), models)


def _reading(query: QueryDSL, notes: tuple[str, ...]) -> Reading:
    return Reading(
        dsl=query, placed=(), unplaced=(), notes=notes, named_at=None, effects=0, asks=True
    )
