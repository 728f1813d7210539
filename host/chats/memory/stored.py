"""Entries in a storage that several processes may use at once: a SQLite file, or PostgreSQL.

Each change is one transaction, so that no increment is lost, and also deletes a few expired
entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from groundhook.core.app_settings import MemorySettings
from groundhook.host.chats.memory.entries import Change, StoredValue, full_error
from groundhook.host.chats.storage.sql import Sql, Storage, TableScripts

MEMORY = TableScripts(
    "memory",
    (
        """
        create table if not exists entries (
            space text not null, key text not null, value blob not null, expires bigint
        );
        create unique index if not exists one_each on entries (space, key);
        create index if not exists ending on entries (expires) where expires is not null;
        """,
    ),
)
SWEEP_LIMIT = 32  # expired entries deleted by one change
_ALIVE = "(expires is null or expires > :at)"


class StoredEntries:
    """Entries in `storage`, which must have the part `MEMORY`. Thread-safe. Every call raises
    StorageError."""

    def __init__(self, storage: Storage, limits: MemorySettings) -> None:
        self._storage = storage
        self._limits = limits

    # ---- Entries

    def get(self, space: str, key: str, at: int, /) -> bytes | None:
        with self._storage.reading() as sql:
            stored = _find(sql, space, key, at)
        return stored.value if stored else None

    def put(self, space: str, key: str, stored: StoredValue, at: int, /) -> None:
        with self._transaction(space, at) as sql:
            self._write(sql, space, key, stored, at)

    def remove(self, space: str, key: str, at: int, /) -> bytes | None:
        with self._transaction(space, at) as sql:
            stored = _find(sql, space, key, at)
            sql.change(
                "delete from entries where space = :space and key = :key", space=space, key=key
            )
        return stored.value if stored else None

    def keys(self, space: str, at: int, /) -> list[str]:
        with self._storage.reading() as sql:
            rows = sql.rows(
                f"select key from entries where space = :space and {_ALIVE}", space=space, at=at
            )
        return sorted(key for (key,) in rows)

    def clear(self, space: str, at: int, /) -> int:
        with self._transaction(space, at) as sql:
            count = _count(sql, space, at)
            sql.change("delete from entries where space = :space", space=space)
        return count

    def change(self, space: str, key: str, work: Change, at: int, /) -> Any:
        with self._transaction(space, at) as sql:
            old = _find(sql, space, key, at)
            value, result = work(old.value if old else None)
            if value is not None:
                self._write(sql, space, key, StoredValue(value, old.expires if old else None), at)
        return result

    # ---- transactions

    def _write(self, sql: Sql, space: str, key: str, stored: StoredValue, at: int) -> None:
        if _find(sql, space, key, at) is None and _is_full(sql, space, at, self._limits.keys):
            raise full_error(self._limits)
        sql.change(
            "insert into entries (space, key, value, expires) values (:space, :key, :value,"
            " :expires) on conflict (space, key)"
            " do update set value = excluded.value, expires = excluded.expires",
            space=space,
            key=key,
            value=stored.value,
            expires=stored.expires,
        )

    @contextmanager
    def _transaction(self, space: str, at: int) -> Iterator[Sql]:
        """Yield a transaction. It has a lock on the space, so that changes of one space run one
        after the other."""
        with self._storage.writing() as sql:
            sql.lock(space)
            # Only one at a time: two that delete the same entries would wait for each other.
            if sql.try_lock("sweep"):
                ended = (
                    "select space, key from entries where expires <= :at order by expires"
                    " limit :limit"
                )
                sql.change(
                    f"delete from entries where (space, key) in ({ended})",
                    at=at,
                    limit=SWEEP_LIMIT,
                )
            yield sql


def _find(sql: Sql, space: str, key: str, at: int) -> StoredValue | None:
    rows = sql.rows(
        f"select value, expires from entries where space = :space and key = :key and {_ALIVE}",
        space=space,
        key=key,
        at=at,
    )
    return StoredValue(bytes(rows[0][0]), rows[0][1]) if rows else None


def _count(sql: Sql, space: str, at: int) -> int:
    query = f"select count(*) from entries where space = :space and {_ALIVE}"
    return int(sql.rows(query, space=space, at=at)[0][0])


def _is_full(sql: Sql, space: str, at: int, limit: int) -> bool:
    # The first count reads only the index; the second, which reads every entry, is rarely needed.
    every = "select count(*) from entries where space = :space"
    return bool(sql.rows(every, space=space)[0][0] >= limit and _count(sql, space, at) >= limit)
