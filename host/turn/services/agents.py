"""`ctx.agent` and `ctx.llm` for the hooks of one assistant: `core.hook_services.HookCalls`.

A called assistant runs a turn of its own, with its own isolate, under the identity and in the trace
of this turn. This is the one place where its failure, or a model's, becomes `error` on an answer.
In calls with `onChunk`, pieces of text wait here until the hook fetches them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup

from groundhook.core.errors import HostError, ModelTruncated, UsageError
from groundhook.core.hook_services import Together
from groundhook.core.json_text import NotJson, read_json
from groundhook.core.ports import ModelCall, TextDelta, ToolDelta
from groundhook.core.trace import recording, span
from groundhook.core.types.calls import (
    AgentAsk,
    AgentResult,
    Answered,
    Ask,
    ModelAsk,
    ModelResult,
)
from groundhook.core.types.events import Event, Text, Warned
from groundhook.host.llm.deltas import answering
from groundhook.host.search.searcher import run_all, run_first
from groundhook.host.turn.content import question_of
from groundhook.host.turn.context import Request
from groundhook.host.turn.draft import Draft, step
from groundhook.host.turn.outbox import Outbox
from groundhook.host.turn.run import AssistantRun

BUFFERED = 64  # pieces of text that wait for the hook before their writer has to wait
STOPPED = "stopped"  # finish_reason of an answer that the hook stopped

# Called with every piece of text of an answer.
TextSink = Callable[[str], Awaitable[None]]


class OpenCall:
    """Requests whose answers a hook reads while they arrive. `finished` has the complete answers,
    `texts` the pieces of each that have arrived."""

    def __init__(self, asks: Sequence[Ask], mode: Together) -> None:
        self.asks = asks
        self.mode = mode
        self.into, self.out = anyio.create_memory_object_stream[tuple[int, str]](BUFFERED)
        self.scope = anyio.CancelScope()
        self.ended = anyio.Event()
        self.answers: list[Answered] | None = None
        self.finished: dict[int, Answered] = {}
        self.texts: list[list[str]] = [[] for _ in asks]

    async def add_text(self, index: int, text: str) -> None:
        self.texts[index].append(text)
        await self.into.send((index, text))

    def stop(self, problem: str) -> list[Answered]:
        """Return the answers when the hook stops them early: complete ones as they are, others with
        the text that has arrived."""
        answers = [
            self.finished.get(index)
            or _make_partial_answer(ask, "".join(self.texts[index]), problem)
            for index, ask in enumerate(self.asks)
        ]
        if self.mode == "all":
            return answers
        # `any` and `race` have one answer: the best so far.
        return sorted(answers, key=lambda answer: (answer.error is not None, not answer.content))[
            :1
        ]


@dataclass
class Calls:
    """The calls of one run's hooks. `tasks` is the task group of the running hook: the calls that
    it opened end with it."""

    run: AssistantRun
    tasks: TaskGroup | None = None
    _open: dict[int, OpenCall] = field(default_factory=dict)
    _made: int = 0

    async def ask(self, asks: Sequence[Ask], mode: Together, /) -> list[Answered]:
        async def discard(_text: str) -> None: ...

        return await _run_together([partial(self._run_request, ask, discard) for ask in asks], mode)

    async def open(self, asks: Sequence[Ask], mode: Together, /) -> int:
        assert self.tasks is not None  # only a running hook can call this
        self._made += 1
        call = self._open[self._made] = OpenCall(asks, mode)
        self.tasks.start_soon(self._run_call, call)
        return self._made

    async def next(self, handle: int, /) -> Sequence[tuple[int, str]]:
        out = self._call(handle).out
        arrived: list[tuple[int, str]] = []
        with suppress(anyio.EndOfStream, anyio.WouldBlock):
            arrived.append(await out.receive())
            # Together with all other text that has arrived: each fetch is a call from V8 to the
            # host.
            while len(arrived) < BUFFERED:
                arrived.append(out.receive_nowait())
        return arrived

    async def close(self, handle: int, problem: str, /) -> list[Answered]:
        call = self._call(handle)
        del self._open[handle]
        call.scope.cancel()
        # The partial answers are complete only once every writer has stopped.
        await call.ended.wait()
        call.out.close()
        return call.answers if call.answers is not None else call.stop(problem)

    def end(self) -> None:
        """Drop the calls of a hook that has ended. The services cancel its task group, which ends
        them."""
        for call in self._open.values():
            call.out.close()
        self._open.clear()

    def _call(self, handle: int) -> OpenCall:
        if handle not in self._open:
            raise UsageError(
                "this answer is no longer open: it ended, or the hook that requested it did"
            )
        return self._open[handle]

    async def _run_call(self, call: OpenCall) -> None:
        async def answer(index: int, ask: Ask) -> Answered:
            made = call.finished[index] = await self._run_request(
                ask, partial(call.add_text, index)
            )
            return made

        try:
            with call.into, call.scope:
                jobs = [partial(answer, index, ask) for index, ask in enumerate(call.asks)]
                call.answers = await _run_together(jobs, call.mode)
        finally:
            call.ended.set()

    async def _run_request(self, ask: Ask, sink: TextSink) -> Answered:
        return await (
            self._run_agent(ask, sink) if isinstance(ask, AgentAsk) else self._run_model(ask, sink)
        )

    # ---- another assistant

    async def _run_agent(self, ask: AgentAsk, sink: TextSink) -> AgentResult:
        forward = _find_first_set(
            ask.options.forward or None, _invert(ask.options.skip.output), False
        )
        outbox = self.run.outbox if forward else None
        message = _TextMessage(self.run.outbox)

        async def forward_event(event: Event) -> None:
            if isinstance(event, Text):
                if forward:
                    await message.append(event.delta)
                await sink(event.delta)
            elif isinstance(event, Warned):
                await self.run.channel.send(event)

        with span("agent", ask.agent) as node:
            try:
                with recording(None) if ask.options.skip.trace else nullcontext():
                    end, error = await self.run.call_assistant(
                        self.run.context, self._make_request(ask), forward_event, outbox
                    )
            except HostError as exc:
                node.fail(str(exc))
                return AgentResult(agent_id=ask.agent, error=str(exc))
            finally:
                message.close()
            node.note(input=question_of(ask.messages), output=end.content)
            node.data.update(characters=len(end.content), usage=end.usage.model_dump())
            if error:
                node.fail(error)
        return AgentResult(
            agent_id=ask.agent,
            content=end.content,
            citations=end.citations,
            data=end.data,
            metadata=end.metadata,
            finish_reason=end.finish_reason,
            usage=end.usage,
            error=error or None,
        )

    def _make_request(self, ask: AgentAsk) -> Request:
        own, options = self.run.request, ask.options
        history = _find_first_set(options.history or None, _invert(options.skip.history), False)
        return own.for_assistant(
            ask.agent,
            (*own.messages, *ask.messages) if history else ask.messages,
            search=_find_first_set(options.search, False if options.skip.search else None),
            connector=options.connector,
            temperature=options.temperature,
            max_tokens=options.max_tokens,
            locale=options.locale or own.options.locale,
            metadata=options.metadata,
        )

    # ---- a model

    async def _run_model(self, ask: ModelAsk, sink: TextSink) -> ModelResult:
        options = ask.options
        call = ModelCall(
            messages=ask.messages,
            question=question_of(ask.messages),
            tools=options.tools,
            temperature=options.temperature,
            max_tokens=options.max_tokens,
            max_completion_tokens=options.max_completion_tokens,
            sampling=options.sampling(),
            tool_choice=options.tool_choice,
            user=options.user,
        )
        draft, error = Draft(), ""
        with span("llm", ask.connector, messages=len(ask.messages)) as node:
            node.note(messages=ask.messages)
            try:
                async with answering(self.run.connector(ask.connector), call) as deltas:
                    async for delta in deltas:
                        draft = step(draft, delta)
                        if isinstance(delta, TextDelta):
                            await sink(delta.text)
                if draft.finished is None:
                    raise ModelTruncated("the model's answer ended before it was complete")
            except HostError as exc:
                error = str(exc)
                node.fail(error)
            node.note(answer=draft)
            node.data.update(characters=len(draft.text), tool_calls=len(draft.begun))
        answer = ModelResult(connector=ask.connector, content=draft.text, error=error or None)
        if draft.finished is None:
            return answer
        return answer.model_copy(
            update={
                "model": draft.finished.model,
                "finish_reason": draft.finished.finish_reason,
                "tool_calls": tuple(_make_tool_call(call) for call in draft.calls),
                "usage": draft.finished.usage,
            }
        )


class _TextMessage:
    """A message in the client's stream that grows with the text of a called assistant."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._id = ""

    async def append(self, text: str) -> None:
        if self._id:
            await self._outbox.change("append", self._id, text, "props.content")
        else:
            message = {"type": "text", "props": {"content": text}}
            self._id = await self._outbox.send(
                message, thread_id=self._outbox.new_id("thread"), streaming=True
            )

    def close(self) -> None:
        self._outbox.close([self._id])


async def _run_together(
    jobs: Sequence[Callable[[], Awaitable[Answered]]], mode: Together
) -> list[Answered]:
    if mode == "all":
        return await run_all(jobs)
    return await run_first(
        jobs, accept=(lambda answer: answer.error is None) if mode == "any" else (lambda _: True)
    )


def _make_partial_answer(ask: Ask, content: str, problem: str) -> Answered:
    values: dict[str, Any] = {
        "content": content,
        "finish_reason": "" if problem else STOPPED,
        "error": problem or None,
    }
    if isinstance(ask, AgentAsk):
        return AgentResult(agent_id=ask.agent, **values)
    return ModelResult(connector=ask.connector, **values)


def _make_tool_call(call: ToolDelta) -> dict[str, Any]:
    """Return a tool call for the hook: its arguments as an object when they are JSON, else as the
    model wrote them."""
    try:
        arguments = read_json(call.arguments or "{}")
    except NotJson:
        arguments = call.arguments
    return {"id": call.id, "name": call.name, "arguments": arguments}


def _find_first_set(*values: bool | None) -> bool | None:
    return next((value for value in values if value is not None), None)


def _invert(value: bool | None) -> bool | None:
    return None if value is None else not value
