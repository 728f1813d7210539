"""The built-in ranker: meaning by an embedding model, and words by their rarity on the page."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from operator import mul

from groundhook.handlers.tools.documents.ranking import Candidate, Ranked
from groundhook.host.core.ports import Embedder

WORDS = 0.3  # how much a document gains that has all words of the question
_WORD = re.compile(r"\w+")


async def rank_by_texts(
    embedder: Embedder, query: str, candidates: Sequence[Candidate]
) -> list[Ranked]:
    """Return all candidates with a relevance of 0-1: the similarity of their title and preview to
    the question, raised by the share of its words that they have. Raises SourceError."""
    if not candidates:
        return []
    texts = [f"{candidate.title or ''}\n{candidate.preview}".strip() for candidate in candidates]
    question = await embedder.embed_query(query)
    vectors = await embedder.embed_documents([text or "-" for text in texts])
    shares = word_shares(query, texts)
    ranked = []
    for candidate, vector, share in zip(candidates, vectors, shares, strict=True):
        cosine = sum(map(mul, question, vector))
        similarity = min(max(embedder.similarity(cosine), 0.0), 1.0)
        ranked.append(Ranked(candidate, similarity + WORDS * share * (1 - similarity)))
    return ranked


def word_shares(query: str, texts: Sequence[str]) -> list[float]:
    """Return for each text the share of the question's words that it has, 0-1; a word counts by its
    rarity in the texts, and one that most of them have for nothing."""
    wanted = set(_words(query))
    have = [wanted & set(_words(text)) for text in texts]
    counts = Counter(word for words in have for word in words)
    worth = {word: math.log((len(texts) + 1) / (count + 0.5)) for word, count in counts.items()}
    whole = sum(max(worth.get(word, 0.0), 0.0) for word in wanted)
    if whole <= 0:
        return [0.0] * len(texts)
    return [sum(max(worth[word], 0.0) for word in words) / whole for words in have]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
