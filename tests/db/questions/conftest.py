"""A record shop with the traps of real tables: values that are spelled like words of the language,
a name of two fields, a duration in milliseconds, two dates, related records."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.database import open_database
from tests.db.conftest import Shop


def _column(name: str, type: str = "string", label: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type, "label": label, "nullable": True, **more}


def _belongs(model: str, foreign: str) -> dict[str, str]:
    return {"type": "hasOne", "model": model, "key": "id", "foreign": foreign}


def _has(model: str, key: str) -> dict[str, str]:
    return {"type": "hasMany", "model": model, "key": key, "foreign": "id"}


def _model(id: str, name: str, columns: list[dict[str, Any]], **more: Any) -> ModelSpec:
    whole = {"id": id, "name": name, "table": {"name": f"record_{id}"}, **more}
    return ModelSpec.model_validate({**whole, "columns": [_column("id", "ID"), *columns]})


MODELS = {
    "artist": _model(
        "artist",
        "Artist",
        [_column("Name"), _column("country", label="Country", comment="Land")],
        relations={"albums": _has("album", "artist_id")},
        values=[
            {"id": 1, "Name": "Metallica", "country": "US"},
            {"id": 2, "Name": "Iron Maiden", "country": "UK"},
            {"id": 3, "Name": "AC/DC", "country": "AU"},
            {"id": 4, "Name": "Nobody", "country": "IT"},
        ],
    ),
    "album": _model(
        "album",
        "Album",
        [
            _column("Title"),
            _column("artist_id", "integer"),
            _column("genre", label="Genre"),
            _column("released", "date", "Released"),
            _column("planned", "integer", "Planned", comment="planned tracks"),
        ],
        table={"name": "record_album", "comment": "Alben, אלבומים"},
        relations={"artist": _belongs("artist", "artist_id"), "tracks": _has("track", "album_id")},
        values=[
            {
                "id": 1,
                "Title": "Iron Maiden",
                "artist_id": 2,
                "genre": "Metal",
                "released": "1980-04-14",
                "planned": 8,
            },
            {
                "id": 2,
                "Title": "Powerslave",
                "artist_id": 2,
                "genre": "Metal",
                "released": "1984-09-03",
                "planned": 8,
            },
            {
                "id": 3,
                "Title": "Black Album",
                "artist_id": 1,
                "genre": "Metal",
                "released": "1991-08-12",
                "planned": 12,
            },
            {
                "id": 4,
                "Title": "Powerage",
                "artist_id": 3,
                "genre": "Rock",
                "released": "1978-05-05",
                "planned": 9,
            },
        ],
    ),
    "track": _model(
        "track",
        "Track",
        [
            _column("Name", comment="song"),
            _column("album_id", "integer"),
            _column("Milliseconds", "integer", "Milliseconds"),
            _column("price", "decimal", "Price", precision=6, scale=2),
        ],
        relations={"album": _belongs("album", "album_id")},
        values=[
            {"id": 1, "Name": "Prowler", "album_id": 1, "Milliseconds": 235_000, "price": 0.99},
            {"id": 2, "Name": "Rime", "album_id": 2, "Milliseconds": 1_300_000, "price": 1.99},
            {"id": 3, "Name": "Sandman", "album_id": 3, "Milliseconds": 331_000, "price": 0.99},
        ],
    ),
    "employee": _model(
        "employee",
        "Employee",
        [
            _column("FirstName"),
            _column("LastName"),
            _column("department", label="Department"),
            _column("born", "date", "Born"),
            _column("hired_on", "date", "Hired"),
            _column("active", label="Active"),
            _column("phone", label="Phone"),
            _column("manager_id", "integer", "Manager"),
        ],
        relations={"manager": _belongs("employee", "manager_id")},
        values=[
            {
                "id": 1,
                "FirstName": "April",
                "LastName": "Best",
                "department": "IT",
                "born": "1990-02-01",
                "hired_on": "2020-05-01",
                "active": "Y",
                "phone": "1",
            },
            {
                "id": 2,
                "FirstName": "Luís",
                "LastName": "Gonçalves",
                "department": "Sales",
                "born": "1955-02-01",
                "hired_on": "2021-04-01",
                "active": "N",
                "phone": None,
                "manager_id": 1,
            },
            {
                "id": 3,
                "FirstName": "Luis",
                "LastName": "Rojas",
                "department": "IT",
                "born": "1980-02-01",
                "hired_on": "2021-06-01",
                "active": "Y",
                "phone": "",
                "manager_id": 1,
            },
            {
                "id": 4,
                "FirstName": "Nancy",
                "LastName": "Edwards",
                "department": "OR",
                "born": "1985-02-01",
                "hired_on": "2022-06-01",
                "active": "Y",
                "phone": "4",
                "manager_id": 3,
            },
        ],
    ),
}


@pytest.fixture(scope="session")
async def records_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("records") / "records.db"
    async with open_database(f"sqlite:///{path}", 60_000, MODELS) as database:
        await database.load()
    return path


@pytest.fixture
async def records(records_file: Path) -> AsyncIterator[Shop]:
    """The record shop, read through a database."""
    async with open_database(f"sqlite:///{records_file}", 60_000, MODELS) as database:
        yield Shop(database, f"sqlite:///{records_file}")
