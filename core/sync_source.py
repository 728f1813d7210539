"""The source of a sync: records that are listed part by part, with the documents made of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import anyio.to_thread

from groundhook.core.types.collection_queries import CollectionDocument
from groundhook.core.types.sync import SyncSettings

# By collection as the toolkit's file names it. Documents of a later collection depend on those of
# the earlier ones, and are removed before them.
DocumentsByCollection = Mapping[str, Sequence[CollectionDocument]]
_PAGE = 100


@dataclass(frozen=True, kw_only=True)
class SyncRecord:
    """A record as its source lists it. A changed record has another `digest`. `make` returns its
    documents; it is called only for records that are new or changed, after `prepare`, which reads
    what the listing does not have and raises only the errors of `SyncSource.read`."""

    id: str
    digest: str
    make: Callable[[], DocumentsByCollection]
    prepare: Callable[[], Awaitable[None]] | None = None


@dataclass(frozen=True, kw_only=True)
class SyncBatch:
    """A part of a listing. `position` is where the next part begins (opaque; only its source reads
    it), `total` the source's count of all records. `last`: nothing follows. `resumable`: after an
    interruption another sync can continue at `position`; otherwise it lists everything again.
    `folded` counts the records that the listing has omitted so far because others of it are the
    same; `notes` are lines for the report."""

    records: Sequence[SyncRecord]
    position: str
    total: int
    last: bool
    resumable: bool = True
    folded: int = 0
    notes: Sequence[str] = ()


class SyncSource(Protocol):
    """Records that are listed part by part, in an order that stays the same."""

    @property
    def name(self) -> str:
        """The name of the source in messages: `the CKAN portal 'data.example'`."""
        ...

    @property
    def noun(self) -> str:
        """The noun for its records, in the plural: `datasets`."""
        ...

    @property
    def settings(self) -> SyncSettings:
        """Its settings of the sync, from the toolkit's file."""
        ...

    @property
    def identity(self) -> str:
        """Identifies the source: another source is listed from the beginning."""
        ...

    async def newest(self) -> str:
        """Return the moment of the latest change, as `read` takes it; "" if the source cannot say:
        everything is then listed each time. Raises SourceError."""
        ...

    async def lists_changes(self, since: str, known: int, /) -> bool:
        """Return whether the source proves that it honours `since`, and still has at least the
        `known` number of records: if not, everything is listed. Raises SourceError."""
        ...

    async def read(self, position: str, since: str, /) -> SyncBatch:
        """Return the part of the listing at `position` ("": the beginning), of everything (`since`
        "") or of what changed since a moment. Raises SourceError."""
        ...


class ListedDocuments:
    """A `SyncSource` over documents that are all available at once, such as those of a file: each
    is a record of its own.

    `documents` returns (collection, document) in the same order each time, and raises SourceError
    or ConfigError. It is called once for each sync, in a thread."""

    def __init__(
        self,
        name: str,
        noun: str,
        identity: str,
        documents: Callable[[], Iterable[tuple[str, CollectionDocument]]],
        settings: SyncSettings | None = None,
    ) -> None:
        self.settings = settings or SyncSettings()
        self.name = name
        self.noun = noun
        self.identity = identity
        self._documents = documents
        self._records: list[SyncRecord] = []
        self._notes: Sequence[str] = ()

    async def newest(self) -> str:
        """Return "": everything is listed each time."""
        return ""

    async def lists_changes(self, _: str, __: int, /) -> bool:
        """Return False."""
        return False

    async def read(self, position: str, _: str, /) -> SyncBatch:
        """Return the next documents. Those of a sync that was interrupted are listed from the
        beginning, since the files may have changed: the rest of another listing is not the rest of
        this one."""
        start = int(position or 0) if self._records else 0
        if not start:
            await anyio.to_thread.run_sync(self._list)
        end = start + _PAGE
        return SyncBatch(
            records=self._records[start:end],
            position=str(end),
            total=len(self._records),
            last=end >= len(self._records),
            resumable=False,
            notes=self._notes,
        )

    def _list(self) -> None:
        """Read the documents; of several with one id, the last one counts."""
        every = [_record(*each) for each in self._documents()]
        self._records = list({record.id: record for record in every}.values())
        more = len(every) - len(self._records)
        self._notes = (f"{self.noun} with the id of a later one, left out: {more:,}",) * bool(more)


def digest_of(value: object) -> str:
    """Return a digest of a value with a JSON form; the order of keys does not matter."""
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _record(collection: str, document: CollectionDocument) -> SyncRecord:
    return SyncRecord(
        id=f"{collection}/{document.tenant}/{document.id}",
        digest=digest_of(vars(document)),
        make=lambda: {collection: [document]},
    )
