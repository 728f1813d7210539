"""Language models on a cassette: a played answer arrives in pieces, as a real one does."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio.lowlevel

from groundhook.core.errors import HostError
from groundhook.core.ports import Connector, Delta, Finished, ModelCall, TextDelta, ToolDelta
from groundhook.core.types.sampling import Sampling
from groundhook.core.types.turn import Usage
from groundhook.host.testing.cassette import joined, lines
from groundhook.host.testing.tape import Tape, TapedAnswer, failure, replay

PIECE = 8  # characters: smaller than a citation marker, so that markers are split across deltas


@dataclass(frozen=True)
class TapedModel:
    """A `Connector` whose answers are recorded; `real` makes the real one."""

    tape: Tape
    id: str
    real: Callable[[], Connector]

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        request = self.tape.request(model_call(self.id, call))
        if not self.tape.cassette.recording:
            async with aclosing(self._play(request)) as deltas:
                yield deltas
            return
        recorder, connector = _DeltaRecorder(), self.real()
        try:
            async with connector.stream(call) as real, aclosing(recorder.record(real)) as kept:
                yield kept
        except HostError as exc:
            if not recorder.began:
                recorder.ended = failure(exc)
            raise
        finally:
            self.tape.cassette.keep(
                "model call", request, {**_join_deltas(recorder.deltas), **recorder.ended}
            )

    def is_recorded(self, call: ModelCall) -> bool:
        """Return whether the answer to a call is on the cassette, or will be."""
        request = self.tape.request(model_call(self.id, call))
        return self.tape.cassette.recording or self.tape.cassette.has("model call", request)

    async def _play(self, request: Mapping[str, Any]) -> AsyncGenerator[Delta]:
        answer = self.tape.cassette.play("model call", request)
        text = joined(answer.get("text", ""))
        for start in range(0, len(text), PIECE):
            yield TextDelta(text[start : start + PIECE])
            await anyio.lowlevel.checkpoint()
        for index, tool in enumerate(answer.get("tool_calls", ())):
            yield ToolDelta(index, id=tool["id"], name=tool["name"], arguments=tool["arguments"])
        await replay(answer)
        if "finished" in answer:
            end = answer["finished"]
            yield Finished(
                end["reason"], end.get("model", ""), Usage.model_validate(end.get("usage", {}))
            )


@dataclass
class _DeltaRecorder:
    """The deltas of an answer and its end; an answer that was left early is cancelled."""

    deltas: list[Delta] = field(default_factory=list)
    ended: TapedAnswer = field(default_factory=lambda: {"cancelled": True})
    began: bool = False

    async def record(self, deltas: AsyncIterator[Delta]) -> AsyncGenerator[Delta]:
        self.began = True
        try:
            async for delta in deltas:
                self.deltas.append(delta)
                yield delta
            self.ended = {}
        except HostError as exc:
            self.ended = failure(exc)
            raise


def model_call(connector: str, call: ModelCall) -> dict[str, Any]:
    """Return a model call in the form in which it is recorded: the messages as sent, and the names
    of the tools. A change of their descriptions needs no new recording."""
    return {
        "connector": connector,
        "messages": [message.wire() for message in call.messages],
        "tools": [tool["function"]["name"] for tool in call.tools],
        "temperature": call.temperature,
        "max_tokens": call.max_tokens,
        "max_completion_tokens": call.max_completion_tokens,
        **call.sampling.over(Sampling()),
        **({"tool_choice": call.tool_choice} if call.tool_choice is not None else {}),
        **({"user": call.user} if call.user else {}),
    }


def _join_deltas(deltas: Sequence[Delta]) -> TapedAnswer:
    """Return the deltas of an answer, joined."""
    answer: TapedAnswer = {}
    if text := "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)):
        answer["text"] = lines(text)
    tools = sorted(
        (delta for delta in deltas if isinstance(delta, ToolDelta)), key=lambda delta: delta.index
    )
    if tools:
        answer["tool_calls"] = [
            _join_call(list(pieces))
            for _, pieces in itertools.groupby(tools, key=lambda delta: delta.index)
        ]
    for delta in deltas:
        if isinstance(delta, Finished):
            usage = delta.usage.model_dump(exclude_defaults=True)
            end = {"reason": delta.finish_reason, "model": delta.model, "usage": usage}
            answer["finished"] = {key: value for key, value in end.items() if value}
    return answer


def _join_call(pieces: Sequence[ToolDelta]) -> dict[str, str]:
    return {
        "id": next((piece.id for piece in pieces if piece.id), ""),
        "name": next((piece.name for piece in pieces if piece.name), ""),
        "arguments": "".join(piece.arguments for piece in pieces),
    }
