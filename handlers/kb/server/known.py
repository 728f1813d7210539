"""What a host remembers about a collection on a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from groundhook.handlers.kb.balance import Sums, changed, read
from groundhook.handlers.kb.store import CollectionSettings


@dataclass
class Known:
    """What a host knows about a collection: its settings, statistics of its text, taken from a
    sample of its documents, and whether a document may be `divided` into several passages."""

    name: str
    settings: CollectionSettings
    words: int = 0
    chunks: int = 0
    divided: bool = False
    sums: Sums | None = field(default_factory=dict)  # None: some documents' languages are not known
    until: float = 0.0  # when to look again, on the loop's clock

    def count(self, record: Mapping[str, Any]) -> None:
        """Add a document to the statistics."""
        self.words += record["words"]
        self.chunks += record["chunks"]
        self.divided = self.divided or record["chunks"] > 1
        languages = record.get("languages")
        if self.sums is not None:
            self.sums = changed(self.sums, read(languages)) if languages else None
