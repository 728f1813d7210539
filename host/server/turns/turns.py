"""Turns that outlive a connection. A task of the server, the pump, runs each turn and appends its
events to a log, from which any number of readers read.

A pump waits for the slowest connected reader. A turn without a reader is stopped after a while,
unless its request asks it to continue (`leaving`).
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import anyio
import anyio.abc

from groundhook.core.server_settings import StreamSettings
from groundhook.core.types.events import StreamStart
from groundhook.host.app.host import Host
from groundhook.host.server.turns.running import ServerTurn, StartTurn, TurnParameters

log = logging.getLogger("groundhook.server")

SWEEP_S = 10.0
LOOK_AGAIN_S = 1.0  # at least this long between two looks for readers in other processes


@dataclass
class ServerTurns:
    """The turns of one server process."""

    host: Host
    settings: StreamSettings
    on_end: Callable[[ServerTurn], None]
    _tasks: anyio.abc.TaskGroup
    _turns: dict[str, ServerTurn] = field(default_factory=dict)
    _under_way: Counter[str] = field(default_factory=Counter)  # by owner
    _answers_without_log: set[anyio.CancelScope] = field(default_factory=set)
    _freed: anyio.Event = field(default_factory=anyio.Event)  # set when one is over
    _drained: bool = False  # whether turns that begin now are stopped at once

    @property
    def under_way(self) -> int:
        """The number of turns that are not over."""
        return self._under_way.total()

    def count_for(self, owner: str) -> int:
        """Return the number of an owner's turns that are not over."""
        return self._under_way[owner]

    @contextmanager
    def reserve(self, owner: str) -> Iterator[None]:
        """Count one more turn of an owner while the block runs."""
        self._under_way[owner] += 1
        try:
            yield
        finally:
            self._under_way[owner] -= 1
            if not self._under_way[owner]:
                del self._under_way[owner]
            # An event cannot be cleared: those who wait are woken, and the next ones get a new one.
            self._freed.set()
            self._freed = anyio.Event()

    @contextmanager
    def answer_without_log(self) -> Iterator[anyio.CancelScope]:
        """Run in the block an answer that has no log, since no reader can resume it (a tool call of
        MCP). The yielded scope is cancelled when `drain` ends the turns."""
        with anyio.CancelScope() as scope:
            self._answers_without_log.add(scope)
            if self._drained:
                scope.cancel()
            try:
                yield scope
            finally:
                self._answers_without_log.discard(scope)

    async def begin(
        self, ask: TurnParameters, enter: StartTurn, reservation: ExitStack
    ) -> ServerTurn:
        """Begin a turn with `enter`; return when its first event has arrived. From then on the turn
        holds the reservation of its owner. Raises the errors of `Host.stream`."""
        running = await self._tasks.start(self._pump, ask, enter, reservation)
        assert isinstance(running, ServerTurn)
        return running

    def get(self, turn_id: str) -> ServerTurn | None:
        """Return a turn that is under way or ended a moment ago."""
        return self._turns.get(turn_id)

    def forget_chat(self, chat_id: str) -> None:
        """Forget the turns of a chat that are over: the chat was deleted."""
        for turn_id, running in list(self._turns.items()):
            start = running.log[0].event if running.over and running.log else None
            if isinstance(start, StreamStart) and start.chat_id == chat_id:
                del self._turns[turn_id]

    def on_last_reader_gone(self, running: ServerTurn) -> None:
        """Stop a turn whose last reader has left, at once or after a while."""
        linger_s = running.ask.linger_s
        linger_s = self.settings.linger_s if linger_s is None else linger_s
        if running.ask.leaving == "continue":
            return
        if linger_s or running.ask.read_elsewhere is not None:
            self._tasks.start_soon(self._linger, running, linger_s, running.visits)
        else:
            running.stop()

    async def drain(self, seconds: float) -> None:
        """Wait at most so many seconds for the turns under way to end, then stop the others, also
        those that are about to begin."""
        with anyio.move_on_after(seconds):
            while self.under_way:
                await self._freed.wait()
        self._drained = True
        for running in self._turns.values():
            running.stop("host_closed")
        for scope in self._answers_without_log:
            scope.cancel()

    async def _linger(self, running: ServerTurn, seconds: float, visits: int) -> None:
        """Stop a turn after a while, unless a new reader has come in the meantime, here or in
        another process."""
        elsewhere = running.ask.read_elsewhere
        while not running.over and running.visits == visits:
            with anyio.move_on_after(seconds):
                await running.wait_until_over()
                return
            if elsewhere is None or not await elsewhere(running.turn_id):
                break
            seconds = max(seconds, LOOK_AGAIN_S)
        if running.visits == visits:
            running.stop()

    async def _pump(
        self,
        ask: TurnParameters,
        enter: StartTurn,
        reservation: ExitStack,
        *,
        task_status: anyio.abc.TaskStatus[ServerTurn],
    ) -> None:
        """Run a turn and append its events to its log."""
        running: ServerTurn | None = None
        own_reservation = ExitStack()
        log_bytes, behind_bytes = self.settings.log_kb * 1024, self.settings.behind_kb * 1024
        try:
            with anyio.CancelScope() as scope:
                async with enter(self.host) as events:
                    async for event in events:
                        if running is None:
                            running = ServerTurn(ask, event.turn_id, scope)
                            self._turns[running.turn_id] = running
                            # From here on the end of the turn ends the reservation, not that of
                            # the request.
                            own_reservation = reservation.pop_all()
                            running.append(event)
                            task_status.started(running)
                            if self._drained:
                                running.stop("host_closed")
                        else:
                            running.append(event)
                        if running.size > log_bytes:
                            running.stop("turn_log_full")
                        if running.is_ahead(behind_bytes):
                            await running.wait_for_readers(behind_bytes)
        except Exception:
            # `begin` raises it for the request.
            if running is None:
                raise
            running.reason = "internal"
            log.exception("turn %s ended unexpectedly", running.turn_id)
        finally:
            if running is not None:
                running.complete()
                own_reservation.close()
                self.on_end(running)

    async def sweep(self) -> None:
        """Forget turns that ended some time ago, again and again."""
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
async def open_server_turns(
    host: Host, settings: StreamSettings, on_end: Callable[[ServerTurn], None]
) -> AsyncIterator[ServerTurns]:
    """Open the turns of a server; leaving the block ends those that are under way."""
    async with anyio.create_task_group() as tasks:
        turns = ServerTurns(host, settings, on_end, tasks)
        tasks.start_soon(turns.sweep)
        try:
            yield turns
        finally:
            tasks.cancel_scope.cancel()
