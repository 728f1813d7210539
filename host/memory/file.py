"""Entries in a SQLite file that several processes may use at once.

The file is created by the first use. Each change is one transaction that takes the write lock
before it reads (`begin immediate`), so that no increment is lost; readers never wait (write-ahead
log). Each change also deletes a few expired entries. A power cut may lose the last changes but does
not damage the file (`synchronous = normal`).
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from groundhook.host.core.app_settings import MemorySettings
from groundhook.host.core.errors import StorageError, UsageError
from groundhook.host.memory.entries import Number, Stored, add_numbers, encode, full_error

VERSION = 1
SWEEP_LIMIT = 32  # expired entries deleted by one change
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
    sqlite3.SQLITE_IOERR: "check whether the disk is full or damaged",
    sqlite3.SQLITE_BUSY: "another process has locked it; memory.busy_ms sets how long to wait",
    sqlite3.SQLITE_CORRUPT: "restore it from a copy, or move it away to start with an empty memory",
    sqlite3.SQLITE_NOTADB: "restore it from a copy, or move it away to start with an empty memory",
    sqlite3.SQLITE_READONLY: "the file and its folder must be writable",
    sqlite3.SQLITE_CANTOPEN: "the file and its folder must be writable",
}


class FileEntries:
    """Entries in the file `path`. Thread-safe; each call has a connection of its own from a pool.
    Every call raises StorageError."""

    def __init__(self, path: Path, limits: MemorySettings) -> None:
        self._path = path
        self._limits = limits
        self._idle: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._closed = False

    def close(self) -> None:
        """Close the idle connections; those in use are closed when they are returned."""
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
        with self._transaction(at) as db:
            self._write(db, space, key, stored, at)

    def remove(self, space: str, key: str, at: int, /) -> bytes | None:
        with self._transaction(at) as db:
            stored = _find(db, space, key, at)
            db.execute("delete from entries where space = ? and key = ?", [space, key])
        return stored.value if stored else None

    def keys(self, space: str, at: int, /) -> list[str]:
        with self._connection() as db:
            sql = f"select key from entries where space = :space and {_ALIVE} order by key"
            return [key for (key,) in db.execute(sql, {"space": space, "at": at})]

    def clear(self, space: str, at: int, /) -> int:
        with self._transaction(at) as db:
            count = _count(db, space, at)
            db.execute("delete from entries where space = ?", [space])
        return count

    def add(self, space: str, key: str, by: Number, at: int, /) -> Number:
        with self._transaction(at) as db:
            old = _find(db, space, key, at) or Stored(b"0")
            total = add_numbers(key, old.value, by)
            self._write(db, space, key, Stored(encode(key, total, self._limits), old.expires), at)
        return total

    # ---- transactions and connections

    def _write(self, db: sqlite3.Connection, space: str, key: str, stored: Stored, at: int) -> None:
        if _find(db, space, key, at) is None and _is_full(db, space, at, self._limits.keys):
            raise full_error(self._limits)
        db.execute(
            "insert into entries (space, key, value, expires) values (?, ?, ?, ?) on conflict"
            " (space, key) do update set value = excluded.value, expires = excluded.expires",
            [space, key, stored.value, stored.expires],
        )

    @contextmanager
    def _transaction(self, at: int) -> Iterator[sqlite3.Connection]:
        """A transaction with the write lock, committed unless the block raises."""
        # SQLite polls for a lock with growing pauses; a lock between our own threads is faster.
        with self._writing, self._connection() as db:
            db.execute("begin immediate")
            with db:
                ended = "select id from entries where expires <= ? order by expires limit ?"
                db.execute(f"delete from entries where id in ({ended})", [at, SWEEP_LIMIT])
                yield db

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection for the block. After a failure it is closed and not reused."""
        with self._translated_errors():
            db = self._borrow() or self._open()
            reusable = False
            try:
                yield db
                reusable = True
            except UsageError:
                reusable = True
                raise
            finally:
                self._give_back(db, reusable)

    def _borrow(self) -> sqlite3.Connection | None:
        with self._lock:
            if self._closed:
                raise StorageError(f"the memory {str(self._path)!r} is closed")
            return self._idle.pop() if self._idle else None

    def _give_back(self, db: sqlite3.Connection, reusable: bool) -> None:
        with self._lock:
            if reusable and not self._closed:
                self._idle.append(db)
                return
        db.close()

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Memories are private to the owner; SQLite gives its other files the same mode.
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
            self._enable_wal(db)
            db.executescript(_SCHEMA)
        db.execute("pragma synchronous = normal")

    def _enable_wal(self, db: sqlite3.Connection) -> None:
        """Switch the file to write-ahead logging. SQLite does not wait for the lock that this
        needs, so it is retried; processes that start together would fail otherwise."""
        deadline = time.monotonic() + self._limits.busy_ms / 1000
        while True:
            try:
                db.execute("pragma journal_mode = wal")
                return
            except sqlite3.OperationalError as exc:
                if _primary_code(exc) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(0.005)

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as exc:
            hint = (
                _HINTS.get(_primary_code(exc), "")
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


def _primary_code(exc: sqlite3.Error) -> int:
    """Return SQLite's primary result code (https://sqlite.org/rescode.html) from the extended
    one."""
    return int(getattr(exc, "sqlite_errorcode", 0)) & 0xFF
