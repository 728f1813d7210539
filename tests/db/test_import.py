"""Models of an existing database, on SQLite, PostgreSQL and MariaDB."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from groundhook.core.errors import NotPermitted
from groundhook.core.types.model_options import DatabaseModelOptions, PermissionColumns
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.search import RecordQuery
from groundhook.core.types.turn import Identity
from groundhook.handlers.db.database import open_database
from groundhook.handlers.db.engines.engine import engine_for
from groundhook.handlers.db.model.importing import ImportedModel, title_of, words_of
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
    sa.Table("reading", made, sa.Column("at", sa.DateTime), sa.Column("reading_id", sa.Integer))
    sa.Table(
        "club",
        made,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("clubName", sa.String(40)),
    )
    sa.Table(
        "membership",
        made,
        sa.Column("club_id", sa.ForeignKey("club.id"), primary_key=True),
        sa.Column("person_id", sa.ForeignKey("Person.PersonId"), primary_key=True),
        sa.Column("since", sa.Date),
    )
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
        reads = [{"reading_id": number} for number in (1, 2)]
        connection.execute(sa.insert(tables.tables["reading"]), reads)
        clubs = [{"id": 1, "clubName": "Chess"}, {"id": 2, "clubName": "Rowing"}]
        connection.execute(sa.insert(tables.tables["club"]), clubs)
        members = [(1, 1), (1, 2), (2, 2)]
        rows = [{"club_id": club, "person_id": person} for club, person in members]
        connection.execute(sa.insert(tables.tables["membership"]), rows)
        connection.exec_driver_sql(
            "create view payer as select coalesce(max(code), '') as bill_code, payer_id,"
            " round(sum(total), 1) as paid, max(code) as last_code from bill group by payer_id"
        )

    engine = engine_for(url, timeout_ms=20_000, connections=1, result_kb=100)
    await engine.write(fill)
    await engine.close()
    return url


async def _import(url: str) -> tuple[dict[str, ImportedModel], dict[str, str]]:
    async with open_database(url, 20_000, {}) as database:
        found = await database.import_models()
    return {model.id: model for model in found.models}, found.left_out


async def _specs(url: str) -> dict[str, ModelSpec]:
    models, _ = await _import(url)
    return {
        id: ModelSpec.model_validate({**model.content, "id": id}) for id, model in models.items()
    }


async def test_an_imported_model_is_what_the_table_is(filled: str) -> None:
    specs = await _specs(filled)
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
        "bill_tag": ("hasMany", "bill_tag", "code"),
    }
    assert {
        name: (each["type"], each["model"], each["key"])
        for name, each in models["person"].content["relations"].items()
    } == {
        "bill_as_payer": ("hasMany", "bill", "payer_id"),
        "bill_as_receiver": ("hasMany", "bill", "receiver_id"),
        "bill": ("hasMany", "bill", "person_id"),
        "membership": ("hasMany", "membership", "person_id"),
        "club": ("hasMany", "club", "id"),
    }


async def test_a_key_of_several_columns_is_the_key_and_the_id_of_a_record(filled: str) -> None:
    specs = await _specs(filled)
    assert specs["membership"].keys == ("club_id", "person_id")
    async with open_database(filled, 20_000, specs) as database:
        shop = Shop(database, "")
        found = await shop.search("membership", "membership")
        assert [item.record_id for item in found.items] == ["[1, 1]", "[1, 2]", "[2, 2]"]
        assert found.items[1].title == "Membership 1 / 2"
        query = RecordQuery(model="membership", record_id="[1, 2]", limit=5)
        (record,) = await database.records(query, shop.scope())
        assert (record["club_id"], record["person_id"]) == (1, 2)
        for missing in ("[1]", "1", "{"):
            one = query.model_copy(update={"record_id": missing})
            assert await database.records(one, shop.scope()) == []


async def test_a_join_table_makes_a_relation_from_many_to_many(filled: str) -> None:
    async with open_database(filled, 20_000, await _specs(filled)) as database:
        shop = Shop(database, "")

        async def found(model: str, *wheres: dict[str, Any]) -> list[Any]:
            result = await shop.search(f"list all {model}", model, wheres=wheres)
            return [item.record_id for item in result.items]

        assert await found("person", {"field": "club.clubName", "value": "Rowing"}) == [2]
        assert await found("person", {"related": "club", "count": {"=": 2}}) == [2]
        assert await found("club", {"related": "person", "count": {">": 1}}) == [1]
        every = {"field": "FullName", "value": "p2"}
        assert await found("club", {"related": "person", "wheres": [every], "all": True}) == [2]
        assert await found("club", {"field": "person", "op": "null"}) == []
        read = await shop.search("how many persons in the club Rowing", "person")
        assert (read.account.certainty, read.items[0].data) == ("sure", {"count": 1})


async def test_a_row_of_a_join_table_that_an_identity_may_not_see_joins_nothing(
    filled: str,
) -> None:
    specs = await _specs(filled)
    own = DatabaseModelOptions(permission=PermissionColumns(user="since"))
    hidden = specs | {"membership": specs["membership"].model_copy(update={"option": own})}
    async with open_database(filled, 20_000, hidden) as database:
        shop = Shop(database, "")
        of_nobody = Identity(user_id="2020-01-01")
        related = [{"related": "club", "count": {">": 0}}]
        found = await shop.search("list all person", "person", identity=of_nobody, wheres=related)
        assert found.items == ()
        met = [{"field": "club.clubName", "value": "Rowing"}]
        found = await shop.search("list all person", "person", identity=of_nobody, wheres=met)
        assert found.items == ()
        with pytest.raises(NotPermitted):
            await shop.search("list all person", "person", wheres=met)


async def test_a_view_is_a_model_whose_key_is_guessed_and_said(filled: str) -> None:
    models, _ = await _import(filled)
    assert "the key is guessed: all values of 'bill_code' are different" in models["payer"].notes
    async with open_database(filled, 20_000, await _specs(filled)) as database:
        found = await Shop(database, "").search("list all payer", "payer")
        assert [(item.record_id, (item.data or {})["payer_id"]) for item in found.items] == [
            ("b", 1)
        ]
        assert [each for each in (await database.check())[1] if each.model == "payer"] == []


async def test_a_relation_by_a_key_of_one_name_is_called_like_the_other_table(
    tmp_path: Path,
) -> None:
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.executescript(
            "create table employee (emp_no integer primary key, name text);"
            "create table salary (emp_no integer references employee (emp_no), since date,"
            " amount integer, primary key (emp_no, since))"
        )
    models, _ = await _import(f"sqlite:///{tmp_path / 'x.db'}")
    assert list(models["salary"].content["relations"]) == ["employee"]


async def test_texts_of_a_file_are_read_by_their_values(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute(
            "create table t (id integer primary key, name text, story text, at text, day text,"
            " gone integer, floor_id integer, empty text)"
        )
        row = ("short", "long " * 60, "2026-03-01 10:00", "2026-03-01", 1, 1, None)
        other = ("name", "short", "2026-03-01T10:00:00Z", "2026-04-01", 0, 0, None)
        rows = [
            (f"{one[0]} {at}", f"{one[1]} {at}", *one[2:])
            for at in range(6)
            for one in (row, other)
        ]
        connection.executemany("insert into t values (null, ?, ?, ?, ?, ?, ?, ?)", rows)
    connection.close()
    models, _ = await _import(f"sqlite:///{tmp_path / 'x.db'}")
    types = {column["name"]: column["type"] for column in models["t"].content["columns"]}
    assert types == {
        "id": "ID",
        "name": "string",
        "story": "text",
        "at": "datetime",
        "day": "date",
        "gone": "boolean",
        "floor_id": "integer",
        "empty": "text",
    }
    assert "'gone' is read as boolean, by its values" in models["t"].notes


async def test_names_that_many_share_are_no_choice(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute(
            "create table patients (id integer primary key, first_name text, last_name text,"
            " blood text)"
        )
        rows = [("Emma", "Silva", "A"), ("Hugo", "Cohen", "B")] * 10
        connection.executemany("insert into patients values (null, ?, ?, ?)", rows)
    connection.close()
    models, _ = await _import(f"sqlite:///{tmp_path / 'x.db'}")
    assert models["patients"].content["title"] == "{first_name} {last_name}"
    types = {column["name"]: column["type"] for column in models["patients"].content["columns"]}
    assert (types["first_name"], types["last_name"], types["blood"]) == ("string", "string", "enum")


async def test_how_many_rows_there_are_is_sure_though_several_have_the_same_name(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("create table patients (id integer primary key, name text, city text)")
        rows = [(name, "Rome") for name in ("Emma", "Hugo", "Mia") * 10]
        connection.executemany("insert into patients values (null, ?, ?)", rows)
    connection.close()
    async with open_database(url, 20_000, await _specs(url)) as database:
        result = await Shop(database, url).search("how many patients do we have?", "patients")
    assert result.account.certainty == "sure", result.account.explanation
    assert [list((item.data or {}).values()) for item in result.items] == [[30]]


async def test_what_stands_for_a_record_is_taken_from_the_names_of_columns(filled: str) -> None:
    models, _ = await _import(filled)
    assert models["person"].content["title"] == "FullName"
    assert models["club"].content["title"] == "clubName"
    assert "title" not in models["bill"].content


def test_the_words_of_a_name_may_stand_in_either_order() -> None:
    def title(*names: str) -> str:
        return title_of([{"name": one, "label": words_of(one), "type": "string"} for one in names])

    assert title("nameLast", "city", "nameFirst") == "{nameFirst} {nameLast}"
    assert title("school_code", "name_full") == "name_full"
    assert title("first_name", "last_name", "name_full") == "{first_name} {last_name}"


async def test_tables_without_a_usable_key_are_named_with_the_reason(filled: str) -> None:
    models, left_out = await _import(filled)
    assert sorted(models) == [
        *("bill", "bill_tag", "club", "membership", "payer", "person", "reading"),
    ]
    assert models["reading"].keys == ["reading_id"]
    assert left_out == {
        "log": "its primary key is missing, and no column has a different value in each row",
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


async def test_a_foreign_key_in_a_comment_of_a_table_is_none(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table city (id integer primary key, name text)")
        connection.execute(
            "create table visit (id integer primary key, city_id integer"
            " /* , constraint there foreign key (id, city_id) references city(id, name) */)"
        )
    async with open_database(f"sqlite:///{path}", 20_000, {}) as database:
        found = await database.import_models()
    assert [(model.id, model.notes) for model in found.models] == [
        ("city", ["records are shown as 'name'"]),
        ("visit", []),
    ]
