"""The engine for SQLite: a file opened read-only, with an authorizer that allows only SELECT on the
tables of a query's models.

Blocking work runs in a worker thread. The deadline and cancellation are checked every few thousand
steps of the virtual machine; if the caller is cancelled, the statement stops and the thread is free
again before the cancellation continues.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.pool import QueuePool

from groundhook.core.errors import HostError, StorageError
from groundhook.handlers.db.engines.errors import translated_errors
from groundhook.handlers.db.model.collation import FOLD, PLAIN, fold, plain
from groundhook.handlers.db.model.fulltext import FTS5_SUFFIXES, SUFFIX

STEPS = 2000  # of the virtual machine between two checks, about 50 µs
FUNCTIONS = frozenset(
    {FOLD, PLAIN, "count", "sum", "avg", "min", "max", "coalesce", "like", "lower", "glob"}
    | {"bm25", "match"}
    | {"strftime", "printf", "rank", "row_number"}
)

_Work = Callable[[Connection], Any]


class SQLite:
    """One database file. Implements `engine.DatabaseEngine`."""

    dialect = "sqlite"

    def __init__(self, url: URL, timeout: float, connections: int, max_bytes: int) -> None:
        self._path = Path(str(url.database))
        self._timeout, self._connections, self._max_bytes = timeout, connections, max_bytes
        self._slots = anyio.CapacityLimiter(connections)
        self._reading: Engine | None = None

    @property
    def shown(self) -> str:
        # without the folders above: messages reach clients, and paths of the server must not
        return "/".join(self._path.parts[-2:])

    async def read(self, work: _Work, tables: Sequence[str]) -> Any:
        async with self._slots:
            return await _run_cancellable(lambda stop: self._read(work, frozenset(tables), stop))

    async def inspect(self, work: _Work) -> Any:
        return await anyio.to_thread.run_sync(self._inspect, work)

    async def write(self, work: _Work) -> Any:
        return await anyio.to_thread.run_sync(self._write, work)

    async def close(self) -> None:
        if self._reading is not None:
            await anyio.to_thread.run_sync(self._reading.dispose)
            self._reading = None

    def _read(self, work: _Work, tables: frozenset[str], stop: Event) -> Any:
        deadline = time.monotonic() + self._timeout
        with self._translate_errors():
            if self._reading is None:
                self._reading = self._reader()
            with (
                self._reading.connect() as open,
                _read_only(open, tables, lambda: stop.is_set() or time.monotonic() > deadline),
            ):
                return work(open)

    def _inspect(self, work: _Work) -> Any:
        with self._translate_errors():
            engine = self._reader()
            try:
                with engine.connect() as connection:
                    return work(connection)
            finally:
                engine.dispose()

    def _write(self, work: _Work) -> Any:
        with self._translate_errors():
            engine = self._writer()
            try:
                with engine.begin() as connection:
                    return work(connection)
            finally:
                engine.dispose()

    def _reader(self) -> Engine:
        uri = self._path.absolute().as_uri() + "?mode=ro"

        def connect() -> sqlite3.Connection:
            raw = _connect(uri, self._timeout)
            raw.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, self._max_bytes)
            return raw

        return sa.create_engine(
            "sqlite://",
            creator=connect,
            poolclass=QueuePool,
            pool_size=self._connections,
            max_overflow=0,
            pool_reset_on_return=None,
        )

    def _writer(self) -> Engine:
        path = self._path.absolute()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise StorageError(
                f"the folder of the database {str(path)!r} cannot be created: {exc.strerror}"
            ) from exc
        with suppress(OSError):  # SQLite says what is wrong with a file that cannot be made
            path.touch(mode=0o600)  # for a new one; SQLite gives its other files the same mode
        engine = sa.create_engine(
            "sqlite://",
            creator=lambda: _connect(path.as_uri(), self._timeout),
            poolclass=QueuePool,
        )
        # The driver would begin a transaction only before an INSERT, so CREATE TABLE would not be
        # rolled back with it.
        sa.event.listen(
            engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE")
        )
        return engine

    def _translate_errors(self) -> Any:
        return translated_errors(self.shown, self._timeout)


def _connect(uri: str, timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False, timeout=timeout)
    connection.create_function(FOLD, 1, fold, deterministic=True)
    connection.create_function(PLAIN, 1, plain, deterministic=True)
    return connection


@contextmanager
def _read_only(
    connection: Connection, tables: frozenset[str], over: Callable[[], bool]
) -> Iterator[None]:
    """Allow only SELECT on `tables` for the block, and end statements once `over` returns true."""
    raw = connection.connection.dbapi_connection
    assert isinstance(raw, sqlite3.Connection)

    texts = [name for name in tables if name.endswith(SUFFIX)]
    # Opened before the authorizer is set: the first use of an FTS5 table runs a CREATE of its own.
    for name in texts:
        quoted = name.replace('"', '""')
        raw.execute(f'SELECT rowid FROM "{quoted}" LIMIT 0')
    tables = tables.union(name + shadow for name in texts for shadow in FTS5_SUFFIXES)

    # What a view of a model reads and calls was decided by who made the view.
    names, functions = _read_by(raw, tables)
    tables, functions = tables | names, FUNCTIONS | functions

    def allow(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        # A subquery that only counts rows reads no column: SQLite passes no column and may pass no
        # table.
        reads = action == sqlite3.SQLITE_READ and (first in tables or not first)
        calls = action == sqlite3.SQLITE_FUNCTION and second in functions
        # FTS5 reads it to detect writes of other connections.
        checks_version = (
            bool(texts)
            and action == sqlite3.SQLITE_PRAGMA
            and (first, second) == ("data_version", None)
        )
        recurses = action == sqlite3.SQLITE_RECURSIVE and bool(names)
        allowed = action == sqlite3.SQLITE_SELECT or reads or calls or checks_version or recurses
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    raw.set_authorizer(allow)
    raw.set_progress_handler(lambda: 1 if over() else 0, STEPS)
    try:
        yield
    finally:
        raw.set_progress_handler(None, 0)
        raw.set_authorizer(None)
        raw.rollback()


def _read_by(
    raw: sqlite3.Connection, tables: frozenset[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the tables that views among these read, and the functions that they call: what SQLite
    asks for when it prepares a statement on them."""
    listed = raw.execute("SELECT name FROM sqlite_master WHERE type = 'view'")
    views = tables.intersection(name for (name,) in listed)
    names: set[str] = set()
    functions: set[str] = set()

    def note(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_READ and first:
            names.add(first)
        if action == sqlite3.SQLITE_FUNCTION and second:
            functions.add(second)
        return sqlite3.SQLITE_OK

    if views:
        raw.set_authorizer(note)
        for name in views:
            quoted = name.replace('"', '""')
            for columns in ("count(*)", "*"):
                with suppress(sqlite3.Error):  # of tables that are gone: the query says so
                    raw.execute(f'EXPLAIN SELECT {columns} FROM "{quoted}"').close()
        raw.set_authorizer(None)
    return frozenset(names), frozenset(functions)


async def _run_cancellable(work: Callable[[Event], Any]) -> Any:
    """Run `work` in a thread. If the caller is cancelled, set the event and wait for the thread's
    end."""
    stop, answer, failed = Event(), None, None

    async def stop_when_cancelled() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            stop.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_when_cancelled)
        with anyio.CancelScope(shield=True):
            try:
                answer = await anyio.to_thread.run_sync(work, stop)
            except HostError as exc:
                failed = exc  # raised outside: a task group would wrap it
        tasks.cancel_scope.cancel()
    if failed is not None:
        await anyio.lowlevel.checkpoint_if_cancelled()  # the failure is the cancellation
        raise failed
    return answer
