"""Queries written by an assistant or an MCP tool: `uses.query`. Its answer is linted, and returned
to it with the problems if it has any.

The delegate gets the schemas of the searched models, and no records. Its query is treated like any
other: the caller's conditions are ANDed with it, and the limits of the identity last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groundhook.core.errors import UnknownName
from groundhook.core.ports import Scope
from groundhook.core.types.delegation import (
    QueryAnswer,
    QueryAsk,
)
from groundhook.core.types.search import SearchRequest
from groundhook.core.types.uses import QUERY
from groundhook.handlers.db.dialect import translate
from groundhook.handlers.db.model.schema import Field, Schema
from groundhook.handlers.db.query.dsl import QueryDSL, parse
from groundhook.handlers.db.query.linter import lint

MAX_TRIES = 3  # the first, and two with the linter's problems
MAX_QUERIES = 5  # in one answer


async def read_by_delegate(
    delegate: str, request: SearchRequest, schemas: Mapping[str, Schema], limit: int, scope: Scope
) -> tuple[list[QueryDSL], tuple[str, ...]]:
    """Return the delegate's queries for the question, and its warnings. Raises DelegateError."""
    models = list(request.models or ())

    def wrong(answer: QueryAnswer) -> str:
        if not 0 < len(answer.queries) <= MAX_QUERIES:
            return f"it should contain 1 to {MAX_QUERIES} queries, not {len(answer.queries)}"
        return "; ".join(
            [problem for raw in answer.queries for problem in _problems(raw, models, schemas)][:5]
        )

    settings = scope.settings.query
    arguments = QueryAsk(
        query=request.query,
        models=tuple(describe_model(schemas[model]) for model in models),
        wheres=tuple(where.wire() for where in request.wheres or ()),
        orders=tuple(order.model_dump() for order in request.orders or ()),
        limit=limit,
        now=scope.now().isoformat(),
        language=settings.language,
    )
    options: dict[str, Any] = {"timeout_ms": settings.timeout_ms, "hint": "search.query.timeout_ms"}
    answer = await scope.delegates.ask(
        QUERY, delegate, arguments, **options, wrong=wrong, tries=MAX_TRIES
    )
    written = [translate(raw) for raw in answer.queries]
    queries = [parse({**raw, "model": _model(raw, models, schemas)}) for raw in written]
    notes = tuple(f"{delegate}: {text}" for text in answer.warnings)
    return queries, notes


def describe_model(schema: Schema) -> dict[str, Any]:
    """Return a model's schema as plain data for a delegate that writes queries."""
    relations = {
        name: {"model": each.model, "many": each.many} for name, each in schema.relations.items()
    }
    fields = [_describe_field(field) for field in schema.visible]
    values = {
        "model": schema.id,
        "name": schema.name,
        "key": schema.keys[0] if len(schema.keys) == 1 else list(schema.keys),
        "fields": fields,
        "relations": relations,
    }
    return {name: value for name, value in values.items() if value}


def _describe_field(field: Field) -> dict[str, Any]:
    values = {
        "name": field.name,
        "kind": field.kind,
        "label": field.label,
        "comment": field.comment,
        "values": list(field.options),
    }
    return {name: value for name, value in values.items() if value}


def _problems(
    raw: Mapping[str, Any], models: Sequence[str], schemas: Mapping[str, Schema]
) -> list[str]:
    raw = translate(raw)
    try:
        model = _model(raw, models, schemas)
    except UnknownName as exc:
        return [str(exc)]
    return [
        str(problem)
        for problem in lint({**raw, "model": model}, schemas)
        if problem.severity == "error"
    ]


def _model(raw: Mapping[str, Any], models: Sequence[str], schemas: Mapping[str, Schema]) -> str:
    """Return the full id of a query's model, which may be named by its table; it may be missing if
    only one model is searched. Raises UnknownName."""
    name = raw.get("model") or (models[0] if len(models) == 1 else "")
    for id in models:
        short = id.rpartition(".")[2]
        if name in (id, short) or str(name).replace("_", " ") in schemas[id].names:
            return id
    raise UnknownName("model", str(name), models)
