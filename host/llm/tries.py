"""Tries of a request to a model's endpoint: again after a failure that may pass, after a pause."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from groundhook.host.core.errors import ModelError
from groundhook.host.core.trace import open_span

PAUSE, LONGEST_PAUSE = 0.5, 8.0  # seconds before the second try; doubled for each one that follows

T = TypeVar("T")


async def with_tries(tries: int, attempt: Callable[[], Awaitable[T]]) -> T:
    """Return the result of the first try that does not fail. Each failed try is a step of the
    trace. Raises the ModelError of the last one, and one after which a further try is useless."""
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
    """Return the seconds after a try whose endpoint requires none."""
    # Not exactly: turns that failed together should not return together.
    return min(PAUSE * 2.0 ** (number - 1), LONGEST_PAUSE) * random.uniform(0.75, 1)
