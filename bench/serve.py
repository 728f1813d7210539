"""The HTTP server beside bare starlette on the same machine: a turn, events of one stream, two
hundred streams at once, idle streams, the end of a server with open streams.

    make bench NAME=serve

Servers are processes of their own. Prints JSON lines {"figure", "value", "unit", "floor",
"floor_is", "ratio"} and nothing else on standard output.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import psutil
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from bench.figures import figure
from groundhook import open_host
from groundhook.host.app.host import Host
from groundhook.host.core.server_settings import StreamSettings
from groundhook.host.core.types.events import Event, StreamEnd, StreamStart, Text
from groundhook.host.dialects.audience import Audience
from groundhook.host.server.sse import SSE, NativeWriter, StreamAnswer
from groundhook.host.server.turns import Ask, Turns, open_turns

ROUNDS = 300
STREAMS = 200
EVENTS_A_SECOND = 50
SECONDS = 4
IDLE = 1000
FIRST_IDLE = 200  # whose memory is partly what was free before
LONG = 240_000  # characters of a long answer, six in an event
BLOCK = b'id: 1\nevent: text\ndata: {"turn_id":"t_000000000000","at_ms":1,"delta":"abcdef"}\n\n'
KEY = "k" * 40
FILES = {
    "agent/agent.yml": json.dumps(
        {
            "server": {
                "auth": {"keys": [{"name": "bench", "key": KEY, "user": "bench"}]},
                "limits": {
                    "turns_per_minute": 10**6,
                    "requests_per_minute": 10**6,
                    "turns_at_once": 10**4,
                    "turns_in_all": 10**4,
                    "streams_in_all": 10**4,
                },
                "streams": {"log_kb": 2**16},
                "drain_s": 0,
            }
        }
    ),
    "connectors/short.conn.yao": (
        '{"type": "scripted", "options": {"script": [{"text": "Yes, it is so.", "times": 0}]}}'
    ),
    "connectors/long.conn.yao": json.dumps(
        {"type": "scripted", "options": {"script": [{"text": "abcdef" * (LONG // 6), "times": 0}]}}
    ),
    "connectors/late.conn.yao": (
        '{"type": "scripted", "options":'
        ' {"script": [{"text": "!", "delay_ms": 3600000, "times": 0}]}}'
    ),
    **{
        f"assistants/{name}/package.yao": json.dumps({"name": name, "connector": name})
        for name in ("short", "long", "late")
    },
}


# ---- servers


async def bare_post(request: Request) -> Response:
    await request.json()
    return Response(b"{}", media_type="application/json")


async def bare_stream(request: Request) -> Response:
    """`n` blocks, `joined` together in a write."""
    n, joined = (int(request.query_params[name]) for name in ("n", "joined"))

    async def blocks() -> AsyncIterator[bytes]:
        for _ in range(n // joined):
            yield BLOCK * joined

    return StreamingResponse(blocks(), media_type="text/event-stream")


def moment() -> str:
    return f"{time.monotonic():.6f}"


async def bare_ticks(request: Request) -> Response:
    async def ticks() -> AsyncIterator[bytes]:
        for _ in range(EVENTS_A_SECOND * SECONDS):
            await anyio.sleep(1 / EVENTS_A_SECOND)
            yield f'event: text\ndata: {{"delta":"{moment()}"}}\n\n'.encode()

    return StreamingResponse(ticks(), media_type="text/event-stream")


async def bare_idle(request: Request) -> Response:
    async def nothing() -> AsyncIterator[bytes]:
        yield b": \n\n"
        await anyio.sleep(3600)

    return StreamingResponse(nothing(), media_type="text/event-stream")


@asynccontextmanager
async def ticking(host: Host) -> AsyncIterator[AsyncIterator[Event]]:
    async def events() -> AsyncIterator[Event]:
        turn = f"t_{time.monotonic_ns()}"
        yield StreamStart(assistant_id="").stamped(turn, 0)
        for _ in range(EVENTS_A_SECOND * SECONDS):
            await anyio.sleep(1 / EVENTS_A_SECOND)
            yield Text(delta=moment()).stamped(turn, 0)
        yield StreamEnd().stamped(turn, 0)

    yield events()


async def our_ticks(request: Request) -> ASGIApp:
    """The same ticks through a pump, a log and a reader."""
    turns: Turns = request.state.turns
    running = await turns.begin(Ask(owner="bench", assistant_id=""), ticking, ExitStack())
    return StreamAnswer(
        open=lambda: running.reader(0, turns.left),
        writer=NativeWriter(Audience(), sse=True),
        media_type=SSE,
        settings=turns.settings,
        headers={},
    )


class _Route:
    def __init__(self, handler: Any) -> None:
        self._handler = handler

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        answer = await self._handler(Request(scope, receive, send))
        await answer(scope, receive, send)


def bare_app() -> Starlette:
    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        settings = StreamSettings()
        async with open_turns(cast(Host, None), settings, lambda _: None) as turns:
            yield {"turns": turns}

    routes = [
        Route("/post", bare_post, methods=["POST"]),
        Route("/stream", bare_stream),
        Route("/ticks", bare_ticks),
        Route("/idle", bare_idle),
        Route("/ours", _Route(our_ticks)),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


@contextmanager
def started(*command: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server that prints the line with its port."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process, int(json.loads(process.stdout.readline())["url"].rpartition(":")[2])
        finally:
            process.kill()


def serve_bare() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        print(json.dumps({"url": f"http://127.0.0.1:{sock.getsockname()[1]}"}), flush=True)
        config = uvicorn.Config(bare_app(), access_log=False, log_level="critical", http="h11")
        uvicorn.Server(config).run([sock])


# ---- clients


def request(method: str, path: str, body: Any = None, accept: str = "application/json") -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
        f"Accept: {accept}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n"
    )
    return f"{head}\r\n".encode() + content


async def answered(port: int, raw: bytes, rounds: int) -> list[float]:
    """Milliseconds of each request over one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        writer.write(raw)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        await reader.readexactly(length)
        taken.append((time.perf_counter() - began) * 1000)
    writer.close()
    return taken


async def stream(port: int, raw: bytes) -> bytes:
    """The body of a stream, to its end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(raw)
    received = bytearray()
    while not received.endswith(b"0\r\n\r\n") and (part := await reader.read(1 << 18)):
        received += part
    writer.close()
    return bytes(received)


async def lateness(port: int, path: str, late: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request("GET", path, accept="text/event-stream"))
    async for line in reader:
        if b'"delta":"' in line:
            made = float(line.partition(b'"delta":"')[2].split(b'"')[0])
            late.append((time.monotonic() - made) * 1000)
        elif line == b"0\r\n":
            break
    writer.close()


async def p99(port: int, path: str) -> float:
    late: list[float] = []
    async with anyio.create_task_group() as tasks:
        for _ in range(STREAMS):
            tasks.start_soon(lateness, port, path, late)
    return statistics.quantiles(late, n=100)[98]


async def held(port: int, raw: bytes, count: int) -> list[asyncio.StreamWriter]:
    """Connections whose stream has begun."""
    writers = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(raw)
        await reader.readuntil(b"\r\n\r\n")
        writers.append(writer)
    return writers


# ---- figures


async def measure(app: Path, ours: tuple[Any, int], bare: tuple[Any, int]) -> None:
    (process, port), (bare_process, bare_port) = ours, bare
    ask = {"assistant": "short", "text": "Is it so?"}
    post = request("POST", "/api/turns", ask)
    await answered(port, post, 30)
    over_http = statistics.median(await answered(port, post, ROUNDS))
    bare_ms = statistics.median(await answered(bare_port, request("POST", "/post", ask), ROUNDS))
    alone = await in_process(app)
    figure("a turn over HTTP, p50", over_http, "ms", alone, "the same in process")
    figure("a turn over HTTP: what HTTP adds, p50", over_http - alone, "ms", bare_ms, "bare POST")

    whole = json.loads((await body_of(port, {**ask, "assistant": "long"})).decode())
    turn = request("GET", f"/api/turns/{whole['turn_id']}/events", accept="text/event-stream")
    began = time.perf_counter()
    received = await stream(port, turn)
    events = received.count(b"\nevent: ")
    rate = events / (time.perf_counter() - began)
    floors = []
    for joined in (1, 16):
        began = time.perf_counter()
        await stream(bare_port, request("GET", f"/stream?n={events}&joined={joined}"))
        floors.append(events / (time.perf_counter() - began))
    figure("events of one stream", rate, "1/s", floors[1], "bare starlette, 16 in a write")
    figure("events of one stream, again", rate, "1/s", floors[0], "bare starlette, one by one")

    bare_p99, our_p99 = await p99(bare_port, "/ticks"), await p99(bare_port, "/ours")
    name = f"{STREAMS} streams of {EVENTS_A_SECOND} events/s: made to read, p99"
    figure(name, our_p99, "ms", bare_p99, "bare starlette")

    idle = request("POST", "/api/turns", {**ask, "assistant": "late"}, "text/event-stream")
    each = await memory_of_each(process, port, idle)
    floor = await memory_of_each(bare_process, bare_port, request("GET", "/idle"))
    figure("an idle stream and its turn", each, "kB", floor, "a stream of bare starlette")

    writers = await held(port, idle, STREAMS)
    began = time.perf_counter()
    process.send_signal(signal.SIGTERM)
    await anyio.to_thread.run_sync(process.wait)
    figure(f"SIGTERM with {STREAMS} streams", time.perf_counter() - began, "s")
    for writer in writers:
        writer.close()


async def memory_of_each(process: Any, port: int, raw: bytes) -> float:
    family = psutil.Process(process.pid)
    writers = await held(port, raw, FIRST_IDLE)
    before = family.memory_info().rss
    writers += await held(port, raw, IDLE)
    each = (family.memory_info().rss - before) / IDLE / 1000
    for writer in writers:
        writer.close()
    return each


async def body_of(port: int, ask: Any) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request("POST", "/api/turns", ask))
    head = await reader.readuntil(b"\r\n\r\n")
    body = await reader.readexactly(
        int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    )
    writer.close()
    return body


async def in_process(app: Path) -> float:
    """p50 of the same turn without a server, in milliseconds."""
    taken = []
    async with open_host(app, environment={}) as host:
        for _ in range(30 + ROUNDS):
            began = time.perf_counter()
            async with host.stream("short", "Is it so?") as events:
                async for _event in events:
                    pass
            taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken[30:])


def main() -> None:
    groundhook = str(Path(sys.executable).parent / "groundhook")
    with tempfile.TemporaryDirectory() as folder:
        for name, text in FILES.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        ours = (groundhook, "serve", "--app", folder, "--port", "0", "--json")
        with (
            started(*ours) as ours_at,
            started(sys.executable, "-m", "bench.serve", "bare") as bare,
        ):
            anyio.run(measure, Path(folder), ours_at, bare)


if __name__ == "__main__":
    serve_bare() if "bare" in sys.argv else main()
