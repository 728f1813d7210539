"""The cost of reranking and MCP calls apart from the services: the pool with an immediate reranker,
a local endpoint, a delegated step, and a tool over stdio compared with the bare SDK.

    make bench NAME=delegation

Prints JSON lines {"figure", "value", "unit", "floor", "floor_is", "ratio"} and nothing else on
standard output.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client, StdioServerParameters

from bench.figures import figure
from groundhook import Host, open_host
from groundhook.core.ports import Ranked, Scope
from groundhook.core.registry import Registry
from groundhook.core.settings import (
    RerankSettings,
    SearchSettings,
    UsesSettings,
    WeightSettings,
)
from groundhook.core.types.search import Item, SearchRequest, SearchResult
from groundhook.core.types.turn import Identity
from groundhook.host.app.plugins import Plugin, Plugins
from groundhook.host.search.merge import apply_ranking, cut, pool
from groundhook.host.testing.canned import CannedSource, canned_item
from groundhook.rerankers.model import ModelReranker, rerank_providers
from groundhook.rerankers.provider_contract import ProviderType
from tests.loopback.server import Json, Loopback, serving

ITEMS = 100
ROUNDS = 300
CALLS = 2000  # of the tool, in turns of both ways, so that a busy machine is busy for both
BATCH = 50
ECHO = Path(__file__).with_name("echo_server.py")
JUDGE = """function Next(ctx, payload) {
  const request = JSON.parse(payload.messages[payload.messages.length - 1].content);
  return { data: { order: request.items.map((item) => item.citation_id).reverse() } };
}"""
SCORES = [(index, (index * 37 % ITEMS) / ITEMS) for index in range(ITEMS)]


class Ready:
    """A provider that has its judgement ready."""

    async def judge(
        self, model: str, query: str, texts: Sequence[str], timeout_s: float, /
    ) -> list[tuple[int, float]]:
        return SCORES


def found() -> list[Item]:
    text = "A passage of some length that answers a part of the question. " * 12
    # The weight of automatic searches, as the searcher sets it.
    given = {"content": text, "weight": 0.6}
    return [
        canned_item(f"k{n}", score=1 - n / 200, citation_id=f"#ref:{n:04x}", **given)
        for n in range(ITEMS)
    ]


def scope() -> Scope:
    async def warn(code: str, message: str) -> None: ...

    settings = SearchSettings()
    return Scope(
        identity=Identity(),
        assistant_id="a",
        settings=settings,
        uses=UsesSettings(),
        now=lambda: datetime.now(UTC),
        warn=warn,
    )


async def p50_ms(work: Callable[[], Awaitable[Any]], rounds: int = ROUNDS) -> float:
    await work()
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        await work()
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


# ---------------------------------------------------------------------------------------- reranking


async def reranking(folder: Path) -> None:
    """The host's part in reranking: merging, the reranker's own work on texts and answers, scores,
    order, cut."""
    files = {
        "kb/docs.kb.yao": "{}",
        "assistants/judge/package.yao": "{}",
        "assistants/judge/index.ts": JUDGE,
    }
    write(folder, files)
    items = found()
    results = [SearchResult(type="kb", query="q", source="auto", items=tuple(items))]
    weights = WeightSettings()

    async def bare() -> None:
        sorted(items, key=lambda item: -item.score * item.weight)

    async def pure() -> None:
        cut(apply_ranking(pool(results, weights), [Ranked(*each) for each in SCORES]), 10)

    ready: Registry[ProviderType] = Registry("rerank provider")
    ready.add(
        "endpoint",
        ProviderType(variables=(), host="", model="m", max_chars=8000, make=lambda _: Ready()),
    )
    model = ModelReranker({}, ready, lambda _: None)
    options = RerankSettings(provider="endpoint", host="http://127.0.0.1")

    def plug_in(registries: Plugins) -> None:
        registries.rerankers.add("ready", lambda _: model)

    search = {"rerank": {"provider": "endpoint", "host": "http://127.0.0.1"}}
    write(
        folder,
        {
            "agent/search.yao": json.dumps(search),
            "assistants/a/package.yao": '{"uses": {"rerank": "ready"}, "kb": ["docs"]}',
        },
    )
    async with open_host(
        folder,
        environment={},
        plugins=[Plugin(plug_in, requires=1)],
        sources={"kb": CannedSource({"*": items})},
    ) as host:
        floor, floor_is = await p50_ms(bare), f"{ITEMS} items sorted by their scores"
        figure(
            f"pool of {ITEMS} items: merged, judged, ordered and cut, p50",
            await p50_ms(pure),
            "ms",
            floor,
            floor_is,
        )

        async def whole() -> None:
            merged = pool(results, weights)
            cut(apply_ranking(merged, await model.rerank("q", merged.items, options, scope())), 10)

        figure(
            f"rerank of {ITEMS} items, the model excluded, p50",
            await p50_ms(whole),
            "ms",
            floor,
            floor_is,
        )
        await searches(host)


async def searches(host: Host) -> None:
    """The same through a search: with its events, citations and trace."""

    async def search(**rerank: Any) -> None:
        request = SearchRequest.model_validate(
            {"type": "kb", "query": "q", "collections": ["docs"], "limit": ITEMS, **rerank}
        )
        result = await host.search(request, assistant="a")
        if result.error:
            raise SystemExit(result.error)

    plain = await p50_ms(search)
    reranked = await p50_ms(lambda: search(rerank={"top_k": 10}))
    figure(
        f"search that finds {ITEMS} items and has them judged at once, p50",
        reranked,
        "ms",
        plain,
        "the search alone",
    )
    judged = await p50_ms(lambda: search(rerank={"agent": "judge", "top_k": 10}), 50)
    figure("  judged by an assistant with a hook, p50", judged, "ms", plain, "the search alone")


async def endpoint() -> None:
    """An endpoint on this machine, compared with the bare client and the same body."""
    with serving() as server:
        answer = {
            "results": [{"index": index, "relevance_score": score} for index, score in SCORES]
        }
        server.on("/rerank", Json(answer))
        items = found()
        closing: list[Callable[[], Awaitable[None]]] = []
        model = ModelReranker({}, rerank_providers(), closing.append)
        options = RerankSettings(provider="endpoint", host=server.url, max_items=ITEMS)
        took = await p50_ms(lambda: model.rerank("q", items, options, scope()))
        floor = await bare_post(server, json.loads(server.requests[-1].body))
        figure(
            f"rerank of {ITEMS} items by an endpoint on this machine, p50",
            took,
            "ms",
            floor,
            "bare HTTP client",
        )
        for close in closing:
            await close()


async def bare_post(server: Loopback, body: Any) -> float:
    async with httpx2.AsyncClient() as client:

        async def post() -> None:
            (await client.post(f"{server.url}/rerank", json=body)).json()

        return await p50_ms(post)


# ---------------------------------------------------------------------------------------------- MCP


async def tools(folder: Path) -> None:
    """The same tool of the same program through the host's servers and through the SDK, in
    turns."""
    write(
        folder,
        {"agent/agent.yml": "connector: extractive\n", "mcps/echo.mcp.yao": json.dumps(command())},
    )
    ours: list[float] = []
    bare: list[float] = []
    parameters = StdioServerParameters(command=sys.executable, args=[str(ECHO)])
    async with open_host(folder, environment={}) as host, Client(parameters) as client:
        servers = host.runtime.servers

        async def through_host() -> None:
            await servers.ask(
                "echo", "tools/call", {"name": "echo", "arguments": {"text": "hello"}}
            )

        async def through_sdk() -> None:
            await client.call_tool("echo", {"text": "hello"})

        await through_host()
        await through_sdk()
        for _ in range(CALLS // BATCH):
            for work, took in ((through_host, ours), (through_sdk, bare)):
                for _ in range(BATCH):
                    began = time.perf_counter()
                    await work()
                    took.append((time.perf_counter() - began) * 1000)
    floor = statistics.median(bare)
    figure("MCP call over stdio: p50", statistics.median(ours), "ms", floor, "the bare SDK")
    figure("MCP call over stdio: p95", p95(ours), "ms", p95(bare), "the bare SDK")


def command() -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(ECHO)]}


def p95(took: list[float]) -> float:
    return statistics.quantiles(took, n=20)[-1]


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


async def main() -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        await reranking(Path(one))
        await endpoint()
        await tools(Path(other))


if __name__ == "__main__":
    anyio.run(main)
