"""Children of the product that fork end as those that are started do."""

from __future__ import annotations

import signal
from contextlib import nullcontext

import psutil
import pytest

from groundhook.core.readers.process import LOAD
from groundhook.core.workers import start_child
from tests.parts import forks

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
