"""A connector that answers from a script, in order: for tests of assistants, demos and benchmarks.

It records every call and raises for calls that the script has no reply to. An entry of
`options.script` is a text, or an object:

    "Berlin is the capital {ref:0}."
        the text, in small pieces; {ref:0} becomes the marker of the first reference: the sources of
        the prompt, then what the results of tools have to cite
    {"text": "…", "delay_ms": 50, "expect": "Berlin"}
        waits first; the messages of the call must contain the expected text
    {"tool_calls": [{"name": "search", "arguments": {}}]}
        calls tools
    {"error": {"code": "refused", "message": "…", "after": 10}, "text": "…"}
        fails after 10 characters of the text
    {"cut": true, "text": "…"}
        the text, then the stream ends without a finish_reason
    {"text": "…", "times": 0}
        the same for every call from here on (n: for n calls)
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
from pydantic import AliasChoices, Field, ValidationError, field_validator

from groundhook.core.errors import (
    ConfigError,
    ModelContextExceeded,
    ModelError,
    ModelGarbled,
    ModelNotConfigured,
    ModelRefused,
    ModelStalled,
    ModelTruncated,
    ModelUnreachable,
)
from groundhook.core.ports import Delta, Finished, ModelCall, TextDelta, ToolDelta
from groundhook.core.types.base import Value, dotted, validation_problems
from groundhook.core.types.connector_spec import ConnectorSpec
from groundhook.core.types.turn import Usage
from groundhook.host.llm.parts import can_read, notices

PIECE = 6  # characters of a delta: small, so that markers are split across deltas

ERRORS: dict[str, type[ModelError]] = {
    kind.code: kind
    for kind in (
        ModelError,
        ModelNotConfigured,
        ModelUnreachable,
        ModelRefused,
        ModelContextExceeded,
        ModelStalled,
        ModelTruncated,
        ModelGarbled,
    )
}

_REFERENCE = re.compile(r"\{ref:(\d+)\}")


class ScriptedTool(Value):
    """A tool call. `arguments` is an object, or the JSON text to send, valid or not."""

    name: str
    arguments: dict[str, Any] | str = {}
    id: str = ""


class ScriptedFailure(Value):
    """The failure of an answer: `code` is one of `core.errors` with or without `model_`,
    `after` the number of characters before the failure."""

    code: str = "model"
    message: str = "the script has an error here"
    after: int | None = Field(default=None, ge=0, description="none: after the whole text")

    @field_validator("code")
    @classmethod
    def _known(cls, value: str) -> str:
        code = value if value in ERRORS else f"model_{value}"
        if code not in ERRORS:
            raise ValueError(f"must be one of {', '.join(ERRORS)}")
        return code


class _ScriptedReply(Value):
    """One entry of the script."""

    text: str = ""
    tool_calls: tuple[ScriptedTool, ...] = ()
    error: ScriptedFailure | None = None
    cut: bool = Field(default=False, description="End before the answer is complete")
    expect: tuple[str, ...] = Field(
        default=(), description="What the messages of the call must contain"
    )
    delay_ms: int = Field(default=0, ge=0, validation_alias=AliasChoices("delay_ms", "delay"))
    times: int = Field(
        default=1, ge=0, description="How many calls get this reply; 0: all that follow"
    )
    finish_reason: str = ""

    @field_validator("expect", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


class ScriptedConnector:
    """Answers the calls in the order of the script. `calls` has the calls so far."""

    def __init__(self, spec: ConnectorSpec) -> None:
        """Raise ConfigError for a wrong entry, with its place in the script."""
        self.calls: list[ModelCall] = []
        self._name = spec.id
        self._spec = spec
        self._replies = _repeat(
            [_reply(spec, index, entry) for index, entry in enumerate(spec.options.script)]
        )
        self._length = len(spec.options.script)

    def reads(self, part: Mapping[str, Any], /) -> bool:
        """Return whether the connector's file has what a part needs among its capabilities."""
        return can_read(part, self._spec, {})

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        """Stream the next reply. Raises ModelError when the script has no more replies, and when
        the call lacks the expected text."""
        self.calls.append(call)
        reply = next(self._replies, None)
        if reply is None:
            raise ModelError(
                f"scripted connector {self._name!r} got call {len(self.calls)}, but its script has"
                f" {self._length or 'no'} {'reply' if self._length == 1 else 'replies'}",
                hint='add a reply to options.script, or end it with one that has "times": 0',
            )
        self._check(reply, call)
        text = _insert_markers(reply.text, call, self._name)
        async with aclosing(self._deltas(reply, text, call)) as deltas:
            yield deltas

    async def _deltas(
        self, reply: _ScriptedReply, text: str, call: ModelCall
    ) -> AsyncGenerator[Delta]:
        for notice in notices(call.messages, self._name, self.reads):
            yield notice
        if reply.delay_ms:
            await anyio.sleep(reply.delay_ms / 1000)
        failure = reply.error
        shown = text if failure is None or failure.after is None else text[: failure.after]
        for start in range(0, len(shown), PIECE):
            yield TextDelta(shown[start : start + PIECE])
            await anyio.lowlevel.checkpoint()
        if failure is not None:
            raise ERRORS[failure.code](failure.message)
        for delta in _tool_deltas(reply.tool_calls, len(self.calls)):
            yield delta
        if reply.cut:
            raise ModelTruncated(f"the answer of {self._name!r} ended before it was complete")
        reason = reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")
        yield Finished(reason, model="scripted", usage=Usage())

    def _check(self, reply: _ScriptedReply, call: ModelCall) -> None:
        text = "\n".join(message.text for message in call.messages)
        for expected in reply.expect:
            if expected not in text:
                raise ModelError(
                    f"scripted connector {self._name!r}: call {len(self.calls)} was expected to"
                    f" contain {expected!r}",
                    hint=f"the messages were: {_shorten(text)!r}",
                )


def _reply(spec: ConnectorSpec, index: int, entry: Any) -> _ScriptedReply:
    if isinstance(entry, str):
        return _ScriptedReply(text=entry)
    where = f"options.script[{index}]"
    if not isinstance(entry, dict):
        raise ConfigError(
            f"connector {spec.id!r}: {where} must be a text or an object, not {json.dumps(entry)}"
        )
    try:
        return _ScriptedReply.model_validate(entry)
    except ValidationError as exc:
        path, message = validation_problems(exc)[0]
        place = f"{where}.{dotted(path)}" if path else where
        known = ", ".join(sorted(_ScriptedReply.model_fields))
        raise ConfigError(
            f"connector {spec.id!r}: {place}: {message}", hint=f"keys of a reply: {known}"
        ) from exc


def _repeat(replies: Sequence[_ScriptedReply]) -> Iterator[_ScriptedReply]:
    for reply in replies:
        if reply.times == 0:
            while True:
                yield reply
        for _ in range(reply.times):
            yield reply


def _insert_markers(text: str, call: ModelCall, name: str) -> str:
    """Return the text with each {ref:n} replaced by the marker of the call's n-th reference."""

    def marker(match: re.Match[str]) -> str:
        index = int(match[1])
        if index >= len(call.references):
            known = (
                f"{{ref:0}} to {{ref:{len(call.references) - 1}}}" if call.references else "none"
            )
            raise ModelError(
                f"scripted connector {name!r} cites {match[0]}, which this call does not have"
                f" (its references: {known})"
            )
        return call.references[index].citation_id

    return _REFERENCE.sub(marker, text)


def _tool_deltas(calls: Sequence[ScriptedTool], turn: int) -> Iterator[ToolDelta]:
    """Yield each call as a model sends it: id and name first, then its arguments in pieces."""
    for index, call in enumerate(calls):
        yield ToolDelta(index, id=call.id or f"call_{turn}_{index}", name=call.name)
        arguments = (
            call.arguments
            if isinstance(call.arguments, str)
            else json.dumps(call.arguments, ensure_ascii=False)
        )
        for start in range(0, len(arguments), PIECE * 2):
            yield ToolDelta(index, arguments=arguments[start : start + PIECE * 2])


def _shorten(text: str) -> str:
    return text if len(text) <= 300 else text[:299] + "…"
