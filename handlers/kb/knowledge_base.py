"""The knowledge base as one object: search, read a document, add, list and remove documents.

Nothing is started or loaded before it is needed. The first request starts the worker process and
loads the embedding model; the readers are imported when documents are added, since most processes
only search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO

from groundhook.core.app_settings import (
    KBStorageSettings,
    QdrantSettings,
)
from groundhook.core.errors import (
    ConfigError,
    HostError,
    StorageError,
    UnknownName,
    UsageError,
)
from groundhook.core.extras import extra
from groundhook.core.ports import Delegates, Embedder, NoDelegates
from groundhook.core.registry import Registry, by_end
from groundhook.core.types.collection_spec import (
    CollectionSpec,
    EmbeddingSpec,
)
from groundhook.core.types.documents import Reader
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.turn import Identity
from groundhook.handlers.kb.access import permitted_tenant
from groundhook.handlers.kb.admin.collection_checks import (
    check_collections,
    check_existing,
    fallback_reason,
)
from groundhook.handlers.kb.admin.listing import CollectionListing, list_collection, list_readable
from groundhook.handlers.kb.declaration import settings_of, validated_tenant
from groundhook.handlers.kb.embed import (
    Closeable,
    EmbedderFactory,
    HashEmbedder,
    curve_source,
    guesses,
)
from groundhook.handlers.kb.embedders.cached import CachedEmbedder, VectorCache
from groundhook.handlers.kb.graph.graphed_store import GraphedStore
from groundhook.handlers.kb.graph.graphs import Graphs
from groundhook.handlers.kb.language import normalise_language
from groundhook.handlers.kb.reading.readers import READERS
from groundhook.handlers.kb.search.handler import KBHandler
from groundhook.handlers.kb.store.checks import refuse_other_settings, refuse_read_only
from groundhook.handlers.kb.store.port import CollectionSettings, DocumentStore, VectorStore
from groundhook.handlers.kb.store.routed import routed

if TYPE_CHECKING:
    from groundhook.handlers.kb.admin.calibrate import Calibration, CalibrationQuestion
    from groundhook.handlers.kb.admin.erasure import RemainingData
    from groundhook.handlers.kb.admin.transfer import Transfer, TransferResult
    from groundhook.handlers.kb.graph.extract import Extraction
    from groundhook.handlers.kb.ingest.batching import TransferProgress
    from groundhook.handlers.kb.ingest.report import AddProgress, AddReport
    from groundhook.handlers.kb.server.existing import ExistingServers


class KnowledgeBase(KBHandler):
    """A `Handler` for searches of type kb (`KBHandler`) that also adds, lists and removes
    documents."""

    def __init__(
        self,
        store: VectorStore,
        collections: Mapping[str, CollectionSpec],
        embedders: Registry[EmbedderFactory],
        storage: KBStorageSettings,
        graphs: Graphs,
        cache: VectorCache | None = None,
        readers: Mapping[str, Reader] = READERS,
        reader_environment: Mapping[str, str] | None = None,
        qdrant: QdrantSettings | None = None,
    ) -> None:
        self._own = store
        self._qdrant = qdrant or QdrantSettings()
        self._connections: ExistingServers = {}  # to servers with collections of other programs
        super().__init__(self._routed(collections), collections, self.embedder, graphs)
        self._readers = readers
        self._reader_environment = reader_environment
        self._graphs = graphs
        self._factories = embedders
        self._embedders: dict[EmbeddingSpec, Embedder] = {}
        self._cache = cache
        self._reserve_bytes = storage.reserve_mb << 20

    def with_declarations(
        self, collections: Mapping[str, CollectionSpec], _: Mapping[str, ModelSpec], /
    ) -> KnowledgeBase:
        """Return a knowledge base with other declarations, and the same storage and embedders. The
        models (`_`) are required by the port `FollowsDeclarations`."""
        if collections is self._collections:
            return self
        other = copy(self)
        routed = other._routed(collections)
        KBHandler.__init__(other, routed, collections, other.embedder, self._graphs)
        return other

    def _routed(self, collections: Mapping[str, CollectionSpec]) -> VectorStore:
        """Return the store of all collections, also of those that another program made."""

        def is_existing(id: str) -> bool:
            with suppress(HostError):  # a broken declaration is reported where it is used
                return id in collections and collections[id].existing is not None
            return False

        def make() -> VectorStore:
            with extra("qdrant", "a collection of a Qdrant server"):
                from groundhook.handlers.kb.server.existing import ExistingStore
            return ExistingStore(self._qdrant, collections.__getitem__, self._connections)

        return routed(self._own, is_existing, make)

    def embedder(self, spec: EmbeddingSpec) -> Embedder:
        """Return the embedder of a declaration; equal declarations share one. It is closed with the
        knowledge base. Raises ConfigError, UnknownName."""
        embedder = self._embedders.get(spec)
        if embedder is None:
            embedder = self._factories.get(spec.provider)(spec)
            # Hashing is faster than reading the cache.
            if self._cache is not None and not isinstance(embedder, HashEmbedder):
                embedder = CachedEmbedder(embedder, self._cache)
            self._embedders[spec] = embedder
        return embedder

    async def add(
        self,
        collection: str,
        paths: Sequence[Path] = (),
        *,
        tenant: str = "",
        feed: BinaryIO | None = None,
        prune: bool | None = None,
        exclude: Sequence[str] = (),
        uploaded: bool = False,
        progress: AddProgress | None = None,
        delegates: Delegates | None = None,
    ) -> AddReport:
        """Add files, folders and a feed, which is JSON: one object per line, or an array. Documents
        that were added from the same folders and files before and no longer exist there are
        removed, unless nothing of a folder is left. `prune=True` removes them even then,
        `prune=False` never does. `exclude` are patterns of files and folders in the given folders
        that are omitted, by name, or by path if they have a `/`. `uploaded`: clients have sent the
        files, in folders that are not kept. `delegates` call the assistant or
        the tool that extracts entities, if the collection has one. Raises UsageError, ConfigError
        and StorageError; the report has the errors of single files."""
        from groundhook.handlers.kb.ingest.add import AddRequest, Ingestion

        spec = self._spec_to_change(collection)
        embedder = self.embedder(spec.embedding)
        extraction = _extraction(spec, delegates or NoDelegates())
        ingestion = Ingestion(
            self._with_graph(spec, extraction),
            reserve_bytes=self._reserve_bytes,
            readers=self._readers,
            reader_environment=self._reader_environment,
        )
        request = AddRequest(
            paths=paths,
            tenant=tenant,
            feed=feed,
            prune=prune,
            exclude=exclude,
            uploaded=uploaded,
        )
        report = await ingestion.add(
            spec, embedder, self._settings(spec, embedder), request, progress
        )
        notes = [*report.notes, *extraction.warnings]
        if report.chunks and (reason := await fallback_reason(embedder)):
            notes.append(reason)
        if guesses(embedder):
            notes.append(
                f"nobody measured the similarities of the embedding model {embedder.model!r}, so no"
                f" search of {spec.id!r} is sure, and none omits what is unlike the question;"
                f" `groundhook kb calibrate {spec.id}` measures them"
            )
        stored = await self._store.settings(spec.id)
        return replace(
            report,
            notes=tuple(notes),
            language=stored.language if stored else "",
            curve=curve_source(embedder),
        )

    def files(self, paths: Sequence[Path], *, exclude: Sequence[str] = ()) -> list[Path]:
        """Return the files that `add` would read now. Blocks."""
        from groundhook.handlers.kb.ingest.sources import find_inputs

        inputs = find_inputs(paths, feed=False, readers=self._readers, exclude=exclude)
        return [file.path for file in inputs.files]

    def full_id(self, collection: str) -> str:
        """Return the full id of a collection, given the full id or the end of it. Raises
        UnknownName, UsageError."""
        return self._spec(collection).id

    def permitted_tenant(self, collection: str, identity: Identity) -> str | None:
        """Return the tenant whose documents an identity may see and keep; None for a collection
        without tenants. Raises UnknownName, and NotPermitted as a search does."""
        return permitted_tenant(self._spec(collection), identity)

    async def list_collections(
        self, collections: Sequence[str] | None = None, *, tenant: str | None = None
    ) -> tuple[CollectionListing, ...]:
        """Return collections with their documents of a tenant, of all tenants by default. The
        listing of all collections (the default) has the `error` of one that cannot be read. Raises
        UnknownName, UsageError, and StorageError for named ones or if none can be read."""
        if collections is None:
            each, specs = list_readable, [self._collections[id] for id in sorted(self._collections)]
        else:
            each, specs = list_collection, [self._spec(id) for id in collections]
        listings = [await each(self._store, spec, tenant) for spec in specs]
        if listings and all(listing.error for listing in listings):
            raise StorageError(listings[0].error)
        return tuple(listings)

    async def remove(
        self,
        collection: str,
        documents: Sequence[str] | None,
        *,
        tenant: str = "",
        missing_ok: bool = False,
    ) -> tuple[str, ...]:
        """Remove documents by id, or all (None), and return the removed ids. The cached vectors of
        documents that are removed by id are removed as well. When all documents are removed, the
        cache keeps their vectors, for the case that they are added again. A collection with tenants
        needs a tenant, unless all documents are removed. Raises UnknownName with the nearest id,
        and removes nothing, if an id does not exist, unless `missing_ok`."""
        from groundhook.handlers.kb.admin.erasure import forget_vectors

        spec = self._spec_to_change(collection)
        # No extractions: removing a document extracts no entities.
        store = GraphedStore(self._store, self._graphs, {})
        if documents is None:
            tenant_filter = validated_tenant(spec, tenant) if tenant else None
            return tuple(await store.remove(spec.id, tenant_filter, None))
        tenant = validated_tenant(spec, tenant)
        if not missing_ok:
            await self._refuse_missing(spec.id, tenant, documents)
        await forget_vectors(self._store, self.embedder(spec.embedding), spec.id, tenant, documents)
        return tuple(await store.remove(spec.id, tenant, documents))

    async def count_remaining(
        self, collection: str, documents: Sequence[str], *, tenant: str = ""
    ) -> tuple[RemainingData, ...]:
        """Count what is stored of each document in every place that could hold a part of it; all
        counts of a document that was removed are 0. A collection with tenants needs a tenant.
        Raises UnknownName, UsageError, StorageError."""
        from groundhook.handlers.kb.admin.erasure import count_remaining

        spec = self._spec(collection)
        tenant = validated_tenant(spec, tenant)
        return tuple(
            [
                await count_remaining(self._store, self._graphs, spec.id, tenant, document)
                for document in documents
            ]
        )

    async def existing_ids(
        self, collection: str, documents: Sequence[str], *, tenant: str = ""
    ) -> set[str]:
        """Return the ids that belong to documents of the collection. A collection with tenants
        needs a tenant. Raises UnknownName, UsageError, StorageError."""
        spec = self._spec(collection)
        return await self._stored_ids(spec.id, validated_tenant(spec, tenant), documents)

    async def tenants_of(self, collection: str, documents: Sequence[str]) -> tuple[str, ...]:
        """Return the tenants that have documents with any of these ids. Raises UnknownName,
        StorageError."""
        records = await self._store.document_records(self._spec(collection).id, None, documents)
        return tuple(dict.fromkeys(record.tenant for record in records))

    async def rebuild(
        self, collection: str, *, progress: TransferProgress | None = None
    ) -> TransferResult:
        """Build a collection again from its stored texts, with its current declaration. Searches
        find the old version until the new one is complete. Raises UsageError if the collection is
        empty, UnknownName, ConfigError, StorageError."""
        spec = self._spec_to_change(collection)
        embedder = self.embedder(spec.embedding)
        return await self._transfer(self._store).rebuild(
            spec.id, self._settings(spec, embedder), embedder, progress
        )

    async def export(
        self, collection: str, out: IO[str], *, progress: TransferProgress | None = None
    ) -> TransferResult:
        """Write the documents of all tenants to a file that `import_documents` adds to a
        collection, whatever the engine. Raises UnknownName, UsageError for an empty collection,
        StorageError."""
        spec = self._spec(collection)
        declared = (
            None if spec.existing is None else self._settings(spec, self.embedder(spec.embedding))
        )
        return await self._transfer(self._store).export(spec.id, out, progress, declared)

    async def import_documents(
        self,
        collection: str,
        file: IO[str],
        *,
        embed: bool = False,
        progress: TransferProgress | None = None,
    ) -> TransferResult:
        """Add the documents of a file that `export` wrote, with the vectors of the file, or with
        new ones if `embed`. Raises ConfigError if the vectors of the file are of another model than
        the declared one, UsageError for another kind of file, StorageError for a truncated one."""
        spec = self._spec_to_change(collection)
        embedder = self.embedder(spec.embedding)
        transfer = self._transfer(self._with_graph(spec, _extraction(spec, NoDelegates())))
        return await transfer.import_documents(
            spec.id, self._settings(spec, embedder), embedder, file, progress, embed=embed
        )

    def parse_questions(self, lines: Iterable[str], name: str) -> Sequence[CalibrationQuestion]:
        """Parse questions for `calibrate`: JSON lines {question, document} of the file `name`,
        which errors show. Raises UsageError."""
        from groundhook.handlers.kb.admin.calibrate import read_questions

        return read_questions(lines, name)

    async def calibrate(
        self,
        collection: str,
        questions: Sequence[CalibrationQuestion] | None = None,
        *,
        max_questions: int = 100,
        tenant: str = "",
        progress: TransferProgress | None = None,
    ) -> Calibration:
        """Measure the similarity curve of the collection's embedding. `questions` name the
        documents that answer them; without them, up to `max_questions` are taken from the passages.
        Raises UsageError, UnknownName, ConfigError, StorageError."""
        from groundhook.handlers.kb.admin.calibrate import calibrate

        spec = self._spec(collection)
        embedder = self.embedder(spec.embedding)
        stored = await self._store.settings(spec.id)
        if stored is not None:
            refuse_other_settings(spec.id, stored, self._settings(spec, embedder))
        return await calibrate(
            self._store,
            spec.id,
            validated_tenant(spec, tenant),
            embedder,
            questions=questions,
            max_questions=max_questions,
            progress=progress,
        )

    async def check_collections(self) -> Sequence[HostError]:
        """Compare the declared collections with the stored ones. Returns a ConfigError for each
        whose settings differ, a UsageError for each that needs what the engine lacks or should be
        rebuilt, and the first error of the store itself."""
        declared = list(self._valid_collections())
        own = [each for each in declared if each[0].existing is None]
        others = [each for each in declared if each[0].existing is not None]
        found = await check_collections(self._own, own)
        return (*found, *await check_existing(self._store, others))

    def declaration_error(self, spec: CollectionSpec) -> tuple[tuple[str, ...], ConfigError] | None:
        """Check the embedding and the language of a declaration. Returns the path of the wrong key
        and the error, or None."""
        try:
            self._factories.get(spec.embedding.provider)
        except UnknownName as exc:
            return ("embedding", "provider"), ConfigError(
                f"collection {spec.id!r}: {exc.message}", hint=exc.hint
            )
        try:
            normalise_language(spec.analyser.language, spec.id)
        except ConfigError as exc:
            return ("analyser", "language"), exc
        try:
            # Other providers need a key, which may be set only where the app runs.
            if spec.embedding.provider in ("builtin", "onnx"):
                self.embedder(spec.embedding)
        except ConfigError as exc:
            keys = (key for key in ("path", "model") if getattr(spec.embedding, key))
            return ("embedding", next(keys, "dimensions")), exc
        return None

    async def aclose(self) -> None:
        """Close the store, the connections of embedding services and the threads of models. The
        worker process continues, since other processes may use it, until it is idle."""
        try:
            for embedder in self._embedders.values():
                if isinstance(embedder, Closeable):
                    await embedder.aclose()
            if isinstance(self._own, Closeable):
                await self._own.aclose()
            while self._connections:
                await self._connections.popitem()[1].aclose()
        finally:
            if self._cache is not None:
                self._cache.close()
            self._graphs.close()

    async def _stored_ids(self, collection: str, tenant: str, documents: Sequence[str]) -> set[str]:
        records = await self._store.document_records(collection, tenant, documents)
        return {record.document for record in records}

    async def _refuse_missing(self, collection: str, tenant: str, documents: Sequence[str]) -> None:
        """Raise UnknownName, or UsageError for several, if the collection lacks a document."""
        stored = await self._stored_ids(collection, tenant, documents)
        missing = [id for id in documents if id not in stored]
        if not missing:
            return
        usage = await self._store.usage(collection, tenant)
        known = [record.document for record in usage.documents]
        errors = [UnknownName("document", id, known) for id in missing]
        if len(errors) == 1:
            raise errors[0]
        raise UsageError("; ".join(map(str, errors)), hint="nothing was removed")

    def _valid_collections(self) -> Iterator[tuple[CollectionSpec, Embedder, CollectionSettings]]:
        """Yield the collections whose declarations are valid, with embedders and settings."""
        for id in self._collections:
            try:
                spec = self._collections[id]
                if self.declaration_error(spec) is None:
                    embedder = self.embedder(spec.embedding)
                    yield spec, embedder, self._settings(spec, embedder)
            except HostError:
                continue  # `check` reports it; a missing key may be set where the app runs

    def _transfer(self, store: DocumentStore) -> Transfer:
        from groundhook.handlers.kb.admin.transfer import Transfer

        return Transfer(store, reserve_bytes=self._reserve_bytes)

    def _with_graph(self, spec: CollectionSpec, extraction: Extraction) -> GraphedStore:
        """Return the store; for a collection with a graph, one that also updates the graph."""
        return GraphedStore(self._store, self._graphs, {spec.id: extraction} if spec.graph else {})

    def _settings(self, spec: CollectionSpec, embedder: Embedder) -> CollectionSettings:
        return settings_of(spec, embedder, normalise_language(spec.analyser.language, spec.id))

    def _spec_to_change(self, id: str) -> CollectionSpec:
        """Return the same, to change its documents. Raises UsageError also for a collection that
        another program made."""
        spec = self._spec(id)
        refuse_read_only(spec)
        return spec

    def _spec(self, id: str) -> CollectionSpec:
        """Return the collection of that id, or the only one whose id ends with it, such as
        `agents.hello.notes` for `notes`. Raises UnknownName, UsageError."""
        return self._collections[by_end("collection", id, self._collections)]


def _extraction(spec: CollectionSpec, delegates: Delegates) -> Extraction:
    from groundhook.handlers.kb.graph.extract import Extraction

    return Extraction(spec=spec.entities, language=spec.analyser.language, delegates=delegates)
