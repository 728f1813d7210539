"""Staying awake for what may come at once. A thread that sleeps is woken late where its core has gone to sleep, too: on a
virtual machine 50 us late, which is more than most of what is waited for takes.

Looking again and again is worth it while nobody else wants the core and what is waited for comes soon. Neither can be known
before, so it is tried, and seldom where it was in vain.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

MOMENT_SECONDS = 0.0001
MOST_LEFT_OUT = 127  # waits; one moment in vain among that many costs less than 1 us a wait


class Vigil:
    """`allowed` says whether nothing else of ours could use the core. For one waiter at a time, on any thread."""

    def __init__(self, allowed: Callable[[], bool]) -> None:
        self._allowed = allowed
        self._leave_out = self._left = 0

    def looks(self) -> Iterator[None]:
        """One for each look to take, without sleeping between them. Whoever has found something leaves off."""
        if self._left:
            self._left -= 1
            return
        if not self._allowed():
            return
        before = self._leave_out
        self._leave_out = self._left = before // 2
        until = time.monotonic() + MOMENT_SECONDS
        yield
        while time.monotonic() < until:
            yield
        self._leave_out = self._left = min(2 * before + 1, MOST_LEFT_OUT)
