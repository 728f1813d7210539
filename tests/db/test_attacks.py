"""Limits of the search connection, values as data, and the end of slow and cancelled statements."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
import sqlalchemy as sa

from groundhook.core.errors import SourceError, SourceTimeout
from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.database import open_database
from groundhook.handlers.db.engines.engine import engine_for
from tests.db.conftest import Shop, shop_models

ATTACKS = [
    "ATTACH DATABASE '{other}' AS other",
    "PRAGMA query_only = 0",
    "PRAGMA table_info(shop_product)",
    "INSERT INTO shop_product (name) VALUES ('x')",
    "UPDATE shop_product SET price = 0",
    "DELETE FROM shop_product",
    "DROP TABLE shop_product",
    "CREATE TEMP TABLE t (a)",
    "SELECT * FROM shop_customer",
    "SELECT sql FROM sqlite_master",
    "SELECT load_extension('x')",
    "SELECT hex(name) FROM shop_product",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n LIMIT 5",
    "VACUUM INTO '{other}'",
]

HOSTILE = [
    "'; DROP TABLE shop_product; --",
    '" OR 1=1 --',
    "Apple' OR 'a'='a",
    "%' UNION SELECT * FROM shop_customer --",
    ":param",
    "\\",
    "{0}",
]


@pytest.mark.parametrize("attack", ATTACKS)
async def test_the_search_connection_does_nothing_but_select_from_its_tables(
    shop: Shop, tmp_path: Path, attack: str
) -> None:
    engine = engine_for(shop.url, timeout_ms=60_000, connections=2, result_kb=100)
    other = tmp_path / "other.db"
    text = attack.format(other=other)

    def work(connection: sa.Connection) -> object:
        return connection.exec_driver_sql(text).fetchall()

    with pytest.raises(SourceError):
        await engine.read(work, ["shop_product"])
    count = "SELECT count(*) FROM shop_product"
    allowed = await engine.read(
        lambda connection: connection.exec_driver_sql(count).scalar_one(), ["shop_product"]
    )
    await engine.close()
    assert allowed == 150
    assert not other.exists()


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("op", ["=", "like", "in", "!=", "match"])
async def test_sql_in_a_value_is_plain_text(shop: Shop, value: str, op: str) -> None:
    where = {
        "field": "*" if op == "match" else "brand",
        "op": op,
        "value": [value] if op == "in" else value,
    }
    found = await shop.search("products", "product", wheres=[where], limit=200)
    assert len(found.items) == (150 if op == "!=" else 0)
    assert (await shop.search("products", "product", limit=200)).total == 150


@pytest.mark.parametrize("value", HOSTILE)
async def test_sql_in_a_question_is_plain_text(shop: Shop, value: str) -> None:
    await shop.search(f"products {value}", "product")
    assert (await shop.search("products", "product", limit=200)).total == 150


@pytest.mark.parametrize("value", ["50%", "a_b", "back\\slash"])
async def test_wildcards_of_a_searched_word_are_taken_literally(
    tmp_path: Path, spec: Callable[..., ModelSpec], value: str
) -> None:
    model = spec(values=[{"title": f"with {value} in it"}, {"title": "with 50 a-b axb back in it"}])
    async with open_database(f"sqlite:///{tmp_path}/n.db", 5000, {"note": model}) as database:
        await database.load()
        found = await Shop(database, "").search(
            "notes", "note", wheres=[{"field": "*", "op": "match", "value": [value]}]
        )
    assert [item.title for item in found.items] == [f"with {value} in it"]


def big(path: Path, rows: int) -> None:
    """Notes whose texts take a text search a while."""
    with sqlite3.connect(path) as connection:
        connection.execute(
            "create table note (id integer primary key, title text, body text, pages int, price"
            " real, kind text, done int, due text, seen text, extra text)"
        )
        connection.executemany(
            "insert into note (title, body) values (?, ?)", [("ä" * 50, "ö" * 400)] * rows
        )
    connection.close()


async def test_a_statement_that_takes_too_long_is_ended_and_the_database_stays_usable(
    tmp_path: Path, spec: Callable[..., ModelSpec]
) -> None:
    big(tmp_path / "n.db", 30_000)
    slow = [{"field": "*", "op": "match any", "value": [f"ü{number}" for number in range(40)]}]
    async with open_database(f"sqlite:///{tmp_path}/n.db", 150, {"note": spec()}) as database:
        notes = Shop(database, "")
        with anyio.fail_after(60), pytest.raises(SourceTimeout, match=r"within 0\.15 s"):
            await notes.search("notes", "note", wheres=slow)
        found = await notes.search("notes", "note", limit=1)
    assert [item.record_id for item in found.items] == [1]


async def test_a_cancelled_search_stops_its_statement_and_frees_its_thread(tmp_path: Path) -> None:
    big(tmp_path / "n.db", 30_000)
    engine = engine_for(
        f"sqlite:///{tmp_path}/n.db", timeout_ms=60_000, connections=2, result_kb=100
    )
    entered, left = threading.Event(), threading.Event()
    endless = sa.text("SELECT count(*) FROM note a, note b, note c")

    def work(connection: sa.Connection) -> None:
        entered.set()
        try:
            connection.execute(endless)
        finally:
            left.set()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(engine.read, work, ["note"])
            await anyio.to_thread.run_sync(entered.wait)
            tasks.cancel_scope.cancel()
    assert left.is_set()
    await engine.close()


async def test_an_unusable_server_is_named_without_its_password() -> None:
    async with open_database(
        "postgresql+psycopg://u:secret@127.0.0.1:1/x", 1000, shop_models()
    ) as database:
        with pytest.raises(SourceError) as refused:
            await Shop(database, "").search("products")
    assert "secret" not in str(refused.value)
