"""Synchronises a toolkit's collections with a source: reads its records part by part, puts the
documents of new and changed ones, and removes those of records that no longer exist. An interrupted
sync continues where it stopped; files and several sources are listed again. Only changes are read
while the source proves that it can list them, and everything at least once a day. Records are
removed only after a complete listing, and never more than a share of them without `force`. After
any failure the documents of earlier syncs stay searchable.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

from groundhook.core.errors import HostError, SourceError, SourceMalformed, UsageError
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.ports import Clock
from groundhook.core.sync_source import DocumentsByCollection, SyncBatch, SyncRecord, SyncSource
from groundhook.core.tool_ports import Collections
from groundhook.core.types.collection_queries import CollectionDocument
from groundhook.core.types.filters import DOCUMENT
from groundhook.core.types.sync import (
    SyncMode,
    SyncProgress,
    SyncReport,
    SyncStatus,
)
from groundhook.host.sync.lock import alone, holder
from groundhook.host.sync.state import DocumentPlace, Known, Past, Places, SyncRun, SyncState

EVERYTHING_AFTER = timedelta(hours=24)  # only complete listings show what a source removed
MISSING = 0.02  # share of the records that a source counts which a complete listing may lack
FEW_MISSING = 2  # records it may lack in any case: they were added while it was read
FEW = 5  # number of records that may go at once, whatever their share
_AT_ONCE = 500  # ids in one request to the index
_MOST_NOTES = 5
_PREPARED = 4  # records that read more at a time

T = TypeVar("T")

_Progress = Callable[[SyncProgress], object]


class SyncEngine:
    """The syncs of an app, with their state in `folder`."""

    def __init__(self, folder: Path, now: Clock) -> None:
        self._folder = folder
        self.now = now
        self._read: dict[str, tuple[object, SyncStatus]] = {}  # for that state of the file

    async def status(self, toolkit: str) -> SyncStatus:
        """Return the state of a toolkit's syncs. Raises StorageError."""
        return replace(await self.past(toolkit), running=holder(self._folder, toolkit))

    async def past(self, toolkit: str) -> SyncStatus:
        """Return the state of a toolkit's syncs without the one that runs. Raises StorageError."""
        stamp = self._stamp()
        if toolkit not in self._read or self._read[toolkit][0] != stamp:
            self._read[toolkit] = stamp, await _in_thread(self._read_status, toolkit)
        return self._read[toolkit][1]

    def _read_status(self, toolkit: str) -> SyncStatus:
        with closing(self._state()) as state:
            return state.status(toolkit)

    def _stamp(self) -> object:
        """Return a value that differs after every change of the state."""
        found = []
        # A change is in the write-ahead log first.
        for ending in ("", "-wal"):
            try:
                known = os.stat(self._folder / f"sync.sqlite{ending}")  # noqa: PTH116 - a Path takes longer
            except FileNotFoundError:
                found.append((0, 0))
            else:
                found.append((known.st_mtime_ns, known.st_size))
        return found

    async def sync(
        self,
        toolkit: str,
        source: SyncSource,
        collections: Collections,
        *,
        full: bool = False,
        force: bool = False,
        progress: _Progress | None = None,
    ) -> SyncReport:
        """Synchronise a toolkit. `full`: list everything from the beginning and put all documents
        again; `force`: remove all documents that no longer exist, however many. Raises SourceError,
        StorageError (also if a sync of this toolkit is running), UsageError if too much is gone."""
        with alone(self._folder, toolkit), closing(self._state()) as state:
            sync = _Sync(
                toolkit=toolkit,
                source=source,
                collections=collections,
                state=state,
                now=self.now,
                progress=progress,
                again=full,
                force=force,
            )
            try:
                return await sync.run()
            except HostError as exc:
                await _in_thread(self._enter_failure, state, toolkit, source, exc)
                raise

    def _state(self) -> SyncState:
        return SyncState(self._folder / "sync.sqlite")

    def _enter_failure(
        self, state: SyncState, toolkit: str, source: SyncSource, exc: HostError
    ) -> None:
        known = state.count(toolkit)
        if known and isinstance(exc, SourceError):
            exc.message += f"; {known:,} {source.noun} of earlier syncs stay searchable"
        # After a refusal to remove so much, the next sync lists everything anew.
        resumable = not isinstance(exc, UsageError)
        state.fail(toolkit, str(exc), _moment(self.now()), resumable=resumable)


@dataclass(kw_only=True)
class _Sync:
    """One sync that is running."""

    toolkit: str
    source: SyncSource
    collections: Collections
    state: SyncState
    now: Clock
    progress: _Progress | None
    again: bool
    force: bool
    report: SyncReport = field(init=False)

    async def run(self) -> SyncReport:
        past = await _in_thread(self.state.past, self.toolkit)
        if past.source != self.source.identity:
            past = Past(source="", watermark="", listed_at="", run=None)
        resumed = None if self.again else self._resumable(past)
        run = resumed or await self._begin(past, await self._mode(past))
        self.report = SyncReport(
            toolkit=self.toolkit,
            mode=run.mode,
            noun=self.source.noun,
            resumed=resumed is not None,
        )
        total = await self._read_all(run, "" if run.mode == "full" else past.watermark)
        if run.mode == "full":
            await self._remove_unseen(run, total)
        await _in_thread(self.state.succeed, self.toolkit, run, _moment(self.now()))
        self.report = replace(
            self.report,
            listed=await _in_thread(self.state.seen, self.toolkit, run),
            known=await _in_thread(self.state.count, self.toolkit),
        )
        return self.report

    # ---- reading

    def _resumable(self, past: Past) -> SyncRun | None:
        run = past.run
        if run is None or not run.position or not self._is_recent(run.begun_at):
            return None
        return None if self.force and run.mode == "changes" else run

    async def _mode(self, past: Past) -> SyncMode:
        if self.again or self.force or not past.watermark or not self._is_recent(past.listed_at):
            return "full"
        known = await _in_thread(self.state.count, self.toolkit)
        return "changes" if await self.source.lists_changes(past.watermark, known) else "full"

    async def _begin(self, past: Past, mode: SyncMode) -> SyncRun:
        # Requested before the records are read: a record that changes meanwhile is read again next
        # time.
        newest = await self.source.newest()
        at, identity = _moment(self.now()), self.source.identity
        return await _in_thread(self.state.begin, self.toolkit, identity, mode, newest, at)

    def _is_recent(self, moment: str) -> bool:
        return bool(moment) and self.now() - datetime.fromisoformat(moment) < EVERYTHING_AFTER

    async def _read_all(self, run: SyncRun, since: str) -> int:
        """Read and put the listing from the run's position on; return the source's count."""
        position, done = run.position, await _in_thread(self.state.seen, self.toolkit, run)
        while True:
            batch = await self.source.read(position, since)
            await self._put(run, batch)
            position = batch.position
            done += len(batch.records)
            if self.progress is not None:
                self.progress(
                    SyncProgress(
                        toolkit=self.toolkit,
                        mode=run.mode,
                        done=min(done, batch.total),
                        total=batch.total,
                    )
                )
            if batch.last:
                notes = (*self.report.notes, *batch.notes)
                self.report = replace(self.report, folded=batch.folded, notes=notes)
                return batch.total

    # ---- putting

    async def _put(self, run: SyncRun, batch: SyncBatch) -> None:
        """Put the documents of a part's new and changed records, and enter the part as done."""
        records = {record.id: record for record in batch.records}
        known = await _in_thread(self.state.known, self.toolkit, records)
        same = await self._still_there(
            {
                id: known[id].documents
                for id, record in records.items()
                if not self.again and id in known and known[id].digest == record.digest
            }
        )
        changed = {id: record for id, record in records.items() if id not in same}
        done = await self._put_changed(run, changed, known) if changed else {}
        position = batch.position if batch.resumable else ""
        await _in_thread(self.state.keep, self.toolkit, run, done, sorted(same), position)
        added = sum(id not in known for id in done)
        self.report = replace(
            self.report,
            added=self.report.added + added,
            changed=self.report.changed + len(done) - added,
            unchanged=self.report.unchanged + sum(known[id].run != run.number for id in same),
        )

    async def _still_there(self, places: Mapping[str, Places]) -> set[str]:
        """Return the records all of whose documents the index still has: it may have lost some.
        Where it has, all of the collection's are put again."""
        owners: defaultdict[DocumentPlace, dict[str, str]] = defaultdict(dict)
        for id, documents in places.items():
            for place, ids in documents.items():
                owners[place].update(dict.fromkeys(ids, id))
        there = set(places)
        for (collection, tenant), owner in owners.items():
            for part in _parts(list(owner)):
                found = await self.collections.count(
                    collection, filter={DOCUMENT: part}, tenant=tenant
                )
                if found < len(part):
                    there -= {owner[id] for id in part}
        return there

    async def _put_changed(
        self, run: SyncRun, records: Mapping[str, SyncRecord], known: Mapping[str, Known]
    ) -> dict[str, Known]:
        """Put the documents of records, remove those that they no longer have, and return what is
        known of them now."""
        await _prepare(records.values())
        made = {id: record.make() for id, record in records.items()}
        now = {id: _places(documents) for id, documents in made.items()}
        before = {id: known[id].documents for id in records if id in known}
        union = {id: _joined(before.get(id, {}), places) for id, places in now.items()}
        # Before they are put: after an interruption the state has all that the index may have.
        await _in_thread(self.state.expect, self.toolkit, run, union)
        reasons: dict[tuple[str, str], str] = {}
        for collection, documents in _by_collection(made).items():
            report = await self.collections.put(collection, documents)
            reasons |= {(collection, id): why for id, why in report.failed.items()}
        gone = {id: _subtract(before[id], now[id]) for id in before}
        await self._remove_documents(gone.values(), of=records, keep=now.values())
        return {
            id: Known(
                # Without a digest the next sync puts it again.
                digest="" if self._failed(id, now[id], reasons) else record.digest,
                documents=now[id],
            )
            for id, record in records.items()
        }

    def _failed(self, id: str, places: Places, reasons: Mapping[tuple[str, str], str]) -> bool:
        """Note the problems of a record's documents; return whether there are any."""
        wrong = [
            reasons[collection, document]
            for (collection, _), ids in places.items()
            for document in ids
            if (collection, document) in reasons
        ]
        if wrong:
            notes = self.report.notes
            if len(notes) < _MOST_NOTES:
                notes = (*notes, f"{id}: {wrong[0]}")
            self.report = replace(self.report, failed=self.report.failed + 1, notes=notes)
        return bool(wrong)

    # ---- removing

    async def _remove_unseen(self, run: SyncRun, total: int) -> None:
        """Remove the records that a complete listing did not have. Raises SourceMalformed for a
        listing that was not complete, UsageError if too many are gone."""
        seen = await _in_thread(self.state.seen, self.toolkit, run)
        # The missing records may be ones that the index has and the listing skipped.
        unseen = await _in_thread(self.state.unseen, self.toolkit, run, twice=seen < total)
        if total - seen > max(FEW_MISSING, MISSING * total):
            await _in_thread(
                self.state.fail, self.toolkit, "", _moment(self.now()), resumable=False
            )
            raise SourceMalformed(
                f"{self.source.name} counts {total:,} {self.source.noun} and listed"
                f" {seen:,}: nothing was removed"
            )
        if not unseen:
            return
        known = seen + len(unseen)
        allowed = max(FEW, self.source.settings.remove_at_most * known) if seen else 0
        if len(unseen) > allowed and not self.force:
            raise UsageError(
                f"{self.source.name} lists {seen:,} of {known:,} {self.source.noun}: the other"
                f" {len(unseen):,} were not removed",
                hint=(
                    f"if they are really gone, `groundhook tools sync {self.toolkit} --force`"
                    " removes them"
                ),
            )
        for part in _parts(list(unseen)):
            await self._remove_documents([unseen[id] for id in part], of=unseen)
            await _in_thread(self.state.forget, self.toolkit, part)
        self.report = replace(self.report, removed=len(unseen))

    async def _remove_documents(
        self, places: Iterable[Places], *, of: Iterable[str], keep: Iterable[Places] = ()
    ) -> None:
        """Remove documents `of` records, those of the last collections first: they depend on the
        others. A document that has moved to another record is among those to `keep`, or the state
        has it."""
        kept = {(place, id) for at in keep for place, ids in at.items() for id in ids}
        wanted: dict[DocumentPlace, list[str]] = defaultdict(list)
        for at in places:
            for place, ids in at.items():
                wanted[place] += [id for id in ids if (place, id) not in kept]
        if any(wanted.values()):
            shared = await _in_thread(self.state.shared, self.toolkit, wanted, list(of))
            wanted = {
                at: [id for id in ids if (at, id) not in shared] for at, ids in wanted.items()
            }
        for (collection, tenant), ids in reversed(wanted.items()):
            for part in _parts(ids):
                await self.collections.remove(collection, part, tenant=tenant)


async def _prepare(records: Iterable[SyncRecord]) -> None:
    """Have records read what the listing does not have, a few at a time. Raises what they raise."""
    few = anyio.CapacityLimiter(_PREPARED)

    async def one(prepare: Callable[[], Awaitable[None]]) -> None:
        async with few:
            await prepare()

    with unwrap_exception_groups():
        async with anyio.create_task_group() as tasks:
            for record in records:
                if record.prepare is not None:
                    tasks.start_soon(one, record.prepare)


def _places(made: DocumentsByCollection) -> dict[DocumentPlace, list[str]]:
    places: dict[DocumentPlace, list[str]] = {}
    for collection, documents in made.items():
        for document in documents:
            places.setdefault((collection, document.tenant), []).append(document.id)
    return places


def _joined(one: Places, other: Places) -> dict[DocumentPlace, list[str]]:
    return {
        place: sorted({*one.get(place, ()), *other.get(place, ())})
        for place in dict.fromkeys((*one, *other))
    }


def _subtract(one: Places, other: Places) -> dict[DocumentPlace, list[str]]:
    return {
        place: [id for id in ids if id not in set(other.get(place, ()))]
        for place, ids in one.items()
    }


def _by_collection(
    made: Mapping[str, DocumentsByCollection],
) -> dict[str, list[CollectionDocument]]:
    found: defaultdict[str, list[CollectionDocument]] = defaultdict(list)
    for documents in made.values():
        for collection, each in documents.items():
            found[collection] += each
    return {collection: each for collection, each in found.items() if each}


def _parts(ids: Sequence[str]) -> Iterator[list[str]]:
    return (list(ids[at : at + _AT_ONCE]) for at in range(0, len(ids), _AT_ONCE))


def _moment(now: datetime) -> str:
    return now.astimezone(UTC).isoformat(timespec="seconds")


async def _in_thread(call: Callable[..., T], *arguments: object, **options: object) -> T:
    return await anyio.to_thread.run_sync(lambda: call(*arguments, **options))
