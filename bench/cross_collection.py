"""Compare ways to merge the results of two embedding models, on one set of questions.

    python -m bench.cross_collection [SET [questions]]

SET is a folder in BEIR's layout (by default ../shared/data/xquad-en). Every other document goes
into a collection of the bundled embedding, the rest into one of words alone (`hash`); every
question is searched in both, and the results are merged in several ways. Prints JSON lines: nDCG@10
for questions whose document is in the first and in the second collection, and how often it is among
the first three. The knowledge base merges `by rank`.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio

from bench.graph import HERE, ask_items, questions, write
from bench.local_embedders import local_embedders
from groundhook.core.app_settings import KBStorageSettings
from groundhook.core.types.collection_spec import (
    CollectionSpec,
    EmbeddingSpec,
)
from groundhook.core.types.search import Item
from groundhook.handlers.kb.opening import open_kb
from groundhook.handlers.kb.search.results import merge

SPECS = {
    "meaning": CollectionSpec(id="meaning"),
    "words": CollectionSpec(id="words", embedding=EmbeddingSpec(provider="hash")),
}
Found = dict[str, Sequence[Item]]


def by_similarity(found: Found) -> list[Item]:
    return sorted(
        (item for items in found.values() for item in items), key=lambda item: -item.score
    )


def by_rank(found: Found) -> list[Item]:
    return list(merge(found.items()))


def by_weighted_rank(found: Found) -> list[Item]:
    scored = [
        (items[0].score / (3 + rank), item)
        for items in found.values()
        for rank, item in enumerate(items, 1)
    ]
    return [item for _, item in sorted(scored, key=lambda pair: -pair[0])]


def by_standing_out(found: Found) -> list[Item]:
    scored = []
    for items in found.values():
        others = [item.score for item in items[1:]] or [0.0]
        mean, spread = statistics.fmean(others), statistics.pstdev(others) or 1e-9
        scored += [((item.score - mean) / spread, item) for item in items]
    return [item for _, item in sorted(scored, key=lambda pair: -pair[0])]


WAYS: tuple[Callable[[Found], list[Item]], ...] = (
    by_similarity,
    by_rank,
    by_weighted_rank,
    by_standing_out,
)


def gain(order: Sequence[Item], wanted: Sequence[str]) -> float:
    return sum(
        1 / math.log2(rank + 2)
        for rank, item in enumerate(order[:10])
        if item.document_id in wanted
    )


async def main(folder: Path, most: int, state: Path) -> None:
    embedders = local_embedders()
    write(folder, state / "all")
    home: dict[str, str] = {}
    for number, path in enumerate(sorted((state / "all").rglob("*.md"))):
        where = "meaning" if number % 2 else "words"
        target = state / where / path.relative_to(state / "all")
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
        home[path.relative_to(state / "all").as_posix()] = where
    async with open_kb(state / "kb", SPECS, embedders, KBStorageSettings(idle_s=20)) as kb:
        for id in SPECS:
            await kb.add(id, [state / id])
        answered = [
            (one, {id: await ask_items(kb, one.text, id) for id in SPECS})
            for one in questions(folder, most)
        ]
    for way in WAYS:
        gains: dict[str, list[float]] = {id: [] for id in SPECS}
        among = []
        for one, found in answered:
            wanted = list(one.wanted)
            order = way({id: items for id, items in found.items() if items})
            gains[home[wanted[0]]].append(gain(order, wanted))
            among.append(any(item.document_id in wanted for item in order[:3]))
        line = {f"ndcg@10 {id}": round(statistics.fmean(values), 3) for id, values in gains.items()}
        every = [value for values in gains.values() for value in values]
        line |= {
            "ndcg@10": round(statistics.fmean(every), 3),
            "among the first three": round(statistics.fmean(among), 3),
        }
        print(
            json.dumps({"way": way.__name__.replace("_", " "), "questions": len(answered), **line}),
            flush=True,
        )


if __name__ == "__main__":
    given = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parents[1] / "shared/data/xquad-en"
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(main, given, int(sys.argv[2]) if len(sys.argv) > 2 else 200, Path(folder))
