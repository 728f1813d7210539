"""Rows in a PostgreSQL database, which several machines may share. The only import of psycopg.

Connections are kept open between transactions. One that the server has closed in the meantime is
replaced before its first statement; a transaction that breaks off is never repeated.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from groundhook.host.core.errors import ConfigError, HostError, StorageError
from groundhook.host.core.extras import extra
from groundhook.host.storage.idle import IdleConnections
from groundhook.host.storage.sql import Part, Row, migrate

if TYPE_CHECKING:
    import psycopg

SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
CONNECT_S = 10
_LOCK = 0x67726E64  # of the migrations, among the advisory locks of the database
_HINT = "check `store.url` in agent/agent.yml, and whether the server runs"


class PostgresqlStorage:
    """Rows in the database at `url`. Tables are made in the first schema of its search path."""

    writers = 4  # threads; the host has few writes, and each is short

    def __init__(self, url: str, parts: Sequence[Part], *, noun: str) -> None:
        self._url, place = _parsed(url)
        self._name = f"{noun} in the database {place!r}"
        self._parts = tuple(parts)
        self._idle = IdleConnections["psycopg.Connection[Row]"](f"{self._name} are closed")
        self._ready = False

    def close(self) -> None:
        """Close the idle connections; those in use are closed when they are returned."""
        self._idle.close()

    @contextmanager
    def reading(self) -> Iterator[_Statements]:
        """A transaction that sees one state of the rows."""
        with self._transaction("begin isolation level repeatable read, read only") as sql:
            yield sql

    @contextmanager
    def writing(self) -> Iterator[_Statements]:
        """A transaction that may change rows, committed unless the block raises."""
        with self._transaction("begin") as sql:
            yield sql

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[_Statements]:
        with self._translated_errors():
            db = self._begun(begin)
            reusable = False
            try:
                yield _Statements(db)
                db.execute("commit")
                reusable = True
            except HostError:
                db.execute("rollback")
                reusable = True
                raise
            finally:
                self._idle.give_back(db, reusable=reusable and not db.closed)

    def _begun(self, begin: str) -> psycopg.Connection[Row]:
        """A connection with a transaction begun; the server may have closed an idle one."""
        import psycopg

        while (db := self._idle.take()) is not None:
            try:
                db.execute(begin.encode())
                return db
            except psycopg.OperationalError:
                db.close()
        db = self._open()
        db.execute(begin.encode())
        return db

    def _open(self) -> psycopg.Connection[Row]:
        with extra("postgresql", "keeping rows in PostgreSQL"):
            import psycopg
        db = psycopg.connect(self._url, autocommit=True, connect_timeout=CONNECT_S)
        try:
            self._prepare(db)
        except BaseException:
            db.close()
            raise
        return db

    def _prepare(self, db: psycopg.Connection[Row]) -> None:
        if self._ready:
            return
        with db.transaction():
            db.execute("select pg_advisory_xact_lock(%(id)s)", {"id": _LOCK})
            migrate(_Statements(db), self._parts, self._name)
        self._ready = True

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        with extra("postgresql", "keeping rows in PostgreSQL"):
            import psycopg
        try:
            yield
        except psycopg.Error as exc:
            reason = str(exc).strip().partition("\n")[0] or exc.__class__.__name__
            raise StorageError(f"{self._name} cannot be used: {reason}", hint=_HINT) from exc


class _Statements:
    def __init__(self, db: psycopg.Connection[Row]) -> None:
        self._db = db

    def rows(self, sql: str, /, **values: Any) -> Sequence[Row]:
        rows = self._db.execute(_dialect(sql), _written(values)).fetchall()
        return [tuple(_read(value) for value in row) for row in rows]

    def change(self, sql: str, /, **values: Any) -> int:
        return self._db.execute(_dialect(sql), _written(values)).rowcount

    def lock(self, name: str, /) -> None:
        self.rows("select pg_advisory_xact_lock(:id)", id=_lock_id(name))

    def try_lock(self, name: str, /) -> bool:
        ((held,),) = self.rows("select pg_try_advisory_xact_lock(:id)", id=_lock_id(name))
        return bool(held)


def _lock_id(name: str) -> int:
    digest = hashlib.sha256(name.encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


# PostgreSQL's text cannot contain NUL: it is stored as a private character and a digit.
_ESCAPE = "\ue000"


def _escaped(text: str) -> str:
    if "\x00" not in text and _ESCAPE not in text:
        return text
    return text.replace(_ESCAPE, f"{_ESCAPE}1").replace("\x00", f"{_ESCAPE}0")


def _written(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _escaped(value) if isinstance(value, str) else value for name, value in values.items()
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


def _parsed(url: str) -> tuple[str, str]:
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
            hint="write postgresql://user:password@host/database; leave it out for SQLite files",
        )
    return url.replace(f"{scheme}:", "postgresql:", 1), place
