"""The model's part of a turn: stream its text with every citation checked, run its tool calls and
send it their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from groundhook.core.channel import Channel
from groundhook.core.errors import ModelTruncated
from groundhook.core.pieces import TextPieces, grown, last_of
from groundhook.core.ports import (
    Connector,
    Finished,
    ModelCall,
    Notice,
    ReasoningDelta,
    TextDelta,
    ToolDelta,
)
from groundhook.core.trace import span
from groundhook.core.types.events import (
    CitationSeen,
    Cited,
    Reasoning,
    Text,
    ToolResult,
    ToolStart,
    Warned,
)
from groundhook.core.types.search import Item
from groundhook.core.types.tools import ToolOutcome
from groundhook.core.types.turn import Completion, Message, Usage
from groundhook.host.llm.deltas import answering
from groundhook.host.search.citations import claims, reader
from groundhook.host.search.citations.claims import ClaimState
from groundhook.host.search.citations.facts import CitedSource
from groundhook.host.search.citations.index import CitationIndex, cited
from groundhook.host.search.citations.reader import Plain, Reading
from groundhook.host.search.citations.verdict import LONGEST_BEFORE, JudgedMarker, judge
from groundhook.host.tools.text import for_model
from groundhook.host.turn.approvals import (
    CANNOT_ASK,
    decided_draft,
    pending,
    question,
    refusals,
    refused,
)
from groundhook.host.turn.draft import Draft, arguments_for_event, step
from groundhook.host.turn.endings import ending
from groundhook.host.turn.prompt.message_parts import result_part
from groundhook.host.turn.shown_text import ShownText
from groundhook.host.turn.tooling import Tooling

if TYPE_CHECKING:
    # A turn without a kept chat does not need it at run time.
    from groundhook.core.hook_engine import HookAsked


MOST_MARKERS = 300  # different ones of an answer
MOST_AT_ONCE = 16  # tool calls that run at the same time


@dataclass
class GrowingAnswer:
    """The answer of one run as it grows. If the model fails, the part that arrived before is kept.

    `content` is the model's text. `streamed` is the text that was sent: if it follows the text of
    another assistant, it begins with an empty line.
    """

    channel: Channel
    citation_index: CitationIndex
    sources_offered: int = 0  # sources that the model was given to cite
    follows_text: bool = False  # whether another assistant has streamed text in this turn
    cited: dict[str, Cited] = field(default_factory=dict)
    cited_keys: set[str] = field(default_factory=set)  # of the sources behind them
    tools: list[ToolOutcome] = field(default_factory=list)  # without `text`
    calls: list[dict[str, Any]] = field(default_factory=list)  # {id, name, arguments}
    client_calls: list[dict[str, Any]] = field(default_factory=list)  # of the client's own tools
    usage: Usage = Usage()
    finish_reason: str = ""
    model: str = ""
    is_silent: bool = False  # whether the model's answer has no text
    empty: Warned | None = None  # the warning for an answer without any text
    first_text_ms: float | None = None
    question_words: frozenset[str] = frozenset()
    checked: ClaimState = ClaimState()
    items: dict[str, Item] = field(default_factory=dict)  # of the cited markers
    shown: ShownText = field(init=False)
    _content: TextPieces = ()
    _streamed: TextPieces = ()
    _parts: list[dict[str, Any]] = field(default_factory=list)  # those before `_last_text`
    _last_text: TextPieces = ()
    _reading: Reading = Reading()
    _sources: dict[str, CitedSource] = field(default_factory=dict)  # of the cited markers
    _noticed: set[Notice] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.shown = ShownText(self.channel)

    @property
    def content(self) -> str:
        return "".join(self._content)

    @property
    def streamed(self) -> str:
        return "".join(self._streamed)

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The text and the results of tools, in the order in which they were streamed."""
        text = "".join(self._last_text)
        return [*self._parts, *([{"type": "text", "text": text}] if text else [])]

    @property
    def has_begun(self) -> bool:
        """Whether the model has answered: with text, or by calling a tool."""
        return bool(self._content or self.calls or self.tools)

    async def stream(self, connector: Connector, call: ModelCall, tools: Tooling) -> None:
        """Stream the answer of a model: request, run the tools that it calls, and request again, at
        most `tools.rounds` times; without `tools.loop` never again. Raises ModelError."""
        rounds = tools.rounds
        messages = list(call.messages)
        if tools.decided:
            messages += await self._run_decided(tools)
            call = self._with_found(call, 0)
        # One more than the rounds: the last request offers no tools, so that the model answers.
        for round in range(rounds + 1):
            last = round == rounds
            if last and round:
                await self._warn(
                    f"after {rounds} rounds of tool calls the model has to answer without tools"
                )
            draft = await self._run_round(
                connector,
                replace(
                    call,
                    messages=tuple(messages),
                    tools=(*(() if last else call.tools), *tools.client),
                ),
            )
            await self._report_ending(draft)
            if not draft.begun:
                return
            ran = len(self.tools)
            more = await self._answer_calls(draft, tools, last=last)
            if more is None or not tools.loop:
                return
            messages += more
            call = self._with_found(call, ran)

    def _with_found(self, call: ModelCall, ran: int) -> ModelCall:
        """Return the request with what tools have found since the first `ran` calls."""
        found = [item for outcome in self.tools[ran:] for item in outcome.items]
        return replace(call, references=(*call.references, *found))

    async def _answer_calls(
        self, draft: Draft, tools: Tooling, *, last: bool
    ) -> Sequence[Message] | None:
        """Run the calls of a round. Returns the messages that carry their results to the model;
        None if it does not go on: the client, the user, or nobody answers the calls."""
        if any(called.name in tools.client_names for called in draft.calls):
            await self._hand_over(draft, tools.client_names)
            return None
        if last:
            names = ", ".join(call.name for call in draft.calls)
            await self._warn(f"the model called tools that were not run: {names}")
            return None
        draft, failing, waits = await self._hold_back(draft, tools)
        ran = await self._run_tools(draft, tools, failing) if draft.begun else ()
        if waits:
            self.finish_reason = "approval_required"
            return None
        return ran

    async def _hold_back(
        self, draft: Draft, tools: Tooling
    ) -> tuple[Draft, Mapping[str, str], bool]:
        """Take the calls that the user has to approve out of a round, and send an event for each;
        where nobody can be asked, they fail instead. Returns the round, the reasons of calls that
        fail by their ids, and whether a call waits."""
        calls: list[ToolDelta] = []
        failing: dict[str, str] = {}
        for called in draft.calls:
            call = replace(called, id=called.id or f"call_{len(self.tools) + called.index}")
            arguments = await tools.toolbox.waits_for_approval(call, tools.confirm, tools.scope_of)
            if arguments is not None and tools.can_ask:
                # Some endpoints use the same ids in each turn; this one is read in another turn.
                own = f"{self.channel.turn_id}_{len(self.calls)}"
                self.calls.append({"id": own, "name": call.name, "arguments": arguments})
                offer = tools.toolbox.find(call.name)
                await self.channel.send(
                    pending(own, offer, arguments, tools.assistant_id, tools.journal)
                )
                continue
            if arguments is not None:
                failing[call.id] = CANNOT_ASK
            calls.append(call)
        return draft.with_calls(calls), failing, len(calls) < len(draft.begun)

    async def _run_decided(self, tools: Tooling) -> Sequence[Message]:
        """Run the calls that the user has approved, with the arguments that were shown. Returns the
        messages that carry them, and the refusals of the others, to the model."""
        return await self._run_tools(decided_draft(tools.decided), tools, refusals(tools.decided))

    async def say(self, text: str) -> None:
        """Stream an answer of the assistant's hook; its citations are checked as a model's."""
        self.sources_offered = int(self.citation_index.has_sources)
        with span("answer", "Create", characters=len(text)):
            await self._stream_text(text, first=True)
            self._stream_held_text()
        self.finish_reason = "stop"

    async def ask(self, asked: HookAsked, assistant_id: str) -> None:
        """Stream a question of a hook, whose answer the user gives with the next message."""
        with span("answer", "question", characters=len(asked.question)):
            await self._stream_text(asked.question, first=True)
            self._stream_held_text()
        await self.channel.send(question(self.channel.turn_id, asked, assistant_id))
        self.finish_reason = "approval_required"

    async def _hand_over(self, draft: Draft, names: frozenset[str]) -> None:
        """Keep the calls of the client's tools, which it runs. Calls of the assistant's own in the
        same round are not run: the client could not send their results back."""
        own = [call.name for call in draft.calls if call.name not in names]
        if own:
            await self._warn(f"beside the client's tools these were not run: {', '.join(own)}")
        self.finish_reason = "tool_calls"
        self.client_calls = [
            {
                "id": call.id or f"call_{self.channel.turn_id}_{call.index}",
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments or "{}"},
            }
            for call in draft.calls
            if call.name in names
        ]
        self.calls += [
            {
                "id": call["id"],
                "name": call["function"]["name"],
                "arguments": arguments_for_event(call["function"]["arguments"]),
            }
            for call in self.client_calls
        ]

    async def _report_ending(self, draft: Draft) -> None:
        """Warn when the answer has no text, is cut or was filtered."""
        called, reason = bool(draft.begun), self.finish_reason
        if found := ending(draft.text, reason, thought=draft.thought, called=called):
            self.is_silent = found.is_silent
            warning = Warned(code=found.code, message=found.message, hint=found.hint)
            if found.code == "answer_empty":  # none where the Next hook answers in its place
                self.empty = warning
            else:
                await self.channel.send(warning)

    def say_instead(self, sentence: str) -> None:
        """Stream a sentence in the place of a text that the model did not send, with a warning."""
        if self.empty:
            self.channel.send_nowait(self.empty)
        self._send_text(f"\n\n{sentence}" if self._streamed else sentence)

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

    async def _run_round(self, connector: Connector, call: ModelCall) -> Draft:
        draft = Draft()
        with span("model", "model", messages=len(call.messages)) as node:
            node.note(messages=call.messages)
            try:
                async with answering(connector, call) as deltas:
                    async for delta in deltas:
                        if isinstance(delta, Notice) and delta not in self._noticed:
                            self._noticed.add(delta)  # each round sends the messages again
                            await self.channel.send(
                                Warned(code=delta.code, message=delta.message, hint=delta.hint)
                            )
                        if isinstance(delta, ReasoningDelta) and delta.text:
                            self.channel.send_nowait(Reasoning(delta=delta.text))
                            await self.channel.wait_for_reader()
                        if isinstance(delta, TextDelta) and delta.text:
                            await self._stream_text(delta.text, first=not draft.pieces)
                        draft = step(draft, delta)
            finally:
                self._stream_held_text()
                node.note(answer=draft)
            if draft.finished is None:
                raise ModelTruncated("the model's answer ended before it was complete")
            self._add_usage(draft.finished)
            node.data.update(
                model=self.model,
                finish_reason=self.finish_reason,
                characters=len(draft.text),
                tool_calls=len(draft.begun),
            )
        return draft

    async def _stream_text(self, text: str, *, first: bool) -> None:
        if first and self._content:  # the texts of two rounds are two paragraphs
            self._stream_piece(Plain("\n\n"))
        for part in reader.parts(text):
            self._reading, pieces = reader.read(self._reading, part, self.citation_index.grammar)
            for piece in pieces:
                read = len(self._sources)
                self._stream_piece(piece)
                if len(self._sources) > read:
                    await anyio.lowlevel.checkpoint()  # to read a long source takes 0.1 s
            await self.channel.wait_for_reader()
            # Lets other turns run: a service may send an answer of a megabyte in one piece.
            await anyio.lowlevel.checkpoint()

    def _stream_held_text(self) -> None:
        """Stream the text that was held back as the possible beginning of a marker. It has arrived,
        so it is streamed also when the model failed."""
        _, pieces = reader.read(self._reading, "", self.citation_index.grammar, last=True)
        self._reading = Reading()
        for piece in pieces:
            self._stream_piece(piece)
        self.checked = claims.ended(self.checked, self.question_words)
        for marker, missing in self.checked.missing.items():
            if marker in self.cited:
                self.cited[marker] = self.cited[marker].model_copy(update={"missing": missing})

    def _stream_piece(self, piece: reader.Piece) -> None:
        """Stream a piece of the answer; a citation marker as an event of its own before it."""
        if self.first_text_ms is None:
            self.first_text_ms = self.channel.elapsed_ms()
            if self.follows_text:
                self._send_text("\n\n")
        judged: Sequence[JudgedMarker] = ()
        if not isinstance(piece, Plain):
            before = last_of(self._content, LONGEST_BEFORE)
            judged = judge(piece, before, self.citation_index)
        new = {each.marker for each in judged} - self.cited.keys()
        if new and len(self.cited) + len(new) > MOST_MARKERS:
            judged = ()  # text: what follows the citations looks at each of them again and again
        if not judged:
            self.checked = claims.with_text(self.checked, piece.text, self.question_words)
            self._add_text(piece.text)
        for each in judged:
            self._stream_citation(each)

    def _stream_citation(self, judged: JudgedMarker) -> None:
        marker, verdict, item = judged.marker, judged.verdict, judged.item
        self.shown.send(CitationSeen(marker=marker, verdict=verdict, item=item))
        self.cited.setdefault(marker, cited(marker, verdict, item))
        if item is not None:
            self.cited_keys.add(item.key)
            if marker not in self._sources:
                self._sources[marker] = CitedSource.of_item(item)
                self.items[marker] = item
        self.checked = claims.with_marker(self.checked, marker, self._sources.get(marker))
        self._add_text(marker)

    def _add_text(self, text: str) -> None:
        self._content = grown(self._content, text)
        self._send_text(text)

    def _send_text(self, text: str) -> None:
        self._streamed = grown(self._streamed, text)
        self._last_text = grown(self._last_text, text)
        self.shown.send(Text(delta=text))

    def _add_usage(self, finished: Finished) -> None:
        self.finish_reason, self.model = finished.finish_reason, finished.model or self.model
        self.usage = Usage(
            prompt_tokens=self.usage.prompt_tokens + finished.usage.prompt_tokens,
            completion_tokens=self.usage.completion_tokens + finished.usage.completion_tokens,
            total_tokens=self.usage.total_tokens + finished.usage.total_tokens,
        )

    async def _run_tools(
        self, draft: Draft, tools: Tooling, failing: Mapping[str, str]
    ) -> Sequence[Message]:
        """Run the calls of a round at the same time, except those with an id in `failing`, which
        fail for that reason. Returns the messages that carry the calls and their results to the
        model, in the order of the calls."""
        calls = [
            # Some endpoints send calls without an id, and still require one with the result.
            replace(call, id=call.id or f"call_{len(self.tools) + call.index}")
            for call in draft.calls
        ]
        outcomes: dict[int, tuple[ToolOutcome, str]] = {}
        places = anyio.CapacityLimiter(MOST_AT_ONCE)

        async def run(index: int, call: ToolDelta) -> None:
            async with places:
                outcomes[index] = await self._run_tool(call, tools, failing.get(call.id, ""))

        async with anyio.create_task_group() as group:
            for index, call in enumerate(calls):
                group.start_soon(run, index, call)
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
        results = [result_part(call.name, each) for call, each in zip(calls, done, strict=True)]
        self._parts, self._last_text = [*self.parts, *results], ()
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
        self, call: ToolDelta, tools: Tooling, refusal: str
    ) -> tuple[ToolOutcome, str]:
        """Run one call, unless it is refused. Returns its outcome, whose items have their markers,
        and the text of it that the model gets."""
        offer = tools.toolbox.find(call.name)
        about = {
            "call_id": call.id,
            "name": call.name,
            "server": offer.server if offer else "",
            "toolkit": offer.toolkit_name if offer else "",
        }
        with span("tool", call.name, server=about["server"], toolkit=about["toolkit"]) as node:
            await self.channel.send(
                ToolStart(**about, arguments=arguments_for_event(call.arguments))
            )
            if refusal:
                outcome = refused(call, about, refusal)
            else:
                outcome = await tools.toolbox.call(
                    call.id, call.name, call.arguments, tools.scope_of
                )
            node.note(tool=call.name, call_id=call.id)
            node.note(input=outcome.arguments, output=outcome.result)
            if outcome.error is not None:
                node.fail(outcome.error)
            items = tuple(self.citation_index.cite(item) for item in outcome.items)
            outcome = outcome.model_copy(update={"items": items})
            result = for_model(
                outcome,
                self.citation_index.grammar,
                limit=tools.result_bytes,
                fence=tools.fence if offer and offer.cites else "",
                cite=tools.ask_to_cite,
            )
            self.sources_offered += len(items)
            if result.cut:
                node.data["cut"] = result.cut
        await self.channel.send(
            ToolResult(
                **about,
                result=outcome.result,
                error=outcome.error,
                items=items,
                duration_ms=outcome.duration_ms,
            )
        )
        # Kept outcomes have `result`; `text` would hold each long result a second time.
        return outcome.model_copy(update={"text": ""}), result.text
