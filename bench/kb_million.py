"""A million passages with vectors that were computed before, in one collection of the embedded
engine: how long adding takes, what the engine needs, and how long a search takes.

    python -m bench.kb_million [passages]

1,000,000 passages unless another number is given; they take 8 GB of disk, and about a quarter of an
hour on two cores. They are made a part at a time, so that this process stays small. Searches go
use the call of a turn, with a filter by tenant, and start when the engine has optimised its
files. Figures are JSON lines on standard output.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread

from bench.figures import figure, quantile
from bench.generated import MadeQuestion, answered, documents, vector
from bench.kb import (
    MADE,
    ROUNDS,
    WARMING,
    Prepared,
    ask,
    knowledge_base,
    optimises,
    settled,
    worker,
)
from groundhook.handlers.kb.embedded.client import KBClient

MILLION, PART, QUESTIONS = 1_000_000, 20_000, 500


class Known(Prepared):
    """Also of questions that the search asks by itself, of which no vector was prepared."""

    async def embed_query(self, text: str, /) -> list[float]:
        return self.vectors.get(text) or vector(random.Random(text))


async def added(client: KBClient, passages: int) -> tuple[float, list[MadeQuestion]]:
    """Seconds of adding alone, without making the passages, and questions that they answer."""
    chance = random.Random(1)
    took = 0.0
    questions: list[MadeQuestion] = []
    for start in range(0, passages, PART):
        size = min(PART, passages - start)
        part = [
            replace(document, document=f"{start}-{document.document}")
            for document in documents(size, chance)
        ]
        questions += [answered(part, chance) for _ in range(max(1, QUESTIONS * size // passages))]
        began = time.perf_counter()
        for document in part:
            await client.put("bench", MADE, document)
        took += time.perf_counter() - began
        print(f"{start + size:,} passages, {took:.0f} s", file=sys.stderr)
    return took, questions


async def main(passages: int) -> None:
    with tempfile.TemporaryDirectory(
        prefix="groundhook-bench-", ignore_cleanup_errors=True
    ) as folder:
        state, embedder = Path(folder), Known()
        async with knowledge_base(state, embedder) as kb:
            client = KBClient(state, idle_s=600)
            await client.usage("bench", None)
            took, questions = await added(client, passages)
            name = f"{passages:,} passages with prepared vectors"
            figure(f"{name}, added", took, "s")
            figure(f"{name}, added per second", passages / took, "passages/s")
            began = time.perf_counter()
            with anyio.move_on_after(8):  # optimising starts a while after the last passage
                while not await anyio.to_thread.run_sync(optimises, state):  # noqa: ASYNC110
                    await anyio.sleep(0.2)
            await settled(state)
            figure(f"{name}, optimised after adding", time.perf_counter() - began, "s")
            embedder.vectors = {each.words: each.vector for each in questions}
            in_turn = random.Random(2).choices(questions, k=WARMING + ROUNDS)
            times = []
            for each in in_turn:
                began = time.perf_counter()
                await ask(kb, each)
                times.append((time.perf_counter() - began) * 1000)
            figure(f"{name}, search with a filter, p50", statistics.median(times[WARMING:]), "ms")
            figure(f"{name}, search with a filter, p95", quantile(times[WARMING:], 0.95), "ms")
            figure(f"{name}, memory", worker(state).memory_info().rss / 1e6, "MB")
            figure(f"{name}, disk", (await client.usage("bench", None)).disk_bytes / 1e6, "MB")
            await client.aclose()


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else MILLION)
