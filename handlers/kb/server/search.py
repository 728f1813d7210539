"""Searching a collection on a Qdrant server: one request for both rankings, one for what was found,
and one between them where more passages match than were compared. Several questions share them.

A document that is replaced during a search is seen whole or not at all: every candidate's version
is compared with the one in its document's record, and if they differ the search is repeated without
the version that does not count.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Any

from qdrant_client import AsyncQdrantClient, models

from groundhook.handlers.kb import paging, points
from groundhook.handlers.kb.analyse import Analyser, Sparse
from groundhook.handlers.kb.balance import Balance
from groundhook.handlers.kb.ranking import fusion
from groundhook.handlers.kb.ranking.scale import Scale
from groundhook.handlers.kb.ranking.selection import grouped
from groundhook.handlers.kb.server.known import Known
from groundhook.handlers.kb.server.layout import PLACE, SETTINGS_ID, Place, kept_of, parse_settings
from groundhook.handlers.kb.server.link import ServerLink
from groundhook.handlers.kb.server.queries import (
    Points,
    Ranked,
    among,
    rankings,
    read_rankings,
    scores,
)
from groundhook.handlers.kb.store import Answer, Hit, Question


class Changed(Exception):
    """The collection was rebuilt during the search."""


@dataclass(frozen=True)
class _Found:
    """What was found for a question: passages with their similarities, best first, versions of
    documents that were met with their documents' records, and the answer without its hits."""

    page: Mapping[Place, float]
    met: Mapping[str, str]
    answer: Answer


_Finding = Generator[Sequence[models.QueryRequest], Sequence[Points], _Found]


async def search(
    link: ServerLink, known: Known, questions: Sequence[Question], without: dict[str, str]
) -> list[Answer] | None:
    """Return the answers, or None if the search has to be made again. `without` are versions that
    did not count when they were found, with their documents' records; it is brought up to date.
    Raises Changed."""
    found = await _together(link, known, [_find(known, one, without) for one in questions])
    places = {place for one in found for place in one.page}
    met = {version: record for one in found for version, record in one.met.items()} | without
    ids = {*met.values(), *(place.point for place in places), SETTINGS_ID}
    payloads = await _payloads(link, known, ids)
    if parse_settings(payloads.get(SETTINGS_ID)) != known.settings:
        raise Changed
    if _outdated(met, payloads, without) or any(place.point not in payloads for place in places):
        return None
    vectors = await _requested_vectors(link, known, questions, found)
    hits = [_hits(known, one.page, payloads, vectors) for one in found]
    # Another host may have added a document of several passages since `known` was read.
    return [
        replace(one.answer, hits=tuple(grouped(own, question.groups)) if question.groups else own)
        for question, one, own in zip(questions, found, hits, strict=True)
    ]


async def _together(link: ServerLink, known: Known, searches: Sequence[_Finding]) -> list[_Found]:
    """Run several searches, whose next queries always share one request."""
    found: dict[int, _Found] = {}
    waiting = {number: next(search) for number, search in enumerate(searches)}
    while waiting:
        requests = [*chain.from_iterable(waiting.values())]
        responses = await link.read(partial(_queried, name=known.name, requests=requests))
        answered = iter(response.points for response in responses)
        for number, own in list(waiting.items()):
            try:
                waiting[number] = searches[number].send([*islice(answered, len(own))])
            except StopIteration as end:
                found[number] = end.value
                del waiting[number]
    return [found[number] for number in range(len(searches))]


def _queried(
    client: AsyncQdrantClient, *, name: str, requests: Sequence[models.QueryRequest]
) -> Awaitable[list[models.QueryResponse]]:
    return client.query_batch_points(name, requests)


def _find(known: Known, question: Question, without: Collection[str]) -> _Finding:
    """Yield queries, receive the points that they find, and return the page."""
    if not known.divided:  # every passage is a document
        question = replace(question, groups=0)
    words = Analyser(known.settings.language).question(question.text)
    balance = Balance(known.sums) if known.sums else None
    scale = Scale.of(question, balance)
    languages = balance.languages if balance else ("",)
    pool = paging.pool_of(question)
    first = yield rankings(question, words, scale, languages, without)
    ranked, alone = read_rankings(first, len(languages), len(words.indices))
    found = _fused(known, words, scale, ranked, alone, pool)
    enough = {
        place: cosine
        for place, cosine in found.cosines.items()
        if cosine >= question.least_cosine or place in found.sure
    }
    page = yield from _page(question, scale, ranked, languages, without, enough)
    return _Found(
        page.found,
        {place.version: place.record for place in (*found.places, *page.found)},
        Answer(
            candidates=len(found.cosines),
            below=len(found.cosines) - len(enough),
            total=page.total,
            total_is=page.total_is,
            lexical="used" if any(group.weight for group in found.groups) else "no match",
            languages=scale.spoken(balance, found.groups),
            language=known.settings.language,
        ),
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


def _hits(
    known: Known,
    page: Mapping[Place, float],
    payloads: Mapping[str, Mapping[str, Any]],
    vectors: Mapping[str, bytes],
) -> tuple[Hit, ...]:
    """Return the passages of a page."""
    return tuple(
        points.hit(
            payloads[place.point],
            known.settings.fields,
            document=place.document,
            title=payloads[place.record]["title"],
            url=payloads[place.record]["url"],
            ordinal=place.ordinal,
        ).with_cosine(cosine, vectors.get(place.point, b""))
        for place, cosine in page.items()
    )


def _page(
    question: Question,
    scale: Scale,
    ranked: Sequence[Ranked],
    languages: Sequence[str],
    without: Collection[str],
    fused: Mapping[Place, float],
) -> Generator[Sequence[models.QueryRequest], Sequence[Points], paging.Page[Place]]:
    """Return the page. Where the list of a language was cut off, its passages are counted, and
    read only if the page needs more than were fused."""
    lists = [scale.similarities(at, one.dense) for at, one in enumerate(ranked)]
    least, pool = question.least_cosine, paging.pool_of(question)
    cut = [at for at, each in enumerate(lists) if paging.cut_off(each, pool, least)]
    if not cut or not question.counted:
        return paging.page(fused, _union(lists), question, _document, whole=not cut)
    counted = not question.groups and paging.fills(fused, question, _document)
    limit = paging.depth_of(question)
    found = yield [
        models.QueryRequest(
            query=scale.vector.tolist(),
            using=points.DENSE,
            filter=among(question, without, languages[at], languages),
            limit=limit,
            score_threshold=scale.cosine(at, least),
            with_payload=False if counted else PLACE,
        )
        for at in cut
    ]
    whole = all(len(near) < limit for near in found)
    if counted:
        uncut = [each for at, each in enumerate(lists) if at not in cut]
        matching = paging.reached(question, fused, uncut, sum(map(len, found)))
        return paging.page(fused, {}, question, _document, whole=whole, matching=matching)
    longer = [scale.similarities(at, scores(near)) for at, near in zip(cut, found, strict=True)]
    return paging.page(fused, _union([*lists, *longer]), question, _document, whole=whole)


def _union(lists: Sequence[Mapping[Place, float]]) -> dict[Place, float]:
    return dict(chain.from_iterable(each.items() for each in lists))


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
    ranked: Sequence[Ranked],
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
            weight=fusion.weight_of_words(words, rarity, found.tokens),
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


async def _payloads(link: ServerLink, known: Known, ids: set[str]) -> dict[str, Mapping[str, Any]]:
    records = await link.read(
        lambda client: client.retrieve(known.name, sorted(ids), with_payload=True)
    )
    return {str(record.id): record.payload or {} for record in records}


async def _requested_vectors(
    link: ServerLink, known: Known, questions: Sequence[Question], found: Sequence[_Found]
) -> dict[str, bytes]:
    """Return the vectors of the passages found for questions that request them, by point."""
    ids = [
        place.point
        for question, one in zip(questions, found, strict=True)
        if question.vectors
        for place in one.page
    ]
    if not ids:
        return {}
    records = await link.read(
        lambda client: client.retrieve(
            known.name, ids, with_payload=False, with_vectors=[points.DENSE]
        )
    )
    return {str(record.id): kept_of(record)[1] for record in records}
