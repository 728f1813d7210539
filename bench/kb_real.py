"""The part of `bench.kb` over real passages with their real vectors: this repository's documents,
and abstracts of SciFact where they are there.

The folder of SciFact and the cache of vectors are those of `bench.retrieval`. Searches use the
call of a turn, `KnowledgeBase.search`, to the worker process and back, with a given question
vector. Their floor is the same search by the bare engine in this process, with its own BM25 and
fusion; the two alternate. Each question runs once, for the figure of new questions, and then
several times more. Figures are JSON lines on standard output.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import qdrant_edge as engine

from bench.figures import figure
from bench.judged_collections import Collection, collections
from bench.retrieval import Bare, embedded, opened, scope
from groundhook.handlers.kb.embedders.cached import VectorCache
from groundhook.host.core.types.search import SearchRequest

PASSAGES, AGAIN, IN_TURN = 1_400, 4, 10
SETS = {"scifact": "abstracts of SciFact", "paraphrase": "this documentation"}


def some(collection: Collection) -> Collection:
    """The first passages, and a hundred questions."""
    documents = dict(islice(collection.documents.items(), PASSAGES))
    return replace(
        collection,
        documents=documents,
        titles={id: collection.titles[id] for id in documents},
        questions=dict(islice(collection.questions.items(), 100)),
    )


async def real_passages(data: Path, cached: Path) -> None:
    """Print the figures of each collection that is there."""
    cache = VectorCache(cached / "vectors.sqlite", most_bytes=4 << 30)
    for whole in collections(data, [*SETS]):
        collection = some(whole)
        vectors = await embedded(collection, cache)
        with tempfile.TemporaryDirectory(
            prefix="groundhook-bench-", ignore_cleanup_errors=True
        ) as scratch:
            bare = Bare(collection, vectors, Path(scratch) / "bare")
            within = scope()  # a turn has one at hand
            async with opened(collection, vectors, Path(scratch) / "state") as kb:

                async def search(
                    text: str, kb: Any = kb, id: str = collection.name, within: Any = within
                ) -> None:
                    request = SearchRequest(
                        type="kb", query=text, collections=(id,), threshold=0.0, limit=10
                    )
                    await kb.search(request, within)

                await compare(collection, search, bare)
            bare.close()
    cache.close()


async def compare(
    collection: Collection, search: Callable[[str], Awaitable[None]], bare: Bare
) -> None:
    questions = list(collection.questions.values())
    await search(questions[0])  # opens the collection
    for name, rounds in (("new questions", 1), ("repeated questions", AGAIN)):
        through, floor = list[float](), list[float]()
        for start in range(0, len(questions) * rounds, IN_TURN):
            texts = [questions[at % len(questions)] for at in range(start, start + IN_TURN)]
            for text in texts:
                began = time.perf_counter()
                await search(text)
                through.append((time.perf_counter() - began) * 1000)
            for text in texts:
                began = time.perf_counter()
                bare.ask(text, engine.Fusion.Dbsf(), payload=True)
                floor.append((time.perf_counter() - began) * 1000)
        size, kind = len(collection.documents), SETS[collection.name]
        what = f"hybrid search on {size} passages, {kind}, {name}, p50"
        floor_is = "the engine called in process"
        figure(what, statistics.median(through), "ms", statistics.median(floor), floor_is)
