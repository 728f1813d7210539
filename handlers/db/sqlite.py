"""SQLite: a file that is opened read-only, and where nothing but SELECT on the tables of a
statement's models is allowed.

Blocking work runs in a worker thread. The deadline and cancellation are looked at every few
thousand steps of the virtual machine; when the caller is cancelled the statement stops, and the
thread is free again before the cancellation goes on.
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

from groundhook.handlers.db.fulltext import NAMED, SHADOWS
from groundhook.handlers.db.sql_errors import translated
from groundhook.handlers.db.text import FOLD, fold
from groundhook.host.core.errors import HostError, StorageError

STEPS = 2000  # of the virtual machine between two looks at the clock, about 50 µs
FUNCTIONS = frozenset(
    {FOLD, "count", "sum", "avg", "min", "max", "coalesce", "like", "lower", "bm25", "match"}
)

Work = Callable[[Connection], Any]


class SQLite:
    """One database file. Implements `engine.Engine`."""

    dialect = "sqlite"

    def __init__(self, url: URL, timeout: float, connections: int, most_bytes: int) -> None:
        self._path = Path(str(url.database))
        self._timeout, self._connections, self._most = timeout, connections, most_bytes
        self._free = anyio.CapacityLimiter(connections)
        self._reading: Engine | None = None

    @property
    def shown(self) -> str:
        return str(self._path)

    async def read(self, work: Work, tables: Sequence[str]) -> Any:
        async with self._free:
            return await _stoppable(lambda stop: self._read(work, frozenset(tables), stop))

    async def inspect(self, work: Work) -> Any:
        return await anyio.to_thread.run_sync(self._inspect, work)

    async def write(self, work: Work) -> Any:
        return await anyio.to_thread.run_sync(self._write, work)

    async def close(self) -> None:
        if self._reading is not None:
            await anyio.to_thread.run_sync(self._reading.dispose)
            self._reading = None

    def _read(self, work: Work, tables: frozenset[str], stop: Event) -> Any:
        deadline = time.monotonic() + self._timeout
        with self._translated():
            if self._reading is None:
                self._reading = self._reader()
            with (
                self._reading.connect() as open,
                _guarded(open, tables, lambda: stop.is_set() or time.monotonic() > deadline),
            ):
                return work(open)

    def _inspect(self, work: Work) -> Any:
        with self._translated():
            engine = self._reader()
            try:
                with engine.connect() as connection:
                    return work(connection)
            finally:
                engine.dispose()

    def _write(self, work: Work) -> Any:
        with self._translated():
            engine = self._writer()
            try:
                with engine.begin() as connection:
                    return work(connection)
            finally:
                engine.dispose()

    def _reader(self) -> Engine:
        uri = self._path.absolute().as_uri() + "?mode=ro"

        def connect() -> sqlite3.Connection:
            raw = _connected(uri, self._timeout)
            raw.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, self._most)
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
                f"the folder of the database {str(path)!r} cannot be made: {exc.strerror}"
            ) from exc
        with suppress(OSError):  # SQLite says what is wrong with a file that cannot be made
            path.touch(mode=0o600)  # for a new one; SQLite gives its other files the same mode
        engine = sa.create_engine(
            "sqlite://",
            creator=lambda: _connected(path.as_uri(), self._timeout),
            poolclass=QueuePool,
        )
        # The driver would begin a transaction only before an INSERT: creating a table would not be
        # undone with the rest.
        sa.event.listen(
            engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE")
        )
        return engine

    def _translated(self) -> Any:
        return translated(self.shown, "sqlite", self._timeout)


def _connected(uri: str, timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False, timeout=timeout)
    connection.create_function(FOLD, 1, fold, deterministic=True)
    return connection


@contextmanager
def _guarded(
    connection: Connection, tables: frozenset[str], over: Callable[[], bool]
) -> Iterator[None]:
    """Only SELECT on `tables`, and an end when `over` says so, for the block."""
    raw = connection.connection.dbapi_connection
    assert isinstance(raw, sqlite3.Connection)

    texts = [name for name in tables if name.endswith(NAMED)]
    # opened before the guard stands: SQLite declares an FTS5 table to itself when it is first met
    for name in texts:
        quoted = name.replace('"', '""')
        raw.execute(f'SELECT rowid FROM "{quoted}" LIMIT 0')
    tables = tables.union(name + shadow for name in texts for shadow in SHADOWS)

    def allow(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        # A subquery that only counts rows reads no column: SQLite names the table and no more.
        reads = action == sqlite3.SQLITE_READ and (first in tables or not first)
        calls = action == sqlite3.SQLITE_FUNCTION and second in FUNCTIONS
        # What FTS5 asks to know whether another connection has written.
        looks = (
            bool(texts)
            and action == sqlite3.SQLITE_PRAGMA
            and (first, second) == ("data_version", None)
        )
        allowed = action == sqlite3.SQLITE_SELECT or reads or calls or looks
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    raw.set_authorizer(allow)
    raw.set_progress_handler(lambda: 1 if over() else 0, STEPS)
    try:
        yield
    finally:
        raw.set_progress_handler(None, 0)
        raw.set_authorizer(None)
        raw.rollback()


async def _stoppable(work: Callable[[Event], Any]) -> Any:
    """`work` in a thread. When the caller is cancelled the event is set, and the thread's end is
    waited for."""
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
        await anyio.lowlevel.checkpoint_if_cancelled()  # it failed because it was stopped
        raise failed
    return answer
