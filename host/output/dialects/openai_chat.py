"""OpenAI's chat completions, with Open WebUI's events in the same chunks. Pure.

Markers become numbers. Offsets of annotations count code points of the text as it is sent. With
`events`, sources are `event` objects and annotations are omitted, since Open WebUI lists each
annotation as one more source.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from groundhook.core import hook_messages
from groundhook.core.types.events import (
    CitationSeen,
    DocumentsSearchCompleted,
    DocumentsSearchStarted,
    Event,
    Failed,
    HookMessage,
    Reasoning,
    SearchComplete,
    SearchFound,
    SearchStart,
    StreamEnd,
    StreamStart,
    Text,
    ToolProgress,
    ToolResult,
    ToolStart,
    Trace,
    Warned,
)
from groundhook.core.types.search import Item
from groundhook.core.types.turn import Usage
from groundhook.host.output.dialects import openwebui
from groundhook.host.output.dialects.fold import Piece
from groundhook.host.output.dialects.numbering import CitationStyle, Numbers, shown, unique
from groundhook.host.output.dialects.places import address

DONE = "[DONE]"
BROKEN = "the answer is incomplete: its process ended"
FINISHES = frozenset({"stop", "length", "content_filter"})
TEXTS = frozenset({"text", "markdown"})  # types of messages of hooks that are shown


@dataclass(frozen=True)
class Sent:
    """The state of the fold. `label` is shown in the place of `marker`, whose text comes next;
    `open` are searches and tools under way, `finish` is set when the answer is complete. `writer`
    is the hook's message that the last text belongs to ("": the answer), `tail` its end."""

    length: int = 0
    writer: str = ""
    tail: str = ""
    numbers: Numbers = Numbers()
    names: tuple[str, ...] = ()
    annotations: int = 0
    marker: str = ""
    label: str = ""
    annotated: Item | None = None
    open: tuple[tuple[str, openwebui.Status], ...] = ()
    messages: hook_messages.Messages = field(default_factory=dict)
    begun: bool = False
    finish: str = ""
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class OpenAIChat:
    """`id`, `model` and `created` are those of every chunk; `public_url` is the server's
    address."""

    id: str
    model: str
    created: int
    public_url: str = ""
    citations: CitationStyle = "numbers"
    events: bool = False
    usage: bool = False

    def begin(self) -> Sent:
        return Sent()

    def step(self, state: Sent, event: Event, /) -> tuple[Sent, Sequence[Piece]]:
        match event:
            case StreamStart():
                return self._begun(state)
            case SearchStart():
                return self._opened(state, event.search_id, openwebui.searching(event))
            case SearchComplete():
                return self._closed(state, event.search_id, openwebui.searched(event))
            case ToolStart():
                return self._opened(state, event.call_id, openwebui.calling(event))
            case ToolResult():
                return self._closed(state, event.call_id, openwebui.called(event))
            case Text():
                return self._text(state, event.delta)
            case CitationSeen():
                return self._cited(state, event)
            case HookMessage():
                return self._message(state, event)
            case Failed():
                closed, pieces = self._all_closed(state)
                return replace(closed, failed=True), [*pieces, Piece(error_body(event))]
            case StreamEnd():
                return self._ended(state, event)
            case (
                SearchFound()
                | Reasoning()
                | ToolProgress()
                | DocumentsSearchStarted()
                | DocumentsSearchCompleted()
                | Trace()
                | Warned()
            ):
                return state, ()
            case _:
                assert_never(event)

    def end(self, state: Sent, /) -> Sequence[Piece]:
        done = Piece(DONE)
        if state.finish:
            return (done,)
        _, pieces = self._all_closed(state)
        broken = Piece(error_body(Failed(code="internal", message=BROKEN)))
        return [*pieces, broken, done]

    def _begun(self, state: Sent) -> tuple[Sent, Sequence[Piece]]:
        if state.begun:  # of an assistant that the turn was delegated to
            return state, ()
        begun = replace(state, begun=True)
        return begun, (self._chunk({"role": "assistant", "content": ""}),)

    def _text(self, state: Sent, delta: str) -> tuple[Sent, Sequence[Piece]]:
        if not state.marker:
            return self._sent(state, delta)
        before, marker, after = delta.partition(state.marker)
        item, label = state.annotated, state.label
        cleared = replace(state, marker="", label="", annotated=None)
        if not marker:
            return self._sent(cleared, delta)
        sent, pieces = self._sent(cleared, before + label + after)
        if item is None:
            return sent, pieces
        # Offsets count the text as sent, in which the label has replaced the marker.
        start = sent.length - len(label) - len(after)
        annotation = self._annotation(state.annotations, item, start, start + len(label))
        counted = replace(sent, annotations=state.annotations + 1)
        return counted, [*pieces, self._chunk({"annotations": [annotation]})]

    def _sent(self, state: Sent, text: str, writer: str = "") -> tuple[Sent, Sequence[Piece]]:
        """Send text. A hook's message and the answer beside it are paragraphs of their own."""
        if not text:
            return state, ()
        if state.length and writer != state.writer:
            text = "\n" * (2 - len(state.tail) + len(state.tail.rstrip("\n"))) + text
        tail = (state.tail + text)[-2:]
        sent = replace(state, length=state.length + len(text), writer=writer, tail=tail)
        return sent, (self._chunk({"content": text}),)

    def _cited(self, state: Sent, event: CitationSeen) -> tuple[Sent, Sequence[Piece]]:
        if event.item is None:
            label = shown(event, 0, self.citations, "")
            return replace(state, marker=event.marker, label=label, annotated=None), ()
        numbers, number = state.numbers.with_item(event.item)
        url = address(event.item, self.public_url)
        label = shown(event, number, self.citations, url)
        annotated = None if self.events or not label else event.item
        cited = replace(
            state, marker=event.marker, label=label, annotated=annotated, numbers=numbers
        )
        if not self.events or numbers is state.numbers:
            return cited, ()
        wanted = url if event.item.type == "web" else event.item.title or url
        name = unique(wanted or event.item.citation_id, state.names)
        source = openwebui.source(event.item, name, url)
        return replace(cited, names=(*state.names, name)), (self._event(source),)

    def _annotation(self, index: int, item: Item, start: int, end: int) -> dict[str, Any]:
        citation = {
            "url": address(item, self.public_url),
            "title": item.title,
            "start_index": start,
            "end_index": end,
        }
        # SDKs join lists of deltas by `index`: an entry without one, or sent twice, fails there.
        return {"index": index, "type": "url_citation", "url_citation": citation}

    def _message(self, state: Sent, event: HookMessage) -> tuple[Sent, Sequence[Piece]]:
        """Send the text that a hook's message adds. A message that was replaced cannot be taken
        back, and one of another type is for clients that know it."""
        after = hook_messages.step(state.messages, event)
        held = replace(state, messages=after)
        now = after.get(event.message_id)
        if now is None or not _is_text(now.message):
            return held, ()
        text, _ = hook_messages.added_text(state.messages.get(event.message_id), now)
        return self._sent(held, text, event.message_id)

    def _opened(
        self, state: Sent, id: str, status: openwebui.Status
    ) -> tuple[Sent, Sequence[Piece]]:
        if not self.events:
            return state, ()
        return replace(state, open=(*state.open, (id, status))), (self._event(status.event()),)

    def _closed(
        self, state: Sent, id: str, status: openwebui.Status
    ) -> tuple[Sent, Sequence[Piece]]:
        if not self.events:
            return state, ()
        still = tuple(each for each in state.open if each[0] != id)
        return replace(state, open=still), (self._event(status.event()),)

    def _all_closed(self, state: Sent) -> tuple[Sent, list[Piece]]:
        ended = [self._event(replace(status, done=True).event()) for _, status in state.open]
        return replace(state, open=()), ended

    def _ended(self, state: Sent, event: StreamEnd) -> tuple[Sent, Sequence[Piece]]:
        # Models and hooks name others, which clients of this API do not know.
        finish = event.finish_reason if event.finish_reason in FINISHES else "stop"
        closed, pieces = self._all_closed(state)
        if state.failed:  # clients read a finish_reason as the end of a whole answer
            return replace(closed, finish=finish), pieces
        pieces.append(self._chunk({}, finish))
        if self.usage:
            pieces.append(Piece({**self._base(), "choices": [], "usage": tokens(event.usage)}))
        return replace(closed, finish=finish), pieces

    def _base(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
        }

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> Piece:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return Piece({**self._base(), "choices": [choice]})

    def _event(self, event: dict[str, Any]) -> Piece:
        choice = {"index": 0, "delta": {}, "finish_reason": None}
        # Open WebUI reads the key `event`; SDKs accept keys of a chunk that they do not know.
        return Piece({**self._base(), "choices": [choice], "event": event})


def error_body(failed: Failed) -> dict[str, Any]:
    """Return an error in the shape of OpenAI's API."""
    return {
        "error": {
            "message": failed.message,
            "type": "server_error",
            "param": None,
            "code": failed.code,
        }
    }


def tokens(usage: Usage) -> dict[str, int]:
    """Return the usage with the names of OpenAI's API."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }


def completion(pieces: Iterable[Piece]) -> dict[str, Any]:
    """Return the chunks of an answer as one `chat.completion`; the error alone if the turn failed
    before any text."""
    text: list[str] = []
    annotations: list[dict[str, Any]] = []
    base: dict[str, Any] = {}
    finish, usage, error = "stop", tokens(Usage()), None
    for piece in pieces:
        if piece.data == DONE:
            continue
        if "error" in piece.data:
            error = piece.data
            continue
        base = {key: piece.data[key] for key in ("id", "created", "model")}
        usage = piece.data.get("usage") or usage
        for choice in piece.data["choices"]:
            text.append(choice["delta"].get("content") or "")
            annotations += [_drop_index(each) for each in choice["delta"].get("annotations", ())]
            finish = choice["finish_reason"] or finish
    if error and not "".join(text):
        return dict(error)
    if error:  # the text is not whole
        finish = "length"
    message: dict[str, Any] = {"role": "assistant", "content": "".join(text), "refusal": None}
    if annotations:
        message["annotations"] = annotations
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    return {**base, "object": "chat.completion", "choices": [choice], "usage": usage}


def _drop_index(annotation: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in annotation.items() if key != "index"}


def _is_text(message: Any) -> bool:
    if isinstance(message, dict):
        return message.get("type") in TEXTS
    return isinstance(message, str)
