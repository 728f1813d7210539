"""One rig per reranker: it sets the reranker's next answer and calls it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from groundhook.core.ports import Ranked, Reranker, Scope
from groundhook.core.settings import RerankSettings, SearchSettings, UsesSettings
from groundhook.core.tool_ports import ModelReply
from groundhook.core.types.events import StreamEnd
from groundhook.core.types.search import Item
from groundhook.core.types.turn import Identity, Message
from groundhook.core.types.uses import JsonReply
from groundhook.host.turn.delegation import DelegateTargets, TurnDelegates
from groundhook.rerankers.delegated import DelegatedReranker
from tests.keys import key
from tests.loopback.server import Json, Loopback, Reply, serving
from tests.rerankers.model_reranker import open_model_reranker

KEYS = {"COHERE_API_KEY": key("cohere"), "VOYAGE_API_KEY": key("voyage"), "OWN_KEY": key("own")}
PROVIDERS = ("cohere", "voyage", "endpoint", "tei")
PATHS = {"cohere": "/v2/rerank", "voyage": "/rerank", "endpoint": "/v1/rerank", "tei": "/rerank"}
Judged = Sequence[tuple[int, Any]]  # position in what was sent, and the score


def items(count: int, **fields: Any) -> list[Item]:
    """Items of falling score; the markers are `#ref:i0`, `#ref:i1`, …"""
    return [
        Item(
            **{
                "type": "kb",
                "citation_id": f"#ref:i{n}",
                "title": f"t{n}",
                "content": f"content {n}",
                "score": round(1 - n / (2 * count), 6),
                "key": str(n),
                **fields,
            }
        )
        for n in range(count)
    ]


@dataclass
class Servers:
    """`core.ports.ToolServers` with one server `judge`, whose tool returns
    `answer(arguments)`."""

    answer: Callable[[Mapping[str, Any]], Any]
    requests: list[Mapping[str, Any]] = field(default_factory=list)

    def start_ms(self, server: str, /) -> int:
        return 0

    async def ask(self, server: str, method: str, params: Mapping[str, Any], /) -> dict[str, Any]:
        if method == "tools/list":
            return {"tools": [{"name": "rerank", "inputSchema": {}}]}
        self.requests.append(params["arguments"])
        answer = self.answer(params["arguments"])
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return {"content": [{"type": "text", "text": text}]}


@dataclass
class Rig:
    """A reranker and its judge: `says` sets the judge's next scores by position, `raw` its next
    answer as it is, `sent` returns the texts of the last call."""

    name: str
    reranker: Reranker
    options: RerankSettings
    scope: Scope
    says: Callable[[Judged], None]
    raw: Callable[[Any], None]
    sent: Callable[[], list[str]]

    async def rank(self, given: Sequence[Item], **options: Any) -> Sequence[Ranked]:
        return await self.reranker.rerank(
            "question", given, self.options.model_copy(update=options), self.scope
        )


def scope_with(delegates: TurnDelegates | None = None) -> Scope:
    async def warn(code: str, message: str) -> None: ...

    scope = Scope(
        identity=Identity(),
        assistant_id="a",
        settings=SearchSettings(),
        uses=UsesSettings(),
        now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        warn=warn,
    )
    return scope if delegates is None else replace(scope, delegates=delegates)


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    with serving() as server:
        yield server


def body(name: str, judged: Judged) -> Any:
    """A provider's answer in its own shape."""
    if name == "tei":
        return [{"index": index, "score": score} for index, score in judged]
    rows = [{"index": index, "relevance_score": score} for index, score in judged]
    if name == "voyage":
        return {"object": "list", "data": rows, "model": "rerank-2.5", "usage": {"total_tokens": 9}}
    return {"id": "r1", "results": rows, "meta": {}}


def options_of(name: str, loopback: Loopback, **more: Any) -> RerankSettings:
    host = f"{loopback.url}/v1" if name == "endpoint" else loopback.url
    return RerankSettings(
        **{"type": "model", "provider": name, "host": host, "timeout_ms": 20_000, **more}
    )


@asynccontextmanager
async def provider_rig(name: str, loopback: Loopback) -> AsyncIterator[Rig]:
    def raw(answer: Any) -> None:
        loopback.on(PATHS[name], answer if isinstance(answer, Reply) else Json(answer))

    def sent() -> list[str]:
        body = loopback.requests[-1].json
        return list(body["texts"] if name == "tei" else body["documents"])

    async with open_model_reranker(KEYS) as reranker:
        yield Rig(
            name,
            reranker,
            options_of(name, loopback),
            scope_with(),
            lambda judged: raw(body(name, judged)),
            raw,
            sent,
        )


@asynccontextmanager
async def delegated_rig(name: str) -> AsyncIterator[Rig]:
    """A model, an assistant or an MCP tool as `host.turn.delegation` calls it; tests/delegation has
    real ones."""
    next_answer: list[Any] = [None]
    requests: list[Mapping[str, Any]] = []

    def answer(arguments: Mapping[str, Any]) -> Any:
        requests.append(arguments)
        return next_answer[0]

    async def model(
        connector: str, messages: Sequence[Message], reply: JsonReply, max_tokens: int | None
    ) -> ModelReply:
        assert connector == "judge"
        written = json.dumps(answer(json.loads(messages[1].text)))
        return ModelReply(text=written, data=json.loads(written))

    async def assistant(id: str, text: Any, reply: JsonReply) -> tuple[StreamEnd, str]:
        return StreamEnd(content="", data=answer(json.loads(text)), finish_reason="stop"), ""

    targets = DelegateTargets(
        model=model,
        assistant=assistant,
        server=lambda name: name,
        permit=lambda *_: None,
        servers=Servers(answer),
    )
    options = RerankSettings(
        **{
            "type": "mcp" if name == "mcp" else "agent",
            "agent": "connector:judge" if name == "connector" else "judge",
            "mcp": "judge",
            "timeout_ms": 20_000,
        }
    )

    def says(judged: Judged) -> None:
        next_answer[0] = {
            "items": [{"citation_id": f"#ref:i{index}", "score": score} for index, score in judged]
        }

    def raw(answer: Any) -> None:
        next_answer[0] = answer

    def sent() -> list[str]:
        return [entry["content"] for entry in requests[-1]["items"]]

    kind: Any = "mcp" if name == "mcp" else "agent"
    yield Rig(
        name, DelegatedReranker(kind), options, scope_with(TurnDelegates(targets)), says, raw, sent
    )


Open = Callable[[str, Loopback], Awaitable[Rig]]


@pytest.fixture(params=[*PROVIDERS, "agent", "mcp", "connector"])
async def rig(request: pytest.FixtureRequest, loopback: Loopback) -> AsyncIterator[Rig]:
    """Each reranker that calls a model, an assistant or a tool."""
    name = request.param
    async with provider_rig(name, loopback) if name in PROVIDERS else delegated_rig(name) as made:
        yield made
