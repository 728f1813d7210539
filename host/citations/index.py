"""The citation index: the sources that one turn has offered, each under an id that is unique in the
turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from groundhook.host.citations.ids import LONGEST, SHORTEST, key_of, short_id
from groundhook.host.citations.reader import Grammar
from groundhook.host.core.addresses import LOCAL, WEB, address
from groundhook.host.core.types.events import Cited, Verdict
from groundhook.host.core.types.search import Item


@dataclass
class CitationIndex:
    """The sources that one turn has offered. Ids are unique in a turn: where two sources would
    share one, the later gets a longer id."""

    format: str
    _ids: dict[str, str] = field(default_factory=dict)  # key → id
    _items: dict[str, Item] = field(default_factory=dict)  # id → item
    _formats: dict[str, None] = field(
        default_factory=dict
    )  # those in which markers were handed out, in their order

    def cite(self, item: Item, **said: Any) -> Item:
        """The item with its marker set as `citation_id`, and its `key`; and what else is `said` of
        it."""
        key = key_of(item)
        url = address(item.url, (*WEB, *LOCAL) if item.type == "kb" else WEB) if item.url else ""
        if url != item.url:
            said["url"] = url
        id = self._ids.get(key) or self._new_id(key)
        marker = self.marker(id)
        same = not said and item.citation_id == marker and item.key == key
        cited = (
            item if same else item.model_copy(update={"citation_id": marker, "key": key, **said})
        )
        self._items[id] = cited
        self._formats[self.format] = None
        return cited

    def marker(self, id: str) -> str:
        return self.format.replace("{id}", id)

    def reformat(self, format: str) -> None:
        """Write markers in another format from now on; ids stay, and markers that were handed out
        are still read."""
        self.format = format

    @property
    def grammar(self) -> Grammar:
        """Markers of every format that somebody may have been given."""
        return Grammar.of(*{**self._formats, self.format: None})

    def find(self, id: str) -> Item | None:
        """The item behind an id, in whichever case the model wrote it."""
        return self._items.get(id.lower())

    def _new_id(self, key: str) -> str:
        for length in range(SHORTEST, LONGEST):
            id = short_id(key, length)
            if id not in self._items:
                self._ids[key] = id
                return id
        raise ValueError(f"no free citation id for {key!r}")


def cited(marker: str, verdict: Verdict, item: Item | None) -> Cited:
    """A marker as `stream_end` lists it."""
    if item is None:
        return Cited(marker=marker, verdict=verdict)
    return Cited(
        marker=marker,
        verdict=verdict,
        title=item.title,
        url=item.url,
        type=item.type,
        collection=item.collection,
        document_id=item.document_id,
        extent=item.extent,
        model=item.model,
        record_id=item.record_id,
        query=item.query,
    )
