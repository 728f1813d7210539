"""Search for words with a full-text index, and without one, on every engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from groundhook.core.errors import SourceError
from groundhook.core.trace import recording
from groundhook.core.types.events import TraceNode
from groundhook.core.types.model_spec import (
    CREATED_BY,
    SHARE,
    TEAM,
    TENANT,
    ModelSpec,
)
from groundhook.core.types.query_language import Where
from groundhook.core.types.turn import Identity
from groundhook.handlers.db.database import open_database
from groundhook.handlers.db.engines.engine import engine_for
from groundhook.handlers.db.model.tables import Tables
from groundhook.handlers.db.query.dsl import QueryDSL
from groundhook.handlers.db.query.statement import QueryCompiler
from tests.db.conftest import Fresh, Shop

BY_INDEX = {"sqlite": "MATCH", "postgresql": "@@", "mariadb": "AGAINST"}
NOTES = [
    {"title": "Wireless headphones", "body": "noise-cancelling, 30 hours"},
    {"title": "Phone stand", "body": "for a desk, see example.com/wireless/stand"},
    {"title": "שולחן כתיבה", "body": "עץ אלון מלא"},
    {"title": "Café table", "body": 'made of "oak" and* steel (not) OR brass'},
    {"title": "Teapot", "body": None},
]


class Notes:
    """The notes in one database, with the statements that searches of them ran."""

    def __init__(self, shop: Shop) -> None:
        self.shop, self.statements = shop, list[str]()

    async def having(self, *words: str, op: str = "match", **requested: Any) -> list[Any]:
        """The numbers of the notes that have the words."""
        nodes: list[TraceNode] = []
        wheres = [{"field": "*", "op": op, "value": list(words)}]
        with recording(nodes.append):
            found = await self.shop.search("list all notes", "note", wheres=wheres, **requested)
        self.statements = [
            node.data["sql"]
            for node in nodes
            if node.type == "db_query" and node.status == "completed"
        ]
        return sorted(item.record_id for item in found.items)


@pytest.fixture
async def url(fresh_database: Fresh, spec: Callable[..., ModelSpec]) -> str:
    """A database that loading made and filled."""
    made = await fresh_database()
    async with open_database(made, 20_000, {"note": spec(values=NOTES)}) as database:
        await database.load()
    return made


async def execute(url: str, *statements: str) -> None:
    """As another program would that writes to the database."""
    engine = engine_for(url, timeout_ms=20_000, connections=1, result_kb=100)
    await engine.write(
        lambda connection: [connection.exec_driver_sql(statement) for statement in statements]
    )
    await engine.close()


async def test_the_index_matches_beginnings_of_words_in_any_spelling(
    url: str, kind: str, spec: Callable[..., ModelSpec]
) -> None:
    async with open_database(url, 20_000, {"note": spec()}) as database:
        notes = Notes(Shop(database, url))
        assert await notes.having("phone") == [2]  # and not the headphones
        assert len(notes.statements) == 1
        assert BY_INDEX[kind] in notes.statements[0]
        expected: list[tuple[tuple[str, ...], list[int]]] = [
            (("WIRELESS",), [1, 2]),
            (("wireless", "phon"), [2]),
            (("noise-cancelling",), [1]),
            (("cancelling",), [1]),
            (("כתיב",), [3]),
            (("אלון", "שולחן"), [3]),
            (("café",), [4]),
            (("cafe",), []),
            (('"oak"',), [4]),
            (('made of "oak" and*',), [4]),
            (("oak*",), []),
            (("(not) OR",), [4]),
            (("oak' OR '1'='1",), []),
            (("+steel -brass",), []),
            (("title:teapot",), []),
        ]
        for words, ids in expected:
            assert await notes.having(*words) == ids, words
        assert await notes.having("teapot", "brass", op="match any") == [4, 5]


async def test_the_engine_uses_the_index_for_words(
    url: str, kind: str, spec: Callable[..., ModelSpec]
) -> None:
    words = QueryDSL(model="note", wheres=(Where(field="*", op="match", value=["phone"]),))
    statement, _ = QueryCompiler(Tables({"note": spec()}), kind).query(
        words, {"note": None}, 10, use_index=True
    )

    def plan(connection: sa.Connection) -> str:
        if kind == "postgresql":  # which else takes so few rows one by one
            connection.exec_driver_sql("SET enable_seqscan = off")
        text = str(statement.compile(connection, compile_kwargs={"literal_binds": True}))
        explain = "EXPLAIN QUERY PLAN " if kind == "sqlite" else "EXPLAIN "
        return "\n".join(map(str, connection.exec_driver_sql(explain + text).fetchall()))

    engine = engine_for(url, timeout_ms=20_000, connections=1, result_kb=100)
    planned = await engine.inspect(plan)
    await engine.close()
    assert "note__text" in planned


async def test_without_a_match_by_the_index_words_are_searched_inside_of_words(
    url: str, kind: str, spec: Callable[..., ModelSpec]
) -> None:
    async with open_database(url, 20_000, {"note": spec()}) as database:
        notes = Notes(Shop(database, url))
        assert await notes.having("eapo") == [5]
        assert [BY_INDEX[kind] in statement for statement in notes.statements] == [True, False]
        counted = await notes.shop.search(
            "list all notes",
            "note",
            wheres=[{"field": "*", "op": "match", "value": ["eapo"]}],
            aggregates=[{"function": "count"}],
        )
        assert [item.data for item in counted.items] == [{"count": 1}]


async def test_the_index_follows_writes_of_other_programs(
    url: str, kind: str, spec: Callable[..., ModelSpec]
) -> None:
    done = "0" if kind != "postgresql" else "false"
    await execute(
        url,
        f"INSERT INTO note (id, title, kind, done) VALUES (77, 'Bicycle', 'memo', {done})",
        "UPDATE note SET title = 'Kettle' WHERE id = 5",
        "DELETE FROM note WHERE id = 1",
    )
    async with open_database(url, 20_000, {"note": spec()}) as database:
        notes = Notes(Shop(database, url))
        assert [
            await notes.having(word) for word in ("bicycle", "kettle", "teapot", "wireless")
        ] == [[77], [5], [], [2]]
        assert (await database.check())[1] == []


async def test_an_existing_table_gets_no_index_and_is_searched_without_one(
    fresh_database: Fresh, kind: str, spec: Callable[..., ModelSpec]
) -> None:
    url = await fresh_database()
    await execute(
        url,
        "CREATE TABLE note (id INTEGER PRIMARY KEY, title VARCHAR(50) NOT NULL, body TEXT)",
        "INSERT INTO note VALUES (1, 'Wireless headphones', NULL), (2, 'Phone', NULL)",
    )
    columns = [
        column.model_dump() for column in spec().columns if column.name in ("id", "title", "body")
    ]
    async with open_database(url, 20_000, {"note": spec(columns=columns, values=[])}) as database:
        (loaded,) = await database.load()
        assert not loaded.created
        notes = Notes(Shop(database, url))
        assert await notes.having("phone") == [1, 2]
        assert [BY_INDEX[kind] in statement for statement in notes.statements] == [False]


async def test_the_index_respects_permissions(
    fresh_database: Fresh, spec: Callable[..., ModelSpec]
) -> None:
    def row(title: str, tenant: str) -> dict[str, Any]:
        return {"title": title, TENANT: tenant, CREATED_BY: None, TEAM: None, SHARE: "tenant"}

    rows = [row("shared plan", "acme"), row("shared secret", "zeta"), row("unshared", "acme")]
    async with open_database(
        await fresh_database(), 20_000, {"note": spec(values=rows, option={"permission": True})}
    ) as database:
        await database.load()
        notes = Notes(Shop(database, ""))
        acme = Identity(user_id="alice", tenant_id="acme")
        assert await notes.having("shared", identity=acme) == [1]
        assert await notes.having("secret", identity=acme) == []
        assert await notes.having("secret", "plan", op="match any", identity=acme) == [1]
        assert await notes.having("secret", identity=Identity(user_id="eve", tenant_id="zeta")) == [
            2
        ]


async def test_an_index_that_lacks_a_field_is_not_used(
    url: str, kind: str, spec: Callable[..., ModelSpec]
) -> None:
    columns = [column.model_dump() for column in spec().columns] + [
        {"name": "tag", "type": "string", "nullable": True}
    ]
    await execute(
        url,
        "ALTER TABLE note ADD COLUMN tag VARCHAR(255)",
        "UPDATE note SET tag = 'kitchen' WHERE id = 5",
    )
    async with open_database(url, 20_000, {"note": spec(columns=columns)}) as database:
        notes = Notes(Shop(database, url))
        assert await notes.having("kitchen") == [5]
        assert [BY_INDEX[kind] in statement for statement in notes.statements] == [False]


ATTACKS = (
    "INSERT INTO note__text (note__text) VALUES ('delete-all')",
    "SELECT * FROM note__text_other",
    "SELECT sql FROM sqlite_master",
    "PRAGMA data_version = 1",
    "PRAGMA table_info(note__text)",
    "DROP TABLE note__text",
)


# Servers have roles: see test_attacks_servers.
@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
async def test_the_search_connection_is_read_only_with_an_index_too(url: str) -> None:
    await execute(url, "CREATE TABLE note__text_other (a)")
    engine = engine_for(url, timeout_ms=5000, connections=1, result_kb=100)
    for attack in ATTACKS:
        with pytest.raises(SourceError):
            await engine.read(
                lambda connection, statement=attack: (  # type: ignore[misc]
                    connection.exec_driver_sql(statement).fetchall()
                ),
                ["note", "note__text"],
            )
    with pytest.raises(SourceError):
        await engine.read(
            lambda connection: connection.exec_driver_sql("SELECT * FROM note__text").fetchall(),
            ["note"],
        )
    await engine.close()


async def test_a_field_with_a_name_of_the_engines_index_is_searched_without_one(
    fresh_database: Fresh,
) -> None:
    columns = [
        {"name": "id", "type": "ID"},
        {"name": "name", "type": "string"},
        {"name": "rank", "type": "string"},
    ]
    rows = [
        {"id": 1, "name": "Ada Sato", "rank": "captain"},
        {"id": 2, "name": "Ben Ortiz", "rank": "mate"},
    ]
    spec = {"id": "sailor", "table": {"name": "sailor"}, "columns": columns, "values": rows}
    made = await fresh_database()
    async with open_database(made, 20_000, {"sailor": ModelSpec.model_validate(spec)}) as database:
        await database.load()
        words = [{"field": "*", "op": "match", "value": ["capt"]}]
        found = await Shop(database, made).search("all sailors", "sailor", wheres=words)
        assert [item.record_id for item in found.items] == [1]
