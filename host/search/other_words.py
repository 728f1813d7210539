"""Joins the results of a question and of the same question in other words, by rank. Pure.

    value = weight of its search / (10 + rank), summed over both searches

The words of a model weigh by how certain the question's own search is, so that good words help
where it found nothing, and bad ones take little from what it found (`bench/rewriting.py`).
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from groundhook.core.ports import SourceResult
from groundhook.core.types.search import Certainty, Item

# Of the words of a model, by the certainty of the question's own search, which weighs 1.
_WEIGHTS: Mapping[Certainty | None, float] = {"sure": 0.5, "partial": 1.0, None: 1.0, "none": 1.5}
_DAMPING = 10
MOST_KEPT = 500  # texts


@dataclass(frozen=True)
class OtherWords:
    """A question in other words, and who wrote them: `connector:<id>`, an assistant, `mcp:…`."""

    text: str
    by: str


class WrittenWords:
    """The texts that models wrote last, by what they were written for."""

    def __init__(self) -> None:
        self._words: OrderedDict[Hashable, str] = OrderedDict()

    def get(self, key: Hashable) -> str | None:
        if key in self._words:
            self._words.move_to_end(key)
        return self._words.get(key)

    def put(self, key: Hashable, words: str) -> None:
        self._words[key] = words
        if len(self._words) > MOST_KEPT:
            self._words.popitem(last=False)


def fuse(
    plain: SourceResult, other: SourceResult, words: OtherWords, limit: int | None
) -> SourceResult:
    """Return one result of both searches, best first, with the scores of its items in descending
    order. It is as certain as the question's own search, and `partial` where that found nothing and
    the other one is sure: a model may write sure words for any question."""
    values: defaultdict[str, float] = defaultdict(float)
    items: dict[str, Item] = {}
    weight = _WEIGHTS[plain.account.certainty]
    for found, weighs in ((plain, 1.0), (other, weight)):
        for rank, item in enumerate(found.items):
            key = item.key or f"{item.title}\n{item.content}"
            values[key] += weighs / (_DAMPING + rank)
            best = items.get(key)
            items[key] = item if best is None or best.score < item.score else best
    ordered = sorted(items, key=lambda key: -values[key])[:limit]
    scores = sorted((items[key].score for key in ordered), reverse=True)
    account = plain.account.model_copy(
        update={
            "certainty": _certainty(plain.account.certainty, other.account.certainty),
            "read_as": f"{plain.account.read_as}; {words.text}".lstrip("; "),
            "read_by": words.by,
        }
    )
    return replace(
        plain,
        items=tuple(
            items[key].model_copy(update={"score": score})
            for key, score in zip(ordered, scores, strict=True)
        ),
        total=max(plain.total or 0, other.total or 0, len(ordered)),
        total_is="at_least",
        account=account,
    )


def _certainty(plain: Certainty | None, other: Certainty | None) -> Certainty | None:
    return "partial" if (plain, other) == ("none", "sure") else plain
