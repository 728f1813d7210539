"""Pages of the web that an assistant or an MCP tool reads in place of the built-in reader."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from groundhook import SearchResult, open_host
from groundhook.host.config.environment import process_environment
from tests.conftest import MakeApp
from tests.delegation.pages_server import TEXT
from tests.loopback.server import Html, Json, Loopback, Reply, serving
from tests.parts.turns import scripted

SERVER = str(Path(__file__).with_name("pages_server.py"))
QUESTION = "How long is the river Spree?"
OWN = "<html><title>Own</title><body><p>The Spree is long, the page says.</p></body></html>"
SNIPPET = "a snippet"


@pytest.fixture
def pages() -> Iterator[Loopback]:
    with serving() as server:
        found = {"url": f"{server.url}/page", "title": "Rivers", "content": SNIPPET, "score": 0.9}
        server.on("/search", Json({"results": [found]}))
        server.on("/page", Html(OWN))
        server.on("/robots.txt", Reply(b"", 404))
        yield server


class Fetching:
    """Searches of an app whose pages `doer` reads."""

    def __init__(self, make_app: MakeApp, pages: Loopback) -> None:
        self._make_app, self._pages = make_app, pages
        self.warned: list[str] = []
        self.model = scripted('{"title": "By a model", "content": "The Spree is 400 km long."}')

    async def __call__(
        self, doer: str, files: Mapping[str, str] | None = None, **web: Any
    ) -> SearchResult:
        allowed = {"hosts": [f"127.0.0.1:{self._pages.port}"], "timeout_ms": 30_000}
        own = {"provider": "tavily", "host": self._pages.url, "fetch": 1, "pages": allowed, **web}
        written = {
            "agent/agent.yml": json.dumps({"uses": {"fetch": doer}, "hooks": {"workers": 0}}),
            "agent/search.yao": json.dumps({"web": {**own, "timeout_ms": 60_000}}),
            "assistants/a/package.yao": json.dumps({"search": {"web": True}}),
            "assistants/reads/package.yao": '{"name": "Reads", "connector": "reads"}',
            "mcps/pages.mcp.yao": json.dumps({"command": sys.executable, "args": [SERVER]}),
            **(files or {}),
        }
        environment = {"PATH": process_environment()["PATH"], "TAVILY_API_KEY": "k"}
        with anyio.fail_after(120):
            async with open_host(
                self._make_app(written), environment=environment, connectors={"reads": self.model}
            ) as host:
                self.problems = [str(each) for each in await host.check()]
                return await host.search(
                    {"type": "web", "query": QUESTION},
                    assistant="a",
                    warned=lambda event: self.warned.append(event.message),
                )

    @property
    def read(self) -> list[str]:
        """The paths that the built-in reader asked for."""
        return [each.path for each in self._pages.requests if each.path != "/search"]


@pytest.fixture
def fetching(make_app: MakeApp, pages: Loopback) -> Fetching:
    return Fetching(make_app, pages)


async def test_a_tool_that_answers_with_text_reads_the_page(
    fetching: Fetching, pages: Loopback
) -> None:
    found = await fetching("mcp:pages")
    [item] = found.items
    assert (item.status, item.title, item.url) == ("fetched", "Rivers", f"{pages.url}/page")
    assert item.content == f"Contents of {pages.url}/page, at most 200000:\n{TEXT}"
    assert (fetching.warned, fetching.read) == ([], ["/robots.txt"])
    assert [each for each in fetching.problems if "fetch" in each] == []


async def test_a_tool_may_answer_in_other_words_and_gets_the_question(fetching: Fetching) -> None:
    [item] = (await fetching("mcp:pages.structured")).items
    assert TEXT in item.content
    assert str(item.published) == "2026-03-01"
    [item] = (await fetching("mcp:pages.json_page")).items
    assert item.content == '{"rivers": [{"name": "Spree", "long": "400 km"}]}'
    assert fetching.warned == []


async def test_an_assistant_reads_the_page(fetching: Fetching) -> None:
    [item] = (await fetching("reads")).items
    assert item.content == "The Spree is 400 km long."
    asked = json.loads(fetching.model.calls[0].messages[-1].text)
    assert (asked["task"], asked["query"], asked["max_length"]) == (
        "fetch",
        "How long river Spree",
        200_000,
    )


@pytest.mark.parametrize(
    ("doer", "why"),
    [
        ("mcp:pages.empty", "no usable answer"),
        ("mcp:pages.none", "no MCP tool 'pages.none'"),
        ("nobody", "no assistant 'nobody'"),
    ],
)
async def test_where_it_fails_the_built_in_reader_reads_with_a_warning(
    fetching: Fetching, doer: str, why: str
) -> None:
    [item] = (await fetching(doer)).items
    assert item.content == "The Spree is long, the page says."
    [warning] = fetching.warned
    assert why in warning
    assert warning.endswith("the built-in reader was used")
    assert fetching.read == ["/robots.txt", "/page"]


async def test_its_deadline_is_that_of_a_page(fetching: Fetching, pages: Loopback) -> None:
    allowed = {"hosts": [f"127.0.0.1:{pages.port}"], "timeout_ms": 200}
    [item] = (await fetching("mcp:pages.late", pages=allowed)).items
    assert item.status in ("fetched", "listed")  # the built-in reader has the same deadline
    assert "no answer within" in fetching.warned[0]
    assert "search.web.pages.timeout_ms" in fetching.warned[0]


async def test_what_robots_txt_disallows_is_read_by_nobody(
    fetching: Fetching, pages: Loopback
) -> None:
    pages.on("/robots.txt", Reply(b"User-agent: *\nDisallow: /page", content_type="text/plain"))
    [item] = (await fetching("mcp:pages")).items
    assert (item.status, item.content) == ("listed", SNIPPET)
    assert "robots.txt disallows it" in fetching.warned[0]
    assert fetching.read == ["/robots.txt"]


async def test_a_language_model_alone_is_refused_by_the_check(fetching: Fetching) -> None:
    await fetching("connector:extractive")
    assert any(
        "'uses.fetch': a language model alone cannot read pages of the web" in each
        for each in fetching.problems
    )
