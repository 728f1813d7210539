"""The search source `kb`: searches several collections for one identity. Similarities are on one
scale whatever the embedding model. It only reads; `ingest` adds documents.

The tenant comes from the request's identity alone, and every question to the store carries it.
Several questions of one call are embedded together, and each collection receives them together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, TypeVar

import anyio

from groundhook.handlers.kb import items as found_items
from groundhook.handlers.kb.access import facets_of, filter_of, fit_facets, tenant_seen
from groundhook.handlers.kb.declared import made_with
from groundhook.handlers.kb.embed import embed_questions, least_cosine
from groundhook.handlers.kb.gathered import Gathered, merged, warn
from groundhook.handlers.kb.graph.base import Graphs
from groundhook.handlers.kb.language import known_language
from groundhook.handlers.kb.messages import packed
from groundhook.handlers.kb.one_collection import (
    CollectionSearch,
    Declared,
    Part,
    VectorQuery,
    how_to_add,
)
from groundhook.handlers.kb.store import VectorStore
from groundhook.host.core.errors import (
    ConfigError,
    HostError,
    SourceNotConfigured,
    UsageError,
    suggestion,
)
from groundhook.host.core.exception_groups import unwrap_exception_groups
from groundhook.host.core.ports import Embedder, Found, Scope
from groundhook.host.core.trace import span
from groundhook.host.core.types.collection_spec import CollectionSpec, EmbeddingSpec
from groundhook.host.core.types.filters import Filter
from groundhook.host.core.types.search import FacetCount, Item, KBOptions, SearchRequest

T = TypeVar("T")
EmbedderOf = Callable[[CollectionSpec], Embedder]


class KBHandler:
    def __init__(
        self,
        store: VectorStore,
        collections: Mapping[str, CollectionSpec],
        embedder: EmbedderOf,
        graphs: Graphs,
    ) -> None:
        self._store = store
        self._collections = collections
        self._embedder = embedder
        self._declared: dict[str, Declared] = {}
        self._one = CollectionSearch(store, graphs)
        self._started = False

    async def search(self, request: SearchRequest, scope: Scope, /) -> Found:
        """Return the passages nearest to the question over all its collections, best first. Raises
        SourceNotConfigured for a missing or empty collection, NotPermitted, ConfigError and
        StorageError when no collection could answer; when one could, the errors of the others are
        warnings."""
        if request.document is not None:
            return await self._one_document(request, request.document, scope)
        return (await self.search_many([request.query], request, scope))[0]

    async def search_many(
        self, queries: Sequence[str], options: KBOptions, scope: Scope, /
    ) -> list[Found]:
        """Search for each question as `search` does, all of them together."""
        gathered = Gathered()
        parts = self._parts(options, scope, gathered)
        embed = partial(self._embedded, queries, parts, gathered)
        beside = bool(parts) and not self._started
        by_embedding = await (self._beside_start(embed) if beside else embed())
        return await self._found(len(queries), parts, by_embedding, options, scope, gathered)

    async def search_with_vectors(
        self,
        vectors: Sequence[Sequence[float]],
        options: KBOptions,
        scope: Scope,
        /,
        *,
        texts: Sequence[str] | None = None,
    ) -> list[Found]:
        """Search by vectors made elsewhere, of the collections' embedding models; also by words
        where `texts` has one for each. Raises the errors of `search`, ConfigError for vectors of
        another dimension, and UsageError for another number of texts."""
        if texts is not None and len(texts) != len(vectors):
            raise UsageError(f"{len(texts)} texts were given for {len(vectors)} vectors")
        gathered = Gathered()
        parts = self._parts(options, scope, gathered)
        for part in parts:
            _refuse_other_dimensions(part.declared, vectors)
        queries = [
            VectorQuery(text, packed(vector))
            for text, vector in zip(texts or [""] * len(vectors), vectors, strict=True)
        ]
        by_embedding = {part.declared.spec.embedding: queries for part in parts}
        return await self._found(len(vectors), parts, by_embedding, options, scope, gathered)

    async def count(self, options: KBOptions, scope: Scope, /) -> int:
        """Count the documents that fulfil the filter, in all collections that exist. Raises
        SourceNotConfigured for a collection that is not declared, NotPermitted, UsageError,
        StorageError."""
        counted = 0
        for id in dict.fromkeys(options.collections or ()):
            among, tenant = self._limits(id, options, scope)
            counted += await self._store.count(id, tenant, among)
        return counted

    async def matching(self, options: KBOptions, scope: Scope, /) -> list[Item]:
        """Return the documents that `count` counts, without their texts. Raises its errors."""
        items: list[Item] = []
        for id in dict.fromkeys(options.collections or ()):
            among, tenant = self._limits(id, options, scope)
            listed = await self._store.matching(id, tenant, among)
            items += [found_items.document(self._spec(id), one) for one in listed]
        return items

    async def facets(
        self, options: KBOptions, scope: Scope, /
    ) -> Mapping[str, tuple[FacetCount, ...]]:
        """Count the documents that fulfil the filter by the values of the facets' fields, the most
        frequent first. Raises the errors of `count`."""
        gathered = Gathered()
        parts = self._parts(options, scope, gathered)
        if gathered.problems:
            raise next(iter(gathered.problems.values()))
        await warn(scope, fit_facets([part.declared.spec for part in parts], options))
        for part in parts:
            gathered.add_counts(await self._one.facets(part))
        return await gathered.counted(scope)

    async def fetch_documents(
        self, collection: str, documents: Sequence[str], scope: Scope, /
    ) -> dict[str, Found]:
        """Return all passages of each document that exists, in one request. Raises NotPermitted,
        SourceNotConfigured for a collection that is not declared, StorageError."""
        spec = self._spec(collection)
        tenant = tenant_seen(spec, scope.identity)
        found = await self._store.passages(spec.id, tenant, dict.fromkeys(documents))
        return {
            document: Found(items=tuple(found_items.item(spec, hit, 1.0) for hit in hits))
            for document, hits in found.items()
            if hits
        }

    async def fetch_document(self, collection: str, document_id: str, scope: Scope, /) -> Found:
        """Return all passages of a document. Raises the errors of `fetch_documents`, and
        SourceNotConfigured when the collection has no document of this id."""
        found = await self.fetch_documents(collection, [document_id], scope)
        if document_id not in found:
            raise SourceNotConfigured(
                f"collection {collection!r} has no document {document_id!r}",
                hint=f"see `groundhook kb list`; {how_to_add(self._spec(collection))}",
            )
        return found[document_id]

    # ---- steps of a search

    def _parts(self, options: KBOptions, scope: Scope, gathered: Gathered) -> list[Part]:
        parts = []
        for id in dict.fromkeys(options.collections or ()):
            try:
                parts.append(self._part(id, options, scope))
            except HostError as exc:
                gathered.problems[id] = exc
        return parts

    def _part(self, id: str, options: KBOptions, scope: Scope) -> Part:
        """Raises HostError."""
        spec = self._spec(id)
        among, tenant = self._limits(id, options, scope)
        declared = self._declared.get(id)
        if declared is None or declared.spec is not spec:
            embedder = self._embedder(spec)
            made = made_with(spec, embedder, known_language(spec.analyser.language, spec.id))
            least = lru_cache(maxsize=64)(partial(least_cosine, embedder.similarity))
            declared = self._declared[id] = Declared(spec, embedder, made, least)
        return Part(declared, tenant, among, facets_of(spec, options))

    def _limits(
        self, id: str, options: KBOptions, scope: Scope
    ) -> tuple[Filter | None, str | None]:
        """The filter and the tenant that limit what a search may find. Raises HostError."""
        spec = self._spec(id)
        tenant = tenant_seen(spec, scope.identity)
        return filter_of(spec, options), tenant

    async def _beside_start(self, embed: Callable[[], Awaitable[T]]) -> T:
        """Embed while the store starts: at the first search a model is loaded and, as a rule, a
        process started, each for a third of a second."""
        with unwrap_exception_groups():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._store.start)
                embedded = await embed()
        self._started = True
        return embedded

    async def _embedded(
        self, queries: Sequence[str], parts: Sequence[Part], gathered: Gathered
    ) -> dict[EmbeddingSpec, list[VectorQuery]]:
        """The questions with their vectors, for each embedding that the collections use."""
        embedded: dict[EmbeddingSpec, list[VectorQuery]] = {}
        for spec, embedder, _, _ in (part.declared for part in parts):
            if spec.embedding in embedded:
                continue
            try:
                with span(
                    "embedding",
                    f"{embedder.provider}:{embedder.model}",
                    dimensions=embedder.dimensions,
                    **({"questions": len(queries)} if len(queries) > 1 else {}),
                ):
                    vectors = await embed_questions(embedder, queries)
            except HostError as exc:
                gathered.problems[spec.id] = exc
            else:
                embedded[spec.embedding] = [
                    VectorQuery(text, packed(vector))
                    for text, vector in zip(queries, vectors, strict=True)
                ]
        return embedded

    async def _found(
        self,
        questions: int,
        parts: Sequence[Part],
        by_embedding: Mapping[EmbeddingSpec, Sequence[VectorQuery]],
        options: KBOptions,
        scope: Scope,
        gathered: Gathered,
    ) -> list[Found]:
        """Search the collections, and merge what they answer to each of so many questions."""
        uncounted = list(fit_facets([part.declared.spec for part in parts], options))
        parts = [part for part in parts if part.declared.spec.id not in gathered.problems]
        _refuse_other_pages(options, parts)
        by_collection = {
            part.declared.spec.id: by_embedding[part.declared.spec.embedding] for part in parts
        }
        search = partial(
            self._search_one,
            options=options,
            scope=scope,
            gathered=gathered,
            several=len(parts) > 1,
        )
        if questions:
            await _all(
                [partial(search, part, by_collection[part.declared.spec.id]) for part in parts]
            )
        await gathered.report(options, scope, uncounted)
        if options.graph and not any(part.declared.spec.graph for part in parts):
            await scope.warn(
                "no_graph",
                "none of the collections has a graph: declare `graph: true` and add the documents"
                " again",
            )
        facets = await gathered.counted(scope) if options.facets is not None else None
        limit = options.limit or scope.settings.kb.max_results
        answered = [part for part in parts if part.declared.spec.id in gathered.answers]
        return [
            merged(
                [
                    (part.declared.embedded_by, gathered.answers[part.declared.spec.id][number])
                    for part in answered
                ],
                options,
                limit,
                facets,
                several=len(parts) > 1,
            )
            for number in range(questions)
        ]

    async def _search_one(
        self,
        part: Part,
        queries: Sequence[VectorQuery],
        *,
        options: KBOptions,
        scope: Scope,
        gathered: Gathered,
        several: bool,
    ) -> None:
        id = part.declared.spec.id
        try:
            answers = await self._one.search(
                part, queries, options, scope.settings, several=several
            )
            gathered.add_counts(await self._one.facets(part))
            gathered.answers[id] = answers
        except HostError as exc:
            gathered.problems[id] = exc

    async def _one_document(self, request: SearchRequest, document: str, scope: Scope) -> Found:
        """The document from the first of the collections that has it. Raises the errors of
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

    def _spec(self, id: str) -> CollectionSpec:
        if id not in self._collections:
            hint = suggestion(id, sorted(self._collections))
            raise SourceNotConfigured(
                f"there is no collection {id!r}",
                hint=f"{hint}; collections are declared in kb/<id>.kb.yao",
            )
        return self._collections[id]


def _refuse_other_dimensions(declared: Declared, vectors: Sequence[Sequence[float]]) -> None:
    """Raise ConfigError for a vector that the collection's embedding model cannot have made."""
    for vector in vectors:
        if len(vector) != declared.made.dimensions:
            raise ConfigError(
                f"a vector of {len(vector)} dimensions cannot be searched in collection"
                f" {declared.spec.id!r}, whose vectors have {declared.made.dimensions}",
                hint=f"embed with {declared.made.provider}:{declared.made.model}",
            )


def _refuse_other_pages(options: KBOptions, parts: Sequence[Part]) -> None:
    """Raise UsageError for a later page of a search whose order depends on what is returned."""
    walked = options.graph and any(part.declared.spec.graph for part in parts)
    if options.offset and (walked or options.diversity):
        other = "graph" if walked else "diversity"
        raise UsageError(
            f"offset {options.offset} cannot be used together with {other}: the order of such a"
            " search depends on how much of it is returned",
            hint=f"set {other} to {'false' if walked else '0'}, or raise the limit instead",
        )


async def _all(searches: Sequence[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    if len(searches) == 1:  # the usual case, and starting a task would cost more than it saves
        await searches[0]()
        return
    async with anyio.create_task_group() as tasks:
        for search in searches:
            tasks.start_soon(search)
