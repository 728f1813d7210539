"""OpenAI's chat completions, with Open WebUI's events in the same chunks. Pure.

Markers become numbers. Offsets of annotations count code points of the text as it is sent. All
annotations are in one chunk behind the text, because the stream helper of OpenAI's client for
JavaScript keeps those of the last chunk only. With `events`, sources are `event` objects and
annotations are omitted, since Open WebUI lists each annotation as one more source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from groundhook.core import hook_messages
from groundhook.core.errors import ContractBroken
from groundhook.core.server_settings import CitationStyle
from groundhook.core.types.events import (
    ApprovalRequired,
    CitationSeen,
    Claims,
    DocumentsSearchCompleted,
    DocumentsSearchStarted,
    Event,
    Failed,
    HookMessage,
    Reasoning,
    SearchComplete,
    SearchFound,
    SearchStart,
    SourcesGiven,
    StreamEnd,
    StreamStart,
    Text,
    ToolProgress,
    ToolResult,
    ToolStart,
    Trace,
    Warned,
)
from groundhook.core.types.search import Item, LongTable, SearchAccount
from groundhook.core.types.turn import Usage
from groundhook.host.output.dialects import literal, openwebui
from groundhook.host.output.dialects.fold import ClientMessage
from groundhook.host.output.dialects.literal import Literal
from groundhook.host.output.dialects.numbering import Numbers, shown, unique
from groundhook.host.output.dialects.places import address

DONE = "[DONE]"
BROKEN = "the answer is incomplete: its process ended"
FINISHES = frozenset({"stop", "length", "content_filter"})
NUMBERED = frozenset({"numbers", "links"})  # styles in which a number in brackets is a citation
Step = SearchStart | SearchFound | SearchComplete | SourcesGiven | ToolStart | ToolResult
TEXTS = frozenset({"text", "markdown"})  # types of messages of hooks that are shown


@dataclass(frozen=True)
class Noted:
    """A citation in the text as it is sent: code points, `end` exclusive."""

    marker: str
    item: Item
    start: int
    end: int


@dataclass(frozen=True)
class Sent:
    """The state of the fold. `label` is shown in the place of `marker`, whose text comes next;
    `open` are searches and tools under way, `finish` is set when the answer is complete. `writer`
    is the hook's message that the last text belongs to ("": the answer), `tail` its end.
    `annotations` are those that are not sent yet, `annotated` is the number of those that are."""

    length: int = 0
    writer: str = ""
    tail: str = ""
    numbers: Numbers = Numbers()
    names: tuple[str, ...] = ()
    annotated: int = 0
    annotations: tuple[Noted, ...] = ()
    marker: str = ""
    label: str = ""
    cited: Item | None = None
    open: tuple[tuple[str, openwebui.Status], ...] = ()
    found: Mapping[str, int] = field(default_factory=dict)  # items, by search
    messages: hook_messages.Messages = field(default_factory=dict)
    begun: bool = False
    finish: str = ""
    failed: bool = False
    literal: Literal = Literal()
    asked: SearchAccount | None = None  # of the last search with several readings
    tables: tuple[LongTable, ...] = ()  # of which the answer shows a part


@dataclass(frozen=True, kw_only=True)
class OpenAIChat:
    """`id`, `model` and `created` are those of every chunk; `public_url` is the server's
    address. `is_json`: the client demands JSON, in which `[1]` is a list; `form` is the key of the
    request that demands it."""

    id: str
    model: str
    created: int
    public_url: str = ""
    citations: CitationStyle = "numbers"
    events: bool = False
    usage: bool = False
    is_json: bool = False
    form: str = "response_format"

    def begin(self) -> Sent:
        return Sent()

    def step(self, state: Sent, event: Event, /) -> tuple[Sent, Sequence[ClientMessage]]:
        if self.citations not in NUMBERED or self.is_json:
            return self._step(state, event)
        written, events = literal.step(state.literal, event)
        return self._steps(replace(state, literal=written), events)

    def _steps(self, state: Sent, events: Iterable[Event]) -> tuple[Sent, list[ClientMessage]]:
        pieces: list[ClientMessage] = []
        for event in events:
            state, more = self._step(state, event)
            pieces += more
        return state, pieces

    def _step(self, state: Sent, event: Event) -> tuple[Sent, Sequence[ClientMessage]]:
        match event:
            case StreamStart():
                return self._begun(state)
            case (
                SearchStart()
                | SearchFound()
                | SearchComplete()
                | SourcesGiven()
                | ToolStart()
                | ToolResult()
            ):
                if isinstance(event, SearchComplete):
                    state = _searched(state, event)
                return self._status(state, event) if self.events else (state, ())
            case Text():
                return self._text(state, event.delta)
            case CitationSeen():
                return self._cited(state, event)
            case HookMessage():
                return self._message(state, event)
            case Failed():
                closed, pieces = self._all_closed(state)
                annotated, notes = self._all_annotated(closed)
                failed = replace(annotated, failed=True)
                return failed, [*pieces, *notes, ClientMessage(error_body(event, self.form))]
            case Reasoning():
                # A key of other services, which clients read for a model that thinks first.
                return state, (self._chunk({"reasoning_content": event.delta}),)
            case StreamEnd():
                return self._ended(state, event)
            case (
                ToolProgress()
                | ApprovalRequired()  # only of kept chats
                | DocumentsSearchStarted()
                | DocumentsSearchCompleted()
                | Trace()
                | Warned()
            ):
                return state, ()
            case _:
                assert_never(event)

    def end(self, state: Sent, /) -> Sequence[ClientMessage]:
        done = ClientMessage(DONE)
        if state.finish:
            return (done,)
        state, held = self._steps(state, literal.flush(state.literal)[1])
        closed, pieces = self._all_closed(state)
        pieces = [*held, *pieces, *self._all_annotated(closed)[1]]
        broken = ClientMessage(error_body(Failed(code="internal", message=BROKEN)))
        return [*pieces, broken, done]

    def _begun(self, state: Sent) -> tuple[Sent, Sequence[ClientMessage]]:
        if state.begun:  # of an assistant that the turn was delegated to
            return state, ()
        begun = replace(state, begun=True)
        return begun, (self._chunk({"role": "assistant", "content": ""}),)

    def _text(self, state: Sent, delta: str) -> tuple[Sent, Sequence[ClientMessage]]:
        if not state.marker:
            return self._sent(state, delta)
        cited, item, label = state.marker, state.cited, state.label
        before, marker, after = delta.partition(cited)
        cleared = replace(state, marker="", label="", cited=None)
        if not marker:
            return self._sent(cleared, delta)
        sent, pieces = self._sent(cleared, before + label + after)
        if item is None:
            return sent, pieces
        # Offsets count the text as sent, in which the label has replaced the marker.
        start = sent.length - len(label) - len(after)
        noted = Noted(cited, item, start, start + len(label))
        return replace(sent, annotations=(*state.annotations, noted)), pieces

    def _sent(
        self, state: Sent, text: str, writer: str = ""
    ) -> tuple[Sent, Sequence[ClientMessage]]:
        """Send text. A hook's message and the answer beside it are paragraphs of their own."""
        if not text:
            return state, ()
        if state.length and writer != state.writer:
            text = "\n" * (2 - len(state.tail) + len(state.tail.rstrip("\n"))) + text
        tail = (state.tail + text)[-2:]
        sent = replace(state, length=state.length + len(text), writer=writer, tail=tail)
        return sent, (self._chunk({"content": text}),)

    def _cited(self, state: Sent, event: CitationSeen) -> tuple[Sent, Sequence[ClientMessage]]:
        if event.item is None:
            label = shown(event, 0, self.citations, "")
            return replace(state, marker=event.marker, label=label, cited=None), ()
        numbers, number = state.numbers.with_item(event.item)
        url = address(event.item, self.public_url)
        label = shown(event, number, self.citations, url)
        noted = None if self.events or not label else event.item
        cited = replace(state, marker=event.marker, label=label, cited=noted, numbers=numbers)
        if not self.events or numbers is state.numbers:
            return cited, ()
        wanted = url if event.item.type == "web" else event.item.title or url
        name = unique(wanted or event.item.citation_id, state.names)
        source = openwebui.source(event.item, name, url)
        return replace(cited, names=(*state.names, name)), (self._event(source),)

    def _annotation(self, index: int, noted: Noted) -> dict[str, Any]:
        citation = {
            "url": address(noted.item, self.public_url),
            "title": noted.item.title,
            "start_index": noted.start,
            "end_index": noted.end,
        }
        # SDKs join lists of deltas by `index`: an entry without one, or sent twice, fails there.
        return {"index": index, "type": "url_citation", "url_citation": citation}

    def _message(self, state: Sent, event: HookMessage) -> tuple[Sent, Sequence[ClientMessage]]:
        """Send the text that a hook's message adds. A message that was replaced cannot be taken
        back, and one of another type is for clients that know it."""
        after = hook_messages.step(state.messages, event)
        held = replace(state, messages=after)
        now = after.get(event.message_id)
        if now is None or not is_text(now.message):
            return held, ()
        text, _ = hook_messages.added_text(state.messages.get(event.message_id), now)
        return self._sent(held, text, event.message_id)

    def _status(self, state: Sent, event: Step) -> tuple[Sent, Sequence[ClientMessage]]:
        match event:
            case SearchStart():
                return self._opened(state, event.search_id, openwebui.searching(event))
            case SearchFound():
                found = {**state.found, event.search_id: state.found.get(event.search_id, 0) + 1}
                return replace(state, found=found), ()
            case SearchComplete():
                searched = openwebui.searched(event, state.found.get(event.search_id, 0))
                return self._closed(state, event.search_id, searched)
            case SourcesGiven():
                return state, (self._event(openwebui.given(event).event()),)
            case ToolStart():
                return self._opened(state, event.call_id, openwebui.calling(event))
            case ToolResult():
                return self._closed(state, event.call_id, openwebui.called(event))

    def _opened(
        self, state: Sent, id: str, status: openwebui.Status
    ) -> tuple[Sent, Sequence[ClientMessage]]:
        return replace(state, open=(*state.open, (id, status))), (self._event(status.event()),)

    def _closed(
        self, state: Sent, id: str, status: openwebui.Status
    ) -> tuple[Sent, Sequence[ClientMessage]]:
        still = tuple(each for each in state.open if each[0] != id)
        return replace(state, open=still), (self._event(status.event()),)

    def _all_closed(self, state: Sent) -> tuple[Sent, list[ClientMessage]]:
        ended = [self._event(replace(status, done=True).event()) for _, status in state.open]
        return replace(state, open=()), ended

    def _all_annotated(self, state: Sent) -> tuple[Sent, list[ClientMessage]]:
        if not state.annotations:
            return state, []
        listed = [
            self._annotation(index, noted)
            for index, noted in enumerate(state.annotations, state.annotated)
        ]
        sent = replace(state, annotations=(), annotated=state.annotated + len(listed))
        return sent, [self._chunk({"annotations": listed})]

    def _ended(self, state: Sent, event: StreamEnd) -> tuple[Sent, Sequence[ClientMessage]]:
        # Models and hooks name others, which clients of this API do not know.
        finish = event.finish_reason if event.finish_reason in FINISHES else "stop"
        finish = "tool_calls" if event.tool_calls else finish
        closed, pieces = self._all_closed(state)
        closed, notes = self._all_annotated(closed)
        pieces += notes
        if state.failed:  # clients read a finish_reason as the end of a whole answer
            return replace(closed, finish=finish), pieces
        if event.tool_calls:
            calls = [{"index": n, **call} for n, call in enumerate(event.tool_calls)]
            pieces.append(self._chunk({"tool_calls": calls}))
        last = self._chunk({}, finish)
        judged = judgement(event, state.asked, state.tables)
        pieces.append(ClientMessage({**last.data, "groundhook": judged}))
        if self.usage:
            pieces.append(
                ClientMessage({**self._base(), "choices": [], "usage": tokens(event.usage)})
            )
        return replace(closed, finish=finish), pieces

    def _base(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
        }

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> ClientMessage:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return ClientMessage({**self._base(), "choices": [choice]})

    def _event(self, event: dict[str, Any]) -> ClientMessage:
        choice = {"index": 0, "delta": {}, "finish_reason": None}
        # Open WebUI reads the key `event`; SDKs accept keys of a chunk that they do not know.
        return ClientMessage({**self._base(), "choices": [choice], "event": event})


def _searched(state: Sent, event: SearchComplete) -> Sent:
    """Return the state with what the end of the answer has of a search of the answer."""
    tables = tuple(dict.fromkeys((*state.tables, *(one for one in event.tables if one.csv))))
    return replace(state, asked=event.account if event.readings else state.asked, tables=tables)


def judgement(
    event: StreamEnd, asked: SearchAccount | None, tables: Sequence[LongTable] = ()
) -> dict[str, Any]:
    """Return what the host says of the answer, for the key `groundhook` of clients that read it;
    `asked` are the readings of a question, whose sentences choose one when they are sent, `tables`
    those with more rows than the answer shows."""
    judged = event.model_dump(
        mode="json", include={"certainty"}, exclude_none=True, exclude_defaults=True
    )
    if event.claims != Claims():
        judged["claims"] = event.claims.model_dump()
    if asked is not None:
        judged |= asked.model_dump(mode="json", include={"readings", "explanation"})
    if tables:
        judged["tables"] = [one.model_dump(mode="json") for one in tables]
    verified = [each for citation in event.citations for each in citation.verified]
    if unsupported := dict.fromkeys(each.sentence for each in verified if not each.supported):
        judged["unsupported"] = list(unsupported)
    return {"grounded": event.grounded, **judged}


def error_body(failed: Failed, form: str = "") -> dict[str, Any]:
    """Return an error in the shape of OpenAI's API. `form` is the key of a request that demands the
    form of its answer."""
    param = None
    if failed.code == ContractBroken.code:
        about = failed.message.partition(":")[0]
        param = about if about in ("tools", "tool_choice") else form
    return {
        "error": {
            "message": failed.message,
            "type": "server_error",
            "param": param or None,
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


def completion(pieces: Iterable[ClientMessage]) -> dict[str, Any]:
    """Return the chunks of an answer as one `chat.completion`; the error alone if the turn failed,
    as a stream ends with it: clients take a completion for a whole answer."""
    deltas: list[Mapping[str, Any]] = []
    last: dict[str, Any] = {"usage": tokens(Usage())}
    finish = "stop"
    for piece in pieces:
        if piece.data == DONE:
            continue
        if "error" in piece.data:
            return dict(piece.data)
        last |= piece.data
        for choice in piece.data["choices"]:
            deltas.append(choice["delta"])
            finish = choice["finish_reason"] or finish
    message = _message(deltas)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    kept = ("id", "created", "model", "usage", "groundhook")
    whole = {key: last[key] for key in kept if key in last}
    return {**whole, "object": "chat.completion", "choices": [choice]}


def _message(deltas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the deltas as one message."""
    texts: dict[str, list[str]] = {"content": [], "reasoning_content": []}
    listed: dict[str, list[Any]] = {"annotations": [], "tool_calls": []}
    for delta in deltas:
        for key, pieces in texts.items():
            pieces.append(delta.get(key) or "")
        for key, entries in listed.items():
            entries += [_drop_index(each) for each in delta.get(key, ())]
    joined = {key: "".join(pieces) for key, pieces in texts.items()}
    given = {key: value for key, value in {**joined, **listed}.items() if value}
    return {
        "role": "assistant",
        "content": None if listed["tool_calls"] else "",
        "refusal": None,
        **given,
    }


def _drop_index(annotation: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in annotation.items() if key != "index"}


def is_text(message: Any) -> bool:
    """Return whether a hook's message is shown as text."""
    if isinstance(message, dict):
        return message.get("type") in TEXTS
    return isinstance(message, str)
