"""Reading a CKAN portal: no package is lost or read for nothing, and each fault has its message."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from groundhook.core.errors import SourceError, UsageError
from groundhook.core.types.sync import SyncReport, SyncSettings
from groundhook.host.sync.engine import SyncEngine
from groundhook.host.web_client.clients import open_web_clients
from groundhook.toolkits.catalogue.ckan import Portal
from groundhook.toolkits.catalogue.kit import PortalSource
from groundhook.toolkits.catalogue.packages import PackageReader
from groundhook.toolkits.catalogue.settings import CatalogueCollections, CatalogueSource
from tests.loopback.ckan import Ckan, ckan, package
from tests.loopback.server import Answer, Cut, Html, Json, Reply
from tests.sync.conftest import Clock, Shelf

SHOWN = "assistants/x/toolkits/catalogue.toolkit.yao"


@pytest.fixture
def portal() -> Iterator[Ckan]:
    with ckan(23) as server:
        yield server


@pytest.fixture
def clock() -> Clock:
    return Clock()


@asynccontextmanager
async def reading(
    server: Ckan, clock: Clock, *, page: int = 5, key: str = ""
) -> AsyncIterator[PortalSource]:
    async with open_web_clients() as clients:
        given = CatalogueSource.model_validate({"ckan": server.url, "retry_ms": 0, "key": key})
        settings = SyncSettings(page=page)
        portal = Portal(given, page, clients.of, clock, SHOWN)
        reader = PackageReader(collections=CatalogueCollections(), portal=portal.base)
        yield PortalSource(portal, reader, settings)


async def synced(
    server: Ckan, folder: Path, shelf: Shelf, clock: Clock, *, page: int = 5, key: str = ""
) -> SyncReport:
    async with reading(server, clock, page=page, key=key) as portal:
        return await SyncEngine(folder, clock).sync("catalogue", portal, shelf)


def datasets(shelf: Shelf) -> set[str]:
    return {id for collection, _, id in shelf.kept if collection == "datasets"}


async def test_every_package_is_read_once(portal: Ckan, tmp_path: Path, clock: Clock) -> None:
    shelf = Shelf()
    report = await synced(portal, tmp_path, shelf, clock)
    assert (report.mode, report.added, report.changed) == ("full", 23, 0)
    assert datasets(shelf) == set(portal.packages)
    assert len(shelf.kept) == 3 * 23
    pages = [query for query in portal.searches if query["rows"] == "5"]
    assert {query["sort"] for query in pages} == {"id asc"}
    # Each page begins with the last package of the one before.
    assert [int(query["start"]) for query in pages] == [0, 4, 8, 12, 16, 20]
    assert not any("private" in query or "draft" in query for query in map(str, portal.searches))


@pytest.mark.parametrize("most", [1, 2, 3])
async def test_a_portal_that_sends_fewer_rows_than_requested_is_read_whole(
    portal: Ckan, tmp_path: Path, clock: Clock, most: int
) -> None:
    portal.most_rows = most
    shelf = Shelf()
    await synced(portal, tmp_path, shelf, clock)
    assert datasets(shelf) == set(portal.packages)


async def test_packages_removed_while_the_list_is_read_hide_no_others(
    portal: Ckan, tmp_path: Path, clock: Clock
) -> None:
    def remove_earlier(page: int) -> None:
        if page == 3:
            for id in sorted(portal.packages)[:7]:
                del portal.packages[id]

    portal.touched = remove_earlier
    shelf = Shelf()
    await synced(portal, tmp_path, shelf, clock)
    assert set(portal.packages) <= datasets(shelf)
    portal.touched = lambda _: None
    clock.move(hours=25)
    async with reading(portal, clock) as source:
        report = await SyncEngine(tmp_path, clock).sync("catalogue", source, shelf, force=True)
    assert (report.removed, datasets(shelf)) == (7, set(portal.packages))


async def test_packages_changed_while_the_list_is_read_are_read_by_the_next_sync(
    portal: Ckan, tmp_path: Path, clock: Clock
) -> None:
    first = min(portal.packages)

    def change(page: int) -> None:
        if page == 3:
            portal.packages[first] |= {
                "title": "New",
                "metadata_modified": "2026-02-02T00:00:00.000000",
            }
            portal.add(package(0, id="0000", metadata_modified="2026-02-02T00:00:00.000000"))

    portal.touched = change
    shelf = Shelf()
    await synced(portal, tmp_path, shelf, clock)
    assert "0000" not in datasets(shelf)
    portal.touched = lambda _: None
    report = await synced(portal, tmp_path, shelf, clock)
    assert (report.mode, report.added, report.changed) == ("changes", 1, 1)
    assert "New" in shelf.kept["datasets", "", first]


@pytest.mark.parametrize("refuses", [{"id"}, {"id", "name"}])
async def test_a_portal_that_cannot_sort_by_id_is_read_another_way(
    portal: Ckan, tmp_path: Path, clock: Clock, refuses: set[str]
) -> None:
    portal.refuses = refuses
    shelf = Shelf()
    await synced(portal, tmp_path, shelf, clock)
    assert datasets(shelf) == set(portal.packages)
    last = portal.searches[-1]
    assert last.get("sort", "") == ("" if "name" in refuses else "name asc")


async def test_a_portal_that_ignores_the_sort_is_read_with_overlaps(
    portal: Ckan, tmp_path: Path, clock: Clock
) -> None:
    portal.ignores_sort = True
    shelf = Shelf()
    await synced(portal, tmp_path, shelf, clock, page=8)
    assert datasets(shelf) == set(portal.packages)


async def test_a_change_is_read_alone_once_the_portal_has_proved_its_filter(
    portal: Ckan, tmp_path: Path, clock: Clock
) -> None:
    portal.add(package(7, metadata_modified="2026-01-15T00:00:22.000000"))
    shelf = Shelf()
    await synced(portal, tmp_path, shelf, clock)
    portal.add(package(5, title="Changed", metadata_modified="2026-02-01T10:00:00.000000"))
    portal.requests.clear()
    report = await synced(portal, tmp_path, shelf, clock)
    assert (report.mode, report.listed, report.changed, report.unchanged) == ("changes", 2, 1, 1)
    probes = [query.get("fq", "") for query in portal.searches if query["rows"] == "0"]
    assert probes == [
        "",
        "metadata_modified:[1900-01-01T00:00:00Z TO *]",
        "metadata_modified:[9999-01-01T00:00:00Z TO *]",
    ]
    since = datetime(2026, 1, 15, 0, 0, 22, tzinfo=UTC) - timedelta(hours=1)
    assert portal.searches[-1]["fq"] == f"metadata_modified:[{since:%Y-%m-%dT%H:%M:%SZ} TO *]"


@pytest.mark.parametrize("lie", ["drops", "answers 0", "answers all"])
async def test_a_filter_that_a_proxy_drops_is_not_trusted(
    portal: Ckan, tmp_path: Path, clock: Clock, lie: str
) -> None:
    shelf = Shelf()
    await synced(portal, tmp_path, shelf, clock)
    portal.drops_filter = lie == "drops"
    portal.answers_filter_with = {"answers 0": 0, "answers all": 23}.get(lie)
    portal.add(package(5, title="Changed", metadata_modified="2026-02-01T10:00:00.000000"))
    report = await synced(portal, tmp_path, shelf, clock)
    assert (report.mode, report.changed) == ("full", 1)


async def test_a_package_removed_between_two_syncs_brings_a_complete_listing(
    portal: Ckan, tmp_path: Path, clock: Clock
) -> None:
    shelf = Shelf()
    await synced(portal, tmp_path, shelf, clock)
    gone = portal.packages.popitem()[0]
    report = await synced(portal, tmp_path, shelf, clock)
    assert (report.mode, report.removed) == ("full", 1)
    assert not any(gone in id for _, _, id in shelf.kept)  # with its resources


async def test_a_change_dated_in_the_future_does_not_hide_the_next_ones(
    portal: Ckan, tmp_path: Path, clock: Clock
) -> None:
    portal.add(package(90, metadata_modified="2099-01-01T00:00:00.000000"))
    shelf = Shelf()
    await synced(portal, tmp_path, shelf, clock)
    portal.add(package(5, title="Changed", metadata_modified="2026-03-01T10:00:00.000000"))
    clock.move(hours=12)
    report = await synced(portal, tmp_path, shelf, clock)
    assert (report.mode, report.changed) == ("changes", 1)


async def test_private_deleted_and_draft_packages_are_left_out(
    portal: Ckan, tmp_path: Path, clock: Clock
) -> None:
    hidden: list[dict[str, Any]] = [{"private": True}, {"state": "deleted"}, {"state": "draft"}]
    for number, more in enumerate(hidden):
        portal.add(package(number, **more))
    shelf = Shelf()
    report = await synced(portal, tmp_path, shelf, clock)
    assert (report.added, report.known) == (20, 20)
    assert not datasets(shelf) & {package(number)["id"] for number in range(3)}


FAULTS: dict[str, tuple[Answer, str]] = {
    "html": (Html(), r"answered with HTML, not JSON \(a login or a bot check\?\)"),
    "html as json": (
        Reply(b"\n<!doctype html>"),
        "answered with HTML",
    ),
    "success false": (
        Json({"success": False, "error": {"__type": "Solr Error", "message": "is down"}}),
        "refused the request: Solr Error: is down",
    ),
    "forbidden": (Json({"success": False}, 403), r"it wants a key \(403\).*source.key in .*yao"),
    "cut": (Cut(b'{"success": true, "result": {"cou'), "cut off or not JSON"),
    "half": (Reply(b'{"success": true, "res'), "cut off or not JSON"),
    "gone": (Cut(), "cut off or not JSON|could not be reached"),
    "shape": (Json({"success": True, "result": {"count": "23"}}), "without a count and a list"),
    "no api": (Json({"detail": "Not found"}, 404), r"no CKAN API.*source\.ckan in"),
    "broken": (Json({}, 503), r"failed \(503\)"),
    "busy": (Json({}, 429), r"wants fewer requests \(429\)"),
    "early end": (
        Json({"success": True, "result": {"count": 23, "results": []}}),
        "ended its list early: [0-9]+ of 23 datasets",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_has_its_message_and_leaves_the_index_as_it_was(
    portal: Ckan, tmp_path: Path, clock: Clock, fault: str
) -> None:
    shelf = Shelf()
    await synced(portal, tmp_path, shelf, clock)
    before = dict(shelf.kept)
    answer, message = FAULTS[fault]
    clock.move(hours=25)
    portal.pages, portal.fault_from_page, portal.faults = 0, 2, [answer] * 3
    with pytest.raises(SourceError, match=message) as caught:
        await synced(portal, tmp_path, shelf, clock)
    assert "23 datasets of earlier syncs stay searchable" in str(caught.value)
    assert "the CKAN portal '127.0.0.1'" in str(caught.value)
    assert shelf.kept == before
    portal.faults = []
    report = await synced(portal, tmp_path, shelf, clock)
    assert (report.resumed, report.listed, report.known) == (True, 23, 23)
    assert (report.added, report.changed, report.removed) == (0, 0, 0)


@pytest.mark.parametrize(
    "fault", [Json({}, 503), Json({}, 429, retry_after="0"), Cut(b"{"), Json({}, 502)]
)
async def test_a_fault_that_passes_is_retried(
    portal: Ckan, tmp_path: Path, clock: Clock, fault: Answer
) -> None:
    portal.fault_from_page, portal.faults = 1, [fault, fault]
    shelf = Shelf()
    assert (await synced(portal, tmp_path, shelf, clock)).added == 23


async def test_a_portal_that_wants_a_long_pause_is_left_alone(
    portal: Ckan, tmp_path: Path, clock: Clock
) -> None:
    portal.faults = [Json({}, 429, retry_after="3600")]
    with pytest.raises(SourceError, match="asks to wait 3,600 seconds"):
        await synced(portal, tmp_path, Shelf(), clock)
    assert len(portal.requests) == 1


async def test_a_portal_that_is_suddenly_empty_keeps_the_index(
    portal: Ckan, tmp_path: Path, clock: Clock
) -> None:
    shelf = Shelf()
    await synced(portal, tmp_path, shelf, clock)
    portal.packages.clear()
    with pytest.raises(UsageError, match="lists 0 of 23 datasets"):
        await synced(portal, tmp_path, shelf, clock)
    assert len(shelf.kept) == 69


async def test_the_key_is_sent_and_shown_nowhere(
    portal: Ckan, tmp_path: Path, clock: Clock
) -> None:
    portal.key = "s3cret-of-the-portal"
    shelf = Shelf()
    assert (await synced(portal, tmp_path, shelf, clock, key=portal.key)).added == 23
    with pytest.raises(SourceError, match=r"refused the key \(403\)") as caught:
        await synced(portal, tmp_path, shelf, clock, key="wrong-s3cret")
    assert "s3cret" not in str(caught.value)
    assert _files_with(tmp_path, b"s3cret") == []


def _files_with(folder: Path, text: bytes) -> list[str]:
    return [file.name for file in folder.iterdir() if text in file.read_bytes()]


async def test_what_differs_by_request_is_no_change(
    portal: Ckan, tmp_path: Path, clock: Clock
) -> None:
    shelf = Shelf()
    await synced(portal, tmp_path, shelf, clock)
    for each in portal.packages.values():
        each["tracking_summary"] = {"total": 7, "recent": 1}
    clock.move(hours=25)
    assert (await synced(portal, tmp_path, shelf, clock)).unchanged == 23


async def test_a_checkpoint_is_readable_by_the_reader_that_wrote_it(
    portal: Ckan, clock: Clock
) -> None:
    async with reading(portal, clock) as source:
        first = await source.read("", "")
        assert json.loads(first.position)["start"] == 5
        second = await source.read(first.position, "")
        assert second.records[0].id == first.records[-1].id
