"""An app as an MCP server, driven by the SDK's own client in both ages of the protocol."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters
from pydantic import BaseModel

from groundhook import Host, open_host
from groundhook.core.types.turn import Identity
from groundhook.host.server.identity.secret import Secret
from groundhook.host.server.mcp.caller import McpCaller
from groundhook.host.server.mcp.server import mcp_server
from groundhook.host.server.mcp.sources import McpSources
from groundhook.host.server.mcp.tools import McpTools
from groundhook.plugins import Needs, Plugin, Plugins, Tool, ToolScope
from tests.cli.conftest import COMMAND
from tests.conftest import MakeApp
from tests.parts.mcp_results import BLUE, RED, structured, text_of

APP = {
    "agent/agent.yml": "kb_storage:\n  idle_s: 3\n",
    "assistants/tea/package.yao": '{"name": "Tea", "kb": {"collections": ["notes"]}, "search": {"kb": true}}',
    "kb/notes.kb.yao": '{"name": "Notes", "tenant_field": "who", "permission": "tenant"}',
    "red.jsonl": json.dumps(
        {"id": "green", "who": "red", "title": "Green tea", "content": "Green tea steeps briefly."}
    ),
    "blue.jsonl": json.dumps(
        {"id": "black", "who": "blue", "title": "Black tea", "content": "Black tea steeps longer."}
    ),
}


SOURCES = {"search", "fetch", "batch_fetch", "search_documents"}


class Nothing(BaseModel):
    pass


class Sum(BaseModel):
    numbers: list[int]


def register(plugins: Plugins) -> None:
    plugins.tools.add(
        "sum",
        Tool(
            name="sum",
            description="Add numbers.",
            arguments=Sum,
            run=lambda wanted: {"sum": sum(wanted.numbers)},
        ),
    )
    plugins.tools.add(
        "mine",
        Tool(
            name="mine",
            description="For users.",
            arguments=Nothing,
            run=lambda _: [1, 2],
            needs=Needs(identity=("user",)),
        ),
    )

    plugins.tools.add(
        "steps",
        Tool(name="steps", description="Works in steps.", arguments=Nothing, run=in_steps),
    )


def in_steps(_: Nothing, scope: ToolScope) -> Any:
    """Report a step, and go on when the client has received it."""

    async def work() -> str:
        await scope.progress(done=1, total=2, message="half")
        await RECEIVED[-1].wait()
        return "done"

    return work()


RECEIVED: list[anyio.Event] = []


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    for name, text in APP.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
async def host(app: Path) -> AsyncIterator[Host]:
    async with open_host(app, plugins=[Plugin(register, requires=1)]) as opened:
        await opened.add_documents("notes", app / "red.jsonl")
        await opened.add_documents("notes", app / "blue.jsonl")
        yield opened


@asynccontextmanager
async def client(
    host: Host,
    identity: Identity = RED,
    *,
    mode: Literal["auto", "legacy"] = "auto",
    assistant: str = "",
    connector: bool = True,
) -> AsyncIterator[Client]:
    sources = McpSources(host=host, secret=Secret(host.app.state))
    tools = McpTools(host=host, sources=sources, connector=connector)
    caller = McpCaller(identity=identity, assistant=assistant)
    async with Client(mcp_server(tools, lambda _: caller), mode=mode) as connected:
        yield connected


async def names(connected: Client) -> set[str]:
    return {tool.name for tool in (await connected.list_tools()).tools}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_search_and_fetch_have_the_shape_that_chat_clients_expect(
    host: Host, mode: Literal["auto", "legacy"]
) -> None:
    async with client(host, mode=mode) as connected:
        found = await structured(connected, "search", {"query": "green tea"})
        assert found == {
            "results": [{"id": "kb:notes/red.jsonl#green", "title": "Green tea", "url": ""}]
        }
        whole = await structured(connected, "fetch", {"id": "kb:notes/red.jsonl#green"})
        assert set(whole) == {"id", "title", "text", "url", "metadata"}
        assert whole["text"] == "Green tea steeps briefly."


async def test_one_tenant_sees_nothing_of_another(host: Host) -> None:
    async with client(host, BLUE) as connected:
        found = await structured(connected, "search", {"query": "green tea"})
        assert [one["id"] for one in found["results"]] in ([], ["kb:notes/blue.jsonl#black"])
        listed = await connected.list_resources()
        assert [str(one.uri) for one in listed.resources] == [
            "groundhook://kb/notes/blue.jsonl%23black"
        ]
        theirs = await connected.call_tool("fetch", {"id": "kb:notes/red.jsonl#green"})
        never = await connected.call_tool("fetch", {"id": "kb:notes/red.jsonl#purple"})
        assert theirs.is_error
        assert never.is_error
        assert text_of(theirs).replace("green", "purple") == text_of(never)
        with pytest.raises(MCPError):
            await connected.read_resource("groundhook://kb/notes/red.jsonl%23green")


async def test_without_an_identity_nothing_is_found_and_tools_for_users_are_not_listed(
    host: Host,
) -> None:
    async with client(host, Identity()) as connected:
        assert await structured(connected, "search", {"query": "tea"}) == {"results": []}
        assert (await connected.list_resources()).resources == []
        assert await names(connected) == {"ask", *SOURCES, "sum", "steps"}
        refused = await connected.call_tool("mine", {})
        assert refused.is_error
        assert refused.structured_content is None


@pytest.mark.parametrize(
    "id", ["", "green", "kb:", "kb:notes/", "kb:/etc/passwd", "web:http://127.0.0.1/", "db:x/1"]
)
async def test_an_id_that_search_did_not_return_is_an_error_in_words(host: Host, id: str) -> None:
    async with client(host) as connected:
        answer = await connected.call_tool("fetch", {"id": id})
        assert answer.is_error
        assert text_of(answer)


async def test_an_unexpected_error_reaches_no_client_with_its_text(host: Host) -> None:
    def broken(_: object) -> McpCaller:
        raise RuntimeError("SELECT secret FROM /srv/app")

    sources = McpSources(host=host, secret=Secret(host.app.state))
    async with Client(mcp_server(McpTools(host=host, sources=sources), broken)) as connected:
        for call in (connected.list_tools, connected.list_resources):
            with pytest.raises(MCPError, match="something went wrong on the server") as caught:
                await call()
            assert "secret" not in str(caught.value)
        with pytest.raises(MCPError, match="something went wrong on the server"):
            await connected.call_tool("fetch", {"id": "x"})


async def test_tools_of_the_app_have_schemas_hints_and_structured_results(host: Host) -> None:
    async with client(host) as connected:
        tools = {tool.name: tool for tool in (await connected.list_tools()).tools}
        assert tools["sum"].annotations is not None
        assert tools["sum"].annotations.read_only_hint
        assert not tools["sum"].annotations.destructive_hint
        assert tools["ask"].annotations is not None
        assert not tools["ask"].annotations.read_only_hint
        assert await structured(connected, "sum", {"numbers": [1, 2]}) == {"sum": 3}
        assert await structured(connected, "mine", {}) == {"result": [1, 2]}
        wrong = await connected.call_tool("sum", {"numbers": "x"})
        assert wrong.is_error
        assert "numbers" in text_of(wrong)


async def test_numbers_of_the_model_are_no_citations_in_text_and_json(make_app: MakeApp) -> None:
    said = "Green [1], black [2], `a[1]`."
    files = {
        "assistants/said/package.yao": '{"name": "Said", "connector": "s"}',
        "connectors/s.conn.yao": json.dumps({"type": "scripted", "options": {"script": [said]}}),
    }
    async with (
        open_host(make_app(files)) as opened,
        client(opened, assistant="said", connector=False) as connected,
    ):
        answer = await connected.call_tool("ask", {"question": "Which teas?"})
    assert text_of(answer) == "Green (1), black (2), `a[1]`."
    assert answer.structured_content["content"] == text_of(answer)


async def test_a_whole_turn_answers_with_numbers_and_reports_its_searches(host: Host) -> None:
    steps: list[str] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append(message or "")

    async with client(host, assistant="tea", connector=False) as connected:
        assert "search" not in await names(connected)
        answer = await connected.call_tool(
            "ask", {"question": "How long does green tea steep?"}, progress_callback=note
        )
    assert not answer.is_error
    assert "steeps briefly" in text_of(answer)
    assert "[1]" in text_of(answer)
    assert answer.structured_content["citations"][0]["verdict"] == "ok"
    assert answer.structured_content["grounded"] is True
    assert answer.structured_content["claims"]["cited"] == 1
    assert [step.partition(":")[0] for step in steps] == [
        "searching",
        "found 1",
        "1 source given to the model",
        "writing the answer",
    ]
    names_of_links = [part.name for part in answer.content if part.type == "resource_link"]
    assert names_of_links
    assert all(name.split()[0] in text_of(answer) for name in names_of_links)
    assert names_of_links[0].startswith("[1] ")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_is_told_what_the_server_holds_and_how_to_cite(
    host: Host, mode: Literal["auto", "legacy"]
) -> None:
    async with client(host, mode=mode) as connected:
        told = connected.instructions or ""
    assert "`ask` puts a question to an assistant" in told
    assert "`fetch` reads one" in told
    assert "- tea: Tea." in told
    assert "collections: notes" in told
    async with client(host, assistant="tea", connector=False, mode=mode) as connected:
        told = connected.instructions or ""
    assert "fetch" not in told
    assert "collections" not in told


async def test_progress_of_a_tool_is_reported_while_it_works(host: Host) -> None:
    RECEIVED.append(anyio.Event())
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))
        RECEIVED[-1].set()

    with anyio.fail_after(60):
        async with client(host) as connected:
            answer = await connected.call_tool("steps", {}, progress_callback=note)
    assert answer.structured_content == {"result": "done"}
    assert seen == [(1, 2, "half")]


async def test_an_unknown_assistant_or_question_is_an_error_in_words(host: Host) -> None:
    async with client(host) as connected:
        for arguments in ({"question": "x", "assistant": "coffee"}, {"assistant": "tea"}, {}):
            answer = await connected.call_tool("ask", arguments)
            assert answer.is_error
            assert text_of(answer)


async def test_a_server_of_one_assistant_asks_it_and_refuses_another(host: Host) -> None:
    question = {"question": "How long does green tea steep?"}
    for fixed in ("", "tea"):
        async with client(host, assistant=fixed) as connected:
            [schema] = [
                tool.input_schema
                for tool in (await connected.list_tools()).tools
                if tool.name == "ask"
            ]
            assert schema["required"] == ["question"]
            if not fixed:
                assert "- tea: " in schema["properties"]["assistant"]["description"]
            answer = await structured(connected, "ask", question)
            assert answer["assistant_id"] == "tea"
            other = await connected.call_tool("ask", {**question, "assistant": "coffee"})
            assert other.is_error
            assert text_of(other) == "no assistant 'coffee' (known: tea)"


async def test_an_unknown_tool_is_answered_with_the_names_of_those_that_are_served(
    host: Host,
) -> None:
    async with client(host, assistant="tea") as connected:
        answer = await connected.call_tool("serch", {})
        assert text_of(answer) == "no tool 'serch' (did you mean 'search'?)"


async def test_a_source_without_an_address_for_the_client_has_none(host: Host) -> None:
    async with client(host) as connected:
        answer = await structured(connected, "ask", {"question": "How long does green tea steep?"})
        assert [one["url"] for one in (*answer["citations"], *answer["sources"])] == ["", ""]


async def test_the_command_serves_one_client_over_standard_input_and_output(
    make_app: MakeApp,
) -> None:
    app = make_app({"assistants/tea/package.yao": '{"name": "Tea"}'})
    server = StdioServerParameters(command=str(COMMAND), args=["mcp", "serve", "--app", str(app)])
    with anyio.fail_after(60):
        async with Client(server) as connected:
            assert "ask" in await names(connected)


async def test_an_assistant_does_not_reach_the_collections_of_one_nested_below_it(
    tmp_path: Path,
) -> None:
    files = {
        "assistants/a/package.yao": '{"name": "A"}',
        "assistants/a/b/package.yao": '{"name": "B"}',
        "assistants/a/b/kb/secret.kb.yao": '{"name": "S", "embedding": {"provider": "hash"}}',
        "secret.md": "The word is sesame.",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    async with open_host(tmp_path) as opened:
        await opened.add_documents("agents.a.b.secret", tmp_path / "secret.md")
        request = {"type": "kb", "query": "sesame word", "collections": ["agents.a.b.secret"]}
        assert (await opened.search(request, assistant="a.b")).items
        refused = await opened.search(request, assistant="a")
        assert refused.items == ()
        assert "belongs to another assistant" in (refused.error or "")
        async with client(opened, assistant="a") as connected:
            found = await structured(connected, "search", {"query": "sesame word"})
            assert found == {"results": []}
            answer = await connected.call_tool("fetch", {"id": "kb:agents.a.b.secret/secret.md"})
            assert answer.is_error
