"""One pool from user data, hook and automatic results: weigh, deduplicate, order, and say why. Pure
functions.

`final = base score × source weight × rerank score`, as in the reference; the rerank score is 1
where no reranker judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from groundhook.host.core.ports import Ranked
from groundhook.host.core.settings import WeightSettings
from groundhook.host.core.types.search import Item, SearchResult, Source
from groundhook.host.search.parts import together

PRIORITY: dict[Source, int] = {"user": 0, "hook": 1, "auto": 2}


class Entry(NamedTuple):
    """An item in the pool, with the numbers that place it, and the reason if it was dropped."""

    item: Item
    source: Source
    weight: float
    rerank: float = 1.0
    judged: bool = True
    dropped: str = ""
    search: tuple[str, str] = ("", "")  # type and query of the result that it stood in
    position: int = 0  # in that result

    @property
    def weighed(self) -> Item:
        """The item with the weight of its source."""
        if self.item.weight == self.weight:
            return self.item
        return self.item.model_copy(update={"weight": self.weight})

    @property
    def final(self) -> float:
        return self.item.score * self.weight * self.rerank

    def judged_as(self, rerank: float | None) -> Entry:
        """The entry with a reranker's word on it; None: it had none."""
        if rerank == self.rerank and self.judged:
            return self
        return self._replace(rerank=1.0 if rerank is None else rerank, judged=rerank is not None)

    def why(self) -> dict[str, object]:
        """The entry as the trace shows it."""
        shown: dict[str, object] = {
            "citation_id": self.item.citation_id,
            "title": self.item.title,
            "source": self.source,
            "score": round(self.item.score, 4),
            "weight": self.weight,
            "rerank": round(self.rerank, 4),
            "final": round(self.final, 4),
        }
        return {**shown, "dropped": self.dropped} if self.dropped else shown


@dataclass(frozen=True)
class Pool:
    """Entries that stay, best first, and those that were dropped."""

    entries: tuple[Entry, ...] = ()
    dropped: tuple[Entry, ...] = ()

    @property
    def items(self) -> list[Item]:
        """The items that stay, each with the weight of its source."""
        return [entry.weighed for entry in self.entries]


def pool(results: Iterable[SearchResult], weights: WeightSettings) -> Pool:
    """Merge results. Of duplicates the version of the highest-priority source stays, among equals
    the better score; where they tell different parts of a long chunk, with what the others tell.
    The order depends on the results alone, never on which search answered first; what is worth the
    same stays in the order of its result."""
    weight_of: dict[Source, float] = {
        "user": weights.user,
        "hook": weights.hook,
        "auto": weights.auto,
    }
    entries = [
        Entry(
            item,
            result.source,
            weight_of[result.source],
            search=(result.type, result.query),
            position=position,
        )
        for result in results
        for position, item in enumerate(result.items)
    ]
    kept: dict[str, Entry] = {}
    dropped: list[Entry] = []
    for entry in sorted(entries, key=_claim):
        first = kept.get(entry.item.key)
        if first is None:
            kept[entry.item.key] = entry
        else:
            if (item := together(first.item, entry.item)) is not first.item:
                kept[entry.item.key] = first._replace(item=item)
            dropped.append(
                entry._replace(
                    dropped=f"duplicate of the {first.source} result {first.item.citation_id}"
                )
            )
    return Pool(tuple(sorted(kept.values(), key=_place)), tuple(dropped))


def apply_ranking(pooled: Pool, ranking: Sequence[Ranked]) -> Pool:
    """Multiply a reranker's scores in and order anew. Items it did not judge keep their order
    behind those that it did; positions that do not exist, and a second word on the same item, are
    ignored."""
    scores: dict[int, float] = {}
    for ranked in ranking:
        if 0 <= ranked.index < len(pooled.entries):
            scores.setdefault(ranked.index, min(1.0, max(0.0, ranked.score)))
    entries = [entry.judged_as(scores.get(index)) for index, entry in enumerate(pooled.entries)]
    # `sorted` is stable: what ties, or was not judged, stays in the merged order.
    ordered = sorted(
        entries, key=lambda entry: (not entry.judged, -entry.final if entry.judged else 0.0)
    )
    return replace(pooled, entries=tuple(ordered))


def cut(pooled: Pool, top_k: int) -> Pool:
    """The best `top_k`; the rest is dropped with its reason."""
    kept, rest = pooled.entries[:top_k], pooled.entries[top_k:]
    beyond = tuple(entry._replace(dropped=f"beyond the best {top_k}") for entry in rest)
    return Pool(kept, pooled.dropped + beyond)


def _claim(entry: Entry) -> tuple[object, ...]:
    return (PRIORITY[entry.source], -entry.item.score, *_identity(entry))


def _place(entry: Entry) -> tuple[object, ...]:
    return (-entry.final, PRIORITY[entry.source], *_identity(entry))


def _identity(entry: Entry) -> tuple[object, ...]:
    """What sets entries apart that are worth the same: results one after the other, each in the
    order of its source."""
    item = entry.item
    return (*entry.search, entry.position, item.key, item.title, item.content)
