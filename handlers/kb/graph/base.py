"""The graphs of an app's collections: made when documents are stored, walked when a collection is
searched.

`Graphed` is a `VectorStore` around another that keeps the graph in step with the documents: entered
before a document is stored, the version before it retired after. A document whose graph is missing
or was made otherwise looks like one that changed, so that adding it again makes it. Passages that a
walk reaches are asked of the store again, under the tenant and the filter of the search: what the
store does not show is not shown.
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
from groundhook.handlers.kb.graph.rules import names_in
from groundhook.handlers.kb.store import (
    Answer,
    Hit,
    Incoming,
    Made,
    Outcome,
    Question,
    Stored,
    Told,
    Usage,
    VectorStore,
)
from groundhook.host.core.types.collection_spec import CollectionSpec
from groundhook.host.core.types.fields import Scalar
from groundhook.host.core.types.filters import DOCUMENT, Both, Filter, OneOf
from groundhook.host.core.types.search import GraphNode

if TYPE_CHECKING:
    from groundhook.handlers.kb.graph.extract import Extraction
    from groundhook.handlers.kb.graph.walk import Graph

_RULES = "1"  # raised when the rules change, so that graphs are made anew
_QUICK_S = 0.1  # a graph that is read within this time is read again after every change,
_PATIENCE = 20  # a larger one at most every so many times as long as reading it takes
_LARGE = 20_000  # nodes of a graph whose walk is no longer done between two events
_LOOKED_AT = 100  # passages of the reached documents that are compared with the question


@dataclass(frozen=True, kw_only=True)
class Walked:
    """A search with what the graph adds. `seeds`: entities that the question names; `reached`:
    passages that were not found without the graph; `walk_ms`: the walk alone."""

    answer: Answer
    nodes: tuple[GraphNode, ...] = ()
    seeds: tuple[str, ...] = ()
    entities: int = 0
    reached: int = 0
    walk_ms: float = 0.0


@dataclass
class _Read:
    graph: Graph
    changes: int
    at: float
    took: float


class Graphs:
    """The graph files of a folder, and those that were read. For one event loop."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, GraphFile] = {}
        self._read: dict[tuple[str, str], _Read] = {}
        self._reading = anyio.Lock()

    def file(self, collection: str) -> GraphFile:
        if collection not in self._files:
            self._files[collection] = GraphFile(
                self._folder / f"{quote(collection, safe=' ')}.sqlite"
            )
        return self._files[collection]

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    async def reach(
        self,
        store: VectorStore,
        spec: CollectionSpec,
        made: Made,
        question: Question,
        answer: Answer,
        *,
        least_cosine: float,
    ) -> Walked:
        """The answer with the passages that the graph leads to, those of at least `least_cosine`,
        at their places. Raises StorageError."""
        from groundhook.handlers.kb.graph import join  # numpy: not before a graph is walked

        graph = await self._graph(spec.id, question.tenant or "")
        if graph is None:
            return Walked(answer=answer)
        named = names_in(question.text, graph.known, graph.subjects)
        found = [(hit.document, hit.passage) for hit in answer.hits]
        seeds = join.seeds(graph, named, found)
        began = time.perf_counter()
        if graph.size > _LARGE:
            scores = await anyio.to_thread.run_sync(graph.rank, seeds)
        else:
            scores = graph.rank(seeds)
        walk_ms = (time.perf_counter() - began) * 1000
        places = graph.best(graph.arrivals(scores, seeds), join.REACHED + len(found))
        walked = {(place.document, place.passage): rank for rank, place in enumerate(places, 1)}
        fetched = await self._fetched(
            store, spec, made, question, [place for place in walked if place not in found]
        )
        there = {(hit.document, hit.passage): hit for hit in [*fetched, *answer.hits]}
        reached = [
            place
            for place in walked
            if place in there and place not in found and there[place].cosine >= least_cosine
        ]
        weight = join.WALKED if any(key in graph.subjects for key in named) else join.UNNAMED
        order = join.ordered(found, reached, walked, limit=question.limit, weight=weight)
        return Walked(
            answer=replace(answer, hits=tuple(there[place] for place in order)),
            nodes=join.nodes(spec.id, graph, scores, named),
            seeds=tuple(named),
            entities=graph.first_passage,
            reached=sum(place in reached for place in order),
            walk_ms=walk_ms,
        )

    async def _fetched(
        self,
        store: VectorStore,
        spec: CollectionSpec,
        made: Made,
        question: Question,
        places: Sequence[tuple[str, str]],
    ) -> list[Hit]:
        """Passages by (document, passage), as the store shows them under the search's tenant and
        filter."""
        if not places:
            return []
        documents: Filter = OneOf(
            DOCUMENT, tuple(dict.fromkeys(document for document, _ in places))
        )
        among = documents if question.filter is None else Both("and", (documents, question.filter))
        asked = replace(question, filter=among, limit=_LOOKED_AT, least_cosine=-1.0)
        hits = (await store.search(spec.id, made, asked)).hits
        return [hit for hit in hits if (hit.document, hit.passage) in set(places)]

    async def _graph(self, collection: str, tenant: str) -> Graph | None:
        """The tenant's graph as it is, or as it was a moment ago while documents are being added;
        None where there is none."""
        file = self.file(collection)
        async with self._reading:
            if not file.exists():
                return None
            changes = await anyio.to_thread.run_sync(file.changes, tenant)
            known = self._read.get((collection, tenant))
            wait = 0.0 if known is None or known.took < _QUICK_S else _PATIENCE * known.took
            if known is None or (known.changes != changes and time.monotonic() - known.at >= wait):
                began = time.monotonic()
                graph = await anyio.to_thread.run_sync(_loaded, file, tenant)
                known = _Read(graph, changes, time.monotonic(), time.monotonic() - began)
                self._read[collection, tenant] = known
        return known.graph if known.graph.size else None


def _loaded(file: GraphFile, tenant: str) -> Graph:
    from groundhook.handlers.kb.graph.walk import Graph

    return Graph(file.rows(tenant))


class Graphed:
    """A `VectorStore` that makes the graph of those collections that have one. `extractions` by
    collection."""

    def __init__(
        self, store: VectorStore, graphs: Graphs, extractions: Mapping[str, Extraction]
    ) -> None:
        self._store = store
        self._graphs = graphs
        self._extractions = extractions
        self._names: dict[tuple[str, str], dict[str, tuple[str, str]]] = {}

    async def put(
        self,
        collection: str,
        made: Made,
        /,
        *documents: Incoming,
        reserve_bytes: int = 0,
        told: Told | None = None,
    ) -> list[Outcome]:
        extraction = self._extractions.get(collection)
        if extraction is None:
            return await self._store.put(
                collection, made, *documents, reserve_bytes=reserve_bytes, told=told
            )
        file = self._graphs.file(collection)
        entered = [
            (document, await self._enter(file, collection, document, extraction))
            for document in documents
        ]
        outcomes = await self._store.put(
            collection, made, *documents, reserve_bytes=reserve_bytes, told=told
        )

        def retire() -> None:
            for document, version in entered:
                file.retire(document.tenant, document.document, keep=version)

        await anyio.to_thread.run_sync(retire)
        return outcomes

    async def _enter(
        self, file: GraphFile, collection: str, document: Incoming, extraction: Extraction
    ) -> str:
        """Put what a document says into the graph → the version that it is."""
        version = _version(document.fingerprint, extraction)
        names = await self._names_known(collection, document.tenant)
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

    async def _names_known(self, collection: str, tenant: str) -> dict[str, tuple[str, str]]:
        """What the tenant's documents are about, those of this add with them: read once, since each
        of many documents asks."""
        if (collection, tenant) not in self._names:
            told = await anyio.to_thread.run_sync(self._graphs.file(collection).names, tenant)
            self._names[collection, tenant] = {key: (name, kind) for key, name, kind in told}
        return self._names[collection, tenant]

    async def usage(
        self, collection: str, tenant: str | None, /, *, made: Made | None = None
    ) -> Usage:
        """As the store's; whoever is about to add (`made`) is told no fingerprint of a document
        without its graph."""
        usage = await self._store.usage(collection, tenant, made=made)
        if made is None:
            return usage
        return replace(usage, documents=await self._complete(collection, tenant, usage.documents))

    async def stored(
        self, collection: str, tenant: str | None, documents: Sequence[str], /
    ) -> tuple[Stored, ...]:
        """As the store's, without the fingerprint of a document whose graph is missing or was made
        otherwise."""
        return await self._complete(
            collection, tenant, await self._store.stored(collection, tenant, documents)
        )

    async def _complete(
        self, collection: str, tenant: str | None, documents: Sequence[Stored]
    ) -> tuple[Stored, ...]:
        extraction = self._extractions.get(collection)
        if extraction is None or not documents:
            return tuple(documents)
        file = self._graphs.file(collection)
        there = await anyio.to_thread.run_sync(
            file.versions, tenant, [stored.document for stored in documents]
        )
        return tuple(
            one
            if (one.tenant, one.document, _version(one.fingerprint, extraction)) in there
            else replace(one, fingerprint="")
            for one in documents
        )

    async def remove(
        self, collection: str, tenant: str | None, documents: Sequence[str] | None, /
    ) -> list[str]:
        gone = await self._store.remove(collection, tenant, documents)
        await anyio.to_thread.run_sync(self._graphs.file(collection).remove, tenant, documents)
        return gone

    async def search(self, collection: str, made: Made, question: Question, /) -> Answer:
        return await self._store.search(collection, made, question)

    async def passages(
        self,
        collection: str,
        tenant: str | None,
        document: str,
        /,
        *,
        ordinals: Sequence[int] | None = None,
    ) -> tuple[Hit, ...]:
        return await self._store.passages(collection, tenant, document, ordinals=ordinals)

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

    async def whole(
        self, collection: str, documents: Sequence[tuple[str, str]], /
    ) -> list[Incoming]:
        return await self._store.whole(collection, documents)

    async def swap(self, building: str, collection: str, /) -> bool:
        return await self._store.swap(building, collection)

    async def made(self, collection: str, /) -> Made | None:
        return await self._store.made(collection)

    def come_from(
        self, collection: str, tenant: str | None, source: str, /
    ) -> AsyncIterator[Stored]:
        return self._store.come_from(collection, tenant, source)

    async def relocate(
        self, collection: str, tenant: str, places: Mapping[str, tuple[str, str]], /
    ) -> None:
        await self._store.relocate(collection, tenant, places)


def _version(fingerprint: str, extraction: Extraction) -> str:
    """What a document's graph is made of: the document, and how entities are found."""
    said = f"{_RULES}\0{fingerprint}\0{extraction.made_by}"
    return hashlib.blake2b(said.encode(), digest_size=12).hexdigest()
