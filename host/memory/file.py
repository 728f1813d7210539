"""Entries in a SQLite file that several processes use at once.

The file is made when it is first used. Each change is one transaction that takes the write lock
before it reads (`begin immediate`), so that counters lose nothing; readers never wait (write-ahead
log). Entries that have ended are swept a few at a time by the changes that follow. A power cut may
lose the last changes, and never damages the file (`synchronous = normal`).
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from groundhook.host.core.errors import StorageError, UsageError
from groundhook.host.core.settings import MemorySettings
from groundhook.host.memory.entries import Number, Stored, added, encode, full

VERSION = 1
SWEPT = 32  # entries that have ended, removed by one change
_SCHEMA = f"""
begin immediate;
create table if not exists entries (
    id integer primary key,
    space text not null, key text not null, value blob not null,
    expires integer
);
create unique index if not exists one_each on entries (space, key);
create index if not exists ending on entries (expires) where expires is not null;
pragma user_version = {VERSION};
commit;
"""
_ALIVE = "(expires is null or expires > :at)"
_HINTS = {
    sqlite3.SQLITE_FULL: "free disk space",
    sqlite3.SQLITE_IOERR: "see whether the disk is full or damaged",
    sqlite3.SQLITE_BUSY: "another process holds it; memory.busy_ms says how long to wait",
    sqlite3.SQLITE_CORRUPT: "restore it from a copy, or move it away to start with an empty memory",
    sqlite3.SQLITE_NOTADB: "restore it from a copy, or move it away to start with an empty memory",
    sqlite3.SQLITE_READONLY: "the file and its folder must be writable",
    sqlite3.SQLITE_CANTOPEN: "the file and its folder must be writable",
}


class FileEntries:
    """Used by as many threads as its owner allows; connections are lent to one at a time. Raises
    StorageError."""

    def __init__(self, path: Path, limits: MemorySettings) -> None:
        self._path = path
        self._limits = limits
        self._idle: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._closed = False

    def close(self) -> None:
        """Connections that are still lent are closed when they come back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    # ---- Entries

    def get(self, space: str, key: str, at: int, /) -> bytes | None:
        with self._connection() as db:
            stored = _find(db, space, key, at)
        return stored.value if stored else None

    def put(self, space: str, key: str, stored: Stored, at: int, /) -> None:
        with self._change(at) as db:
            self._write(db, space, key, stored, at)

    def remove(self, space: str, key: str, at: int, /) -> bytes | None:
        with self._change(at) as db:
            stored = _find(db, space, key, at)
            db.execute("delete from entries where space = ? and key = ?", [space, key])
        return stored.value if stored else None

    def keys(self, space: str, at: int, /) -> list[str]:
        with self._connection() as db:
            sql = f"select key from entries where space = :space and {_ALIVE} order by key"
            return [key for (key,) in db.execute(sql, {"space": space, "at": at})]

    def clear(self, space: str, at: int, /) -> int:
        with self._change(at) as db:
            count = _count(db, space, at)
            db.execute("delete from entries where space = ?", [space])
        return count

    def add(self, space: str, key: str, by: Number, at: int, /) -> Number:
        with self._change(at) as db:
            old = _find(db, space, key, at) or Stored(b"0")
            total = added(key, old.value, by)
            self._write(db, space, key, Stored(encode(key, total, self._limits), old.expires), at)
        return total

    # ---- inside

    def _write(self, db: sqlite3.Connection, space: str, key: str, stored: Stored, at: int) -> None:
        if _find(db, space, key, at) is None and _is_full(db, space, at, self._limits.keys):
            raise full(self._limits)
        db.execute(
            "insert into entries (space, key, value, expires) values (?, ?, ?, ?) on conflict"
            " (space, key) do update set value = excluded.value, expires = excluded.expires",
            [space, key, stored.value, stored.expires],
        )

    @contextmanager
    def _change(self, at: int) -> Iterator[sqlite3.Connection]:
        """A transaction that holds the write lock, kept when the block ends well."""
        # SQLite waits for a lock by sleeping ever longer; threads of one process can do better.
        with self._writing, self._connection() as db:
            db.execute("begin immediate")
            with db:
                ended = "select id from entries where expires <= ? order by expires limit ?"
                db.execute(f"delete from entries where id in ({ended})", [at, SWEPT])
                yield db

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection, lent for the block; one that failed is closed and not lent again."""
        with self._speaking():
            db = self._borrow() or self._open()
            sound = False
            try:
                yield db
                sound = True
            except UsageError:
                sound = True
                raise
            finally:
                self._give_back(db, sound)

    def _borrow(self) -> sqlite3.Connection | None:
        with self._lock:
            if self._closed:
                raise StorageError(f"the memory {str(self._path)!r} is closed")
            return self._idle.pop() if self._idle else None

    def _give_back(self, db: sqlite3.Connection, sound: bool) -> None:
        with self._lock:
            if sound and not self._closed:
                self._idle.append(db)
                return
        db.close()

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # What users told their assistants is for the owner's eyes; SQLite gives its other files the
        # same mode.
        self._path.touch(mode=0o600)
        db = sqlite3.connect(
            self._path,
            timeout=self._limits.busy_ms / 1000,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._prepare(db)
        except (sqlite3.Error, StorageError):
            db.close()
            raise
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        (version,) = db.execute("pragma user_version").fetchone()
        if version > VERSION:
            raise StorageError(
                f"the memory {str(self._path)!r} was written by a newer version of Groundhook"
            )
        if version < VERSION:
            self._to_write_ahead(db)
            db.executescript(_SCHEMA)
        db.execute("pragma synchronous = normal")

    def _to_write_ahead(self, db: sqlite3.Connection) -> None:
        """SQLite does not wait for the lock that this switch needs, so that processes that start
        together would fail."""
        patience = time.monotonic() + self._limits.busy_ms / 1000
        while True:
            try:
                db.execute("pragma journal_mode = wal")
                return
            except sqlite3.OperationalError as exc:
                if _primary(exc) != sqlite3.SQLITE_BUSY or time.monotonic() > patience:
                    raise
            time.sleep(0.005)

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as exc:
            hint = (
                _HINTS.get(_primary(exc), "")
                if isinstance(exc, sqlite3.Error)
                else _HINTS[sqlite3.SQLITE_CANTOPEN]
            )
            raise StorageError(
                f"the memory {str(self._path)!r} cannot be used: {exc}", hint=hint
            ) from exc


def _find(db: sqlite3.Connection, space: str, key: str, at: int) -> Stored | None:
    sql = f"select value, expires from entries where space = :space and key = :key and {_ALIVE}"
    row = db.execute(sql, {"space": space, "key": key, "at": at}).fetchone()
    return Stored(*row) if row else None


def _count(db: sqlite3.Connection, space: str, at: int) -> int:
    sql = f"select count(*) from entries where space = :space and {_ALIVE}"
    (count,) = db.execute(sql, {"space": space, "at": at}).fetchone()
    return int(count)


def _is_full(db: sqlite3.Connection, space: str, at: int, limit: int) -> bool:
    # The first count needs the index alone; the second looks at every entry.
    (count,) = db.execute("select count(*) from entries where space = ?", [space]).fetchone()
    return bool(count >= limit and _count(db, space, at) >= limit)


def _primary(exc: sqlite3.Error) -> int:
    """SQLite's primary result code (https://sqlite.org/rescode.html), without the detail of the
    extended one."""
    return int(getattr(exc, "sqlite_errorcode", 0)) & 0xFF
