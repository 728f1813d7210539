"""The graphs of an app's collections, walked in a search; `graphed_store` updates them.

Passages that a walk reaches are fetched from the store under the tenant and the filter of the
search: the walk never shows what the search may not see.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import anyio
import anyio.to_thread

from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.filters import DOCUMENT, Both, Filter, OneOf
from groundhook.core.types.search import GraphNode
from groundhook.handlers.kb.graph.file import GraphFile
from groundhook.handlers.kb.store.port import (
    CollectionSettings,
    Hit,
    PassageSearch,
    VectorAnswer,
    VectorQuestion,
)

if TYPE_CHECKING:
    from groundhook.handlers.kb.graph.walk import Graph, Vector

_QUICK_S = 0.1  # a graph that loads within this time is loaded again after every change,
_RELOAD_FACTOR = 20  # a larger one after this many times its loading time
_LARGE = 20_000  # nodes from which on the walk runs in a thread, off the event loop
_COMPARED_PASSAGES = 100  # passages of the reached documents that are compared with the question


@dataclass(frozen=True, kw_only=True)
class GraphSearchResult:
    """The result of a search with a graph. `seeds`: entities that the question names; `reached`:
    number of passages that only the graph found; `walk_ms`: time of the walk alone."""

    answer: VectorAnswer
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
        store: PassageSearch,
        spec: CollectionSpec,
        settings: CollectionSettings,
        question: VectorQuestion,
        answer: VectorAnswer,
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
        store: PassageSearch,
        spec: CollectionSpec,
        settings: CollectionSettings,
        question: VectorQuestion,
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
