"""Syncs: what is read, put and removed, and what stays after a fault or the end of a process."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterable
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from groundhook.core.errors import SourceError, SourceMalformed, StorageError, UsageError
from groundhook.core.sync_source import ListedDocuments
from groundhook.core.types.collection_queries import CollectionDocument
from groundhook.core.types.sync import SyncProgress, SyncSettings, SyncStatus
from groundhook.host.sync.engine import SyncEngine
from groundhook.host.sync.lock import alone, holder
from groundhook.host.sync.schedule import keep_synced
from tests.sync.conftest import Clock, Killed, Portal, Shelf


async def test_the_first_sync_puts_everything_and_the_second_nothing(
    engine: SyncEngine, shelf: Shelf, portal: Portal, clock: Clock
) -> None:
    seen: list[SyncProgress] = []
    first = await engine.sync("books", portal, shelf, progress=seen.append)
    assert (first.mode, first.added, first.unchanged, first.known) == ("full", 10, 0, 10)
    assert shelf.kept == portal.documents()
    assert [(each.done, each.total) for each in seen] == [(3, 10), (6, 10), (9, 10), (10, 10)]
    puts, portal.made = shelf.puts, 0
    clock.move(hours=25)
    second = await engine.sync("books", portal, shelf)
    assert (second.mode, second.added, second.changed, second.unchanged) == ("full", 0, 0, 10)
    assert (shelf.puts, portal.made) == (puts, 0)


async def test_only_changes_are_read_within_a_day_of_a_complete_listing(
    engine: SyncEngine, shelf: Shelf, portal: Portal, clock: Clock
) -> None:
    await engine.sync("books", portal, shelf)
    clock.move(hours=6)
    portal.records["b003"] = ("2026-02-01T00:00:00Z", ("p3a", "p3c"))
    portal.records["zzz"] = ("2026-02-01T00:00:00Z", ())
    portal.requests.clear()
    report = await engine.sync("books", portal, shelf)
    assert (report.mode, report.added, report.changed) == ("changes", 1, 1)
    assert all(since for _, since in portal.requests)
    assert shelf.kept == portal.documents()  # p3b is gone with its record's change
    clock.move(hours=19)
    assert (await engine.sync("books", portal, shelf)).mode == "full"


async def test_a_source_that_does_not_prove_its_filter_is_listed_whole(
    engine: SyncEngine, shelf: Shelf, portal: Portal
) -> None:
    await engine.sync("books", portal, shelf)
    portal.proves = False
    assert (await engine.sync("books", portal, shelf)).mode == "full"


async def test_a_record_that_is_gone_takes_its_documents_with_it(
    engine: SyncEngine, shelf: Shelf, portal: Portal
) -> None:
    await engine.sync("books", portal, shelf)
    del portal.records["b004"]
    report = await engine.sync("books", portal, shelf)
    assert (report.mode, report.removed, report.known) == ("full", 1, 9)
    assert shelf.kept == portal.documents()


async def test_too_many_at_once_are_removed_by_force_alone(
    engine: SyncEngine, shelf: Shelf, portal: Portal
) -> None:
    await engine.sync("books", portal, shelf)
    before = dict(shelf.kept)
    for n in range(6):
        del portal.records[f"b00{n}"]
    for _ in range(2):
        with pytest.raises(UsageError, match=r"lists 4 of 10 books.*sync books --force"):
            await engine.sync("books", portal, shelf)
    assert shelf.kept == before
    assert "4 of 10" in (await engine.status("books")).error
    report = await engine.sync("books", portal, shelf, force=True)
    assert report.removed == 6
    assert shelf.kept == portal.documents()
    assert (await engine.status("books")).error == ""


async def test_an_empty_listing_removes_nothing_however_few_there_were(
    engine: SyncEngine, shelf: Shelf, portal: Portal
) -> None:
    portal.records = dict(list(portal.records.items())[:3])
    await engine.sync("books", portal, shelf)
    portal.records.clear()
    with pytest.raises(UsageError, match="lists 0 of 3 books"):
        await engine.sync("books", portal, shelf)
    assert len(shelf.kept) == 9


async def test_a_listing_that_is_not_complete_removes_nothing(
    engine: SyncEngine, shelf: Shelf, portal: Portal
) -> None:
    await engine.sync("books", portal, shelf)
    del portal.records["b000"]
    portal.counts = 12
    with pytest.raises(SourceMalformed, match="counts 12 books and listed 9"):
        await engine.sync("books", portal, shelf)
    assert len(shelf.kept) == 30


async def test_a_record_is_removed_by_the_second_listing_that_lacks_it_if_few_are_missing(
    engine: SyncEngine, shelf: Shelf, portal: Portal
) -> None:
    portal.fill(100)
    portal.dated = False
    await engine.sync("books", portal, shelf)
    del portal.records["b000"]
    portal.counts = 100
    assert (await engine.sync("books", portal, shelf)).removed == 0
    assert ("books", "", "b000") in shelf.kept
    assert (await engine.sync("books", portal, shelf)).removed == 1
    assert shelf.kept == portal.documents()


async def test_a_fault_keeps_what_is_there_and_the_next_sync_goes_on(
    engine: SyncEngine, shelf: Shelf, portal: Portal
) -> None:
    portal.fails_at = 6
    with pytest.raises(SourceError, match="down; 6 books of earlier syncs stay searchable"):
        await engine.sync("books", portal, shelf)
    status = await engine.status("books")
    assert (status.records, status.interrupted, status.succeeded_at) == (6, True, "")
    assert "down" in status.error
    portal.fails_at = -1
    portal.requests.clear()
    report = await engine.sync("books", portal, shelf)
    assert report.resumed
    assert portal.requests[0] == ("6", "")
    assert shelf.kept == portal.documents()
    status = await engine.status("books")
    assert (status.interrupted, status.error, status.records) == (False, "", 10)


async def test_a_process_may_end_at_any_point_and_nothing_is_lost_or_left_over(
    tmp_path: Path, clock: Clock
) -> None:
    """Ended before and after every call to the index, in a first sync and in one of changes."""
    points = 0
    for changes in (False, True):
        at = 0
        while True:
            at += 1
            folder = tmp_path / f"{changes}-{at}"
            folder.mkdir()
            shelf, portal = Shelf(), Portal()
            portal.fill(7)
            if changes:
                await SyncEngine(folder, clock).sync("books", portal, shelf)
                portal.proves = False
                del portal.records["b001"]
                portal.records["b002"] = ("2026-02-01T00:00:00Z", ("p2a", "new"))
                portal.records["c"] = ("2026-02-01T00:00:00Z", ("pc",))
            shelf.calls, shelf.kill_at = 0, at
            try:
                await SyncEngine(folder, clock).sync("books", portal, shelf)
            except Killed:
                points += 1
            else:
                break
            # Between the two a record that was being put is removed from the portal.
            portal.records.pop("c", None)
            portal.records.pop("b006", None)
            shelf.kill_at = 0
            await SyncEngine(folder, clock).sync("books", portal, shelf)
            await SyncEngine(folder, clock).sync("books", portal, shelf, full=True)
            assert shelf.kept == portal.documents(), at
    assert points > 20


async def test_documents_that_the_index_lost_are_put_again(
    engine: SyncEngine, shelf: Shelf, portal: Portal, clock: Clock
) -> None:
    await engine.sync("books", portal, shelf)
    shelf.kept.clear()
    clock.move(hours=25)
    await engine.sync("books", portal, shelf)
    assert shelf.kept == portal.documents()


async def test_a_document_that_cannot_be_added_is_noted_and_tried_again(
    engine: SyncEngine, shelf: Shelf, portal: Portal
) -> None:
    portal.dated = False
    shelf.refuses = {"p3b": "it is empty"}
    report = await engine.sync("books", portal, shelf)
    assert (report.failed, report.notes) == (1, ("b003: it is empty",))
    shelf.refuses = {}
    report = await engine.sync("books", portal, shelf)
    assert (report.failed, report.changed, report.unchanged) == (0, 1, 9)
    assert shelf.kept == portal.documents()


async def test_another_source_is_listed_from_its_beginning(
    engine: SyncEngine, shelf: Shelf, portal: Portal
) -> None:
    await engine.sync("books", portal, shelf)
    portal.identity = "another"
    report = await engine.sync("books", portal, shelf)
    assert (report.mode, report.unchanged) == ("full", 10)


async def test_each_tenant_has_documents_of_its_own(
    engine: SyncEngine, shelf: Shelf, portal: Portal
) -> None:
    one, other = Portal(tenant="one"), Portal(tenant="other")
    one.fill(4)
    other.fill(4)
    await engine.sync("one", one, shelf)
    await engine.sync("other", other, shelf)
    del one.records["b000"]
    await engine.sync("one", one, shelf)
    assert shelf.kept == {**one.documents(), **other.documents()}


async def test_one_sync_of_a_toolkit_runs_at_a_time(
    engine: SyncEngine, shelf: Shelf, portal: Portal, tmp_path: Path
) -> None:
    with alone(tmp_path, "books"):
        assert (await engine.status("books")).running == os.getpid()
        with pytest.raises(StorageError, match=f"running in process {os.getpid()}"):
            await engine.sync("books", portal, shelf)
        await engine.sync("others", portal, shelf)
    assert (await engine.status("books")).running == 0
    await engine.sync("books", portal, shelf)


def test_the_lock_ends_with_its_process(tmp_path: Path) -> None:
    script = (
        "import os, pathlib\nfrom groundhook.host.sync.lock import alone\n"
        f"with alone(pathlib.Path({str(tmp_path)!r}), 'books'): os.kill(os.getpid(), 9)"
    )
    ended = subprocess.run([sys.executable, "-c", script], check=False)
    assert ended.returncode == -9
    assert (tmp_path / "sync.books.lock").read_text(encoding="ascii")
    assert holder(tmp_path, "books") == 0
    with alone(tmp_path, "books"):
        assert holder(tmp_path, "books") == os.getpid()


async def test_the_state_is_readable_by_its_owner_only(
    engine: SyncEngine, shelf: Shelf, portal: Portal, tmp_path: Path
) -> None:
    await engine.sync("books", portal, shelf)
    modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in os.scandir(tmp_path)}
    assert set(modes.values()) == {0o600}
    assert "sync.sqlite" in modes


async def test_a_state_of_a_newer_version_is_refused(
    engine: SyncEngine, shelf: Shelf, portal: Portal, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "sync.sqlite")) as db:
        db.execute("pragma user_version = 99")
    with pytest.raises(StorageError, match="newer version"):
        await engine.sync("books", portal, shelf)


async def test_a_host_that_stays_open_syncs_when_it_is_due_whatever_fails_beside_it(
    clock: Clock,
) -> None:
    synced: list[str] = []
    failed: list[str] = []
    over = anyio.Event()

    async def last(toolkit: str) -> SyncStatus:
        if toolkit == "unreadable":
            raise StorageError("the state is damaged")
        at = clock().isoformat()
        return SyncStatus(toolkit=toolkit, succeeded_at=at if toolkit in synced else "")

    async def sync(toolkit: str) -> None:
        synced.append(toolkit)
        if toolkit == "broken":
            raise SourceError("the portal is down")
        if toolkit == "buggy":
            raise KeyError("id")
        over.set()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            failing = {"broken": 3600, "buggy": 3600, "unreadable": 3600}
            wanted = {**failing, "books": 3600, "never": 0}
            tasks.start_soon(
                partial(
                    keep_synced, wanted, last=last, sync=sync, on_failure=failed.append, now=clock
                )
            )
            await over.wait()
            await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    assert sorted(synced) == ["books", "broken", "buggy"]
    assert sorted(failed) == [
        "the scheduled sync of 'broken' failed: the portal is down",
        "the scheduled sync of 'buggy' failed: KeyError('id')",
        "the scheduled sync of 'unreadable' failed: the state is damaged",
    ]


async def test_documents_of_a_file_are_a_source(engine: SyncEngine, shelf: Shelf) -> None:
    documents = [("books", CollectionDocument(id=str(n), text=f"text {n}")) for n in range(250)]
    source = ListedDocuments("the file 'books.jsonl'", "books", "file", lambda: documents)
    assert (await engine.sync("books", source, shelf)).added == 250
    documents[7] = ("books", CollectionDocument(id="7", text="new"))
    del documents[8]
    report = await engine.sync("books", source, shelf)
    assert (report.changed, report.unchanged, report.removed) == (1, 248, 1)
    assert shelf.kept["books", "", "7"] == "new"


def _books(ids: Iterable[int]) -> ListedDocuments:
    documents = [("books", CollectionDocument(id=str(id), text=f"text {id}")) for id in ids]
    return ListedDocuments("the file 'books.jsonl'", "books", "file", lambda: documents)


async def test_a_file_that_changes_after_an_interruption_is_synchronised_by_the_next_sync(
    engine: SyncEngine, shelf: Shelf
) -> None:
    await engine.sync("books", _books(range(900)), shelf)
    shelf.calls, shelf.kill_at = 0, 5  # each part of 100 unchanged documents is one call
    with pytest.raises(Killed):
        await engine.sync("books", _books(range(900)), shelf)
    shelf.kill_at = 0
    report = await engine.sync("books", _books(range(100, 900)), shelf)
    assert (report.listed, report.removed, report.resumed) == (800, 100, False)
    assert {id for _, _, id in shelf.kept} == {str(id) for id in range(100, 900)}


async def test_of_documents_with_one_id_the_last_is_kept_and_the_report_counts_the_others(
    engine: SyncEngine, shelf: Shelf
) -> None:
    for added in (10, 0):
        report = await engine.sync("books", _books([*range(10), *range(5)]), shelf)
        assert (report.added, report.changed, report.known) == (added, 0, 10)
        assert report.notes == ("books with the id of a later one, left out: 5",)


@pytest.mark.parametrize(
    ("every", "seconds"), [("", 0), ("90s", 90), ("30m", 1800), ("6h", 21600), ("2d", 172800)]
)
def test_every_is_read_as_a_time(every: str, seconds: int) -> None:
    assert SyncSettings(every=every).every_s == seconds


@pytest.mark.parametrize("every", ["6 hours", "0h", "h", "-1d", "1.5h"])
def test_every_refuses_what_is_no_time(every: str) -> None:
    with pytest.raises(ValueError, match="not a time such as"):
        SyncSettings(every=every)
