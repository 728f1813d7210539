"""`groundhook search web` where somebody else finds the pages: an assistant, or a tool of an MCP
server."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Ran, run_in
from tests.conftest import MakeApp

FINDER = """
function Create(ctx) { return { serch: false }; }
function Next(ctx, payload) {
  const request = JSON.parse(payload.messages[payload.messages.length - 1].content);
  return { data: request.retry ? { results: [
    { url: "https://example.com/a?utm_source=x", title: "About " + request.query, content: request.time_range + " " + request.limit },
    { url: "https://example.org/b", title: "Elsewhere", content: "not requested" },
  ] } : { pages: [] } };
}
"""
PAGES = """
from mcp.server import MCPServer
server = MCPServer("pages", log_level="ERROR")
@server.tool()
def look(query: str, limit: int, sites: list[str] = []) -> dict:
    page = {"title": query, "content": str(sites)}
    return {"results": [{**page, "url": f"https://example.com/{n}"} for n in range(limit)]}
@server.tool()
def lost(query: str) -> str:
    raise ValueError("the index is gone")
server.run()
"""
FILES = {
    "agent/agent.yml": "connector: extractive\nhooks:\n  workers: 0\nsearch: {web: {timeout_ms: 60000}}\n",
    "assistants/finder/package.yao": "{}",
    "assistants/finder/index.ts": FINDER,
    "assistants/news/package.yao": '{"uses": {"web": "finder"}, "search": {"web": true}}',
    "assistants/tools/package.yao": '{"search": {"web": {"provider": "mcp:pages.look"}}}',
    "assistants/lost/package.yao": '{"search": {"web": {"provider": "mcp:pages.lost"}}}',
    "assistants/wrong/package.yao": '{"search": {"web": {"provider": "findr"}}}',
    "pages.py": PAGES,
    "mcps/pages.mcp.yao": json.dumps({"command": sys.executable, "args": ["pages.py"]}),
}


QUESTION = "Which rivers flow through Berlin?"


@pytest.fixture
def app(make_app: MakeApp) -> Path:
    return make_app(FILES)


def search(app: Path, assistant: str, *more: str) -> Ran:
    return run_in(app, "search", "web", QUESTION, "--assistant", assistant, *more)


def test_pages_that_an_assistant_finds_are_shown_like_any_others(app: Path) -> None:
    ran = search(app, "news", "--site", "example.com", "--time-range", "week", "--limit", "3")
    assert ran.code == 0
    assert "1 result from the web by finder" in ran.out
    assert "About rivers flow through Berlin" in ran.out
    assert "https://example.com/a\n" in ran.out  # canonical
    assert "week 3" in ran.out  # the options reached the assistant
    assert "example.org" not in ran.out


def test_an_oddity_of_an_assistant_is_reported_once(app: Path) -> None:
    ran = search(app, "news")
    (warning,) = ran.err.strip().splitlines()
    assert warning.startswith("warning: finder: ")
    assert "'serch' (did you mean 'search'?)" in warning


def test_pages_that_a_tool_finds_are_shown_like_any_others(app: Path) -> None:
    ran = search(app, "tools", "--json", "--limit", "2", "--site", "example.com")
    assert (ran.code, ran.err) == (0, "")
    (result,) = ran.lines
    assert result["provider"] == "mcp:pages.look"
    assert [(item["url"], item["content"], item["status"]) for item in result["items"]] == [
        (f"https://example.com/{n}", "['example.com']", "listed") for n in range(2)
    ]


def test_somebody_who_cannot_search_is_an_error_with_what_went_wrong(app: Path) -> None:
    ran = search(app, "lost")
    assert (ran.code, ran.out) == (1, "")
    assert "web by 'mcp:pages.lost' failed" in ran.err
    assert "tool 'lost' of MCP server 'pages' failed" in ran.err
    wrong = search(app, "wrong", "--json")
    assert wrong.code == 1
    assert "no web search provider 'findr'" in wrong.lines[0]["error"]
