"""Turns that outlive a connection: each is pumped into a log by a task of the server, and read from
the log by any number of readers.

A pump waits for the slowest reader that is connected; a turn that nobody reads is stopped after a
while, unless its request wants it to go on.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

import anyio
import anyio.abc

from groundhook.host.app.host import Host
from groundhook.host.core.json_lines import line_bytes
from groundhook.host.core.server_settings import StreamSettings
from groundhook.host.core.types.events import Event, Failed
from groundhook.host.dialects.ending import ending

log = logging.getLogger("groundhook.server")

Leaving = Literal["stop", "continue"]
PORTION = 256 * 1024  # bytes of events that a reader takes at once
SWEEP_S = 10.0
ENDINGS = {
    "stopped": "the turn was stopped",
    "host_closed": "the server was stopped while the turn was under way",
    "turn_log_full": "the turn sent more events than the server keeps",
    "internal": "the turn ended unexpectedly",
}


Enter = Callable[[Host], AbstractAsyncContextManager[AsyncIterator[Event]]]


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A request for a turn. `owner` may read it; `linger_s` (none: the setting) is how long it goes
    on when nobody reads it and `leaving` is `stop`."""

    owner: str
    assistant_id: str
    leaving: Leaving = "stop"
    linger_s: float | None = None


class Logged(NamedTuple):
    """An event in the log of its turn. `seq` counts from 1; `end` is the size of the log in bytes
    up to here."""

    seq: int
    event: Event
    json: bytes
    end: int


class LogReader(Protocol):
    """Reads a log from some place on."""

    async def next(self) -> Sequence[Logged] | None:
        """Return all that is ready, at least one event; None at the end."""
        ...


class TurnLog(Protocol):
    """The log of a turn, in this process or in the store."""

    token: str

    @property
    def turn_id(self) -> str:
        """The id of the turn."""
        ...

    @property
    def over(self) -> bool:
        """Whether no more events come."""
        ...

    @property
    def last(self) -> int:
        """The number of the last event."""
        ...

    async def so_far(self) -> Sequence[Logged]:
        """Return all events until now."""
        ...

    async def ask_to_stop(self) -> bool:
        """End the turn; return whether it was under way."""
        ...

    def reader(
        self, after: int, left: Callable[[Running], None], /
    ) -> AbstractContextManager[LogReader]:
        """Read behind the event `after`; `left` is called when the last reader has gone."""
        ...


class Running:
    """A turn and its log. `token` lets a reader without an identity come back to it."""

    def __init__(self, ask: Ask, turn_id: str, scope: anyio.CancelScope) -> None:
        self.ask, self._turn_id = ask, turn_id
        self.token = secrets.token_urlsafe(16)
        self.created = int(time.time())
        self.log: list[Logged] = []
        self.size = 0  # bytes of the log
        self.over_at: float | None = None  # on the monotonic clock
        self.reason = "host_closed"  # why it ends, if it does not end by itself
        self._scope = scope
        self._readers: set[Reader] = set()
        self._arrived = asyncio.Event()
        self._taken: asyncio.Event | None = None  # set while the turn waits for a reader

    @property
    def over(self) -> bool:
        """Whether no more events come."""
        return self.over_at is not None

    @property
    def turn_id(self) -> str:
        """The id of the turn."""
        return self._turn_id

    @property
    def last(self) -> int:
        """The number of the last event."""
        return len(self.log)

    async def so_far(self) -> Sequence[Logged]:
        """Return all events until now."""
        return self.log

    async def ask_to_stop(self) -> bool:
        """As `stop`."""
        return self.stop()

    @property
    def readers(self) -> int:
        """How many read it now."""
        return len(self._readers)

    def append(self, event: Event) -> None:
        """Add an event."""
        json = line_bytes(event)
        self.size += len(json)
        self.log.append(Logged(len(self.log) + 1, event, json, self.size))
        self._arrived.set()

    def stop(self, reason: str = "stopped") -> bool:
        """End the turn, with what it has so far. Return whether it was under way."""
        if self.over:
            return False
        self.reason = reason
        self._scope.cancel()
        return True

    def complete(self) -> None:
        """Add the last events if they are missing, and let the readers end."""
        events = (logged.event for logged in self.log)
        for event in ending(events, self.reason, ENDINGS[self.reason]):
            self.append(event)
        self.over_at = time.monotonic()
        self._arrived.set()

    def is_ahead(self, bytes_ahead: int) -> bool:
        """Whether the slowest reader is so many bytes behind."""
        place = self.size - bytes_ahead
        return place > 0 and any(reader.taken < place for reader in self._readers)

    async def wait_for_readers(self, bytes_ahead: int) -> None:
        """Wait while the slowest reader is so many bytes behind."""
        while self.is_ahead(bytes_ahead):
            self._taken = asyncio.Event()
            await self._taken.wait()
        self._taken = None

    def took(self) -> None:
        """Called when a reader has taken events, or is gone."""
        if self._taken is not None:
            self._taken.set()

    async def wait_until_over(self) -> None:
        """Wait for the last event."""
        while not self.over:
            await self.arrival()

    async def arrival(self) -> None:
        """Wait for the next event, or the end."""
        self._arrived.clear()
        await self._arrived.wait()

    @contextmanager
    def reader(self, after: int, left: Callable[[Running], None]) -> Iterator[Reader]:
        """Read behind the event `after`; `left` is called when the last reader has gone."""
        reader = Reader(self, min(after, len(self.log)))
        self._readers.add(reader)
        try:
            yield reader
        finally:
            self._readers.discard(reader)
            self.took()
            if not self._readers and not self.over:
                left(self)


class Reader:
    """One reader of a log."""

    def __init__(self, running: Running, at: int) -> None:
        self._running, self._at = running, at
        self.taken = running.log[at - 1].end if at else 0

    async def next(self) -> Sequence[Logged] | None:
        """Return all that is ready, at least one event; None at the end."""
        running = self._running
        while self._at == len(running.log):
            if running.over:
                return None
            await running.arrival()
        ready = self._portion()
        self._at, self.taken = ready[-1].seq, ready[-1].end
        running.took()
        return ready

    def _portion(self) -> Sequence[Logged]:
        log, at = self._running.log, self._at
        if log and log[-1].end - self.taken <= PORTION:
            return log[at:]
        end = at
        while end < len(log) and log[end].end - self.taken <= PORTION:
            end += 1
        return log[at : max(end, at + 1)]


@dataclass
class Turns:
    """The turns of one server process."""

    host: Host
    settings: StreamSettings
    ended: Callable[[Running], None]
    _tasks: anyio.abc.TaskGroup
    _turns: dict[str, Running] = field(default_factory=dict)
    _under_way: Counter[str] = field(default_factory=Counter)  # by owner
    _unlogged: set[anyio.CancelScope] = field(default_factory=set)
    _freed: anyio.Event = field(default_factory=anyio.Event)  # set when one is over

    @property
    def under_way(self) -> int:
        """How many are not over."""
        return self._under_way.total()

    def of(self, owner: str) -> int:
        """How many of an owner's are not over."""
        return self._under_way[owner]

    @contextmanager
    def place(self, owner: str) -> Iterator[None]:
        """Count one more of an owner's as under way while the block runs."""
        self._under_way[owner] += 1
        try:
            yield
        finally:
            self._under_way[owner] -= 1
            if not self._under_way[owner]:
                del self._under_way[owner]
            self._freed.set()
            self._freed = anyio.Event()

    @contextmanager
    def unlogged(self) -> Iterator[anyio.CancelScope]:
        """Run an answer that has no log in the block; the scope is cancelled where a drain would
        end a turn."""
        with anyio.CancelScope() as scope:
            self._unlogged.add(scope)
            try:
                yield scope
            finally:
                self._unlogged.discard(scope)

    async def begin(self, ask: Ask, enter: Enter, place: ExitStack) -> Running:
        """Begin a turn with `enter`; return when its first event is there. The turn takes over the
        place of its owner. Raises what cannot begin, as `Host.stream` does."""
        running = await self._tasks.start(self._pump, ask, enter, place)
        assert isinstance(running, Running)
        return running

    def get(self, turn_id: str) -> Running | None:
        """Return a turn that is under way or was over a moment ago."""
        return self._turns.get(turn_id)

    def left(self, running: Running) -> None:
        """Called when nobody reads a turn any more."""
        linger_s = running.ask.linger_s
        linger_s = self.settings.linger_s if linger_s is None else linger_s
        if running.ask.leaving == "continue":
            return
        if linger_s:
            self._tasks.start_soon(self._linger, running, linger_s)
        else:
            running.stop()

    async def drain(self, seconds: float) -> None:
        """Let the turns under way end for so long, and then end them."""
        with anyio.move_on_after(seconds):
            while self.under_way:
                await self._freed.wait()
        for running in self._turns.values():
            running.stop("host_closed")
        for scope in self._unlogged:
            scope.cancel()

    async def _linger(self, running: Running, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await running.wait_until_over()
        if not running.readers:
            running.stop()

    async def _pump(
        self,
        ask: Ask,
        enter: Enter,
        place: ExitStack,
        *,
        task_status: anyio.abc.TaskStatus[Running],
    ) -> None:
        running: Running | None = None
        held = ExitStack()
        log_bytes, behind_bytes = self.settings.log_kb * 1024, self.settings.behind_kb * 1024
        try:
            with anyio.CancelScope() as scope:
                async with enter(self.host) as events:
                    async for event in events:
                        if running is None:
                            running = Running(ask, event.turn_id, scope)
                            self._turns[running.turn_id] = running
                            held = place.pop_all()
                            running.append(event)
                            task_status.started(running)
                        else:
                            running.append(event)
                        if running.size > log_bytes:
                            running.stop("turn_log_full")
                        if running.is_ahead(behind_bytes):
                            await running.wait_for_readers(behind_bytes)
        except Exception:
            if running is None:
                raise
            running.reason = "internal"
            log.exception("turn %s ended unexpectedly", running.turn_id)
        finally:
            if running is not None:
                running.complete()
                held.close()
                self.ended(running)

    async def sweep(self) -> None:
        """Forget turns that are over, for ever."""
        while True:
            await anyio.sleep(min(SWEEP_S, self.settings.keep_s or SWEEP_S))
            oldest = time.monotonic() - self.settings.keep_s
            over = [
                turn_id
                for turn_id, running in self._turns.items()
                if running.over_at is not None and running.over_at <= oldest and not running.readers
            ]
            for turn_id in over:
                del self._turns[turn_id]


@asynccontextmanager
async def open_turns(
    host: Host, settings: StreamSettings, ended: Callable[[Running], None]
) -> AsyncIterator[Turns]:
    """Open the turns of a server; leaving the block ends those that are under way."""
    async with anyio.create_task_group() as tasks:
        turns = Turns(host, settings, ended, tasks)
        tasks.start_soon(turns.sweep)
        try:
            yield turns
        finally:
            tasks.cancel_scope.cancel()


def failure(running: Running) -> Failed | None:
    """Return the first error of a turn."""
    return next((each.event for each in running.log if isinstance(each.event, Failed)), None)
