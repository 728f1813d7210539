"""Rerankers on a cassette."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from groundhook.core.ports import Ranked, Reranker, Scope
from groundhook.core.settings import RerankSettings
from groundhook.core.types.search import Item
from groundhook.host.testing.tape import Tape, TapedAnswer


@dataclass(frozen=True)
class TapedReranker:
    """A `Reranker` whose scores are recorded; a recording has the citation ids of the items."""

    tape: Tape
    name: str
    real: Reranker

    async def rerank(
        self, query: str, items: Sequence[Item], options: RerankSettings, scope: Scope, /
    ) -> Sequence[Ranked]:
        async def real() -> TapedAnswer:
            ranked = await self.real.rerank(query, items, options, scope)
            return {"ranked": [{"index": each.index, "score": each.score} for each in ranked]}

        request = _make_request(query, items, options)
        answer = await self.tape.ask(f"{self.name} reranking", request, real)
        return [Ranked(each["index"], each["score"]) for each in answer["ranked"]]


@dataclass(frozen=True)
class OwnReranker:
    """A `Reranker` that is an assistant of the app: it runs in the test, and what it calls is
    recorded. Scores that a cassette has are played."""

    recorded: TapedReranker

    async def rerank(
        self, query: str, items: Sequence[Item], options: RerankSettings, scope: Scope, /
    ) -> Sequence[Ranked]:
        tape, name = self.recorded.tape, f"{self.recorded.name} reranking"
        request = tape.request(_make_request(query, items, options))
        reranker = self.recorded if tape.cassette.has(name, request) else self.recorded.real
        return await reranker.rerank(query, items, options, scope)


def _make_request(query: str, items: Sequence[Item], options: RerankSettings) -> dict[str, Any]:
    return {
        "query": query,
        "items": [item.citation_id for item in items],
        "options": options.model_dump(mode="json", exclude_defaults=True),
    }
