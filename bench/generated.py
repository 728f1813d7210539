"""Passages and questions in any number that cost an engine as much as real ones: real sentences in
any order, vectors of random direction, passages of many tenants."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from groundhook.core.language.sentences import spans
from groundhook.handlers.kb.store.messages import pack_vector
from groundhook.handlers.kb.store.port import FullDocument, Passage

DIMENSIONS = 384
TENANTS = 50  # a filter lets 2 % pass
TOGETHER = 200  # passages in a document
WORDS = 160  # of a passage
DOCUMENTS = Path(__file__).parents[1] / "docs"


@dataclass(frozen=True)
class MadeQuestion:
    vector: list[float]
    words: str
    tenant: str


def vector(chance: random.Random) -> list[float]:
    return [chance.gauss(0, 1) for _ in range(DIMENSIONS)]


def text(chance: random.Random, words: int = WORDS) -> str:
    """Sentences of this repository's documents, in any order, cut at that number of words."""
    taken: list[str] = []
    while len(taken) < words:
        taken += chance.choice(sentences()).split()
    return " ".join(taken[:words])


@cache
def sentences() -> Sequence[str]:
    texts = [path.read_text(encoding="utf-8") for path in sorted(DOCUMENTS.glob("*.md"))]
    found = [text[start:end] for text in texts for start, end in spans(text)]
    return [sentence for sentence in found if 20 < len(sentence) < 400 and "|" not in sentence]


def documents(passages: int, chance: random.Random) -> list[FullDocument]:
    vectors = [pack_vector(vector(chance)) for _ in range(2000)]
    made = []
    for start in range(0, passages, TOGETHER):
        texts = [text(chance) for _ in range(min(TOGETHER, passages - start))]
        parts = [
            Passage(passage=str(n), content=words, text=words, vector=chance.choice(vectors))
            for n, words in enumerate(texts)
        ]
        tenant = f"t{start // TOGETHER % TENANTS}"
        made.append(
            FullDocument(
                document=f"{start}.md",
                title="Bench",
                fingerprint="1",
                passages=tuple(parts),
                tenant=tenant,
            )
        )
    return made


def answered(prepared: Sequence[FullDocument], chance: random.Random) -> MadeQuestion:
    """A question that a passage answers: six of its words, and its vector with as much noise (a
    cosine of .71)."""
    document = chance.choice(prepared)
    passage = chance.choice(document.passages)
    near = memoryview(passage.vector).cast("f")
    words = " ".join(chance.sample(sorted(set(passage.text.split())), 6))
    return MadeQuestion(
        [value + noise for value, noise in zip(near, vector(chance), strict=True)],
        words,
        document.tenant,
    )


def stray(prepared: Sequence[FullDocument], chance: random.Random) -> MadeQuestion:
    """A question that no passage answers."""
    return MadeQuestion(vector(chance), text(chance, 6), chance.choice(prepared).tenant)
