"""How a search travels: what is compressed is bounded, nothing is kept between requests, and
proxies are those of the machine."""

from __future__ import annotations

import gzip
import json
import resource
from collections.abc import Iterator

import anyio
import pytest

from groundhook.handlers.web.providers import Access
from groundhook.handlers.web.wire import Wire
from groundhook.host.core.errors import SourceError
from tests.loopback.server import Cut, Hang, Json, Loopback, Reply, serving


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving() as server:
        yield server


class Wired:
    """A wire to a host; leaving it closes what it opened."""

    def __init__(self, host: str) -> None:
        self.closing = list[object]()
        self.wire = Wire(
            "engine",
            Access(key="k", variable="V", host=host, closing=self.closing.append),
            {"X-Key": "k"},
        )

    async def __aenter__(self) -> Wire:
        return self.wire

    async def __aexit__(self, *_: object) -> None:
        for close in self.closing:
            await close()  # type: ignore[operator]


async def test_a_compressed_answer_is_read(server: Loopback) -> None:
    body = json.dumps({"results": ["x" * 1000] * 100}).encode()
    server.on("/search", Reply(gzip.compress(body), headers={"content-encoding": "gzip"}))
    async with Wired(server.url) as wire:
        reply = await wire.exchange("GET", "search", timeout=5)
    assert (reply.status, reply.body) == (200, body)
    assert reply.headers["content-type"] == "application/json"


async def test_one_that_grows_without_end_is_refused_before_it_fills_the_memory(
    server: Loopback,
) -> None:
    bomb = gzip.compress(b" " * (400 << 20), compresslevel=1)
    server.on("/search", Reply(bomb, headers={"content-encoding": "gzip"}))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with Wired(server.url) as wire:
        with pytest.raises(SourceError, match="'engine' answered with more than 4 MB"):
            await wire.exchange("GET", "search", timeout=5)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10  # KB


async def test_nothing_that_an_answer_sets_comes_with_the_next_request(server: Loopback) -> None:
    server.on("/search", Reply(b"{}", headers={"set-cookie": "seen=1; Path=/"}))
    async with Wired(server.url) as wire:
        await wire.exchange("GET", "search", timeout=5, params={"q": "a&b=c d+e"})
        await wire.exchange("POST", "search", timeout=5, json={"q": "ä"})
    first, second = server.asked
    assert first.path == "/search?q=a%26b%3Dc+d%2Be"
    assert "cookie" not in second.headers
    assert second.headers["x-key"] == "k"
    assert second.json == {"q": "ä"}


async def test_a_proxy_of_the_machine_is_asked_unless_the_host_is_excepted(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.on("http://search.example/api/search", Json({"by": "proxy"}))
    server.on("/search", Json({"by": "itself"}))
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    async with Wired("http://search.example/api/") as wire:
        assert json.loads((await wire.exchange("GET", "search", timeout=5)).body) == {"by": "proxy"}
    async with Wired(server.url) as wire:
        assert json.loads((await wire.exchange("GET", "search", timeout=5)).body) == {
            "by": "itself"
        }


async def test_a_connection_that_was_closed_meanwhile_is_opened_anew(server: Loopback) -> None:
    server.on("/search", Json({"n": 1}), Cut(), Json({"n": 2}))
    async with Wired(server.url) as wire:
        await wire.exchange("GET", "search", timeout=5)
        assert json.loads((await wire.exchange("GET", "search", timeout=5)).body) == {"n": 2}


async def test_leaving_a_request_closes_its_connection(server: Loopback) -> None:
    server.on("/search", Hang())
    async with Wired(server.url) as wire:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: wire.exchange("GET", "search", timeout=60))
            await server.until_asked()
            tasks.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(server.asked[0].left.wait, 5)


async def test_a_hundred_requests_at_once_have_connections_of_their_own(server: Loopback) -> None:
    server.on("/search", Json({}))
    async with Wired(server.url) as wire, anyio.create_task_group() as tasks:
        for _ in range(100):
            tasks.start_soon(lambda: wire.exchange("GET", "search", timeout=20))
    assert len(server.asked) == 100
