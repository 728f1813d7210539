"""Hook worker processes, seen from the host: started when needed, replaced when they die.

Owns which worker carries which run.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.abc import TaskGroup

from groundhook.hooks.child import Worker
from groundhook.hooks.leases import Order, Seat
from groundhook.hooks.run import Prelude
from groundhook.hooks.script import Transpile
from groundhook.host.core.errors import HookCrashed, WorkerDied

# processes with one run each, for each worker that there may be; a run beyond waits until a hook of
# one has ended
MOST_ALONE = 8
COMPILING_SECONDS = 30.0  # for one file; its size is bounded
COMPILER_SECONDS = 10.0  # the compiler's process is kept that long after its last use


class Pool:
    """Gives seats in at most `size` worker processes, and in one beside them to a run that must be
    alone."""

    def __init__(
        self, size: int, prelude: Prelude, tasks: TaskGroup, environment: Mapping[str, str] | None
    ) -> None:
        self._size = size
        self._environment = environment
        self._prelude = prelude
        self._tasks = tasks
        self._workers: list[Worker] = []
        self._runs = itertools.count(1)
        self._names = itertools.count(1)
        self._starting = anyio.Lock()
        self._alone = anyio.Semaphore(size * MOST_ALONE)
        self._compiler: Worker | None = None
        self._compiling = self._compiled = 0
        self._closing = False

    async def take(self, order: Order, /, *, alone: bool = False) -> Seat:
        if alone:  # all runs of a worker that took too much memory ask for that at the same time
            await self._alone.acquire()
            worker = await self._start(alone=True, place=self._alone)
        else:
            worker = await self._least_loaded()
        return worker.carry(next(self._runs), order)

    @asynccontextmanager
    async def transpiling(self) -> AsyncIterator[Transpile]:
        """The TypeScript compiler, in a process of its own that is kept for a while: whoever edits
        a hook compiles again."""
        self._compiling += 1
        self._compiled += 1
        try:
            yield self._transpile
        finally:
            self._compiling -= 1
            self._tasks.start_soon(self._end_compiler, self._compiled)

    async def _transpile(self, file: str, source: str) -> str:
        """Asks a second compiler when the first is gone: it may have been killed by somebody
        else."""
        for last in (False, True):
            async with self._starting:
                worker = self._compiler
                if worker is None or worker.child.link.closed.is_set():
                    worker = self._compiler = await self._start(alone=True)
            try:
                with anyio.fail_after(COMPILING_SECONDS):
                    answer: str = await worker.child.link.call("compile", [file, source])
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
        """Kill every worker. The tasks that tend them end when all are buried; what else goes on in
        the group is stopped."""
        self._closing = True
        self._tasks.cancel_scope.cancel()
        for worker in self._workers:
            worker.child.kill()

    async def _least_loaded(self) -> Worker:
        workers = self._in_service()
        if not workers:
            async with self._starting:
                workers = self._in_service() or [await self._start(alone=False)]
        best = min(workers, key=lambda worker: (not worker.ready, worker.load))
        if best.load and len(workers) < self._size:
            self._tasks.start_soon(
                self._grow
            )  # a run beside others starts sooner than one in a new process
        return best

    def _in_service(self) -> list[Worker]:
        """Those that take runs beside others. At most `size` workers that retire are left in peace
        until their last run has ended; beyond that they go on, so that the number of processes is
        bounded."""
        shared = [worker for worker in self._workers if not worker.alone]
        kept_busy = [worker for worker in shared if worker.retiring and worker.load]
        return [worker for worker in shared if not worker.retiring] + kept_busy[self._size :]

    async def _grow(self) -> None:
        async with self._starting:
            if not self._closing and len(self._in_service()) < self._size:
                with suppress(
                    HookCrashed
                ):  # who finds no worker at all asks for one, and hears why there is none
                    await self._start(alone=False)

    async def _start(self, *, alone: bool, place: anyio.Semaphore | None = None) -> Worker:
        worker = Worker(f"hook worker {next(self._names)}", alone=alone, place=place)
        with anyio.CancelScope(shield=True):  # a process that was started must be tended
            await worker.start(self._prelude, self._environment)
        self._workers.append(worker)
        self._tasks.start_soon(self._tend, worker)
        if self._closing:
            worker.child.kill()
        return worker

    async def _tend(self, worker: Worker) -> None:
        """Watch a worker to its end, bury it, and replace it."""
        with anyio.CancelScope(
            shield=True
        ):  # whoever ends the pool kills the processes; burying them must still happen
            async with anyio.create_task_group() as watching:
                watching.start_soon(worker.watch)
                await worker.child.link.closed.wait()
                watching.cancel_scope.cancel()
            worker.child.kill()
            code = await worker.child.process.wait()
            self._workers.remove(worker)
            worker.tell_of_death(code)
            worker.give_place()
        if worker.ready and not worker.alone and not self._closing:
            await self._grow()
