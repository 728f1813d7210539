"""The base of embedding models that this process computes: questions run in their own threads,
documents on every core.
"""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial

import anyio
import anyio.to_thread


class CpuEmbedder(ABC):
    """An `Embedder` without its names."""

    @abstractmethod
    def _query(self, text: str) -> list[float]:
        """Embed a question, in any thread."""

    @abstractmethod
    def _passage(self, text: str) -> list[float]:
        """Embed a passage, in any thread."""

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        """The threads of questions. Their number limits how many cancelled questions are still
        computed."""
        return ThreadPoolExecutor(max(4, os.cpu_count() or 1), "question")

    async def embed_query(self, text: str, /) -> list[float]:
        """Embed a question. Cancellation returns at once: a running computation finishes in its
        thread, a waiting one never starts."""
        return await asyncio.wrap_future(self._threads.submit(self._query, text))

    async def embed_queries(self, texts: Sequence[str], /) -> list[list[float]]:
        """Embed questions on every core."""
        running = [asyncio.wrap_future(self._threads.submit(self._query, text)) for text in texts]
        try:
            return [await vector for vector in running]
        finally:
            for vector in running:
                vector.cancel()

    async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]:
        """Embed texts one by one: batches are no faster, and a cancelled add waits only for the
        texts that are running."""
        done: dict[int, list[float]] = {}
        indices = iter(range(len(texts)))

        async def embed_next() -> None:
            for index in indices:
                done[index] = await anyio.to_thread.run_sync(self._passage, texts[index])

        async with anyio.create_task_group() as tasks:
            for _ in range(os.cpu_count() or 1):
                tasks.start_soon(embed_next)
        return [done[index] for index in range(len(texts))]

    async def aclose(self) -> None:
        """End the threads, after the questions that are running."""
        threads: ThreadPoolExecutor | None = self.__dict__.pop("_threads", None)
        if threads is not None:
            end = partial(threads.shutdown, wait=True, cancel_futures=True)
            await anyio.to_thread.run_sync(end, abandon_on_cancel=True)
