"""The turns that a host has open: how many run, how many wait, and how they end when it closes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager

import anyio
from anyio.abc import TaskGroup

from groundhook.core.app_settings import TurnsSettings
from groundhook.core.errors import TooManyTurns, UsageError

CLOSING_TIME = 5.0  # seconds that turns get to send their last events when their host closes


class OpenTurns:
    """Counts and cancels the turns of one host. At most `at_once` turns run and `queue` wait.
    `tasks` runs work that continues after a turn."""

    def __init__(self, at_once: int, queue: int, tasks: TaskGroup) -> None:
        self.tasks = tasks
        self._at_once, self._queue = at_once, queue
        self._admitted = 0
        self._running = anyio.Semaphore(at_once)
        self._scopes: set[anyio.CancelScope] = set()
        self._all_ended = anyio.Event()
        self.closed = False

    @contextmanager
    def admit(self) -> Iterator[None]:
        """Count a turn while the block runs. Raises TooManyTurns when the queue is full."""
        if self._admitted >= self._at_once + self._queue:
            raise TooManyTurns(
                f"{self._at_once} turns are under way and {self._queue} wait: the limit is reached",
                hint="try again later, or raise turns.at_once or turns.queue in agent/agent.yml",
            )
        self._admitted += 1
        try:
            yield
        finally:
            self._admitted -= 1

    @contextmanager
    def cancelled_on_close(self) -> Iterator[anyio.CancelScope]:
        """Return a scope around a turn, which is cancelled when the host closes."""
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            # Closed after `refuse_if_closed`, before the turn's task began.
            if self.closed:
                scope.cancel()
            try:
                yield scope
            finally:
                self._scopes.discard(scope)
                if not self._scopes:
                    self._all_ended.set()

    def slot(self) -> AbstractAsyncContextManager[object]:
        """Return a context that waits until fewer than `at_once` turns run, in order of arrival."""
        return self._running

    def refuse_if_closed(self) -> None:
        """Raise UsageError when the host is closed."""
        if self.closed:
            raise UsageError(
                "the host is closed",
                hint="turns and searches belong inside `async with open_host(…)`",
            )

    async def close(self) -> None:
        """Cancel every turn and wait, at most CLOSING_TIME, until each has sent its last events."""
        self.closed = True
        self._all_ended = anyio.Event()
        for scope in self._scopes:
            scope.cancel()
        # Shielded: a host is often closed because the surrounding task was cancelled.
        with anyio.move_on_after(CLOSING_TIME, shield=True):
            while self._scopes:
                await self._all_ended.wait()


@asynccontextmanager
async def open_turns(settings: TurnsSettings) -> AsyncIterator[OpenTurns]:
    """Yield the open turns of a host; leaving the block ends them, and the work that continues
    after them."""
    async with anyio.create_task_group() as tasks:
        turns = OpenTurns(settings.at_once, settings.queue, tasks)
        try:
            yield turns
        finally:
            await turns.close()
            tasks.cancel_scope.cancel()
