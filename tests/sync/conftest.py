"""A shelf of documents and a source of records in memory, which record what happens to them and
stop where a test wants it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from groundhook.core.errors import SourceError
from groundhook.core.sync_source import DocumentsByCollection, SyncBatch, SyncRecord, digest_of
from groundhook.core.types.collection_queries import (
    CollectionAnswer,
    CollectionDocument,
    CollectionQuery,
    Owner,
    PutReport,
)
from groundhook.core.types.filters import DOCUMENT
from groundhook.core.types.sync import SyncSettings
from groundhook.host.sync.engine import SyncEngine


class Killed(BaseException):
    """What ends a process, as far as the code before it can see."""


@dataclass
class Shelf:
    """Collections in memory: (collection, tenant, id) → text. `kill_at`: the call, counted from 1,
    before or after which the process ends."""

    kept: dict[tuple[str, str, str], str] = field(default_factory=dict)
    puts: int = 0
    calls: int = 0
    kill_at: int = 0
    refuses: Mapping[str, str] = field(default_factory=dict)

    def _call(self) -> None:
        self.calls += 1
        if self.calls == self.kill_at:
            raise Killed

    async def put(
        self,
        collection: str,
        documents: Sequence[CollectionDocument],
        /,
        *,
        owner: Owner = "tenant",
    ) -> PutReport:
        self._call()
        for document in documents:
            if document.id not in self.refuses:
                self.kept[collection, document.tenant, document.id] = document.text
                self.puts += 1
        self._call()
        wrong = {each.id: self.refuses[each.id] for each in documents if each.id in self.refuses}
        return PutReport(added=len(documents), failed=wrong)

    async def remove(
        self,
        collection: str,
        ids: Sequence[str],
        /,
        *,
        owner: Owner = "tenant",
        tenant: str = "",
    ) -> tuple[str, ...]:
        self._call()
        gone = [id for id in ids if self.kept.pop((collection, tenant, id), None) is not None]
        self._call()
        return tuple(gone)

    async def count(
        self,
        collection: str,
        /,
        *,
        filter: Mapping[str, Any] | None = None,
        owner: Owner = "tenant",
        tenant: str = "",
    ) -> int:
        self._call()
        wanted = (filter or {})[DOCUMENT]
        return sum((collection, tenant, id) in self.kept for id in wanted)

    async def find(self, queries: Sequence[CollectionQuery], /) -> list[CollectionAnswer]:
        raise NotImplementedError

    async def get(
        self, collection: str, ids: Sequence[str], /, *, owner: Owner = "tenant"
    ) -> dict[str, CollectionDocument]:
        raise NotImplementedError


@dataclass
class Portal:
    """A source in memory: id → (moment of its last change, its parts). Its collections are `books`
    (one document each) and `parts`."""

    records: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    page: int = 3
    tenant: str = ""
    dated: bool = True
    proves: bool = True
    counts: int | None = None
    fails_at: int = -1
    requests: list[tuple[str, str]] = field(default_factory=list)
    made: int = 0
    settings: SyncSettings = SyncSettings()
    identity: str = "portal"
    name: str = "the portal"
    noun: str = "books"

    async def newest(self) -> str:
        return max((at for at, _ in self.records.values()), default="") if self.dated else ""

    async def lists_changes(self, since: str, known: int, /) -> bool:
        return self.proves and len(self.records) >= known

    async def read(self, position: str, since: str, /) -> SyncBatch:
        self.requests.append((position, since))
        start = int(position or 0)
        if start == self.fails_at:
            raise SourceError("the portal is down")
        listed = sorted(id for id, (at, _) in self.records.items() if at >= since)
        part = listed[start : start + self.page]
        total = len(listed) if self.counts is None else self.counts
        return SyncBatch(
            records=[
                SyncRecord(id=id, digest=digest_of(self.records[id]), make=partial(self._made, id))
                for id in part
            ],
            position=str(start + len(part)),
            total=total,
            last=start + len(part) >= len(listed),
        )

    def _made(self, id: str) -> DocumentsByCollection:
        self.made += 1
        at, parts = self.records[id]

        def document(id: str, text: str) -> CollectionDocument:
            return CollectionDocument(id=id, text=text, tenant=self.tenant)

        return {
            "books": [document(id, f"{id} {at}")],
            "parts": [document(part, part) for part in parts],
        }

    def documents(self) -> dict[tuple[str, str, str], str]:
        """What an index of exactly this source holds."""
        books = {("books", self.tenant, id): f"{id} {at}" for id, (at, _) in self.records.items()}
        parts = {
            ("parts", self.tenant, part): part for _, each in self.records.values() for part in each
        }
        return {**books, **parts}

    def fill(self, number: int) -> None:
        for n in range(number):
            self.records[f"b{n:03}"] = (f"2026-01-01T00:{n % 60:02}:00Z", (f"p{n}a", f"p{n}b"))


@dataclass
class Clock:
    """The time, which tests move."""

    moment: datetime = datetime(2026, 3, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.moment

    def move(self, hours: float) -> None:
        self.moment += timedelta(hours=hours)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def engine(tmp_path: Path, clock: Clock) -> SyncEngine:
    return SyncEngine(tmp_path, clock)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def portal() -> Portal:
    portal = Portal()
    portal.fill(10)
    return portal
