"""Addresses that sources give, and events that strangers are given."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook import for_readers, open_host
from groundhook.core.addresses import address
from groundhook.core.audience import TIMINGS
from groundhook.core.concealed import conceal, shortened
from groundhook.core.types.events import (
    CitationSeen,
    Event,
    Failed,
    SearchComplete,
    SearchFound,
    StreamEnd,
    ToolResult,
    Trace,
    TraceNode,
    Warned,
)
from groundhook.core.types.search import SearchType
from groundhook.host.testing.canned import CannedSource, canned_item
from groundhook.sync import open_host as open_sync
from tests.cli.conftest import run_in
from tests.conftest import MakeApp
from tests.keys import key

HOSTILE = (
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    " java\tscript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "ftp://example.com/x",
    "//example.com/x",
    "https:///x",
)
PACKAGE = {"connector": "extractive", "kb": {"collections": ["notes"]}, "search": {"kb": True}}


@pytest.mark.parametrize("url", HOSTILE)
@pytest.mark.parametrize("type", ["web", "kb"])
async def test_an_invalid_address_reaches_no_client_from_any_source(
    make_app: MakeApp, url: str, type: SearchType
) -> None:
    item = canned_item("x", type=type).model_copy(update={"url": url})
    app = make_app({"assistants/a/package.yao": json.dumps(PACKAGE), "kb/notes.kb.yao": "{}"})
    async with open_host(app, environment={}, sources={type: CannedSource({"*": [item]})}) as host:
        result = await host.search({"type": type, "query": "x"}, assistant="a")
    assert [found.url for found in result.items] == [""]


def test_an_address_that_a_document_gives_itself_is_one_or_is_left_out(make_app: MakeApp) -> None:
    rows = [{"id": f"r{n}", "text": "A pen.", "url": url} for n, url in enumerate(HOSTILE)]
    app = make_app(
        {
            "kb/notes.kb.yao": '{"embedding": {"provider": "hash"}}',
            "agent/agent.yml": "kb_storage:\n  idle_s: 1\n",
            "docs/a.md": "---\nurl: javascript:alert(1)\n---\n# A pen\n\nFilled with ink.\n",
            "docs/b.md": "---\nurl: file:///etc/passwd\n---\n# A pen\n\nIt is blue.\n",
            "docs/c.md": "---\nurl: https://me@example.com/a b\n---\n# A pen\n\nIt is red.\n",
            "docs/d.jsonl": "\n".join(map(json.dumps, rows)),
        }
    )
    assert run_in(app, "kb", "add", "notes", "docs").code == 0
    shown = run_in(
        app, "search", "kb", "pen", "--collection", "notes", "--json", "--limit", "20"
    ).lines[0]
    urls = {item["document_id"]: item["url"] for item in shown["items"]}
    assert len(urls) > 3
    assert urls["a.md"] == (app / "docs/a.md").as_uri()  # its own, since it gives none
    assert urls["b.md"] == (app / "docs/b.md").as_uri()
    assert urls["c.md"] == "https://example.com/a%20b"
    assert {url.partition(":")[0] for url in urls.values()} <= {"file", "https", ""}


def test_a_collection_may_declare_schemes_of_addresses_and_others_stay_out(
    make_app: MakeApp,
) -> None:
    app = make_app(
        {
            "kb/notes.kb.yao": '{"embedding": {"provider": "hash"}, "schemes": ["obsidian"]}',
            "agent/agent.yml": "",
            "docs/a.md": "---\nurl: obsidian://open?vault=pens\n---\n# A pen\n\nIt is red.\n",
            "docs/b.md": "---\nurl: onenote:x\n---\n# A pen\n\nIt is blue.\n",
            "docs/c.md": "---\nurl: javascript:alert(1)\n---\n# A pen\n\nFilled with ink.\n",
        }
    )
    with open_sync(app, environment={}) as host:
        host.add_documents("notes", app / "docs")
        found = host.search({"type": "kb", "query": "pen", "collections": ["notes"]})
    urls = {item.document_id: item.url for item in found.items}
    own = {name: (app / "docs" / name).as_uri() for name in ("b.md", "c.md")}
    assert urls == {"a.md": "obsidian://open?vault=pens", **own}


@pytest.mark.parametrize("scheme", ["javascript", "data", "file", "Obsidian", "a:b", ""])
def test_a_collection_cannot_declare_a_scheme_that_clients_would_run_or_that_is_none(
    make_app: MakeApp, scheme: str
) -> None:
    app = make_app({"kb/notes.kb.yao": json.dumps({"schemes": [scheme]}), "agent/agent.yml": ""})
    with open_sync(app, environment={}) as host:
        (problem,) = host.check()
    assert (problem.severity, "schemes" in problem.message) == ("error", True)


@pytest.mark.parametrize(
    ("written", "clean"),
    [
        ("https://user:secret@example.com/a", "https://example.com/a"),
        ("https://example.com/a b(c)[d]'e\"", "https://example.com/a%20b%28c%29%5Bd%5D%27e%22"),
        ("https://example.com/\u200ba\u202eb", "https://example.com/ab"),
        (" https://example.com/?q=<b>#x y ", "https://example.com/?q=%3Cb%3E#x%20y"),
        ("http://[::1]:8080/x", "http://[::1]:8080/x"),
        ("https://exa mple.com/", ""),
    ],
)
def test_an_address_is_written_so_that_nothing_hides_in_it(written: str, clean: str) -> None:
    assert address(written) == clean


@given(st.text() | st.text().map("https://example.com/{}".format))
def test_a_clean_address_stays_as_it_is(text: str) -> None:
    once = address(text)
    assert address(once) == once
    assert once == "" or once.startswith(("http://", "https://"))


def test_a_stranger_is_shown_nothing_that_is_for_authors() -> None:
    secret = "/srv/app/assistants/a/index.ts"
    local = canned_item("x").model_copy(update={"url": f"file://{secret}"})
    events: list[Event] = [
        Trace(node=TraceNode(id="n", type="log", label=secret)),
        Warned(code="c", message=secret),
        Failed(code="hook_threw", message=secret, file=secret, line=3, column=1, hint=secret),
        SearchComplete(search_id="s", total=0, duration_ms=1, error=secret, provider=secret),
        ToolResult(call_id="c", name="t", error=secret),
        SearchFound(search_id="s", item=local),
        CitationSeen(marker="#ref:x", verdict="ok", item=local),
        StreamEnd(timings={secret: 1.0, "total": 2.0}),
    ]
    shown = [event for each in events if (event := for_readers(each)) is not None]
    assert [event.type for event in shown] == [event.type for event in events[2:]]
    assert secret not in "".join(event.model_dump_json() for event in shown)
    unread = Warned(code="part_not_read", message="file a.zip", file=secret, hint=secret)
    assert for_readers(unread) == Warned(code="part_not_read", message="file a.zip")
    assert for_readers(Failed(code="hook_threw", message="x", turn_id="t", at_ms=7)) == Failed(
        code="hook_threw", message="the answer could not be completed", turn_id="t", at_ms=7
    )
    refused = SearchComplete(search_id="s", total=0, duration_ms=1, error="not permitted: because")
    assert for_readers(refused) == refused.model_copy(update={"error": "not permitted"})


async def test_a_stranger_still_gets_the_whole_answer(make_app: MakeApp) -> None:
    app = make_app(
        {
            "assistants/a/package.yao": json.dumps(PACKAGE),
            "kb/notes.kb.yao": "{}",
            "assistants/a/index.js": "function Create() { throw new Error('line 1'); }",
        }
    )
    source = CannedSource({"*": [canned_item("pen", content="A pen is filled with ink.")]})
    async with (
        open_host(app, environment={}, sources={"kb": source}) as host,
        host.stream("a", "What is a pen filled with?") as events,
    ):
        seen = [event async for event in events]
    shown = [event for each in seen if (event := for_readers(each)) is not None]
    assert shown[-1].type == "stream_end"
    assert set(shown[-1].timings) <= set(TIMINGS)
    assert [event for event in seen if event.type == "text"] == [
        event for event in shown if event.type == "text"
    ]
    assert "index.js" not in "".join(event.model_dump_json() for event in shown)
    assert len(get_args(get_args(Event)[0])) == 19  # a new event needs its rule


@pytest.mark.parametrize("size", [0, 100, 19_990, 1_000_000])
def test_no_message_of_a_service_shows_a_value_wherever_it_is_cut(size: int) -> None:
    secret = key("cut")
    conceal("CUT_KEY", secret)
    for text in (f"{' ' * size}no: {secret} is no key", f"{' ' * size}{secret} " * 3):
        shown = shortened(text, 300)
        assert not any(secret[at : at + 10] in shown for at in range(len(secret) - 10))
    assert shortened("a " * 1_000_000, 300) == ("a " * 150)
