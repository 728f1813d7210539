"""A knowledge base over a temporary state folder, whose worker ends with the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from groundhook.core.app_settings import KBStorageSettings
from groundhook.core.ports import Scope, SourceResult
from groundhook.core.registry import Registry
from groundhook.core.settings import (
    SearchSettings,
    UsesSettings,
)
from groundhook.core.types.collection_spec import (
    ChunkSpec,
    CollectionSpec,
    EmbeddingSpec,
)
from groundhook.core.types.search import SearchRequest
from groundhook.core.types.turn import Identity
from groundhook.handlers.kb.embed import EmbedderFactory, HashEmbedder
from groundhook.handlers.kb.embedded.client import KBClient
from groundhook.handlers.kb.embedders.builtin import builtin
from groundhook.handlers.kb.knowledge_base import KnowledgeBase
from groundhook.handlers.kb.opening import open_kb

HASH = EmbeddingSpec(provider="hash", dimensions=64)


def spec(id: str, **fields: Any) -> CollectionSpec:
    """A collection embedded by words, so that no test waits for a model that it does not need."""
    return CollectionSpec(
        id=id, **{"embedding": HASH, "chunk": ChunkSpec(size=64, overlap=8), **fields}
    )


class Counting(HashEmbedder):
    """Counts the texts that it embedded."""

    embedded = 0

    async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]:
        self.embedded += len(texts)
        return await super().embed_documents(texts)


class Warnings:
    def __init__(self) -> None:
        self.received: list[tuple[str, str]] = []

    async def __call__(self, code: str, message: str) -> None:
        self.received.append((code, message))


def scope(tenant: str = "", warn: Warnings | None = None) -> Scope:
    return Scope(
        identity=Identity(tenant_id=tenant),
        assistant_id="docs",
        settings=SearchSettings(),
        uses=UsesSettings(),
        now=lambda: datetime(2026, 11, 20, tzinfo=UTC),
        warn=warn or Warnings(),
    )


async def search(
    kb: KnowledgeBase,
    query: str,
    *collections: str,
    tenant: str = "",
    threshold: float = 0.0,
    limit: int = 10,
) -> SourceResult:
    request = SearchRequest(
        type="kb",
        query=query,
        collections=collections or ("docs",),
        threshold=threshold,
        limit=limit,
    )
    return await kb.search(request, scope(tenant))


def providers(**more: EmbedderFactory) -> Registry[EmbedderFactory]:
    registry: Registry[EmbedderFactory] = Registry("embedding provider")
    registry.add("builtin", builtin)
    registry.add("hash", HashEmbedder)
    for name, factory in more.items():
        registry.add(name, factory)
    return registry


Opens = Callable[..., AbstractAsyncContextManager[KnowledgeBase]]


@pytest.fixture(scope="module")
async def one_loop() -> AsyncIterator[None]:
    """One event loop for the tests of a module: gRPC's library may have something left to tell that
    of a test before, and raises in the next one's where that is closed."""
    yield  # noqa: PT022 - the loop is open until then


@pytest.fixture
async def state(tmp_path: Path) -> AsyncIterator[Path]:
    """A state folder; its worker is ended when the test is over."""
    folder = tmp_path / "state"
    yield folder
    await end_worker(folder)


async def end_worker(state: Path) -> None:
    client = KBClient(state, idle_s=5)
    await client.stop_worker()
    await client.aclose()


@pytest.fixture
def opens(state: Path) -> Opens:
    """open_kb on the test's state folder: `opens(spec("docs"), …)`."""

    def opened(
        *specs: CollectionSpec,
        storage: KBStorageSettings | None = None,
        embedders: Mapping[str, EmbedderFactory] | None = None,
    ) -> AbstractAsyncContextManager[KnowledgeBase]:
        declared = {one.id: one for one in specs or (spec("docs"),)}
        settings = storage or KBStorageSettings(idle_s=20, reserve_mb=1)
        return open_kb(state, declared, providers(**(embedders or {})), settings)

    return opened


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Mapping[str, str | bytes]], Path]:
    """Writes {path: text} into a folder of documents and returns it."""

    def made(files: Mapping[str, str | bytes]) -> Path:
        folder = tmp_path / "documents"
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return folder

    return made


Writes = Callable[[Mapping[str, str | bytes]], Path]
