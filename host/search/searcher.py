"""Runs the searches of one turn: fills a request's gaps, keeps its deadline, cites the items found,
and sends the events.

A failed search becomes data here: `search` returns a result with `error` for every failure of a
source. Programming errors are not caught.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar

import anyio

from groundhook.core.channel import Channel
from groundhook.core.errors import (
    HostError,
    RerankError,
    SourceNotConfigured,
    SourceTimeout,
    UsageError,
)
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.ports import Handler, Ranked, Reranker, Scope, SourceResult
from groundhook.core.registry import Registry
from groundhook.core.settings import RerankSettings, Settings
from groundhook.core.trace import Span, span
from groundhook.core.types.events import STOPPED, SearchComplete, SearchFound, SearchStart
from groundhook.core.types.search import Item, Origin, SearchRequest, SearchResult, SearchType
from groundhook.core.types.tables import long_tables, with_account
from groundhook.host.search import plan
from groundhook.host.search.citations.index import CitationIndex
from groundhook.host.search.merge import Pool, apply_ranking, cut, pool
from groundhook.host.search.other_words import OtherWords, fuse
from groundhook.host.search.reranking import choose, misfit, options_of

_Mode = Literal["all", "any", "race"]

# Returns a query in other words, given what its own words found; None to leave it at that.
FindOtherWords = Callable[[SearchRequest, SourceResult], Awaitable[OtherWords | None]]
T = TypeVar("T")


class SourceNames(Protocol):
    """Resolves the names that authors use: the assistant's own collections and models first, then
    the app's. Raises UnknownName."""

    def collection(self, name: str, /) -> str:
        """Return the full id of a collection."""
        ...

    def model(self, name: str, /) -> str:
        """Return the full id of a model."""
        ...

    def is_read(self, name: str, /) -> bool:
        """Return whether `model` reads no file for a name."""
        ...


@dataclass(frozen=True, kw_only=True)
class SearchPlugins:
    """The sources by search type, and the rerankers by type. `imported` is awaited before a source
    is first used: it imports the source's modules in a thread, so that turns are not held up."""

    handlers: Registry[Handler]
    rerankers: Registry[Reranker]
    imported: Callable[[SearchType], Awaitable[None]] | None = None


@dataclass(frozen=True, kw_only=True)
class Searcher:
    """The searches of one turn under the settings of one layer; `dataclasses.replace` makes one for
    other settings."""

    plugins: SearchPlugins
    settings: Settings
    scope: Scope
    names: SourceNames
    citation_index: CitationIndex
    channel: Channel
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    other_words: FindOtherWords | None = None  # None: every query is searched as it is
    done: list[SearchResult] = field(default_factory=list)  # the results of all its searches

    async def search(self, request: SearchRequest, source: Origin) -> SearchResult:
        """Run one search. A failure of the source does not raise: `error` is set."""
        id = f"s{next(self.ids)}"
        began = time.perf_counter()
        # `send_nowait`, not `send`: a hook's call must not wait for the reader of the events. Their
        # number is bounded for each search.
        self.channel.send_nowait(
            SearchStart(search_id=id, source=source, search_type=request.type, query=request.query)
        )
        with span(
            "search", request.query, query=request.query, search_type=request.type, source=source
        ) as node:
            try:
                found, error = await self._attempt(request, source)
                if self.other_words is not None and error is None:
                    found = await self._search_in_other_words(request, source, found)
                accounted = with_account(found.items, found.account)
                cited = tuple(self._cite(item, source) for item in accounted)
                items = await self._rerank_own(cited, request, self._left_ms(source, began))
            # Each search_start needs its search_complete, also where `any` or `race` cancels the
            # search: clients show it as running until then.
            except anyio.get_cancelled_exc_class():
                self.channel.send_nowait(
                    SearchComplete(
                        search_id=id,
                        total=0,
                        duration_ms=_milliseconds_since(began),
                        error=self._reason_of_stop(request, source, began),
                    )
                )
                raise
            result = SearchResult(
                type=request.type,
                query=request.query,
                source=source,
                items=items,
                total=len(items) if found.total is None else found.total,
                total_is=found.total_is,
                duration_ms=_milliseconds_since(began),
                error=error,
                provider=found.provider,
                facets=None if found.facets is None else dict(found.facets),
                graph_nodes=found.graph_nodes,
                dsl=found.dsl,
                **dict(found.account),
            )
            node.note(input=request.query, documents=items)
            _describe(node, result)
        self.done.append(result)
        # Only now, since reranking decides the order and which items remain.
        for item in result.items:
            self.channel.send_nowait(SearchFound(search_id=id, item=item))
        self.channel.send_nowait(
            SearchComplete(
                search_id=id,
                total=result.total,
                total_is=result.total_is,
                duration_ms=result.duration_ms,
                error=result.error,
                provider=result.provider,
                tables=long_tables(result.items),
                **dict(result.account),
            )
        )
        return result

    async def search_many(
        self, requests: Sequence[SearchRequest], mode: _Mode, source: Origin
    ) -> list[SearchResult]:
        """Run all searches at the same time and return their results: with `all` every result in
        the order of the requests; with `any` the first that has items, or the first to end if none
        has; with `race` the first to end. The other searches are cancelled."""
        jobs = [lambda request=request: self.search(request, source) for request in requests]
        if mode == "all":
            return await run_all(jobs)
        return await run_first(
            jobs, accept=(lambda result: bool(result.items)) if mode == "any" else (lambda _: True)
        )

    async def rank(self, query: str, results: Sequence[SearchResult]) -> Pool:
        """Merge the results of the turn into one pool: weighed, deduplicated, reranked, cut. If a
        reranker fails, the merged order stays."""
        search = self.settings.search
        with span("merge", results=len(results)) as node:
            ranked = pool(results, search.weights)
            if ranked.entries:
                ranking = await self._judge(query, ranked.candidates, search.rerank)
                ranked = cut(
                    apply_ranking(ranked, ranking) if ranking is not None else ranked,
                    search.rerank.top_k,
                )
            node.data["entries"] = [entry.explain() for entry in ranked.entries]
            node.data["dropped"] = [entry.explain() for entry in ranked.dropped]
        return ranked

    async def _search_in_other_words(
        self, request: SearchRequest, source: Origin, found: SourceResult
    ) -> SourceResult:
        """Return what was found, joined with what the query finds in other words, if there are
        any. A search that fails then is a warning."""
        assert self.other_words is not None
        completed = await self._resolve(plan.complete(request, self.settings))
        words = await self.other_words(completed, found)
        if words is None:
            return found
        again, error = await self._attempt(request.model_copy(update={"query": words.text}), source)
        if error is not None:
            await self.scope.warn("rewrite", f"the search in other words failed: {error}")
            return found
        return fuse(found, again, words, completed.limit)

    def _cite(self, item: Item, source: Origin) -> Item:
        """Return the item with its marker, and the weight of its source."""
        return self.citation_index.cite(item, weight=self.settings.search.weights.of(source))

    async def _attempt(
        self, request: SearchRequest, source: Origin
    ) -> tuple[SourceResult, str | None]:
        """Search the source and return its result, or an empty one and the reason of the
        failure."""
        timeout, setting = self._deadline(request, source)
        try:
            if key := self.settings.uses.disables(request.type):
                raise SourceNotConfigured(f"uses.{key} is 'disabled'")
            completed = await self._resolve(plan.complete(request, self.settings))
            if self.plugins.imported is not None:
                await self.plugins.imported(request.type)
            handler = self.plugins.handlers.get(request.type)
            # Not `fail_after`: its TimeoutError would look like one that the source itself raises.
            with unwrap_exception_groups(), anyio.move_on_after(timeout / 1000):
                return await handler.search(completed, self.scope), None
            raise _timeout_error(request.type, timeout, setting)
        except HostError as exc:
            return SourceResult(), str(exc)

    def _reason_of_stop(self, request: SearchRequest, source: Origin, began: float) -> str:
        """Return why a search was cancelled: past its own deadline because of that, which a source
        that cannot be interrupted outlasts; else another search was faster, or the turn ended."""
        timeout, setting = self._deadline(request, source)
        late = _milliseconds_since(began) >= timeout
        return str(_timeout_error(request.type, timeout, setting)) if late else STOPPED

    def _deadline(self, request: SearchRequest, source: Origin) -> tuple[int, str]:
        """Return a search's deadline in milliseconds and the setting that defines it. A search of a
        hook ends before the hook's call does, so that each result has its own error and the results
        of other searches are kept."""
        own, call = plan.timeout_ms(request.type, self.settings), self._call_ms()
        if source == "hook" and call < own:
            longer = f"search.{request.type}.timeout_ms"
            return call, f"nine tenths of hooks.limits.call_ms, which is shorter than {longer}"
        return own, f"search.{request.type}.timeout_ms"

    def _call_ms(self) -> int:
        # A tenth of the hook's call is left for the way of the results back into V8.
        return self.settings.hooks.limits.call_ms * 9 // 10

    def _left_ms(self, source: Origin, began: float) -> int:
        """Return the milliseconds for reranking: a search of a hook must end before the hook's call
        does."""
        own = self.settings.search.rerank.timeout_ms
        return min(own, self._call_ms() - _milliseconds_since(began)) if source == "hook" else own

    async def model(self, name: str) -> str:
        """Return the full id of a model. Raises UnknownName and NotPermitted."""
        if self.names.is_read(name):
            return self.names.model(name)
        # A file with thousands of `values` takes a second.
        return await anyio.to_thread.run_sync(self.names.model, name)

    async def _resolve(self, request: SearchRequest) -> SearchRequest:
        """Return the request with ids in place of names. Raises UsageError without a collection or
        model to search."""
        if request.type == "kb":
            collections = tuple(self.names.collection(name) for name in request.collections or ())
            if not collections:
                raise UsageError(
                    "no collection to search",
                    hint=(
                        "name one in `kb.collections`, in the request's `collections`, or with"
                        " --collection or --assistant"
                    ),
                )
            return request.model_copy(update={"collections": collections})
        if request.type == "db":
            models = tuple([await self.model(name) for name in request.models or ()])
            if not models:
                raise UsageError(
                    "no model to query",
                    hint=(
                        "name one in `db.models`, in the request's `models`, or with --model or"
                        " --assistant"
                    ),
                )
            return request.model_copy(update={"models": models})
        return request

    async def _rerank_own(
        self, items: tuple[Item, ...], request: SearchRequest, left_ms: int
    ) -> tuple[Item, ...]:
        """Return the items of one search in the order of its own `rerank`, within the time that is
        left; unchanged without one."""
        if request.rerank is None or not items:
            return items
        # As a pool of one result, so that the scores count as they do in the pool of the turn.
        alone = pool(
            [SearchResult(type=request.type, query=request.query, items=items)],
            self.settings.search.weights,
        )
        options = options_of(self.settings, request.rerank)
        options = options.model_copy(update={"timeout_ms": max(1, left_ms)})
        ranking = await self._judge(request.query, alone.candidates, options)
        ordered = apply_ranking(alone, ranking) if ranking is not None else alone
        kept = cut(ordered, request.rerank.top_k or len(items))
        return tuple(row for entry in kept.entries for row in entry.rows or (entry.item,))

    async def _judge(
        self, query: str, items: Sequence[Item], options: RerankSettings
    ) -> Sequence[Ranked] | None:
        """Return a reranker's scores of the items; None, with a failed node, if it fails."""
        name, options = choose(options, self.settings.uses.rerank, self.plugins.rerankers)
        # `score` only computes; the other rerankers send each item to a model, so they have limits.
        judged = items if name == "score" else items[: options.max_items]
        with span("rerank", name, items=len(judged)) as node:
            if len(judged) < len(items):
                await self.scope.warn("rerank_items", _limit_message(name, len(judged), len(items)))
            try:
                reranker = self.plugins.rerankers.get(name)
                with unwrap_exception_groups(), anyio.move_on_after(options.timeout_ms / 1000):
                    ranked = await reranker.rerank(query, judged, options, self.scope)
                    if problem := misfit(ranked, len(judged)):
                        raise RerankError(f"the reranker {name!r} returned {problem}")
                    return ranked
                raise RerankError(
                    f"the reranker {name!r} did not answer in time", hint="search.rerank.timeout_ms"
                )
            except HostError as exc:
                failure = exc
            node.fail(str(failure))
        await self.scope.warn(failure.code, f"{failure}; the merged order stays")
        return None


def _timeout_error(type: SearchType, timeout: int, setting: str) -> SourceTimeout:
    hint = f"{setting}; `groundhook db check` names missing indexes" if type == "db" else setting
    return SourceTimeout(f"the {type} search did not end within {timeout} ms", hint=hint)


async def run_all(
    jobs: Sequence[Callable[[], Awaitable[T]]], *, at_once: float = math.inf
) -> list[T]:
    """Run all jobs, `at_once` of them at the same time, and return their results in the order of
    the jobs."""
    # A single job, as in a turn that searches one source, needs no task group.
    if len(jobs) == 1:
        return [await jobs[0]()]
    results: dict[int, T] = {}
    places = anyio.CapacityLimiter(at_once)

    async def run(index: int, job: Callable[[], Awaitable[T]]) -> None:
        async with places:
            results[index] = await job()

    async with anyio.create_task_group() as tasks:
        for index, job in enumerate(jobs):
            tasks.start_soon(run, index, job)
    return [results[index] for index in range(len(jobs))]


async def run_first(
    jobs: Sequence[Callable[[], Awaitable[T]]], accept: Callable[[T], bool]
) -> list[T]:
    """Run all jobs until one has a result that `accept` accepts, cancel the others, and return
    [that result]; the first one if none is accepted; [] without jobs."""
    won: list[T] = []
    ended: list[T] = []

    async with anyio.create_task_group() as tasks:

        async def run(job: Callable[[], Awaitable[T]]) -> None:
            result = await job()
            ended.append(result)
            # A second job may end in the same pass of the event loop, before the cancellation
            # reaches it.
            if not won and accept(result):
                won.append(result)
                tasks.cancel_scope.cancel()

        for job in jobs:
            tasks.start_soon(run, job)
    return (won or ended)[:1]


def _limit_message(name: str, judged: int, count: int) -> str:
    return (
        f"the reranker {name!r} judges the first {judged} of {count} items; the others follow them"
        " (search.rerank.max_items)"
    )


def _describe(node: Span, result: SearchResult) -> None:
    """Fill a search node with the keys that the reference defines."""
    node.data.update(duration_ms=result.duration_ms, result_count=len(result.items))
    if result.error is not None:
        node.fail(result.error)
    node.data["status"] = "failed" if result.error is not None else "success"


def _milliseconds_since(began: float) -> int:
    return int((time.perf_counter() - began) * 1000)
