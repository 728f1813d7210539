"""Results of calls over MCP, and the collections they are about."""

from __future__ import annotations

from typing import Any

from mcp import Client
from mcp.types import CallToolResult, TextContent

from groundhook.core.types.turn import Identity

RED, BLUE = Identity(tenant_id="red", user_id="r"), Identity(tenant_id="blue", user_id="b")


def text_of(answer: CallToolResult) -> str:
    first = answer.content[0]
    assert isinstance(first, TextContent)
    return first.text


async def structured(connected: Client, name: str, arguments: dict[str, Any]) -> Any:
    answer = await connected.call_tool(name, arguments)
    assert not answer.is_error, answer.content
    return answer.structured_content
