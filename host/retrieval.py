"""The search steps of a turn: the user's own data, the automatic searches, and the pool they join."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import anyio

from host.content import DocumentReference, UserData
from host.errors import HostError, SourceTimeout
from host.ports import Found
from host.run import Run
from host.search.merge import Pool
from host.search.plan import Plan, plan
from host.search.searcher import run_all
from host.trace import span
from host.types.events import SearchComplete, SearchFound, SearchStart
from host.types.search import SearchRequest, SearchResult
from host.types.turn import CreateReturn


async def search_user_data(run: Run, data: UserData) -> None:
    """Search what the message refers to; what cannot be read is a warning, and the turn goes on."""
    for problem in data.problems:
        await run.warn(problem)
    if not data.searches and not data.documents:
        return
    with span("user_data", sources=len(data.searches) + len(data.documents)):
        jobs: list[Callable[[], Awaitable[SearchResult]]] = [
            *(lambda request=request: run.searcher.search(request, "user") for request in data.searches),
            *(lambda reference=reference: _fetch(run, reference) for reference in data.documents),
        ]
        run.results += await run_all(jobs)


async def search_automatically(run: Run, created: CreateReturn | None) -> Plan:
    """Plan the automatic searches and run them all at the same time."""
    user_results = sum(len(result.items) for result in run.results if result.source == "user")
    decided = plan(run.request.options.search, created, run.settings, user_results, run.usable)
    with span("plan", types=list(decided.types), reason=decided.reason):
        pass
    if run.request.options.search and not (decided.types and run.question):
        await run.searcher.scope.warn("nothing_searched", f"a search was asked for: {decided.reason or 'there is no question'}")
    if not decided.types or not run.question:
        return decided
    requests = [SearchRequest(type=type, query=run.question) for type in decided.types]
    run.results += await run.searcher.search_many(requests, "all", "auto")
    return decided


async def ranked_pool(run: Run) -> Pool:
    """Everything that was found, merged, reranked and cut."""
    if not any(result.items for result in run.results):
        return Pool()
    pooled = await run.searcher.rank(run.question, run.results)
    # Sources are cited as they are found: what a citation shows from here on is the version that the pool chose.
    for entry in (*pooled.dropped, *pooled.entries):
        run.searcher.book.cite(entry.weighed)
    return pooled


async def _fetch(run: Run, reference: DocumentReference) -> SearchResult:
    """A whole document as a result of the user's, told to the client as a search is; a failure is a warning as well."""
    id, name = f"s{next(run.searcher.ids)}", f"{reference.collection}/{reference.document_id}"
    channel, began = run.channel, time.perf_counter()
    await channel.send(SearchStart(search_id=id, source="user", search_type="kb", query=name))
    with span("document", name) as node:
        try:
            found, error = await _attempt(run, reference)
        except anyio.get_cancelled_exc_class():
            channel.note(SearchComplete(search_id=id, total=0, duration_ms=_since(began), error="stopped"))
            raise
        if error is not None:
            node.fail(str(error))
    result = SearchResult(
        type="kb",
        query=name,
        source="user",
        items=tuple(run.searcher.book.cite(item) for item in found.items),
        total=len(found.items),
        duration_ms=_since(began),
        error=None if error is None else str(error),
    )
    for item in result.items:
        await channel.send(SearchFound(search_id=id, item=item))
    await channel.send(SearchComplete(search_id=id, total=result.total, duration_ms=result.duration_ms, error=result.error))
    if error is not None:
        await run.warn(error)
    return result


async def _attempt(run: Run, reference: DocumentReference) -> tuple[Found, HostError | None]:
    """Ask for the document → its passages, or nothing and why."""
    timeout = run.settings.search.kb.timeout_ms
    try:
        collection = run.searcher.names.collection(reference.collection)
        with anyio.fail_after(timeout / 1000):
            return await run.machinery.documents.fetch_document(collection, reference.document_id, run.searcher.scope), None
    except TimeoutError:
        message = f"the document {reference.document_id!r} was not read within {timeout} ms"
        return Found(), SourceTimeout(message, hint="search.kb.timeout_ms")
    except HostError as exc:
        return Found(), exc


def _since(began: float) -> int:
    return int((time.perf_counter() - began) * 1000)
