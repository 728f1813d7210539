"""A server on 127.0.0.1 that behaves as services do, and as they misbehave.

`with serving() as server:` runs it on a thread of its own, so that async tests, sync tests and
child processes can all talk to it. Script what it answers with `server.on("/search", Json({...}))`:
replies to a path are given in order and the last one stays. `server.requests` holds the requests;
`left` of a request is set once the client has closed its connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio
import anyio.lowlevel

REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    429: "Too Many Requests",
}


@dataclass(frozen=True)
class Reply:
    """An answer with a body of known length."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


def Json(body: Any, status: int = 200, **headers: str) -> Reply:  # noqa: N802
    return Reply(json.dumps(body).encode(), status, headers=headers)


def Html(text: str = "<html><body>Please log in</body></html>", status: int = 200) -> Reply:  # noqa: N802
    return Reply(text.encode(), status, "text/html; charset=utf-8")


@dataclass(frozen=True)
class Trickle:
    """An answer whose body comes a byte (or `size`) at a time, `pause` seconds apart, so that no
    read ever times out."""

    body: bytes
    pause: float = 0.02
    status: int = 200
    size: int = 1


@dataclass(frozen=True)
class Hang:
    """Nothing, until the client gives up."""


@dataclass(frozen=True)
class Cut:
    """The connection is closed after `body`, which promised to be longer; before anything when
    `body` is None."""

    body: bytes | None = None


@dataclass(frozen=True)
class Sse:
    """A stream of events. Each is data (a mapping is sent as JSON) or, as bytes, exactly what goes
    over the wire. It ends well (`end`), by breaking the connection (`cut`), or not at all
    (`hang`)."""

    events: Sequence[Mapping[str, Any] | str | bytes]
    then: str = "end"


@dataclass(frozen=True)
class Flood:
    """An answer of `size` bytes, as many as the client takes."""

    status: int = 200
    size: int = 500_000_000


@dataclass(frozen=True)
class Reads:
    """An answer that depends on the request."""

    answer: Callable[[Received], Fixed]


Fixed = Reply | Trickle | Flood | Hang | Cut | Sse
Answer = Fixed | Reads


@dataclass
class Received:
    """A request as it arrived. `left` is set when the client has closed the connection; `flooded`:
    bytes of a `Flood` that went out."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    left: threading.Event = field(default_factory=threading.Event)
    flooded: int = 0

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Loopback:
    """The server: where it is, what it answers, and the requests that it received."""

    def __init__(self) -> None:
        self.port = 0
        self.tls: ssl.SSLContext | None = None
        self.requests: list[Received] = []
        self._answers: dict[str, list[Answer]] = {}
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._closing = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def on(self, path: str, *answers: Answer) -> None:
        self._answers[path] = list(answers)

    def answer(self, received: Received) -> Answer:
        scripted = self._answers.get(received.path.partition("?")[0])
        if not scripted:
            return Json({"detail": f"nothing is scripted for {received.path}"}, 404)
        return scripted.pop(0) if len(scripted) > 1 else scripted[0]

    async def until_requested(self, ending: str = "") -> None:
        """Wait for a request whose path ends with `ending`."""
        with anyio.fail_after(60):
            while not any(received.path.endswith(ending) for received in list(self.requests)):
                await anyio.lowlevel.checkpoint()

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Known from its first moment on, so that one is closed that comes when the server is about
        to go."""
        if self._closing:
            writer.close()
        else:
            self._open[asyncio.create_task(self._serve(reader, writer))] = writer  # noqa: TID251

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._exchange(reader, writer):
                pass
        writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer → whether the connection serves another."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        received = Received(
            method, path, headers, await reader.readexactly(int(headers.get("content-length", "0")))
        )
        self.requests.append(received)
        try:
            answer = self.answer(received)
            fixed = answer.answer(received) if isinstance(answer, Reads) else answer
            if isinstance(fixed, Flood):
                await _flood(fixed, received, writer)
                return False
            return await self._send(fixed, reader, writer)
        finally:
            if isinstance(answer, Flood) or reader.at_eof() or reader.exception() is not None:
                received.left.set()

    async def _send(
        self,
        answer: Reply | Trickle | Hang | Cut | Sse,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        match answer:
            case Reply():
                writer.write(
                    _head(answer.status, answer.content_type, answer.headers, len(answer.body))
                    + answer.body
                )
                await writer.drain()
                return True
            case Trickle():
                writer.write(_head(answer.status, "application/json", {}, len(answer.body)))
                for at in range(0, len(answer.body), answer.size):
                    if await _gone(reader, answer.pause):
                        return False
                    writer.write(answer.body[at : at + answer.size])
                return True
            case Hang():
                await _gone(reader, None)
                return False
            case Cut():
                if answer.body is not None:
                    writer.write(
                        _head(200, "application/json", {}, len(answer.body) + 100) + answer.body
                    )
                    await writer.drain()
                return False
            case Sse():
                return await self._stream(answer, reader, writer)

    async def _stream(
        self, answer: Sse, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding:"
            b" chunked\r\n\r\n"
        )
        for event in answer.events:
            data = (
                event if isinstance(event, bytes) else b"data: " + _text(event).encode() + b"\n\n"
            )
            writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            await writer.drain()
        if answer.then == "hang":
            await _gone(reader, None)
        elif answer.then == "end":
            writer.write(b"0\r\n\r\n")
            await writer.drain()
            return True
        return False

    async def close(self) -> None:
        self._closing = True
        for task in self._open:
            task.cancel()
        outcomes = await asyncio.gather(*self._open, return_exceptions=True)  # noqa: TID251
        for writer in self._open.values():
            writer.transport.abort()  # whatever it has not read yet
        for outcome in outcomes:
            if isinstance(outcome, Exception):  # of a test's own script: fails the test
                raise outcome


Server = TypeVar("Server", bound=Loopback)


@contextmanager
def serving() -> Iterator[Loopback]:
    """A server on a free port, on a thread of its own."""
    with running(Loopback()) as server:
        yield server


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """The same with a server that knows its answers; on its `port`, if it has one."""
    ready = threading.Event()
    stop: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def run() -> None:
        listening = await asyncio.start_server(
            server.connected, "127.0.0.1", server.port, ssl=server.tls
        )
        server.port = listening.sockets[0].getsockname()[1]
        over = asyncio.Event()
        stop.append((asyncio.get_running_loop(), over))
        ready.set()
        await over.wait()
        listening.close()
        await server.close()
        await listening.wait_closed()

    thread = threading.Thread(target=asyncio.run, args=(run(),), name="loopback")
    thread.start()
    assert ready.wait(60), "the loopback server did not start"
    try:
        yield server
    finally:
        loop, over = stop[0]
        loop.call_soon_threadsafe(over.set)
        thread.join(60)


def _head(status: int, content_type: str, headers: Mapping[str, str], length: int) -> bytes:
    lines = [
        f"HTTP/1.1 {status} {REASONS.get(status, 'Whatever')}",
        f"content-type: {content_type}",
        f"content-length: {length}",
    ]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


async def _flood(answer: Flood, received: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(_head(answer.status, "application/json", {}, answer.size))
    piece = b" " * 65536
    while received.flooded < answer.size:
        writer.write(piece)
        await writer.drain()
        received.flooded += len(piece)


def _text(event: Mapping[str, Any] | str) -> str:
    return event if isinstance(event, str) else json.dumps(event)


async def _gone(reader: asyncio.StreamReader, patience: float | None) -> bool:
    """Whether the client closes the connection within `patience` seconds (none: wait until it
    does)."""
    try:
        async with asyncio.timeout(patience):
            return await reader.read(1) == b""
    except TimeoutError:
        return False
