"""Joins parts of one passage that several searches of a turn found. Pure."""

from __future__ import annotations

from groundhook.core.types.search import Extent, Item, Sentences

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
