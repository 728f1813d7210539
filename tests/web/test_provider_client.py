"""The HTTP client of providers: compressed answers are bounded, no cookies are kept, and the
machine's proxies are used."""

from __future__ import annotations

import gzip
import json
import resource
from collections.abc import Iterator

import anyio
import pytest

from groundhook.core.errors import SourceError
from groundhook.core.types.web_providers import WebAccess
from groundhook.handlers.web.providers.answers import MOST_OBJECTS, objects_of
from groundhook.handlers.web.providers.client import ProviderClient
from groundhook.handlers.web.providers.searxng import unresponsive
from tests.loopback.server import Cut, Hang, Json, Loopback, Reply, serving


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving() as server:
        yield server


class OpenClient:
    """A client for a host; leaving it closes its connections."""

    def __init__(self, host: str) -> None:
        self.closing = list[object]()
        self.client = ProviderClient(
            "engine",
            WebAccess(key="k", variable="V", host=host, closing=self.closing.append),
            {"X-Key": "k"},
        )

    async def __aenter__(self) -> ProviderClient:
        return self.client

    async def __aexit__(self, *_: object) -> None:
        for close in self.closing:
            await close()  # type: ignore[operator]


async def test_a_compressed_answer_is_read(server: Loopback) -> None:
    body = json.dumps({"results": ["x" * 1000] * 100}).encode()
    server.on("/search", Reply(gzip.compress(body), headers={"content-encoding": "gzip"}))
    async with OpenClient(server.url) as client:
        reply = await client.request("GET", "search", timeout=60)
    assert (reply.status, reply.body) == (200, body)
    assert reply.headers["content-type"] == "application/json"


async def test_a_decompression_bomb_is_an_error_before_it_fills_the_memory(
    server: Loopback,
) -> None:
    bomb = gzip.compress(b" " * (400 << 20), compresslevel=1)
    server.on("/search", Reply(bomb, headers={"content-encoding": "gzip"}))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with OpenClient(server.url) as client:
        with pytest.raises(SourceError, match="'engine' answered with more than 4 MB"):
            await client.request("GET", "search", timeout=60)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10  # KB


async def test_cookies_of_an_answer_are_not_sent_with_the_next_request(server: Loopback) -> None:
    server.on("/search", Reply(b"{}", headers={"set-cookie": "seen=1; Path=/"}))
    async with OpenClient(server.url) as client:
        await client.request("GET", "search", timeout=60, params={"q": "a&b=c d+e"})
        await client.request("POST", "search", timeout=60, json={"q": "ä"})
    first, second = server.requests
    assert first.path == "/search?q=a%26b%3Dc+d%2Be"
    assert "cookie" not in second.headers
    assert second.headers["x-key"] == "k"
    assert second.json == {"q": "ä"}


async def test_the_machines_proxy_is_used_unless_the_host_is_excepted(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.on("http://search.example/api/search", Json({"by": "proxy"}))
    server.on("/search", Json({"by": "itself"}))
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    async with OpenClient("http://search.example/api/") as client:
        assert json.loads((await client.request("GET", "search", timeout=60)).body) == {
            "by": "proxy"
        }
    async with OpenClient(server.url) as client:
        assert json.loads((await client.request("GET", "search", timeout=60)).body) == {
            "by": "itself"
        }


async def test_a_closed_connection_is_reopened(server: Loopback) -> None:
    server.on("/search", Json({"n": 1}), Cut(), Json({"n": 2}))
    async with OpenClient(server.url) as client:
        await client.request("GET", "search", timeout=60)
        assert json.loads((await client.request("GET", "search", timeout=60)).body) == {"n": 2}


async def test_a_cancelled_request_closes_its_connection(server: Loopback) -> None:
    server.on("/search", Hang())
    async with OpenClient(server.url) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: client.request("GET", "search", timeout=60))
            await server.until_requested()
            tasks.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(server.requests[0].left.wait, 60)


async def test_a_hundred_concurrent_requests_have_connections_of_their_own(
    server: Loopback,
) -> None:
    server.on("/search", Json({}))
    async with OpenClient(server.url) as client, anyio.create_task_group() as tasks:
        for _ in range(100):
            tasks.start_soon(lambda: client.request("GET", "search", timeout=60))
    assert len(server.requests) == 100


def test_of_an_answer_with_a_hundred_thousand_results_the_first_are_read() -> None:
    answer: dict[str, object] = {"results": [{}] * 100_000}
    assert len(objects_of("searxng", answer, "results")) == MOST_OBJECTS
    assert unresponsive({"unresponsive_engines": [["a", "b"]] * 100_000}).count("a (b)") <= 50
