"""Errors out of the exception groups that task groups wrap them in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from groundhook.host.core.errors import HostError


def leaves(error: BaseException) -> Iterator[BaseException]:
    """What really happened, out of the groups that task groups make of it."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error


@contextmanager
def unwrapped() -> Iterator[None]:
    """Raise what a task group wrapped: the one error in a group, or the first where all of them are
    ours."""
    try:
        yield
    except BaseExceptionGroup as group:
        found = list(leaves(group))
        if len(found) > 1 and not all(isinstance(error, HostError) for error in found):
            raise
        if isinstance(found[0], (SystemExit, KeyboardInterrupt)):
            # asyncio's loop, which has heard of it, would not close in order if it met it again as
            # the end of its task
            raise
        raise found[0] from found[0].__cause__
