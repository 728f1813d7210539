"""All embedders behind the port: the local ones, and services simulated by a loopback server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from groundhook.core.app_settings import (
    AppSettings,
    EmbedderSettings,
)
from groundhook.core.ports import Embedder
from groundhook.core.registry import Registry
from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.handlers.kb.embed import Closeable, EmbedderFactory, HashEmbedder
from groundhook.handlers.kb.embedders import providers as services
from groundhook.handlers.kb.embedders.builtin import builtin
from groundhook.host.app.builtins import declared_embedders as app_embedders
from tests.keys import key
from tests.loopback.embeddings import openai_answer, voyage_answer, voyage_in_context
from tests.loopback.server import Loopback, Reads, serving

SERVICES = ("openai", "voyage")
ENVIRONMENT = {"OPENAI_API_KEY": key("openai"), "VOYAGE_API_KEY": key("voyage")}

Makes = Callable[..., Embedder]


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving() as running:
        running.on("/openai/embeddings", Reads(openai_answer))
        running.on("/voyage/embeddings", Reads(voyage_answer))
        running.on("/voyage/contextualizedembeddings", Reads(voyage_in_context))
        yield running


def factories(
    declared: Mapping[str, EmbedderSettings], environment: Mapping[str, str]
) -> Registry[EmbedderFactory]:
    registry: Registry[EmbedderFactory] = Registry("embedding provider")
    registry.add("builtin", builtin)
    registry.add("hash", HashEmbedder)
    app_embedders(AppSettings(embedders=dict(declared)))
    for name in dict.fromkeys([*SERVICES, *declared]):
        settings = declared.get(name, EmbedderSettings())
        registry.add(name, partial(services.service, name, settings, environment))
    return registry


@pytest.fixture
async def makes(server: Loopback) -> AsyncIterator[Makes]:
    """`makes("voyage", retries=0)`: the embedder of a provider, at the loopback server where it is
    a service."""
    made: list[Embedder] = []

    def make(
        provider: str,
        *,
        model: str = "",
        dimensions: int = 0,
        environment: Any = ENVIRONMENT,
        **fields: Any,
    ) -> Embedder:
        if provider == "openai":
            fields = {"key": environment.get("OPENAI_API_KEY", ""), **fields}
        settings = {
            provider: EmbedderSettings.model_validate(
                {"host": f"{server.url}/{provider}", **fields}
            )
        }
        if provider not in SERVICES:
            settings = {}
        model = model or ("text-embedding-3-small" if provider == "openai" else "")
        spec = EmbeddingSpec(provider=provider, model=model, dimensions=dimensions)
        made.append(factories(settings, environment).get(provider)(spec))
        return made[-1]

    yield make
    for embedder in made:
        if isinstance(embedder, Closeable):
            await embedder.aclose()
