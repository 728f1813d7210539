"""Fuses the rankings of a search by vectors and a search by words. Pure, and the same for the same
input.

A passage is worth how far its cosine stands out among the passages compared, and how far its score
by words does, each in standard deviations of its kind: what a question's own evidence says about
each side. A passage that one of the rankings does not list is not taken for a 0 there: its cosine
is measured, and its words count as those of all others.

How much words count is chosen for each question, and for each language of the collection, by
whether they match at all (`weight_of_words`): a question in another language than the passages, or
in other words than theirs, shares names and commonplaces with passages on anything. Where words
count less than in another language of the collection, meaning counts more instead: a passage is not
worth less because its language cannot have the question's words. `bench/ablation.py` shows what
each is worth.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from groundhook.handlers.kb.analyse import Sparse, is_code

LOOKED_AT = 3  # passages that match best, in which a question's words are looked for
# Shares of a question's words: up to the one they count nothing, from the other on in full.
_NAMES, ENOUGH = 0.15, 0.35
_STEP = 1e-6  # least distance between the scores of two neighbours
_DIGITS = 9  # of a passage's worth: beyond them, equal ones differ


@dataclass(frozen=True)
class Group:
    """What a search found among passages of one language: cosines of the nearest and scores of
    those that match best, best first, by passage; and what words count there, 0-1."""

    dense: Mapping[int, float]
    words: Mapping[int, float]
    weight: float = 0.0


def first(scores: Iterable[Mapping[int, float]], limit: int) -> dict[int, float]:
    """The best `limit` of several rankings, best first; equal ones by id."""
    together = dict(chain.from_iterable(ranking.items() for ranking in scores))
    order = sorted(sorted(together), key=together.__getitem__, reverse=True)
    return {id: together[id] for id in order[:limit]}


def fused(groups: Sequence[Group], cosines: Mapping[int, float], limit: int) -> list[int]:
    """Passages, best first; equal ones by id. `cosines` has those of all that a ranking lists, and
    of each ranking the first `limit` count. Where words count nothing, what is nearest comes
    first."""
    dense = first([group.dense for group in groups], limit)
    most = max((group.weight for group in groups), default=0.0)
    if not most:
        return [*dense]
    words = first([group.words for group in groups if group.weight], limit)
    # In a ranking that was cut, those with the least score are there by chance: others as good were
    # left out.
    least = min(words.values()) if len(words) >= limit else 0.0
    scores = {id: score for id, score in words.items() if score > least}
    others = len(dense) - len(dense.keys() & scores.keys())
    near, per_cosine = _spread([*dense.values()])
    usual, per_score = _spread([*scores.values(), *[least] * others])
    weights = {id: group.weight for group in groups for id in chain(group.dense, group.words)}
    worth = {}
    for id in sorted(dense.keys() | scores.keys()):
        weight = weights[id]
        out = (cosines[id] - near) * (per_cosine or 1.0) * (1 + most - weight)
        worth[id] = round(out + weight * (scores.get(id, least) - usual) * per_score, _DIGITS)
    return sorted(worth, key=worth.__getitem__, reverse=True)


def _spread(scores: Sequence[float]) -> tuple[float, float]:
    """The mean of scores, and one over their standard deviation: 0 where they are all equal, and so
    tell nothing apart."""
    mean = math.fsum(scores) / max(1, len(scores))
    deviation = math.dist(scores, [mean] * len(scores)) / math.sqrt(max(1, len(scores) - 1))
    return mean, 1 / deviation if deviation > 1e-12 else 0.0


def best(words: Mapping[int, float]) -> list[int]:
    """The passages that match best by words, as many as `weight_of_words` looks at."""
    return [*first([words], LOOKED_AT)]


@dataclass(frozen=True)
class Rarity:
    """How much a word tells passages apart: the greatest score that it gives one, and that passage
    where no other has the word."""

    score: float
    only: int | None = None


def rarity(scores: Mapping[int, float], passages: int) -> Rarity:
    """`scores` are those of the two passages that a word alone finds best, of about so many. A word
    that none has is as rare as can be: it counts what a word of one passage would."""
    if not scores:
        return Rarity(math.log(1 + (passages + 0.5) / 0.5))
    return Rarity(max(scores.values()), next(iter(scores)) if len(scores) == 1 else None)


def weight_of_words(
    question: Sparse, rarity: Mapping[int, Rarity], passages: Iterable[Collection[int]]
) -> float:
    """What a question's words count against its vector, 0-1, by the share of them that stands
    together in one of the `passages`, which are those that match best, given by their tokens: up to
    15 % nothing, from 35 % on in full. A word weighs what the question gives it times its `rarity`.
    An exact code in common is enough."""
    weights = {index: weight * rarity[index].score for index, weight in zip(*question, strict=True)}
    shared = [weights.keys() & tokens for tokens in passages]
    if any(is_code(index) for tokens in shared for index in tokens):
        return 1.0
    whole = math.fsum(weights.values()) or 1.0
    together = max((math.fsum(map(weights.__getitem__, tokens)) for tokens in shared), default=0.0)
    return min(1.0, max(0.0, together / whole - _NAMES) / (ENOUGH - _NAMES))


def found_alone(
    question: Sparse, rarity: Mapping[int, Rarity], groups: Iterable[Group]
) -> frozenset[int]:
    """Passages that a word of the question finds and no other: they answer however near they are.
    Only where words count in full, since a question on anything else has rare words too."""
    sure = frozenset(chain.from_iterable(group.words for group in groups if group.weight == 1.0))
    words = [index for index, weight in zip(*question, strict=True) if weight >= 1.0]
    return sure & {rarity[index].only for index in words if index in rarity}


def descending(similarities: Sequence[float]) -> list[float]:
    """Scores of 0-1 for passages in fused order: their similarities, raised where a passage stands
    above a more similar one, so that sorting by score keeps the fused order."""
    scores: list[float] = []
    floor = -_STEP
    for similarity in reversed(similarities):
        floor = max(similarity, floor + _STEP)
        scores.append(round(min(1.0, max(0.0, floor)), 6))
    return scores[::-1]
