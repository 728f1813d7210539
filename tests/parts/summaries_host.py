"""A host with a toolkit of summaries."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from groundhook import Host, open_host
from groundhook.core.types.tools import ToolOutcome
from tests.conftest import MakeApp
from tests.loopback.summaries import Summaries, summaries

ME = {"user_id": "m/1", "tenant_id": "p1"}


Opened = Callable[..., AbstractAsyncContextManager[Host]]


@pytest.fixture
def server() -> Iterator[Summaries]:
    with summaries() as made:
        made.summaries = [
            {"id": 100 + n, "title": f"Document {n}", "content": f"About the subject {n}."}
            for n in range(120)
        ]
        yield made


@pytest.fixture
def opened(server: Summaries, make_app: MakeApp) -> Opened:
    @asynccontextmanager
    async def open_app(**keys: Any) -> AsyncIterator[Host]:
        toolkit = {
            "type": "documents",
            "source": {"url": server.url, "headers": {"x-api-key": "$ENV.SUMMARIES_KEY"}},
            "ranker": {"by": "connector:ranker"},
            **keys,
        }
        connector = {
            "name": "Ranker",
            "type": "openai",
            "options": {"model": "gpt-5-nano", "host": server.url, "key": "k"},
        }
        app = make_app(
            {
                "assistants/d/prompts/house.yml": "- {role: system, content: Rank for our house.}",
                "assistants/d/package.yao": '{"name": "D", "tools": ["documents"]}',
                "assistants/d/toolkits/documents.toolkit.yao": json.dumps(toolkit),
                "assistants/d/connectors/ranker.conn.yao": json.dumps(connector),
            }
        )
        server.key = "sesame"
        async with open_host(app, environment={"SUMMARIES_KEY": "sesame"}) as host:
            yield host

    return open_app


async def search(
    host: Host, query: str = "subject 7", identity: Any = ME, **options: Any
) -> ToolOutcome:
    return await host.tool(
        "search_documents", {"query": query}, identity=identity, assistant="d", **options
    )


def ids(outcome: ToolOutcome) -> list[Any]:
    assert outcome.error is None, outcome.error
    return [one["id"] for one in outcome.result["documents"]]
