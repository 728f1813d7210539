"""A SQLite file that several processes and threads may use at once: its connections, locks and
errors.

The file is created by the first use. A transaction that writes takes the write lock before it reads
(`begin immediate`), so that no change is lost; readers never wait (write-ahead log). A power cut
may lose the last changes but does not damage the file (`synchronous = normal`).
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from groundhook.core.errors import HostError, StorageError
from groundhook.host.chats.storage.idle import IdleConnections

_HINTS = {
    sqlite3.SQLITE_FULL: "free disk space",
    sqlite3.SQLITE_IOERR: "check whether the disk is full or damaged",
    sqlite3.SQLITE_BUSY: "another process has locked it for too long",
    sqlite3.SQLITE_CORRUPT: "restore it from a copy, or move it away to begin with an empty one",
    sqlite3.SQLITE_NOTADB: "restore it from a copy, or move it away to begin with an empty one",
    sqlite3.SQLITE_READONLY: "the file and its folder must be writable",
    sqlite3.SQLITE_CANTOPEN: "the file and its folder must be writable",
}


class SqliteFile:
    """The file `path`, with a pool of connections. Thread-safe. `name` is its name in errors: "the
    chats '…'". `prepare` receives each new connection; it creates missing tables, after
    `enable_wal`. `hint_busy` is the advice when another process holds the lock for longer than
    `busy_ms`. Every call raises StorageError."""

    def __init__(
        self,
        path: Path,
        name: str,
        prepare: Callable[[sqlite3.Connection], None],
        *,
        busy_ms: int,
        hint_busy: str = "",
    ) -> None:
        self._path = path
        self._name = name
        self._prepare = prepare
        self._busy_s = busy_ms / 1000
        self._hints = {**_HINTS, **({sqlite3.SQLITE_BUSY: hint_busy} if hint_busy else {})}
        self._idle = IdleConnections[sqlite3.Connection](f"{self._name} is closed")
        self._writing = threading.Lock()

    def close(self) -> None:
        """Close the idle connections; those in use are closed when they are returned."""
        self._idle.close()

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection. After a failure it is closed and not reused."""
        with self._translate_errors():
            db = self._idle.take() or self._open()
            reusable = False
            try:
                yield db
                reusable = True
            # An error of the caller's work: the connection itself can be reused.
            except HostError:
                reusable = True
                raise
            finally:
                self._idle.give_back(db, reusable=reusable)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yield a transaction with the write lock, committed unless the block raises."""
        # A lock between our own threads, since SQLite polls for its own with growing pauses.
        with self._writing, self.connection() as db:
            db.execute("begin immediate")
            with db:
                yield db

    def enable_wal(self, db: sqlite3.Connection) -> None:
        """Switch the file to write-ahead logging. SQLite does not wait for the lock that this
        needs, so it is retried; processes that start together would fail otherwise."""
        deadline = time.monotonic() + self._busy_s
        while True:
            try:
                db.execute("pragma journal_mode = wal")
                return
            except sqlite3.OperationalError as exc:
                if _primary_code(exc) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(0.005)

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # The data is private to the owner; SQLite gives its other files the same mode.
        self._path.touch(mode=0o600)
        db = sqlite3.connect(
            self._path, timeout=self._busy_s, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(db)
            db.execute("pragma synchronous = normal")
        except (sqlite3.Error, StorageError):
            db.close()
            raise
        return db

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as exc:
            hint = (
                self._hints.get(_primary_code(exc), "")
                if isinstance(exc, sqlite3.Error)
                else self._hints[sqlite3.SQLITE_CANTOPEN]
            )
            raise StorageError(f"{self._name} cannot be used: {exc}", hint=hint) from exc


def _primary_code(exc: sqlite3.Error) -> int:
    """Return SQLite's primary result code (https://sqlite.org/rescode.html) from the extended
    one."""
    return int(getattr(exc, "sqlite_errorcode", 0)) & 0xFF
