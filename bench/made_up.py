"""Random passages and questions that cost an engine as much as real ones: words by Zipf's law,
vectors of random direction, passages of many tenants."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from groundhook.handlers.kb.store import Incoming, Passage, packed

DIMENSIONS = 384
TENANTS = 50  # a filter lets 2 % pass
TOGETHER = 200  # passages in a document
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprtvz" for vowel in "aeiou"]
VOCABULARY, COMMONEST = 20_000, 30  # words by rank, without the commonest (stop words)


@dataclass(frozen=True)
class Asked:
    vector: list[float]
    words: str
    tenant: str


def vector(chance: random.Random) -> list[float]:
    return [chance.gauss(0, 1) for _ in range(DIMENSIONS)]


def text(chance: random.Random, words: int = 60) -> str:
    """Words by Zipf's law: the most frequent one is in a quarter of all passages, most in hardly
    any."""
    ratio = VOCABULARY / COMMONEST + 1
    return " ".join(
        word(int(COMMONEST * ratio ** chance.random()) - COMMONEST) for _ in range(words)
    )


def word(rank: int) -> str:
    """Syllables, so that it is cut as words are."""
    made = ""
    while rank or not made:
        rank, syllable = divmod(rank, len(SYLLABLES))
        made += SYLLABLES[syllable]
    return made


def documents(passages: int, chance: random.Random) -> list[Incoming]:
    vectors = [packed(vector(chance)) for _ in range(2000)]
    made = []
    for start in range(0, passages, TOGETHER):
        texts = [text(chance) for _ in range(min(TOGETHER, passages - start))]
        parts = [
            Passage(passage=str(n), content=words, text=words, vector=chance.choice(vectors))
            for n, words in enumerate(texts)
        ]
        tenant = f"t{start // TOGETHER % TENANTS}"
        made.append(
            Incoming(
                document=f"{start}.md",
                title="Bench",
                fingerprint="1",
                passages=tuple(parts),
                tenant=tenant,
            )
        )
    return made


def answered(prepared: Sequence[Incoming], chance: random.Random) -> Asked:
    """A question that a passage answers: six of its words, and its vector with as much noise (a
    cosine of .71)."""
    document = chance.choice(prepared)
    passage = chance.choice(document.passages)
    near = memoryview(passage.vector).cast("f")
    words = " ".join(chance.sample(sorted(set(passage.text.split())), 6))
    return Asked(
        [value + noise for value, noise in zip(near, vector(chance), strict=True)],
        words,
        document.tenant,
    )


def stray(prepared: Sequence[Incoming], chance: random.Random) -> Asked:
    """A question that no passage answers."""
    return Asked(vector(chance), text(chance, 6), chance.choice(prepared).tenant)
