"""A catalogue of a portal through every door: syncs on the command line, faults, tenants, and
processes that are killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from groundhook import open_host
from groundhook.core.errors import SourceError, UnknownName
from tests.loopback.ckan import Ckan, ckan, package
from tests.loopback.server import Html
from tests.parts.command import run_command, start_command
from tests.tools.catalogue.conftest import NOW, MakeCatalogue, found


@pytest.fixture
def portal() -> Iterator[Ckan]:
    with ckan(40) as server:
        yield server


def groundhook(app: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code, out, err = run_command(
        [*arguments, "--app", str(app)], folder=app, environment={}, stdin=b""
    )
    return subprocess.CompletedProcess(arguments, code, out.decode(), err.decode())


def lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


async def documents(app: Path) -> Mapping[str, set[str]]:
    async with open_host(app, environment={}) as host:
        listed = await host.kb.list_collections()
    return {each.id: {document.document for document in each.documents} for each in listed}


async def test_a_catalogue_that_was_never_synced_says_what_to_do(
    make_catalogue: MakeCatalogue, portal: Ckan
) -> None:
    async with open_host(make_catalogue({"ckan": portal.url}), environment={}, now=NOW) as host:
        for tool, noun in (("searchDatasets", "datasets"), ("searchResources", "resources")):
            result = await found(host, tool, query="figures")
            assert (result["success"], result[noun], result["total"]) == (False, [], 0)
            assert result["message"] == (
                f"No {noun} are indexed yet: a sync is required (groundhook tools sync catalogue)."
                " Last sync: never"
            )
        portal.packages.clear()
        await host.syncs.run("catalogue")
        result = await found(host, "searchDatasets", query="figures")
        assert result["success"] is False
        assert "Last sync: 2026-03-01T00:00:00+00:00; it found no datasets" in result["message"]
    assert not portal.requests or all(each.method == "GET" for each in portal.requests)


async def test_a_portal_is_synced_and_its_addresses_lead_to_it(
    make_catalogue: MakeCatalogue, portal: Ckan
) -> None:
    async with open_host(make_catalogue({"ckan": portal.url}), environment={}, now=NOW) as host:
        report = await host.syncs.run("catalogue")
        assert (report.added, report.known) == (40, 40)
        result = await found(host, "searchDatasets", query="Figures of series 7.")
        first = result["datasets"][0]
        assert first["url"] == f"{portal.url}/dataset/dataset-7"
        assert result["asOf"] == "2026-03-01T00:00:00+00:00"
        files = await found(host, "searchResources", datasetId="dataset-7", format="pdf")
        assert [each["url"] for each in files["resources"]] == ["https://files.example.org/7/1.pdf"]


async def test_a_removed_dataset_takes_its_resources_with_it(
    make_catalogue: MakeCatalogue, portal: Ckan
) -> None:
    async with open_host(make_catalogue({"ckan": portal.url}), environment={}, now=NOW) as host:
        await host.syncs.run("catalogue")
        del portal.packages[package(7)["id"]]
        assert (await host.syncs.run("catalogue")).removed == 1
        assert (await found(host, "searchResources", datasetId="dataset-7"))["total"] == 0
        every = await found(host, "searchResources", format="csv", limit=100)
        assert every["total"] == 39


async def test_what_was_indexed_stays_searchable_through_a_fault(
    make_catalogue: MakeCatalogue, portal: Ckan
) -> None:
    async with open_host(make_catalogue({"ckan": portal.url}), environment={}, now=NOW) as host:
        await host.syncs.run("catalogue")
        portal.faults = [Html()]
        with pytest.raises(SourceError, match="40 datasets of earlier syncs stay searchable"):
            await host.syncs.run("catalogue", full=True)
        result = await found(host, "searchDatasets", query="figures", limit=100)
        assert result["total"] == 40
        status = await host.syncs.status("catalogue")
        assert "answered with HTML" in status.error
        assert status.succeeded_at


async def test_tenants_of_a_private_portal_see_their_own(
    make_catalogue: MakeCatalogue, portal: Ckan
) -> None:
    source = {"ckan": portal.url, "tenant": "north"}
    app = make_catalogue(source, tenant_field="tenant")
    other = json.loads((app / "toolkits/catalogue.toolkit.yao").read_text(encoding="utf-8"))
    other["source"] = {"file": "south.json", "tenant": "south"}
    (app / "toolkits/south.toolkit.yao").write_text(json.dumps(other), encoding="utf-8")
    hidden = {"id": "o2", "name": "secret-office", "title": "Secret Office"}
    theirs = [package(7, title="Southern", organization=hidden), package(100, organization=hidden)]
    (app / "south.json").write_text(json.dumps(theirs), encoding="utf-8")
    async with open_host(app, environment={}, now=NOW) as host:
        for toolkit in ("catalogue", "south"):
            await host.syncs.run(toolkit)

        async def seen(tenant: str, **arguments: Any) -> dict[str, Any]:
            outcome = await host.tool(
                "catalogue.searchDatasets", arguments, identity={"tenant_id": tenant}
            )
            assert outcome.error is None
            result: dict[str, Any] = outcome.result
            return result

        north = await seen("north", query="figures", limit=100, refine=True)
        south = await seen("south", query="figures", limit=100, refine=True)
        assert (north["total"], south["total"]) == (40, 2)
        assert "Southern" not in json.dumps(north)
        assert [each["value"] for each in south["refinements"]["organizations"]] == [
            "secret-office"
        ]
        nearest = await seen("north", organization="secret-offise")
        assert "secret-office" not in nearest["message"]
        nobody = await host.tool("catalogue.searchDatasets", {"query": "figures"})
        assert nobody.result is None
        assert nobody.code == "not_permitted"
        # The same id of two tenants: one is removed, the other stays.
        del portal.packages[package(7)["id"]]
        await host.syncs.run("catalogue", full=True)
        left = await seen("south", organization="secret office", limit=10)
        assert {each["id"] for each in left["datasets"]} == {each["id"] for each in theirs}


def test_the_command_line_syncs_shows_and_fails_with_the_reason(
    make_catalogue: MakeCatalogue, portal: Ckan
) -> None:
    app = make_catalogue({"ckan": portal.url, "retry_ms": 0})
    done = groundhook(app, "tools", "sync", "--json", "--events")
    assert done.returncode == 0, done.stderr
    *steps, last = lines(done)
    assert (last["type"], last["added"], last["mode"]) == ("sync", 40, "full")
    assert {each["type"] for each in steps} == {"sync_progress"}
    assert (steps[-1]["done"], steps[-1]["total"]) == (40, 40)
    portal.faults = [Html()] * 3
    failed = groundhook(app, "tools", "sync", "catalogue")
    assert failed.returncode == 1
    assert "answered with HTML" in failed.stderr
    (status,) = lines(groundhook(app, "tools", "status", "--json"))
    assert (status["records"], status["running"]) == (40, 0)
    assert "answered with HTML" in status["error"]
    synced = datetime.fromisoformat(status["succeeded_at"]).astimezone()
    assert f"{synced:%Y-%m-%d %H:%M}" in groundhook(app, "tools", "status").stdout


async def test_a_toolkit_that_does_not_exist_is_named(
    make_catalogue: MakeCatalogue, portal: Ckan
) -> None:
    async with open_host(make_catalogue({"ckan": portal.url}), environment={}) as host:
        with pytest.raises(UnknownName, match=r"no toolkit 'catalog' \(did you mean 'catalogue'"):
            await host.syncs.run("catalog")


@pytest.mark.timeout(600)
async def test_a_sync_that_is_killed_is_completed_by_the_next(
    make_catalogue: MakeCatalogue, portal: Ckan, request: pytest.FixtureRequest
) -> None:
    """With SIGKILL, at random moments after a random page of the listing was requested."""
    app = make_catalogue({"ckan": portal.url})
    chance = random.Random(7)
    killed = 0
    for round in range(request.config.getoption("--kills")):
        change(portal, chance)
        portal.pages = 0
        killed += _synced_and_killed(app, portal, chance, round)
    portal.touched = lambda _: None
    async with open_host(app, environment={}, now=NOW) as host:
        await host.syncs.run("catalogue", force=True)
        await host.syncs.run("catalogue", full=True, force=True)
    kept = await documents(app)
    assert kept["datasets"] == set(portal.packages)
    assert kept["resources"] == {
        each["id"] for one in portal.packages.values() for each in one["resources"]
    }
    assert killed


def change(portal: Ckan, chance: random.Random) -> None:
    """Some packages are removed, some added, some have another file."""
    for id in chance.sample(sorted(portal.packages), 3):
        del portal.packages[id]
    for number in chance.sample(range(1000), 5):
        portal.add(package(number, metadata_modified="2026-02-20T00:00:00.000000"))
    for id in chance.sample(sorted(portal.packages), 3):
        portal.packages[id]["resources"].pop()
        portal.packages[id]["resources"].append(
            {"id": f"{id}-{chance.random()}", "name": "new", "format": "XML", "url": ""}
        )
        portal.packages[id]["metadata_modified"] = "2026-02-20T00:00:00.000000"


def _synced_and_killed(app: Path, portal: Ckan, chance: random.Random, round: int) -> bool:
    """Run a sync that is killed after a page; return whether it was still running then."""
    at, wait = chance.randrange(1, 6), chance.choice([0, 0.005, 0.02, 0.06])
    process = start_command(
        ["tools", "sync", "--full", "--app", str(app)], folder=app, environment={}
    )

    def kill() -> None:
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.kill(process.pid, signal.SIGKILL)

    def touched(page: int) -> None:
        if page == at:
            threading.Timer(wait, kill).start()

    portal.touched = touched
    with process:
        return process.wait(60) == -signal.SIGKILL
