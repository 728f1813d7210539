"""One hook worker process, on the host's side: its leases, its limits, and the run that ended it.
It forwards code and requests without reading them. `hooks/pool.py` assigns runs to workers.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import anyio
import psutil

from groundhook.core.errors import HookCrashed
from groundhook.core.workers import Child, WorkerConnection, start_child
from groundhook.hooks.leases import (
    Called,
    Done,
    EventQueue,
    FaultRole,
    LeaseEvent,
    LeaseTerms,
    Lost,
)
from groundhook.hooks.run import Prelude

MODULE = "groundhook.hooks.worker"
# after that, work that a hook left behind has ended, or its CPU time has
SETTLING_SECONDS = 5.0
MOST_RELEASING = 2  # isolates of a worker that are freed in the background
RELEASING_SECONDS = 2.0  # a worker that has not freed an isolate by then is stuck
BUSY_CHECK_SECONDS, IDLE_CHECK_SECONDS = 0.02, 0.25
MEGABYTE = 1024 * 1024
KEPT = 96 * MEGABYTE  # a worker that keeps that much more than when it was ready is replaced


class WorkerLease:
    """An isolate in a worker."""

    def __init__(self, worker: WorkerProcess, run: int, terms: LeaseTerms) -> None:
        self._worker = worker
        self._run = run
        self._terms: LeaseTerms | None = terms  # until sent, together with the first code
        self._events = EventQueue()
        self.allowed = terms.memory_mb * MEGABYTE
        self.baseline = worker.last_resident
        self.working = False  # in JavaScript, not waiting for the host
        self.shared = False  # the process has carried other runs during this one
        self._in_call = False
        self._settled_at = 0.0
        self.released_at = 0.0
        self.gone = anyio.Event()  # the isolate is freed, or its process has ended

    @property
    def idle(self) -> bool:
        """Whether no hook runs."""
        return not (self.working or self._in_call)

    @property
    def may_run(self) -> bool:
        """Whether JavaScript of this run may be running: a hook that has ended may have left timers
        or microtasks."""
        return self.working or not (self._in_call or time.monotonic() > self._settled_at)

    def invoke(self, code: str, /) -> None:
        self.working = True
        self._worker.busy.set()
        terms, self._terms = self._terms, None
        if terms is None:
            self._worker.post("invoke", [self._run, code])
        else:
            self._worker.post("open", [self._run, terms.setup, terms.heap_mb, terms.cpu_ms, code])

    def reply(self, text: str, /) -> None:
        self.working, self._in_call = True, False
        self._worker.post("reply", [self._run, text])

    async def event(self) -> LeaseEvent:
        return await self._events.get()

    def put(self, event: LeaseEvent) -> None:
        self.working, self._in_call = False, isinstance(event, Called)
        self._settled_at = time.monotonic() + SETTLING_SECONDS
        if isinstance(event, Done):
            self._worker.free_slot()  # while the model answers, others run their hooks
        self._events.put(event)

    async def release(self) -> None:
        await self._worker.release(self._run)


class WorkerProcess:
    """One process and its runs."""

    def __init__(
        self, child_name: str, *, alone: bool, slot: anyio.Semaphore | None = None
    ) -> None:
        self.name = child_name
        self.alone = alone
        self.ready = False
        self.retiring = False  # keeps too much memory: gets no further run and is replaced
        self.killed_for = ""
        self.busy = anyio.Event()
        self.leases: dict[int, WorkerLease] = {}
        # released by their sessions, their isolates not yet freed
        self.releasing: dict[int, WorkerLease] = {}
        self.last_resident = 0  # bytes, at the last check
        self._fresh_resident = 0  # bytes, when it was ready and had carried nothing
        self._crowded = False  # killed for what its runs took together, each within its own limit
        # of a process for one run alone; released at the end of its first hook
        self._slot = slot
        self._child: Child | None = None
        self._process: psutil.Process | None = None

    async def start(self, prelude: Prelude, environment: Mapping[str, str] | None) -> None:
        """Start the process. Raises HookCrashed if the system cannot start it."""
        try:
            self._child = await start_child(
                self.name, MODULE, incoming=self._handle_frame, environment=environment
            )
        except OSError as exc:
            self.free_slot()
            raise HookCrashed(f"cannot start a process for hooks: {exc.strerror}") from exc
        self._process = psutil.Process(self._child.pid)
        self.post("prelude", [prelude.script, prelude.lazy_globals])

    @property
    def child(self) -> Child:
        assert self._child is not None
        return self._child

    @property
    def load(self) -> int:
        """Return the number of its runs and of the isolates that it is still freeing."""
        return len(self.leases) + len(self.releasing)

    def free_slot(self) -> None:
        """Let the next run that must be alone begin."""
        slot, self._slot = self._slot, None
        if slot is not None:
            slot.release()

    def post(self, operation: str, body: Any) -> None:
        self.child.connection.post(operation, body)

    def resident(self) -> int:
        """Return the bytes of memory that the process occupies."""
        with suppress(psutil.NoSuchProcess):
            if self._process is not None:
                self.last_resident = int(self._process.memory_info().rss)
        return self.last_resident

    def lease(self, run: int, terms: LeaseTerms) -> WorkerLease:
        """Add a run."""
        beside = (*self.leases.values(), *self.releasing.values())
        lease = self.leases[run] = WorkerLease(self, run, terms)
        for each in (lease, *beside) if beside else ():
            each.shared = True
        return lease

    async def release(self, run: int) -> None:
        """Stop and free an isolate. Waits until a running hook has stopped; an idle isolate is
        freed in the background, unless many are waiting for that."""
        lease = self.leases.pop(run, None)
        if lease is not None:
            self.releasing[run] = lease
            lease.released_at = time.monotonic()
            self.post("close", run)
            if not lease.idle or len(self.releasing) > MOST_RELEASING:
                with anyio.CancelScope(shield=True):
                    await lease.gone.wait()
        if self.alone and not self.leases:
            self.child.kill()

    async def watch(self) -> None:
        """Check its memory and the isolates it is freeing, until cancelled."""
        while True:
            await self.busy.wait()
            working = bool(self.releasing) or any(lease.may_run for lease in self.leases.values())
            await anyio.sleep(BUSY_CHECK_SECONDS if working else IDLE_CHECK_SECONDS)
            self._check_memory()
            self._check_releasing()
            self._check_kept_memory()
            if not self.leases and not self.releasing:
                self.busy = anyio.Event()

    def _check_releasing(self) -> None:
        """Kill the process if an isolate could not be freed, since V8 is stuck in it."""
        if any(
            time.monotonic() - lease.released_at > RELEASING_SECONDS
            for lease in self.releasing.values()
        ):
            self.child.kill()

    def _check_memory(self) -> None:
        """Kill the process when it has become too large."""
        now = self.resident()
        runs = [
            (lease.baseline, lease.allowed)
            for lease in (*self.leases.values(), *self.releasing.values())
        ]
        if self.ready and (found := find_excess(now, self._fresh_resident, runs)):
            self._crowded = found == "together"
            self.killed_for = "memory_mb"
            self.child.kill()

    def _check_kept_memory(self) -> None:
        """Retire a worker that keeps too much memory while no JavaScript runs in it, and end it
        when it has no run left: V8 returns little of what some builtins allocate outside its
        heap."""
        if self.alone or not self.ready or any(lease.working for lease in self.leases.values()):
            return
        if not self.releasing and self.last_resident - self._fresh_resident > KEPT:
            self.retiring = True
        if self.retiring and not self.load:
            self.child.kill()

    def report_death(self, code: int | None) -> None:
        """Report the end of the process to every run, and whether the run caused it."""
        leases = list(self.leases.values())
        self.leases.clear()
        suspects = [lease for lease in leases if lease.may_run or self.killed_for]
        of_suspects: FaultRole = "culprit" if self._is_certain(suspects, code) else "suspect"
        reason = "it took too much memory" if self.killed_for else _describe_exit(code)
        for lease in leases:
            role = of_suspects if lease in suspects else "bystander"
            lease.put(Lost(role, reason, self.killed_for, self.ready))
        for lease in self.releasing.values():
            lease.gone.set()

    def _is_certain(self, suspects: Sequence[WorkerLease], code: int | None) -> bool:
        """Return whether what ended the process can only have been the suspect."""
        if self.alone or not self.ready:
            return True
        if len(suspects) != 1 or self.releasing:
            return False
        if self.killed_for:  # the process may have grown under a run that has ended since
            return not (suspects[0].shared or self._crowded)
        # V8 aborts by other signals: somebody killed the process.
        return code != -signal.SIGKILL

    def _handle_frame(
        self, _connection: WorkerConnection, _id: int | None, operation: str, body: Any
    ) -> None:
        if operation == "ready":
            self.ready = True
            now = self._fresh_resident = self.resident()
            for lease in self.leases.values():
                lease.baseline = now
            return
        if operation == "closed":
            self.releasing.pop(body).gone.set()
            return
        found = self.leases.get(body[0])  # none: the run was released meanwhile
        if found is not None:
            found.put(Called(body[1]) if operation == "call" else Done(body[1], body[2]))


def find_excess(
    now: int, fresh: int, runs: Sequence[tuple[int, int]]
) -> Literal["alone", "together"] | None:
    """Return whether a process of `now` bytes has grown by more than one of its runs allows (size
    when the run began, allowed growth); or, `together`, by more since it was ready (`fresh`) than
    that growth and the memory that a worker may keep, since overlapping runs could make it grow
    without end."""
    if any(now - baseline > allowed for baseline, allowed in runs):
        return "alone"
    if runs and now - fresh > KEPT + max(allowed for _, allowed in runs):
        return "together"
    return None


def _describe_exit(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
