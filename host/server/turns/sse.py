"""Streams of a turn as bytes: server-sent events and JSON lines, with all events that are ready in
one write. A client that leaves is noticed at once, also while no event is sent; a client that reads
nothing is disconnected."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import anyio
import anyio.lowlevel
from starlette.types import Receive, Scope, Send

from groundhook.core.json_lines import line_bytes
from groundhook.core.server_settings import StreamSettings
from groundhook.host.output.dialects.audience import Audience
from groundhook.host.output.dialects.fold import ClientMessage, Fold
from groundhook.host.server.turns.running import AT_ONCE, Logged, LogReader

_State = TypeVar("_State")

SSE = "text/event-stream; charset=utf-8"
JSON_LINES = "application/x-ndjson"
DUE_S = 0.06  # after which a writer that is behind is called again
HEARTBEAT = b": \n\n"  # a comment, which readers of server-sent events ignore
# Proxies must not compress the stream, and nginx must not collect it before it passes it on.
STREAM_HEADERS = {"cache-control": "no-cache, no-transform", "x-accel-buffering": "no"}


class Writer(Protocol):
    """Converts events to the bytes of a stream, and ends the stream."""

    async def write(self, events: Sequence[Logged]) -> bytes: ...

    async def end(self) -> bytes: ...

    @property
    def behind(self) -> bool:
        """Whether it holds something back that is due soon: it is called again, without events if
        none come."""
        ...


@dataclass
class NativeWriter:
    """Writes events as they are: with `sse` as server-sent events with ids and names, otherwise as
    JSON lines."""

    audience: Audience
    sse: bool
    types: frozenset[str] = frozenset()
    first: bytes = b""
    behind: bool = False

    def __call__(self, events: Sequence[Logged]) -> bytes:
        parts = [self.first]
        self.first = b""
        for logged in events:
            if self.types and logged.event.type not in self.types:
                continue
            seen = self.audience.of(logged.event)
            if seen is None:
                continue
            json = logged.json if seen is logged.event else line_bytes(seen)
            if self.sse:
                head = b"id: %d\nevent: %b\ndata: " % (logged.seq, seen.type.encode())
                parts += (head, json, b"\n")
            else:
                parts.append(json)
        return b"".join(parts)

    async def write(self, events: Sequence[Logged]) -> bytes:
        return self(events)

    async def end(self) -> bytes:
        return b""


class FoldWriter:
    """Writes the pieces of a fold, each as a `data` line."""

    behind = False

    def __init__(self, fold: Fold[_State], audience: Audience) -> None:
        self._fold, self._audience = fold, audience
        self._state: Any = fold.begin()

    def __call__(self, events: Sequence[Logged]) -> bytes:
        parts: list[bytes] = []
        for logged in events:
            seen = self._audience.of(logged.event)
            if seen is not None:
                self._state, pieces = self._fold.step(self._state, seen)
                parts += map(_data, pieces)
        return b"".join(parts)

    async def write(self, events: Sequence[Logged]) -> bytes:
        return self(events)

    async def end(self) -> bytes:
        return b"".join(map(_data, self._fold.end(self._state)))


def _data(piece: ClientMessage) -> bytes:
    if isinstance(piece.data, str):
        return f"data: {piece.data}\n\n".encode()
    name = b"event: %b\n" % piece.event.encode() if piece.event else b""
    return b"%bdata: %b\n" % (name, line_bytes(piece.data))


@dataclass(kw_only=True)
class StreamAnswer:
    """An ASGI response that follows the log of a turn. `open` is entered while it is sent;
    `on_slow_reader` is called when its reader is closed for slowness."""

    open: Callable[[], AbstractContextManager[LogReader]]
    writer: Writer
    media_type: str
    settings: StreamSettings
    headers: Mapping[str, str]
    on_slow_reader: Callable[[], None]

    _sent_at: float = 0.0
    _sending: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {"content-type": self.media_type, **STREAM_HEADERS, **self.headers}
        await send({"type": "http.response.start", "status": 200, "headers": _raw(headers)})
        self._sent_at = time.monotonic()
        with self.open() as reader:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch, receive, send, tasks.cancel_scope)
                await self._pour(reader, send)
                tasks.cancel_scope.cancel()

    async def _pour(self, reader: LogReader, send: Send) -> None:
        while (events := await self._next(reader)) is not None:
            if body := await self.writer.write(events):
                await self._send(send, body)
        await self._send(send, await self.writer.end(), more=False)

    async def _next(self, reader: LogReader) -> Sequence[Logged] | None:
        if not self.writer.behind:
            return await reader.next()
        with anyio.move_on_after(DUE_S):
            return await reader.next()
        return ()

    async def _send(self, send: Send, body: bytes, *, more: bool = True) -> None:
        self._sending, self._sent_at = True, time.monotonic()
        await send({"type": "http.response.body", "body": body, "more_body": more})
        self._sending = False

    async def _watch(self, receive: Receive, send: Send, scope: anyio.CancelScope) -> None:
        """Cancel when the client leaves, or reads nothing for `slow_s`; send a comment while there
        are no events. It runs beside the stream, so that an event needs no timer."""
        heartbeat_s, slow_s = self.settings.heartbeat_s, self.settings.slow_s
        while True:
            with anyio.move_on_after(min(heartbeat_s, slow_s) / 2):
                while (await receive())["type"] != "http.disconnect":
                    pass
                scope.cancel()
                return
            silent_s = time.monotonic() - self._sent_at
            if self._sending and silent_s > slow_s:
                self.on_slow_reader()
                scope.cancel()  # the server closes a connection whose answer is not complete
                return
            if not self._sending and silent_s >= heartbeat_s:
                await self._send(send, HEARTBEAT if self.media_type == SSE else b"\n")


def _raw(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


async def folded(
    fold: Fold[_State], audience: Audience, log: Sequence[Logged]
) -> list[ClientMessage]:
    """Return the pieces of a whole log."""
    state, pieces = await folded_so_far(fold, audience, log)
    return [*pieces, *fold.end(state)]


async def folded_so_far(
    fold: Fold[_State], audience: Audience, log: Sequence[Logged]
) -> tuple[_State, list[ClientMessage]]:
    """Return the state after the events of a log, and their pieces; also after those that arrive
    meanwhile. Other requests go on in between: a log of many short events takes seconds."""
    state = fold.begin()
    pieces: list[ClientMessage] = []
    done = 0
    while done < len(log):
        if done:
            await anyio.lowlevel.checkpoint()
        for logged in log[done : done + AT_ONCE]:
            done = logged.seq
            if (seen := audience.of(logged.event)) is not None:
                state, more = fold.step(state, seen)
                pieces += more
    return state, pieces
