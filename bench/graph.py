"""Measure what the graph of a collection finds, and its cost.

    python -m bench.graph [--multi FOLDER] [--single FOLDER] [--questions N] [--state FOLDER]
    [--extractor NAME]

Two sets in BEIR's layout (corpus.jsonl, queries.jsonl, qrels/test.tsv) are in one collection, so
that each has distractors. MULTI's questions need several documents: those of grade 1 are named in
the question, those of grade 2 are reached through them (by default bench/graph_questions). SINGLE's
need one (by default ../shared/data/xquad-en), and questions about this repository's pages need one
section. The bench adds them through the public interface, searches every question without and with
the graph, and prints JSON lines: recall of the first and of the second documents among the best 2,
5 and 10, and of the single ones, with nDCG@10; the change by the graph, with its 95 % interval
(paired bootstrap over questions); how many questions gained and lost; and the milliseconds that the
graph adds to a search. EXTRACTOR is `entities.extractor` (`builtin`, `spacy:<pipeline>`). Last, the
walk alone on a synthetic graph of 10,000 nodes and 50,000 edges, and on one ten times larger. With
the bundled embedding it takes some minutes on two cores, unless STATE has the collection of an
earlier run.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import anyio

from bench.answers import DOCUMENTS, SETS
from bench.local_embedders import local_embedders
from groundhook.core.app_settings import KBStorageSettings
from groundhook.core.ports import Scope
from groundhook.core.settings import (
    SearchSettings,
    UsesSettings,
)
from groundhook.core.types.collection_spec import (
    CollectionSpec,
    EntitySpec,
)
from groundhook.core.types.search import Item, SearchRequest
from groundhook.core.types.turn import Identity
from groundhook.handlers.kb.graph.file import Rows
from groundhook.handlers.kb.graph.walk import Graph
from groundhook.handlers.kb.knowledge_base import KnowledgeBase
from groundhook.handlers.kb.opening import open_kb
from groundhook.handlers.kb.store.points import HEADINGS

HERE = Path(__file__).parent
CUTS = (2, 5, 10)
DRAWS = 10_000


@dataclass(frozen=True)
class Question:
    text: str
    wanted: Mapping[str, int]  # document → grade


def questions(folder: Path, most: int) -> list[Question]:
    """The first questions of a set that have an answer in it."""
    texts = {row["_id"]: row["text"] for row in _rows(folder / "queries.jsonl")}
    wanted: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels/test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        question, document, grade = line.split("\t")
        if int(grade) > 0:
            wanted.setdefault(question, {})[_file(folder, document)] = int(grade)
    return [Question(texts[id], answers) for id, answers in wanted.items()][:most]


def write(folder: Path, into: Path) -> None:
    """The documents of a set as files."""
    for row in _rows(folder / "corpus.jsonl"):
        heading = f"# {row['title']}\n\n" if row.get("title") else ""
        path = into / _file(folder, row["_id"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(heading + row["text"], encoding="utf-8")


def _rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _file(folder: Path, document: str) -> str:
    return f"{folder.name}/{re.sub(r'[^A-Za-z0-9_-]', '_', document)}.md"


async def ask_items(
    kb: KnowledgeBase,
    text: str,
    collection: str,
    *,
    graph: bool = False,
    threshold: float | None = 0.0,
) -> tuple[Item, ...]:
    """What is found; `threshold`: None is the default of every app."""

    async def ignore_warning(code: str, message: str) -> None:
        raise AssertionError(message)

    scope = Scope(
        identity=Identity(),
        assistant_id="",
        settings=SearchSettings(),
        uses=UsesSettings(),
        now=lambda: datetime.now(UTC),
        warn=ignore_warning,
    )
    request = SearchRequest(
        type="kb",
        query=text,
        collections=(collection,),
        threshold=threshold,
        limit=max(CUTS),
        graph=graph,
    )
    return (await kb.search(request, scope)).items


def recall(found: Sequence[str], wanted: Sequence[str], cut: int) -> float:
    return sum(document in found[:cut] for document in wanted) / len(wanted)


def ndcg(found: Sequence[str], wanted: Sequence[str]) -> float:
    gains = sum(
        1 / math.log2(rank + 2) for rank, document in enumerate(found[:10]) if document in wanted
    )
    return gains / sum(1 / math.log2(rank + 2) for rank in range(min(10, len(wanted))))


def _scores(found: Sequence[str], wanted: Sequence[str]) -> dict[str, float]:
    return {
        **{f"recall@{cut}": recall(found, wanted, cut) for cut in CUTS},
        "ndcg@10": ndcg(found, wanted),
    }


def interval(differences: Sequence[float]) -> list[float]:
    """The mean of paired differences, and where it lies in 95 of 100 draws of as many of them
    (Efron 1979)."""
    chance = random.Random(1)
    means = sorted(
        statistics.fmean(chance.choices(differences, k=len(differences))) for _ in range(DRAWS)
    )
    return [
        round(value, 3)
        for value in (statistics.fmean(differences), means[DRAWS // 40], means[-DRAWS // 40 - 1])
    ]


async def compare(
    kb: KnowledgeBase,
    name: str,
    given: Sequence[Question],
    grade: int,
    threshold: float | None = 0.0,
) -> None:
    """One line for the documents of a grade: what is found of them without and with the graph."""
    rows = []
    for question in given:
        wanted = [document for document, value in question.wanted.items() if value == grade]
        if wanted:
            rows.append(
                (
                    wanted,
                    *await both(
                        kb, question.text, "bench", lambda item: item.document_id, threshold
                    ),
                )
            )
    tell(name, rows)


async def compare_sections(kb: KnowledgeBase) -> None:
    """The same for questions that one section of a page answers, and whose words name what other
    pages are about."""
    rows = []
    for file in SETS.values():
        for line in (HERE / file).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            found = await both(
                kb,
                row["question"],
                "pages",
                lambda item: f"{item.document_id} {item.title.split(HEADINGS)[-1]}",
            )
            rows.append(([f"{row['document']} {row['section']}"], *found))
    tell("these pages: one section", rows)


Found = tuple[list[str], float]  # best first, and the milliseconds that it took


async def both(
    kb: KnowledgeBase,
    text: str,
    collection: str,
    name: Callable[[Item], str],
    threshold: float | None = 0.0,
) -> tuple[Found, Found]:
    """What is found without and with the graph."""
    # The vector of the question is in the cache from here on.
    await ask_items(kb, text, collection, graph=True)
    answers = []
    for graph in (False, True):
        began = time.perf_counter()
        items = await ask_items(kb, text, collection, graph=graph, threshold=threshold)
        took = (time.perf_counter() - began) * 1000
        answers.append((list(dict.fromkeys(map(name, items))), took))
    return answers[0], answers[1]


def tell(name: str, rows: Sequence[tuple[Sequence[str], Found, Found]]) -> None:
    line: dict[str, object] = {"set": name, "questions": len(rows)}
    scores = [
        (_scores(plain[0], wanted), _scores(graph[0], wanted)) for wanted, plain, graph in rows
    ]
    for label, at in (("without", 0), ("with", 1)):
        line[label] = {
            key: round(statistics.fmean(both[at][key] for both in scores), 3)
            for key in scores[0][0]
        }
    line["change"] = {
        key: interval([graph[key] - plain[key] for plain, graph in scores]) for key in scores[0][0]
    }
    change = [graph["recall@5"] - plain["recall@5"] for plain, graph in scores]
    line["gained@5"], line["lost@5"] = (
        sum(value > 0 for value in change),
        sum(value < 0 for value in change),
    )
    line["ms"] = {
        "without p50": round(statistics.median(plain[1] for _, plain, _ in rows), 2),
        "added p50": round(statistics.median(graph[1] - plain[1] for _, plain, graph in rows), 2),
    }
    print(json.dumps(line), flush=True)


def walk(entities: int, passages: int, edges: int) -> None:
    chance = random.Random(1)
    rows = Rows(
        entities=[(n, f"e{n}", f"e{n}", "term", "") for n in range(entities)],
        passages=[(n, f"d{n}", 0, "p") for n in range(passages)],
        mentions=[
            (chance.randrange(passages), chance.randrange(entities), 1, 0)
            for _ in range(edges * 4 // 5)
        ],
        relations=[
            (chance.randrange(entities), chance.randrange(entities), "", 1)
            for _ in range(edges // 5)
        ],
    )
    began = time.perf_counter()
    graph = Graph(rows)
    read = (time.perf_counter() - began) * 1000
    took = []
    for _ in range(100):
        start = {chance.randrange(entities): 1.0, entities + chance.randrange(passages): 1.0}
        began = time.perf_counter()
        graph.rank(start)
        took.append((time.perf_counter() - began) * 1000)
    took.sort()
    line = {
        "walk": f"{entities + passages} nodes, {edges} edges",
        "p50_ms": round(took[50], 2),
        "p95_ms": round(took[94], 2),
    }
    print(json.dumps({**line, "made_of_rows_ms": round(read, 1)}), flush=True)


async def main(multi: Path, single: Path, most: int, state: Path, extractor: str) -> None:
    embedders = local_embedders()
    documents = state / "documents"
    for folder in (multi, single):
        write(folder, documents)
    specs = {
        id: CollectionSpec(id=id, graph=True, entities=EntitySpec(extractor=extractor))
        for id in ("bench", "pages")
    }
    async with open_kb(state / "kb", specs, embedders, KBStorageSettings(idle_s=20)) as kb:
        began = time.perf_counter()
        report = await kb.add("bench", [documents])
        added = {
            "documents": len(report.files),
            "failed": report.failed,
            "seconds": round(time.perf_counter() - began, 1),
        }
        print(json.dumps({"added": added}), flush=True)
        several = questions(multi, most)
        await compare(kb, f"{multi.name}: named in the question", several, 1)
        for label, part in (
            ("", several),
            (", the first 20", several[:20]),
            (", the others", several[20:]),
        ):
            if part:
                await compare(kb, f"{multi.name}: reached through another{label}", part, 2)
        await compare(
            kb, f"{multi.name}: reached through another, default threshold", several, 2, None
        )
        await compare(kb, f"{single.name}: one document", questions(single, most), 1)
        pages = [HERE.parent / name for name in DOCUMENTS]
        await kb.add(
            "pages",
            [
                file
                for page in pages
                for file in (sorted(page.glob("*.md")) if page.is_dir() else [page])
            ],
        )
        await compare_sections(kb)
    walk(6_000, 4_000, 50_000)
    walk(60_000, 40_000, 500_000)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--multi", type=Path, default=HERE / "graph_questions")
    parser.add_argument("--single", type=Path, default=HERE.parents[1] / "shared/data/xquad-en")
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--state", type=Path)
    parser.add_argument("--extractor", default="builtin")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(
            main,
            options.multi,
            options.single,
            options.questions,
            options.state or Path(folder),
            options.extractor,
        )
