"""The database source: it turns a question and the caller's conditions into queries on the models,
and records into items.

The built-in grammar (`handlers.db.question`) or the delegate in `uses.query` reads the question.
The handler computes what the identity may read of every model of a query (`Permits`), and passes it
with each query; `joins.row_limits` adds these limits to every statement.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio.to_thread

from groundhook.core.errors import (
    DelegateError,
    NotPermitted,
    SourceError,
    SourceNotConfigured,
    suggestion,
)
from groundhook.core.ports import Scope, SourceResult
from groundhook.core.trace import Span, span
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.query_language import Where
from groundhook.core.types.search import (
    Item,
    RecordQuery,
    SearchRequest,
)
from groundhook.handlers.db.delegated import read_by_delegate
from groundhook.handlers.db.items import items_of, less_certain
from groundhook.handlers.db.model.coerce import to_json
from groundhook.handlers.db.offers import Offers
from groundhook.handlers.db.permission import permit_for
from groundhook.handlers.db.query.dsl import QueryDSL, models_of
from groundhook.handlers.db.query.joins import Permits
from groundhook.handlers.db.query.linter import checked_with_warnings
from groundhook.handlers.db.query.request_query import (
    merge,
    requests_words,
    unknown_field,
    with_any_word,
    without_words,
)
from groundhook.handlers.db.query.statement import ROWS
from groundhook.handlers.db.query_warnings import CheckedQuery, query_warnings
from groundhook.handlers.db.question.languages import words_for
from groundhook.handlers.db.question.lexicons import Lexicons
from groundhook.handlers.db.question.reading import Reading, read_question
from groundhook.handlers.db.store import QueryResult, Store


class DBHandler:
    """Searches the models of one database. Implements `core.ports.Handler`."""

    def __init__(self, store: Store, models: Mapping[str, ModelSpec]) -> None:
        self._store, self._models, self._lexicons = store, models, Lexicons()
        self._offers = Offers(store, models)

    async def search(self, request: SearchRequest, scope: Scope, /) -> SourceResult:
        """Return records of `request.models`, best first. `SourceResult.dsl` is the query, or
        {"queries": […]} for several models. Raises SourceError, and NotPermitted if the identity
        may see none of the models."""
        self._require_models(request.models)
        limit = request.limit or scope.settings.db.max_results
        readings, checked = await self._build_queries(request, limit, scope)
        if not readings:
            await scope.warn(
                "db_query_words",
                "no part of the question matches the models; nothing was searched",
            )
            return SourceResult(total=0)
        for code, message in query_warnings(request, readings, checked):
            await scope.warn(code, message)
        permitted = await self._drop_forbidden_queries(checked, scope)
        found = await self._run_all(permitted, scope, limit)
        if not found.items:
            found = await self._search_any_word(permitted, scope, limit) or found
        if _is_empty(found) and not requests_words(request):
            lists = {reading.dsl.model for reading in readings if reading.lists}
            found = await self._search_without_words(permitted, lists, scope, limit) or found
        return found

    async def _build_queries(
        self, request: SearchRequest, limit: int, scope: Scope
    ) -> tuple[list[Reading], list[CheckedQuery]]:
        """Return the readings of the question, and a checked query for each model. Readings that
        request nothing are dropped, unless the caller's own conditions make a query of them."""
        with span("dsl_build", "query from the question", query=request.query) as node:
            has_conditions = (
                request.wheres or request.orders or request.aggregates or request.group_by
            )
            readings = [
                reading
                for reading in await self._read_question(request, scope)
                if reading.requests_something or has_conditions
            ]
            queries = [merge(request, reading.dsl, limit) for reading in readings]
            checked = self._check_all(await self._with_known_fields(request, queries, scope))
            node.data.update(
                dsl=[one.query.wire() for one in checked],
                not_understood=[list(reading.not_understood) for reading in readings],
            )
        return readings, checked

    async def _search_any_word(
        self, permitted: list[CheckedQuery], scope: Scope, limit: int
    ) -> SourceResult | None:
        """Search for records with any of the words; None if no query has several words."""
        loose = self._check_all(query for one in permitted if (query := with_any_word(one.query)))
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
        self,
        permitted: list[CheckedQuery],
        lists: Collection[str],
        scope: Scope,
        limit: int,
    ) -> SourceResult | None:
        """Search without the words; None if every query has words alone. `lists`: models of which
        the question requests a list of records ("all books")."""
        queries = (without_words(one.query, lists=one.query.model in lists) for one in permitted)
        bare = self._check_all(query for query in queries if query)
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
        checked = self._check(dsl)  # before the permits: an unknown field must not raise in them
        answer = await self._run_query(
            checked, self._permits(dsl, scope), query.limit, scope, count_total=False
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

        # In a thread, since it takes long for two questions: the first compiles the words of the
        # language, and the first after each sampling the values of the tables.
        readings = await anyio.to_thread.run_sync(read)
        not_understood = dict.fromkeys(
            word for reading in readings for word in reading.not_understood
        )
        if not_understood and scope.settings.query.strict:
            raise SourceError(
                "the question has words that were not understood:"
                f" {', '.join(map(repr, not_understood))}",
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

    async def _drop_forbidden_queries(
        self, checked: list[CheckedQuery], scope: Scope
    ) -> list[CheckedQuery]:
        """Return the queries that the identity may run, with a warning for each other one. Raises
        NotPermitted if it may run none."""
        permitted: list[CheckedQuery] = []
        refused: list[NotPermitted] = []
        for one in checked:
            try:
                self._permits(one.query, scope)
                permitted.append(one)
            except NotPermitted as exc:
                refused.append(exc)
        if refused and not permitted:
            raise refused[0]
        for refusal in refused:
            await scope.warn(refusal.code, refusal.message)
        return permitted

    # ---- execution

    async def _run_all(
        self, permitted: list[CheckedQuery], scope: Scope, limit: int
    ) -> SourceResult:
        items: list[Item] = []
        total = 0
        for one in permitted:
            answer = await self._run_query(one, self._permits(one.query, scope), limit, scope)
            items += items_of(answer.rows, one.query, self._store.schemas, limit)
            total += answer.total
        items.sort(key=lambda item: -item.score)
        queries = [one.query.wire() for one in permitted]
        return SourceResult(
            items=tuple(items[:limit]),
            total=total,
            dsl=queries[0] if len(queries) == 1 else {"queries": queries},
        )

    async def _run_query(
        self,
        checked: CheckedQuery,
        permits: Permits,
        limit: int,
        scope: Scope,
        *,
        count_total: bool = True,
    ) -> QueryResult:
        """Return the rows of one query. With `count_total`, also count all matches, unless the
        query's own limit is lower than `limit`."""
        model, row_limit = checked.query.model, checked.query.limit or limit
        count_total = count_total and row_limit >= limit  # "top 5" needs no total
        run = partial(self._run_traced, checked, permits, row_limit, count_total=count_total)
        use_index = await self._store.has_index(checked.clean)
        answer = await run(use_index=use_index)
        if use_index and not _has_records(answer, checked):
            answer = await run(use_index=False)  # an index does not match inside words
        if answer.truncated:
            await scope.warn(
                "db_result_cut",
                f"the result was too large: {len(answer.rows)} rows of {model!r} are returned"
                " (name fields with 'select', or raise database.result_kb)",
            )
        if answer.total_is_lower_bound:
            await scope.warn(
                "db_total",
                f"at least {answer.total} records of {model!r} match; not all were counted",
            )
        return answer

    async def _run_traced(
        self,
        checked: CheckedQuery,
        permits: Permits,
        row_limit: int,
        *,
        use_index: bool,
        count_total: bool,
    ) -> QueryResult:
        query = checked.clean
        with span("db_query", checked.query.model, dsl=checked.query.wire()) as node:
            try:
                answer = await self._store.run(
                    query, permits, row_limit, use_index=use_index, count_total=count_total
                )
            except SourceError:
                _record_sql(node, *self._store.sql(query, permits, row_limit, use_index=use_index))
                raise
            _record_sql(node, answer.sql, answer.parameters)
            node.data.update(rows=len(answer.rows), total=answer.total)
        return answer


def _has_records(answer: QueryResult, checked: CheckedQuery) -> bool:
    """Return whether a record matched; a row of aggregates over no records does not count."""
    return any(row.get(ROWS, 1) if checked.clean.computed else True for row in answer.rows)


def _is_empty(found: SourceResult) -> bool:
    """Return whether there are no items, or only aggregates over no records."""
    return not any(item.query.rows if item.query else True for item in found.items)


def _record_sql(node: Span, sql: str, parameters: Mapping[str, Any]) -> None:
    node.data.update(
        sql=sql, parameters={name: to_json(value) for name, value in parameters.items()}
    )
