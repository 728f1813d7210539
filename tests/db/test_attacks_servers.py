"""PostgreSQL and MariaDB: sessions that only read, statements that end, results that stay small,
and a role that may only SELECT.

The statements that attack are sent past the query language, which has no way to say them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import anyio
import pytest
import sqlalchemy as sa

from groundhook.core.errors import (
    SourceError,
    SourceNotConfigured,
    SourceRefused,
    SourceTimeout,
)
from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.database import open_database
from groundhook.handlers.db.engines.engine import DatabaseEngine, engine_for
from tests.db.conftest import Fresh, Shop, shop_models
from tests.loopback.databases import Databases

WRITES = [
    "INSERT INTO shop_product (name) VALUES ('x')",
    "UPDATE shop_product SET price = 0",
    "DELETE FROM shop_product",
    "DROP TABLE shop_product",
    "CREATE TABLE other (id integer)",
    "TRUNCATE TABLE shop_product",
]
ENDLESS = (
    "SELECT count(*) FROM shop_order a, shop_order b, shop_order c, shop_order d, shop_order e"
)
RUNNING = {
    "postgresql": (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <>"
        " pg_backend_pid() AND state = 'active' AND query LIKE '%%shop_order e%%'"
    ),
    "mariadb": (
        "SELECT count(*) FROM information_schema.processlist WHERE db = DATABASE() AND id <>"
        " connection_id() AND info LIKE '%%shop_order e%%'"
    ),
}


def engine(url: str, *, timeout_ms: int = 20_000, connections: int = 2) -> DatabaseEngine:
    return engine_for(url, timeout_ms=timeout_ms, connections=connections, result_kb=100)


def asking(statement: str) -> Callable[[sa.Connection], Any]:
    return lambda connection: connection.exec_driver_sql(statement).scalar_one()


@pytest.fixture
def on_a_server(server: Databases | None) -> Databases:
    assert server is not None
    return server


servers_only = pytest.mark.parametrize(
    "kind", ["postgresql", "mariadb"], indirect=True, scope="session"
)


@servers_only
@pytest.mark.parametrize("statement", WRITES)
async def test_a_session_that_searches_cannot_write(
    on_a_server: Databases, shop_url: str, statement: str
) -> None:
    reading = engine(shop_url)

    def work(connection: sa.Connection) -> None:
        connection.exec_driver_sql(statement)
        connection.commit()

    with pytest.raises(SourceRefused, match="refused"):
        await reading.read(work, ["shop_product"])
    assert await reading.read(asking("SELECT count(*) FROM shop_product"), ["shop_product"]) == 150
    await reading.close()


@servers_only
async def test_a_role_that_may_only_select_can_search_and_cannot_write_whatever_its_session_says(
    on_a_server: Databases, fresh_database: Fresh, shop_specs: dict[str, ModelSpec]
) -> None:
    url = await fresh_database()
    async with open_database(url, 20_000, shop_specs) as database:
        await database.load()
    name = str(sa.make_url(url).database)
    role = f"reader_{name[-8:]}"
    grants = {  # as docs/databases.md has them
        "postgresql": [
            f"CREATE ROLE {role} LOGIN PASSWORD 'secret'",
            f"GRANT CONNECT ON DATABASE {name} TO {role}",
            f"GRANT USAGE ON SCHEMA public TO {role}",
            f"GRANT SELECT ON shop_product, shop_order, shop_customer TO {role}",
        ],
        "mariadb": [
            f"CREATE USER '{role}'@'%%' IDENTIFIED BY 'secret'",
            f"GRANT SELECT ON {name}.* TO '{role}'@'%%'",
        ],
    }
    await on_a_server.execute(*grants[on_a_server.kind], database=name)
    low = (
        sa.make_url(url).set(username=role, password="secret").render_as_string(hide_password=False)
    )
    async with open_database(low, 20_000, shop_specs) as database:
        assert (await Shop(database, low).search("products under $20", "product")).items
    free = {
        "postgresql": "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
        "mariadb": "SET SESSION TRANSACTION READ WRITE",
    }

    def attack(connection: sa.Connection) -> None:
        connection.exec_driver_sql(free[on_a_server.kind])
        connection.commit()
        connection.exec_driver_sql("DELETE FROM shop_product")
        connection.commit()

    reading = engine(low)
    with pytest.raises(SourceRefused, match="denied"):
        await reading.read(attack, ["shop_product"])
    assert await reading.read(asking("SELECT count(*) FROM shop_product"), ["shop_product"]) == 150
    await reading.close()
    who = {
        "postgresql": [f"DROP OWNED BY {role}", f"DROP ROLE {role}"],
        "mariadb": [f"DROP USER '{role}'@'%%'"],
    }
    await on_a_server.execute(*who[on_a_server.kind], database=name)


@servers_only
async def test_a_statement_that_takes_too_long_is_ended_by_the_server(
    on_a_server: Databases, shop_url: str
) -> None:
    reading = engine(shop_url, timeout_ms=300)
    with anyio.fail_after(60), pytest.raises(SourceTimeout, match=r"within 0\.3 s"):
        await reading.read(asking(ENDLESS), [])
    assert await reading.read(asking("SELECT 1"), []) == 1
    await reading.close()


@servers_only
async def test_a_timeout_of_sampling_is_cached(
    on_a_server: Databases, fresh_database: Fresh, spec: Callable[..., ModelSpec]
) -> None:
    url, nap = (
        await fresh_database(),
        "CAST(pg_sleep(0.1) AS text)" if on_a_server.kind == "postgresql" else "sleep(0.1)",
    )
    rows = " UNION ALL ".join(f"SELECT {number} AS id" for number in range(1, 101))

    async def create(title: str) -> None:
        view = f"CREATE VIEW nap AS SELECT id, {title} AS title FROM ({rows}) AS numbers"
        await on_a_server.execute(view, database=sa.make_url(url).database or "")

    await create(nap)
    model = spec(
        table={"name": "nap"},
        columns=[{"name": "id", "type": "ID"}, {"name": "title", "type": "string"}],
    )
    async with open_database(url, 2000, {"note": model}) as database:
        naps = Shop(database, url)
        await naps.search("note 7", "note")
        await on_a_server.execute("DROP VIEW nap", database=sa.make_url(url).database or "")
        await create("'awake'")
        for _ in range(2):  # looking at the values again would warn of nothing
            await naps.search("note 7", "note")
    assert [code for code, _ in naps.warnings].count("db_sample") == 3


@servers_only
async def test_a_cancelled_search_is_cancelled_on_the_server_and_its_connection_serves_again(
    on_a_server: Databases, shop_url: str
) -> None:
    reading, watching = engine(shop_url, connections=1), engine(shop_url)

    async def until(count: int) -> None:
        while await watching.read(asking(RUNNING[on_a_server.kind]), []) != count:
            await anyio.lowlevel.checkpoint()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reading.read, asking(ENDLESS), [])
            await until(1)
            tasks.cancel_scope.cancel()
        await until(0)
        assert await reading.read(asking("SELECT 7"), []) == 7
    await reading.close()
    await watching.close()


async def test_many_searches_share_few_connections_and_none_is_refused(
    everywhere: Shop, shop_url: str, kind: str, server: Databases | None
) -> None:
    answers: list[int] = []
    async with open_database(shop_url, 20_000, shop_models(), connections=3) as database:
        shop = Shop(database, shop_url)

        async def ask() -> None:
            answers.append(len((await shop.search("products under $20", "product")).items))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(24):
                    tasks.start_soon(ask)
        if server is not None:
            watching = engine(shop_url)
            counts = {
                "postgresql": (
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND backend_type = 'client backend'"
                ),
                "mariadb": (
                    "SELECT count(*) FROM information_schema.processlist WHERE db = DATABASE()"
                ),
            }
            # This database's, the one that counts, and that of the fixture; those of tests before
            # may take a moment to go.
            with anyio.fail_after(60):
                while await watching.read(asking(counts[kind]), []) > 3 + 1 + 1:
                    await anyio.lowlevel.checkpoint()
            await watching.close()
    assert len(answers) == 24
    assert len(set(answers)) == 1


async def test_an_oversized_result_is_cut_with_a_warning(
    fresh_database: Fresh, spec: Callable[..., ModelSpec]
) -> None:
    model = spec(values=[{"title": f"note {number}", "body": "x" * 20_000} for number in range(30)])
    async with open_database(
        await fresh_database(), 20_000, {"note": model}, result_kb=100
    ) as database:
        await database.load()
        notes = Shop(database, "")
        found = await notes.search("list all notes", "note", limit=30)
        assert (len(found.items), found.total) == (5, 30)
        hint = "(name fields with 'select', or raise database.result_kb)"
        assert (
            "db_result_cut",
            f"the result was too large: 5 rows of 'note' are returned {hint}",
        ) in notes.warnings
        assert (
            len((await notes.search("list all notes", "note", limit=30, select=["title"])).items)
            == 30
        )


@servers_only
@pytest.mark.parametrize("way", ["password", "database", "port"])
async def test_a_server_that_refuses_the_login_is_named_without_the_password(
    on_a_server: Databases, shop_url: str, way: str, shop_specs: dict[str, ModelSpec]
) -> None:
    url = sa.make_url(shop_url)
    changed = {
        "password": url.set(username="nobody_here", password="topsecret"),
        "database": url.set(
            database="not_there", password="topsecret" if on_a_server.kind == "postgresql" else None
        ),
        "port": url.set(port=1, password="topsecret"),
    }
    text = changed[way].render_as_string(hide_password=False)
    async with open_database(text, 3000, shop_specs) as database:
        with pytest.raises(SourceError) as failed:
            await Shop(database, text).search("products under $20", "product")
    kinds = {"password": SourceRefused, "database": SourceNotConfigured, "port": SourceError}
    assert isinstance(failed.value, kinds[way])
    assert "topsecret" not in str(failed.value)
    assert on_a_server.kind in str(failed.value)


@pytest.mark.parametrize(
    "url",
    ["oracle://x", "mysql+pymysql://x/y", "sqlite://", "postgresql+psycopg2://x/y", "://", ""],
)
async def test_the_error_for_an_unusable_url_shows_valid_ones(url: str) -> None:
    with pytest.raises(SourceNotConfigured, match="sqlite:///"):
        engine(url)


async def test_the_error_for_a_missing_table_says_how_to_load_it(
    fresh_database: Fresh, shop_specs: dict[str, ModelSpec]
) -> None:
    async with open_database(await fresh_database(), 20_000, shop_specs) as database:
        with pytest.raises(SourceNotConfigured, match="groundhook db load"):
            await Shop(database, "").search("products under $20", "product")


@pytest.mark.parametrize(
    ("url", "module"),
    [("postgresql://u@127.0.0.1/x", "psycopg"), ("mariadb://u@127.0.0.1/x", "asyncmy")],
)
async def test_the_error_for_a_missing_driver_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, url: str, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    kind = url.partition(":")[0]
    with pytest.raises(SourceNotConfigured, match=rf"{module}.*pip install 'groundhook\[{kind}\]'"):
        await engine(url).read(asking("SELECT 1"), [])
