"""The database source: it turns a question and the caller's conditions into queries on the models,
and records into items.

The built-in grammar (`handlers.db.question`) or the delegate in `uses.query` reads the question.
The limits of the identity are ANDed last, here and nowhere else, for every model that a query
reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import anyio.to_thread

from groundhook.handlers.db.coerce import to_json
from groundhook.handlers.db.delegated import read_by_delegate
from groundhook.handlers.db.dsl import QueryDSL, models_of
from groundhook.handlers.db.items import items_of, less_certain
from groundhook.handlers.db.joins import Permits
from groundhook.handlers.db.linter import checked_with_warnings
from groundhook.handlers.db.offers import Offers
from groundhook.handlers.db.permission import permit_for
from groundhook.handlers.db.query_warnings import CheckedQuery, query_warnings
from groundhook.handlers.db.question.languages import words_for
from groundhook.handlers.db.question.lexicons import Lexicons
from groundhook.handlers.db.question.reading import Reading, read_question
from groundhook.handlers.db.request_query import (
    merge,
    unknown_field,
    with_any_word,
    without_words,
)
from groundhook.handlers.db.statement import ROWS
from groundhook.handlers.db.store import QueryResult, Store
from groundhook.host.core.errors import (
    DelegateError,
    NotPermitted,
    SourceError,
    SourceNotConfigured,
    suggestion,
)
from groundhook.host.core.ports import Scope, SourceResult
from groundhook.host.core.trace import Span, span
from groundhook.host.core.types.model_spec import ModelSpec
from groundhook.host.core.types.query_language import Where
from groundhook.host.core.types.search import (
    Item,
    RecordQuery,
    SearchRequest,
)


class DBHandler:
    """Searches the models of one database. Implements `host.core.ports.Handler`."""

    def __init__(self, store: Store, models: Mapping[str, ModelSpec]) -> None:
        self._store, self._models, self._lexicons = store, models, Lexicons()
        self._offers = Offers(store, models)

    async def search(self, request: SearchRequest, scope: Scope, /) -> SourceResult:
        """Return records of `request.models`, best first. `SourceResult.dsl` is the query, or
        {"queries": […]} for several models. Raises SourceError, and NotPermitted if the identity
        may see none of the models."""
        self._require_models(request.models)
        limit = request.limit or scope.settings.db.max_results
        readings, asks = await self._build_queries(request, limit, scope)
        if not readings:
            await scope.warn(
                "db_query_words",
                "no part of the question matches the models; nothing was searched",
            )
            return SourceResult(total=0)
        for code, message in query_warnings(request, readings, asks):
            await scope.warn(code, message)
        asks = await self._permit_clauses(asks, scope)
        found = await self._run_all(asks, scope, limit)
        if not found.items:
            found = await self._search_any_word(asks, scope, limit) or found
        if _is_empty(found):
            lists = {reading.dsl.model for reading in readings if reading.lists}
            found = await self._search_without_words(asks, lists, scope, limit) or found
        return found

    async def _build_queries(
        self, request: SearchRequest, limit: int, scope: Scope
    ) -> tuple[list[Reading], list[CheckedQuery]]:
        """Return the readings of the question that request anything, or that the caller's
        conditions complete, and a checked query for each model."""
        with span("dsl_build", "query from the question", query=request.query) as node:
            given = request.wheres or request.orders or request.aggregates or request.group_by
            readings = [
                one for one in await self._read_question(request, scope) if one.asks or given
            ]
            queries = [merge(request, reading.dsl, limit) for reading in readings]
            asks = self._check_all(await self._with_known_fields(request, queries, scope))
            node.data.update(
                dsl=[ask.query.wire() for ask in asks],
                unplaced=[list(one.unplaced) for one in readings],
            )
        return readings, asks

    async def _search_any_word(
        self, asks: list[CheckedQuery], scope: Scope, limit: int
    ) -> SourceResult | None:
        """Search for records with any of the words; None if no query has several words."""
        loose = self._check_all(one for ask in asks if (one := with_any_word(ask.query)))
        if not loose:
            return None
        found = await self._run_all(loose, scope, limit)
        words = (
            "all of these words; records with any of them are returned"
            if found.items
            else "any of these words"
        )
        await scope.warn("db_query_words", f"no record has {words}")
        return found

    async def _search_without_words(
        self, asks: list[CheckedQuery], lists: Collection[str], scope: Scope, limit: int
    ) -> SourceResult | None:
        """Search without the words; None if no query requests anything beside them. `lists` are the
        models of whose records the question requests a list."""
        queries = (without_words(ask.query, lists=ask.query.model in lists) for ask in asks)
        bare = self._check_all(one for one in queries if one)
        if not bare:
            return None
        found = await self._run_all(bare, scope, limit)
        if _is_empty(found):
            return found
        await scope.warn(
            "db_query_words", "no record has the words; the rest of the question was used"
        )
        return replace(found, items=tuple(map(less_certain, found.items)))

    async def records(self, query: RecordQuery, scope: Scope, /) -> list[dict[str, Any]]:
        """Return the records that meet the conditions and that the identity may see. Raises
        SourceError, NotPermitted."""
        self._require_models([query.model])
        schema = self._store.schemas[query.model]
        one = () if query.record_id is None else (Where(field=schema.key, value=query.record_id),)
        dsl = QueryDSL(
            model=query.model,
            select=query.select,
            wheres=(*query.wheres, *one),
            orders=query.orders,
        )
        ask = self._check(dsl)  # before the permits: an unknown field must not raise in them
        answer = await self._run_query(
            ask, self._permits(dsl, scope), query.limit, scope, counted=False
        )
        return [
            item.data or {} for item in items_of(answer.rows, dsl, self._store.schemas, query.limit)
        ]

    # ---- queries

    def _check(self, query: QueryDSL) -> CheckedQuery:
        return CheckedQuery(query, *checked_with_warnings(query, self._store.schemas))

    def _check_all(self, queries: Iterable[QueryDSL]) -> list[CheckedQuery]:
        return [self._check(query) for query in queries]

    def _require_models(self, models: Sequence[str] | None) -> None:
        if not models:
            raise SourceNotConfigured(
                "no model to search is configured",
                hint="name models in the search or under 'db.models'",
            )
        for model in models:
            if model not in self._models:
                raise SourceNotConfigured(
                    f"no model {model!r}", hint=suggestion(model, sorted(self._models))
                )

    async def _read_question(self, request: SearchRequest, scope: Scope) -> list[Reading]:
        if scope.uses.query != "builtin":
            try:
                limit = request.limit or scope.settings.db.max_results
                return await read_by_delegate(
                    scope.uses.query, request, self._store.schemas, limit, scope
                )
            except DelegateError as exc:
                await scope.warn(exc.code, f"{exc}; the built-in reading of questions was used")
        offers = await self._offers.build(request.models or (), request.query, scope)
        now, language = scope.now(), scope.settings.query.language

        def read() -> list[Reading]:
            words = words_for(language, request.query)
            return read_question(request.query, offers, words, now, self._lexicons)

        # In a thread: the first question compiles the words, the first after sampling the values.
        readings = await anyio.to_thread.run_sync(read)
        unplaced = list(dict.fromkeys(word for reading in readings for word in reading.unplaced))
        if unplaced and scope.settings.query.strict:
            raise SourceError(
                "the question has words that were not understood:"
                f" {', '.join(map(repr, unplaced))}",
                hint="query.strict is on; without it they are searched for as text",
            )
        return readings

    async def _with_known_fields(
        self, request: SearchRequest, queries: list[QueryDSL], scope: Scope
    ) -> list[QueryDSL]:
        """Drop the queries on models that lack a field of the caller's request, unless that leaves
        none."""
        schemas, kept = self._store.schemas, []
        for query in queries:
            lacks = unknown_field(request, schemas[query.model], schemas)
            if lacks is not None and len(queries) > 1:
                await scope.warn(
                    "db_model_skipped",
                    f"{query.model!r} was not searched: it has no field {lacks!r}",
                )
            else:
                kept.append(query)
        return kept or queries[:1]  # the missing field becomes the error

    # ---- permissions

    def _permits(self, query: QueryDSL, scope: Scope) -> Permits:
        """Return the limits of every model that the query reads. Raises NotPermitted."""
        return {
            model: permit_for(self._models[model], scope.identity)
            for model in models_of(query, self._store.schemas)
        }

    async def _permit_clauses(self, asks: list[CheckedQuery], scope: Scope) -> list[CheckedQuery]:
        permitted: list[CheckedQuery] = []
        refused: list[NotPermitted] = []
        for ask in asks:
            try:
                self._permits(ask.query, scope)
                permitted.append(ask)
            except NotPermitted as exc:
                refused.append(exc)
        if refused and not permitted:
            raise refused[0]
        for refusal in refused:
            await scope.warn(refusal.code, refusal.message)
        return permitted

    # ---- execution

    async def _run_all(self, asks: list[CheckedQuery], scope: Scope, limit: int) -> SourceResult:
        items: list[Item] = []
        total = 0
        for ask in asks:
            answer = await self._run_query(ask, self._permits(ask.query, scope), limit, scope)
            items += items_of(answer.rows, ask.query, self._store.schemas, limit)
            total += answer.total
        items.sort(key=lambda item: -item.score)
        queries = [ask.query.wire() for ask in asks]
        return SourceResult(
            items=tuple(items[:limit]),
            total=total,
            dsl=queries[0] if len(queries) == 1 else {"queries": queries},
        )

    async def _run_query(
        self, ask: CheckedQuery, permits: Permits, limit: int, scope: Scope, *, counted: bool = True
    ) -> QueryResult:
        """Return the rows of one query. With `counted`, also count all matches, unless the query's
        own limit is lower than `limit`."""
        model, most = ask.query.model, ask.query.limit or limit
        counted = counted and most >= limit  # "top 5" needs no total
        indexed = await self._store.indexed(ask.clean)
        answer = await self._run_traced(ask, permits, most, indexed=indexed, counted=counted)
        if indexed and not any(
            row.get(ROWS, 1) if ask.clean.computed else True for row in answer.rows
        ):
            # An index does not match inside words.
            answer = await self._run_traced(ask, permits, most, indexed=False, counted=counted)
        if answer.cut:
            await scope.warn(
                "db_result_cut",
                f"the result was too large: {len(answer.rows)} rows of {model!r} are returned"
                " (name fields with 'select', or raise database.result_kb)",
            )
        if answer.more:
            await scope.warn(
                "db_total",
                f"at least {answer.total} records of {model!r} match; not all were counted",
            )
        return answer

    async def _run_traced(
        self, ask: CheckedQuery, permits: Permits, most: int, *, indexed: bool, counted: bool
    ) -> QueryResult:
        with span("db_query", ask.query.model, dsl=ask.query.wire()) as node:
            try:
                answer = await self._store.run(
                    ask.clean, permits, most, indexed=indexed, counted=counted
                )
            except SourceError:
                _record_sql(node, *self._store.sql(ask.clean, permits, most, indexed=indexed))
                raise
            _record_sql(node, answer.sql, answer.parameters)
            node.data.update(rows=len(answer.rows), total=answer.total)
        return answer


def _is_empty(found: SourceResult) -> bool:
    """Return whether no record was found, nor any behind the figures."""
    return not any(item.query.rows if item.query else True for item in found.items)


def _record_sql(node: Span, sql: str, parameters: Mapping[str, Any]) -> None:
    node.data.update(
        sql=sql, parameters={name: to_json(value) for name, value in parameters.items()}
    )
