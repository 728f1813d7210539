"""Joins the results of several queries. Pure.

A section's place follows from its similarity to the intent, or to a translation of it, and by a
third as much from its similarity to the other queries. Whatever a model wrote, the first section
that the intent itself finds stays among the first three if it is similar enough to count.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from groundhook.core.types.collection_queries import CollectionMatch

COUNTS = 0.3  # the similarity from which a query beside the intent counts
OTHERS = 0.3  # weight of the mean similarity to the queries beside the intent
SURE = 3  # places among which the intent's own first section stays

_Key = tuple[str, str]  # collection and id


@dataclass(frozen=True)
class RankedSection:
    """A section with the score that is shown, and the queries that found it, by their number."""

    match: CollectionMatch
    score: float
    queries: tuple[int, ...]


def ranked(found: Sequence[Sequence[CollectionMatch]], alike: int = 0) -> list[RankedSection]:
    """Return the sections that any query found, best first. `found[0]` is what the intent found,
    and the next `alike` ones what the queries found that count as much as the intent, such as its
    translations.

    The order is by `intent + 0.3 × mean(others)`, where the best of the queries alike counts as the
    intent if it is better, and a query that did not find a section, or found it with less than 0.3,
    has the similarity 0; equal ones by id. The score is the best similarity over all queries,
    lowered where it would rise along the list."""
    scores: defaultdict[_Key, dict[int, float]] = defaultdict(dict)
    matches: dict[_Key, CollectionMatch] = {}
    for number, hits in enumerate(found):
        for match in hits:
            key = (match.collection, match.id)
            matches.setdefault(key, match)
            scores[key][number] = max(match.score, scores[key].get(number, 0.0))
    others = max(len(found) - 1 - alike, 1)

    def fused(key: _Key) -> float:
        own = scores[key]
        rest = sum(score for n, score in own.items() if n > alike and score >= COUNTS)
        return max(own.get(n, 0.0) for n in range(alike + 1)) + OTHERS * rest / others

    order = sorted(matches, key=lambda key: (-fused(key), key))
    if found and found[0]:
        first = max(found[0], key=lambda match: match.score)
        own_first = (first.collection, first.id)
        if first.score >= COUNTS and order.index(own_first) >= SURE:
            order.remove(own_first)
            order.insert(SURE - 1, own_first)
    least = 1.0
    answer = []
    for key in order:
        least = min(least, max(scores[key].values()))
        answer.append(RankedSection(matches[key], least, tuple(sorted(scores[key]))))
    return answer


def spread(
    sections: Sequence[RankedSection], books: Mapping[_Key, str], most: int
) -> list[RankedSection]:
    """Return the sections without those beyond the `most` first ones of a book (0: all)."""
    if not most:
        return list(sections)
    taken: Counter[str] = Counter()
    kept = []
    for section in sections:
        book = books[section.match.collection, section.match.id]
        taken[book] += 1
        if not book or taken[book] <= most:
            kept.append(section)
    return kept
