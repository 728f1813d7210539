"""`search_documents` over many pages: what is requested, how much at a time, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from groundhook.core.types.events import Event
from groundhook.core.types.web import WebAnswer
from groundhook.toolkits.documents.settings import DocumentsSource
from groundhook.toolkits.documents.summaries import SummariesClient
from tests.loopback.server import Hang
from tests.loopback.summaries import Summaries
from tests.parts.summaries_host import Opened, ids, opened, search, server

__all__ = ["opened", "server"]  # fixtures of this module


class Noted:
    """A client that has one empty page, and notes the requests. `says` is the page's number as the
    API gives it."""

    def __init__(self, says: Any = 1) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.says = says

    async def request(self, method: str, url: str, **more: Any) -> WebAnswer:
        assert method == "GET"
        self.requests.append((url, more["query"]))
        page = {"summaries": [], "totalPages": 0, "totalRecords": 0, "currentPage": self.says}
        return WebAnswer(url=url, status=200, headers={}, body=json.dumps(page).encode())


def client(noted: Noted) -> SummariesClient:
    return SummariesClient(
        source=DocumentsSource(url="https://api.example/"), client=noted, shown="kit"
    )


async def test_a_member_is_one_segment_of_the_address_whatever_it_contains() -> None:
    noted = Noted()
    await client(noted).page("a/../b?c#d é", partner="p&q", index=2, size=100)
    [(url, query)] = noted.requests
    assert url == "https://api.example/protected/members/a%2F..%2Fb%3Fc%23d%20%C3%A9/summaries"
    assert query == {"partnerCode": "p&q", "pageIndex": "2", "pageSize": "100"}


async def test_a_summary_by_its_id_needs_no_partner() -> None:
    noted = Noted()
    await client(noted).page("m", summary="9007199254740993")
    assert noted.requests[0][1]["summaryId"] == "9007199254740993"
    assert noted.requests[0][1]["pageSize"] == "50"


@pytest.mark.parametrize(
    ("member", "keys"),
    [
        ("", {"partner": "p"}),
        ("..", {"partner": "p"}),
        ("m", {}),
        ("m", {"partner": "p", "index": 0}),
        ("m", {"partner": "p", "size": 0}),
        ("m", {"partner": "p", "size": 101}),
    ],
)
async def test_what_is_out_of_range_is_refused_before_anything_is_requested(
    member: str, keys: dict[str, Any]
) -> None:
    noted = Noted()
    with pytest.raises(ValueError, match=r"needed|pages begin with 1"):
        await client(noted).page(member, **keys)
    assert noted.requests == []


@pytest.mark.parametrize(("says", "read"), [(3, 3), (None, None), ("three", None), (True, None)])
async def test_a_page_has_the_number_that_the_api_gives_and_is_read_without_one(
    says: Any, read: int | None
) -> None:
    page = await client(Noted(says)).page("m", partner="p", index=3)
    assert page.current_page == read


async def test_the_trace_of_a_page_has_the_number_that_the_api_gives(
    server: Summaries, opened: Opened
) -> None:
    server.summaries = [{"id": n, "content": f"About {n}."} for n in range(120)]
    traced: list[Event] = []
    async with opened() as host:
        await search(host, events=traced.append)
    pages = {
        event.node.label: event.node.data["currentPage"]
        for event in traced
        if event.type == "trace" and event.node.type == "summaries_page" and event.node.duration_ms
    }
    assert pages == {"page 1": 1, "page 2": 2, "page 3": 3}


async def test_no_more_than_four_pages_are_read_and_ranked_at_a_time(
    server: Summaries, opened: Opened
) -> None:
    server.summaries = [{"id": n, "content": f"About {n}."} for n in range(400)]
    traced: list[Event] = []
    async with opened() as host:
        await search(host, events=traced.append)
    for kind in ("summaries_page", "rank"):
        running, most, done = 0, 0, 0
        for event in traced:
            if event.type == "trace" and event.node.type == kind:
                ended = event.node.status == "completed"
                running, done = running + (-1 if ended else 1), done + ended
                most = max(most, running)
        assert (most, running, done) == (4, 0, 8), kind


async def test_pages_beyond_the_most_are_named_in_a_notice(
    server: Summaries, opened: Opened
) -> None:
    async with opened(most_pages=2) as host:
        outcome = await search(host)
    assert len(server.pages) == 2
    assert "<notice>Only the first 2 of 3 pages were read (most_pages)</notice>" in outcome.text


async def test_an_id_that_json_clients_cannot_hold_is_kept_as_text(
    server: Summaries, opened: Opened
) -> None:
    server.summaries = [{"id": 2**53 + 1, "content": "A"}, {"id": "x-1", "content": "B"}]
    async with opened() as host:
        assert sorted(map(str, ids(await search(host)))) == ["9007199254740993", "x-1"]


async def test_one_more_ranking_orders_the_best_of_all_pages(
    server: Summaries, opened: Opened
) -> None:
    def ranks(sent: Sequence[Any]) -> str:
        if len(sent) > 3:
            return json.dumps([{"id": sent[0], "relevanceScore": 0.8}])
        rated = [{"id": id, "relevanceScore": id / 1000 + 0.5} for id in sent]
        return json.dumps(rated)

    server.ranks = ranks
    async with opened(ranker={"by": "connector:ranker", "final": "rerank"}) as host:
        assert ids(await search(host)) == [200, 150, 100]
    assert len(server.prompts) == 4


async def test_a_call_that_is_cancelled_ends_at_once_and_reports_its_end(
    server: Summaries, opened: Opened
) -> None:
    server.faults = {1: [Hang()]}
    events: list[Event] = []

    async def call() -> None:
        await search(host, events=events.append)

    async with opened() as host:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                while not server.requests:
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
    ended = [each for each in events if each.type == "search_documents.completed"]
    assert [(each.totalDocuments, each.error) for each in ended] == [(0, "cancelled")]
