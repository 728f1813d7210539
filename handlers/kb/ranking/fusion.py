"""Fuses the rankings of a search by vectors and a search by words. Pure, and the same for the same
input.

A passage's cosine and its score by words are added up, each divided by the standard deviation of
its kind among the passages compared: how far a passage stands out is what a question's own evidence
says about each side. To each is added one over the passage's place in that ranking: the best by
meaning and the best by words are worth a standard deviation more. The first part is the order of
distribution-based score fusion; the engine can do that itself, but takes a passage that one ranking
does not list for a 0 there, although its cosine is known and its words may simply not match, and
leaves the order of equal scores open.

How much the words count is chosen for each question by whether they match at all
(`weight_of_words`): a question in another language than the documents, or in other words than
theirs, shares names and commonplaces with passages on anything. `bench/ablation.py` tells what each
is worth.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from groundhook.handlers.kb.analyse import Sparse, is_code

LOOKED_AT = 3  # passages that match best, in which a question's words are looked for
_NAMES, _ENOUGH = (
    0.15,
    0.35,
)  # shares of a question's words: up to the one they count nothing, from the other on in full
_STEP = 1e-6  # least distance between the scores of two neighbours


@dataclass(frozen=True)
class Fused:
    """What passages are worth to a question, from their ranking by vectors and their ranking by
    words; made by `fuse`.

        worth = per_cosine x cosine + per_score x score by words + bonus of the place by vectors +
        bonus of the place by words

    >>> fused = fuse({1: 0.9, 2: 0.8, 4: 0.7}, {2: 6.0, 3: 4.0}, limit=64)
    >>> fused.worths({1: 0.9, 2: 0.8, 3: 0.6})
    {1: 10.0, 2: 11.5, 3: 7.83}  # rounded

    Passage 2 is the second by vectors and the first by words: 10 x 0.8 + 6/3 + 1/2 + 1. Passage 3
    was found by words alone, and its cosine measured since: 10 x 0.6 + 4/3 + 1/2.

    `cosines` and `scores` are the two rankings, best first, by passage: those found by vectors, and
    those whose words tell them apart; the words of every other passage count as `score_of_others`.
    The bonuses are by cosine and by score, so that equal ones share a place.
    """

    cosines: Mapping[int, float]
    scores: Mapping[int, float]
    score_of_others: float
    per_cosine: float
    per_score: float
    bonus_of_cosine: Mapping[float, float]
    bonus_of_score: Mapping[float, float]

    def worths(self, cosines: Mapping[int, float]) -> dict[int, float]:
        """Of the passages with a cosine that stand in a ranking."""
        listed, scores, worth = self.cosines, self.scores, {}
        for id, cosine in cosines.items():  # hundreds in a search: not a call for each
            score, near = scores.get(id), listed.get(id)
            if score is None and near is None:
                continue
            bonus = 0.0 if near is None else self.bonus_of_cosine.get(near, 0.0)
            if score is None:
                score = self.score_of_others
            else:
                bonus += self.bonus_of_score.get(score, 0.0)
            worth[id] = self.per_cosine * cosine + self.per_score * score + bonus
        return worth

    def needed_by_vectors(self, first: int, least_cosine: float) -> dict[int, float]:
        """The cosines of all passages found by vectors that may be among the `first` with at least
        `least_cosine`: every one that words found too; the others stay in the order of their
        cosines, so that of them the `first` will do."""
        needed = {id: self.cosines[id] for id in self.cosines.keys() & self.scores.keys()}
        alone, last = 0, math.inf
        for id, cosine in self.cosines.items():
            if cosine < least_cosine or (alone >= first and cosine < last):
                break
            if id not in self.scores:
                needed[id] = last = cosine
                alone += 1
        return needed

    def needed_by_words(
        self, worths: Mapping[int, float], first: int, least_cosine: float
    ) -> list[int]:
        """The passages found by words alone that may be among the `first` with at least
        `least_cosine`, so that their cosines have to be measured. `worths` are those of
        `needed_by_vectors`. A passage that the search by vectors did not find is no nearer than the
        farthest that it did: with that cosine it would have to be among the first."""
        nearest = min(self.cosines.values(), default=1.0)  # that one of them may be
        if nearest < least_cosine:
            return []
        known = sorted([worth for id, worth in worths.items() if self.cosines[id] >= least_cosine])
        bar = known[-first] if len(known) >= first else -math.inf
        found = []
        for id, score in self.scores.items():
            if id not in self.cosines:
                if (
                    self.per_cosine * nearest
                    + self.per_score * score
                    + self.bonus_of_score.get(score, 0.0)
                    < bar
                ):
                    break
                found.append(id)
        return found


def fuse(
    dense: Mapping[int, float], words: Mapping[int, float], *, limit: int, weight: float = 1.0
) -> Fused:
    """`dense` has cosines and `words` scores by passage, best first, each cut at `limit`; `weight`
    is that of words against vectors. Without words that tell passages apart, what is worth most is
    what `dense` has first."""
    # In a ranking that was cut, those with the least score are there by chance: others as good were
    # left out.
    least = min(words.values()) if len(words) >= limit else 0.0
    scores = {id: score for id, score in words.items() if score > least}
    others = len(dense) - len(dense.keys() & scores.keys())
    per_cosine = standing_out(list(dense.values()))
    per_score = weight * standing_out([*scores.values(), *[least] * others])
    return Fused(
        cosines=dense,
        scores=scores,
        score_of_others=least,
        per_cosine=per_cosine or 1.0,
        per_score=per_score,
        bonus_of_cosine=places(dense.values(), 1.0) if per_cosine else {},
        bonus_of_score=places(scores.values(), weight) if per_score else {},
    )


def ordered(worth: Mapping[int, float]) -> list[int]:
    """The ids of passages, best first; equal ones by id."""
    return sorted(sorted(worth), key=worth.__getitem__, reverse=True)


def standing_out(scores: Sequence[float]) -> float:
    """What a score of a kind is multiplied with: one over their standard deviation. 0 where they
    are all equal, and so tell nothing apart."""
    mean = math.fsum(scores) / max(1, len(scores))
    spread = math.dist(scores, [mean] * len(scores)) / math.sqrt(max(1, len(scores) - 1))
    return 1 / spread if spread > 1e-12 else 0.0


def places(scores: Iterable[float], best: float = 1.0) -> dict[float, float]:
    """Score → `best` divided by its place in a ranking; equal ones share the better place."""
    rising = sorted(scores)
    shares: Sequence[float] = _shares(len(rising))
    if best != 1.0:
        shares = [best * share for share in shares]
    return dict(zip(rising, shares, strict=True))  # of equal ones the last stays: the best placed


@lru_cache(maxsize=256)
def _shares(places: int) -> tuple[float, ...]:
    """One over each place, the last place first."""
    return tuple(1 / place for place in range(places, 0, -1))


def best(words: Mapping[int, float]) -> list[int]:
    """The passages that match best by words, as many as `weight_of_words` looks at."""
    least = min(sorted(words.values())[-LOOKED_AT:], default=0.0)
    return ordered({id: score for id, score in words.items() if score >= least})[:LOOKED_AT]


def weight_of_words(question: Sparse, best: Iterable[Container[int]]) -> float:
    """What a question's words count against its vector, 0-1, by the share of them, weighed, that
    stands together in one passage of those that match `best`, which are given by their tokens: up
    to 15 % nothing, from 35 % on in full. An exact code in common is enough."""
    weights = dict(zip(*question, strict=True))
    shared = [[index for index in weights if index in tokens] for tokens in best]
    codes = {index for index in weights if is_code(index)}
    if codes and not codes.isdisjoint(chain.from_iterable(shared)):
        return 1.0
    whole = math.fsum(question.values) or 1.0
    share = (
        max([math.fsum(map(weights.__getitem__, tokens)) for tokens in shared], default=0.0) / whole
    )
    return min(1.0, max(0.0, share - _NAMES) / (_ENOUGH - _NAMES))


def descending(similarities: Sequence[float]) -> list[float]:
    """Scores of 0-1 for passages in fused order: their similarities, raised where a passage stands
    above a more similar one, so that sorting by score keeps the fused order."""
    scores: list[float] = []
    floor = -_STEP
    for similarity in reversed(similarities):
        floor = max(similarity, floor + _STEP)
        scores.append(round(min(1.0, max(0.0, floor)), 6))
    return scores[::-1]
