"""The search steps of a turn: the user's own data, the automatic searches, and the pool of all
results."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

import anyio

from groundhook.core.errors import HostError, SourceTimeout
from groundhook.core.language.phrases import pleasantry
from groundhook.core.ports import SourceResult
from groundhook.core.settings import DISABLED
from groundhook.core.trace import span
from groundhook.core.types.attached import AttachedPart, is_attached
from groundhook.core.types.events import STOPPED, SearchComplete, SearchFound, SearchStart
from groundhook.core.types.search import Origin, SearchRequest, SearchResult, SourceType
from groundhook.core.types.servers import parse_listed
from groundhook.core.types.turn import CreateReturn
from groundhook.host.search.merge import Pool
from groundhook.host.search.plan import Plan, plan, refused
from groundhook.host.search.searcher import FindOtherWords, run_all
from groundhook.host.turn.apis import read_api
from groundhook.host.turn.content import (
    ApiReference,
    DocumentReference,
    ResourceReference,
    UserData,
)
from groundhook.host.turn.grants import ServerListing
from groundhook.host.turn.names import AssistantNames
from groundhook.host.turn.run import AssistantRun

_Job = Callable[[], Awaitable[SearchResult]]


async def search_user_data(run: AssistantRun, data: UserData) -> None:
    """Search the sources that the message refers to. A source that cannot be read is a warning."""
    for problem in (*data.problems, *run.files.problems):
        await run.warn(problem)
    jobs: list[_Job] = [
        *(partial(run.searcher.search, request, "user") for request in data.searches),
        *(partial(_read_document, run, reference) for reference in data.documents),
        *(partial(_read_resource, run, reference, "user") for reference in data.resources),
        *(partial(_request_api, run, reference) for reference in data.apis),
        *(partial(_read_attached, run, part) for part in run.files.parts),
    ]
    if jobs:
        with span("user_data", sources=len(jobs)):
            run.results += await run_all(jobs)


async def search_automatically(run: AssistantRun, created: CreateReturn | None) -> None:
    """Plan the automatic searches and run them. Meanwhile the resources that the assistant lists
    are read, and pictures are described."""
    requested = run.request.options.search
    decided = _decide(run, requested, created)
    with span("plan", types=list(decided.types), reason=decided.reason):
        pass
    if requested and not (decided.types and run.question):
        await run.searcher.scope.warn(
            "nothing_searched",
            f"the request has search: true: {decided.reason or 'there is no question'}",
        )
    jobs = _describe_pictures(run)
    if run.question:
        searcher = replace(run.searcher, other_words=_find_other_words(run))
        jobs += [
            partial(searcher.search, SearchRequest(type=type, query=run.question), "auto")
            for type in decided.types
        ]
    if not refused(requested, created):
        jobs += [
            partial(_read_resource, run, reference, "auto") for reference in _list_resources(run)
        ]
    run.results += await run_all(jobs)


def _decide(run: AssistantRun, requested: bool | None, created: CreateReturn | None) -> Plan:
    forced = requested or (created is not None and created.search)
    if not forced and pleasantry(run.question):
        return Plan(reason="the message is only a greeting or thanks")
    # A file that the user attached is context of the question, and answers it rarely: the number
    # of its passages says nothing about whether a search is needed.
    user_results = sum(
        not is_attached(item)
        for result in run.results
        if result.source == "user"
        for item in result.items
    )
    # `searchable` makes the web source, so only where it matters.
    usable = run.searchable if forced else ()
    return plan(requested, created, run.settings, user_results, usable)


def _find_other_words(run: AssistantRun) -> FindOtherWords | None:
    """Return what writes search words for the question; None by default."""
    if run.settings.uses.rewrite in ("", "builtin", DISABLED):
        return None
    # Imported here because few assistants name a part that rewrites.
    from groundhook.host.turn.rewriting import in_other_words

    return in_other_words(run)


def _describe_pictures(run: AssistantRun) -> list[_Job]:
    """Return the jobs that describe what the model does not see; they know the settings of
    Create."""
    if not run.settings.uses.vision:
        return []
    # Imported here because few assistants have pictures described.
    from groundhook.host.turn.vision import describe, unseen_pictures

    return [
        partial(
            _read_source,
            run,
            _Reading("picture", each.name, each.name, "kb", "user", own_deadline=True),
            partial(describe, run, each),
        )
        for each in unseen_pictures(run)
    ]


def _list_resources(run: AssistantRun) -> list[ResourceReference]:
    """Return the resources that `mcp.servers` lists as sources for every turn."""
    entries = [listed for entry in run.settings.mcp.servers for listed in parse_listed(entry)]
    return [ResourceReference(listed.name, uri) for listed in entries for uri in listed.resources]


async def ranked_pool(run: AssistantRun) -> Pool:
    """Return all results of the turn, merged, reranked and cut."""
    if not any(result.items for result in run.results):
        return Pool()
    pooled = await run.searcher.rank(run.question, run.results)
    # The citation index got each item when it was found. From here on, citations show the version
    # that the pool chose among duplicates.
    # The kept ones come last, since the last version of a key wins.
    for entry in (*pooled.dropped, *pooled.entries):
        for item in entry.items:
            run.searcher.citation_index.cite(item)
    return pooled


async def _read_document(run: AssistantRun, reference: DocumentReference) -> SearchResult:
    """Read a whole document of a collection."""

    async def read() -> SourceResult:
        collection = run.searcher.names.collection(reference.collection)
        return await run.runtime.documents.fetch_document(
            collection, reference.document_id, run.searcher.scope
        )

    name = f"{reference.collection}/{reference.document_id}"
    return await _read_source(run, _Reading("document", name, name, "kb", "user"), read)


async def _read_resource(
    run: AssistantRun, reference: ResourceReference, source: Origin
) -> SearchResult:
    """Read a resource of an MCP server."""
    runtime = run.runtime

    async def read() -> SourceResult:
        listing = ServerListing.of(runtime.app, run.package.id, run.settings.mcp.servers)
        id, listed = listing.resource(reference.server, reference.uri)
        warn = run.searcher.scope.warn
        # Imported here because few turns read resources.
        from groundhook.host.turn.resources import read_resource

        return await read_resource(
            runtime.servers, id, listed.name, reference.uri, runtime.texts, warn
        )

    name = f"{reference.server}/{reference.uri}" if reference.server else reference.uri
    return await _read_source(run, _Reading("resource", name, name, "kb", source), read)


async def _read_attached(run: AssistantRun, part: AttachedPart) -> SearchResult:
    """Read a file of the user's messages, which has a deadline of its own."""

    async def read() -> SourceResult:
        return await run.files.passages(part, run.question, run.searcher.scope.warn)

    reading = _Reading("file", part.name, part.name, "kb", "user", own_deadline=True)
    return await _read_source(run, reading, read)


async def _request_api(run: AssistantRun, reference: ApiReference) -> SearchResult:
    """Request an API, which has a deadline of its own."""
    scope = run.searcher.scope

    async def read() -> SourceResult:
        spec = AssistantNames(run.runtime.app, run.package.id, run.settings).api(reference.name)
        return await read_api(
            run.runtime.web_clients,
            spec,
            reference.question,
            run.settings.locale,
            scope.identity,
            scope.warn,
        )

    reading = _Reading("API", reference.name, reference.question, "api", "user", own_deadline=True)
    return await _read_source(run, reading, read)


@dataclass(frozen=True)
class _Reading:
    """A source that is read without a search: its noun and name for people, the query and type of
    its events, and its origin. The deadline is that of knowledge bases, unless it has its own."""

    noun: str
    name: str
    query: str
    type: SourceType
    origin: Origin
    own_deadline: bool = False


async def _read_source(
    run: AssistantRun, reading: _Reading, read: Callable[[], Awaitable[SourceResult]]
) -> SearchResult:
    """Read a source without a search, with the events of one; a failure is a warning as well."""
    id = f"s{next(run.searcher.ids)}"
    channel, began = run.channel, time.perf_counter()
    await channel.send(
        SearchStart(
            search_id=id, source=reading.origin, search_type=reading.type, query=reading.query
        )
    )
    with span(reading.noun, reading.name) as node:
        try:
            timeout_ms = None if reading.own_deadline else run.settings.search.kb.timeout_ms
            found, error = await _attempt(reading, read, timeout_ms)
        except anyio.get_cancelled_exc_class():
            channel.send_nowait(
                SearchComplete(
                    search_id=id, total=0, duration_ms=_measure_milliseconds(began), error=STOPPED
                )
            )
            raise
        if error is not None:
            node.fail(str(error))
    weight = run.settings.search.weights.of(reading.origin)
    result = SearchResult(
        type=reading.type,
        query=reading.query,
        source=reading.origin,
        items=tuple(run.searcher.citation_index.cite(item, weight=weight) for item in found.items),
        total=len(found.items),
        duration_ms=_measure_milliseconds(began),
        error=None if error is None else str(error),
    )
    run.searcher.done.append(result)
    for item in result.items:
        await channel.send(SearchFound(search_id=id, item=item))
    await channel.send(
        SearchComplete(
            search_id=id, total=result.total, duration_ms=result.duration_ms, error=result.error
        )
    )
    if error is not None:
        await run.warn(error)
    return result


async def _attempt(
    reading: _Reading, read: Callable[[], Awaitable[SourceResult]], timeout_ms: int | None
) -> tuple[SourceResult, HostError | None]:
    """Return the items that `read` returns within the timeout, or none and the error."""
    try:
        with anyio.fail_after(None if timeout_ms is None else timeout_ms / 1000):
            return await read(), None
    except TimeoutError:
        return SourceResult(), SourceTimeout(
            f"the {reading.noun} {reading.name!r} was not read within {timeout_ms} ms",
            hint="search.kb.timeout_ms",
        )
    except HostError as exc:
        return SourceResult(), exc


def _measure_milliseconds(began: float) -> int:
    return int((time.perf_counter() - began) * 1000)
