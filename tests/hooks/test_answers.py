"""Answers to host calls: the right text reaches the right call, at any time and of any length."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from groundhook.core.types.search import SearchRequest, SearchResult
from groundhook.hooks.runner import open_engine
from tests.hooks.conftest import Hooks, Services, one_item

TOGETHER = 24  # runs in one worker
# The first call waits until all have called, which takes a busy machine a while.
PATIENT = {"call_ms": 300_000, "wall_ms": 300_000}


@pytest.fixture(params=[1, 0], ids=["worker", "in-process"])
async def hooks(
    request: pytest.FixtureRequest, cache: Path, tmp_path: Path
) -> AsyncIterator[Hooks]:
    async with open_engine(workers=request.param, cache=cache) as engine:
        yield Hooks(engine, tmp_path)


async def test_answers_to_many_runs_at_once_reach_the_run_that_called(hooks: Hooks) -> None:
    queries, all_called = list[str](), anyio.Event()

    async def answer(request: SearchRequest) -> SearchResult:
        queries.append(request.query)
        if len(queries) == TOGETHER:
            all_called.set()
        await all_called.wait()
        return await one_item(request)

    answers = dict[int, str]()

    async def run(number: int) -> None:
        answers[number] = await hooks.value(
            f"ctx.search.Web('run {number}').items[0].title",
            Services(answer=answer),
            **PATIENT,
        )

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for number in range(TOGETHER):
                tasks.start_soon(run, number)
    assert answers == {number: f"about run {number}" for number in range(TOGETHER)}


async def test_answers_that_come_at_once_or_late_reach_the_call_they_are_for(hooks: Hooks) -> None:
    chance = random.Random(7)

    async def answer(request: SearchRequest) -> SearchResult:
        for _ in range(chance.choice([0, 0, 0, 1, 10, 50])):
            await asyncio.sleep(0)
        return SearchResult(
            type=request.type, query=request.query * chance.choice([1, 1, 10, 10_000])
        )

    script = """(() => {
      const wrong = [];
      for (let n = 0; n < 500; n++) {
        const { query } = ctx.search.Web(String(n));
        if (!query.startsWith(String(n)) || query.length % String(n).length) wrong.push(n);
      }
      return wrong;
    })()"""
    with anyio.fail_after(60):
        assert await hooks.value(script, Services(answer=answer), result_kb=16_384) == []


@pytest.mark.parametrize("characters", [10_000, 1_000_000])
async def test_long_answers_arrive_whole_between_short_ones(hooks: Hooks, characters: int) -> None:
    async def answer(request: SearchRequest) -> SearchResult:
        return SearchResult(
            type=request.type,
            query="\U0001f98a" * characters if request.query == "long" else request.query,
        )

    expression = (
        "[ctx.search.Web('a').query, [...ctx.search.Web('long').query].length,"
        " ctx.search.Web('b').query].join()"
    )
    assert (
        await hooks.value(expression, Services(answer=answer), result_kb=16_384)
        == f"a,{characters},b"
    )


async def test_an_answer_too_late_for_its_run_reaches_no_other(hooks: Hooks) -> None:
    three = "['a', 'b', 'c'].map((name) => ctx.search.Web(name).query).join('')"
    for _ in range(10):
        with anyio.CancelScope() as scope:

            async def answer(
                request: SearchRequest, scope: anyio.CancelScope = scope
            ) -> SearchResult:
                # takes effect at the next wait, which comes after the answer has been sent
                scope.cancel()
                return SearchResult(type=request.type, query="of the run before")

            await hooks.value("ctx.search.Web('left').query", Services(answer=answer))
        assert await hooks.value(three) == "abc"


async def test_the_loop_goes_on_while_a_hook_calls_again_and_again(hooks: Hooks) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        calls = "Array.from({length: 200}, (_, n) => ctx.search.Web(String(n)).query).length"
        assert await hooks.value(calls) == 200
        tasks.cancel_scope.cancel()
    assert turns > 200


@pytest.mark.parametrize("calls", [1, 2, 5])
async def test_a_run_that_is_cancelled_between_answers_ends_at_once(
    hooks: Hooks, calls: int
) -> None:
    with anyio.fail_after(60):
        for _ in range(10):
            left = calls
            with anyio.CancelScope() as scope:

                async def answer(
                    request: SearchRequest, scope: anyio.CancelScope = scope
                ) -> SearchResult:
                    nonlocal left
                    left -= 1
                    if left == 0:
                        scope.cancel()
                    return SearchResult(type=request.type, query=request.query)

                await hooks.value(
                    "(() => { for (;;) ctx.search.Web('a'); })()", Services(answer=answer)
                )
            assert scope.cancelled_caught
