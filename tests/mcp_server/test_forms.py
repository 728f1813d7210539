"""Questions back to the user of an MCP client: which reading is meant, and whether a call may run.
The SDK's own client asks, in both ages of the protocol."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import anyio
import mcp_types as types
import pytest
from mcp import Client
from pydantic import BaseModel

from groundhook import Host, open_host
from groundhook.core.ports import Scope, SourceResult
from groundhook.core.types.search import OtherReading, SearchAccount, SearchRequest
from groundhook.core.types.tools import Tool
from groundhook.core.types.turn import Identity
from groundhook.host.server.identity.secret import Secret
from groundhook.host.server.mcp.asking import AS_ASKED
from groundhook.host.server.mcp.caller import McpCaller
from groundhook.host.server.mcp.server import mcp_server
from groundhook.host.server.mcp.sources import McpSources
from groundhook.host.server.mcp.tools import McpTools
from groundhook.host.server.mcp.values import FormAnswer
from groundhook.host.testing.canned import canned_item
from tests.conftest import MakeApp
from tests.parts.mcp_results import text_of
from tests.parts.turns import scripted

ADA = Identity(tenant_id="red", user_id="ada")
Mode = Literal["auto", "legacy"]
MODES: list[Mode] = ["auto", "legacy"]


class Order(BaseModel):
    order: int


@asynccontextmanager
async def asking(
    host: Host, mode: Mode, answer: types.ElicitResult | None, asked: list[str]
) -> AsyncIterator[Client]:
    """A client whose user answers every form so; None: a client that shows none."""

    async def show(_: Any, params: Any) -> Any:
        assert answer is not None
        asked.append(params.message)
        properties = params.requested_schema["properties"]
        assert list(properties) in (["approve"], ["reading"], ["answer"])
        return answer

    tools = McpTools(host=host, sources=McpSources(host=host, secret=Secret(host.app.state)))
    server = mcp_server(tools, lambda _: McpCaller(identity=ADA))
    with anyio.fail_after(60):
        callback: Any = show if answer is not None else None
        async with Client(server, mode=mode, elicitation_callback=callback) as connected:
            yield connected


def accepted(**content: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content=content)


@asynccontextmanager
async def orders(make_app: MakeApp, ran: list[int]) -> AsyncIterator[Host]:
    def cancel(arguments: Order) -> str:
        ran.append(arguments.order)
        return "cancelled"

    call = {"tool_calls": [{"name": "cancel", "arguments": {"order": 3}}]}
    script = [call, {"text": "That is that.", "times": 0}]
    app = make_app(
        {
            "connectors/s.conn.yao": json.dumps(
                {"type": "scripted", "options": {"script": script}}
            ),
            "assistants/orders/package.yao": '{"name": "Orders", "connector": "s"}',
        }
    )
    tool = Tool(name="cancel", description="Cancel", arguments=Order, run=cancel, confirm=True)
    async with open_host(app, environment={}, tools=[tool]) as host:
        yield host


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("answer", "runs"),
    [
        (accepted(approve=True), [3]),
        (accepted(approve=False), []),
        (types.ElicitResult(action="decline"), []),
        (types.ElicitResult(action="cancel"), []),
    ],
    ids=["approved", "refused", "declined", "cancelled"],
)
async def test_a_call_runs_when_the_user_of_the_client_approves_it(
    make_app: MakeApp, mode: Mode, answer: types.ElicitResult, runs: list[int]
) -> None:
    ran: list[int] = []
    asked: list[str] = []
    async with orders(make_app, ran) as host, asking(host, mode, answer, asked) as client:
        result = await client.call_tool("ask", {"question": "Cancel order 3"})
    assert asked == ['The assistant wants to run:\ncancel {"order": 3}']
    assert text_of(result) == "That is that."
    assert ran == runs


async def test_a_client_without_forms_is_told_that_nobody_can_approve(make_app: MakeApp) -> None:
    ran: list[int] = []
    async with orders(make_app, ran) as host, asking(host, "auto", None, []) as client:
        result = await client.call_tool("ask", {"question": "Cancel order 3"})
    assert text_of(result) == "That is that."
    assert ran == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (accepted(answer="2024"), "Of 2024."),
        (types.ElicitResult(action="decline"), "Of null."),
        (None, "Nobody can be asked."),
    ],
    ids=["answered", "declined", "no forms"],
)
async def test_the_user_answers_a_question_of_a_hook(
    make_app: MakeApp, mode: Mode, answer: types.ElicitResult | None, text: str
) -> None:
    hook = """
    function Create(ctx) {
      let year;
      try { year = ctx.Ask("Of which year?", ["2023", "2024"]); }
      catch { return { answer: "Nobody can be asked." }; }
      return { answer: `Of ${year}.` };
    }"""
    asked: list[str] = []
    app = make_app({"assistants/orders/package.yao": "{}", "assistants/orders/index.ts": hook})
    async with (
        open_host(app, environment={}) as host,
        asking(host, mode, answer, asked) as client,
    ):
        result = await client.call_tool("ask", {"question": "How many?"})
    assert asked == (["Of which year?"] if answer else [])
    assert text_of(result) == text


@pytest.mark.parametrize(
    ("thrown", "text"),
    [
        ("", "the assistant asks back, which cannot be shown here: Of which year?"),
        ("new Error('secret')", "the answer could not be completed"),
    ],
    ids=["its question", "another error"],
)
async def test_a_client_without_forms_gets_the_question_of_a_hook(
    make_app: MakeApp, thrown: str, text: str
) -> None:
    hook = f"""
    function Create(ctx) {{
      try {{ ctx.Ask("Of which year?", ["2023", "2024"]); }}
      catch (error) {{ throw {thrown or "error"}; }}
    }}"""
    app = make_app({"assistants/orders/package.yao": "{}", "assistants/orders/index.ts": hook})
    async with open_host(app, environment={}) as host, asking(host, "auto", None, []) as client:
        result = await client.call_tool("ask", {"question": "How many?"})
    assert result.is_error
    assert text_of(result) == text + ("" if thrown else " (2023 / 2024)")


@pytest.mark.parametrize("state", ["{", "[]", '{"chat": 1, "message": 2}', '{"chat": "c_x"}'])
async def test_a_state_that_the_server_has_not_sent_runs_nothing(
    make_app: MakeApp, state: str
) -> None:
    ran: list[int] = []
    async with orders(make_app, ran) as host:
        tools = McpTools(host=host, sources=McpSources(host=host, secret=Secret(host.app.state)))

        async def report(*_: Any) -> None:
            pass

        for sent in (state, '{"chat": "c_none", "message": "m_none"}'):
            answer = await tools.call(
                "ask",
                {"question": "?"},
                McpCaller(identity=ADA),
                report,
                given=FormAnswer(values={"approve": True}, state=sent),
                can_show=True,
            )
            assert answer.failed
    assert ran == []


class TwoReadings:
    """A source that reads each question in two ways."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def search(self, request: SearchRequest, _: Scope, /) -> SourceResult:
        self.asked.append(request.query)
        account = SearchAccount(readings=(OtherReading(read_as="orders by year", total=2),))
        return SourceResult(items=(canned_item("one"),), total=1, account=account)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("answer", "searched"),
    [
        (accepted(reading="orders by year"), ["Orders?", "orders by year"]),
        (accepted(reading=AS_ASKED), ["Orders?", "Orders?"]),
        (types.ElicitResult(action="decline"), ["Orders?", "Orders?"]),
        (None, ["Orders?"]),
    ],
    ids=["chosen", "as asked", "declined", "no forms"],
)
async def test_the_user_says_which_reading_is_meant(
    make_app: MakeApp, mode: Mode, answer: types.ElicitResult | None, searched: list[str]
) -> None:
    model, source = scripted({"text": "Two.", "times": 0}), TwoReadings()
    asked: list[str] = []
    package = {"connector": "script", "search": {"kb": True}, "kb": {"collections": ["notes"]}}
    app = make_app(
        {
            "assistants/orders/package.yao": json.dumps(package),
            "kb/notes.kb.yao": '{"name": "Notes"}',
        }
    )
    sources: Any = {"kb": source, "web": source, "db": source}
    async with (
        open_host(app, environment={}, sources=sources, connectors={"script": model}) as host,
        asking(host, mode, answer, asked) as client,
    ):
        result = await client.call_tool("ask", {"question": "Orders?"})
    assert text_of(result) == "Two."
    assert source.asked == searched
    assert len(asked) == (answer is not None)
