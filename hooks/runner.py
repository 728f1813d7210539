"""Opens the hook engine of the host: `async with open_engine(…) as engine`. There are two
implementations of `core.hook_engine.HookEngine`: `WorkerEngine` has its isolates in worker
processes, `InProcessEngine` in the host's own process.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import cache as once
from importlib.resources import files
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from groundhook.core.errors import Place
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.hook_engine import (
    HookScript,
    HookSession,
    HookTurn,
    ScriptFunction,
    WrittenName,
)
from groundhook.core.types.search import SearchRequest, SearchResult
from groundhook.hooks.api.table import HOOKS, Dialect, lazy_globals_argument, prelude_argument
from groundhook.hooks.inprocess import InProcessIsolates
from groundhook.hooks.leases import LeaseSource
from groundhook.hooks.pool import IsolatePool
from groundhook.hooks.run import UNITS, Prelude
from groundhook.hooks.script import Linker
from groundhook.hooks.session import IsolateSession


class _Engine:
    """Opens sessions on the isolates of one source."""

    def __init__(self, linker: Linker, isolates: LeaseSource, dialect: Dialect) -> None:
        self._linker = linker
        self._isolates = isolates
        self._table = {call.js: call for call in dialect.calls}

    def open(self, turn: HookTurn, /) -> AbstractAsyncContextManager[HookSession]:
        """Return a turn's session. Entering compiles the script if it has changed and raises
        HookSyntaxError; leaving stops what runs. A worker frees an idle isolate in the
        background."""
        return self.session(turn)

    def keep_compiler(self) -> AbstractAsyncContextManager[None]:
        """Keep a compiler ready until the block is left, for callers that compile repeatedly."""
        return self._linker.keep_compiler()

    async def check(self, script: HookScript, /) -> None:
        """Compile and link without running. Raises HookSyntaxError."""
        turn = HookTurn(script=script, context={}, services=_NoServices())
        async with self.session(turn) as session:
            await session.check()

    async def functions(self, script: HookScript, /) -> Sequence[ScriptFunction]:
        """Return the functions of the entry file. Raises HookSyntaxError."""
        return (await self._linker.link(script)).functions

    async def names(self, script: HookScript, /) -> Sequence[WrittenName]:
        """Return the names in the script's files. Raises HookSyntaxError."""
        return (await self._linker.link(script)).names

    @asynccontextmanager
    async def session(self, turn: HookTurn) -> AsyncIterator[IsolateSession]:
        """Open a session, typed with its whole interface instead of the port's."""
        session = IsolateSession(
            turn, await self._linker.link(turn.script), self._isolates, self._table
        )
        try:
            yield session
        finally:
            with anyio.CancelScope(shield=True):
                await session.close()


class WorkerEngine(_Engine):
    """Hooks run in worker processes."""

    def __init__(self, cache: Path, pool: IsolatePool, dialect: Dialect) -> None:
        super().__init__(Linker(cache, pool.transpiling), pool, dialect)
        self._pool = pool

    def close(self) -> None:
        """End the processes; their task group waits for them."""
        self._pool.close()


class InProcessEngine(_Engine):
    """Hooks run in the host's process."""

    def __init__(self, cache: Path, isolates: InProcessIsolates, dialect: Dialect) -> None:
        super().__init__(Linker(cache, isolates.transpiling), isolates, dialect)

    def close(self) -> None:
        """Do nothing: closing the sessions has freed everything."""


@asynccontextmanager
async def open_engine(
    *,
    workers: int | None = None,
    cache: Path,
    dialect: Dialect = HOOKS,
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[WorkerEngine | InProcessEngine]:
    """Yield the engine; when the block is left, its processes, isolates and threads have ended.

    `workers` is the largest number of processes: None for one a core, 0 for none. They start when
    the first hook runs. `cache` is the folder for compiled files. `dialect` is what the scripts may
    call. `environment` holds the variables of the worker processes; None: those of this one.
    """
    with unwrap_exception_groups():
        async with anyio.create_task_group() as tasks:
            engine = make_engine(
                tasks, workers=workers, cache=cache, dialect=dialect, environment=environment
            )
            try:
                yield engine
            finally:
                engine.close()


def make_engine(
    tasks: TaskGroup,
    *,
    workers: int | None,
    cache: Path,
    dialect: Dialect = HOOKS,
    environment: Mapping[str, str] | None = None,
) -> WorkerEngine | InProcessEngine:
    """Return the engine, to be closed before `tasks`, in which its processes are watched, is left.
    Arguments as for `open_engine`."""
    size = (os.cpu_count() or 1) if workers is None else workers
    if size == 0:
        return InProcessEngine(cache, InProcessIsolates(_prelude(dialect)), dialect)
    return WorkerEngine(cache, IsolatePool(size, _prelude(dialect), tasks, environment), dialect)


@once
def _prelude(dialect: Dialect) -> Prelude:
    package = files("groundhook.hooks")
    source = (package / "prelude.js").read_text(encoding="utf-8")
    # Every isolate would parse comments and indentation again.
    lines = [line.strip() for line in source.splitlines()]
    short = "\n".join(line for line in lines if not line.startswith("//"))
    lazy = (package / "lazy_globals.js").read_text(encoding="utf-8").rstrip()
    return Prelude(
        f"{short}({prelude_argument(UNITS, dialect)})",
        f"(taken) => ({lazy})(taken, {lazy_globals_argument()})",
    )


@dataclass(frozen=True)
class _NoServices:
    """The services of a check, which runs no hook."""

    output: Any = None
    trace: Any = None
    calls: Any = None
    memory: Any = None
    chat: Any = None
    web: Any = None
    records: Any = None
    servers: Any = None
    tools: Any = None
    scripts: Any = None

    async def search(self, request: SearchRequest, /) -> SearchResult:
        raise AssertionError("a check runs nothing")

    async def search_many(self, requests: Any, mode: Any, /) -> list[SearchResult]:
        raise AssertionError("a check runs nothing")

    async def log(self, level: str, message: str, /) -> None: ...

    async def warn(self, code: str, message: str, place: Place | None = None, /) -> None: ...
