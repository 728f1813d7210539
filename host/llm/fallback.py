"""Tries several language models in order: the next one when a model fails before its first delta.

After the first delta there is no fallback, since the answer would mix two models. Each fallback is
a warning with the reason.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import partial

from groundhook.core.errors import (
    ConfigError,
    HostError,
    ModelError,
    PluginError,
)
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.ports import Connector, Delta, ModelCall, Warn


class Fallback:
    """A `core.ports.Connector` for one turn. The model that answered first serves the later
    rounds of the turn as well.

    The constructor raises UnknownName for an unknown id, ConfigError when the file of the only
    connector is wrong, and PluginError when its plug-in cannot make it, so that such a turn fails
    before it searches.
    """

    def __init__(
        self, ids: Sequence[str], connectors: Callable[[str], Connector], warn: Warn
    ) -> None:
        self._warn = warn
        self._left: list[tuple[str, Callable[[], Connector]]] = []
        for id in ids:
            try:
                made = connectors(id)
            # Raised only when this model is tried: another one may answer before.
            except (ConfigError, PluginError) as exc:
                if len(ids) == 1:
                    raise
                self._left.append((id, _raise_later(exc)))
            else:
                self._left.append((id, partial(_return_connector, made)))

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        """Yield the deltas of the first model that begins an answer. Raises the error of the last
        model if none does."""
        while True:
            async with AsyncExitStack() as stack:
                id, make = self._left[0]
                try:
                    with unwrap_exception_groups():
                        deltas = await stack.enter_async_context(make().stream(call))
                        # Connectors send their request for the first delta: only then is a failure
                        # known.
                        first = [delta async for delta in _first_of(deltas)]
                except (ModelError, ConfigError, PluginError) as exc:
                    if len(self._left) == 1:
                        raise
                    problem: HostError = exc
                else:
                    self._left = self._left[:1]
                    yield await stack.enter_async_context(aclosing(_chain(first, deltas)))
                    return
            # After the block: the failed request is closed before the next one begins.
            del self._left[0]
            await self._warn(
                problem.code, f"{problem}; {self._left[0][0]!r} answers instead of {id!r}"
            )


def _return_connector(connector: Connector) -> Connector:
    return connector


def _raise_later(error: HostError) -> Callable[[], Connector]:
    def make() -> Connector:
        raise error

    return make


async def _first_of(deltas: AsyncIterator[Delta]) -> AsyncIterator[Delta]:
    async for delta in deltas:
        yield delta
        return


async def _chain(first: Sequence[Delta], rest: AsyncIterator[Delta]) -> AsyncGenerator[Delta]:
    for delta in first:
        yield delta
    async for delta in rest:
        yield delta
