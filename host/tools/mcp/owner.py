"""The task that owns the connection to one MCP server: it alone opens and closes it, and runs the
jobs that callers send.

The owner connects for the first job, runs jobs concurrently, and reconnects for the next job after
a connection is lost. A job that was under way then runs once more if it only reads, or if none of
it can have arrived; otherwise its caller gets an error. After a timeout the owner pings the server,
and gives the connection up if no answer arrives.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from groundhook.core.errors import (
    HostError,
    ServerError,
    ServerNotConfigured,
    ServerUnreachable,
)
from groundhook.core.extras import extra
from groundhook.core.types.server_spec import ServerSpec
from groundhook.host.tools.mcp.evidence import ConnectionEvidence

if TYPE_CHECKING:
    from groundhook.host.tools.mcp.sdk.session import McpSession

CLOSE_TIMEOUT = 2.0  # seconds for closing a connection over HTTP
DRAIN_TIMEOUT = 0.25  # seconds for answers that have already arrived when a connection is lost
PING_TIMEOUT = 5.0  # seconds


@dataclass(eq=False)
class Job:
    """Work to do on a connection. `request` names it in messages. While `is_repeatable`, it may run
    again after a lost connection: `work` sets it to False before it sends a request with side
    effects."""

    request: str
    work: Callable[[McpSession, Job], Awaitable[Any]]
    is_repeatable: bool = True
    repeated: bool = False
    # The caller's wait, which ends at the deadline.
    caller_scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    work_scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    done: anyio.Event = field(default_factory=anyio.Event)
    result: Any = None
    error: HostError | None = None

    def finish(self, result: Any = None, error: HostError | None = None) -> None:
        """Set the outcome, unless it is set already."""
        if not self.done.is_set():
            self.result, self.error = result, error
            self.done.set()


@dataclass(frozen=True)
class _Lost:
    """A connection was lost."""

    evidence: ConnectionEvidence


@dataclass(frozen=True)
class _TimedOut:
    """A call timed out."""

    evidence: ConnectionEvidence


@dataclass(frozen=True)
class _Stop:
    """The owner closes."""


_Message = Job | _Lost | _TimedOut | _Stop


class ServerOwner:
    """Owns one server. `run` is its task; `ask` may be called from any task of the same event
    loop."""

    def __init__(self, spec: ServerSpec, environment: Mapping[str, str], folder: Path) -> None:
        self._spec, self._environment, self._folder = spec, environment, folder
        self._send_messages, self._messages = anyio.create_memory_object_stream[_Message](math.inf)
        self._jobs: set[Job] = set()
        self._evidence = ConnectionEvidence(spec)
        self._connecting: anyio.CancelScope | None = (
            None  # cancels a connection that is being opened; None otherwise
        )
        self._alive = anyio.Event()  # unset while a ping is under way
        self._alive.set()
        self._closing = False
        self.is_connected = False

    async def ask(self, request: str, work: Callable[[McpSession, Job], Awaitable[Any]]) -> Any:
        """Run `work` on the connection and return its result. Raises the HostError of `work`, or
        the reason why the server cannot be reached. If the caller is cancelled, so is the work; the
        connection stays open."""
        job = Job(request, work)
        if self._closing:
            raise self._closed_error(job)
        self._jobs.add(job)
        try:
            self._send_messages.send_nowait(job)
            with job.caller_scope:
                await job.done.wait()
        finally:
            self._jobs.discard(job)
            job.work_scope.cancel()
        if not job.done.is_set():
            self._post_message(_TimedOut(self._evidence))
            raise self._evidence.no_answer(request)
        if job.error is not None:
            raise job.error
        return job.result

    async def run(self) -> None:
        """Run jobs until `close`. Shielded from cancellation, since closing a connection takes a
        moment, which is bounded."""
        try:
            with anyio.CancelScope(shield=True), self._send_messages, self._messages:
                while not self._closing:
                    message = await self._messages.receive()
                    if isinstance(message, Job) and not message.work_scope.cancel_called:
                        await self._connect_and_serve(message)
        finally:
            for job in self._jobs:
                job.finish(error=self._closed_error(job))

    def close(self) -> None:
        """Refuse further jobs, end those under way with an error, and close the connection."""
        self._closing = True
        self._alive.set()
        self._post_message(_Stop())
        if self._connecting is not None:
            self._connecting.cancel()

    # ---- one connection

    async def _connect_and_serve(self, first: Job) -> None:
        """Connect for the job `first`, and run jobs until the connection ends."""
        evidence = self._evidence = ConnectionEvidence(self._spec)
        connected = False
        failure: ServerError | None = None
        try:
            open_session = await _sdk()
        except ServerNotConfigured as exc:
            self._fail_waiting(first, exc)
            return
        with anyio.CancelScope(deadline=anyio.current_time() + self._spec.start_timeout) as life:
            self._connecting = life
            if self._closing:
                return
            try:
                async with open_session(
                    evidence, self._environment, self._folder, lambda: self._report_lost(evidence)
                ) as session:
                    self._connecting, life.deadline, connected = None, math.inf, True
                    self.is_connected = True
                    await self._serve(session, evidence, first)
                    life.deadline = anyio.current_time() + CLOSE_TIMEOUT
            except ServerError as exc:
                failure = exc
            finally:
                self._connecting = None
                self.is_connected = False
                evidence.over = True
        if not connected:
            self._fail_waiting(first, failure or evidence.not_ready())

    async def _serve(self, session: McpSession, evidence: ConnectionEvidence, first: Job) -> None:
        under_way: set[Job] = set()

        def start(job: Job) -> None:
            job.caller_scope.deadline = anyio.current_time() + self._spec.timeout
            under_way.add(job)
            tasks.start_soon(self._run, session, evidence, job, under_way)

        try:
            async with anyio.create_task_group() as tasks:
                start(first)
                async for message in self._messages:
                    match message:
                        case Job():
                            await self._alive.wait()
                            if evidence.over:
                                self._post_message(message)  # again, behind the _Lost message
                            else:
                                start(message)
                        case _TimedOut(subject) if (
                            subject is evidence and self._alive.is_set() and not self._closing
                        ):
                            self._alive = anyio.Event()
                            tasks.start_soon(self._ping, session, evidence, tasks)
                        case _Lost(subject) if subject is evidence:
                            break
                        case _Stop():
                            break
                tasks.cancel_scope.deadline = anyio.current_time() + (
                    0 if self._closing else DRAIN_TIMEOUT
                )
        finally:
            self._alive.set()
            evidence.over = True
            for job in under_way:
                self._retry_or_fail(job, self._lost_error(job, evidence))

    async def _run(
        self, session: McpSession, evidence: ConnectionEvidence, job: Job, under_way: set[Job]
    ) -> None:
        try:
            with job.work_scope:
                job.finish(await job.work(session, job))
        except ServerUnreachable as exc:
            self._report_lost(evidence)
            self._retry_or_fail(job, exc)
        except HostError as exc:
            job.finish(error=exc)
        under_way.discard(job)

    async def _ping(
        self, session: McpSession, evidence: ConnectionEvidence, tasks: TaskGroup
    ) -> None:
        """Check that the server answers at all; an error counts as an answer. Give the connection
        up otherwise."""
        answered_id = False
        with anyio.move_on_after(min(PING_TIMEOUT, self._spec.timeout)):
            try:
                await session.list_tools()
                answered_id = True
            except ServerUnreachable:
                pass
            except ServerError:
                answered_id = True
        if not answered_id:
            if evidence.program is not None:
                evidence.program.unresponsive = True
            self._report_lost(evidence)
        self._alive.set()

    # ---- messages and outcomes

    def _post_message(self, message: _Message) -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._send_messages.send_nowait(message)

    def _report_lost(self, evidence: ConnectionEvidence) -> None:
        if not evidence.over:
            evidence.over = True
            self._post_message(_Lost(evidence))

    def _retry_or_fail(self, job: Job, error: ServerUnreachable) -> None:
        """Run a job again after a lost connection, if that is safe and it has not been repeated
        yet; otherwise finish it with `error`."""
        if job.done.is_set() or job.work_scope.cancel_called:
            return
        if self._closing or job.repeated or not (job.is_repeatable or not error.delivered):
            job.finish(error=error)
            return
        job.repeated, job.is_repeatable, job.caller_scope.deadline = True, True, math.inf
        self._post_message(job)

    def _fail_waiting(self, first: Job, error: HostError) -> None:
        """Finish all waiting jobs with the error of a connection that failed. The next job connects
        again."""
        jobs = [first]
        with suppress(anyio.WouldBlock, anyio.EndOfStream):
            while True:
                message = self._messages.receive_nowait()
                if isinstance(message, Job):
                    jobs.append(message)
        for job in jobs:
            job.finish(error=self._closed_error(job) if self._closing else error)

    def _lost_error(self, job: Job, evidence: ConnectionEvidence) -> ServerUnreachable:
        if self._closing:
            return self._closed_error(job)
        return ServerUnreachable(
            f"the connection to {evidence.name} was lost during {job.request}{evidence.details()}"
        )

    def _closed_error(self, job: Job) -> ServerUnreachable:
        return ServerUnreachable(
            f"MCP server {self._spec.id!r} was closed before it answered {job.request}"
        )


async def _sdk() -> Callable[..., Any]:
    """Return `open_session` of host.tools.mcp.sdk.session. Importing the SDK takes half a second,
    so a thread does it."""

    def load() -> Callable[..., Any]:
        with extra("mcp", "speaking to MCP servers", ServerNotConfigured):
            from groundhook.host.tools.mcp.sdk.session import open_session

        return open_session

    return await anyio.to_thread.run_sync(load)
