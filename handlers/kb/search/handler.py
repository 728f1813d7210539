"""The search source `kb`: searches several collections for one identity and merges their results,
whose scores are on one scale whatever the embedding model. It only reads; `ingest` adds documents.

The tenant comes from the request's identity alone, and every store request carries it. All
questions of one call are embedded together, and each collection receives them together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, TypeVar

import anyio

from groundhook.core.errors import (
    ConfigError,
    HostError,
    SourceNotConfigured,
    UsageError,
    suggestion,
)
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.ports import Embedder, Scope, SourceResult
from groundhook.core.trace import span
from groundhook.core.types.collection_spec import CollectionSpec, EmbeddingSpec
from groundhook.core.types.delegation import Outline
from groundhook.core.types.filters import Filter
from groundhook.core.types.search import FacetCount, Item, KBOptions, SearchRequest
from groundhook.core.types.standings import Standings
from groundhook.handlers.kb.access import facet_warnings, facets_of, filter_of, permitted_tenant
from groundhook.handlers.kb.declaration import settings_of
from groundhook.handlers.kb.embed import embed_questions, least_cosine
from groundhook.handlers.kb.graph.graphs import Graphs
from groundhook.handlers.kb.language import normalise_language
from groundhook.handlers.kb.search.items import document_item, passage_item
from groundhook.handlers.kb.search.one_collection import (
    CollectionSearch,
    SearchableCollection,
    SearchTarget,
    VectorQuery,
    how_to_add,
)
from groundhook.handlers.kb.search.outlines import read_outline
from groundhook.handlers.kb.search.results import SearchResults, merge_results, warn
from groundhook.handlers.kb.store.messages import pack_vector
from groundhook.handlers.kb.store.port import VectorStore

T = TypeVar("T")


class KBHandler:
    """Searches, counts and reads documents of the declared collections."""

    def __init__(
        self,
        store: VectorStore,
        collections: Mapping[str, CollectionSpec],
        embedder_of: Callable[[EmbeddingSpec], Embedder],
        graphs: Graphs,
    ) -> None:
        self._store = store
        self._collections = collections
        self._embedder_of = embedder_of
        self._searchable: dict[str, SearchableCollection] = {}
        self._search = CollectionSearch(store, graphs)
        self._started = False

    async def search(self, request: SearchRequest, scope: Scope, /) -> SourceResult:
        """Return the passages nearest to the question over all its collections, best first. Raises
        SourceNotConfigured for a missing or empty collection, NotPermitted, ConfigError and
        StorageError when no collection could answer; when one could, the errors of the others are
        warnings."""
        if request.document is not None:
            return await self._search_document(request, request.document, scope)
        return (await self.search_many([request.query], request, scope))[0]

    async def search_many(
        self, queries: Sequence[str], options: KBOptions, scope: Scope, /
    ) -> list[SourceResult]:
        """Search for several questions as `search` does, and return a result for each. They are
        embedded together, and each collection receives them in one request. `options.document` is
        ignored."""
        results = SearchResults()
        targets = self._targets(options, scope, results)
        embed = partial(self._embed, queries, targets, results)
        must_start = bool(targets) and not self._started
        vectors = await (self._embed_while_starting(embed) if must_start else embed())
        return await self._search_targets(len(queries), targets, vectors, options, scope, results)

    async def search_with_vectors(
        self,
        vectors: Sequence[Sequence[float]],
        options: KBOptions,
        scope: Scope,
        /,
        *,
        texts: Sequence[str] | None = None,
    ) -> list[SourceResult]:
        """Search for questions that the caller embedded with the model of the collections: by
        meaning alone, or also by words if `texts` has a text for each vector. Raises the errors of
        `search`, ConfigError for vectors of another dimension, UsageError for another number of
        texts."""
        if texts is not None and len(texts) != len(vectors):
            raise UsageError(f"{len(texts)} texts were given for {len(vectors)} vectors")
        results = SearchResults()
        targets = self._targets(options, scope, results)
        for target in targets:
            _refuse_other_dimensions(target.collection, vectors)
        queries = [
            VectorQuery(text, pack_vector(vector))
            for text, vector in zip(texts or [""] * len(vectors), vectors, strict=True)
        ]
        by_collection = {target.collection.spec.id: queries for target in targets}
        return await self._search_targets(
            len(vectors), targets, by_collection, options, scope, results
        )

    async def count(self, options: KBOptions, scope: Scope, /) -> int:
        """Count the documents that the identity may see and that fulfil the filter of the options,
        in their collections together; an empty collection has 0. Raises SourceNotConfigured for a
        collection that is not declared, NotPermitted, UsageError, StorageError."""
        documents = 0
        for id in dict.fromkeys(options.collections or ()):
            tenant, filter = self._limits(id, options, scope)
            documents += await self._store.count(id, tenant, filter)
        return documents

    async def matching_documents(self, options: KBOptions, scope: Scope, /) -> list[Item]:
        """Return the documents that `count` counts, by collection and id: items without content,
        with their payload as `data` and a score of 1. Raises the errors of `count`."""
        items: list[Item] = []
        for id in dict.fromkeys(options.collections or ()):
            tenant, filter = self._limits(id, options, scope)
            documents = await self._store.matching_documents(id, tenant, filter)
            items += [document_item(self._declared(id), document) for document in documents]
        return items

    async def facets(
        self, options: KBOptions, scope: Scope, /
    ) -> Mapping[str, tuple[FacetCount, ...]]:
        """Count the same documents by the values of the fields in `options.facets`, the most
        frequent value first. Raises the errors of `count`."""
        results = SearchResults()
        targets = self._targets(options, scope, results)
        if results.errors:
            raise next(iter(results.errors.values()))
        await warn(scope, facet_warnings([target.collection.spec for target in targets], options))
        for target in targets:
            results.add_counts(await self._search.facets(target))
        return await results.facet_counts(scope)

    async def fetch_documents(
        self, collection: str, documents: Sequence[str], scope: Scope, /
    ) -> dict[str, SourceResult]:
        """Return the passages of several documents, by document id, in one request. Documents that
        do not exist, or that the identity may not see, are omitted. Raises NotPermitted,
        SourceNotConfigured for a collection that is not declared, StorageError."""
        spec = self._declared(collection)
        tenant = permitted_tenant(spec, scope.identity, scope.partition)
        found = await self._store.passages(spec.id, tenant, dict.fromkeys(documents))
        return {
            document: SourceResult(items=tuple(passage_item(spec, hit, 1.0) for hit in hits))
            for document, hits in found.items()
            if hits
        }

    async def fetch_document(
        self, collection: str, document_id: str, scope: Scope, /
    ) -> SourceResult:
        """Return all passages of a document. Raises the errors of `fetch_documents`, and
        SourceNotConfigured when the collection has no document of this id."""
        found = await self.fetch_documents(collection, [document_id], scope)
        if document_id not in found:
            raise SourceNotConfigured(
                f"collection {collection!r} has no document {document_id!r}",
                hint=f"see `groundhook kb list`; {how_to_add(self._declared(collection))}",
            )
        return found[document_id]

    async def outlines(self, options: KBOptions, scope: Scope, /) -> list[Outline]:
        """Return what each collection is about, made only of documents that the identity may see
        and that fulfil the filter. A collection that cannot be read is omitted: the search reports
        it."""
        outlines = []
        for id in dict.fromkeys(options.collections or ()):
            with suppress(HostError):
                tenant, filter = self._limits(id, options, scope)
                outlines.append(await read_outline(self._store, self._declared(id), tenant, filter))
        return [outline for outline in outlines if outline is not None]

    async def standings(
        self, collection: str, query: str, tenant: str | None, *, page: int, most: int
    ) -> Standings:
        """Return where `most` passages of a collection stand in each ranking of a question, in the
        order of a search for `page` passages. Raises SourceNotConfigured, ConfigError,
        StorageError."""
        target = SearchTarget(self._collection(self._declared(collection)), tenant, None, ())
        return await self._search.standings(target, query, page, most)

    # ---- steps of a search

    def _targets(
        self, options: KBOptions, scope: Scope, results: SearchResults
    ) -> list[SearchTarget]:
        """Return the collections that the options name, each with its limits. The error of a
        collection that cannot be searched is added to the results."""
        targets = []
        for id in dict.fromkeys(options.collections or ()):
            try:
                targets.append(self._target(id, options, scope))
            except HostError as exc:
                results.errors[id] = exc
        return targets

    def _target(self, id: str, options: KBOptions, scope: Scope) -> SearchTarget:
        """Return a collection with the limits and facets of this search. Raises HostError."""
        tenant, filter = self._limits(id, options, scope)
        spec = self._declared(id)
        return SearchTarget(self._collection(spec), tenant, filter, facets_of(spec, options))

    def _limits(
        self, id: str, options: KBOptions, scope: Scope
    ) -> tuple[str | None, Filter | None]:
        """Return the tenant and the filter that limit what a search may find. Raises HostError."""
        spec = self._declared(id)
        tenant = permitted_tenant(spec, scope.identity, scope.partition)
        return tenant, filter_of(spec, options)

    def _collection(self, spec: CollectionSpec) -> SearchableCollection:
        """Return the collection with its embedder; created again after its declaration changed."""
        collection = self._searchable.get(spec.id)
        if collection is None or collection.spec is not spec:
            embedder = self._embedder_of(spec.embedding)
            language = normalise_language(spec.analyser.language, spec.id)
            settings = settings_of(spec, embedder, language)
            least = lru_cache(maxsize=64)(partial(least_cosine, embedder.similarity))
            collection = SearchableCollection(spec, embedder, settings, least)
            self._searchable[spec.id] = collection
        return collection

    async def _embed_while_starting(self, embed: Callable[[], Awaitable[T]]) -> T:
        """Embed while the store starts. The first search loads a model and usually starts a
        process, and each takes a third of a second."""
        with unwrap_exception_groups():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._store.start)
                embedded = await embed()
        self._started = True
        return embedded

    async def _embed(
        self, queries: Sequence[str], targets: Sequence[SearchTarget], results: SearchResults
    ) -> dict[str, list[VectorQuery]]:
        """Return for each collection the questions, without the name of what it is about, with
        their vectors. The error of an embedder is added to the results."""
        embedded: dict[str, list[VectorQuery]] = {}
        known: dict[tuple[EmbeddingSpec, tuple[str, ...]], list[VectorQuery]] = {}
        for target in targets:
            spec, embedder, _, _ = target.collection
            try:
                asked = tuple([await self._search.without_names(target, each) for each in queries])
                if found := known.get((spec.embedding, asked)):
                    embedded[spec.id] = found
                    continue
                with span(
                    "embedding",
                    f"{embedder.provider}:{embedder.model}",
                    dimensions=embedder.dimensions,
                    **({"questions": len(queries)} if len(queries) > 1 else {}),
                ):
                    vectors = await embed_questions(embedder, asked)
            except HostError as exc:
                results.errors[spec.id] = exc
            else:
                known[spec.embedding, asked] = embedded[spec.id] = [
                    VectorQuery(text, pack_vector(vector))
                    for text, vector in zip(asked, vectors, strict=True)
                ]
        return embedded

    async def _search_targets(
        self,
        questions: int,
        targets: Sequence[SearchTarget],
        queries: Mapping[str, Sequence[VectorQuery]],
        options: KBOptions,
        scope: Scope,
        results: SearchResults,
    ) -> list[SourceResult]:
        """Search the collections and merge what they return: one `SourceResult` for each of the
        `questions`."""
        specs = [target.collection.spec for target in targets]
        facet_problems = list(facet_warnings(specs, options))
        targets = [target for target in targets if target.collection.spec.id not in results.errors]
        _refuse_offset_if_order_varies(options, targets)
        if questions:
            search = partial(
                self._search_one,
                options=options,
                scope=scope,
                results=results,
                is_merged=len(targets) > 1,
            )
            await _run_all(
                [partial(search, target, queries[target.collection.spec.id]) for target in targets]
            )
        await results.report_errors(options.collections or (), scope)
        await warn(scope, facet_problems)
        await _warn_without_graph(options, targets, scope)
        facets = await results.facet_counts(scope) if options.facets is not None else None
        merge = partial(
            merge_results,
            options=options,
            limit=options.limit or scope.settings.kb.max_results,
            facets=facets,
            is_merged=len(targets) > 1,
        )
        answered = [
            target.collection
            for target in targets
            if target.collection.spec.id in results.by_collection
        ]
        return [
            merge([(each.embedded_by, results.by_collection[each.spec.id][n]) for each in answered])
            for n in range(questions)
        ]

    async def _search_one(
        self,
        target: SearchTarget,
        queries: Sequence[VectorQuery],
        *,
        options: KBOptions,
        scope: Scope,
        results: SearchResults,
        is_merged: bool,
    ) -> None:
        """Search one collection; add its results, or its error, to `results`."""
        id = target.collection.spec.id
        try:
            found = await self._search.search(
                target, queries, options, scope.settings, is_merged=is_merged
            )
            results.add_counts(await self._search.facets(target))
            results.by_collection[id] = found
        except HostError as exc:
            results.errors[id] = exc

    async def _search_document(
        self, request: SearchRequest, document: str, scope: Scope
    ) -> SourceResult:
        """Return the document from the first collection that has it. Raises the errors of
        `fetch_document`."""
        problem: HostError | None = None
        for id in dict.fromkeys(request.collections or ()):
            try:
                return await self.fetch_document(id, document, scope)
            except HostError as exc:
                problem = problem or exc
        raise problem or SourceNotConfigured(
            f"no collection to look for the document {document!r} in"
        )

    def _declared(self, id: str) -> CollectionSpec:
        if id not in self._collections:
            hint = suggestion(id, sorted(self._collections))
            raise SourceNotConfigured(
                f"there is no collection {id!r}",
                hint=f"{hint}; collections are declared in kb/<id>.kb.yao",
            )
        return self._collections[id]


def _refuse_other_dimensions(
    collection: SearchableCollection, vectors: Sequence[Sequence[float]]
) -> None:
    """Raise ConfigError for a vector of other dimensions than the collection's."""
    for vector in vectors:
        if len(vector) != collection.settings.dimensions:
            raise ConfigError(
                f"a vector of {len(vector)} dimensions cannot be searched in collection"
                f" {collection.spec.id!r}, whose vectors have {collection.settings.dimensions}",
                hint=f"embed with {collection.settings.provider}:{collection.settings.model}",
            )


def _refuse_offset_if_order_varies(options: KBOptions, targets: Sequence[SearchTarget]) -> None:
    """Raise UsageError for an offset in a search whose order depends on how much is returned."""
    uses_graph = options.graph and any(target.collection.spec.graph for target in targets)
    if options.offset and (uses_graph or options.diversity):
        other = "graph" if uses_graph else "diversity"
        raise UsageError(
            f"offset {options.offset} cannot be used together with {other}: the order of such a"
            " search depends on how much of it is returned",
            hint=f"set {other} to {'false' if uses_graph else '0'}, or raise the limit instead",
        )


async def _warn_without_graph(
    options: KBOptions, targets: Sequence[SearchTarget], scope: Scope
) -> None:
    """Warn if the options request a graph search and no collection has a graph."""
    if options.graph and not any(target.collection.spec.graph for target in targets):
        await scope.warn(
            "no_graph",
            "none of the collections has a graph: declare `graph: true` and add the documents"
            " again",
        )


async def _run_all(searches: Sequence[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    if len(searches) == 1:  # the usual case, and starting a task would cost more than it saves
        await searches[0]()
        return
    async with anyio.create_task_group() as tasks:
        for search in searches:
            tasks.start_soon(search)
