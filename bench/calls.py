"""The cost of host calls: each group of calls, streamed text, two hundred hooks that wait
concurrently, and the type check of the sample assistants' hooks.

    make bench NAME=calls

Prints JSON lines {"figure", "value", "unit", "floor", "floor_is", "ratio"} and nothing else on
standard output.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from pydantic import BaseModel

from bench.figures import figure
from bench.hooks import of_200_lines, resident_mb
from groundhook import Host, open_host
from groundhook.core.hook_engine import HookScript
from groundhook.core.ports import (
    Handler,
    Scope,
    SourceResult,
)
from groundhook.core.types.connector_spec import (
    ConnectorOptions,
    ConnectorSpec,
)
from groundhook.core.types.events import Failed, StreamEnd, Warned
from groundhook.core.types.search import SearchRequest, SearchType
from groundhook.core.types.tools import Tool
from groundhook.core.types.turn import Identity
from groundhook.hooks.engine import Isolate
from groundhook.hooks.runner import open_engine
from groundhook.hooks.typecheck import type_errors
from groundhook.host.check.hook_diagnostics import declarations, hook_problems
from groundhook.host.config.packages import load_app
from groundhook.host.llm.scripted import ScriptedConnector
from groundhook.host.testing.canned import CannedSource, canned_item

ROUNDS, MANY, CALLS, FEWER, CHUNKS = 9, 400, 100, 20, 5000
WAITING, TICK_SECONDS, WAIT_SECONDS = 200, 0.002, 2.0
BARE = 50

AT_ONCE = "a host call that answers at once"
GROUPS: Mapping[str, tuple[int, str]] = {
    AT_ONCE: (MANY, "ctx.MessageID()"),
    "ctx.search.KB, one item": (CALLS, "ctx.search.KB('question')"),
    "ctx.memory.context.Set": (CALLS, "ctx.memory.context.Set('key', i)"),
    "ctx.memory.context.Get": (CALLS, "ctx.memory.context.Get('key')"),
    "ctx.memory.user.Set (SQLite)": (CALLS, "ctx.memory.user.Set('key', i)"),
    "ctx.memory.user.Get (SQLite)": (CALLS, "ctx.memory.user.Get('key')"),
    "ctx.Send": (CALLS, "ctx.Send('text')"),
    "ctx.trace.Add": (CALLS, "ctx.trace.Add({ i }, { label: 'step' })"),
    "console.log": (CALLS, "console.log('line', i)"),
    "ctx.tools.Call, a tool in Python": (CALLS, "ctx.tools.Call('same', { text: 'x' })"),
    "ctx.mcp.CallTool, over stdio": (FEWER, "ctx.mcp.CallTool('echo', 'echo', { text: 'x' })"),
}
# One after the other in one hook, and each once before it counts.
GROUPS_HOOK = (
    "function Create(ctx) {\n  const took = [];\n%s\n  return { metadata: { took }, search: false"
    " };\n}"
)
GROUP = """
  (() => {
    let i = 0, began = 0;
    for (; i <= %(count)d; i++) {
      if (i === 1) began = Date.now();
      %(call)s;
    }
    took.push((Date.now() - began) / %(count)d);
  })();"""
STREAMING_HOOK = """
function Create(ctx) {
  let chunks = 0, began = Date.now();
  ctx.llm.Stream("long", "x", { onChunk() { chunks++; } });
  const with_callback = Date.now() - began;
  began = Date.now();
  ctx.llm.Stream("long", "x");
  const without_callback = Date.now() - began;
  return { metadata: { chunks, with_callback, without_callback }, search: false };
}
"""
WAITING_HOOK = """
function Create(ctx, messages) {
  const found = ctx.search.KB(messages[messages.length - 1].content, { limit: 5 });
  return { metadata: { found: found.items.length, steps: step0(1) } };
}
"""
SMALLEST_HOOK = "function Create(ctx: unknown): null {\n  return null;\n}\n"
PACKAGE = {"connector": "script", "hooks": {"limits": {"cpu_ms": 20000}}}


class Text(BaseModel):
    text: str


@dataclass
class Held(CannedSource):
    """A source that says when it holds a number of searches at its gate."""

    expected: int = 0
    full: anyio.Event = field(default_factory=anyio.Event)

    async def search(self, request: SearchRequest, scope: Scope, /) -> SourceResult:
        self.expected -= 1
        if self.expected == 0:
            self.full.set()
        return await CannedSource.search(self, request, scope)


async def same(given: Text) -> str:
    return given.text


def app_in(folder: Path) -> Path:
    server = {"command": sys.executable, "args": [str(Path(__file__).with_name("echo_server.py"))]}
    calls = "\n".join(GROUP % {"call": call, "count": count} for count, call in GROUPS.values())
    hooks = {
        "groups": GROUPS_HOOK % calls,
        "streaming": STREAMING_HOOK,
        "waiting": of_200_lines(WAITING_HOOK),
    }
    files = {
        "kb/docs.kb.yao": "{}",
        "mcps/echo.mcp.yao": json.dumps(server),
        **{f"assistants/{name}/index.ts": text for name, text in hooks.items()},
        **{
            f"assistants/{name}/package.yao": json.dumps(
                {
                    **PACKAGE,
                    "kb": {"collections": ["docs"]},
                    "mcp": {"servers": ["echo"] if name == "groups" else []},
                }
            )
            for name in hooks
        },
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def scripted(name: str, text: str) -> ScriptedConnector:
    return ScriptedConnector(
        ConnectorSpec(
            id=name, type="scripted", options=ConnectorOptions(script=({"text": text, "times": 0},))
        )
    )


async def turn(host: Host, assistant: str) -> Mapping[str, Any]:
    """What the hook of an assistant returned as metadata."""
    async with host.stream(assistant, "question", identity=Identity(user_id="u")) as events:
        async for event in events:
            if isinstance(event, Failed | Warned):
                raise SystemExit(f"the turn failed: {event.message}")
            if isinstance(event, StreamEnd):
                return event.metadata
    raise SystemExit("the turn did not end")


async def p50_us(
    host: Host, assistant: str, of: Callable[[Mapping[str, Any]], Sequence[float]]
) -> list[float]:
    """Medians over turns, in microseconds, of the milliseconds that `of` makes of a turn's
    metadata."""
    await turn(host, assistant)
    rounds = [of(await turn(host, assistant)) for _ in range(ROUNDS)]
    return [statistics.median(column) * 1000 for column in zip(*rounds, strict=True)]


# -------------------------------------------------------------------------------------------- calls


async def groups(host: Host) -> None:
    """The cost of a call, as the mean of many in one hook."""
    took = dict(
        zip(GROUPS, await p50_us(host, "groups", lambda metadata: metadata["took"]), strict=True)
    )
    floor = took[AT_ONCE]
    figure(f"{AT_ONCE}, in a turn, through a worker: p50", floor, "us")
    for name, value in took.items():
        if name != AT_ONCE:
            figure(f"{name}: p50", value, "us", floor, AT_ONCE)
    figure(
        "the same MCP tool, called by the host itself: p50",
        await mcp_us(host),
        "us",
        floor,
        AT_ONCE,
    )


async def mcp_us(host: Host) -> float:
    taken = []
    for _ in range(CALLS):
        began = time.perf_counter()
        await host.runtime.servers.ask(
            "echo", "tools/call", {"name": "echo", "arguments": {"text": "x"}}
        )
        taken.append((time.perf_counter() - began) * 1e6)
    return statistics.median(taken)


async def streaming(host: Host) -> None:
    def per_chunk(metadata: Mapping[str, Any]) -> tuple[float, float]:
        if metadata["chunks"] != CHUNKS:
            raise SystemExit(f"onChunk received {metadata['chunks']} pieces of {CHUNKS}")
        return metadata["with_callback"] / CHUNKS, metadata["without_callback"] / CHUNKS

    with_callback, without_callback = await p50_us(host, "streaming", per_chunk)
    figure(
        "a model's answer that onChunk receives, by its pieces: each, p50",
        with_callback,
        "us",
        without_callback,
        "the answer without onChunk",
    )


# ----------------------------------------------------------------------------------- many that wait


async def waiting(host: Host, source: Held) -> None:
    """Memory and the event loop while hooks wait in a search."""
    for _ in range(
        3
        # both workers are there and warm; few at once, or their memory would be used again
        # unseen
    ):
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(turn, host, "waiting")
    idle, idle_worst = await ticks(anyio.sleep, WAIT_SECONDS)
    source.gate, source.expected = anyio.Event(), WAITING
    before = resident_mb()
    async with anyio.create_task_group() as tasks:
        for _ in range(WAITING):
            tasks.start_soon(turn, host, "waiting")
        starting, _ = await ticks(source.full.wait)
        lag, worst = await ticks(anyio.sleep, WAIT_SECONDS)
        grown = (resident_mb() - before) / WAITING
        source.gate.set()
    figure(
        f"{WAITING} hooks that wait in a search: memory of each, host and workers",
        grown,
        "MB",
        bare_mb(),
        "bare isolate",
    )
    figure(
        f"{WAITING} hooks that wait in a search: lag of the event loop, p99",
        lag,
        "ms",
        idle,
        "without any",
    )
    figure("  the worst", worst, "ms", idle_worst, "without any")
    figure("  while they begin, all at once: p99", starting, "ms", idle, "without any")


async def ticks(work: Callable[..., Any], *arguments: Any) -> tuple[float, float]:
    """Milliseconds by which a short sleep ended late during `work`: p99 and the longest."""
    late = list[float]()

    async def tick() -> None:
        while True:
            began = time.perf_counter()
            await anyio.sleep(TICK_SECONDS)
            late.append((time.perf_counter() - began - TICK_SECONDS) * 1000)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        await work(*arguments)
        tasks.cancel_scope.cancel()
    late.sort()
    return late[int(len(late) * 0.99)], late[-1]


def bare_mb() -> float:
    """What an isolate with nothing in it adds to this process."""
    Isolate.without_bridge().close()
    before = resident_mb()
    isolates = [Isolate.without_bridge() for _ in range(BARE)]
    grown = resident_mb() - before
    for isolate in isolates:
        isolate.close()
    return grown / BARE


# --------------------------------------------------------------------------------------- type check


async def type_check(folder: Path) -> None:
    """The sample assistants' hooks: the types alone, and the whole check, which compiles them as
    well."""
    app = load_app(Path(__file__).parent.parent, {})
    ids = sorted(app.packages)
    scripts = [script for id in ids if (script := app.package(id).hook) is not None]
    text = declarations(app)
    (folder / "index.ts").write_text(SMALLEST_HOOK, encoding="utf-8")
    smallest = HookScript(entry=folder / "index.ts", root=folder, shown="smallest")
    types = await times_ms(lambda: type_errors(scripts, text))
    floor = statistics.median(await times_ms(lambda: type_errors([smallest], "export {};\n")))
    floor_is = "the compiler on a hook of three lines"
    figure("type check of the sample assistants' hooks: first", types[0], "ms", floor, floor_is)
    figure(
        "type check of the sample assistants' hooks: repeated, p50",
        statistics.median(types[1:]),
        "ms",
        floor,
        floor_is,
    )
    async with open_engine(workers=1, cache=folder / "cache") as engine:
        whole = await times_ms(lambda: hook_problems(app, ids, engine))
    figure(
        "  the whole check, compiled too: first, nothing in the cache",
        whole[0],
        "ms",
        floor,
        floor_is,
    )
    figure(
        "  the whole check, compiled too: repeated, p50",
        statistics.median(whole[1:]),
        "ms",
        floor,
        floor_is,
    )


async def times_ms(work: Callable[[], Any]) -> list[float]:
    taken = []
    for _ in range(6):
        began = time.perf_counter()
        await work()
        taken.append((time.perf_counter() - began) * 1000)
    return taken


async def main() -> None:
    source = Held({"*": [canned_item("k")]})
    sources: dict[SearchType, Handler] = {"kb": source}
    connectors = {"script": scripted("script", "Yes."), "long": scripted("long", "piece " * CHUNKS)}
    tools = [Tool(name="same", description="Say it again.", arguments=Text, run=same)]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        await type_check(folder)
        app = app_in(folder / "app")
        async with open_host(
            app, environment={}, sources=sources, connectors=connectors, tools=tools
        ) as host:
            await waiting(host, source)
        async with open_host(
            app, environment={}, sources=sources, connectors=connectors, tools=tools
        ) as host:
            source.gate = None
            await groups(host)
            await streaming(host)


if __name__ == "__main__":
    anyio.run(main)
