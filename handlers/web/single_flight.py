"""Single flight: concurrent calls with the same key run the work once and share its outcome. If the
running call is cancelled, the next waiting call runs the work.

The work runs in the task of its caller. A task of its own would cost every search a turn of the
event loop, and a hundred concurrent searches would all have to start before the first request is
sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")


@dataclass
class _Call(Generic[T]):
    done: anyio.Event = field(default_factory=anyio.Event)
    # One value after success, none before and after a failure.
    values: list[T] = field(default_factory=list)
    error: Exception | None = None


class SingleFlight(Generic[T]):
    """Calls under way, by key."""

    def __init__(self) -> None:
        self._calls: dict[Hashable, _Call[T]] = {}

    async def run(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """Return the outcome of `work`, or of the call with the same key that is under way, and
        whether it was the latter. Raises the error of the work."""
        while (call := self._calls.get(key)) is not None:
            await call.done.wait()
            if call.error is not None:
                raise call.error
            if call.values:
                return call.values[0], True
        call = self._calls[key] = _Call()
        try:
            call.values.append(await work())
        except Exception as exc:  # of any type: all waiting calls must raise it
            call.error = exc
            raise
        finally:
            del self._calls[key]
            call.done.set()
        return call.values[0], False
