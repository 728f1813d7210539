"""Standard streams as they are found: closed by the caller (`<&-`, `2>&-`), or of an encoding that has few characters."""

from __future__ import annotations

import io
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


def replace_what_has_no_code() -> None:
    """What people read is written with `?` for characters that the locale's encoding does not have."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def as_utf8(stream: TextIO) -> TextIO:
    """The stream for what programs read: UTF-8, whatever the locale."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="strict")
    return stream


def standard_input() -> TextIO:
    """For a command that is to read it, as UTF-8. Raises UsageError when it was closed."""
    if "stdin" in _closed:
        raise UsageError("standard input cannot be read: it is closed", hint="pipe or redirect something into it: < FILE")
    return as_utf8(sys.stdin)
