"""What is asked in the end: a question's query together with what the caller said. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from groundhook.handlers.db.dsl import EVERY_TEXT, MATCH, MATCH_ANY, QueryDSL, conditions
from groundhook.handlers.db.schema import Schema, route
from groundhook.host.core.types.search import SearchRequest


def merged(request: SearchRequest, dsl: QueryDSL, limit: int) -> QueryDSL:
    """The question's query with what the caller said: its conditions besides, its orders before,
    its fields alone.

    Figures that the caller asks for replace those of the question; where the question alone asks
    for figures, the caller's fields and orders are of records, and have no say."""
    orders = request.orders or ()
    ordered = {order.field for order in orders}
    wheres = (*(request.wheres or ()), *dsl.wheres)
    most = min(limit, dsl.limit or limit)
    if request.group_by or request.aggregates:
        return QueryDSL(
            model=dsl.model,
            select=request.select or (),
            wheres=wheres,
            groups=request.group_by or (),
            aggregates=request.aggregates or (),
            orders=orders,
            limit=most,
        )
    if dsl.computed:
        return dsl.model_copy(update={"wheres": wheres, "limit": most})
    return QueryDSL(
        model=dsl.model,
        select=request.select or dsl.select,
        wheres=wheres,
        orders=(*orders, *(order for order in dsl.orders if order.field not in ordered)),
        limit=most,
    )


def unheard(request: SearchRequest, dsl: QueryDSL) -> list[str]:
    """What the caller said that has no effect, since the question asks for figures."""
    if not dsl.computed or request.group_by or request.aggregates:
        return []
    return [name for name, said in (("select", request.select), ("orders", request.orders)) if said]


def missing(request: SearchRequest, schema: Schema, schemas: Mapping[str, Schema]) -> str | None:
    """The first field that the caller names and the model does not have."""
    called = {one.called for one in request.aggregates or ()}
    named = [where.field for where in conditions(request.wheres or ())] + [
        order.field for order in request.orders or ()
    ]
    named += [*(request.select or ()), *(request.group_by or ())]
    named += [one.field for one in request.aggregates or ()]
    for name in named:
        if name != EVERY_TEXT and name not in called and route(schema, name, schemas) is None:
            return name
    return None


def looser(query: QueryDSL) -> QueryDSL | None:
    """The query with any of its words instead of all; None where that changes nothing."""
    wheres = tuple(
        where.model_copy(update={"op": MATCH_ANY})
        if where.op == MATCH and len(where.value) > 1
        else where
        for where in query.wheres
    )
    return query.model_copy(update={"wheres": wheres}) if wheres != query.wheres else None
