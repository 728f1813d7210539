"""The database source: it turns a question and the caller's conditions into queries on the models,
and records into items.

The built-in reader (`handlers.db.question`), a language model (`handlers.db.by_model`) or another
delegate in `uses.query` reads the question.
`QueryRunner` runs its queries, each with what the identity may read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

import anyio.to_thread

from groundhook.core.errors import (
    DelegateError,
    SourceError,
    SourceNotConfigured,
    suggestion,
)
from groundhook.core.ports import Scope, SourceResult
from groundhook.core.settings import AUTO, BY_CONNECTOR
from groundhook.core.trace import span
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.query_language import Where
from groundhook.core.types.search import (
    RecordQuery,
    SearchAccount,
    SearchRequest,
)
from groundhook.core.types.tables import Exported
from groundhook.handlers.db.by_model.draft import Understood, draft_of
from groundhook.handlers.db.by_model.reader import ModelReader, ModelReading
from groundhook.handlers.db.delegated import read_by_delegate
from groundhook.handlers.db.items import exact_rows, values_of
from groundhook.handlers.db.judged import (
    BUILTIN,
    JudgedAnswer,
    declined,
    judged,
    read_by_model,
    refused_by_model,
    sentences,
)
from groundhook.handlers.db.named_readings import NamedReadings
from groundhook.handlers.db.offers import Offers
from groundhook.handlers.db.query.dsl import QueryDSL, parse
from groundhook.handlers.db.query.request_query import (
    computes,
    merge,
    unknown_field,
)
from groundhook.handlers.db.query_warnings import query_warnings
from groundhook.handlers.db.question.forms import QueryReading
from groundhook.handlers.db.question.languages import words_for
from groundhook.handlers.db.question.reading import Reads, read_question
from groundhook.handlers.db.question.sentence import Teller
from groundhook.handlers.db.question.values import models_named
from groundhook.handlers.db.question.vocabulary import Vocabulary
from groundhook.handlers.db.runner import QueryRunner
from groundhook.handlers.db.store import Store


class DBHandler:
    """Searches the models of one database. Implements `core.ports.Handler`."""

    def __init__(self, store: Store, models: Mapping[str, ModelSpec]) -> None:
        self._store, self._models = store, models
        self._offers = Offers(store, models)
        self._runner = QueryRunner(store, models)
        self._model_reader = ModelReader()
        self._named = NamedReadings()

    async def search(self, request: SearchRequest, scope: Scope, /) -> SourceResult:
        """Return records of `request.models`, best first. `SourceResult.dsl` is the query, or
        {"queries": […]} for several models; `account` says how the question was read. A question
        that is not understood has no records. Raises SourceError, and NotPermitted if the identity
        may see none of the models."""
        self._require_models(request.models)
        limit = request.limit or scope.settings.db.max_results
        by = scope.uses.query
        if (chosen := await self._search_chosen(request, limit, scope)) is not None:
            return await self._strict(chosen, scope)
        if by not in (AUTO, BUILTIN):
            try:
                if not by.startswith(BY_CONNECTOR):
                    return await self._search_delegated(request, limit, scope)
                understood = await self._understand(request, scope)
                found = await self._search_by_model(by, understood, request, limit, scope)
                return await self._strict(found, scope)
            except DelegateError as exc:
                await scope.warn(exc.code, f"{exc}; the built-in reading of questions was used")
        understood = await self._understand(request, scope, whole=False)
        found = await self._search_read(understood, request, limit, scope)
        if by == AUTO and scope.connector and found.account.certainty != "sure":
            found = await self._search_helped(found, understood, request, limit, scope)
        return await self._strict(found, scope)

    async def _search_helped(
        self,
        own: SourceResult,
        understood: Understood,
        request: SearchRequest,
        limit: int,
        scope: Scope,
    ) -> SourceResult:
        """Return what the assistant's language model reads where the built-in reader is not sure of
        its own result; that result, with a warning, where the model fails."""
        by = scope.connector
        if not understood.whole:
            understood = await self._understand(request, scope)
        try:
            found = await self._search_by_model(by, understood, request, limit, scope)
        except DelegateError as exc:
            await scope.warn(exc.code, f"{exc}; the built-in reading of the question stays")
            return own
        # A model that declines knows no more than the reader with its records.
        return own if found.account.certainty == "none" and own.items else found

    async def _search_delegated(
        self, request: SearchRequest, limit: int, scope: Scope
    ) -> SourceResult:
        """Run the queries that an assistant or a tool writes. Raises DelegateError."""
        delegate = scope.uses.query
        with span("dsl_build", "query from the question", query=request.query) as node:
            queries, notes = await read_by_delegate(
                delegate, request, self._store.schemas, limit, scope
            )
            merged = [merge(request, query) for query in queries]
            checked = self._runner.check_all(await self._with_known_fields(request, merged, scope))
            node.data.update(dsl=[one.query.wire() for one in checked])
        for note in notes:
            await scope.warn("db_query_read", note)
        for code, message in query_warnings(request, queries, checked):
            await scope.warn(code, message)
        permitted = await self._runner.drop_forbidden(checked, scope)
        teller = self._teller(self._words(request, scope))
        found = await self._runner.run_all(permitted, limit, scope, teller)
        read_as = "; ".join(teller.sentence(one.query) for one in permitted)
        return replace(found, account=SearchAccount(read_as=read_as, read_by=delegate))

    def _words(self, request: SearchRequest, scope: Scope) -> Vocabulary:
        """Return the words of the language of a question."""
        schemas = (self._store.schemas[id] for id in request.models or ())
        return words_for(scope.settings.query.language, request.query, schemas)

    def _teller(self, words: Vocabulary) -> Teller:
        return Teller(self._store.schemas, words)

    async def _understand(
        self, request: SearchRequest, scope: Scope, *, whole: bool = True
    ) -> Understood:
        """Return what the built-in reader understands of a question. If not `whole`, the models
        that the question names are enough, where they can be meant."""
        words, models, now = self._words(request, scope), request.models or (), scope.now()
        whole = whole or len(models) == 1
        schemas = [] if whole else [self._store.schemas[id] for id in models]
        first = await anyio.to_thread.run_sync(models_named, request.query, schemas, words)
        building = self._offers.build(models, first, request.query, words, scope)
        with span("dsl_build", "query from the question", query=request.query) as node:
            async with aclosing(building):
                async for offers in building:
                    # In a thread, since the first question compiles the words of the language.
                    reads = await anyio.to_thread.run_sync(
                        partial(read_question, request.query, offers, words, now)
                    )
                    if reads.names_records:
                        break
            node.data.update(
                dsl=[reading.query.wire() for reading in reads.readings],
                not_understood=list(reads.unread),
            )
        return Understood(request.query, words, offers, reads, now, whole=not first)

    async def _search_read(
        self, understood: Understood, request: SearchRequest, limit: int, scope: Scope
    ) -> SourceResult:
        """Run what a question means. Readings with different results are not chosen from: the
        result has none of their records, but names them."""
        teller = self._teller(understood.words)
        reads, offers = understood.reads, understood.offers
        if not reads.readings:
            account = declined(reads, teller, offers)
            models = [offer.schema.id for offer in offers]
            return await self._run_own_conditions(request, models, account, limit, scope, teller)
        return await self._judge(reads, request, limit, scope, teller)

    async def _search_chosen(
        self, request: SearchRequest, limit: int, scope: Scope
    ) -> SourceResult | None:
        """Return what the reading finds whose sentence the question is; None for a question that is
        none of a reading that this identity was named."""
        chosen = self._named.meant_by(scope.identity, request.query)
        if chosen is None or chosen.query.model not in (request.models or ()):
            return None
        teller = self._teller(self._words(request, scope))
        return await self._judge(Reads((chosen,)), request, limit, scope, teller)

    async def _judge(
        self, reads: Reads, request: SearchRequest, limit: int, scope: Scope, teller: Teller
    ) -> SourceResult:
        """Run all readings and return the one result, or a decline that names them."""
        answers = await self._run_readings(reads, request, limit, scope, teller)
        result = judged(reads, answers, teller)
        if named := {each.read_as for each in result.account.readings}:
            by_sentence = {teller.sentence(one.query): one for one in answers}
            by_sentence |= sentences(answers, teller)
            kept = {text: by_sentence[text].reading for text in named}
            self._named.keep(scope.identity, kept)
        return result

    async def _search_by_model(
        self, by: str, understood: Understood, request: SearchRequest, limit: int, scope: Scope
    ) -> SourceResult:
        """Run the query that a language model writes. Raises DelegateError."""
        offers = self._offers
        models = [offer.schema.id for offer in understood.offers]
        with span("dsl_build", "query from the question", query=request.query, by=by) as node:
            draft = await draft_of(
                understood,
                limit,
                offers.permits(scope),
                lambda models: offers.example_rows(models, scope),
            )
            reading, kept = await self._model_reader.read(
                by,
                draft,
                scope,
                lambda model, of, text: offers.spellings(model, of, text, scope),
            )
            node.data.update(
                dsl=[query.wire() for query in reading.queries],
                not_understood=list(reading.unread),
            )
            if kept:
                node.data.update(kept=True)
        teller = self._teller(understood.words)
        if not reading.queries or reading.unknown:
            account = refused_by_model(reading, by, teller)
            return await self._run_own_conditions(request, models, account, limit, scope, teller)
        reads = _reads_of(reading)
        found = await self._judge(reads, request, limit, scope, teller)
        return read_by_model(found, by, reading.said)

    async def _run_readings(
        self, reads: Reads, request: SearchRequest, limit: int, scope: Scope, teller: Teller
    ) -> list[JudgedAnswer]:
        queries = [reading.query for reading in reads.readings]
        merged = [merge(request, query) for query in queries]
        known = await self._with_known_fields(request, merged, scope)
        readings = [reads.readings[merged.index(query)] for query in known]
        checked = self._runner.check_all(known)
        for code, message in query_warnings(request, queries, checked):
            await scope.warn(code, message)
        answers = []
        for reading, one in zip(readings, checked, strict=True):
            query, found = await self._runner.run_reading(one, limit, scope, teller)
            answers.append(JudgedAnswer(reading, query, found))
        return answers

    async def _run_own_conditions(
        self,
        request: SearchRequest,
        models: Sequence[str],
        account: SearchAccount,
        limit: int,
        scope: Scope,
        teller: Teller,
    ) -> SourceResult:
        """Return the records that meet the caller's own conditions, where the question was not
        understood; none without such conditions."""
        given = request.wheres or request.orders or computes(request)
        if not given:
            return SourceResult(total=0, account=account)
        merged = [merge(request, QueryDSL(model=model)) for model in models]
        checked = self._runner.check_all(await self._with_known_fields(request, merged, scope))
        found = await self._runner.run_all(checked, limit, scope, teller)
        partly = account.model_copy(update={"certainty": "partial"})
        return replace(found, account=partly)

    async def _strict(self, result: SourceResult, scope: Scope) -> SourceResult:
        """Return the result. Raises SourceError for one that is not sure, with `query.strict`."""
        account = result.account
        if scope.settings.query.strict and account.certainty != "sure":
            raise SourceError(
                f"the question was not understood whole: {account.explanation}",
                hint="query.strict is on",
            )
        return result

    async def records(self, query: RecordQuery, scope: Scope, /) -> list[dict[str, Any]]:
        """Return the records that meet the conditions and that the identity may see. Raises
        SourceError, NotPermitted."""
        self._require_models([query.model])
        schema = self._store.schemas[query.model]
        one: tuple[Where, ...] = ()
        if query.record_id is not None:
            values = schema.key_values(query.record_id)
            if values is None:
                return []
            pairs = zip(schema.keys, values, strict=True)
            one = tuple(Where(field=name, value=value) for name, value in pairs)
        dsl = QueryDSL(
            model=query.model,
            select=query.select,
            wheres=(*query.wheres, *one),
            orders=query.orders,
        )
        answer = await self._runner.run(
            self._runner.check(dsl), query.limit, scope, count_total=False
        )
        return [values_of(row, dsl, schema) for row in answer.rows]

    async def export(
        self, query: Mapping[str, Any], most: int, scope: Scope, /, *, language: str = ""
    ) -> Exported:
        """Return up to `most` rows of a query that a search returned, as the identity may see them,
        with the names of columns in a language. Raises SourceError, NotPermitted."""
        dsl = parse(query)
        self._require_models([dsl.model])
        checked = self._runner.check(dsl)
        answer = await self._runner.run(checked, most, scope)
        teller = self._teller(words_for(language or scope.settings.query.language, ""))
        columns, rows = await anyio.to_thread.run_sync(exact_rows, answer.rows, dsl, teller)
        return Exported(
            columns=columns,
            rows=rows,
            total=max(answer.total, len(rows)),
            total_is="at_least" if answer.total_is_lower_bound or answer.truncated else "exact",
        )

    # ---- queries

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


def _reads_of(reading: ModelReading) -> Reads:
    """Return the queries of a model as readings: a first record of none, like a figure of nothing,
    is told."""
    return Reads(
        tuple(
            QueryReading(
                query, presumes=bool(query.orders and query.limit == 1), idle=reading.unread
            )
            for query in reading.queries
        )
    )
