"""The order of the memories of an answer. Pure.

Several searches, and the turns beside those that were found, are joined by rank:

    value = 1 / (10 + its best rank in any search) + the greatest part of such a value beside it

The part is AFTER for a turn after the one found, since a turn is answered and explained by those
after it, and BEFORE for one before it. The best rank counts, and not the sum over the searches:
each is for another fact, and a memory that is a little similar to all of them answers none. Scores
are similarities, lowered where they would rise along the list.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from groundhook.core.types.collection_queries import CollectionMatch
from groundhook.toolkits.memory import documents

_DAMPING = 10
# Chosen by the first conversation of `bench.toolkits conversations` and by the tuning half of the
# questions of `bench.locomo`.
AFTER, BEFORE = 0.8, 0.4


def joined(found: Sequence[Sequence[CollectionMatch]]) -> list[CollectionMatch]:
    """Return the memories of several searches, best first, each with its best score. The first
    one of each search is among as many first ones as there are searches."""
    ranks: dict[str, int] = {}
    best: dict[str, CollectionMatch] = {}
    for matches in found:
        for rank, match in enumerate(matches):
            ranks[match.id] = min(rank, ranks.get(match.id, rank))
            if match.id not in best or best[match.id].score < match.score:
                best[match.id] = match
    return _falling([best[id] for id in sorted(best, key=lambda id: ranks[id])])


def with_turns_beside(
    found: Sequence[CollectionMatch], beside: Sequence[CollectionMatch], width: int
) -> list[CollectionMatch]:
    """Return the memories that were found with those of `beside` that are at most `width` turns
    from one of them; a turn that no search found has the score of the best one that it is beside.
    """
    values = {match.id: _value(rank) for rank, match in enumerate(found)}
    own = dict(values)
    best = {match.id: match for match in found}
    near: defaultdict[str, list[tuple[float, CollectionMatch]]] = defaultdict(list)
    for match in found:
        before, after = documents.turns_beside(match.fields, width)
        for turn in before:
            near[turn].append((BEFORE * own[match.id], match))
        for turn in after:
            near[turn].append((AFTER * own[match.id], match))
    for match in (*found, *(each for each in beside if each.id not in best)):
        turns = documents.values_in(match.fields, "turn")
        sources = [source for turn in turns for source in near.get(turn, ())]
        if not sources:
            continue
        added, first = max(sources, key=lambda source: source[0])
        values[match.id] = own.get(match.id, 0.0) + added
        best.setdefault(match.id, replace(match, score=first.score))
    return _falling([best[id] for id in sorted(values, key=lambda id: -values[id])])


def newest_first(
    matches: Sequence[CollectionMatch], newer: Mapping[str, Sequence[str]]
) -> list[CollectionMatch]:
    """Return the matches with each one that supersedes another directly before it, if both were
    found, and with its score: scores never rise along the list."""
    by_id = {match.id: match for match in matches}
    placed: dict[str, CollectionMatch] = {}

    def place(match: CollectionMatch, score: float, above: tuple[str, ...]) -> None:
        for id in newer.get(match.id, ()):
            if id in by_id and id not in placed and id not in above:
                place(by_id[id], max(score, by_id[id].score), (*above, match.id))
        if match.id not in placed:
            placed[match.id] = replace(match, score=score)

    for match in matches:
        place(match, match.score, ())
    return [*placed.values()]


def _value(rank: int) -> float:
    return 1 / (_DAMPING + rank)


def _falling(matches: Sequence[CollectionMatch]) -> list[CollectionMatch]:
    least, ordered = 1.0, []
    for match in matches:
        least = min(least, match.score)
        ordered.append(replace(match, score=least))
    return ordered
