"""Equal work that is wanted by several at once is done once, by whoever wants it first. When that
one is stopped, the next of those who wait does it.

The work runs in the task of whoever does it and not in one of its own: that would cost every search
a turn of the event loop, and a hundred searches at once would all have to begin before the first is
sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")


@dataclass
class _Flight(Generic[T]):
    landed: anyio.Event = field(default_factory=anyio.Event)
    values: list[T] = field(default_factory=list)  # one, once it has landed well
    error: Exception | None = None


class Flights(Generic[T]):
    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight[T]] = {}

    async def join(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """The outcome of `work`, or of equal work under way, and whether it was the latter. Raises
        what the work raised."""
        while (flight := self._flights.get(key)) is not None:
            await flight.landed.wait()
            if flight.error is not None:
                raise flight.error
            if flight.values:
                return flight.values[0], True
        flight = self._flights[key] = _Flight()
        try:
            flight.values.append(await work())
        except Exception as exc:  # whatever it is, all who wait must hear it
            flight.error = exc
            raise
        finally:
            del self._flights[key]
            flight.landed.set()
        return flight.values[0], False
