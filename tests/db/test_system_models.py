"""System models: the host's users and teams, as they are built in and as an app maps them to tables
of its own."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from groundhook import open_host
from groundhook.core.types.turn import Identity
from tests.conftest import MakeApp

USER = {
    "name": "User",
    "table": {"name": "accounts"},
    "columns": [
        {"name": "id", "type": "ID"},
        {"name": "name", "type": "string"},
        {"name": "email", "type": "string"},
        {"name": "team_id", "type": "string", "nullable": True},
    ],
    "relations": {
        "team": {"type": "hasOne", "model": "__yao.team", "key": "id", "foreign": "team_id"}
    },
    "option": {"permission": True},
    "values": [
        {
            "id": 1,
            "name": "Ann",
            "email": "ann@a.example",
            "team_id": "red",
            "__yao_tenant_id": "a",
        },
        {
            "id": 2,
            "name": "Bob",
            "email": "bob@b.example",
            "team_id": "blue",
            "__yao_tenant_id": "b",
        },
    ],
}
TEAM = {
    "name": "Team",
    "table": {"name": "groups_of_people"},
    "columns": [
        {"name": "id", "type": "string", "primary": True},
        {"name": "name", "type": "string"},
    ],
    "values": [{"id": "red", "name": "The Reds"}, {"id": "blue", "name": "The Blues"}],
}


@pytest.fixture
async def app(make_app: MakeApp) -> Path:
    made = make_app(
        {
            "assistants/a/package.yao": (
                '{"name": "A", "db": {"models": ["__yao.user"]}, "search": {"db": true}}'
            ),
            "models/__yao/user.mod.yao": json.dumps(USER),
            "models/__yao/team.mod.yao": json.dumps(TEAM),
        }
    )
    async with open_host(made, environment={}) as host:
        await host.database.load()
    return made


async def test_users_are_a_model_limited_to_the_tenant(
    app: Path,
) -> None:
    async with open_host(app, environment={}) as host:
        assert [
            problem.message for problem in await host.check() if problem.severity == "error"
        ] == []
        requested = {"type": "db", "query": "list all users", "select": ["name", "team.name"]}
        found = await host.search(
            requested, assistant="a", identity=Identity(user_id="x", tenant_id="a")
        )
        nobody = await host.search(requested, assistant="a")
    assert [(item.model, item.data) for item in found.items] == [
        ("__yao.user", {"id": 1, "name": "Ann", "team.name": "The Reds"})
    ]
    assert "not permitted" in (nobody.error or "")


# ----------------------------------------------------------------------------------------- built in

TABLES = """
    CREATE TABLE __yao_user (id INTEGER PRIMARY KEY, user_id TEXT, name TEXT, email TEXT, team_id TEXT, password TEXT);
    CREATE TABLE __yao_team (id INTEGER PRIMARY KEY, team_id TEXT, name TEXT, owner_id TEXT);
    INSERT INTO __yao_user VALUES (1, 'u1', 'Ann', 'ann@a.example', 'red', 'x'), (2, 'u2', 'Bob', 'bob@b.example', 'red', 'x'),
        (3, 'u3', 'Cem', 'cem@c.example', 'blue', 'x'), (4, 'u4', 'Dot', NULL, NULL, 'x');
    INSERT INTO __yao_team VALUES (1, 'red', 'The Reds', 'u1'), (2, 'blue', 'The Blues', 'u3');
"""


@pytest.fixture
def plain_app(make_app: MakeApp) -> Path:
    return make_app(
        {
            "assistants/a/package.yao": (
                '{"name": "A", "db": {"models": ["__yao.user"]}, "search": {"db": true}}'
            )
        }
    )


@pytest.fixture
def users_app(plain_app: Path) -> Path:
    """An app whose database is the host's."""
    (plain_app / ".groundhook").mkdir()
    with closing(sqlite3.connect(plain_app / ".groundhook/data.sqlite")) as connection:
        connection.executescript(TABLES)
    return plain_app


@pytest.mark.parametrize(
    ("who", "seen"),
    [
        (Identity(user_id="u1", team_id="red"), ["Ann", "Bob"]),
        (Identity(team_id="blue"), ["Cem"]),
        (Identity(user_id="u4"), ["Dot"]),
        (Identity(user_id="U4"), []),
    ],
)
async def test_a_user_sees_the_own_row_and_the_own_team(
    users_app: Path, who: Identity, seen: list[str]
) -> None:
    async with open_host(users_app, environment={}) as host:
        assert [
            problem.message for problem in await host.check() if problem.severity == "error"
        ] == []
        found = await host.search({"type": "db", "query": "all users"}, assistant="a", identity=who)
        counted = await host.search(
            {"type": "db", "query": "how many users are there"}, assistant="a", identity=who
        )
    assert sorted(item.title for item in found.items) == seen
    assert [item.data for item in counted.items] == [{"count": len(seen)}]
    assert all("password" not in (item.data or {}) for item in found.items)


async def test_users_of_another_team_are_invisible_over_relations(users_app: Path) -> None:
    requested = {
        "type": "db",
        "models": ["__yao.team"],
        "query": "teams",
        "wheres": [{"field": "members.name", "value": "Cem"}],
    }
    async with open_host(users_app, environment={}) as host:
        found = await host.search(requested, identity=Identity(user_id="u3", team_id="blue"))
        other = await host.search(requested, identity=Identity(user_id="u1", team_id="red"))
    assert ([item.title for item in found.items], other.items, other.error) == (
        ["The Blues"],
        (),
        None,
    )


@pytest.mark.parametrize("identity", [Identity(), Identity(tenant_id="acme")])
async def test_without_a_user_or_a_team_nothing_is_visible(
    users_app: Path, identity: Identity
) -> None:
    async with open_host(users_app, environment={}) as host:
        found = await host.search(
            {"type": "db", "query": "all users"}, assistant="a", identity=identity
        )
    assert "not permitted" in (found.error or "")


async def test_loading_never_creates_the_hosts_tables_and_a_search_reports_them_missing(
    plain_app: Path,
) -> None:
    async with open_host(plain_app, environment={}) as host:
        assert await host.database.load() == []
        with closing(sqlite3.connect(plain_app / ".groundhook/data.sqlite")) as connection:
            assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []
        assert (await host.database.check())[1] == []
        found = await host.search(
            {"type": "db", "query": "all users"}, assistant="a", identity=Identity(user_id="u1")
        )
    assert "no table of the host's users or teams" in (found.error or "")
    assert "models/__yao/user.mod.yao" in (found.error or "")


async def test_a_message_can_refer_to_the_table_of_users(users_app: Path) -> None:
    part = {
        "type": "data",
        "data": {
            "sources": [
                {"type": "table", "name": "__yao_user"},
                {"type": "model", "name": "__yao.team"},
            ]
        },
    }
    message = {"role": "user", "content": [{"type": "text", "text": "list them"}, part]}
    async with (
        open_host(users_app, environment={}) as host,
        host.stream("a", [message], identity=Identity(user_id="u1", team_id="red")) as events,
    ):
        found = {
            event.item.title
            for event in [event async for event in events]
            if event.type == "search_result"
        }
    assert found == {"Ann", "Bob", "The Reds"}
