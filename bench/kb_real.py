"""The part of `bench.kb` over real passages with their real vectors: this repository's documents,
and abstracts of SciFact where they are there.

The folder of SciFact and the cache of vectors are those of `bench.retrieval`. Searches use the
call of a turn, `KnowledgeBase.search`, to the worker process and back, with a given question
vector: embedding a question is a figure of `bench.embedder`. Their floor is the same search by the
bare engine in this process, with its own BM25 and fusion; the two alternate. One half of the
questions runs once in a process that has just started, where every passage is read for the first
time; then the other half once, the figure of new questions, and several times more; then with the
default threshold, whose matches are counted, which the floor does not do. The same again by
processor time of both processes, which a busy machine changes less. Figures are JSON lines on
standard output.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import psutil
import qdrant_edge as engine

from bench.figures import figure, quantile
from bench.judged_collections import Collection, collections
from bench.retrieval import Bare, embedded, opened, scope
from groundhook.core.source_settings import KBSettings
from groundhook.core.types.search import SearchRequest
from groundhook.handlers.kb.embedders.cached import VectorCache

PASSAGES, QUESTIONS, AGAIN, IN_TURN = 1_400, 300, 4, 10
SETS = {"scifact": "abstracts of SciFact", "paraphrase": "this documentation"}


def some(collection: Collection) -> Collection:
    """The first passages and questions."""
    documents = dict(islice(collection.documents.items(), PASSAGES))
    return replace(
        collection,
        documents=documents,
        titles={id: collection.titles[id] for id in documents},
        questions=dict(islice(collection.questions.items(), QUESTIONS)),
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
                    text: str,
                    threshold: float,
                    kb: Any = kb,
                    id: str = collection.name,
                    within: Any = within,
                ) -> None:
                    request = SearchRequest(
                        type="kb", query=text, collections=(id,), threshold=threshold, limit=10
                    )
                    await kb.search(request, within)

                await search(next(iter(collection.questions.values())), 0.0)  # opens the collection
                await compare(collection, search, bare, worker(Path(scratch) / "state"))
            bare.close()
    cache.close()


def worker(state: Path) -> psutil.Process:
    """Return the process that answers the searches."""
    address = json.loads((state / "kb/worker.json").read_text(encoding="utf-8"))
    return psutil.Process(address["pid"])


async def compare(
    collection: Collection,
    search: Callable[[str, float], Awaitable[None]],
    bare: Bare,
    worker: psutil.Process,
) -> None:
    every = list(collection.questions.values())
    first, new = every[: len(every) // 2], every[len(every) // 2 :]
    for name, questions, threshold in (
        ("first questions of a process", first, 0.0),
        ("new questions", new, 0.0),
        ("repeated questions", new * AGAIN, 0.0),
        ("repeated questions at the default threshold", new * AGAIN, KBSettings().threshold),
    ):
        through, floor = list[float](), list[float]()
        processor = {"worker": -sum(worker.cpu_times()[:2]), "host": 0.0, "bare": 0.0}
        for start in range(0, len(questions), IN_TURN):
            texts = questions[start : start + IN_TURN]
            processor["host"] -= time.process_time()
            for text in texts:
                began = time.perf_counter()
                await search(text, threshold)
                through.append((time.perf_counter() - began) * 1000)
            processor["host"] += time.process_time()
            processor["bare"] -= time.process_time()
            for text in texts:
                began = time.perf_counter()
                bare.ask(text, engine.Fusion.Dbsf(), payload=True)
                floor.append((time.perf_counter() - began) * 1000)
            processor["bare"] += time.process_time()
        processor["worker"] += sum(worker.cpu_times()[:2])
        size, kind = len(collection.documents), SETS[collection.name]
        what = f"hybrid search on {size} passages, {kind}, {name}"
        floor_is = "the engine called in process"
        for share, label in ((0.5, "p50"), (0.95, "p95")):
            figure(
                f"{what}, {label}", quantile(through, share), "ms", quantile(floor, share), floor_is
            )
        each = 1000 / len(questions)
        busy = (processor["worker"] + processor["host"]) * each
        figure(f"{what}, processor time", busy, "ms", processor["bare"] * each, floor_is)
