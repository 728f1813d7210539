"""OpenAI's Responses: the chunks of a chat completion as items that are added, grow and are done.
Pure.

The answer is one message; thoughts are items of the type `reasoning`, and calls of the client's
tools items of their own behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from groundhook.core.pieces import TextPieces, grown
from groundhook.core.types.events import STOPPED, Event
from groundhook.host.output.dialects.fold import ClientMessage
from groundhook.host.output.dialects.openai_chat import DONE, OpenAIChat, Sent

REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}


@dataclass(frozen=True)
class OutputItem:
    """An item of the output. `text` is that of a message, a thought, or the arguments of a call."""

    kind: str
    id: str
    pieces: TextPieces = ()  # of the text
    annotations: tuple[Mapping[str, Any], ...] = ()
    call: Mapping[str, Any] = field(default_factory=dict)
    done: bool = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True)
class ResponseOutput:
    """The state of the fold. `chat` is that of the chunks from which the items are made."""

    chat: Sent = Sent()
    number: int = 0
    items: tuple[OutputItem, ...] = ()
    begun: bool = False
    finish: str = ""
    usage: Mapping[str, int] | None = None
    error: Mapping[str, Any] | None = None
    judged: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Responses:
    """`chat` makes the chunks; its `id` is that of the response. `echoed` are the keys of the
    request that a response repeats."""

    chat: OpenAIChat
    echoed: Mapping[str, Any] = field(default_factory=dict)

    def begin(self) -> ResponseOutput:
        return ResponseOutput(chat=self.chat.begin())

    def step(
        self, state: ResponseOutput, event: Event, /
    ) -> tuple[ResponseOutput, Sequence[ClientMessage]]:
        chat, chunks = self.chat.step(state.chat, event)
        state = replace(state, chat=chat)
        made: list[ClientMessage] = []
        for chunk in chunks:
            state, more = self._chunk(state, chunk.data)
            made += more
        return state, made

    def end(self, state: ResponseOutput, /) -> Sequence[ClientMessage]:
        made: list[ClientMessage] = []
        for chunk in self.chat.end(state.chat):
            if chunk.data != DONE:
                state, more = self._chunk(state, chunk.data)
                made += more
        state, more = self._all_done(state)
        made += more
        whole = self.response(state, over=True)
        if state.error is not None:
            shown = {key: state.error.get(key) for key in ("code", "message", "param")}
            state, piece = _numbered(state, "error", shown)
            made.append(piece)
        # There is no event of a cancelled response.
        ended = "failed" if state.error else whole["status"]
        _, piece = _numbered(state, f"response.{ended}", {"response": whole})
        return [*made, piece]

    def response(self, state: ResponseOutput, *, over: bool) -> dict[str, Any]:
        """Return the response so far; `over`: nothing follows."""
        status = "in_progress"
        if over:
            cut = state.finish in REASONS
            status = "failed" if state.error else "incomplete" if cut else "completed"
            if state.error and state.error.get("code") == STOPPED:
                status = "cancelled"
        error = state.error and {"code": "server_error", "message": state.error.get("message")}
        return {
            "id": self.chat.id,
            "object": "response",
            "created_at": self.chat.created,
            "status": status,
            "model": self.chat.model,
            "output": [_shown(item) for item in state.items],
            "error": error or None,
            "incomplete_details": (
                {"reason": REASONS[state.finish]} if status == "incomplete" else None
            ),
            "usage": _usage(state.usage) if over else None,
            "groundhook": dict(state.judged),
            **DEFAULTS,
            **self.echoed,
        }

    def _chunk(
        self, state: ResponseOutput, chunk: Mapping[str, Any]
    ) -> tuple[ResponseOutput, list[ClientMessage]]:
        if "error" in chunk:
            return replace(state, error=state.error or chunk["error"]), []
        state = replace(
            state,
            usage=chunk.get("usage") or state.usage,
            judged=chunk.get("groundhook") or state.judged,
        )
        made: list[ClientMessage] = []
        for choice in chunk["choices"]:
            state, more = self._delta(state, choice["delta"])
            made += more
            state = replace(state, finish=choice["finish_reason"] or state.finish)
        return state, made

    def _delta(
        self, state: ResponseOutput, delta: Mapping[str, Any]
    ) -> tuple[ResponseOutput, list[ClientMessage]]:
        made: list[ClientMessage] = []
        if "role" in delta and not state.begun:
            state = replace(state, begun=True)
            for name in ("response.created", "response.in_progress"):
                whole = self.response(state, over=False)
                state, piece = _numbered(state, name, {"response": whole})
                made.append(piece)
        for key, kind in (("reasoning_content", "reasoning"), ("content", "message")):
            if delta.get(key):
                state, more = self._grown(state, kind, delta[key])
                made += more
        for annotation in delta.get("annotations", ()):
            state, more = _annotated(state, annotation)
            made += more
        for call in delta.get("tool_calls", ()):
            state, more = self._called(state, call)
            made += more
        return state, made

    def _grown(
        self, state: ResponseOutput, kind: str, text: str
    ) -> tuple[ResponseOutput, list[ClientMessage]]:
        made: list[ClientMessage] = []
        at = _open(state, kind)
        thought = _open(state, "reasoning")
        if kind == "message" and thought is not None:
            state, more = _done(state, thought)
            made += more
        if at is None:
            at = len(state.items)
            prefix = "msg" if kind == "message" else f"rs{at}"
            state, more = _added(state, OutputItem(kind, f"{prefix}_{self._turn}"))
            made += more
        item = state.items[at]
        state = _replaced(state, at, replace(item, pieces=grown(item.pieces, text)))
        name = "output_text" if kind == "message" else "reasoning_summary_text"
        place = {**_place(item, at), "delta": text}
        extra: dict[str, Any] = {"logprobs": []} if kind == "message" else {}
        state, piece = _numbered(state, f"response.{name}.delta", {**place, **extra})
        return state, [*made, piece]

    def _called(
        self, state: ResponseOutput, call: Mapping[str, Any]
    ) -> tuple[ResponseOutput, list[ClientMessage]]:
        function = call["function"]
        shown = {"call_id": call["id"], "name": function["name"]}
        at = len(state.items)
        item = OutputItem(
            "function_call", f"fc{at}_{self._turn}", (function["arguments"],), call=shown
        )
        state, made = _added(state, item)
        place = {"item_id": item.id, "output_index": at}
        for name, key in (("delta", "delta"), ("done", "arguments")):
            fields = {**place, key: item.text, "name": shown["name"]}
            state, piece = _numbered(state, f"response.function_call_arguments.{name}", fields)
            made.append(piece)
        return state, made

    def _all_done(self, state: ResponseOutput) -> tuple[ResponseOutput, list[ClientMessage]]:
        made: list[ClientMessage] = []
        for at, item in enumerate(state.items):
            if not item.done:
                state, more = _done(state, at)
                made += more
        return state, made

    @property
    def _turn(self) -> str:
        return self.chat.id.removeprefix("resp_")


@dataclass(frozen=True)
class After:
    """The events of a response behind the one with the number `after`."""

    fold: Responses
    after: int

    def begin(self) -> ResponseOutput:
        return self.fold.begin()

    def step(
        self, state: ResponseOutput, event: Event, /
    ) -> tuple[ResponseOutput, Sequence[ClientMessage]]:
        state, made = self.fold.step(state, event)
        return state, self._later(made)

    def end(self, state: ResponseOutput, /) -> Sequence[ClientMessage]:
        return self._later(self.fold.end(state))

    def _later(self, made: Sequence[ClientMessage]) -> list[ClientMessage]:
        return [piece for piece in made if piece.data["sequence_number"] > self.after]


# What SDKs require of a response; the request's own values replace them.
DEFAULTS: Mapping[str, Any] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "store": False,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}


def _open(state: ResponseOutput, kind: str) -> int | None:
    return next(
        (n for n, item in enumerate(state.items) if item.kind == kind and not item.done), None
    )


def _replaced(state: ResponseOutput, at: int, item: OutputItem) -> ResponseOutput:
    return replace(state, items=(*state.items[:at], item, *state.items[at + 1 :]))


def _place(item: OutputItem, at: int) -> dict[str, Any]:
    part = "content_index" if item.kind == "message" else "summary_index"
    return {"item_id": item.id, "output_index": at, part: 0}


def _added(state: ResponseOutput, item: OutputItem) -> tuple[ResponseOutput, list[ClientMessage]]:
    at = len(state.items)
    begun = replace(item, pieces=())
    fields = {"output_index": at, "item": _shown(begun, part=False)}
    state, piece = _numbered(state, "response.output_item.added", fields)
    made = [piece]
    if item.kind != "function_call":
        name = "content_part" if item.kind == "message" else "reasoning_summary_part"
        fields = {**_place(item, at), "part": _part(begun)}
        state, piece = _numbered(state, f"response.{name}.added", fields)
        made.append(piece)
    return replace(state, items=(*state.items, item)), made


def _done(state: ResponseOutput, at: int) -> tuple[ResponseOutput, list[ClientMessage]]:
    item = replace(state.items[at], done=True)
    made: list[ClientMessage] = []
    if item.kind != "function_call":
        of_text, of_part = ("output_text", "content_part")
        if item.kind == "reasoning":
            of_text, of_part = ("reasoning_summary_text", "reasoning_summary_part")
        place = _place(item, at)
        extra: dict[str, Any] = {"logprobs": []} if item.kind == "message" else {}
        fields = {**place, "text": item.text, **extra}
        state, text = _numbered(state, f"response.{of_text}.done", fields)
        state, part = _numbered(state, f"response.{of_part}.done", {**place, "part": _part(item)})
        made += [text, part]
    fields = {"output_index": at, "item": _shown(item)}
    state, piece = _numbered(state, "response.output_item.done", fields)
    return _replaced(state, at, item), [*made, piece]


def _annotated(
    state: ResponseOutput, given: Mapping[str, Any]
) -> tuple[ResponseOutput, list[ClientMessage]]:
    at = _open(state, "message")
    if at is None:
        return state, []
    item = state.items[at]
    annotation = {"type": "url_citation", **given["url_citation"]}
    index = len(item.annotations)
    fields = {**_place(item, at), "annotation_index": index, "annotation": annotation}
    state, piece = _numbered(state, "response.output_text.annotation.added", fields)
    noted = replace(item, annotations=(*item.annotations, annotation))
    return _replaced(state, at, noted), [piece]


def _part(item: OutputItem) -> dict[str, Any]:
    if item.kind == "reasoning":
        return {"type": "summary_text", "text": item.text}
    return {
        "type": "output_text",
        "text": item.text,
        "annotations": list(item.annotations),
        "logprobs": [],
    }


def _shown(item: OutputItem, *, part: bool = True) -> dict[str, Any]:
    status = "completed" if item.done else "in_progress"
    parts = [_part(item)] if part else []
    match item.kind:
        case "message":
            own: dict[str, Any] = {"role": "assistant", "content": parts}
        case "reasoning":
            own = {"summary": parts}
        case _:
            own = {**item.call, "arguments": item.text}
    return {"type": item.kind, "id": item.id, "status": status, **own}


def _numbered(
    state: ResponseOutput, name: str, fields: Mapping[str, Any]
) -> tuple[ResponseOutput, ClientMessage]:
    data = {"type": name, "sequence_number": state.number, **fields}
    return replace(state, number=state.number + 1), ClientMessage(data, name)


def _usage(usage: Mapping[str, int] | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    return {
        "input_tokens": usage["prompt_tokens"],
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage["total_tokens"],
    }
