"""A complete turn, to the first text and to the end, with sources and a model that answer at once;
and the command line, from the start of its process to the first event.

    make bench NAME=turn

Prints JSON lines {"figure", "value", "unit", "floor", "floor_is", "ratio"} and nothing else on
standard output.
"""

from __future__ import annotations

import compileall
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import anyio

from bench.figures import figure
from groundhook import Host, open_host
from groundhook.core.channel import Channel
from groundhook.core.types.connector_spec import (
    ConnectorOptions,
    ConnectorSpec,
)
from groundhook.core.types.events import Event, StreamEnd, Trace
from groundhook.core.types.search import SearchType
from groundhook.hooks.engine import Isolate
from groundhook.host.llm.scripted import ScriptedConnector
from groundhook.host.testing.canned import CannedSource, canned_item

ROUNDS = 200
GROUNDHOOK = str(Path(sys.executable).parent / "groundhook")
HOOK = """
export function Create(ctx, messages) {
  const query = messages[messages.length - 1].content;
  const found = ctx.search.KB(query, { limit: 5 });
  return { metadata: { found: found.items.length }, search: true };
}
export function Next(ctx, payload) {
  return { data: { characters: payload.completion.content.length } };
}
"""
# As the command does it; measured inside, since the end of a process takes time as well.
IMPORTS = """
import gc, time
gc.disable()
began = time.perf_counter()
import groundhook.host.cli.main, groundhook.host.cli.chat
print((time.perf_counter() - began) * 1000)
"""
# The libraries that `chat` cannot do without, and one model of a setting.
LIBRARIES = """
import click, anyio._backends._asyncio, ruamel.yaml, pydantic
class Setting(pydantic.BaseModel):
    limit: int = pydantic.Field(default=1, ge=1)
"""
FILES = {
    "assistants/plain/package.yao": (
        '{"connector": "script", "search": {"kb": true}, "kb": {"collections": ["docs"]}}'
    ),
    "assistants/keyless/package.yao": (
        '{"connector": "extractive", "search": {"kb": true}, "kb": {"collections": ["docs"]}}'
    ),
    "assistants/hooked/package.yao": (
        '{"connector": "script", "search": {"kb": true}, "kb": {"collections": ["docs"]}}'
    ),
    "assistants/hooked/index.ts": HOOK,
    "kb/docs.kb.yao": "{}",
}


async def turns() -> None:
    """Turns one after another, and a hundred at once."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        sources: dict[SearchType, CannedSource] = {
            "kb": CannedSource({"*": [canned_item(f"k{n}") for n in range(10)]})
        }
        spec = ConnectorSpec(
            id="script",
            type="scripted",
            options=ConnectorOptions(script=({"text": "Yes {ref:0}.", "times": 0},)),
        )
        async with open_host(
            folder, environment={}, sources=sources, connectors={"script": ScriptedConnector(spec)}
        ) as host:
            bare, channel = bare_isolate(), await channel_alone(host)
            for assistant, what in (("plain", "without a hook"), ("hooked", "with a hook")):
                first, whole = await one_after_another(host, assistant)
                floor, floor_is = (
                    (bare, "bare isolate made and closed")
                    if assistant == "hooked"
                    else (channel, "its events sent and read")
                )
                figure(f"turn {what}: request to first text, p50", first, "ms", floor, floor_is)
                figure(f"turn {what}: whole, p50", whole, "ms", floor, floor_is)
            began = time.perf_counter()
            async with anyio.create_task_group() as tasks:
                for _ in range(100):
                    tasks.start_soon(one, host, "hooked")
            all_at_once = (time.perf_counter() - began) * 1000
            figure(
                "100 turns with a hook at once: each",
                all_at_once / 100,
                "ms",
                whole,
                "one such turn alone",
            )
            figure("a saved hook is taken over, p50", await taking_over(host, Path(folder)), "ms")


def write(app: Path) -> None:
    for name, text in FILES.items():
        path = app / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


async def taking_over(host: Host, app: Path) -> float:
    """p50 of reloading after a hook was saved, in milliseconds."""
    hook, took = app / "assistants/hooked/index.ts", list[float]()
    async with host.runtime.hooks.keep_compiler():
        for version in range(ROUNDS // 10):
            hook.write_text(f"{HOOK}// version {version}\n", encoding="utf-8")
            took.append((await host.reload([hook])).took_ms)
    return statistics.median(took)


async def one_after_another(host: Host, assistant: str) -> tuple[float, float]:
    """p50 of first text and of the whole turn, in milliseconds."""
    for _ in range(20):
        await one(host, assistant)
    ended = [await one(host, assistant) for _ in range(ROUNDS)]
    return (
        statistics.median(end.timings["first_text"] for end in ended),
        statistics.median(end.timings["total"] for end in ended),
    )


async def keyless() -> None:
    """Turns that quote sentences of the documentation, found by the bundled embedding model, which
    has not embedded the question before; and what each step takes."""
    pages = sorted(Path(__file__).parent.parent.glob("docs/h*.md"))
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        async with open_host(folder, environment={}) as host:
            assert not (await host.kb.add("docs", pages)).failed
            whole, embedding, answering = [], [], []
            for number in range(-5, 40):
                async with host.stream("keyless", f"What is hook number {number}?") as events:
                    seen = [event async for event in events]
                ended = seen[-1]
                assert isinstance(ended, StreamEnd)
                assert ended.finish_reason == "stop"
                if number < 0:  # loads the model
                    continue
                steps = [event.node for event in seen if isinstance(event, Trace)]
                whole.append(ended.timings["total"])
                answering.append(ended.timings["model"])
                embedding.append(max(one.duration_ms for one in steps if one.type == "embedding"))
    total = statistics.median(whole)
    figure("turn without a language model: whole, p50", total, "ms")
    for what, taken in (
        ("embedding the question", embedding),
        ("choosing the sentences", answering),
    ):
        figure(f"  of that, {what}, p50", statistics.median(taken), "ms", total, "the whole turn")


async def one(host: Host, assistant: str) -> StreamEnd:
    async with host.stream(assistant, "question") as events:
        last = [event async for event in events][-1]
    if not isinstance(last, StreamEnd) or not last.content:
        raise SystemExit(f"the turn failed: {last}")
    return last


async def channel_alone(host: Host) -> float:
    """p50 of sending and reading the events of a turn without a hook, in milliseconds."""
    async with host.stream("plain", "question") as stream:
        events = [event async for event in stream]
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        channel = Channel("bench")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_send, channel, events)
            async for _event in channel:
                pass
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


async def _send(channel: Channel, events: list[Event]) -> None:
    for event in events:
        await channel.send(event)
    channel.close()


def bare_isolate() -> float:
    """p50 of making and closing an isolate with nothing in it, in milliseconds."""
    taken = []
    for _ in range(50):
        began = time.perf_counter()
        Isolate.without_bridge().close()
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


def command_line() -> None:
    """`groundhook chat` on this repository, from the start of the process to its first event, and
    the commands that should be quick. All take turns, so that a busy moment meets each of them."""
    app = str(Path(__file__).parent.parent)
    # As installing does.
    for folder in ("core", "handlers", "hooks", "host", "rerankers", "toolkits"):
        compileall.compile_dir(Path(app) / folder, quiet=2)
    explain = ["config", "explain", "docs", "--json", "--app", app]
    interpreter = "  of that, the interpreter"
    work: dict[str, Callable[[], float]] = {
        "groundhook chat: start of process to first event": lambda: first_event(app),
        interpreter: lambda: whole_process([sys.executable, "-c", "pass"]),
        "  of that, imports": lambda: float(
            subprocess.check_output([sys.executable, "-c", IMPORTS], cwd=app)
        ),
        "  of that, the libraries alone": lambda: whole_process([sys.executable, "-c", LIBRARIES]),
        "groundhook config explain: whole process": lambda: whole_process([GROUNDHOOK, *explain]),
        "groundhook --help: whole process": lambda: whole_process([GROUNDHOOK, "--help"]),
    }
    taken: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(9):
        for name, run in work.items():
            taken[name].append(run())
    floor = statistics.median(taken[interpreter])
    for name, each in taken.items():
        figure(name, statistics.median(each), "ms", floor, "python -c pass")


def first_event(app: str) -> float:
    """Milliseconds from starting the command to its first line."""
    command = [GROUNDHOOK, "chat", "docs", "What is a hook?", "--no-search", "--json", "--app", app]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=app) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        taken = (time.perf_counter() - began) * 1000
        process.stdout.read()
    if process.returncode != 0 or json.loads(line)["type"] != "stream_start":
        raise SystemExit(f"the command failed with {process.returncode}: {line!r}")
    return taken


def whole_process(command: list[str]) -> float:
    """Milliseconds from starting a command to its end."""
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    anyio.run(turns)
    anyio.run(keyless)
    command_line()
