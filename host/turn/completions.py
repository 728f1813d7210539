"""Whole answers of language models: for tools (`core.tool_ports.Models`), and for steps that a
model does (`connector:<id>`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import anyio
from pydantic import ValidationError

from groundhook.core.errors import DelegateError, ModelTruncated
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.ports import Connector, ModelCall
from groundhook.core.readers.json_in_text import extract_json_aside
from groundhook.core.tool_ports import ModelReply
from groundhook.core.trace import span
from groundhook.core.types.delegation import Answer, Request
from groundhook.core.types.turn import Message
from groundhook.core.types.uses import JsonReply, Use
from groundhook.host.config.packages import App
from groundhook.host.llm.deltas import answering
from groundhook.host.turn.answer import Draft, step
from groundhook.host.turn.endings import LENGTH


@dataclass(frozen=True)
class AppModels:
    """The models of an app, with the names of one assistant ("": of the app)."""

    app: App
    assistant_id: str
    connectors: Callable[[str], Connector]

    async def complete(
        self,
        connector: str,
        messages: Sequence[Message],
        /,
        *,
        answer: Literal["text", "json"] | JsonReply = "text",
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> ModelReply:
        model = self.connectors(self.app.connector_id(self.assistant_id, connector))
        question = next((each.text for each in reversed(messages) if each.role == "user"), "")
        call = ModelCall(
            messages=messages,
            question=question,
            temperature=temperature,
            max_tokens=max_tokens,
            reply=None if answer == "text" else answer,
        )
        draft = Draft()
        with span("model", connector, messages=len(messages)) as node:
            # Connectors of plug-ins may have task groups, whose errors come in groups.
            with unwrap_exception_groups():
                async with answering(model, call) as deltas:
                    async for delta in deltas:
                        draft = step(draft, delta)
            if draft.finished is None:
                raise ModelTruncated("the model's answer ended before it was complete")
            finished = draft.finished
            node.data.update(model=finished.model, characters=len(draft.text))
            node.data.update(finished.usage.model_dump())
        return ModelReply(
            text=draft.text,
            data=None if answer == "text" else await extract_json_aside(draft.text),
            model=finished.model,
            finish_reason=finished.finish_reason,
            usage=finished.usage,
        )


async def step_by_model(
    models: AppModels,
    connector: str,
    use: Use[Request, Answer],
    ask: Request,
    *,
    task: str,
    timeout_ms: int,
    max_tokens: int,
    hint: str = "",
) -> Answer:
    """Return the answer of one short call of a language model to a step. `task` is its prompt,
    without the format of the answer; `hint` names the setting of the deadline. Raises
    DelegateError, and what the model raises."""
    messages = (
        Message(role="system", content=f"{task} {use.reply}"),
        Message(role="user", content=json.dumps(ask.model_dump(), ensure_ascii=False)),
    )
    problem = f"no answer within {timeout_ms} ms"
    with unwrap_exception_groups(), anyio.move_on_after(timeout_ms / 1000):
        reply = await models.complete(
            connector, messages, answer=use.json_reply, temperature=0, max_tokens=max_tokens
        )
        try:
            return use.answers.model_validate(reply.data)
        except ValidationError:
            problem = "its answer does not have the step's format"
            if reply.finish_reason == LENGTH:
                problem, hint = f"its answer is cut at its limit of {max_tokens} tokens", ""
    raise DelegateError(f"{use.name} by the model {connector!r} failed: {problem}", hint=hint)
