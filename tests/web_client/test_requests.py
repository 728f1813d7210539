"""Requests to a declared host, and their answers."""

from __future__ import annotations

import gzip
import tracemalloc
from typing import Any

import anyio
import pytest

from groundhook.core.errors import SourceError, SourceMalformed, SourceTimeout, UsageError
from groundhook.core.settings import HttpSettings
from groundhook.host.web_client.client import GuardedClient
from tests.loopback.server import Cut, Hang, Json, Loopback, Reply, Trickle
from tests.web_client.conftest import Names


def declared(server: Loopback, **settings: int) -> GuardedClient:
    return GuardedClient(HttpSettings(hosts=(f"127.0.0.1:{server.port}",), **settings))


async def test_a_json_answer_of_a_declared_host_is_a_value(server: Loopback) -> None:
    server.on("/v1", Json({"tea": ["green", "☕"]}, x_kind="leaf"))
    async with declared(server) as client:
        answer = await client.request(
            "get",
            f"{server.url}/v1?a=1",
            query={"q": "tea & more", "n": 2, "on": True, "l": ["x", "y"]},
        )

    assert (answer.status, answer.value) == (200, {"tea": ["green", "☕"]})
    assert (answer.headers["x-kind"], answer.media_type) == ("leaf", "application/json")
    assert (server.requests[0].method, server.requests[0].path) == (
        "GET",
        "/v1?a=1&q=tea+%26+more&n=2&on=true&l=x&l=y",
    )


async def test_an_error_status_is_an_answer_and_not_an_error(server: Loopback) -> None:
    server.on("/gone", Reply(b"not here", 404, "text/plain"))
    async with declared(server) as client:
        answer = await client.request("GET", f"{server.url}/gone")

    assert (answer.status, answer.value) == (404, "not here")


async def test_bodies_are_sent_with_their_type(server: Loopback) -> None:
    server.on("/", Json({}))
    async with declared(server) as client:
        await client.request("POST", server.url, json={"half": "\ud83d", "ü": 1})
        await client.request(
            "PUT", server.url, body="grün", headers={"Content-Type": "text/x; charset=utf-8"}
        )
        await client.request("POST", server.url, body=b"\x00\xff")
        await client.request("POST", server.url)

    assert server.requests[0].json == {"half": "\ud83d", "ü": 1}
    assert server.requests[0].headers["content-type"] == "application/json"
    assert (server.requests[1].body, server.requests[1].headers["content-type"]) == (
        "grün".encode(),
        "text/x; charset=utf-8",
    )
    assert [requested.body for requested in server.requests[2:]] == [b"\x00\xff", b""]
    assert "content-type" not in server.requests[2].headers


async def test_headers_of_the_caller_are_sent_beside_our_own(server: Loopback) -> None:
    server.on("/", Json({}))
    async with declared(server) as client:
        await client.request(
            "GET",
            server.url,
            headers={"Authorization": "Bearer k", "Accept": "application/json", "X-E": "é"},
        )

    sent = server.requests[0].headers
    assert (sent["authorization"], sent["accept"], sent["x-e"]) == (
        "Bearer k",
        "application/json",
        "é",
    )
    assert (sent["user-agent"], sent["accept-encoding"]) == ("groundhook", "gzip, deflate")


async def test_cookies_are_not_kept(server: Loopback) -> None:
    server.on("/", Json({}, set_cookie="session=1; Path=/"))
    async with declared(server) as client:
        for _ in range(2):
            answer = await client.request("GET", server.url)

    assert answer.headers["set-cookie"] == "session=1; Path=/"
    assert "cookie" not in server.requests[1].headers


async def test_proxies_of_the_environment_are_not_used(
    server: Loopback, other: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.on("/", Json("direct"))
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "https_proxy"):
        monkeypatch.setenv(name, other.url)
    async with declared(server) as client:
        assert (await client.request("GET", server.url)).value == "direct"

    assert other.requests == []


# ---- what an answer holds


@pytest.mark.parametrize(
    ("content_type", "body", "value"),
    [
        ("application/json", b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        ("application/problem+json; charset=utf-8", b'{"a": 1}', {"a": 1}),
        ("application/json", b'{"a": NaN}', '{"a": NaN}'),
        ("application/json", b"<html>", "<html>"),
        ("application/json", b"[" * 100_000, "[" * 100_000),
        ("application/json", b"1" * 5000, "1" * 5000),
        ("text/html; charset=windows-1252", b"caf\xe9", "café"),
        ('text/plain; charset="ISO-8859-8"', b"\xf9\xec\xe5\xed", "שלום"),
        ("text/plain", "é".encode() + b"\xff", "é\ufffd"),
        ("text/plain; charset=nonsense", "é".encode(), "é"),
        ("text/plain; charset=zlib", b"x", "x"),
        ("text/plain; charset=punycode", b"caf-dma", "caf-dma"),
        ("text/plain; charset=unicode_escape", b"\\u0041", "\\u0041"),
        ("", b"", ""),
    ],
)
async def test_a_body_is_json_if_it_is_declared_and_valid_and_text_otherwise(
    server: Loopback, content_type: str, body: bytes, value: Any
) -> None:
    server.on("/", Reply(body, content_type=content_type))
    async with declared(server) as client:
        assert (await client.request("GET", server.url)).value == value


async def test_a_compressed_answer_is_read(server: Loopback) -> None:
    server.on("/", Reply(gzip.compress(b'"tea"'), headers={"content_encoding": "gzip"}))
    async with declared(server) as client:
        assert (await client.request("GET", server.url)).value == "tea"


# ---- limits


async def test_the_size_limit_is_exact(server: Loopback) -> None:
    server.on("/", Reply(b"x" * 1024), Reply(b"x" * 1025))
    async with declared(server, max_kb=1) as client:
        assert len((await client.request("GET", server.url)).body) == 1024
        with pytest.raises(
            SourceError, match=r"answered with more than 1 kB \(raise http.max_kb\)"
        ):
            await client.request("GET", server.url)
        server.on("/", Json("next"))
        assert (await client.request("GET", server.url)).value == "next"


@pytest.mark.parametrize("layers", [1, 2])
async def test_a_decompression_bomb_is_stopped_before_it_fills_the_memory(
    server: Loopback, layers: int
) -> None:
    body = b"\x00" * 100_000_000
    for _ in range(layers):
        body = gzip.compress(body, 1)
    server.on("/", Reply(body, headers={"content_encoding": ", ".join(["gzip"] * layers)}))
    async with declared(server, max_kb=1024) as client:
        tracemalloc.start()
        try:
            with pytest.raises(SourceError, match=r"more than 1024 kB"):
                await client.request("GET", server.url)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak < 12_000_000


async def test_a_slow_body_exceeds_the_deadline_and_is_closed(server: Loopback) -> None:
    server.on("/", Trickle(b"x" * 1000, pause=0.01))
    async with declared(server, timeout_ms=300) as client:
        with (
            anyio.fail_after(60),
            pytest.raises(SourceTimeout, match=r"'127.0.0.1' did not answer in full within 300 ms"),
        ):
            await client.request("GET", server.url)

        assert await anyio.to_thread.run_sync(server.requests[0].left.wait, 60)


async def test_the_deadline_holds_for_a_silent_host_or_resolver(server: Loopback) -> None:
    async def forever(name: str, port: int) -> list[str]:
        await anyio.sleep_forever()
        return []

    server.on("/", Hang())
    async with declared(server, timeout_ms=50) as client:
        with anyio.fail_after(60), pytest.raises(SourceTimeout, match=r"http.timeout_ms"):
            await client.request("GET", server.url)
    async with GuardedClient(
        HttpSettings(hosts=("slow.example",), timeout_ms=50), resolve=forever
    ) as client:
        with anyio.fail_after(60), pytest.raises(SourceTimeout, match=r"'slow.example'"):
            await client.request("GET", "http://slow.example/")


async def test_the_deadline_is_for_all_redirects_together(server: Loopback) -> None:
    server.on("/", Json({}, 302, location="/"))
    async with declared(server, timeout_ms=80, redirects=1_000_000) as client:
        with anyio.fail_after(60), pytest.raises(SourceTimeout):
            await client.request("GET", server.url)


async def test_a_caller_may_shorten_the_timeout_but_not_extend_it(server: Loopback) -> None:
    server.on("/", Hang())
    async with declared(server, timeout_ms=80) as client:
        for requested, held in ((20, "20 ms"), (1e9, "80 ms")):
            with anyio.fail_after(60), pytest.raises(SourceTimeout, match=held):
                await client.request("GET", server.url, timeout_ms=requested)


async def test_leaving_the_client_closes_its_connections(server: Loopback) -> None:
    server.on("/", Json({}))
    async with declared(server) as client:
        await client.request("GET", server.url)
        assert not server.requests[0].left.is_set()
        server.on("/hang", Hang())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.request, "GET", f"{server.url}/hang")
            while len(server.requests) < 2:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()

        assert await anyio.to_thread.run_sync(server.requests[1].left.wait, 60)


# ---- what can go wrong


async def test_a_refused_or_broken_connection_is_an_error_that_names_the_host(
    server: Loopback,
) -> None:
    server.on("/", Cut(), Cut(b"half"))
    async with declared(server) as client:
        for _ in range(2):
            with pytest.raises(SourceError, match=r"'127.0.0.1'"):
                await client.request("GET", server.url)
    async with GuardedClient(HttpSettings(hosts=("127.0.0.1",))) as client:
        with pytest.raises(SourceError, match=r"could not be reached"):
            await client.request("GET", "http://127.0.0.1:1/")


async def test_a_body_with_a_wrong_content_encoding_is_malformed(server: Loopback) -> None:
    server.on("/", Reply(b"plain", headers={"content_encoding": "gzip"}))
    async with declared(server) as client:
        with pytest.raises(SourceMalformed, match=r"did not answer with valid HTTP"):
            await client.request("GET", server.url)


async def test_a_compression_that_was_not_requested_is_malformed_and_not_read_as_text(
    server: Loopback,
) -> None:
    server.on("/", Reply(b"\x0b\x02\x80tea\x03", headers={"content_encoding": "gzip, br"}))
    async with declared(server) as client:
        with pytest.raises(SourceMalformed, match="compressed as 'gzip, br'"):
            await client.request("GET", server.url)


async def test_a_name_without_an_address_is_an_error(names: Names) -> None:
    async with names.client("nowhere.example") as client:
        with pytest.raises(SourceError, match=r"'nowhere.example' cannot be found"):
            await client.request("GET", "http://nowhere.example/")


async def test_a_name_that_the_machine_cannot_resolve_is_an_error() -> None:
    async with GuardedClient(HttpSettings(hosts=("*.invalid",))) as client:
        with anyio.fail_after(60), pytest.raises(SourceError, match=r"'x.invalid' cannot be found"):
            await client.request("GET", "http://x.invalid/")


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": "GE T"},
        {"method": "CONNECT"},
        {"method": ""},
        {"url": "ftp://127.0.0.1/"},
        {"url": "file:///etc/passwd"},
        {"url": "/relative"},
        {"url": "http://"},
        {"url": "http://127.0.0.1:99999/"},
        {"url": "http://127.0.0.1:0/"},
        {"url": "http://127.0.0.1/\r\nX: y"},
        {"url": "http://exa mple.org/"},
        {"url": "http://\ud800/"},
        {"url": 5},
        {"headers": {"Host": "internal"}},
        {"headers": {"content-length": "5"}},
        {"headers": {"Transfer-Encoding": "chunked"}},
        {"headers": {"X": "a\r\nHost: internal"}},
        {"headers": {"X\n": "a"}},
        {"headers": {"X": "☕"}},
        {"headers": {"X": 5}},
        {"query": {"q": {"nested": 1}}},
        {"query": {"q": "\ud800"}},
        {"body": "a", "json": 1},
        {"body": {"a": 1}},
        {"json": {1, 2}},
        {"json": float("nan")},
        {"timeout_ms": 0},
        {"timeout_ms": "5"},
        {"timeout_ms": float("nan")},
    ],
)
async def test_an_invalid_request_is_a_usage_error_and_nothing_is_sent(
    server: Loopback, wrong: dict[str, Any]
) -> None:
    arguments = {"method": "GET", "url": server.url, **wrong}
    async with GuardedClient(HttpSettings(hosts=("*", "127.0.0.1"))) as client:
        with pytest.raises(UsageError):
            await client.request(**arguments)

    assert server.requests == []
