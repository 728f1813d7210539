"""The analyser: splits text into tokens and returns sparse vectors for BM25, the same for every
engine.

The tokens depend on the script of each span. Words are stemmed. Words in Hebrew and Arabic script,
which have prefixes and suffixes, also give their 3-grams of letters. Scripts without spaces between
words give n-grams only. One spelling finds another: letters count without accents, digits of all
scripts, hyphens and minus signs of all kinds are one, and a number with separators ("1,250,000") is
also one without. A code ("AB-1234/x", "search.kb", "C++") is one token, and its parts are
tokens too. No word is omitted, but function words ("how do I") count less in a question: they are
rare in most documents, and would weigh as much as its topic.

A vector has the BM25 weight of each token's frequency; the engine multiplies by the inverse
document frequency (Robertson and Zaragoza: The Probabilistic Relevance Framework, 2009). The length
of a passage is counted in characters, so that scripts are comparable, and compared with a fixed
length: the mean of a collection gives no better results, and changes while documents are added.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple
from zlib import crc32

import Stemmer

from groundhook.core.language.scripts import (
    SCRIPTS,
    composed,
    normalise,
    strip_accents,
    without_marks,
)
from groundhook.handlers.kb.language import function_words, script_of, stemmers

# The kind of a token, in the low bits of its index; 0 is a word. 2 was a single Chinese character:
# collections made by earlier versions have such tokens.
_NGRAM, _CODE, _KIND = 1, 3, 3

# Letters and digits, and the marks within words that \w leaves out: Latin to Cyrillic, Arabic, the
# scripts of India, Thai, Lao, Myanmar, Khmer.
_SIGN = (
    "\\w\u0300-\u036f\u0483-\u0487\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0966-\u0dff"
    "\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u1056-\u1059\u17b4-\u17d3"
)
_CHUNKS = re.compile(f"[{_SIGN}]+(?:[-./:@#+&'’\"׳״·]+[{_SIGN}]+)*(?:\\+\\+|#)?")
_PARTS = re.compile(f"(?:(?!_)[{_SIGN}])+")
_SPANS = re.compile(
    "|".join(
        f"(?P<{script}>[{letters}][{letters}\u0300-\u036f\u0483-\u0487]*)"
        for script, letters in SCRIPTS.items()
    )
    + "|(?P<digits>\\d+)|(?P<other>[^\\W\\d_]+)"
)
# Marks within Hebrew acronyms, and of sounds that Hebrew has no letter for.
_QUOTED = re.compile("(?<=[א-ת])[\"'’׳״](?=[א-ת])")
# Short vowels, and the stretching of words.
_ARABIC_MARKS = re.compile("[\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]")
_CODE_SIGNS = re.compile("[0-9_./:@#+]")
# The lookaheads search for a digit once, not from every letter.
_CODE_PATTERN = re.compile(r"\A(?=\D*\d)(?=\d*\D)|[_./:@#+]")
_DASHES = re.compile("[\u2010-\u2013\u2212\ufe58]")
# A number in groups of three digits, with one separator throughout.
_GROUPED = re.compile(
    "(?<![\\w.,'’])(?<![0-9] )[0-9]{1,3}([.,'’ ])[0-9]{3}(?:\\1[0-9]{3}){0,4}(?!\\w|\\1[0-9])"
)
_LONGEST_CACHED = 48  # characters of the longest word that is cached
_CACHE_SIZE = 1 << 16

_NGRAM_LENGTHS = {"hebrew": 3, "arabic": 3}  # length of the n-grams in addition to words
# Length of the n-grams in place of words.
_UNSPACED_LENGTHS = {"cjk": 2, "hangul": 2, "thai": 3, "lao": 3, "khmer": 3, "myanmar": 3}


class Weights(NamedTuple):
    """The weights of tokens; `bench/ablation.py` measures the effect of each."""

    saturation: float = 0.9  # k of BM25
    lengths: float = 0.6  # b of BM25
    usual_length: float = 700.0  # of a passage, in characters
    run: float = 0.75  # of an n-gram in a question; a word has 1
    filling: float = 0.3  # of a function word


WEIGHTS = Weights()


class SparseVector(NamedTuple):
    """Indices in rising order, each with its weight."""

    indices: list[int]
    values: list[float]


class Analyser:
    """Returns the vectors of texts in a collection of one of `language.analysed()`."""

    def __init__(self, language: str, weights: Weights = WEIGHTS) -> None:
        self._tokenizer = _tokenizer(language)
        self._earlier = _tokenizer(language, earlier=True)
        self._weights = weights

    def document(self, text: str) -> SparseVector:
        """Return the vector of a passage. The weight of a token grows with its frequency, less and
        less, and falls with the length of the passage."""
        k, b = self._weights.saturation, self._weights.lengths
        norm = k * (1 - b + b * len(text) / self._weights.usual_length)
        counts = Counter(self._tokenizer.indices(text))
        weight = {count: count * (k + 1) / (count + norm) for count in set(counts.values())}
        indices = sorted(counts)
        return SparseVector(indices, [weight[counts[index]] for index in indices])

    def question(self, text: str) -> SparseVector:
        """Return the vector of a question, in which each token counts once. It has the tokens of
        passages that an earlier version stored."""
        found = set(self._tokenizer.indices(text))
        if not text.isascii():
            found.update(self._earlier.indices(text))
        indices = sorted(found)
        return SparseVector(
            indices, [self._tokenizer.weight(index, self._weights) for index in indices]
        )

    def indices(self, text: str) -> frozenset[int]:
        """Return the tokens of a text."""
        return frozenset(self._tokenizer.indices(text))

    def tokens(self, text: str) -> list[str]:
        """Return the tokens of a text, in order. An n-gram of a word begins with `#`."""
        chunks = [*_CHUNKS.findall(_spelled(text)), *_ungrouped(_spelled(text))]
        return [token for chunk in chunks for token in self._tokenizer.tokens(chunk)]


class _Tokenizer(dict[str, tuple[int, ...]]):
    """Splits text into tokens: word → the indices of its tokens. The tokens of each word are
    cached, since most words of a text occur often. `earlier`: as a version that told one spelling
    from another did."""

    def __init__(self, language: str, *, earlier: bool) -> None:
        self._earlier = earlier
        self._plain = without_marks if earlier else strip_accents
        # 0: without their own cache, which takes four times as long as stemming.
        self._stemmers = {
            script: Stemmer.Stemmer(name, 0) for script, name in stemmers(language).items()
        }
        # A number gives n-grams like the words around it, so that both weigh the same.
        self._ngram_lengths = _NGRAM_LENGTHS | (
            {"digits": 3} if script_of(language) in _NGRAM_LENGTHS else {}
        )
        self._filling = frozenset(
            index for word in function_words(language) for index in self[word]
        )

    def indices(self, text: str) -> Iterator[int]:
        """Return the indices of a text's tokens. A chunk contains no blank."""
        spelled = composed(text).lower() if self._earlier else _spelled(text)
        words = spelled.split()
        return chain.from_iterable(
            map(self.__getitem__, words if self._earlier else [*words, *_ungrouped(spelled)])
        )

    def __missing__(self, word: str) -> tuple[int, ...]:
        chunks = [word] if word.isascii() and word.isalpha() else _CHUNKS.findall(word)
        if len(word) > _LONGEST_CACHED and len(chunks) > 1:
            return tuple(chain.from_iterable(map(self.__getitem__, chunks)))
        found = tuple(
            [
                crc32(token.encode()) & ~_KIND | _kind(token)
                for chunk in chunks
                for token in self.tokens(chunk)
            ]
        )
        if len(word) <= _LONGEST_CACHED:
            if len(self) >= _CACHE_SIZE:
                self.clear()
            self[word] = found
        return found

    def weight(self, index: int, weights: Weights) -> float:
        """Return the weight of a token in a question."""
        kind = weights.run if index & _KIND == _NGRAM else 1.0
        return kind * (weights.filling if index in self._filling else 1.0)

    def tokens(self, chunk: str) -> list[str]:
        # The usual case, in which nothing else has to be checked.
        if chunk.isascii() and chunk.isalpha():
            return [*self._word("latin", chunk)]
        chunk = _ARABIC_MARKS.sub("", _QUOTED.sub("", chunk))
        parts = _PARTS.findall(chunk)
        found = [token for part in parts for token in self._part(part)]
        return [*found, chunk] if parts and _is_code(chunk, parts) else found

    def _part(self, part: str) -> Iterator[str]:
        spans = list(_SPANS.finditer(part))
        for span in spans:
            script, text = span.lastgroup or "other", span.group()
            yield from (
                ngrams(text, _UNSPACED_LENGTHS[script])
                if script in _UNSPACED_LENGTHS
                else self._word(script, text)
            )
        # Letters and digits: "RTX4090" also matches "RTX 4090".
        if len(spans) > 1 and part.isascii():
            yield part

    def _word(self, script: str, word: str) -> Iterator[str]:
        stemmer = self._stemmers.get(script)
        stem = self._plain(stemmer.stemWord(word) if stemmer else word)
        if stem:  # nothing is left of a mark without a letter
            yield stem
        if stemmer and not word.isascii() and (plain := strip_accents(word)) != without_marks(word):
            # Another stem may be that of the word without its letters ("Søren", "Soren").
            other = stemmer.stemWord(plain)
            if other != stem and not self._earlier:
                yield other
        if script in self._ngram_lengths:
            yield from (
                f"#{run}" for run in ngrams(f"_{self._plain(word)}_", self._ngram_lengths[script])
            )


def _kind(token: str) -> int:
    if token.isalpha():
        return 0
    if token[0] == "#":
        return _NGRAM
    return _CODE if _CODE_PATTERN.search(token) else 0


def is_code(index: int) -> bool:
    """Return whether an index belongs to an exact code: letters with digits, or parts joined by a
    sign."""
    return index & _KIND == _CODE


def is_ngram(index: int) -> bool:
    """Return whether an index belongs to an n-gram beside the word that has it."""
    return index & _KIND == _NGRAM


def words_of(text: str) -> list[str]:
    """Return the words and codes of a text as typed, in order; those of scripts without blanks are
    whole runs."""
    found: list[str] = _CHUNKS.findall(normalise(text))
    return found


@lru_cache(maxsize=16)
def _tokenizer(language: str, *, earlier: bool = False) -> _Tokenizer:
    return _Tokenizer(language, earlier=earlier)


def _spelled(text: str) -> str:
    """Return text in the spelling that tokens are made of. Markdown may escape underscores."""
    text = normalise(text).lower().replace("\\_", "_")
    return text if text.isascii() else _DASHES.sub("-", text)


def _ungrouped(spelled: str) -> list[str]:
    """Return the numbers in groups of digits, without separators."""
    return ["".join(filter(str.isdigit, found[0])) for found in _GROUPED.finditer(spelled)]


def _is_code(chunk: str, parts: Sequence[str]) -> bool:
    """Return whether a chunk is a name rather than words joined by a sign ("well-known")."""
    return chunk[-1] in "+#" or (len(parts) > 1 and _CODE_SIGNS.search(chunk) is not None)


def ngrams(text: str, length: int) -> list[str]:
    """Return every n-gram of `length` letters; the text itself if it is shorter."""
    return [text[start : start + length] for start in range(max(1, len(text) - length + 1))]
