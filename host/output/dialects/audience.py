"""The reader of a turn, and the part of each event that they may see. Pure; every dialect uses
it."""

from __future__ import annotations

from dataclasses import dataclass

from groundhook.core.audience import for_readers, without_journal
from groundhook.core.types.events import Event, Text, Trace
from groundhook.host.output.dialects.places import SealTable, placed


@dataclass(frozen=True, kw_only=True)
class Audience:
    """A reader. Authors see errors with their files, and warnings; `trace` adds the steps.
    `public_url` is the server's address as its clients write it, `seal` makes tokens of tables
    whose rows they may have whole."""

    public_url: str = ""
    author: bool = False
    trace: bool = False
    seal: SealTable | None = None

    def of(self, event: Event) -> Event | None:
        """Return the event as this reader may see it, or None."""
        if isinstance(event, Text):  # most events, and the same for everyone
            return event
        # First the addresses: that of a passage has the page of its file, which readers do not see.
        seen = placed(event, self.public_url, self.seal)
        if not self.author:
            return for_readers(seen)
        return None if isinstance(event, Trace) and not self.trace else without_journal(seen)
