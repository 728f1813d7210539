"""An event loop for what is not awaited: of fixtures and tests that are functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import anyio

T = TypeVar("T")


def run(work: Callable[..., Awaitable[T]], *arguments: object) -> T:
    """Run `work` to its end in a thread of its own: the loop of asynchronous fixtures may be open in this one."""
    with ThreadPoolExecutor(1) as fresh:
        return fresh.submit(anyio.run, work, *arguments).result()
