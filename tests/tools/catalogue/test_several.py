"""Several portals in one catalogue: each dataset once, however many portals have it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from groundhook import open_host
from groundhook.toolkits.catalogue.several import keys_of
from tests.loopback.ckan import Ckan, ckan, package
from tests.loopback.server import Html
from tests.tools.catalogue.conftest import NOW, MakeCatalogue, found


@pytest.fixture
def city() -> Iterator[Ckan]:
    with ckan(20) as server:
        yield server


@pytest.fixture
def nation() -> Iterator[Ckan]:
    """A portal that harvested ten datasets of the city's under ids of its own, and has five."""
    with ckan() as server:
        for number in range(10):
            copied = {**package(number), "id": f"copy-{number}", "name": f"copy-{number}"}
            server.add(copied)
        for number in range(100, 105):
            server.add(package(number))
        yield server


async def urls(host: Any) -> list[str]:
    result = await found(host, "searchDatasets", organization="statistics", limit=100)
    assert result["total"] == len(result["datasets"])
    return [each["url"] for each in result["datasets"]]


async def test_a_dataset_of_two_portals_is_that_of_the_first(
    make_catalogue: MakeCatalogue, city: Ckan, nation: Ckan
) -> None:
    app = make_catalogue([{"ckan": city.url}, {"ckan": nation.url}])
    async with open_host(app, environment={}, now=NOW) as host:
        report = await host.syncs.run("catalogue")
        assert (report.added, report.known, report.folded) == (25, 25, 10)
        assert report.notes == ()
        listed = await urls(host)
        assert sum(url.startswith(city.url) for url in listed) == 20
        assert sum(url.startswith(nation.url) for url in listed) == 5
        again = await host.syncs.run("catalogue")
        assert (again.unchanged, again.added, again.removed) == (25, 0, 0)
        del city.packages[package(3)["id"]]
        moved = await host.syncs.run("catalogue")
        assert (moved.added, moved.removed) == (1, 1), "now it is the nation's"
        assert f"{nation.url}/dataset/copy-3" in await urls(host)


async def test_a_dataset_with_an_impossible_address_and_date_ends_no_sync(
    make_catalogue: MakeCatalogue, nation: Ckan
) -> None:
    files = [{"id": "odd", "url": "http://[to be announced]/x.csv", "format": "CSV"}]
    wrong = {"metadata_modified": "0001-01-01T00:00:00+14:00", "resources": files}
    nation.packages.clear()
    nation.add({**package(1), **wrong})
    app = make_catalogue({"ckan": nation.url, "columns": True})
    async with open_host(app, environment={}, now=NOW) as host:
        assert (await host.syncs.run("catalogue")).added == 1
        result = await found(host, "searchResources", format="csv")
    assert [each["url"] for each in result["resources"]] == [files[0]["url"]]


async def test_a_portal_that_fails_removes_nothing_and_the_next_sync_puts_the_rest(
    make_catalogue: MakeCatalogue, city: Ckan, nation: Ckan
) -> None:
    app = make_catalogue([{"ckan": city.url}, {"ckan": nation.url}])
    nation.faults = [Html()]
    async with open_host(app, environment={}, now=NOW) as host:
        with pytest.raises(Exception, match="answered with HTML"):
            await host.syncs.run("catalogue")
        assert len(await urls(host)) == 20
    async with open_host(app, environment={}, now=NOW) as host:
        report = await host.syncs.run("catalogue")
        assert (report.unchanged, report.known) == (20, 25)
        assert len(await urls(host)) == 25


def write(app: Path, **files: Sequence[Mapping[str, Any]]) -> None:
    for name, packages in files.items():
        (app / f"{name}.json").write_text(json.dumps(packages), encoding="utf-8")


async def addresses(host: Any, tenant: str = "") -> dict[str, str]:
    """The addresses of files by id, as a tenant finds them."""
    identity = {"tenant_id": tenant} if tenant else {}
    arguments = {"query": "file of figures", "limit": 100}
    outcome = await host.tool("catalogue.searchResources", arguments, identity=identity)
    assert outcome.error is None
    return {each["id"]: each["url"] for each in outcome.result["resources"]}


def with_file(number: int, id: str, url: str) -> dict[str, Any]:
    return package(number, resources=[{"id": id, "name": "File", "format": "CSV", "url": url}])


async def test_a_file_of_packages_that_changes_after_an_interruption_is_synchronised_next(
    make_catalogue: MakeCatalogue, nation: Ckan
) -> None:
    """The second source fails while the first one, a file, has been read."""
    app = make_catalogue([{"file": "own.json"}, {"ckan": nation.url}])
    file = app / "own.json"

    def write(numbers: Iterable[int]) -> None:
        packages = [package(number) for number in numbers]
        file.write_text(json.dumps([*packages, *packages[-4:]]), encoding="utf-8")

    write(range(200, 260))
    async with open_host(app, environment={}, now=NOW) as host:
        await host.syncs.run("catalogue")
        nation.faults = [Html()]
        with pytest.raises(Exception, match="answered with HTML"):
            await host.syncs.run("catalogue")
    write([*range(205, 260), 300])
    async with open_host(app, environment={}, now=NOW) as host:
        report = await host.syncs.run("catalogue")
        assert (report.known, report.removed) == (71, 5)


async def test_each_tenant_has_the_dataset_that_portals_of_several_tenants_have(
    make_catalogue: MakeCatalogue,
) -> None:
    names = ("north", "south")
    sources = [{"file": f"{name}.json", "tenant": name} for name in names]
    app = make_catalogue([*sources, {"file": "more.json", "tenant": "south"}], tenant_field="at")
    same = package(1, identifier="i-1")
    north = [with_file(0, "f", "https://north.example/f"), same]
    south = [with_file(0, "f", "https://south.example/f"), {**same, "id": "own"}]
    write(app, north=north, south=south, more=south)
    async with open_host(app, environment={}, now=NOW) as host:
        report = await host.syncs.run("catalogue")
        assert (report.added, report.known, report.folded, report.notes) == (4, 4, 2, ())
        for name in names:
            found = await addresses(host, name)
            assert found["f"] == f"https://{name}.example/f"
            assert len(found) == 3
        again = await host.syncs.run("catalogue")
        assert (again.unchanged, again.added, again.changed, again.removed) == (4, 0, 0, 0)
        write(app, north=north[1:])
        assert (await host.syncs.run("catalogue")).known == 3
        await host.syncs.run("catalogue")
        assert "f" not in await addresses(host, "north")
        assert (await addresses(host, "south"))["f"] == "https://south.example/f"


async def test_a_later_portal_cannot_replace_a_file_of_an_earlier_one(
    make_catalogue: MakeCatalogue,
) -> None:
    app = make_catalogue([{"file": "first.json"}, {"file": "later.json"}])
    own, other = "https://first.example/f", "https://later.example/f"
    first, later = with_file(1, "f", own), with_file(2, "f", other)
    write(app, first=[first, package(3)], later=[later])
    both = {"f": own, f"{later['id']}:f": other}

    async def files(host: Any) -> dict[str, str]:
        found = await addresses(host)
        return {id: url for id, url in found.items() if url in (own, other)}

    async with open_host(app, environment={}, now=NOW) as host:
        report = await host.syncs.run("catalogue")
        assert report.notes == (
            "files whose id belongs to a file of an earlier dataset: 1;"
            " the id of their dataset is put before it",
        )
        for full in (False, True):
            assert await files(host) == both
            again = await host.syncs.run("catalogue", full=full)
            assert (again.added, again.unchanged) == (0, 0 if full else 3)
        # The first portal no longer has it, and has it again: no sync loses either file.
        write(app, first=[package(3)])
        assert (await host.syncs.run("catalogue")).notes == ()
        assert await files(host) == {"f": other}
        write(app, first=[first, package(3)])
        for _ in range(2):
            await host.syncs.run("catalogue")
            assert await files(host) == both
        assert (await host.syncs.run("catalogue")).unchanged == 3


async def test_files_of_one_source_that_share_an_id_are_all_found(
    make_catalogue: MakeCatalogue,
) -> None:
    app = make_catalogue({"file": "packages.json"})
    first, second = (
        with_file(1, "f", "https://x.example/1"),
        with_file(2, "f", "https://x.example/2"),
    )
    again = {**first["resources"][0], "url": "https://x.example/again"}
    first["resources"] = [*first["resources"], again]
    write(app, packages=[first, second])
    async with open_host(app, environment={}, now=NOW) as host:
        report = await host.syncs.run("catalogue")
        assert (report.added, report.failed, len(report.notes)) == (2, 0, 1)
        found = await addresses(host)
        assert found["f"] == "https://x.example/1"
        assert found[f"{first['id']}:f"] == "https://x.example/again"
        assert found[f"{second['id']}:f"] == "https://x.example/2"
        assert (await host.syncs.run("catalogue")).unchanged == 2


def test_a_package_is_recognised_by_its_id_its_identifier_or_its_files() -> None:
    own = package(1)
    assert not keys_of(own) & keys_of(package(2))
    assert keys_of(own) & keys_of({**own, "title": "Other", "resources": []})
    assert keys_of(own) & keys_of({**own, "id": "x"})
    assert not keys_of(own) & keys_of({**own, "id": "x", "organization": {"title": "Other"}})
    guid = {"extras": [{"key": "guid", "value": "u-1"}], "resources": []}
    assert keys_of({**own, **guid}) & keys_of({"id": "x", "identifier": "u-1"})
    odd = {"id": "x", "extras": "no", "resources": [3], "organization": 1, "title": 2}
    assert keys_of(odd) == {"id x"}
