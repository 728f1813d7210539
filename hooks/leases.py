"""Where a turn's isolate is, seen from the host: a seat, and who gives seats.

Owns the contract between a session and the place its isolate lives in (a worker process, or this
process); both sides of it speak in code to evaluate, requests and outcomes, and know nothing of
what they mean.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True)
class Called:
    """JavaScript waits in a host call."""

    request: str


@dataclass(frozen=True)
class Done:
    """What was invoked has ended: an outcome of `hooks.engine`, or the key of a limit."""

    kind: str
    text: str


Role = Literal["culprit", "suspect", "bystander"]


@dataclass(frozen=True)
class Lost:
    """The isolate is gone with its process. `culprit`: this run did it. `suspect`: it or another of
    the same process. `bystander`: it was waiting when another did it. `limit` is set when the host
    ended the process for that reason, `started` is false when it never was ready for work."""

    role: Role
    reason: str
    limit: str = ""
    started: bool = True


SeatEvent = Called | Done | Lost


@dataclass(frozen=True)
class Order:
    """What a seat is made of: this run's part of the prelude, as JSON, and its limits."""

    setup: str
    heap_mb: int
    cpu_ms: int
    memory_mb: int


class Seat(Protocol):
    def invoke(self, code: str, /) -> None:
        """Evaluate; one `Done` follows, after any number of `Called`."""
        ...

    def reply(self, text: str, /) -> None: ...

    async def event(self) -> SeatEvent: ...

    async def leave(self) -> None:
        """Stop and free the isolate. Returns when nothing runs in it any more."""
        ...


class Seats(Protocol):
    async def take(self, order: Order, /, *, alone: bool = False) -> Seat:
        """A fresh isolate; `alone` in a process that carries no other. Raises HookCrashed when
        there is none to be had."""
        ...


class Mailbox:
    """Events of one seat, put by callbacks of the loop and read by the session's task."""

    def __init__(self) -> None:
        self._events: deque[SeatEvent] = deque()
        self._wanted: asyncio.Future[None] | None = None

    def put(self, event: SeatEvent) -> None:
        self._events.append(event)
        if self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(None)

    async def get(self) -> SeatEvent:
        while not self._events:
            self._wanted = asyncio.get_running_loop().create_future()
            await self._wanted
        return self._events.popleft()
