"""Children of the product that fork end as those that are started do."""

from __future__ import annotations

import json
import signal
import sys
from contextlib import nullcontext

import anyio
import psutil
import pytest

from groundhook.core.readers.process import LOAD
from groundhook.core.workers import start_child
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
