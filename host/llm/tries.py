"""Repeats a request to a model's endpoint after a failure that may pass, with pauses."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from groundhook.core.errors import ModelError
from groundhook.core.trace import open_span

PAUSE, LONGEST_PAUSE = 0.5, 8.0  # seconds before the second try; doubled for each one that follows

T = TypeVar("T")


async def with_tries(tries: int, attempt: Callable[[], Awaitable[T]]) -> T:
    """Return the result of the first try that does not fail. Each failed try is a step of the
    trace. Raises the ModelError of the last try, and at once one for which a retry is useless."""
    for number in range(1, tries):
        try:
            return await attempt()
        except ModelError as error:
            if not error.again:
                raise
            pause = _pause(number) if error.after is None else error.after
            node = open_span("model_try", f"try {number} of {tries}")
            node.data.update(code=error.code, next_try_after_ms=round(pause * 1000))
            node.fail(str(error))
            node.close()
            await anyio.sleep(pause)
    return await attempt()


def _pause(number: int) -> float:
    """Return the pause in seconds after a try, for an endpoint that requires no other."""
    # Random, so that turns that failed at the same time do not retry at the same time.
    return min(PAUSE * 2.0 ** (number - 1), LONGEST_PAUSE) * random.uniform(0.75, 1)
