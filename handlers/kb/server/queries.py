"""The queries of a search on a Qdrant server, and what they find. No requests are made here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qdrant_client import models

from groundhook.handlers.kb import paging, points
from groundhook.handlers.kb.analyse import Sparse
from groundhook.handlers.kb.ranking.scale import Scale
from groundhook.handlers.kb.server.filter import of_language, of_passages, of_tenant
from groundhook.handlers.kb.server.layout import PLACE, Place, place
from groundhook.handlers.kb.store import Question

Points = Sequence[models.ScoredPoint]


@dataclass(frozen=True)
class Ranked:
    """The rankings of one language: the nearest passages by vector, the best by words, the cosines
    of all of these, and the words of the best by words."""

    dense: Mapping[Place, float]
    words: Mapping[Place, float]
    cosines: Mapping[Place, float]
    tokens: frozenset[int]


def among(
    question: Question, without: Collection[str], language: str, languages: Sequence[str]
) -> models.Filter:
    """Return the condition for passages of one of the languages."""
    spoken = of_language(language, languages)
    return of_passages(question.tenant, without, question.filter, spoken)


def rankings(
    question: Question,
    words: Sparse,
    scale: Scale,
    languages: Sequence[str],
    without: Collection[str],
) -> list[models.QueryRequest]:
    """Return the queries for passages of each language, and for the two best passages of each of
    the question's words."""
    requests: list[models.QueryRequest] = []
    for language in languages:
        dense = models.QueryRequest(
            query=scale.vector.tolist(),
            using=points.DENSE,
            filter=among(question, without, language, languages),
            limit=paging.pool_of(question),
            with_payload=PLACE,
        )
        requests += [dense, *(_by_words(dense, words, question.tenant) if words.indices else ())]
    visible = of_passages(question.tenant, without, None)
    return requests + [
        models.QueryRequest(
            **_leg(Sparse([index], [1.0]), visible, 2, question.tenant), with_payload=PLACE
        )
        for index in words.indices
    ]


def read_rankings(
    found: Sequence[Points], languages: int, words: int
) -> tuple[list[Ranked], list[dict[Place, float]]]:
    """Return what the queries of `rankings` found."""
    each = (len(found) - words) // languages
    ranked = []
    for start in range(0, each * languages, each):
        near, *by_words = found[start : start + each]
        best, cosines, very_best = by_words or ([], [], [])
        ranked.append(
            Ranked(
                scores(near),
                scores(best),
                scores(cosines) | scores(near),
                frozenset(index for point in very_best for index in _tokens(point)),
            )
        )
    return ranked, [scores(two) for two in found[each * languages :]]


def _by_words(
    dense: models.QueryRequest, words: Sparse, tenant: str | None
) -> list[models.QueryRequest]:
    """The best by words; the same once more, with their cosines; and the very best one with its
    words."""
    leg = _leg(words, dense.filter, dense.limit, tenant)
    return [
        models.QueryRequest(**leg, with_payload=PLACE),
        dense.model_copy(update={"prefetch": models.Prefetch(**leg)}),
        models.QueryRequest(**leg | {"limit": 1}, with_payload=False, with_vector=[points.WORDS]),
    ]


def _leg(
    words: Sparse, wanted: models.Filter | None, limit: int | None, tenant: str | None
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


def scores(found: Points) -> dict[Place, float]:
    return {place(point.payload): point.score for point in found}


def _tokens(found: models.ScoredPoint) -> frozenset[int]:
    vector: Any = found.vector
    return frozenset(vector[points.WORDS].indices)
