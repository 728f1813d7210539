"""Staying awake for what may come at once. A thread that sleeps is woken late where its core has
gone to sleep, too: on a virtual machine 50 us late, which is more than most of what is waited for
takes.

Looking again and again is worth it while nobody else wants the core and what is waited for comes
soon. Neither can be known before, so it is tried, and seldom where it was in vain.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

MOMENT_SECONDS = 0.00015
MOST_LEFT_OUT = 255  # waits; one moment in vain among that many costs each of them 0.6 us


class Vigil:
    """`allowed` says whether nothing else of ours could use the core. For one waiter at a time, on
    any thread."""

    def __init__(self, allowed: Callable[[], bool]) -> None:
        self._allowed = allowed
        self._leave_out = self._left = 0

    def begins(self) -> bool:
        """Whether to look now."""
        if self._left:
            self._left -= 1
            return False
        return self._allowed()

    def ended(self, *, found: bool) -> None:
        """To be told how a moment of looking ended."""
        self._leave_out = self._left = (
            self._leave_out // 2 if found else min(2 * self._leave_out + 1, MOST_LEFT_OUT)
        )

    def looks(self) -> Iterator[None]:
        """One for each look to take after `begins`, without sleeping between them. Whoever has
        found something says so, and leaves off."""
        until = time.monotonic() + MOMENT_SECONDS
        yield
        while time.monotonic() < until:
            yield
        self.ended(found=False)
