"""The UI message stream of the AI SDK, which `useChat` reads. Pure.

Text, thoughts and errors are made of the chunks of a chat completion, so all text is one part, in
which the offsets of citations count. The SDK refuses a `null`, an unknown type, and a delta whose
part is not open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from groundhook.core import hook_messages
from groundhook.core.json_text import NestedTooDeeply, NotJson, read_json
from groundhook.core.types.events import (
    STOPPED,
    ApprovalRequired,
    CitationSeen,
    Event,
    HookMessage,
    SearchComplete,
    SearchFound,
    SearchStart,
    StreamEnd,
    StreamStart,
    ToolProgress,
    ToolResult,
    ToolStart,
    Warned,
)
from groundhook.core.types.search import Item
from groundhook.host.output.dialects.fold import ClientMessage
from groundhook.host.output.dialects.numbering import unique
from groundhook.host.output.dialects.openai_chat import (
    DONE,
    Noted,
    OpenAIChat,
    Sent,
    is_text,
)
from groundhook.host.output.dialects.places import address

TEXT = "text"  # the id of the one part of text
NO_RESULT = "the turn ended before its result"
# Reasons of the SDK by those of chat completions; others are `other`.
REASONS = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content-filter",
    "tool_calls": "tool-calls",
}
Pieces = list[ClientMessage]


@dataclass(frozen=True)
class _Shown:
    """The state of the fold. `chat` is that of the chunks. `calls` are the shown ids of tool calls
    without a result by their own, `called` all shown ids; `thoughts` is the number of thoughts."""

    chat: Sent = Sent()
    writing: bool = False
    thinking: bool = False
    thoughts: int = 0
    called: tuple[str, ...] = ()
    calls: Mapping[str, str] = field(default_factory=dict)
    searches: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    citations: tuple[Noted, ...] = ()
    verdicts: Mapping[str, str] = field(default_factory=dict)
    messages: hook_messages.Messages = field(default_factory=dict)
    waits: bool = False
    begun: bool = False
    over: bool = False
    finish: str = ""
    error: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class UIStream:
    """`chat` makes the chunks: with usage, without events of Open WebUI. `decided`: the
    calls of the page's last message that its user approved or refused; the page adds to that
    message, and it keeps its id."""

    chat: OpenAIChat
    decided: Mapping[str, bool] = field(default_factory=dict)

    def begin(self) -> _Shown:
        return _Shown(chat=self.chat.begin())

    def step(self, state: _Shown, event: Event, /) -> tuple[_Shown, Sequence[ClientMessage]]:
        noted = state.chat.annotations
        chat, chunks = self.chat.step(state.chat, event)
        state, made = self._chunks(replace(state, chat=chat), chunks, noted)
        state, more = self._event(state, event)
        return state, [*made, *more]

    def end(self, state: _Shown, /) -> Sequence[ClientMessage]:
        done = ClientMessage(DONE)
        if state.over:
            return (done,)
        state, made = self._chunks(state, self.chat.end(state.chat), state.chat.annotations)
        return [*made, *self._ended(state)[1], done]

    def _chunks(
        self, state: _Shown, chunks: Sequence[ClientMessage], noted: tuple[Noted, ...]
    ) -> tuple[_Shown, Pieces]:
        """Read chunks. `noted` are the annotations that the chunks may have."""
        made: Pieces = []
        for chunk in chunks:
            if chunk.data == DONE:
                continue
            if "error" in chunk.data:  # the first one is the cause of the others
                state = replace(state, error=state.error or chunk.data["error"])
                continue
            if usage := chunk.data.get("usage"):
                state = replace(state, metadata={**state.metadata, "usage": usage})
            if judged := chunk.data.get("groundhook"):
                state = replace(state, metadata={**state.metadata, **judged})
            for choice in chunk.data["choices"]:
                state = replace(state, finish=choice["finish_reason"] or state.finish)
                state, more = _delta(state, choice["delta"], noted)
                made += more
        return state, made

    def _event(self, state: _Shown, event: Event) -> tuple[_Shown, Pieces]:
        match event:
            case StreamStart() if not state.begun:
                return _begun(state, event, named=not self.decided)
            case SearchStart() | SearchFound() | SearchComplete():
                return _searched(state, event)
            case CitationSeen():
                return self._cited(state, event)
            case ToolStart() | ToolProgress() | ToolResult():
                return self._called(state, event)
            case ApprovalRequired():
                return _waits(state, event)
            case HookMessage():
                return _said(state, event)
            case Warned():  # authors see them
                shown = event.model_dump(mode="json", exclude_none=True)
                return state, [_piece("data-warning", data=shown, transient=True)]
            case StreamEnd():
                if event.data is not None:
                    state = replace(state, metadata={**state.metadata, "data": event.data})
                return self._ended(state)
            case _:
                return state, []

    def _cited(self, state: _Shown, event: CitationSeen) -> tuple[_Shown, Pieces]:
        if event.item is None:
            return state, []
        state = replace(state, verdicts={**state.verdicts, event.marker: event.verdict})
        id = self._source_id(state, event.marker, event.item)
        if id in state.sources:
            return state, []
        source = _source(id, event, address(event.item, self.chat.public_url))
        return replace(state, sources=(*state.sources, id)), [source]

    def _called(
        self, state: _Shown, event: ToolStart | ToolProgress | ToolResult
    ) -> tuple[_Shown, Pieces]:
        approved = self.decided.get(event.call_id)
        if approved is None:
            return _called(state, event)
        # The page has the call already.
        if isinstance(event, ToolStart):
            calls = {**state.calls, event.call_id: event.call_id}
            return replace(state, called=(*state.called, event.call_id), calls=calls), []
        state, made = _called(state, event)
        if not approved and isinstance(event, ToolResult):
            return state, [_piece("tool-output-denied", toolCallId=event.call_id)]
        return state, made

    def _source_id(self, state: _Shown, marker: str, item: Item) -> str:
        """Return the id of a source: its number in the text, or the marker where these stay."""
        if self.chat.citations == "markers":
            return marker
        return str(state.chat.numbers.with_item(item)[1])

    def _ended(self, state: _Shown) -> tuple[_Shown, Pieces]:
        state, made = _thought(state)
        if state.writing:
            made.append(_piece("text-end", id=TEXT))
        if state.citations:
            listed = [
                {
                    "sourceId": self._source_id(state, noted.marker, noted.item),
                    "marker": noted.marker,
                    "verdict": state.verdicts[noted.marker],
                    "start": noted.start,
                    "end": noted.end,
                }
                for noted in state.citations
            ]
            # A message that is continued has those of several turns.
            id = f"citations-{state.metadata.get('turn_id', '')}"
            made.append(_piece("data-citations", id=id, data=listed))
        for id, approved in self.decided.items():
            if (
                id not in state.called and not state.over
            ):  # an answer to a question, which no tool has
                made.append(_answered(id, approved))
        for id in state.calls.values():
            made.append(_piece("tool-output-error", toolCallId=id, errorText=NO_RESULT))
            made[-1].data["dynamic"] = True
        over = replace(state, over=True, writing=False, calls={})
        return over, [*made, *_last(over)]


def _last(state: _Shown) -> Pieces:
    """Return the last chunks: readers take `finish` for the end of a whole answer."""
    if state.error is not None:
        if state.error.get("code") == STOPPED:
            return [_piece("abort", reason=str(state.error["message"]))]
        return [_piece("error", errorText=str(state.error["message"]))]
    reason = "tool-calls" if state.waits else REASONS.get(state.finish, "other")
    finish = _piece("finish", finishReason=reason, messageMetadata=dict(state.metadata))
    return [_piece("finish-step"), finish]


def _begun(state: _Shown, event: StreamStart, *, named: bool) -> tuple[_Shown, Pieces]:
    about = {"turn_id": event.turn_id, "assistant": event.assistant_id, "chat_id": event.chat_id}
    shown = {key: value for key, value in about.items() if value}
    start = _piece("start", messageMetadata=shown)
    if event.message_id and named:
        start.data["messageId"] = event.message_id
    begun = replace(state, begun=True, metadata={**state.metadata, **shown})
    return begun, [start, _piece("start-step")]


def _delta(
    state: _Shown, delta: Mapping[str, Any], noted: tuple[Noted, ...]
) -> tuple[_Shown, Pieces]:
    made: Pieces = []
    if thought := delta.get("reasoning_content"):
        if not state.thinking:
            state = replace(state, thinking=True, thoughts=state.thoughts + 1)
            made.append(_piece("reasoning-start", id=f"thought-{state.thoughts}"))
        made.append(_piece("reasoning-delta", id=f"thought-{state.thoughts}", delta=thought))
    if text := delta.get("content"):
        state, ended = _thought(state)
        made += ended
        if not state.writing:
            state = replace(state, writing=True)
            made.append(_piece("text-start", id=TEXT))
        made.append(_piece("text-delta", id=TEXT, delta=text))
    for call in delta.get("tool_calls", ()):  # of the client, which gives their results
        function = call["function"]
        named = {"toolCallId": call["id"], "toolName": function["name"], "dynamic": True}
        made.append(_piece("tool-input-available", **named, input=_arguments(function)))
    if "annotations" in delta:
        state = replace(state, citations=(*state.citations, *noted))
    return state, made


def _thought(state: _Shown) -> tuple[_Shown, Pieces]:
    """End the open thought."""
    if not state.thinking:
        return state, []
    ended = _piece("reasoning-end", id=f"thought-{state.thoughts}")
    return replace(state, thinking=False), [ended]


def _searched(
    state: _Shown, event: SearchStart | SearchFound | SearchComplete
) -> tuple[_Shown, Pieces]:
    """Show a search: one part, which a later one with the same id replaces."""
    id = event.search_id
    known = state.searches.get(id, {})
    match event:
        case SearchStart():
            shown: dict[str, Any] = {
                "search_type": event.search_type,
                "query": event.query,
                "state": "searching",
                "found": 0,
            }
        case SearchFound():
            found = {**known, "found": known.get("found", 0) + 1}
            return replace(state, searches={**state.searches, id: found}), []
        case SearchComplete():
            failed = event.error is not None and event.error != STOPPED
            ended = "stopped" if event.error == STOPPED else "failed" if failed else "done"
            shown = {**known, "state": ended, "duration_ms": event.duration_ms}
            if failed:
                shown["error"] = event.error
            shown |= event.model_dump(
                mode="json",
                include={"certainty", "readings"},
                exclude_none=True,
                exclude_defaults=True,
            )
    searches = {**state.searches, id: shown}
    return replace(state, searches=searches), [_piece("data-search", id=id, data=shown)]


def _called(state: _Shown, event: ToolStart | ToolProgress | ToolResult) -> tuple[_Shown, Pieces]:
    """Show a call of a tool that the page does not know."""
    if isinstance(event, ToolStart):
        # Models may use an id again, in another round.
        id = unique(event.call_id, state.called)
        state = replace(state, called=(*state.called, id), calls={**state.calls, event.call_id: id})
        named = {"toolCallId": id, "toolName": event.name, "dynamic": True}
        return state, [_piece("tool-input-available", **named, input=event.arguments)]
    known = state.calls.get(event.call_id)
    if known is None:
        return state, []
    if isinstance(event, ToolProgress):
        shown = event.model_dump(mode="json", include={"done", "total", "message", "name"})
        named = {"id": f"progress-{known}", "transient": True}
        return state, [_piece("data-progress", **named, data={**shown, "toolCallId": known})]
    rest = {call: id for call, id in state.calls.items() if call != event.call_id}
    state = replace(state, calls=rest)
    named = {"toolCallId": known, "dynamic": True}
    if event.error is not None:
        return state, [_piece("tool-output-error", **named, errorText=event.error)]
    return state, [_piece("tool-output-available", **named, output=event.result)]


def _waits(state: _Shown, event: ApprovalRequired) -> tuple[_Shown, Pieces]:
    """Show a call that the user decides about. Its id is that of the decision, so it is not
    changed; the turn after the decision shows its result."""
    if event.call_id in state.called:
        return state, []
    named = {"toolCallId": event.call_id, "toolName": event.name, "dynamic": True}
    request = {"approvalId": event.call_id, "toolCallId": event.call_id}
    waiting = replace(state, called=(*state.called, event.call_id), waits=True)
    return waiting, [
        _piece("tool-input-available", **named, input=_input(event)),
        _piece("tool-approval-request", **request),
    ]


def _input(event: ApprovalRequired) -> dict[str, object]:
    """Return what a page shows of a call, or of a question of a hook."""
    if not event.question:
        return event.arguments
    return {"question": event.question, "choices": list(event.choices)}


def _answered(id: str, approved: bool) -> ClientMessage:
    """Return the end of a question of a hook, so that a page does not send its answer again."""
    if not approved:
        return _piece("tool-output-denied", toolCallId=id)
    return _piece("tool-output-available", toolCallId=id, output="answered", dynamic=True)


def _said(state: _Shown, event: HookMessage) -> tuple[_Shown, Pieces]:
    """Show a hook's message that is no text, whole after each change."""
    messages = hook_messages.step(state.messages, event)
    changed = [
        each
        for id, each in messages.items()
        if each != state.messages.get(id) and not is_text(each.message)
    ]
    pieces = [
        _piece(
            "data-message",
            id=each.id,
            data={
                "message": each.message,
                "block_id": each.block_id,
                "thread_id": each.thread_id,
                "ended": each.ended,
            },
        )
        for each in changed
    ]
    return replace(state, messages=messages), pieces


def _source(id: str, event: CitationSeen, url: str) -> ClientMessage:
    item = event.item
    assert item is not None
    where = {
        "marker": event.marker,
        "verdict": event.verdict,
        "type": item.type,
        "collection": item.collection,
        "document_id": item.document_id,
        "model": item.model,
        "passage": item.content,
    }
    own = {key: value for key, value in where.items() if value}
    named = {"sourceId": id, "title": item.title or url or event.marker}
    known = {**named, "providerMetadata": {"groundhook": own}}
    if url:
        return _piece("source-url", url=url, **known)
    # A figure, which has no address.
    return _piece("source-document", mediaType="text/plain", **known)


def _arguments(function: Mapping[str, Any]) -> Any:
    """Return the arguments of a call; as text if they are not JSON."""
    try:
        return read_json(function["arguments"])
    except (NotJson, NestedTooDeeply):
        return function["arguments"]


def _piece(type: str, **fields: Any) -> ClientMessage:
    return ClientMessage({"type": type, **fields})
