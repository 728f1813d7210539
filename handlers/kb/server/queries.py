"""The queries of a search on a Qdrant server, and what they find. No requests are made here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qdrant_client import models

from groundhook.handlers.kb.analyse import SparseVector
from groundhook.handlers.kb.ranking.scale import Scale
from groundhook.handlers.kb.server.filter import of_language, of_passages, of_tenant
from groundhook.handlers.kb.server.layout import PASSAGE_KEY, PassageKey, parse_key
from groundhook.handlers.kb.store import paging, points
from groundhook.handlers.kb.store.port import Question

Points = Sequence[models.ScoredPoint]


@dataclass(frozen=True)
class LanguageRankings:
    """The rankings of one language: the nearest passages by vector, the best by words, the cosines
    of all of these, and the words of the best by words."""

    dense: Mapping[PassageKey, float]
    words: Mapping[PassageKey, float]
    cosines: Mapping[PassageKey, float]
    tokens: frozenset[int]


def passages_in(
    question: Question, excluded: Collection[str], language: str, languages: Sequence[str]
) -> models.Filter:
    """Return the condition for passages of one of the languages."""
    spoken = of_language(language, languages)
    return of_passages(question.tenant, excluded, question.filter, spoken)


def rankings(
    question: Question,
    words: SparseVector,
    scale: Scale,
    languages: Sequence[str],
    excluded: Collection[str],
) -> list[models.QueryRequest]:
    """Return the queries for passages of each language, and for the two best passages of each of
    the question's words."""
    requests: list[models.QueryRequest] = []
    for language in languages:
        dense = models.QueryRequest(
            query=scale.vector.tolist(),
            using=points.DENSE,
            filter=passages_in(question, excluded, language, languages),
            limit=paging.pool_size(question),
            with_payload=PASSAGE_KEY,
        )
        requests += [dense, *(_by_words(dense, words, question.tenant) if words.indices else ())]
    visible = of_passages(question.tenant, excluded, None)
    return requests + [
        models.QueryRequest(
            **_leg(SparseVector([index], [1.0]), visible, 2, question.tenant),
            with_payload=PASSAGE_KEY,
        )
        for index in words.indices
    ]


def read_rankings(
    found: Sequence[Points], languages: int, words: int
) -> tuple[list[LanguageRankings], list[dict[PassageKey, float]]]:
    """Return what the queries of `rankings` found."""
    each = (len(found) - words) // languages
    ranked = []
    for start in range(0, each * languages, each):
        near, *by_words = found[start : start + each]
        best, cosines, very_best = by_words or ([], [], [])
        ranked.append(
            LanguageRankings(
                scores(near),
                scores(best),
                scores(cosines) | scores(near),
                frozenset(index for point in very_best for index in _tokens(point)),
            )
        )
    return ranked, [scores(two) for two in found[each * languages :]]


def _by_words(
    dense: models.QueryRequest, words: SparseVector, tenant: str | None
) -> list[models.QueryRequest]:
    """Return three queries: for the passages that match the words best, for the cosines of these
    passages, and for the words of the first of them."""
    leg = _leg(words, dense.filter, dense.limit, tenant)
    return [
        models.QueryRequest(**leg, with_payload=PASSAGE_KEY),
        dense.model_copy(update={"prefetch": models.Prefetch(**leg)}),
        models.QueryRequest(**leg | {"limit": 1}, with_payload=False, with_vector=[points.WORDS]),
    ]


def _leg(
    words: SparseVector, wanted: models.Filter | None, limit: int | None, tenant: str | None
) -> dict[str, Any]:
    rare_for_the_tenant = None
    if tenant is not None:
        rare_for_the_tenant = models.SearchParams(
            idf=models.IdfCorpusParams(corpus=of_tenant(tenant))
        )
    return {
        "query": models.SparseVector(indices=list(words.indices), values=list(words.values)),
        "using": points.WORDS,
        "filter": wanted,
        "limit": limit,
        "params": rare_for_the_tenant,
    }


def scores(found: Points) -> dict[PassageKey, float]:
    return {parse_key(point.payload): point.score for point in found}


def _tokens(found: models.ScoredPoint) -> frozenset[int]:
    vector: Any = found.vector
    return frozenset(vector[points.WORDS].indices)
