"""One TypeScript compiler for the tests of a process. Loading it takes most of the time in which a
small hook is compiled, and each app that a test opens would load its own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import anyio.to_thread

from groundhook.core.errors import HookCrashed
from groundhook.hooks.compiler import ScriptCompiler
from groundhook.hooks.engine import IsolateOutcome
from groundhook.hooks.script import Linker, Transpile, Transpiling

_compiler = cache(ScriptCompiler)
_compiled: dict[tuple[str, str, str], str] = {}
_make_linker = Linker.__init__
_own = False  # whether each engine has its own meanwhile


def patch() -> None:
    """Have every engine use the one compiler, but in a block of `of_their_own`."""
    Linker.__init__ = _make  # type: ignore[method-assign]


@contextmanager
def of_their_own() -> Iterator[None]:
    """Engines that are opened until the block is left have each a compiler, as in the product."""
    global _own
    before, _own = _own, True
    try:
        yield
    finally:
        _own = before


def _make(self: Linker, cache: Path, transpiling: Transpiling) -> None:
    _make_linker(self, cache, transpiling if _own else _transpiling)


@asynccontextmanager
async def _transpiling() -> AsyncIterator[Transpile]:
    yield transpile


async def transpile(file: str, source: str, others: Mapping[str, Any]) -> str:
    """Return a compiled file as JSON."""
    asked = (file, source, json.dumps(others))
    if asked not in _compiled:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[IsolateOutcome] = loop.create_future()

        def done(outcome: IsolateOutcome) -> None:
            with suppress(RuntimeError):  # who asked has left, and its loop is closed
                loop.call_soon_threadsafe(_settle, answer, outcome)

        compiler = await anyio.to_thread.run_sync(_compiler)
        compiler.transpile(file, source, others, done)
        outcome = await answer
        if outcome.kind != "value":
            raise HookCrashed(f"the TypeScript compiler failed on {file!r}: {outcome.text}")
        _compiled[asked] = outcome.text
    return _compiled[asked]


def _settle(answer: asyncio.Future[IsolateOutcome], outcome: IsolateOutcome) -> None:
    if not answer.done():
        answer.set_result(outcome)
