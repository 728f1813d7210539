"""`rank_documents_by_relevance`: summaries that a program already has, ranked as one page."""

from __future__ import annotations

from typing import Any

import anyio
from pydantic import BaseModel, ConfigDict, Field

from groundhook.core.ports import Embedder
from groundhook.core.tool_ports import ToolScope
from groundhook.core.types.base import Few
from groundhook.core.types.tools import Tool
from groundhook.toolkits.documents.ranker import BUILT_IN, PageRanker
from groundhook.toolkits.documents.search import candidates_of
from groundhook.toolkits.documents.settings import RankerSettings
from groundhook.toolkits.documents.summaries import Summary


class RankArguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    query: str = Field(min_length=1, max_length=4000, pattern=r"\S")
    summaries: Few[list[Summary]] = Field(max_length=1000)
    top_k: int = Field(default=10, ge=1, le=100)


def rank_tool(settings: RankerSettings, embedder: Embedder) -> Tool:
    """Return the ranker of pages as a tool."""

    async def run(arguments: RankArguments, scope: ToolScope) -> Any:
        candidates = candidates_of(arguments.summaries, 1, settings.preview)
        ranker = PageRanker(
            settings=settings.model_copy(update={"top": arguments.top_k}),
            prompts=BUILT_IN,
            scope=scope,
            embedder=embedder,
            limiter=anyio.CapacityLimiter(1),
        )
        ranked = await ranker.rank(arguments.query, candidates, "the summaries")
        return {
            "rankedDocuments": [
                {
                    "id": one.candidate.id,
                    "title": one.candidate.title,
                    "relevanceScore": round(one.score, 4),
                }
                for one in ranked
            ],
            "totalProcessed": len(candidates),
        }

    return Tool(
        name="rank_documents_by_relevance",
        description="Rank summaries of documents by their relevance to a question.",
        arguments=RankArguments,
        run=run,
        deadline_ms=settings.timeout_ms + 15_000,
    )
