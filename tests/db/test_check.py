"""`groundhook db check`: differences between models and tables, on every engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db import store
from groundhook.handlers.db.database import open_database
from groundhook.handlers.db.engines.engine import engine_for
from tests.db.conftest import Fresh, Shop

EVERYTHING = {"timestamps": True, "soft_deletes": True, "permission": True}


async def differences(url: str, spec: ModelSpec) -> list[tuple[str, str]]:
    async with open_database(url, 20_000, {"note": spec}) as database:
        return [(each.column, each.aspect) for each in (await database.check())[1]]


async def test_loaded_tables_have_no_differences(
    fresh_database: Fresh, spec: Callable[..., ModelSpec]
) -> None:
    columns = [column.model_dump() for column in spec().columns]
    columns += [
        {"name": "code", "type": "char", "length": 8, "unique": True},
        {"name": "token", "type": "uuid", "index": True},
        {"name": "size", "type": "float", "index": True},
        {"name": "weight", "type": "double", "nullable": True},
        {"name": "views", "type": "bigInteger"},
        {"name": "rank", "type": "smallInteger"},
        {"name": "prose", "type": "longText"},
        {"name": "at", "type": "timestamp"},
    ]
    model = spec(
        columns=columns,
        option=EVERYTHING,
        indexes=[{"name": "by_kind", "columns": ["kind", "done"]}],
    )
    url = await fresh_database()
    async with open_database(url, 20_000, {"note": model}) as database:
        await database.load()
        await database.load()
    assert await differences(url, model) == []


async def test_every_difference_is_reported(
    fresh_database: Fresh, kind: str, spec: Callable[..., ModelSpec]
) -> None:
    url = await fresh_database()
    engine = engine_for(url, timeout_ms=20_000, connections=1, result_kb=100)
    option = {
        "mariadb": "ENUM('memo', 'telegram') NOT NULL",
        "postgresql": "kinds NOT NULL",
        "sqlite": "VARCHAR(20) NOT NULL",
    }[kind]

    def make(connection: sa.Connection) -> None:
        if kind == "postgresql":
            connection.exec_driver_sql("CREATE TYPE kinds AS ENUM ('memo', 'telegram')")
        connection.exec_driver_sql(
            "CREATE TABLE note (id INTEGER NOT NULL, title VARCHAR(20), body INTEGER, pages"
            f" VARCHAR(5), price NUMERIC(10, 2), kind {option} NOT NULL, done DATE NOT NULL, seen"
            " TIMESTAMP NULL, other INTEGER)"
        )

    await engine.write(make)
    await engine.close()
    model = spec(
        columns=[
            {**column.model_dump(), "index": column.name == "price"} for column in spec().columns
        ]
    )
    assert await differences(url, model) == [
        ("title", "nullable"),
        ("body", "type"),
        ("pages", "type"),
        *([("kind", "options")] if kind != "sqlite" else []),
        ("done", "type"),
        ("due", "column"),
        ("extra", "column"),
        ("id", "primary key"),
        ("price", "index"),
    ]
    async with open_database(url, 20_000, {"note": spec(table={"name": "elsewhere"})}) as database:
        shown, (only,) = await database.check()
    assert (only.aspect, "groundhook db load" in only.says) == ("table", True)
    assert kind in shown or kind == "sqlite"


async def test_an_enum_type_of_a_database_can_be_searched(
    fresh_database: Fresh, kind: str, spec: Callable[..., ModelSpec]
) -> None:
    url = await fresh_database()
    own = {"mariadb": "ENUM('memo', 'letter')", "postgresql": "kinds", "sqlite": "VARCHAR(20)"}[
        kind
    ]

    def make(connection: sa.Connection) -> None:
        if kind == "postgresql":
            connection.exec_driver_sql("CREATE TYPE kinds AS ENUM ('memo', 'letter')")
        connection.exec_driver_sql(
            f"CREATE TABLE note (id INTEGER PRIMARY KEY, title VARCHAR(20) NOT NULL, kind {own} NOT"
            " NULL)"
        )
        connection.exec_driver_sql("INSERT INTO note VALUES (1, 'a', 'memo'), (2, 'b', 'letter')")

    engine = engine_for(url, timeout_ms=20_000, connections=1, result_kb=100)
    await engine.write(make)
    await engine.close()
    columns = [
        column.model_dump() for column in spec().columns if column.name in ("id", "title", "kind")
    ]
    async with open_database(url, 20_000, {"note": spec(columns=columns)}) as database:
        assert (await database.check())[1] == []
        notes = Shop(database, "")

        async def found(**requested: Any) -> list[Any]:
            return [
                item.data
                for item in (await notes.search("list all notes", "note", **requested)).items
            ]

        second = {"id": 2, "title": "b", "kind": "letter"}
        for op, value in (("=", "LETTER"), ("in", ["letter"]), ("like", "ett"), ("!=", "memo")):
            assert await found(wheres=[{"field": "kind", "op": op, "value": value}]) == [second]
        assert await found(orders=[{"field": "kind", "order": "asc"}], limit=1) == [second]
        counted = await found(group_by=["kind"], aggregates=[{"function": "count"}])
        assert counted == [{"kind": "letter", "count": 1}, {"kind": "memo", "count": 1}]


async def test_a_column_of_a_large_table_that_questions_look_values_up_in_wants_an_index(
    fresh_database: Fresh, spec: Callable[..., ModelSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LARGE", 600)
    names = ("subject", "code", "kind")
    columns = [
        {"name": "id", "type": "ID"},
        *({"name": name, "type": "string", "index": name == "code"} for name in names),
    ]
    rows = [
        {"id": n, "subject": f"Note {n}", "code": f"N-{n}", "kind": f"Kind {n % 9}"}
        for n in range(1, 602)
    ]
    large = spec(columns=columns, values=rows)
    url = await fresh_database()
    async with open_database(url, 20_000, {"note": large}) as database:
        await database.load()
        assert [each.column for each in await database.slow_columns()] == ["subject"]
        monkeypatch.setattr(store, "LARGE", 601)
        assert await database.slow_columns() == []
    # A column of few values is read as a whole as well, where the sample has not all rows.
    monkeypatch.setattr(store, "SAMPLE_ROWS", 301)
    monkeypatch.setattr(store, "LARGE", 300)
    async with open_database(url, 20_000, {"note": large}) as database:
        assert [each.column for each in await database.slow_columns()] == ["subject", "kind"]


async def test_a_value_is_found_beside_long_ones_and_an_index_spares_the_look_up(
    fresh_database: Fresh, spec: Callable[..., ModelSpec]
) -> None:
    columns = [
        {"name": "id", "type": "ID"},
        {"name": "title", "type": "string", "length": 200},
        {"name": "shelf", "type": "string", "index": True},
    ]
    rows = [
        {"id": n, "title": f"Report {n:03}" + " and more" * (9 * (n == 1)), "shelf": f"S{n % 400}"}
        for n in range(1, 501)
    ]
    url = await fresh_database()
    async with open_database(url, 20_000, {"note": spec(columns=columns, values=rows)}) as database:
        await database.load()
        asked = await Shop(database, "").search('notes called "Report 500"', "note")
        assert ([item.record_id for item in asked.items], asked.account.certainty) == (
            [500],
            "sure",
        )
        opened, _ = await database._open()
        samples = await opened.samples("note", None)
        assert (samples.whole, len(samples.counts["shelf"])) == (frozenset({"shelf"}), 400)


async def test_the_samples_of_all_models_are_kept_for_the_next_question(
    tmp_path: Path, spec: Callable[..., ModelSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MAX_SAMPLES", 0)
    models = {
        name: spec(id=name, table={"name": name}, values=[{"title": "a"}])
        for name in ("first", "second")
    }
    async with open_database(f"sqlite:///{tmp_path}/two.db", 20_000, models) as database:
        await database.load()
        opened, _ = await database._open()
        before = [await opened.samples(name, None) for name in models]
        after = [await opened.samples(name, None) for name in models]
    assert [id(each) for each in before] == [id(each) for each in after]
