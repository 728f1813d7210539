"""The connections of a server process: how many are open, how long each may take to send the head
of a request, and how long an answer may go unread.

uvicorn bounds none of these. A connection without a request costs a descriptor of the process, of
which the system gives it a limited number, so silent clients could keep all others out.
"""

from __future__ import annotations

import logging
import resource
import time
from asyncio import TimerHandle, Transport
from dataclasses import dataclass, field
from math import inf
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

log = logging.getLogger("groundhook.server")

SHARE = 0.75  # of the descriptors of a process that connections may take
LOGGED_EVERY_S = 60.0
_TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 2\r\nconnection: close\r\n"
    b"content-length: 0\r\n\r\n"
)


@dataclass(eq=False)
class Connections:
    """The open connections of one process. `most` is how many there may be, `head_s` how long one
    may have no request under way, `slow_s` how long a client may read nothing of an answer."""

    most: int
    head_s: float
    slow_s: float
    open: set[HttpConnection] = field(default_factory=set)
    # Those without a request under way, the longest waiting first.
    waiting: dict[HttpConnection, None] = field(default_factory=dict)
    _logged: float = -inf

    def admit(self, connection: HttpConnection) -> bool:
        """Count a new connection; where there are too many, the one that has waited longest for a
        request is closed. Returns False if all others have a request under way."""
        if len(self.open) >= self.most:
            if time.monotonic() - self._logged > LOGGED_EVERY_S:
                self._logged = time.monotonic()
                log.warning(
                    "%d connections are open, which is the limit (server.limits.connections, and"
                    " the files that the system lets this process open): idle ones are closed",
                    self.most,
                )
            longest = next(iter(self.waiting), None)
            if longest is None:
                return False
            longest.drop()
        self.open.add(connection)
        return True

    def remove(self, connection: HttpConnection) -> None:
        """Count a connection no longer."""
        self.open.discard(connection)
        self.waiting.pop(connection, None)


def most_connections(wanted: int) -> int:
    """Return how many connections a process may have: `wanted`, or the share of its descriptors."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, int(soft * SHARE)))


class HttpConnection(H11Protocol):
    """One connection. Its deadline is that of the head of its next request, or while a request is
    under way and nothing more can be written, that of its reader."""

    def __init__(self, connections: Connections, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._of = connections
        self._deadline: TimerHandle | None = None
        self._unread = inf  # bytes of the answer that the client had not read when last looked

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._of.admit(self):
            self._wait()
        else:
            transport.write(_FULL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._of.remove(self)
        self._set_deadline(None)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        if self in self._of.waiting and self._has_request:
            del self._of.waiting[self]
            self._set_deadline(self._of.slow_s if self.flow.write_paused else None)

    def on_response_complete(self) -> None:
        self._wait()
        super().on_response_complete()  # which may begin the next request

    def pause_writing(self) -> None:
        super().pause_writing()
        if self not in self._of.waiting:
            self._set_deadline(self._of.slow_s)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self not in self._of.waiting:
            self._set_deadline(None)

    def drop(self) -> None:
        """Close the connection now; a part of a request that came is answered in words."""
        self._of.remove(self)
        self._set_deadline(None)
        began, _ = self.conn.trailing_data
        if began and not self._unread_bytes and not self.transport.is_closing():
            self.transport.write(_TIMEOUT)
            self.transport.close()
        else:
            self.transport.abort()  # `close` would wait for a client that reads nothing

    @property
    def _has_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _unread_bytes(self) -> int:
        return self.transport.get_write_buffer_size()

    def _wait(self) -> None:
        """Begin to wait for a request. What arrives does not extend the time: a byte now and then
        would hold the connection for ever."""
        if self in self._of.open:
            self._of.waiting[self] = None
            self._set_deadline(self._of.head_s)

    def _set_deadline(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline, self._unread = None, inf
        if seconds is not None:
            self._deadline = self.loop.call_later(seconds, self._over)

    def _over(self) -> None:
        unread = self._unread_bytes
        if unread and unread < self._unread:  # a client that is slow, and reads
            self._deadline = self.loop.call_later(self._of.slow_s, self._over)
            self._unread = unread
        else:
            self.drop()
