"""Merges user data, hook and automatic results into one pool: weigh, deduplicate, order, explain.
Pure functions.

The rows of one query on a database are one entry: they are ranked, dropped and cut together, and
keep their order.

`final = base score × source weight × rerank score`; the rerank score is 1 without a reranker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from groundhook.core.ports import Ranked
from groundhook.core.settings import WeightSettings
from groundhook.core.types.attached import is_attached
from groundhook.core.types.search import Extent, Item, Origin, OtherPlace, SearchResult, Sentences
from groundhook.core.types.tables import table_lines

PRIORITY: dict[Origin, int] = {"user": 0, "hook": 1, "auto": 2}
GAP = "\n…\n"  # between parts that are not adjacent
LEAST_SAME = 40  # characters of passages that are the same source
_HEADING = re.compile(r"^#+ .*$", re.M)
MOST_JUDGED_ROWS, MOST_JUDGED = 20, 4000  # rows and characters of a table, for a reranker


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


class PoolEntry(NamedTuple):
    """An item in the pool with the numbers that rank it; a dropped one has the reason. `rows` are
    those of a table, of which `item` is the first."""

    item: Item
    source: Origin
    weight: float
    rerank: float = 1.0
    judged: bool = True
    dropped: str = ""
    search: tuple[str, str] = ("", "")  # type and query of its search result
    position: int = 0  # in that search result
    rows: tuple[Item, ...] = ()

    @property
    def items(self) -> list[Item]:
        """The item, or the rows, with the weight of the source."""
        return [
            # Most items have this weight already: they are not copied.
            item if item.weight == self.weight else item.model_copy(update={"weight": self.weight})
            for item in self.rows or (self.item,)
        ]

    @property
    def candidate(self) -> Item:
        """The item as a reranker judges it: of a table, its first row with the text of all."""
        first = self.items[0]
        if len(self.rows) < 2:
            return first
        text = "\n".join(islice(table_lines(self.rows), MOST_JUDGED_ROWS))
        name = first.row.table.name if first.row else first.title
        return first.model_copy(
            update={"title": name, "content": text[:MOST_JUDGED], "score": self.score}
        )

    @property
    def score(self) -> float:
        """The score by the source: of a table, that of its best row."""
        return max((row.score for row in self.rows), default=self.item.score)

    @property
    def final(self) -> float:
        """The number that ranks the entry."""
        return self.score * self.weight * self.rerank

    @property
    def key(self) -> str:
        """What duplicates share: of a table, its query."""
        first = self.item
        return f"table:{first.row.table.id}" if first.row and len(self.rows) > 1 else first.key

    def judged_as(self, rerank: float | None) -> PoolEntry:
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
            **({"rows": len(self.rows)} if len(self.rows) > 1 else {}),
            "score": round(self.score, 4),
            "weight": self.weight,
            "rerank": round(self.rerank, 4),
            "final": round(self.final, 4),
        }
        return {**factors, "dropped": self.dropped} if self.dropped else factors


@dataclass(frozen=True)
class Pool:
    """The entries that remain, best first, and those that were dropped."""

    entries: tuple[PoolEntry, ...] = ()
    dropped: tuple[PoolEntry, ...] = ()

    @property
    def items(self) -> list[Item]:
        """The items that remain, each with the weight of its source; rows follow one another."""
        return [item for entry in self.entries for item in entry.items]

    @property
    def candidates(self) -> list[Item]:
        """What a reranker judges: one item for each entry."""
        return [entry.candidate for entry in self.entries]


def pool(results: Iterable[SearchResult], weights: WeightSettings) -> Pool:
    """Merge results into a pool.

    If several items are duplicates, the one of the highest-priority source remains, and among equal
    sources the one with the better score; if they are different parts of a long chunk, the parts
    are joined. The order depends on the results alone, not on which search answered first; entries
    of equal value keep the order of their result.
    """
    entries = [
        PoolEntry(
            rows[0],
            result.source,
            weights.of(result.source),
            search=(result.type, result.query),
            position=position,
            rows=rows if rows[0].row else (),
        )
        for result in results
        for position, rows in _units(result.items)
    ]
    kept: dict[str, PoolEntry] = {}
    dropped: list[PoolEntry] = []
    # By priority, so that the first one of a key is the version that remains.
    for entry in sorted(entries, key=_priority):
        first = kept.get(entry.key)
        if first is None:
            kept[entry.key] = entry
        else:
            # Two searches may quote different parts of one chunk: the model gets both.
            if not first.rows and (item := join_parts(first.item, entry.item)) is not first.item:
                kept[entry.key] = first._replace(item=item)
            dropped.append(
                entry._replace(
                    dropped=f"duplicate of the {first.source} result {first.item.citation_id}"
                )
            )
    entries, twins = _without_twins(sorted(kept.values(), key=_rank))
    return Pool(tuple(entries), (*dropped, *twins))


def _without_twins(ranked: Iterable[PoolEntry]) -> tuple[list[PoolEntry], list[PoolEntry]]:
    """Keep the best of the passages with the same text in several documents, and give it the places
    of the others. Return the kept entries, and the others with the reason."""
    kept: list[PoolEntry] = []
    places: dict[str, int] = {}  # text → its place in `kept`
    twins: list[PoolEntry] = []
    for entry in ranked:
        item = entry.item
        same = _same_text(item)
        if same not in places or _document(kept[places[same]].item) == _document(item):
            if same:
                places.setdefault(same, len(kept))
            kept.append(entry)
            continue
        first = kept[places[same]]
        place = OtherPlace(
            title=item.title,
            url=item.url,
            document_id=item.document_id,
            collection=item.collection,
        )
        both = first.item.model_copy(update={"also": (*first.item.also, place)})
        kept[places[same]] = first._replace(item=both)
        twins.append(entry._replace(dropped=f"the same text as {first.item.citation_id}"))
    return kept, twins


def _document(item: Item) -> tuple[str, str]:
    return item.collection, item.document_id


def _same_text(item: Item) -> str:
    """Return what passages with the same text share: it without headings, case and line breaks; ""
    for what is too short to be the same on purpose, and for what is no passage."""
    if item.type != "kb":
        return ""
    text = " ".join(_HEADING.sub("", item.content).casefold().split())
    return text if len(text) >= LEAST_SAME else ""


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
    """Return the pool with the best `top_k` entries, of which a table is one. The rest is dropped
    with its reason, but no table and no part of a file that the user attached: passages never take
    their place."""
    ranked = list(enumerate(pooled.entries))
    kept = tuple(entry for rank, entry in ranked if rank < top_k or _stays(entry))
    beyond = tuple(
        entry._replace(dropped=f"beyond the best {top_k}")
        for rank, entry in ranked
        if rank >= top_k and not _stays(entry)
    )
    return Pool(kept, pooled.dropped + beyond)


def _stays(entry: PoolEntry) -> bool:
    return bool(entry.rows) or is_attached(entry.item)


def _units(items: Sequence[Item]) -> list[tuple[int, tuple[Item, ...]]]:
    """Return the items with their positions: the rows of a table together, at that of the first."""
    units: dict[str, tuple[int, list[Item]]] = {}
    for position, item in enumerate(items):
        name = f"table:{item.row.table.id}" if item.row else f"item:{position}"
        units.setdefault(name, (position, []))[1].append(item)
    return [(position, tuple(rows)) for position, rows in units.values()]


def _priority(entry: PoolEntry) -> tuple[object, ...]:
    return (PRIORITY[entry.source], -entry.score, *_identity(entry))


def _rank(entry: PoolEntry) -> tuple[object, ...]:
    return (-entry.final, PRIORITY[entry.source], *_identity(entry))


def _identity(entry: PoolEntry) -> tuple[object, ...]:
    """Return the sort key of entries of equal value: one result after the other, each in the order
    of its source."""
    item = entry.item
    # Title and content last, for items of plug-ins that have neither key nor position.
    return (*entry.search, entry.position, entry.key, item.title, item.content)
