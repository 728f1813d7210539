"""Takes errors out of the exception groups that task groups raise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from groundhook.core.errors import HostError


def errors_in(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors inside an exception group, at any depth; an error outside a group itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from errors_in(inner)
    else:
        yield error


@contextmanager
def unwrap_exception_groups() -> Iterator[None]:
    """Return a context manager that raises the error inside an exception group instead of the
    group: the only one, or the first if all are HostErrors."""
    try:
        yield
    except BaseExceptionGroup as group:
        found = list(errors_in(group))
        if len(found) > 1 and not all(isinstance(error, HostError) for error in found):
            raise
        if isinstance(found[0], (SystemExit, KeyboardInterrupt)):
            # asyncio has already received it and stops its loop. If the task raised it again, the
            # loop could not close cleanly.
            raise
        raise found[0] from found[0].__cause__
