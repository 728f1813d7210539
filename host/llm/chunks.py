"""Reads the chunks of a streamed completion: a fold from the endpoint's chunks to the host's
deltas.

Accepts the variants of OpenAI-compatible endpoints: content as a list of parts, arguments of tools
as an object, tool calls without an index or an id, ids that are numbers, `message` in place of
`delta`, chunks without choices, usage with or after the last choice, no `finish_reason` before
`[DONE]`, `stop` as the reason after tool calls. Any other shape is refused. The format:
https://platform.openai.com/docs/api-reference/chat-streaming
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from groundhook.core.ports import Delta, Finished, Notice, ReasoningDelta, TextDelta, ToolDelta
from groundhook.core.types.turn import Usage

REASONING = ("reasoning_content", "reasoning")  # endpoints name it differently
_THOUGHTS = ("thinking", "reasoning", "thought")  # types of parts of a content


class ReportedError(Exception):
    """An error that the endpoint sent in the place of a chunk; the message is its own."""


def _as_parts(content: Any) -> Any:
    """Return a content as a list of parts; None without one."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [content] if isinstance(content, Mapping) else content


def _as_text(value: Any) -> Any:
    """Return an id as text: some endpoints number the calls."""
    return str(value) if isinstance(value, int) else value


def _as_json(value: Any) -> Any:
    """Return arguments as JSON text: some endpoints send the object itself."""
    if isinstance(value, (Mapping, list)):
        return json.dumps(value, ensure_ascii=False)
    return value


class _Function(BaseModel):
    name: str | None = None
    arguments: Annotated[str | None, BeforeValidator(_as_json)] = None


class _Call(BaseModel):
    index: int | None = None
    id: Annotated[str | None, BeforeValidator(_as_text)] = None
    function: _Function | None = None


class _Delta(BaseModel):
    model_config = ConfigDict(extra="allow")  # each endpoint has another name for reasoning

    content: Annotated[list[dict[str, Any]] | None, BeforeValidator(_as_parts)] = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(BaseModel):
    delta: _Delta | None = None
    message: _Delta | None = None  # of an endpoint that does not stream
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None


class _Progress(BaseModel):
    total: int
    processed: int


class _Chunk(BaseModel):
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    # While the prompt is read, as llama.cpp reports it.
    prompt_progress: _Progress | None = None
    # Of an error without the key `error`, which the SDK reads.
    message: Any = None
    detail: Any = None


class ChunkReader:
    """The state of one answer (`host.llm.streams.EventReader`). `begun`: a token of the answer
    itself has arrived."""

    def __init__(self) -> None:
        self.started = False
        self.begun = False
        self.progress = ""  # of reading the prompt, in words
        self._refused = False
        self._reason = ""
        self._model = ""
        self._usage = Usage()
        self._ids: list[str] = []  # of the tool calls, in their order; "" while a call has none
        self._places: dict[int, int] = {}  # index that the endpoint gives a call → its place
        self._named: set[int] = set()

    @property
    def complete(self) -> bool:
        """Whether the finish_reason has arrived, or the end of the stream after an answer."""
        return bool(self._reason)

    def end(self) -> None:
        """Take note of `[DONE]`: some endpoints send no finish_reason before it."""
        if self.started and not self._reason:
            self._reason = "stop"

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
        if chunk.prompt_progress is not None:
            read, total = chunk.prompt_progress.processed, chunk.prompt_progress.total
            self.progress = f"it has read {read} of {total} tokens of the prompt"
        if chunk.choices is None and (reported := chunk.message or chunk.detail):
            raise ReportedError(reported if isinstance(reported, str) else json.dumps(reported))
        # Only one answer is requested; further choices are ignored.
        for choice in (chunk.choices or [])[:1]:
            for delta in self._read_delta(choice.delta or choice.message or _Delta()):
                self.started = True
                self.begun |= not isinstance(delta, ReasoningDelta)
                yield delta
            if choice.finish_reason == "error":
                raise ReportedError("it failed before the end of the answer (finish_reason error)")
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
        for part in delta.content or ():
            if part.get("type") == "refusal" and isinstance(said := part.get("refusal"), str):
                yield from self._read_refusal(said)
            else:
                yield from _read_part(part)
        if delta.refusal:
            yield from self._read_refusal(delta.refusal)
        for call in delta.tool_calls or ():
            yield self._read_call(call)

    def _read_refusal(self, said: str) -> Iterator[Delta]:
        """Yield the text of a refusal, which is the answer, with a warning before it."""
        if said and not self._refused:
            self._refused = True
            yield Notice("answer_refused", "the model refused to answer; the answer has its words")
        if said:
            yield TextDelta(said)

    def _read_call(self, call: _Call) -> ToolDelta:
        id, function = call.id or "", call.function or _Function()
        index = self._place(call.index, named=bool(function.name), id=id)
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

    def _place(self, index: int | None, *, named: bool, id: str) -> int:
        """Return the place of the call that a piece belongs to. A new id begins a new call; so does
        a new index, which need not be the next number, unless the piece has no id and no name. A
        piece without an id and an index continues the last call, unless both have a name."""
        if id and id in self._ids:
            return self._ids.index(id)
        last, new = max(0, len(self._ids) - 1), len(self._ids)
        if index is None:
            return new if id or (named and last in self._named) else last
        known = self._places.get(index, new if id or named else last)
        has_another_id = known < new and id and self._ids[known]
        self._places[index] = new if has_another_id else known
        return self._places[index]


def _read_part(part: Mapping[str, Any]) -> Iterator[Delta]:
    """Yield the text of a part of a content, or its thinking; parts of other types have none."""
    kind = part.get("type", "text")
    if kind in _THOUGHTS:
        inner = next((part[name] for name in (kind, "text") if part.get(name)), "")
        pieces = inner if isinstance(inner, list) else [inner]
        made = [each.get("text") if isinstance(each, Mapping) else each for each in pieces]
        if text := "".join(each for each in made if isinstance(each, str)):
            yield ReasoningDelta(text)
    else:
        said = part.get("text")
        if isinstance(said, str) and said:
            yield TextDelta(said)


def _usage(given: _Usage) -> Usage:
    """Return the token count; endpoints may omit the sum."""
    prompt, completion = given.prompt_tokens or 0, given.completion_tokens or 0
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=given.total_tokens or prompt + completion,
    )
