"""Hooks that never end, or that go on where nobody looks."""

from __future__ import annotations

import anyio
import psutil
import pytest

from groundhook.core.types.events import Event, Failed
from tests.attacks.conftest import Arena, until
from tests.parts.children import of_children, running

pytestmark = pytest.mark.usefixtures("processes_of_its_own")

LOOP = "while (true) {}"
READERS = "groundhook.core.readers.process"


@pytest.mark.parametrize(
    "source",
    [
        f"function Create() {{ {LOOP} }}",
        f"async function Create() {{ await null; {LOOP} }}",
        f"{LOOP} function Create() {{}}",
    ],
    ids=["plain", "async", "while-loading"],
)
async def test_an_endless_loop_ends_at_its_cpu_time(arena: Arena, source: str) -> None:
    fate = await arena.attack(source)
    assert (fate.code, fate.message) == ("hook_limit", "Create computed for more than 200 ms")


@pytest.mark.parametrize(
    "source",
    [
        f"function Create() {{ return {{ metadata: {{ get x() {{ {LOOP} }} }} }}; }}",
        f"function Create() {{ return {{ metadata: {{ toJSON() {{ {LOOP} }} }} }}; }}",
        f"function Create() {{ return {{ get then() {{ {LOOP} }} }}; }}",
        f"function Create() {{ return new Proxy({{}}, {{ ownKeys() {{ {LOOP} }} }}); }}",
        f"async function Create() {{ return {{ get metadata() {{ {LOOP} }} }}; }}",
        f"function Create() {{ throw {{ get message() {{ {LOOP} }} }}; }}",
        (
            f"function Create() {{ const e = new Error('x'); e.stack = {{ toString() {{ {LOOP} }}"
            " }; throw e; }"
        ),
        f"function Create() {{ Error.prepareStackTrace = () => {{ {LOOP} }}; null.x; }}",
        f"function Create(ctx) {{ ctx.search.KB('q', {{ get limit() {{ {LOOP} }} }}); }}",
        f"function Create() {{ console.log({{ get stack() {{ {LOOP} }} }}); }}",
    ],
    ids=[
        "getter",
        "to-json",
        "then",
        "proxy",
        "async-getter",
        "message",
        "stack",
        "prepare-stack",
        "option",
        "log",
    ],
)
async def test_an_endless_getter_under_a_conversion_ends_at_its_cpu_time(
    arena: Arena, source: str
) -> None:
    fate = await arena.attack(source)
    assert (fate.code, fate.message) == ("hook_limit", "Create computed for more than 200 ms")


async def test_a_regular_expression_that_blows_up_ends_at_its_cpu_time(arena: Arena) -> None:
    fate = await arena.attack("function Create() { /^(a+)+$/.test('a'.repeat(40) + 'b'); }")
    assert (fate.code, fate.message) == ("hook_limit", "Create computed for more than 200 ms")


@pytest.mark.parametrize(
    "call",
    [
        "Process('text.HTMLToMarkdown', '<table><tr><td>'.repeat(2000))",
        "Process('text.MarkdownToHTML', '['.repeat(60000))",
    ],
    ids=["html", "markdown"],
)
async def test_a_text_that_a_parser_never_ends_with_is_left_at_the_deadline_of_the_call(
    arena: Arena, call: str
) -> None:
    fate = await arena.attack(f"function Create() {{ {call}; }}", assistant="hasty")
    assert fate.code == "hook_limit"
    assert "Create made a host call that took more than 700 ms: Process(" in fate.message
    assert running(READERS) == []


async def test_endless_recursion_is_an_error_that_a_hook_can_catch(arena: Arena) -> None:
    source = """
        function Create(ctx) {
          let depth = 0, failed = 0;
          const down = () => { depth++; down(); };
          try { down(); } catch (error) { failed++; }
          const call = () => { try { ctx.search.KB("at the edge of the stack"); call(); } catch (error) { failed++; } };
          const deeper = () => { try { deeper(); } catch (error) { call(); throw error; } };
          try { deeper(); } catch {}
          return { metadata: { deep: depth > 1000, failed: failed > 0, after: ctx.search.KB("whole again").items.length } };
        }
    """
    fate = await arena.attack(source, assistant="wide")
    if not fate.code:  # calls at the edge may well use up the number of calls first
        assert fate.metadata == {"deep": True, "failed": True, "after": 1}
    else:
        assert fate.message == "Create made more than 200 host calls"
    assert {request.query for request in arena.kb.requests} <= {
        "anything new?",
        "at the edge of the stack",
        "whole again",
    }


@pytest.mark.parametrize(
    "flood",
    [
        "const again = () => Promise.resolve().then(again); again(); await new Promise(() => {});",
        "for (;;) await null;",
        (
            "const twice = () => { Promise.resolve().then(twice); queueMicrotask(() => {}); };"
            " twice(); await new Promise(() => {});"
        ),
    ],
    ids=["then", "await", "queue"],
)
async def test_a_flood_of_microtasks_ends_at_its_cpu_time(arena: Arena, flood: str) -> None:
    fate = await arena.attack(f"async function Create() {{ {flood} }}")
    assert fate.code == "hook_limit"
    assert "200 ms" in fate.message or "48 MB" in fate.message


@pytest.mark.parametrize(
    "source",
    [
        f"function Create() {{ for (;;) try {{ {LOOP} }} catch {{}} finally {{ continue; }} }}",
        f"function Create() {{ try {{ {LOOP} }} finally {{ for (;;) time.Sleep(1); }} }}",
        "function Create(ctx) { for (;;) try { ctx.search.Web(''); } catch {} }",
        "function Create(ctx) { for (;;) try { ctx.search.Web('x'.repeat(1e5)); } catch {} }",
    ],
    ids=["loop", "finally", "calls", "argument"],
)
async def test_a_hook_that_catches_everything_does_not_outlive_its_limit(
    arena: Arena, source: str
) -> None:
    fate = await arena.attack(source)
    assert fate.code == "hook_limit"


@pytest.mark.parametrize(
    "source",
    [
        """
        async function Create() {
          for (const ms of [NaN, Infinity, -1, "1e999", 2 ** 53]) setTimeout(() => {}, ms);
          setInterval(() => { throw new Error("again"); }, 1);
          await new Promise(() => {});
        }
        """,
        "function Create(ctx) { for (;;) try { time.Sleep(60000); } catch {} }",
    ],
    ids=["timers", "sleep"],
)
async def test_waiting_without_end_stops_at_the_deadline(arena: Arena, source: str) -> None:
    fate = await arena.attack(source, assistant="hasty")
    assert fate.code == "hook_limit"


async def test_work_that_a_hook_leaves_behind_ends_at_its_cpu_time_though_the_turn_goes_on(
    arena: Arena,
) -> None:
    source = f"""
        function Create() {{ [Promise.resolve().then(() => {{ {LOOP} }})]; return {{ search: true }}; }}
        function Next() {{ return {{ data: 1 }}; }}
    """
    before = await arena.before()
    arena.write(source)
    gate = arena.kb.gate = anyio.Event()
    events: list[Event] = []

    async def turn() -> None:
        events.extend(await arena.turn("hostile", "held between Create and Next"))

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(turn)
            with anyio.fail_after(60):
                await until(lambda: arena.kb.requests[-1].query == "held between Create and Next")
                while await _cpu_share() > 0.2:
                    pass
            gate.set()
    finally:
        arena.kb.gate = None  # the arena serves other tests, too
    await arena.peace(before)
    assert [event.message for event in events if isinstance(event, Failed)] == [
        "Next computed for more than 200 ms"
    ]


async def _cpu_share() -> float:
    """How much of one core the workers use that live on meanwhile."""
    began = _cpu_seconds()
    await anyio.sleep(0.3)
    return sum(now - began.get(worker, now) for worker, now in _cpu_seconds().items()) / 0.3


def _cpu_seconds() -> dict[psutil.Process, float]:
    return of_children(lambda worker: sum(worker.cpu_times()[:2]))
