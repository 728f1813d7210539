"""Sources, models, documents and rerankers that a cassette stands in for: they play what is
recorded, or ask the real one and keep what it said.

A real one's errors are recorded as well, and so is a call that was cancelled: it is played as one
that never answers.
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
    Found,
    Handler,
    ModelCall,
    Ranked,
    Reranker,
    Scope,
    TextDelta,
    ToolDelta,
)
from groundhook.host.core.settings import RerankSettings
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
    """A cassette, and the moment that a test has fixed instead of the cassette's own."""

    cassette: Cassette
    moment: str = ""

    async def ask(
        self, call: str, request: Mapping[str, Any], real: Callable[[], Awaitable[Answer]]
    ) -> Answer:
        """The answer to a call that answers at once. Raises what the real one raised;
        NotRecorded."""
        asked = self.request(request)
        if not self.cassette.recording:
            return await played(self.cassette.play(call, asked))
        try:
            answer = await real()
        except HostError as exc:
            self.cassette.keep(call, asked, failure(exc))
            raise
        except anyio.get_cancelled_exc_class():
            self.cassette.keep(call, asked, {"cancelled": True})
            raise
        self.cassette.keep(call, asked, answer)
        return answer

    def request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What a call is known by: nothing that was not said."""
        said = {key: value for key, value in request.items() if value not in (None, {}, [], ())}
        return {**said, "now": self.moment} if self.moment else said


async def played(answer: Answer) -> Answer:
    """Behave as the recorded answer says: raise its error, never answer, or give it."""
    await anyio.lowlevel.checkpoint()
    if answer.get("cancelled"):
        await anyio.sleep_forever()
    if "error" in answer:
        raise error_of(answer["error"])
    return answer


def failure(exc: HostError) -> Answer:
    said = {"code": exc.code, "message": exc.message, "hint": exc.hint}
    return {"error": {key: value for key, value in said.items() if value}}


def error_of(recorded: Mapping[str, str]) -> HostError:
    """An error as it was raised when it was recorded."""
    kind = _ERRORS.get(recorded.get("code", ""), errors.SourceError)
    error = kind.__new__(kind)  # some have arguments of their own; what was said is in the message
    HostError.__init__(error, recorded.get("message", ""), hint=recorded.get("hint", ""))
    return error


# ----------------------------------------------------------------------------------------- searches


@dataclass(frozen=True)
class TapedSource:
    """A `Handler` whose answers are recorded."""

    tape: Tape
    type: SearchType
    real: Handler

    async def search(self, request: SearchRequest, scope: Scope, /) -> Found:
        async def real() -> Answer:
            return recorded_found(await self.real.search(request, scope))

        said = request.model_dump(mode="json", exclude={"type"}, exclude_none=True)
        identity = scope.identity.model_dump(exclude_defaults=True)
        return found_of(
            await self.tape.ask(f"{self.type} search", {**said, "identity": identity}, real)
        )


@dataclass(frozen=True)
class TapedDocuments:
    """`Documents` whose answers are recorded."""

    tape: Tape
    real: Documents

    async def fetch_document(self, collection: str, document_id: str, scope: Scope, /) -> Found:
        async def real() -> Answer:
            return recorded_found(await self.real.fetch_document(collection, document_id, scope))

        said = {
            "collection": collection,
            "document_id": document_id,
            "identity": scope.identity.model_dump(exclude_defaults=True),
        }
        return found_of(await self.tape.ask("document", said, real))


def recorded_found(found: Found) -> Answer:
    """What a source found, as JSON from which `found_of` makes it again."""
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


def found_of(answer: Answer) -> Found:
    nodes = answer.get("graph_nodes")
    return Found(
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
    """A `Reranker` whose judgements are recorded; items are known by their citation ids."""

    tape: Tape
    name: str
    real: Reranker

    async def rerank(
        self, query: str, items: Sequence[Item], options: RerankSettings, scope: Scope, /
    ) -> Sequence[Ranked]:
        async def real() -> Answer:
            ranked = await self.real.rerank(query, items, options, scope)
            return {"ranked": [{"index": each.index, "score": each.score} for each in ranked]}

        said = {
            "query": query,
            "items": [item.citation_id for item in items],
            "options": options.model_dump(mode="json", exclude_defaults=True),
        }
        answer = await self.tape.ask(f"{self.name} reranking", said, real)
        return [Ranked(each["index"], each["score"]) for each in answer["ranked"]]


# ------------------------------------------------------------------------------------------- models


@dataclass(frozen=True)
class TapedModel:
    """A `Connector` whose answers are recorded; `real` makes the one that is asked."""

    tape: Tape
    id: str
    real: Callable[[], Connector]

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        asked = self.tape.request(model_call(self.id, call))
        if not self.tape.cassette.recording:
            async with aclosing(self._play(asked)) as deltas:
                yield deltas
            return
        heard, connector = _Heard(), self.real()
        try:
            async with connector.stream(call) as said, aclosing(heard.listen(said)) as listened:
                yield listened
        except HostError as exc:
            if not heard.began:
                heard.ended = failure(exc)
            raise
        finally:
            self.tape.cassette.keep(
                "model call", asked, {**_recorded_deltas(heard.deltas), **heard.ended}
            )

    async def _play(self, asked: Mapping[str, Any]) -> AsyncGenerator[Delta]:
        answer = self.tape.cassette.play("model call", asked)
        text = joined(answer.get("text", ""))
        for start in range(0, len(text), PIECE):
            yield TextDelta(text[start : start + PIECE])
            await anyio.lowlevel.checkpoint()
        for index, tool in enumerate(answer.get("tool_calls", ())):
            yield ToolDelta(index, id=tool["id"], name=tool["name"], arguments=tool["arguments"])
        await played(answer)
        if "finished" in answer:
            end = answer["finished"]
            yield Finished(
                end["reason"], end.get("model", ""), Usage.model_validate(end.get("usage", {}))
            )


@dataclass
class _Heard:
    """What a model has said so far, and how it ended; one that was left before its end was
    cancelled."""

    deltas: list[Delta] = field(default_factory=list)
    ended: Answer = field(default_factory=lambda: {"cancelled": True})
    began: bool = False

    async def listen(self, deltas: AsyncIterator[Delta]) -> AsyncGenerator[Delta]:
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
    """The messages as they are sent, and the names of the tools: their descriptions are no part of
    the question."""
    return {
        "connector": connector,
        "messages": [message.wire() for message in call.messages],
        "tools": [tool["function"]["name"] for tool in call.tools],
        "temperature": call.temperature,
        "max_tokens": call.max_tokens,
        "max_completion_tokens": call.max_completion_tokens,
    }


def _recorded_deltas(deltas: Sequence[Delta]) -> Answer:
    """What a model said, joined."""
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
            said = {"reason": delta.finish_reason, "model": delta.model, "usage": usage}
            answer["finished"] = {key: value for key, value in said.items() if value}
    return answer


def _tool(pieces: Sequence[ToolDelta]) -> dict[str, str]:
    return {
        "id": next((piece.id for piece in pieces if piece.id), ""),
        "name": next((piece.name for piece in pieces if piece.name), ""),
        "arguments": "".join(piece.arguments for piece in pieces),
    }
