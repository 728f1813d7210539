"""`ctx.mcp` and `ctx.tools` in real isolates: what reaches the host, what comes back, and what is
refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from groundhook.core.errors import HookThrew, ServerUnreachable, UnknownName
from groundhook.core.types.servers import ServerCalling, ServerMethod, ToolAsk
from groundhook.core.types.tools import ToolOutcome
from tests.hooks.conftest import Hooks, Services


@dataclass
class Servers:
    """Answers with the request; the server "gone" cannot be reached, and "slow" never answers."""

    requests: list[tuple[str, str, Mapping[str, Any]]] = field(default_factory=list)
    calls: list[tuple[str, list[ToolAsk]]] = field(default_factory=list)

    async def ask(
        self, server: str, method: ServerMethod, params: Mapping[str, Any], /
    ) -> dict[str, Any]:
        self.requests.append((server, method, params))
        if server == "gone":
            raise ServerUnreachable("MCP server 'gone' ended")
        if server == "slow":
            await anyio.sleep_forever()
        return {"params": dict(params)}

    def start_ms(self, server: str, /) -> int:
        return 0

    async def call_many(
        self, asks: Sequence[ToolAsk], calling: ServerCalling, /
    ) -> list[dict[str, Any]]:
        self.calls.append((calling, list(asks)))
        if any(ask.server == "slow" for ask in asks):
            await anyio.sleep_forever()
        return [{"server": ask.server, "tool": ask.tool, "result": ask.arguments} for ask in asks]


@dataclass
class Tools:
    """One tool, which gives back its arguments."""

    async def offered(self) -> Sequence[Mapping[str, Any]]:
        return [{"name": "echo", "description": "Say it again.", "parameters": {"type": "object"}}]

    async def call(
        self, name: str, arguments: Mapping[str, Any], /, *, pool: bool = False
    ) -> ToolOutcome:
        if name != "echo":
            raise UnknownName("tool", name, ["echo"])
        if "slow" in arguments:
            await anyio.sleep_forever()
        return ToolOutcome(
            toolcall_id="", tool=name, arguments=dict(arguments), result=dict(arguments)
        )


@pytest.fixture
def servers() -> Servers:
    return Servers()


@pytest.fixture
def services(servers: Servers) -> Services:
    return Services(servers=servers, tools=Tools())


@pytest.mark.parametrize(
    ("expression", "requested"),
    [
        ("ctx.mcp.ListTools('s')", ("s", "tools/list", {})),
        ("ctx.mcp.CallTool('s', 't')", ("s", "tools/call", {"name": "t", "arguments": {}})),
        (
            "ctx.mcp.CallTool('s', 't', {a: [1]})",
            ("s", "tools/call", {"name": "t", "arguments": {"a": [1]}}),
        ),
        ("ctx.mcp.ListResources('s')", ("s", "resources/list", {})),
        ("ctx.mcp.ReadResource('s', 'memo://x')", ("s", "resources/read", {"uri": "memo://x"})),
        ("ctx.mcp.ListPrompts('s')", ("s", "prompts/list", {})),
        (
            "ctx.mcp.GetPrompt('s', 'p', {n: 'x'})",
            ("s", "prompts/get", {"name": "p", "arguments": {"n": "x"}}),
        ),
    ],
)
async def test_a_request_reaches_the_server_and_its_answer_the_hook(
    hooks: Hooks,
    servers: Servers,
    services: Services,
    expression: str,
    requested: tuple[str, str, Mapping[str, Any]],
) -> None:
    assert await hooks.value(expression, services) == {"params": requested[2]}
    assert servers.requests == [requested]


@pytest.mark.parametrize(
    ("expression", "calling", "asks"),
    [
        (
            "CallTools('s', [{tool: 'a', arguments: {n: 1}}, {tool: 'b'}])",
            "in_order",
            [("s", "a", {"n": 1}), ("s", "b", {})],
        ),
        ("CallToolsParallel('s', [{name: 'a', arguments: null}])", "all", [("s", "a", {})]),
        (
            "All([{server: 's', tool: 'a'}, {mcp: 'r', tool: 'b'}])",
            "all",
            [("s", "a", {}), ("r", "b", {})],
        ),
        ("Any([{server: 's', tool: 'a'}])", "any", [("s", "a", {})]),
        ("Race([{server: 's', tool: 'a'}])", "race", [("s", "a", {})]),
        ("All([])", "all", []),
    ],
)
async def test_several_calls_reach_the_host_together(
    hooks: Hooks,
    servers: Servers,
    services: Services,
    expression: str,
    calling: str,
    asks: list[tuple[str, str, Any]],
) -> None:
    answers = await hooks.value(f"ctx.mcp.{expression}", services)
    assert answers == [
        {"server": server, "tool": tool, "result": arguments} for server, tool, arguments in asks
    ]
    assert [
        (how, [(ask.server, ask.tool, ask.arguments) for ask in what])
        for how, what in servers.calls
    ] == [(calling, asks)]


async def test_a_server_that_is_gone_throws_an_error_that_can_be_caught(
    hooks: Hooks, services: Services
) -> None:
    expression = (
        "(() => { try { ctx.mcp.CallTool('gone', 't') } catch (e) { return [e instanceof Error,"
        " e.message, e.code] } })()"
    )
    assert await hooks.value(expression, services) == [
        True,
        "MCP server 'gone' ended",
        "server_unreachable",
    ]


async def test_a_server_that_takes_too_long_throws_and_the_hook_goes_on(
    hooks: Hooks, services: Services
) -> None:
    expression = (
        "(() => { try { ctx.mcp.CallTool('slow', 't') } catch (e) { return [e.message, e.code] }"
        " })()"
    )
    message, code = await hooks.value(expression, services, call_ms=50)
    assert message.startswith("ctx.mcp.CallTool: no answer in 50 ms")
    assert code == "server_timeout"


async def test_calls_that_take_too_long_together_are_errors_in_their_places(
    hooks: Hooks, services: Services
) -> None:
    both = "[{server: 'slow', tool: 'a'}, {server: 's', tool: 'b'}]"
    answers = await hooks.value(f"[ctx.mcp.All({both}), ctx.mcp.Any({both})]", services, call_ms=50)
    assert [[(answer["server"], answer["tool"]) for answer in each] for each in answers] == [
        [("slow", "a"), ("s", "b")],
        [("slow", "a")],
    ]
    assert all("no answer in 50 ms" in answer["error"] for each in answers for answer in each)
    tool = await hooks.value("ctx.tools.Call('echo', {slow: 1})", services, call_ms=50)
    assert (tool["name"], tool["result"]) == ("echo", None)
    assert "no answer in 50 ms" in tool["error"]


async def test_the_tools_of_the_turn_can_be_listed_and_called(
    hooks: Hooks, services: Services
) -> None:
    listed = await hooks.value("ctx.tools.List()", services)
    assert listed == [
        {"name": "echo", "description": "Say it again.", "parameters": {"type": "object"}}
    ]
    called = await hooks.value("ctx.tools.Call('echo', {text: 'שלום'})", services)
    assert called == {"name": "echo", "result": {"text": "שלום"}, "error": None, "items": []}


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (
            "ctx.mcp.ListTools()",
            "ctx.mcp.ListTools: the server's id must be text that is not empty, not nothing",
        ),
        (
            "ctx.mcp.CallTool('s')",
            "ctx.mcp.CallTool: the tool's name must be text that is not empty, not nothing",
        ),
        (
            "ctx.mcp.CallTool('s', 't', 'x')",
            "ctx.mcp.CallTool: arguments must be an object, not text",
        ),
        ("ctx.mcp.ReadResource('s', 1)", "ctx.mcp.ReadResource: the resource's uri must be text"),
        (
            "ctx.mcp.CallTools('s', {})",
            "ctx.mcp.CallTools: the calls must be a list of {tool, arguments}, not an object",
        ),
        (
            "ctx.mcp.CallTools('', [])",
            "ctx.mcp.CallTools: the server's id must be text that is not empty, not ''",
        ),
        ("ctx.mcp.All([{tool: 't'}])", "ctx.mcp.All: calls[0]: server is missing"),
        ("ctx.mcp.All([{server: 's'}])", "ctx.mcp.All: calls[0]: tool: "),
        (
            "ctx.mcp.All([{server: 's', tool: 't', arguments: 3}])",
            "ctx.mcp.All: calls[0]: arguments: should be an object",
        ),
        (
            "ctx.mcp.All([7])",
            "ctx.mcp.All: calls[0] must be an object {server, tool, arguments}, not a number",
        ),
        (
            "ctx.mcp.Race(Array(51).fill({server: 's', tool: 't'}))",
            "at most 50 calls at once, not 51",
        ),
        ("ctx.tools.Call('ehco')", "no tool 'ehco' (did you mean 'echo'?)"),
        (
            "ctx.tools.Call('')",
            "ctx.tools.Call: the tool's name must be text that is not empty, not ''",
        ),
        ("ctx.tools.Call('echo', [])", "ctx.tools.Call: arguments must be an object, not a list"),
    ],
)
async def test_wrong_arguments_throw_a_type_error_that_names_them(
    hooks: Hooks, services: Services, expression: str, text: str
) -> None:
    with pytest.raises(HookThrew) as caught:
        await hooks.value(expression, services)
    assert "TypeError" in str(caught.value)
    assert text in str(caught.value)


async def test_a_key_that_nothing_reads_is_a_warning(hooks: Hooks, services: Services) -> None:
    await hooks.value("ctx.mcp.All([{server: 's', tool: 't', argumets: {}}])", services)
    assert [
        (code, "did you mean 'arguments'?" in message) for code, message in services.warnings
    ] == [("unknown_option", True)]
