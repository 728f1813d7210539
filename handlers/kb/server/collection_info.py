"""What a host knows about a collection on a Qdrant server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from groundhook.handlers.kb.balance import Sums, add_sums, parse_sums
from groundhook.handlers.kb.store.port import CollectionSettings


@dataclass
class CollectionInfo:
    """The settings of a collection, and statistics of its passages from a sample of its
    documents."""

    name: str
    settings: CollectionSettings
    chunks: int = 0
    divided: bool = False  # whether a document may have several passages
    sums: Sums | None = field(default_factory=dict)  # None: some documents' languages are not known
    expires: float = 0.0  # when it is read again, on the loop's clock
    # (tenant, token) → its weighted frequency in the best passage for it
    frequencies: dict[tuple[str | None, int], float] = field(default_factory=dict)
    # (tenant, word) → whether it names what all passages are about
    names: dict[tuple[str | None, str], bool] = field(default_factory=dict)

    def count(self, record: Mapping[str, Any]) -> None:
        """Add a document to the statistics."""
        self.chunks += record["chunks"]
        self.divided = self.divided or record["chunks"] > 1
        languages = record.get("languages")
        if self.sums is not None:
            self.sums = add_sums(self.sums, parse_sums(languages)) if languages else None
