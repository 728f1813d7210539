"""System models: the host's users and teams, which an app maps to tables of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from host.app import open_host
from host.types.turn import Identity
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
    "relations": {"team": {"type": "hasOne", "model": "__yao.team", "key": "id", "foreign": "team_id"}},
    "option": {"permission": True},
    "values": [
        {"id": 1, "name": "Ann", "email": "ann@a.example", "team_id": "red", "__yao_tenant_id": "a"},
        {"id": 2, "name": "Bob", "email": "bob@b.example", "team_id": "blue", "__yao_tenant_id": "b"},
    ],
}
TEAM = {
    "name": "Team",
    "table": {"name": "groups_of_people"},
    "columns": [{"name": "id", "type": "string", "primary": True}, {"name": "name", "type": "string"}],
    "values": [{"id": "red", "name": "The Reds"}, {"id": "blue", "name": "The Blues"}],
}


@pytest.fixture
async def app(make_app: MakeApp) -> Path:
    made = make_app(
        {
            "assistants/a/package.yao": '{"name": "A", "db": {"models": ["__yao.user"]}, "search": {"db": true}}',
            "models/__yao/user.mod.yao": json.dumps(USER),
            "models/__yao/team.mod.yao": json.dumps(TEAM),
        }
    )
    async with open_host(made, environment={}) as host:
        await host.database.load()
    return made


async def test_users_are_searched_under_their_own_name_and_only_those_of_the_tenant(app: Path) -> None:
    async with open_host(app, environment={}) as host:
        assert [problem.message for problem in await host.check() if problem.severity == "error"] == []
        asked = {"type": "db", "query": "list all users", "select": ["name", "team.name"]}
        found = await host.search(asked, assistant="a", identity=Identity(user_id="x", tenant_id="a"))
        nobody = await host.search(asked, assistant="a")
    assert [(item.model, item.data) for item in found.items] == [
        ("__yao.user", {"id": 1, "name": "Ann", "team.name": "The Reds"})
    ]
    assert "not permitted" in (nobody.error or "")
