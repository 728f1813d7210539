"""Isolates in the host's own process, for embedding and debugging.

They are leased like those of worker processes, but without their protection: a script that makes V8
abort ends the host, and `hooks.limits.memory_mb` is not enforced. All other limits are.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread

from groundhook.core.errors import HookCrashed
from groundhook.hooks.compiler import ScriptCompiler
from groundhook.hooks.engine import IsolateOutcome
from groundhook.hooks.leases import Called, Done, EventQueue, Lease, LeaseEvent, LeaseTerms
from groundhook.hooks.run import HookRun, Prelude
from groundhook.hooks.script import Transpile


class InProcessLease:
    """An isolate in this process; its events reach the loop that made it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._events = EventQueue()
        self._timer: asyncio.TimerHandle | None = None
        self._run: HookRun | None = None

    async def start(self, prelude: Prelude, terms: LeaseTerms) -> None:
        self._run = await anyio.to_thread.run_sync(HookRun, prelude)
        self._run.begin(terms.setup, terms.heap_mb, terms.cpu_ms, self._report)

    def invoke(self, code: str, /) -> None:
        self._hook_run.invoke(code)
        self._watch()

    def reply(self, text: str, /) -> None:
        self._hook_run.reply(text)

    async def event(self) -> LeaseEvent:
        return await self._events.get()

    async def release(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._hook_run.close)

    @property
    def _hook_run(self) -> HookRun:
        assert self._run is not None
        return self._run

    def _report(self, kind: str, first: str, second: str) -> None:
        event = Called(first) if kind == "call" else Done(first, second)
        if threading.get_ident() == self._thread:
            self._events.put(event)
        else:
            self._loop.call_soon_threadsafe(self._events.put, event)

    def _watch(self) -> None:
        """Check the CPU clock now, and whenever the limit could have been reached."""
        if self._timer is not None:
            self._timer.cancel()
        wait = self._hook_run.watch()
        self._timer = None if wait is None else self._loop.call_later(wait, self._watch)


class InProcessIsolates:
    """Leases isolates of this process."""

    def __init__(self, prelude: Prelude) -> None:
        self._prelude = prelude

    async def lease(self, terms: LeaseTerms, /, *, alone: bool = False) -> Lease:
        """Return a fresh isolate; `alone` has no meaning in one process."""
        lease = InProcessLease()
        await lease.start(self._prelude, terms)
        return lease

    @asynccontextmanager
    async def transpiling(self) -> AsyncIterator[Transpile]:
        """Yield the TypeScript compiler, in an isolate that is closed with the block."""
        compiler = await anyio.to_thread.run_sync(ScriptCompiler)
        loop = asyncio.get_running_loop()

        async def transpile(file: str, source: str, others: Mapping[str, Any]) -> str:
            answer: asyncio.Future[IsolateOutcome] = loop.create_future()

            def done(outcome: IsolateOutcome) -> None:
                loop.call_soon_threadsafe(_settle, answer, outcome)

            compiler.transpile(file, source, others, done)
            outcome = await answer
            if outcome.kind != "value":
                raise HookCrashed(f"the TypeScript compiler failed on {file!r}: {outcome.text}")
            return outcome.text

        try:
            yield transpile
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(compiler.close)


def _settle(answer: asyncio.Future[IsolateOutcome], outcome: IsolateOutcome) -> None:
    if not answer.done():
        answer.set_result(outcome)
