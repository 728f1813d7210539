"""A slow model: the terminal says what it waits for, and how long already."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from groundhook.core.types.events import Event, Reasoning, Text, Trace, TraceNode
from groundhook.host.cli import chat, view
from groundhook.host.cli.report import Report
from groundhook.host.cli.view import View
from groundhook.host.output.terminal import console
from tests.cli.conftest import Groundhook


def model(status: str = "running") -> Trace:
    return Trace(node=TraceNode.model_validate({"id": "1", "type": "model", "status": status}))


def shown(steps: Sequence[tuple[float, Event | None]], *, json: bool = False) -> str:
    """What a view shows of events at their times; None is a tick."""
    out, times = io.StringIO(), iter([at for at, _ in steps])
    report = Report(json=json)
    report.__dict__.update(out=console(out), err=console(io.StringIO()))
    with View(report, trace=False, now=lambda: next(times)) as view:
        for _, event in steps:
            view.tick() if event is None else view.show(event)
    return out.getvalue()


def test_a_wait_is_told_after_five_seconds_and_then_after_twice_as_long() -> None:
    ticks: list[tuple[float, Event | None]] = [(float(at), None) for at in range(1, 30)]
    assert [line[4:] for line in shown([(0, model()), *ticks]).splitlines()] == [
        "Waiting for the model (5 s)",
        "Waiting for the model (10 s)",
        "Waiting for the model (20 s)",
    ]


def test_a_turn_of_the_command_tells_its_waits_while_the_model_is_silent(
    here: Groundhook, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = {"type": "scripted", "options": {"script": [{"text": "Hello.", "delay_ms": 200}]}}
    (shop / "connectors/slow.conn.yao").write_text(json.dumps(slow), encoding="utf-8")
    clock = itertools.count(0, 7)  # seven seconds pass from look to look
    monkeypatch.setattr(view, "TICK_S", 0.001)
    monkeypatch.setattr(chat, "View", partial(View, now=lambda: next(clock)))
    with ThreadPoolExecutor(1) as fresh:  # a loop of fixtures may be open in this thread
        ran = fresh.submit(
            here, "chat", "shop", "hi", "--no-search", "--connector", "slow"
        ).result()
    assert ran.code == 0
    waits, answer = ran.out.split("Hello.")
    assert "Waiting for the model (7 s)" in waits
    assert "Waiting" not in answer


def test_a_model_that_thinks_is_told_as_that() -> None:
    assert "The model is thinking (6 s)" in shown(
        [(0, model()), (1, Reasoning(delta="Hm.")), (6, None)]
    )


@pytest.mark.parametrize("event", [Text(delta="80"), model("completed")])
def test_nobody_waits_for_a_model_that_answers(event: Event) -> None:
    assert "(" not in shown([(0, model()), (1, event), (60, None)])
