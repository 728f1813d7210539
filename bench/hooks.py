"""The hook engine: a whole run, a host call, three searches at once, and the memory of a thousand
runs. A host call stays above its floor on purpose. Through a worker it wakes three threads once
each, and takes 121 µs of processor time: 70 in the host (25 for the event loop, 17 for the check of
the arguments, the deadline and the kept answer, the rest for the socket), 20 in the thread of the
worker that reads the socket, 31 on V8's thread. In process it takes 73 µs, and the bare bridge 37.
To wake one thread less, each run would need a socket of its own, which V8's thread reads; to wake
none, a thread would have to wait busily.

    make bench NAME=hooks

Prints JSON lines {"figure", "value", "unit", "floor", "floor_is", "ratio"} and nothing else on
standard output.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.to_thread
import psutil

from bench.figures import figure
from groundhook.core.hook_engine import (
    HookEngine,
    HookScript,
    HookTurn,
)
from groundhook.core.types.search import SearchRequest, SearchResult
from groundhook.core.types.turn import Completion, Message, NextPayload
from groundhook.hooks.engine import Isolate, IsolateOutcome
from groundhook.hooks.runner import open_engine

ROUNDS, WARM_UP, MANY, CALLS = 200, 20, 1000, 500
PAUSE_SECONDS = 0.02
SLOW_MS = {"web": 50, "kb": 100, "db": 150}
MEGABYTE = 1024 * 1024

RUN = """
function Create(ctx, messages, options) {
  const found = ctx.search.KB(messages[messages.length - 1].content, { limit: 5 });
  return { metadata: { found: found.items.length, steps: step0(1) } };
}
function Next(ctx, payload, options) {
  return { data: { characters: payload.completion.content.length } };
}
"""
CALLING = """
function Create(ctx, messages, options) {
  const count = options.count;
  for (let i = 0; i < count; i++) ctx.search.KB("question");
}
"""
BRIDGE = """
const memory = new SharedArrayBuffer(4096);
const head = new Int32Array(memory, 0, 3), units = new Uint16Array(memory, 12);
Object.defineProperty(memory, "native", { set(native) {
  globalThis.ask = (count) => {
    for (let i = 0; i < count; i++) {
      const text = "ctx.search.KB question";
      for (let j = 0; j < text.length; j++) units[j] = text.charCodeAt(j);
      head[0] = 2;
      head[1] = text.length;
      native();
      JSON.parse(String.fromCharCode.apply(null, units.subarray(0, head[1])));
    }
  };
} });
memory
"""
TOGETHER = """
function Create(ctx) {
  const began = Date.now();
  const results = ctx.search.Parallel([
    { type: "web", query: "a" }, { type: "kb", query: "b" }, { type: "db", query: "c" },
  ]);
  return { metadata: { ms: Date.now() - began, results: results.length } };
}
"""


@dataclass
class Services:
    """Searches that answer at once, or after a while for several at once."""

    took: list[float] = field(default_factory=list)
    output: Any = None
    trace: Any = None
    calls: Any = None
    tools: Any = None
    scripts: Any = None
    servers: Any = None
    records: Any = None
    web: Any = None
    memory: Any = None
    chat: Any = None

    async def search(self, request: SearchRequest, /) -> SearchResult:
        return SearchResult(type=request.type, query=request.query)

    async def search_many(
        self, requests: Sequence[SearchRequest], _mode: Literal["all", "any", "race"], /
    ) -> list[SearchResult]:
        async with anyio.create_task_group() as tasks:
            for request in requests:
                tasks.start_soon(anyio.sleep, SLOW_MS[request.type] / 1000)
        return [await self.search(request) for request in requests]

    async def log(self, level: str, message: str, /) -> None: ...

    async def warn(self, code: str, message: str, place: object = None, /) -> None: ...


def written(folder: Path, name: str, text: str) -> HookScript:
    root = folder / name
    root.mkdir()
    (root / "index.ts").write_text(text, encoding="utf-8")
    return HookScript(entry=root / "index.ts", root=root, shown=f"assistants/{name}")


def of_200_lines(text: str) -> str:
    """`text`, filled up with functions that a hook of that size would have."""
    count = (200 - text.count("\n")) // 3
    filler = "".join(
        f"function step{n}(value: number): number {{\n  return value > {n} ? value * {n + 1} :"
        f" value + {n};\n}}\n"
        for n in range(count)
    )
    return text + filler


def bare_ms() -> float:
    began = time.perf_counter()
    Isolate.without_bridge().close()
    return (time.perf_counter() - began) * 1000


async def one_run(engine: HookEngine, script: HookScript) -> float:
    """Milliseconds of a fresh isolate, Create with one search, Next, and leaving it. A worker frees
    the isolate when the turn has gone on; runs without a pause share the cores with that."""
    began = time.perf_counter()
    async with engine.open(
        HookTurn(script=script, context={"chat_id": "1"}, services=Services())
    ) as session:
        await session.create([Message(role="user", content="question")], {})
        await session.next(NextPayload(completion=Completion(content="answer")), {})
    return (time.perf_counter() - began) * 1000


async def call_us(engine: HookEngine, script: HookScript) -> float:
    """Microseconds of a host call that answers at once, from the time of a hook that makes many and
    of one that makes none."""
    taken = []
    for count in (0, CALLS):
        async with engine.open(HookTurn(script=script, context={}, services=Services())) as session:
            await session.create([], {"count": 0})
            began = time.perf_counter()
            await session.create([], {"count": count})
            taken.append(time.perf_counter() - began)
    return (taken[1] - taken[0]) / CALLS * 1e6


async def bridge_us() -> float:
    """Microseconds of a call over the bare bridge, in this process: JavaScript asks, a coroutine of
    the event loop answers with a constant. Everything else that a host call does comes on
    top."""
    loop = asyncio.get_running_loop()

    async def answer() -> None:
        isolate.reply("{}")

    ended: asyncio.Future[None] = loop.create_future()

    def on_call(_: str) -> None:
        asyncio.run_coroutine_threadsafe(answer(), loop)

    def done(_: IsolateOutcome) -> None:
        loop.call_soon_threadsafe(ended.set_result, None)

    isolate = await anyio.to_thread.run_sync(Isolate, BRIDGE, on_call)
    began = time.perf_counter()
    isolate.evaluate(f"ask({CALLS})", done)
    await ended
    taken = time.perf_counter() - began
    await anyio.to_thread.run_sync(isolate.close)
    return taken / CALLS * 1e6


async def measured(folder: Path, cache: Path) -> None:
    texts = {"run": of_200_lines(RUN), "calling": CALLING, "together": TOGETHER}
    run, calling, together = (written(folder, name, text) for name, text in texts.items())
    async with open_engine(workers=1, cache=cache) as engine:
        for script in (run, calling, together):
            await engine.check(script)
    # None: as many as a host has.
    for workers, where in ((None, "through a worker"), (0, "in process")):
        async with open_engine(workers=workers, cache=cache) as engine:
            await whole_runs(engine, run, where)
            calls, bare = list[float](), list[float]()
            for _ in range(9):
                calls.append(await call_us(engine, calling))
                bare.append(await bridge_us())
            what = f"host call that answers at once, {where}: p50"
            figure(
                what,
                statistics.median(calls),
                "us",
                statistics.median(bare),
                "the bare bridge",
            )
            if workers is None:
                await memory(engine, run)
                figure(
                    "Parallel over sources of 50, 100 and 150 ms",
                    await parallel_ms(engine, together),
                    "ms",
                    150,
                    "slowest source",
                )


async def whole_runs(engine: HookEngine, script: HookScript, where: str) -> None:
    """Without a pause, and as turns come: with a moment between them, in which a worker makes the
    next isolate. Bare isolates are measured in between, when the worker is at rest: both sides see
    the same machine."""
    for batch, when in ((10, "without a pause"), (1, f"every {PAUSE_SECONDS * 1000:.0f} ms")):
        taken, bare = list[float](), list[float]()
        for _ in range((WARM_UP + ROUNDS) // batch):
            taken += [await one_run(engine, script) for _ in range(batch)]
            await anyio.sleep(PAUSE_SECONDS)
            bare += [bare_ms() for _ in range(batch)]
        what = (
            f"fresh isolate, 200-line hook, Create with one search, Next, close, {where},"
            f" {when}: p50"
        )
        figure(
            what,
            statistics.median(taken[WARM_UP:]),
            "ms",
            statistics.median(bare[WARM_UP:]),
            "bare isolate made and closed",
        )


async def memory(engine: HookEngine, script: HookScript) -> None:
    """Growth of this process and its workers over many runs, one after another."""
    before = resident_mb()
    for _ in range(MANY):
        await one_run(engine, script)
    figure(
        f"{MANY} runs in a row, through a worker: growth of memory",
        resident_mb() - before,
        "MB",
        before,
        "memory before",
    )


def resident_mb() -> float:
    gc.collect()
    here = psutil.Process()
    return sum(process.memory_info().rss for process in [here, *here.children()]) / MEGABYTE


async def parallel_ms(engine: HookEngine, script: HookScript) -> float:
    taken = []
    for _ in range(9):
        async with engine.open(HookTurn(script=script, context={}, services=Services())) as session:
            returned = await session.create([], {})
        assert returned is not None
        assert returned.metadata is not None
        taken.append(float(returned.metadata["ms"]))
    return statistics.median(taken)


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        await measured(Path(folder), Path(folder, "cache"))


if __name__ == "__main__":
    anyio.run(main)
