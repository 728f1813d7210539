"""What a server survives: processes that are killed, a disk that is full, a store that another
process has locked, a clock that is set back, an end under load. `make test-faults` kills a hundred
times."""

from __future__ import annotations

import json
import random
import resource
import select
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx
import psutil
import psycopg
import pytest

from tests.loopback.databases import NotThere, own_postgresql, own_schema
from tests.parts.children import of_children
from tests.server.conftest import (
    APP,
    OTHER,
    end_leases,
    serving,
    settings,
    sse,
    started,
    until_limited,
    write,
)

ANSWER = "One, two, three."
PACED = {"type": "scripted", "options": {"script": [{"text": ANSWER, "delay_ms": 300, "times": 0}]}}
FILES = {
    **APP,
    "connectors/paced.conn.yao": json.dumps(PACED),
    "assistants/paced/package.yao": '{ "name": "Paced", "connector": "paced" }',
}
JSON = {"accept": "application/json"}
LIMITS = {"turns_per_minute": 10_000, "requests_per_minute": 100_000, "turns_at_once": 100}
CHATS = ("one", "two", "three")


def app_in(folder: Path, store: dict[str, Any] | None = None, **more: Any) -> Path:
    text = settings(store, **{"limits": LIMITS, "warmup": False, **more})
    return write(folder / "app", {**FILES, "agent/agent.yml": text})


def connected(at: dict[str, Any], retries: int = 20) -> httpx.Client:
    transport = httpx.HTTPTransport(retries=retries)  # of connecting, with growing pauses
    headers = {"authorization": f"Bearer {OTHER}"}
    return httpx.Client(base_url=at["url"], headers=headers, timeout=60, transport=transport)


def new_chat(client: httpx.Client) -> str:
    return str(client.post("/api/chats", json={"assistant": "paced"}).json()["id"])


def messages_of(client: httpx.Client, chat: str) -> list[tuple[str, str]]:
    shown = client.get(f"/api/chats/{chat}").json()["messages"]
    return [(each["role"], each["content"]) for each in shown]


@dataclass
class Asking:
    """A client that asks one question of its chat after the other, each with a key."""

    chat: str
    sent: int = 0
    pending: bool = False
    states: Counter[int] = field(default_factory=Counter)

    def ask(self, client: httpx.Client) -> None:
        self.pending = True
        answer = client.post(
            f"/api/chats/{self.chat}/turns",
            json={"text": f"Question {self.sent}"},
            headers={**JSON, "idempotency-key": f"{self.chat}-{self.sent}"},
        )
        self.states[answer.status_code] += 1
        if answer.status_code == 200:
            self.sent += 1
            self.pending = False

    def until_killed(self, url: dict[str, Any]) -> None:
        with connected(url, retries=0) as client:
            try:
                while True:
                    self.ask(client)
            except httpx.TransportError:
                return


def test_a_server_that_is_killed_anywhere_answers_everything_once(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    app, chance = app_in(tmp_path), random.Random()
    askers: list[Asking] = []
    for _ in range(request.config.getoption("--kills")):
        with started(app) as (process, at), connected(at) as client:
            if not askers:
                askers = [Asking(new_chat(client)) for _ in CHATS]
            for each in askers:
                if each.pending:  # its connection broke: it sends the same request again
                    each.ask(client)
            threads = [threading.Thread(target=each.until_killed, args=(at,)) for each in askers]
            for thread in threads:
                thread.start()
            select.select([], [], [], chance.uniform(0, 1.2))
            process.kill()
            for thread in threads:
                thread.join(60)
        end_leases(app, {})
    with started(app) as (_, at), connected(at) as client:
        for each in askers:
            if each.pending:
                each.ask(client)
            shown = messages_of(client, each.chat)
            assert [text for role, text in shown if role == "user"] == [
                f"Question {n}" for n in range(each.sent)
            ]
            assert [role for role, _ in shown] == ["user", "assistant"] * each.sent
            assert all(ANSWER.startswith(text) for role, text in shown if role == "assistant")
            assert set(each.states) == {200}
    with closing(sqlite3.connect(app / ".groundhook/chats.sqlite")) as db:
        assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert db.execute("select count(*) from turns where state = 'running'").fetchone() == (0,)


def workers_of(process: Any) -> list[psutil.Process]:
    commands = of_children(psutil.Process.cmdline, of=psutil.Process(process.pid))
    return [child for child, command in commands.items() if "spawn_main" in " ".join(command)]


def test_workers_that_are_killed_are_replaced_and_end_with_the_process_that_started_them(
    tmp_path: Path,
) -> None:
    app = app_in(tmp_path)
    with started(app, "--workers", "2") as (process, at), connected(at) as client:
        chat = client.post("/api/chats", json={"assistant": "late"}).json()["id"]
        path = f"/api/chats/{chat}/turns"
        with client.stream("POST", path, json={"text": "Hello?"}) as answer:
            turn = answer.headers["x-groundhook-turn"]
            for worker in workers_of(process):
                worker.kill()
            with pytest.raises(httpx.TransportError):
                answer.read()
        end_leases(app, {})
        with connected(at) as again:
            again.timeout = 200  # a worker that was asked just before whether it lives has 30 s
            events = sse(again.get(f"/api/turns/{turn}/events"))
            assert events[-2][2]["code"] == "turn_lost"
            with again.stream("POST", path, json={"text": "Again?"}) as answer:
                assert answer.status_code == 200
        left = workers_of(process)
        process.kill()
        _, alive = psutil.wait_procs(left, 60)
        assert not alive


def test_a_full_disk_costs_no_answer_and_the_server_reports_it(tmp_path: Path) -> None:
    app = app_in(tmp_path)
    with started(app) as (process, at), connected(at) as client:
        chat = new_chat(client)
        path = f"/api/chats/{chat}/turns"
        with client.stream("POST", path, json={"text": "First?"}) as answer:
            soft, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (100, hard))
            events = sse(answer)
        assert events[-1][2]["content"] == ANSWER
        sick = client.get("/readyz")
        assert (sick.status_code, sick.json()["why"]) == (503, "chats cannot be kept")
        refused = client.post(path, json={"text": "Second?"})
        assert (refused.status_code, refused.json()["code"]) == (503, "storage")
        without = client.post("/api/turns", json={"assistant": "paced", "text": "?"}, headers=JSON)
        assert without.json()["content"] == ANSWER
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (soft, hard))
        end_leases(app, {})
        assert client.post(path, json={"text": "Third?"}, headers=JSON).json()["content"] == ANSWER
        began = time.monotonic()
        while client.get("/readyz").status_code != 200:
            assert time.monotonic() - began < 60
            select.select([], [], [], 0.2)  # each is a line in a pipe that nobody reads
        assert [text for role, text in messages_of(client, chat) if role == "user"] == [
            "First?",
            "Third?",
        ]


def test_a_store_that_another_process_has_locked_delays_or_refuses_and_loses_nothing(
    tmp_path: Path,
) -> None:
    app = app_in(tmp_path, {"busy_ms": 200})
    with started(app) as (_, at), connected(at) as client:
        chat = new_chat(client)
        path = f"/api/chats/{chat}/turns"
        with closing(sqlite3.connect(app / ".groundhook/chats.sqlite")) as db:
            with client.stream("POST", path, json={"text": "First?"}) as answer:
                db.execute("begin immediate")
                events = sse(answer)
            assert events[-1][2]["content"] == ANSWER
            refused = client.post(path, json={"text": "Second?"})
            assert (refused.status_code, refused.json()["code"]) == (503, "storage")
            assert messages_of(client, chat)[0] == ("user", "First?")  # reading goes on
            db.rollback()
        end_leases(app, {})
        assert client.post(path, json={"text": "Third?"}, headers=JSON).json()["content"] == ANSWER


@contextmanager
def locked(url: str) -> Iterator[None]:
    """Another session of PostgreSQL holds the tables of the chats."""
    with psycopg.connect(url) as db:
        db.execute("lock table chats, messages, turns, logs in access exclusive mode")
        yield


def test_a_locked_postgresql_delays_or_refuses_and_the_answers_reach_their_readers(
    tmp_path: Path, postgresql: str
) -> None:
    with own_schema(postgresql) as url:
        store: dict[str, Any] = {"url": url, "busy_ms": 200}
        app = app_in(tmp_path, store)
        with started(app) as (_, at), connected(at) as client:
            chat = new_chat(client)
            path = f"/api/chats/{chat}/turns"
            with client.stream("POST", path, json={"text": "First?"}) as answer, locked(url):
                events = sse(answer)
            assert events[-1][2]["content"] == ANSWER
            with locked(url):
                refused = client.post(path, json={"text": "Second?"})
                assert (refused.status_code, refused.json()["code"]) == (503, "storage")
                sick = client.get("/readyz")
                assert (sick.status_code, sick.json()["why"]) == (503, "chats cannot be kept")
                ask = {"assistant": "paced", "text": "?"}
                without = client.post("/api/turns", json=ask, headers=JSON)
                assert without.json()["content"] == ANSWER
            end_leases(app, store)
            third = client.post(path, json={"text": "Third?"}, headers=JSON)
            assert third.json()["content"] == ANSWER
            roles = [role for role, _ in messages_of(client, chat)]
            assert roles == ["user", "assistant"] * 2


def test_a_reader_through_another_process_reads_on_after_a_restart_of_postgresql(
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:
        try:
            server = stack.enter_context(own_postgresql())
        except NotThere as reason:
            pytest.skip(f"no PostgreSQL to test with: {reason}")
        app = app_in(tmp_path, {"url": server.url, "lease_s": 60})
        one, two = (stack.enter_context(started(app))[1] for _ in range(2))
        client, other = (stack.enter_context(connected(at)) for at in (one, two))
        path = f"/api/chats/{new_chat(client)}/turns"
        with (
            client.stream("POST", path, json={"text": "First?"}) as answer,
            other.stream(
                "GET", f"/api/turns/{answer.headers['x-groundhook-turn']}/events"
            ) as reading,
        ):
            server.control("-m", "fast", "restart")
            ends = [sse(each)[-1][2] for each in (reading, answer)]
    assert [end["content"] for end in ends] == [ANSWER] * 2


def test_a_clock_that_is_set_back_locks_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = {"assistant": "talks", "text": "?"}
    app = app_in(tmp_path, limits={"turns_per_minute": 2})
    with serving(app) as served, served.client(OTHER) as client:
        chat = new_chat(client)
        for _ in range(2):
            assert client.post("/api/turns", json=ask, headers=JSON).status_code == 200
        until_limited(lambda: client.post("/api/turns", json=ask, headers=JSON))
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() - 7200)
        answer = client.post(f"/api/chats/{chat}/turns", json={"text": "?"}, headers=JSON)
        assert answer.status_code == 200
        assert client.post("/api/turns", json=ask, headers=JSON).status_code == 200
        late = until_limited(lambda: client.post("/api/turns", json=ask, headers=JSON))
        assert int(late.headers["retry-after"]) <= 61


async def test_an_end_under_load_completes_the_turns_under_way_and_keeps_them(
    tmp_path: Path,
) -> None:
    app, many = app_in(tmp_path, drain_s=10), 40
    ends: list[Any] = []
    headers = {"authorization": f"Bearer {OTHER}"}
    with started(app) as (process, at):
        async with httpx.AsyncClient(base_url=at["url"], headers=headers, timeout=60) as client:
            begun, count = anyio.Event(), 0
            chats = [
                (await client.post("/api/chats", json={"assistant": "paced"})).json()["id"]
                for _ in range(many // 2)
            ]

            async def ask(path: str, body: dict[str, str]) -> None:
                nonlocal count
                async with client.stream("POST", path, json=body) as answer:
                    count += 1
                    if count == many:
                        begun.set()
                    text = (await answer.aread()).decode()
                ends.append(json.loads(text.rstrip().rpartition("\ndata: ")[2]))

            async with anyio.create_task_group() as tasks:
                for chat in chats:
                    tasks.start_soon(ask, f"/api/chats/{chat}/turns", {"text": "?"})
                    tasks.start_soon(ask, "/api/turns", {"assistant": "paced", "text": "?"})
                await begun.wait()
                process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM)
    assert [(end["type"], end["content"]) for end in ends] == [("stream_end", ANSWER)] * many
    with closing(sqlite3.connect(app / ".groundhook/chats.sqlite")) as db:
        states = db.execute("select state, count(*) from turns group by state").fetchall()
    assert states == [("done", many // 2)]
