"""Idle connections that are kept for the next transaction."""

from __future__ import annotations

import threading
from typing import Generic, Protocol, TypeVar

from groundhook.core.errors import StorageError


class _Closable(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=_Closable)


class IdleConnections(Generic[C]):
    """Idle connections, for any thread. `closed` is the message of the error after `close`."""

    def __init__(self, closed: str) -> None:
        self._message = closed
        self._idle: list[C] = []
        self._lock = threading.Lock()
        self._closed = False

    def take(self) -> C | None:
        """Return an idle connection, None without one. Raises StorageError after `close`."""
        with self._lock:
            if self._closed:
                raise StorageError(self._message)
            return self._idle.pop() if self._idle else None

    def give_back(self, connection: C, *, reusable: bool) -> None:
        """Keep a connection for the next caller; close one that is not reusable."""
        with self._lock:
            if reusable and not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close the idle connections; those in use are closed when they are given back."""
        with self._lock:
            self._closed = True
        self.drop()

    def drop(self) -> None:
        """Close the idle connections: the next caller opens another."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
