"""Standard streams that the caller closed (`<&-`, `2>&-`)."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from host.errors import UsageError

_closed: set[str] = set()


def open_what_is_closed() -> None:
    """Standard streams that were closed are empty and lead nowhere. Each keeps its number: else the next file that is opened
    would have it, and get what is written to the stream. Processes that are started have them, too."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))
            _closed.add(name)


def standard_input() -> TextIO:
    """For a command that is to read it. Raises UsageError when it was closed."""
    if "stdin" in _closed:
        raise UsageError("standard input cannot be read: it is closed", hint="pipe or redirect something into it: < FILE")
    return sys.stdin
