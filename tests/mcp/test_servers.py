"""Operations of servers over both transports, and the errors of servers that cannot be used."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from groundhook.core.errors import (
    ServerMalformed,
    ServerNotConfigured,
    ServerRefused,
    ServerUnreachable,
    ToolFailed,
    UnknownName,
    UsageError,
)
from groundhook.host.config.environment import process_environment
from groundhook.host.tools.mcp.servers import Servers, open_servers
from tests.loopback.server import Html, Json, serving
from tests.mcp.conftest import HttpServer, Open, declared, read, script, stdio, value

TEXT = {"content": [{"type": "text", "text": "hi"}]}


@pytest.fixture(scope="module")
async def servers() -> AsyncIterator[Servers]:
    """Our own server as `own`, for tests that do not disturb it."""
    async with open_servers(declared(own=stdio()), {}) as opened:
        yield opened


async def test_every_operation_returns_plain_data_with_the_protocols_names(
    servers: Servers,
) -> None:
    tools = {tool["name"]: tool for tool in (await servers.list_tools("own"))["tools"]}
    assert tools["echo"]["description"] == "Say it again."
    assert tools["echo"]["inputSchema"]["required"] == ["text"]
    assert tools["echo"]["annotations"] == {"readOnlyHint": True}
    assert await servers.call_tool("own", "echo", {"text": "hi"}) == {
        **TEXT,
        "structuredContent": {"result": "hi"},
    }
    assert await servers.call_tool("own", "plain", {"text": "hi"}) == TEXT
    assert (await servers.list_resources("own"))["resources"][0]["uri"] == "memo://today"
    read = await servers.read_resource("own", "memo://today")
    assert read == {
        "contents": [{"uri": "memo://today", "mimeType": "text/plain", "text": "nothing"}]
    }
    assert (await servers.list_prompts("own"))["prompts"][0]["arguments"] == [
        {"name": "name", "required": True}
    ]
    assert await servers.get_prompt("own", "greet", {"name": 7}) == {
        "description": "Greet somebody.",
        "messages": [{"role": "user", "content": {"type": "text", "text": "Say hello to 7."}}],
    }


async def test_the_same_operations_work_over_http(opened: Open, http_server: HttpServer) -> None:
    async with opened(web=http_server.spec) as servers:
        assert "echo" in {tool["name"] for tool in (await servers.list_tools("web"))["tools"]}
        assert await servers.call_tool("web", "plain", {"text": "hi"}) == TEXT
        assert (await servers.read_resource("web", "memo://today"))["contents"][0][
            "text"
        ] == "nothing"
        assert (await servers.get_prompt("web", "greet", {"name": "you"}))["messages"][0][
            "role"
        ] == "user"


async def test_a_tools_answer_as_one_value(servers: Servers) -> None:
    assert await value(servers, "own", "search", {"query": "q"}) == {
        "results": [{"title": "q", "score": None}]
    }
    assert await value(servers, "own", "plain", {"text": '{"a": 1}'}) == {"a": 1}
    assert await value(servers, "own", "plain", {"text": "words"}) == "words"
    with pytest.raises(ToolFailed, match=r"^tool 'picture' of MCP server 'own' failed: no film$"):
        await value(servers, "own", "picture")


async def test_a_failure_that_a_tool_reports_is_a_value(servers: Servers) -> None:
    result = await servers.call_tool("own", "picture")
    assert result == {
        "content": [{"type": "text", "text": "no film"}],
        "isError": True,
        "error": "no film",
    }
    assert "fail" in (await servers.call_tool("own", "fail", {"why": "x"}))["error"]
    assert "text" in (await servers.call_tool("own", "echo", {}))["error"]


async def test_nothing_starts_before_it_is_used(opened: Open, tmp_path: Path) -> None:
    started = tmp_path / "started"
    async with opened(own=script(f"open({str(started)!r}, 'w')"), other=stdio()) as servers:
        assert await value(servers, "other", "plain", {"text": "x"}) == "x"
        assert not started.exists()
        with pytest.raises(ServerUnreachable):
            await servers.list_tools("own")
        assert started.exists()


async def test_a_program_gets_the_variables_that_its_file_names_and_no_others(
    opened: Open, tmp_path: Path
) -> None:
    async with opened(own=stdio(env={"KEY": "k"})) as servers:
        given = await value(servers, "own", "environment")
    assert given.keys() - {"LC_CTYPE"} == {"PATH", "HOME", "KEY"}  # LC_CTYPE: Python's own
    assert (given["KEY"], given["HOME"]) == ("k", str(tmp_path))


async def test_unknown_names_raise_an_error_with_the_nearest(servers: Servers) -> None:
    with pytest.raises(
        UnknownName, match=r"^no MCP tool 'own\.ecko' \(did you mean 'own\.echo'\?\)$"
    ):
        await servers.call_tool("own", "ecko")
    with pytest.raises(UnknownName, match=r"^no MCP server 'onw' \(did you mean 'own'\?\)$"):
        await servers.call_tool("onw", "echo")
    with pytest.raises(
        ServerRefused, match=r"^MCP server 'own' refused resources/read 'memo://tomorrow': "
    ):
        await servers.read_resource("own", "memo://tomorrow")
    with pytest.raises(ServerRefused, match=r"^MCP server 'own' refused prompts/get 'insult': "):
        await servers.get_prompt("own", "insult")


async def test_a_tool_that_is_not_allowed_is_neither_listed_nor_called(
    opened: Open, diary: Path
) -> None:
    async with opened(own=stdio(tools=("echo", "plain"), env={"DIARY": str(diary)})) as servers:
        assert [tool["name"] for tool in (await servers.list_tools("own"))["tools"]] == [
            "echo",
            "plain",
        ]
        assert set((await servers.schemas(["own"])).names) == {"own__echo", "own__plain"}
        with pytest.raises(
            UsageError,
            match=(
                r"^tool 'act' of MCP server 'own' is not allowed \('tools' in its file allows echo,"
                r" plain"
            ),
        ):
            await servers.call_tool("own", "act")
        assert await value(servers, "own", "plain", {"text": "x"}) == "x"
    assert read(diary) == []


async def test_tools_of_several_servers_have_names_that_a_model_may_use(opened: Open) -> None:
    specs = {
        "agents.shop.files": stdio(tools=("echo",)),
        "a": stdio(),
        "none": script("raise SystemExit(3)"),
    }
    async with opened(**specs) as servers:
        toolset = await servers.schemas(
            {"a": ["plain", "search"], "agents.shop.files": [], "none": []}
        )
        assert list(toolset.names) == ["a__search", "a__plain", "agents_shop_files__echo"]
        function_schema = toolset.schemas[-1]["function"]
        assert (function_schema["name"], function_schema["parameters"]["required"]) == (
            "agents_shop_files__echo",
            ["text"],
        )
        assert isinstance(toolset.failed["none"], ServerUnreachable)
        named = toolset.names["agents_shop_files__echo"]
        assert await servers.call_tool(named.server, named.tool, {"text": "hi"}) | TEXT


async def test_an_oversized_answer_is_an_error_and_the_server_stays(
    servers: Servers,
) -> None:
    before = await value(servers, "own", "pid")
    with pytest.raises(
        ServerMalformed,
        match=r"^the answer of MCP server 'own' to tools/call 'large' is larger than 4096 KB",
    ):
        await servers.call_tool("own", "large", {"megabytes": 10})
    assert len(await value(servers, "own", "large", {"megabytes": 3})) == 3 * 1024 * 1024
    assert await value(servers, "own", "pid") == before


@pytest.mark.parametrize("http_server", ["sse", "json"], indirect=True)
async def test_an_oversized_answer_is_an_error_over_http(
    opened: Open, http_server: HttpServer
) -> None:
    async with opened(web=http_server.spec) as servers:
        with pytest.raises(
            ServerMalformed,
            match=r"^the answer of MCP server 'web' to tools/call 'large' is larger than 4096 KB",
        ):
            await servers.call_tool("web", "large", {"megabytes": 10})
        assert len(await value(servers, "web", "large", {"megabytes": 2})) == 2 * 1024 * 1024


async def test_a_missing_program_is_named(opened: Open) -> None:
    async with opened(own={"command": "no-such-server"}) as servers:
        with pytest.raises(
            ServerNotConfigured,
            match=r"^MCP server 'own' cannot be started: 'no-such-server': No such file",
        ):
            await servers.list_tools("own")


async def test_a_program_that_ends_at_once_is_quoted(opened: Open) -> None:
    async with opened(
        own=script("import sys; sys.exit('\\x1b[31mno key\\x1b[0m is set')")
    ) as servers:
        with pytest.raises(ServerUnreachable) as caught:
            await servers.list_tools("own")
    assert (
        str(caught.value)
        == "MCP server 'own' ended before it was ready; it ended with exit code 1; its last output: no"
        " key is set"
    )


@pytest.mark.parametrize(
    "text",
    [
        "input(); print('Hello there')",
        "print('Hello there', flush=True); input()\n"
        + "print('more', flush=True)\n" * 60
        + "input()",
    ],
)
async def test_the_output_of_a_program_that_is_not_an_mcp_server_is_quoted(
    opened: Open, text: str
) -> None:
    async with opened(own=script(text)) as servers:
        with pytest.raises(
            ServerMalformed, match=r"^MCP server 'own' does not speak MCP; .*'Hello there'"
        ):
            await servers.list_tools("own")


async def test_invalid_lines_between_messages_are_ignored(servers: Servers) -> None:
    assert await value(servers, "own", "garbage") == "done"
    assert await value(servers, "own", "plain", {"text": "x"}) == "x"


BAD_ANSWERS = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    greeting = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    endless = {"prompts": [], "nextCursor": "again"}
    results = {"initialize": greeting, "tools/list": {"tools": [{"name": "x"}]}, "prompts/list": endless}
    if request["method"] in results:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": results[request["method"]]}), flush=True)
    elif "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "what?"}}), flush=True)
"""


async def test_answers_of_the_wrong_shape_are_errors(opened: Open) -> None:
    async with opened(own=script(BAD_ANSWERS, timeout=60)) as servers:
        with pytest.raises(
            ServerMalformed,
            match=r"to tools/list is not valid MCP: tools\[0\]\.inputSchema: field required$",
        ):
            await servers.list_tools("own")
        with pytest.raises(ServerMalformed, match="more than 100 pages"):
            await servers.list_prompts("own")
        with pytest.raises(
            ServerRefused, match=r"^MCP server 'own' refused prompts/get 'x': what\? \(-32601\)$"
        ):
            await servers.get_prompt("own", "x")


async def test_an_address_that_is_not_an_mcp_server_is_an_error(opened: Open) -> None:
    with serving() as server:
        server.on("/page", Html("<html>Hello</html>"))
        server.on("/locked", Json({"detail": "no"}, 401))
        server.on("/broken", Json({"detail": "oh"}, 500))
        paths = {
            name: {"transport": "http", "url": f"{server.url}/{name}"}
            for name in ("page", "locked", "broken", "nothing")
        }
        paths["closed"] = {"transport": "http", "url": "http://127.0.0.1:9/mcp"}
        paths["old"] = {"transport": "sse", "url": f"{server.url}/locked"}
        paths["old_page"] = {"transport": "sse", "url": f"{server.url}/page"}
        async with opened(**paths) as servers:
            with pytest.raises(
                ServerRefused,
                match=r"^MCP server 'locked' at .* refused the connection: 401 .*credentials",
            ):
                await servers.list_tools("locked")
            with pytest.raises(ServerRefused, match=r"^MCP server 'broken' at .*: 500"):
                await servers.list_tools("broken")
            with pytest.raises(
                ServerRefused,
                match=r"^MCP server 'nothing' at .*: 404 .*\(check 'url' in its file\)$",
            ):
                await servers.list_tools("nothing")
            with pytest.raises(ServerRefused, match="Unexpected content type: text/html"):
                await servers.list_tools("page")
            with pytest.raises(ServerRefused, match=r"^MCP server 'old' at .*: 401 .*credentials"):
                await servers.list_tools("old")
            with pytest.raises(ServerUnreachable, match=r"'old_page' .* got 'text/html'"):
                await servers.list_tools("old_page")
            with pytest.raises(
                ServerUnreachable,
                match=r"^MCP server 'closed' cannot be reached at http://127\.0\.0\.1:9/mcp: ",
            ):
                await servers.list_tools("closed")


@pytest.mark.parametrize(
    "keys", [{"headers": {"Authorization": "Bearer k"}}, {"authorization_token": "k"}]
)
async def test_headers_are_sent_with_every_request(opened: Open, keys: dict[str, Any]) -> None:
    with serving() as server:
        async with opened(own={"transport": "http", "url": f"{server.url}/mcp", **keys}) as servers:
            with pytest.raises(ServerRefused):
                await servers.list_tools("own")
        assert server.requests
        assert {requested.headers["authorization"] for requested in server.requests} == {"Bearer k"}


async def test_published_servers_work(opened: Open, published: Path, tmp_path: Path) -> None:
    everything = {
        "command": "node",
        "args": (str(published / "server-everything/dist/index.js"), "stdio"),
    }
    notes = {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
    memory = {
        "command": "node",
        "args": (str(published / "server-memory/dist/index.js"),),
        "env": notes,
    }
    async with opened(everything=everything, memory=memory) as servers:
        assert "Echo: hi" in str(await servers.call_tool("everything", "echo", {"message": "hi"}))
        assert (await servers.list_prompts("everything"))["prompts"]
        resource = (await servers.list_resources("everything"))["resources"][0]
        assert (await servers.read_resource("everything", resource["uri"]))["contents"]
        entity = {
            "name": "Ada",
            "entityType": "person",
            "observations": ["wrote the first program"],
        }
        await value(servers, "memory", "create_entities", {"entities": [entity]})
        assert (await value(servers, "memory", "search_nodes", {"query": "program"}))[
            "entities"
        ] == [entity]
        assert (await servers.schemas(["everything", "memory"])).failed == {}


async def test_a_killed_and_restarted_published_server_over_http_works_again(
    opened: Open, published: Path
) -> None:
    port = str(await _free_port())
    command = ["node", str(published / "server-everything/dist/index.js"), "streamableHttp"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    env = {"PORT": port, "PATH": process_environment()["PATH"]}
    async with opened(web={"transport": "http", "url": f"http://127.0.0.1:{port}/mcp"}) as servers:
        for text in ("first", "second"):
            async with await anyio.open_process(command, env=env, **quiet) as process:
                await _listening(int(port))
                assert f"Echo: {text}" in json.dumps(
                    await servers.call_tool("web", "echo", {"message": text})
                )
                process.kill()


async def _free_port() -> int:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
    assert isinstance(port, int)
    return port


async def _listening(port: int) -> None:
    while True:
        try:
            async with await anyio.connect_tcp("127.0.0.1", port):
                return
        except OSError:
            await anyio.sleep(0.02)


def test_the_sdk_is_not_loaded_before_a_server_is_used() -> None:
    code = "import sys, groundhook.host.tools.mcp.servers; sys.exit('mcp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
