"""Rows in a SQLite file that several processes may use at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from groundhook.core.errors import StorageError
from groundhook.host.chats.storage.sql import SqlRow, TableScripts, migrate
from groundhook.host.chats.storage.sqlite_file import SqliteFile

NEWEST = 1  # `user_version` of files from before each part had a version of its own


class SqliteStorage:
    """Rows in the file `path`. `noun` names them in errors: "the chats". `hint_busy` is the advice
    when another process holds the lock for longer than `busy_ms`."""

    writers = 1  # SQLite has one writer at a time; more threads would wait for each other

    def __init__(
        self,
        path: Path,
        parts: Sequence[TableScripts],
        *,
        noun: str,
        busy_ms: int,
        hint_busy: str = "",
    ) -> None:
        self._parts = tuple(parts)
        self._name = f"{noun} {str(path)!r}"
        self._file = SqliteFile(
            path, self._name, self._prepare, busy_ms=busy_ms, hint_busy=hint_busy
        )
        self._ready = False

    def close(self) -> None:
        """Close the idle connections; those in use are closed when they are returned."""
        self._file.close()

    @contextmanager
    def reading(self) -> Iterator[_Statements]:
        """Yield a transaction that sees one state of the rows."""
        with self._file.connection() as db:
            db.execute("begin")
            try:
                yield _Statements(db)
            finally:
                db.rollback()

    @contextmanager
    def writing(self) -> Iterator[_Statements]:
        """Yield a transaction with the write lock, committed unless the block raises."""
        with self._file.writing() as db:
            yield _Statements(db)

    def _prepare(self, db: sqlite3.Connection) -> None:
        (version,) = db.execute("pragma user_version").fetchone()
        if version > NEWEST:
            raise StorageError(f"{self._name} was written by a newer version of Groundhook")
        if not self._ready:
            self._file.enable_wal(db)
            db.execute("begin immediate")
            with db:
                migrate(_Statements(db), self._parts, self._name)
            self._ready = True


class _Statements:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def rows(self, sql: str, /, **values: Any) -> Sequence[SqlRow]:
        return self._db.execute(sql, values).fetchall()

    def change(self, sql: str, /, **values: Any) -> int:
        return self._db.execute(sql, values).rowcount

    def lock(self, name: str, /) -> None:
        """Do nothing: the file has one writer at a time."""

    def try_lock(self, name: str, /) -> bool:
        return True

    def be_patient(self) -> None:
        """Do nothing: statements have no time limit."""
