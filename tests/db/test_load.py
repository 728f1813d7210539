"""Tables are created and filled once, and existing ones are never altered."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from groundhook.core.errors import ConfigError, HostError, StorageError
from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.database import open_database
from tests.db.conftest import NOW, Shop, shop_models


def count(path: Path, table: str) -> int:
    with sqlite3.connect(path) as connection:
        found: int = connection.execute(f"select count(*) from {table}").fetchone()[0]
    connection.close()
    return found


async def test_loading_creates_every_table_with_its_rows_and_reports_each(tmp_path: Path) -> None:
    reported: list[str] = []
    async with open_database(f"sqlite:///{tmp_path}/new/shop.db", 5000, shop_models()) as database:
        loaded = await database.load(lambda done: reported.append(done.model))
    assert [(one.model, one.created, one.rows, one.note) for one in loaded] == [
        ("customer", True, 40, ""),
        ("order", True, 250, ""),
        ("product", True, 150, ""),
    ]
    assert reported == ["customer", "order", "product"]


async def test_loading_again_changes_nothing(shop: Shop, tmp_path: Path) -> None:
    path = tmp_path / "state/shop.db"
    with sqlite3.connect(path) as connection:
        connection.execute("delete from shop_product where id > 3")
        connection.execute("delete from shop_customer")
    connection.close()
    again = {one.model: (one.created, one.rows, one.had) for one in await shop.database.load()}
    assert again == {"customer": (False, 40, 0), "order": (False, 0, 250), "product": (False, 0, 3)}
    assert (count(path, "shop_product"), count(path, "shop_customer")) == (3, 40)


async def test_a_table_that_differs_is_reported_and_not_altered(
    tmp_path: Path, spec: Callable[..., ModelSpec]
) -> None:
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table note (id integer primary key, title text)")
    connection.close()
    async with open_database(f"sqlite:///{path}", 5000, {"note": spec()}) as database:
        (loaded,) = await database.load()
    assert not loaded.created
    assert "has no body, pages" in loaded.note


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"titel": "x"}, "did you mean 'title'"),
        ({"title": "x", "kind": "memoo"}, "did you mean 'memo'"),
        ({"title": "x", "due": "soon"}, "does not fit the field 'due'"),
        ({"body": "no title"}, "'title' has no value"),
        ({"id": 1, "title": "twice"}, "UNIQUE"),
    ],
)
async def test_an_invalid_row_is_named_and_leaves_no_partial_table(
    tmp_path: Path, spec: Callable[..., ModelSpec], row: dict[str, object], says: str
) -> None:
    path = tmp_path / "n.db"
    model = spec(values=[{"id": 1, "title": "good"}, row])
    async with open_database(f"sqlite:///{path}", 5000, {"note": model}) as database:
        with pytest.raises(ConfigError, match="'note'") as refused:
            await database.load()
    assert says in str(refused.value)
    with sqlite3.connect(path) as connection:
        assert (
            connection.execute("select name from sqlite_master where type = 'table'").fetchall()
            == []
        )
    connection.close()


async def test_rows_get_defaults_and_the_given_time(
    tmp_path: Path, spec: Callable[..., ModelSpec]
) -> None:
    model = spec(values=[{"title": "a"}, {"title": "b", "done": True}], option={"timestamps": True})
    async with open_database(f"sqlite:///{tmp_path}/n.db", 5000, {"note": model}) as database:
        await database.load(now=lambda: NOW)
    with sqlite3.connect(tmp_path / "n.db") as connection:
        rows = connection.execute(
            "select title, kind, done, created_at from note order by id"
        ).fetchall()
    connection.close()
    assert rows == [
        ("a", "memo", 0, "2026-11-12 10:00:00"),
        ("b", "memo", 1, "2026-11-12 10:00:00"),
    ]


async def test_a_folder_that_cannot_be_created_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    async with open_database(f"sqlite:///{tmp_path}/file/shop.db", 5000, shop_models()) as database:
        with pytest.raises(StorageError, match="cannot be created"):
            await database.load()


@pytest.mark.parametrize(
    "url", ["nonsense", "sqlite://", "oracle9://x/y", "postgresql+pg8000://nobody@localhost/x"]
)
async def test_an_unusable_url_is_an_error_on_first_use(url: str) -> None:
    async with open_database(url, 5000, shop_models()) as database:
        with pytest.raises(HostError) as refused:
            await database.load()
    assert refused.value.code == "source_not_configured"
