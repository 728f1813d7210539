"""Runs one turn of a conversation, from the request to the last event.

    open_turn                  enter a turn and yield its events
      _run_turn                wait for a free slot; stop at the time limit, or when the host closes
        _errors_as_events      send exceptions as `error` events
          _run_assistants      run the assistant's steps (`host.turn.steps`), then those of the
                               assistant that a hook delegates the turn to, if any
    call_assistant             run a turn inside a turn, for `ctx.agent.Call` and delegated steps

A run gets `call_assistant` and `call_script` as values (`AssistantRun.begin`), because the modules
that call them are below this one and cannot import it.

A failed search never ends a turn, and a failed model does not keep the Next hook from running. If
something ends a turn early, that is an `error` event; `stream_end` always follows, with everything
that was streamed before.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import anyio
from pydantic import ValidationError

from groundhook.core.channel import Channel
from groundhook.core.error_events import error_events
from groundhook.core.errors import (
    HookReturnInvalid,
    HostError,
    Place,
    UnknownName,
    UsageError,
)
from groundhook.core.exception_groups import errors_in, unwrap_exception_groups
from groundhook.core.trace import Span, recording, span
from groundhook.core.types.base import dotted, validate_known, validation_problems
from groundhook.core.types.events import Cited, Claims, Event, Failed, StreamEnd, Warned
from groundhook.core.types.turn import Delegation, TurnOptions, Usage
from groundhook.host.turn.context import EventSink, Request, RunContext, Runtime
from groundhook.host.turn.open_turns import OpenTurns
from groundhook.host.turn.outbox import Outbox
from groundhook.host.turn.run import AssistantRun, certainty_of_runs
from groundhook.host.turn.services.scripts import call_script
from groundhook.host.turn.steps import run_steps

log = logging.getLogger("groundhook")


@dataclass
class TurnRuns:
    """The runs of a turn: the last one is running, the earlier ones delegated the turn."""

    runs: list[AssistantRun]

    def add(self, run: AssistantRun) -> None:
        """Add the run that the current one has delegated the turn to."""
        self.runs.append(run)

    @property
    def current(self) -> AssistantRun:
        return self.runs[-1]

    @property
    def model_failure(self) -> str:
        """The first failure of a language model; empty when none failed."""
        return next((run.model_failure for run in self.runs if run.model_failure), "")

    @property
    def has_text(self) -> bool:
        """Whether any run has streamed text."""
        return any(run.answer.streamed for run in self.runs)

    @property
    def text(self) -> str:
        """The text that all runs have streamed."""
        return "".join(run.answer.streamed for run in self.runs)

    def end_event(self) -> StreamEnd:
        """Return the event that ends the turn: the text, citations and usage of all runs, and the
        data and finish reason of the last."""
        last = self.current
        timings = dict(last.timings)
        first_texts = [
            run.answer.first_text_ms for run in self.runs if run.answer.first_text_ms is not None
        ]
        if first_texts:
            timings["first_text"] = round(first_texts[0], 3)
        timings["total"] = round(last.channel.elapsed_ms(), 3)
        citations: dict[str, Cited] = {}
        for citation in chain.from_iterable(run.answer.cited.values() for run in self.runs):
            citations.setdefault(citation.marker, citation)
        metadata: dict[str, Any] = {}
        for run in self.runs:
            metadata |= run.metadata
        return StreamEnd(
            content=self.text,
            message={
                "role": "assistant",
                "content": [part for run in self.runs for part in run.answer.parts],
            },
            citations=tuple(citations.values()),
            data=last.returned.data if last.returned else None,
            metadata=metadata,
            finish_reason=last.answer.finish_reason,
            tool_calls=tuple(last.answer.client_calls),
            grounded=self._is_grounded(citations.values()),
            claims=_add_claims([run.answer.checked.claims for run in self.runs]),
            certainty=certainty_of_runs(self.runs),
            usage=_add_usages([run.answer.usage for run in self.runs]),
            timings=timings,
        )

    def _is_grounded(self, citations: Iterable[Cited]) -> bool | None:
        """Return whether the answer cites a source; None when the answer is not complete or the
        model had no sources."""
        finished = bool(self.current.answer.finish_reason)
        complete = finished and any(run.answer.content for run in self.runs)
        offered = any(run.answer.sources_offered for run in self.runs)
        if self.model_failure or not complete or not offered:
            return None
        return any(citation.verdict != "unknown" for citation in citations)


def _add_claims(claims: list[Claims]) -> Claims:
    names = Claims.model_fields
    return Claims(**{name: sum(getattr(each, name) for each in claims) for name in names})


def _add_usages(usages: list[Usage]) -> Usage:
    return Usage(
        prompt_tokens=sum(usage.prompt_tokens for usage in usages),
        completion_tokens=sum(usage.completion_tokens for usage in usages),
        total_tokens=sum(usage.total_tokens for usage in usages),
    )


@asynccontextmanager
async def open_turn(
    runtime: Runtime, turns: OpenTurns, request: Request
) -> AsyncIterator[AsyncIterator[Event]]:
    """Run a turn and yield an iterator over its events. Leaving the block cancels the model, the
    searches and the hook, and waits until they have stopped. Raises UsageError for an id that is
    not text or a closed host, UnknownName for an unknown assistant, ConfigError for one whose files
    are invalid, and TooManyTurns when the limit of turns at once is reached."""
    turns.refuse_if_closed()
    # A program may pass on what its own client sent, unchecked.
    assistant_id: object = request.assistant_id
    if not isinstance(assistant_id, str):
        raise UsageError(
            f"the id of an assistant must be text, not {assistant_id.__class__.__name__}"
        )
    channel = Channel(request.turn_id or f"t_{secrets.token_hex(6)}")
    runs = TurnRuns([AssistantRun.begin(runtime, request, channel, call_assistant, call_script)])
    with turns.admit(), unwrap_exception_groups():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_run_turn, runs, turns)
            try:
                yield channel
            finally:
                # Closed first: nobody reads what the cancelled steps still send.
                channel.close()
                tasks.cancel_scope.cancel()


async def _run_turn(runs: TurnRuns, turns: OpenTurns) -> None:
    """Run a turn. Its first event is `stream_start`, its last `stream_end`."""
    first = runs.current
    channel, limit_ms = first.channel, first.runtime.app.settings.turn_timeout_ms
    try:
        channel.send_nowait(first.start_event())
        with (
            # Around the wait for a slot, so that closing the host also ends a turn that waits.
            turns.cancelled_on_close() as closing,
            recording(*first.runtime.recorders(channel, first.request)),
        ):
            async with turns.slot():
                with (
                    # The limit begins with the slot: the wait for other turns does not count.
                    anyio.move_on_after(limit_ms / 1000) as deadline,
                    span("turn", first.package.id) as turn_span,
                    _errors_as_events(channel, turn_span),
                ):
                    turn_span.note(input=first.question)
                    await _run_assistants(runs)
                    turn_span.note(output=runs.text)
                    if runs.model_failure:
                        turn_span.fail(runs.model_failure)
                if deadline.cancelled_caught:
                    channel.send_nowait(_make_timeout_event(limit_ms))
        if closing.cancelled_caught:
            channel.send_nowait(
                Failed(
                    code="host_closed", message="the host was closed while the turn was under way"
                )
            )
        channel.send_nowait(runs.end_event())
    finally:
        channel.close()


def _make_timeout_event(limit_ms: int) -> Failed:
    return Failed(
        code="turn_timeout",
        message=f"the turn took longer than {limit_ms} ms",
        hint="turn_timeout_ms in agent/agent.yml sets the limit",
    )


@contextmanager
def _errors_as_events(channel: Channel, turn_span: Span) -> Iterator[None]:
    """Send every exception of the block as an `error` event, and mark the turn's span as failed."""
    try:
        yield
    except* HostError as errors:
        turn_span.fail("; ".join(str(error) for error in errors_in(errors)))
        for error in errors_in(errors):
            assert isinstance(error, HostError)
            for event in error_events(error):
                channel.send_nowait(event)
    except* Exception as bugs:  # last resort: a bug is logged and ends this turn only
        log.exception("a bug in Groundhook or a plug-in ended the turn %s", channel.turn_id)
        message = "; ".join(repr(bug) for bug in errors_in(bugs))
        turn_span.fail(message)
        channel.send_nowait(
            Failed(
                code="internal",
                message=f"internal error: {message}",
                hint="the log has the traceback",
            )
        )


async def _run_assistants(runs: TurnRuns) -> None:
    """Run the steps of the assistant, then those of each assistant that the turn is delegated to,
    all with the same channel."""
    while (delegation := await run_steps(runs.current)) is not None:
        previous = runs.current
        run = AssistantRun.begin(
            previous.runtime,
            await _make_delegated_request(previous, delegation),
            previous.channel,
            call_assistant,
            call_script,
            context=previous.context,
            outbox=previous.outbox,
            follows_text=runs.has_text,
        )
        runs.add(run)
        await run.channel.send(run.start_event())


async def _make_delegated_request(run: AssistantRun, delegation: Delegation) -> Request:
    """Return the request for the assistant that a hook delegates the turn to: the request of this
    run, with the messages and options that the hook returned. Raises HookReturnInvalid."""
    merged = {**run.request.options.model_dump(exclude_unset=True), **delegation.options}
    place = Place(run.package.hook_file)
    try:
        run.runtime.app.package(delegation.agent_id)  # raises UnknownName
        options, unknown_keys = validate_known(TurnOptions, merged)
    except UnknownName as exc:
        raise HookReturnInvalid(
            f"delegate.agent_id: {exc.message}", place=place, hint=exc.hint
        ) from None
    except ValidationError as exc:
        path, message = validation_problems(exc)[0]
        raise HookReturnInvalid(
            f"delegate.options.{dotted(path)}: {message}", place=place
        ) from None
    for key in unknown_keys:
        await run.channel.send(
            Warned(
                code="unknown_key",
                message=f"delegate.options: {key}",
                file=run.package.hook_file,
            )
        )
    return replace(
        run.request,
        assistant_id=delegation.agent_id,
        messages=delegation.messages or run.request.messages,
        options=options,
        trial=None,
    )


async def call_assistant(
    context: RunContext, request: Request, sink: EventSink, outbox: Outbox | None
) -> tuple[StreamEnd, str]:
    """Run an assistant for a hook, a delegated step, or a search outside a turn
    (`host.turn.context.CallAssistant`).

    Its `error` events become the text that is returned; every other event is sent to `sink`
    instead of the client. Its steps are added to the current trace, if any. The messages of its
    hooks to the client are sent by `outbox`; with None they are events for `sink` alone. Returns
    the final event, and the errors joined by "; " ("" if there were none). Raises HostError when
    the turn cannot begin.
    """
    channel = Channel(context.turn_id)
    first = AssistantRun.begin(
        context.runtime,
        request,
        channel,
        call_assistant,
        call_script,
        context=context,
        outbox=outbox,
    )
    runs = TurnRuns([first])
    errors: list[str] = []

    async def forward_events() -> None:
        async for event in channel:
            if isinstance(event, Failed):
                errors.append(f"{event.message} ({event.hint})" if event.hint else event.message)
            else:
                await sink(event)

    async with anyio.create_task_group() as tasks:
        # At the same time as the steps: their `send` waits when nobody reads the channel.
        tasks.start_soon(forward_events)
        try:
            await _run_assistants(runs)
        except* HostError as group:
            errors += [str(error) for error in errors_in(group)]
        finally:
            channel.close()
    return runs.end_event(), "; ".join(errors)
