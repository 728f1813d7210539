"""Judges how far the first passage that a search found answers its question, from numbers that a
search has anyway. Pure, with one set of weights for all languages and embedding models.

    u = (cosine - middle) / scale          of the model's curve: the logit of a similarity
    z = -3.2 + 0.6 u(best) + min(u(best) - u(tenth), 4.2) + 2.9 share

`best` is the most similar of the first three passages, `share` that of the question's words that
the first passage has, each weighed by its rarity; across languages, where words cannot match, 2.5
stands for it. A passage without the word that the question asks for, or that is not about the
thing for which it asks (`ranking.asked`), or that has less than two fifths of the words by rarity
and less than half of them, is never sure. `bench/certainty.py` measures the results;
docs/retrieval.md has them, and what a search cannot know of itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from groundhook.core.language.catalogue import all_words, language
from groundhook.core.language.definitions import defined
from groundhook.core.language.scripts import count_scripts, main_script
from groundhook.core.language.terms import spelt_like, terms
from groundhook.core.types.search import Certainty
from groundhook.handlers.kb.analyse import Analyser, is_code, is_ngram, words_of
from groundhook.handlers.kb.language import language_of, language_of_question
from groundhook.handlers.kb.ranking.asked import (
    decisive,
    has_amount,
    headings,
    lacks_figure,
    subject,
)
from groundhook.handlers.kb.ranking.fusion import Rarity, inverse_frequency
from groundhook.handlers.kb.store.port import SearchEvidence

P = TypeVar("P", bound=Hashable)

START, NEAR, MOST_LEAD, WORDS, ACROSS = -3.2, 0.6, 4.2, 2.9, 2.5
SURE, NONE = 1.5, -0.9
UNSAID = 1.4  # z of a passage that would be sure, and lacks the word that the question asks for
LEAST_SHARE = 0.4  # of the question's words, by rarity, in a passage that is sure
_COMMON = 0.2  # a word of more than this share of the passages tells nothing
_FIRST, _LEAD = 3, 10  # the passages that are compared
UNRELATED = 0.08  # similarity of the nearest passage to questions that nothing answers
_GRAMS = 0.7  # share of a word's n-grams that a passage which has the word has at least
_SURELY = 1e-6  # similarities nearer to 0 and 1 are taken for these
_TELLING = 120  # characters of a Latin text that show its language
_LONGEST = 2_000  # characters of a question that are judged
_LEAST_PART = 4  # letters of the last part of a compound noun
_LEVEL = re.compile(r"[›\n]")
_SENTENCE = re.compile(r"(?<=[.!?:;])\s+|\n")
_NO_TOPIC = ("frequent", "function", "asking", "relating", "vague", "cut")


@dataclass(frozen=True)
class Judgement:
    """`z` as above, and what it was made of: `near`, the similarity of the nearest passage, `held`,
    the share of the words, None across languages, and `lacks`, what is asked for and not there.
    `unread`: the names and codes of the question that no passage has, as typed."""

    z: float
    unread: tuple[str, ...] = ()
    near: float = 0.0
    held: float | None = None
    lacks: str = ""

    @property
    def certainty(self) -> Certainty:
        return "sure" if self.z >= SURE else "none" if self.z < NONE else "partial"

    def as_trace(self) -> dict[str, Any]:
        """Return what the trace shows."""
        held = None if self.held is None else round(self.held, 3)
        made_of = {"near": round(self.near, 3), "words": held, "lacks": self.lacks}
        return {"certainty": self.certainty, **made_of}


@dataclass(frozen=True)
class First:
    """The first passage that was found: its headings with its content, and the content alone."""

    whole: str
    content: str


def evidence(
    order: Sequence[P],
    cosines: Mapping[P, float],
    rarity: Mapping[int, Rarity],
    passages: int,
) -> SearchEvidence | None:
    """Return what a store reports for `judge`: `order` are the passages compared, best first."""
    if not order:
        return None
    nearest = sorted(cosines.values(), reverse=True)[:_LEAD]
    return SearchEvidence(
        best=max(cosines[place] for place in order[:_FIRST]),
        tenth=nearest[-1] if len(nearest) >= _FIRST else None,
        rarity={index: one.idf for index, one in rarity.items()},
        missing=tuple(index for index, one in rarity.items() if one.missing),
        common=inverse_frequency(max(1.0, _COMMON * passages), passages),
    )


def judge(
    question: str, first: First, seen: SearchEvidence, analysed: str, best: float, tenth: float
) -> Judgement:
    """Judge a search whose `best` and `tenth` passages have these similarities, in a collection
    that is `analysed` in a language."""
    text = question[:_LONGEST]
    words = list(_words(text, first, seen, analysed))
    near = _logit(best)
    z = START + NEAR * near + min(near - _logit(tenth), MOST_LEAD)
    held, lacks = None, ""
    if _is_across(text, first, analysed):
        z += ACROSS
    else:
        whole = math.fsum(word.weight for word in words)
        held = math.fsum(word.weight for word in words if word.held) / (whole or 1.0)
        z += WORDS * held
        lacks = _lacking(text, words, first, analysed) if z > UNSAID else ""
        z = min(z, UNSAID) if lacks else z
    unread = tuple(dict.fromkeys(word.typed for word in words if word.unread))
    return Judgement(z, unread, best, held, lacks)


def _lacking(question: str, words: Sequence[_Word], first: First, analysed: str) -> str:
    """Return the word without which the passage cannot answer if it lacks it, or "a figure", or the
    thing that it is not about."""
    asked = language_of_question(question) or analysed
    if lacks_figure(question, asked, first.content):
        return "a figure"
    if (named := subject(question, asked)) and not _is_about(named, first):
        return named
    telling = _telling(words)
    held = {word.typed for word in words if word.held}
    needed = decisive(question, asked, telling)
    if needed and not _has(needed, held, question, asked, first):
        return needed
    missing = {word: weight for word, weight in telling.items() if word not in held}
    if 2 * len(held) >= len({word.typed for word in words}):
        return ""  # among a few passages every word is common, and has no weight
    too_much = math.fsum(missing.values()) > (1 - LEAST_SHARE) * math.fsum(telling.values())
    return max(missing, key=lambda word: missing[word]) if too_much else ""


def _telling(words: Iterable[_Word]) -> dict[str, float]:
    """Return the words that tell something, as typed, with the weight of the rarest token."""
    telling: dict[str, float] = {}
    for word in words:
        if word.weight:
            telling[word.typed] = max(telling.get(word.typed, 0.0), word.weight)
    return telling


def _has(needed: str, held: Collection[str], question: str, asked: str, first: First) -> bool:
    """Return whether a passage has a word of the question: a name as one, and others also in
    another spelling, as the end of a compound, or for a price as an amount of money."""
    passage = _Passage(first.whole, frozenset())
    if needed != needed.lower() and _is_name(needed, 1, words_of(question)[1:], asked, ()):
        return passage.has_name(needed)
    return (
        needed in held
        or passage.has_alike(needed)
        or passage.has_last_part(needed, asked)
        or has_amount(needed, asked, first.content)
    )


def _is_about(named: str, first: First) -> bool:
    """Return whether a heading of a passage is a thing's name or a part of it, or one of its
    sentences begins with the name and says what it is."""
    name = frozenset(terms(named))
    above = _LEVEL.split(first.whole.removesuffix(first.content))
    titles = ({*terms(each)} for each in [*above, *headings(first.content)])
    words = ({word for word in title if not word.isdigit()} for title in titles)
    return (
        not name
        or any(title and title <= name for title in words)
        or any(name == {*terms(defined(each))} for each in _SENTENCE.split(first.content))
    )


def _logit(similarity: float) -> float:
    inside = min(1 - _SURELY, max(_SURELY, similarity))
    return math.log(inside / (1 - inside))


def _is_across(question: str, first: First, analysed: str) -> bool:
    """Return whether question and passage are in two languages, as far as both are recognised."""
    script = main_script(count_scripts(question))
    own = main_script(count_scripts(first.content or first.whole))
    if script and own and script != own:
        return True
    short = own == "latin" and len(first.content) < _TELLING
    spoken = analysed if short else language_of(first.content)
    asked = language_of_question(question)
    return bool(asked) and language(spoken) is not None and asked != spoken


@dataclass(frozen=True)
class _Word:
    """A word of the question with a topic, as typed; one of a script without blanks is a part of
    two or three letters. `unread`: it is a name or a code that no passage has."""

    typed: str
    weight: float
    held: bool
    unread: bool


def _words(question: str, first: First, seen: SearchEvidence, analysed: str) -> Iterator[_Word]:
    lexical = Analyser(analysed)
    asked = language_of_question(question)
    general, no_topic = _general(asked, analysed), _general_words(asked, analysed)
    passage = _Passage(first.whole, lexical.indices(first.whole))
    missing = frozenset(seen.missing)
    typed = words_of(question)
    for at, word in enumerate(typed):
        tokens = lexical.indices(word)
        own = [index for index in tokens if not is_ngram(index) and index not in general]
        if word.lower() in no_topic:
            continue
        unknown = missing.issuperset(own)
        near = passage.has_most(tokens) or (unknown and passage.has_alike(word))
        unread = unknown and not near and _is_name(word, at, typed, asked, own)
        for index in own:
            rarity = seen.rarity.get(index, 0.0)
            weight = rarity if rarity >= seen.common - _SURELY else 0.0
            yield _Word(word, weight, near or index in passage.tokens, unread)


@dataclass(frozen=True)
class _Passage:
    """The words of a passage: as tokens, and as they are spelt."""

    text: str
    tokens: frozenset[int]

    def has_most(self, tokens: Iterable[int]) -> bool:
        """Return whether the passage has most of a word's n-grams; False for a word of none."""
        grams = [index for index in tokens if is_ngram(index)]
        return bool(grams) and len(self.tokens.intersection(grams)) >= _GRAMS * len(grams)

    def has_alike(self, word: str) -> bool:
        """Return whether the passage has a word that is spelt like this one."""
        return bool(spelt_like(word.lower(), self._spelt))

    def has_last_part(self, word: str, spoken: str) -> bool:
        """Return whether the passage has the noun that a compound ends in, in a language that
        writes them in one word: "Port" for "Standardport"."""
        known = language(spoken or "-")
        return (known is not None and known.nouns_capitalised) and any(
            len(each) >= _LEAST_PART and word.lower().endswith(each) for each in self._spelt
        )

    def has_name(self, word: str) -> bool:
        """Return whether the passage has a name as one: "Windows", and not context windows."""
        names = {each.lower() for each in words_of(self.text) if each != each.lower()}
        return bool(spelt_like(word.lower(), names)) or word.lower() in names

    @cached_property
    def _spelt(self) -> frozenset[str]:
        return frozenset(each.lower() for each in words_of(self.text))


@lru_cache(maxsize=64)
def _general_words(asked: str, analysed: str) -> frozenset[str]:
    """Return the words without a topic of both languages; of all where none is recognised."""
    known = [each for each in map(language, (asked or "-", analysed)) if each]
    if not known:
        return frozenset().union(*map(all_words, _NO_TOPIC))
    return frozenset().union(*(each.words(*_NO_TOPIC) for each in known))


@lru_cache(maxsize=64)
def _general(asked: str, analysed: str) -> frozenset[int]:
    lexical = Analyser(analysed)
    return lexical.indices(" ".join(_general_words(asked, analysed)))


def _is_name(word: str, at: int, typed: Sequence[str], asked: str, tokens: Sequence[int]) -> bool:
    """Return whether a word is an exact code, is in Latin script in a question in another one, or
    has a capital that its place does not explain."""
    if any(map(is_code, tokens)):
        return True
    if count_scripts(word).keys() != {"latin"}:
        return word[:1].isupper() and at > 0
    if count_scripts(" ".join(typed)).keys() != {"latin"}:
        return True
    spoken = language(asked) if asked else None
    if not word[:1].isupper() or (spoken is not None and spoken.nouns_capitalised):
        return word[1:] != word[1:].lower()
    return at > 0 and any(each[:1].islower() for each in typed)
