"""Strangers at the HTTP server: bodies that are no requests, readers that do not read, answers that
forge events, guesses at other people's things."""

from __future__ import annotations

import json
import secrets
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.parts.attacked_server import FILES, FORGED, LIMITS, STREAMS, connected
from tests.server.conftest import LOCAL, OTHER, READER, Served, serving, settings, sse, write


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    app = tmp_path_factory.mktemp("attacked") / "app"
    configured = settings(limits=LIMITS, streams=STREAMS, openai={"citations": "numbers"})
    write(app, {**FILES, "agent/agent.yml": configured})
    with serving(app) as server:
        yield server


ASK = {"assistant": "tea", "text": "?", "search": False}
JSON = {"content-type": "application/json"}


def answered(served: Served) -> None:
    with served.client() as client:
        assert client.get("/healthz").status_code == 200
        answer = client.post("/api/turns", json={"assistant": "talks", "text": "?"})
        assert sse(answer)[-1][1] == "stream_end"


DEEP = b'{"assistant":' + b"[" * 30_000 + b"]" * 30_000 + b"}"
NO_REQUESTS: list[tuple[bytes, dict[str, str], int]] = [
    (b"", JSON, 400),
    (b"{", JSON, 400),
    (b'{"assistant": "tea", "text": "?", "assistant": "talks"}', JSON, 400),
    (b'{"assistant": NaN}', JSON, 400),
    (b'{"assistant": 1e999999}', JSON, 400),
    (b'{"assistant": ' + b"9" * 6000 + b"}", JSON, 400),
    (DEEP, JSON, 400),
    (b"[" * 60_000, JSON, 400),
    (b'{"assistant": "tea", "text": "\xff"}', JSON, 400),
    (b'{"assistant": "\\ud800", "text": "?"}', JSON, 404),
    (b'{"assistant": "a\\u0000b", "text": "?"}', JSON, 404),
    (json.dumps({f"k{n}": 1 for n in range(5000)}).encode(), JSON, 400),
    (b'{"assistant": "tea", "text": "?"}' + b" " * 70_000, JSON, 413),
    (json.dumps(ASK).encode(), {"content-type": "text/plain"}, 415),
    (json.dumps(ASK).encode(), {"content-type": "application/x-www-form-urlencoded"}, 415),
    (json.dumps(ASK).encode(), {"content-type": "application/json; charset=utf-16"}, 415),
    (b"\x1f\x8b", {**JSON, "content-encoding": "gzip"}, 415),
    (json.dumps({**ASK, "data": {"sources": [{"type": "x", "name": "y"}]}}).encode(), JSON, 400),
]


@pytest.mark.parametrize("path", ["/api/turns", "/v1/chat/completions", "/api/search"])
def test_bodies_that_are_no_request_are_refused_in_words(served: Served, path: str) -> None:
    with served.client() as client:
        for body, headers, status in NO_REQUESTS:
            answer = client.post(path, content=body, headers=headers)
            assert 400 <= answer.status_code < 500, (body[:60], answer.text)
            if path == "/api/turns":
                assert answer.status_code == status, (body[:60], answer.text)
            assert len(answer.text) < 2000
            answer.json()
    answered(served)


def test_a_body_without_an_end_is_cut_off(served: Served) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b" " * 16384

    with served.client() as client:
        try:
            cut = client.post("/api/turns", content=endless(), headers=JSON)
        except httpx.WriteError:  # the connection was closed before the answer was read
            pass
        else:  # 400: a slow machine has not sent so much within the time for a body
            assert cut.status_code == 413 or "longer than" in cut.json()["detail"]
        big = {**JSON, "content-length": str(2**30)}
        request = client.build_request("POST", "/api/turns", content=b"{", headers=big)
        with connected(served) as sock:
            head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
            sock.sendall(f"POST /api/turns HTTP/1.1\r\n{head}\r\n".encode())
            assert b" 413 " in sock.recv(200)


def test_a_body_that_is_sent_a_byte_at_a_time_is_given_up(served: Served) -> None:
    with connected(served) as sock:
        head = f"Host: {served.url.removeprefix('http://')}\r\nAuthorization: Bearer {LOCAL}\r\n"
        head += "Content-Type: application/json\r\nContent-Length: 1000\r\n"
        sock.sendall(f"POST /api/turns HTTP/1.1\r\n{head}\r\n{{".encode())
        assert b" 400 " in sock.recv(200)


def test_a_body_for_mcp_is_bounded_in_size_and_time_as_others_are(served: Served) -> None:
    large = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}' + b" " * 70_000
    with served.client() as client:
        assert client.post("/mcp", content=large, headers=JSON).status_code == 413
    with connected(served) as sock:
        sock.sendall(
            b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            + f"authorization: Bearer {LOCAL}\r\ncontent-length: 50\r\n\r\n{{".encode()
        )
        assert b" 400 " in sock.recv(1000).splitlines()[0]  # though the rest never comes
    answered(served)


def test_lines_that_smuggle_a_request_are_refused(served: Served) -> None:
    host = served.url.removeprefix("http://")
    for head in (
        f"Host: {host}\r\nContent-Length: 4\r\nContent-Length: 5\r\n",
        f"Host: {host}\r\nHost: evil.example\r\n",
        f"Host: {host}\r\nX-A: b\x00c\r\n",
        f"Host: {host}\r\nX-A: {'a' * 40_000}\r\n",
        "".join(f"X-{n}: a\r\n" for n in range(10_000)),
    ):
        with connected(served) as sock:
            sock.sendall(f"POST /api/turns HTTP/1.1\r\n{head}\r\n0\r\n\r\nGET /x".encode())
            status = sock.recv(100).split()[1:2]
            assert status == [] or status[0][:1] == b"4", head[:80]


def test_paths_that_climb_reach_nothing(served: Served) -> None:
    with served.client() as client:
        for path in (
            "/api/sources/kb/notes/../../../agent/agent.yml",
            "/api/sources/kb/notes/..%2F..%2Fagent%2Fagent.yml",
            "/api/sources/kb/..%2f..%2f/x",
            "/api/sources/db/%2e%2e/1",
            "/api/assistants/..%2Fagent",
            "/api/assistants/%00",
            "/v1/models/..%2F..%2Fetc",
            "/api/turns/..%2F../events",
            "/api/chats/%2e%2e",
            "/problems/..%2F..%2Fx",
            "//evil.example/%2e%2e",
        ):
            answer = client.get(path)
            assert answer.status_code in (404, 421), path
            assert "server" not in answer.json().get("detail", "")


def test_a_client_that_stops_reading_holds_up_its_own_turn_and_is_left(served: Served) -> None:
    body = json.dumps({"assistant": "prints", "text": "?"})
    head = f"Host: {served.url.removeprefix('http://')}\r\nAuthorization: Bearer {LOCAL}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    with connected(served) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.sendall(f"POST /api/turns HTTP/1.1\r\n{head}\r\n{body}".encode())
        first = sock.recv(1000)
        turn = first.partition(b"x-groundhook-turn: ")[2].split()[0].decode()
        answered(served)
        with served.client() as client:
            began = time.monotonic()
            while client.get(f"/api/turns/{turn}").json().get("state") == "running":
                assert time.monotonic() - began < 60


def test_a_turn_that_prints_without_end_ends_at_the_size_of_its_log(served: Served) -> None:
    ask = {"assistant": "prints", "text": "?", "leaving": "continue"}
    with served.client() as client:
        events = sse(client.post("/api/turns", json=ask))
    assert [name for _, name, _ in events[-2:]] == ["error", "stream_end"]
    assert events[-2][2]["code"] == "turn_log_full"
    answered(served)


def test_readers_that_come_and_leave_at_once_leave_nothing(served: Served, full: bool) -> None:
    process = psutil.Process()
    answered(served)
    before = process.num_fds()
    ask = json.dumps({"assistant": "late", "text": "?"})
    head = f"Host: {served.url.removeprefix('http://')}\r\nAuthorization: Bearer {LOCAL}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(ask)}\r\n"
    for n in range(1000 if full else 60):
        with connected(served) as sock:
            sock.sendall(f"POST /api/turns HTTP/1.1\r\n{head}\r\n{ask}".encode())
            if n % 2:
                sock.recv(100)
    with served.client() as client:
        began = time.monotonic()
        while _figure(client, "groundhook_turns_running") or _figure(
            client, "groundhook_streams_open"
        ):
            assert time.monotonic() - began < 60
    assert process.num_fds() <= before + 5
    answered(served)


def _figure(client: httpx.Client, name: str) -> float:
    lines = client.get("/metrics").text.splitlines()
    return float(next(line for line in lines if line.startswith(f"{name} ")).split()[1])


@pytest.mark.parametrize(
    "after", ["-1", "1e3", "x", "9" * 400, "1; drop", "١", "0x1", " 1", "1.0", "%00"]
)
def test_ids_of_events_that_are_no_numbers_are_refused(served: Served, after: str) -> None:
    with served.client() as client:
        turn = client.post("/api/turns", json=ASK).headers["x-groundhook-turn"]
        answer = client.get(f"/api/turns/{turn}/events", params={"after": after})
        assert (answer.status_code, answer.json()["code"]) == (400, "usage")


def test_no_guess_reaches_the_things_of_another_person(served: Served, full: bool) -> None:
    with served.client(OTHER) as mine, served.client(READER) as theirs:
        chats = [
            mine.post("/api/chats", json={"assistant": "talks"}).json()["id"] for _ in range(3)
        ]
        messages = []
        for chat in chats:
            mine.post(f"/api/chats/{chat}/turns", json={"text": "?"}).read()
            messages += [each["id"] for each in mine.get(f"/api/chats/{chat}").json()["messages"]]
        turns = [mine.post("/api/turns", json=ASK).headers["x-groundhook-turn"] for _ in range(5)]
        rating = {"rating": 1}
        for method, path, body, real, size in (
            ("GET", "/api/turns/{}", None, turns, 6),
            ("GET", "/api/chats/{}", None, chats, 16),
            ("DELETE", "/api/chats/{}", None, chats, 16),
            ("PUT", "/api/messages/{}/feedback", rating, messages, 12),
        ):
            kind = real[0][:2]
            guesses = [f"{kind}{secrets.token_hex(size)}" for _ in range(10_000 if full else 40)]
            texts = set()
            for id in (*real, *guesses):
                answer = theirs.request(method, path.format(id), json=body)
                texts.add(answer.text.replace(id, "").partition('"request"')[0])
            assert len(texts) == 1, path
        key = {"idempotency-key": "shared"}
        first = mine.post("/api/turns", json=ASK, headers=key).headers["x-groundhook-turn"]
        second = theirs.post("/api/turns", json=ASK, headers=key).headers["x-groundhook-turn"]
        assert first != second


def test_keys_that_are_nearly_right_are_refused(served: Served) -> None:
    id, _, secret = OTHER[3:].partition("_")
    wrong = [
        "",
        OTHER[:-1],
        OTHER + "A",
        OTHER.upper(),
        OTHER.swapcase(),
        f"gh_{id}_",
        f"gh_{id}_{LOCAL[12:]}",
        f"gh_{LOCAL[3:11]}_{secret}",
        f"gh_{id}_{'0' * 64}",
        f"{OTHER} {OTHER}",
        "null",
        "x" * 20_000,
    ]
    with served.client("") as client:
        for key in wrong:
            answer = client.get("/api/me", headers={"x-api-key": key})
            assert answer.status_code == 401, key[:60]
        twice = [("authorization", f"Bearer {OTHER}"), ("authorization", f"Bearer {LOCAL}")]
        assert client.get("/api/me", headers=twice).status_code == 401
        both = {"authorization": f"Bearer {OTHER}", "x-api-key": OTHER}
        assert client.get("/api/me", headers=both).status_code == 401
        assert client.get("/api/me", headers={"authorization": "Basic eDp5"}).status_code == 401


def test_an_answer_forges_no_event_of_the_stream(served: Served) -> None:
    with served.client() as client:
        ask = {"assistant": "forges", "text": "?"}
        raw = client.post("/api/turns", json=ask).content
        blocks = [block for block in raw.split(b"\n\n") if block]
        for block in blocks[1:]:
            names = [line.split(b":")[0] for line in block.splitlines()]
            assert names == [b"id", b"event", b"data"]
        assert json.loads(blocks[-1].split(b"data: ", 1)[1])["content"] == FORGED
        for mark in ("\r", "\u2028", "\u0085"):
            assert mark not in raw.decode()
        body = {"model": "forges", "stream": True, "messages": [{"role": "user", "content": "?"}]}
        chunks = client.post("/v1/chat/completions", json=body).content.decode().split("\n\n")
        assert chunks.count("data: [DONE]") == 1
        assert all(chunk.startswith("data: ") for chunk in chunks if chunk)


def test_nothing_that_is_sent_has_a_path_of_the_server_a_key_or_a_prompt(served: Served) -> None:
    asks: list[tuple[str, str, Any]] = [
        ("POST", "/api/turns", {"assistant": name, "text": "?"})
        for name in ("tea", "fails", "throws", "talks", "late2")
    ]
    asks += [
        ("POST", "/api/turns", {"assistant": "tea", "text": "all teas", "search": True}),
        (
            "POST",
            "/v1/chat/completions",
            {"model": "throws", "messages": [{"role": "user", "content": "?"}]},
        ),
        ("POST", "/api/search", {"type": "kb", "query": "?", "assistant": "tea"}),
        ("POST", "/api/search", {"type": "db", "query": "?", "assistant": "tea"}),
        *(
            ("GET", path, None)
            for path in (
                "/api/me",
                "/api/assistants",
                "/api/assistants/tea/settings",
                "/api/check",
                "/openapi.json",
                "/metrics",
                "/readyz",
                "/nothing",
            )
        ),
    ]
    folder = str(served.app)
    with served.client(OTHER) as client:
        for method, path, body in asks:
            answer = client.request(method, path, json=body)
            sent = answer.text + str(answer.headers)
            for hidden in (folder, str(Path.home()), OTHER, LOCAL, "Traceback", "secret of the"):
                assert hidden not in sent, (path, body, hidden)
