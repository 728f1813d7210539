"""Several connectors: the next one is called if one cannot answer at all, never after a first word;
names are checked first."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from groundhook import open_host
from groundhook.core.types.events import Event
from tests.conftest import MakeApp
from tests.keys import key
from tests.loopback.chat import answer, chunk
from tests.loopback.server import Hang, Json, Loopback, Sse, serving
from tests.parts.turns import end, of

PATH = "/v1/chat/completions"
OTHER = "/other/chat/completions"
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving() as server:
        yield server


def files(server: Loopback, connector: str = '["one", "two"]', **options: Any) -> dict[str, str]:
    more = "".join(f', "{name}": {value}' for name, value in options.items())

    def model(path: str) -> str:
        return (
            f'{{"type": "openai", "options": {{"model": "m", "host": "{server.url}/{path}",'
            f' "retries": 0, "timeout": 60{more}}}}}'
        )

    return {
        "assistants/a/package.yao": (
            f'{{"connector": {connector}, "search": {{"kb": true}}, "kb": {{"collections":'
            ' ["none"]}}'
        ),
        "kb/none.kb.yao": "{}",
        "connectors/one.conn.yao": model("v1"),
        "connectors/two.conn.yao": model("other"),
        "connectors/keyless.conn.yao": (
            '{"type": "openai", "options": {"model": "m", "key": "$ENV.NO_SUCH_KEY"}}'
        ),
    }


async def ask(
    app: Path, environment: dict[str, str] | None = None, assistant: str = "a", **requested: Any
) -> list[Event]:
    with anyio.fail_after(60):
        async with (
            open_host(app, environment=environment or {}) as host,
            host.stream(assistant, "hello", **requested) as events,
        ):
            return [event async for event in events]


def warnings(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.code, event.message) for event in of(events, "warning")]


@pytest.mark.parametrize(
    ("first", "code"),
    [
        (Json({"error": {"message": "overloaded"}}, 503), "model"),
        (Json({"error": {"message": "slow down"}}, 429), "model_refused"),
        (Json({"error": {"message": "no such key"}}, 401), "model_refused"),
        (Json({"hello": "world"}), "model_garbled"),
        (Sse([], then="cut"), "model_unreachable"),
        (Sse([b"data: " + b"[" * 5000 + b"]" * 5000 + b"\n\n"]), "model_garbled"),
        (Sse([b'data: {"created": ' + b"9" * 5000 + b"}\n\n"]), "model_garbled"),
    ],
)
async def test_the_next_connector_answers_when_one_cannot(
    make_app: MakeApp, server: Loopback, first: Any, code: str
) -> None:
    server.on(PATH, first)
    server.on(OTHER, Sse(answer("From the other.")))
    events = await ask(make_app(files(server)))
    assert end(events).content == "From the other."
    ((warned, message),) = [each for each in warnings(events) if "answers instead" in each[1]]
    assert warned == code
    assert message.endswith("'two' answers instead of 'one'")
    assert not of(events, "error")


async def test_one_that_stalls_or_is_not_there_is_passed_over(
    make_app: MakeApp, server: Loopback
) -> None:
    server.on(PATH, Hang())
    server.on(OTHER, Sse(answer("Yes.")))
    events = await ask(make_app(files(server, first_token_timeout=1)))
    assert end(events).content == "Yes."
    assert "sent no token within 1 s" in warnings(events)[-1][1]


async def test_after_the_first_word_there_is_no_other(make_app: MakeApp, server: Loopback) -> None:
    server.on(PATH, Sse([chunk({"content": "Half an ans"})], then="cut"))
    server.on(OTHER, Sse(answer("Never.")))
    events = await ask(make_app(files(server)))
    assert end(events).content == "Half an ans"
    assert [event.code for event in of(events, "error")] == ["model_truncated"]
    assert [requested.path for requested in server.requests] == [PATH]


async def test_when_none_can_answer_the_last_failure_is_the_turns(
    make_app: MakeApp, server: Loopback
) -> None:
    server.on(PATH, Json({}, 500))
    server.on(OTHER, Json({"error": {"message": "also broken"}}, 500))
    events = await ask(make_app(files(server)))
    assert ["also broken" in event.message for event in of(events, "error")] == [True]
    assert [requested.path for requested in server.requests] == [PATH, OTHER]


async def test_the_one_that_answered_serves_the_rounds_of_tools_too(
    make_app: MakeApp, server: Loopback
) -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "nothing", "arguments": "{}"}}
    server.on(PATH, Json({}, 500), Sse(answer("Never.")))
    server.on(
        OTHER,
        Sse([chunk({"tool_calls": [call]}), chunk(finish="tool_calls"), "[DONE]"]),
        Sse(answer("Done.")),
    )
    events = await ask(make_app(files(server)))
    assert end(events).content == "Done."
    assert [requested.path for requested in server.requests] == [PATH, OTHER, OTHER]


async def test_a_connector_that_needs_a_variable_is_passed_over_and_alone_it_fails_before_searching(
    make_app: MakeApp, server: Loopback
) -> None:
    server.on(PATH, Sse(answer("Here.")))
    app = make_app(files(server, '["keyless", "one"]'))
    events = await ask(app)
    assert end(events).content == "Here."
    assert "NO_SUCH_KEY" in warnings(events)[-1][1]
    alone = await ask(app, connector="keyless")
    assert ["NO_SUCH_KEY" in event.message for event in of(alone, "error")] == [True]


@pytest.mark.parametrize("connector", ['"on"', '["one", "on"]'])
async def test_an_unknown_connector_is_noticed_before_searching(
    make_app: MakeApp, server: Loopback, connector: str
) -> None:
    events = await ask(make_app(files(server, connector)))
    assert [(event.code, event.message, event.hint) for event in of(events, "error")] == [
        ("unknown_name", "no connector 'on'", "did you mean 'one'?")
    ]
    assert not of(events, "search_start")
    assert server.requests == []


async def test_check_finds_an_unknown_connector_in_a_list_at_its_place(
    make_app: MakeApp, server: Loopback
) -> None:
    async with open_host(make_app(files(server, '["one", "tow"]')), environment={}) as host:
        found = [str(problem) for problem in await host.check() if problem.severity == "error"]
    assert found == [
        "assistants/a/package.yao:1:23: error: no connector 'tow' (did you mean 'two'?)"
    ]


async def test_a_list_of_connectors_may_come_from_the_request_and_from_a_hook(
    make_app: MakeApp, server: Loopback
) -> None:
    server.on(PATH, Json({}, 500))
    server.on(OTHER, Sse(answer("Yes.")))
    app = make_app(files(server, '"extractive"'))
    assert end(await ask(app, connector=["one", "two"])).content == "Yes."
    make_app(
        {"assistants/a/index.ts": "function Create() { return { connector: ['one', 'two'] }; }"}
    )
    assert end(await ask(app)).content == "Yes."
    make_app({"assistants/a/index.ts": "function Create() { return { connector: [] }; }"})
    assert "between one and 8 connectors" in of(await ask(app), "error")[0].message


async def test_the_example_of_the_page_runs(make_app: MakeApp, server: Loopback) -> None:
    page = (DOCS / "models.md").read_text(encoding="utf-8")
    written = dict(
        re.findall(r"^`(\S+\.yao)`:\n\n```\w+\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    )
    assert len(written) == 3
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        environment = {
            "LOCAL_MODEL_URL": f"http://127.0.0.1:{unused.getsockname()[1]}/v1",
            "CLOUD_MODEL_URL": f"{server.url}/v1",
            "CLOUD_MODEL_KEY": key("cloud"),
        }
        server.on(PATH, Sse(answer("Good morning.")))
        events = await ask(make_app(written), environment, "helper")
    assert end(events).content == "Good morning."
    assert [code for code, _ in warnings(events)] == ["model_unreachable"]
    (requested,) = server.requests
    assert (requested.headers["authorization"], requested.headers["x-team"]) == (
        f"Bearer {key('cloud')}",
        "docs",
    )
    assert (
        requested.json["model"],
        requested.json["max_tokens"],
        requested.json["reasoning_effort"],
    ) == (
        "gpt-4o-mini",
        800,
        "low",
    )
