"""What a reader sees of an answer as it grows: at once, or when it is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from groundhook.core.channel import Channel
from groundhook.core.types.events import CitationSeen, Cited, Text


@dataclass
class ShownText:
    """Sends the text of an answer and its citations, or holds them."""

    channel: Channel
    _held: list[Text | CitationSeen] | None = None

    def hold(self) -> None:
        """Send nothing until `release`."""
        self._held = []

    def send(self, event: Text | CitationSeen) -> None:
        """Send an event, or hold it."""
        if self._held is None:
            self.channel.send_nowait(event)
        else:
            self._held.append(event)

    def release(self, cited: Mapping[str, Cited]) -> bool:
        """Send what is held, the citations with what is known of them; nothing is held after.
        Returns whether something was."""
        held, self._held = self._held, None
        for event in held or ():
            known = cited.get(event.marker) if isinstance(event, CitationSeen) else None
            judged = {"missing": known.missing, "verified": known.verified} if known else {}
            self.channel.send_nowait(event.model_copy(update=judged))
        return bool(held)
