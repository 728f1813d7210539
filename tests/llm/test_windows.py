"""The window of a model, learned from its endpoint beside the first answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from groundhook import Host, open_host
from groundhook.core.trace import recording
from groundhook.core.types.events import Event, TraceNode
from groundhook.host.llm.openai import OpenAIConnector
from groundhook.host.testing.canned import CannedSource
from tests.conftest import MakeApp
from tests.loopback.chat import answer
from tests.loopback.server import Hang, Json, Loopback, Sse, serving
from tests.parts.openai_asking import PATH, spec
from tests.parts.turns import of

MODELS = "/v1/models"


def models(**entry: Any) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": "other"}, {"id": "test-model", **entry}]}


LLAMA = {"data": [{"id": "a.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 32768}}]}
OLLAMA = {"data": [{"id": "test-model:latest", "owned_by": "library"}]}
REPORTS: dict[str, tuple[dict[str, Any], int]] = {
    "vllm": ({MODELS: models(owned_by="vllm", max_model_len=8192)}, 8192),
    "openrouter": ({MODELS: models(context_length=131072)}, 131072),
    "llama.cpp": (
        {MODELS: LLAMA, "/props": {"default_generation_settings": {"n_ctx": 4096}}},
        4096,
    ),
    "llama.cpp without its settings": ({MODELS: LLAMA, "/props": {}}, 32768),
    "ollama": (
        {MODELS: OLLAMA, "/api/show": {"parameters": 'stop "x"\nnum_ctx    2048'}},
        2048,
    ),
    "ollama without a setting": (
        {MODELS: OLLAMA, "/api/show": {"model_info": {"qwen3.context_length": 40960}}},
        40960,
    ),
    "another": ({MODELS: models()}, 0),
    "of another shape": ({MODELS: ["test-model", {"data": "x"}]}, 0),
}


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving() as server:
        yield server


async def learn(connector: OpenAIConnector) -> TraceNode:
    """Let a connector learn; return the last state of its step."""
    nodes: list[TraceNode] = []
    with recording(nodes.append):
        await connector.learn_window()
    return nodes[-1]


@pytest.mark.parametrize("kind", REPORTS)
async def test_an_endpoint_reports_the_window_of_its_model(server: Loopback, kind: str) -> None:
    pages, window = REPORTS[kind]
    for path, body in pages.items():
        server.on(path, Json(body))
    connector = OpenAIConnector(spec(server))
    assert connector.window is None
    node = await learn(connector)
    assert (node.type, node.status, node.data) == (
        "window",
        "completed",
        {"context_tokens": window},
    )
    assert connector.window == window
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer sk-test"}


async def test_an_endpoint_that_reports_nothing_is_a_failed_step_and_is_left_alone(
    server: Loopback,
) -> None:
    connector = OpenAIConnector(spec(server))
    node = await learn(connector)
    assert node.status == "failed"
    assert "404" in node.data["error"]
    assert connector.window == 0


def test_a_window_that_the_file_has_is_not_asked_for(server: Loopback) -> None:
    assert OpenAIConnector(spec(server, context_tokens=9000)).window == 9000
    assert OpenAIConnector(spec(server, host="")).window == 0


@asynccontextmanager
async def opened(make_app: MakeApp, server: Loopback) -> AsyncIterator[Host]:
    connector = spec(server).model_dump(mode="json", exclude_unset=True, exclude={"id"})
    app = make_app(
        {
            "assistants/a/package.yao": '{"connector": "gpt", "prompts": [], "search": false}',
            "connectors/gpt.conn.yao": json.dumps(connector),
        }
    )
    sources: Mapping[Any, Any] = {kind: CannedSource({}) for kind in ("kb", "web", "db")}
    with anyio.fail_after(60):
        async with open_host(app, environment={}, sources=sources) as host:
            yield host


async def ask(host: Host) -> list[Event]:
    long = "word " * 3000
    messages = [
        {"role": "user", "content": long},
        {"role": "assistant", "content": long},
        {"role": "user", "content": "And now?"},
    ]
    async with host.stream("a", messages) as events:
        return [event async for event in events]


async def test_prompts_are_cut_to_a_window_from_the_turn_after_it_was_learned(
    make_app: MakeApp, server: Loopback
) -> None:
    server.on(PATH, Sse(answer("Fine.")))
    server.on(MODELS, Json(models(max_model_len=4096)))
    async with opened(make_app, server) as host:
        first = await ask(host)
        while host.runtime.connectors("gpt").window is None:  # type: ignore[attr-defined]
            first = await ask(host)  # its answer was faster than what it earlier for
        earlier = len(server.requests)
        second, third = await ask(host), await ask(host)
    assert [event.code for event in of(first, "warning")] == []
    assert [event.code for event in of(second, "warning")] == ["context_shortened"]
    assert [event.code for event in of(third, "warning")] == ["context_shortened"]
    assert [request.path for request in server.requests[earlier:]] == [PATH, PATH]


async def test_no_turn_waits_for_an_endpoint_that_does_not_report(
    make_app: MakeApp, server: Loopback
) -> None:
    server.on(PATH, Sse(answer("Fine.")))
    server.on(MODELS, Hang())
    async with opened(make_app, server) as host:
        events = await ask(host)
    assert events[-1].type == "stream_end"
    assert not of(events, "error")
    (node,) = [e.node for e in of(events, "trace") if e.node.type == "window"][-1:]
    assert (node.status, node.data["error"]) == ("failed", "stopped")
