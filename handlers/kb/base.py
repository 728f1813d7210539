"""The knowledge base as one object: search, read a document, add, list and remove documents.

It starts and loads nothing by itself. The worker process and the embedding models start with the
first request, and the readers are imported when documents are added: most processes only search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO

from groundhook.handlers.kb.agreement import agree
from groundhook.handlers.kb.declared import made_with, tenant_of
from groundhook.handlers.kb.embed import Closes, EmbedderFactory, HashEmbedder
from groundhook.handlers.kb.embedders.cached import CachedEmbedder, VectorCache
from groundhook.handlers.kb.graph.base import GraphedStore, Graphs
from groundhook.handlers.kb.handler import KBHandler
from groundhook.handlers.kb.language import known_language
from groundhook.handlers.kb.outdated import fallback, outdated
from groundhook.handlers.kb.reading.readers import READERS
from groundhook.handlers.kb.store import Made, Stored, VectorStore
from groundhook.host.core.app_settings import (
    KBStorageSettings,
)
from groundhook.host.core.errors import ConfigError, HostError, UnknownName, UsageError
from groundhook.host.core.ports import Delegates, Embedder, Found, NoDelegates, Scope
from groundhook.host.core.registry import Registry, by_end
from groundhook.host.core.types.collection_spec import (
    CollectionSpec,
    EmbeddingSpec,
)
from groundhook.host.core.types.documents import Reader
from groundhook.host.core.types.model_spec import ModelSpec
from groundhook.host.core.types.search import FacetCount, Item, KBOptions, SearchRequest

if TYPE_CHECKING:
    from groundhook.handlers.kb.calibrate import Calibration, CalibrationQuestion
    from groundhook.handlers.kb.erasure import Remains
    from groundhook.handlers.kb.graph.extract import Extraction
    from groundhook.handlers.kb.ingest.batching import TransferProgress
    from groundhook.handlers.kb.ingest.report import AddReport, Progress
    from groundhook.handlers.kb.transfer import Transfer, Transferred


@dataclass(frozen=True, kw_only=True)
class CollectionListing:
    """A declared collection with its documents. `disk_bytes` includes all tenants."""

    id: str
    name: str
    documents: tuple[Stored, ...]
    disk_bytes: int
    language: str

    @property
    def chunks(self) -> int:
        return sum(document.chunks for document in self.documents)

    @property
    def bytes(self) -> int:
        return sum(document.bytes for document in self.documents)


class KnowledgeBase:
    """A `Handler` for searches of type kb, and the documents behind it."""

    def __init__(
        self,
        store: VectorStore,
        collections: Mapping[str, CollectionSpec],
        embedders: Registry[EmbedderFactory],
        storage: KBStorageSettings,
        graphs: Graphs,
        cache: VectorCache | None = None,
        readers: Mapping[str, Reader] = READERS,
    ) -> None:
        self._readers = readers
        self._store = store
        self._graphs = graphs
        self._collections = collections
        self._factories = embedders
        self._embedders: dict[EmbeddingSpec, Embedder] = {}
        self._cache = cache
        self._handler = KBHandler(store, collections, self._embedder, graphs)
        self._reserve_bytes = storage.reserve_mb << 20

    def with_declarations(
        self, collections: Mapping[str, CollectionSpec], _: Mapping[str, ModelSpec], /
    ) -> KnowledgeBase:
        """Return a knowledge base with other declarations, and the same storage and embedders."""
        if collections is self._collections:
            return self
        other = copy(self)
        other._collections = collections
        other._handler = KBHandler(self._store, collections, other._embedder, self._graphs)
        return other

    async def search(self, request: SearchRequest, scope: Scope, /) -> Found:
        return await self._handler.search(request, scope)

    async def search_many(
        self, queries: Sequence[str], options: KBOptions, scope: Scope, /
    ) -> list[Found]:
        """Answer several questions as `search` does, in their order. They are embedded together,
        and each collection receives them in one request. `options.document` is ignored."""
        return await self._handler.search_many(queries, options, scope)

    async def search_with_vectors(
        self,
        vectors: Sequence[Sequence[float]],
        options: KBOptions,
        scope: Scope,
        /,
        *,
        texts: Sequence[str] | None = None,
    ) -> list[Found]:
        """Answer questions that were embedded elsewhere, with the model of the collections: by
        meaning alone, or also by words where `texts` has one for each vector. Raises the errors of
        `search`, ConfigError for vectors of another dimension, UsageError for another number of
        texts."""
        return await self._handler.search_with_vectors(vectors, options, scope, texts=texts)

    async def count(self, options: KBOptions, scope: Scope, /) -> int:
        """Count the documents that the identity may see and that fulfil the filter of the options,
        in their collections together; an empty collection has 0. Raises SourceNotConfigured for a
        collection that is not declared, NotPermitted, UsageError, StorageError."""
        return await self._handler.count(options, scope)

    async def matching(self, options: KBOptions, scope: Scope, /) -> list[Item]:
        """Return the documents that `count` counts, by collection and id: items without content,
        with their payload as `data` and a score of 1. Raises the errors of `count`."""
        return await self._handler.matching(options, scope)

    async def facets(
        self, options: KBOptions, scope: Scope, /
    ) -> Mapping[str, tuple[FacetCount, ...]]:
        """Count the same documents by the values of the fields in `options.facets`, the most
        frequent value first. Raises the errors of `count`."""
        return await self._handler.facets(options, scope)

    async def fetch_document(self, collection: str, document_id: str, scope: Scope, /) -> Found:
        return await self._handler.fetch_document(collection, document_id, scope)

    async def fetch_documents(
        self, collection: str, documents: Sequence[str], scope: Scope, /
    ) -> dict[str, Found]:
        """Return the passages of several documents, by document id, in one request. Documents that
        do not exist, or that the identity may not see, are omitted. Raises NotPermitted,
        SourceNotConfigured for a collection that is not declared, StorageError."""
        return await self._handler.fetch_documents(collection, documents, scope)

    def embedder(self, spec: EmbeddingSpec) -> Embedder:
        """Return the embedder of a declaration; equal declarations share one. It is closed with the
        knowledge base. Raises ConfigError, UnknownName."""
        made = self._embedders.get(spec)
        if made is None:
            made = self._factories.get(spec.provider)(spec)
            # Hashing is faster than reading the cache.
            if self._cache is not None and not isinstance(made, HashEmbedder):
                made = CachedEmbedder(made, self._cache)
            self._embedders[spec] = made
        return made

    async def add(
        self,
        collection: str,
        paths: Sequence[Path] = (),
        *,
        tenant: str = "",
        feed: BinaryIO | None = None,
        prune: bool | None = None,
        progress: Progress | None = None,
        delegates: Delegates | None = None,
    ) -> AddReport:
        """Add files and folders, and documents of a feed: JSON, one object per line or an array.
        Documents that came from the same folders and files and no longer exist there are removed,
        unless none of a folder is left (`prune=True`: even then; `prune=False`: never). `delegates`
        reach the assistant or tool that extracts entities, if the collection has one. Raises
        UsageError, ConfigError and StorageError; the report has the errors of single files."""
        from groundhook.handlers.kb.ingest.add import AddRequest, Ingestion

        spec = self._spec(collection)
        embedder = self._embedder(spec)
        extraction = _extraction(spec, delegates or NoDelegates())
        ingestion = Ingestion(
            self._with_graph(spec, extraction),
            reserve_bytes=self._reserve_bytes,
            readers=self._readers,
        )
        request = AddRequest(paths=paths, tenant=tenant, feed=feed, prune=prune)
        report = await ingestion.add(spec, embedder, self._made(spec, embedder), request, progress)
        notes = [*report.notes, *extraction.warnings]
        if report.chunks and (reason := await fallback(embedder)):
            notes.append(reason)
        return replace(report, notes=tuple(notes))

    def id_of(self, collection: str) -> str:
        """Return the full id of a collection, given the full id or the end of it. Raises
        UnknownName, UsageError."""
        return self._spec(collection).id

    async def list(
        self, collections: Sequence[str] | None = None, *, tenant: str | None = None
    ) -> tuple[CollectionListing, ...]:
        """Return the named collections (None: all) with their documents of one tenant or of all
        (None)."""
        listed = []
        for id in sorted(self._collections) if collections is None else collections:
            spec = self._spec(id)
            usage = await self._store.usage(spec.id, tenant if spec.tenant_field else None)
            listed.append(
                CollectionListing(
                    id=spec.id,
                    name=spec.name,
                    documents=usage.documents,
                    disk_bytes=usage.disk_bytes,
                    language=usage.language,
                )
            )
        return tuple(listed)

    async def remove(
        self,
        collection: str,
        documents: Sequence[str] | None,
        *,
        tenant: str = "",
        missing_ok: bool = False,
    ) -> tuple[str, ...]:
        """Remove documents by id, or all (None); return the removed ids. The vectors of documents
        that are named leave the cache as well; with all of them they stay, for a collection that is
        filled again. A collection with tenants needs a tenant, unless all documents are removed. If
        an id does not exist, raises UnknownName with the nearest id and removes nothing, unless
        `missing_ok`."""
        from groundhook.handlers.kb.erasure import forget_vectors

        spec = self._spec(collection)
        store = GraphedStore(self._store, self._graphs, {})
        if documents is None:
            of = tenant_of(spec, tenant) if tenant else None
            return tuple(await store.remove(spec.id, of, None))
        tenant = tenant_of(spec, tenant)
        if not missing_ok:
            await self._refuse_missing(spec.id, tenant, documents)
        await forget_vectors(self._store, self._embedder(spec), spec.id, tenant, documents)
        return tuple(await store.remove(spec.id, tenant, documents))

    async def remains(
        self, collection: str, documents: Sequence[str], *, tenant: str = ""
    ) -> tuple[Remains, ...]:
        """Return what is left of documents, by place: the proof that removed ones are gone. A
        collection with tenants needs a tenant. Raises UnknownName, UsageError, StorageError."""
        from groundhook.handlers.kb.erasure import remains

        spec = self._spec(collection)
        of = tenant_of(spec, tenant)
        left = [await remains(self._store, self._graphs, spec.id, of, id) for id in documents]
        return tuple(left)

    async def existing(
        self, collection: str, documents: Sequence[str], *, tenant: str = ""
    ) -> set[str]:
        """Return those of the ids of documents that a collection has. A collection with tenants
        needs a tenant."""
        spec = self._spec(collection)
        found = await self._store.stored(spec.id, tenant_of(spec, tenant), documents)
        return {stored.document for stored in found}

    async def tenants_of(self, collection: str, documents: Sequence[str]) -> tuple[str, ...]:
        """Return the tenants that have documents with any of these ids. Raises UnknownName,
        StorageError."""
        found = await self._store.stored(self._spec(collection).id, None, documents)
        return tuple(dict.fromkeys(stored.tenant for stored in found))

    async def _refuse_missing(self, collection: str, tenant: str, documents: Sequence[str]) -> None:
        found = await self._store.stored(collection, tenant, documents)
        there = {stored.document for stored in found}
        missing = [id for id in documents if id not in there]
        if missing:
            known = [
                stored.document
                for stored in (await self._store.usage(collection, tenant)).documents
            ]
            errors = [UnknownName("document", id, known) for id in missing]
            raise (
                errors[0]
                if len(errors) == 1
                else UsageError("; ".join(map(str, errors)), hint="nothing was removed")
            )

    async def rebuild(
        self, collection: str, *, progress: TransferProgress | None = None
    ) -> Transferred:
        """Build a collection again with its current declaration, from its stored texts; searches
        continue meanwhile. Raises UsageError if it is empty."""
        spec = self._spec(collection)
        embedder = self._embedder(spec)
        return await self._transfer(self._store).rebuild(
            spec.id, self._made(spec, embedder), embedder, progress
        )

    async def export(
        self, collection: str, out: IO[str], *, progress: TransferProgress | None = None
    ) -> Transferred:
        """Write a collection, with all tenants, to a file that `load` reads into any engine."""
        return await self._transfer(self._store).export(self._spec(collection).id, out, progress)

    async def load(
        self,
        collection: str,
        file: IO[str],
        *,
        embed: bool = False,
        progress: TransferProgress | None = None,
    ) -> Transferred:
        """Add the documents of a file that `export` wrote; `embed`: with new vectors. Raises
        ConfigError if the vectors are of another model than the declared one, UsageError for
        another kind of file, StorageError for a truncated one."""
        spec = self._spec(collection)
        embedder = self._embedder(spec)
        transfer = self._transfer(self._with_graph(spec, _extraction(spec, NoDelegates())))
        return await transfer.load(
            spec.id, self._made(spec, embedder), embedder, file, progress, embed=embed
        )

    def questions(self, lines: Iterable[str], name: str) -> Sequence[CalibrationQuestion]:
        """Parse questions for `calibrate`: JSON lines {question, document} of the file `name`.
        Raises UsageError."""
        from groundhook.handlers.kb.calibrate import read_questions

        return read_questions(lines, name)

    async def calibrate(
        self,
        collection: str,
        questions: Sequence[CalibrationQuestion] | None = None,
        *,
        most: int = 100,
        tenant: str = "",
        progress: TransferProgress | None = None,
    ) -> Calibration:
        """Measure the similarity curve of the collection's embedding, with questions whose
        answering document is given, or with at most `most` questions made from its passages. Raises
        UsageError, UnknownName, ConfigError."""
        from groundhook.handlers.kb.calibrate import calibrate

        spec = self._spec(collection)
        embedder = self._embedder(spec)
        stored = await self._store.made(spec.id)
        if stored is not None:
            agree(spec.id, stored, self._made(spec, embedder))
        tenant = tenant_of(spec, tenant)
        return await calibrate(
            self._store, spec.id, tenant, embedder, questions=questions, most=most, done=progress
        )

    async def outdated(self) -> Sequence[HostError]:
        """Return an error for each collection whose declaration differs from the stored one
        (ConfigError) or needs what the engine lacks, and the first error of the store itself."""
        return await outdated(self._store, self._usable())

    def _usable(self) -> Iterator[tuple[CollectionSpec, Embedder, Made]]:
        """The collections whose declarations are right, with what they need."""
        for id in self._collections:
            try:
                spec = self._collections[id]
                if self.wrong(spec) is None:
                    embedder = self._embedder(spec)
                    yield spec, embedder, self._made(spec, embedder)
            except HostError:
                continue  # declarations are checked elsewhere; a key may be set where the app runs

    def _transfer(self, store: VectorStore) -> Transfer:
        from groundhook.handlers.kb.transfer import Transfer

        return Transfer(store, reserve_bytes=self._reserve_bytes)

    def _with_graph(self, spec: CollectionSpec, extraction: Extraction) -> GraphedStore:
        """Return the store; for a collection with a graph, one that also updates the graph."""
        return GraphedStore(self._store, self._graphs, {spec.id: extraction} if spec.graph else {})

    def _made(self, spec: CollectionSpec, embedder: Embedder) -> Made:
        return made_with(spec, embedder, known_language(spec.analyser.language, spec.id))

    def _spec(self, id: str) -> CollectionSpec:
        """Return the collection with that id, or the only one whose id ends so: `notes` for
        `agents.hello.notes`. Raises UnknownName, UsageError."""
        return self._collections[by_end("collection", id, self._collections)]

    def wrong(self, spec: CollectionSpec) -> tuple[tuple[str, ...], ConfigError] | None:
        """Return the path in the declaration and the error of an unknown embedding or language;
        None if both are right."""
        try:
            self._factories.get(spec.embedding.provider)
        except UnknownName as exc:
            return ("embedding", "provider"), ConfigError(
                f"collection {spec.id!r}: {exc.message}", hint=exc.hint
            )
        try:
            known_language(spec.analyser.language, spec.id)
        except ConfigError as exc:
            return ("analyser", "language"), exc
        try:
            # Other providers need a key, which may be set only where the app runs.
            if spec.embedding.provider in ("builtin", "onnx"):
                self._embedder(spec)
        except ConfigError as exc:
            at = next(
                (key for key in ("path", "model") if getattr(spec.embedding, key)), "dimensions"
            )
            return ("embedding", at), exc
        return None

    def _embedder(self, spec: CollectionSpec) -> Embedder:
        return self.embedder(spec.embedding)

    async def aclose(self) -> None:
        """Close the store and the connections of embedding services, and end the threads of models.
        The worker process serves others until it is idle."""
        try:
            for embedder in self._embedders.values():
                if isinstance(embedder, Closes):
                    await embedder.aclose()
            if isinstance(self._store, Closes):
                await self._store.aclose()
        finally:
            if self._cache is not None:
                self._cache.close()
            self._graphs.close()


def _extraction(spec: CollectionSpec, delegates: Delegates) -> Extraction:
    from groundhook.handlers.kb.graph.extract import Extraction

    return Extraction(spec=spec.entities, language=spec.analyser.language, delegates=delegates)
