"""The pool of hook worker processes: starts them when needed, replaces dead ones, and assigns runs
to them.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from anyio.abc import TaskGroup

from groundhook.core.errors import HookCrashed, WorkerDied
from groundhook.hooks.child import WorkerProcess
from groundhook.hooks.leases import Lease, LeaseTerms
from groundhook.hooks.run import Prelude
from groundhook.hooks.script import Transpile

# processes for one run alone, for each worker of the pool; a further run waits until a hook of one
# of them has ended
MOST_ALONE = 8
COMPILING_SECONDS = 30.0  # for one file; its size is bounded
COMPILER_SECONDS = 10.0  # the compiler's process is kept that long after its last use


class IsolatePool:
    """Leases isolates in at most `size` worker processes, and in a further process to a run that
    must be alone."""

    def __init__(
        self, size: int, prelude: Prelude, tasks: TaskGroup, environment: Mapping[str, str] | None
    ) -> None:
        self._size = size
        self._environment = environment
        self._prelude = prelude
        self._tasks = tasks
        self._workers: list[WorkerProcess] = []
        self._runs = itertools.count(1)
        self._names = itertools.count(1)
        self._starting = anyio.Lock()
        self._alone = anyio.Semaphore(size * MOST_ALONE)
        self._compiler: WorkerProcess | None = None
        self._compiling = self._compiled = 0
        self._closing = False

    async def lease(self, terms: LeaseTerms, /, *, alone: bool = False) -> Lease:
        if alone:  # all runs of a worker that was killed for its memory come here at the same time
            await self._alone.acquire()
            worker = await self._start(alone=True, slot=self._alone)
        else:
            worker = await self._choose_worker()
        return worker.lease(next(self._runs), terms)

    @asynccontextmanager
    async def transpiling(self) -> AsyncIterator[Transpile]:
        """Yield the TypeScript compiler, in a process of its own that is kept for a while: hooks
        that are being edited are compiled again soon."""
        self._compiling += 1
        self._compiled += 1
        try:
            yield self._transpile
        finally:
            self._compiling -= 1
            self._tasks.start_soon(self._end_compiler, self._compiled)

    async def _transpile(self, file: str, source: str, others: Mapping[str, Any]) -> str:
        """Return a compiled file as JSON, by a second compiler if the first is gone: it may have
        been killed from outside."""
        for last in (False, True):
            async with self._starting:
                worker = self._compiler
                if worker is None or worker.child.connection.closed.is_set():
                    worker = self._compiler = await self._start(alone=True)
            try:
                with anyio.fail_after(COMPILING_SECONDS):
                    answer: str = await worker.child.connection.call(
                        "compile", [file, source, others]
                    )
            except TimeoutError as exc:
                worker.child.kill()
                raise HookCrashed(
                    f"the TypeScript compiler needed more than {COMPILING_SECONDS:.0f} s for"
                    f" {file!r}"
                ) from exc
            except WorkerDied as exc:
                if last:
                    raise HookCrashed(
                        f"the TypeScript compiler ended while it compiled {file!r}"
                    ) from exc
            else:
                return answer
        raise AssertionError

    async def _end_compiler(self, use: int) -> None:
        await anyio.sleep(COMPILER_SECONDS)
        if self._compiler is not None and not self._compiling and self._compiled == use:
            self._compiler.child.kill()

    def close(self) -> None:
        """Kill every worker. The tasks that look after them end when all processes have been
        reaped; other tasks of the group are cancelled."""
        self._closing = True
        self._tasks.cancel_scope.cancel()
        for worker in self._workers:
            worker.child.kill()

    async def _choose_worker(self) -> WorkerProcess:
        workers = self._list_in_service()
        if not workers:
            async with self._starting:
                workers = self._list_in_service() or [await self._start(alone=False)]
        best = min(workers, key=lambda worker: (not worker.ready, worker.load))
        if best.load and len(workers) < self._size:
            # a run beside others starts sooner than one that waits for the new process
            self._tasks.start_soon(self._grow)
        return best

    def _list_in_service(self) -> list[WorkerProcess]:
        """Return the workers that take further runs. At most `size` retiring workers get none until
        their last run has ended; any beyond that go on, so that the number of processes is
        bounded."""
        shared = [worker for worker in self._workers if not worker.alone]
        kept_busy = [worker for worker in shared if worker.retiring and worker.load]
        return [worker for worker in shared if not worker.retiring] + kept_busy[self._size :]

    async def _grow(self) -> None:
        async with self._starting:
            if not self._closing and len(self._list_in_service()) < self._size:
                # a run that finds no worker starts one itself and reports the error
                with suppress(HookCrashed):
                    await self._start(alone=False)

    async def _start(self, *, alone: bool, slot: anyio.Semaphore | None = None) -> WorkerProcess:
        worker = WorkerProcess(f"hook worker {next(self._names)}", alone=alone, slot=slot)
        with anyio.CancelScope(shield=True):  # a started process must be looked after
            await worker.start(self._prelude, self._environment)
        self._workers.append(worker)
        self._tasks.start_soon(self._look_after, worker)
        if self._closing:
            worker.child.kill()
        return worker

    async def _look_after(self, worker: WorkerProcess) -> None:
        """Watch a worker until it ends, reap its process, and replace it."""
        # `close` kills the processes and cancels this task; reaping them must still happen
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as watching:
                watching.start_soon(worker.watch)
                await worker.child.connection.closed.wait()
                watching.cancel_scope.cancel()
            worker.child.kill()
            code = await worker.child.process.wait()
            self._workers.remove(worker)
            worker.report_death(code)
            worker.free_slot()
        if worker.ready and not worker.alone and not self._closing:
            await self._grow()
