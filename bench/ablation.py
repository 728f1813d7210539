"""Measure the effect of each part of a knowledge base search, with the bundled embedder.

    python -m bench.ablation [DATA] [--only NAME]... [--half tune|judge|all] [--json] [--cache DIR]

DATA, the collections in it and the cache are those of `bench.retrieval`; the default half of the
questions is the one on which no setting was chosen. This process searches with the product's
embedded engine, without one part. It prints nDCG@10 for each collection and variant, the mean over
all collections, and the median milliseconds of a search with a given question vector, without the
call of the worker process. With `--json`, one line for each collection and variant. `bare engine`
is the engine with its own BM25, as in `bench.retrieval`.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import anyio
import qdrant_edge as engine

from bench.judged_collections import Collection, collections
from bench.retrieval import (
    DEPTH,
    Arguments,
    Bare,
    Ranked,
    Ready,
    Vectors,
    arguments,
    embedded,
    incoming,
    say,
    scores,
    versions,
)
from groundhook.handlers.kb.analyse import WEIGHTS, Analyser, SparseVector, Weights
from groundhook.handlers.kb.balance import Balance
from groundhook.handlers.kb.embedded.collection import Collection as Stored
from groundhook.handlers.kb.embedded.search import Search
from groundhook.handlers.kb.embedders.cached import VectorCache
from groundhook.handlers.kb.ranking import fusion
from groundhook.handlers.kb.ranking.language_removal import LanguageRemoval
from groundhook.handlers.kb.store.messages import pack_vector
from groundhook.handlers.kb.store.port import CollectionSettings, VectorQuestion


@dataclass(frozen=True)
class Way:
    """A way to search: its name, and the parts that are in it. `words` is what words count of every
    question, None: as they match. `alone`: a word's only passage is found whatever its cosine.
    `codes`: words weigh 1 where a code is in common."""

    name: str
    balanced: bool = True
    neutral: bool = True
    words: float | None = None
    one_weight: bool = False
    by_rarity: bool = True
    alone: bool = True
    codes: bool = True
    weights: Weights = WEIGHTS


WAYS = (
    Way("vectors alone", balanced=False, neutral=False, words=0.0),
    Way("vectors alone, languages balanced", neutral=False, words=0.0),
    Way("Groundhook"),
    Way("languages not balanced", balanced=False),
    Way("question with its language", neutral=False),
    Way("words always in full", words=1.0),
    Way("words count alike in all languages", one_weight=True),
    Way("words not weighed by rarity", by_rarity=False),
    Way("without runs of letters", weights=WEIGHTS._replace(run=0.0)),
    Way("question words in full", weights=WEIGHTS._replace(filling=1.0)),
)


class Ways(Search):
    """Searches in some way."""

    way = Way("Groundhook")

    def set_way(self, way: Way, language: str) -> None:
        self.way = way
        self._question = Analyser(language, weights=way.weights)

    def _balance(self) -> Balance | None:
        balance = super()._balance()
        return balance if self.way.balanced else None

    def _rarity(self, words: SparseVector, tenant: str | None) -> dict[int, fusion.Rarity]:
        rarity, way = super()._rarity(words, tenant), self.way
        return {
            index: fusion.Rarity(
                one.score if way.by_rarity else 1.0, one.only if way.alone else None
            )
            for index, one in rarity.items()
        }

    def _weight(self, *given: Any) -> float:
        if self.way.codes:
            return super()._weight(*given)
        with patch.object(fusion, "is_code", return_value=False):
            return super()._weight(*given)

    def _groups(self, *given: Any) -> list[fusion.LanguageGroup]:
        groups = super()._groups(*given)
        if self.way.words is None and not self.way.one_weight:
            return groups
        most = max(group.weight for group in groups) if self.way.words is None else self.way.words
        return [fusion.LanguageGroup(group.dense, group.words, most) for group in groups]


class Parts(Stored):
    """A collection of the embedded engine, searched in some way."""

    def search_in(self, way: Way, question: VectorQuestion) -> Any:
        if not isinstance(self._search, Ways):
            self._search = Ways(self._manifest, self.settings.language, lambda: self._shard)
        self._search.set_way(way, self.settings.language)
        return self.search(question)


@contextmanager
def stored(collection: Collection, vectors: Vectors, folder: Path) -> Iterator[Parts]:
    """The collection in the engine."""
    made = CollectionSettings(provider="builtin", model="bench", dimensions=384)
    documents = incoming(collection, vectors)
    there = Parts.create(folder, collection.name, made, *documents)
    for document in documents:
        for _ in there.put(document):
            pass
    try:
        yield there
    finally:
        there.close()


async def answers(
    there: Parts, way: Way, collection: Collection, vectors: Vectors, across: LanguageRemoval
) -> tuple[Ranked, float]:
    """What is found, and the median milliseconds."""
    model, ranked, times = Ready(vectors.questions), {}, []
    languages: Mapping[str, Any] = {}
    for id, text in collection.questions.items():
        began = time.perf_counter()
        vector = pack_vector(vectors.questions[text])
        neutral = (
            await across.neutral_vector(text, vector, languages, model) if way.neutral else b""
        )
        question = VectorQuestion(vector=vector, text=text, limit=DEPTH, neutral_vector=neutral)
        answer = there.search_in(way, question)
        if not languages and answer.languages and way.neutral:
            languages = answer.languages
            neutral = await across.neutral_vector(text, vector, languages, model)
            answer = there.search_in(
                way, VectorQuestion(vector=vector, text=text, limit=DEPTH, neutral_vector=neutral)
            )
        times.append((time.perf_counter() - began) * 1000)
        ranked[id] = [hit.passage for hit in answer.hits]
    return ranked, statistics.median(times)


async def measured(
    collection: Collection, vectors: Vectors, folder: Path
) -> dict[str, tuple[float, float]]:
    """nDCG@10 and milliseconds of each way."""
    found: dict[str, tuple[float, float]] = {}
    bare = Bare(collection, vectors, folder / "bare")
    fusions: dict[str, Any] = {"words": "words", "DBSF": engine.Fusion.Dbsf()}
    for name, way in fusions.items():
        ranked, ms = bare.ranked(way)
        found[f"bare engine: {name}"] = scores(collection, ranked)["ndcg10"], ms
    bare.close()
    across = LanguageRemoval()
    with stored(collection, vectors, folder / "stored") as there:
        for way in WAYS:
            ranked, ms = await answers(there, way, collection, vectors, across)
            found[way.name] = scores(collection, ranked)["ndcg10"], ms
    return found


def table(measured: Mapping[str, Mapping[str, tuple[float, float]]]) -> str:
    """Markdown: a row for each way, a column for each collection."""
    lines = [
        "| | " + " | ".join([*measured, "mean", "ms"]) + " |",
        "|" + "---|" * (len(measured) + 3),
    ]
    for name in next(iter(measured.values())):
        values = [found[name][0] for found in measured.values()]
        ms = statistics.fmean(found[name][1] for found in measured.values())
        shown = [f"{value:.3f}".removeprefix("0") for value in [*values, statistics.fmean(values)]]
        lines.append(f"| {name} | " + " | ".join([*shown, f"{ms:.2f}"]) + " |")
    return "\n".join(lines)


async def main(given: Arguments) -> None:
    say(versions())
    kept = VectorCache(given.cache / "vectors.sqlite", most_bytes=4 << 30)
    every: dict[str, dict[str, tuple[float, float]]] = {}
    for whole in collections(given.data, given.only):
        collection = whole.half(given.half)
        vectors = await embedded(collection, kept)
        with tempfile.TemporaryDirectory(
            prefix="groundhook-bench-", ignore_cleanup_errors=True
        ) as scratch:
            every[collection.name] = await measured(collection, vectors, Path(scratch))
        for way, (ndcg, ms) in every[collection.name].items() if given.as_json else ():
            line = {"collection": collection.name, "way": way, "ndcg10": ndcg}
            print(json.dumps(line | {"ms_query": round(ms, 3)}), flush=True)
    kept.close()
    if not given.as_json and every:
        print(table(every))


if __name__ == "__main__":
    anyio.run(main, arguments("bench.ablation", half="judge"))
