"""Documents that were cut before, put into a collection: many small ones together, with new vectors
where they are wanted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any

from groundhook.handlers.kb.embed import in_context
from groundhook.handlers.kb.ingest.throttle import CORES, Pace, together
from groundhook.handlers.kb.store import Incoming, packed
from groundhook.host.core.ports import Embedder

Moved = Callable[
    [int, int, str], None
]  # passages done, passages in all (0: not known), document under way

_TOGETHER = 64  # passages that are put together when none of them is embedded


class Filling:
    """Of one collection. `put` stores documents; `ready` passages of `total` (0: not known) were
    there before. What waits to be put with others is put by `flush`; `documents` and `passages`
    count what was."""

    def __init__(
        self,
        put: Callable[..., Awaitable[Any]],
        embedder: Embedder | None,
        told: Moved | None,
        *,
        ready: int = 0,
        total: int = 0,
    ) -> None:
        self.documents = self.passages = 0
        self._put = put
        self._told = told
        self._ready = ready
        self._total = total
        self._whole = embedder is not None and in_context(embedder)
        self._pace = Pace(embedder) if embedder is not None else None
        self._waiting: list[Incoming] = []

    async def add(self, document: Incoming) -> None:
        self._waiting.append(document)
        enough = _TOGETHER if self._pace is None else 2 * CORES * self._pace.together
        if sum(len(each.passages) for each in self._waiting) >= enough:
            await self.flush()

    async def flush(self) -> None:
        documents, self._waiting = self._waiting, []
        if not documents:
            return
        if self._pace is not None:
            documents = await self._embedded(documents, self._pace)
        await self._put(*documents)
        self.documents += len(documents)
        self.passages += sum(len(document.passages) for document in documents)
        self.tell(documents[-1].document)

    def tell(self, document: str, more: int = 0) -> None:
        """Say how far it is, `more` passages beyond those that were put."""
        if self._told is not None:
            done = self._ready + self.passages + more
            self._told(done, max(self._total, done) if self._total else 0, document)

    async def _embedded(self, documents: list[Incoming], pace: Pace) -> list[Incoming]:
        """With new vectors, made on every core."""
        passages = [list(document.passages) for document in documents]
        places = [
            [(owner, number) for number in range(len(own))] for owner, own in enumerate(passages)
        ]
        flat = [place for own in places for place in own]
        batches: Iterable[list[tuple[int, int]]] = pace.batches(
            flat, lambda at: len(passages[at[0]][at[1]].text)
        )
        waiting, ready = iter(filter(None, places) if self._whole else batches), 0

        async def work() -> None:
            nonlocal ready
            for batch in waiting:
                vectors = await pace.embed(
                    [passages[owner][number].text for owner, number in batch]
                )
                for (owner, number), vector in zip(batch, vectors, strict=True):
                    passages[owner][number] = replace(
                        passages[owner][number], vector=packed(vector)
                    )
                ready += len(batch)
                if ready < len(flat):  # of the last ones is told when they are put
                    self.tell(documents[batch[0][0]].document, ready)

        await together(*[work] * CORES)
        return [
            replace(document, passages=tuple(own))
            for document, own in zip(documents, passages, strict=True)
        ]
