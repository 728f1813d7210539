"""The search source `kb`: searches several collections for one identity. Similarities are on one
scale whatever the embedding model. It only reads; `ingest` adds documents.

The tenant comes from the request's identity alone, and every question to the store carries it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import anyio

from groundhook.handlers.kb import items as found_items
from groundhook.handlers.kb.access import facets_of, filter_of, fit_facets, tenant_seen
from groundhook.handlers.kb.declared import made_with
from groundhook.handlers.kb.embed import least_cosine
from groundhook.handlers.kb.graph.base import Graphs
from groundhook.handlers.kb.language import known_language
from groundhook.handlers.kb.paging import COUNTED
from groundhook.handlers.kb.ranking import cross_collection, fusion, selection
from groundhook.handlers.kb.ranking.across import Across, language_of_question
from groundhook.handlers.kb.store import (
    Answer,
    Hit,
    Made,
    Question,
    Spoken,
    VectorStore,
    packed,
)
from groundhook.host.core.errors import HostError, SourceNotConfigured, UsageError, suggestion
from groundhook.host.core.ports import Embedder, Found, Scope
from groundhook.host.core.trace import span
from groundhook.host.core.types.collection_spec import CollectionSpec, EmbeddingSpec
from groundhook.host.core.types.fields import Scalar
from groundhook.host.core.types.filters import Filter
from groundhook.host.core.types.search import (
    Extent,
    FacetCount,
    GraphNode,
    Item,
    SearchRequest,
    TotalIs,
)

EmbedderOf = Callable[[CollectionSpec], Embedder]
_MOST_VALUES = 100  # of a facet
_WIDEST = 2000  # passages that are compared for a search that wants such that differ

# Share of the threshold that a passage reached through the graph must have: it answers because of
# its subject. At the default threshold, .76 of the second documents of bench/graph_questions are
# among the first five; with .5 it is .58, and with .1 .82, but then off-topic questions find some.
OF_REACHED = 0.2


@dataclass
class _Outcome:
    """What the collections of one search answered."""

    items: dict[str, tuple[Item, ...]] = field(default_factory=dict)
    facets: dict[str, Counter[Scalar]] = field(default_factory=dict)
    nodes: list[GraphNode] = field(default_factory=list)
    problems: dict[str, HostError] = field(default_factory=dict)
    total: int = 0
    total_is: TotalIs = "exact"

    def count(self, answer: Answer) -> None:
        """Add the matches of one collection."""
        total = self.total + max(answer.total, len(answer.hits))
        if answer.total_is == "at_least" or total > COUNTED:
            self.total_is = "at_least"
        self.total = min(total, COUNTED)


class _Declared(NamedTuple):
    """A collection with its embedder, the properties that a store checks, and the least cosine for
    a threshold."""

    spec: CollectionSpec
    embedder: Embedder
    made: Made
    least_cosine: Callable[[float], float]


class _Part(NamedTuple):
    """A search in one collection: the tenant and filter that limit it, and the facets to count."""

    declared: _Declared
    tenant: str | None
    among: Filter | None
    facets: Sequence[str]


class KBHandler:
    def __init__(
        self,
        store: VectorStore,
        collections: Mapping[str, CollectionSpec],
        embedder: EmbedderOf,
        graphs: Graphs,
    ) -> None:
        self._store = store
        self._graphs = graphs
        self._collections = collections
        self._embedder = embedder
        self._declared: dict[str, _Declared] = {}
        self._across = Across()
        self._languages: dict[str, Mapping[str, Spoken]] = {}  # of collections, as last answered

    async def search(self, request: SearchRequest, scope: Scope, /) -> Found:
        """Return the passages nearest to the question over all its collections, best first. Raises
        SourceNotConfigured for a missing or empty collection, NotPermitted, ConfigError and
        StorageError when no collection could answer; when one could, the errors of the others are
        warnings."""
        outcome = _Outcome()
        offset = request.offset or 0
        wanted = list(dict.fromkeys(request.collections or ()))
        if request.document is not None:
            return await self._one_document(request, request.document, wanted, scope)
        parts: list[_Part] = []
        for id in wanted:
            try:
                parts.append(self._part(id, request, scope))
            except HostError as exc:
                outcome.problems[id] = exc
        uncounted = list(fit_facets([part.declared.spec for part in parts], request))
        vectors = await self._vectors(request.query, [part.declared for part in parts], outcome)
        asked = [part for part in parts if part.declared.spec.id not in outcome.problems]
        _refuse_other_pages(request, asked)
        await _all(
            [
                partial(
                    self._search_one,
                    request,
                    scope,
                    part,
                    vectors[part.declared.spec.embedding],
                    outcome,
                    several=len(asked) > 1,
                )
                for part in asked
            ]
        )
        if outcome.problems and not outcome.items:
            raise next(outcome.problems[id] for id in wanted if id in outcome.problems)
        problems = [
            (problem.code, str(problem)) for id in wanted if (problem := outcome.problems.get(id))
        ]
        for code, said in (*problems, *uncounted):
            await scope.warn(code, said)
        lists = [
            (_embedded_by(part), found)
            for part in asked
            if (found := outcome.items.get(part.declared.spec.id))
        ]
        limit = request.limit or scope.settings.kb.max_results
        items = (
            cross_collection.page(lists, offset, limit)
            if offset and len(asked) > 1
            else cross_collection.merged(lists)
        )
        facets = await self._counted(outcome.facets, scope) if request.facets is not None else None
        nodes = (
            sorted(outcome.nodes, key=lambda node: (-node.score, node.id))
            if request.graph
            else None
        )
        if request.graph and not any(part.declared.spec.graph for part in parts):
            await scope.warn(
                "no_graph",
                "none of the collections has a graph: declare `graph: true` and add the documents"
                " again",
            )
        return Found(
            items=items[: request.limit],
            total=outcome.total,
            total_is=outcome.total_is,
            facets=facets,
            graph_nodes=None if nodes is None else tuple(nodes),
        )

    async def fetch_document(self, collection: str, document_id: str, scope: Scope, /) -> Found:
        """Return all passages of a document. Raises SourceNotConfigured when the collection has no
        document of this id, NotPermitted."""
        spec = self._spec(collection)
        tenant = tenant_seen(spec, scope.identity)
        found = await self._store.passages(spec.id, tenant, {document_id: None})
        hits = found.get(document_id)
        if not hits:
            raise SourceNotConfigured(
                f"collection {collection!r} has no document {document_id!r}",
                hint=f"see `groundhook kb list`; {_how_to_add(spec)}",
            )
        return Found(items=tuple(found_items.item(spec, hit, 1.0) for hit in hits))

    def _part(self, id: str, request: SearchRequest, scope: Scope) -> _Part:
        """Raises HostError."""
        spec = self._spec(id)
        tenant, among, facets = (
            tenant_seen(spec, scope.identity),
            filter_of(spec, request),
            facets_of(spec, request),
        )
        declared = self._declared.get(id)
        if declared is None or declared.spec is not spec:
            embedder = self._embedder(spec)
            made = made_with(spec, embedder, known_language(spec.analyser.language, spec.id))
            least = lru_cache(maxsize=64)(partial(least_cosine, embedder.similarity))
            declared = self._declared[id] = _Declared(spec, embedder, made, least)
        return _Part(declared, tenant, among, facets)

    async def _vectors(
        self, query: str, asked: Sequence[_Declared], outcome: _Outcome
    ) -> dict[EmbeddingSpec, bytes]:
        """The question's vector for each embedding that the collections use."""
        vectors: dict[EmbeddingSpec, bytes] = {}
        for spec, embedder, _, _ in asked:
            if spec.embedding in vectors:
                continue
            try:
                with span(
                    "embedding",
                    f"{embedder.provider}:{embedder.model}",
                    dimensions=embedder.dimensions,
                ):
                    vectors[spec.embedding] = packed(await embedder.embed_query(query))
            except HostError as exc:
                outcome.problems[spec.id] = exc
        return vectors

    async def _search_one(
        self,
        request: SearchRequest,
        scope: Scope,
        part: _Part,
        vector: bytes,
        outcome: _Outcome,
        *,
        several: bool,
    ) -> None:
        spec, embedder, made, least_cosine_of = part.declared
        threshold = next(
            value
            for value in (request.threshold, spec.threshold, scope.settings.kb.threshold)
            if value is not None
        )
        try:
            with span("vector_search", spec.id, threshold=threshold) as node:
                limit, offset = request.limit or scope.settings.kb.max_results, request.offset or 0
                # Of several collections a page is cut out of what all of them answer.
                first = several and offset > 0
                question = Question(
                    vector=vector,
                    text=request.query,
                    limit=offset + limit if first else limit,
                    offset=0 if first else offset,
                    page=limit,
                    groups=request.groups or 0,
                    least_cosine=least_cosine_of(threshold),
                    tenant=part.tenant,
                    filter=part.among,
                    vectors=bool(request.diversity),
                )
                answer = await self._answer(request, spec, made, question, embedder)
                if not answer.exists:
                    raise SourceNotConfigured(
                        f"collection {spec.id!r} is empty", hint=_how_to_add(spec)
                    )
                if request.graph and spec.graph:
                    least = least_cosine_of(threshold * OF_REACHED)
                    answer = await self._walked(
                        request, spec, made, question, answer, least, outcome
                    )
                outcome.count(answer)
                items = found_items.items(spec, answer, embedder, falling=not first)
                if request.neighbours:
                    items = await self._widened(part, answer.hits, items, request.neighbours)
                elif tokens := (
                    scope.settings.kb.passage_tokens
                    if request.passage_tokens is None
                    else request.passage_tokens
                ):
                    items = found_items.narrowed(items, request.query, answer.language, tokens)
                for name, counted in (await self._facets(part)).items():
                    outcome.facets.setdefault(name, Counter()).update(dict(counted))
                outcome.items[spec.id] = items
                node.data |= _traced(request, answer, items, embedder)
        except HostError as exc:
            outcome.problems[spec.id] = exc

    async def _answer(
        self,
        request: SearchRequest,
        spec: CollectionSpec,
        made: Made,
        question: Question,
        embedder: Embedder,
    ) -> Answer:
        """What the store answers; passages that differ, where that is wanted: they are chosen from
        more."""
        limit = question.limit
        if not request.diversity:
            return await self._ask(spec, made, question, embedder)
        wider = replace(question, limit=min(4 * limit, _WIDEST), page=0)
        answer = await self._ask(spec, made, wider, embedder)
        hits = answer.hits
        scores = fusion.descending([embedder.similarity(hit.cosine) for hit in hits])
        chosen = selection.diverse(hits, scores, limit, request.diversity, embedder.similarity)
        return replace(answer, hits=tuple(chosen))

    async def _ask(
        self, spec: CollectionSpec, made: Made, question: Question, embedder: Embedder
    ) -> Answer:
        """The store's answer. A question in another language than the collection's has its language
        taken off its vector. The collection's languages are those of its last answer; if they
        have changed, the question is sent again."""
        languages = self._languages.get(spec.id, {})
        free = partial(self._across.freed, question.text, question.vector, embedder=embedder)
        freed = await free(languages=languages)
        answer = await self._store.search(spec.id, made, replace(question, freed=freed))
        self._languages[spec.id] = answer.languages
        if answer.languages.keys() != languages.keys():
            again = await free(languages=answer.languages)
            if again != freed:
                return await self._store.search(spec.id, made, replace(question, freed=again))
        return answer

    async def _walked(
        self,
        request: SearchRequest,
        spec: CollectionSpec,
        made: Made,
        question: Question,
        answer: Answer,
        least: float,
        outcome: _Outcome,
    ) -> Answer:
        """The answer with the passages that the collection's graph leads to."""
        with span("graph_search", spec.id) as node:
            walked = await self._graphs.reach(
                self._store, spec, made, question, answer, least_cosine=least
            )
            outcome.nodes.extend(walked.nodes)
            node.data |= {
                "named": list(walked.seeds),
                "entities": walked.entities,
                "reached": walked.reached,
                "walk_ms": round(walked.walk_ms, 2),
            }
        if not request.groups:
            return walked.answer
        return replace(
            walked.answer, hits=tuple(selection.grouped(walked.answer.hits, request.groups))
        )

    async def _widened(
        self, part: _Part, hits: Sequence[Hit], items: Sequence[Item], reach: int
    ) -> tuple[Item, ...]:
        """The items with the passages before and after them in their documents; no passage is
        repeated."""
        taken: defaultdict[str, set[int]] = defaultdict(set)
        for hit in hits:
            taken[hit.document].add(hit.ordinal)
        near = {
            document: sorted({at + step for at in own for step in range(-reach, reach + 1)})
            for document, own in taken.items()
        }
        there = await self._store.passages(part.declared.spec.id, part.tenant, near)
        around = {
            document: {hit.ordinal: hit for hit in there.get(document, ())} for document in near
        }
        widened = []
        for hit, item in zip(hits, items, strict=True):
            run = selection.run_around(hit, around[hit.document], taken[hit.document], reach)
            taken[hit.document].update(passage.ordinal for passage in run)
            extent = Extent(start=run[0].start, end=run[-1].end)
            widened.append(
                item.model_copy(update={"content": selection.joined(run), "extent": extent})
            )
        return tuple(widened)

    async def _facets(self, part: _Part) -> Mapping[str, Sequence[tuple[Scalar, int]]]:
        if not part.facets:
            return {}
        return await self._store.facets(
            part.declared.spec.id, part.tenant, part.facets, part.among, _MOST_VALUES + 1
        )

    async def _counted(
        self, facets: Mapping[str, Counter[Scalar]], scope: Scope
    ) -> dict[str, tuple[FacetCount, ...]]:
        counted = {}
        for name, counts in facets.items():
            values = sorted(counts.items(), key=lambda pair: (-pair[1], str(pair[0])))
            if len(values) > _MOST_VALUES:
                await scope.warn(
                    "facet_cut",
                    f"the facet {name!r} has more than {_MOST_VALUES} values; the most frequent are"
                    " returned",
                )
            counted[name] = tuple(
                FacetCount(value=value, count=count) for value, count in values[:_MOST_VALUES]
            )
        return counted

    async def _one_document(
        self, request: SearchRequest, document: str, wanted: Sequence[str], scope: Scope
    ) -> Found:
        """The document from the first of the collections that has it. Raises the errors of
        `fetch_document`."""
        problem: HostError | None = None
        for id in wanted:
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


def _refuse_other_pages(request: SearchRequest, asked: Sequence[_Part]) -> None:
    """Raise UsageError for a later page of a search whose order depends on what is returned."""
    walked = request.graph and any(part.declared.spec.graph for part in asked)
    if request.offset and (walked or request.diversity):
        other = "graph" if walked else "diversity"
        raise UsageError(
            f"offset {request.offset} cannot be used together with {other}: the order of such a"
            " search depends on how much of it is returned",
            hint=f"set {other} to {'false' if walked else '0'}, or raise the limit instead",
        )


def _traced(
    request: SearchRequest, answer: Answer, items: Sequence[Item], embedder: Embedder
) -> dict[str, Any]:
    """What a trace shows of a search in one collection."""
    best = max((hit.cosine for hit in answer.hits), default=None)
    return {
        "candidates": answer.candidates,
        "below_threshold": answer.below,
        "found": len(answer.hits),
        "cut": sum(item.extent is not None and item.extent.sentences is not None for item in items),
        "words": answer.lexical,
        "question": language_of_question(request.query),
        "languages": {language: spoken.shown() for language, spoken in answer.languages.items()},
        "best": None if best is None else round(embedder.similarity(best), 3),
    }


def _embedded_by(part: _Part) -> tuple[str, str, int]:
    """The embedding model that a collection's similarities come from."""
    made = part.declared.made
    return made.provider, made.model, made.dimensions


async def _all(searches: Sequence[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    if len(searches) == 1:  # the usual case, and starting a task would cost more than it saves
        await searches[0]()
        return
    async with anyio.create_task_group() as tasks:
        for search in searches:
            tasks.start_soon(search)


def _how_to_add(spec: CollectionSpec) -> str:
    return f"fill it with `groundhook kb add {spec.id} PATH…`"
