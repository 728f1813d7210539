"""Runs queries on the models of a database, as the identity of a search may: `permit_for` has the
limits of each model that a query reads, and `joins.row_limits` adds them to every statement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from groundhook.core.errors import NotPermitted, SourceError
from groundhook.core.ports import Scope, SourceResult
from groundhook.core.trace import Span, span
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.search import Item
from groundhook.handlers.db.items import first_rows, items_of, tabulated
from groundhook.handlers.db.model.coerce import to_json
from groundhook.handlers.db.permission import permit_for
from groundhook.handlers.db.query.dsl import QueryDSL, models_of
from groundhook.handlers.db.query.joins import Permits
from groundhook.handlers.db.query.linter import checked_with_warnings
from groundhook.handlers.db.query.statement import ROWS
from groundhook.handlers.db.query_warnings import CheckedQuery
from groundhook.handlers.db.question.sentence import Teller
from groundhook.handlers.db.store import QueryResult, Store


class QueryRunner:
    """Checks and runs queries of one database."""

    def __init__(self, store: Store, models: Mapping[str, ModelSpec]) -> None:
        self._store, self._models = store, models

    def check(self, query: QueryDSL) -> CheckedQuery:
        """Return a query ready for the compiler. Raises SourceError for one with a mistake."""
        return CheckedQuery(query, *checked_with_warnings(query, self._store.schemas))

    def check_all(self, queries: Iterable[QueryDSL]) -> list[CheckedQuery]:
        """Return queries ready for the compiler. Raises SourceError."""
        return [self.check(query) for query in queries]

    async def drop_forbidden(self, checked: list[CheckedQuery], scope: Scope) -> list[CheckedQuery]:
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

    async def run_all(
        self, checked: list[CheckedQuery], limit: int, scope: Scope, teller: Teller
    ) -> SourceResult:
        """Return up to `limit` rows of all queries, each a table with columns that `teller` names.
        Raises SourceError, NotPermitted."""
        answers = [await self.run(one, limit, scope) for one in checked]
        return _result_of(checked, answers, limit, teller)

    async def run_reading(
        self, checked: CheckedQuery, limit: int, scope: Scope, teller: Teller
    ) -> tuple[QueryDSL, SourceResult]:
        """Return the query of a reading and its rows. The query of a first record becomes that of
        all that equal it: two cheapest ones are both the cheapest. Raises SourceError,
        NotPermitted."""
        query = checked.query
        if query.limit == 1 < limit and query.orders and not query.ties:
            answer = await self.run(_changed(checked, {"limit": 2}), 2, scope, count_total=False)
            values = [[row.get(order.field) for order in query.orders] for row in answer.rows]
            if len(values) < 2 or values[0] != values[1] or None in values[0]:
                first = replace(answer, rows=answer.rows[:1], total=min(answer.total, 1))
                return query, _result_of([checked], [first], limit, teller)
            checked = _changed(checked, {"ties": True})
        return checked.query, await self.run_all([checked], limit, scope, teller)

    async def run(
        self, checked: CheckedQuery, limit: int, scope: Scope, *, count_total: bool = True
    ) -> QueryResult:
        """Return the rows of one query. With `count_total`, also count all matches, unless the
        query's own limit is lower than `limit`. Raises SourceError, NotPermitted."""
        permits = self._permits(checked.query, scope)
        model, row_limit = checked.query.model, min(checked.query.limit or limit, limit)
        # "top 5" needs no total.
        count_total = count_total and (checked.query.limit or limit + 1) > limit
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

    def _permits(self, query: QueryDSL, scope: Scope) -> Permits:
        """Return the limits of every model that the query reads. Raises NotPermitted."""
        return {
            model: permit_for(self._models[model], scope.identity)
            for model in models_of(query, self._store.schemas)
        }


def _result_of(
    checked: Sequence[CheckedQuery], answers: Sequence[QueryResult], limit: int, teller: Teller
) -> SourceResult:
    """Return the rows of queries as tables, up to `limit`, and those that equal the last one where
    a query wants them."""
    tables: list[list[Item]] = []
    total, at_least, most = 0, False, limit
    for one, answer in zip(checked, answers, strict=True):
        tables.append(_rows_of(one.query, answer, limit, teller))
        total += answer.total
        at_least |= answer.total_is_lower_bound
        if one.query.ties:
            most += max(0, len(answer.rows) - min(one.query.limit or limit, limit))
    queries = [{**one.query.wire(), "limit": one.query.limit or limit} for one in checked]
    return SourceResult(
        items=tuple(first_rows(tables, most)),
        total=total,
        total_is="at_least" if at_least else "exact",
        dsl=queries[0] if len(queries) == 1 else {"queries": queries},
    )


def _changed(checked: CheckedQuery, update: Mapping[str, Any]) -> CheckedQuery:
    query, clean = (one.model_copy(update=update) for one in (checked.query, checked.clean))
    return checked._replace(query=query, clean=clean)


def _rows_of(query: QueryDSL, answer: QueryResult, limit: int, teller: Teller) -> list[Item]:
    """Return the rows of an answer as a table, in the order of the query; where it has none, those
    with more of the words come first."""
    items = tabulated(
        items_of(answer.rows, query, teller, limit),
        answer.rows,
        query,
        teller,
        total=answer.total,
        at_least=answer.total_is_lower_bound,
    )
    if not (query.orders or query.computed):
        items.sort(key=lambda item: -item.score)
    return items


def _has_records(answer: QueryResult, checked: CheckedQuery) -> bool:
    """Return whether a record matched; a row of aggregates over no records does not count."""
    return any(row.get(ROWS, 1) if checked.clean.computed else True for row in answer.rows)


def _record_sql(node: Span, sql: str, parameters: Mapping[str, Any]) -> None:
    node.data.update(
        sql=sql, parameters={name: to_json(value) for name, value in parameters.items()}
    )
