"""The HTTP server beside bare starlette on the same machine: the first turn, a turn, events of one
stream, two hundred streams at once, idle streams, the end of a server with open streams.

    make bench NAME=serve

Servers are processes of their own. What is compared takes turns, so that other work of the machine
burdens both; it distorts CPU time, and the fastest of many, the least. Prints JSON lines {"figure",
"value", "unit", "floor", "floor_is", "ratio"} and nothing else on standard output.
"""

from __future__ import annotations

import asyncio
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import psutil

from bench.bare_server import EVENTS_A_SECOND, SECONDS
from bench.figures import figure
from groundhook import open_host
from groundhook.host.core.types.events import Event

Send = Callable[[str], AbstractAsyncContextManager[AsyncIterator[Event]]]

ROUNDS = 20  # of what is compared
TURNS = 20  # of each in a round
STREAMS = 200
STREAM_ROUNDS = 5
IDLE = 1000
FIRST_IDLE = 200  # whose memory is partly what was free before
LONG = 240_000  # characters of a long answer, six in an event
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
    "assistants/hooked/package.yao": json.dumps({"name": "hooked", "connector": "short"}),
    "assistants/hooked/index.ts": "function Create(ctx: any, messages: any[]) { return {}; }\n",
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


# ---- clients


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


def request(method: str, path: str, body: Any = None, accept: str = "application/json") -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
        f"Accept: {accept}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n"
    )
    return f"{head}\r\n".encode() + content


LATE = request("POST", "/api/turns", {"assistant": "late", "text": "?"}, "text/event-stream")


async def head_of(port: int, raw: bytes) -> bytes:
    """The head of one answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(raw)
    head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    return head


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


async def first_events(port: int, raw: bytes, rounds: int) -> list[float]:
    """Milliseconds from each request to the first event, over one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        writer.write(raw)
        await reader.readuntil(b"event: ")
        taken.append((time.perf_counter() - began) * 1000)
        await reader.readuntil(b"\r\n0\r\n\r\n")
    writer.close()
    return taken


async def stream(port: int, raw: bytes) -> bytes:
    """The body of a stream, to its end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(raw)
    received = bytearray()
    while not received.endswith(b"\r\n0\r\n\r\n") and (part := await reader.read(1 << 18)):
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


async def streamed(process: Any, port: int, path: str, late: list[float]) -> float:
    """CPU seconds of a server that sends two hundred streams; how late each event is goes to
    `late`."""
    before = cpu_s(process)
    async with anyio.create_task_group() as tasks:
        for _ in range(STREAMS):
            tasks.start_soon(lateness, port, path, late)
    return cpu_s(process) - before


def cpu_s(process: Any) -> float:
    times = psutil.Process(process.pid).cpu_times()
    return float(times.user + times.system)


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
    await first_turn(ours[1])
    await turns(app, ours, bare)
    await kept_turns(app)
    await one_stream(ours[1], bare[1])
    await many_streams(bare)
    await idle_streams(ours, bare)
    await ended(ours)


async def first_turn(port: int) -> None:
    """The first turn of a server that is ready, which no turn went before."""
    while b" 200 " not in await head_of(port, request("GET", "/readyz")):  # noqa: ASYNC110
        await anyio.sleep(0.05)
    ask = request("POST", "/api/turns", {"assistant": "hooked", "text": "Is it so?"})
    first, *later = await answered(port, ask, 20)
    figure("the first turn with a hook", first, "ms", statistics.median(later), "later ones, p50")


async def turns(app: Path, ours: tuple[Any, int], bare: tuple[Any, int]) -> None:
    (process, port), (bare_process, bare_port) = ours, bare
    ask = {"assistant": "short", "text": "Is it so?"}
    posts = {"ours": request("POST", "/api/turns", ask), "bare": request("POST", "/post", ask)}
    watched = request("POST", "/api/turns", ask, "text/event-stream")
    taken: dict[str, list[float]] = {"ours": [], "bare": [], "alone": []}
    first: list[float] = []
    cpu = dict.fromkeys(taken, 0.0)
    async with open_host(app, environment={}, tune_gc=True) as host:
        for n in range(ROUNDS + 1):
            if n == 1:  # the first one warms up
                taken, cpu = {name: [] for name in taken}, dict.fromkeys(cpu, 0.0)
            for name, at, to in (("ours", process, port), ("bare", bare_process, bare_port)):
                before = cpu_s(at)
                taken[name] += await answered(to, posts[name], TURNS)
                cpu[name] += cpu_s(at) - before
            before = time.process_time()
            taken["alone"] += await in_process(partial(host.stream, "short"))
            cpu["alone"] += time.process_time() - before
            first += await first_events(port, watched, TURNS)
    over_http, bare_ms, alone = (statistics.median(each) for each in taken.values())
    figure("a turn over HTTP, p50", over_http, "ms", alone, "the same in process")
    figure("a turn over HTTP: what HTTP adds, p50", over_http - alone, "ms", bare_ms, "bare POST")
    fastest = [min(each) for each in taken.values()]
    figure(" the fastest of each", fastest[0] - fastest[2], "ms", fastest[1], "bare POST")
    each = {name: seconds * 1000 / ROUNDS / TURNS for name, seconds in cpu.items()}
    figure(" CPU time, mean", each["ours"] - each["alone"], "ms", each["bare"], "bare POST")
    figure("question to first event, p50", statistics.median(first), "ms", bare_ms, "bare POST")
    figure(" the fastest", min(first), "ms", fastest[1], "bare POST, the fastest")


async def kept_turns(app: Path) -> None:
    """The same turn in a kept chat, a new one in each round."""
    kept: list[float] = []
    alone: list[float] = []
    async with open_host(app, environment={}, tune_gc=True) as host:
        for _ in range(ROUNDS):
            async with host.chat("short", identity={"user_id": "bench"}) as chat:
                kept += await in_process(chat.send)
            alone += await in_process(partial(host.stream, "short"))
    middle = [statistics.median(each) for each in (kept, alone)]
    figure(
        "a turn kept: what the store adds, p50",
        middle[0] - middle[1],
        "ms",
        middle[1],
        "the turn alone",
    )


async def in_process(send: Send) -> list[float]:
    """Milliseconds of each turn without a server."""
    taken = []
    for _ in range(TURNS):
        began = time.perf_counter()
        async with send("Is it so?") as events:
            async for _event in events:
                pass
        taken.append((time.perf_counter() - began) * 1000)
    return taken


async def one_stream(port: int, bare_port: int) -> None:
    whole = json.loads(await body_of(port, {"assistant": "long", "text": "Is it so?"}))
    turn = request("GET", f"/api/turns/{whole['turn_id']}/events", accept="text/event-stream")
    events = (await stream(port, turn)).count(b"\nevent: ")
    joined, single = (request("GET", f"/stream?n={events}&joined={n}") for n in (16, 1))
    best = dict.fromkeys(("ours", "joined", "single"), 0.0)
    asked = ((port, turn), (bare_port, joined), (bare_port, single))
    for _ in range(STREAM_ROUNDS):
        for name, (to, raw) in zip(best, asked, strict=True):
            began = time.perf_counter()
            received = await stream(to, raw)
            taken = time.perf_counter() - began
            assert received.count(b"\nevent: ") > events - 16, "the stream is not whole"
            best[name] = max(best[name], events / taken)
    name, rate = "events of one stream", best["ours"]
    figure(name, rate, "1/s", best["joined"], "bare starlette, 16 in a write")
    figure(f"{name}, again", rate, "1/s", best["single"], "bare starlette, one by one")


async def many_streams(bare: tuple[Any, int]) -> None:
    process, port = bare
    late: dict[str, list[float]] = {"/ours": [], "/ticks": []}
    cpu = dict.fromkeys(late, 0.0)
    for _ in range(STREAM_ROUNDS):
        for path in late:
            cpu[path] += await streamed(process, port, path, late[path])
    ours, floor = (statistics.quantiles(each, n=100) for each in late.values())
    name = f"{STREAMS} streams of {EVENTS_A_SECOND} events/s: made to read"
    for percent in (50, 99):
        at = percent - 1
        figure(f"{name}, p{percent}", ours[at], "ms", floor[at], "bare starlette")
    events = STREAMS * EVENTS_A_SECOND * SECONDS * STREAM_ROUNDS / 1e6
    figure(" CPU time of an event", cpu["/ours"] / events, "us", cpu["/ticks"] / events, "the same")


async def idle_streams(ours: tuple[Any, int], bare: tuple[Any, int]) -> None:
    each = await memory_of_each(*ours, LATE)
    floor = await memory_of_each(*bare, request("GET", "/idle"))
    figure("an idle stream and its turn", each, "kB", floor, "a stream of bare starlette")


async def ended(ours: tuple[Any, int]) -> None:
    process, port = ours
    writers = await held(port, LATE, STREAMS)
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
            started(sys.executable, "-m", "bench.bare_server") as bare,
        ):
            anyio.run(measure, Path(folder), ours_at, bare)


if __name__ == "__main__":
    main()
