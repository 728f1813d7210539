"""The default reranker: it leaves the order to base score × source weight."""

from __future__ import annotations

from collections.abc import Sequence

from groundhook.core.ports import Ranked, Scope
from groundhook.core.settings import RerankSettings
from groundhook.core.types.search import Item


class ScoreReranker:
    """A `core.ports.Reranker` that returns a score of 1 for every item."""

    async def rerank(
        self, query: str, items: Sequence[Item], options: RerankSettings, scope: Scope, /
    ) -> Sequence[Ranked]:
        return [Ranked(index, 1.0) for index in range(len(items))]
