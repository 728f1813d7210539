"""The search of one collection: questions to its store, passages that the graph leads to, and the
items of what was found. It knows no other collection.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from groundhook.handlers.kb import items as found_items
from groundhook.handlers.kb.graph.base import Graphs
from groundhook.handlers.kb.ranking import fusion, selection
from groundhook.handlers.kb.ranking.across import Across, language_of_question
from groundhook.handlers.kb.store import Answer, Hit, Made, Question, Spoken, VectorStore
from groundhook.host.core.errors import SourceNotConfigured
from groundhook.host.core.ports import Embedder
from groundhook.host.core.settings import SearchSettings
from groundhook.host.core.trace import span
from groundhook.host.core.types.collection_spec import CollectionSpec
from groundhook.host.core.types.fields import Scalar
from groundhook.host.core.types.filters import Filter
from groundhook.host.core.types.search import Extent, GraphNode, Item, KBOptions, TotalIs

MOST_VALUES = 100  # of a facet
_WIDEST = 2000  # passages compared for a search with `diversity`

# Share of the threshold that a passage reached through the graph must have: it answers because of
# its subject. At the default threshold, .76 of the second documents of bench/graph_questions are
# among the first five; with .5 it is .58, and with .1 .82, but then off-topic questions find some.
OF_REACHED = 0.2


class Declared(NamedTuple):
    """A collection with its embedder, the properties that a store checks, and the least cosine for
    a threshold."""

    spec: CollectionSpec
    embedder: Embedder
    made: Made
    least_cosine: Callable[[float], float]

    @property
    def embedded_by(self) -> tuple[str, str, int]:
        """The embedding model that the collection's similarities come from."""
        return self.made.provider, self.made.model, self.made.dimensions


class Part(NamedTuple):
    """A search in one collection: the tenant and filter that limit it, and the facets to count."""

    declared: Declared
    tenant: str | None
    among: Filter | None
    facets: Sequence[str]


class VectorQuery(NamedTuple):
    """A question: its words, which may be missing, and its vector as in `Question`."""

    text: str
    vector: bytes


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What a collection answers to a question: items best first, how many match and how many were
    compared and do not, and entities of its graph."""

    items: tuple[Item, ...]
    total: int
    total_is: TotalIs
    below: int
    nodes: tuple[GraphNode, ...] = ()


class CollectionSearch:
    def __init__(self, store: VectorStore, graphs: Graphs) -> None:
        self._store = store
        self._graphs = graphs
        self._across = Across()
        self._languages: dict[str, Mapping[str, Spoken]] = {}  # of collections, as last answered

    async def search(
        self,
        part: Part,
        queries: Sequence[VectorQuery],
        options: KBOptions,
        settings: SearchSettings,
        *,
        several: bool,
    ) -> list[Answered]:
        """Answer the questions, in their order. `several`: the items will be merged with those of
        other collections. Raises SourceNotConfigured for an empty collection, NotPermitted,
        ConfigError, StorageError."""
        spec = part.declared.spec
        threshold = next(
            value
            for value in (options.threshold, spec.threshold, settings.kb.threshold)
            if value is not None
        )
        with span("vector_search", spec.id, threshold=threshold) as node:
            limit, offset = options.limit or settings.kb.max_results, options.offset or 0
            # Of several collections a page is cut out of what all of them answer.
            first = several and offset > 0
            questions = [
                Question(
                    vector=one.vector,
                    text=one.text,
                    limit=offset + limit if first else limit,
                    offset=0 if first else offset,
                    page=limit,
                    groups=options.groups or 0,
                    least_cosine=part.declared.least_cosine(threshold),
                    tenant=part.tenant,
                    filter=part.among,
                    vectors=bool(options.diversity),
                )
                for one in queries
            ]
            answers = await self._answers(part.declared, questions, options)
            answered = [
                await self._answered(
                    part, question, answer, options, settings, threshold, falling=not first
                )
                for question, answer in zip(questions, answers, strict=True)
            ]
            traced = [
                _traced(question, answer, one.items, part.declared.embedder)
                for question, answer, one in zip(questions, answers, answered, strict=True)
            ]
            node.data |= traced[0] if len(traced) == 1 else {"questions": traced}
        return answered

    async def facets(self, part: Part) -> Mapping[str, Sequence[tuple[Scalar, int]]]:
        """Count the documents that the search may find, by the values of the facets' fields."""
        if not part.facets:
            return {}
        return await self._store.facets(
            part.declared.spec.id, part.tenant, part.facets, part.among, MOST_VALUES + 1
        )

    async def _answered(
        self,
        part: Part,
        question: Question,
        answer: Answer,
        options: KBOptions,
        settings: SearchSettings,
        threshold: float,
        *,
        falling: bool,
    ) -> Answered:
        spec, embedder, _, least_cosine = part.declared
        nodes: tuple[GraphNode, ...] = ()
        if options.graph and spec.graph:
            least = least_cosine(threshold * OF_REACHED)
            answer, nodes = await self._walked(part.declared, question, answer, least)
        items = found_items.items(spec, answer, embedder, falling=falling)
        tokens = (
            settings.kb.passage_tokens if options.passage_tokens is None else options.passage_tokens
        )
        if options.neighbours:
            items = await self._widened(part, answer.hits, items, options.neighbours)
        elif tokens:
            items = found_items.narrowed(items, question.text, answer.language, tokens)
        total = max(answer.total, len(answer.hits))
        return Answered(
            items=items, total=total, total_is=answer.total_is, below=answer.below, nodes=nodes
        )

    async def _answers(
        self, declared: Declared, questions: Sequence[Question], options: KBOptions
    ) -> list[Answer]:
        """Return the store's answers. With `diversity`, passages that differ are selected from a
        larger answer."""
        if not options.diversity:
            return await self._ask(declared, questions)
        similarity = declared.embedder.similarity
        wider = [replace(one, limit=min(4 * one.limit, _WIDEST), page=0) for one in questions]
        chosen = []
        for question, answer in zip(questions, await self._ask(declared, wider), strict=True):
            scores = fusion.descending([similarity(hit.cosine) for hit in answer.hits])
            hits = selection.diverse(
                answer.hits, scores, question.limit, options.diversity, similarity
            )
            chosen.append(replace(answer, hits=tuple(hits)))
        return chosen

    async def _ask(self, declared: Declared, questions: Sequence[Question]) -> list[Answer]:
        """Return the store's answers. The language of a question is taken off its vector if it is
        not the collection's. The collection's languages are those of its last answer; if
        they have changed, the questions are sent again."""
        id, made = declared.spec.id, declared.made
        languages = self._languages.get(id, {})
        freed = await self._freed(questions, languages, declared.embedder)
        answers = await self._store.search_many(id, made, freed)
        if not all(answer.exists for answer in answers):
            raise SourceNotConfigured(f"collection {id!r} is empty", hint=how_to_add(declared.spec))
        now = self._languages[id] = answers[-1].languages
        if now.keys() != languages.keys():
            again = await self._freed(questions, now, declared.embedder)
            if again != freed:
                return await self._store.search_many(id, made, again)
        return answers

    async def _freed(
        self, questions: Sequence[Question], languages: Mapping[str, Spoken], embedder: Embedder
    ) -> list[Question]:
        free = partial(self._across.freed, languages=languages, embedder=embedder)
        return [
            replace(one, freed=freed) if (freed := await free(one.text, one.vector)) else one
            for one in questions
        ]

    async def _walked(
        self, declared: Declared, question: Question, answer: Answer, least: float
    ) -> tuple[Answer, tuple[GraphNode, ...]]:
        """The answer with the passages that the collection's graph leads to, and its entities."""
        with span("graph_search", declared.spec.id) as node:
            walked = await self._graphs.reach(
                self._store, declared.spec, declared.made, question, answer, least_cosine=least
            )
            node.data |= {
                "named": list(walked.seeds),
                "entities": walked.entities,
                "reached": walked.reached,
                "walk_ms": round(walked.walk_ms, 2),
            }
        if not question.groups:
            return walked.answer, walked.nodes
        hits = tuple(selection.grouped(walked.answer.hits, question.groups))
        return replace(walked.answer, hits=hits), walked.nodes

    async def _widened(
        self, part: Part, hits: Sequence[Hit], items: Sequence[Item], reach: int
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


def how_to_add(spec: CollectionSpec) -> str:
    return (
        f"fill it with `groundhook kb add {spec.id} PATH…`, or with `groundhook tools sync` if it"
        " is a toolkit's"
    )


def _traced(
    question: Question, answer: Answer, items: Sequence[Item], embedder: Embedder
) -> dict[str, Any]:
    """What a trace shows of a question to one collection."""
    best = max((hit.cosine for hit in answer.hits), default=None)
    return {
        "candidates": answer.candidates,
        "below_threshold": answer.below,
        "found": len(items),
        "cut": sum(item.extent is not None and item.extent.sentences is not None for item in items),
        "words": answer.lexical,
        "question": language_of_question(question.text),
        "languages": {language: spoken.shown() for language, spoken in answer.languages.items()},
        "best": None if best is None else round(embedder.similarity(best), 3),
    }
