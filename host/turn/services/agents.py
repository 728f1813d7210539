"""`ctx.agent` and `ctx.llm` for the hooks of one assistant: `host.core.hook_services.HookCalls`.

A called assistant runs a turn of its own, with its own isolate, under the caller's identity and in
the caller's trace. This is the one place where its failure, or a model's, becomes `error` on an
answer. What JavaScript wants to hear while it arrives waits here until it is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup

from groundhook.host.core.errors import HostError, ModelTruncated, UsageError
from groundhook.host.core.hook_services import Together
from groundhook.host.core.ports import ModelCall, TextDelta, ToolDelta
from groundhook.host.core.trace import span
from groundhook.host.core.types.calls import (
    AgentAsk,
    AgentResult,
    Answered,
    Ask,
    ModelAsk,
    ModelResult,
)
from groundhook.host.core.types.events import Event, Text, Warned
from groundhook.host.search.searcher import run_all, run_first
from groundhook.host.turn.answer import Draft, step
from groundhook.host.turn.content import question_of
from groundhook.host.turn.outbox import Outbox
from groundhook.host.turn.run import Request, Run

UNHEARD = 64  # pieces of text that wait for the hook before their writer does
STOPPED = "stopped"  # finish_reason of what the hook wanted no more of

Say = Callable[[str], Awaitable[None]]


class Hearing:
    """Asks that are heard while they are answered. `finished` has the answers that are whole,
    `heard` what arrived of each."""

    def __init__(self, asks: Sequence[Ask], mode: Together) -> None:
        self.asks = asks
        self.mode = mode
        self.into, self.out = anyio.create_memory_object_stream[tuple[int, str]](UNHEARD)
        self.scope = anyio.CancelScope()
        self.ended = anyio.Event()
        self.answers: list[Answered] | None = None
        self.finished: dict[int, Answered] = {}
        self.heard: list[list[str]] = [[] for _ in asks]

    async def say(self, index: int, text: str) -> None:
        self.heard[index].append(text)
        await self.into.send((index, text))

    def stopped(self, problem: str) -> list[Answered]:
        """The answers when no more is wanted."""
        answers = [
            self.finished.get(index) or _partial(ask, "".join(self.heard[index]), problem)
            for index, ask in enumerate(self.asks)
        ]
        if self.mode == "all":
            return answers
        return sorted(answers, key=lambda answer: (answer.error is not None, not answer.content))[
            :1
        ]


@dataclass
class Calls:
    """For one run. `tasks` is the group of the hook that runs; what it opened ends with it."""

    run: Run
    tasks: TaskGroup | None = None
    _open: dict[int, Hearing] = field(default_factory=dict)
    _made: int = 0

    async def ask(self, asks: Sequence[Ask], mode: Together, /) -> list[Answered]:
        async def unheard(_text: str) -> None: ...

        return await _together([partial(self._answer, ask, unheard) for ask in asks], mode)

    async def open(self, asks: Sequence[Ask], mode: Together, /) -> int:
        assert self.tasks is not None  # a hook runs, or nobody could ask
        self._made += 1
        hearing = self._open[self._made] = Hearing(asks, mode)
        self.tasks.start_soon(self._drive, hearing)
        return self._made

    async def next(self, handle: int, /) -> Sequence[tuple[int, str]]:
        out = self._hearing(handle).out
        arrived: list[tuple[int, str]] = []
        with suppress(anyio.EndOfStream, anyio.WouldBlock):
            arrived.append(await out.receive())
            while len(arrived) < UNHEARD:
                arrived.append(out.receive_nowait())
        return arrived

    async def close(self, handle: int, problem: str, /) -> list[Answered]:
        hearing = self._hearing(handle)
        del self._open[handle]
        hearing.scope.cancel()
        await hearing.ended.wait()
        hearing.out.close()
        return hearing.answers if hearing.answers is not None else hearing.stopped(problem)

    def end(self) -> None:
        """The hook has ended: its group is cancelled by whoever made it."""
        for hearing in self._open.values():
            hearing.out.close()
        self._open.clear()

    def _hearing(self, handle: int) -> Hearing:
        if handle not in self._open:
            raise UsageError(
                "this answer is no longer open: it ended, or the hook that asked for it did"
            )
        return self._open[handle]

    async def _drive(self, hearing: Hearing) -> None:
        async def answer(index: int, ask: Ask) -> Answered:
            made = hearing.finished[index] = await self._answer(ask, partial(hearing.say, index))
            return made

        try:
            with hearing.into, hearing.scope:
                jobs = [partial(answer, index, ask) for index, ask in enumerate(hearing.asks)]
                hearing.answers = await _together(jobs, hearing.mode)
        finally:
            hearing.ended.set()

    async def _answer(self, ask: Ask, say: Say) -> Answered:
        return await (self._agent(ask, say) if isinstance(ask, AgentAsk) else self._model(ask, say))

    # ---- another assistant

    async def _agent(self, ask: AgentAsk, say: Say) -> AgentResult:
        forward = _first(ask.options.forward or None, _not(ask.options.skip.output), False)
        outbox = self.run.outbox if forward else None
        shown = _Shown(self.run.outbox)

        async def heard(event: Event) -> None:
            if isinstance(event, Text):
                if forward:
                    await shown.say(event.delta)
                await say(event.delta)
            elif isinstance(event, Warned):
                await self.run.channel.send(event)

        with span("agent", ask.agent) as node:
            try:
                end, error = await self.run.nested(self.run.here, self._request(ask), heard, outbox)
            except HostError as exc:
                node.fail(str(exc))
                return AgentResult(agent_id=ask.agent, error=str(exc))
            finally:
                shown.close()
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

    def _request(self, ask: AgentAsk) -> Request:
        own, said = self.run.request, ask.options
        history = _first(said.history or None, _not(said.skip.history), False)
        return own.of_another(
            ask.agent,
            (*own.messages, *ask.messages) if history else ask.messages,
            search=_first(said.search, False if said.skip.search else None),
            connector=said.connector,
            temperature=said.temperature,
            max_tokens=said.max_tokens,
            locale=said.locale or own.options.locale,
            metadata=said.metadata,
        )

    # ---- a model

    async def _model(self, ask: ModelAsk, say: Say) -> ModelResult:
        call = ModelCall(
            messages=ask.messages, question=question_of(ask.messages), **dict(ask.options)
        )
        draft, error = Draft(), ""
        with span("llm", ask.connector, messages=len(ask.messages)) as node:
            try:
                async with self.run.runtime.connectors(ask.connector).stream(call) as deltas:
                    async for delta in deltas:
                        draft = step(draft, delta)
                        if isinstance(delta, TextDelta):
                            await say(delta.text)
                if draft.finished is None:
                    raise ModelTruncated(
                        "the model's answer ended without saying that it was finished"
                    )
            except HostError as exc:
                error = str(exc)
                node.fail(error)
            node.data.update(characters=len(draft.text), tool_calls=len(draft.calls))
        answer = ModelResult(connector=ask.connector, content=draft.text, error=error or None)
        if draft.finished is None:
            return answer
        return answer.model_copy(
            update={
                "model": draft.finished.model,
                "finish_reason": draft.finished.finish_reason,
                "tool_calls": tuple(_tool_call(call) for call in draft.calls),
                "usage": draft.finished.usage,
            }
        )


class _Shown:
    """The text of a called assistant as a message of its own in the client's stream."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._id = ""

    async def say(self, text: str) -> None:
        if self._id:
            await self._outbox.change("append", self._id, text, "props.content")
        else:
            message = {"type": "text", "props": {"content": text}}
            self._id = await self._outbox.send(
                message, thread_id=self._outbox.new_id("thread"), streaming=True
            )

    def close(self) -> None:
        self._outbox.close([self._id])


async def _together(
    jobs: Sequence[Callable[[], Awaitable[Answered]]], mode: Together
) -> list[Answered]:
    if mode == "all":
        return await run_all(jobs)
    return await run_first(
        jobs, accept=(lambda answer: answer.error is None) if mode == "any" else (lambda _: True)
    )


def _partial(ask: Ask, content: str, problem: str) -> Answered:
    said: dict[str, Any] = {
        "content": content,
        "finish_reason": "" if problem else STOPPED,
        "error": problem or None,
    }
    if isinstance(ask, AgentAsk):
        return AgentResult(agent_id=ask.agent, **said)
    return ModelResult(connector=ask.connector, **said)


def _tool_call(call: ToolDelta) -> dict[str, Any]:
    """Arguments as an object where the model wrote one, else as it wrote them."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except json.JSONDecodeError:
        arguments = call.arguments
    return {"id": call.id, "name": call.name, "arguments": arguments}


def _first(*said: bool | None) -> bool | None:
    return next((value for value in said if value is not None), None)


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value
