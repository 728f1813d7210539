"""Numbers for cited sources, where a client cannot show markers: `[1]`, `[2]`, in the order of the
first citation. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from groundhook.core.server_settings import CitationStyle
from groundhook.core.types.events import CitationSeen
from groundhook.core.types.search import Item
from groundhook.host.output.dialects.places import address

UNKNOWN = "[?]"


@dataclass(frozen=True)
class Numbers:
    """The sources that have numbers: the nth place is source [n]. Markers of one place share a
    number."""

    places: tuple[str, ...] = ()

    def with_item(self, item: Item) -> tuple[Numbers, int]:
        """Return the numbers with this source in them, and its number."""
        # The extent is part of an address, so two passages of a document have a number each; a
        # figure has no address.
        place = address(item, "") or item.citation_id
        if place in self.places:
            return self, self.places.index(place) + 1
        return replace(self, places=(*self.places, place)), len(self.places) + 1


def shown(seen: CitationSeen, number: int, style: CitationStyle, url: str) -> str:
    """Return the text that replaces a marker."""
    if style == "markers":
        return seen.marker
    if style == "none":
        return ""
    if seen.item is None:
        return UNKNOWN
    return f"[[{number}]]({url})" if style == "links" and url else f"[{number}]"


def unique(name: str, used: Sequence[str]) -> str:
    """Return the name, with a number behind it where it is used already."""
    if name not in used:
        return name
    n = 2
    while f"{name} ({n})" in used:
        n += 1
    return f"{name} ({n})"
