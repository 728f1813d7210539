"""The graphs of an app's collections: updated when documents are stored, walked in a search.

`GraphedStore` is a `VectorStore` that wraps another and keeps the graph in step with the documents:
a version is entered before its document is stored, and the previous version is removed afterwards.
A document whose graph is missing, or was extracted with other settings, has no fingerprint, so that
adding it again builds the graph. Passages that a walk reaches are fetched from the store under the
tenant and the filter of the search: the walk never shows what the search may not see.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import anyio
import anyio.to_thread

from groundhook.handlers.kb.graph.file import GraphFile, Piece
from groundhook.handlers.kb.graph.names import key_of
from groundhook.handlers.kb.store import (
    Answer,
    CollectionSettings,
    CollectionUsage,
    DocumentRecord,
    FullDocument,
    Hit,
    MatchingDocument,
    Outcome,
    PassageOrdinals,
    Question,
    StoreProgress,
    VectorStore,
)
from groundhook.host.core.types.collection_spec import CollectionSpec
from groundhook.host.core.types.fields import Scalar
from groundhook.host.core.types.filters import DOCUMENT, Both, Filter, OneOf
from groundhook.host.core.types.search import GraphNode

if TYPE_CHECKING:
    from groundhook.handlers.kb.graph.extract import Extraction
    from groundhook.handlers.kb.graph.walk import Graph, Vector

_RULES = "1"  # increased when the rules change, so that graphs are built again
_QUICK_S = 0.1  # a graph that loads within this time is loaded again after every change,
_RELOAD_FACTOR = 20  # a larger one after this many times its loading time
_LARGE = 20_000  # nodes from which on the walk runs in a thread, off the event loop
_COMPARED_PASSAGES = 100  # passages of the reached documents that are compared with the question


@dataclass(frozen=True, kw_only=True)
class GraphSearchResult:
    """The result of a search with a graph. `seeds`: entities that the question names; `reached`:
    number of passages that only the graph found; `walk_ms`: time of the walk alone."""

    answer: Answer
    nodes: tuple[GraphNode, ...] = ()
    seeds: tuple[str, ...] = ()
    entities: int = 0
    reached: int = 0
    walk_ms: float = 0.0


@dataclass
class _LoadedGraph:
    """A loaded graph. `changes`: the file's counter when it was loaded; `loaded_at`:
    when that was; `load_s`: the seconds that it took."""

    graph: Graph
    changes: int
    loaded_at: float
    load_s: float


class Graphs:
    """The graph files of a folder, and the loaded graphs. For one event loop."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, GraphFile] = {}
        self._loaded: dict[tuple[str, str], _LoadedGraph] = {}
        self._loading = anyio.Lock()

    def file(self, collection: str) -> GraphFile:
        if collection not in self._files:
            self._files[collection] = GraphFile(
                self._folder / f"{quote(collection, safe=' ')}.sqlite"
            )
        return self._files[collection]

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    async def extend_answer(
        self,
        store: VectorStore,
        spec: CollectionSpec,
        settings: CollectionSettings,
        question: Question,
        answer: Answer,
        *,
        least_cosine: float,
    ) -> GraphSearchResult:
        """Return the answer with the passages that the graph leads to, if they have at least
        `least_cosine`, in their ranks. Raises StorageError."""
        from groundhook.handlers.kb.graph import join  # imports numpy: not before a graph is walked

        graph = await self._graph(spec.id, question.tenant or "")
        if graph is None:
            return GraphSearchResult(answer=answer)
        from groundhook.handlers.kb.graph.rules import names_in  # few apps have a graph

        named = names_in(question.text, graph.known, graph.subjects)
        found = [(hit.document, hit.passage) for hit in answer.hits]
        seeds = join.seeds(graph, named, found)
        scores, walk_ms = await _walk(graph, seeds)
        best = graph.best(graph.arrivals(scores, seeds), join.REACHED + len(found))
        ranks = {(place.document, place.passage): rank for rank, place in enumerate(best, 1)}
        added = [passage for passage in ranks if passage not in found]
        fetched = await self._fetch(store, spec, settings, question, added)
        hits = {(hit.document, hit.passage): hit for hit in [*fetched, *answer.hits]}
        reached = [
            passage for passage in added if passage in hits and hits[passage].cosine >= least_cosine
        ]
        weight = join.UNNAMED if graph.subjects.isdisjoint(named) else join.WALKED
        order = join.ordered(found, reached, ranks, limit=question.limit, weight=weight)
        return GraphSearchResult(
            answer=replace(answer, hits=tuple(hits[passage] for passage in order)),
            nodes=join.nodes(spec.id, graph, scores, named),
            seeds=tuple(named),
            entities=graph.first_passage,
            reached=sum(passage in reached for passage in order),
            walk_ms=walk_ms,
        )

    async def _fetch(
        self,
        store: VectorStore,
        spec: CollectionSpec,
        settings: CollectionSettings,
        question: Question,
        places: Sequence[tuple[str, str]],
    ) -> list[Hit]:
        """Return the passages by (document, passage) that the store shows under the tenant and the
        filter of the search."""
        if not places:
            return []
        documents: Filter = OneOf(
            DOCUMENT, tuple(dict.fromkeys(document for document, _ in places))
        )
        among = documents if question.filter is None else Both("and", (documents, question.filter))
        narrowed = replace(
            question,
            filter=among,
            limit=_COMPARED_PASSAGES,
            least_cosine=-1.0,
            offset=0,
            groups=0,
            counted=False,
        )
        hits = (await store.search(spec.id, settings, narrowed)).hits
        return [hit for hit in hits if (hit.document, hit.passage) in set(places)]

    async def _graph(self, collection: str, tenant: str) -> Graph | None:
        """Return the tenant's graph, at most slightly out of date while documents are added; None
        if there is none."""
        file = self.file(collection)
        async with self._loading:
            if not file.exists():
                return None
            changes = await anyio.to_thread.run_sync(file.changes, tenant)
            known = self._loaded.get((collection, tenant))
            wait = (
                0.0 if known is None or known.load_s < _QUICK_S else _RELOAD_FACTOR * known.load_s
            )
            if known is None or (
                known.changes != changes and time.monotonic() - known.loaded_at >= wait
            ):
                began = time.monotonic()
                graph = await anyio.to_thread.run_sync(_load, file, tenant)
                known = _LoadedGraph(graph, changes, time.monotonic(), time.monotonic() - began)
                self._loaded[collection, tenant] = known
        return known.graph if known.graph.size else None


async def _walk(graph: Graph, seeds: Mapping[int, float]) -> tuple[Vector, float]:
    """Return the score of each node after a walk from the seeds, and the milliseconds it took."""
    began = time.perf_counter()
    if graph.size > _LARGE:
        scores = await anyio.to_thread.run_sync(graph.rank, seeds)
    else:
        scores = graph.rank(seeds)
    return scores, (time.perf_counter() - began) * 1000


def _load(file: GraphFile, tenant: str) -> Graph:
    from groundhook.handlers.kb.graph.walk import Graph

    return Graph(file.rows(tenant))


class GraphedStore:
    """A `VectorStore` that builds the graphs of the collections in `extractions`."""

    def __init__(
        self, store: VectorStore, graphs: Graphs, extractions: Mapping[str, Extraction]
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
    ) -> list[Outcome]:
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
            Piece(ordinal=ordinal, passage=passage.passage, extracted=extracted)
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

    async def search(
        self, collection: str, settings: CollectionSettings, question: Question, /
    ) -> Answer:
        return await self._store.search(collection, settings, question)

    async def search_many(
        self, collection: str, settings: CollectionSettings, questions: Sequence[Question], /
    ) -> list[Answer]:
        return await self._store.search_many(collection, settings, questions)

    async def passages(
        self, collection: str, tenant: str | None, wanted: PassageOrdinals, /
    ) -> dict[str, tuple[Hit, ...]]:
        return await self._store.passages(collection, tenant, wanted)

    async def facets(
        self,
        collection: str,
        tenant: str | None,
        fields: Sequence[str],
        filter: Filter | None,
        limit: int,
        /,
    ) -> dict[str, list[tuple[Scalar, int]]]:
        return await self._store.facets(collection, tenant, fields, filter, limit)

    async def count(self, collection: str, tenant: str | None, filter: Filter | None, /) -> int:
        return await self._store.count(collection, tenant, filter)

    async def matching_documents(
        self, collection: str, tenant: str | None, filter: Filter | None, /
    ) -> list[MatchingDocument]:
        return await self._store.matching_documents(collection, tenant, filter)

    async def full_documents(
        self, collection: str, documents: Sequence[tuple[str, str]], /
    ) -> list[FullDocument]:
        return await self._store.full_documents(collection, documents)

    async def swap(self, building: str, collection: str, /) -> bool:
        return await self._store.swap(building, collection)

    async def settings(self, collection: str, /) -> CollectionSettings | None:
        return await self._store.settings(collection)

    async def has_languages(self, collection: str, /) -> bool:
        return await self._store.has_languages(collection)

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
