"""Servers that are killed, hang or start slowly; callers that are cancelled; closing during
calls."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from groundhook.core.errors import (
    HostError,
    ServerMalformed,
    ServerRefused,
    ServerTimeout,
    ServerUnreachable,
)
from groundhook.host.tools.mcp.program import ServerProgram, open_program
from groundhook.host.tools.mcp.sdk import session
from groundhook.host.tools.mcp.servers import Servers, open_servers
from tests.loopback.server import Json, serving
from tests.mcp.conftest import HttpServer, Open, declared, read, script, stdio, value
from tests.parts import forks
from tests.parts.children import of_children
from tests.parts.clock import jump, time_flies

SLEEP = "import time; time.sleep(600)"


async def noted(diary: Path, line: str, times: int = 1) -> None:
    """Wait until a server has recorded a call."""
    with anyio.fail_after(60):
        while read(diary).count(line) < times:  # noqa: ASYNC110 - another process writes it
            await anyio.sleep(0.005)


def end(pid: int) -> None:
    """Kill a child and see it dead, before the event loop can."""
    process = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    assert select.select([process], [], [], 60)[0]
    os.close(process)


def children() -> list[psutil.Process]:
    return [*of_children(lambda child: child, all_below=True)]


async def test_a_killed_server_is_restarted_for_the_next_call(opened: Open) -> None:
    async with opened(own=stdio()) as servers:
        first = await value(servers, "own", "pid")
        end(first)
        assert await value(servers, "own", "plain", {"text": "x"}) == "x"
        assert await value(servers, "own", "pid") != first


async def test_a_call_with_side_effects_is_not_repeated_when_its_server_dies(
    opened: Open, diary: Path
) -> None:
    async with opened(own=stdio(env={"DIARY": str(diary)})) as servers:
        with pytest.raises(
            ServerUnreachable,
            match=r"before it answered tools/call 'die'; .* exit code 7; .*out of order$",
        ):
            await servers.call_tool("own", "die", {"code": 7})
        assert await value(servers, "own", "plain", {"text": "x"}) == "x"
    assert read(diary) == ["die"]


async def test_a_read_only_call_is_repeated_when_its_server_dies(opened: Open, diary: Path) -> None:
    async with opened(own=stdio(env={"DIARY": str(diary)})) as servers:
        pid = await value(servers, "own", "pid")
        answers: list[object] = []

        async def look() -> None:
            answers.append(await value(servers, "own", "look", {"seconds": 3600}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(look)
            await noted(diary, "look")
            os.kill(pid, signal.SIGKILL)
    assert answers == ["seen"]
    assert read(diary) == ["look", "look"]


async def test_a_call_of_a_tool_in_read_only_is_repeated_once_and_not_twice(
    opened: Open, diary: Path
) -> None:
    async with opened(own=stdio(env={"DIARY": str(diary)}, read_only=("die",))) as servers:
        with pytest.raises(ServerUnreachable, match="exit code 7"):
            await servers.call_tool("own", "die", {"code": 7})
    assert read(diary) == ["die", "die"]


async def test_a_killed_http_server_is_an_error_and_works_again_after_a_restart(
    opened: Open, http_server: HttpServer, diary: Path
) -> None:
    async with opened(web=http_server.spec) as servers:
        assert await value(servers, "web", "plain", {"text": "a"}) == "a"
        http_server.kill()
        with pytest.raises(
            ServerUnreachable,
            match=r"^MCP server 'web' cannot be reached at http://127\.0\.0\.1:\d+/(mcp|sse)",
        ):
            await servers.call_tool("web", "plain", {"text": "b"})
        http_server.start()
        assert await value(servers, "web", "plain", {"text": "c"}) == "c"
        failures: list[HostError] = []

        async def act() -> None:
            try:
                await servers.call_tool("web", "act", {"seconds": 3600})
            except HostError as exc:
                failures.append(exc)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(act)
            await noted(diary, "act")
            http_server.kill()
        assert isinstance(failures[0], ServerUnreachable)
        http_server.start()
        assert await value(servers, "web", "plain", {"text": "d"}) == "d"
    assert read(diary) == ["act"]


async def test_a_request_that_an_http_server_refuses_is_an_error_at_once_and_others_go_on(
    opened: Open, http_server: HttpServer
) -> None:
    async with opened(web=http_server.spec | {"timeout": 20}) as servers:
        assert await value(servers, "web", "plain", {"text": "a"}) == "a"
        with anyio.fail_after(60), pytest.raises(ServerRefused, match=r"tools/call 'plain': 413"):
            await servers.call_tool("web", "plain", {"text": "x" * 5_000_000})
        assert await value(servers, "web", "plain", {"text": "b"}) == "b"


async def test_a_slow_call_meets_its_deadline_and_the_others_go_on(
    opened: Open, diary: Path
) -> None:
    async with opened(own=stdio(timeout=300, env={"DIARY": str(diary)})) as servers:
        before = await value(servers, "own", "pid")

        async def wait() -> None:
            with pytest.raises(
                ServerTimeout,
                match=r"did not answer tools/call 'wait' within 300 s .*raise timeout in own\.mcp\.yao",
            ):
                await servers.call_tool("own", "wait", {"seconds": 3600})

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await noted(diary, "wait")
            jump(301)
        assert await value(servers, "own", "pid") == before


async def test_a_server_that_hangs_is_ended_and_restarted(opened: Open, diary: Path) -> None:
    async with opened(own=stdio(timeout=300, env={"DIARY": str(diary)})) as servers:
        before = await value(servers, "own", "pid")
        os.kill(before, signal.SIGSTOP)
        with time_flies(), pytest.raises(ServerTimeout):
            await servers.call_tool("own", "act")
        assert await value(servers, "own", "pid") != before
    assert not psutil.pid_exists(before)


async def test_an_http_server_that_hung_works_again_later(
    opened: Open, http_server: HttpServer
) -> None:
    async with opened(web=http_server.spec | {"timeout": 300}) as servers:
        assert await value(servers, "web", "plain", {"text": "a"}) == "a"
        http_server.signal(signal.SIGSTOP)
        with time_flies(), pytest.raises(ServerTimeout):
            await servers.call_tool("web", "plain", {"text": "b"})
        http_server.signal(signal.SIGCONT)
        assert await value(servers, "web", "plain", {"text": "c"}) == "c"


async def test_a_server_that_starts_slowly_has_a_deadline_of_its_own(
    opened: Open, diary: Path, tmp_path: Path
) -> None:
    ready, noting = tmp_path / "ready", {"env": {"DIARY": str(diary)}}
    slow = stdio("--waits", str(ready), timeout=300, start_timeout=3000, **noting)
    async with opened(slow=slow, never=script(SLEEP, start_timeout=300)) as servers:
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                assert await value(servers, "slow", "plain", {"text": "x"}) == "x"

            tasks.start_soon(ask)
            await noted(diary, "waits")
            jump(301)
            ready.touch()
        late = r"'never' was not ready after 300 s \(raise start_timeout in never\.mcp\.yao"
        with time_flies(), pytest.raises(ServerTimeout, match=late):
            await servers.list_tools("never")


async def test_all_calls_to_a_server_that_cannot_start_fail_at_once(
    opened: Open, diary: Path
) -> None:
    program = f"""
import time
print("hm", flush=True)
with open({str(diary)!r}, "a") as notes:
    notes.write("said\\n")
time.sleep(3600)
"""
    async with opened(never=script(program, start_timeout=300)) as servers:
        failures: list[HostError] = []

        async def ask() -> None:
            try:
                await servers.list_tools("never")
            except ServerMalformed as exc:
                failures.append(exc)

        with anyio.fail_after(3600):  # by the clock that jumps
            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(ask)
                await noted(diary, "said")
                await anyio.sleep(0.005)  # the loop has read it
                jump(301)
        assert len(failures) == 10


@pytest.mark.parametrize(
    "rest", ["", "os.close(0); time.sleep(600)"], ids=["it ends", "it closes its input"]
)
async def test_the_line_of_a_program_that_ends_before_the_first_message_is_in_the_error(
    opened: Open, monkeypatch: pytest.MonkeyPatch, rest: str
) -> None:
    @asynccontextmanager
    async def unread_until_the_first_message(
        *given: Any, **more: Any
    ) -> AsyncIterator[ServerProgram]:
        async with open_program(*given, **more) as program:
            output, write = program._transport.get_pipe_transport(1), program.write
            output.pause_reading()
            with anyio.fail_after(60), suppress(anyio.BrokenResourceError):
                while True:
                    await write(b"{}")
                    await anyio.sleep(0.005)

            async def write_and_read(line: bytes) -> None:
                output.resume_reading()
                await write(line)

            monkeypatch.setattr(program, "write", write_and_read)
            yield program

    monkeypatch.setattr(session, "open_program", unread_until_the_first_message)
    text = f"import os, time; print('no license', flush=True); {rest}"
    async with opened(own=script(text)) as servers:
        with pytest.raises(ServerMalformed, match=r"does not speak MCP; .*'no license'"):
            await servers.list_tools("own")


async def test_calls_run_concurrently_on_one_connection(opened: Open, diary: Path) -> None:
    async with opened(own=stdio(timeout=3600, env={"DIARY": str(diary)})) as servers:
        await servers.list_tools("own")
        answers: dict[int, object] = {}

        async def ask(number: int) -> None:
            answers[number] = await value(servers, "own", "plain", {"text": f"n{number}"})

        async with anyio.create_task_group() as waiting:
            for _ in range(20):
                waiting.start_soon(servers.call_tool, "own", "wait", {"seconds": 3600})
            await noted(diary, "wait", times=20)
            async with anyio.create_task_group() as tasks:
                for number in range(20):
                    tasks.start_soon(ask, number)
            waiting.cancel_scope.cancel()
        assert answers == {number: f"n{number}" for number in range(20)}


async def test_a_cancelled_caller_does_not_affect_other_calls(opened: Open, diary: Path) -> None:
    async with opened(own=stdio(env={"DIARY": str(diary)})) as servers:
        before = await value(servers, "own", "pid")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(servers.call_tool, "own", "wait", {"seconds": 3600})
            await noted(diary, "wait")
            tasks.cancel_scope.cancel()
        assert await value(servers, "own", "pid") == before


async def test_a_caller_cancelled_while_the_server_starts_does_not_affect_others(
    opened: Open,
) -> None:
    async with opened(own=stdio()) as servers:
        with anyio.move_on_after(0.05):
            await servers.list_tools("own")
        assert await value(servers, "own", "plain", {"text": "x"}) == "x"


async def test_closing_ends_calls_under_way_with_an_error_and_leaves_no_child(diary: Path) -> None:
    failures: list[HostError] = []
    catalogue = declared(own=stdio(env={"DIARY": str(diary)}), starting=script(SLEEP))
    alive, threads = set(children()), set(threading.enumerate())

    async def ask(servers: Servers, server: str, tool: str) -> None:
        try:
            await servers.call_tool(server, tool, {"seconds": 3600})
        except HostError as exc:
            failures.append(exc)

    with forks.started_not_forked():
        async with anyio.create_task_group() as tasks, open_servers(catalogue, {}) as servers:
            tasks.start_soon(ask, servers, "own", "wait")
            tasks.start_soon(ask, servers, "starting", "x")
            await noted(diary, "wait")
            assert len(set(children()) - alive) == 2
    assert sorted(map(str, failures)) == [
        "MCP server 'own' was closed before it answered tools/call 'wait'",
        "MCP server 'starting' was closed before it answered tools/call 'x'",
    ]
    assert set(children()) <= alive
    assert {
        thread.name for thread in set(threading.enumerate()) - threads if "AnyIO" not in thread.name
    } == set()
    with pytest.raises(ServerUnreachable, match="was closed"):
        await servers.list_tools("own")


async def test_a_server_that_does_not_exit_is_killed_with_its_child_processes(
    tmp_path: Path,
) -> None:
    stubborn = (
        "import runpy, signal, subprocess, sys, time\nsignal.signal(signal.SIGTERM,"
        " signal.SIG_IGN)\nsubprocess.Popen([sys.executable, '-c', 'import time;"
        f" time.sleep(600)'])\nsys.argv = ['server.py']\nrunpy.run_path({stdio()['args'][0]!r},"
        " run_name='__main__')\ntime.sleep(600)\n"
    )
    alive = set(children())
    async with open_servers(declared(own=script(stubborn)), {}) as servers:
        assert await value(servers, "own", "plain", {"text": "x"}) == "x"
        assert len(set(children()) - alive) == 2
    assert set(children()) <= alive


async def test_cancelling_the_surrounding_scope_closes_the_servers(diary: Path) -> None:
    alive = set(children())
    catalogue = declared(own=stdio(env={"DIARY": str(diary)}))

    async def house() -> None:
        async with open_servers(catalogue, {}) as servers:
            await servers.call_tool("own", "wait", {"seconds": 3600})

    with forks.started_not_forked():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(house)
            await noted(diary, "wait")
            assert set(children()) > alive
            tasks.cancel_scope.cancel()
    assert set(children()) <= alive


async def test_an_error_of_the_block_is_raised_unwrapped() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with open_servers(declared(), {}):
            raise KeyError("mine")


CTRL_C = """
import sys
from groundhook.host.cli.edge import execute
from groundhook.host.cli.report import Report
from groundhook.host.tools.mcp.servers import open_servers
from tests.mcp.conftest import declared, stdio

async def work():
    async with open_servers(declared(own=stdio(env={"DIARY": sys.argv[1]})), {}) as servers:
        await servers.call_tool("own", "wait", {"seconds": 60})

sys.exit(execute(work, Report(json=False)))
"""


async def test_ctrl_c_in_the_middle_of_a_call_leaves_no_child(diary: Path) -> None:
    command = [sys.executable, "-c", CTRL_C, str(diary)]
    async with await anyio.open_process(command, cwd=Path(__file__).parents[2]) as process:
        assert process.stderr is not None
        await noted(diary, "wait")
        servers = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        with anyio.fail_after(60):
            stderr = b"".join([piece async for piece in process.stderr])
            assert await process.wait() == 130
    assert (len(servers), stderr) == (1, b"error: interrupted\n")
    assert not servers[0].is_running()


async def test_a_refusal_without_a_message_is_an_error_at_once(opened: Open) -> None:
    with serving() as server:
        server.on("/mcp", Json({"error": {"code": -32000}}, status=429))
        web = {"transport": "http", "url": f"{server.url}/mcp", "timeout": 20}
        async with opened(web=web) as servers:
            with anyio.fail_after(60), pytest.raises(ServerRefused, match="429 Too Many Requests"):
                await servers.list_tools("web")
