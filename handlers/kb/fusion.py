"""Fuses the rankings of a search by vectors and a search by words. Pure, and the same for the same input.

A passage's cosine and its score by words are added up, each divided by the standard deviation of its kind among the passages
compared: how far a passage stands out is what a question's own evidence says about each side. To each is added one over the
passage's place in that ranking: the best by meaning and the best by words are worth a standard deviation more. The first part is
the order of distribution-based score fusion; the engine can do that itself, but takes a passage that one ranking does not list
for a 0 there, although its cosine is known and its words may simply not match, and leaves the order of equal scores open.

How much the words count is chosen for each question by whether they match at all (`weight_of_words`): a question in another
language than the documents, or in other words than theirs, shares names and commonplaces with passages on anything.
`bench/ablation.py` tells what each is worth.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from handlers.kb.analyse import Sparse, is_code

LOOKED_AT = 3  # passages that match best, in which a question's words are looked for
_NAMES, _ENOUGH = 0.15, 0.35  # shares of a question's words: up to the one they count nothing, from the other on in full
_STEP = 1e-6  # least distance between the scores of two neighbours


@dataclass(frozen=True)
class Fused:
    """Two rankings of passages, and what counts: a cosine is multiplied with `near`, a score by words with `same`, and who stands
    in a ranking is worth the place's share of `by_vector` or `by_words` more. `matches` are the passages whose words tell,
    `least` is the score of the others."""

    dense: Mapping[int, float]
    matches: Mapping[int, float]
    least: float
    near: float
    same: float
    by_vector: Mapping[float, float]
    by_words: Mapping[float, float]

    def worth(self, id: int, cosine: float) -> float:
        match, listed = self.matches.get(id), self.dense.get(id)
        told = self.least if match is None else match
        places = self.by_vector.get(listed, 0.0) + self.by_words.get(match, 0.0)  # type: ignore[arg-type]  # None is in neither
        return self.near * cosine + self.same * told + places

    def listed(self, first: int, least_cosine: float) -> dict[int, float]:
        """The cosines of those in `dense`, which is given best first, that may be among the `first` with at least
        `least_cosine`: all that match words; the others keep their order, so that no more than that are needed of them."""
        found = {id: self.dense[id] for id in self.dense.keys() & self.matches.keys()}
        alone, last = 0, math.inf
        for id, cosine in self.dense.items():
            if cosine < least_cosine or (alone >= first and cosine < last):
                break
            if id not in self.matches:
                found[id] = last = cosine
                alone += 1
        return found

    def contenders(self, worth: Mapping[int, float], first: int, least_cosine: float) -> list[int]:
        """Those that only words found and whose cosine matters to who the `first` are with at least `least_cosine`: even with the
        least cosine of `dense`, which was cut and did not find them nearer, they are among them. `matches` are best first;
        `worth` is that of the listed."""
        known = [each for id, each in worth.items() if self.dense[id] >= least_cosine]
        bar = min(heapq.nlargest(first, known)) if len(known) >= first else -math.inf
        farthest = min(self.dense.values(), default=0.0)
        alone = (id for id in self.matches if id not in self.dense)
        return list(takewhile(lambda id: self.worth(id, farthest) >= bar, alone))

    def added_up(self, cosines: Mapping[int, float]) -> dict[int, float]:
        """What the passages with a cosine are worth."""
        return {id: self.worth(id, cosine) for id, cosine in cosines.items() if id in self.dense or id in self.matches}


def fuse(dense: Mapping[int, float], words: Mapping[int, float], *, limit: int, weight: float = 1.0) -> Fused:
    """Each ranking was cut at `limit`; `weight` is that of words against vectors. Without words that tell passages apart, what is
    worth most is what `dense` has first."""
    # In a ranking that was cut, those with the least score are there by chance: others as good were left out.
    least = min(words.values()) if len(words) >= limit else 0.0
    matches = {id: score for id, score in words.items() if score > least}
    others = len(dense.keys() - matches.keys())
    near, same = standing_out(list(dense.values())), weight * standing_out([*matches.values(), *[least] * others])
    by_vector = places(dense.values(), 1.0) if near else {}
    return Fused(dense, matches, least, near or 1.0, same, by_vector, places(matches.values(), weight) if same else {})


def ordered(worth: Mapping[int, float]) -> list[int]:
    """The ids of passages, best first; equal ones by id."""
    return sorted(sorted(worth), key=worth.__getitem__, reverse=True)


def standing_out(scores: Sequence[float]) -> float:
    """What a score of a kind is multiplied with: one over their standard deviation. 0 where they are all equal, and so tell
    nothing apart."""
    mean = math.fsum(scores) / max(1, len(scores))
    spread = math.dist(scores, [mean] * len(scores)) / math.sqrt(max(1, len(scores) - 1))
    return 1 / spread if spread > 1e-12 else 0.0


def places(scores: Iterable[float], best: float = 1.0) -> dict[float, float]:
    """Score → `best` divided by its place in a ranking; equal ones share the better place."""
    falling = sorted(scores, reverse=True)
    return dict(zip(reversed(falling), map(best.__truediv__, range(len(falling), 0, -1)), strict=True))


def best(words: Mapping[int, float]) -> list[int]:
    """The passages that match best by words, as many as `weight_of_words` looks at."""
    least = min(heapq.nlargest(LOOKED_AT, words.values()), default=0.0)
    return ordered({id: score for id, score in words.items() if score >= least})[:LOOKED_AT]


def weight_of_words(question: Sparse, best: Iterable[Iterable[int]]) -> float:
    """What a question's words count against its vector, 0-1, by the share of them, weighed, that stands together in one passage
    of those that match `best`, which are given by their tokens: up to 15 % nothing, from 35 % on in full. An exact code in
    common is enough."""
    weights = dict(zip(*question, strict=True))
    shared = [weights.keys() & tokens for tokens in best]
    if any(is_code(index) for tokens in shared for index in tokens):
        return 1.0
    whole = math.fsum(question.values)
    share = max((math.fsum(weights[index] for index in tokens) / whole for tokens in shared if whole), default=0.0)
    return min(1.0, max(0.0, share - _NAMES) / (_ENOUGH - _NAMES))


def descending(similarities: Sequence[float]) -> list[float]:
    """Scores of 0-1 for passages in fused order: their similarities, raised where a passage stands above a more
    similar one, so that sorting by score keeps the fused order."""
    scores: list[float] = []
    floor = -_STEP
    for similarity in reversed(similarities):
        floor = max(similarity, floor + _STEP)
        scores.append(round(min(1.0, max(0.0, floor)), 6))
    return scores[::-1]
