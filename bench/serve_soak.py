"""A server under two hundred readers for ten minutes: turns, chats, cancellations, readers that
leave and come back, hooks, and a model that fails in every known way.

    python -m bench.serve_soak [--seconds 600] [--readers 200] [--log FILE]

All on loopback. Prints JSON lines: memory, tasks, isolates, descriptors and rows `running` of the
server before and after, and how late events are read. The exit code is 1 if something is left.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import psutil
import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bench.figures import figure
from bench.soak_model import STALL_S, WAYS, endpoint
from groundhook.host.server.asgi import ServerArguments, make_app, settings_of
from groundhook.host.server.process import config_of, listen, write_logs

KEY = "k" * 40
FAILS = 0.3  # of the questions
THINKING_S = (4.0, 16.0)  # so that two cores are not always busy
SETTLING_S = 60.0
LONGEST_S = 60.0  # of anything that a reader does
MORE_MB = 40.0  # what caches and allocators may keep
MORE_DESCRIPTORS = 5  # what pools may keep open
LATE = re.compile(rb"@(\d+\.\d{6})")
HOOK = """
function Create(ctx: any, messages: any[]) {
  ctx.Send({ type: "text", props: { content: "One moment. " } });
  if (String(messages[messages.length - 1].content).includes("throw")) throw new Error("no");
  return {};
}
"""


def files(port: int) -> dict[str, str]:
    """The app; its model is at a port."""
    unlimited = {
        "turns_per_minute": 10**6,
        "requests_per_minute": 10**6,
        "turns_at_once": 10**4,
        "turns_in_all": 10**4,
        "streams_in_all": 10**4,
    }
    server = {
        "auth": {"keys": [{"name": "soak", "key": KEY, "acts_for": True}]},
        "limits": unlimited,
        "streams": {"linger_s": 2, "keep_s": 5},
        "drain_s": 0,
    }
    options = {"model": "soak", "host": f"http://127.0.0.1:{port}/v1", "timeout": STALL_S}
    return {
        "agent/agent.yml": json.dumps({"server": server}),
        "connectors/soak.conn.yao": json.dumps({"type": "openai", "options": options}),
        "assistants/plain/package.yao": '{"name": "Plain", "connector": "soak"}',
        "assistants/hooked/package.yao": '{"name": "Hooked", "connector": "soak"}',
        "assistants/hooked/index.ts": HOOK,
    }


# ---- the server's process


def serve(app: Path) -> None:
    """Serve the app, with an address that shows the state of the process."""
    arguments = ServerArguments(folder=app, host="127.0.0.1")
    settings = settings_of(app)
    write_logs(debug=False)

    def made() -> Any:
        starlette = make_app(arguments)
        starlette.router.routes.append(Route("/soak", _state))
        return starlette

    with listen("127.0.0.1", 0) as sock:
        print(sock.getsockname()[1], flush=True)
        config = config_of(arguments, settings)
        config.app = made
        uvicorn.Server(config).run([sock])


async def _state(request: Request) -> JSONResponse:
    process = psutil.Process()
    engine: Any = request.state.serving.host.runtime.hooks._made
    return JSONResponse(
        {
            "memory, MB": process.memory_info().rss / 1e6,
            "tasks": len(asyncio.all_tasks()),
            "isolates": sum(worker.load for worker in engine._pool._workers),
            "descriptors": process.num_fds(),
            "turns": request.state.serving.turns.under_way,
        }
    )


@contextmanager
def started(app: Path, log: Path) -> Iterator[int]:
    """The server as a process; its port."""
    command = [sys.executable, "-m", "bench.serve_soak", "--serve", str(app)]
    with (
        log.open("wb") as kept,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=kept, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()
            process.wait(20)


# ---- readers


@dataclass
class Soak:
    """What two hundred readers share."""

    port: int
    until: float
    model: int = 0  # its port
    late_ms: list[float] = field(default_factory=list)
    bare_ms: list[float] = field(default_factory=list)  # of the model without the server
    done: Counter[str] = field(default_factory=Counter)


class Broken(Exception):
    """An answer that should not be."""


@dataclass
class Reader:
    """One person."""

    soak: Soak
    name: str
    chance: random.Random
    chat: str = ""

    async def run(self) -> None:
        """Do one thing after another, with pauses, until the soak is over."""
        habits = [self.ask] * 5 + [self.talk] * 4 + [self.leave] * 3 + [self.come_back] * 2
        habits += [self.stop, self.complete, self.forget, self.bare]
        await asyncio.sleep(self.chance.uniform(0, THINKING_S[1]))
        while time.monotonic() < self.soak.until:
            habit = self.chance.choice(habits)
            with anyio.fail_after(LONGEST_S):
                await habit()
            self.soak.done[habit.__name__] += 1
            await asyncio.sleep(self.chance.uniform(*THINKING_S))

    async def ask(self) -> None:
        async with self.sent("POST", "/api/turns", self.turn()) as (_, lines):
            await self.read_all(lines)

    async def talk(self) -> None:
        """A question of a chat, or another answer."""
        if not self.chat:
            made = await self.whole("POST", "/api/chats", {"assistant": "plain"})
            self.chat = made["id"]
        again = self.chance.random() < 0.2
        path = f"/api/chats/{self.chat}/{'regenerate' if again else 'turns'}"
        body = {} if again else {"text": self.question()}
        async with self.sent("POST", path, body, fine=(200, 400, 404, 409)) as (_, lines):
            await self.read_all(lines)

    async def leave(self) -> None:
        """A reader that goes in the middle."""
        async with self.sent("POST", "/api/turns", self.turn()) as (_, lines):
            for _ in range(self.chance.randrange(20)):
                await anext(lines, b"")

    async def come_back(self) -> None:
        """A connection that breaks, and goes on behind the last event."""
        async with self.sent("POST", "/api/turns", self.turn()) as (turn, lines):
            last = 0
            for _ in range(self.chance.randrange(20)):
                line = await anext(lines, b"")
                if line.startswith(b"id: "):
                    last = int(line[4:])
        path = f"/api/turns/{turn}/events?after={last}"
        async with self.sent("GET", path, fine=(200, 204, 404)) as (_, lines):
            await self.read_all(lines)

    async def stop(self) -> None:
        async with self.sent("POST", "/api/turns", self.turn()) as (turn, lines):
            path = f"/api/turns/{turn}/stop"  # 404: it was over for longer than `keep_s`
            async with self.sent("POST", path, fine=(200, 202, 404)):
                pass
            await self.read_all(lines)

    async def complete(self) -> None:
        """The same by OpenAI's protocol."""
        messages = [{"role": "user", "content": self.question()}]
        body = {"model": "plain", "messages": messages, "stream": True}
        async with self.sent("POST", "/v1/chat/completions", body) as (_, lines):
            async for line in lines:
                note(line, self.soak.late_ms)

    async def bare(self) -> None:
        """The model's stream without the server: what its pace and this process cost."""
        content = b'{"messages": [{"content": "?"}]}'
        reader, writer = await asyncio.open_connection("127.0.0.1", self.soak.model)
        head = f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n\r\n"
        writer.write(head.encode() + content)
        async for line in reader:
            note(line, self.soak.bare_ms)
        writer.close()

    async def forget(self) -> None:
        """Read the chat, and delete it."""
        chat, self.chat = self.chat, ""
        if chat:
            await self.whole("GET", f"/api/chats/{chat}")
            await self.whole("DELETE", f"/api/chats/{chat}")

    def turn(self) -> dict[str, Any]:
        assistant = "hooked" if self.chance.random() < 0.3 else "plain"
        return {"assistant": assistant, "text": self.question()}

    def question(self) -> str:
        if self.chance.random() > FAILS:
            return "How are you?"
        return f"How are you? [{self.chance.choice(WAYS)}]{self.chance.choice([' throw', ''])}"

    async def read_all(self, lines: AsyncIterator[bytes]) -> None:
        """Read a stream; its last event is `stream_end`."""
        name = b""
        async for line in lines:
            if line.startswith(b"event: "):
                name = line[7:]
            note(line, self.soak.late_ms)
        if name not in (b"stream_end", b""):
            raise Broken(f"a stream ended with {name!r}")

    async def whole(self, method: str, path: str, body: Any = None) -> Any:
        async with self.sent(method, path, body, accept="application/json") as (_, lines):
            text = b"".join([line async for line in lines])
        return json.loads(text) if text else {}

    @asynccontextmanager
    async def sent(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        accept: str = "text/event-stream",
        fine: tuple[int, ...] = (200, 201, 202, 204),
    ) -> AsyncIterator[tuple[str, AsyncIterator[bytes]]]:
        """Send a request on a connection of its own: the turn's id, and the lines of the body."""
        content = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
            f"X-Groundhook-User: {self.name}\r\nAccept: {accept}\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        reader, writer = await asyncio.open_connection("127.0.0.1", self.soak.port, limit=2**24)
        try:
            writer.write(head.encode() + content)
            answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            status = int(answer.split()[1])
            turn = answer.partition("x-groundhook-turn: ")[2].split("\r\n")[0]
            self.soak.done[f"status {status}"] += 1
            if status not in fine:
                raise Broken(f"{method} {path}: {status} {(await reader.read(500))!r}")
            chunked = "transfer-encoding: chunked" in answer.lower()
            yield turn, (_chunks(reader) if chunked else _plain(reader))
        finally:
            writer.close()


def note(line: bytes, late_ms: list[float]) -> None:
    """Note how late the pieces of the model in a line are read."""
    if b'"stream_end"' not in line:  # that has the whole answer, made of what was read before
        late_ms += ((time.monotonic() - float(made)) * 1000 for made in LATE.findall(line))


async def _plain(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    yield await reader.read()


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The lines of a body in chunks, each whole in one chunk."""
    while size := int(await reader.readline(), 16):
        for line in (await reader.readexactly(size + 2)).splitlines():
            yield line


# ---- the soak


async def settled(port: int, done: Callable[[dict[str, float]], bool]) -> dict[str, float]:
    """The state of the server, when `done`, or after a minute."""
    reader = Reader(Soak(port, 0), "nobody", random.Random(0))
    until = time.monotonic() + SETTLING_S
    while True:
        state: dict[str, float] = await reader.whole("GET", "/soak")
        if done(state) or time.monotonic() > until:
            return state
        await asyncio.sleep(0.5)


def rows_running(app: Path) -> int:
    """Turns that the store has as under way."""
    with closing(sqlite3.connect(app / ".groundhook/chats.sqlite")) as db:
        ((count,),) = db.execute("select count(*) from turns where state = 'running'")
    return int(count)


async def warmed(soak: Soak, readers: int) -> None:
    """Let all readers ask at once, so that what is made for good is there before: pools of
    connections and threads, hook workers, the heap of as many turns."""

    async def once(n: int) -> None:
        reader = Reader(soak, f"warm-{n}", random.Random(n))
        first: list[Callable[[], Awaitable[None]]] = [reader.talk, reader.complete, reader.forget]
        for habit in (*first, reader.ask, reader.stop):
            await habit()

    async with anyio.create_task_group() as tasks:
        for n in range(readers):
            tasks.start_soon(once, n)


async def run_readers(soak: Soak, readers: int) -> list[BaseException]:
    """Run the readers until the soak ends. Returns what failed."""
    failures: list[BaseException] = []

    async def run(n: int) -> None:
        try:
            await Reader(soak, f"reader-{n}", random.Random(n)).run()
        except Exception as exc:  # noqa: BLE001 - each is counted and shown
            failures.append(exc)

    async with anyio.create_task_group() as tasks:
        for n in range(readers):
            tasks.start_soon(run, n)
    return failures


def is_idle(state: dict[str, float]) -> bool:
    """Whether no turn runs and no isolate is open."""
    return not state["turns"] and not state["isolates"]


def leaks(before: dict[str, float], after: dict[str, float], running: int) -> list[str]:
    """Return the names of what grew and was not given back."""
    spare = {"tasks": 0, "isolates": 0, "turns": 0, "descriptors": MORE_DESCRIPTORS}
    left = [what for what, more in spare.items() if after[what] > before[what] + more]
    left += ["rows running"] if running else []
    left += ["memory"] if after["memory, MB"] > before["memory, MB"] + MORE_MB else []
    return left


def print_figures(
    before: dict[str, float], after: dict[str, float], running: int, soak: Soak
) -> None:
    """Print the state before and after, what the readers did, and how late the text came."""
    for what in before:
        figure(f"{what} before", before[what], "")
        figure(f"{what} after", after[what], "")
    figure("rows running after", running, "")
    figure("memory grew by", after["memory, MB"] - before["memory, MB"], "MB")
    for what, count in sorted(soak.done.items()):
        figure(what, count, "times")
    cut, bare = (statistics.quantiles(each, n=100) for each in (soak.late_ms, soak.bare_ms))
    for percent in (50, 99):
        name = f"written by the model to read, p{percent}"
        figure(name, cut[percent - 1], "ms", bare[percent - 1], "without the server")


async def soaked(app: Path, port: int, model: int, readers: int, seconds: float) -> bool:
    """Run the readers and print the figures. Returns whether nothing failed and nothing is left."""
    await warmed(Soak(port, 0), readers)
    before = await settled(port, is_idle)
    soak = Soak(port, time.monotonic() + seconds, model)
    failures = await run_readers(soak, readers)
    after = await settled(
        port,
        lambda state: (
            is_idle(state)
            and state["tasks"] <= before["tasks"]
            and state["descriptors"] <= before["descriptors"] + MORE_DESCRIPTORS
        ),
    )
    running = rows_running(app)
    print_figures(before, after, running, soak)
    for failure in failures[:20]:
        print(f"failed: {failure!r}", file=sys.stderr)
    left = leaks(before, after, running)
    print(f"left: {', '.join(left) or 'nothing'}; failures: {len(failures)}", file=sys.stderr)
    return not left and not failures


async def soak(readers: int, seconds: float, log: Path) -> bool:
    """Start the model and the server, and run the readers."""
    async with endpoint() as model:
        with tempfile.TemporaryDirectory() as folder:
            app = Path(folder)
            for name, text in files(model).items():
                path = app / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            with started(app, log) as port:
                return await soaked(app, port, model, readers, seconds)


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--seconds", type=float, default=600)
    arguments.add_argument("--readers", type=int, default=200)
    arguments.add_argument("--log", type=Path, default=os.devnull, help="what the server logs")
    arguments.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.serve:
        with suppress(KeyboardInterrupt):
            serve(given.serve)
    else:
        sys.exit(0 if asyncio.run(soak(given.readers, given.seconds, given.log)) else 1)


if __name__ == "__main__":
    main()
