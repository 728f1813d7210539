"""Several sources in one index: read one after the other, each dataset once.

A dataset that a later source also has, because portals harvest each other, is the one of the
earlier source: it has the same id, the same identifier, or the same title, publisher and files.
Everything is listed each time; unchanged datasets cost a hash.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from groundhook.handlers.tools.catalogue.names import key
from groundhook.host.core.sync_source import SyncBatch, SyncRecord, SyncSource, digest_of
from groundhook.host.core.types.sync import SyncSettings

_IDENTIFIERS = ("guid", "identifier")  # keys of a package, or of its extras


@dataclass(frozen=True, kw_only=True)
class PackageRecord(SyncRecord):
    """A record with keys; two records that share one are the same dataset."""

    same: frozenset[str] = frozenset()


def keys_of(package: Mapping[str, Any]) -> frozenset[str]:
    """Return the keys by which a package is recognised in another portal."""
    found = {f"id {package['id']}"}
    extras = package.get("extras")
    pairs = {
        str(each.get("key")): each.get("value")
        for each in (extras if isinstance(extras, list) else ())
        if isinstance(each, Mapping)
    }
    for name in _IDENTIFIERS:
        value = package.get(name) or pairs.get(name)
        if isinstance(value, str) and value.strip():
            found.add(f"identifier {value.strip()}")
    resources = package.get("resources")
    files = sorted(
        str(each["url"])
        for each in (resources if isinstance(resources, list) else ())
        if isinstance(each, Mapping) and each.get("url")
    )
    title, organization = package.get("title"), package.get("organization")
    if files and title:
        given = organization if isinstance(organization, Mapping) else {}
        publisher = key(str(given.get("title") or given.get("name") or ""))
        found.add(f"files {digest_of([key(str(title)), publisher, files])}")
    return frozenset(found)


@dataclass
class _Seen:
    """What was listed so far: keys of datasets, the count of each source, and folded datasets."""

    keys: set[str] = field(default_factory=set)
    totals: dict[int, int] = field(default_factory=dict)
    folded: set[str] = field(default_factory=set)


class SeveralSources:
    """A `SyncSource` over others, whose records are `PackageRecord`s."""

    noun = "datasets"

    def __init__(self, sources: Sequence[SyncSource], settings: SyncSettings) -> None:
        self._sources = sources
        self.settings = settings
        self.name = " and ".join(source.name for source in sources)
        self.identity = "several " + digest_of([source.identity for source in sources])
        self._seen = _Seen()
        self._at = ""  # the position that `_seen` belongs to

    async def newest(self) -> str:
        """Return "": everything is listed each time."""
        return ""

    async def lists_changes(self, _: str, __: int, /) -> bool:
        """Return False."""
        return False

    async def read(self, position: str, _: str, /) -> SyncBatch:
        """Return the next part. In another process than that which read the parts before, these
        are listed again, so that it is known what they had. Raises SourceError."""
        if not position or self._at != position:
            self._seen, self._at = _Seen(), ""
            while position and self._at != position:
                again = await self._next(self._at)
                if again.last:
                    return again  # the listing is shorter than it was
        return await self._next(position)

    async def _next(self, position: str) -> SyncBatch:
        place, inner = json.loads(position) if position else (0, "")
        batch = await self._sources[place].read(inner, "")
        seen = self._seen
        seen.totals[place] = batch.total
        kept: list[SyncRecord] = []
        for record in batch.records:
            own = record.same if isinstance(record, PackageRecord) else frozenset()
            # Parts of one source may overlap: its own datasets are not folded.
            mine = {f"{place} {record.id}"}
            if seen.keys & own and not seen.keys & mine:
                seen.folded |= mine
                continue
            seen.keys |= own | mine
            kept.append(record)
        last = batch.last and place == len(self._sources) - 1
        following = (place + 1, "") if batch.last else (place, batch.position)
        self._at = json.dumps(following)
        return replace(
            batch,
            records=kept,
            position=self._at,
            total=sum(seen.totals.values()) - len(seen.folded),
            last=last,
        )
