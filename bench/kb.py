"""Measure the knowledge base: searches over real passages; then hybrid search with a filter at
several sizes, many concurrent searches, and searches while the engine is optimised.

    python -m bench.kb [passages ...] [--large] [--data DIR] [--cache DIR]

The main figures are those of `bench.kb_real`: real passages with their own vectors. The others show
what size costs, with any number of short passages made of real sentences; without sizes 1,000,
10,000 and 100,000, and `--large` adds 300,000. Searches use the call of a turn,
`KnowledgeBase.search`, to the worker process and back, with a given question vector; the worker is
not the one that added the passages. Their floor is the same search by the bare engine in this
process, with its own fusion, on a copy of the same files; the two alternate. Fifty answerable
questions are repeated, then others run once each; then unanswerable ones. Figures are JSON lines on
standard output; the cost against size is a table on standard error. `bench.kb_adding` measures
adding.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import psutil
import qdrant_edge as engine

from bench.figures import figure, quantile
from bench.generated import DIMENSIONS, TENANTS, MadeQuestion, answered, documents, stray
from bench.kb_real import real_passages
from groundhook.core.app_settings import KBStorageSettings
from groundhook.core.ports import Embedder, Scope
from groundhook.core.registry import Registry
from groundhook.core.settings import (
    SearchSettings,
    UsesSettings,
)
from groundhook.core.types.collection_spec import (
    AnalyserSpec,
    CollectionSpec,
    EmbeddingSpec,
)
from groundhook.core.types.search import SearchRequest
from groundhook.core.types.turn import Identity
from groundhook.handlers.kb.analyse import Analyser
from groundhook.handlers.kb.embed import EmbedderFactory
from groundhook.handlers.kb.embedded.client import KBClient
from groundhook.handlers.kb.embedded.folder import Folder, folder_of
from groundhook.handlers.kb.knowledge_base import KnowledgeBase
from groundhook.handlers.kb.opening import open_kb
from groundhook.handlers.kb.store.paging import POOL
from groundhook.handlers.kb.store.port import CollectionSettings, FullDocument

MADE = CollectionSettings(
    provider="bench", model="random", dimensions=DIMENSIONS, language="english", tenanted=True
)
SPEC = CollectionSpec(
    id="bench",
    embedding=EmbeddingSpec(provider="bench"),
    analyser=AnalyserSpec(language="english"),
    tenant_field="tenant",
)
ROUNDS, WARMING, IN_TURN = 300, 20, 10
AT_ONCE = (1, 8, 32)


@dataclass
class Cost:
    """One line of the table."""

    passages: int
    added: float  # passages a second
    bare_added: float
    p50: float  # ms
    p95: float
    bare_p50: float
    memory_mb: float
    disk_mb: float


class Prepared:
    """An embedder whose question was embedded before."""

    provider, model, dimensions = MADE.provider, MADE.model, MADE.dimensions

    def __init__(self) -> None:
        self.vectors: dict[str, list[float]] = {}

    async def embed_query(self, text: str, /) -> list[float]:
        # A search also embeds questions of its own, to find what a language has in common.
        return self.vectors.get(text) or [self.dimensions**-0.5] * self.dimensions

    async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]:
        raise NotImplementedError("documents are put with their vectors")

    def similarity(self, cosine: float, /) -> float:
        return (cosine + 1) / 2


def scope(tenant: str) -> Scope:
    async def warn(_code: str, message: str) -> None:
        raise RuntimeError(message)

    return Scope(
        identity=Identity(tenant_id=tenant),
        assistant_id="bench",
        settings=SearchSettings(),
        uses=UsesSettings(),
        now=lambda: (_ for _ in ()).throw(RuntimeError("no search needs the time")),
        warn=warn,
    )


SCOPES = {f"t{n}": scope(f"t{n}") for n in range(TENANTS)}


@asynccontextmanager
async def knowledge_base(state: Path, embedder: Embedder) -> Any:
    registry: Registry[EmbedderFactory] = Registry("embedding provider")
    registry.add("bench", lambda _spec: embedder)
    registry.add("builtin", lambda _spec: embedder)
    storage = KBStorageSettings(idle_s=600, vector_cache_mb=0)
    async with open_kb(
        state, {"bench": SPEC, "docs": CollectionSpec(id="docs")}, registry, storage
    ) as kb:
        yield kb
    client = KBClient(state, idle_s=1)
    await client.stop_worker()
    await client.aclose()


# ----------------------------------------------------------------------------------------- one size


async def one_size(state: Path, passages: int) -> Cost:
    chance = random.Random(1)
    prepared = documents(passages, chance)
    embedder = Prepared()
    async with knowledge_base(state, embedder) as kb:
        client = KBClient(state, idle_s=600)
        await client.usage("bench", None)
        began = time.perf_counter()
        for document in prepared:
            await client.put("bench", MADE, document)
        added = passages / (time.perf_counter() - began)
        questions = [answered(prepared, chance) for _ in range(50)]
        strays = [stray(prepared, chance) for _ in range(50)]
        new = [answered(prepared, chance) for _ in range(WARMING + ROUNDS)]
        embedder.vectors = {each.words: each.vector for each in [*questions, *strays, *new]}
        bare_added = bare_adding(state, prepared)
        figure(
            f"passages added, embedded before, to {passages}",
            added,
            "passages/s",
            bare_added,
            "the engine in process",
        )
        del prepared, document  # no host has them in memory
        gc.collect()
        await while_optimising(kb, state, questions)
        await settled(state)
        shard = bare_shard(state)
        # In use it ended hours ago; one that has just added this much takes a tenth of a ms more.
        await client.stop_worker()
        name = f"hybrid search with a filter on {passages} passages"
        again, astray = chosen(questions), chosen(strays)
        p50, p95, bare_p50 = await compare(kb, shard, again, name)
        await compare(kb, shard, new, f"{name}, of new questions")
        await compare(kb, shard, astray, f"{name}, of questions that nothing answers")
        shard.close()
        for many in AT_ONCE:
            await at_once(kb, questions, many, name)
        memory = worker(state).memory_info().rss / 1e6
        disk = (await client.usage("bench", None)).disk_bytes / 1e6
        await client.aclose()
    return Cost(passages, added, bare_added, p50, p95, bare_p50, memory, disk)


def worker(state: Path) -> psutil.Process:
    [found] = [process for process in psutil.process_iter() if str(state) in _arguments(process)]
    return found


def _arguments(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


async def while_optimising(
    kb: KnowledgeBase, state: Path, questions: Sequence[MadeQuestion]
) -> None:
    """A search every 20 ms for as long as the engine is optimised, if it is."""
    lags: list[float] = []
    times: list[float] = []
    with anyio.move_on_after(8):
        while not await anyio.to_thread.run_sync(optimises, state):  # noqa: ASYNC110
            await anyio.sleep(0.2)

    async def search() -> None:
        for round in itertools.count():
            began = time.perf_counter()
            await ask(kb, questions[round % len(questions)])
            times.append((time.perf_counter() - began) * 1000)
            await anyio.sleep(0.02)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lag, lags)
        tasks.start_soon(search)
        began = time.perf_counter()
        while await anyio.to_thread.run_sync(optimises, state):  # noqa: ASYNC110 # another process
            await anyio.sleep(0.5)
        tasks.cancel_scope.cancel()
    if len(times) > 100:
        figure("event loop lag while the engine optimises, p99", quantile(lags, 0.99), "ms")
        figure("search while the engine optimises, p95", quantile(times, 0.95), "ms")
        figure("optimising, beside the searches", time.perf_counter() - began, "s")


def optimises(state: Path) -> bool:
    commands = (" ".join(_arguments(process)) for process in psutil.process_iter())
    return any(
        "groundhook.handlers.kb.embedded.optimise" in command and str(state) in command
        for command in commands
    )


async def lag(lags: list[float]) -> None:
    """How much later than requested the loop comes back, in ms."""
    while True:
        began = time.perf_counter()
        await anyio.sleep(0.002)
        lags.append((time.perf_counter() - began - 0.002) * 1000)


async def settled(state: Path) -> None:
    """Wait until the worker and what it started to optimise are quiet."""
    idle = 0
    while idle < 3:
        processes = [
            process
            for process in psutil.process_iter()
            if str(state) in " ".join(_arguments(process))
        ]
        before = sum(sum(process.cpu_times()[:2]) for process in processes)
        await anyio.sleep(1)
        after = sum(sum(process.cpu_times()[:2]) for process in processes if process.is_running())
        idle = idle + 1 if after - before < 0.1 else 0


def shard_path(state: Path) -> Path:
    folder: Folder = folder_of(state / "kb", "bench")
    contents = folder.read("bench")
    assert contents is not None
    return folder.path / contents.shard


def bare_shard(state: Path) -> engine.EdgeShard:
    copy = state / "copy"
    shutil.copytree(shard_path(state), copy)
    return engine.EdgeShard.load(str(copy))


def bare_adding(state: Path, prepared: Sequence[FullDocument]) -> float:
    """Points a second: the same words, vectors, payloads, indexes and batches, and one flush."""
    config = engine.EdgeConfig(
        vectors={"dense": engine.EdgeVectorParams(MADE.dimensions, engine.Distance.Cosine)},
        sparse_vectors={"bm25": engine.EdgeSparseVectorParams(modifier=engine.Modifier.Idf)},
    )
    folder = state / "bare"
    folder.mkdir()
    shard = engine.EdgeShard.create(str(folder), config)
    for name in ("tenant", "document"):
        shard.update(engine.UpdateOperation.create_field_index(name, engine.KeywordIndexParams()))
    for name in ("generation", "first"):
        shard.update(
            engine.UpdateOperation.create_field_index(
                name, engine.IntegerIndexParams(lookup=True, range=False)
            )
        )
    analyser = engine.Bm25(engine.Bm25Config(language="english", avg_len=60.0))
    vectors = {
        passage.vector: list(memoryview(passage.vector).cast("f"))
        for document in prepared
        for passage in document.passages
    }
    began, id = time.perf_counter(), 0
    for number, document in enumerate(prepared):
        points = []
        for passage in document.passages:
            payload = {
                "tenant": document.tenant,
                "generation": number,
                "document": document.document,
                **vars(passage),
            }
            del payload["vector"], payload["text"]
            both: Any = {
                "dense": vectors[passage.vector],
                "bm25": analyser.embed_document(passage.text),
            }
            points.append(engine.Point(id := id + 1, both, payload))
        shard.update(engine.UpdateOperation.upsert_points(points))
    shard.flush()
    took = time.perf_counter() - began
    shard.close()
    shutil.rmtree(folder)
    return id / took


def chosen(questions: Sequence[MadeQuestion]) -> list[MadeQuestion]:
    """Return as many as `compare` takes, each several times."""
    return random.Random(2).choices(questions, k=WARMING + ROUNDS)


async def compare(
    kb: KnowledgeBase,
    shard: engine.EdgeShard,
    questions: Sequence[MadeQuestion],
    name: str,
) -> tuple[float, float, float]:
    """Prints the cost of a search and of the bare engine: the same questions to both, the first of
    them to warm up → p50 and p95 through Groundhook, and p50 of the engine, in ms. They are sent
    in turns, ten questions each: one after the other, each would find the processor's caches full
    of what the other read, as in no app."""
    # The files hold Groundhook's tokens: the engine's own analyser would find none of them, and be
    # quick at it.
    words = {
        each.words: engine.SparseVector(*Analyser("english").question(each.words))
        for each in questions
    }
    through, bare = list[float](), list[float]()
    for start in range(0, len(questions), IN_TURN):
        some = questions[start : start + IN_TURN]
        for each in some:
            began = time.perf_counter()
            await ask(kb, each)
            through.append((time.perf_counter() - began) * 1000)
        for each in some:
            began = time.perf_counter()
            assert bare_ask(shard, words[each.words], each)
            bare.append((time.perf_counter() - began) * 1000)
    through, bare = through[WARMING:], bare[WARMING:]
    p50, p95, bare_p50 = (
        statistics.median(through),
        quantile(through, 0.95),
        statistics.median(bare),
    )
    figure(f"{name}, p50", p50, "ms", bare_p50, "the engine called in process")
    figure(f"{name}, p95", p95, "ms", quantile(bare, 0.95), "the engine called in process")
    figure(f"{name}, on top of the engine", p50 - bare_p50, "ms")
    return p50, p95, bare_p50


async def ask(kb: KnowledgeBase, each: MadeQuestion) -> None:
    request = SearchRequest(
        type="kb", query=each.words, collections=("bench",), threshold=0, limit=10
    )
    found = await kb.search(request, SCOPES[each.tenant])  # a turn has one at hand
    assert len(found.items) == 10


def bare_ask(shard: engine.EdgeShard, words: engine.SparseVector, each: MadeQuestion) -> object:
    """Prefetch by vector and by words as many as Groundhook does, the engine's fusion, the payload
    of ten."""
    tenants = engine.Filter(
        must=[engine.FieldCondition("tenant", match=engine.MatchValue(each.tenant))]
    )
    fusion: Any = engine.Fusion.Dbsf()  # the stubs do not know that it is a Fusion
    legs = [
        engine.Prefetch(
            limit=POOL, query=engine.Query.Nearest(each.vector, using="dense"), filter=tenants
        ),
        engine.Prefetch(
            limit=POOL, query=engine.Query.Nearest(words, using="bm25"), filter=tenants
        ),
    ]
    return shard.query(
        engine.QueryRequest(limit=10, prefetches=legs, query=fusion, with_payload=True)
    )


async def at_once(
    kb: KnowledgeBase, questions: Sequence[MadeQuestion], many: int, name: str
) -> None:
    times: list[float] = []
    began = time.perf_counter()

    async def one(seed: int) -> None:
        chance = random.Random(seed)
        while len(times) < ROUNDS:
            start = time.perf_counter()
            await ask(kb, chance.choice(questions))
            times.append((time.perf_counter() - start) * 1000)

    async with anyio.create_task_group() as tasks:
        for seed in range(many):
            tasks.start_soon(one, seed)
    figure(f"{name}, {many} at a time", len(times) / (time.perf_counter() - began), "searches/s")
    figure(f"{name}, {many} at a time, p95", quantile(times, 0.95), "ms")


async def main(sizes: Sequence[int], data: Path, cached: Path) -> None:
    await real_passages(data, cached)
    costs = []
    with tempfile.TemporaryDirectory(
        prefix="groundhook-bench-", ignore_cleanup_errors=True
    ) as folder:
        for passages in sizes:
            state = Path(folder) / str(passages)
            costs.append(await one_size(state, passages))
            shutil.rmtree(state, ignore_errors=True)
    print(
        f"{'passages':>9} {'added/s':>8} {'engine':>8} {'p50 ms':>7} {'p95 ms':>7} {'engine':>7}"
        f" {'RAM MB':>7} {'disk MB':>8}",
        file=sys.stderr,
    )
    for cost in costs:
        print(
            f"{cost.passages:9,} {cost.added:8,.0f} {cost.bare_added:8,.0f} {cost.p50:7.2f}"
            f" {cost.p95:7.2f} {cost.bare_p50:7.2f} {cost.memory_mb:7,.0f} {cost.disk_mb:8,.0f}",
            file=sys.stderr,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("sizes", nargs="*", type=int, default=[1000, 10_000, 100_000])
    parser.add_argument("--large", action="store_true", help="300,000 passages too")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache/groundhook-bench")
    given = parser.parse_args()
    sizes = [*given.sizes, *([300_000] if given.large else [])]
    anyio.run(main, sizes, given.data, given.cache)
