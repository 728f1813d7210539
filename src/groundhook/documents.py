"""The ranking of the `documents` toolkit, for summaries that a program provides.

from groundhook import open_host
from groundhook.documents import rank_documents_by_relevance

async with open_host("path/to/app") as host:
    found = await rank_documents_by_relevance(
        host,
        query="Who repairs the lift?",
        summaries=[{"id": 7, "title": "Offer for the lift", "content": "A firm offers …"}],
        by="connector:ranker",
    )
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypedDict, cast

from groundhook.core.errors import ConfigError, PluginError, SourceError, UsageError

if TYPE_CHECKING:
    from groundhook.core.types.events import Event
    from groundhook.host.app.host import Host

__all__ = ["RankedDocument", "RankedDocuments", "rank_documents_by_relevance"]


class RankedDocument(TypedDict):
    """A summary that was ranked. `id` is as it was given, `relevanceScore` 0-1."""

    id: int | str
    title: str | None
    relevanceScore: float


class RankedDocuments(TypedDict):
    """The most relevant summaries, best first; `totalProcessed` summaries were ranked."""

    rankedDocuments: list[RankedDocument]
    totalProcessed: int


async def rank_documents_by_relevance(
    host: Host,
    *,
    query: str,
    summaries: Sequence[Mapping[str, Any]],
    top_k: int = 10,
    by: str = "builtin",
    assistant: str | None = None,
    events: Callable[[Event], object] | None = None,
) -> RankedDocuments:
    """Return the `top_k` (1-100) summaries that are most relevant to a question, without those
    below 0.3. All of them (1,000 at most) are ranked as one page.

    A summary has an `id` (a number or a text; each counts once), a title (`title`, `summaryTitle`
    or `fileName`) and a content (`parseContentSlice`, `parseContent` or `content`). `by` is the
    ranker, as `ranker.by` of the toolkit's file: `builtin`, `connector:<id>`, an assistant or an
    MCP tool, with the names of `assistant` if one is given. If it fails, the built-in ranker does
    it. `events` is called with the warning about that, and with the trace. Raises UsageError for
    wrong arguments, SourceError if no ranker succeeded."""
    # Imported here because the toolkit is loaded when it is first used.
    from groundhook.core.types.collection_spec import EmbeddingSpec
    from groundhook.host.app.requests import validated
    from groundhook.toolkits.documents.alone import rank_tool
    from groundhook.toolkits.documents.settings import RankerSettings

    settings: RankerSettings = validated(RankerSettings, {"by": by})
    _refuse_unknown_ranker(host, settings.by, assistant or "")
    if not isinstance(summaries, Sequence) or not all(
        isinstance(one, Mapping) for one in summaries
    ):
        raise UsageError("summaries: should be a list of mappings, each with an id")
    tool = rank_tool(settings, host.kb.embedder(EmbeddingSpec()))
    arguments = {"query": query, "summaries": list(map(dict, summaries)), "top_k": top_k}
    outcome = await host.tool(tool, arguments, assistant=assistant, events=events)
    if outcome.error is not None:
        kind = UsageError if outcome.code == "wrong_arguments" else SourceError
        raise kind(outcome.error)
    return cast("RankedDocuments", outcome.result)


def _refuse_unknown_ranker(host: Host, by: str, assistant: str) -> None:
    """Raise UnknownName if `by` names a connector or an assistant that the app does not have. One
    that exists but cannot be used is replaced by the built-in ranker."""
    kind, _, name = by.partition(":")
    with suppress(ConfigError, PluginError):
        if kind == "connector":
            host.runtime.connectors(host.app.connector_id(assistant, name))
        elif by != "builtin" and kind != "mcp":
            host.app.package(by)
