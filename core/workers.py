"""Child processes of the host, and the framed messages to and from them.

A `WorkerConnection` is one end of a stream between two processes (a socket pair with a hook worker,
a local socket with the knowledge base's worker). Both ends may send requests at the same time. A
frame is a 4-byte little-endian length and a msgpack array [kind, id, operation, body].

The meaning of an operation belongs to the callers: this module does not know hooks or knowledge
bases.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgpack

from groundhook.core import errors
from groundhook.core.errors import HostError, Place, WorkerDied

REQUEST, ANSWER, REFUSAL, POST = range(4)
HEADER = struct.Struct("<I")
LARGEST_FRAME = 512 * 1024 * 1024

# connection, request id (None: a post), operation, body.
Incoming = Callable[["WorkerConnection", int | None, str, Any], None]


def pack(kind: int, id: int, operation: str, body: Any) -> bytes:
    """Return one frame with its header. Raises TypeError for a body that msgpack cannot encode."""
    payload: bytes = msgpack.packb([kind, id, operation, body])
    return HEADER.pack(len(payload)) + payload


def unpack(payload: bytes | memoryview) -> tuple[int, int, str, Any]:
    """Return kind, id, operation and body of a frame without its header."""
    kind, id, operation, body = msgpack.unpackb(payload, strict_map_key=False)
    return kind, id, operation, body


class WorkerConnection(asyncio.Protocol):
    """One end of a connection between two processes. It belongs to the event loop that made it.

    `incoming` is called for each request and post of the other end, on the loop; it must not block.
    It answers a request with `answer` or `refuse`, at once or later.
    """

    def __init__(self, name: str, incoming: Incoming | None = None) -> None:
        self.name = name
        self.closed = asyncio.Event()
        self._incoming = incoming
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    async def call(self, operation: str, body: Any = None) -> Any:
        """Send a request and return its answer. Raises the HostError of a refusal, or WorkerDied if
        the other end has ended. The answer to a cancelled call is dropped."""
        if self._transport is None or self.closed.is_set():
            raise WorkerDied(f"{self.name} is not running")
        id = next(self._ids)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[id] = future
        try:
            self._write(pack(REQUEST, id, operation, body))
            return await future
        finally:
            self._waiting.pop(id, None)

    def post(self, operation: str, body: Any = None) -> None:
        """Send a message without an answer. It is dropped if the other end has ended."""
        self._write(pack(POST, 0, operation, body))

    def answer(self, id: int, body: Any) -> None:
        """Answer the request `id`."""
        self._write(pack(ANSWER, id, "", body))

    def refuse(self, id: int, error: HostError) -> None:
        """Answer the request `id` with an error."""
        self._write(pack(REFUSAL, id, "", describe(error)))

    def close(self) -> None:
        """Close the connection; calls that wait raise WorkerDied."""
        if self._transport is not None:
            self._transport.close()

    # ---- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        # The transport of another event loop, such as uvloop's, only behaves like asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Dispatch every complete frame; a frame above LARGEST_FRAME closes the connection."""
        self._buffer += data
        start, end = 0, len(self._buffer)
        while end - start >= HEADER.size:
            (length,) = HEADER.unpack_from(self._buffer, start)
            if length > LARGEST_FRAME:
                self.close()
                return
            stop = start + HEADER.size + length
            if stop > end:
                break
            frame = unpack(bytes(self._buffer[start + HEADER.size : stop]))
            start = stop
            self._dispatch(*frame)
        del self._buffer[:start]

    def connection_lost(self, exc: Exception | None) -> None:
        """Raise WorkerDied in every call that waits."""
        self.closed.set()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(WorkerDied(f"{self.name} ended before it answered"))

    def _dispatch(self, kind: int, id: int, operation: str, body: Any) -> None:
        if kind in (REQUEST, POST):
            if self._incoming is not None:
                self._incoming(self, id if kind == REQUEST else None, operation, body)
            return
        future = self._waiting.get(id)
        # The caller was cancelled.
        if future is None or future.done():
            return
        if kind == ANSWER:
            future.set_result(body)
        else:
            future.set_exception(restore(body))

    def _write(self, frame: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame)


@dataclass
class Child:
    """A child process and the connection to it."""

    process: asyncio.subprocess.Process
    connection: WorkerConnection

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self.process.pid

    def kill(self) -> None:
        """Kill the process; calls on its connection raise WorkerDied."""
        if self.process.returncode is None:
            # Not `process.kill()`: it may reap the child, and then the event loop never learns the
            # exit status.
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGKILL)

    async def stop(self, patience: float = 2.0) -> None:
        """Close the connection, which ends the process; kill it if it still runs after `patience`
        seconds."""
        self.connection.close()
        try:
            await asyncio.wait_for(self.process.wait(), patience)
        except TimeoutError:
            self.kill()
            await self.process.wait()


def interpreter(module: str) -> tuple[str, ...]:
    """Return the command that runs a module of the host as a child process. Without `-P`, `python
    -m` looks for modules in the current folder first, which may belong to anybody."""
    return sys.executable, "-P", "-m", module


async def start_child(
    name: str,
    module: str,
    arguments: Sequence[str] = (),
    *,
    incoming: Incoming | None = None,
    environment: Mapping[str, str] | None = None,
) -> Child:
    """Start a process that runs the module with arguments FD and `arguments`, and return it. FD is
    its end of a socket pair; the module must end when that closes. `environment` replaces that of
    this process. Raises OSError if the process cannot be started."""
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *interpreter(module),
                str(theirs.fileno()),
                *arguments,
                pass_fds=(theirs.fileno(),),
                stdin=asyncio.subprocess.DEVNULL,
                env=environment,
                # A terminal's Ctrl-C reaches the whole process group; the children end in order
                # when their connections are closed.
                start_new_session=True,
            )
        connection = WorkerConnection(name, incoming)
        await asyncio.get_running_loop().create_connection(lambda: connection, sock=ours)
    except BaseException:
        ours.close()
        raise
    return Child(process, connection)


def socket_of_child(descriptor: str) -> socket.socket:
    """Return a child's end of the socket pair, given its argument FD, and close every other
    descriptor that it inherited."""
    own = int(descriptor)
    close_inherited(own)
    return socket.socket(fileno=own)


def close_inherited(*kept: int) -> None:
    """Close every descriptor but the standard streams and those that are kept: a process calls it
    when it begins. uvloop starts processes without closing what they inherit, and servers make the
    sockets on which they listen inheritable."""
    for other in [int(file.name) for file in Path("/dev/fd").iterdir()]:
        if other > 2 and other not in kept:
            with suppress(OSError):  # the descriptor by which the list was read
                os.close(other)


def describe(error: HostError) -> dict[str, Any]:
    """Return an error as a message to another process."""
    place = error.place
    return {
        "class": error.__class__.__name__,
        "message": error.message,
        "hint": error.hint,
        "place": [place.file, place.line, place.column] if place else None,
        "limit": getattr(error, "limit", ""),
    }


def restore(body: dict[str, Any]) -> HostError:
    """Return the error of a message that `describe` made."""
    kind = getattr(errors, body["class"], HostError)
    place = Place(*body["place"]) if body["place"] else None
    if kind is errors.HookLimit:
        return errors.HookLimit(body["limit"], body["message"], place=place, hint=body["hint"])
    # UnknownName is made of the known names, which are not sent: they are in the message.
    if not issubclass(kind, HostError) or kind is errors.UnknownName:
        kind = errors.UsageError if kind is errors.UnknownName else HostError
    made: HostError = kind(body["message"], place=place, hint=body["hint"])
    return made
