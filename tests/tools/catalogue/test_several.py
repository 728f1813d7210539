"""Several portals in one catalogue: each dataset once, however many portals have it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from groundhook import open_host
from groundhook.handlers.tools.catalogue.several import keys_of
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
        assert (report.added, report.known) == (25, 25)
        listed = await urls(host)
        assert sum(url.startswith(city.url) for url in listed) == 20
        assert sum(url.startswith(nation.url) for url in listed) == 5
        again = await host.syncs.run("catalogue")
        assert (again.unchanged, again.added, again.removed) == (25, 0, 0)
        del city.packages[package(3)["id"]]
        moved = await host.syncs.run("catalogue")
        assert (moved.added, moved.removed) == (1, 1), "now it is the nation's"
        assert f"{nation.url}/dataset/copy-3" in await urls(host)


async def test_a_portal_that_fails_removes_nothing_and_the_next_sync_goes_on(
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
        assert (report.resumed, report.known) == (True, 25)
        assert len(await urls(host)) == 25


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
