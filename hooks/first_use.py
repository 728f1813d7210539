"""A hook engine that is made when the first hook is opened.

The JavaScript engine and the table of host calls are a fifth of the imports of a turn. Turns
without a hook do not import them; the first hook of a host imports them in a thread.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from groundhook.core.hook_engine import (
    HookEngine,
    HookScript,
    HookSession,
    HookTurn,
    ScriptFunction,
    WrittenName,
)

if TYPE_CHECKING:
    from groundhook.hooks.runner import InProcessEngine, WorkerEngine


class _Arguments(TypedDict):
    workers: int | None
    cache: Path
    environment: Mapping[str, str]


class _LazyEngine:
    """Passes the calls of `core.hook_engine.HookEngine` to an engine that the first one
    makes."""

    def __init__(
        self, tasks: TaskGroup, workers: int | None, cache: Path, environment: Mapping[str, str]
    ) -> None:
        self._tasks = tasks
        self._arguments: _Arguments = {
            "workers": workers,
            "cache": cache,
            "environment": environment,
        }
        self._making = anyio.Lock()
        self._made: InProcessEngine | WorkerEngine | None = None

    @asynccontextmanager
    async def open(self, turn: HookTurn, /) -> AsyncIterator[HookSession]:
        async with (await self._engine()).open(turn) as session:
            yield session

    async def check(self, script: HookScript, /) -> None:
        await (await self._engine()).check(script)

    async def functions(self, script: HookScript, /) -> Sequence[ScriptFunction]:
        return await (await self._engine()).functions(script)

    async def names(self, script: HookScript, /) -> Sequence[WrittenName]:
        return await (await self._engine()).names(script)

    @asynccontextmanager
    async def keep_compiler(self) -> AsyncIterator[None]:
        async with (await self._engine()).keep_compiler():
            yield

    def close(self) -> None:
        if self._made is not None:
            self._made.close()

    async def _engine(self) -> InProcessEngine | WorkerEngine:
        async with self._making:
            if self._made is None:
                await anyio.to_thread.run_sync(import_module, "groundhook.hooks.runner")
                from groundhook.hooks.runner import make_engine

                self._made = make_engine(self._tasks, **self._arguments)
        return self._made


@asynccontextmanager
async def open_on_first_use(
    *, workers: int | None, cache: Path, environment: Mapping[str, str]
) -> AsyncIterator[HookEngine]:
    """Yield an engine as `hooks.runner.open_engine` does, with the same arguments."""
    async with anyio.create_task_group() as tasks:
        engine = _LazyEngine(tasks, workers, cache, environment)
        try:
            yield engine
        finally:
            engine.close()
