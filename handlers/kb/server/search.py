"""Searching a collection on a Qdrant server: one request for both rankings, one for what was found,
and one between them where more passages match than were compared.

A document that is replaced during a search is seen whole or not at all: every candidate's version
is compared with the one in its document's record, and if they differ the search is repeated without
the version that does not count.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from qdrant_client import models

from groundhook.handlers.kb import paging, points
from groundhook.handlers.kb.analyse import Analyser, Sparse
from groundhook.handlers.kb.balance import Balance, Sums, changed, read
from groundhook.handlers.kb.ranking import fusion
from groundhook.handlers.kb.ranking.scale import Scale
from groundhook.handlers.kb.server.filter import of_language, of_passages, of_tenant
from groundhook.handlers.kb.server.layout import MADE_ID, PLACE, Place, kept_of, made_of, place
from groundhook.handlers.kb.server.link import ServerLink
from groundhook.handlers.kb.store import Answer, Hit, Made, Question


@dataclass
class Known:
    """What a host knows about a collection: its settings, and statistics of its text, taken from a
    sample of its documents."""

    name: str
    made: Made
    words: int = 0
    chunks: int = 0
    sums: Sums | None = field(default_factory=dict)  # None: some documents' languages are not known
    until: float = 0.0  # when to look again, on the loop's clock

    def count(self, record: Mapping[str, Any]) -> None:
        """Add a document to the statistics."""
        self.words += record["words"]
        self.chunks += record["chunks"]
        languages = record.get("languages")
        if self.sums is not None:
            self.sums = changed(self.sums, read(languages)) if languages else None


@dataclass(frozen=True)
class _Ranked:
    """The rankings of one language: the nearest passages by vector, the best by words, the cosines
    of all of these, and the words of the very best."""

    dense: Mapping[Place, float]
    words: Mapping[Place, float]
    cosines: Mapping[Place, float]
    tokens: Sequence[frozenset[int]]


class Changed(Exception):
    """The collection was rebuilt during the search."""


async def search(
    link: ServerLink, known: Known, question: Question, without: dict[str, str]
) -> Answer | None:
    """Return the answer, or None if the search has to be made again. `without` are versions that
    did not count when they were found, with their documents' records; it is brought up to date.
    Raises Changed."""
    words = Analyser(known.made.language).question(question.text)
    balance = Balance(known.sums) if known.sums else None
    scale = Scale.of(question, balance)
    languages = balance.languages if balance else ("",)
    pool = paging.pool_of(question)
    ranked, alone = await _rank(link, known, question, words, scale, languages, without)
    found = _fused(known, words, scale, ranked, alone, pool)
    enough = {
        place: cosine
        for place, cosine in found.cosines.items()
        if cosine >= question.least_cosine or place in found.sure
    }
    nearest, whole = await _nearest(link, known, question, scale, ranked, languages, without)
    page = paging.page(enough, nearest, question, _document, whole=whole)
    met = {place.version: place.record for place in (*found.places, *page.found)} | without
    payloads = await _payloads(
        link, known, {*met.values(), *(place.point for place in page.found), MADE_ID}
    )
    if made_of(payloads.get(MADE_ID)) != known.made:
        raise Changed
    if _outdated(met, payloads, without):
        return None
    if any(place.point not in payloads for place in page.found):
        return None
    return Answer(
        hits=await _hits(link, known, question, page.found, payloads),
        candidates=len(found.cosines),
        below=len(found.cosines) - len(enough),
        total=page.total,
        total_is=page.total_is,
        lexical="used" if any(group.weight for group in found.groups) else "no match",
        languages=scale.spoken(balance, found.groups),
        language=known.made.language,
    )


def _outdated(
    met: Mapping[str, str], payloads: Mapping[str, Mapping[str, Any]], without: dict[str, str]
) -> bool:
    """Return whether other versions count than the search assumed, and bring `without` up to date
    then. `met` are versions with their documents' records."""
    counting = {
        version
        for version, record in met.items()
        if payloads.get(record, {}).get("version") == version
    }
    if not counting & without.keys() and not met.keys() - without.keys() - counting:
        return False
    without.clear()
    without |= {version: record for version, record in met.items() if version not in counting}
    return True


async def _hits(
    link: ServerLink,
    known: Known,
    question: Question,
    page: Mapping[Place, float],
    payloads: Mapping[str, Mapping[str, Any]],
) -> tuple[Hit, ...]:
    """Return the passages of a page, with their vectors if the question wants them."""
    vectors = (
        await _vectors(link, known, [place.point for place in page]) if question.vectors else {}
    )
    return tuple(
        points.hit(
            payloads[place.point],
            known.made.fields,
            document=place.document,
            title=payloads[place.record]["title"],
            url=payloads[place.record]["url"],
            ordinal=place.ordinal,
        ).found(cosine, vectors.get(place.point, b""))
        for place, cosine in page.items()
    )


async def _nearest(
    link: ServerLink,
    known: Known,
    question: Question,
    scale: Scale,
    ranked: Sequence[_Ranked],
    languages: Sequence[str],
    without: Collection[str],
) -> tuple[dict[Place, float], bool]:
    """Return the similarities of all passages that reach the threshold by their vectors, and
    whether these are all. Only the languages are searched again whose list was cut off."""
    lists = [
        {place: scale.similar(at, cosine) for place, cosine in one.dense.items()}
        for at, one in enumerate(ranked)
    ]
    nearest = {place: one for each in lists for place, one in each.items()}
    least, pool = question.least_cosine, paging.pool_of(question)
    cut = [at for at, each in enumerate(lists) if paging.cut_off(each, pool, least)]
    if not cut or not question.counted:
        return nearest, not cut
    limit = paging.depth_of(question)
    requests = [
        models.QueryRequest(
            query=scale.vector.tolist(),
            using=points.DENSE,
            filter=_among(question, without, languages[at], languages),
            limit=limit,
            score_threshold=scale.cosine(at, least),
            with_payload=PLACE,
        )
        for at in cut
    ]
    responses = await link.read(lambda client: client.query_batch_points(known.name, requests))
    for at, response in zip(cut, responses, strict=True):
        scores = _scores(response.points)
        nearest |= {each: scale.similar(at, cosine) for each, cosine in scores.items()}
    return nearest, all(len(response.points) < limit for response in responses)


def _among(
    question: Question, without: Collection[str], language: str, languages: Sequence[str]
) -> models.Filter:
    """Return the condition for passages of one of the languages."""
    spoken = of_language(language, languages)
    return of_passages(question.tenant, without, question.filter, spoken)


def _document(place: Place) -> tuple[str, str]:
    return place.tenant, place.document


@dataclass(frozen=True)
class _Fused:
    """Passages, best first, with their similarities; those that match whatever their similarity
    (`sure`); all places that were found; and the rankings of each language."""

    cosines: Mapping[Place, float]
    sure: Collection[Place]
    places: Collection[Place]
    groups: Sequence[fusion.Group]


def _fused(
    known: Known,
    words: Sparse,
    scale: Scale,
    ranked: Sequence[_Ranked],
    alone: Sequence[Mapping[Place, float]],
    pool: int,
) -> _Fused:
    # The fusion wants numbers: those of the order in which equally good ones are shown.
    places = {*chain.from_iterable(one.cosines for one in ranked), *chain.from_iterable(alone)}
    numbered = dict(enumerate(sorted(places)))
    number = {place: id for id, place in numbered.items()}
    rarity = {
        index: fusion.rarity(
            {number[place]: score for place, score in scores.items()}, known.chunks
        )
        for index, scores in zip(words.indices, alone, strict=True)
    }
    groups = [
        fusion.Group(
            dense={number[at]: scale.similar(n, one) for at, one in found.dense.items()},
            words={number[at]: score for at, score in found.words.items()},
            weight=fusion.weight_of_words(words, rarity, found.tokens) if found.tokens else 0.0,
        )
        for n, found in enumerate(ranked)
    ]
    cosines = {
        number[at]: scale.similar(n, one)
        for n, found in enumerate(ranked)
        for at, one in found.cosines.items()
    }
    order = fusion.fused(groups, cosines, pool)
    sure = fusion.found_alone(words, rarity, groups)
    return _Fused(
        {numbered[id]: cosines[id] for id in order}, {numbered[id] for id in sure}, places, groups
    )


async def _rank(
    link: ServerLink,
    known: Known,
    question: Question,
    words: Sparse,
    scale: Scale,
    languages: Sequence[str],
    without: dict[str, str],
) -> tuple[list[_Ranked], list[dict[Place, float]]]:
    """What is found among passages of each language, and for each of the question's words the two
    passages that it finds best. All in one request."""
    requests: list[models.QueryRequest] = []
    pool = paging.pool_of(question)
    for language in languages:
        wanted = _among(question, without, language, languages)
        dense = models.QueryRequest(
            query=scale.vector.tolist(),
            using=points.DENSE,
            filter=wanted,
            limit=pool,
            with_payload=PLACE,
        )
        requests += [dense, *(_by_words(dense, words, question.tenant) if words.indices else ())]
    each = len(requests) // len(languages)
    visible = of_passages(question.tenant, without, None)
    requests += [
        models.QueryRequest(
            **_leg(Sparse([index], [1.0]), visible, 2, question.tenant), with_payload=PLACE
        )
        for index in words.indices
    ]
    responses = await link.read(lambda client: client.query_batch_points(known.name, requests))
    found = [response.points for response in responses]
    ranked = []
    for start in range(0, each * len(languages), each):
        near, *by_words = found[start : start + each]
        best, cosines, very_best = by_words or ([], [], [])
        ranked.append(
            _Ranked(
                _scores(near),
                _scores(best),
                _scores(cosines) | _scores(near),
                [_tokens(point) for point in very_best],
            )
        )
    return ranked, [_scores(two) for two in found[each * len(languages) :]]


def _by_words(
    dense: models.QueryRequest, words: Sparse, tenant: str | None
) -> list[models.QueryRequest]:
    """The best by words; the same once more, with their cosines; and the very best with their
    words."""
    leg = _leg(words, dense.filter, dense.limit, tenant)
    return [
        models.QueryRequest(**leg, with_payload=PLACE),
        dense.model_copy(update={"prefetch": models.Prefetch(**leg)}),
        models.QueryRequest(
            **leg | {"limit": fusion.LOOKED_AT}, with_payload=False, with_vector=[points.WORDS]
        ),
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
