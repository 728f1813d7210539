"""How many texts are embedded in one call: so many that it takes about a second, for whoever
watches and whoever stops it. There is a call under way for each core.

Texts of about one length go together: a model pads what it computes at once to the longest.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

import anyio

from groundhook.host.core.errors import HostError
from groundhook.host.core.ports import Embedder

Text = TypeVar("Text")

CORES = os.cpu_count() or 1
_FEWEST, _FIRST, _MOST = max(2, CORES), max(4, CORES), 32
_SHORT_S, _LONG_S = 0.5, 1.5


class Pace:
    """Of one embedder at one work. `together`: texts of the next call."""

    def __init__(self, embedder: Embedder) -> None:
        self.together = _FIRST
        self._embedder = embedder

    def batches(self, texts: Sequence[Text], size: Callable[[Text], int]) -> Iterator[list[Text]]:
        """The texts in the order of their sizes, so many at a time as the pace is then."""
        waiting = sorted(texts, key=size)
        while waiting:
            together = waiting[: self.together]
            del waiting[: self.together]
            yield together

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        began = time.monotonic()
        vectors = await self._embedder.embed_documents(texts)
        self._took(len(texts), time.monotonic() - began)
        return vectors

    def _took(self, texts: int, seconds: float) -> None:
        if seconds > _LONG_S:
            self.together = max(_FEWEST, min(self.together, texts) // 2)
        elif seconds < _SHORT_S and texts >= self.together:
            self.together = min(_MOST, self.together * 2)


async def together(*jobs: Callable[[], Awaitable[None]]) -> None:
    """Run the jobs at the same time; the first that fails ends the others, and its error is raised
    as it is."""
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
