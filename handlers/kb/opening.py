"""Opens a knowledge base from the settings of an app: its store, graphs and vector cache."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from groundhook.core.app_settings import (
    KBStorageSettings,
    QdrantSettings,
)
from groundhook.core.extras import extra
from groundhook.core.registry import Registry
from groundhook.core.types.collection_spec import (
    CollectionSpec,
)
from groundhook.core.types.documents import Reader
from groundhook.handlers.kb.embed import EmbedderFactory
from groundhook.handlers.kb.embedded.client import KBClient
from groundhook.handlers.kb.embedders.cached import VectorCache
from groundhook.handlers.kb.graph.graphs import Graphs
from groundhook.handlers.kb.knowledge_base import KnowledgeBase
from groundhook.handlers.kb.reading.readers import READERS

if TYPE_CHECKING:
    from groundhook.handlers.kb.server.store import ServerStore


def make_kb(
    state: Path,
    collections: Mapping[str, CollectionSpec],
    embedders: Registry[EmbedderFactory],
    storage: KBStorageSettings,
    qdrant: QdrantSettings | None = None,
    readers: Mapping[str, Reader] = READERS,
    reader_environment: Mapping[str, str] | None = None,
) -> KnowledgeBase:
    """Return the knowledge base of a state folder, or of a Qdrant server if `qdrant` has a URL.
    Close it with `aclose`. `reader_environment` is that of the processes that read documents (None:
    that of this process)."""
    return KnowledgeBase(
        make_store(state, storage, qdrant),
        collections,
        embedders,
        storage,
        Graphs(state / "graphs"),
        VectorCache(state / "embeddings.sqlite", most_bytes=storage.vector_cache_mb << 20)
        if storage.vector_cache_mb
        else None,
        readers,
        reader_environment,
        qdrant,
    )


@asynccontextmanager
async def open_kb(
    state: Path,
    collections: Mapping[str, CollectionSpec],
    embedders: Registry[EmbedderFactory],
    storage: KBStorageSettings,
    qdrant: QdrantSettings | None = None,
) -> AsyncIterator[KnowledgeBase]:
    """Open a knowledge base as `make_kb` does, and close it when the block is left."""
    kb = make_kb(state, collections, embedders, storage, qdrant)
    try:
        yield kb
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(2):
            await kb.aclose()


def make_store(
    state: Path, storage: KBStorageSettings, qdrant: QdrantSettings | None = None
) -> KBClient | ServerStore:
    """Return a store that connects with its first request."""
    if qdrant is None or not qdrant.url:
        return KBClient(state, idle_s=storage.idle_s)
    with extra("qdrant", "a knowledge base on a Qdrant server"):
        # its client takes a second to import
        from groundhook.handlers.kb.server.connection import ServerConnection
        from groundhook.handlers.kb.server.store import ServerStore

    return ServerStore(ServerConnection(qdrant), qdrant.prefix)
