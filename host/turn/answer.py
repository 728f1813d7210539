"""The model's part of a turn: its text streams out with every citation checked, its tool calls are
run and fed back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from groundhook.host.citations import reader
from groundhook.host.citations.index import CitationIndex, cited
from groundhook.host.citations.reader import Plain, Reading
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
from groundhook.host.core.types.turn import Completion, Message, ToolOutcome, Usage
from groundhook.host.turn.tools import Toolbox, parse_arguments

LENGTH = "length"  # finish_reason of an answer that reached its bound
CUT = {
    "code": "answer_cut",
    "message": "the answer is cut: the model reached its bound of tokens (finish_reason length)",
    "hint": (
        "options.max_tokens of the assistant or of its connector is the bound; a context that is"
        " full ends an answer as well"
    ),
}
MOST_TOGETHER = 16  # calls of tools that run at the same time


@dataclass(frozen=True)
class Draft:
    """What has arrived of one round of the model."""

    text: str = ""
    calls: tuple[ToolDelta, ...] = ()
    finished: Finished | None = None


def step(draft: Draft, delta: Delta) -> Draft:
    """The draft with one more delta. Pieces of a tool call are joined by their index."""
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
    """The answer of one turn as it grows. When the model fails, what had arrived stays here."""

    channel: Channel
    citation_index: CitationIndex
    content: str = ""
    offered: bool = False  # whether the model was given sources to cite
    after: bool = False  # whether another assistant has spoken before in this turn
    said: str = ""  # what was streamed: the content, set off from what came before
    cited: dict[str, Cited] = field(default_factory=dict)
    tools: list[ToolOutcome] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(
        default_factory=list
    )  # as the model named them: {id, name, arguments}
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
    ) -> None:
        """Ask the model, run the tools it calls, and ask again, at most `rounds` times. Of a result
        of a tool the model is told so much. Raises ModelError."""
        messages = list(call.messages)
        for round in range(rounds + 1):
            last = round == rounds
            if last and round:
                await self._warn(
                    f"after {rounds} rounds of tool calls the model is asked to answer without"
                    " tools"
                )
            draft = await self._round(
                connector, replace(call, messages=tuple(messages), tools=() if last else call.tools)
            )
            if not draft.calls:
                return
            if last:
                names = ", ".join(call.name for call in draft.calls)
                await self._warn(f"the model asked for tools that were not run: {names}")
                return
            messages += await self._run_tools(draft, toolbox, result_kb * 1024)

    async def _warn(self, message: str) -> None:
        await self.channel.send(
            Warned(code="tool_rounds", message=message, hint="options.tool_rounds sets how many")
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
                            await self._say(delta.text, first=not draft.text)
                        draft = step(draft, delta)
            finally:
                self._close_reading()
            if draft.finished is None:
                raise ModelTruncated("the model's answer ended without saying that it was finished")
            self._count(draft.finished)
            if self.finish_reason == LENGTH:
                await self.channel.send(Warned(**CUT))
            node.data.update(
                model=self.model,
                finish_reason=self.finish_reason,
                characters=len(draft.text),
                tool_calls=len(draft.calls),
            )
        return draft

    async def _say(self, text: str, *, first: bool) -> None:
        if first and self.content:  # what two rounds say are two paragraphs
            self._show(Plain("\n\n"))
        self._reading, pieces = reader.read(self._reading, text, self.citation_index.grammar)
        for piece in pieces:
            self._show(piece)
        await self.channel.wait_for_reader()

    def _close_reading(self) -> None:
        """Let out what was held back: also when the model failed, since it is part of what had
        arrived."""
        _, pieces = reader.read(self._reading, "", self.citation_index.grammar, last=True)
        self._reading = Reading()
        for piece in pieces:
            self._show(piece)

    def _show(self, piece: reader.Piece) -> None:
        if self.first_text_ms is None:
            self.first_text_ms = self.channel.elapsed_ms()
            if self.after:
                self._put("\n\n")
        if not isinstance(piece, Plain):
            item = self.citation_index.find(piece.id)
            verdict: Verdict = "ok" if item else "unknown"
            self.channel.note(CitationSeen(marker=piece.text, verdict=verdict, item=item))
            self.cited.setdefault(piece.text, cited(piece.text, verdict, item))
        self.content += piece.text
        self._put(piece.text)

    def _put(self, text: str) -> None:
        self.said += text
        self.channel.note(Text(delta=text))

    def _count(self, finished: Finished) -> None:
        self.finish_reason, self.model = finished.finish_reason, finished.model or self.model
        self.usage = Usage(
            prompt_tokens=self.usage.prompt_tokens + finished.usage.prompt_tokens,
            completion_tokens=self.usage.completion_tokens + finished.usage.completion_tokens,
            total_tokens=self.usage.total_tokens + finished.usage.total_tokens,
        )

    async def _run_tools(self, draft: Draft, toolbox: Toolbox, most: int) -> Sequence[Message]:
        """Run the calls of a round at the same time → the messages that tell the model what came of
        them, in their order."""
        calls = [
            replace(call, id=call.id or f"call_{len(self.tools) + call.index}")
            for call in draft.calls
        ]
        outcomes: dict[int, tuple[ToolOutcome, str]] = {}
        places = anyio.CapacityLimiter(MOST_TOGETHER)

        async def run(index: int, call: ToolDelta) -> None:
            async with places:
                outcomes[index] = await self._run_tool(call, toolbox, most)

        async with anyio.create_task_group() as tasks:
            for index, call in enumerate(calls):
                tasks.start_soon(run, index, call)
        asked = [
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
        told = [
            Message(role="tool", tool_call_id=outcome.toolcall_id, content=text)
            for outcome, text in (outcomes[index] for index in range(len(calls)))
        ]
        return [Message(role="assistant", content=draft.text, tool_calls=asked), *told]

    async def _run_tool(
        self, call: ToolDelta, toolbox: Toolbox, most: int
    ) -> tuple[ToolOutcome, str]:
        """Run one call → its outcome, and what the model is told of it."""
        about = {"call_id": call.id, "name": call.name, "server": toolbox.server(call.name)}
        with span("tool", call.name, server=about["server"]) as node:
            await self.channel.send(ToolStart(**about, arguments=_shown(call.arguments)))
            outcome, duration = await toolbox.call(call.id, call.name, call.arguments)
            if outcome.error is not None:
                node.fail(outcome.error)
            text, size = _told(outcome, most)
            if size > most:
                node.data["cut"] = (
                    f"the model is told {_kb(most)} of {_kb(size)} KB (options.tool_result_kb)"
                )
        await self.channel.send(
            ToolResult(**about, result=outcome.result, error=outcome.error, duration_ms=duration)
        )
        return outcome, text


def _told(outcome: ToolOutcome, most: int) -> tuple[str, int]:
    """What the model is told of a call, and how many bytes there were: text as it is, everything
    else as JSON; what is longer than `most` bytes is cut, which is said."""
    value = outcome.result if outcome.error is None else {"error": outcome.error}
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):  # of what a tool of the host may return
        text = '{"error": "the result of the tool is nested too deeply, or holds itself"}'
    size = len(text.encode("utf-8", "replace"))
    if size <= most:
        return text, size
    kept = text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")
    return (
        (
            f"{kept}\n[cut here: the result has {_kb(size)} KB, and only the first {_kb(most)} KB"
            " are above]"
        ),
        size,
    )


def _kb(size: int) -> int:
    return -(-size // 1024)


def _shown(arguments: str) -> dict[str, object]:
    """Arguments as an event shows them: JSON objects as such, anything else under its own name."""
    try:
        return parse_arguments(arguments)
    except ValueError:
        return {"arguments": arguments}
