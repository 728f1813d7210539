"""Calibrates the builtin embedding: which cosines related and unrelated texts have, and what `similarity` makes of them.

    python -m bench.calibrate DATA [questions]

DATA holds collections in BEIR's layout (corpus.jsonl, queries.jsonl, qrels/test.tsv). For each of the sets below: a question and
its own passage; a question and the passages of others; and questions of another set, which nothing in this one answers,
with the passage nearest to them. Prints JSON lines, and last the threshold that keeps as many related questions as it refuses
off-topic ones. A few minutes on two cores for 100 questions a set.
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path

import anyio
import numpy as np
import numpy.typing as npt

from handlers.kb.embed import BuiltinEmbedder

Matrix = npt.NDArray[np.float32]
SETS = ("xquad-en", "scifact", "xquad-ar", "xquad-zh", "govil-title")
OFF_TOPIC = {
    "xquad-en": "govil-title",
    "scifact": "xquad-en",
    "xquad-ar": "scifact",
    "xquad-zh": "scifact",
    "govil-title": "xquad-en",
}
PERCENTILES = (1, 5, 50, 95, 99)


@dataclass(frozen=True)
class Sample:
    questions: Matrix
    passages: Matrix
    answers: list[set[int]]  # per question: rows of its passages


async def sample(folder: Path, most: int) -> Sample:
    """Some questions of a set, their passages, and as many others."""
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    texts = {row["_id"]: f"{row.get('title', '')}\n{row['text']}".strip() for row in rows}
    asked = [json.loads(line) for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    related: dict[str, set[str]] = {}
    for line in (folder / "qrels/test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        question, document, grade = line.split("\t")
        if int(grade) > 0:
            related.setdefault(question, set()).add(document)
    chance = random.Random(1)
    questions = chance.sample([row for row in asked if row["_id"] in related], min(most, len(related)))
    wanted = sorted({document for row in questions for document in related[row["_id"]] if document in texts})
    others = chance.sample([document for document in texts if document not in wanted], min(most, len(texts) - len(wanted)))
    documents = wanted + others
    model = BuiltinEmbedder()
    return Sample(
        questions=np.array([await model.embed_query(row["text"]) for row in questions], dtype=np.float32),
        passages=np.array(await model.embed_documents([texts[document] for document in documents]), dtype=np.float32),
        answers=[{documents.index(document) for document in related[row["_id"]] if document in texts} for row in questions],
    )


def show(name: str, cosines: Matrix) -> None:
    similarity = BuiltinEmbedder().similarity
    found = {f"{percent} %": float(np.percentile(cosines, percent)) for percent in PERCENTILES}
    rounded = {percent: [round(cosine, 3), round(similarity(cosine), 2)] for percent, cosine in found.items()}
    print(json.dumps({"pairs": name, "count": len(cosines), "cosine, similarity": rounded}, ensure_ascii=False), flush=True)


async def main(data: Path, most: int) -> None:
    samples = {name: await sample(data / name, most) for name in SETS}
    kept: list[Matrix] = []
    refused: list[Matrix] = []
    for name, one in samples.items():
        cosines = one.questions @ one.passages.T
        own = np.zeros(cosines.shape, dtype=bool)
        for row, answers in enumerate(one.answers):
            own[row, list(answers)] = True
        off_topic = (samples[OFF_TOPIC[name]].questions @ one.passages.T).max(axis=1)
        show(f"{name}: a question and its passage", cosines[own])
        show(f"{name}: a question and another's passage", cosines[~own])
        show(f"{name}: an off-topic question and the nearest passage", off_topic)
        kept.append(cosines[own])
        refused.append(off_topic)
    related, unrelated = np.concatenate(kept), np.concatenate(refused)
    steps = np.arange(0.70, 0.90, 0.001)
    balance = min(steps, key=lambda step: abs(float((related < step).mean() - (unrelated >= step).mean())))
    figures = {
        "cosine": round(float(balance), 3),
        "similarity": round(BuiltinEmbedder().similarity(float(balance)), 2),
        "related below": round(float((related < balance).mean()), 3),
        "off-topic above": round(float((unrelated >= balance).mean()), 3),
    }
    print(json.dumps({"balanced threshold": figures}))


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100)
