"""Many turns at once, and turns that are left in the middle: nothing stays behind."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path

import anyio
import psutil
import pytest

from groundhook import Host, TooManyTurns, open_host
from groundhook.core.types.connector_spec import (
    ConnectorOptions,
    ConnectorSpec,
)
from groundhook.host.llm.scripted import ScriptedConnector
from groundhook.host.testing.canned import CannedSource, canned_item
from tests.conftest import MakeApp

pytestmark = pytest.mark.usefixtures("processes_of_its_own")

HOOK = """
export function Create(ctx, messages) {
  const found = ctx.search.KB(messages[0].content);
  return { search: true, metadata: { found: found.items.length } };
}
export function Next(ctx, payload) { return { data: payload.completion.content.length }; }
"""
PACKAGE = '{"connector": "script", "search": {"kb": true}, "kb": {"collections": ["docs"]}}'


def app_of(make_app: MakeApp) -> Path:
    return make_app(
        {"assistants/a/package.yao": PACKAGE, "assistants/a/index.ts": HOOK, "kb/docs.kb.yao": "{}"}
    )


async def test_a_hundred_turns_at_once_half_of_them_left_leave_nothing_behind(
    make_app: MakeApp,
) -> None:
    spec = ConnectorSpec(
        id="script",
        type="scripted",
        options=ConnectorOptions(script=({"text": "Yes {ref:0}.", "times": 0},)),
    )
    source = CannedSource({"*": [canned_item("k")]})
    app = app_of(make_app)
    threads, files, children = _held()
    ended: list[str] = []

    async def whole(host: Host) -> None:
        async with host.stream("a", "question") as events:
            ended.append([event async for event in events][-1].type)

    async def left(host: Host, after: int) -> None:
        async with host.stream("a", "question") as events:
            seen = 0
            async for _ in events:
                seen += 1
                if seen > after:
                    break

    with anyio.fail_after(60):
        async with open_host(
            app,
            environment={},
            sources={"kb": source},
            connectors={"script": ScriptedConnector(spec)},
        ) as host:
            await whole(host)
            async with anyio.create_task_group() as tasks:
                for n in range(50):
                    tasks.start_soon(whole, host)
                    tasks.start_soon(left, host, n % 12)
            assert ended == ["stream_end"] * 51
            async with host.stream("a", "still alive?") as events:
                assert [event async for event in events][-1].type == "stream_end"
    after = _held()
    assert after[0] <= threads
    assert after[1] <= files
    assert after[2] <= children


async def test_turns_above_the_bound_wait_and_above_the_queue_they_are_refused(
    make_app: MakeApp,
) -> None:
    app = make_app(
        {
            "assistants/a/package.yao": PACKAGE,
            "kb/docs.kb.yao": "{}",
            "agent/agent.yml": "turns: {at_once: 2, queue: 1}\n",
        }
    )
    spec = ConnectorSpec(
        id="script",
        type="scripted",
        options=ConnectorOptions(script=({"text": "Yes.", "times": 0},)),
    )
    source = CannedSource({"*": [canned_item("k")]}, gate=anyio.Event())
    ended: list[str] = []

    async def ask(host: Host) -> None:
        async with host.stream("a", "question") as events:
            ended.append([event async for event in events][-1].type)

    with anyio.fail_after(60):
        async with (
            open_host(
                app,
                environment={},
                sources={"kb": source},
                connectors={"script": ScriptedConnector(spec)},
            ) as host,
            anyio.create_task_group() as tasks,
        ):
            for _ in range(3):
                tasks.start_soon(ask, host)
            while len(source.requests) < 2:
                await anyio.wait_all_tasks_blocked()
            with pytest.raises(TooManyTurns, match=r"2 turns are under way and 1 wait") as refused:
                async with host.stream("a", "question"):
                    pass
            assert refused.value.code == "too_many_turns"
            assert len(source.requests) == 2  # the third waits
            assert source.gate is not None
            source.gate.set()
    assert ended == ["stream_end"] * 3
    assert len(source.requests) == 3


def _held() -> tuple[set[str], int, set[int]]:
    """Threads of ours, open files and sockets, and child processes."""
    gc.collect()
    process = psutil.Process()
    threads = {thread.name for thread in threading.enumerate() if "AnyIO worker" not in thread.name}
    return threads, process.num_fds(), {child.pid for child in process.children(recursive=True)}


@pytest.mark.parametrize("tuned", [False, True])
async def test_garbage_collection_is_tuned_only_where_the_program_chooses_it(
    make_app: MakeApp, tuned: bool
) -> None:
    gc.unfreeze()
    async with open_host(app_of(make_app), tune_gc=tuned):
        assert (gc.get_freeze_count() > 0) is tuned
    assert gc.get_freeze_count() == 0


async def test_processes_that_serve_one_app_share_a_hook_worker_for_each_core(
    make_app: MakeApp,
) -> None:
    source = CannedSource({"*": [canned_item("k")]}, gate=anyio.Event())
    assert source.gate is not None
    spec = ConnectorSpec(
        id="script",
        type="scripted",
        options=ConnectorOptions(script=({"text": "Yes.", "times": 0},)),
    )
    others = _held()[2]
    with anyio.fail_after(60):
        async with (
            open_host(
                app_of(make_app),
                environment={},
                sources={"kb": source},
                connectors={"script": ScriptedConnector(spec)},
                processes=os.cpu_count() or 1,
            ) as host,
            anyio.create_task_group() as tasks,
        ):
            for _ in range(3):
                tasks.start_soon(_drain, host)
            while len(source.requests) < 3:  # all three hooks wait for their searches
                await anyio.wait_all_tasks_blocked()
            # One runs the hooks; another has compiled them.
            assert len(_held()[2] - others) <= 2
            source.gate.set()


async def _drain(host: Host) -> None:
    async with host.stream("a", "question") as events:
        async for _ in events:
            pass
