"""Models of an existing database, on SQLite, PostgreSQL and MariaDB."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.database import open_database
from groundhook.handlers.db.engines.engine import engine_for
from groundhook.handlers.db.model.importing import ImportedModel, words_of
from tests.db.conftest import Fresh, Shop


def _tables() -> sa.MetaData:
    made = sa.MetaData()
    sa.Table(
        "Person",
        made,
        sa.Column("PersonId", sa.Integer, primary_key=True),
        sa.Column("FullName", sa.String(80), unique=True, nullable=False),
        sa.Column("mood", sa.String(20)),
        sa.Column("born", sa.Date),
    )
    sa.Table(
        "bill",
        made,
        sa.Column("code", sa.String(20), primary_key=True),
        sa.Column("payer_id", sa.ForeignKey("Person.PersonId")),
        sa.Column("receiver_id", sa.ForeignKey("Person.PersonId")),
        sa.Column("person_id", sa.ForeignKey("Person.PersonId")),
        sa.Column("total", sa.Numeric(10, 2), nullable=False),
        sa.Column("paid_at", sa.DateTime),
        sa.Column("order", sa.String(20)),
    )
    sa.Table(
        "bill_tag",
        made,
        sa.Column("bill", sa.ForeignKey("bill.code"), primary_key=True),
        sa.Column("tag", sa.String(20), primary_key=True),
    )
    sa.Table("log", made, sa.Column("line", sa.Text))
    return made


@pytest.fixture
async def filled(fresh_database: Fresh) -> str:
    url = await fresh_database()

    def fill(connection: Connection) -> None:
        tables = _tables()
        tables.create_all(connection)
        people: list[dict[str, Any]] = [
            {"PersonId": number, "FullName": f"p{number}", "mood": ["good", "bad"][number % 2]}
            for number in range(1, 31)
        ]
        connection.execute(sa.insert(tables.tables["Person"]), people)
        bill = {"code": "a", "payer_id": 1, "person_id": 2, "total": 5, "order": "x"}
        connection.execute(sa.insert(tables.tables["bill"]), [bill, {**bill, "code": "b"}])

    engine = engine_for(url, timeout_ms=20_000, connections=1, result_kb=100)
    await engine.write(fill)
    await engine.close()
    return url


async def _import(url: str) -> tuple[dict[str, ImportedModel], dict[str, str]]:
    async with open_database(url, 20_000, {}) as database:
        found = await database.import_models()
    return {model.id: model for model in found.models}, found.left_out


async def test_an_imported_model_is_what_the_table_is(filled: str) -> None:
    models, _ = await _import(filled)
    specs = {
        id: ModelSpec.model_validate({**model.content, "id": id}) for id, model in models.items()
    }
    async with open_database(filled, 20_000, specs) as database:
        _, differences = await database.check()
        assert [str(one) for one in differences] == []
        found = await Shop(database, "").search(
            "list all person",
            "person",
            wheres=[{"related": "bill_as_payer", "count": {"=": 2}}],
        )
    assert [item.record_id for item in found.items] == [1]


async def test_keys_labels_and_options_are_read(filled: str) -> None:
    models, _ = await _import(filled)
    person = {column["name"]: column for column in models["person"].content["columns"]}
    assert person["PersonId"]["type"] == "ID"
    assert person["FullName"]["label"] == "Full name"
    assert person["FullName"]["unique"]
    assert (person["mood"]["type"], person["mood"]["option"]) == ("enum", ["bad", "good"])
    bill = {column["name"]: column for column in models["bill"].content["columns"]}
    assert bill["code"]["primary"]
    assert (bill["total"]["precision"], bill["total"]["scale"]) == (10, 2)
    assert bill["order"]["type"] == "string"  # two rows are too few for options


async def test_each_foreign_key_is_a_relation_on_both_sides_with_a_name_of_its_own(
    filled: str,
) -> None:
    models, _ = await _import(filled)
    assert {
        name: (each["type"], each["model"], each["foreign"])
        for name, each in models["bill"].content["relations"].items()
    } == {
        "payer": ("hasOne", "person", "payer_id"),
        "receiver": ("hasOne", "person", "receiver_id"),
        "person": ("hasOne", "person", "person_id"),
    }
    assert {
        name: (each["type"], each["model"], each["key"])
        for name, each in models["person"].content["relations"].items()
    } == {
        "bill_as_payer": ("hasMany", "bill", "payer_id"),
        "bill_as_receiver": ("hasMany", "bill", "receiver_id"),
        "bill": ("hasMany", "bill", "person_id"),
    }


async def test_tables_without_a_usable_key_are_named_with_the_reason(filled: str) -> None:
    models, left_out = await _import(filled)
    assert sorted(models) == ["bill", "person"]
    assert left_out == {
        "bill_tag": "its primary key is of several columns (bill, tag)",
        "log": "its primary key is missing",
    }


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("unit_price", "Unit price"),
        ("UnitPrice", "Unit price"),
        ("ISBNNumber", "ISBN number"),
        ("order total", "Order total"),
    ],
)
def test_a_name_is_written_in_words(name: str, words: str) -> None:
    assert words_of(name) == words
