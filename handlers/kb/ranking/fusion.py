"""Fuses the rankings of a search by vectors and a search by words. Pure, and the same for the same
input.

A passage's score is the sum of its cosine and its BM25 score, each as a number of standard
deviations above the mean of the passages compared. A passage that is missing from one ranking does
not lose by that alone: its cosine is computed, and its BM25 score is 0, or the lowest one listed
where that ranking was cut.

The weight of words is chosen for each question and each language of the collection by whether they
match at all (`weight_of_words`): a question in another language than the passages, or in other
words, shares names and common words with passages on any subject. In a language where words weigh
less than in another, meaning weighs more instead, so that a passage does not lose because its
language cannot have the question's words. `bench/ablation.py` measures each part.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from groundhook.handlers.kb.analyse import SparseVector, is_code

# Shares of a question's words in the best passage by words: they weigh 0 up to the first, 1 from
# the second.
_NAMES, _ENOUGH = 0.15, 0.35
_STEP = 1e-6  # least difference between the scores of two consecutive passages
_EXACT = 1e9  # steps of a passage's score: rounding errors would tell equal ones apart


@dataclass(frozen=True)
class LanguageGroup:
    """The two rankings of a search among passages of one language, passage → score, best first:
    cosines and BM25 scores; and the `weight` of words there, 0-1."""

    dense: Mapping[int, float]
    words: Mapping[int, float]
    weight: float = 0.0


def best_of(rankings: Sequence[Mapping[int, float]], limit: int) -> dict[int, float]:
    """Return the best `limit` of several rankings, best first; equal ones by id."""
    together = (
        rankings[0]  # a collection of one language
        if len(rankings) == 1
        else dict(chain.from_iterable(ranking.items() for ranking in rankings))
    )
    return {id: together[id] for id in _best_first(together)[:limit]}


def scores_of_words(groups: Iterable[LanguageGroup]) -> dict[int, float]:
    """Return the BM25 scores of all passages that are among the best by words."""
    return dict(chain.from_iterable(group.words.items() for group in groups))


def _best_first(scores: Mapping[int, float]) -> list[int]:
    """Return the passages with the best score first; equal ones by id."""
    order = sorted(scores, key=scores.__getitem__, reverse=True)
    if len(set(scores.values())) == len(order):  # as a rule; a second sort takes five times as long
        return order
    return sorted(sorted(scores), key=scores.__getitem__, reverse=True)


def fuse(groups: Sequence[LanguageGroup], cosines: Mapping[int, float], limit: int) -> list[int]:
    """Return passages, best first; equal ones by id. `cosines` has those of all passages in any
    ranking, and the first `limit` of each ranking are fused. Where words weigh nothing, the order
    is that of the cosines."""
    dense = best_of([group.dense for group in groups], limit)
    most = max((group.weight for group in groups), default=0.0)
    if not most:
        return [*dense]
    words = best_of([group.words for group in groups if group.weight], limit)
    # A ranking that was cut may have omitted passages with the same score as its last ones, so
    # these are treated as missing.
    least = min(words.values()) if len(words) >= limit else 0.0
    scores = {id: score for id, score in words.items() if score > least}
    others = len(dense) - len(dense.keys() & scores.keys())
    near, per_cosine = _spread([*dense.values()])
    usual, per_score = _spread([*scores.values(), *[least] * others])
    compared = dense.keys() | scores.keys()
    worth: dict[int, int] = {}
    for group in groups:
        far = _EXACT * (per_cosine or 1.0) * (1 + most - group.weight)
        high = _EXACT * per_score * group.weight
        average = near * far + usual * high
        own = compared & (group.dense.keys() | group.words.keys()) if groups[1:] else compared
        worth |= {
            id: round(cosines[id] * far + scores.get(id, least) * high - average) for id in own
        }
    return _best_first(worth)


def _spread(scores: Sequence[float]) -> tuple[float, float]:
    """The mean of scores, and one over their standard deviation; 0 where all are equal."""
    mean = math.fsum(scores) / max(1, len(scores))
    deviation = math.dist(scores, [mean] * len(scores)) / math.sqrt(max(1, len(scores) - 1))
    return mean, 1 / deviation if deviation > 1e-12 else 0.0


@dataclass(frozen=True)
class Rarity:
    """How rare a word is: the greatest score that it gives a passage, that passage if `only` it
    has the word, and its inverse document frequency `idf`; `missing`: no passage has it."""

    score: float
    only: int | None = None
    idf: float = 0.0
    missing: bool = False


def rarity(scores: Mapping[int, float], passages: int, frequency: float = 1.0) -> Rarity:
    """The rarity of a word from the `scores` of the two best passages for it alone, in a collection
    of about `passages`, and its weighted `frequency` in the first of them. A word that no passage
    has weighs as much as a word of a single passage."""
    if not scores:
        idf = inverse_frequency(0, passages)
        return Rarity(idf, idf=idf, missing=True)
    best = max(scores.values())
    only = next(iter(scores)) if len(scores) == 1 else None
    return Rarity(best, only, best / (frequency or 1.0))


def inverse_frequency(having: float, passages: int) -> float:
    """The weight that BM25 gives a word which so many of the passages have."""
    return math.log(1 + (max(passages, having) - having + 0.5) / (having + 0.5))


def weight_of_words(
    question: SparseVector, rarity: Mapping[int, Rarity], tokens: Collection[int]
) -> float:
    """The weight of a question's words beside its vector, 0-1: 0 where the best passage by words,
    with these `tokens`, has at most 15 % of them, 1 where it has at least 35 %. A word counts with
    its weight in the question times its `rarity`. One exact code in common gives 1."""
    weights = {index: weight * rarity[index].score for index, weight in zip(*question, strict=True)}
    shared = weights.keys() & tokens
    if any(map(is_code, shared)):
        return 1.0
    whole = math.fsum(weights.values()) or 1.0
    share = math.fsum(map(weights.__getitem__, shared)) / whole
    return min(1.0, max(0.0, share - _NAMES) / (_ENOUGH - _NAMES))


def found_by_one_word(
    question: SparseVector, rarity: Mapping[int, Rarity], groups: Iterable[LanguageGroup]
) -> frozenset[int]:
    """Return the passages that are the only ones with one of the question's words. They match
    whatever their cosine, but only if words weigh 1, since off-topic questions have rare words
    too."""
    sure = frozenset(chain.from_iterable(group.words for group in groups if group.weight == 1.0))
    words = [index for index, weight in zip(*question, strict=True) if weight >= 1.0]
    return sure & {rarity[index].only for index in words if index in rarity}


def descending_scores(similarities: Sequence[float]) -> list[float]:
    """Return scores of 0-1 for passages in fused order: their similarities, raised if a passage
    comes before a more similar one, so that sorting by score keeps the fused order."""
    scores: list[float] = []
    floor = -_STEP
    for similarity in reversed(similarities):
        floor = max(similarity, floor + _STEP)
        scores.append(round(min(1.0, max(0.0, floor)), 6))
    return scores[::-1]
