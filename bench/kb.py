"""Measures the knowledge base: hybrid search with a filter on 100,000 passages, and adding documents.

    python -m bench.kb [passages]

Searches go the way of a turn, to the worker process and back, without the embedding; their floor is the bare engine in this
process, asked for the same with its own fusion, on the same files. Adding is compared with embedding the same texts.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import qdrant_edge as engine

from bench.figures import figure
from handlers.kb.base import open_kb
from handlers.kb.client import KBClient
from handlers.kb.embed import BuiltinEmbedder, EmbedderFactory, register
from handlers.kb.store import Incoming, Made, Passage, Question, packed
from host.config.schema import KBStorageSettings
from host.registry import Registry
from host.types.specs import CollectionSpec

MADE = Made(provider="bench", model="random", dimensions=384, language="english", tenanted=True)
TENANTS = 50  # a filter lets 2 % pass
TOGETHER = 200  # passages in a document
ROUNDS = 300
DOCUMENTS = 40
VOCABULARY, COMMONEST = 20_000, 30  # words by rank, without the commonest (stop words)


def vector(chance: random.Random) -> list[float]:
    return [chance.gauss(0, 1) for _ in range(MADE.dimensions)]


def text(chance: random.Random, words: int = 60) -> str:
    """Words by Zipf's law: the commonest stands in a quarter of all passages, most in hardly any."""
    ratio = VOCABULARY / COMMONEST + 1
    return " ".join(f"word{int(COMMONEST * ratio ** chance.random()) - COMMONEST}" for _ in range(words))


async def filled(client: KBClient, passages: int, chance: random.Random) -> None:
    vectors = [packed(vector(chance)) for _ in range(5000)]
    for start in range(0, passages, TOGETHER):
        made = []
        for number in range(start, min(start + TOGETHER, passages)):
            said = text(chance)
            made.append(Passage(passage=str(number), content=said, text=said, vector=chance.choice(vectors)))
        number = start // TOGETHER
        document = Incoming(
            document=f"{number}.md", title="Bench", fingerprint="1", passages=tuple(made), tenant=f"t{number % TENANTS}"
        )
        await client.put("bench", MADE, document)


async def middle(rounds: int, ask: Callable[[], Awaitable[object]]) -> float:
    """The median time of `ask` in milliseconds."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        await ask()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


async def searching(state: Path, passages: int) -> None:
    chance = random.Random(1)
    client = KBClient(state, idle_s=600)
    began = time.perf_counter()
    await client.usage("bench", None)
    figure("knowledge base worker started on demand", (time.perf_counter() - began) * 1000, "ms")
    began = time.perf_counter()
    await filled(client, passages, chance)
    figure("passages stored, embedded before", passages / (time.perf_counter() - began), "passages/s")
    questions = [(vector(chance), text(chance, 6), f"t{chance.randrange(TENANTS)}") for _ in range(50)]

    async def ask() -> object:
        dense, words, tenant = chance.choice(questions)
        answer = await client.search("bench", MADE, Question(vector=packed(dense), text=words, limit=10, tenant=tenant))
        assert len(answer.hits) == 10
        return answer

    await middle(20, ask)
    through = await middle(ROUNDS, ask)
    await client.stop_worker()
    await client.aclose()
    bare = await bare_engine(state, questions)
    figure(f"hybrid search with a filter on {passages} passages, p50", through, "ms", bare, "the engine asked in process")


async def bare_engine(state: Path, questions: list[tuple[list[float], str, str]]) -> float:
    """The same question to the engine alone: prefetch by vector and by words, its own fusion, the payload of ten."""
    while (state / "kb/worker.json").exists():  # noqa: ASYNC110 - another process
        await anyio.sleep(0.05)
    shard = engine.EdgeShard.load(str(state / "kb/c-bench/shard"))
    analyser = engine.Bm25(engine.Bm25Config(language="english"))
    fusion: Any = engine.Fusion.Dbsf()  # the stubs do not know that it is a Fusion
    chance = random.Random(2)

    async def ask() -> object:
        dense, words, tenant = chance.choice(questions)
        tenants = engine.Filter(must=[engine.FieldCondition("tenant", match=engine.MatchValue(tenant))])
        legs = [
            engine.Prefetch(limit=64, query=engine.Query.Nearest(dense, using="dense"), filter=tenants),
            engine.Prefetch(limit=64, query=engine.Query.Nearest(analyser.embed_query(words), using="bm25"), filter=tenants),
        ]
        return shard.query(engine.QueryRequest(limit=10, prefetches=legs, query=fusion, with_payload=True))

    await middle(20, ask)
    found = await middle(ROUNDS, ask)
    shard.close()
    return found


async def adding(state: Path) -> None:
    """Documents of about 100 tokens, through the whole of `kb add`, and the embedding of the same alone."""
    chance = random.Random(3)
    subjects = ["the worker", "a citation", "the hook", "a collection", "the model", "an answer", "the search", "a tenant"]
    verbs = ["waits for", "refers to", "is read by", "is kept beside", "comes before", "does not know", "replaces"]
    folder = state / "documents"
    folder.mkdir(parents=True)
    texts = []
    for number in range(DOCUMENTS):
        said = " ".join(f"{chance.choice(subjects)} {chance.choice(verbs)} {chance.choice(subjects)}." for _ in range(14))
        texts.append(said)
        (folder / f"{number}.md").write_text(f"# Number {number}\n\n{said}\n", encoding="utf-8")
    embedders: Registry[EmbedderFactory] = Registry("embedding provider")
    register(embedders)
    model = BuiltinEmbedder()
    await model.embed_query("load it")
    began = time.perf_counter()
    await model.embed_documents(texts)
    alone = DOCUMENTS / (time.perf_counter() - began)
    async with open_kb(state, {"docs": CollectionSpec(id="docs")}, embedders, KBStorageSettings()) as kb:
        began = time.perf_counter()
        report = await kb.add("docs", [folder])
        took = time.perf_counter() - began
        assert not report.failed
        figure("documents added (100 tokens each)", DOCUMENTS / took, "documents/s", alone, "embedding them")
        began = time.perf_counter()
        await kb.add("docs", [folder])
        figure("documents added again, unchanged", DOCUMENTS / (time.perf_counter() - began), "documents/s")
    client = KBClient(state, idle_s=1)
    await client.stop_worker()
    await client.aclose()


async def main(passages: int) -> None:
    with tempfile.TemporaryDirectory(prefix="groundhook-bench-", ignore_cleanup_errors=True) as folder:
        await searching(Path(folder) / "search", passages)
        await adding(Path(folder) / "add")


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
