"""The task that owns one MCP server: it alone enters and leaves the connection, and everybody else
writes to it.

Callers post jobs and wait. The owner connects when the first job comes, runs jobs side by side, and
connects anew for the next job after a connection was lost. A job that was under way then is run
once more when it only reads, or when nothing of it can have arrived; otherwise its caller gets an
error. A server that let a deadline pass is asked for a sign of life, and given up when there is
none.
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

from groundhook.host.core.errors import HostError, ServerError, ServerUnreachable
from groundhook.host.core.types.specs import ServerSpec
from groundhook.host.mcp.evidence import Evidence

if TYPE_CHECKING:
    from groundhook.host.mcp.client import Session

CLOSING = 2.0  # seconds for taking leave of a server over HTTP
FINISHING = 0.25  # seconds for jobs whose answers are there already when a connection is lost
SIGN_OF_LIFE = 5.0  # seconds for any answer at all


@dataclass(eq=False)
class Job:
    """Something to do on a connection. `asked` is what messages call it. While `repeatable`, losing
    the connection does no harm: `work` sets it to False before it sends something that acts."""

    asked: str
    work: Callable[[Session, Job], Awaitable[Any]]
    repeatable: bool = True
    repeated: bool = False
    waiting: anyio.CancelScope = field(
        default_factory=anyio.CancelScope
    )  # the caller, who leaves at the deadline
    running: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    done: anyio.Event = field(default_factory=anyio.Event)
    result: Any = None
    error: HostError | None = None

    def finish(self, result: Any = None, error: HostError | None = None) -> None:
        if not self.done.is_set():
            self.result, self.error = result, error
            self.done.set()


@dataclass(frozen=True)
class _Lost:
    """A connection is over."""

    evidence: Evidence


@dataclass(frozen=True)
class _Late:
    """A caller has left at its deadline."""

    evidence: Evidence


@dataclass(frozen=True)
class _Stop:
    """The house is closing."""


Letter = Job | _Lost | _Late | _Stop


class Owner:
    """One server. `run` is its task; `ask` may be called from any task of the same loop."""

    def __init__(self, spec: ServerSpec, environment: Mapping[str, str], folder: Path) -> None:
        self._spec, self._environment, self._folder = spec, environment, folder
        self._post, self._letters = anyio.create_memory_object_stream[Letter](math.inf)
        self._jobs: set[Job] = set()
        self._evidence = Evidence(spec)
        self._life: anyio.CancelScope | None = (
            None  # around a connection; set only while connecting
        )
        self._sure = anyio.Event()  # unset while a sign of life is awaited
        self._sure.set()
        self._closing = False

    async def ask(self, asked: str, work: Callable[[Session, Job], Awaitable[Any]]) -> Any:
        """Have `work` done. Raises HostError: what `work` raised, or why the server could not be
        asked. When the caller is cancelled the work is, too, and the connection stays."""
        job = Job(asked, work)
        if self._closing:
            raise self._closed(job)
        self._jobs.add(job)
        try:
            self._post.send_nowait(job)
            with job.waiting:
                await job.done.wait()
        finally:
            self._jobs.discard(job)
            job.running.cancel()
        if not job.done.is_set():
            self._tell(_Late(self._evidence))
            raise self._evidence.no_answer(asked)
        if job.error is not None:
            raise job.error
        return job.result

    async def run(self) -> None:
        """Serve until `close`. Not cancelled with what is around it: leaving a server takes a
        moment, which is bounded."""
        try:
            with anyio.CancelScope(shield=True), self._post, self._letters:
                while not self._closing:
                    letter = await self._letters.receive()
                    if isinstance(letter, Job) and not letter.running.cancel_called:
                        await self._connection(letter)
        finally:
            for job in self._jobs:
                job.finish(error=self._closed(job))

    def close(self) -> None:
        """Take no more jobs, end those under way with an error, leave the server."""
        self._closing = True
        self._sure.set()
        self._tell(_Stop())
        if self._life is not None:
            self._life.cancel()

    # ---- one connection

    async def _connection(self, first: Job) -> None:
        """From connecting for `first` until the connection is over."""
        evidence = self._evidence = Evidence(self._spec)
        connected = False
        failure: ServerError | None = None
        open_session = await _sdk()
        with anyio.CancelScope(deadline=anyio.current_time() + self._spec.start_timeout) as life:
            self._life = life
            if self._closing:
                return
            try:
                async with open_session(
                    evidence, self._environment, self._folder, lambda: self._lose(evidence)
                ) as session:
                    self._life, life.deadline, connected = None, math.inf, True
                    await self._serve(session, evidence, first)
                    life.deadline = anyio.current_time() + CLOSING
            except ServerError as exc:
                failure = exc
            finally:
                self._life = None
                evidence.over = True
        if not connected:
            self._refuse(first, failure or evidence.not_ready())

    async def _serve(self, session: Session, evidence: Evidence, first: Job) -> None:
        under_way: set[Job] = set()

        def start(job: Job) -> None:
            job.waiting.deadline = anyio.current_time() + self._spec.timeout
            under_way.add(job)
            tasks.start_soon(self._run, session, evidence, job, under_way)

        try:
            async with anyio.create_task_group() as tasks:
                start(first)
                async for letter in self._letters:
                    match letter:
                        case Job():
                            await self._sure.wait()
                            if evidence.over:
                                self._tell(letter)  # to be met again behind the letter that says so
                            else:
                                start(letter)
                        case _Late(about) if (
                            about is evidence and self._sure.is_set() and not self._closing
                        ):
                            self._sure = anyio.Event()
                            tasks.start_soon(self._sign_of_life, session, evidence, tasks)
                        case _Lost(about) if about is evidence:
                            break
                        case _Stop():
                            break
                tasks.cancel_scope.deadline = anyio.current_time() + (
                    0 if self._closing else FINISHING
                )
        finally:
            self._sure.set()
            evidence.over = True
            for job in under_way:
                self._again_or(job, self._interrupted(job, evidence))

    async def _run(
        self, session: Session, evidence: Evidence, job: Job, under_way: set[Job]
    ) -> None:
        try:
            with job.running:
                job.finish(await job.work(session, job))
        except ServerUnreachable as exc:
            self._lose(evidence)
            self._again_or(job, exc)
        except HostError as exc:
            job.finish(error=exc)
        under_way.discard(job)

    async def _sign_of_life(self, session: Session, evidence: Evidence, tasks: TaskGroup) -> None:
        """Any answer will do, also a refusal."""
        answered = False
        with anyio.move_on_after(min(SIGN_OF_LIFE, self._spec.timeout)):
            try:
                await session.list_tools()
                answered = True
            except ServerUnreachable:
                pass
            except ServerError:
                answered = True
        if not answered:
            if evidence.program is not None:
                evidence.program.hopeless = True
            self._lose(evidence)
        self._sure.set()

    # ---- letters and ends

    def _tell(self, letter: Letter) -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._post.send_nowait(letter)

    def _lose(self, evidence: Evidence) -> None:
        if not evidence.over:
            evidence.over = True
            self._tell(_Lost(evidence))

    def _again_or(self, job: Job, error: ServerUnreachable) -> None:
        """Run a job again that lost its connection, where that does no harm and was not tried
        yet."""
        if job.done.is_set() or job.running.cancel_called:
            return
        if self._closing or job.repeated or not (job.repeatable or not error.delivered):
            job.finish(error=error)
            return
        job.repeated, job.repeatable, job.waiting.deadline = True, True, math.inf
        self._tell(job)

    def _refuse(self, first: Job, error: HostError) -> None:
        """A connection could not be made: those who wait for one are told, and the next caller
        makes it try again."""
        jobs = [first]
        with suppress(anyio.WouldBlock, anyio.EndOfStream):
            while True:
                letter = self._letters.receive_nowait()
                if isinstance(letter, Job):
                    jobs.append(letter)
        for job in jobs:
            job.finish(error=self._closed(job) if self._closing else error)

    def _interrupted(self, job: Job, evidence: Evidence) -> ServerUnreachable:
        if self._closing:
            return self._closed(job)
        return ServerUnreachable(
            f"{evidence.name} was lost while it worked on {job.asked}{evidence.about()}"
        )

    def _closed(self, job: Job) -> ServerUnreachable:
        return ServerUnreachable(
            f"MCP server {self._spec.id!r} was closed before it answered {job.asked}"
        )


async def _sdk() -> Callable[..., Any]:
    """`open_session` of host.mcp.client. Importing the SDK takes half a second, which the loop does
    not wait for."""

    def load() -> Callable[..., Any]:
        from groundhook.host.mcp.client import open_session

        return open_session

    return await anyio.to_thread.run_sync(load)
