"""A clock of the event loop that a test moves, for deadlines of minutes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def jump(seconds: float) -> None:
    """Let so many seconds go by at once: a deadline that is nearer is met, and one that begins
    afterwards is whole."""
    loop: Any = asyncio.get_running_loop()
    real = loop.time
    loop.time = lambda: real() + seconds


@contextmanager
def time_flies(step: float = 3600) -> Iterator[None]:
    """In the block, an hour goes by in each pass of the event loop: a deadline that begins there,
    or that waits there, is met at once. So a test gives a deadline of minutes, which no slow
    machine meets before the block. Deadlines around the block are met as well."""
    loop: Any = asyncio.get_running_loop()
    real, ahead, flies = loop.time, 0.0, True

    def fly() -> None:
        nonlocal ahead
        if flies:
            ahead += step
            loop.call_soon(fly)

    loop.time = lambda: real() + ahead
    fly()
    try:
        yield
    finally:
        flies = False  # the clock keeps its lead: one that goes back would hold up other timers
