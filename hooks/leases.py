"""Isolate leases: the contract between a session and the owner of its isolate, which is a worker
process or this process. Both sides exchange code to evaluate, requests and outcomes, and do not
interpret them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True)
class Called:
    """JavaScript waits for the answer to a host call."""

    request: str


@dataclass(frozen=True)
class Done:
    """The invoked code has ended. `kind` is that of an outcome of `hooks.engine`, or "limit" with
    the key of the limit as `text`."""

    kind: str
    text: str


FaultRole = Literal["culprit", "suspect", "bystander"]


@dataclass(frozen=True)
class Lost:
    """The isolate is gone with its process. `culprit`: this run ended the process. `suspect`: this
    run or another of the same process did. `bystander`: this run was waiting when another did.
    `limit` is set when the host ended the process for that limit, `started` is false when the
    process was never ready for work."""

    role: FaultRole
    reason: str
    limit: str = ""
    started: bool = True


LeaseEvent = Called | Done | Lost


@dataclass(frozen=True)
class LeaseTerms:
    """The terms of an isolate: this run's part of the prelude, as JSON, and its limits."""

    setup: str
    heap_mb: int
    cpu_ms: int
    memory_mb: int


class Lease(Protocol):
    """One isolate, held by one session until `release`."""

    def invoke(self, code: str, /) -> None:
        """Evaluate code. Any number of `Called` events follow, and one `Done`."""
        ...

    def reply(self, text: str, /) -> None:
        """Answer the last reported host call."""
        ...

    async def event(self) -> LeaseEvent:
        """Wait for the next event."""
        ...

    async def release(self) -> None:
        """Stop and free the isolate. Returns when no code runs in it."""
        ...


class LeaseSource(Protocol):
    """A source of isolates: worker processes, or this process."""

    async def lease(self, terms: LeaseTerms, /, *, alone: bool = False) -> Lease:
        """Return a fresh isolate; with `alone`, in a process that carries no other. Raises
        HookCrashed when no isolate can be made."""
        ...


class EventQueue:
    """Events of one lease, put by callbacks of the loop and read by the session's task."""

    def __init__(self) -> None:
        self._events: deque[LeaseEvent] = deque()
        self._reader: asyncio.Future[None] | None = None

    def put(self, event: LeaseEvent) -> None:
        """Add an event and wake the reader."""
        self._events.append(event)
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def get(self) -> LeaseEvent:
        """Return the next event, waiting for it if there is none."""
        while not self._events:
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        return self._events.popleft()
