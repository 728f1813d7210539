"""Measures what each part of a knowledge base's search is worth, with the bundled embedder.

    python -m bench.ablation [DATA] [--only NAME]... [--json] [--cache DIR]

DATA, the collections in it and the cache are those of `bench.retrieval`. The parts are the
product's own analyser, engine and fusion, put together here, in this process, so that each can be
left out. Prints nDCG@10 for each collection and way, the mean over all collections, and the median
milliseconds of a question whose embedding is there, without the way to the worker process. With
`--json` one line a collection and way. `bare engine` is the engine with its own BM25, as in
`bench.retrieval`.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import qdrant_edge as engine

from bench.retrieval import (
    Bare,
    Ranked,
    Ready,
    Vectors,
    arguments,
    embedded,
    say,
    scores,
    versions,
)
from bench.ten import Collection, collections
from groundhook.handlers.kb.analyse import WEIGHTS, Analyser, Sparse, Weights
from groundhook.handlers.kb.embedded.edge import NewPoint, Rankings, Shard
from groundhook.handlers.kb.embedders.cached import VectorCache
from groundhook.handlers.kb.language import language_of, scripts, words_can_match
from groundhook.handlers.kb.points import mean_length
from groundhook.handlers.kb.ranking.across import Across
from groundhook.handlers.kb.ranking.fusion import (
    best,
    fuse,
    places,
    standing_out,
    weight_of_words,
)
from groundhook.handlers.kb.store import POOL, Made

TOGETHER = 250  # points put at once


@dataclass(frozen=True)
class Measured(Rankings):
    """`cosines` has every id of both rankings."""

    cosines: dict[int, float]


@dataclass(frozen=True)
class Asked:
    """A question, and what the engine found. `weight` is that of words."""

    shard: Shard
    vector: Sequence[float]
    words: Sparse
    found: Measured
    weight: float


Order = Callable[[Asked], Sequence[int]]


def ranked(shard: Shard, vector: Sequence[float], words: Sparse) -> Measured:
    found = shard.rank(list(vector), words, limit=POOL, tenant=None, hidden=())
    cosines = found.dense | shard.cosines(list(vector), found.words.keys() - found.dense.keys())
    return Measured(found.dense, found.words, cosines)


def added_up(asked: Asked) -> dict[int, float]:
    found = asked.found
    return fuse(found.dense, found.words, limit=POOL, weight=asked.weight).worths(found.cosines)


def ordered(scores: Mapping[int, float]) -> list[int]:
    return sorted(scores, key=lambda id: (-scores[id], id))


def by_vectors(asked: Asked) -> list[int]:
    return ordered(asked.found.dense)


def by_words(asked: Asked) -> list[int]:
    return ordered(asked.found.words)


def by_all(asked: Asked) -> list[int]:
    return ordered(added_up(asked))


def by_all_evenly(asked: Asked) -> list[int]:
    return by_all(replace(asked, weight=1.0))


def by_all_without_places(asked: Asked) -> list[int]:
    found = asked.found
    worth = added_up(asked)
    for ranking, counts in ((found.dense, 1.0), (found.words, asked.weight)):
        shares = places(ranking.values(), counts)
        for id, score in ranking.items():
            if id in worth:
                worth[id] -= shares[score]
    return ordered(worth)


def by_ranks(asked: Asked) -> list[int]:
    """Reciprocal rank fusion with k = 60."""
    total: defaultdict[int, float] = defaultdict(float)
    for order in (by_vectors(asked), by_words(asked)):
        for rank, id in enumerate(order, 1):
            total[id] += 1 / (60 + rank)
    return ordered(total)


def by_listed_scores(asked: Asked) -> list[int]:
    """Distribution-based score fusion as the engine does it: whoever is not listed has a 0
    there."""
    total: defaultdict[int, float] = defaultdict(float)
    for scored in (asked.found.dense, asked.found.words):
        mean, same = statistics.fmean(scored.values() or [0.0]), standing_out(list(scored.values()))
        for id, score in scored.items():
            total[id] += ((score - mean) * same + 3) / 6
    return ordered(total)


def by_scaled_scores(asked: Asked) -> list[int]:
    """Convex combination, half and half, of scores between the least and the greatest of their
    kind."""
    if not asked.found.words:
        return by_vectors(asked)
    words = {id: asked.found.words.get(id, 0.0) for id in asked.found.cosines}
    total: defaultdict[int, float] = defaultdict(float)
    for scored in (asked.found.cosines, words):
        least, most = min(scored.values()), max(scored.values())
        for id, score in scored.items():
            total[id] += (score - least) / ((most - least) or 1.0)
    return ordered(total)


def by_feedback(asked: Asked) -> list[int]:
    """Asks again with a vector that is moved a little towards the best three (Rocchio, 1971)."""
    near = list(asked.shard.vectors(by_all(asked)[:3]).values())
    moved = [
        value + 0.1 * statistics.fmean(others)
        for value, *others in zip(asked.vector, *near, strict=True)
    ]
    return by_all(replace(asked, vector=moved, found=ranked(asked.shard, moved, asked.words)))


@dataclass(frozen=True)
class Way:
    """A way to search: its name, how rankings become one, what tokens weigh, and whether the vector
    of a question in another script, whose words do not match, is freed of its language."""

    name: str
    order: Order = by_all
    weights: Weights = WEIGHTS
    freed: bool = True


WAYS = (
    Way("vectors alone", by_vectors, freed=False),
    Way("words alone", by_words),
    Way("RRF, k = 60", by_ranks, freed=False),
    Way("DBSF as the engine's", by_listed_scores, freed=False),
    Way("convex, 0.5", by_scaled_scores, freed=False),
    Way("Groundhook"),
    Way("words always in full", by_all_evenly, freed=False),
    Way("places not counted", by_all_without_places),
    Way("and asked again, nearer to the best", by_feedback),
    Way("without runs of letters", weights=WEIGHTS._replace(run=0.0)),
    Way("without single characters", weights=WEIGHTS._replace(character=0.0)),
    Way("question words in full", weights=WEIGHTS._replace(filling=1.0)),
    Way("headings not counted again", weights=WEIGHTS._replace(heading=0.0)),
    Way("vector with its language", freed=False),
)


class Stand:
    """A collection in the engine, analysed with some weights."""

    def __init__(
        self, collection: Collection, vectors: Vectors, weights: Weights, folder: Path
    ) -> None:
        self._vectors = vectors
        self.ids = list(collection.documents)
        texts = list(collection.documents.values())
        self.language = language_of(" ".join(texts[:20]))
        self.scripts = sum((scripts(text) for text in texts), Counter[str]())
        analyser = Analyser(self.language, mean_length(sum(map(len, texts)), len(texts)), weights)
        made = Made(provider="builtin", model="bench", dimensions=384, language=self.language)
        self.shard = Shard.create(folder, made)
        points = [
            NewPoint(
                number,
                vectors.documents[id],
                analyser.document(text, collection.titles[id]),
                {"generation": 1},
            )
            for number, (id, text) in enumerate(collection.documents.items())
        ]
        for start in range(0, len(points), TOGETHER):
            self.shard.upsert(points[start : start + TOGETHER])

    async def answers(
        self, way: Way, questions: Mapping[str, str], across: Across
    ) -> tuple[Ranked, float]:
        """What is found, and the median milliseconds."""
        analyser, model = (
            Analyser(self.language, weights=way.weights),
            Ready(self._vectors.questions),
        )
        answered, times = {}, []
        for id, text in questions.items():
            began = time.perf_counter()
            asked = self._asked(self._vectors.questions[text], analyser.question(text))
            if way.freed and not asked.weight and not words_can_match(text, self.scripts):
                freed = await across.freed(text, asked.vector, model)
                asked = self._asked(freed, asked.words) if freed else asked
            order = way.order(asked)
            times.append((time.perf_counter() - began) * 1000)
            answered[id] = [self.ids[number] for number in order[:10]]
        return answered, statistics.median(times)

    def _asked(self, vector: Sequence[float], words: Sparse) -> Asked:
        found = ranked(self.shard, vector, words)
        weight = (
            weight_of_words(words, self.shard.tokens(best(found.words)).values())
            if found.words
            else 0.0
        )
        return Asked(self.shard, vector, words, found, weight)


async def measured(
    collection: Collection, vectors: Vectors, folder: Path
) -> dict[str, tuple[float, float]]:
    """nDCG@10 and milliseconds of each way; and the share of questions in doubt."""
    found: dict[str, tuple[float, float]] = {}
    bare = Bare(collection, vectors, folder / "bare")
    fusions: dict[str, Any] = {
        "words": "words",
        "RRF, k = 60": engine.Fusion.Rrf(k=60),
        "DBSF": engine.Fusion.Dbsf(),
    }
    for name, fusion in fusions.items():
        answered, ms = bare.ranked(fusion)
        found[f"bare engine: {name}"] = scores(collection, answered)["ndcg10"], ms
    bare.close()
    across, stands = Across(), dict[Weights, Stand]()
    for way in WAYS:
        stored = WEIGHTS._replace(heading=way.weights.heading)  # the rest is a question's
        if stored not in stands:
            stands[stored] = Stand(collection, vectors, stored, folder / str(len(stands)))
        answered, ms = await stands[stored].answers(way, collection.questions, across)
        found[way.name] = scores(collection, answered)["ndcg10"], ms
    for stand in stands.values():
        stand.shard.close()
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
        lines.append(f"| {name} | " + " | ".join([*shown, f"{ms:.2f}" if ms else "–"]) + " |")
    return "\n".join(lines)


async def main(data: Path, only: Sequence[str], cache: Path, as_json: bool) -> None:
    say(versions())
    kept = VectorCache(cache / "vectors.sqlite", most_bytes=4 << 30)
    every: dict[str, dict[str, tuple[float, float]]] = {}
    for collection in collections(data, only):
        vectors = await embedded(collection, kept)
        with tempfile.TemporaryDirectory(
            prefix="groundhook-bench-", ignore_cleanup_errors=True
        ) as scratch:
            every[collection.name] = await measured(collection, vectors, Path(scratch))
        if as_json:
            for way, (ndcg, ms) in every[collection.name].items():
                told = {"ndcg10": ndcg, "ms_query": round(ms, 3)}
                print(json.dumps({"collection": collection.name, "way": way, **told}), flush=True)
    kept.close()
    if not as_json and every:
        print(table(every))


if __name__ == "__main__":
    anyio.run(main, *arguments("bench.ablation"))
