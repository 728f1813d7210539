"""A `DocumentStore` that wraps another and keeps the graphs of collections in step with their
documents: a version is entered before its document is stored, and the previous version is removed
afterwards.

A document whose graph is missing, or was extracted with other settings, has no fingerprint, so that
adding it again builds the graph.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from groundhook.handlers.kb.graph.file import GraphFile, GraphPassage
from groundhook.handlers.kb.graph.graphs import Graphs
from groundhook.handlers.kb.graph.names import key_of
from groundhook.handlers.kb.store.port import (
    CollectionSettings,
    CollectionUsage,
    DocumentRecord,
    DocumentStore,
    FullDocument,
    PutOutcome,
    StoreProgress,
)

if TYPE_CHECKING:
    from groundhook.handlers.kb.graph.extract import Extraction

_RULES = "1"  # increased when the rules change, so that graphs are built again


class GraphedStore:
    """A `DocumentStore` that builds the graphs of the collections in `extractions`."""

    def __init__(
        self, store: DocumentStore, graphs: Graphs, extractions: Mapping[str, Extraction]
    ) -> None:
        self._store = store
        self._graphs = graphs
        self._extractions = extractions
        self._names: dict[tuple[str, str], dict[str, tuple[str, str]]] = {}

    async def start(self) -> None:
        await self._store.start()

    async def put(
        self,
        collection: str,
        settings: CollectionSettings,
        /,
        *documents: FullDocument,
        reserve_bytes: int = 0,
        progress: StoreProgress | None = None,
    ) -> list[PutOutcome]:
        extraction = self._extractions.get(collection)
        if extraction is None:
            return await self._store.put(
                collection, settings, *documents, reserve_bytes=reserve_bytes, progress=progress
            )
        file = self._graphs.file(collection)
        entered = [
            (document, await self._enter(file, collection, document, extraction))
            for document in documents
        ]
        outcomes = await self._store.put(
            collection, settings, *documents, reserve_bytes=reserve_bytes, progress=progress
        )

        def retire() -> None:
            for document, version in entered:
                file.retire(document.tenant, document.document, keep=version)

        await anyio.to_thread.run_sync(retire)
        return outcomes

    async def _enter(
        self, file: GraphFile, collection: str, document: FullDocument, extraction: Extraction
    ) -> str:
        """Enter the entities of a document into the graph; return the id of this version."""
        version = _version(document.fingerprint, extraction)
        names = await self._load_names(collection, document.tenant)
        texts = [passage.content for passage in document.passages]
        found = await extraction.extract(texts, document.title, names)
        names.setdefault(key_of(document.title), (document.title, "term"))
        pieces = [
            GraphPassage(ordinal=ordinal, passage=passage.passage, extracted=extracted)
            for ordinal, (passage, extracted) in enumerate(
                zip(document.passages, found, strict=True)
            )
        ]
        await anyio.to_thread.run_sync(
            file.enter, document.tenant, document.document, version, document.title, pieces
        )
        return version

    async def _load_names(self, collection: str, tenant: str) -> dict[str, tuple[str, str]]:
        """Return the subjects of the tenant's documents, including those of the current add. They
        are loaded once, since every document of an add needs them."""
        if (collection, tenant) not in self._names:
            subjects = await anyio.to_thread.run_sync(self._graphs.file(collection).names, tenant)
            self._names[collection, tenant] = {key: (name, kind) for key, name, kind in subjects}
        return self._names[collection, tenant]

    async def usage(
        self, collection: str, tenant: str | None, /, *, settings: CollectionSettings | None = None
    ) -> CollectionUsage:
        """Return the store's usage. Before an add (with `settings`), documents without a current
        graph have no fingerprint."""
        usage = await self._store.usage(collection, tenant, settings=settings)
        if settings is None:
            return usage
        return replace(
            usage, documents=await self._hide_outdated(collection, tenant, usage.documents)
        )

    async def document_records(
        self, collection: str, tenant: str | None, documents: Sequence[str], /
    ) -> tuple[DocumentRecord, ...]:
        """Return the store's documents, without the fingerprints of those without a current
        graph."""
        return await self._hide_outdated(
            collection, tenant, await self._store.document_records(collection, tenant, documents)
        )

    async def _hide_outdated(
        self, collection: str, tenant: str | None, documents: Sequence[DocumentRecord]
    ) -> tuple[DocumentRecord, ...]:
        extraction = self._extractions.get(collection)
        if extraction is None or not documents:
            return tuple(documents)
        file = self._graphs.file(collection)
        current = await anyio.to_thread.run_sync(
            file.versions, tenant, [stored.document for stored in documents]
        )
        return tuple(
            one
            if (one.tenant, one.document, _version(one.fingerprint, extraction)) in current
            else replace(one, fingerprint="")
            for one in documents
        )

    async def remove(
        self, collection: str, tenant: str | None, documents: Sequence[str] | None, /
    ) -> list[str]:
        removed = await self._store.remove(collection, tenant, documents)
        await anyio.to_thread.run_sync(self._graphs.file(collection).remove, tenant, documents)
        return removed

    async def full_documents(
        self, collection: str, documents: Sequence[tuple[str, str]], /
    ) -> list[FullDocument]:
        return await self._store.full_documents(collection, documents)

    async def swap(self, building: str, collection: str, /) -> bool:
        return await self._store.swap(building, collection)

    async def settings(self, collection: str, /) -> CollectionSettings | None:
        return await self._store.settings(collection)

    def documents_from(
        self, collection: str, tenant: str | None, source: str, /
    ) -> AsyncIterator[DocumentRecord]:
        return self._store.documents_from(collection, tenant, source)

    async def relocate(
        self, collection: str, tenant: str, places: Mapping[str, tuple[str, str]], /
    ) -> None:
        await self._store.relocate(collection, tenant, places)


def _version(fingerprint: str, extraction: Extraction) -> str:
    """Return a hash of what determines a document's graph: the document and the extraction."""
    determinants = f"{_RULES}\0{fingerprint}\0{extraction.made_by}"
    return hashlib.blake2b(determinants.encode(), digest_size=12).hexdigest()
