"""Choose how many texts are embedded in one call: as many as take about a second, so that progress
is visible and an add can be stopped. One call runs for each core.

Texts of similar length share a call: a model pads the texts of a call to the longest one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

import anyio

from groundhook.core.errors import HostError
from groundhook.core.ports import Embedder

_Text = TypeVar("_Text")

CORES = os.cpu_count() or 1
_FEWEST, _FIRST, _MOST = max(2, CORES), max(4, CORES), 32
_SHORT_S, _LONG_S = 0.5, 1.5


class Throttle:
    """Measures the calls of one embedder during one add. `batch_size` is the number of texts of the
    next call."""

    def __init__(self, embedder: Embedder) -> None:
        self.batch_size = _FIRST
        self._embedder = embedder
        self._calls = anyio.Semaphore(CORES)

    def batches(
        self, texts: Sequence[_Text], size: Callable[[_Text], int]
    ) -> Iterator[list[_Text]]:
        """Yield the texts in the order of their sizes, `batch_size` at a time."""
        waiting = sorted(texts, key=size)
        while waiting:
            batch = waiting[: self.batch_size]
            del waiting[: self.batch_size]
            yield batch

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Embed the texts and adjust the size of the next call."""
        async with self._calls:
            began = time.monotonic()
            vectors = await self._embedder.embed_documents(texts)
            self._adjust(len(texts), time.monotonic() - began)
        return vectors

    def _adjust(self, texts: int, seconds: float) -> None:
        if seconds > _LONG_S:
            self.batch_size = max(_FEWEST, min(self.batch_size, texts) // 2)
        elif seconds < _SHORT_S and texts >= self.batch_size:
            self.batch_size = min(_MOST, self.batch_size * 2)


async def run_concurrently(*jobs: Callable[[], Awaitable[None]]) -> None:
    """Run the jobs concurrently. The first HostError cancels the others and is raised itself, not
    in an exception group."""
    failed: list[HostError] = []
    async with anyio.create_task_group() as tasks:

        async def run(job: Callable[[], Awaitable[None]]) -> None:
            try:
                await job()
            except HostError as exc:
                failed.append(exc)
                tasks.cancel_scope.cancel()

        for job in jobs:
            tasks.start_soon(run, job)
    if failed:
        raise failed[0]
