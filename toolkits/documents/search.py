"""`search_documents`: all pages of a member's summaries, each ranked as it arrives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from groundhook.core.errors import HostError, UsageError
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.ports import Embedder
from groundhook.core.tool_ports import ToolScope
from groundhook.core.trace import span
from groundhook.core.types.turn import Message
from groundhook.toolkits.documents.builtin import rank_by_texts
from groundhook.toolkits.documents.cache import PageCache
from groundhook.toolkits.documents.ranker import BUILT_IN, PageRanker
from groundhook.toolkits.documents.ranking import JudgedSummary, RankCandidate, at_least, joined
from groundhook.toolkits.documents.settings import DocumentsSettings
from groundhook.toolkits.documents.summaries import SummariesClient, Summary, SummaryPage


@dataclass(frozen=True, kw_only=True)
class DocumentsFound:
    """The documents of a search, best first, and what is missing. `below` says why there are none,
    if documents were found that are not relevant enough."""

    documents: Sequence[JudgedSummary]
    notices: Sequence[str]
    below: str = ""


async def search_documents(
    scope: ToolScope,
    settings: DocumentsSettings,
    client: SummariesClient,
    embedder: Embedder,
    cache: PageCache,
    query: str,
    *,
    prompts: Sequence[Message] = BUILT_IN,
) -> DocumentsFound:
    """Return the most relevant documents; `prompts` are the messages before the summaries of a
    page, for a language model. The events `search_documents.started` and `.completed`
    are sent in every case. Raises SourceError if the first page cannot be read."""
    await scope.progress("search_documents.started", query=query)
    total, error = 0, "cancelled"
    try:
        with unwrap_exception_groups():
            search = _Search(
                scope=scope,
                settings=settings,
                client=client,
                query=query,
                cache=cache,
                ranker=PageRanker(
                    settings=settings.ranker,
                    prompts=prompts,
                    scope=scope,
                    embedder=embedder,
                    limiter=anyio.CapacityLimiter(settings.concurrency),
                ),
            )
            outcome = await search.run()
        total, error = len(outcome.documents), "; ".join(outcome.notices)
        return outcome
    except HostError as exc:
        error = exc.message
        raise
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(1):
            await scope.progress(
                "search_documents.completed",
                query=query,
                totalDocuments=total,
                error=error or None,
            )


@dataclass(kw_only=True)
class _Search:
    scope: ToolScope
    settings: DocumentsSettings
    client: SummariesClient
    query: str
    ranker: PageRanker
    cache: PageCache
    # Pages that wait until the built-in has selected documents of all of them.
    waiting: dict[int, Sequence[RankCandidate]] = field(default_factory=dict)
    ranked: dict[int, Sequence[JudgedSummary]] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)

    async def run(self) -> DocumentsFound:
        first = await self._read(1)
        pages = min(first.total_pages, self.settings.most_pages)
        if pages < first.total_pages:
            self.notices.append(
                f"Only the first {pages} of {first.total_pages} pages were read (most_pages)"
            )
        selecting = self._must_select(first.total_records)
        limiter = anyio.CapacityLimiter(self.settings.concurrency)
        async with anyio.create_task_group() as group:
            group.start_soon(self._rank_or_store, 1, pages, first, selecting)
            for index in range(2, pages + 1):
                group.start_soon(self._rank_page, index, pages, limiter, selecting)
        if selecting:
            await self._rank_selected()
        with span("merge", f"{len(self.ranked)} pages") as node:
            every = [self.ranked[index] for index in sorted(self.ranked)]
            best = joined(every, self.settings.keep)
            if self.settings.ranker.final == "rerank" and sum(map(bool, every)) > 1:
                best = await self._rerank(best)
            node.data |= {
                "documents": len(best),
                "below": self.ranker.below,
                "requests": self.ranker.requests,
                "tokens": self.ranker.tokens,
            }
        below = "" if best else await self._explain_nothing()
        return DocumentsFound(documents=best, notices=self.notices, below=below)

    async def _explain_nothing(self) -> str:
        """Return what the least relevance left out of an empty answer, and warn of it."""
        if not self.ranker.below:
            return ""
        least = self.settings.ranker.least
        below = f"Documents below the least relevance of {least:g}: {self.ranker.below}"
        await self.scope.warn("below_least", f"{below} (ranker.least)")
        return below

    def _must_select(self, records: int) -> bool:
        """Return whether the built-in selects the summaries for the ranker."""
        ranker = self.settings.ranker
        return ranker.by != "builtin" and 0 < ranker.most < records

    async def _rank_page(
        self, index: int, pages: int, limiter: anyio.CapacityLimiter, selecting: bool
    ) -> None:
        async with limiter:
            try:
                page = await self._read(index)
            except HostError as exc:
                self.notices.append(f"Page {index} of {pages} could not be read ({_reason(exc)})")
                return
        await self._rank_or_store(index, pages, page, selecting)

    async def _read(self, index: int) -> SummaryPage:
        identity, settings = self.scope.identity, self.settings
        collection = _collection(self.scope.metadata, settings.collection)
        key = (identity.user_id, identity.team_id, identity.tenant_id, collection, index)
        with span("summaries_page", f"page {index}") as node:
            page = self.cache.get(key)
            node.data["cached"] = page is not None
            if page is None:
                page = await self.client.page(
                    getattr(identity, settings.identity.member),
                    partner=getattr(identity, settings.identity.partner),
                    collection=collection,
                    index=index,
                    size=settings.page,
                )
                self.cache.put(key, page)
            node.data |= {
                "count": len(page.summaries),
                "unusable": page.unusable,
                "currentPage": page.current_page,
            }
        if page.unusable:
            await self.scope.warn(
                "unusable_summaries",
                f"summaries without an id were left out of page {index}: {page.unusable}",
            )
        return page

    async def _rank_or_store(
        self, index: int, pages: int, page: SummaryPage, selecting: bool
    ) -> None:
        """Rank a page, or store it until the built-in selects from all pages."""
        candidates = candidates_of(page.summaries, index, self.settings.ranker.preview)
        if selecting:
            self.waiting[index] = candidates
            return
        self.ranked[index] = await self.ranker.rank(
            self.query, candidates, f"page {index} of {pages}"
        )
        await self.scope.progress(done=len(self.ranked), total=pages, message="pages ranked")

    async def _rank_selected(self) -> None:
        """Rank the best `ranker.most` summaries by the built-in, in parts of a page's size."""
        every = distinct(one for index in sorted(self.waiting) for one in self.waiting[index])
        with span("choose", f"{len(every)} summaries") as node:
            rated = await rank_by_texts(self.ranker.embedder, self.query, every)
            best = at_least(rated, 0, self.settings.ranker.most)
            node.data["chosen"] = len(best)
        size = self.settings.page
        parts = [
            [one.candidate for one in best[start : start + size]]
            for start in range(0, len(best), size)
        ]

        async def rank(index: int) -> None:
            shown = f"part {index + 1} of {len(parts)}"
            self.ranked[index] = await self.ranker.rank(self.query, parts[index], shown)
            await self.scope.progress(
                done=len(self.ranked), total=len(parts), message="parts ranked"
            )

        async with anyio.create_task_group() as group:
            for index in range(len(parts)):
                group.start_soon(rank, index)

    async def _rerank(self, best: Sequence[JudgedSummary]) -> list[JudgedSummary]:
        """Rank the best of all pages once more; those that are omitted keep their order after the
        others. A failure keeps the order by scores."""
        order = await self.ranker.rank(
            self.query, [one.candidate for one in best], "the best of all pages"
        )
        named = {one.candidate.key for one in order}
        lowest = min((one.score for one in order), default=1.0)
        rest = [
            JudgedSummary(one.candidate, min(one.score, lowest))
            for one in best
            if one.candidate.key not in named
        ]
        return [*order, *rest]


def _collection(metadata: Mapping[str, Any], key: str) -> str:
    """Return the id of the collection that metadata names. Raises UsageError for a value that is
    not an id."""
    value = metadata.get(key)
    if isinstance(value, bool) or not isinstance(value, int | str | None):
        raise UsageError(f"metadata.{key}: should be text or a whole number")
    return "" if value is None else str(value)


def _reason(exc: HostError) -> str:
    """Return why a page is missing, without the names of hosts, which a model need not know."""
    known = exc.message.startswith("the summaries API ")
    return exc.message if known else "the summaries API could not be reached"


def candidates_of(summaries: Iterable[Summary], page: int, preview: int) -> list[RankCandidate]:
    """Return the summaries of a page as a ranker gets them, with `preview` characters of each."""
    return distinct(
        RankCandidate(
            id=summary.id,
            title=summary.title,
            preview=summary.preview(preview),
            page=page,
            place=place,
        )
        for place, summary in enumerate(summaries)
    )


def distinct(candidates: Iterable[RankCandidate]) -> list[RankCandidate]:
    """Return the candidates without repeated ids."""
    found: dict[str, RankCandidate] = {}
    for candidate in candidates:
        found.setdefault(candidate.key, candidate)
    return list(found.values())
