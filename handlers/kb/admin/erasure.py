"""Erasure of documents: removes their cached vectors, and counts what is left of a document in each
place that could hold a part of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import anyio.to_thread

from groundhook.core.errors import StorageError
from groundhook.core.ports import Embedder
from groundhook.core.types.filters import DOCUMENT, OneOf
from groundhook.handlers.kb.embedders.cached import CachedEmbedder
from groundhook.handlers.kb.graph.graphs import Graphs
from groundhook.handlers.kb.store.port import VectorStore

_AT_ONCE = 64  # documents in memory


@dataclass(frozen=True, kw_only=True)
class RemainingData:
    """What a knowledge base has of a document."""

    document: str
    listed: int  # entries in the list of documents
    passages: int  # passages that are read by the document's id
    searched: int  # passages that searches compare
    exported: int  # passages that an export writes
    graph: int  # versions in the graph


async def count_remaining(
    store: VectorStore, graphs: Graphs, collection: str, tenant: str, document: str
) -> RemainingData:
    """Count what is left of a document of a tenant ("": the collection has none). Raises
    StorageError."""
    # Each place is read by itself: no count is derived from another.
    passages = await store.passages(collection, tenant, {document: None})
    full = await store.full_documents(collection, [(tenant, document)])
    graph = graphs.file(collection)
    versions = 0
    if graph.exists():
        read = partial(graph.versions, tenant, [document])
        versions = len(await anyio.to_thread.run_sync(read))
    return RemainingData(
        document=document,
        listed=len(await store.document_records(collection, tenant, [document])),
        passages=len(passages.get(document, ())),
        searched=await store.count(collection, tenant or None, OneOf(DOCUMENT, (document,))),
        exported=sum(len(each.passages) for each in full),
        graph=versions,
    )


async def forget_vectors(
    store: VectorStore, embedder: Embedder, collection: str, tenant: str, documents: Sequence[str]
) -> None:
    """Remove the vectors of documents from the cache, while the documents are still stored. Raises
    StorageError."""
    if not isinstance(embedder, CachedEmbedder):
        return
    for start in range(0, len(documents), _AT_ONCE):
        named = [(tenant, id) for id in documents[start : start + _AT_ONCE]]
        for each in await store.full_documents(collection, named):
            texts = [passage.text for passage in each.passages]
            try:
                await anyio.to_thread.run_sync(embedder.forget, texts)
            except (sqlite3.Error, OSError) as exc:
                raise StorageError(f"the cache of vectors could not be written: {exc}") from exc
