"""Combination of a question's query with the conditions and options of the request. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from groundhook.core.types.query_language import group_field, group_name
from groundhook.core.types.search import SearchRequest
from groundhook.handlers.db.model.schema import Schema, route
from groundhook.handlers.db.query.dsl import EVERY_TEXT, QueryDSL, conditions

_Part = TypeVar("_Part")


def merge(request: SearchRequest, dsl: QueryDSL) -> QueryDSL:
    """Merge the request's options into the question's query: conditions are added, orders come
    first, and fields replace the query's. The limit stays the question's own.

    The request's aggregates replace the question's. If only the question asks for figures, the
    request's fields and orders are ignored, since they are for records.
    """
    wheres = (*_given(request.wheres), *dsl.wheres)
    orders, havings = _given(request.orders), _given(request.havings)
    page: dict[str, Any] = {
        "limit": dsl.limit,
        "ties": dsl.ties if request.ties is None else request.ties,
        "offset": request.offset or dsl.offset,
    }
    if computes(request):
        return QueryDSL(
            model=dsl.model,
            select=_given(request.select),
            distinct=bool(request.distinct),
            wheres=wheres,
            groups=_given(request.group_by),
            aggregates=_given(request.aggregates),
            havings=havings,
            orders=orders,
            **page,
        )
    if dsl.computed:
        return dsl.model_copy(
            update={"wheres": wheres, "havings": (*havings, *dsl.havings), **page}
        )
    ordered = {order.field for order in orders}
    return QueryDSL(
        model=dsl.model,
        select=_given(request.select) or dsl.select,
        wheres=wheres,
        havings=havings,
        orders=(*orders, *(order for order in dsl.orders if order.field not in ordered)),
        **page,
    )


def computes(request: SearchRequest) -> bool:
    """Return whether the caller's own options are of figures or groups."""
    return bool(request.group_by or request.aggregates or request.distinct)


def _given(value: Sequence[_Part] | None) -> tuple[_Part, ...]:
    return tuple(value or ())


def ignored_options(request: SearchRequest, dsl: QueryDSL) -> list[str]:
    """Return the request's options without effect, since the question asks for figures."""
    if not dsl.computed or computes(request):
        return []
    options = (("select", request.select), ("orders", request.orders))
    return [name for name, value in options if value]


def unknown_field(
    request: SearchRequest, schema: Schema, schemas: Mapping[str, Schema]
) -> str | None:
    """The first field of the request that the model does not have; None if it has all."""
    groups, figures = _given(request.group_by), _given(request.aggregates)
    called = {*map(group_name, groups), *(one.called for one in figures)}
    named = [
        *(where.name for where in conditions(_given(request.wheres))),
        *(order.field for order in _given(request.orders)),
        *_given(request.select),
        *map(group_field, groups),
        *(one.field for one in figures),
    ]
    for name in named:
        if name != EVERY_TEXT and name not in called and route(schema, name, schemas) is None:
            return name
    return None
