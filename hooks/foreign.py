"""What Python knows of a thread that it did not start, kept from one callback to the next.

Python makes a state for such a thread whenever it calls back, and drops it when the callback
returns. Each time it asks the system for the memory of a stack, which makes up more than half of
what a host call costs on the side of JavaScript.
"""

from __future__ import annotations

import ctypes
import threading

_python = ctypes.pythonapi


class ThreadState:
    """Both functions are to be called on the thread itself, from within callbacks; another one
    drops nothing. What is kept when the thread ends is lost: 17 KB."""

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
