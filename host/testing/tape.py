"""Sources, models, documents and rerankers on a cassette: they play recorded answers, or call the
real one and record its answer.

Errors are recorded as well. A cancelled call is also recorded: it is played as one that never ends.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel

from groundhook.host.core import errors
from groundhook.host.core.errors import HostError
from groundhook.host.core.ports import (
    Connector,
    Delta,
    Documents,
    Finished,
    Handler,
    ModelCall,
    Ranked,
    Reranker,
    Scope,
    SourceResult,
    TextDelta,
    ToolDelta,
)
from groundhook.host.core.settings import RerankSettings
from groundhook.host.core.types.sampling import Sampling
from groundhook.host.core.types.search import GraphNode, Item, SearchRequest, SearchType
from groundhook.host.core.types.turn import Usage
from groundhook.host.testing.cassette import Cassette, joined, lines

PIECE = 8  # characters: smaller than a citation marker, so that markers are split across deltas

Answer = dict[str, Any]


def _kinds(of: type[HostError]) -> dict[str, type[HostError]]:
    kinds = {of.code: of}
    for inner in of.__subclasses__():
        kinds |= _kinds(inner)
    return kinds


_ERRORS = {kind.code: kind for kind in reversed(_kinds(errors.HostError).values())}


@dataclass(frozen=True)
class Tape:
    """A cassette, and the time of a test that replaces the cassette's."""

    cassette: Cassette
    moment: str = ""

    async def ask(
        self, call: str, request: Mapping[str, Any], real: Callable[[], Awaitable[Answer]]
    ) -> Answer:
        """Return the recorded or real answer to a call. Raises the error of the real call, or
        NotRecorded."""
        key = self.request(request)
        if not self.cassette.recording:
            return await replay(self.cassette.play(call, key))
        try:
            answer = await real()
        except HostError as exc:
            self.cassette.keep(call, key, failure(exc))
            raise
        except anyio.get_cancelled_exc_class():
            self.cassette.keep(call, key, {"cancelled": True})
            raise
        self.cassette.keep(call, key, answer)
        return answer

    def request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request under which a call is recorded: only the keys that are set."""
        fields = {key: value for key, value in request.items() if value not in (None, {}, [], ())}
        return {**fields, "now": self.moment} if self.moment else fields


async def replay(answer: Answer) -> Answer:
    """Return a recorded answer, raise its error, or never return if the call was cancelled."""
    # As a real call, it lets other tasks run.
    await anyio.lowlevel.checkpoint()
    if answer.get("cancelled"):
        await anyio.sleep_forever()
    if "error" in answer:
        raise error_of(answer["error"])
    return answer


def failure(exc: HostError) -> Answer:
    """Return an error in the form in which it is recorded."""
    fields = {"code": exc.code, "message": exc.message, "hint": exc.hint}
    return {"error": {key: value for key, value in fields.items() if value}}


def error_of(recorded: Mapping[str, str]) -> HostError:
    """Return the error of a recording."""
    kind = _ERRORS.get(recorded.get("code", ""), errors.SourceError)
    # some have arguments of their own; the message is complete without them
    error = kind.__new__(kind)
    HostError.__init__(error, recorded.get("message", ""), hint=recorded.get("hint", ""))
    return error


# ----------------------------------------------------------------------------------------- searches


@dataclass(frozen=True)
class TapedSource:
    """A `Handler` whose answers are recorded."""

    tape: Tape
    type: SearchType
    real: Handler

    async def search(self, request: SearchRequest, scope: Scope, /) -> SourceResult:
        async def real() -> Answer:
            return recorded_found(await self.real.search(request, scope))

        fields = request.model_dump(mode="json", exclude={"type"}, exclude_none=True)
        identity = scope.identity.model_dump(exclude_defaults=True)
        return found_of(
            await self.tape.ask(f"{self.type} search", {**fields, "identity": identity}, real)
        )


@dataclass(frozen=True)
class TapedDocuments:
    """`Documents` whose answers are recorded."""

    tape: Tape
    real: Documents

    async def fetch_document(
        self, collection: str, document_id: str, scope: Scope, /
    ) -> SourceResult:
        async def real() -> Answer:
            return recorded_found(await self.real.fetch_document(collection, document_id, scope))

        request = {
            "collection": collection,
            "document_id": document_id,
            "identity": scope.identity.model_dump(exclude_defaults=True),
        }
        return found_of(await self.tape.ask("document", request, real))


def recorded_found(found: SourceResult) -> Answer:
    """Return the result of a source in the form in which it is recorded."""
    answer: Answer = {"items": [_recorded_item(item) for item in found.items]}
    if found.total is not None:
        answer["total"] = found.total
    if found.graph_nodes is not None:
        answer["graph_nodes"] = [
            node.model_dump(mode="json", exclude_defaults=True) for node in found.graph_nodes
        ]
    if found.dsl is not None:
        answer["dsl"] = found.dsl
    return answer


def found_of(answer: Answer) -> SourceResult:
    """Return the result of a recording that `recorded_found` made."""
    nodes = answer.get("graph_nodes")
    return SourceResult(
        items=tuple(_item(raw) for raw in answer["items"]),
        total=answer.get("total"),
        graph_nodes=None
        if nodes is None
        else tuple(GraphNode.model_validate(node) for node in nodes),
        dsl=answer.get("dsl"),
    )


def _recorded_item(item: Item) -> Answer:
    raw = {"key": item.key, **item.model_dump(mode="json", exclude_defaults=True)}
    return {key: lines(value) if key == "content" else value for key, value in raw.items()}


def _item(raw: Mapping[str, Any]) -> Item:
    return Item.model_validate({**raw, "content": joined(raw.get("content", ""))})


# ---------------------------------------------------------------------------------------- rerankers


@dataclass(frozen=True)
class TapedReranker:
    """A `Reranker` whose scores are recorded; a recording has the citation ids of the items."""

    tape: Tape
    name: str
    real: Reranker

    async def rerank(
        self, query: str, items: Sequence[Item], options: RerankSettings, scope: Scope, /
    ) -> Sequence[Ranked]:
        async def real() -> Answer:
            ranked = await self.real.rerank(query, items, options, scope)
            return {"ranked": [{"index": each.index, "score": each.score} for each in ranked]}

        request = _reranking(query, items, options)
        answer = await self.tape.ask(f"{self.name} reranking", request, real)
        return [Ranked(each["index"], each["score"]) for each in answer["ranked"]]


@dataclass(frozen=True)
class OwnReranker:
    """A `Reranker` that is an assistant of the app: it runs in the test, and what it calls is
    recorded. Scores that a cassette has are played."""

    recorded: TapedReranker

    async def rerank(
        self, query: str, items: Sequence[Item], options: RerankSettings, scope: Scope, /
    ) -> Sequence[Ranked]:
        tape, name = self.recorded.tape, f"{self.recorded.name} reranking"
        request = tape.request(_reranking(query, items, options))
        reranker = self.recorded if tape.cassette.has(name, request) else self.recorded.real
        return await reranker.rerank(query, items, options, scope)


def _reranking(query: str, items: Sequence[Item], options: RerankSettings) -> dict[str, Any]:
    return {
        "query": query,
        "items": [item.citation_id for item in items],
        "options": options.model_dump(mode="json", exclude_defaults=True),
    }


# ------------------------------------------------------------------------------------------- models


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
                "model call", request, {**_recorded_deltas(recorder.deltas), **recorder.ended}
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
    ended: Answer = field(default_factory=lambda: {"cancelled": True})
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


def _recorded_deltas(deltas: Sequence[Delta]) -> Answer:
    """Return the deltas of an answer, joined."""
    answer: Answer = {}
    if text := "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)):
        answer["text"] = lines(text)
    tools = sorted(
        (delta for delta in deltas if isinstance(delta, ToolDelta)), key=lambda delta: delta.index
    )
    if tools:
        answer["tool_calls"] = [
            _tool(list(pieces))
            for _, pieces in itertools.groupby(tools, key=lambda delta: delta.index)
        ]
    for delta in deltas:
        if isinstance(delta, Finished):
            usage = delta.usage.model_dump(exclude_defaults=True)
            end = {"reason": delta.finish_reason, "model": delta.model, "usage": usage}
            answer["finished"] = {key: value for key, value in end.items() if value}
    return answer


def _tool(pieces: Sequence[ToolDelta]) -> dict[str, str]:
    return {
        "id": next((piece.id for piece in pieces if piece.id), ""),
        "name": next((piece.name for piece in pieces if piece.name), ""),
        "arguments": "".join(piece.arguments for piece in pieces),
    }
