"""Equal work that is wanted by several at once is done once. It belongs to nobody who waits: when one of them is cancelled the
others get their answer, and when all are, the work is cancelled too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

T = TypeVar("T")


@dataclass
class _Flight(Generic[T]):
    landed: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    waiting: int = 0
    values: list[T] = field(default_factory=list)  # one, once it has landed well
    error: Exception | None = None


class Flights(Generic[T]):
    """`tasks` is where the work runs; it outlives those who wait."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._flights: dict[Hashable, _Flight[T]] = {}

    async def join(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """The outcome of `work`, or of equal work under way, and whether it was the latter. Raises what the work raised."""
        flight = self._flights.get(key)
        joined = flight is not None
        if flight is None:
            flight = self._flights[key] = _Flight()
            self._tasks.start_soon(self._fly, key, flight, work)
        flight.waiting += 1
        try:
            await flight.landed.wait()
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.landed.is_set():
                flight.scope.cancel()
                self._land(key, flight)
        if flight.error is not None:
            raise flight.error
        return flight.values[0], joined

    async def _fly(self, key: Hashable, flight: _Flight[T], work: Callable[[], Awaitable[T]]) -> None:
        try:
            with flight.scope:
                flight.values.append(await work())
        except Exception as exc:  # noqa: BLE001  (whatever it is, those who wait raise it)
            flight.error = exc
        finally:
            self._land(key, flight)

    def _land(self, key: Hashable, flight: _Flight[T]) -> None:
        flight.landed.set()
        if self._flights.get(key) is flight:
            del self._flights[key]
