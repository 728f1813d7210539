"""Repairs the standard streams: closed ones (`<&-`, `2>&-`), and those whose encoding lacks
characters."""

from __future__ import annotations

import io
import os
import select
import sys
from typing import Any, TextIO

from groundhook.core.errors import UsageError

_closed: set[str] = set()
_ending: list[int] = []  # a pipe that wakes the readers of standard input: its two ends


def open_what_is_closed() -> None:
    """Replace closed standard streams by empty ones with the same numbers. Otherwise the next
    opened file would get that number and receive the output of the stream. Child processes inherit
    them too."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))
            _closed.add(name)


def replace_what_has_no_code() -> None:
    """Write characters that the locale's encoding lacks as `?`, in output for people."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def as_utf8(stream: TextIO) -> TextIO:
    """Return the stream for output that programs read: UTF-8 in every locale."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(
            encoding="utf-8", errors="strict"
        )  # a `?` in data would be a silent loss
    return stream


class _Input(io.RawIOBase):
    """Reads a file descriptor until `end_input` is called. A plain read could wait for a pipe for
    ever, and the thread that waits cannot be stopped."""

    name = "standard input"

    def __init__(self, number: int) -> None:
        self._number = number

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        ready, _, _ = select.select([self._number, _ending[0]], [], [])
        if _ending[0] in ready:  # its byte stays in the pipe, so that every later read ends as well
            return 0
        data = os.read(self._number, len(buffer))
        buffer[: len(data)] = data
        return len(data)


def end_input() -> None:
    """End standard input at once for its readers."""
    if _ending:
        os.write(_ending[1], b".")


def standard_input() -> io.BufferedReader:
    """Return standard input for a command that reads it. Raises UsageError if it was closed."""
    if "stdin" in _closed:
        raise UsageError(
            "standard input cannot be read: it is closed",
            hint="pipe or redirect something into it: < FILE",
        )
    if not _ending:
        _ending.extend(os.pipe())
    return io.BufferedReader(_Input(sys.stdin.fileno()))
