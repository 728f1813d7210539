"""Conversion of items to the texts that a reranker reads, and of its answers to rank scores of 0-1.
Pure functions.

The host multiplies a rank score with the item's score and the weight of its source. Scores are
comparable within one answer only, so answers of several calls are never combined.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from groundhook.core.ports import Ranked
from groundhook.core.types.search import Item


def text_of(item: Item, max_chars: int) -> str:
    """Return title and content as one text of at most `max_chars` characters. The title is omitted
    when the content starts with it."""
    content = item.content.strip()
    title = "" if content.startswith(item.title) else item.title.strip()
    return f"{title}\n{content}".strip()[:max_chars]


def rank_by_scores(scores: Iterable[tuple[int, float]], count: int) -> list[Ranked]:
    """Return rank scores of 0-1 for (position, score) pairs of `count` items. Unknown positions and
    repeated positions after the first are dropped. If any score is outside 0-1, all scores are raw
    model scores; the logistic function maps them to 0-1 and keeps their order."""
    first: dict[int, float] = {}
    for index, score in scores:
        if 0 <= index < count:
            first.setdefault(index, score)
    raw = any(not 0 <= score <= 1 for score in first.values())
    return [Ranked(index, _logistic(score) if raw else score) for index, score in first.items()]


def rank_by_order(order: Iterable[int], items: Sequence[Item]) -> list[Ranked]:
    """Return rank scores that put items in the given order of positions after the host has
    multiplied them with score × weight. With p the least product score × weight of the n named
    items, the k-th of them ends at p × (n - k + 1) / n. Items with a product of 0 stay behind the
    others. Unknown and repeated positions are dropped."""
    known = [index for index in dict.fromkeys(order) if 0 <= index < len(items)]
    products = {index: items[index].score * items[index].weight for index in known}
    ranked = [index for index in known if products[index] > 0]
    least = min((products[index] for index in ranked), default=0.0)
    placed = [
        Ranked(index, min(1.0, least * (len(ranked) - place) / len(ranked) / products[index]))
        for place, index in enumerate(ranked)
    ]
    return placed + [Ranked(index, 0.0) for index in known if products[index] <= 0]


def _logistic(score: float) -> float:
    # clamped: math.exp overflows beyond about 709
    return 1 / (1 + math.exp(-max(-700.0, min(700.0, score))))
