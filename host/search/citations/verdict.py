"""The verdict of a marker in an answer: which source it cites, if it is a citation at all. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from groundhook.core.types.events import Verdict
from groundhook.core.types.search import Item
from groundhook.host.search.citations.index import CitationIndex
from groundhook.host.search.citations.reader import Marker

LONGEST_BEFORE = 200  # characters before a marker that may show it as an echo
# What stands in front of a marker in the block of sources, and in the instructions to cite, when a
# model repeats them.
_ECHO = re.compile(r"<source\b[^<>]*$|^Cite as: $|by its id, such as $|BEGIN SOURCES\b")


@dataclass(frozen=True)
class JudgedMarker:
    """A citation: the marker, and the source that it cites; None for an unknown one."""

    marker: str
    verdict: Verdict
    item: Item | None = None


def judge(marker: Marker, before: str, index: CitationIndex) -> tuple[JudgedMarker, ...]:
    """Return the citations that a marker stands for; none if it is a text like others. `before` is
    the answer before it. A near miss of markers stands for those that it means, if each of its ids
    is that of a source."""
    if _ECHO.search(before[-LONGEST_BEFORE:].rpartition("\n")[2]):
        return ()
    if marker.near:
        found = [index.find(id.strip()) for id in marker.id.split(",")]
        sources = [item for item in found if item is not None]
        if len(sources) < len(found):
            return ()
        return tuple(JudgedMarker(item.citation_id, "ok", item) for item in sources)
    if item := index.find(marker.id):
        return (JudgedMarker(marker.text, "ok", item),)
    earlier = index.find_earlier(marker.text)
    return (JudgedMarker(marker.text, "earlier" if earlier else "unknown", earlier),)
