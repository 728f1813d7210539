"""The text of a file that a message brought, searched by words and by meaning as a collection is.

The vectors of its passages are made once, while a turn waits, which it does for a limited time; a
later turn continues where that one stopped. Until all are there, words alone rank the passages,
which the trace says.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import mul

import anyio
import anyio.to_thread

from groundhook.core.errors import HostError
from groundhook.core.ports import Embedder
from groundhook.core.trace import span
from groundhook.core.types.attached import AttachedPassage
from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.handlers.kb.analyse import WEIGHTS, Analyser, SparseVector
from groundhook.handlers.kb.embed import embed_questions, in_context, without_markup
from groundhook.handlers.kb.embedders.cached import CachedEmbedder
from groundhook.handlers.kb.ranking.fusion import (
    LanguageGroup,
    Rarity,
    descending_scores,
    fuse,
    rarity,
    weight_of_words,
)

MOST_EMBEDDED = 2000  # passages of one file: more are searched by words alone
# Of a passage without words of the question. Collections ask for more, since most questions to them
# are about something else; the question of a file is about the file.
LEAST_SIMILARITY = 0.15
_BATCH = 16  # texts: what a turn loses at most when its time is over
_RANKED = 100  # passages of each ranking that are fused


@dataclass
class _Vectors:
    """The vectors of the first passages by one embedding model."""

    spec: EmbeddingSpec
    made: list[array[float]] = field(default_factory=list)
    lock: anyio.Lock = field(default_factory=anyio.Lock)


@dataclass
class ReadText:
    """Implements `core.types.attached.AttachedText`."""

    passages: Sequence[AttachedPassage]
    notes: Sequence[str]
    _language: str
    _embedder: Callable[[EmbeddingSpec], Embedder]
    _words: list[Mapping[int, float]] = field(default_factory=list)
    _vectors: _Vectors | None = None

    async def best(
        self, question: str, most: int, /, *, embedding: EmbeddingSpec, embedding_ms: int
    ) -> list[tuple[int, float]]:
        with span("attached_search", passages=len(self.passages)) as node:
            cosines: Sequence[float] = ()
            similarities: Sequence[float] = ()
            try:
                if embedding_ms > 0 and len(self.passages) <= MOST_EMBEDDED:
                    with anyio.move_on_after(embedding_ms / 1000):
                        embedder = self._embedder(embedding)
                        # The cache is kept on disk, also after the chat is removed.
                        if isinstance(embedder, CachedEmbedder):
                            embedder = embedder.inner
                        cosines = await self._cosines(question, embedding, embedder)
                        similarities = [embedder.similarity(each) for each in cosines]
            except HostError as exc:
                node.fail(str(exc))
            embedded = len(self._vectors.made) if self._vectors else 0
            node.label = "words and meaning" if cosines else "words"
            node.data.update(embedded=embedded)
            return await anyio.to_thread.run_sync(self._best, question, most, cosines, similarities)

    async def _cosines(
        self, question: str, spec: EmbeddingSpec, embedder: Embedder
    ) -> Sequence[float]:
        """Return the cosine of each passage with the question. Raises SourceError, ConfigError."""
        vectors = self._vectors
        if vectors is None or vectors.spec != spec:
            vectors = self._vectors = _Vectors(spec)
        async with vectors.lock:
            texts = [f"{each.heading}\n{each.text}".strip() for each in self.passages]
            size = len(texts) if in_context(embedder) else _BATCH
            while len(vectors.made) < len(texts):
                begin = len(vectors.made)
                batch = [without_markup(text) for text in texts[begin : begin + size]]
                made = await embedder.embed_documents(batch)
                vectors.made += [array("f", each) for each in made]
        (vector,) = await embed_questions(embedder, [question])
        asked = array("f", vector)
        return await anyio.to_thread.run_sync(
            lambda: [math.fsum(map(mul, asked, each)) for each in vectors.made]
        )

    def _best(
        self, question: str, most: int, cosines: Sequence[float], similarities: Sequence[float]
    ) -> list[tuple[int, float]]:
        analyser = Analyser(self._language)
        if not self._words:
            self._words = [
                _weights(analyser.document(f"{each.heading}\n{each.text}"))
                for each in self.passages
            ]
        asked = analyser.question(question)
        by_words = _by_words(asked, self._words)
        if not cosines:
            found = list(by_words)[:most]
            # Halved, so that the last one of the best is not below everything else of the turn.
            return [(at, 0.5 + 0.5 * by_words[at] / by_words[found[0]]) for at in found]
        near = [at for at, each in enumerate(similarities) if each >= LEAST_SIMILARITY]
        near.sort(key=lambda at: (-cosines[at], at))
        words = dict(list(by_words.items())[:_RANKED])
        first = self._words[next(iter(words))] if words else {}
        weight = weight_of_words(asked, _rarities(asked, self._words), first)
        group = LanguageGroup({at: cosines[at] for at in near[:_RANKED]}, words, weight)
        order = fuse([group], dict(enumerate(cosines)), _RANKED)[:most] or list(words)[:most]
        scores = descending_scores(
            [max(similarities[at], 0.5 * weight if at in words else 0.0) for at in order]
        )
        return [(at, 0.5 + 0.5 * score) for at, score in zip(order, scores, strict=True)]


def _by_words(asked: SparseVector, passages: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """Return the scores of the passages that have words of the question, the best first."""
    counts = Counter(index for passage in passages for index in passage)
    worth = {
        index: weight * math.log(1 + (len(passages) - counts[index] + 0.5) / (counts[index] + 0.5))
        for index, weight in _weights(asked).items()
        # Function words are in every passage, and tell none from the others.
        if weight > WEIGHTS.filling
    }
    scores = [
        math.fsum(weight * passage.get(index, 0.0) for index, weight in worth.items())
        for passage in passages
    ]
    ranked = sorted(range(len(scores)), key=lambda at: (-scores[at], at))
    return {at: scores[at] for at in ranked if scores[at] > 0}


def _rarities(asked: SparseVector, passages: Sequence[Mapping[int, float]]) -> dict[int, Rarity]:
    """Return how rare each word of the question is in the file."""
    found: dict[int, Rarity] = {}
    for index in asked.indices:
        having = {at: each[index] for at, each in enumerate(passages) if index in each}
        best = sorted(having, key=lambda at: (-having[at], at))[:2]
        idf = math.log(1 + (len(passages) - len(having) + 0.5) / (len(having) + 0.5))
        frequency = having[best[0]] if best else 1.0
        found[index] = rarity({at: idf * having[at] for at in best}, len(passages), frequency)
    return found


def _weights(vector: SparseVector) -> Mapping[int, float]:
    return dict(zip(vector.indices, vector.values, strict=True))
