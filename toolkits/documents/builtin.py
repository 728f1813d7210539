"""The built-in ranker: meaning by an embedding model, and words by their rarity on the page."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from groundhook.core.ports import Embedder
from groundhook.toolkits.documents.ranking import JudgedSummary, RankCandidate

# A similarity as relevance. Below a similarity of 0.1 no right document is found for the questions
# of bench/toolkits that are not kept aside; models call that 0.3.
_SIMILARITIES, _RELEVANCES = (0.0, 0.1, 1.0), (0.0, 0.3, 1.0)
WORDS = 0.3  # how much a document gains that has all words of the question
_WORD = re.compile(r"\w+")
_FILE_ENDING = re.compile(r"\.\w{1,5}$")


async def rank_by_texts(
    embedder: Embedder, query: str, candidates: Sequence[RankCandidate]
) -> list[JudgedSummary]:
    """Return all candidates with a relevance of 0-1 that means what a model's does: the similarity
    of their titles and previews to the question, raised by the share of its words that they have,
    on a model's scale. Raises SourceError."""
    if not candidates:
        return []
    titles = [readable(candidate.title or "") for candidate in candidates]
    texts = [
        f"{title}\n{candidate.preview}".strip() or "-"
        for title, candidate in zip(titles, candidates, strict=True)
    ]
    question = await embedder.embed_query(query)
    vectors = await embedder.embed_documents(
        [*texts, *(title or text for title, text in zip(titles, texts, strict=True))]
    )
    cosines = joint_cosines(question, vectors[: len(texts)], vectors[len(texts) :])
    ranked = []
    for candidate, cosine, share in zip(
        candidates, cosines, word_shares(query, texts), strict=True
    ):
        similarity = min(max(embedder.similarity(cosine), 0.0), 1.0)
        ranked.append(
            JudgedSummary(candidate, relevance(similarity + WORDS * share * (1 - similarity)))
        )
    return ranked


def relevance(similarity: float) -> float:
    """Return the relevance of 0-1 that a model would give for a similarity of 0-1."""
    return float(np.interp(similarity, _SIMILARITIES, _RELEVANCES))


def readable(title: str) -> str:
    """Return a title as text; a file's name without its ending, and with blanks between words."""
    if len(title.split()) > 1:
        return title
    return " ".join(re.split(r"[-_.]+", _FILE_ENDING.sub("", title))).strip() or title


def joint_cosines(question: ArrayLike, texts: ArrayLike, titles: ArrayLike) -> list[float]:
    """Return the cosine of the question with the mean of each text's and its title's vector. All
    are scaled alike, by the mean length of these means, so that they stay comparable with the
    cosines of single vectors."""
    means = (np.asarray(texts) + np.asarray(titles)) / 2
    lengths = np.maximum(np.linalg.norm(means, axis=1), 1e-9)
    cosines: list[float] = (means @ np.asarray(question) / lengths * lengths.mean()).tolist()
    return cosines


def word_shares(query: str, texts: Sequence[str]) -> list[float]:
    """Return for each text the share of the question's words that it has, 0-1. A word counts by its
    rarity in the texts: one that most of them have for nothing, one that none has the most."""
    wanted = set(_words(query))
    have = [wanted & set(_words(text)) for text in texts]
    counts = Counter(word for words in have for word in words)
    worth = {word: max(math.log((len(texts) + 1) / (counts[word] + 0.5)), 0.0) for word in wanted}
    whole = sum(worth.values())
    if whole <= 0:
        return [0.0] * len(texts)
    return [sum(worth[word] for word in words) / whole for words in have]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
