"""What fixtures need beside the loop that their tests run on: a loop for functions, and tasks that
outlast a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

import anyio

T = TypeVar("T")


def run(work: Callable[..., Awaitable[T]], *arguments: object) -> T:
    """Run `work` to its end in a thread of its own: the loop of asynchronous fixtures may be open
    in this one."""
    with ThreadPoolExecutor(1) as fresh:
        return fresh.submit(anyio.run, work, *arguments).result()


@asynccontextmanager
async def in_a_task_of_its_own(manager: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
    """Enter and leave `manager` in one task. Tests and fixtures share a task, in which task groups
    must end in the order opposite to their beginning; pytest ends fixtures of a module as soon as
    no test to come wants them, which is another order when the tests are shuffled."""
    entered: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    left = asyncio.Event()

    async def hold() -> None:
        async with manager as value:
            entered.set_result(value)
            await left.wait()

    holder = asyncio.create_task(hold())  # noqa: TID251
    await asyncio.wait((holder, entered), return_when=asyncio.FIRST_COMPLETED)
    if not entered.done():
        await holder  # raises what kept it from being entered
    try:
        yield await entered
    finally:
        left.set()
        await holder
