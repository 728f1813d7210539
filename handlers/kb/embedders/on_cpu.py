"""What embedding models that this process computes have in common: questions in threads of their
own, documents on every core.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial

import anyio
import anyio.to_thread


class OnCpu:
    """An `Embedder` but for its names; `_query` and `_passage` compute one text, in any thread."""

    def _query(self, text: str) -> list[float]:
        raise NotImplementedError

    def _passage(self, text: str) -> list[float]:
        raise NotImplementedError

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        """At most so many questions go on although nobody waits for them any more."""
        return ThreadPoolExecutor(max(4, os.cpu_count() or 1), "question")

    async def embed_query(self, text: str, /) -> list[float]:
        """Cancelled at once: what the model has begun with goes on in its thread, what waits for
        one is never begun."""
        return await asyncio.wrap_future(self._threads.submit(self._query, text))

    async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]:
        """A text in a call: several are no faster, and a cancelled add still computes what was
        begun."""
        done: dict[int, list[float]] = {}
        indices = iter(range(len(texts)))

        async def work() -> None:
            for index in indices:
                done[index] = await anyio.to_thread.run_sync(self._passage, texts[index])

        async with anyio.create_task_group() as tasks:
            for _ in range(os.cpu_count() or 1):
                tasks.start_soon(work)
        return [done[index] for index in range(len(texts))]

    async def aclose(self) -> None:
        """End the threads; waits for questions that are being embedded."""
        threads: ThreadPoolExecutor | None = self.__dict__.pop("_threads", None)
        if threads is not None:
            end = partial(threads.shutdown, wait=True, cancel_futures=True)
            await anyio.to_thread.run_sync(end, abandon_on_cancel=True)
