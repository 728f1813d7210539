"""The thread state that Python has for V8's thread, kept from one callback to the next.

When a thread that Python did not start calls a Python function, Python creates a thread state for
it, and deletes that state when the function returns. Each new state allocates memory for a stack,
which is more than half of the cost of a host call on the side of JavaScript.
"""

from __future__ import annotations

import ctypes
import threading

_python = ctypes.pythonapi


class ThreadState:
    """The thread state of one thread. Both functions are called on that thread, from within
    callbacks; on another thread `release` does nothing. A state that is still kept when its thread
    ends leaks 17 KB."""

    def __init__(self) -> None:
        self.kept = False

    def keep(self) -> None:
        """Keep the state until `release`; does nothing if it is kept already."""
        if not self.kept:
            self.kept = True
            self._owner = threading.get_ident()
            self._before = _python.PyGILState_Ensure()

    def release(self) -> None:
        """Let Python delete the state when the callback returns."""
        if self.kept and threading.get_ident() == self._owner:
            self.kept = False
            _python.PyGILState_Release(self._before)
