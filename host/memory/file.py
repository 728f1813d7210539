"""Entries in a SQLite file that several processes may use at once.

Each change is one transaction, so that no increment is lost, and also deletes a few expired
entries.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from groundhook.host.core.app_settings import MemorySettings
from groundhook.host.core.errors import StorageError
from groundhook.host.memory.entries import Change, Stored, full_error
from groundhook.host.storage.sqlite_file import SqliteFile

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


class FileEntries:
    """Entries in the file `path`. Thread-safe. Every call raises StorageError."""

    def __init__(self, path: Path, limits: MemorySettings) -> None:
        self._name = f"the memory {str(path)!r}"
        self._limits = limits
        self._file = SqliteFile(
            path,
            self._name,
            self._prepare,
            busy_ms=limits.busy_ms,
            hint_busy="another process has locked it; memory.busy_ms sets how long to wait",
        )

    def close(self) -> None:
        """Close the idle connections; those in use are closed when they are returned."""
        self._file.close()

    # ---- Entries

    def get(self, space: str, key: str, at: int, /) -> bytes | None:
        with self._file.connection() as db:
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
        with self._file.connection() as db:
            sql = f"select key from entries where space = :space and {_ALIVE} order by key"
            return [key for (key,) in db.execute(sql, {"space": space, "at": at})]

    def clear(self, space: str, at: int, /) -> int:
        with self._transaction(at) as db:
            count = _count(db, space, at)
            db.execute("delete from entries where space = ?", [space])
        return count

    def change(self, space: str, key: str, work: Change, at: int, /) -> Any:
        with self._transaction(at) as db:
            old = _find(db, space, key, at)
            value, result = work(old.value if old else None)
            if value is not None:
                self._write(db, space, key, Stored(value, old.expires if old else None), at)
        return result

    # ---- transactions

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
        with self._file.writing() as db:
            ended = "select id from entries where expires <= ? order by expires limit ?"
            db.execute(f"delete from entries where id in ({ended})", [at, SWEEP_LIMIT])
            yield db

    def _prepare(self, db: sqlite3.Connection) -> None:
        (version,) = db.execute("pragma user_version").fetchone()
        if version > VERSION:
            raise StorageError(f"{self._name} was written by a newer version of Groundhook")
        if version < VERSION:
            self._file.enable_wal(db)
            db.executescript(_SCHEMA)


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
