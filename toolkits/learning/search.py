"""`searchResources`: queries, one search for all of them, and the sections in one order."""

from __future__ import annotations

import json
from collections.abc import Sequence

from groundhook.core.errors import SourceNotConfigured
from groundhook.core.tool_ports import ToolScope
from groundhook.core.trace import span
from groundhook.core.types.collection_queries import (
    CollectionAnswer,
    CollectionMatch,
    CollectionQuery,
)
from groundhook.core.types.search import Item
from groundhook.toolkits.learning.queries import Queries, is_unknown, make_queries
from groundhook.toolkits.learning.ranking import COUNTS, RankedSection, ranked, spread
from groundhook.toolkits.learning.rerank import reranked
from groundhook.toolkits.learning.settings import LearningSettings
from groundhook.toolkits.learning.values import BookSection, Resources, SectionSearchArguments

CANDIDATES = 3  # times as many sections are compared as are returned
MOST_OUTCOMES = 8  # outcomes whose coverage is measured: each is one more text to embed
# Of the 17 intents of bench/toolkits that are not kept aside, 3 find the right section first with a
# similarity below this; of 60 intents of nonsense words, 58 find nothing above it.
CLOSE = 0.4
NOT_CLOSE = (
    "Nothing is very similar to what is looked for: the sections may be near matches only, or in"
    " another language."
)


async def search_resources(
    scope: ToolScope, settings: LearningSettings, toolkit: str, arguments: SectionSearchArguments
) -> Resources:
    """Return the sections for an intent; an empty list if none fits. Raises SourceNotConfigured if
    nothing was ever put into the collections."""
    course = arguments.course_context
    queries = await make_queries(scope, settings.queries, arguments.user_intent, course)
    every = [text for text in course.outcomes if text] if settings.coverage else []
    outcomes = every[:MOST_OUTCOMES]
    found = await _find(scope, settings, [*queries.texts, *outcomes])
    if not any(answer.filled for answers in found for answer in answers):
        raise SourceNotConfigured(
            f"nothing is indexed for {toolkit!r}", hint=f"run: groundhook tools sync {toolkit}"
        )
    hits = [[match for answer in answers for match in answer.matches] for answers in found]
    count = len(queries.texts)
    alike = _count_alike(arguments.user_intent, queries, hits[0])
    sections = ranked(hits[:count], alike)
    sections = await reranked(scope, settings.rerank, arguments.user_intent, sections)
    shown = _select(sections, settings)
    with span("merge", f"{len(sections)} sections") as node:
        node.data["shown"] = [{"id": one.match.id, "queries": list(one.queries)} for one in shown]
    answer = Resources(resources=[_resource(one, settings) for one in shown])
    answer._items = [_item(one, settings) for one in shown]
    answer._notes = [
        *await _describe_fit(scope, found[: alike + 1], shown),
        *_report_coverage(outcomes, len(every), hits[count:], shown),
    ]
    return answer


def _count_alike(intent: str, queries: Queries, by_intent: Sequence[CollectionMatch]) -> int:
    """Return how many of the first queries beside the intent count as much as it does."""
    texts = (f"{match.title} {match.passage}" for match in by_intent)
    return len(queries.texts) - 1 if is_unknown(intent, texts) else queries.alike


def _select(sections: Sequence[RankedSection], settings: LearningSettings) -> list[RankedSection]:
    """Return the sections that are shown."""
    books = {
        (one.match.collection, one.match.id): _text(one.match, settings.fields.book_title)
        for one in sections
    }
    return spread(sections, books, settings.most_of_a_book)[: settings.limit]


async def _find(
    scope: ToolScope, settings: LearningSettings, texts: Sequence[str]
) -> list[list[CollectionAnswer]]:
    """Return for each text the answers of all collections; everything is one request."""
    with span("vector_search", ", ".join(settings.collections), queries=len(texts)) as node:
        answers = await scope.collections.find(
            [
                CollectionQuery(
                    collection=collection,
                    text=text,
                    limit=settings.limit * CANDIDATES,
                    threshold=settings.threshold,
                )
                for text in texts
                for collection in settings.collections
            ]
        )
        width = len(settings.collections)
        node.data["found"] = sum(len(answer.matches) for answer in answers)
    return [answers[start : start + width] for start in range(0, len(answers), width)]


async def _describe_fit(
    scope: ToolScope, found: Sequence[Sequence[CollectionAnswer]], shown: Sequence[RankedSection]
) -> list[str]:
    """Return a sentence if nothing is similar to the intent, or if the threshold left everything
    out, of which it warns as well. `found` is what the intent found, and the queries that count as
    much."""
    if shown:
        scores = (match.score for answers in found for each in answers for match in each.matches)
        return [] if max(scores, default=0.0) >= CLOSE else [NOT_CLOSE]
    below = sum(answer.below for answer in found[0])
    if not below:
        return []
    note = f"Sections below the threshold: {below}"
    await scope.warn("below_threshold", note)
    return [note]


def _report_coverage(
    outcomes: Sequence[str],
    given: int,
    hits: Sequence[Sequence[CollectionMatch]],
    shown: Sequence[RankedSection],
) -> list[str]:
    """Return a sentence about the outcomes that none of the sections serves, and trace which
    section serves which: one that the search for the outcome finds with a similarity of at least
    `COUNTS`. `given` is the number of outcomes of the course; those after the first eight are not
    compared."""
    if not outcomes:
        return []
    keys = {(one.match.collection, one.match.id) for one in shown}
    coverage = [
        {
            "outcome": outcome,
            "ids": [
                match.id
                for match in found
                if match.score >= COUNTS and (match.collection, match.id) in keys
            ],
        }
        for outcome, found in zip(outcomes, hits, strict=True)
    ]
    with span("coverage", f"{len(outcomes)} outcomes") as node:
        node.data |= {"coverage": coverage, "not_compared": given - len(outcomes)}
    uncovered = [one["outcome"] for one in coverage if not one["ids"]]
    if not uncovered:
        return []
    compared = f" (of the first {len(outcomes)})" if given > len(outcomes) else ""
    return [
        f"No section serves these outcomes{compared}: {json.dumps(uncovered, ensure_ascii=False)}"
    ]


def _resource(section: RankedSection, settings: LearningSettings) -> BookSection:
    match = section.match
    return BookSection(
        id=match.id,
        title=match.title,
        book_title=_text(match, settings.fields.book_title),
        summary=_text(match, settings.fields.summary),
        score=section.score,
    )


def _item(section: RankedSection, settings: LearningSettings) -> Item:
    match = section.match
    book = _text(match, settings.fields.book_title)
    return Item(
        type="kb",
        key=f"learning:{match.collection}/{match.id}",
        title=f"{match.title} ({book})" if book else match.title,
        content=match.passage,
        url=match.url,
        score=section.score,
        collection=match.collection,
        document_id=match.id,
    )


def _text(match: CollectionMatch, field: str) -> str:
    value = match.fields.get(field)
    return value if isinstance(value, str) else ""
