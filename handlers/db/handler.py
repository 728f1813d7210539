"""The database source: a question and the caller's conditions become queries on the models, records become items.

The question is read by the builtin grammar (`handlers.db.question`). Whatever wrote the conditions, the limits of the identity
are ANDed last, here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from handlers.db.coerce import plain
from handlers.db.dsl import MATCH, MATCH_ANY, QueryDSL
from handlers.db.items import items_of
from handlers.db.linter import checked
from handlers.db.permission import Permit, permit_for
from handlers.db.question.languages import words_for
from handlers.db.question.lexicon import Lexicons, Offer
from handlers.db.question.reading import Reading, read_question
from handlers.db.store import Answer, Samples, Store
from host.errors import NotPermitted, SourceError, SourceNotConfigured, SourceTimeout, suggestion
from host.ports import Found, Scope
from host.trace import span
from host.types.search import Item, RecordQuery, SearchRequest, Where
from host.types.specs import ModelSpec

Permits = Mapping[str, Permit | NotPermitted | None]


class DBHandler:
    """Searches the models of one database. Implements `host.ports.Handler`."""

    def __init__(self, store: Store, models: Mapping[str, ModelSpec]) -> None:
        self._store, self._models, self._lexicons = store, models, Lexicons()

    async def search(self, request: SearchRequest, scope: Scope, /) -> Found:
        """Records of `request.models`, best first. `Found.dsl` is the query, or {"queries": […]} where several models
        were asked. Raises SourceError; NotPermitted when the identity may not see what the question is about."""
        permits = self._permits(request.models, scope)
        limit = request.limit or scope.settings.db.max_results
        with span("dsl_build", "query from the question", query=request.query) as node:
            readings = [one for one in await self._read(request, scope, permits) if one.asks or request.wheres or request.orders]
            queries = [self._merged(request, reading.dsl, limit) for reading in readings]
            queries = await self._answerable(request, queries, scope)
            for query in queries:
                checked(query, self._store.schemas)
            node.data.update(dsl=[query.wire() for query in queries], unplaced=[list(one.unplaced) for one in readings])
        if not readings:
            await scope.warn("db_query_words", "the question asks for nothing that the models have; nothing was searched")
            return Found(total=0)
        await self._tell(readings, queries, scope)
        queries = await self._permitted(queries, permits, scope)
        found = await self._ask(queries, permits, limit)
        if not found.items and (looser := [one for query in queries if (one := _looser(query)) is not None]):
            await scope.warn("db_query_words", "no record has all of these words; those with any of them are shown")
            found = await self._ask(looser, permits, limit)
        return found

    async def records(self, query: RecordQuery, scope: Scope, /) -> list[dict[str, Any]]:
        """Records that meet the conditions and that the identity may see. Raises SourceError, NotPermitted."""
        permit = self._permits((query.model,), scope)[query.model]
        if isinstance(permit, NotPermitted):
            raise permit
        schema = self._store.schema(query.model)
        one = () if query.record_id is None else (Where(field=schema.key, value=query.record_id),)
        dsl = QueryDSL(model=query.model, select=query.select, wheres=(*query.wheres, *one), orders=query.orders)
        answer = await self._once(dsl, permit, query.limit)
        return [item.data or {} for item in items_of(answer.rows, schema, dsl, query.limit)]

    # ---- what is asked

    def _permits(self, models: Sequence[str] | None, scope: Scope) -> Permits:
        if not models:
            raise SourceNotConfigured("there is no model to search", hint="name models in the search or under 'db.models'")
        permits: dict[str, Permit | NotPermitted | None] = {}
        for model in models:
            spec = self._models.get(model)
            if spec is None:
                raise SourceNotConfigured(f"no model {model!r}", hint=suggestion(model, sorted(self._models)))
            try:
                permits[model] = permit_for(spec, scope.identity)
            except NotPermitted as exc:
                permits[model] = exc
        return permits

    async def _read(self, request: SearchRequest, scope: Scope, permits: Permits) -> list[Reading]:
        if scope.uses.query != "builtin":
            raise SourceNotConfigured(f"uses.query is {scope.uses.query!r}: only 'builtin' writes queries to a database")
        words = words_for(scope.settings.query.language, request.query)
        offers = []
        for model, permit in permits.items():
            offers.append(Offer(self._store.schema(model), await self._samples(model, permit, scope)))
        readings = read_question(request.query, offers, words, scope.now(), self._lexicons)
        unplaced = list(dict.fromkeys(word for reading in readings for word in reading.unplaced))
        if unplaced and scope.settings.query.strict:
            raise SourceError(
                f"the question has words that could not be placed: {', '.join(map(repr, unplaced))}",
                hint="query.strict is on; without it they are searched for as text",
            )
        return readings

    async def _samples(self, model: str, permit: Permit | NotPermitted | None, scope: Scope) -> Samples:
        if isinstance(permit, NotPermitted):
            return {}
        try:
            return await self._store.samples(model, permit)
        except SourceTimeout as exc:
            await scope.warn("db_sample", f"the values of {model!r} could not be sampled: {exc.message}")
            return {}

    def _merged(self, request: SearchRequest, dsl: QueryDSL, limit: int) -> QueryDSL:
        """The question's query with what the caller said: its conditions besides, its orders before, its fields alone."""
        orders = request.orders or ()
        ordered = {order.field for order in orders}
        return QueryDSL(
            model=dsl.model,
            select=request.select or (),
            wheres=(*(request.wheres or ()), *dsl.wheres),
            orders=(*orders, *(order for order in dsl.orders if order.field not in ordered)),
            limit=min(limit, dsl.limit or limit),
        )

    async def _answerable(self, request: SearchRequest, queries: list[QueryDSL], scope: Scope) -> list[QueryDSL]:
        """Without the models that lack a field which the caller named, as long as another has it."""
        named = [where.field for where in request.wheres or ()] + [order.field for order in request.orders or ()]
        named += request.select or ()
        left = []
        for query in queries:
            missing = [name for name in named if name not in self._store.schema(query.model).fields and name != "*"]
            if missing and len(queries) > 1:
                await scope.warn("db_model_skipped", f"{query.model!r} was not searched: it has no field {missing[0]!r}")
            else:
                left.append(query)
        return left or queries[:1]  # whose missing field becomes the error

    async def _tell(self, readings: list[Reading], queries: list[QueryDSL], scope: Scope) -> None:
        asked = {query.model for query in queries}
        told = [reading for reading in readings if reading.dsl.model in asked]
        for note in dict.fromkeys(note for reading in told for note in reading.notes):
            await scope.warn("db_query_read", note)
        words = dict.fromkeys(word for reading in told for word in reading.unplaced)
        if words:
            shown = ", ".join(map(repr, words))
            await scope.warn("db_query_words", f"words that are no condition were searched for as text: {shown}")

    # ---- asking

    async def _permitted(self, queries: list[QueryDSL], permits: Permits, scope: Scope) -> list[QueryDSL]:
        refused = [permit for query in queries if isinstance(permit := permits[query.model], NotPermitted)]
        if refused and len(refused) == len(queries):
            raise refused[0]
        for refusal in refused:
            await scope.warn(refusal.code, refusal.message)
        return [query for query in queries if not isinstance(permits[query.model], NotPermitted)]

    async def _ask(self, queries: list[QueryDSL], permits: Permits, limit: int) -> Found:
        items: list[Item] = []
        total = 0
        for query in queries:
            permit = permits[query.model]
            assert not isinstance(permit, NotPermitted)
            answer = await self._once(query, permit, limit)
            items += items_of(answer.rows, self._store.schema(query.model), query, limit)
            total += answer.total
        items.sort(key=lambda item: -item.score)
        asked = [query.wire() for query in queries]
        return Found(items=tuple(items[:limit]), total=total, dsl=asked[0] if len(asked) == 1 else {"queries": asked})

    async def _once(self, query: QueryDSL, permit: Permit | None, limit: int) -> Answer:
        clean, most = checked(query, self._store.schemas), query.limit or limit
        with span("db_query", query.model, dsl=query.wire()) as node:
            sql, parameters = self._store.render(self._store.statement(clean, permit, most))
            node.data.update(sql=sql, parameters={name: plain(value) for name, value in parameters.items()})
            answer = await self._store.run(clean, permit, most)
            node.data.update(rows=len(answer.rows), total=answer.total)
        # A limit of the question's own ("top 5") is all that was asked for.
        return replace(answer, total=min(answer.total, query.limit)) if query.limit and query.limit < limit else answer


def _looser(query: QueryDSL) -> QueryDSL | None:
    wheres = tuple(
        where.model_copy(update={"op": MATCH_ANY}) if where.op == MATCH and len(where.value) > 1 else where
        for where in query.wheres
    )
    return query.model_copy(update={"wheres": wheres}) if wheres != query.wheres else None
