"""The one ordered channel of a turn's events, from those who make them to the one who reads them.

`send` waits while the reader is behind, so a slow reader slows the writer. `note` never waits: it
is for trace nodes, which are made in places that must not be interrupted.
"""

from __future__ import annotations

import time
from collections import deque

import anyio

from groundhook.host.core.types.events import Event

BEHIND = 16  # events that may wait for the reader before a writer has to


class Channel:
    """Events of one turn. Stamped with the turn's id and the time since it began as they are
    sent."""

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self._began = time.perf_counter()
        self._events: deque[Event] = deque()
        self._arrived: anyio.Event | None = None  # what the reader waits for, while it does
        self._drained = anyio.Event()
        self._closed = False

    def elapsed_ms(self) -> float:
        return (time.perf_counter() - self._began) * 1000

    def note(self, event: Event) -> None:
        """Add an event without waiting; nothing is added after the channel was closed."""
        if self._closed:
            return
        self._events.append(event.stamped(self.turn_id, int(self.elapsed_ms())))
        self._wake()

    def _wake(self) -> None:
        if self._arrived is not None:
            self._arrived.set()
            self._arrived = None

    async def send(self, event: Event) -> None:
        self.note(event)
        await self.breathe()

    async def breathe(self) -> None:
        """Wait until the reader has caught up."""
        while len(self._events) > BEHIND and not self._closed:
            if self._drained.is_set():
                self._drained = anyio.Event()
            await self._drained.wait()

    def close(self) -> None:
        """No more events; the reader gets those that are left and then the end."""
        self._closed = True
        self._wake()
        self._drained.set()

    def __aiter__(self) -> Channel:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self._closed:
                raise StopAsyncIteration
            arrived = self._arrived = anyio.Event()
            await arrived.wait()
        event = self._events.popleft()
        if len(self._events) == BEHIND:
            self._drained.set()
        return event
