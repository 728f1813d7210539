"""The last events of a turn that was ended from outside. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from groundhook.core.types.events import (
    CitationSeen,
    Cited,
    Event,
    Failed,
    StreamEnd,
    Text,
)
from groundhook.host.search.citations.index import cited


def ending(events: Iterable[Event], code: str, message: str) -> list[Event]:
    """Return the `error` and the `stream_end` that complete a log which broke off, with its text
    and citations; nothing for a complete log."""
    text: list[str] = []
    citations: dict[str, Cited] = {}
    last: Event | None = None
    for event in events:
        last = event
        if isinstance(event, Text):
            text.append(event.delta)
        elif isinstance(event, CitationSeen) and event.marker not in citations:
            citations[event.marker] = cited(event.marker, event.verdict, event.item)
    if isinstance(last, StreamEnd):
        return []
    # At the time of the last event, since that of the break is unknown.
    turn_id, at_ms = (last.turn_id, last.at_ms) if last else ("", 0)
    made: list[Event] = [
        Failed(code=code, message=message),
        StreamEnd(content="".join(text), citations=tuple(citations.values())),
    ]
    return [event.stamped(turn_id, at_ms) for event in made]
