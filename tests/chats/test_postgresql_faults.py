"""Turns of a chat whose PostgreSQL is locked, restarted, ended or silent in the middle of them: the
answer reaches its reader, and what could not be kept is reported."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

import anyio
import anyio.to_thread
import psycopg
import pytest

from groundhook import Host, OpenChat, StorageError, open_host
from groundhook.core.ports import Delta, Finished, ModelCall, TextDelta
from groundhook.core.types.chats import ChatOwner
from groundhook.core.types.events import Event
from groundhook.host.app import turn_recorder
from groundhook.host.chats.storage import postgresql as storage
from groundhook.host.testing.canned import CannedSource
from tests.conftest import MakeApp
from tests.loopback.databases import NotThere, OwnPostgresql, own_postgresql
from tests.parts.conversations import ADA
from tests.parts.turns import app_with, end, of

BEFORE, AFTER = "Two minutes, ", "at 80 degrees."
OWNER = ChatOwner("acme", "ada")


@pytest.fixture(scope="module")
def server() -> Iterator[OwnPostgresql]:
    try:
        with own_postgresql() as server:
            yield server
    except NotThere as reason:
        pytest.skip(f"no PostgreSQL to test with: {reason}")


@dataclass
class Halting:
    """A model that writes half of its answer, and the rest when it may."""

    halted: anyio.Event = field(default_factory=anyio.Event)
    goes_on: anyio.Event = field(default_factory=anyio.Event)

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        yield self._deltas()

    async def _deltas(self) -> AsyncIterator[Delta]:
        yield TextDelta(BEFORE)
        self.halted.set()
        await self.goes_on.wait()
        yield TextDelta(AFTER)
        yield Finished("stop")


@asynccontextmanager
async def opened(app: Path, model: Any) -> AsyncIterator[tuple[Host, OpenChat]]:
    empty: Any = {kind: CannedSource({}) for kind in ("kb", "web", "db")}
    with anyio.fail_after(60):
        async with (
            open_host(app, environment={}, sources=empty, connectors={"script": model}) as host,
            host.chat("a", identity=ADA) as chat,
        ):
            yield host, chat


@pytest.fixture
def app(make_app: MakeApp, server: OwnPostgresql) -> Path:
    name = f"chats_{token_hex(6)}"
    with psycopg.connect(server.url, autocommit=True) as db:
        db.execute(f"create database {name}".encode())
    url = server.url.rpartition("/")[0] + f"/{name}"
    app = app_with(make_app)
    (app / "agent").mkdir(exist_ok=True)
    text = f'store: {{ url: "{url}", busy_ms: 200 }}'
    (app / "agent/agent.yml").write_text(text, encoding="utf-8")
    return app


async def asked(
    model: Halting, chat: OpenChat, fault: Callable[[], AbstractContextManager[object]]
) -> list[Event]:
    """Ask, and read the second half of the answer while there is the fault."""
    seen: list[Event] = []
    async with chat.send("How long?") as events:
        async for event in events:
            seen.append(event)
            if event.type == "text" and not model.goes_on.is_set():
                await model.halted.wait()
                with fault():
                    model.goes_on.set()
                    seen += [event async for event in events]
    return seen


@contextmanager
def locked(url: str) -> Iterator[None]:
    with psycopg.connect(url) as db:
        db.execute("lock table messages, turns, logs in access exclusive mode")
        yield


def terminated(url: str) -> AbstractContextManager[object]:
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where pid <> pg_backend_pid() and backend_type = 'client backend'"
        )
    return nullcontext()


@pytest.mark.parametrize("how", ["connections", "fast", "immediate"])
async def test_an_answer_outlives_lost_connections_and_a_restart_of_the_server(
    app: Path, server: OwnPostgresql, how: str
) -> None:
    def fault() -> AbstractContextManager[object]:
        if how == "connections":
            return terminated(server.url)
        server.control("-m", how, "restart")
        return nullcontext()

    model = Halting()
    async with opened(app, model) as (_, chat):
        seen = await asked(model, chat, fault)
        kept = await chat.messages()
    assert end(seen).content == BEFORE + AFTER
    assert of(seen, "warning") == of(seen, "error") == []
    assert [message.text for message in kept] == ["How long?", BEFORE + AFTER]


async def test_an_answer_reaches_its_reader_while_another_session_has_locked_the_store(
    app: Path, server: OwnPostgresql, caplog: pytest.LogCaptureFixture
) -> None:
    url = (app / "agent/agent.yml").read_text().split('"')[1]
    model = Halting()
    async with opened(app, model) as (host, chat):
        seen = await asked(model, chat, lambda: locked(url))
        assert end(seen).content == BEFORE + AFTER
        (warning,) = of(seen, "warning")
        assert (warning.code, "not kept" in warning.message) == ("storage", True)
        assert "store.busy_ms" in warning.hint
        assert "was not kept" in caplog.text
        await ended_as_lost(host, url)
        assert next(message.text for message in await chat.messages()) == "How long?"
        async with chat.send("And now?") as events:
            assert end([event async for event in events]).content == BEFORE + AFTER


async def test_an_answer_reaches_its_reader_though_the_server_has_ended(
    app: Path, server: OwnPostgresql
) -> None:
    model = Halting()
    async with opened(app, model) as (host, chat):
        try:
            seen = await asked(model, chat, lambda: ended(server))
            with pytest.raises(StorageError) as caught:
                await chat.messages()
        finally:
            server.control("restart")
        assert end(seen).content == BEFORE + AFTER
        assert [event.code for event in of(seen, "warning")] == ["storage"]
        assert "store.url" in caught.value.hint
        assert "is not kept yet" in of(seen, "warning")[0].message
        await host.conversations.end_lost_turns()
        kept = await chat.messages()
    assert [message.text for message in kept] == ["How long?", BEFORE + AFTER]
    assert kept[1].answer is not None
    assert kept[1].answer.errors == ()


async def test_an_answer_reaches_its_reader_though_the_server_is_silent(
    app: Path, server: OwnPostgresql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "ANSWER_S", 0.5)
    monkeypatch.setattr(turn_recorder, "KEEPING_S", 0.8)
    monkeypatch.setattr(turn_recorder, "CLOSING_S", 0.2)
    model = Halting()
    async with opened(app, model) as (_, chat):
        with anyio.fail_after(60):
            seen = await asked(model, chat, server.frozen)
        assert end(seen).content == BEFORE + AFTER
        assert [event.code for event in of(seen, "warning")] == ["storage"]


async def test_the_end_of_a_log_that_was_appended_twice_has_each_event_once(app: Path) -> None:
    async with opened(app, Halting()) as (host, chat), chat.send("How long?") as events:
        await anext(events)
        running = await host.chats.conversations.running(OWNER, chat.id)
        assert running is not None
        logs = host.chats.logs
        for body in (b"1\n", b"1\n2\n"):  # a client that lost the first answer sends more
            await logs.append(OWNER, running.id, 1000, body, running.lease_until)
        assert await logs.read(OWNER, running.id, 900) == [(1000, b"1\n2\n")]


def ended(server: OwnPostgresql) -> AbstractContextManager[object]:
    server.control("-m", "fast", "stop")
    return nullcontext()


async def ended_as_lost(host: Host, url: str) -> None:
    """End the turns under way as if their leases were over."""

    def end_leases() -> None:
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("update turns set lease_until = 1 where state = 'running'")

    await anyio.to_thread.run_sync(end_leases)
    await host.conversations.end_lost_turns()
