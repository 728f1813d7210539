"""A turn of a server: its parameters, its log of events, and the readers of the log. A turn that is
over can be read for a while longer."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import anyio

from groundhook.core.json_lines import line_bytes
from groundhook.core.types.events import Event, Failed
from groundhook.host.app.host import Host
from groundhook.host.output.dialects.ending import ending

OnDisconnect = Literal["stop", "continue"]
PORTION = 256 * 1024  # bytes of events that a reader takes at once
AT_ONCE = 256  # events that are read or folded before other tasks run
ENDINGS = {
    "stopped": "the turn was stopped",
    "host_closed": "the server was stopped while the turn was under way",
    "turn_log_full": "the turn sent more events than the server keeps",
    "internal": "the turn ended unexpectedly",
}

StartTurn = Callable[[Host], AbstractAsyncContextManager[AsyncIterator[Event]]]


def new_token() -> str:
    """Return the token with which a reader without an identity continues reading a turn: 128 bits,
    since ids of turns can be guessed."""
    return secrets.token_urlsafe(16)


@dataclass(frozen=True, kw_only=True)
class TurnParameters:
    """What a server knows of a turn before it begins. `owner` may read the turn; `token` is for an
    anonymous reader. If `leaving` is `stop`, the turn ends `linger_s` seconds after its last reader
    has left (None: the configured time), unless it is `read_elsewhere`: a stored turn may have
    readers in other processes. `kept` is what its dialect keeps with it."""

    owner: str
    assistant_id: str
    leaving: OnDisconnect = "stop"
    linger_s: float | None = None
    token: str = field(default_factory=new_token)
    kept: Mapping[str, Any] = field(default_factory=dict)
    read_elsewhere: Callable[[str], Awaitable[bool]] | None = None


class Logged(NamedTuple):
    """An event in the log of its turn. `seq` counts from 1; `end` is the size of the log in bytes
    up to and including this event."""

    seq: int
    event: Event
    json: bytes
    end: int


class LogReader(Protocol):
    """Reads a log from some event on."""

    async def next(self) -> Sequence[Logged] | None:
        """Return all events that have arrived, at least one; None at the end."""
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
        """Whether the turn is over, so that no more events follow."""
        ...

    @property
    def last(self) -> int:
        """The number of the last event."""
        ...

    async def events_so_far(self) -> Sequence[Logged]:
        """Return all events that have arrived."""
        ...

    async def kept(self) -> Mapping[str, Any]:
        """Return what was kept with the turn when it began."""
        ...

    async def ask_to_stop(self) -> bool:
        """End the turn; return whether it was under way."""
        ...

    def reader(
        self, after: int, on_last_reader_gone: Callable[[ServerTurn], None], /
    ) -> AbstractContextManager[LogReader]:
        """Open a reader that begins after the event `after`. `on_last_reader_gone` is called when
        the last reader has left and the turn is not over."""
        ...


class ServerTurn:
    """A turn, under way or over, and its log. With `token` a reader without an identity can
    continue reading it."""

    def __init__(self, ask: TurnParameters, turn_id: str, scope: anyio.CancelScope) -> None:
        self.ask, self._turn_id = ask, turn_id
        self.token = ask.token
        self.created = int(time.time())
        self.log: list[Logged] = []
        self.size = 0  # bytes of the log
        self.over_at: float | None = None  # on the monotonic clock
        self.reason = "host_closed"  # the code of its error, if it is ended
        self.visits = 0  # number of readers that it has had
        self._scope = scope
        self._readers: set[OpenReader] = set()
        self._arrived = asyncio.Event()
        self._taken: asyncio.Event | None = None  # set while the turn waits for a reader

    @property
    def over(self) -> bool:
        """Whether the turn is over, so that no more events follow."""
        return self.over_at is not None

    @property
    def turn_id(self) -> str:
        """The id of the turn."""
        return self._turn_id

    @property
    def last(self) -> int:
        """The number of the last event."""
        return len(self.log)

    async def events_so_far(self) -> Sequence[Logged]:
        """Return all events that have arrived."""
        return self.log

    async def kept(self) -> Mapping[str, Any]:
        """Return what was kept with the turn when it began."""
        return self.ask.kept

    async def ask_to_stop(self) -> bool:
        """End the turn; return whether it was under way."""
        return self.stop()

    @property
    def readers(self) -> int:
        """The number of readers now."""
        return len(self._readers)

    def append(self, event: Event) -> None:
        """Append an event to the log."""
        json = line_bytes(event)
        self.size += len(json)
        self.log.append(Logged(len(self.log) + 1, event, json, self.size))
        self._arrived.set()

    def stop(self, reason: str = "stopped") -> bool:
        """End the turn, with the events that it has sent. Return whether it was under way."""
        if self.over:
            return False
        self.reason = reason
        self._scope.cancel()
        return True

    def complete(self) -> None:
        """Append the last events if they are missing, and let the readers end."""
        events = (logged.event for logged in self.log)
        for event in ending(events, self.reason, ENDINGS[self.reason]):
            self.append(event)
        self.over_at = time.monotonic()
        self._arrived.set()

    def is_ahead(self, bytes_ahead: int) -> bool:
        """Return whether the slowest reader is more than so many bytes behind."""
        least = self.size - bytes_ahead
        return least > 0 and any(reader.taken < least for reader in self._readers)

    async def wait_for_readers(self, bytes_ahead: int) -> None:
        """Wait while the slowest reader is more than so many bytes behind."""
        while self.is_ahead(bytes_ahead):
            self._taken = asyncio.Event()
            await self._taken.wait()
        self._taken = None

    def took(self) -> None:
        """Note that a reader has taken events or has left."""
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
    def reader(
        self, after: int, on_last_reader_gone: Callable[[ServerTurn], None]
    ) -> Iterator[OpenReader]:
        """Open a reader that begins after the event `after`. `on_last_reader_gone` is called when
        the last reader has left and the turn is not over."""
        reader = OpenReader(self, min(after, len(self.log)))
        self._readers.add(reader)
        self.visits += 1
        try:
            yield reader
        finally:
            self._readers.discard(reader)
            self.took()
            if not self._readers and not self.over:
                on_last_reader_gone(self)


class OpenReader:
    """One reader of a log."""

    def __init__(self, running: ServerTurn, at: int) -> None:
        self._running, self._at = running, at
        self.taken = running.log[at - 1].end if at else 0

    async def next(self) -> Sequence[Logged] | None:
        """Return all events that have arrived, at least one; None at the end."""
        running = self._running
        while self._at == len(running.log):
            if running.over:
                return None
            await running.arrival()
        ready = portion(running.log, self._at, self.taken)
        self._at, self.taken = ready[-1].seq, ready[-1].end
        running.took()
        return ready


def portion(log: Sequence[Logged], at: int, taken: int) -> Sequence[Logged]:
    """Return the events of a log from the position `at` on, the size of the log before which is
    `taken`: at most PORTION bytes of them and at least one."""
    if log and log[-1].end - taken <= PORTION:
        return log[at:]
    end = at
    while end < len(log) and log[end].end - taken <= PORTION:
        end += 1
    return log[at : max(end, at + 1)]


def failure(running: ServerTurn) -> Failed | None:
    """Return the first error of a turn, or None."""
    return next((each.event for each in running.log if isinstance(each.event, Failed)), None)
