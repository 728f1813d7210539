"""From what a reranker said to scores of 0-1, and from items to the texts that it reads. Pure
functions.

The host multiplies a rerank score with an item's score and the weight of its source. Scores are
compared within one answer only: no answer is put together from several.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from groundhook.host.core.ports import Ranked
from groundhook.host.core.types.search import Item


def text_of(item: Item, longest: int) -> str:
    """Title and content as one text of at most so many characters."""
    content = item.content.strip()
    title = "" if content.startswith(item.title) else item.title.strip()
    return f"{title}\n{content}".strip()[:longest]


def scored(scores: Iterable[tuple[int, float]], count: int) -> list[Ranked]:
    """Scores by position, of `count` items. Positions that do not exist and a second word on the
    same item are left out. Where a score is outside of 0-1 they are a model's raw ones, and all of
    them are put through the logistic function, which keeps their order."""
    first: dict[int, float] = {}
    for index, score in scores:
        if 0 <= index < count:
            first.setdefault(index, score)
    raw = any(not 0 <= score <= 1 for score in first.values())
    return [Ranked(index, _logistic(score) if raw else score) for index, score in first.items()]


def in_order(order: Iterable[int], items: Sequence[Item]) -> list[Ranked]:
    """Scores that put items in this order once they were multiplied with what the items have: the
    first of n ends at the least of their products p (score × weight), the k-th at p × (n - k + 1) /
    n. Items with a score of 0 stay behind the others. As in `scored`, what does not exist and what
    is said twice is left out."""
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
    return 1 / (1 + math.exp(-max(-700.0, min(700.0, score))))
