"""Combination of a question's query with the conditions and options of the request. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from groundhook.core.types.query_language import Where
from groundhook.core.types.search import SearchRequest
from groundhook.handlers.db.model.schema import Schema, route
from groundhook.handlers.db.query.dsl import EVERY_TEXT, MATCH, MATCH_ANY, QueryDSL, conditions


def merge(request: SearchRequest, dsl: QueryDSL, limit: int) -> QueryDSL:
    """Merge the request's options into the question's query: conditions are added, orders come
    first, and fields replace the query's.

    The request's aggregates replace the question's. If only the question asks for figures, the
    request's fields and orders are ignored, since they are for records.
    """
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


def ignored_options(request: SearchRequest, dsl: QueryDSL) -> list[str]:
    """Return the request's options without effect, since the question asks for figures."""
    if not dsl.computed or request.group_by or request.aggregates:
        return []
    options = (("select", request.select), ("orders", request.orders))
    return [name for name, value in options if value]


def unknown_field(
    request: SearchRequest, schema: Schema, schemas: Mapping[str, Schema]
) -> str | None:
    """The first field of the request that the model does not have; None if it has all."""
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


def without_words(query: QueryDSL, *, lists: bool) -> QueryDSL | None:
    """Return the query without the words that are searched for in every text; None if it has none,
    or requests nothing beside them: no conditions, no groups, and no list of records (`lists`). A
    figure of all records is none of those with the words."""
    wheres = tuple(where for where in query.wheres if not _is_of_words(where))
    listed = lists and not query.computed
    requested = bool(wheres or query.groups or listed) and len(wheres) < len(query.wheres)
    return query.model_copy(update={"wheres": wheres}) if requested else None


def requests_words(request: SearchRequest) -> bool:
    """Return whether a condition of the caller's own is of words, which no result may lack."""
    return any(map(_is_of_words, request.wheres or ()))


def _is_of_words(where: Where) -> bool:
    return where.field == EVERY_TEXT and where.op in (MATCH, MATCH_ANY)


def with_any_word(query: QueryDSL) -> QueryDSL | None:
    """Return the query with any of its words instead of all; None if that changes nothing."""
    wheres = tuple(
        where.model_copy(update={"op": MATCH_ANY})
        if where.op == MATCH and len(where.value) > 1
        else where
        for where in query.wheres
    )
    return query.model_copy(update={"wheres": wheres}) if wheres != query.wheres else None
