"""Searching a collection on a Qdrant server: one request for both rankings, one for what was found,
and one between them where more passages match than were compared. Several questions share them.

A document that is replaced during a search is seen whole or not at all: every candidate's version
is compared with the one in its document's record, and if they differ the search is repeated without
the version that does not count.

The queries of a search on a Qdrant server, and what they find. No requests are made here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Any

from qdrant_client import AsyncQdrantClient, models

from groundhook.handlers.kb.analyse import Analyser, SparseVector
from groundhook.handlers.kb.balance import Balance
from groundhook.handlers.kb.ranking import certainty, fusion
from groundhook.handlers.kb.ranking.scale import Scale
from groundhook.handlers.kb.ranking.selection import limit_per_document
from groundhook.handlers.kb.server.collection_info import CollectionInfo
from groundhook.handlers.kb.server.connection import ServerConnection
from groundhook.handlers.kb.server.filter import of_language, of_passages, of_tenant
from groundhook.handlers.kb.server.layout import (
    PASSAGE_KEY,
    SETTINGS_ID,
    PassageKey,
    parse_key,
    parse_settings,
    payload_and_vector,
)
from groundhook.handlers.kb.store import paging, points
from groundhook.handlers.kb.store.port import Hit, VectorAnswer, VectorQuestion

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
    question: VectorQuestion, excluded: Collection[str], language: str, languages: Sequence[str]
) -> models.Filter:
    """Return the condition for passages of one of the languages."""
    spoken = of_language(language, languages)
    return of_passages(question.tenant, excluded, question.filter, spoken)


def rankings(
    question: VectorQuestion,
    words: SparseVector,
    scale: Scale,
    languages: Sequence[str],
    excluded: Collection[str],
    known: Collection[int],
) -> list[models.QueryRequest]:
    """Return the queries for passages of each language, and for the two best passages of each of
    the question's words; with their words where the word's frequency there is not `known`."""
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
            with_vector=False if index in known else [points.WORDS],
        )
        for index in words.indices
    ]


def frequencies(found: Sequence[Points], words: Sequence[int]) -> dict[int, float]:
    """Return the weighted frequency of words in the best passage for each, from what the queries of
    `rankings` found; without the words that no passage has, and those that were known."""
    weighed: dict[int, float] = {}
    for index, having in zip(words, found[len(found) - len(words) :], strict=True):
        vector: Any = having[0].vector if having else None
        if vector:
            sparse = vector[points.WORDS]
            weighed[index] = dict(zip(sparse.indices, sparse.values, strict=True))[index]
    return weighed


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


class CollectionRebuilt(Exception):
    """The collection was rebuilt during the search."""


@dataclass(frozen=True)
class _FoundPage:
    """The page of a question."""

    page: Mapping[PassageKey, float]  # passages with their similarities, best first
    words: Mapping[PassageKey, float]  # BM25 scores of the best by words
    versions: Mapping[str, str]  # every version of a document that was found, with its record
    answer: VectorAnswer  # without its hits


_PageSearch = Generator[Sequence[models.QueryRequest], Sequence[Points], _FoundPage]


async def search(
    connection: ServerConnection,
    info: CollectionInfo,
    questions: Sequence[VectorQuestion],
    excluded: dict[str, str],
) -> list[VectorAnswer] | None:
    """Return the answers, or None if the search must be repeated. `excluded` are versions of
    documents that were replaced, with the records of their documents; this updates them.
    Raises CollectionRebuilt."""
    found = await _run_together(
        connection, info, [_search_page(info, one, excluded) for one in questions]
    )
    keys = {key for one in found for key in one.page}
    versions = excluded | dict(chain.from_iterable(one.versions.items() for one in found))
    ids = {*versions.values(), *(key.point for key in keys), SETTINGS_ID}
    payloads = await _payloads(connection, info, ids)
    if parse_settings(payloads.get(SETTINGS_ID)) != info.settings:
        raise CollectionRebuilt
    if _update_excluded(versions, payloads, excluded) or any(
        key.point not in payloads for key in keys
    ):
        return None
    vectors = await _requested_vectors(connection, info, questions, found)
    hits = [_make_hits(info, one, payloads, vectors) for one in found]
    # Another host may have added a document of several passages since `info` was read.
    return [
        replace(
            one.answer,
            hits=tuple(limit_per_document(own, question.groups)) if question.groups else own,
        )
        for question, one, own in zip(questions, found, hits, strict=True)
    ]


async def _run_together(
    connection: ServerConnection, info: CollectionInfo, searches: Sequence[_PageSearch]
) -> list[_FoundPage]:
    """Run several searches, whose next queries always share one request."""
    found: dict[int, _FoundPage] = {}
    waiting = {number: next(search) for number, search in enumerate(searches)}
    while waiting:
        requests = [*chain.from_iterable(waiting.values())]
        responses = await connection.read(partial(_query, name=info.name, requests=requests))
        answered = iter(response.points for response in responses)
        for number, own in list(waiting.items()):
            try:
                waiting[number] = searches[number].send([*islice(answered, len(own))])
            except StopIteration as end:
                found[number] = end.value
                del waiting[number]
    return [found[number] for number in range(len(searches))]


def _query(
    client: AsyncQdrantClient, *, name: str, requests: Sequence[models.QueryRequest]
) -> Awaitable[list[models.QueryResponse]]:
    return client.query_batch_points(name, requests)


def _search_page(
    info: CollectionInfo, question: VectorQuestion, excluded: Collection[str]
) -> _PageSearch:
    """Yield queries, receive the points that they find, and return the page."""
    if not info.divided:  # every passage is a document
        question = replace(question, groups=0)
    words = Analyser(info.settings.language).question(question.text)
    balance = Balance(info.sums) if info.sums else None
    scale = Scale.of(question, balance)
    languages = balance.languages if balance else ("",)
    pool = paging.pool_size(question)
    known = {index for tenant, index in info.frequencies if tenant == question.tenant}
    first = yield rankings(question, words, scale, languages, excluded, known)
    ranked, alone = read_rankings(first, len(languages), len(words.indices))
    for index, weight in frequencies(first, words.indices).items():
        info.frequencies[question.tenant, index] = weight
    weights = [info.frequencies.get((question.tenant, index), 1.0) for index in words.indices]
    found = _fuse(info, words, scale, ranked, alone, weights, pool)
    enough = {
        key: cosine
        for key, cosine in found.cosines.items()
        if cosine >= question.least_cosine or key in found.sure
    }
    page = yield from _page(question, scale, ranked, languages, excluded, enough)
    return _FoundPage(
        page.found,
        dict(chain.from_iterable(one.words.items() for one in ranked)),
        {key.version: key.record for key in (*found.keys, *page.found)},
        VectorAnswer(
            candidates=len(found.cosines),
            below=len(found.cosines) - len(enough),
            total=page.total,
            total_is=page.total_is,
            lexical="used" if any(group.weight for group in found.groups) else "no match",
            languages=scale.language_shares(balance, found.groups),
            language=info.settings.language,
            evidence=certainty.evidence([*found.cosines], found.cosines, found.rarity, info.chunks),
        ),
    )


def _update_excluded(
    versions: Mapping[str, str], payloads: Mapping[str, Mapping[str, Any]], excluded: dict[str, str]
) -> bool:
    """Return whether the search excluded the wrong versions, and correct `excluded` then. A version
    is current if the record of its document names it."""
    current = {
        version
        for version, record in versions.items()
        if payloads.get(record, {}).get("version") == version
    }
    replaced = versions.keys() - current
    if replaced == excluded.keys():
        return False
    excluded.clear()
    excluded |= {version: versions[version] for version in replaced}
    return True


def _make_hits(
    info: CollectionInfo,
    found: _FoundPage,
    payloads: Mapping[str, Mapping[str, Any]],
    vectors: Mapping[str, bytes],
) -> tuple[Hit, ...]:
    """Return the passages of a page."""
    return tuple(
        points.make_hit(
            payloads[key.point],
            info.settings.fields,
            document=key.document,
            title=payloads[key.record]["title"],
            url=payloads[key.record]["url"],
            ordinal=key.ordinal,
        ).with_scores(cosine, found.words.get(key, 0.0), vectors.get(key.point, b""))
        for key, cosine in found.page.items()
    )


def _page(
    question: VectorQuestion,
    scale: Scale,
    ranked: Sequence[LanguageRankings],
    languages: Sequence[str],
    excluded: Collection[str],
    fused: Mapping[PassageKey, float],
) -> Generator[Sequence[models.QueryRequest], Sequence[Points], paging.PassagePage[PassageKey]]:
    """Return the page. Where the list of a language was cut off, its passages are counted, and
    read only if the page needs more than were fused."""
    lists = [scale.similarities(at, one.dense) for at, one in enumerate(ranked)]
    least, pool = question.least_cosine, paging.pool_size(question)
    cut = [at for at, each in enumerate(lists) if paging.may_lack_matches(each, pool, least)]
    if not cut or not question.counted:
        return paging.make_page(fused, _union(lists), question, _document, whole=not cut)
    counted = not question.groups and paging.fills_page(fused, question, _document)
    limit = paging.search_depth(question)
    found = yield [
        models.QueryRequest(
            query=scale.vector.tolist(),
            using=points.DENSE,
            filter=passages_in(question, excluded, languages[at], languages),
            limit=limit,
            score_threshold=scale.cosine(at, least),
            with_payload=False if counted else PASSAGE_KEY,
        )
        for at in cut
    ]
    whole = all(len(near) < limit for near in found)
    if counted:
        uncut = [each for at, each in enumerate(lists) if at not in cut]
        matching = paging.count_matches(question, fused, uncut, sum(map(len, found)))
        return paging.make_page(fused, {}, question, _document, whole=whole, matching=matching)
    longer = [scale.similarities(at, scores(near)) for at, near in zip(cut, found, strict=True)]
    return paging.make_page(fused, _union([*lists, *longer]), question, _document, whole=whole)


def _union(lists: Sequence[Mapping[PassageKey, float]]) -> dict[PassageKey, float]:
    return dict(chain.from_iterable(each.items() for each in lists))


def _document(key: PassageKey) -> tuple[str, str]:
    return key.tenant, key.document


@dataclass(frozen=True)
class _FusedPassages:
    """Passages, best first, with their similarities; those that match whatever their similarity
    (`sure`); all places that were found; the rankings of each language; and the rarity of the
    words."""

    cosines: Mapping[PassageKey, float]
    sure: Collection[PassageKey]
    keys: Collection[PassageKey]
    groups: Sequence[fusion.LanguageGroup]
    rarity: Mapping[int, fusion.Rarity]


def _fuse(
    info: CollectionInfo,
    words: SparseVector,
    scale: Scale,
    ranked: Sequence[LanguageRankings],
    alone: Sequence[Mapping[PassageKey, float]],
    frequencies: Sequence[float],
    pool: int,
) -> _FusedPassages:
    # The fusion wants numbers: those of the order in which equally good ones are shown.
    keys = {*chain.from_iterable(one.cosines for one in ranked), *chain.from_iterable(alone)}
    numbered = dict(enumerate(sorted(keys)))
    number = {key: id for id, key in numbered.items()}
    rarity = {
        index: fusion.rarity(
            {number[key]: score for key, score in scores.items()}, info.chunks, weight
        )
        for index, scores, weight in zip(words.indices, alone, frequencies, strict=True)
    }
    groups = [
        fusion.LanguageGroup(
            dense={number[at]: scale.similarity(n, one) for at, one in found.dense.items()},
            words={number[at]: score for at, score in found.words.items()},
            weight=fusion.weight_of_words(words, rarity, found.tokens),
        )
        for n, found in enumerate(ranked)
    ]
    cosines = {
        number[at]: scale.similarity(n, one)
        for n, found in enumerate(ranked)
        for at, one in found.cosines.items()
    }
    order = fusion.fuse(groups, cosines, pool)
    sure = fusion.found_by_one_word(words, rarity, groups)
    return _FusedPassages(
        {numbered[id]: cosines[id] for id in order},
        {numbered[id] for id in sure},
        keys,
        groups,
        rarity,
    )


async def _payloads(
    connection: ServerConnection, info: CollectionInfo, ids: set[str]
) -> dict[str, Mapping[str, Any]]:
    records = await connection.read(
        lambda client: client.retrieve(info.name, sorted(ids), with_payload=True)
    )
    return {str(record.id): record.payload or {} for record in records}


async def _requested_vectors(
    connection: ServerConnection,
    info: CollectionInfo,
    questions: Sequence[VectorQuestion],
    found: Sequence[_FoundPage],
) -> dict[str, bytes]:
    """Return the vectors of the passages found for questions that request them, by point."""
    ids = [
        key.point
        for question, one in zip(questions, found, strict=True)
        if question.vectors
        for key in one.page
    ]
    if not ids:
        return {}
    records = await connection.read(
        lambda client: client.retrieve(
            info.name, ids, with_payload=False, with_vectors=[points.DENSE]
        )
    )
    return {str(record.id): payload_and_vector(record)[1] for record in records}
