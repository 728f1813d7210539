"""The database as the composition root opens it: instant to open, connected on first use.

SQLAlchemy takes a fifth of a second to import; it is imported in a worker thread when the first
search or load comes, so that neither the start of the program nor the searches beside it wait for
it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from groundhook.host.core.ports import Clock, Found, Scope
from groundhook.host.core.types.search import RecordQuery, SearchRequest
from groundhook.host.core.types.specs import CollectionSpec, ModelSpec

if TYPE_CHECKING:
    from groundhook.handlers.db.handler import DBHandler
    from groundhook.handlers.db.loading import Loaded
    from groundhook.handlers.db.schema_diff import Difference
    from groundhook.handlers.db.store import Store

Progress = Callable[["Loaded"], None]


@dataclass(frozen=True)
class Limits:
    """What one search may cost the database: milliseconds of a statement, connections at a time, kB
    of a result."""

    timeout_ms: int
    connections: int
    result_kb: int


class Database:
    """The models of an app in one database; a `host.core.ports.Handler` that can also load."""

    def __init__(self, url: str, limits: Limits, models: Mapping[str, ModelSpec]) -> None:
        self._url, self._limits, self._models = url, limits, models
        self._opened: tuple[Store, DBHandler] | None = None
        self._lock = anyio.Lock()
        self._others: list[Database] = []  # made of this one

    def with_declarations(
        self, _: Mapping[str, CollectionSpec], models: Mapping[str, ModelSpec], /
    ) -> Database:
        """The same database behind other declarations; closed with this one."""
        if models is self._models:
            return self
        other = Database(self._url, self._limits, models)
        self._others.append(other)
        return other

    async def search(self, request: SearchRequest, scope: Scope, /) -> Found:
        """Raises SourceError; also for a URL that cannot be used, which is noticed here and not
        before."""
        _, handler = await self._open()
        return await handler.search(request, scope)

    async def records(self, query: RecordQuery, scope: Scope, /) -> list[dict[str, Any]]:
        """Records by conditions alone; implements `host.core.ports.Records`. Raises SourceError."""
        _, handler = await self._open()
        return await handler.records(query, scope)

    async def load(
        self, progress: Progress | None = None, *, now: Clock | None = None
    ) -> list[Loaded]:
        """Create the tables that are missing and load the models' rows into empty ones; tells
        `progress` of each model when it is done. `now`: the time of rows that do not say when they
        were made; without it they say nothing. Raises HostError at the first model that fails;
        those before it stay."""
        store, _ = await self._open()
        moment = now().astimezone(UTC).replace(tzinfo=None) if now else None
        done = []
        for model in sorted(self._models):
            done.append(await store.load(model, moment))
            if progress is not None:
                progress(done[-1])
        return done

    async def check(self) -> tuple[str, list[Difference]]:
        """The database as messages name it, and how its tables differ from the models. Raises
        HostError."""
        store, _ = await self._open()
        found = [
            difference
            for model in sorted(self._models)
            for difference in await store.compare(model)
        ]
        return store.shown, found

    async def close(self) -> None:
        for other in self._others:
            await other.close()
        if self._opened is not None:
            await self._opened[0].close()

    async def _open(self) -> tuple[Store, DBHandler]:
        async with self._lock:
            if self._opened is None:
                self._opened = await anyio.to_thread.run_sync(self._connect)
        return self._opened

    def _connect(self) -> tuple[Store, DBHandler]:
        from groundhook.handlers.db.engine import engine_for
        from groundhook.handlers.db.handler import DBHandler
        from groundhook.handlers.db.store import Store

        limits = self._limits
        engine = engine_for(
            self._url,
            timeout_ms=limits.timeout_ms,
            connections=limits.connections,
            result_kb=limits.result_kb,
        )
        store = Store(engine, self._models, limits.result_kb)
        return store, DBHandler(store, self._models)


def make_database(
    url: str,
    timeout_ms: int,
    models: Mapping[str, ModelSpec],
    *,
    connections: int = 8,
    result_kb: int = 4096,
) -> Database:
    """The models of an app in the database at `url` (SQLAlchemy's form), to be closed.
    `timeout_ms`: the longest statement. `connections`: searches that ask it at the same time;
    others wait. `result_kb`: the largest result; rows beyond it are left out."""
    return Database(url, Limits(timeout_ms, connections, result_kb), models)


@asynccontextmanager
async def open_database(
    url: str,
    timeout_ms: int,
    models: Mapping[str, ModelSpec],
    *,
    connections: int = 8,
    result_kb: int = 4096,
) -> AsyncIterator[Database]:
    """The same, closed when the block is left."""
    database = make_database(url, timeout_ms, models, connections=connections, result_kb=result_kb)
    try:
        yield database
    finally:
        with anyio.CancelScope(shield=True):
            await database.close()
