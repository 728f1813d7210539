"""Several sources in one index: read one after the other, each dataset once.

A dataset that a later source also has, because portals harvest each other, is the one of the
earlier source: it has the same id, the same identifier, or the same title, publisher and files.
Datasets of different tenants are different ones. An id of a file belongs to the first dataset of
its tenant that has it; elsewhere it begins with the id of its dataset. Everything is listed each
time; unchanged datasets cost a hash.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from groundhook.core.json_text import read_json
from groundhook.core.sync_source import (
    DocumentsByCollection,
    SyncBatch,
    SyncRecord,
    SyncSource,
    digest_of,
)
from groundhook.core.types.sync import SyncSettings
from groundhook.toolkits.catalogue.names import key

T = TypeVar("T")

_IDENTIFIERS = ("guid", "identifier")  # keys of a package, or of its extras


@dataclass(frozen=True, kw_only=True)
class PackageRecord(SyncRecord):
    """A record with keys; two records of a `tenant` that share one are the same dataset.
    `resources` are the ids of its files; `make_with` returns its documents with other ids for some
    of them, by the file's own."""

    tenant: str
    same: frozenset[str]
    resources: Sequence[str]
    make_with: Callable[[Mapping[str, str]], DocumentsByCollection]


def keys_of(package: Mapping[str, Any]) -> frozenset[str]:
    """Return the keys by which a package is recognised in another portal."""
    return frozenset(
        [f"id {package['id']}", *_identifier_keys(package), *_title_and_files_key(package)]
    )


def _identifier_keys(package: Mapping[str, Any]) -> Iterator[str]:
    extras = {str(each.get("key")): each.get("value") for each in _objects(package, "extras")}
    for name in _IDENTIFIERS:
        value = package.get(name) or extras.get(name)
        if isinstance(value, str) and value.strip():
            yield f"identifier {value.strip()}"


def _title_and_files_key(package: Mapping[str, Any]) -> Iterator[str]:
    """Yield a key of the title, the publisher and the addresses of the files together, if the
    package has a title and files."""
    files = sorted(str(each["url"]) for each in _objects(package, "resources") if each.get("url"))
    title, organization = package.get("title"), package.get("organization")
    if files and title:
        given = organization if isinstance(organization, Mapping) else {}
        publisher = key(str(given.get("title") or given.get("name") or ""))
        yield f"files {digest_of([key(str(title)), publisher, files])}"


def _objects(package: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the objects in a list of the package; portals may send anything in its place."""
    value = package.get(name)
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


@dataclass
class _Seen:
    """The entries listed so far. `keys` are those of datasets by tenant with the source whose they
    are, `totals` the count of each source, `folded` the datasets by source. `records` are ids with
    the tenant whose they are, `resources` ids by tenant with the dataset whose they are, and
    `renamed` the files with another id than their own."""

    keys: dict[tuple[str, str], int] = field(default_factory=dict)
    totals: dict[int, int] = field(default_factory=dict)
    folded: set[tuple[int, str]] = field(default_factory=set)
    records: dict[tuple[str, str], str] = field(default_factory=dict)
    resources: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    renamed: set[tuple[int, str, str]] = field(default_factory=set)

    def add(self, place: int, record: SyncRecord) -> list[SyncRecord]:
        """Return a record of a source as it is put; nothing if an earlier source has it."""
        if not isinstance(record, PackageRecord):
            return [record]
        own, mine = [(record.tenant, key) for key in record.same], (place, record.id)
        if any(self.keys.get(key, place) != place for key in own):
            self.folded.add(mine)
            return []
        self.keys |= dict.fromkeys(own, place)
        ids = {
            id: free
            for id in record.resources
            if (free := _unused_id(self.resources, record.tenant, id, mine, record.id)) != id
        }
        self.renamed |= {(*mine, id) for id in ids}
        changed = replace(
            record,
            # The same id of two tenants is that of two datasets.
            id=_unused_id(self.records, "", record.id, record.tenant, record.tenant),
        )
        if not ids:
            return [changed]
        digest = digest_of([record.digest, ids])
        return [replace(changed, digest=digest, make=lambda: record.make_with(ids))]

    @property
    def notes(self) -> Sequence[str]:
        if not self.renamed:
            return ()
        return (
            f"files whose id belongs to a file of an earlier dataset: {len(self.renamed):,};"
            " the id of their dataset is put before it",
        )


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
        """Return the next part. A sync that was interrupted is listed from the beginning: what the
        parts before had is not known, and files may have changed. Raises SourceError."""
        if not position or self._at != position:
            self._seen, position = _Seen(), ""
        return await self._next(position)

    async def _next(self, position: str) -> SyncBatch:
        place, inner = read_json(position) if position else (0, "")
        batch = await self._sources[place].read(inner, "")
        seen = self._seen
        seen.totals[place] = batch.total
        records: list[SyncRecord] = []
        for record in batch.records:
            records += seen.add(place, record)
        last = batch.last and place == len(self._sources) - 1
        following = (place + 1, "") if batch.last else (place, batch.position)
        self._at = json.dumps(following)
        return replace(
            batch,
            records=records,
            position=self._at,
            total=sum(seen.totals.values()) - len(seen.folded),
            last=last,
            resumable=False,
            folded=len(seen.folded),
            notes=seen.notes,
        )


def _unused_id(owners: dict[tuple[str, str], T], scope: str, id: str, owner: T, prefix: str) -> str:
    """Return an id that no other owner has in a scope, and enter it: the id itself, or one with as
    many prefixes as it takes."""
    while owners.setdefault((scope, id), owner) != owner:
        id = f"{prefix}:{id}"
    return id
