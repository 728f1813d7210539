"""Columns of files: declared, of a datastore, and from the first line of a CSV file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook import Host, open_host
from groundhook.toolkits.catalogue.columns import declared, header, words
from tests.loopback.ckan import Ckan, package
from tests.loopback.server import Answer, Json, Received, Reply, running
from tests.tools.catalogue.conftest import NOW, MakeCatalogue, found, names


class WithFiles(Ckan):
    """A portal that serves files, and a datastore with one table."""

    def answer(self, received: Received) -> Answer:
        path = urlsplit(received.path).path
        if path == "/stops.csv":
            assert received.headers["range"] == "bytes=0-65535"
            return Reply(b"stopId;Postleitzahl;name\n1;10115;Ost\n", content_type="text/csv")
        if path == "/large.csv":
            return Reply(b"a,b\n" * 40_000, content_type="text/csv")
        if path.endswith("/datastore_search"):
            fields = [{"id": "_id"}, {"id": "tree_species"}, {"id": "height_m"}]
            return Json({"success": True, "result": {"fields": fields, "records": []}})
        return super().answer(received)

    @property
    def read(self) -> list[str]:
        """The files and tables that were requested."""
        paths = (urlsplit(each.path).path.rpartition("/")[2] for each in self.requests)
        return [path for path in paths if path != "package_search"]


@pytest.fixture
def portal() -> Iterator[WithFiles]:
    with running(WithFiles()) as server:
        yield server


def test_columns_are_those_of_a_schema_or_of_a_list() -> None:
    fields = [{"name": "a"}, {"name": " b  c "}, {"name": ""}, {"name": "a"}]
    assert declared({"schema": {"fields": fields}}) == ["a", "b c"]
    assert declared({"schema": json.dumps({"fields": fields})}) == ["a", "b c"]
    assert declared({"columns": ["x", 3, None, "y"]}) == ["x", "y"]
    assert declared({"schema": "no table"}) == declared({}) == []


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("id,name\n1,x\n", ["id", "name"]),
        ('\ufeff"Straße; Nr.";PLZ\r\n', ["Straße; Nr.", "PLZ"]),
        ("תחנה\tקו\n", ["תחנה", "קו"]),
        ("1,2,3\n4,5,6\n", []),
        ("one column\n", []),
        ("", []),
    ],
)
def test_the_first_line_names_the_columns_if_it_is_words(text: str, columns: list[str]) -> None:
    assert header(text.encode()) == columns


@given(st.binary())
def test_whatever_a_file_begins_with_is_columns_or_none(data: bytes) -> None:
    assert all(column.strip() and len(column) <= 100 for column in header(data))


def test_names_of_columns_become_words() -> None:
    assert words(["postal_code", "stopId", "pm2.5", "_"]) == "postal code, stop Id, pm2 5"


async def test_a_file_is_found_by_a_column_that_its_package_declares(sample: Host) -> None:
    result = await found(sample, "searchResources", query="which file has the postal code of flats")
    first = result["resources"][0]
    assert first["datasetTitle"] == "Building permits"
    assert "postal_code" in first["columns"]


async def test_columns_of_a_portal_are_read_once_where_they_are_switched_on(
    make_catalogue: MakeCatalogue, portal: WithFiles
) -> None:
    portal.add(
        package(
            1,
            resources=[
                {"id": "stops", "name": "Stops", "format": "CSV", "url": f"{portal.url}/stops.csv"},
                {"id": "large", "name": "Large", "format": "CSV", "url": f"{portal.url}/large.csv"},
                {"id": "gone", "name": "Gone", "format": "CSV", "url": f"{portal.url}/gone.csv"},
                {"id": "far", "name": "Far", "format": "CSV", "url": "https://else.example/x.csv"},
                {"id": "trees", "name": "Trees", "format": "CSV", "datastore_active": True},
            ],
        )
    )
    app = make_catalogue({"ckan": portal.url, "columns": True})
    async with open_host(app, environment={}, now=NOW) as host:
        assert (await host.syncs.run("catalogue")).added == 1
        assert sorted(portal.read) == ["datastore_search", "gone.csv", "large.csv", "stops.csv"]
        every = await found(host, "searchResources", format="csv")
        columns = {each["id"]: each["columns"] for each in every["resources"]}
        assert columns == {
            "stops": ["stopId", "Postleitzahl", "name"],
            "large": [],
            "gone": [],
            "far": [],
            "trees": ["tree_species", "height_m"],
        }
        assert names(await found(host, "searchResources", query="tree species"))[0] == "Trees"
        await host.syncs.run("catalogue", force=True)
        assert len(portal.read) == 4, "an unchanged dataset reads nothing"


async def test_columns_of_a_portal_are_not_read_otherwise(
    make_catalogue: MakeCatalogue, portal: WithFiles
) -> None:
    file = {"id": "stops", "name": "Stops", "format": "CSV", "url": f"{portal.url}/stops.csv"}
    portal.add(package(1, resources=[file]))
    async with open_host(make_catalogue({"ckan": portal.url}), environment={}, now=NOW) as host:
        await host.syncs.run("catalogue")
    assert portal.read == []
