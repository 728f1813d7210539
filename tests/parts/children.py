"""Child processes, of which any may end while it is looked at."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import psutil

Read = TypeVar("Read")


def of_children(
    read: Callable[[psutil.Process], Read],
    *,
    of: psutil.Process | None = None,
    all_below: bool = False,
) -> dict[psutil.Process, Read]:
    """What `read` says of each child of this process, or of `of`, that is alive; `all_below`
    counts the children of children, too."""
    found = {}
    for child in (of or psutil.Process()).children(recursive=all_below):
        with suppress(psutil.NoSuchProcess):  # ended since it was listed
            if child.status() != psutil.STATUS_ZOMBIE:
                found[child] = read(child)
    return found


def running(module: str, *, of: psutil.Process | None = None) -> list[psutil.Process]:
    """The children whose command has this word."""
    return [
        child
        for child, command in of_children(psutil.Process.cmdline, of=of).items()
        if module in command
    ]
