"""Every limit: crossing it costs the turn that crossed it, and nobody else."""

from __future__ import annotations

import re

import anyio
import pytest

from groundhook.core.errors import HookLimit
from groundhook.core.types.search import SearchRequest, SearchResult
from groundhook.core.types.turn import NextPayload
from tests.hooks.conftest import Hooks, Services

ENDLESS = "function Create() { while (true) {} }"
CROSSINGS: list[tuple[str, int, str]] = [
    ("cpu_ms", 100, ENDLESS),
    ("cpu_ms", 100, "async function Create() { await null; while (true) {} }"),
    ("cpu_ms", 100, "function Create() { /(a+)+$/.test('a'.repeat(40) + 'b'); }"),
    (
        "cpu_ms",
        100,
        (
            "function Create() { const a = new Array(1e5).fill(0); while (true) a.sort(() =>"
            " Math.random() - 0.5); }"
        ),
    ),
    ("cpu_ms", 100, "function Create() { try { while (true) {} } finally { while (true) {} } }"),
    ("wall_ms", 150, "function Create() { time.Sleep(20000); }"),
    (
        "wall_ms",
        150,
        "async function Create() { await new Promise(() => setInterval(() => {}, 20)); }",
    ),
    ("call_ms", 60, "function Create() { time.Sleep(20000); }"),
    (
        "heap_mb",
        24,
        "function Create() { const a = []; while (true) a.push(new Array(1000).fill(a.length)); }",
    ),
    ("heap_mb", 24, "function Create() { let s = {}; while (true) s = { s, t: [1, 2, 3] }; }"),
    ("calls", 5, "function Create() { while (true) log.Info('again'); }"),
    (
        "calls",
        5,
        "function Create() { while (true) try { ctx.search.Web(''); } catch {} }".replace(
            "Create()", "Create(ctx)"
        ),
    ),
    ("argument_kb", 1, "function Create(ctx) { ctx.search.Web('x'.repeat(2000)); }"),
    ("result_kb", 1, "function Create() { return { metadata: { x: 'x'.repeat(2000) } }; }"),
    ("result_kb", 1, "async function Create() { return { metadata: { x: 'x'.repeat(2000) } }; }"),
]


@pytest.mark.parametrize(("limit", "value", "source"), CROSSINGS)
async def test_crossing_a_limit_names_it_and_how_to_raise_it(
    hooks: Hooks, limit: str, value: int, source: str
) -> None:
    with anyio.fail_after(60), pytest.raises(HookLimit) as caught:
        await hooks.create(source, None, None, **{limit: value})
    assert caught.value.limit == limit
    assert str(value) in caught.value.message
    assert f"hooks.limits.{limit} in package.yao" in caught.value.hint
    assert re.match(r"assistants/x/index\.ts(:1:26)?: Create ", str(caught.value))
    assert await hooks.value("'unharmed'") == "unharmed"


async def test_other_runs_go_on_while_one_crosses_a_limit(hooks: Hooks) -> None:
    gate, waiting = anyio.Event(), anyio.Event()

    async def held(request: SearchRequest) -> SearchResult:
        waiting.set()
        await gate.wait()
        return SearchResult(type=request.type, query=request.query)

    values: list[str] = []

    async def other() -> None:
        values.append(await hooks.value("ctx.search.Web('held').query", Services(answer=held)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        await waiting.wait()
        with pytest.raises(HookLimit):
            await hooks.create(ENDLESS, None, None, cpu_ms=50)
        gate.set()
    assert values == ["held"]


async def test_the_clock_stops_while_the_host_works(hooks: Hooks) -> None:
    async def slow(request: SearchRequest) -> SearchResult:
        await anyio.sleep(0.6)
        return SearchResult(type=request.type, query=request.query)

    assert await hooks.value("ctx.search.Web('q').query", Services(answer=slow), cpu_ms=500) == "q"


async def test_a_search_without_an_answer_in_time_is_a_result_with_an_error(hooks: Hooks) -> None:
    async def never(_request: SearchRequest) -> SearchResult:
        await anyio.sleep_forever()
        raise AssertionError

    services = Services(answer=never)
    result = await hooks.value("ctx.search.Web('q')", services, call_ms=50)
    assert result["error"].startswith(
        "no answer in 50 ms to ctx.search.Web('q') (raise hooks.limits.call_ms"
    )
    assert result["items"] == []
    both = await hooks.value(
        "ctx.search.Parallel([{type: 'kb', query: 'a'}, {type: 'db', query: 'b'}])",
        services,
        call_ms=50,
    )
    assert [(entry["type"], entry["query"], bool(entry["error"])) for entry in both] == [
        ("kb", "a", True),
        ("db", "b", True),
    ]


async def test_an_answer_that_is_too_large_crosses_a_limit(hooks: Hooks) -> None:
    async def large(request: SearchRequest) -> SearchResult:
        return SearchResult(type=request.type, query=request.query, error="x" * 3000)

    with pytest.raises(HookLimit) as caught:
        await hooks.value("ctx.search.Web('q')", Services(answer=large), result_kb=2)
    assert caught.value.limit == "result_kb"


async def test_endless_recursion_is_an_error_of_the_hook(hooks: Hooks) -> None:
    value = await hooks.value(
        "(() => { const f = () => f(); try { f(); } catch (e) { return e.name; } })()"
    )
    assert value == "RangeError"


async def test_next_runs_in_a_fresh_isolate_after_create_crossed_a_limit(hooks: Hooks) -> None:
    source = """
        let seen = 0;
        function Create() { seen++; while (true) {} }
        function Next() { return { data: { seen } }; }
    """
    async with hooks.engine.open(hooks.turn(source, None, cpu_ms=50)) as session:
        with pytest.raises(HookLimit):
            await session.create([], {})
        returned = await session.next(NextPayload(), {})
    assert returned is not None
    assert returned.data == {"seen": 0}


async def test_work_that_a_hook_leaves_behind_is_stopped_too(hooks: Hooks) -> None:
    source = """
        function Create() { [Promise.resolve().then(() => { while (true) {} })]; return { locale: "fr" }; }
        function Next() { return { data: 1 }; }
    """
    async with hooks.engine.open(hooks.turn(source, None, cpu_ms=100)) as session:
        returned = await session.create([], {})
        assert returned is not None
        assert returned.locale == "fr"
        with anyio.fail_after(60), pytest.raises(HookLimit) as caught:
            await session.next(NextPayload(), {})
    assert caught.value.limit == "cpu_ms"


async def test_leaving_the_session_stops_javascript_at_once(hooks: Hooks) -> None:
    limits = {"cpu_ms": 3_600_000, "wall_ms": 3_600_000}
    with anyio.fail_after(60), anyio.move_on_after(0.2) as scope:
        await hooks.create(ENDLESS, None, None, **limits)
    assert scope.cancelled_caught
    assert await hooks.value("1") == 1


async def test_leaving_in_the_middle_of_a_host_call_cancels_the_call(hooks: Hooks) -> None:
    began, ended = anyio.Event(), anyio.Event()

    async def never(_request: SearchRequest) -> SearchResult:
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(
            hooks.create, "function Create(ctx) { ctx.search.Web('q'); }", Services(answer=never)
        )
        with anyio.fail_after(60):
            await began.wait()
        tasks.cancel_scope.cancel()
    assert ended.is_set()
    assert await hooks.value("1") == 1


MEMORY = {
    "typed arrays": (
        "function Create() { const a = []; while (true) a.push(new Uint8Array(1 << 24).fill(1)); }"
    ),
    "WebAssembly memory": (
        """
        function Create() {
          const all = [];
          while (true) { const m = new WebAssembly.Memory({ initial: 256 }); new Uint8Array(m.buffer).fill(1); all.push(m); }
        }
        """
    ),
}


@pytest.mark.parametrize("what", MEMORY)
async def test_memory_outside_the_heap_is_watched(in_workers: Hooks, what: str) -> None:
    with anyio.fail_after(60), pytest.raises(HookLimit) as caught:
        await in_workers.create(MEMORY[what], None, None, memory_mb=128)
    assert caught.value.limit == "memory_mb"
    assert await in_workers.value("'unharmed'") == "unharmed"
