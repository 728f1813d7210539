"""A worker that dies: who gets which error, which runs start again, and what is left behind."""

from __future__ import annotations

import gc
import os
import resource
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import psutil
import pytest

from groundhook.core.errors import HookCrashed, HookLimit, HostError
from groundhook.core.types.search import SearchRequest, SearchResult
from groundhook.core.types.turn import Message, NextPayload
from groundhook.hooks.engine import isolate_count
from groundhook.hooks.pool import MOST_ALONE
from groundhook.hooks.runner import open_engine
from tests.hooks.conftest import Hooks, Services
from tests.parts.children import of_children

pytestmark = pytest.mark.usefixtures("processes_of_its_own")

ABORTING = (
    "function Create() { return { metadata: { v: 'ab'.repeat(2 ** 27).split('').length } }; }"
)


async def test_a_script_that_makes_v8_abort_costs_its_own_turn(in_workers: Hooks) -> None:
    for _ in range(2):
        with anyio.fail_after(60), pytest.raises(HookCrashed) as caught:
            await in_workers.create(
                ABORTING, None, None, heap_mb=2048, memory_mb=4096, cpu_ms=20000
            )
        assert "Create ended the process it ran in (signal " in str(caught.value)
        assert caught.value.place is not None
        assert caught.value.place.file == "assistants/x/index.ts"
    assert await in_workers.value("'unharmed'") == "unharmed"


async def test_what_runs_after_a_hook_that_crashed_searches_for_itself(in_workers: Hooks) -> None:
    source = """
        function Create(ctx) { ctx.search.Web("q"); return { metadata: { v: 'ab'.repeat(2 ** 27).split('').length } }; }
        function Next(ctx) { return { data: ctx.search.Web("q").items[0].title }; }
    """
    services = Services()
    turn = in_workers.turn(source, services, heap_mb=2048, memory_mb=4096, cpu_ms=20000)
    async with in_workers.engine.open(turn) as session:
        with pytest.raises(HookCrashed):
            await session.create([Message(role="user", content="hello")], {})
        returned = await session.next(NextPayload(), {})
    assert returned is not None
    assert returned.data == "about q"
    assert [request.query for request in services.requests] == ["q", "q"]


FILLING = (
    "function Create() { const a = []; while (true) a.push(new Uint8Array(1 << 24).fill(1)); }"
)


class Held:
    """Searches that wait until they are let go; `began` when there are so many."""

    def __init__(self, expected: int = 1) -> None:
        self.began = anyio.Event()
        self.gate = anyio.Event()
        self.count = 0
        self.expected = expected

    async def __call__(self, request: SearchRequest) -> SearchResult:
        self.count += 1
        if self.count == self.expected:
            self.began.set()
        await self.gate.wait()
        return SearchResult(type=request.type, query=request.query)


async def crash(hooks: Hooks) -> None:
    with pytest.raises(HookCrashed):
        await hooks.create(ABORTING, None, None, heap_mb=2048, memory_mb=4096, cpu_ms=20000)


async def test_a_run_that_was_waiting_starts_again_with_the_answers_it_had(
    cache: Path, tmp_path: Path
) -> None:
    held, services, values = Held(), Services(), list[object]()
    services.answer = held

    async with open_engine(workers=1, cache=cache) as engine:
        hooks = Hooks(engine, tmp_path)

        async def bystander() -> None:
            values.append(
                await hooks.value(
                    "[ctx.search.Web('q').query, log.Info('once'), ctx.search.KB('p').query]",
                    services,
                )
            )

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bystander)
            await held.began.wait()
            await crash(hooks)
            held.gate.set()
    assert values == [["q", None, "p"]]
    assert [request.query for request in services.requests] == ["q", "p"]
    assert services.lines == [("info", "once")]


async def test_a_session_between_create_and_next_is_brought_back(
    cache: Path, tmp_path: Path
) -> None:
    source = """
        let kept = "";
        function Create(ctx) { kept = ctx.search.Web("q").query; }
        function Next() { return { data: kept }; }
    """
    services = Services()
    async with open_engine(workers=1, cache=cache) as engine:
        hooks = Hooks(engine, tmp_path)
        async with engine.open(hooks.turn(source, services)) as session:
            await session.create([], {})
            await crash(hooks)
            returned = await session.next(NextPayload(), {})
    assert returned is not None
    assert returned.data == "q"
    assert len(services.requests) == 1


async def test_only_the_guilty_one_of_two_suspects_fails(cache: Path, tmp_path: Path) -> None:
    source = """
        function Create(ctx) {
          ctx.search.Web("q");
          const end = Date.now() + 1500;
          while (Date.now() < end) {}
          return { locale: "fr" };
        }
    """
    held, locales = Held(), list[str | None]()
    async with open_engine(workers=1, cache=cache) as engine:
        hooks = Hooks(engine, tmp_path)

        async def innocent() -> None:
            returned = await hooks.create(source, Services(answer=held), None, cpu_ms=20000)
            assert returned is not None
            locales.append(returned.locale)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(innocent)
            await held.began.wait()
            held.gate.set()
            await crash(hooks)
    assert locales == ["fr"]
    assert held.count == 1


async def test_a_run_that_fills_memory_beside_others_is_found_out(
    cache: Path, tmp_path: Path
) -> None:
    held, values = Held(), list[object]()
    async with open_engine(workers=1, cache=cache) as engine:
        hooks = Hooks(engine, tmp_path)

        async def innocent() -> None:
            values.append(await hooks.value("ctx.search.Web('q').query", Services(answer=held)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(innocent)
            await held.began.wait()
            with pytest.raises(HookLimit):
                await hooks.create(FILLING, None, None, memory_mb=128)
            held.gate.set()
    assert values == ["q"]


@asynccontextmanager
async def beside_one_that_fills_memory(
    hooks: Hooks, innocent: Callable[[], Coroutine[Any, Any, None]], held: Held
) -> AsyncIterator[None]:
    """So many innocent runs as are `held` have lost their worker to another run, and start
    again."""
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(held.expected):
                tasks.start_soon(innocent)
            await held.began.wait()
            with pytest.raises(HookLimit):
                await hooks.create(FILLING, None, None, memory_mb=128)
            held.gate.set()
            yield


async def test_only_a_few_runs_that_start_again_alone_have_a_process_at_a_time(
    cache: Path, tmp_path: Path
) -> None:
    runs, values, processes = MOST_ALONE + 6, list[object](), list[int]()
    before, after, others = Held(runs), Held(MOST_ALONE), set(children())

    async def answer(request: SearchRequest) -> SearchResult:
        if request.query == "p" and not after.gate.is_set():
            processes.append(len(set(children()) - others))
        return await (before if request.query == "q" else after)(request)

    async with open_engine(workers=1, cache=cache) as engine:
        hooks = Hooks(engine, tmp_path)

        async def innocent() -> None:
            values.append(
                await hooks.value(
                    "[ctx.search.Web('q').query, ctx.search.KB('p').query]", Services(answer=answer)
                )
            )

        async with beside_one_that_fills_memory(hooks, innocent, before):
            await after.began.wait()
            after.gate.set()
    assert values == [["q", "p"]] * runs
    assert max(processes) <= MOST_ALONE + 2  # the worker of all others, and the compiler


async def test_runs_that_start_again_alone_do_not_wait_for_each_others_models(
    cache: Path, tmp_path: Path
) -> None:
    runs, created, all_created = MOST_ALONE + 6, list[object](), anyio.Event()
    before = Held(runs)
    async with open_engine(workers=1, cache=cache) as engine:
        hooks = Hooks(engine, tmp_path)

        async def innocent() -> None:
            hook = (
                "function Create(ctx) { return { metadata: { query: ctx.search.Web('q').query }"
                " }; }"
            )
            async with engine.open(hooks.turn(hook, Services(answer=before))) as session:
                created.append(await session.create([], {}))
                if len(created) == runs:
                    all_created.set()
                await all_created.wait()  # as if every model were still answering

        async with beside_one_that_fills_memory(hooks, innocent, before):
            pass
    assert len(created) == runs


async def test_a_worker_that_is_killed_from_outside_is_replaced(
    cache: Path, tmp_path: Path
) -> None:
    others = set(children())  # of the engine that tests of this module share
    async with open_engine(workers=1, cache=cache) as engine:
        hooks = Hooks(engine, tmp_path)
        assert await hooks.value("1") == 1
        for child in set(children()) - others:
            child.kill()
        assert await hooks.value("2") == 2


async def test_runs_without_a_pause_get_a_second_worker_while_the_first_frees_isolates(
    cache: Path, tmp_path: Path
) -> None:
    async with open_engine(workers=1, cache=cache) as engine:
        await Hooks(engine, tmp_path).value("1")  # compiled: no process for that is needed below
    async with open_engine(workers=2, cache=cache) as engine:
        hooks = Hooks(engine, tmp_path)
        with anyio.fail_after(60):
            while len(children()) < 2:
                await hooks.value("1")


def children() -> Sequence[psutil.Process]:
    return psutil.Process().children()


@pytest.mark.parametrize("workers", [1, 0])
async def test_nothing_is_left_when_the_engine_is_left(
    cache: Path, tmp_path: Path, workers: int
) -> None:
    files, processes, isolates = psutil.Process().num_fds(), set(children()), isolate_count()
    async with open_engine(workers=workers, cache=cache) as engine:
        hooks = Hooks(engine, tmp_path)
        await hooks.value("1")
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(
                    attempt, hooks, "function Create(ctx) { ctx.search.Web('q'); while (true) {} }"
                )
            await anyio.sleep(0.1)
            tasks.cancel_scope.cancel()
    assert psutil.Process().num_fds() <= files
    assert set(children()) <= processes
    assert isolate_count() == isolates


async def test_an_engine_that_ran_out_of_files_goes_on_when_there_are_some_again(
    cache: Path, tmp_path: Path
) -> None:
    others = set(children())  # as many files as theirs were enough for a new process
    async with open_engine(workers=1, cache=cache) as engine:
        hooks = Hooks(engine, tmp_path)
        await hooks.value("1")
        gc.collect()  # files that earlier tests left would be closed at any moment
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        free = os.dup(0)  # the lowest number that is free: the limit is one of numbers
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, hard))
        try:
            for child in set(children()) - others:
                child.kill()
            with (
                anyio.fail_after(60),
                pytest.raises(HookCrashed, match="cannot start a process for hooks"),
            ):
                await run_again_and_again(hooks)  # until the workers are buried
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert await hooks.value("3") == 3


async def run_again_and_again(hooks: Hooks) -> None:
    while True:
        await hooks.value("2")


async def attempt(hooks: Hooks, source: str) -> None:
    try:
        await hooks.create(source)
    except HostError:
        return


async def test_a_worker_ends_when_its_host_dies(cache: Path, tmp_path: Path) -> None:
    script = f"""
import anyio, os, pathlib
from groundhook.hooks.runner import open_engine
from tests.hooks.conftest import Hooks
async def main():
    async with open_engine(workers=1, cache=pathlib.Path({str(cache)!r})) as engine:
        hooks = Hooks(engine, pathlib.Path({str(tmp_path)!r}))
        await hooks.value("1")
        import psutil
        print(*(child.pid for child in psutil.Process().children()), flush=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hooks.create, "function Create() {{ while (true) {{}} }}")
            await anyio.sleep(0.2)
            os.kill(os.getpid(), 9)
anyio.run(main)
"""
    ended = await anyio.run_process(
        [sys.executable, "-c", script], check=False, cwd=Path(__file__).parents[2]
    )
    assert ended.returncode == -9, ended.stderr
    pids = [int(pid) for pid in ended.stdout.split()]
    assert pids
    with anyio.fail_after(60):
        while any(map(psutil.pid_exists, pids)):  # noqa: ASYNC110 - they are no children of ours
            await anyio.sleep(0.01)


@pytest.mark.parametrize(("workers", "runs"), [(1, 300), (0, 1000)])
async def test_many_runs_leave_no_isolate_and_no_memory(
    cache: Path, tmp_path: Path, workers: int, runs: int
) -> None:
    before = isolate_count()
    async with open_engine(workers=workers, cache=cache) as engine:
        turn = Hooks(engine, tmp_path).turn(
            "function Create(ctx) { return { metadata: { v: ctx.search.Web('q').items.length } }; }"
        )

        async def run(count: int) -> None:
            for _ in range(count):
                async with engine.open(turn) as session:
                    await session.create([], {})

        await run(50)
        resident = total_resident()
        await run(runs)
        assert isolate_count() == before
        assert total_resident() - resident < 5 * 1024 * 1024


def total_resident() -> int:
    return psutil.Process().memory_info().rss + sum(
        of_children(lambda child: child.memory_info().rss).values()
    )
