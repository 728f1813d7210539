"""Stream(): a turn of a conversation from the request to the last event, through every assistant it
is handed to.

A failed search never ends a turn. A failed model does not keep Next from running. What ends a turn
is one `error` event, and `stream_end` still follows with what had arrived.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import anyio
from pydantic import ValidationError

from groundhook.host.core.channel import Channel
from groundhook.host.core.error_events import failures
from groundhook.host.core.errors import (
    HookReturnInvalid,
    HostError,
    Place,
    TooManyTurns,
    UnknownName,
    UsageError,
)
from groundhook.host.core.exception_groups import (
    leaves,
    unwrapped,
)
from groundhook.host.core.trace import Span, recording, span
from groundhook.host.core.types.base import dotted, problems, read
from groundhook.host.core.types.events import Cited, Event, Failed, StreamEnd, Trace, Warned
from groundhook.host.core.types.turn import Delegation, TurnOptions, Usage
from groundhook.host.turn.outbox import Outbox
from groundhook.host.turn.run import Caller, Heard, Request, Run, Runtime
from groundhook.host.turn.steps import take_turn

PATIENCE = 5.0  # seconds that turns get to say their last words when their host is closed

log = logging.getLogger("groundhook")


class OpenTurns:
    """The turns of a host that wait or are under way, so that they end before what they need. At
    most `at_once` are under way and `queue` wait."""

    def __init__(self, at_once: int, queue: int) -> None:
        self._at_once, self._queue = at_once, queue
        self._entered = 0
        self._places = anyio.Semaphore(at_once)
        self._scopes: set[anyio.CancelScope] = set()
        self._none = anyio.Event()
        self.closed = False

    @contextmanager
    def entered(self) -> Iterator[anyio.CancelScope]:
        """A turn; its scope is cancelled when the host is closed."""
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            if self.closed:
                scope.cancel()
            try:
                yield scope
            finally:
                self._scopes.discard(scope)
                if not self._scopes:
                    self._none.set()

    @contextmanager
    def counted(self) -> Iterator[None]:
        """A turn from when it is entered to when it is left. Raises TooManyTurns."""
        if self._entered >= self._at_once + self._queue:
            raise TooManyTurns(
                f"{self._at_once} turns are under way and {self._queue} wait: no more are taken",
                hint="try again later, or raise turns.at_once or turns.queue in agent/agent.yml",
            )
        self._entered += 1
        try:
            yield
        finally:
            self._entered -= 1

    def place(self) -> AbstractAsyncContextManager[object]:
        """Wait until fewer than `at_once` turns are under way, first come first served."""
        return self._places

    def refuse_if_closed(self) -> None:
        """Raises UsageError where nothing may begin any more."""
        if self.closed:
            raise UsageError(
                "the host is closed",
                hint="turns and searches belong inside `async with open_host(…)`",
            )

    async def close(self) -> None:
        """End every turn: each says why, and how far it came."""
        self.closed = True
        self._none = anyio.Event()
        for scope in self._scopes:
            scope.cancel()
        with anyio.move_on_after(PATIENCE, shield=True):
            while self._scopes:
                await self._none.wait()


@dataclass
class _Relay:
    """The runs of a turn: the one under way, last, and those that handed it on."""

    runs: list[Run] = field(default_factory=list)

    @property
    def run(self) -> Run:
        return self.runs[-1]

    @property
    def failure(self) -> str:
        return next((run.failure for run in self.runs if run.failure), "")

    def _grounded(self, cited: Iterable[Cited]) -> bool | None:
        whole = self.run.answer.finish_reason and any(run.answer.content for run in self.runs)
        if self.failure or not whole or not any(run.answer.offered for run in self.runs):
            return None
        return any(citation.verdict == "ok" for citation in cited)

    def end(self) -> StreamEnd:
        """How the turn ended: what was streamed in all, and what the last assistant returned."""
        last = self.run
        timings = dict(last.timings)
        texts = [
            run.answer.first_text_ms for run in self.runs if run.answer.first_text_ms is not None
        ]
        if texts:
            timings["first_text"] = round(texts[0], 3)
        timings["total"] = round(last.channel.elapsed_ms(), 3)
        cited: dict[str, Cited] = {}
        for citation in chain.from_iterable(run.answer.cited.values() for run in self.runs):
            cited.setdefault(citation.marker, citation)
        metadata: dict[str, Any] = {}
        for run in self.runs:
            metadata |= run.metadata
        return StreamEnd(
            content="".join(run.answer.said for run in self.runs),
            citations=tuple(cited.values()),
            data=last.returned.data if last.returned else None,
            metadata=metadata,
            finish_reason=last.answer.finish_reason,
            grounded=self._grounded(cited.values()),
            usage=_sum([run.answer.usage for run in self.runs]),
            timings=timings,
        )


@asynccontextmanager
async def open_turn(
    runtime: Runtime, turns: OpenTurns, request: Request
) -> AsyncIterator[AsyncIterator[Event]]:
    """Enter a turn and read its events. Leaving it stops the model, the searches and the hook
    before the next line. Raises UnknownName for an assistant that is not there, ConfigError for one
    that cannot be used, and TooManyTurns."""
    turns.refuse_if_closed()
    asked: object = request.assistant_id  # which a program may have from its own clients
    if not isinstance(asked, str):
        raise UsageError(f"the id of an assistant must be text, not {asked.__class__.__name__}")
    channel = Channel(f"t_{secrets.token_hex(6)}")
    relay = _Relay([Run.begin(runtime, request, channel, call)])
    with turns.counted(), unwrapped():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_drive, relay, turns)
            try:
                yield channel
            finally:
                channel.close()
                tasks.cancel_scope.cancel()


async def _drive(relay: _Relay, turns: OpenTurns) -> None:
    """The turn and those it is handed to, with every failure told to the client."""
    channel, limit = relay.run.channel, relay.run.runtime.app.settings.turn_timeout_ms
    try:
        channel.note(relay.run.started())
        with turns.entered() as scope, recording(lambda node: channel.note(Trace(node=node))):
            async with turns.place():
                with (
                    anyio.move_on_after(limit / 1000) as deadline,
                    span("turn", relay.run.package.id) as node,
                ):
                    await _guarded(relay, node)
                if deadline.cancelled_caught:
                    channel.note(
                        Failed(
                            code="turn_timeout",
                            message=f"the turn took longer than {limit} ms",
                            hint="turn_timeout_ms in agent/agent.yml sets how long",
                        )
                    )
        if scope.cancelled_caught:
            channel.note(
                Failed(
                    code="host_closed", message="the host was closed while the turn was under way"
                )
            )
        channel.note(relay.end())
    finally:
        channel.close()


async def _guarded(relay: _Relay, node: Span) -> None:
    """Follow the turn to its end; what ends it early becomes events."""
    channel = relay.run.channel
    try:
        await _follow(relay)
        if failure := relay.failure:
            node.fail(failure)
    except* HostError as errors:
        node.fail("; ".join(str(error) for error in leaves(errors)))
        for error in leaves(errors):
            assert isinstance(error, HostError)
            for event in failures(error):
                channel.note(event)
    except* Exception as bugs:  # the outermost edge: a bug ends its own turn, loudly, and no other
        log.exception("a bug in Groundhook or a plug-in ended the turn %s", channel.turn_id)
        message = "; ".join(repr(bug) for bug in leaves(bugs))
        node.fail(message)
        channel.note(
            Failed(
                code="internal",
                message=f"internal error: {message}",
                hint="the log has the traceback",
            )
        )


async def _follow(relay: _Relay) -> None:
    """Run the turn, and the turns it is handed on to, in the same channel."""
    while (delegation := await take_turn(relay.run)) is not None:
        before = relay.run
        request = await _handed_on(before, delegation)
        run = Run.begin(
            before.runtime, request, before.channel, call, caller=before.here, outbox=before.outbox
        )
        run.answer.after = any(each.answer.said for each in relay.runs)
        relay.runs.append(run)
        await run.channel.send(run.started())


async def _handed_on(run: Run, delegation: Delegation) -> Request:
    """What the next assistant is asked: as this one was, but for what the hook said. Raises
    HookReturnInvalid."""
    said = {**run.request.options.model_dump(exclude_unset=True), **delegation.options}
    place = Place(run.package.hook_file)
    try:
        run.runtime.app.package(delegation.agent_id)
        options, unknown = read(TurnOptions, said)
    except UnknownName as exc:
        raise HookReturnInvalid(
            f"delegate.agent_id: {exc.message}", place=place, hint=exc.hint
        ) from None
    except ValidationError as exc:
        path, message = problems(exc)[0]
        raise HookReturnInvalid(
            f"delegate.options.{dotted(path)}: {message}", place=place
        ) from None
    for key in unknown:
        await run.channel.send(
            Warned(
                code="unknown_key",
                message=f"delegate.options has an {key}",
                file=run.package.hook_file,
            )
        )
    messages = delegation.messages or run.request.messages
    return replace(
        run.request, assistant_id=delegation.agent_id, messages=messages, options=options
    )


async def call(
    caller: Caller, request: Request, heard: Heard, outbox: Outbox | None
) -> tuple[StreamEnd, str]:
    """A turn within a turn, for a hook that calls another assistant and for a step that one does:
    `host.turn.run.Nested`. Its events go to `heard` instead of the client, its steps into the
    caller's trace."""
    channel = Channel(caller.turn_id)
    relay = _Relay(
        [Run.begin(caller.runtime, request, channel, call, caller=caller, outbox=outbox)]
    )
    failed: list[str] = []

    async def listen() -> None:
        async for event in channel:
            if isinstance(event, Failed):
                failed.append(f"{event.message} ({event.hint})" if event.hint else event.message)
            else:
                await heard(event)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        try:
            await _follow(relay)
        except* HostError as errors:
            failed += [str(error) for error in leaves(errors)]
        finally:
            channel.close()
    return relay.end(), "; ".join(failed)


def _sum(usages: list[Usage]) -> Usage:
    return Usage(
        prompt_tokens=sum(usage.prompt_tokens for usage in usages),
        completion_tokens=sum(usage.completion_tokens for usage in usages),
        total_tokens=sum(usage.total_tokens for usage in usages),
    )
