"""The HTTP server and bare starlette on the same machine: the first turn, a turn, events of one
stream, two hundred streams at once, idle streams, memory after thousands of turns, the end of a
server with open streams; and its parts without HTTP.

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
from bench.serve_parts import EVENTS, measure_parts
from groundhook import open_host
from groundhook.core.types.events import Event

Send = Callable[[str], AbstractAsyncContextManager[AsyncIterator[Event]]]

ROUNDS = 20  # of what is compared
TURNS = 20  # of each in a round
STREAMS = 200
STREAM_ROUNDS = 5
IDLE = 1000
MANY_TURNS = 5000  # in a row
FIRST_TURNS = 500  # whose memory is partly caches and what was free before
KEEP_S = 1  # of turns that are over, where memory is measured
SETTLED_S = 60.0  # longest wait for memory and descriptors to be given back
FIRST_IDLE = 200  # whose memory is partly what was free before
LONG = 240_000  # characters of a long answer, six in an event
END_OF_HEAD = b"\r\n\r\n"
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
            },
            "turns": {"at_once": 10**4},  # so that none of the idle ones only waits for its begin
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
    "connectors/logged.conn.yao": json.dumps(
        {"type": "scripted", "options": {"script": [{"text": "abcdef" * EVENTS, "times": 0}]}}
    ),
    **{
        f"assistants/{name}/package.yao": json.dumps({"name": name, "connector": name})
        for name in ("short", "long", "late", "logged")
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


def turn_of(head: bytes) -> str:
    """The id of the turn that an answer is about."""
    return head.partition(b"x-groundhook-turn: ")[2].split(b"\r\n")[0].decode()


async def head_of(port: int, raw: bytes) -> bytes:
    """The head of one answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(raw)
    head = await reader.readuntil(END_OF_HEAD)
    writer.close()
    return head


async def answered(port: int, raw: bytes, rounds: int) -> list[float]:
    """Milliseconds of each request over one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        writer.write(raw)
        head = await reader.readuntil(END_OF_HEAD)
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
        await reader.readuntil(END_OF_HEAD)
        writers.append(writer)
    return writers


# ---- figures


async def measure(app: Path, ours: tuple[Any, int], bare: tuple[Any, int]) -> None:
    await first_turn(ours[1])
    await turns(app, ours, bare)
    await kept_turns(app)
    await one_stream(ours[1], bare[1])
    await many_streams(bare)
    await clients_that_leave(ours[1])
    await idle_streams(ours, bare)
    await ended(ours)
    await measure_parts(app)


async def ready(port: int) -> None:
    while b" 200 " not in await head_of(port, request("GET", "/readyz")):  # noqa: ASYNC110
        await anyio.sleep(0.05)


async def first_turn(port: int) -> None:
    """The first turn of a server that is ready, which no turn went before."""
    await ready(port)
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
    p95 = [statistics.quantiles(each, n=20)[-1] for each in taken.values()]
    figure("a turn over HTTP: what HTTP adds, p95", p95[0] - p95[2], "ms", p95[1], "bare POST")
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
    ask = request("POST", "/api/turns", {"assistant": "long", "text": "Is it so?"})
    whole = json.loads(await body_of(port, ask))
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


async def clients_that_leave(port: int) -> None:
    """How soon a turn ends whose only reader, a client of OpenAI's API, has left."""
    ask = {"model": "late", "messages": [{"role": "user", "content": "?"}], "stream": True}
    taken = []
    for _ in range(TURNS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request("POST", "/v1/chat/completions", ask, "text/event-stream"))
        path = f"/api/turns/{turn_of(await reader.readuntil(END_OF_HEAD))}"
        began = time.perf_counter()
        writer.close()
        while b'"state":"running"' in await body_of(port, request("GET", path)):
            pass
        taken.append((time.perf_counter() - began) * 1000)
    figure("a client of OpenAI's API leaves: its turn ends, p50", statistics.median(taken), "ms")


async def idle_streams(ours: tuple[Any, int], bare: tuple[Any, int]) -> None:
    each = await memory_of_each(*ours, LATE)
    floor = await memory_of_each(*bare, request("GET", "/idle"))
    figure("an idle stream and its turn", each, "kB", floor, "a stream of bare starlette")


async def many_readers(bare: tuple[Any, int], process: Any, port: int) -> None:
    """Readers of one turn, at a server that has had no others."""
    await ready(port)
    floor = await memory_of_each(*bare, request("GET", "/idle"))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(LATE)
    path = f"/api/turns/{turn_of(await reader.readuntil(END_OF_HEAD))}/events"
    follow = request("GET", path, accept="text/event-stream")
    each = await memory_of_each(process, port, follow)
    figure(f"one of {IDLE:,} readers of a turn", each, "kB", floor, "a stream of bare starlette")
    writer.close()


async def after_many(process: Any, port: int) -> None:
    """Memory and descriptors of a server after turns and streams that are over; it forgets a turn
    `KEEP_S` after its end."""
    await ready(port)
    ask = request("POST", "/api/turns", {"assistant": "short", "text": "Is it so?"})
    server = psutil.Process(process.pid)
    await answered(port, ask, FIRST_TURNS)
    writers = await held(port, LATE, FIRST_IDLE)
    await left(server, writers)
    memory, descriptors = server.memory_info().rss, server.num_fds()
    await answered(port, ask, MANY_TURNS)
    await left(server, [])
    grown = (server.memory_info().rss - memory) / 1e6
    figure(f"memory more after {MANY_TURNS:,} turns in a row", grown, "MB")
    await left(server, await held(port, LATE, IDLE))
    memory = server.memory_info().rss
    await left(server, await held(port, LATE, IDLE))
    grown = (server.memory_info().rss - memory) / 1e6
    figure(f"memory more after {IDLE:,} idle streams were left for the second time", grown, "MB")
    figure(" descriptors more", server.num_fds() - descriptors, "")


async def left(server: psutil.Process, writers: list[asyncio.StreamWriter]) -> None:
    """Leave streams, and wait until the server has forgotten their turns."""
    before = server.num_fds() - len(writers)
    for writer in writers:
        writer.close()
    with anyio.move_on_after(SETTLED_S):
        while server.num_fds() > before:  # noqa: ASYNC110 - of another process
            await anyio.sleep(0.1)
    await anyio.sleep(3 * KEEP_S)


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


async def body_of(port: int, raw: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(raw)
    head = await reader.readuntil(END_OF_HEAD)
    body = await reader.readexactly(
        int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    )
    writer.close()
    return body


def written(folder: str, files: dict[str, str]) -> tuple[str, ...]:
    """Write an app; return the command that serves it."""
    for name, text in files.items():
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    groundhook = str(Path(sys.executable).parent / "groundhook")
    return (groundhook, "serve", "--app", folder, "--port", "0", "--json")


def main() -> None:
    agent = json.loads(FILES["agent/agent.yml"])
    agent["server"]["streams"].update(keep_s=KEEP_S, linger_s=0)
    forgetful = {
        **FILES,
        "agent/agent.yml": json.dumps(agent),
        # The scripted connector, which is for tests, keeps every call.
        "assistants/short/package.yao": '{"name": "short", "connector": "extractive"}',
    }
    with tempfile.TemporaryDirectory() as folder:
        with (
            started(*written(folder, FILES)) as ours,
            started(sys.executable, "-m", "bench.bare_server") as bare,
        ):
            anyio.run(measure, Path(folder), ours, bare)
        with (
            started(*written(f"{folder}/read", FILES)) as ours,
            started(sys.executable, "-m", "bench.bare_server") as bare,
        ):
            anyio.run(many_readers, bare, *ours)
        with started(*written(f"{folder}/forgetful", forgetful)) as ours:
            anyio.run(after_many, *ours)


if __name__ == "__main__":
    main()
