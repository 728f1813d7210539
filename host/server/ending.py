"""Ends a server process: the turns end before the HTTP server waits for its connections, which
would otherwise wait for every open stream."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import FrameType
from typing import Any

import anyio

from groundhook.host.server.serving import Serving

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@asynccontextmanager
async def drained_by_signals(serving: Serving) -> AsyncIterator[None]:
    """While the block runs, a signal that stops the process makes it refuse new turns, and ends the
    others after `drain_s`. The previous handler of the signal is called as well."""
    stopping = anyio.Event()
    loop = asyncio.get_running_loop()

    async def drain() -> None:
        await stopping.wait()
        serving.draining = True
        await serving.turns.drain(serving.settings.drain_s)

    def begin() -> None:
        loop.call_soon_threadsafe(stopping.set)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(drain)
        previous = _handle(begin)
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def ended_with_its_parent(*, among: int) -> AsyncIterator[None]:
    """While the block runs, one of several processes ends in order when the one that started them
    has ended, even by `kill -9`: it would else keep the address for ever."""
    parent = multiprocessing.parent_process()
    if among == 1 or parent is None:
        yield
        return
    loop = asyncio.get_running_loop()

    def end() -> None:
        loop.remove_reader(parent.sentinel)
        signal.raise_signal(signal.SIGTERM)

    loop.add_reader(parent.sentinel, end)
    try:
        yield
    finally:
        loop.remove_reader(parent.sentinel)


def _handle(begin: Callable[[], None]) -> dict[int, Any]:
    """Call `begin` on each signal, before its previous handler. Return the previous handlers."""
    previous: dict[int, Any] = {}
    for number in SIGNALS:
        before = signal.getsignal(number)
        try:
            signal.signal(number, _both(begin, before))
        except ValueError:  # not on the main thread, the only one that receives signals
            break
        previous[number] = before
    return previous


def _both(begin: Callable[[], None], before: Any) -> Callable[[int, FrameType | None], None]:
    def handle(number: int, frame: FrameType | None) -> None:
        begin()
        if callable(before):
            before(number, frame)

    return handle
