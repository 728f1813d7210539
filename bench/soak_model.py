"""A language model's endpoint for soaks, in OpenAI's protocol: it answers in pieces that carry the
time, or fails in the way that the question names.

    async with endpoint() as port: ...

Endpoints are known to fail in these ways: refusals, limits, overflows, connections that end early,
silence, answers that are not streams.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

WORDS = 25
WORD_S = 0.02
STALL_S = 2.0  # longer than the timeout of the soak's connector
STATUSES = {"400": 400, "401": 401, "404": 404, "429": 429, "500": 500, "503": 503}
WAYS = (
    *STATUSES,
    "overflow",  # the context is too long
    "page",  # a page instead of a stream
    "refused",  # the connection is closed before an answer
    "cut",  # closed in the middle
    "garbled",
    "error",  # an error inside the stream
    "empty",  # a stream without text
    "endless",  # a piece of 200 kB
    "silent",  # nothing until the client gives up
    "stalled",  # silence in the middle
    "unfinished",  # no reason at the end
    "late",  # it works, after a pause
)
_WAY = re.compile(r"\[(\w+)\]")


def way_of(body: bytes) -> str:
    """Return the way that the last message names; "" for a good answer."""
    messages = json.loads(body)["messages"]
    found = _WAY.findall(str(messages[-1]["content"]))
    return found[-1] if found else ""


def moment() -> str:
    """Return the time on a clock that all processes of the machine share."""
    return f"@{time.monotonic():.6f} "


def piece(text: str | None, finish: str | None = None) -> bytes:
    """Return one event of the stream."""
    choice = {
        "index": 0,
        "delta": {} if text is None else {"content": text},
        "finish_reason": finish,
    }
    chunk = {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "soak",
        "choices": [choice],
    }
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def whole(status: int, body: Any, content_type: str = "application/json") -> bytes:
    """Return a whole answer."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\n"
    return f"{head}Content-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode() + content


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def at_once(way: str) -> bytes | None:
    """Return the whole answer of a way that streams nothing; None for the others."""
    if way in STATUSES:
        error = {"message": f"failing with {way}", "code": way}
        return whole(STATUSES[way], {"error": error})
    if way == "overflow":
        error = {"message": "maximum context length exceeded", "code": "context_length_exceeded"}
        return whole(400, {"error": error})
    if way == "page":
        return whole(200, b"<html>Please sign in</html>", "text/html")
    return b"" if way == "refused" else None


async def stream(way: str, writer: asyncio.StreamWriter) -> None:
    """Send a stream that ends well, or in the way, or when the client leaves."""
    write = writer.write
    if way == "late":
        await asyncio.sleep(STALL_S / 2)
    write(STREAM)
    if way == "silent":
        await asyncio.sleep(STALL_S * 5)
    for n in range(0 if way == "empty" else WORDS):
        await asyncio.sleep(WORD_S)
        if writer.transport.is_closing():
            return
        write(piece(moment()))
        if n == WORDS // 2:
            if way == "stalled":
                await asyncio.sleep(STALL_S * 5)
            if way == "endless":
                write(piece("x" * 200_000))
            if way == "garbled":
                write(b"data: {not json\n\n")
            if way == "error":
                write(b'data: {"error": {"message": "overloaded", "code": "overloaded"}}\n\n')
            if way in ("cut", "garbled", "error"):
                return
    if way != "unfinished":
        write(piece(None, "stop"))
        write(b"data: [DONE]\n\n")


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request."""
    gone = (OSError, asyncio.IncompleteReadError, asyncio.CancelledError)  # the last at the end
    with suppress(*gone):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        way = way_of(await reader.readexactly(length))
        if (answer := at_once(way)) is not None:
            writer.write(answer)
        else:
            await stream(way, writer)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def endpoint() -> AsyncIterator[int]:
    """Serve on loopback; the port."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1000)
    async with server:
        yield server.sockets[0].getsockname()[1]
