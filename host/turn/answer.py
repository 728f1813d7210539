"""The model's part of a turn: stream its text with every citation checked, run its tool calls and
send it their results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from groundhook.host.citations import reader
from groundhook.host.citations.index import CitationIndex, cited
from groundhook.host.citations.reader import Marker, Plain, Reading
from groundhook.host.core.channel import Channel
from groundhook.host.core.errors import ModelTruncated
from groundhook.host.core.ports import Connector, Delta, Finished, ModelCall, TextDelta, ToolDelta
from groundhook.host.core.trace import span
from groundhook.host.core.types.events import (
    CitationSeen,
    Cited,
    Text,
    ToolResult,
    ToolStart,
    Verdict,
    Warned,
)
from groundhook.host.core.types.search import Item
from groundhook.host.core.types.tools import ToolOutcome
from groundhook.host.core.types.turn import Completion, Message, Usage
from groundhook.host.turn.tools import Toolbox, parse_arguments

LENGTH = "length"  # finish_reason of an answer that reached the token limit
CUT_WARNING = {
    "code": "answer_cut",
    "message": "the answer is cut: the model reached its token limit (finish_reason length)",
    "hint": (
        "options.max_tokens of the assistant or of its connector sets the limit; a full context"
        " ends an answer as well"
    ),
}
MOST_AT_ONCE = 16  # tool calls that run at the same time


@dataclass(frozen=True)
class Draft:
    """What has arrived so far of one request to the model."""

    text: str = ""
    calls: tuple[ToolDelta, ...] = ()
    finished: Finished | None = None


def step(draft: Draft, delta: Delta) -> Draft:
    """Return the draft with one more delta. The pieces of a tool call are joined by its index."""
    match delta:
        case TextDelta(text):
            return replace(draft, text=draft.text + text)
        case ToolDelta():
            calls = {call.index: call for call in draft.calls}
            old = calls.get(delta.index, ToolDelta(delta.index))
            calls[delta.index] = ToolDelta(
                delta.index,
                old.id or delta.id,
                old.name or delta.name,
                old.arguments + delta.arguments,
            )
            return replace(draft, calls=tuple(calls[index] for index in sorted(calls)))
        case Finished():
            return replace(draft, finished=delta)


@dataclass
class Answer:
    """The answer of one run as it grows. When the model fails, what arrived before stays here.

    `content` is the model's text, `streamed` the same as it was sent: after the text of another
    assistant it begins with an empty line.
    """

    channel: Channel
    citation_index: CitationIndex
    content: str = ""
    sources_offered: bool = False  # whether the prompt had sources to cite
    follows_text: bool = False  # whether another assistant has streamed text in this turn
    streamed: str = ""
    cited: dict[str, Cited] = field(default_factory=dict)
    tools: list[ToolOutcome] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)  # {id, name, arguments}
    usage: Usage = Usage()
    finish_reason: str = ""
    model: str = ""
    first_text_ms: float | None = None
    _reading: Reading = Reading()

    async def stream(
        self,
        connector: Connector,
        call: ModelCall,
        toolbox: Toolbox,
        *,
        rounds: int,
        result_kb: int,
        loop: bool = True,
    ) -> None:
        """Stream the answer of a model: request, run the tools that it calls, and request again, at
        most `rounds` times; without `loop` never again. The model gets at most `result_kb` KB of
        each tool result. Raises ModelError."""
        messages = list(call.messages)
        for round in range(rounds + 1):
            last = round == rounds
            if last and round:
                await self._warn(
                    f"after {rounds} rounds of tool calls the model has to answer without tools"
                )
            draft = await self._round(
                connector, replace(call, messages=tuple(messages), tools=() if last else call.tools)
            )
            if not draft.calls:
                return
            if last:
                names = ", ".join(call.name for call in draft.calls)
                await self._warn(f"the model called tools that were not run: {names}")
                return
            messages += await self._run_tools(draft, toolbox, result_kb * 1024)
            if not loop:
                return

    async def _warn(self, message: str) -> None:
        await self.channel.send(
            Warned(
                code="tool_rounds",
                message=message,
                hint="options.tool_rounds sets the number of rounds",
            )
        )

    def completion(self) -> Completion:
        return Completion(
            content=self.content,
            model=self.model,
            finish_reason=self.finish_reason,
            usage=self.usage,
            tool_calls=tuple(self.calls),
        )

    async def _round(self, connector: Connector, call: ModelCall) -> Draft:
        draft = Draft()
        with span("model", "model", messages=len(call.messages)) as node:
            try:
                async with connector.stream(call) as deltas:
                    async for delta in deltas:
                        if isinstance(delta, TextDelta) and delta.text:
                            await self._stream_text(delta.text, first=not draft.text)
                        draft = step(draft, delta)
            finally:
                self._close_reading()
            if draft.finished is None:
                raise ModelTruncated("the model's answer ended before it was complete")
            self._count(draft.finished)
            if self.finish_reason == LENGTH:
                await self.channel.send(Warned(**CUT_WARNING))
            node.data.update(
                model=self.model,
                finish_reason=self.finish_reason,
                characters=len(draft.text),
                tool_calls=len(draft.calls),
            )
        return draft

    async def _stream_text(self, text: str, *, first: bool) -> None:
        if first and self.content:  # the texts of two rounds are two paragraphs
            self._add(Plain("\n\n"))
        self._reading, pieces = reader.read(self._reading, text, self.citation_index.grammar)
        for piece in pieces:
            self._add(piece)
        await self.channel.wait_for_reader()

    def _close_reading(self) -> None:
        """Stream the text that was held back as the possible beginning of a marker: also when the
        model failed, since it has arrived."""
        _, pieces = reader.read(self._reading, "", self.citation_index.grammar, last=True)
        self._reading = Reading()
        for piece in pieces:
            self._add(piece)

    def _add(self, piece: reader.Piece) -> None:
        """Stream a piece of the answer; a citation marker as an event of its own before it."""
        if self.first_text_ms is None:
            self.first_text_ms = self.channel.elapsed_ms()
            if self.follows_text:
                self._emit("\n\n")
        if not isinstance(piece, Plain):
            item, verdict = self._source_of(piece)
            self.channel.send_nowait(CitationSeen(marker=piece.text, verdict=verdict, item=item))
            self.cited.setdefault(piece.text, cited(piece.text, verdict, item))
        self.content += piece.text
        self._emit(piece.text)

    def _source_of(self, marker: Marker) -> tuple[Item | None, Verdict]:
        if found := self.citation_index.find(marker.id):
            return found, "ok"
        earlier = self.citation_index.find_earlier(marker.text)
        return earlier, "earlier" if earlier else "unknown"

    def _emit(self, text: str) -> None:
        self.streamed += text
        self.channel.send_nowait(Text(delta=text))

    def _count(self, finished: Finished) -> None:
        self.finish_reason, self.model = finished.finish_reason, finished.model or self.model
        self.usage = Usage(
            prompt_tokens=self.usage.prompt_tokens + finished.usage.prompt_tokens,
            completion_tokens=self.usage.completion_tokens + finished.usage.completion_tokens,
            total_tokens=self.usage.total_tokens + finished.usage.total_tokens,
        )

    async def _run_tools(self, draft: Draft, toolbox: Toolbox, limit: int) -> Sequence[Message]:
        """Run the calls of a round at the same time. Returns the messages that carry the calls and
        their results to the model, in the order of the calls."""
        calls = [
            replace(call, id=call.id or f"call_{len(self.tools) + call.index}")
            for call in draft.calls
        ]
        outcomes: dict[int, tuple[ToolOutcome, str]] = {}
        places = anyio.CapacityLimiter(MOST_AT_ONCE)

        async def run(index: int, call: ToolDelta) -> None:
            async with places:
                outcomes[index] = await self._run_tool(call, toolbox, limit)

        async with anyio.create_task_group() as tasks:
            for index, call in enumerate(calls):
                tasks.start_soon(run, index, call)
        requested = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in calls
        ]
        done = [outcomes[index][0] for index in range(len(calls))]
        self.tools += done
        self.calls += [
            {"id": call.id, "name": call.name, "arguments": outcome.arguments}
            for call, outcome in zip(calls, done, strict=True)
        ]
        replies = [
            Message(role="tool", tool_call_id=outcome.toolcall_id, content=text)
            for outcome, text in (outcomes[index] for index in range(len(calls)))
        ]
        return [Message(role="assistant", content=draft.text, tool_calls=requested), *replies]

    async def _run_tool(
        self, call: ToolDelta, toolbox: Toolbox, limit: int
    ) -> tuple[ToolOutcome, str]:
        """Run one call. Returns its outcome, and the text of it that the model gets."""
        about = {"call_id": call.id, "name": call.name, "server": toolbox.server(call.name)}
        with span("tool", call.name, server=about["server"]) as node:
            await self.channel.send(ToolStart(**about, arguments=_arguments_of(call.arguments)))
            outcome, duration = await toolbox.call(call.id, call.name, call.arguments)
            if outcome.error is not None:
                node.fail(outcome.error)
            text, size = _text_for_model(outcome, limit)
            if size > limit:
                node.data["cut"] = (
                    f"the model gets {_kb(limit)} of {_kb(size)} KB (options.tool_result_kb)"
                )
        await self.channel.send(
            ToolResult(**about, result=outcome.result, error=outcome.error, duration_ms=duration)
        )
        return outcome, text


def _text_for_model(outcome: ToolOutcome, limit: int) -> tuple[str, int]:
    """Return the result of a call as the model gets it, and its whole size in bytes: text as it is,
    anything else as JSON. After `limit` bytes it is cut, with a note for the model."""
    value = outcome.result if outcome.error is None else {"error": outcome.error}
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):  # only tools of the host can return such a value
        text = '{"error": "the result of the tool is nested too deeply, or contains itself"}'
    size = len(text.encode("utf-8", "replace"))
    if size <= limit:
        return text, size
    kept = text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")
    return (
        (
            f"{kept}\n[cut here: the result has {_kb(size)} KB, and only the first {_kb(limit)} KB"
            " are above]"
        ),
        size,
    )


def _kb(size: int) -> int:
    return -(-size // 1024)


def _arguments_of(arguments: str) -> dict[str, object]:
    """Return the arguments for an event: a JSON object as it is, anything else as the text of one
    key."""
    try:
        return parse_arguments(arguments)
    except ValueError:
        return {"arguments": arguments}
