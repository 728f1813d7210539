"""Services that answer with an error of half a gigabyte: what is read of it, by the client of each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial

import pytest

from groundhook.core.app_settings import EmbedderSettings, QdrantSettings
from groundhook.core.errors import HostError
from groundhook.core.ports import ModelCall
from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.core.types.connector_spec import ConnectorSpec
from groundhook.core.types.turn import Message
from groundhook.handlers.kb.embed import Closeable
from groundhook.handlers.kb.server.connection import ServerConnection
from groundhook.host.llm.anthropic import AnthropicConnector
from groundhook.host.llm.openai import OpenAIConnector
from tests.kb.embedders.conftest import ENVIRONMENT, factories
from tests.keys import key
from tests.loopback.server import Fixed, Flood, Loopback, Received, Reply, running
from tests.parts.openai_asking import spec
from tests.parts.web_asking import Asking
from tests.rerankers.conftest import KEYS, items, options_of, scope_with
from tests.rerankers.model_reranker import open_model_reranker

CALL = ModelCall(messages=[Message(role="user", content="Hello?")])
# Bytes that the buffers of two sockets take before anybody reads.
BUFFERED = 16_000_000


class Alike(Loopback):
    """A server that answers every request in the same way."""

    given: Fixed = Flood(500)

    def answer(self, received: Received) -> Fixed:
        return self.given


@pytest.fixture
def server() -> Iterator[Alike]:
    with running(Alike()) as server:
        yield server


async def openai(server: Alike) -> None:
    async with OpenAIConnector(spec(server)).stream(CALL) as deltas:
        _ = [delta async for delta in deltas]


async def anthropic(server: Alike) -> None:
    options = {"model": "claude-x", "host": server.url, "key": key("ant"), "retries": 0}
    told = {"id": "claude", "type": "anthropic", "options": options}
    connector = AnthropicConnector(ConnectorSpec.model_validate(told))
    async with connector.stream(CALL) as deltas:
        _ = [delta async for delta in deltas]


async def rerank(name: str, server: Alike) -> None:
    async with open_model_reranker(KEYS) as reranker:
        options = options_of(name, server, timeout_ms=60_000)
        await reranker.rerank("question", items(2), options, scope_with())


async def embed(name: str, server: Alike) -> None:
    given = {"host": server.url, "retries": 0, "key": ENVIRONMENT["OPENAI_API_KEY"]}
    settings = EmbedderSettings.model_validate(given)
    model = "text-embedding-3-small" if name == "openai" else "voyage-3.5"
    made = factories({name: settings}, ENVIRONMENT).get(name)
    embedder = made(EmbeddingSpec(provider=name, model=model))
    try:
        await embedder.embed_query("where?")
    finally:
        if isinstance(embedder, Closeable):
            await embedder.aclose()


async def search(name: str, server: Alike) -> None:
    await Asking(server, name).search()


async def qdrant(server: Alike) -> None:
    connection = ServerConnection(QdrantSettings(url=server.url, timeout_s=60, retries=0))
    try:
        await connection.read(lambda client: client.get_collections())
    finally:
        await connection.aclose()


SERVICES: Mapping[str, Callable[[Alike], Awaitable[None]]] = {
    "openai": openai,
    "anthropic": anthropic,
    "qdrant": qdrant,
    **{f"rerank {name}": partial(rerank, name) for name in ("cohere", "voyage", "endpoint")},
    **{f"embed {name}": partial(embed, name) for name in ("openai", "voyage")},
    **{f"search {name}": partial(search, name) for name in ("tavily", "serper")},
}


@pytest.mark.parametrize(
    ("service", "status"), [*((name, 500) for name in SERVICES), ("openai", 302)]
)
async def test_an_error_of_half_a_gigabyte_is_an_error_of_which_the_start_is_read(
    server: Alike, service: str, status: int
) -> None:
    server.given = Flood(status)
    with pytest.raises(HostError, match=str(status)):
        await SERVICES[service](server)
    assert server.requests
    for request in server.requests:
        assert request.left.wait(60)
        assert request.flooded < BUFFERED


@pytest.mark.parametrize("service", ["openai", "anthropic"])
async def test_of_an_error_that_is_compressed_unasked_nothing_is_read(
    server: Alike, service: str
) -> None:
    server.given = Reply(b"\x1f\x8b no gzip", 400, headers={"content-encoding": "gzip"})
    with pytest.raises(HostError, match="400"):
        await SERVICES[service](server)
    assert [request.headers["accept-encoding"] for request in server.requests] == ["identity"]


async def test_of_a_list_of_models_of_half_a_gigabyte_the_start_is_read(server: Alike) -> None:
    server.given = Flood(200)
    connector = OpenAIConnector(spec(server))
    await connector.learn_window()
    assert connector.window == 0
    (request,) = server.requests
    assert request.left.wait(60)
    assert request.flooded < BUFFERED
