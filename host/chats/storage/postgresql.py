"""Rows in a PostgreSQL database, which several machines may share. Needs the extra `postgresql`.

Connections are kept open between transactions. One that the server has closed in the meantime is
replaced before its first statement; a transaction that breaks off is never repeated. Waits for a
lock of another session, and for a server that does not answer, have a limit.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from groundhook.core.errors import ConfigError, HostError, StorageError
from groundhook.core.extras import extra
from groundhook.host.chats.storage.idle import IdleConnections
from groundhook.host.chats.storage.sql import SqlRow, TableScripts, migrate

if TYPE_CHECKING:
    from groundhook.host.chats.storage.connection import BoundedConnection

SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
CONNECT_S = 10
ANSWER_S = 10.0  # longest wait for the answer to a statement
_LOCK = 0x67726E64  # of the migrations, among the advisory locks of the database
_HINT = "check `store.url` in agent/agent.yml, and whether the server runs"


class PostgresqlStorage:
    """Rows in the database at `url`. Tables are made in the first schema of its search path."""

    writers = 4  # threads; the host has few writes, and each is short

    def __init__(
        self, url: str, parts: Sequence[TableScripts], *, noun: str, busy_ms: int, hint_busy: str
    ) -> None:
        self._url, place = _parse_url(url)
        self._lock_timeout = f"set local lock_timeout = {max(busy_ms, 1)}"  # 0 would be no limit
        self._hint_busy = hint_busy
        self._name = f"{noun} in the database {place!r}"
        self._parts = tuple(parts)
        self._idle = IdleConnections["BoundedConnection"](f"{self._name} are closed")
        self._ready = False

    def close(self) -> None:
        """Close the idle connections; those in use are closed when they are returned."""
        self._idle.close()

    @contextmanager
    def reading(self) -> Iterator[_Statements]:
        """Yield a transaction that sees one state of the rows."""
        with self._transaction("begin isolation level repeatable read, read only") as sql:
            yield sql

    @contextmanager
    def writing(self) -> Iterator[_Statements]:
        """Yield a transaction that may change rows, committed unless the block raises."""
        with self._transaction("begin") as sql:
            yield sql

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[_Statements]:
        with self._translate_errors():
            db = self._begin(begin)
            reusable = False
            try:
                yield _Statements(db)
                db.execute("commit")
                reusable = True
            # An error of the caller's work: the connection itself can be reused.
            except HostError:
                db.execute("rollback")
                reusable = True
                raise
            finally:
                db.answer_s = ANSWER_S
                self._idle.give_back(db, reusable=reusable and not db.closed)

    def _begin(self, begin: str) -> BoundedConnection:
        """Return a connection whose transaction has begun. If the server has closed an idle one, it
        has closed all of them, so they are not tried one after the other."""
        import psycopg

        # In one trip to the server, unprepared: several statements cannot be prepared.
        statements = f"{begin}; {self._lock_timeout}".encode()
        if (db := self._idle.take()) is not None:
            try:
                db.execute(statements, prepare=False)
                return db
            except psycopg.OperationalError:
                db.close()
                self._idle.drop()
        db = self._open()
        try:
            db.execute(statements, prepare=False)
        except BaseException:
            db.close()
            raise
        return db

    def _open(self) -> BoundedConnection:
        from groundhook.host.chats.storage.connection import BoundedConnection

        db = BoundedConnection.connect(self._url, autocommit=True, connect_timeout=CONNECT_S)
        try:
            self._prepare(db)
        except BaseException:
            db.close()
            raise
        db.answer_s = ANSWER_S
        return db

    def _prepare(self, db: BoundedConnection) -> None:
        if self._ready:
            return
        with db.transaction():
            # A lock, since processes that start together would create the tables at the same time.
            db.execute("select pg_advisory_xact_lock(%(id)s)", {"id": _LOCK})
            migrate(_Statements(db), self._parts, self._name)
        self._ready = True

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        with extra("postgresql", "keeping rows in PostgreSQL"):
            import psycopg
        try:
            yield
        except psycopg.Error as exc:
            reason = str(exc).strip().partition("\n")[0] or exc.__class__.__name__
            locked = isinstance(exc, psycopg.errors.LockNotAvailable)
            hint = self._hint_busy if locked else _HINT
            raise StorageError(f"{self._name} cannot be used: {reason}", hint=hint) from exc


class _Statements:
    def __init__(self, db: BoundedConnection) -> None:
        self._db = db

    def rows(self, sql: str, /, **values: Any) -> Sequence[SqlRow]:
        rows = self._db.execute(_dialect(sql), _escape_values(values)).fetchall()
        return [tuple(_read(value) for value in row) for row in rows]

    def change(self, sql: str, /, **values: Any) -> int:
        return self._db.execute(_dialect(sql), _escape_values(values)).rowcount

    def lock(self, name: str, /) -> None:
        self.rows("select pg_advisory_xact_lock(:id)", id=_lock_id(name))

    def try_lock(self, name: str, /) -> bool:
        ((held,),) = self.rows("select pg_try_advisory_xact_lock(:id)", id=_lock_id(name))
        return bool(held)

    def be_patient(self) -> None:
        self._db.answer_s = None


def _lock_id(name: str) -> int:
    digest = hashlib.sha256(name.encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


# PostgreSQL's text cannot contain NUL: it is stored as a private character and a digit.
_ESCAPE = "\ue000"


def _escape(text: str) -> str:
    if "\x00" not in text and _ESCAPE not in text:
        return text
    return text.replace(_ESCAPE, f"{_ESCAPE}1").replace("\x00", f"{_ESCAPE}0")


def _escape_values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _escape(value) if isinstance(value, str) else value for name, value in values.items()
    }


def _read(value: Any) -> Any:
    if not isinstance(value, str) or _ESCAPE not in value:
        return value
    return value.replace(f"{_ESCAPE}0", "\x00").replace(f"{_ESCAPE}1", _ESCAPE)


@lru_cache(maxsize=256)
def _dialect(sql: str) -> bytes:
    """Return a statement as psycopg expects it: `%(name)s` for a value, `bytea` for `blob`."""
    sql = re.sub(r":([a-z_]+)", r"%(\1)s", sql.replace("%", "%%"))
    return re.sub(r"\bblob\b", "bytea", sql).encode()


def _parse_url(url: str) -> tuple[str, str]:
    """Return the URL for the driver, and the place without a password, for messages. Raises
    ConfigError."""
    try:
        parts = urlsplit(url)
        scheme, host = parts.scheme, parts.hostname or "localhost"
        place = f"{host}{f':{parts.port}' if parts.port else ''}{parts.path}"
    except ValueError:
        scheme = place = ""
    if scheme not in SCHEMES:
        raise ConfigError(
            "`store.url` is not the URL of a PostgreSQL database",
            hint="write postgresql://user:password@host/database; omit it for SQLite files",
        )
    return url.replace(f"{scheme}:", "postgresql:", 1), place
