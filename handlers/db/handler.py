"""The database source: a question and the caller's conditions become queries on the models, records
become items.

The question is read by the builtin grammar (`handlers.db.question`), or by whom `uses.query` names.
Whoever wrote the conditions, the limits of the identity are ANDed last, here and nowhere else, for
every model that a query reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import anyio.to_thread

from groundhook.handlers.db.coerce import plain
from groundhook.handlers.db.delegated import read_by
from groundhook.handlers.db.dsl import QueryDSL, reached
from groundhook.handlers.db.items import items_of
from groundhook.handlers.db.linter import Problem, checked_with_warnings
from groundhook.handlers.db.paths import Permits
from groundhook.handlers.db.permission import permit_for
from groundhook.handlers.db.query_entry import looser, merged, missing, unheard
from groundhook.handlers.db.question.languages import words_for
from groundhook.handlers.db.question.lexicon import Lexicons, Offer
from groundhook.handlers.db.question.reading import Reading, read_question
from groundhook.handlers.db.statement import ROWS
from groundhook.handlers.db.store import Answer, Samples, Store
from groundhook.host.core.errors import (
    DelegateError,
    NotPermitted,
    SourceError,
    SourceNotConfigured,
    SourceTimeout,
    suggestion,
)
from groundhook.host.core.ports import Found, Scope
from groundhook.host.core.trace import Span, span
from groundhook.host.core.types.search import Item, RecordQuery, SearchRequest, Where
from groundhook.host.core.types.specs import ModelSpec

NONE: Samples = {}  # one and the same: what is made of samples is kept by who they are


SHOWN = 60  # characters of a word in a warning


class Ask(NamedTuple):
    """A query as it was said, the same ready for the compiler, and what is to be said about it."""

    query: QueryDSL
    clean: QueryDSL
    warnings: list[Problem]


class DBHandler:
    """Searches the models of one database. Implements `host.core.ports.Handler`."""

    def __init__(self, store: Store, models: Mapping[str, ModelSpec]) -> None:
        self._store, self._models, self._lexicons = store, models, Lexicons()

    async def search(self, request: SearchRequest, scope: Scope, /) -> Found:
        """Records of `request.models`, best first. `Found.dsl` is the query, or {"queries": […]}
        where several models were asked. Raises SourceError; NotPermitted when the identity may not
        see what the question is about."""
        self._know(request.models)
        limit = request.limit or scope.settings.db.max_results
        with span("dsl_build", "query from the question", query=request.query) as node:
            said = request.wheres or request.orders or request.aggregates or request.group_by
            readings = [one for one in await self._read(request, scope) if one.asks or said]
            queries = [merged(request, reading.dsl, limit) for reading in readings]
            asks = [
                self._checked(query) for query in await self._answerable(request, queries, scope)
            ]
            node.data.update(
                dsl=[ask.query.wire() for ask in asks],
                unplaced=[list(one.unplaced) for one in readings],
            )
        if not readings:
            await scope.warn(
                "db_query_words",
                "the question asks for nothing that the models have; nothing was searched",
            )
            return Found(total=0)
        await self._tell(request, readings, asks, scope)
        asks = await self._permitted(asks, scope)
        found = await self._ask(asks, scope, limit)
        if not found.items and (
            loose := [one for ask in asks if (one := looser(ask.query)) is not None]
        ):
            found = await self._ask([self._checked(query) for query in loose], scope, limit)
            shown = (
                "all of these words; those with any of them are shown"
                if found.items
                else "any of these words"
            )
            await scope.warn("db_query_words", f"no record has {shown}")
        return found

    async def records(self, query: RecordQuery, scope: Scope, /) -> list[dict[str, Any]]:
        """Records that meet the conditions and that the identity may see. Raises SourceError,
        NotPermitted."""
        self._know([query.model])
        schema = self._store.schemas[query.model]
        one = () if query.record_id is None else (Where(field=schema.key, value=query.record_id),)
        dsl = QueryDSL(
            model=query.model,
            select=query.select,
            wheres=(*query.wheres, *one),
            orders=query.orders,
        )
        ask = self._checked(dsl)  # before anything is asked of it
        answer = await self._once(ask, self._permits(dsl, scope), query.limit, scope, counted=False)
        return [
            item.data or {} for item in items_of(answer.rows, dsl, self._store.schemas, query.limit)
        ]

    # ---- what is asked

    def _checked(self, query: QueryDSL) -> Ask:
        return Ask(query, *checked_with_warnings(query, self._store.schemas))

    def _know(self, models: Sequence[str] | None) -> None:
        if not models:
            raise SourceNotConfigured(
                "there is no model to search", hint="name models in the search or under 'db.models'"
            )
        for model in models:
            if model not in self._models:
                raise SourceNotConfigured(
                    f"no model {model!r}", hint=suggestion(model, sorted(self._models))
                )

    async def _read(self, request: SearchRequest, scope: Scope) -> list[Reading]:
        if scope.uses.query != "builtin":
            try:
                limit = request.limit or scope.settings.db.max_results
                return await read_by(scope.uses.query, request, self._store.schemas, limit, scope)
            except DelegateError as exc:
                await scope.warn(exc.code, f"{exc}; the built-in reading of questions was used")
        words = words_for(scope.settings.query.language, request.query)
        offers = await self._offers(request.models or (), scope)
        read = partial(read_question, request.query, offers, words, scope.now(), self._lexicons)
        readings = await anyio.to_thread.run_sync(
            read
        )  # quick, but for the first question after values were sampled
        unplaced = list(dict.fromkeys(word for reading in readings for word in reading.unplaced))
        if unplaced and scope.settings.query.strict:
            raise SourceError(
                "the question has words that could not be placed:"
                f" {', '.join(map(repr, unplaced))}",
                hint="query.strict is on; without it they are searched for as text",
            )
        return readings

    async def _offers(self, models: Sequence[str], scope: Scope) -> list[Offer]:
        """What the models have, without those whose tables are not there or differ, as long as
        another is left."""
        offers: list[Offer] = []
        failed: list[tuple[str, SourceNotConfigured]] = []
        for model in models:
            try:
                offers.append(await self._offer(model, scope))
            except SourceNotConfigured as exc:
                failed.append((model, exc))
        if failed and not offers:
            raise failed[0][1]
        for model, why in failed:
            await scope.warn("db_model_skipped", f"{model!r} was not searched: {why}")
        return offers

    async def _offer(self, model: str, scope: Scope) -> Offer:
        """The model and its values, with those of the models it is related to that the identity may
        see."""
        schema, samples = self._store.schemas[model], await self._samples(model, scope)
        related = {}
        for relation in schema.relations.values():
            if relation.model in self._models and self._may_see(relation.model, scope):
                there = self._store.schemas[relation.model]
                try:
                    related[relation.name] = Offer(
                        there, await self._samples(relation.model, scope)
                    )
                except SourceNotConfigured as exc:  # its table is not there; the model's own may be
                    await scope.warn(
                        "db_sample", f"{relation.name!r} of {model!r} was left out: {exc.message}"
                    )
        return Offer(schema, samples, related)

    def _may_see(self, model: str, scope: Scope) -> bool:
        try:
            permit_for(self._models[model], scope.identity)
        except NotPermitted:
            return False
        return True

    async def _samples(self, model: str, scope: Scope) -> Samples:
        try:
            return await self._store.samples(model, permit_for(self._models[model], scope.identity))
        except NotPermitted:
            return NONE
        except SourceTimeout as exc:
            await scope.warn(
                "db_sample", f"the values of {model!r} could not be sampled: {exc.message}"
            )
            return NONE

    async def _answerable(
        self, request: SearchRequest, queries: list[QueryDSL], scope: Scope
    ) -> list[QueryDSL]:
        """Without the models that lack a field which the caller named, as long as another has
        it."""
        schemas, left = self._store.schemas, []
        for query in queries:
            lacks = missing(request, schemas[query.model], schemas)
            if lacks is not None and len(queries) > 1:
                await scope.warn(
                    "db_model_skipped",
                    f"{query.model!r} was not searched: it has no field {lacks!r}",
                )
            else:
                left.append(query)
        return left or queries[:1]  # whose missing field becomes the error

    async def _tell(
        self, request: SearchRequest, readings: list[Reading], asks: list[Ask], scope: Scope
    ) -> None:
        asked = {ask.query.model for ask in asks}
        told = [reading for reading in readings if reading.dsl.model in asked]
        for note in dict.fromkeys(note for reading in told for note in reading.notes):
            await scope.warn("db_query_read", note)
        for name in dict.fromkeys(
            name for reading in told for name in unheard(request, reading.dsl)
        ):
            await scope.warn(
                "db_query_read", f"the question asks for figures: {name!r} has no effect on them"
            )
        for problem in dict.fromkeys(str(one) for ask in asks for one in ask.warnings):
            await scope.warn("db_query_lint", problem)
        left = dict.fromkeys(word for reading in told for word in reading.left_out)
        words = dict.fromkeys(
            word for reading in told for word in reading.unplaced if word not in left
        )
        for found, done in (
            (words, "searched for as text where they may occur"),
            (left, "left out"),
        ):
            if found:
                shown = ", ".join(
                    repr(word if len(word) <= SHOWN else f"{word[:SHOWN]}…") for word in found
                )
                await scope.warn(
                    "db_query_words", f"words that were not understood, and {done}: {shown}"
                )

    # ---- who may see it

    def _permits(self, query: QueryDSL, scope: Scope) -> Permits:
        """The limits of every model that the query reads. Raises NotPermitted."""
        return {
            model: permit_for(self._models[model], scope.identity)
            for model in reached(query, self._store.schemas)
        }

    async def _permitted(self, asks: list[Ask], scope: Scope) -> list[Ask]:
        open: list[Ask] = []
        refused: list[NotPermitted] = []
        for ask in asks:
            try:
                self._permits(ask.query, scope)
                open.append(ask)
            except NotPermitted as exc:
                refused.append(exc)
        if refused and not open:
            raise refused[0]
        for refusal in refused:
            await scope.warn(refusal.code, refusal.message)
        return open

    # ---- asking

    async def _ask(self, asks: list[Ask], scope: Scope, limit: int) -> Found:
        items: list[Item] = []
        total = 0
        for ask in asks:
            answer = await self._once(ask, self._permits(ask.query, scope), limit, scope)
            items += items_of(answer.rows, ask.query, self._store.schemas, limit)
            total += answer.total
        items.sort(key=lambda item: -item.score)
        asked = [ask.query.wire() for ask in asks]
        return Found(
            items=tuple(items[:limit]),
            total=total,
            dsl=asked[0] if len(asked) == 1 else {"queries": asked},
        )

    async def _once(
        self, ask: Ask, permits: Permits, limit: int, scope: Scope, *, counted: bool = True
    ) -> Answer:
        """The rows of one query; `counted`: with how many there are in all, unless its own limit
        says how many are wanted."""
        model, most = ask.query.model, ask.query.limit or limit
        counted = counted and most >= limit  # "top 5" is all that was asked for
        indexed = await self._store.indexed(ask.clean)
        answer = await self._run(ask, permits, most, indexed=indexed, counted=counted)
        if indexed and not any(
            row.get(ROWS, 1) if ask.clean.computed else True for row in answer.rows
        ):
            # An index does not see inside of words.
            answer = await self._run(ask, permits, most, indexed=False, counted=counted)
        if answer.cut:
            said = f"the result was too large: {len(answer.rows)} rows of {model!r} are shown"
            await scope.warn(
                "db_result_cut", f"{said} (name fields with 'select', or raise database.result_kb)"
            )
        if answer.more:
            await scope.warn(
                "db_total",
                f"{answer.total} or more records of {model!r} match; they were not counted to"
                " the end",
            )
        return answer

    async def _run(
        self, ask: Ask, permits: Permits, most: int, *, indexed: bool, counted: bool
    ) -> Answer:
        with span("db_query", ask.query.model, dsl=ask.query.wire()) as node:
            try:
                answer = await self._store.run(
                    ask.clean, permits, most, indexed=indexed, counted=counted
                )
            except SourceError:
                _note(node, *self._store.sql(ask.clean, permits, most, indexed=indexed))
                raise
            _note(node, answer.sql, answer.parameters)
            node.data.update(rows=len(answer.rows), total=answer.total)
        return answer


def _note(node: Span, sql: str, parameters: Mapping[str, Any]) -> None:
    node.data.update(sql=sql, parameters={name: plain(value) for name, value in parameters.items()})
