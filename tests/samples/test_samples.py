"""The sample assistants, as they are in the repository, through the public door."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from groundhook import Host, open_host
from groundhook.core.types.events import Event, StreamEnd

REPOSITORY = Path(__file__).parent.parent.parent
PAGES = ("citations.md", "turns.md")
NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    app = tmp_path_factory.mktemp("samples")
    for folder in ("agent", "assistants"):
        shutil.copytree(REPOSITORY / folder, app / folder)
    return app


@pytest.fixture(scope="module")
async def host(app: Path) -> AsyncIterator[Host]:
    async with open_host(app, environment={}, now=NOW) as host:
        await host.kb.add("agents.docs.docs", [REPOSITORY / "docs" / page for page in PAGES])
        await host.database.load()
        yield host


async def ask(host: Host, assistant: str, question: str, **requested: Any) -> list[Event]:
    with anyio.fail_after(60):
        async with host.stream(assistant, question, **requested) as events:
            return [event async for event in events]


def end(events: list[Event]) -> StreamEnd:
    assert not [event for event in events if event.type == "error"]
    assert isinstance(events[-1], StreamEnd)
    return events[-1]


async def test_docs_answers_from_the_right_page_and_cites_it(host: Host) -> None:
    final = end(
        await ask(host, "docs", "Why does the same source have the same citation id in every turn?")
    )
    assert final.citations
    assert final.citations[0].document_id == "citations.md"
    assert all(cited.verdict == "ok" for cited in final.citations)


async def test_docs_gives_the_same_ids_in_the_same_order_for_the_same_question(host: Host) -> None:
    question = "When is automatic search skipped?"
    first, second = end(await ask(host, "docs", question)), end(await ask(host, "docs", question))
    assert first.citations == second.citations
    assert first.content == second.content


async def test_docs_embeds_only_the_question_while_it_answers(host: Host, app: Path) -> None:
    def kept() -> int:
        with closing(sqlite3.connect(app / ".groundhook/embeddings.sqlite")) as vectors:
            return int(vectors.execute("select count(*) from vectors").fetchone()[0])

    before = kept()
    question = "What becomes of a citation that the model made up?"
    first = end(await ask(host, "docs", question))
    assert kept() == before + 1
    assert end(await ask(host, "docs", question)).content == first.content
    assert kept() == before + 1


async def test_docs_says_so_when_its_documents_do_not_hold_the_answer(host: Host) -> None:
    final = end(await ask(host, "docs", "Welcher Wein passt zu gebratenem Lachs?"))
    assert final.citations == ()
    assert final.content


async def test_shop_turns_a_question_into_a_query_and_cites_its_records(host: Host) -> None:
    events = await ask(host, "shop", "Products cheaper than $100 from Apple")
    found = [event.item for event in events if event.type == "search_result"]
    assert found
    assert all(
        item.data and item.data["brand"] == "Apple" and float(item.data["price"]) < 100
        for item in found
    )
    cited = end(events).citations
    assert cited
    assert {record.model for record in cited} == {"agents.shop.product"}
    nodes = {event.node.type for event in events if event.type == "trace"}
    assert {"dsl_build", "db_query"} <= nodes


async def test_shop_understands_three_conditions_at_once(host: Host) -> None:
    events = await ask(host, "shop", "find all active products under $100 in electronics category")
    found = [event.item.data for event in events if event.type == "search_result"]
    assert found
    assert {(row["status"], row["category"]) for row in found if row} == {("active", "Electronics")}
    assert all(float(row["price"]) < 100 for row in found if row)


async def test_research_searches_what_fits_the_question_and_formats_its_own_context(
    host: Host,
) -> None:
    events = await ask(
        host, "research", "Which product is cheapest, and how are search results merged?"
    )
    started = {
        (event.source, event.search_type) for event in events if event.type == "search_start"
    }
    assert started == {("hook", "kb"), ("hook", "db")}
    final = end(events)
    assert {source["type"] for source in final.metadata["sources"]} == {"kb", "db"}
    assert final.data["characters"] == len(final.content)
    assert {cited.type for cited in final.citations} <= {"kb", "db"}
    assert final.citations


async def test_research_goes_on_when_the_web_has_no_provider(host: Host) -> None:
    events = await ask(host, "research", "What is the latest on citations?")
    failed = [event.error for event in events if event.type == "search_complete" and event.error]
    assert len(failed) == 1
    assert "TAVILY_API_KEY" in failed[0]
    assert end(events).citations


async def test_the_repository_is_an_app_without_mistakes(host: Host) -> None:
    assert [str(problem) for problem in await host.check() if problem.severity == "error"] == []
