"""Pages of a search: selects the matches of a page, and counts all matches. Pure.

The order of matches is the same for every page of one question: first the passages whose rankings
were fused, then all others that reach the threshold, by similarity and id. What is fused depends on
the size of a page and never on its offset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from groundhook.core.types.search import TotalIs
from groundhook.handlers.kb.store.port import VectorQuestion

POOL = 40  # passages of each ranking that are fused, at least
COUNTED = 1_000  # matches that are counted exactly
_GROUPED = 2_000  # passages that are read for a search with few passages of each document
_DIGITS = 9  # of a similarity: further digits are rounding errors

P = TypeVar("P", bound=Hashable)
DocumentOf = Callable[[P], Hashable]


@dataclass(frozen=True)
class PassagePage(Generic[P]):
    """Passages of one page, best first, with their similarities. `total` counts all matches; with
    `VectorQuestion.groups`, only those that a page can return."""

    found: Mapping[P, float]
    total: int
    total_is: TotalIs


def pool_size(question: VectorQuestion) -> int:
    """Return how many passages of each ranking are fused."""
    least = 2 * POOL if question.groups else POOL
    return max(least, 4 * (question.page or question.limit))


def search_depth(question: VectorQuestion) -> int:
    """Return how many of the nearest passages must be read to count the matches and to fill the
    page."""
    needed = question.offset + question.limit
    return max(COUNTED + 1, _GROUPED if question.groups or needed > COUNTED else 0)


def may_lack_matches(dense: Mapping[P, float], pool: int, least: float) -> bool:
    """Return whether a list of the nearest `pool` passages may lack matches: it is full, and every
    passage in it reaches the threshold."""
    return len(dense) >= pool and min(dense.values()) >= least


def fills_page(
    fused: Mapping[P, float], question: VectorQuestion, document_of: DocumentOf[P]
) -> bool:
    """Return whether the fused passages alone fill the page."""
    order = _limit_groups(fused, question.groups, document_of)
    return question.offset + question.limit <= len(order)


def count_matches(
    question: VectorQuestion,
    fused: Mapping[P, float],
    uncut: Iterable[Mapping[P, float]],
    counted: int,
) -> int:
    """Return how many passages match without groups: `counted` of languages whose lists were cut
    off, those in the `uncut` lists, and passages that are returned for their words alone."""
    least = question.least_cosine
    return (
        counted
        + sum(similarity >= least for dense in uncut for similarity in dense.values())
        + sum(similarity < least for similarity in fused.values())
    )


def make_page(
    fused: Mapping[P, float],
    nearest: Mapping[P, float],
    question: VectorQuestion,
    document_of: DocumentOf[P],
    *,
    whole: bool = True,
    matching: int | None = None,
) -> PassagePage[P]:
    """Return the page of a question. First come the `fused` matches in their order, then those of
    the `nearest` passages that reach the threshold. `whole`: these are all matches. `matching`: the
    number of all matches, if it is known."""
    least = question.least_cosine
    rest = {
        place: similarity
        for place, similarity in nearest.items()
        if similarity >= least and place not in fused
    }
    fused_order = _limit_groups(fused, question.groups, document_of)
    if question.offset + question.limit <= len(fused_order):
        order = fused_order
        count = _count_returnable([*fused, *rest], question.groups, document_of)
    else:
        by_similarity = sorted(rest, key=lambda place: _order_key(place, rest[place]))
        order = _limit_groups([*fused, *by_similarity], question.groups, document_of)
        count = len(order)
    if matching is not None:
        count = max(matching, len(order))
    on_page = order[question.offset : question.offset + question.limit]
    return PassagePage(
        found={place: fused[place] if place in fused else rest[place] for place in on_page},
        total=min(count, COUNTED),
        total_is="exact" if whole and count <= COUNTED else "at_least",
    )


def _order_key(place: P, similarity: float) -> tuple[float, P]:
    return -round(similarity, _DIGITS), place


def _limit_groups(order: Iterable[P], per_document: int, document_of: DocumentOf[P]) -> list[P]:
    """Return the passages in their order, at most `per_document` of each document (0: all)."""
    if not per_document:
        return list(order)
    seen = Counter[Hashable]()
    selected = []
    for place in order:
        document = document_of(place)
        seen[document] += 1
        if seen[document] <= per_document:
            selected.append(place)
    return selected


def _count_returnable(found: Collection[P], per_document: int, document_of: DocumentOf[P]) -> int:
    """Return how many of the passages `_limit_groups` keeps."""
    if not per_document:
        return len(found)
    return sum(min(per_document, count) for count in Counter(map(document_of, found)).values())
