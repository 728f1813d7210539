"""Databases as they are: no keys, hundreds of tables and columns, names with quotes and blanks, values
that are words of the grammar, views that never end, files that are locked or gone."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from groundhook.core.errors import SourceError, SourceTimeout
from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.database import open_database
from tests.db.conftest import Shop


def _made(path: Path, *statements: str) -> str:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return f"sqlite:///{path}"


async def _imported(url: str) -> tuple[dict[str, ModelSpec], dict[str, str]]:
    async with open_database(url, 20_000, {}) as database:
        found = await database.import_models()
    specs = {
        model.id: ModelSpec.model_validate({**model.content, "id": model.id})
        for model in found.models
    }
    return specs, found.left_out


def _row(id: int, *values: str) -> str:
    return f"({', '.join([str(id), *(repr(value) for value in values)])})"


async def test_a_schema_without_keys_is_imported_where_a_column_tells_rows_apart(
    tmp_path: Path,
) -> None:
    url = _made(
        tmp_path / "x.db",
        "create table city (name text, country text)",
        "insert into city values ('Oslo', 'Norway'), ('Bergen', 'Norway')",
        "create table visit (place text, day text)",
        "insert into visit values ('Oslo', '2026-01-01'), ('Oslo', '2026-01-01')",
    )
    models, left_out = await _imported(url)
    assert (models["city"].keys, list(left_out)) == (("name",), ["visit"])
    async with open_database(url, 20_000, models) as database:
        assert (await database.check())[1] == []
        found = await Shop(database, url).search("city in Norway", "city")
    assert [item.record_id for item in found.items] == ["Bergen", "Oslo"]


async def test_hundreds_of_tables_and_a_thousand_columns_are_imported_and_asked(
    tmp_path: Path,
) -> None:
    columns = ", ".join(f"measure_{number} integer" for number in range(1000))
    url = _made(
        tmp_path / "x.db",
        *(f"create table thing{number} (id integer primary key)" for number in range(400)),
        f"create table wide (id integer primary key, {columns})",
        "insert into wide (id, measure_999) values (1, 5), (2, 9)",
    )
    models, left_out = await _imported(url)
    assert (len(models), left_out) == (401, {})
    assert len(models["wide"].columns) == 1001
    async with open_database(url, 20_000, models) as database:
        found = await Shop(database, url).search("wide with measure 999 over 5", *models)
    assert [item.record_id for item in found.items] == [2]


async def test_a_question_that_names_its_records_waits_for_no_other_table(tmp_path: Path) -> None:
    url = _made(
        tmp_path / "x.db",
        "create table city (id integer primary key, name text)",
        "insert into city values (1, 'Oslo'), (2, 'Bergen')",
        "create view endless as with recursive n(id) as"
        " (select 1 union all select id + 1 from n) select id, 'name ' || id as name from n",
    )
    columns = [{"name": "id", "type": "ID"}, {"name": "name", "type": "string"}]
    models = {
        id: ModelSpec.model_validate(
            {"id": id, "name": id.capitalize(), "table": {"name": id}, "columns": columns}
        )
        for id in ("endless", "city")
    }
    async with open_database(url, 20, models) as database:
        shop = Shop(database, url)
        found = await shop.search("how many cities", *models)
        assert (found.total, found.account.certainty, shop.warnings) == (1, "sure", [])
        declined = await shop.search("Rome", *models)
    assert [code for code, _ in shop.warnings] == ["db_sample"]
    assert "The names in Endless could not all be looked up in time" in declined.account.explanation


async def test_names_with_quotes_and_blanks_are_names(tmp_path: Path) -> None:
    url = _made(
        tmp_path / "x.db",
        """create table "the ""big"" list's items" ("item no" integer primary key,"""
        """ "it's 50% off?" integer, "group" text)""",
        """insert into "the ""big"" list's items" values (1, 7, 'a'), (2, 3, 'b')""",
    )
    models, _ = await _imported(url)
    (id,) = models
    async with open_database(url, 20_000, models) as database:
        assert (await database.check())[1] == []
        shop = Shop(database, url)
        found = await shop.search(
            "list", id, wheres=[{"field": "it's 50% off?", "op": ">", "value": 5}]
        )
        assert [item.record_id for item in found.items] == [1]
        grouped = await shop.search(
            "list", id, group_by=["group"], aggregates=[{"function": "count"}]
        )
        assert len(grouped.items) == 2


@pytest.mark.parametrize(
    ("question", "ids"),
    [
        ("people in IT", [1]),
        ("people in OR", [2]),
        ("people whose team is none", [3]),
        ("people named April", [4]),
        ("people named May", [5]),
        ("people in IT or OR", [1, 2]),
        ("people not in IT", [2, 3, 4, 5]),
    ],
)
async def test_values_that_are_words_of_the_grammar_are_values_where_they_are_meant(
    tmp_path: Path, question: str, ids: Sequence[int]
) -> None:
    people = [("Ann", "IT"), ("Bob", "OR"), ("Cat", "none"), ("April", "A"), ("May", "A")]
    rows = ", ".join(_row(id, name, team) for id, (name, team) in enumerate(people, 1))
    url = _made(
        tmp_path / "x.db",
        "create table people (id integer primary key, name text, team text)",
        f"insert into people values {rows}",
    )
    models, _ = await _imported(url)
    async with open_database(url, 20_000, models) as database:
        found = await Shop(database, url).search(question, "people")
    assert found.account.certainty == "sure", found.account.explanation
    assert sorted(item.record_id for item in found.items) == ids


async def test_an_enum_may_have_hundreds_of_options(tmp_path: Path) -> None:
    rows = ", ".join(_row(number, f"kind {number}") for number in range(1, 301))
    url = _made(
        tmp_path / "x.db",
        "create table part (id integer primary key, kind text)",
        f"insert into part values {rows}",
    )
    columns = [
        {"name": "id", "type": "ID"},
        {"name": "kind", "type": "enum", "option": [f"kind {number}" for number in range(1, 301)]},
    ]
    model = {"id": "part", "name": "Part", "table": {"name": "part"}, "columns": columns}
    async with open_database(url, 20_000, {"part": ModelSpec.model_validate(model)}) as database:
        found = await Shop(database, url).search("parts of kind 217", "part")
    assert [item.record_id for item in found.items] == [217]


async def test_a_query_that_exceeds_its_deadline_ends_and_says_what_to_do(tmp_path: Path) -> None:
    url = _made(
        tmp_path / "x.db",
        "create view endless as with recursive n(id) as"
        " (select 1 union all select id + 1 from n) select id, 'name ' || id as name from n",
    )
    columns = [
        {"name": "id", "type": "integer", "primary": True},
        {"name": "name", "type": "string"},
    ]
    model = {"id": "row", "name": "Row", "table": {"name": "endless"}, "columns": columns}
    async with open_database(url, 100, {"row": ModelSpec.model_validate(model)}) as database:
        shop = Shop(database, url)
        with pytest.raises(SourceTimeout, match=r"did not answer within 0\.1 s") as found:
            await shop.search("how many rows", "row")
    assert "index" in found.value.hint
    assert [code for code, _ in shop.warnings] == ["db_sample"]


async def test_a_database_that_is_locked_or_gone_in_the_middle_is_an_error_and_then_works_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.db"
    url = _made(
        path,
        "create table city (id integer primary key, name text)",
        "insert into city values (1, 'Oslo')",
    )
    models, _ = await _imported(url)
    async with open_database(url, 300, models) as database:
        shop = Shop(database, url)
        assert (await shop.search("how many city", "city")).total == 1
        locking = sqlite3.connect(path, isolation_level=None)
        locking.execute("begin exclusive")
        with pytest.raises(SourceError) as locked:
            await shop.search("how many city", "city")
        assert "locked" in locked.value.message
        assert "another program" in locked.value.hint
        locking.execute("rollback")
        locking.close()
        assert (await shop.search("how many city", "city")).total == 1
    hidden = path.rename(tmp_path / "away.db")
    async with open_database(url, 300, models) as database:
        with pytest.raises(SourceError) as gone:
            await Shop(database, url).search("how many city", "city")
        assert str(tmp_path) not in str(gone.value)
        hidden.rename(path)
        assert (await Shop(database, url).search("how many city", "city")).total == 1
