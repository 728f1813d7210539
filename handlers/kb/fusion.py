"""Fuses the rankings of a search by vectors and a search by words. Pure, and the same for the same input.

Distribution-based score fusion: scores of each kind are put on one scale by mean and standard deviation (mean - 3σ → 0,
mean + 3σ → 1), and a passage's two are added up. How far a score stands out among its kind is what a question's own evidence says
about each side. The engine can do this itself, but takes a passage that one ranking does not list for a 0 there, although its
cosine is known and its words may simply not match; it also leaves the order of equal scores open. `bench/retrieval.py` measures
both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

_STEP = 1e-6  # least distance between the scores of two neighbours


def fuse(dense: Mapping[int, float], words: Mapping[int, float], cosines: Mapping[int, float], *, limit: int) -> list[int]:
    """The ids of both rankings, best first; equal ones by id. Each ranking was cut at `limit`; `cosines` has every id. Without
    words that tell passages apart, the order of `dense`."""
    # In a ranking that was cut, those with the least score are there by chance: others as good were left out.
    least = min(words.values()) if len(words) >= limit else 0.0
    matches = {id: score for id, score in words.items() if score > least}
    if not matches:
        return sorted(dense, key=lambda id: (-dense[id], id))
    candidates = sorted(dense.keys() | matches.keys())
    near = scaled([cosines[id] for id in candidates], among=list(dense.values()))
    matching = [matches.get(id, least) for id in candidates]
    said = scaled(matching, among=matching)
    worth = {id: one + other for id, one, other in zip(candidates, near, said, strict=True)}
    return sorted(candidates, key=worth.__getitem__, reverse=True)


def scaled(scores: Sequence[float], *, among: Sequence[float]) -> list[float]:
    """Scores on the scale that `among` spans. Where those are all equal nothing is told apart: 0.5 for each."""
    mean = math.fsum(among) / max(1, len(among))
    spread = math.dist(among, [mean] * len(among)) / math.sqrt(max(1, len(among) - 1))
    if spread <= 1e-12:
        return [0.5] * len(scores)
    lowest, width = mean - 3 * spread, 6 * spread
    return [(score - lowest) / width for score in scores]


def descending(similarities: Sequence[float]) -> list[float]:
    """Scores of 0-1 for passages in fused order: their similarities, raised where a passage stands above a more
    similar one, so that sorting by score keeps the fused order."""
    scores: list[float] = []
    floor = -_STEP
    for similarity in reversed(similarities):
        floor = max(similarity, floor + _STEP)
        scores.append(round(min(1.0, max(0.0, floor)), 6))
    return scores[::-1]
