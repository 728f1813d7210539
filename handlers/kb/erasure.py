"""Removed documents: the cached vectors of their passages are removed with them, and what is left
of a document is counted in each place that could hold it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import anyio.to_thread

from groundhook.handlers.kb.embedders.cached import CachedEmbedder
from groundhook.handlers.kb.graph.base import Graphs
from groundhook.handlers.kb.store import VectorStore
from groundhook.host.core.errors import StorageError
from groundhook.host.core.ports import Embedder
from groundhook.host.core.types.filters import DOCUMENT, OneOf

_AT_ONCE = 64  # documents in memory


@dataclass(frozen=True, kw_only=True)
class Remains:
    """What a knowledge base has of a document: entries in the list of documents, passages that are
    read by its id, passages that searches compare (a passage is there with its vector and its
    words), passages that an export writes, and versions in the graph."""

    document: str
    listed: int
    passages: int
    searched: int
    exported: int
    graph: int


async def remains(
    store: VectorStore, graphs: Graphs, collection: str, tenant: str, document: str
) -> Remains:
    """Count what is left of a document of a tenant ("": the collection has none). Each place is
    read for itself. Raises StorageError."""
    passages = await store.passages(collection, tenant, {document: None})
    whole = await store.whole(collection, [(tenant, document)])
    graph = graphs.file(collection)
    versions = 0
    if graph.exists():
        read = partial(graph.versions, tenant, [document])
        versions = len(await anyio.to_thread.run_sync(read))
    return Remains(
        document=document,
        listed=len(await store.stored(collection, tenant, [document])),
        passages=len(passages.get(document, ())),
        searched=await store.count(collection, tenant or None, OneOf(DOCUMENT, (document,))),
        exported=sum(len(each.passages) for each in whole),
        graph=versions,
    )


async def forget_vectors(
    store: VectorStore, embedder: Embedder, collection: str, tenant: str, documents: Sequence[str]
) -> None:
    """Remove the vectors of documents that are still stored from the cache. Raises
    StorageError."""
    if not isinstance(embedder, CachedEmbedder):
        return
    for start in range(0, len(documents), _AT_ONCE):
        named = [(tenant, id) for id in documents[start : start + _AT_ONCE]]
        for each in await store.whole(collection, named):
            texts = [passage.text for passage in each.passages]
            try:
                await anyio.to_thread.run_sync(embedder.forget, texts)
            except (sqlite3.Error, OSError) as exc:
                raise StorageError(f"the cache of vectors could not be written: {exc}") from exc
