"""What a message refers to: documents and searches of the user's own, through the public door."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from groundhook import open_host
from groundhook.core.ports import Scope, SourceResult
from groundhook.core.types.events import Event
from groundhook.core.types.search import SearchRequest
from groundhook.core.types.turn import Message
from groundhook.host.llm.scripted import ScriptedConnector
from groundhook.host.testing.canned import CannedSource, canned_item
from groundhook.host.turn.content import MOST_SOURCES, user_data
from tests.conftest import MakeApp
from tests.parts.turns import app_with, end, kb, of, run, scripted, web
from tests.parts.user_data import asking

PASSAGES = tuple(
    canned_item(f"kb:docs/guide.md#{n}", score=1.0, document_id="guide.md", collection="docs")
    for n in range(12)
)


@dataclass
class Library(CannedSource):
    """A canned source with one document. With `meet`, every request waits until all have
    arrived."""

    meet: int = 0
    waiting: int = 0

    async def fetch_document(
        self, collection: str, document_id: str, scope: Scope, /
    ) -> SourceResult:
        await self._met()
        if document_id != "guide.md":
            return await self.search(SearchRequest(type="kb", query=document_id), scope)
        return SourceResult(items=PASSAGES)

    async def search(self, request: SearchRequest, scope: Scope, /) -> SourceResult:
        await self._met()
        return await super().search(request, scope)

    async def _met(self) -> None:
        self.waiting += 1
        while self.waiting < self.meet:
            await anyio.lowlevel.checkpoint()


async def turn(
    app: Path, messages: Any, library: Library, connector: ScriptedConnector | None = None
) -> list[Event]:
    model = connector or scripted("Fine.")
    with anyio.fail_after(60):
        async with open_host(
            app, environment={}, sources={"kb": library}, connectors={"script": model}
        ) as host:
            over = replace(host, runtime=replace(host.runtime, documents=library))
            async with over.stream("a", messages, search=False) as events:
                return [event async for event in events]


PACKAGE = (
    '{"name": "A", "connector": "script", "kb": {"collections": ["docs"]}, "search": {"rerank":'
    ' {"top_k": 20}}}'
)


async def test_a_document_is_a_search_to_the_client_and_reaches_the_model_in_reading_order(
    make_app: MakeApp,
) -> None:
    model = scripted("Fine.")
    messages = asking(("kb_document", "docs/guide.md"))
    events = await turn(app_with(make_app, PACKAGE), messages, Library({}), model)
    (start,), (done,) = of(events, "search_start"), of(events, "search_complete")
    assert (start.source, start.search_type, start.query) == ("user", "kb", "docs/guide.md")
    assert (done.search_id, done.total, done.error) == (start.search_id, 12, None)
    assert [event.item.title for event in of(events, "search_result")] == [
        item.title for item in PASSAGES
    ]
    assert [item.title for item in model.calls[0].references] == [item.title for item in PASSAGES]


async def test_a_missing_document_is_reported_as_a_failed_search(
    make_app: MakeApp,
) -> None:
    messages = asking(("kb_document", "docs/gone.md"))
    events = await turn(app_with(make_app, PACKAGE), messages, Library({}))
    assert "the table has no answer" in of(events, "search_complete")[0].error
    assert len(of(events, "warning")) == 1
    assert end(events).content == "Fine."


async def test_documents_are_read_while_the_users_searches_are_under_way(make_app: MakeApp) -> None:
    source = Library({"*": [canned_item("found")]}, meet=3)
    messages = asking(
        ("kb_document", "docs/guide.md"),
        ("kb_collection", "docs"),
        ("kb_document", "docs/guide.md"),
    )
    events = await turn(app_with(make_app, PACKAGE), messages, source)
    assert [event.error for event in of(events, "search_complete")] == [None, None, None]


async def test_a_citation_shows_the_version_that_the_pool_kept(make_app: MakeApp) -> None:
    hook = "function Create(ctx) { ctx.search.KB('other'); return { search: true }; }"
    pages = {
        "*": [canned_item("x", title="the better", score=0.4)],
        "other": [canned_item("x", title="of the hook", score=0.2)],
    }
    package = PACKAGE.replace('"rerank"', '"kb": true, "rerank"')
    app = app_with(make_app, package, index_ts=hook)
    events = await run(app, script=["See {ref:0}."], sources={"kb": CannedSource(pages)})
    assert {event.item.title for event in of(events, "search_result")} == {
        "the better",
        "of the hook",
    }
    (seen,) = of(events, "citation")
    assert (seen.item.title, seen.item.weight) == ("of the hook", 0.8)
    assert end(events).citations[0].title == "of the hook"


async def test_items_of_a_source_without_keys_are_all_kept(make_app: MakeApp) -> None:
    items = [canned_item("", title=title, content=title) for title in ("one", "two")]
    model = scripted("{ref:0} {ref:1}")
    package = PACKAGE.replace('"rerank"', '"kb": true, "rerank"')
    events = await run(
        app_with(make_app, package), connector=model, sources={"kb": CannedSource({"*": items})}
    )
    assert [cited.title for cited in end(events).citations] == ["one", "two"]


def outcome(content: list[dict[str, Any]]) -> tuple[int, Sequence[str]]:
    data = user_data([Message(role="user", content=content)], "pens")
    return len(data.searches) + len(data.documents), [str(problem) for problem in data.problems]


@pytest.mark.parametrize("parts", [1, 2, 30])
def test_the_first_of_very_many_sources_are_searched_and_the_rest_reported(parts: int) -> None:
    sources = [{"type": "kb_document", "name": f"docs/{n}"} for n in range(60 // parts)]
    requested, problems = outcome([{"type": "data", "data": {"sources": sources}}] * parts)
    assert requested == MOST_SOURCES
    assert len(problems) == 1
    assert f"60 sources, and the first {MOST_SOURCES}" in problems[0]


def test_as_many_sources_as_are_allowed_are_no_problem() -> None:
    sources = [{"type": "kb_document", "name": f"docs/{n}"} for n in range(MOST_SOURCES)]
    assert outcome([{"type": "data", "data": {"sources": sources}}]) == (MOST_SOURCES, [])


def test_malformed_parts_are_reported_once() -> None:
    assert outcome([{"type": "data"}, {"type": "data", "data": {"sources": {}}}] * 50)[1] == [
        "a data part must hold data.sources, a list of {type, name}"
    ]


def test_a_part_without_text_says_nothing() -> None:
    parts: list[dict[str, Any]] = [
        {"type": "text", "text": None},
        {"type": "text"},
        {"type": "text", "text": "a"},
    ]
    assert Message(role="user", content=parts).text == "\n\na"
    assert Message(role="user", content=parts[:1]).text == ""


async def test_half_a_surrogate_pair_that_a_client_sends_becomes_the_replacement_character(
    make_app: MakeApp,
) -> None:
    source = kb()
    events = await run(
        app_with(make_app),
        messages=[{"role": "user", "content": "pens \ud800"}],
        sources={"kb": source, "web": web()},
    )
    assert [request.query for request in source.requests] == ["pens \ufffd"]
    assert end(events).content
