"""Several language models as one: the next is asked when one cannot answer at all.

Once a word has arrived there is no other: an answer of two models would be none. Which was taken
instead of which, and why, is a warning.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import partial

from groundhook.host.core.errors import (
    ConfigError,
    HostError,
    ModelError,
)
from groundhook.host.core.exception_groups import unwrapped
from groundhook.host.core.ports import Connector, Delta, ModelCall, Warn


class Fallback:
    """A `host.core.ports.Connector` for one turn. The one that has answered serves the turn's later
    rounds as well.

    Raises UnknownName for a name that is not there and, where there is no other, what is wrong with
    the only one's file: before anything is searched for.
    """

    def __init__(
        self, ids: Sequence[str], connectors: Callable[[str], Connector], warn: Warn
    ) -> None:
        self._warn = warn
        self._left: list[tuple[str, Callable[[], Connector]]] = []
        for id in ids:
            try:
                made = connectors(id)
            except ConfigError as exc:
                if len(ids) == 1:
                    raise
                self._left.append((id, _broken(exc)))
            else:
                self._left.append((id, partial(_as_it_is, made)))

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        """Raises what the last one raises."""
        while True:
            async with AsyncExitStack() as stack:
                id, make = self._left[0]
                try:
                    with unwrapped():
                        deltas = await stack.enter_async_context(make().stream(call))
                        first = [delta async for delta in _one(deltas)]
                except (ModelError, ConfigError) as exc:
                    if len(self._left) == 1:
                        raise
                    problem: HostError = exc
                else:
                    self._left = self._left[:1]
                    yield await stack.enter_async_context(aclosing(_joined(first, deltas)))
                    return
            del self._left[0]
            await self._warn(
                problem.code, f"{problem}; {self._left[0][0]!r} is asked instead of {id!r}"
            )


def _as_it_is(connector: Connector) -> Connector:
    return connector


def _broken(error: ConfigError) -> Callable[[], Connector]:
    def make() -> Connector:
        raise error

    return make


async def _one(deltas: AsyncIterator[Delta]) -> AsyncIterator[Delta]:
    async for delta in deltas:
        yield delta
        return


async def _joined(first: Sequence[Delta], rest: AsyncIterator[Delta]) -> AsyncGenerator[Delta]:
    for delta in first:
        yield delta
    async for delta in rest:
        yield delta
