"""Write documents that are already cut into a collection: many small ones in one batch, with new
vectors if requested."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any

from groundhook.core.ports import Embedder
from groundhook.handlers.kb.embed import in_context
from groundhook.handlers.kb.ingest.throttle import CORES, Throttle, run_concurrently
from groundhook.handlers.kb.store.messages import pack_vector
from groundhook.handlers.kb.store.port import FullDocument

# passages done, passages in total (0: unknown), current document
TransferProgress = Callable[[int, int, str], None]

_BATCH = 64  # passages of one batch when none of them is embedded


class BatchWriter:
    """Writes documents to one collection in batches. `put` stores documents; `ready` of `total`
    passages (0: unknown) were stored before. `flush` stores the last batch; `documents` and
    `passages` count what was stored."""

    def __init__(
        self,
        put: Callable[..., Awaitable[Any]],
        embedder: Embedder | None,
        progress: TransferProgress | None,
        *,
        ready: int = 0,
        total: int = 0,
    ) -> None:
        self.documents = self.passages = 0
        self._put = put
        self._progress = progress
        self._ready = ready
        self._total = total
        self._by_document = embedder is not None and in_context(embedder)
        self._throttle = Throttle(embedder) if embedder is not None else None
        self._waiting: list[FullDocument] = []

    async def add(self, document: FullDocument) -> None:
        self._waiting.append(document)
        enough = _BATCH if self._throttle is None else 2 * CORES * self._throttle.batch_size
        if sum(len(each.passages) for each in self._waiting) >= enough:
            await self.flush()

    async def flush(self) -> None:
        documents, self._waiting = self._waiting, []
        if not documents:
            return
        if self._throttle is not None:
            documents = await self._embed(documents, self._throttle)
        await self._put(*documents)
        self.documents += len(documents)
        self.passages += sum(len(document.passages) for document in documents)
        self.report(documents[-1].document)

    def report(self, document: str, more: int = 0) -> None:
        """Report the progress: the stored passages and `more` that are embedded but not yet
        stored."""
        if self._progress is not None:
            done = self._ready + self.passages + more
            self._progress(done, max(self._total, done) if self._total else 0, document)

    async def _embed(self, documents: list[FullDocument], throttle: Throttle) -> list[FullDocument]:
        """Return the documents with new vectors, computed on every core."""
        passages = [list(document.passages) for document in documents]
        places = [
            [(owner, number) for number in range(len(own))] for owner, own in enumerate(passages)
        ]
        flat = [place for own in places for place in own]
        batches: Iterable[list[tuple[int, int]]] = throttle.batches(
            flat, lambda at: len(passages[at[0]][at[1]].text)
        )
        waiting, ready = iter(filter(None, places) if self._by_document else batches), 0

        async def embed_batches() -> None:
            nonlocal ready
            for batch in waiting:
                vectors = await throttle.embed(
                    [passages[owner][number].text for owner, number in batch]
                )
                for (owner, number), vector in zip(batch, vectors, strict=True):
                    passages[owner][number] = replace(
                        passages[owner][number], vector=pack_vector(vector)
                    )
                ready += len(batch)
                if ready < len(flat):  # the last ones are reported once they are stored
                    self.report(documents[batch[0][0]].document, ready)

        await run_concurrently(*[embed_batches] * CORES)
        return [
            replace(document, passages=tuple(own))
            for document, own in zip(documents, passages, strict=True)
        ]
