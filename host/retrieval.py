"""The search steps of a turn: the user's own data, the automatic searches, and the pool they join."""

from __future__ import annotations

import time

import anyio

from host.content import DocumentReference, UserData
from host.errors import HostError
from host.run import Run
from host.search.merge import Pool
from host.search.plan import Plan, plan
from host.trace import span
from host.types.search import SearchRequest, SearchResult
from host.types.turn import CreateReturn


async def search_user_data(run: Run, data: UserData) -> None:
    """Search what the message refers to; what cannot be read is a warning, and the turn goes on."""
    for problem in data.problems:
        await run.warn(problem)
    if not data.searches and not data.documents:
        return
    with span("user_data", sources=len(data.searches) + len(data.documents)):
        results = await run.searcher.search_many(data.searches, "all", "user") if data.searches else []
        documents = [await _fetch(run, reference) for reference in data.documents]
    run.results += [*results, *(document for document in documents if document is not None)]


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
    return await run.searcher.rank(run.question, run.results)


async def _fetch(run: Run, reference: DocumentReference) -> SearchResult | None:
    """A whole document as a result of the user's; a failure is a warning."""
    began = time.perf_counter()
    scope = run.searcher.scope
    with span("document", f"{reference.collection}/{reference.document_id}") as node:
        try:
            collection = run.searcher.names.collection(reference.collection)
            with anyio.fail_after(run.settings.search.kb.timeout_ms / 1000):
                found = await run.machinery.documents.fetch_document(collection, reference.document_id, scope)
        except TimeoutError:
            node.fail("no answer in time")
            await scope.warn("source_timeout", f"the document {reference.document_id!r} could not be read in time")
            return None
        except HostError as exc:
            node.fail(str(exc))
            await run.warn(exc)
            return None
    return SearchResult(
        type="kb",
        query=reference.document_id,
        source="user",
        items=tuple(run.searcher.book.cite(item) for item in found.items),
        total=len(found.items),
        duration_ms=int((time.perf_counter() - began) * 1000),
    )
