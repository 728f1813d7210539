"""Requests that name no assistant go to the app's default, in every interface."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from groundhook import open_host
from groundhook.core.errors import UsageError
from tests.conftest import MakeApp
from tests.parts.command import run_command
from tests.server.conftest import Serve, settings

MESSAGES = [{"role": "user", "content": "Which teas?"}]
PLAIN = {"assistants/a/package.yao": "{}", "assistants/desk/package.yao": '{"name": "Desk"}'}
DESK = {**PLAIN, "agent/agent.yml": "uses: {default: desk}\n"}
NONE = "no assistant is named, and there is no default"
ASKED: dict[str, dict[str, Any]] = {
    "/api/turns": {"text": "Which teas?"},
    "/api/chats": {},
    "/v1/chat/completions": {"messages": MESSAGES},
    "/v1/responses": {"input": "Which teas?"},
}


def with_default(id: str, **more: Any) -> dict[str, str]:
    return {
        "agent/agent.yml": json.dumps({**json.loads(settings(**more)), "uses": {"default": id}})
    }


def test_a_server_answers_with_the_default(serve: Serve) -> None:
    with serve(with_default("talks")) as server, server.client() as client:
        turn = client.post("/api/turns", json=ASKED["/api/turns"])
        chat = client.post("/api/chats", json={})
        completion = client.post("/v1/chat/completions", json=ASKED["/v1/chat/completions"])
        empty = {**ASKED["/v1/chat/completions"], "model": ""}
        same = client.post("/v1/chat/completions", json=empty)
        response = client.post("/v1/responses", json=ASKED["/v1/responses"])
    assert turn.status_code == 200
    assert '"assistant_id":"talks"' in turn.text
    assert chat.json()["assistant_id"] == "talks"
    assert (completion.json()["model"], same.json()["model"]) == ("talks", "talks")
    assert response.json()["model"] == "talks"


@pytest.mark.parametrize("path", ASKED)
def test_without_a_default_a_request_has_to_name_one(serve: Serve, path: str) -> None:
    with serve() as server, server.client() as client:
        answer = client.post(path, json=ASKED[path])
    assert answer.status_code == 400
    assert NONE in answer.text
    if path.startswith("/v1/"):
        assert answer.json()["error"]["param"] == "model"


def test_the_default_is_open_to_visitors_if_it_is_public(serve: Serve) -> None:
    with (
        serve(with_default("late", auth={"anonymous": True})) as server,
        server.client("") as client,
        client.stream("POST", "/api/turns", json=ASKED["/api/turns"]) as answer,
    ):
        assert answer.status_code == 200


async def test_programs_name_none_by_an_empty_id(make_app: MakeApp) -> None:
    async with open_host(make_app(DESK), environment={}) as host:
        async with host.stream("", "Which teas?") as events:
            started = await anext(aiter(events))
        async with host.chat("") as chat:
            assert chat.assistant_id == "desk"
    assert started.type == "stream_start"
    assert started.assistant_id == "desk"
    none = {**DESK, "agent/agent.yml": "uses: {}\n"}
    async with open_host(make_app(none), environment={}) as host:
        with pytest.raises(UsageError, match=r"set uses\.default in agent/agent\.yml"):
            host.stream("", "Which teas?")


def test_the_command_takes_none_or_an_empty_id(make_app: MakeApp) -> None:
    app = make_app(DESK)
    for arguments, typed in ((["chat", "", "Which teas?"], b""), (["chat"], b"Which teas?\n")):
        code, _, err = run_command([*arguments, "--json"], folder=app, environment={}, stdin=typed)
        assert code == 0, err
    (app / "agent/agent.yml").unlink()
    code, _, err = run_command(["chat"], folder=app, environment={}, stdin=b"")
    assert code == 1
    assert b"uses.default" in err


async def problems(app: Path) -> list[str]:
    async with open_host(app, environment={}) as host:
        return [str(problem).partition(" (")[0] for problem in await host.check()]


async def test_the_check_finds_a_default_that_does_not_exist(make_app: MakeApp) -> None:
    assert await problems(make_app(DESK)) == []
    wrong = {**DESK, "agent/agent.yml": "uses: {default: desc}\n"}
    assert await problems(make_app(wrong)) == [
        "agent/agent.yml:1:17: error: no assistant 'desc'",
    ]
    own = {**DESK, "assistants/a/package.yao": '{"uses": {"default": "desk"}}'}
    assert await problems(make_app(own)) == [
        "assistants/a/package.yao:1:22: warning: 'uses.default' has no effect",
    ]
