"""AG-UI's events, which CopilotKit and other front ends read: made of the chunks of the AI SDK's
stream. Pure.

Sources, citations, searches and messages of hooks are events of the type `CUSTOM`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from groundhook.core.json_lines import line
from groundhook.core.types.events import Event
from groundhook.host.output.dialects.fold import ClientMessage
from groundhook.host.output.dialects.openai_chat import DONE
from groundhook.host.output.dialects.ui_stream import UIStream, _Shown


@dataclass(frozen=True)
class Run:
    """The state of the fold. `ui` is that of the chunks."""

    ui: _Shown = _Shown()
    message_id: str = ""


@dataclass(frozen=True, kw_only=True)
class AGUI:
    """`ui` makes the chunks; `thread_id` and `run_id` are those of the request."""

    ui: UIStream
    thread_id: str
    run_id: str

    def begin(self) -> Run:
        return Run(ui=self.ui.begin(), message_id=f"message-{self.run_id}")

    def step(self, state: Run, event: Event, /) -> tuple[Run, Sequence[ClientMessage]]:
        ui, chunks = self.ui.step(state.ui, event)
        return self._chunks(replace(state, ui=ui), chunks)

    def end(self, state: Run, /) -> Sequence[ClientMessage]:
        return self._chunks(state, self.ui.end(state.ui))[1]

    def _chunks(
        self, state: Run, chunks: Sequence[ClientMessage]
    ) -> tuple[Run, list[ClientMessage]]:
        made: list[ClientMessage] = []
        for chunk in chunks:
            if chunk.data == DONE:
                continue
            if chunk.data["type"] == "start":
                state = replace(state, message_id=chunk.data.get("messageId", state.message_id))
            made += [ClientMessage(event) for event in self._events(state, chunk.data)]
        return state, made

    def _events(self, state: Run, chunk: Mapping[str, Any]) -> list[dict[str, Any]]:
        kind = chunk["type"]
        group, _, part = kind.rpartition("-")
        run = {"threadId": self.thread_id, "runId": self.run_id}
        match group, part:
            case ("text", _):
                return _text(part, state.message_id, chunk)
            case ("reasoning", _):
                return _thought(part, f"{self.run_id}-{chunk['id']}", chunk)
            case ("tool-input" | "tool-output", _):
                return _tool(state, chunk)
            case ("source" | "data", _):
                name = "source" if group == "source" else part
                # A figure is a document without an address.
                value = {key: value for key, value in chunk.items() if key != "type"}
                return [{"type": "CUSTOM", "name": f"groundhook.{name}", "value": value}]
            case ("", "start"):
                return [{"type": "RUN_STARTED", **run}]
            case ("", "error"):
                code = (state.ui.error or {}).get("code") or "internal"
                return [{"type": "RUN_ERROR", "message": chunk["errorText"], "code": code}]
            case ("", "abort"):
                return [{"type": "RUN_FINISHED", **run, "outcome": {"type": "cancelled"}}]
            case ("", "finish"):
                result = {**chunk["messageMetadata"], "finish_reason": chunk["finishReason"]}
                return [
                    {
                        "type": "RUN_FINISHED",
                        **run,
                        "result": result,
                        "outcome": {"type": "success"},
                    }
                ]
            case _:  # steps, which are one
                return []


def _text(part: str, id: str, chunk: Mapping[str, Any]) -> list[dict[str, Any]]:
    match part:
        case "start":
            return [{"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}]
        case "delta":
            return [{"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": chunk["delta"]}]
        case _:
            return [{"type": "TEXT_MESSAGE_END", "messageId": id}]


def _thought(part: str, id: str, chunk: Mapping[str, Any]) -> list[dict[str, Any]]:
    message = {"messageId": id}
    match part:
        case "start":
            return [
                {"type": "REASONING_START", **message},
                {"type": "REASONING_MESSAGE_START", **message, "role": "reasoning"},
            ]
        case "delta":
            return [{"type": "REASONING_MESSAGE_CONTENT", **message, "delta": chunk["delta"]}]
        case _:
            return [
                {"type": "REASONING_MESSAGE_END", **message},
                {"type": "REASONING_END", **message},
            ]


def result_id(call: str) -> str:
    """Return the id of the message with the result of a call of the assistant's."""
    return f"{call}-result"


def _tool(state: Run, chunk: Mapping[str, Any]) -> list[dict[str, Any]]:
    call = {"toolCallId": chunk["toolCallId"]}
    if chunk["type"] == "tool-input-available":
        named = {**call, "toolCallName": chunk["toolName"], "parentMessageId": state.message_id}
        return [
            {"type": "TOOL_CALL_START", **named},
            {"type": "TOOL_CALL_ARGS", **call, "delta": _as_text(chunk["input"])},
            {"type": "TOOL_CALL_END", **call},
        ]
    result = chunk["errorText"] if "errorText" in chunk else chunk["output"]
    return [
        {
            "type": "TOOL_CALL_RESULT",
            **call,
            "messageId": result_id(chunk["toolCallId"]),
            "content": _as_text(result),
            "role": "tool",
        }
    ]


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else line(value).rstrip("\n")
