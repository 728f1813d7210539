"""`http` in hooks through the public door: requests to declared hosts, answers whatever their
status, and refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from groundhook.core.types.events import Event
from tests.conftest import MakeApp
from tests.loopback.server import Cut, Hang, Html, Json, Loopback, Reply, serving
from tests.parts.turns import app_with, end, of, run


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving() as server:
        yield server


class Asking:
    def __init__(self, make_app: MakeApp, server: Loopback) -> None:
        self.make_app, self.server = make_app, server

    async def events(
        self, body: str, hosts: Sequence[str] | None = None, **http: Any
    ) -> list[Event]:
        """The events of a turn whose Create has this body; `base` is the server's address."""
        declared = {
            "hosts": [self.server.url.removeprefix("http://")] if hosts is None else list(hosts),
            **http,
        }
        package = json.dumps({"name": "A", "connector": "script", "http": declared})
        hook = (
            f"const base = {json.dumps(self.server.url)};\nfunction Create(ctx: any) {{ {body} }}"
        )
        return await run(app_with(self.make_app, package, index_ts=hook))

    async def value(self, expression: str, **http: Any) -> Any:
        return end(
            await self.events(f"return {{ metadata: {{ value: {expression} }} }};", **http)
        ).metadata["value"]

    async def failure(
        self, expression: str, hosts: Sequence[str] | None = None, **http: Any
    ) -> str:
        (failed,) = of(await self.events(f"{expression};", hosts, **http), "error")
        return f"{failed.message} {failed.hint}"


@pytest.fixture
def asking(make_app: MakeApp, server: Loopback) -> Asking:
    return Asking(make_app, server)


async def test_an_answer_has_status_headers_and_data(asking: Asking) -> None:
    asking.server.on("/api", Reply('{"n": [1, {"é": null}]}'.encode(), headers={"X-Two": "b"}))
    answer = await asking.value("http.Get(base + '/api')")
    assert (answer["status"], answer["code"], answer["message"]) == (200, 200, "")
    assert answer["data"] == {"n": [1, {"é": None}]}
    assert answer["headers"]["x-two"] == "b"
    assert answer["headers"]["content-type"] == "application/json"
    assert answer["url"] == f"{asking.server.url}/api"


async def test_an_answer_that_is_not_json_is_text(asking: Asking) -> None:
    asking.server.on("/page", Html("<p>hello</p>"))
    assert await asking.value("http.Get(base + '/page').data") == "<p>hello</p>"


@pytest.mark.parametrize("status", [404, 429, 500])
async def test_an_error_status_is_an_answer(asking: Asking, status: int) -> None:
    asking.server.on("/api", Json({"why": "because"}, status=status))
    answer = await asking.value("http.Get(base + '/api')")
    assert (answer["status"], answer["code"], answer["data"]) == (
        status,
        status,
        {"why": "because"},
    )
    assert answer["message"].startswith(f"HTTP {status} ")


@pytest.mark.parametrize(
    "query",
    [
        "{ a: 1, b: ['x y', 'z'], c: true, d: null }",
        "'?a=1&b=x+y&b=z&c=true'",
        "['a=1', { b: ['x y', 'z'] }, 'c=true']",
    ],
)
async def test_a_query_is_an_object_text_or_a_list_of_these(asking: Asking, query: str) -> None:
    asking.server.on("/api", Json({}))
    await asking.value(f"http.Get(base + '/api?q=0', {query}).status")
    target = urlsplit(asking.server.requests[0].path)
    assert sorted(parse_qsl(target.query)) == [
        ("a", "1"),
        ("b", "x y"),
        ("b", "z"),
        ("c", "true"),
        ("q", "0"),
    ]


async def test_headers_are_an_object_or_a_list_of_them(asking: Asking) -> None:
    asking.server.on("/api", Json({}))
    await asking.value(
        "http.Get(base + '/api', null, { Authorization: 'Bearer x', 'X-Count': 3 }).status"
    )
    await asking.value("http.Get(base + '/api', null, [{ 'X-A': 'a' }, { 'X-B': 'b' }]).status")
    first, second = asking.server.requests
    assert (first.headers["authorization"], first.headers["x-count"]) == ("Bearer x", "3")
    assert (second.headers["x-a"], second.headers["x-b"]) == ("a", "b")


@pytest.mark.parametrize(
    ("call", "method", "type", "body"),
    [
        ("http.Post(base + '/api', { a: [1] })", "POST", "application/json", '{"a": [1]}'),
        ("http.Post(base + '/api', 'text')", "POST", "text/plain; charset=utf-8", "text"),
        (
            "http.Post(base + '/api', [1], null, { q: 1 }, { 'X-A': 'a' })",
            "POST",
            "application/json",
            "[1]",
        ),
        (
            (
                "http.Post(base + '/api', { a: 'x y', b: [1, 2], c: null }, [], null,"
                " { 'Content-Type': 'application/x-www-form-urlencoded' })"
            ),
            "POST",
            "application/x-www-form-urlencoded",
            "a=x+y&b=1&b=2",
        ),
        ("http.Put(base + '/api', { a: 1 }, { q: 1 })", "PUT", "application/json", '{"a": 1}'),
        ("http.Patch(base + '/api', { a: 1 })", "PATCH", "application/json", '{"a": 1}'),
        ("http.Delete(base + '/api')", "DELETE", None, ""),
        (
            "http.Send('post', base + '/api', { a: 1 }, { q: 1 }, { 'X-A': 'a' })",
            "POST",
            "application/json",
            '{"a": 1}',
        ),
        ("http.Send('GET', base + '/api')", "GET", None, ""),
    ],
)
async def test_bodies_go_as_they_were_meant(
    asking: Asking, call: str, method: str, type: str | None, body: str
) -> None:
    asking.server.on("/api", Json({}))
    assert await asking.value(f"{call}.status") == 200
    (requested,) = asking.server.requests
    assert requested.method == method
    assert requested.headers.get("content-type") == type
    assert requested.body.decode() == body
    assert ("q=1" in requested.path) == ("q: 1" in call)
    assert ("x-a" in requested.headers) == ("X-A" in call)


async def test_a_head_request_has_an_answer_without_a_body(asking: Asking) -> None:
    asking.server.on("/api", Reply(b"", headers={"X-A": "a"}))
    answer = await asking.value("http.Head(base + '/api')")
    assert (answer["status"], answer["headers"]["x-a"], answer["data"]) == (200, "a", "")


async def test_a_host_that_is_not_declared_is_refused_with_what_to_declare(asking: Asking) -> None:
    message = await asking.failure("http.Get('https://example.org/x')")
    assert "the host 'example.org' is not declared" in message
    assert "add 'example.org' to http.hosts in package.yao" in message
    assert "http.hosts" in await asking.failure("http.Get(base)", hosts=[])
    assert asking.server.requests == []


async def test_a_refusal_can_be_caught_and_has_a_code(asking: Asking) -> None:
    caught = """(() => {
        try { http.Get("https://example.org"); } catch (error: any) { return [error.code, error instanceof Error]; }
    })()"""
    assert await asking.value(caught) == ["not_permitted", True]


@pytest.mark.parametrize(
    ("call", "settings", "reply", "message"),
    [
        (
            "http.Get(base + '/x')",
            {"timeout_ms": 150},
            Hang(),
            "did not answer in full within 150 ms raise http.timeout_ms",
        ),
        (
            "http.Get(base + '/x')",
            {"max_kb": 1},
            Reply(b"x" * 2000),
            "answered with more than 1 kB raise http.max_kb",
        ),
        ("http.Get(base + '/x')", {}, Cut(), "127.0.0.1"),
    ],
)
async def test_an_answer_that_cannot_be_had_throws(
    asking: Asking, call: str, settings: dict[str, Any], reply: Any, message: str
) -> None:
    asking.server.on("/x", reply)
    assert message in " ".join((await asking.failure(call, **settings)).split()).replace(
        "(", ""
    ).replace(")", "")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("http.Get()", "http.Get: the url must be text that is not empty, not nothing"),
        ("http.Get('nowhere')", "http.Get: 'nowhere' cannot be requested"),
        ("http.Get('file:///etc/passwd')", "its scheme is not http or https"),
        (
            "http.Get(base, 5)",
            "http.Get: the query must be an object, text, or a list of these, not a number",
        ),
        ("http.Get(base, { a: { b: 1 } })", "http.Get: "),
        ("http.Get(base, {}, 'x: y')", "http.Get: the headers must be an object"),
        ("http.Get(base, {}, { a: {} })", "the header 'a' must be text or a number, not an object"),
        ("http.Get(base, {}, { Host: 'evil' })", "the header 'Host' cannot be set"),
        ("http.Post(base, {}, { f: '/etc/passwd' })", "http.Post: files cannot be sent"),
        (
            "http.Post(base, {}, null, null, { 'Content-Type': 'multipart/form-data' })",
            "a body in several parts cannot be sent",
        ),
        ("http.Send('CONNECT', base)", "'CONNECT' is not an allowed request method"),
        ("http.Send()", "http.Send: the method must be text"),
        (
            "http.Stream('GET', base)",
            "http.Stream is not offered by this host: there are Get, Post",
        ),
    ],
)
async def test_wrong_requests_throw_and_say_what_is_wrong(
    asking: Asking, call: str, message: str
) -> None:
    assert message in await asking.failure(call)
    assert asking.server.requests == []


async def test_the_trace_names_the_request_without_its_query(asking: Asking) -> None:
    asking.server.on("/api", Json({}))
    events = await asking.events("http.Get(base + '/api?key=secret');")
    (node,) = [
        event.node
        for event in of(events, "trace")
        if event.node.type == "http" and event.node.status == "completed"
    ]
    assert node.label == f"GET {asking.server.url}/api"
    assert node.data == {"status": 200, "bytes": 2}
