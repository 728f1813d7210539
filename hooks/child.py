"""One hook worker process, seen from the host: the runs it carries, and who is to blame when it
dies.

It passes code and requests on without reading them. Which worker carries which run is
`hooks.pool`'s business.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import anyio
import psutil

from groundhook.hooks.leases import Called, Done, Lost, Mailbox, Order, Role, SeatEvent
from groundhook.hooks.run import Prelude
from groundhook.host.core.errors import HookCrashed
from groundhook.host.core.workers import Child, Link, start_child

MODULE = "groundhook.hooks.worker"
SETTLING_SECONDS = (
    5.0  # work that a hook left behind has come to its end, or to the end of its CPU time
)
MOST_LEAVING = 2  # isolates of a worker that are freed while nobody waits
LEAVING_SECONDS = 2.0  # a worker that has not freed an isolate by then is stuck
BUSY_LOOK_SECONDS, IDLE_LOOK_SECONDS = 0.02, 0.25
MEGABYTE = 1024 * 1024
KEPT = 96 * MEGABYTE  # a worker that holds that much more than when it was ready is replaced


class WorkerSeat:
    """An isolate in a worker."""

    def __init__(self, worker: Worker, run: int, order: Order) -> None:
        self._worker = worker
        self._run = run
        self._order: Order | None = order  # until it has gone out, together with the first code
        self._mailbox = Mailbox()
        self.allowed = order.memory_mb * MEGABYTE
        self.baseline = worker.last_resident
        self.working = False  # in JavaScript, as opposed to waiting for the host
        self.shared = False  # the process has carried other runs during this one
        self._in_call = False
        self._settled_at = 0.0
        self.left_at = 0.0
        self.gone = anyio.Event()  # the isolate is freed, or its process has ended

    @property
    def at_rest(self) -> bool:
        """Whether nothing is waited for: no hook runs."""
        return not (self.working or self._in_call)

    @property
    def may_work(self) -> bool:
        """Whether JavaScript of this run may be under way: a hook that has ended may have left
        something behind."""
        return self.working or not (self._in_call or time.monotonic() > self._settled_at)

    def invoke(self, code: str, /) -> None:
        self.working = True
        self._worker.busy.set()
        order, self._order = self._order, None
        if order is None:
            self._worker.post("invoke", [self._run, code])
        else:
            self._worker.post("open", [self._run, order.setup, order.heap_mb, order.cpu_ms, code])

    def reply(self, text: str, /) -> None:
        self.working, self._in_call = True, False
        self._worker.post("reply", [self._run, text])

    async def event(self) -> SeatEvent:
        return await self._mailbox.get()

    def put(self, event: SeatEvent) -> None:
        self.working, self._in_call = False, isinstance(event, Called)
        self._settled_at = time.monotonic() + SETTLING_SECONDS
        if isinstance(event, Done):
            self._worker.give_place()  # while the model answers, others run their hooks
        self._mailbox.put(event)

    async def leave(self) -> None:
        await self._worker.dismiss(self._run)


class Worker:
    """One process and the runs it carries."""

    def __init__(
        self, child_name: str, *, alone: bool, place: anyio.Semaphore | None = None
    ) -> None:
        self.name = child_name
        self.alone = alone
        self.ready = False
        self.retiring = False  # it keeps too much memory: it gets no run any more, and is replaced
        self.killed_for = ""
        self.busy = anyio.Event()
        self.seats: dict[int, WorkerSeat] = {}
        self.leaving: dict[
            int, WorkerSeat
        ] = {}  # nobody hears them any more, but their isolate is there yet
        self.last_resident = 0  # bytes, when the process was looked at last
        self._fresh_resident = 0  # bytes, when it was ready and had carried nothing
        self._crowded = False  # killed for what its runs took together, each within its own limit
        # among the processes with one run each; given back with the end of its first hook
        self._place = place
        self._child: Child | None = None
        self._process: psutil.Process | None = None

    async def start(self, prelude: Prelude, environment: Mapping[str, str] | None) -> None:
        try:
            self._child = await start_child(
                self.name, MODULE, incoming=self._incoming, environment=environment
            )
        except OSError as exc:
            self.give_place()
            raise HookCrashed(f"no process for hooks can be started: {exc.strerror}") from exc
        self._process = psutil.Process(self._child.pid)
        self.post("prelude", [prelude.script, prelude.seldom])

    @property
    def child(self) -> Child:
        assert self._child is not None
        return self._child

    @property
    def load(self) -> int:
        """Runs that it carries, and isolates that it is freeing, beside which it makes the next
        one."""
        return len(self.seats) + len(self.leaving)

    def give_place(self) -> None:
        place, self._place = self._place, None
        if place is not None:
            place.release()

    def post(self, operation: str, body: Any) -> None:
        self.child.link.post(operation, body)

    def resident(self) -> int:
        """Bytes of memory the process occupies."""
        with suppress(psutil.NoSuchProcess):
            if self._process is not None:
                self.last_resident = int(self._process.memory_info().rss)
        return self.last_resident

    def carry(self, run: int, order: Order) -> WorkerSeat:
        beside = (*self.seats.values(), *self.leaving.values())
        seat = self.seats[run] = WorkerSeat(self, run, order)
        for each in (seat, *beside) if beside else ():
            each.shared = True
        return seat

    async def dismiss(self, run: int) -> None:
        """Stop and free an isolate. Waits until a hook that runs has stopped; what is at rest is
        freed when nobody waits, as long as the worker keeps up."""
        seat = self.seats.pop(run, None)
        if seat is not None:
            self.leaving[run] = seat
            seat.left_at = time.monotonic()
            self.post("close", run)
            if not seat.at_rest or len(self.leaving) > MOST_LEAVING:
                with anyio.CancelScope(shield=True):
                    await seat.gone.wait()
        if self.alone and not self.seats:
            self.child.kill()

    async def watch(self) -> None:
        """Look at its memory and at what leaves it, for ever."""
        while True:
            await self.busy.wait()
            working = bool(self.leaving) or any(seat.may_work for seat in self.seats.values())
            await anyio.sleep(BUSY_LOOK_SECONDS if working else IDLE_LOOK_SECONDS)
            self._look_at_memory()
            self._look_at_leaving()
            self._look_at_kept()
            if not self.seats and not self.leaving:
                self.busy = anyio.Event()

    def _look_at_leaving(self) -> None:
        """Kill the process when an isolate could not be freed: V8 is stuck in it."""
        if any(time.monotonic() - seat.left_at > LEAVING_SECONDS for seat in self.leaving.values()):
            self.child.kill()

    def _look_at_memory(self) -> None:
        """Kill the process when it has become too large."""
        now = self.resident()
        runs = [
            (seat.baseline, seat.allowed) for seat in (*self.seats.values(), *self.leaving.values())
        ]
        if self.ready and (found := too_large(now, self._fresh_resident, runs)):
            self._crowded = found == "together"
            self.killed_for = "memory_mb"
            self.child.kill()

    def _look_at_kept(self) -> None:
        """Retire a worker that keeps too much while no JavaScript runs in it, and end it once it
        carries nothing: V8 gives back little of what some builtins take beside its heap."""
        if self.alone or not self.ready or any(seat.working for seat in self.seats.values()):
            return
        if not self.leaving and self.last_resident - self._fresh_resident > KEPT:
            self.retiring = True
        if self.retiring and not self.load:
            self.child.kill()

    def tell_of_death(self, code: int | None) -> None:
        """Every run learns that the process is gone, and what part it had in that."""
        seats = list(self.seats.values())
        self.seats.clear()
        suspects = [seat for seat in seats if seat.may_work or self.killed_for]
        reason = "it took too much memory" if self.killed_for else _ending(code)
        killed_from_outside = (
            code == -signal.SIGKILL and not self.killed_for
        )  # V8 ends itself by other signals
        only_one = len(suspects) == 1 and not self.leaving and not killed_from_outside
        if self.killed_for:  # the process may have grown under a run that has ended since
            only_one = only_one and not (suspects[0].shared or self._crowded)
        guilty = self.alone or not self.ready or only_one
        for seat in seats:
            role: Role = "bystander" if seat not in suspects else "culprit" if guilty else "suspect"
            seat.put(Lost(role, reason, self.killed_for, self.ready))
        for seat in self.leaving.values():
            seat.gone.set()

    def _incoming(self, _link: Link, _id: int | None, operation: str, body: Any) -> None:
        if operation == "ready":
            self.ready = True
            now = self._fresh_resident = self.resident()
            for seat in self.seats.values():
                seat.baseline = now
            return
        if operation == "closed":
            self.leaving.pop(body).gone.set()
            return
        found = self.seats.get(body[0])  # none: the run was left while this was under way
        if found is not None:
            found.put(Called(body[1]) if operation == "call" else Done(body[1], body[2]))


def too_large(
    now: int, fresh: int, runs: Sequence[tuple[int, int]]
) -> Literal["alone", "together"] | None:
    """Whether a process of `now` bytes has grown by more than one of its runs (size when it began,
    allowed growth) may make it grow; or, `together`, by more since it was ready (`fresh`) than that
    and what a worker may keep, as runs that overlap could do without end."""
    if any(now - baseline > allowed for baseline, allowed in runs):
        return "alone"
    if runs and now - fresh > KEPT + max(allowed for _, allowed in runs):
        return "together"
    return None


def _ending(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
