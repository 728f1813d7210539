"""Tools over HTTP: listed, called, streamed, and as an MCP server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

from groundhook.host.server.identity.caller import ALL_SCOPES
from groundhook.host.server.identity.keys import make_key
from tests.server.conftest import LOCAL, OTHER, READER, Serve, Served, serving, settings, write

NOTES = {
    "connectors/extractive.conn.yao": '{"type": "extractive"}',
    "assistants/house/package.yao": (
        '{ "name": "House", "connector": "extractive", "tools": ["documents"] }'
    ),
    "assistants/house/toolkits/documents.toolkit.yao": json.dumps(
        {
            "type": "documents",
            "source": {"file": "summaries.jsonl"},
            "identity": {"member": "user_id", "partner": "user_id"},
        }
    ),
    "assistants/house/summaries.jsonl": (
        '{"id": 7, "title": "Offer for the lift", "content": "The drive of the lift."}\n'
        '{"id": 8, "title": "Snow rota", "content": "Who clears the snow."}\n'
    ),
    "assistants/closed/package.yao": '{ "name": "Closed", "automated": true }',
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = write(
        tmp_path_factory.mktemp("tools") / "app", {**NOTES, "agent/agent.yml": settings()}
    )
    with serving(Path(folder)) as served:
        yield served


# Made anew each time.
KEYS = {"local": LOCAL, "other": OTHER, "reader": READER, "wrong": "gh_wrong"}
ASSISTANT = {"assistant": "house"}


def test_the_tools_of_an_assistant_are_listed_with_their_schemas(house: Served) -> None:
    with house.client(OTHER) as client:
        [tool] = client.get("/api/tools", params=ASSISTANT).json()["tools"]
        assert tool["name"] == "search_documents"
        assert tool["canonical"] == "documents.search_documents"
        assert tool["parameters"]["required"] == ["query"]
        assert client.get("/api/tools/search_documents", params=ASSISTANT).json() == tool
        assert client.get("/api/tools/nothing", params=ASSISTANT).status_code == 404


def test_a_tool_is_called_with_the_body_as_its_arguments(house: Served) -> None:
    with house.client(OTHER) as client:
        answer = client.post(
            "/api/tools/search_documents", params=ASSISTANT, json={"query": "the lift"}
        )
    assert answer.status_code == 200
    found = answer.json()
    assert set(found) == {
        "name",
        "result",
        "text",
        "error",
        "items",
        "warnings",
        "duration_ms",
    }
    assert found["result"]["documents"][0]["id"] == 7


def test_progress_is_streamed_before_the_result(house: Served) -> None:
    with house.client(OTHER, accept="text/event-stream") as client:
        text = client.post(
            "/api/tools/search_documents", params=ASSISTANT, json={"query": "snow"}
        ).text
    kinds = [line[7:] for line in text.splitlines() if line.startswith("event: ")]
    assert kinds[-1] == "tool_result"
    assert "tool_progress" in kinds[:-1]


@pytest.mark.parametrize(
    ("key", "params", "name", "body", "status"),
    [
        ("other", ASSISTANT, "search_documents", {"query": ""}, 400),
        ("other", ASSISTANT, "search_documents", {"query": "x", "member": "y"}, 400),
        ("other", ASSISTANT, "search_documents", ["x"], 400),
        ("other", ASSISTANT, "search_document", {"query": "x"}, 404),
        ("other", {"assistant": "closed"}, "search_documents", {"query": "x"}, 404),
        ("other", {}, "search_documents", {"query": "x"}, 400),
        ("reader", ASSISTANT, "search_documents", {"query": "x"}, 403),
        ("wrong", ASSISTANT, "search_documents", {"query": "x"}, 401),
    ],
)
def test_what_is_refused_has_a_status(
    house: Served, key: str, params: dict[str, str], name: str, body: Any, status: int
) -> None:
    with house.client(KEYS[key]) as client:
        answer = client.post(f"/api/tools/{name}", params=params, json=body)
    assert answer.status_code == status
    assert str(house.app) not in answer.text


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_tool_whose_client_leaves_is_stopped(serve: Serve, accept: str) -> None:
    waits = """
        /** Waits. */
        export function waits(args: {}, ctx: any) { time.Sleep(60000); return 1; }
    """
    files = {
        "assistants/waiting/package.yao": '{ "name": "Waiting", "connector": "titles" }',
        "assistants/waiting/src/tools.ts": waits,
    }
    calls = 'groundhook_requests_total{method="POST",route="/api/tools/{tool}",status='
    limits = {"streams_at_once": 1, "turns_at_once": 1}
    with serve(files, limits=limits) as served, served.client(accept=accept) as client:
        # Nothing of the answer has come by then: the tool needs longer.
        with pytest.raises(httpx.ReadTimeout):
            client.post(
                "/api/tools/waits",
                params={"assistant": "waiting"},
                json={},
                timeout=httpx.Timeout(60, read=0.5),
            ).raise_for_status()
        # One that goes on ends at a limit, with another status.
        while calls not in (figures := client.get("/metrics").text):
            pass
        assert f'{calls}"{204 if accept == "application/json" else 200}"}}' in figures
        if accept == "text/event-stream":  # and one that does not leave has an open stream
            waits = "/api/tools/waits?assistant=waiting"
            with client.stream("POST", waits, json={}) as answer:
                assert answer.status_code == 200
                assert client.post(waits, json={}).status_code == 429
                assert client.post("/mcp", json={}).status_code == 429


@asynccontextmanager
async def connected(house: Served, key: str, path: str = "/mcp") -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{house.url}{path}", http_client=http)) as client,
    ):
        yield client


@pytest.mark.parametrize("key", ["local", "other"])
async def test_an_mcp_client_calls_tools_over_http_with_a_key(house: Served, key: str) -> None:
    async with connected(house, KEYS[key], "/mcp?assistant=house") as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"ask", "search", "fetch", "search_documents"} <= names
        answer = await client.call_tool("search_documents", {"query": "the lift"})
        assert not answer.is_error
        assert answer.structured_content["documents"][0]["id"] == 7


async def test_a_reader_without_a_choice_reaches_only_offered_assistants(house: Served) -> None:
    async with connected(house, OTHER) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"ask", "search", "fetch", "batch_fetch", "search_documents"}
        assert tools["ask"].input_schema["properties"]["assistant"]["enum"] == ["house"]
        told = client.instructions or ""
        assert "- house:" in told
        assert "closed" not in told
        refused = await client.call_tool("ask", {"question": "x", "assistant": "closed"})
        assert refused.is_error
        first = refused.content[0]
        assert isinstance(first, TextContent)
        assert "no assistant" in first.text


def test_without_an_issuer_an_mcp_client_is_sent_to_no_place_to_sign_in(house: Served) -> None:
    with house.client("") as client:
        answer = client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert answer.status_code == 401
    assert "resource_metadata" not in answer.headers["www-authenticate"]


async def test_an_assistant_that_is_not_offered_is_no_mcp_server(house: Served) -> None:
    with pytest.raises((MCPError, ExceptionGroup)):
        async with connected(house, OTHER, "/mcp?assistant=closed") as client:
            await client.list_tools()


NARROW, ASKS = make_key(), make_key()
NARROW_KEYS = [
    {"name": "narrow", "key": NARROW, "user": "n", "scopes": ALL_SCOPES, "assistants": ["house"]},
    {"name": "searches", "key": OTHER, "user": "o", "scopes": ["search"]},
    {"name": "asks", "key": ASKS, "user": "a", "scopes": ["chat", "search"]},
]


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Served]:
    given = settings(auth={"keys": NARROW_KEYS}, limits={"turns_per_minute": 2})
    folder = write(tmp_path / "app", {**NOTES, "agent/agent.yml": given})
    with serving(Path(folder)) as served:
        yield served


async def test_answers_and_tools_over_mcp_need_their_scope_and_count_as_turns(
    limited: Served,
) -> None:
    async def texts(key: str, name: str, arguments: dict[str, str], times: int) -> list[str]:
        async with connected(limited, key, "/mcp?assistant=house") as client:
            answers = [await client.call_tool(name, arguments) for _ in range(times)]
        return [str(one.content[0].text) if one.is_error else "answered" for one in answers]  # type: ignore[union-attr]

    over = "2 turns a minute are allowed"
    assert await texts(OTHER, "ask", {"question": "?"}, 1) == ["this needs the scope 'chat'"]
    # One more may pass where a minute of the counter ends.
    asked = await texts(ASKS, "ask", {"question": "lift?"}, 4)
    assert (asked[:2], asked[3]) == (["answered", "answered"], over)
    searched = await texts(OTHER, "search_documents", {"query": "lift"}, 4)
    assert (searched[:2], searched[3]) == (["answered", "answered"], over)


async def test_an_author_whose_key_lists_assistants_reaches_nothing_beyond_them(
    limited: Served,
) -> None:
    async with connected(limited, NARROW) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {"ask", "search", "fetch", "batch_fetch", "search_documents"}
    assert tools["ask"].input_schema["properties"]["assistant"]["enum"] == ["house"]
    with limited.client(NARROW) as client:
        assert client.get("/api/tools").status_code == 400
        assert client.post("/api/search", json={"query": "x"}).status_code == 400
        for source in ("kb/agents.closed.kb/x", "db/agents.closed.tea/1"):
            answer = client.get(f"/api/sources/{source}")
            assert (answer.status_code, "no source" in answer.text) == (404, True)
