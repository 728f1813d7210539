"""Searching an open collection: rankings, weights of words, and the page of a question.

Synchronous, for the worker process alone. Takes no payload from the disk: `collection` reads the
passages of the page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from groundhook.handlers.kb.analyse import Analyser, SparseVector
from groundhook.handlers.kb.balance import Balance, Sums
from groundhook.handlers.kb.embedded.edge import ORDINALS, Rankings, Shard, scores
from groundhook.handlers.kb.embedded.manifest import Manifest
from groundhook.handlers.kb.embedded.point_cache import PointCache
from groundhook.handlers.kb.ranking import certainty, fusion, names
from groundhook.handlers.kb.ranking.scale import Scale
from groundhook.handlers.kb.store import paging
from groundhook.handlers.kb.store.port import EVERY, VectorAnswer, VectorQuestion

_MATCHED = 512  # passages whose words are remembered: those that match best
_RARE = 65_536  # words whose rarity is remembered


class PointScores(NamedTuple):
    """A passage with its similarity to a question, and its BM25 score; 0: not among the best."""

    id: int
    cosine: float
    words: float


class Search:
    """The searches of one collection. `shard` returns its vectors, which an optimised copy may
    replace."""

    def __init__(self, manifest: Manifest, language: str, shard: Callable[[], Shard]) -> None:
        self._manifest = manifest
        self._language = language
        self._current = shard
        self._question = Analyser(language)
        self._balanced_of: Sums | None = None
        self._balanced: Balance | None = None
        self._rare: dict[tuple[str | None, int], fusion.Rarity] = {}
        self._names: dict[tuple[str | None, str], bool] = {}
        self._tokens = PointCache(_MATCHED, lambda ids: self._shard.tokens(ids))

    @property
    def _shard(self) -> Shard:
        return self._current()

    def page(self, question: VectorQuestion) -> tuple[list[PointScores], VectorAnswer]:
        """Return the passages of a question's page, best first, and the answer without its
        hits."""
        if not self._manifest.divided:  # every passage is a document
            question = replace(question, groups=0)
        words = self._question.question(question.text)
        balance = self._balance()
        scale = Scale.of(question, balance)
        languages = balance.languages if balance else ("",)
        pool = paging.pool_size(question)
        ranked = self._shard.rank(
            scale.vector,
            words,
            limit=pool,
            tenant=question.tenant,
            hidden=self._manifest.hidden,
            among=question.filter,
            languages=languages,
        )
        rarity = self._rarity(words, question.tenant)
        groups = self._groups(ranked, scale, words, rarity)
        cosines = self._cosines(groups, scale)
        order = fusion.fuse(groups, cosines, pool)
        alone = fusion.found_by_one_word(words, rarity, groups)
        enough = [id for id in order if cosines[id] >= question.least_cosine or id in alone]
        fused_matches = {id: cosines[id] for id in enough}
        page = self._page(question, scale, groups, languages, fused_matches)
        by_words = fusion.scores_of_words(groups)
        scored = [
            PointScores(id, cosine, by_words.get(id, 0.0)) for id, cosine in page.found.items()
        ]
        return scored, VectorAnswer(
            candidates=len(order),
            below=len(order) - len(enough),
            total=page.total,
            total_is=page.total_is,
            lexical="used" if any(group.weight for group in groups) else "no match",
            languages=scale.language_shares(balance, groups),
            language=self._language,
            evidence=certainty.evidence(order, cosines, rarity, self._manifest.chunks),
        )

    def _page(
        self,
        question: VectorQuestion,
        scale: Scale,
        groups: Sequence[fusion.LanguageGroup],
        languages: Sequence[str],
        fused: Mapping[int, float],
    ) -> paging.PassagePage[int]:
        """Return the page. Where the list of a language was cut off, its passages are counted, and
        read only if the page needs more than were fused."""
        least, pool = question.least_cosine, paging.pool_size(question)
        cut = [
            at
            for at, group in enumerate(groups)
            if paging.may_lack_matches(group.dense, pool, least)
        ]
        if not cut or not question.counted:
            nearest = _nearest(groups)
            return paging.make_page(fused, nearest, question, _generation, whole=not cut)
        fills = paging.fills_page(fused, question, _generation)
        if fills and least <= EVERY and question.groups <= 1:
            matching = self._count(question)
            return paging.make_page(fused, {}, question, _generation, matching=matching)
        limit = paging.search_depth(question)
        found = self._shard.nearest(
            scale.vector,
            limit=limit,
            least={languages[at]: scale.cosine(at, least) for at in cut},
            languages=languages,
            tenant=question.tenant,
            hidden=self._manifest.hidden,
            among=question.filter,
        )
        whole = all(len(points) < limit for points in found)
        if fills and not question.groups:
            uncut = [group.dense for at, group in enumerate(groups) if at not in cut]
            matching = paging.count_matches(question, fused, uncut, sum(map(len, found)))
            return paging.make_page(
                fused, {}, question, _generation, whole=whole, matching=matching
            )
        nearest = _nearest(groups)
        for at, points in zip(cut, found, strict=True):
            nearest |= scale.similarities(at, scores(points))
        return paging.make_page(fused, nearest, question, _generation, whole=whole)

    def _count(self, question: VectorQuestion) -> int:
        """Count all passages that a question may find, or its documents if it wants one passage of
        each."""
        if question.tenant is None and question.filter is None and not question.groups:
            return self._manifest.chunks
        return self._shard.count(
            tenant=question.tenant,
            hidden=self._manifest.hidden,
            among=question.filter,
            documents=question.groups == 1,
        )

    def _balance(self) -> Balance | None:
        """Return the languages of the collection; None if those of its passages are unknown."""
        sums = self._manifest.languages
        if self._balanced_of is not sums:
            self._balanced_of, self._rare, self._names = sums, {}, {}
            self._balanced = Balance(sums) if sums else None
        return self._balanced

    def is_name(self, word: str, tenant: str | None) -> bool:
        """Return whether a word is the name of what the passages of a tenant are about."""
        self._balance()  # forgets what was known of passages that have changed
        key = (tenant, word.lower())
        if key not in self._names:
            if len(self._names) >= _RARE:
                self._names = {}
            self._names[key] = self._is_name(word, tenant)
        return self._names[key]

    def _is_name(self, word: str, tenant: str | None) -> bool:
        tokens = self._question.indices(word)
        if len(tokens) != 1:  # a code, or a word of n-grams
            return False
        rarity = self._rarity(SparseVector([*tokens], [1.0]), tenant)
        most = self._manifest.chunks
        hidden = self._manifest.hidden
        if all(
            one.idf > fusion.inverse_frequency(names.SHARE * most, most) for one in rarity.values()
        ):
            return False  # as a rule; counting takes longer
        [token] = tokens
        ids = self._shard.having(token, limit=most, tenant=tenant, hidden=hidden)
        passages = self._shard.count(tenant=tenant, hidden=hidden, among=None)
        documents = self._shard.count(tenant=tenant, hidden=hidden, among=None, documents=True)
        if not names.is_everywhere(len(ids), passages, len({*map(_generation, ids)}), documents):
            return False
        sample = sorted(ids)[:: max(1, len(ids) // names.SAMPLE)][: names.SAMPLE]
        read = self._shard.payloads(sample)
        return names.is_capitalised(word, [read[id]["content"] for id in sample])

    def _rarity(self, words: SparseVector, tenant: str | None) -> dict[int, fusion.Rarity]:
        """Return the rarity of each of a question's words."""
        missing = [index for index in words.indices if (tenant, index) not in self._rare]
        hidden = self._manifest.hidden
        found = self._shard.best_for_tokens(missing, tenant=tenant, hidden=hidden)
        first = [next(iter(scores), None) for scores in found]
        frequencies = self._shard.frequencies({id for id in first if id is not None})
        new = {
            (tenant, index): fusion.rarity(
                scores, self._manifest.chunks, frequencies[id][index] if id is not None else 1.0
            )
            for index, scores, id in zip(missing, found, first, strict=True)
        }
        if len(self._rare) > _RARE:
            self._rare = {}
        if not hidden:
            self._rare |= new
        return {
            index: new.get((tenant, index)) or self._rare[tenant, index] for index in words.indices
        }

    def _groups(
        self,
        ranked: Sequence[Rankings],
        scale: Scale,
        words: SparseVector,
        rarity: Mapping[int, fusion.Rarity],
    ) -> list[fusion.LanguageGroup]:
        return [
            fusion.LanguageGroup(
                dense=scale.similarities(at, found.dense),
                words=found.words,
                weight=self._weight(words, rarity, found.words),
            )
            for at, found in enumerate(ranked)
        ]

    def _weight(
        self, words: SparseVector, rarity: Mapping[int, fusion.Rarity], found: Mapping[int, float]
    ) -> float:
        if not found:
            return 0.0
        highest = max(found.values())
        [tokens] = self._tokens.of([min(id for id, score in found.items() if score == highest)])
        return fusion.weight_of_words(words, rarity, tokens)

    def _cosines(self, groups: Sequence[fusion.LanguageGroup], scale: Scale) -> dict[int, float]:
        """Return the similarities of all passages that a ranking lists."""
        cosines = _nearest(groups)
        places: dict[int, int] = {}
        for at, group in enumerate(groups):
            if group.weight:
                places |= dict.fromkeys(group.words.keys() - group.dense.keys(), at)
        measured = self._shard.cosines(scale.vector, places.keys())
        return cosines | {id: scale.similarity(places[id], one) for id, one in measured.items()}


def _nearest(groups: Sequence[fusion.LanguageGroup]) -> dict[int, float]:
    return {id: one for group in groups for id, one in group.dense.items()}


def _generation(id: int) -> int:
    return id >> ORDINALS
