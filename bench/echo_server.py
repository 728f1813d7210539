"""An MCP server over stdio with one tool that answers at once, for `bench/calls.py`."""

from __future__ import annotations

from mcp.server import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("echo", log_level="ERROR")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def echo(text: str) -> str:
    """Say it again."""
    return text


if __name__ == "__main__":
    server.run()
