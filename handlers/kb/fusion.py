"""Fuses the rankings of a search by vectors and a search by words. Pure, and the same for the same input.

Distribution-based score fusion: each ranking's scores are put on one scale by their own mean and standard deviation
(mean - 3σ → 0, mean + 3σ → 1), and a passage's places are added up. The engine can do this itself, but leaves the order of
equal scores open and gives the fused score only; here equal ones keep the order of their ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev

_STEP = 1e-6  # least distance between the scores of two neighbours


def scaled(scores: Mapping[int, float]) -> dict[int, float]:
    """One ranking's scores on the common scale. A ranking whose scores are all equal says nothing: 0.5 for each."""
    values = list(scores.values())
    spread = stdev(values) if len(values) > 1 else 0.0
    if spread <= 1e-12:
        return dict.fromkeys(scores, 0.5)
    low = fmean(values) - 3 * spread
    return {id: (score - low) / (6 * spread) for id, score in scores.items()}


def settled(ranking: Mapping[int, float], limit: int) -> dict[int, float]:
    """A ranking cut at `limit` without those whose place at the cut is chance: others as good may have been left out."""
    if len(ranking) < limit:
        return dict(ranking)
    least = min(ranking.values())
    return {id: score for id, score in ranking.items() if score > least}


def fuse(rankings: Iterable[Mapping[int, float]]) -> list[int]:
    """The ids of all rankings, best first; equal ones by id. One ranking alone keeps its order."""
    total: dict[int, float] = {}
    for ranking in rankings:
        for id, score in scaled(ranking).items():
            total[id] = total.get(id, 0.0) + score
    return sorted(total, key=lambda id: (-total[id], id))


def descending(similarities: Sequence[float]) -> list[float]:
    """Scores of 0-1 for passages in fused order: their similarities, raised where a passage stands above a more
    similar one, so that sorting by score keeps the fused order."""
    scores: list[float] = []
    floor = -_STEP
    for similarity in reversed(similarities):
        floor = max(similarity, floor + _STEP)
        scores.append(round(min(1.0, max(0.0, floor)), 6))
    return scores[::-1]
