"""The short way of answers: the right text to the right run, whatever the run before it left
behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.hooks.lane import LANES, Lane
from groundhook.hooks.runner import open_engine
from groundhook.host.core.types.search import SearchRequest, SearchResult
from tests.hooks.conftest import Hooks, Services, one_item

THREE = "['a', 'b', 'c'].map((name) => ctx.search.Web(name).query).join('')"


@pytest.fixture
async def hooks(cache: Path, tmp_path: Path) -> AsyncIterator[Hooks]:
    async with open_engine(workers=1, cache=cache) as engine:
        yield Hooks(engine, tmp_path)


async def test_runs_beyond_the_lanes_of_a_worker_are_answered_as_well(hooks: Hooks) -> None:
    count = 3 * LANES
    asked, gate = list[str](), anyio.Event()

    async def together(request: SearchRequest) -> SearchResult:
        asked.append(request.query)
        if len(asked) == count:
            gate.set()
        await gate.wait()
        return await one_item(request)

    answers = dict[int, str]()

    async def run(number: int) -> None:
        answers[number] = await hooks.value(
            f"ctx.search.Web('run {number}').items[0].title", Services(answer=together)
        )

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for number in range(count):
                tasks.start_soon(run, number)
    assert answers == {number: f"about run {number}" for number in range(count)}


async def test_an_answer_too_late_for_its_run_reaches_no_other(hooks: Hooks) -> None:
    for _ in range(3 * LANES):
        with anyio.CancelScope() as scope:

            async def answered_while_left(
                request: SearchRequest, scope: anyio.CancelScope = scope
            ) -> SearchResult:
                # takes effect at the next wait, which comes after the answer has been sent
                scope.cancel()
                return SearchResult(type=request.type, query="of the run before")

            await hooks.value("ctx.search.Web('left').query", Services(answer=answered_while_left))
        assert await hooks.value(THREE) == "abc"


@pytest.mark.parametrize("characters", [10_000, 100_000, 1_000_000])
async def test_long_answers_arrive_whole_between_short_ones(hooks: Hooks, characters: int) -> None:
    async def long(request: SearchRequest) -> SearchResult:
        return SearchResult(
            type=request.type,
            query="\U0001f98a" * characters if request.query == "long" else request.query,
        )

    expression = (
        "[ctx.search.Web('a').query, [...ctx.search.Web('long').query].length,"
        " ctx.search.Web('b').query].join()"
    )
    assert (
        await hooks.value(expression, Services(answer=long), result_kb=16_384)
        == f"a,{characters},b"
    )


@given(
    st.lists(st.one_of(st.none(), st.text(st.characters(codec=None), max_size=60_000)), max_size=6)
)
def test_what_is_sent_on_a_lane_is_what_is_heard(texts: list[str | None]) -> None:
    lane = Lane.made()
    try:
        for text in texts:
            if text is None:
                lane.wake()
                assert lane.wait() is None
            elif lane.send(text):
                assert lane.wait() == text.encode("utf-16-le", "surrogatepass")
        lane.send("of a run that has ended")
        lane.empty()
        assert lane.send("")
        assert lane.wait() == b""
    finally:
        lane.close()
