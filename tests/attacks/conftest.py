"""An arena: one host with a hostile assistant and a neighbour, and what must be true after every
attack.

While an attack runs the neighbour's turns go on, one after the other, on the same two workers, and
the event loop computes for no long time in one go. Afterwards processes, open files and memory must
be what they were.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from textwrap import dedent
from typing import Any

import anyio
import psutil
import pytest

from groundhook import Host, open_host
from groundhook.core.ports import Handler
from groundhook.core.types.connector_spec import (
    ConnectorOptions,
    ConnectorSpec,
)
from groundhook.core.types.events import Event, Failed, StreamEnd
from groundhook.core.types.search import SearchType
from groundhook.core.types.turn import Identity
from groundhook.host.llm.scripted import ScriptedConnector
from groundhook.host.testing.canned import CannedSource, canned_item

LIMITS = {
    "cpu_ms": 200,
    "wall_ms": 20_000,  # also on a busy machine the processor time is reached first
    "call_ms": 20_000,
    "heap_mb": 48,
    "memory_mb": 128,
    "calls": 200,
    "argument_kb": 64,
    "result_kb": 256,
}
# For what is to reach V8's own limits.
WIDE = {**LIMITS, "cpu_ms": 20000, "heap_mb": 1024, "memory_mb": 1200}
# For what is to take long and compute little.
HASTY = {**LIMITS, "wall_ms": 3000, "call_ms": 700}
NEIGHBOUR = """
function Create(ctx, messages) {
  const question = messages[messages.length - 1].content;
  return { metadata: { heard: ctx.search.KB(question).items.length, leaked: typeof globalThis.leaked } };
}
function Next(ctx, payload) { return { data: payload.completion.content }; }
"""
LONGEST_STOP = 2.0  # seconds that the event loop computes in one go
MORE_HOST, MORE_WORKERS = 96, 160  # MB of memory that may be kept, in allocators and not in values


@dataclass(frozen=True)
class Fate:
    """What came of a hostile turn."""

    events: Sequence[Event]

    @property
    def end(self) -> StreamEnd:
        assert isinstance(self.events[-1], StreamEnd)
        return self.events[-1]

    @property
    def errors(self) -> list[Failed]:
        return [event for event in self.events if isinstance(event, Failed)]

    @property
    def code(self) -> str:
        """Of the one error there is, empty when there is none."""
        assert len(self.errors) < 2, self.errors
        return self.errors[0].code if self.errors else ""

    @property
    def message(self) -> str:
        return self.errors[0].message if self.errors else ""

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata that the hook returned."""
        assert self.errors == []
        return self.end.metadata

    def logged(self) -> list[str]:
        nodes = [event.node for event in self.events if event.type == "trace"]
        return [node.label for node in nodes if node.type == "log" and node.status == "completed"]


@dataclass
class Arena:
    host: Host
    app: Path
    kb: CannedSource
    web: CannedSource  # searched by hostile hooks only
    numbers: count[int] = field(default_factory=count)
    stop: float = 0.0  # the most that the event loop computed in one go, in seconds

    async def attack(
        self, source: str, *, assistant: str = "hostile", identity: Identity | None = None
    ) -> Fate:
        """Run `source` as the hostile assistant's hook while the neighbour works; then see that all
        is as it was."""
        before = await self.before(assistant)
        self.write(source, assistant)
        done = anyio.Event()
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(self._live, done)
            tasks.start_soon(self._feel, done)
            with anyio.fail_after(60):
                fate = Fate(await self.turn(assistant, "hello", identity))
            done.set()
        assert [event.type for event in fate.events][-1] == "stream_end"
        assert fate.code != "internal", fate.errors
        for event in fate.events:
            event.model_dump_json()  # whatever a hook says can be sent to a client
        await self.peace(before)
        return fate

    async def before(self, assistant: str = "hostile") -> Held:
        """How it is before an attack, with the compiler running, as every attack needs it."""
        for source in (self.kb, self.web):
            source.requests.clear()
            source.scopes.clear()
        self.write("function Create() {}", assistant)
        await self.turn(assistant, "warm")
        await self.neighbour()
        self.stop = 0.0
        return held()

    async def peace(self, before: Held) -> None:
        """The host is alive, the neighbour was served, and nothing is left behind."""
        await self.neighbour()
        assert self.stop < LONGEST_STOP
        now = held()
        with anyio.move_on_after(60):
            # One look decides: the next may find a worker that was killed and had not yet ended.
            while not now.is_as(before):
                await anyio.sleep(0.05)  # what the machine runs takes 6 ms to list
                now = held()
        assert now.is_as(before), (before, now)

    async def turn(
        self, assistant: str, question: str, identity: Identity | None = None
    ) -> list[Event]:
        async with self.host.stream(assistant, question, identity=identity) as events:
            return [event async for event in events]

    async def neighbour(self) -> None:
        """One turn of the neighbour's."""
        with anyio.fail_after(60):
            fate = Fate(await self.turn("neighbour", "anything new?"))
        assert fate.errors == []
        assert fate.end.metadata == {"heard": 1, "leaked": "undefined"}
        assert fate.end.data == fate.end.content != ""

    def write(self, source: str, assistant: str = "hostile", name: str = "index.ts") -> Path:
        path = self.app / "assistants" / assistant / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"// @ts-nocheck {next(self.numbers)}\n{dedent(source)}", encoding="utf-8")
        return path

    async def _live(self, done: anyio.Event) -> None:
        while not done.is_set():
            await self.neighbour()

    async def _feel(self, done: anyio.Event) -> None:
        while not done.is_set():
            began = time.thread_time()  # of other processes that are busy it counts nothing
            await anyio.sleep(0.005)
            self.stop = max(self.stop, time.thread_time() - began)


@dataclass(frozen=True)
class Held:
    """What the host's process and its children hold."""

    children: int
    zombies: int
    files: int
    host_mb: int
    workers_mb: int

    def is_as(self, before: Held) -> bool:
        return (
            self.children <= before.children
            and self.zombies == 0
            and self.files <= before.files
            and self.host_mb < before.host_mb + MORE_HOST
            and self.workers_mb < before.workers_mb + MORE_WORKERS
        )


async def until(condition: Callable[[], bool]) -> None:
    while True:
        if condition():
            return
        await anyio.sleep(0.05)  # what the machine runs takes 6 ms to list


def held() -> Held:
    process = psutil.Process()
    zombies, sizes = 0, []
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # ended since it was listed
            if child.status() == psutil.STATUS_ZOMBIE:
                zombies += 1
            else:
                sizes.append(child.memory_info().rss)
    return Held(
        children=len(sizes),
        zombies=zombies,
        files=process.num_fds(),
        host_mb=process.memory_info().rss >> 20,
        workers_mb=sum(sizes) >> 20,
    )


@pytest.fixture(scope="module")
async def arena(
    tmp_path_factory: pytest.TempPathFactory, processes_of_its_own: None
) -> AsyncIterator[Arena]:
    app = tmp_path_factory.mktemp("arena")
    package = {"connector": "script", "kb": {"collections": ["docs"]}}
    files = {
        "agent/agent.yml": "hooks:\n  workers: 2\n",
        "kb/docs.kb.yao": "{}",
        "assistants/neighbour/package.yao": json.dumps(package),
        "assistants/neighbour/index.ts": NEIGHBOUR,
        "assistants/hostile/package.yao": json.dumps({**package, "hooks": {"limits": LIMITS}}),
        "assistants/hostile/index.ts": "function Create() {}",
        "assistants/hostile/tsconfig.json": (
            '{"compilerOptions": {"paths": {"@out/*": ["../../*"], "@root/*": ["/*"]}}}'
        ),
        "assistants/wide/package.yao": json.dumps({**package, "hooks": {"limits": WIDE}}),
        "assistants/wide/index.ts": "function Create() {}",
        "assistants/hasty/package.yao": json.dumps({**package, "hooks": {"limits": HASTY}}),
        "assistants/hasty/index.ts": "function Create() {}",
    }
    for name, text in files.items():
        path = app / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    spec = ConnectorSpec(
        id="script",
        type="scripted",
        options=ConnectorOptions(script=({"text": "Yes.", "times": 0},)),
    )
    kb = CannedSource({"*": [canned_item("k", content="what there is")]}, delay=0.01)
    web = CannedSource(
        {
            "*": [canned_item("w", type="web")],
            "huge": [canned_item("h", type="web", content="x" * 400_000)],
        }
    )
    sources: dict[SearchType, Handler] = {"kb": kb, "web": web}
    async with open_host(
        app, environment={}, sources=sources, connectors={"script": ScriptedConnector(spec)}
    ) as host:
        made = Arena(host, app, kb, web)
        # Several at once, so that both workers are there.
        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(made.neighbour)
        await made.before()
        with anyio.fail_after(60):
            while held().children < 3:  # two workers and the compiler
                await made.neighbour()
        yield made
