"""A tool of a real MCP server that reranks a turn, in every way of naming it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import MakeApp
from tests.mcp.conftest import HttpServer
from tests.parts.reranked_turns import order, turn, warnings


@pytest.mark.parametrize(
    ("uses", "rerank"),
    [
        ("mcp:steps", {}),
        ("mcp:steps.rerank", {}),
        ("builtin", {"type": "mcp", "mcp": "steps"}),
        ("builtin", {"mcp": "steps.rerank"}),
        ("builtin", {"mcp": "mcp:steps.rerank"}),
    ],
)
async def test_a_tool_puts_a_turns_results_in_order(
    make_app: MakeApp, steps: HttpServer, uses: str, rerank: dict[str, Any]
) -> None:
    events = await turn(
        make_app, uses=uses, rerank={**rerank, "timeout_ms": 30_000}, files=server(steps)
    )
    assert warnings(events) == []
    assert order(events) == "dcba"


@pytest.mark.parametrize("requested", [{"mcp": "steps.rerank"}, {"type": "mcp", "mcp": "steps"}])
async def test_a_request_cannot_name_a_server_that_the_assistant_was_not_given(
    make_app: MakeApp, steps: HttpServer, requested: dict[str, Any]
) -> None:
    events = await turn(make_app, files=server(steps), options={"rerank": requested})
    assert any("the assistant 'a' may not use" in text for text in warnings(events))
    assert order(events) == "abcd"


async def test_a_tool_that_fails_leaves_the_merged_order(
    make_app: MakeApp, steps: HttpServer
) -> None:
    events = await turn(make_app, uses="mcp:steps.fails", files=server(steps))
    assert order(events) == "abcd"
    assert any("the merged order stays" in text and "'fails'" in text for text in warnings(events))


def server(steps: HttpServer) -> dict[str, str]:
    return {"mcps/steps.mcp.yao": json.dumps(steps.spec)}
