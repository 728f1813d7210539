"""The ordered channel of a turn's events, from many writers to one reader.

`send` waits while the reader is behind, so a slow reader slows the writers. `send_nowait` never
waits: it is for trace nodes and other events from code that must not be interrupted.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque

from groundhook.core.types.events import Event

BEHIND = 16  # unread events beyond which writers wait


class Channel:
    """The events of one turn, an async iterator for its reader. Each event is stamped with the
    turn's id and the milliseconds since the turn began when it is sent."""

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self._began = time.perf_counter()
        self._events: deque[Event] = deque()
        self._arrived = asyncio.Event()
        self._drained: asyncio.Event | None = None  # set while a writer waits
        self._closed = False

    def elapsed_ms(self) -> float:
        """Return the milliseconds since the turn began."""
        return (time.perf_counter() - self._began) * 1000

    def send_nowait(self, event: Event) -> None:
        """Add an event without waiting; a closed channel drops it."""
        if self._closed:
            return
        self._events.append(event.stamped(self.turn_id, int(self.elapsed_ms())))
        self._arrived.set()

    async def send(self, event: Event) -> None:
        """Add an event, then wait while the reader is behind."""
        self.send_nowait(event)
        await self.wait_for_reader()

    async def wait_for_reader(self) -> None:
        """Wait until at most BEHIND events are unread, or the channel is closed."""
        while len(self._events) > BEHIND and not self._closed:
            if self._drained is None:
                self._drained = asyncio.Event()
            await self._drained.wait()

    def close(self) -> None:
        """End the channel: the reader receives the events that are left and then the end."""
        self._closed = True
        self._arrived.set()
        self._wake_writers()

    def __aiter__(self) -> Channel:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self._closed:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        event = self._events.popleft()
        if len(self._events) == BEHIND:
            self._wake_writers()
        return event

    def _wake_writers(self) -> None:
        if self._drained is not None:
            self._drained.set()
            self._drained = None
