"""Children of the product that fork end as those that are started do."""

from __future__ import annotations

import json
import signal
import sys
from contextlib import nullcontext
from pathlib import Path

import anyio
import psutil
import pytest

from groundhook.core.readers.process import LOAD
from groundhook.core.workers import start_child
from groundhook.host.tools.mcp.program import open_program
from tests.loops import run
from tests.parts import compiling, forks

READER = "groundhook.core.readers.process"


@pytest.mark.parametrize("forked", [True, False], ids=["forked", "started"])
async def test_a_child_answers_and_ends_with_its_connection_or_by_a_signal(forked: bool) -> None:
    with nullcontext() if forked else forks.started_not_forked():
        children = [await start_child("a reader", READER) for _ in range(2)]
    of_this = {child.pid for child in psutil.Process().children()}
    assert [child.pid in of_this for child in children] == [not forked] * 2
    for child in children:
        assert await child.connection.call(LOAD, "groundhook.core.json_text") is None
    first, second = children
    await first.stop(60)
    second.kill()
    assert await second.process.wait() == -signal.SIGKILL
    assert first.process.returncode == 0


SCRIPT = """
import os, sys
for line in sys.stdin:
    print(*sys.argv[1:], os.environ, os.getcwd(), __name__, line, flush=True)
print("over", file=sys.stderr)
sys.exit(7)
"""


@pytest.mark.parametrize("forked", [True, False], ids=["forked", "started"])
async def test_a_script_that_is_a_program_reads_writes_and_ends_as_one(
    tmp_path: Path, forked: bool
) -> None:
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    ended = anyio.Event()
    with nullcontext() if forked else forks.started_not_forked():
        async with open_program(
            sys.executable,
            ["script.py", "a b"],
            env={"KEY": "k"},
            folder=tmp_path,
            max_bytes=1000,
            on_end_of_output=ended.set,
        ) as program:
            await program.write(b"hello")
            with anyio.fail_after(60):
                line = str(await program.read())
                of_this = [child.pid for child in psutil.Process().children()]
                assert (program._transport.get_pid() in of_this) is not forked
                program._transport.get_pipe_transport(0).close()
                await ended.wait()
                while (code := program.exit_code) is None:
                    await program.settle()
    assert line.startswith("b\"a b environ({'KEY': 'k'")
    assert f"{tmp_path} __main__ hello" in line
    assert (code, program.last_output()) == (7, "over")


@pytest.mark.parametrize("variable", ["PYTHONUTF8", "LC_ALL", "LANG", "TZ"])
def test_what_would_begin_otherwise_is_started(variable: str) -> None:
    assert forks.may_fork({"HOME": "/"})
    assert not forks.may_fork({"HOME": "/", variable: "C"})


def test_a_test_may_end_while_its_hook_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop that waited for it is closed then; the compiler serves other tests."""
    failed: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", failed.append)
    run(_leave)
    assert json.loads(run(compiling.transpile, "kept.ts", "let kept: number = 1;", {}))["code"]
    assert failed == []


async def _leave() -> None:
    await compiling.transpile("before.ts", "", {})
    with anyio.move_on_after(0.1):
        await compiling.transpile("long.ts", "let left: number = [1].length;\n" * 8_000, {})
