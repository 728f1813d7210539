"""Keeps Python's state of a foreign thread from one callback to the next.

Python makes a state for a thread that it did not start whenever the thread calls back, and drops it
when the callback returns. Each time it allocates memory for a stack, which is more than half of the
cost of a host call on the side of JavaScript.
"""

from __future__ import annotations

import ctypes
import threading

_python = ctypes.pythonapi


class ThreadState:
    """The kept state of one thread. Call both functions on that thread, from within callbacks; on
    another thread `drop` does nothing. A state that is kept when its thread ends leaks 17 KB."""

    def __init__(self) -> None:
        self.kept = False

    def keep(self) -> None:
        if not self.kept:
            self.kept = True
            self._owner = threading.get_ident()
            self._before = _python.PyGILState_Ensure()

    def drop(self) -> None:
        if self.kept and threading.get_ident() == self._owner:
            self.kept = False
            _python.PyGILState_Release(self._before)
