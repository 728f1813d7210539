"""An MCP server for tests of pages that somebody else reads: plain text, JSON, a page that is JSON,
nothing, and an answer that does not come."""

from __future__ import annotations

from typing import Any

import anyio
from mcp.server import MCPServer

server = MCPServer("pages", log_level="ERROR")
TEXT = "The river Spree is 400 km long and reaches Berlin from the south-east."


@server.tool(structured_output=False)
def fetch(url: str, max_length: int = 5000) -> str:
    """Plain text, as the well-known fetch servers answer."""
    return f"Contents of {url}, at most {max_length}:\n{TEXT}"


@server.tool()
def structured(url: str, query: str) -> dict[str, Any]:
    """Structured content, in other words."""
    return {"title": f"For {query}", "markdown": f"# Rivers\n\n{TEXT}", "date": "2026-03-01"}


@server.tool(structured_output=False)
def json_page(url: str) -> str:
    """A page that is JSON itself."""
    return '{"rivers": [{"name": "Spree", "long": "400 km"}]}'


@server.tool(structured_output=False)
def empty(url: str) -> str:
    """No text."""
    return ""


@server.tool()
async def late(url: str) -> str:
    """An answer that does not come."""
    await anyio.sleep(60)
    return url


if __name__ == "__main__":
    server.run()
