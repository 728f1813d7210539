"""Staying awake: as long as it pays, and seldom where it does not."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import pytest

from groundhook.hooks.engine import Isolate
from groundhook.hooks.runner import open_engine
from groundhook.hooks.vigil import MOMENT_SECONDS, MOST_LEFT_OUT, Vigil
from groundhook.host.core.types.search import SearchRequest, SearchResult
from tests.hooks.conftest import Hooks, Services


@pytest.fixture(params=[1, 0], ids=["worker", "in-process"])
async def hooks(
    request: pytest.FixtureRequest, cache: Path, tmp_path: Path
) -> AsyncIterator[Hooks]:
    async with open_engine(workers=request.param, cache=cache) as engine:
        yield Hooks(engine, tmp_path)


def found_at_once(vigil: Vigil) -> bool:
    """Whether it looks at all; what is waited for is there."""
    if not vigil.begins():
        return False
    next(vigil.looks())
    vigil.ended(found=True)
    return True


def in_vain(vigil: Vigil) -> bool:
    return vigil.begins() and sum(1 for _ in vigil.looks()) > 0


def test_it_looks_every_time_while_there_is_something_to_find() -> None:
    vigil = Vigil(lambda: True)
    assert all(found_at_once(vigil) for _ in range(1000))


def test_a_moment_ends_and_the_more_were_in_vain_the_fewer_there_are() -> None:
    vigil = Vigil(lambda: True)
    began = time.monotonic()
    waits = 10_000
    looked = [number for number in range(waits) if in_vain(vigil)]
    assert looked[:4] == [0, 2, 6, 14]
    assert {after - before for before, after in pairwise(looked[8:])} == {MOST_LEFT_OUT + 1}
    assert len(looked) < waits / MOST_LEFT_OUT + 10
    assert time.monotonic() - began > len(looked) * MOMENT_SECONDS


def test_finds_make_it_look_every_time_again() -> None:
    vigil = Vigil(lambda: True)
    for _ in range(1000):
        in_vain(vigil)
    found = [found_at_once(vigil) for _ in range(4 * MOST_LEFT_OUT)]
    assert not all(found[:MOST_LEFT_OUT])
    assert all(found[3 * MOST_LEFT_OUT :])


def test_it_never_looks_where_others_could_use_the_core() -> None:
    vigil = Vigil(lambda: False)
    assert not any(found_at_once(vigil) for _ in range(100))


async def test_answers_that_come_at_once_or_late_reach_the_call_they_are_for(hooks: Hooks) -> None:
    """From before the script looks for the answer until long after it has ceased to."""
    chance = random.Random(7)

    async def answer(request: SearchRequest) -> SearchResult:
        for _ in range(chance.choice([0, 0, 0, 1, 10, 20, 30, 40, 50, 200])):
            await asyncio.sleep(0)
        return SearchResult(
            type=request.type, query=request.query * chance.choice([1, 1, 10, 10_000])
        )

    script = """(() => {
      const wrong = [];
      for (let n = 0; n < 1000; n++) {
        const { query } = ctx.search.Web(String(n));
        if (!query.startsWith(String(n)) || query.length % String(n).length) wrong.push(n);
      }
      return wrong;
    })()"""
    with anyio.fail_after(30):
        assert await hooks.value(script, Services(answer=answer), result_kb=16_384) == []


async def test_a_tracer_that_stops_the_host_in_the_middle_of_an_answer_mixes_up_nothing(
    cache: Path, tmp_path: Path
) -> None:
    """Between writing the answer and saying so: JavaScript goes to fetch it, and comes back with
    its next call."""
    stopped = 0

    def between(frame: FrameType, _event: str, _: object) -> Any:
        nonlocal stopped
        isolate, number = frame.f_locals["self"], frame.f_locals.get("number")
        if number is not None and not isolate._gate.locked():
            until = time.monotonic() + 0.2
            while (
                not (isolate._asleep and isolate._bridge.taken > number)
                and time.monotonic() < until
            ):
                time.sleep(0)
            stopped += isolate._bridge.taken > number
        return between

    async with open_engine(workers=0, cache=cache) as engine:
        sys.settrace(
            lambda frame, event, _: (
                between(frame, event, _) if frame.f_code is Isolate.reply.__code__ else None
            )
        )
        try:
            asked = "Array.from({length: 12}, (_, n) => ctx.search.Web(`q${n}`).query)"
            assert await Hooks(engine, tmp_path).value(asked) == [f"q{n}" for n in range(12)]
        finally:
            sys.settrace(None)
    assert stopped > 0


async def test_the_loop_goes_on_while_a_hook_asks_again_and_again(hooks: Hooks) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        assert (
            await hooks.value(
                "Array.from({length: 200}, (_, n) => ctx.search.Web(String(n)).query).length"
            )
            == 200
        )
        tasks.cancel_scope.cancel()
    assert turns > 200


@pytest.mark.parametrize("asked", range(1, 6))
async def test_a_run_that_is_left_while_both_sides_are_awake_ends_at_once(
    hooks: Hooks, asked: int
) -> None:
    with anyio.fail_after(30):
        for _ in range(20):
            left = asked
            with anyio.CancelScope() as scope:

                async def answer(
                    request: SearchRequest, scope: anyio.CancelScope = scope
                ) -> SearchResult:
                    nonlocal left
                    left -= 1
                    if left == 0:
                        # takes effect at the next wait, which comes after the answer has been sent
                        scope.cancel()
                    return SearchResult(type=request.type, query=request.query)

                await hooks.value(
                    "(() => { for (;;) ctx.search.Web('a'); })()", Services(answer=answer)
                )
            assert scope.cancelled_caught
