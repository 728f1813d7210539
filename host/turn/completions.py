"""Whole answers of language models: for tools, and for steps that a model does (`connector:<id>`):
`core.tool_ports.Models`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from groundhook.core.errors import ModelTruncated
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.ports import Connector, ModelCall
from groundhook.core.readers.json_in_text import extract_json_aside
from groundhook.core.tool_ports import ModelReply
from groundhook.core.trace import span
from groundhook.core.types.turn import Message
from groundhook.core.types.uses import JsonReply
from groundhook.host.config.packages import App
from groundhook.host.llm.deltas import answering
from groundhook.host.turn.draft import Draft, step


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
        is_step: bool = False,
    ) -> ModelReply:
        model = self.connectors(self.app.connector_id(self.assistant_id, connector))
        question = next((each.text for each in reversed(messages) if each.role == "user"), "")
        call = ModelCall(
            messages=messages,
            question=question,
            temperature=temperature,
            max_tokens=max_tokens,
            reply=None if answer == "text" else answer,
            is_step=is_step,
        )
        draft = Draft()
        with span("model", connector, messages=len(messages)) as node:
            node.note(messages=messages)
            # Connectors of plug-ins may have task groups, whose errors come in groups.
            with unwrap_exception_groups():
                async with answering(model, call) as deltas:
                    async for delta in deltas:
                        draft = step(draft, delta)
            node.note(answer=draft)
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
