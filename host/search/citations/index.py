"""The citation index: the sources of one turn, each with an id that is unique in the turn, and
those that earlier answers of the conversation cite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from groundhook.core.addresses import LOCAL, WEB, address
from groundhook.core.errors import HostError
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.events import Cited, Verdict, VerifiedSentence
from groundhook.core.types.search import Item
from groundhook.core.unseen import clean
from groundhook.host.search.citations.ids import LONGEST, SHORTEST, key_of, short_id
from groundhook.host.search.citations.reader import Grammar


@dataclass
class CitationIndex:
    """The sources of one turn, by citation id. Of two sources with the same short id, the later one
    gets a longer id. `earlier`: the sources that earlier answers cite, by marker in lower case;
    these markers are never given to another source."""

    format: str
    collections: Mapping[str, CollectionSpec] = field(default_factory=dict)
    earlier: Mapping[str, Item] = field(default_factory=dict)
    _ids: dict[str, str] = field(default_factory=dict)  # key → id
    _items: dict[str, Item] = field(default_factory=dict)  # id → item
    _numbers: dict[str, int] = field(default_factory=dict)  # id → number for `{index}`
    _withheld: set[str] = field(default_factory=set)  # ids of what no model was given
    _formats: dict[str, None] = field(default_factory=dict)  # formats of markers in use, in order

    def cite(self, item: Item, **changes: Any) -> Item:
        """Add an item and return it with its marker as `citation_id`, its `key`, a checked URL,
        title and content without unseen characters, and the `changes`. Raises ValueError if every
        id of the key is in use."""
        key = key_of(item)
        url = address(item.url, self._schemes_of(item)) if item.url else ""
        if url != item.url:
            changes["url"] = url
        if (title := clean(item.title)) != item.title:
            changes["title"] = title
        if (content := clean(item.content)) != item.content:
            changes["content"] = content
        id = self._ids.get(key) or self._new_id(key, item)
        marker = self.marker(id)
        same = not changes and item.citation_id == marker and item.key == key
        cited = (
            item if same else item.model_copy(update={"citation_id": marker, "key": key, **changes})
        )
        self._items[id] = cited
        self._withheld.discard(id)
        self._formats[self.format] = None
        return cited

    def _schemes_of(self, item: Item) -> tuple[str, ...]:
        if item.type != "kb":
            return WEB
        try:
            declared = self.collections[item.collection].schemes
        except (KeyError, HostError):  # another source's collection, or one with an invalid file
            declared = ()
        return (*WEB, *LOCAL, *declared)

    def marker(self, id: str) -> str:
        """Return the marker of an id in the current format. Numbers of `{index}` count the ids in
        the order in which their markers were first made, without those of earlier answers."""
        if id not in self._numbers:
            self._numbers[id] = self._new_number(id)
        return self._format_marker(id, self._numbers[id])

    def _format_marker(self, id: str, number: int) -> str:
        return self.format.replace("{id}", id).replace("{index}", str(number))

    def _new_number(self, id: str) -> int:
        number = max(self._numbers.values(), default=0) + 1
        while "{index}" in self.format and self.find_earlier(self._format_marker(id, number)):
            number += 1
        return number

    def reformat(self, format: str) -> None:
        """Use another format for new markers. Ids stay the same, and markers in earlier formats are
        still read."""
        self.format = format

    @property
    def grammar(self) -> Grammar:
        """The grammar of all formats used in this turn."""
        return Grammar.of(*{**self._formats, self.format: None})

    def withhold(self, found: Iterable[Item], given: Iterable[Item]) -> None:
        """Set which of the sources found the model is not given: their markers are unknown until
        they are found again, such as by a tool."""
        hidden = {item.key for item in found} - {item.key for item in given}
        self._withheld = {self._ids[key] for key in hidden if key in self._ids}

    @property
    def has_sources(self) -> bool:
        """Whether any source was found in this turn."""
        return bool(self._items)

    def find(self, id: str) -> Item | None:
        """Return the item of an id, in any case; None for an unknown or withheld one. A text of
        digits is a number of `{index}`, since every id has a letter."""
        if id.isdecimal():
            numbered = next((key for key, n in self._numbers.items() if n == int(id)), "")
            id = numbered if self._counts else ""
        id = id.lower()
        return None if id in self._withheld else self._items.get(id)

    @property
    def _counts(self) -> bool:
        return any("{index}" in format for format in (*self._formats, self.format))

    def find_earlier(self, marker: str) -> Item | None:
        """Return the source that an earlier answer cites by this marker, or None."""
        return self.earlier.get(marker.lower())

    def _new_id(self, key: str, item: Item) -> str:
        """Return a free id of the source: the one by which an earlier answer cites it, else the
        shortest that no earlier answer uses."""
        ids = (short_id(key, length) for length in range(SHORTEST, LONGEST))
        free: Iterator[str] = (id for id in ids if id not in self._items)
        if self.earlier and "{index}" not in self.format:
            before = {id: self.find_earlier(self._format_marker(id, 0)) for id in free}
            own = [id for id, source in before.items() if source and same_source(source, item)]
            free = iter(own or [id for id, source in before.items() if source is None])
        id = next(free, "")
        if not id:
            raise ValueError(f"no free citation id for {key!r}")
        self._ids[key] = id
        return id


def same_source(one: Item, other: Item) -> bool:
    """Return whether two items with the same citation id are of one source. Their passages may
    differ: which part of a long chunk is quoted depends on the question."""
    return _origin(one) == _origin(other)


def _origin(item: Item) -> tuple[object, ...]:
    place = (item.type, item.collection, item.document_id, item.model, repr(item.record_id))
    if item.type == "web":
        return (*place, item.url)
    return place if item.document_id or item.record_id is not None else (*place, item.title)


def cited(
    marker: str,
    verdict: Verdict,
    item: Item | None,
    missing: Sequence[str] = (),
    verified: Sequence[VerifiedSentence] = (),
) -> Cited:
    """Return the entry of a marker in `stream_end`."""
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
        missing=tuple(missing),
        verified=tuple(verified),
    )
