"""The search of one collection: asks its store, adds passages that its graph leads to, and returns
the passages as items. It knows no other collection.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from groundhook.core.errors import HostError, SourceNotConfigured
from groundhook.core.ports import Embedder
from groundhook.core.settings import SearchSettings
from groundhook.core.trace import span
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.fields import Scalar
from groundhook.core.types.filters import Filter
from groundhook.core.types.search import Extent, GraphNode, Item, KBOptions, TotalIs
from groundhook.core.types.standings import Standings
from groundhook.handlers.kb.embed import embed_questions, guesses
from groundhook.handlers.kb.graph.graphs import Graphs
from groundhook.handlers.kb.language import language_of_question
from groundhook.handlers.kb.ranking import certainty, fusion, names, selection
from groundhook.handlers.kb.ranking.certainty import Judgement
from groundhook.handlers.kb.ranking.language_removal import LanguageRemoval
from groundhook.handlers.kb.search.items import answer_items, cut_to_quotes
from groundhook.handlers.kb.search.standings import standings_of
from groundhook.handlers.kb.store.messages import pack_vector
from groundhook.handlers.kb.store.port import (
    CollectionSettings,
    Hit,
    LanguageShare,
    PassageSearch,
    VectorAnswer,
    VectorQuestion,
)

MOST_VALUES = 100  # of a facet
_WIDEST = 2000  # passages compared for a search with `diversity`

# Share of the threshold that a passage reached through the graph must have: it answers because of
# its subject. At the default threshold, .76 of the second documents of bench/graph_questions are
# among the first five; with .5 it is .58, and with .1 .82, but then off-topic questions find some.
OF_REACHED = 0.2


class SearchableCollection(NamedTuple):
    """A declared collection with what a search of it needs: its embedder, its settings, which the
    store compares with its own, and the least cosine for a threshold on similarities."""

    spec: CollectionSpec
    embedder: Embedder
    settings: CollectionSettings
    least_cosine: Callable[[float], float]

    @property
    def embedded_by(self) -> tuple[str, str, int]:
        """The embedding model: provider, model, dimensions."""
        return self.settings.provider, self.settings.model, self.settings.dimensions


class SearchTarget(NamedTuple):
    """A collection to search, with the tenant and the filter that limit what is found, and the
    facets to count."""

    collection: SearchableCollection
    tenant: str | None
    filter: Filter | None
    facets: Sequence[str]


class VectorQuery(NamedTuple):
    """A question as text, which may be empty, and as a vector in the form of
    `VectorQuestion.vector`."""

    text: str
    vector: bytes


@dataclass(frozen=True, kw_only=True)
class CollectionResult:
    """The result of one question in one collection: the items, best first; `total`, how many match;
    `below`, how many were compared and are not similar enough; `nodes`, entities of the graph;
    `judgement`, how far the first passage answers, None for later pages and questions without
    words; `guessed`: the judgement rests on a curve that nobody measured."""

    items: tuple[Item, ...]
    total: int
    total_is: TotalIs
    below: int
    nodes: tuple[GraphNode, ...] = ()
    read_as: str = ""
    judgement: Judgement | None = None
    guessed: bool = False


class CollectionSearch:
    """Searches collections of one store, each by itself."""

    def __init__(self, store: PassageSearch, graphs: Graphs) -> None:
        self._store = store
        self._graphs = graphs
        self._language_removal = LanguageRemoval()
        # collection → its languages, as its last answer had them
        self._languages: dict[str, Mapping[str, LanguageShare]] = {}

    async def search(
        self,
        target: SearchTarget,
        queries: Sequence[VectorQuery],
        options: KBOptions,
        settings: SearchSettings,
        *,
        is_merged: bool,
    ) -> list[CollectionResult]:
        """Return a result for each question. `is_merged`: the items will be merged with those of
        other collections. Raises SourceNotConfigured for an empty collection, NotPermitted,
        ConfigError, StorageError."""
        spec = target.collection.spec
        threshold = next(
            value
            for value in (options.threshold, spec.threshold, settings.kb.threshold)
            if value is not None
        )
        if guesses(target.collection.embedder):
            threshold = 0.0  # a guessed curve omits passages that answer
        with span("vector_search", spec.id, threshold=threshold) as node:
            limit, offset = options.limit or settings.kb.max_results, options.offset or 0
            # A page of several collections is cut out of their merged items, so each collection
            # returns all its items up to the end of the page.
            from_start = is_merged and offset > 0
            questions = [
                VectorQuestion(
                    vector=one.vector,
                    text=one.text,
                    limit=offset + limit if from_start else limit,
                    offset=0 if from_start else offset,
                    page=limit,
                    groups=options.groups or 0,
                    least_cosine=target.collection.least_cosine(threshold),
                    tenant=target.tenant,
                    filter=target.filter,
                    vectors=bool(options.diversity),
                )
                for one in queries
            ]
            answers = await self._answer(target.collection, questions, options)
            results = [
                await self._make_result(
                    target,
                    question,
                    answer,
                    options,
                    settings,
                    threshold,
                    descending=not from_start,
                )
                for question, answer in zip(questions, answers, strict=True)
            ]
            traced = [
                _trace_data(question, answer, result, target.collection.embedder)
                for question, answer, result in zip(questions, answers, results, strict=True)
            ]
            node.data |= traced[0] if len(traced) == 1 else {"questions": traced}
        return results

    async def standings(self, target: SearchTarget, query: str, page: int, most: int) -> Standings:
        """Return where the passages of a collection stand for a question, `most` of them, in the
        order of a search for `page` passages. Raises the errors of `search`."""
        collection = target.collection
        text = await self.without_names(target, query)
        (vector,) = await embed_questions(collection.embedder, [text])
        question = VectorQuestion(
            vector=pack_vector(vector), text=text, limit=most, page=page, tenant=target.tenant
        )
        (answer,) = await self._ask_store(collection, [question])
        return standings_of(collection.spec, answer, collection.embedder)

    async def without_names(self, target: SearchTarget, query: str) -> str:
        """Return a question without the name of what the whole collection is about."""
        words = names.possible_names(query)
        if not words:
            return query
        try:
            found = await self._store.names(target.collection.spec.id, target.tenant, words)
        except HostError:  # the search itself says what is wrong
            return query
        return names.without_names(query, found) if found else query

    async def facets(self, target: SearchTarget) -> Mapping[str, Sequence[tuple[Scalar, int]]]:
        """Count the documents that the search may find, by the values of the facets' fields."""
        if not target.facets:
            return {}
        return await self._store.facets(
            target.collection.spec.id, target.tenant, target.facets, target.filter, MOST_VALUES + 1
        )

    async def _make_result(
        self,
        target: SearchTarget,
        question: VectorQuestion,
        answer: VectorAnswer,
        options: KBOptions,
        settings: SearchSettings,
        threshold: float,
        *,
        descending: bool,
    ) -> CollectionResult:
        spec, embedder, _, least_cosine = target.collection
        nodes: tuple[GraphNode, ...] = ()
        judgement = None if options.offset else _judge(question.text, answer, embedder)
        if options.graph and spec.graph:
            least = least_cosine(threshold * OF_REACHED)
            answer, nodes = await self._walk_graph(target.collection, question, answer, least)
        items = answer_items(spec, answer, embedder, descending=descending)
        tokens = (
            settings.kb.passage_tokens if options.passage_tokens is None else options.passage_tokens
        )
        if options.neighbours:
            items = await self._with_neighbours(target, answer.hits, items, options.neighbours)
        elif tokens:
            items = cut_to_quotes(items, question.text, answer.language, tokens)
        total = max(answer.total, len(answer.hits))
        return CollectionResult(
            items=items,
            total=total,
            total_is=answer.total_is,
            below=answer.below,
            nodes=nodes,
            read_as=question.text,
            judgement=judgement,
            guessed=guesses(embedder),
        )

    async def _answer(
        self,
        collection: SearchableCollection,
        questions: Sequence[VectorQuestion],
        options: KBOptions,
    ) -> list[VectorAnswer]:
        """Return the store's answers. With `diversity`, passages that differ are selected from a
        larger answer."""
        if not options.diversity:
            return await self._ask_store(collection, questions)
        similarity = collection.embedder.similarity
        wider = [replace(one, limit=min(4 * one.limit, _WIDEST), page=0) for one in questions]
        chosen = []
        for question, answer in zip(
            questions, await self._ask_store(collection, wider), strict=True
        ):
            scores = fusion.descending_scores([similarity(hit.cosine) for hit in answer.hits])
            hits = selection.select_diverse(
                answer.hits, scores, question.limit, options.diversity, similarity
            )
            chosen.append(replace(answer, hits=tuple(hits)))
        return chosen

    async def _ask_store(
        self, collection: SearchableCollection, questions: Sequence[VectorQuestion]
    ) -> list[VectorAnswer]:
        """Return the store's answers to the questions, sent with their neutral vectors. Which
        questions need one depends on the collection's languages, which its answers contain: if they
        have changed since its last answer, the questions are sent again."""
        id, settings = collection.spec.id, collection.settings
        languages = self._languages.get(id, {})
        neutral = await self._with_neutral_vectors(questions, languages, collection.embedder)
        answers = await self._store.search_many(id, settings, neutral)
        if not all(answer.exists for answer in answers):
            raise SourceNotConfigured(
                f"collection {id!r} is empty", hint=how_to_add(collection.spec)
            )
        now = self._languages[id] = answers[-1].languages
        if now.keys() != languages.keys():
            again = await self._with_neutral_vectors(questions, now, collection.embedder)
            if again != neutral:
                return await self._store.search_many(id, settings, again)
        return answers

    async def _with_neutral_vectors(
        self,
        questions: Sequence[VectorQuestion],
        languages: Mapping[str, LanguageShare],
        embedder: Embedder,
    ) -> list[VectorQuestion]:
        neutral_vector = partial(
            self._language_removal.neutral_vector, languages=languages, embedder=embedder
        )
        return [
            replace(question, neutral_vector=await neutral_vector(question.text, question.vector))
            for question in questions
        ]

    async def _walk_graph(
        self,
        collection: SearchableCollection,
        question: VectorQuestion,
        answer: VectorAnswer,
        least: float,
    ) -> tuple[VectorAnswer, tuple[GraphNode, ...]]:
        """Return the answer with the passages that the collection's graph leads to, and the
        entities that the walk reached."""
        with span("graph_search", collection.spec.id) as node:
            walked = await self._graphs.extend_answer(
                self._store,
                collection.spec,
                collection.settings,
                question,
                answer,
                least_cosine=least,
            )
            node.data |= {
                "named": list(walked.seeds),
                "entities": walked.entities,
                "reached": walked.reached,
                "walk_ms": round(walked.walk_ms, 2),
            }
        if not question.groups:
            return walked.answer, walked.nodes
        hits = tuple(selection.limit_per_document(walked.answer.hits, question.groups))
        return replace(walked.answer, hits=hits), walked.nodes

    async def _with_neighbours(
        self, target: SearchTarget, hits: Sequence[Hit], items: Sequence[Item], reach: int
    ) -> tuple[Item, ...]:
        """Return the items with up to `reach` passages before and after each in its document; no
        passage is repeated."""
        used: defaultdict[str, set[int]] = defaultdict(set)  # document → ordinals
        for hit in hits:
            used[hit.document].add(hit.ordinal)
        wanted = {
            document: sorted({n + step for n in ordinals for step in range(-reach, reach + 1)})
            for document, ordinals in used.items()
        }
        found = await self._store.passages(target.collection.spec.id, target.tenant, wanted)
        by_ordinal = {
            document: {passage.ordinal: passage for passage in found.get(document, ())}
            for document in wanted
        }
        longer = []
        for hit, item in zip(hits, items, strict=True):
            run = selection.run_around(hit, by_ordinal[hit.document], used[hit.document], reach)
            used[hit.document].update(passage.ordinal for passage in run)
            extent = Extent(start=run[0].start, end=run[-1].end)
            longer.append(
                item.model_copy(update={"content": selection.join_passages(run), "extent": extent})
            )
        return tuple(longer)


def _judge(question: str, answer: VectorAnswer, embedder: Embedder) -> Judgement | None:
    """Judge how far an answer's first passage answers the question."""
    if answer.evidence is None or not question.strip():
        return None
    first = answer.hits[0] if answer.hits else None
    best, tenth = answer.evidence.best, answer.evidence.tenth
    whole = f"{first.title}\n{first.heading}\n{first.content}" if first else ""
    judged = certainty.judge(
        question,
        certainty.First(whole, first.content if first else ""),
        answer.evidence,
        answer.language,
        embedder.similarity(best),
        certainty.UNRELATED if tenth is None else embedder.similarity(tenth),
    )
    return judged if first else replace(judged, z=-math.inf)


def how_to_add(spec: CollectionSpec) -> str:
    """Return the hint of an error about an empty collection or a missing document."""
    return (
        f"fill it with `groundhook kb add {spec.id} PATH…`, or with `groundhook tools sync` if it"
        " is a toolkit's"
    )


def _trace_data(
    question: VectorQuestion, answer: VectorAnswer, result: CollectionResult, embedder: Embedder
) -> dict[str, Any]:
    """Return what the trace shows of a question to one collection."""
    best = max((hit.cosine for hit in answer.hits), default=None)
    items, judged = result.items, result.judgement
    return {
        "candidates": answer.candidates,
        "below_threshold": answer.below,
        "found": len(items),
        # Returned for a rare word although they are not similar enough.
        "lifted": sum(hit.cosine < question.least_cosine for hit in answer.hits),
        "cut": sum(item.extent is not None and item.extent.sentences is not None for item in items),
        "words": answer.lexical,
        "question": language_of_question(question.text),
        "languages": {language: spoken.as_trace() for language, spoken in answer.languages.items()},
        "best": None if best is None else round(embedder.similarity(best), 3),
        "judged": judged.as_trace() if judged else None,
    }
