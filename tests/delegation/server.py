"""An MCP server for tests of delegated steps, over stdio or HTTP (`--http PORT`): tools that answer
well, badly, late, and differently when the retry names the problem."""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
from mcp.server import MCPServer

server = MCPServer("steps", log_level="ERROR")


@server.tool()
def keyword(query: str, max_keywords: int) -> dict[str, Any]:
    """Keywords, as structured content."""
    return {
        "keywords": [
            {"k": word, "w": 1 / (1 + place)}
            for place, word in enumerate(query.split()[:max_keywords])
        ]
    }


@server.tool(structured_output=False)
def as_text(query: str) -> str:
    """Keywords, as JSON in a text."""
    return f"Here you are:\n```json\n{json.dumps([query])}\n```"


@server.tool()
def as_list(query: str) -> list[str]:
    """Keywords as a list, which the SDK wraps."""
    return query.split()


@server.tool(structured_output=False)
def learns(query: str, retry: dict[str, Any] | None = None) -> str:
    """A wrong answer, until the request names the problem."""
    return json.dumps({"keywords": [retry["problem"]] if retry else []})


@server.tool()
def rerank(query: str, items: list[dict[str, Any]], top_n: int) -> dict[str, Any]:
    """The last first."""
    return {"order": [item["citation_id"] for item in items[::-1]][:top_n]}


@server.tool()
def verify(
    question: str, sentences: list[dict[str, Any]], sources: list[dict[str, Any]]
) -> dict[str, Any]:
    """A sentence is supported by the first sentence of a source that has its last word."""
    return {"verdicts": [_verdict(each, sources) for each in sentences]}


def _verdict(sentence: dict[str, Any], sources: list[dict[str, Any]]) -> dict[str, Any]:
    last = sentence["text"].rstrip(".").split()[-1]
    said = [text.partition(".")[0] for text in (source["text"] for source in sources)]
    quote = next((text for text in said if last in text), "")
    return {"id": sentence["id"], "supported": bool(quote), "quote": quote}


@server.tool()
def fails(query: str) -> str:
    """A failure that the tool reports."""
    raise ValueError("out of words")


@server.tool()
async def late(query: str) -> str:
    """An answer that does not come."""
    await anyio.sleep(60)
    return query


@server.tool()
def wants(topic: str) -> str:
    """Arguments that nobody sends."""
    return topic


if "--http" in sys.argv:
    server.run(
        "streamable-http", host="127.0.0.1", port=int(sys.argv[sys.argv.index("--http") + 1])
    )
else:
    server.run()
