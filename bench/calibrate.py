"""Calibrate an embedding: measure the cosines of related and unrelated texts, and fit the curve to
similarities.

    python -m bench.calibrate DATA [questions] [--provider P] [--model M] [--dimensions N] [--app
    DIR] [--sets a,b]

DATA has collections in BEIR's layout (corpus.jsonl, queries.jsonl, qrels/test.tsv), by default
those of the sets below; the provider is one of the app in DIR (`docs/embedding-models.md`), by
default the bundled model. For each set it compares a question with its own passage, with the
passages of other questions, and questions of another set, which nothing in this one answers, with
their nearest passages. Prints JSON lines, then the cosine that keeps as many related questions as
it refuses off-topic ones, and last the curve through it: similarity 0.27 there, 0.87 at the median
of the related pairs, as for the bundled model. It takes a few minutes on two cores for 100
questions per set.
"""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import anyio
import numpy as np
import numpy.typing as npt

from bench.local_embedders import local_embedders
from groundhook.core.ports import Embedder
from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.handlers.kb.admin.calibrate import PERCENTILES, balance, curve_through
from groundhook.handlers.kb.embedders import providers as services
from groundhook.host.config.environment import process_environment
from groundhook.host.config.packages import load_app

Matrix = npt.NDArray[np.float32]
SETS = ("xquad-en", "scifact", "xquad-ar", "xquad-zh", "govil-title")
OFF_TOPIC = {
    "xquad-en": "govil-title",
    "scifact": "xquad-en",
    "xquad-ar": "scifact",
    "xquad-zh": "scifact",
    "govil-title": "xquad-en",
}


@dataclass(frozen=True)
class Sample:
    questions: Matrix
    passages: Matrix
    answers: list[set[int]]  # per question: rows of its passages


async def sample(model: Embedder, folder: Path, most: int) -> Sample:
    """Some questions of a set, their passages, and as many others."""
    rows = [
        json.loads(line)
        for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    texts = {row["_id"]: f"{row.get('title', '')}\n{row['text']}".strip() for row in rows}
    questions = [
        json.loads(line)
        for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    related: dict[str, set[str]] = {}
    for line in (folder / "qrels/test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        question, document, grade = line.split("\t")
        if int(grade) > 0:
            related.setdefault(question, set()).add(document)
    chance = random.Random(1)
    questions = chance.sample(
        [row for row in questions if row["_id"] in related], min(most, len(related))
    )
    wanted = sorted(
        {document for row in questions for document in related[row["_id"]] if document in texts}
    )
    others = chance.sample(
        [document for document in texts if document not in wanted],
        min(most, len(texts) - len(wanted)),
    )
    documents = wanted + others
    return Sample(
        questions=np.array(
            [await model.embed_query(row["text"]) for row in questions], dtype=np.float32
        ),
        passages=np.array(
            await model.embed_documents([texts[document] for document in documents]),
            dtype=np.float32,
        ),
        answers=[
            {documents.index(document) for document in related[row["_id"]] if document in texts}
            for row in questions
        ],
    )


def show(model: Embedder, name: str, cosines: Matrix) -> None:
    similarity = model.similarity
    found = {f"{percent} %": float(np.percentile(cosines, percent)) for percent in PERCENTILES}
    rounded = {
        percent: [round(cosine, 3), round(similarity(cosine), 2)]
        for percent, cosine in found.items()
    }
    print(
        json.dumps(
            {"pairs": name, "count": len(cosines), "cosine, similarity": rounded},
            ensure_ascii=False,
        ),
        flush=True,
    )


def off_topic_of(sets: list[str]) -> dict[str, str]:
    """For each set, the set whose questions nothing in it answers."""
    return {name: OFF_TOPIC.get(name, sets[(at + 1) % len(sets)]) for at, name in enumerate(sets)}


async def main(model: Embedder, data: Path, most: int, sets: list[str]) -> None:
    samples = {name: await sample(model, data / name, most) for name in sets}
    kept: list[Matrix] = []
    refused: list[Matrix] = []
    for name, one in samples.items():
        cosines = one.questions @ one.passages.T
        own = np.zeros(cosines.shape, dtype=bool)
        for row, answers in enumerate(one.answers):
            own[row, list(answers)] = True
        show(model, f"{name}: a question and its passage", cosines[own])
        show(model, f"{name}: a question and another's passage", cosines[~own])
        kept.append(cosines[own])
        other = off_topic_of(sets)[name]
        if other != name and other in samples:
            refused.append((samples[other].questions @ one.passages.T).max(axis=1))
            show(model, f"{name}: an off-topic question and the nearest passage", refused[-1])
        else:  # with one set alone: the best of the passages that do not answer
            refused.append(np.where(own, -1, cosines).max(axis=1))
    related, unrelated = np.concatenate(kept), np.concatenate(refused)
    balanced = balance(related, unrelated)
    figures = {
        "cosine": round(balanced, 3),
        "similarity": round(model.similarity(balanced), 2),
        "related below": round(float((related < balanced).mean()), 3),
        "off-topic above": round(float((unrelated >= balanced).mean()), 3),
    }
    print(json.dumps({"balanced threshold": figures}))
    curve = curve_through(balanced, float(np.median(related)))
    print(
        json.dumps(
            {
                "embedding": f"{model.provider}:{model.model}",
                "curve": asdict(curve) if curve else None,
            }
        )
    )


def embedder(provider: str, model: str, dimensions: int, app: Path) -> Embedder:
    """As a collection of the app would have it. Raises ConfigError, UnknownName."""
    registry = local_embedders()
    environment = process_environment()
    for name, settings in load_app(app, environment).settings.embedders.items():
        registry.add(name, partial(services.service, name, settings, environment))
    return registry.get(provider)(
        EmbeddingSpec(provider=provider, model=model, dimensions=dimensions)
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("questions", type=int, nargs="?", default=100)
    parser.add_argument("--provider", default="builtin")
    parser.add_argument("--model", default="")
    parser.add_argument("--dimensions", type=int, default=0)
    parser.add_argument("--app", type=Path, default=Path())
    parser.add_argument("--sets", default=",".join(SETS))
    options = parser.parse_args()
    made = embedder(options.provider, options.model, options.dimensions, options.app)
    anyio.run(main, made, options.data, options.questions, options.sets.split(","))
