"""An MCP server for tests, over stdio or HTTP: `python server.py [--http PORT] [--waits FILE]
[--answers sse|json|old]`; it starts once the file is there, and `old` is the transport before
streamable HTTP.

Its tools do what servers do on good days and on bad ones. A line is appended to the file $DIARY for
each call that acts.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import anyio
from mcp.server import MCPServer
from mcp_types import CallToolResult, TextContent, ToolAnnotations

server = MCPServer("tests", log_level="ERROR")
VARIABLES = dict(os.environ)  # noqa: TID251
READS = ToolAnnotations(read_only_hint=True)


def diary(line: str) -> None:
    if path := VARIABLES.get("DIARY"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


@server.tool(annotations=READS)
def echo(text: str) -> str:
    """Say it again."""
    return text


@server.tool(annotations=READS)
def search(query: str) -> dict[str, Any]:
    """Find something."""
    return {"results": [{"title": query, "score": None}]}


@server.tool(structured_output=False)
def plain(text: str) -> str:
    """Text without structure."""
    return text


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


@server.tool(annotations=READS)
def environment() -> dict[str, str]:
    """The variables of this process."""
    return VARIABLES


@server.tool(annotations=READS, structured_output=False)
def pid() -> int:
    """The number of this process."""
    return os.getpid()


@server.tool(annotations=READS)
async def wait(seconds: float) -> str:
    """Answer later."""
    diary("wait")
    await anyio.sleep(seconds)
    return "waited"


@server.tool()
async def act(seconds: float = 0) -> str:
    """Record a side effect."""
    diary("act")
    await anyio.sleep(seconds)
    return "done"


@server.tool(annotations=READS, structured_output=False)
async def look(seconds: float = 0) -> str:
    """Read something; the first call takes a moment."""
    diary("look")
    text = await anyio.Path(VARIABLES["DIARY"]).read_text(encoding="utf-8")
    await anyio.sleep(seconds if text.count("look") == 1 else 0)
    return "seen"


@server.tool()
def hang(seconds: float) -> str:
    """Stop reading requests."""
    diary("hang")
    time.sleep(seconds)
    return "awake"


@server.tool(annotations=READS, structured_output=False)
def large(megabytes: float) -> str:
    """Answer at length."""
    return "x" * int(megabytes * 1024 * 1024)


@server.tool(structured_output=False)
def die(code: int) -> str:
    """End at once."""
    diary("die")
    os.write(2, b"out of order\n")
    os._exit(code)


@server.tool(structured_output=False)
def garbage() -> str:
    """Write a line to standard output that is not a message."""
    os.write(1, b"Welcome to the server!\n")
    return "done"


@server.tool(structured_output=False)
def picture() -> CallToolResult:
    """A result that describes itself as failed."""
    return CallToolResult(content=[TextContent(type="text", text="no film")], is_error=True)


@server.resource("memo://today", mime_type="text/plain")
def memo() -> str:
    """What is on today."""
    return "nothing"


@server.resource("page://guide/start.html", mime_type="text/html")
def page() -> str:
    """A page."""
    return (
        "<html><body><h1>Start</h1><p>Turn the <b>red</b>"
        " key.</p><script>alert(1)</script></body></html>"
    )


@server.resource("data://prices.json", mime_type="application/json")
def prices() -> bytes:
    """Text as bytes."""
    return b'{"pen": 3}'


@server.resource("image://logo", mime_type="image/png")
def logo() -> bytes:
    """Binary data."""
    return b"\x89PNG"


@server.resource("book://long", mime_type="text/plain")
def book() -> str:
    """More text than is used of one resource."""
    return "\n\n".join(f"Chapter {number}. " + "word " * 280 for number in range(250))


@server.prompt()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Say hello to {name}."


def main(arguments: list[str]) -> None:
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    if "--waits" in options:
        diary("waits")
        while not Path(options["--waits"]).exists():
            time.sleep(0.005)
    if "--http" in options:
        place: dict[str, Any] = {"host": "127.0.0.1", "port": int(options["--http"])}
        if options.get("--answers") == "old":
            server.run("sse", **place)
        else:
            server.run("streamable-http", json_response=options.get("--answers") == "json", **place)
    else:
        server.run()


if __name__ == "__main__":
    main(sys.argv[1:])
