"""Merges user data, hook and automatic results into one pool: weigh, deduplicate, order, explain.
Pure functions.

`final = base score × source weight × rerank score`, as in the reference; the rerank score is 1
without a reranker.

Joins parts of one passage that several searches of a turn found. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from groundhook.core.ports import Ranked
from groundhook.core.settings import WeightSettings
from groundhook.core.types.search import Extent, Item, Origin, SearchResult, Sentences

GAP = "\n…\n"  # between parts that are not adjacent


def join_parts(item: Item, other: Item) -> Item:
    """Return an item that is a part of its chunk, joined with another part of the same chunk. An
    item that is a whole chunk, or contains the other one, is returned unchanged."""
    mine, others = item.extent, other.extent
    if (
        mine is None
        or others is None
        or mine.sentences is None
        or (mine.start <= others.start and others.end <= mine.end)
    ):
        return item
    if others.start <= mine.start and mine.end <= others.end:
        return item.model_copy(update={"content": other.content, "extent": others})
    first, last = (item, other) if mine.start < others.start else (other, item)
    assert first.extent is not None
    assert last.extent is not None
    repeated = first.extent.end - last.extent.start
    # Content that is longer than its extent begins with the repeated header of a table.
    plain = len(last.content) == last.extent.end - last.extent.start
    rest = last.content[repeated:] if repeated > 0 and plain else GAP + last.content
    extent = Extent(
        start=first.extent.start,
        end=last.extent.end,
        sentences=_span_sentences(mine.sentences, others.sentences),
    )
    return item.model_copy(update={"content": first.content + rest, "extent": extent})


def _span_sentences(one: Sentences, other: Sentences | None) -> Sentences | None:
    if other is None:
        return None
    return Sentences(first=min(one.first, other.first), last=max(one.last, other.last), of=one.of)


PRIORITY: dict[Origin, int] = {"user": 0, "hook": 1, "auto": 2}


class Entry(NamedTuple):
    """An item in the pool with the numbers that rank it; a dropped one has the reason."""

    item: Item
    source: Origin
    weight: float
    rerank: float = 1.0
    judged: bool = True
    dropped: str = ""
    search: tuple[str, str] = ("", "")  # type and query of its search result
    position: int = 0  # in that search result

    @property
    def weighed(self) -> Item:
        """The item with the weight of its source."""
        if self.item.weight == self.weight:  # true of most items, which saves a copy
            return self.item
        return self.item.model_copy(update={"weight": self.weight})

    @property
    def final(self) -> float:
        """The number that ranks the entry."""
        return self.item.score * self.weight * self.rerank

    def judged_as(self, rerank: float | None) -> Entry:
        """Return the entry with the score of a reranker; None: it did not judge the item."""
        if rerank == self.rerank and self.judged:
            return self
        return self._replace(rerank=1.0 if rerank is None else rerank, judged=rerank is not None)

    def explain(self) -> dict[str, object]:
        """Return the entry as the trace shows it, with every factor of its rank."""
        factors: dict[str, object] = {
            "citation_id": self.item.citation_id,
            "title": self.item.title,
            "source": self.source,
            "score": round(self.item.score, 4),
            "weight": self.weight,
            "rerank": round(self.rerank, 4),
            "final": round(self.final, 4),
        }
        return {**factors, "dropped": self.dropped} if self.dropped else factors


@dataclass(frozen=True)
class Pool:
    """The entries that remain, best first, and those that were dropped."""

    entries: tuple[Entry, ...] = ()
    dropped: tuple[Entry, ...] = ()

    @property
    def items(self) -> list[Item]:
        """The items that remain, each with the weight of its source."""
        return [entry.weighed for entry in self.entries]


def pool(results: Iterable[SearchResult], weights: WeightSettings) -> Pool:
    """Merge results into a pool.

    If several items are duplicates, the one of the highest-priority source remains, and among equal
    sources the one with the better score; if they are different parts of a long chunk, the parts
    are joined. The order depends on the results alone, not on which search answered first; entries
    of equal value keep the order of their result.
    """
    weight_of: dict[Origin, float] = {
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
    # By priority, so that the first one of a key is the version that remains.
    for entry in sorted(entries, key=_priority):
        first = kept.get(entry.item.key)
        if first is None:
            kept[entry.item.key] = entry
        else:
            # Two searches may quote different parts of one chunk: the model gets both.
            if (item := join_parts(first.item, entry.item)) is not first.item:
                kept[entry.item.key] = first._replace(item=item)
            dropped.append(
                entry._replace(
                    dropped=f"duplicate of the {first.source} result {first.item.citation_id}"
                )
            )
    return Pool(tuple(sorted(kept.values(), key=_rank)), tuple(dropped))


def apply_ranking(pooled: Pool, ranking: Sequence[Ranked]) -> Pool:
    """Multiply a reranker's scores in and return the pool in the new order. Items without a score
    keep their order behind the judged ones; positions that do not exist, and a second score for one
    item, are ignored."""
    scores: dict[int, float] = {}
    for ranked in ranking:
        if 0 <= ranked.index < len(pooled.entries):
            scores.setdefault(ranked.index, min(1.0, max(0.0, ranked.score)))
    entries = [entry.judged_as(scores.get(index)) for index, entry in enumerate(pooled.entries)]
    # `sorted` is stable: ties and items without a score keep the merged order.
    ordered = sorted(
        entries, key=lambda entry: (not entry.judged, -entry.final if entry.judged else 0.0)
    )
    return replace(pooled, entries=tuple(ordered))


def cut(pooled: Pool, top_k: int) -> Pool:
    """Return the pool with the best `top_k` entries; the rest is dropped with its reason."""
    kept, rest = pooled.entries[:top_k], pooled.entries[top_k:]
    beyond = tuple(entry._replace(dropped=f"beyond the best {top_k}") for entry in rest)
    return Pool(kept, pooled.dropped + beyond)


def _priority(entry: Entry) -> tuple[object, ...]:
    return (PRIORITY[entry.source], -entry.item.score, *_identity(entry))


def _rank(entry: Entry) -> tuple[object, ...]:
    return (-entry.final, PRIORITY[entry.source], *_identity(entry))


def _identity(entry: Entry) -> tuple[object, ...]:
    """Return the sort key of entries of equal value: one result after the other, each in the order
    of its source."""
    item = entry.item
    # Title and content last, for items of plug-ins that have neither key nor position.
    return (*entry.search, entry.position, item.key, item.title, item.content)
