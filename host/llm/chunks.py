"""Reads the chunks of a streamed completion: a fold from the endpoint's chunks to the host's
deltas.

Accepts the variants of OpenAI-compatible endpoints: tool calls without an index, chunks without
choices, usage with or after the last choice, `stop` as the reason after tool calls. Any other shape
is refused. The format:
https://platform.openai.com/docs/api-reference/chat-streaming
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict

from groundhook.core.ports import Delta, Finished, ReasoningDelta, TextDelta, ToolDelta
from groundhook.core.types.turn import Usage

REASONING = ("reasoning_content", "reasoning")  # endpoints name it differently


class _Function(BaseModel):
    name: str | None = None
    arguments: str | None = None


class _Call(BaseModel):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(BaseModel):
    model_config = ConfigDict(extra="allow")  # each endpoint has another name for reasoning

    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(BaseModel):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None


class _Chunk(BaseModel):
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None


class Reader:
    """The state of one answer (`host.llm.streams.EventReader`). `begun`: a token of the answer
    itself has arrived."""

    def __init__(self) -> None:
        self.started = False
        self.begun = False
        self._reason = ""
        self._model = ""
        self._usage = Usage()
        self._ids: list[str] = []  # of the tool calls, in their order; "" while a call has none
        self._places: dict[int, int] = {}  # index that the endpoint gives a call → its place
        self._named: set[int] = set()

    @property
    def complete(self) -> bool:
        """Whether the finish_reason has arrived."""
        return bool(self._reason)

    @property
    def counted(self) -> bool:
        """Whether the token count has arrived."""
        return self._usage.total_tokens > 0

    def read(self, raw: object) -> Iterator[Delta]:
        """Yield the deltas of a chunk. Raises pydantic.ValidationError for a wrong shape."""
        chunk = _Chunk.model_validate(raw)
        self._model = chunk.model or self._model
        if chunk.usage is not None:
            self._usage = _usage(chunk.usage)
        # Only one answer is requested; further choices are ignored.
        for choice in (chunk.choices or [])[:1]:
            raw_delta = choice.delta or _Delta()
            self.started |= any(value for name, value in raw_delta if name != "role")
            for delta in self._read_delta(raw_delta):
                self.begun |= not isinstance(delta, ReasoningDelta)
                yield delta
            self._reason = choice.finish_reason or self._reason

    def finished(self) -> Finished:
        reason = "tool_calls" if self._ids and self._reason == "stop" else self._reason
        return Finished(reason, model=self._model, usage=self._usage)

    def _read_delta(self, delta: _Delta) -> Iterator[Delta]:
        for name in REASONING:
            thought = (delta.model_extra or {}).get(name)
            if isinstance(thought, str) and thought:
                yield ReasoningDelta(thought)
                break
        for text in (delta.content, delta.refusal):
            if text:
                yield TextDelta(text)
        for call in delta.tool_calls or ():
            yield self._read_call(call)

    def _read_call(self, call: _Call) -> ToolDelta:
        id, function = call.id or "", call.function or _Function()
        index = self._place(call.index, begins=bool(id or function.name), id=id)
        if index == len(self._ids):
            self._ids.append("")
        first = bool(id) and not self._ids[index]
        if first:
            self._ids[index] = id
        name = function.name or "" if index not in self._named else ""
        if name:
            self._named.add(index)
        return ToolDelta(
            index, id=id if first else "", name=name, arguments=function.arguments or ""
        )

    def _place(self, index: int | None, *, begins: bool, id: str) -> int:
        """Return the place of the call that a piece belongs to. A new id begins a new call; so does
        a new index, which need not be the next number, unless the piece has no id and no name. A
        piece without an id and an index continues the last call."""
        if id and id in self._ids:
            return self._ids.index(id)
        last, new = max(0, len(self._ids) - 1), len(self._ids)
        if index is None:
            return new if id else last
        known = self._places.get(index, new if begins else last)
        has_another_id = known < new and id and self._ids[known]
        self._places[index] = new if has_another_id else known
        return self._places[index]


def _usage(given: _Usage) -> Usage:
    """Return the token count; endpoints may omit the sum."""
    prompt, completion = given.prompt_tokens or 0, given.completion_tokens or 0
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=given.total_tokens or prompt + completion,
    )
