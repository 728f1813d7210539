"""Pages that somebody else reads: addresses that the host would not ask for are not handed on."""

from __future__ import annotations

import json

import pytest

from groundhook import open_host
from tests.conftest import MakeApp
from tests.loopback.server import Json, serving
from tests.parts.turns import scripted

INSIDE = ("http://127.0.0.1:9/admin", "http://localhost:9/", "http://169.254.169.254/latest", "x:y")


@pytest.mark.parametrize("url", INSIDE)
async def test_a_private_address_is_not_handed_to_what_reads_pages(
    make_app: MakeApp, url: str
) -> None:
    model = scripted('{"content": "rivers of secrets"}')
    with serving() as server:
        found = {"url": url, "title": "Rivers", "content": "a snippet", "score": 0.9}
        server.on("/search", Json({"results": [found]}))
        web = {"provider": "tavily", "host": server.url, "fetch": 1, "pages": {"robots": False}}
        app = make_app(
            {
                "agent/agent.yml": "uses: {fetch: reads}\n",
                "agent/search.yao": json.dumps({"web": {**web, "timeout_ms": 60_000}}),
                "assistants/a/package.yao": '{"search": {"web": true}}',
                "assistants/reads/package.yao": '{"connector": "reads"}',
            }
        )
        async with open_host(
            app, environment={"TAVILY_API_KEY": "k"}, connectors={"reads": model}
        ) as host:
            result = await host.search({"type": "web", "query": "rivers"}, assistant="a")
    assert [item.content for item in result.items] in ([], ["a snippet"])
    assert model.calls == []
