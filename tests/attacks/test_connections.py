"""Strangers at the connections of the HTTP server: heads that never end, clients that say nothing or
read nothing, requests hidden in others, one person who would take everything."""

from __future__ import annotations

import json
import resource
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import psutil
import pytest

from groundhook.host.server.connections import most_connections
from tests.parts.attacked_server import FILES, LIMITS, connected
from tests.server.conftest import LOCAL, OTHER, READER, Served, serving, settings, write

HEAD_S = 0.2
QUICK = {**LIMITS, "head_s": HEAD_S}
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
ACTS = "p" * 40


@contextmanager
def attacked(folder: Path, **more: Any) -> Iterator[Served]:
    app = write(folder / "app", {**FILES, "agent/agent.yml": settings(**more)})
    with serving(app) as served:
        yield served


def whole(sock: socket.socket) -> bytes:
    """All that the server sends until it closes the connection."""
    return b"".join(iter(lambda: sock.recv(65536), b""))


def post(served: Served, *lines: str, body: bytes = b"", key: str = LOCAL) -> bytes:
    head = "".join(f"{line}\r\n" for line in lines)
    return (
        f"POST /api/turns HTTP/1.1\r\nhost: {served.url.removeprefix('http://')}\r\n"
        f"authorization: Bearer {key}\r\ncontent-type: application/json\r\n{head}\r\n"
    ).encode() + body


def test_a_request_behind_chunks_and_a_length_is_not_served(tmp_path: Path) -> None:
    ask = json.dumps({"assistant": "talks", "text": "?"}).encode()
    chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(ask), ask)
    chunked = "transfer-encoding: chunked"
    with attacked(tmp_path) as served:
        for lines in (
            ("accept: application/json", chunked, f"content-length: {len(chunks) + 500}"),
            (f"content-length: {len(chunks)}", chunked),
        ):
            with connected(served) as sock:
                sock.sendall(post(served, *lines, body=chunks) + HEALTH)
                answer = whole(sock)
            assert answer.startswith(b"HTTP/1.1 400 "), answer
            assert b"both Content-Length and Transfer-Encoding" in answer
            assert answer.count(b"HTTP/1.1") == 1, answer
        old = post(served, chunked, body=chunks).replace(b"HTTP/1.1", b"HTTP/1.0")
        with connected(served) as sock:
            sock.sendall(old + HEALTH)
            answer = whole(sock)
        assert answer.count(b"HTTP/1.1") == 1, answer
        assert b" 400 " in answer


def test_a_head_that_does_not_come_in_time_closes_the_connection(tmp_path: Path) -> None:
    with attacked(tmp_path, limits=QUICK) as served:
        with connected(served) as silent:
            assert whole(silent) == b""
        with connected(served) as partial:
            partial.sendall(HEALTH[:20])
            assert whole(partial).startswith(b"HTTP/1.1 408 ")
        with connected(served) as second:  # the next request of a connection, a byte at a time
            second.sendall(HEALTH + HEALTH[:1])
            answer = whole(second)
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert b"HTTP/1.1 408 " in answer


def test_bytes_that_drip_in_do_not_hold_a_connection(tmp_path: Path) -> None:
    with attacked(tmp_path, limits=QUICK) as served, connected(served) as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\n")
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        for sent in cycle(b"x: y\r\n"):  # only the server ends it
            sock.sendall(bytes([sent]))
            if poll.poll(20):
                break
        assert sock.recv(100).startswith(b"HTTP/1.1 408 ")


def test_the_body_of_a_refused_request_holds_no_connection(tmp_path: Path) -> None:
    with attacked(tmp_path, limits=QUICK) as served, connected(served) as sock:
        sock.sendall(post(served, "content-length: 1000000", key="gh_none", body=b"{"))
        assert whole(sock).startswith(b"HTTP/1.1 401 ")


def test_a_turn_that_takes_longer_than_a_head_may_is_answered(tmp_path: Path) -> None:
    ask = {"assistant": "waits", "text": "?"}
    waits = {"type": "scripted", "options": {"script": [{"text": "Late.", "delay_ms": 600}]}}
    files = {
        "connectors/waits.conn.yao": json.dumps(waits),
        "assistants/waits/package.yao": '{ "name": "Waits", "connector": "waits" }',
    }
    write(tmp_path / "app", files)
    with attacked(tmp_path, limits=QUICK) as served, served.client() as client:
        answer = client.post("/api/turns", json=ask, headers={"accept": "application/json"})
        assert answer.json()["content"] == "Late."


def test_silent_connections_keep_nobody_out(tmp_path: Path) -> None:
    limits = {**LIMITS, "connections": 8, "head_s": 3600}
    with attacked(tmp_path, limits=limits) as served, ExitStack() as held:
        silent = [held.enter_context(connected(served)) for _ in range(20)]
        for sock in silent[::2]:
            sock.sendall(HEALTH[:20])
        with served.client() as client:
            assert client.get("/healthz").status_code == 200
        for oldest in silent[:12]:
            assert whole(oldest)[:12] in (b"", b"HTTP/1.1 408")


def test_connections_that_all_work_are_at_most_as_many_as_the_limit(tmp_path: Path) -> None:
    limits = {**LIMITS, "connections": 3}
    ask = json.dumps({"assistant": "late", "text": "?"}).encode()
    with attacked(tmp_path, limits=limits) as served, ExitStack() as held:
        for _ in range(3):
            sock = held.enter_context(connected(served))
            sock.sendall(post(served, f"content-length: {len(ask)}", body=ask))
            assert sock.recv(100).startswith(b"HTTP/1.1 200 ")
        with connected(served) as refused:
            assert whole(refused).startswith(b"HTTP/1.1 503 ")
        held.close()
        with served.client() as client:
            assert client.get("/healthz").status_code == 200


def test_connections_leave_descriptors_for_the_rest_of_the_process() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = min(soft, 1000)
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    try:
        assert most_connections(10) == 10
        assert most_connections(100_000) == few * 3 // 4
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("pipelined", [1, 400])
def test_a_client_that_reads_no_answer_holds_no_connection(tmp_path: Path, pipelined: int) -> None:
    ask = b"GET /openapi.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    with (
        attacked(tmp_path, limits=QUICK, streams={"slow_s": HEAD_S}) as served,
        socket.socket() as sock,
    ):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)  # before it is connected
        host, port = served.url.removeprefix("http://").split(":")
        sock.connect((host, int(port)))
        ours = sock.getsockname()
        sock.sendall(ask * pipelined)
        process = psutil.Process()  # which is the server's as well

        def is_held() -> bool:
            return any(each.raddr == ours for each in process.net_connections("tcp"))

        assert sock.recv(1) == b"H"  # the answer has begun; from now on nothing is read
        while is_held():
            pass


def test_one_person_takes_a_share_of_the_streams_by_any_way_to_open_them(tmp_path: Path) -> None:
    limits = {**LIMITS, "turns_at_once": 2, "streams_at_once": 6}
    ask = {"assistant": "late", "text": "?", "leaving": "continue"}
    again = {"idempotency-key": "one"}
    with (
        attacked(tmp_path, limits=limits) as served,
        served.client(READER) as greedy,
        served.client(OTHER) as other,
        ExitStack() as open,
    ):

        def statuses(method: str, path: str, **more: Any) -> list[int]:
            """Those of ten requests whose answers stay open."""
            answers = [open.enter_context(greedy.stream(method, path, **more)) for _ in range(10)]
            return [answer.status_code for answer in answers]

        with greedy.stream("POST", "/api/turns", json=ask, headers=again) as first:
            turn = first.headers["x-groundhook-turn"]
            events = f"/api/turns/{turn}/events"
            assert statuses("GET", events) == [200] * 5 + [429] * 5
            assert statuses("POST", "/api/turns", json=ask, headers=again) == [429] * 10
            json = {"accept": "application/json"}
            assert greedy.get(events, headers=json).status_code == 429
            assert greedy.post("/api/turns", json=ask).status_code == 429
            chat = {"model": "late", "messages": [{"role": "user", "content": "?"}]}
            assert greedy.post("/v1/chat/completions", json=chat).status_code == 429
            with other.stream("POST", "/api/turns", json=ask) as theirs:
                assert theirs.status_code == 200
        open.close()
        gone = {"events": "stream_end"}

        def is_refused() -> bool:
            with greedy.stream("GET", events, params=gone) as answer:
                return answer.status_code == 429

        while is_refused():
            pass  # until the server has seen that the readers left


def test_people_for_whom_one_program_asks_have_a_share_each(tmp_path: Path) -> None:
    limits = {**LIMITS, "turns_at_once": 1, "streams_at_once": 1, "streams_per_address": 1}
    program = {"name": "web", "key": ACTS, "acts_for": True}
    chat = {"model": "late", "messages": [{"role": "user", "content": "?"}], "stream": True}
    near = {"limits": limits, "auth": {"keys": [program]}, "proxies": ["127.0.0.0/8"]}
    with (
        attacked(tmp_path, **near) as served,
        served.client(ACTS, **{"x-forwarded-for": "203.0.113.9"}) as client,
        ExitStack() as open,
    ):

        def asks(**person: str) -> int:
            answer = client.stream("POST", "/v1/chat/completions", json={**chat, **person})
            return open.enter_context(answer).status_code

        assert [asks(user="ada"), asks(user="ada"), asks(user="bob")] == [200, 429, 200]


def test_the_people_at_one_address_share_its_streams(tmp_path: Path) -> None:
    limits = {**LIMITS, "turns_at_once": 2, "streams_at_once": 2, "streams_per_address": 3}
    keys = [{"name": name, "key": name * 40, "user": name} for name in "abc"]
    visitors = {"anonymous": True, "keys": keys}
    ask = {"assistant": "late", "text": "?"}
    with (
        attacked(tmp_path, limits=limits, auth=visitors, proxies=["127.0.0.0/8"]) as served,
        ExitStack() as open,
    ):

        def asks(key: str, address: str) -> int:
            client = open.enter_context(served.client(key, **{"x-forwarded-for": address}))
            return open.enter_context(client.stream("POST", "/api/turns", json=ask)).status_code

        near = "203.0.113.9"
        assert [asks("a" * 40, near) for _ in range(3)] == [200, 200, 429]
        assert [asks("b" * 40, near) for _ in range(2)] == [200, 429]
        assert asks("b" * 40, "203.0.113.10") == 200
        # Who does not sign in is the address; of IPv6, its network.
        assert asks("", near) == 429
        visits = [asks("", f"2001:db8::{n}") for n in range(1, 4)]
        assert visits == [200, 200, 429]
        assert asks("", "2001:db8:0:1::1") == 200
