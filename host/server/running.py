"""One turn of a server: its request, its log of events, and those who read the log."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import anyio

from groundhook.host.app.host import Host
from groundhook.host.core.json_lines import line_bytes
from groundhook.host.core.types.events import Event, Failed
from groundhook.host.dialects.ending import ending

Leaving = Literal["stop", "continue"]
PORTION = 256 * 1024  # bytes of events that a reader takes at once
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
        self.visits = 0  # how many have begun to read it
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
        self.visits += 1
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


def failure(running: Running) -> Failed | None:
    """Return the first error of a turn."""
    return next((each.event for each in running.log if isinstance(each.event, Failed)), None)
