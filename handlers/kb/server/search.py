"""Searching a collection on a Qdrant server: two requests, one for both rankings and one for
what was found.

A document that is replaced meanwhile is seen whole or not at all: every candidate's version is
compared with the one that its document's record names, and where they differ the search is made
again without the version that does not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from qdrant_client import models

from groundhook.handlers.kb import points
from groundhook.handlers.kb.analyse import Analyser
from groundhook.handlers.kb.language import words_can_match
from groundhook.handlers.kb.ranking import fusion
from groundhook.handlers.kb.server.filter import of_passages, of_tenant
from groundhook.handlers.kb.server.layout import MADE_ID, PLACE, Place, kept_of, made_of, place
from groundhook.handlers.kb.server.link import ServerLink
from groundhook.handlers.kb.store import POOL, Answer, Made, Question, unpacked


@dataclass
class Known:
    """What a host knows of a collection: what it was made with, and, from a sample of its
    documents, how its text is."""

    name: str
    made: Made
    words: int = 0
    chunks: int = 0
    scripts: Counter[str] = field(default_factory=Counter)
    until: float = 0.0  # when to look again, on the loop's clock

    def count(self, record: Mapping[str, Any]) -> None:
        """A document's share in how the text is."""
        self.words += record["words"]
        self.chunks += record["chunks"]
        self.scripts += Counter(record["scripts"])


@dataclass(frozen=True)
class _Rankings:
    """Scores by place: nearest by vector, best by words, and the cosine of every place in either.
    `weight` is what words count."""

    dense: Mapping[Place, float]
    words: Mapping[Place, float]
    cosines: Mapping[Place, float]
    weight: float


class Changed(Exception):
    """The collection is not what it was known as: it was made anew meanwhile."""


async def search(
    link: ServerLink, known: Known, question: Question, without: dict[str, str]
) -> Answer | None:
    """The answer. None: ask again. `without` are versions that did not count when they were met,
    with their documents' records; it is brought up to date. Raises Changed."""
    pool = max(POOL, 4 * question.limit)
    words = Analyser(known.made.language).question(question.text)
    ranked = await _rank(link, known, question, words, pool, without)
    # The fusion wants numbers: those of the order in which equally good ones are shown.
    numbered = dict(enumerate(sorted(ranked.cosines)))
    number = {place: id for id, place in numbered.items()}
    dense, by_words, cosines = (
        {number[place]: score for place, score in leg.items()}
        for leg in (ranked.dense, ranked.words, ranked.cosines)
    )
    worth = fusion.fuse(dense, by_words, limit=pool, weight=ranked.weight).worths(cosines)
    order = fusion.ordered(worth)
    fits = bool(ranked.weight) or words_can_match(question.text, known.scripts)
    enough = [id for id in order if cosines[id] >= question.least_cosine]
    best = {numbered[id]: cosines[id] for id in enough[: question.limit]}
    records = {place.version: place.record for place in number} | without
    found = await _payloads(
        link, known, {*records.values(), *(place.point for place in best), MADE_ID}
    )
    if made_of(found.get(MADE_ID)) != known.made:
        raise Changed
    counting = {
        version
        for version, record in records.items()
        if found.get(record, {}).get("version") == version
    }
    if counting & without.keys() or records.keys() - without.keys() - counting:
        without.clear()
        without |= {
            version: record for version, record in records.items() if version not in counting
        }
        return None
    if any(place.point not in found for place in best):
        return None
    vectors = (
        await _vectors(link, known, [place.point for place in best]) if question.vectors else {}
    )
    return Answer(
        hits=tuple(
            points.hit(
                found[place.point],
                known.made.fields,
                document=place.document,
                title=found[place.record]["title"],
                url=found[place.record]["url"],
                ordinal=place.ordinal,
            ).found(cosine, vectors.get(place.point, b""))
            for place, cosine in best.items()
        ),
        candidates=len(order),
        below=len(order) - len(enough),
        lexical="used" if ranked.weight else "no match" if fits else "other script",
        language=known.made.language,
    )


async def _rank(
    link: ServerLink,
    known: Known,
    question: Question,
    words: Any,
    limit: int,
    without: dict[str, str],
) -> _Rankings:
    wanted = of_passages(question.tenant, without, question.filter)
    dense = models.QueryRequest(
        query=unpacked(question.vector),
        using=points.DENSE,
        filter=wanted,
        limit=limit,
        with_payload=PLACE,
    )
    requests = [dense]
    if words is not None and words.indices:
        requests += _by_words(dense, words, question.tenant)
    found = [
        response.points
        for response in await link.read(
            lambda client: client.query_batch_points(known.name, requests)
        )
    ]
    by_vector, by_words, cosines = ([_scores(points) for points in found[:3]] + [{}, {}])[:3]
    weight = (
        fusion.weight_of_words(words, [_tokens(point) for point in found[3]])
        if len(found) > 3
        else 0.0
    )
    return _Rankings(by_vector, by_words, cosines | by_vector, weight)


def _by_words(
    dense: models.QueryRequest, words: Any, tenant: str | None
) -> list[models.QueryRequest]:
    """The best by words; the same once more, with their cosines; and the very best with their
    words."""
    sparse = models.SparseVector(indices=list(words.indices), values=list(words.values))
    rare_for_the_tenant = None
    if tenant is not None:
        rare_for_the_tenant = models.SearchParams(
            idf=models.IdfCorpusParams(corpus=of_tenant(tenant))
        )
    leg: dict[str, Any] = {
        "query": sparse,
        "using": points.WORDS,
        "filter": dense.filter,
        "limit": dense.limit,
        "params": rare_for_the_tenant,
    }
    prefetch = models.Prefetch(**leg)
    return [
        models.QueryRequest(**leg, with_payload=PLACE),
        dense.model_copy(update={"prefetch": prefetch}),
        models.QueryRequest(
            **leg | {"limit": fusion.LOOKED_AT}, with_payload=False, with_vector=[points.WORDS]
        ),
    ]


def _scores(found: Sequence[models.ScoredPoint]) -> dict[Place, float]:
    return {place(point.payload): point.score for point in found}


def _tokens(found: models.ScoredPoint) -> frozenset[int]:
    vector: Any = found.vector
    return frozenset(vector[points.WORDS].indices)


async def _payloads(link: ServerLink, known: Known, ids: set[str]) -> dict[str, Mapping[str, Any]]:
    records = await link.read(
        lambda client: client.retrieve(known.name, sorted(ids), with_payload=True)
    )
    return {str(record.id): record.payload or {} for record in records}


async def _vectors(link: ServerLink, known: Known, ids: list[str]) -> dict[str, bytes]:
    records = await link.read(
        lambda client: client.retrieve(
            known.name, ids, with_payload=False, with_vectors=[points.DENSE]
        )
    )
    return {str(record.id): kept_of(record)[1] for record in records}
