"""Connections to a database: one engine that can only read, one that loads, and the errors of both in our words.

The reading side of SQLite opens the file read-only, allows nothing but SELECT on the tables named for the statement, and
looks at its deadline and at cancellation every few thousand steps of the virtual machine. Other databases get a read-only
session and a statement timeout; the guard that holds there is a role that may only SELECT.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc as sql
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.pool import QueuePool

from handlers.db.statement import FOLD, fold
from host.errors import (
    HostError,
    SourceError,
    SourceMalformed,
    SourceNotConfigured,
    SourceRefused,
    SourceTimeout,
    StorageError,
)

STEPS = 2000  # of SQLite's virtual machine between two looks at the clock, about 50 µs
POOL = 8
FUNCTIONS = frozenset({FOLD, "count", "coalesce", "like", "lower"})
NOT_LOADED = "run `groundhook db load` to create it"

Work = Callable[[Connection], Any]


class Engines:
    """The engines of one URL; made when first used, in the thread that uses them."""

    def __init__(self, url: str, timeout_ms: int) -> None:
        """Raises SourceNotConfigured for a URL that cannot be used."""
        self._url = _parsed(url)
        self._timeout = timeout_ms / 1000
        self._reading: Engine | None = None
        self._dialect = self._url.get_dialect()()

    @property
    def dialect(self) -> str:
        return self._url.get_backend_name()

    @property
    def shown(self) -> str:
        """The database as messages name it, without its password."""
        return str(self._url.database) if self.dialect == "sqlite" else self._url.render_as_string(hide_password=True)

    def read(self, work: Work, tables: Sequence[str], stop: Event) -> Any:
        """`work` on a connection that may read `tables` and nothing else. Ends soon after `stop` is set or the timeout has
        passed. Blocks; raises SourceError."""
        deadline = time.monotonic() + self._timeout
        with self._translated(deadline):
            if self._reading is None:
                self._reading = self._reader()
            with self._reading.connect() as connection:
                if self.dialect != "sqlite":
                    return work(connection)
                with _guarded(connection, frozenset(tables), lambda: stop.is_set() or time.monotonic() > deadline):
                    return work(connection)

    def write(self, work: Work) -> Any:
        """`work` in one transaction that may write. Blocks; raises HostError."""
        with self._translated(None):
            engine = self._writer()
            try:
                with engine.begin() as connection:
                    return work(connection)
            finally:
                engine.dispose()

    def close(self) -> None:
        if self._reading is not None:
            self._reading.dispose()
            self._reading = None

    def render(self, statement: sa.Select[Any]) -> tuple[str, dict[str, Any]]:
        """A statement's text and its bound values, for the trace."""
        compiled = statement.compile(dialect=self._dialect, compile_kwargs={"render_postcompile": True})
        return str(compiled), dict(compiled.params)

    # ---- opening

    def _reader(self) -> Engine:
        if self.dialect == "sqlite":
            uri = Path(str(self._url.database)).absolute().as_uri() + "?mode=ro"
            return sa.create_engine(
                "sqlite://",
                creator=lambda: _sqlite(uri, self._timeout),
                poolclass=QueuePool,
                pool_size=POOL,
                pool_reset_on_return=None,
            )
        engine = sa.create_engine(self._url, pool_size=POOL, pool_pre_ping=True, pool_timeout=self._timeout)
        sa.event.listen(engine, "connect", lambda raw, _: self._restrict(raw))
        return engine

    def _restrict(self, raw: Any) -> None:
        milliseconds = max(1, round(self._timeout * 1000))
        settings = {
            "postgresql": ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", f"SET statement_timeout = {milliseconds}"),
            "mariadb": ("SET SESSION TRANSACTION READ ONLY", f"SET SESSION max_statement_time = {milliseconds / 1000}"),
            "mysql": ("SET SESSION TRANSACTION READ ONLY", f"SET SESSION max_execution_time = {milliseconds}"),
        }
        cursor = raw.cursor()
        for statement in settings.get(self.dialect, ()):
            cursor.execute(statement)
        cursor.close()
        raw.commit()

    def _writer(self) -> Engine:
        if self.dialect != "sqlite":
            return sa.create_engine(self._url)
        path = Path(str(self._url.database)).absolute()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise StorageError(f"the folder of the database {str(path)!r} cannot be made: {exc.strerror}") from exc
        engine = sa.create_engine("sqlite://", creator=lambda: _sqlite(path.as_uri(), self._timeout), poolclass=QueuePool)
        # The driver would begin a transaction only before an INSERT: creating a table would not be undone with the rest.
        sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
        return engine

    # ---- errors

    @contextmanager
    def _translated(self, deadline: float | None) -> Iterator[None]:
        try:
            yield
        except ImportError as exc:
            name = f"{self._url.drivername!r}"
            raise SourceNotConfigured(f"the driver of {name} is not installed ({exc.name})") from exc
        except sql.TimeoutError as exc:
            raise SourceTimeout(f"the database {self.shown!r} had no connection free in time") from exc
        except (sql.SQLAlchemyError, sqlite3.Error) as exc:
            raise self._worded(exc, deadline) from exc

    def _worded(self, exc: sql.SQLAlchemyError | sqlite3.Error, deadline: float | None) -> HostError:
        original = getattr(exc, "orig", None) or exc
        said = str(original).strip() or original.__class__.__name__
        low = said.lower()
        for clue, make in _CLUES:
            if clue in low:
                return make(self.shown, said)
        if "interrupted" in low and deadline is not None:
            return SourceTimeout(f"the database {self.shown!r} did not answer within {self._timeout:g} s")
        if isinstance(exc, sql.DBAPIError) and (exc.connection_invalidated or isinstance(exc, (sql.InterfaceError,))):
            return SourceError(f"the connection to {self.shown!r} was lost: {said}")
        return SourceError(f"the database {self.shown!r} could not be queried: {said}")


def _no_file(shown: str, _: str) -> HostError:
    return SourceNotConfigured(f"the database {shown!r} cannot be opened", hint=NOT_LOADED)


def _no_table(_: str, said: str) -> HostError:
    return SourceNotConfigured(f"a model's table is not there: {said}", hint=NOT_LOADED)


def _no_column(_: str, said: str) -> HostError:
    return SourceError(f"the table differs from the model's file: {said}", hint="tables that exist are never altered")


def _timeout(shown: str, said: str) -> HostError:
    return SourceTimeout(f"the database {shown!r} did not answer in time: {said}")


def _denied(_: str, said: str) -> HostError:
    return SourceRefused(f"the database refused the query: {said}")


def _unreachable(shown: str, said: str) -> HostError:
    return SourceError(f"the database {shown!r} cannot be reached: {said}")


def _damaged(shown: str, said: str) -> HostError:
    return SourceMalformed(f"{shown!r} is not a database that can be read: {said}")


def _full(shown: str, said: str) -> HostError:
    return StorageError(f"the database {shown!r} could not be written: {said}")


_CLUES: tuple[tuple[str, Callable[[str, str], HostError]], ...] = (
    ("unable to open database file", _no_file),
    ("no such table", _no_table),
    ("no such column", _no_column),
    ("has no column", _no_column),
    ("undefined column", _no_column),
    ("unknown column", _no_column),
    ("doesn't exist", _no_table),
    ("does not exist", _no_table),
    ("statement timeout", _timeout),
    ("max_statement_time", _timeout),
    ("not authorized", _denied),
    ("prohibited", _denied),
    ("permission denied", _denied),
    ("readonly", _denied),
    ("connection refused", _unreachable),
    ("can't connect", _unreachable),
    ("could not translate host", _unreachable),
    ("connection failed", _unreachable),
    ("not a database", _damaged),
    ("malformed", _damaged),
    ("disk is full", _full),
    ("disk i/o error", _full),
)


def _parsed(url: str) -> URL:
    try:
        parsed = sa.make_url(url)
        parsed.get_dialect()
    except ImportError as exc:
        raise SourceNotConfigured(f"the driver of the database URL is not installed ({exc.name})") from exc
    except sql.ArgumentError as exc:
        kind = url.partition(":")[0]
        raise SourceNotConfigured(f"the database URL ({kind!r}) cannot be used", hint="such as sqlite:///shop.db") from exc
    if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise SourceNotConfigured("a SQLite database needs a file: sqlite:///path/to/file.db")
    return parsed


def _sqlite(uri: str, timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False, timeout=timeout)
    connection.create_function(FOLD, 1, fold, deterministic=True)
    return connection


@contextmanager
def _guarded(connection: Connection, tables: frozenset[str], over: Callable[[], bool]) -> Iterator[None]:
    """Only SELECT on `tables`, and an end when `over` says so, for the block."""
    raw = connection.connection.dbapi_connection
    assert isinstance(raw, sqlite3.Connection)

    def allow(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        reads = action == sqlite3.SQLITE_READ and first in tables
        calls = action == sqlite3.SQLITE_FUNCTION and second in FUNCTIONS
        return sqlite3.SQLITE_OK if action == sqlite3.SQLITE_SELECT or reads or calls else sqlite3.SQLITE_DENY

    raw.set_authorizer(allow)
    raw.set_progress_handler(lambda: 1 if over() else 0, STEPS)
    try:
        yield
    finally:
        raw.set_progress_handler(None, 0)
        raw.set_authorizer(None)
        raw.rollback()
