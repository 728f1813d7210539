"""The database source of an app, over one or several databases. Opening it is instant; the first
use connects.

Importing SQLAlchemy takes a fifth of a second. A worker thread imports it for the first search or
load, so that neither the start of the program nor concurrent searches wait for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from groundhook.core.errors import SourceError, SourceNotConfigured
from groundhook.core.ports import Clock, Scope, SourceResult
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.search import RecordQuery, SearchRequest
from groundhook.core.types.tables import Exported

if TYPE_CHECKING:
    from groundhook.handlers.db.engines.engine import DatabaseEngine
    from groundhook.handlers.db.handler import DBHandler
    from groundhook.handlers.db.model.importing import Import
    from groundhook.handlers.db.model.loading import Loaded
    from groundhook.handlers.db.model.schema_diff import Difference
    from groundhook.handlers.db.store import SlowColumn, Store

LoadProgress = Callable[["Loaded"], None]


@dataclass(frozen=True)
class DatabaseAddress:
    """A database (`url` in SQLAlchemy's format), and the limits of searches there: milliseconds per
    statement, concurrent connections beyond which others wait, and kB of a result beyond which rows
    are omitted."""

    url: str
    timeout_ms: int
    connections: int = 8
    result_kb: int = 4096


class Database:
    """The models of an app, in the databases that their `connection` names; a
    `core.ports.Handler` that can also load. The caller closes it."""

    def __init__(
        self, addresses: Mapping[str, DatabaseAddress], models: Mapping[str, ModelSpec]
    ) -> None:
        self._addresses, self._models = addresses, models
        self._opened: tuple[Store, DBHandler] | None = None
        self._lock = anyio.Lock()
        self._others: list[Database] = []  # from `with_declarations`, closed with this one

    def with_declarations(
        self, _: Mapping[str, CollectionSpec], models: Mapping[str, ModelSpec], /
    ) -> Database:
        """Return the same database with other models. It is closed with this one."""
        if models is self._models:
            return self
        other = Database(self._addresses, models)
        self._others.append(other)
        return other

    async def search(self, request: SearchRequest, scope: Scope, /) -> SourceResult:
        """Search the models of a request. Raises SourceError, also for an unusable URL, since the
        first call connects."""
        _, handler = await self._open()
        return await handler.search(request, scope)

    async def records(self, query: RecordQuery, scope: Scope, /) -> list[dict[str, Any]]:
        """Return records by conditions; implements `core.ports.Records`. Raises
        SourceError."""
        _, handler = await self._open()
        return await handler.records(query, scope)

    async def export(
        self, query: Mapping[str, Any], most: int, scope: Scope, /, *, language: str = ""
    ) -> Exported:
        """Return up to `most` rows of a query that a search returned, with the names of columns in
        a language. Raises SourceError, NotPermitted."""
        _, handler = await self._open()
        return await handler.export(query, most, scope, language=language)

    async def load(
        self, progress: LoadProgress | None = None, *, now: Clock | None = None
    ) -> list[Loaded]:
        """Create missing tables and load the models' sample rows into empty ones. `progress` is
        called after each model. `now` fills the timestamps of rows without them. Raises HostError
        at the first model that fails; earlier models stay loaded."""
        store, _ = await self._open()
        moment = now().astimezone(UTC).replace(tzinfo=None) if now else None
        done = []
        for model in sorted(self._models):
            done.append(await store.load(model, moment))
            if progress is not None:
                progress(done[-1])
        return done

    async def check(self) -> tuple[str, list[Difference]]:
        """Return the database's name for messages, and the differences between its tables and the
        models. Raises HostError."""
        store, _ = await self._open()
        differences = [
            difference
            for model in sorted(self._models)
            for difference in await store.compare(model)
        ]
        return store.shown, differences

    async def slow_columns(self) -> list[SlowColumn]:
        """Return the columns of large tables that want an index, since questions look up values
        there; none of a table that is not there or not read in time. Raises SourceError."""
        store, _ = await self._open()
        found: list[SlowColumn] = []
        for model in sorted(self._models):
            with suppress(SourceError):
                found += await store.slow_columns(model)
        return found

    async def import_models(self, url: str | None = None, connection: str = "") -> Import:
        """Return models for the tables of the database of a connection, or of the one at `url`,
        and how they differ from the app's models of these tables. Raises SourceError."""
        from groundhook.handlers.db.model.importing import read_models
        from groundhook.handlers.db.model.tables import Tables

        address = self._address(connection)
        engine = _engine(replace(address, url=url or address.url, connections=1))
        tables = Tables(self._models)
        declared = [each for each in tables.values() if each.spec.connection == connection]
        try:
            found: Import = await engine.inspect(lambda open: read_models(open, declared))
        finally:
            await engine.close()
        return found

    async def import_rows(
        self, spec: ModelSpec, rows: Iterable[Mapping[str, Any]], *, anew: bool = False
    ) -> None:
        """Create the table of a model with these rows, in one transaction (on MariaDB a table is
        removed and created at once). `anew`: instead of the table that there is. Raises ConfigError
        for a table that exists otherwise, and StorageError."""
        from groundhook.handlers.db.model.loading import load_rows

        engine = _engine(self._address(spec.connection))
        try:
            await engine.write(lambda open: load_rows(open, spec, rows, anew=anew))
        finally:
            await engine.close()

    async def append_rows(
        self, spec: ModelSpec, rows: Callable[[int], Iterable[Mapping[str, Any]]]
    ) -> int:
        """Add rows to the table of a model, in one transaction, and return how many it had. `rows`
        is called with the highest number of its key. Raises ConfigError, StorageError."""
        from groundhook.handlers.db.model.loading import add_rows

        engine = _engine(self._address(spec.connection))
        try:
            had: int = await engine.write(lambda open: add_rows(open, spec, rows))
        finally:
            await engine.close()
        return had

    def _address(self, connection: str) -> DatabaseAddress:
        if connection not in self._addresses:
            raise SourceNotConfigured(
                f"no database {connection!r}",
                hint=f"set databases.{connection}.url in agent/agent.yml",
            )
        return self._addresses[connection]

    async def close(self) -> None:
        """Close all connections."""
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
        from groundhook.handlers.db.handler import DBHandler
        from groundhook.handlers.db.store import Store

        places = {
            name: (_engine(address), address.result_kb) for name, address in self._addresses.items()
        }
        store = Store(places, self._models)
        return store, DBHandler(store, self._models)


def _engine(address: DatabaseAddress) -> DatabaseEngine:
    from groundhook.handlers.db.engines.engine import engine_for

    return engine_for(
        address.url,
        timeout_ms=address.timeout_ms,
        connections=address.connections,
        result_kb=address.result_kb,
    )


@asynccontextmanager
async def open_database(
    url: str,
    timeout_ms: int,
    models: Mapping[str, ModelSpec],
    *,
    connections: int = 8,
    result_kb: int = 4096,
    others: Mapping[str, DatabaseAddress] | None = None,
) -> AsyncIterator[Database]:
    """Open the models of an app in one database, and in `others` by name; close it at the end."""
    own = DatabaseAddress(url, timeout_ms, connections, result_kb)
    database = Database({"": own, **(others or {})}, models)
    try:
        yield database
    finally:
        with anyio.CancelScope(shield=True):
            await database.close()
