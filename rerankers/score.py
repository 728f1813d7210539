"""The default reranker: no judgement of its own, so that base score × source weight decides."""

from __future__ import annotations

from collections.abc import Sequence

from groundhook.host.core.ports import Ranked, Scope
from groundhook.host.core.settings import RerankSettings
from groundhook.host.core.types.search import Item


class ScoreReranker:
    """Gives every item a score of 1: the pool's order by weighted score stands, ties stay in
    place."""

    async def rerank(
        self, query: str, items: Sequence[Item], options: RerankSettings, scope: Scope, /
    ) -> Sequence[Ranked]:
        return [Ranked(index, 1.0) for index in range(len(items))]
