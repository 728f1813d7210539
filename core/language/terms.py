"""Normalises the words of a question and of a sentence, so that they can be compared across case,
inflection and script.

Crude on purpose: a few suffixes and prefixes, so that "stored", "stores" and "storing" match, and
pairs of characters for scripts without spaces. That is enough to find the sentence about the same
subject.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from functools import cache

from groundhook.core.language.catalogue import languages
from groundhook.core.language.scripts import normalise, strip_accents

_WORD = re.compile(r"[^\W_]+(?:['’\"״׳][^\W_]+)*")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0e7f]+")
_HEBREW = re.compile(r"^[\u05d0-\u05ea\"״׳']+$")
_ARABIC = re.compile(r"^[\u0621-\u064a]+$")


def fold(text: str) -> str:
    """Return the text in one case and one spelling of its letters and digits."""
    return unicodedata.normalize("NFC", strip_accents(normalise(text.casefold())))


@cache
def _stop_words() -> frozenset[str]:
    """Return words without a topic: questions have many of them, and their rarity among a few
    sentences is meaningless. Only of the languages that list the words with which people ask: the
    words of the others are too often a topic elsewhere."""
    asked = [each for each in languages().values() if each.lines("asking")]
    words = (word for each in asked for word in each.words("function", "asking", "relating"))
    return frozenset(fold(" ".join(words)).split())


# Endings of English and German words, the longest first; a stem keeps at least four characters.
_ENDINGS = (
    "ations",
    "ation",
    "ingly",
    "ings",
    "ing",
    "ies",
    "edly",
    "ers",
    "ed",
    "es",
    "en",
    "er",
    "ly",
    "s",
    "e",
    "y",
)


def terms(text: str) -> list[str]:
    """Return the normalised words of a text, in order, without stop words."""
    found: list[str] = []
    for word in _WORD.findall(fold(text)):
        if _UNSPACED.search(word):
            found += _pairs(word)
        elif word not in _stop_words():
            found.append(_stem(word))
    return found


def _pairs(word: str) -> list[str]:
    """Return pairs of neighbouring characters for runs in a script without spaces, and the other
    runs of the word as stems."""
    found: list[str] = []
    position = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > position:
            found.append(_stem(word[position : run.start()]))
        text = run[0]
        found += [text[at : at + 2] for at in range(len(text) - 1)] or [text]
        position = run.end()
    if position < len(word):
        found.append(_stem(word[position:]))
    return found


def _stem(word: str) -> str:
    if _HEBREW.match(word):
        return _hebrew(word)
    if _ARABIC.match(word):
        return word[2:] if word.startswith("ال") and len(word) > 4 else word
    if any(character.isdigit() for character in word):
        return word
    word = word.removesuffix("'s").removesuffix("’s")
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 4 and word[-1] == word[-2] else word


def _hebrew(word: str) -> str:
    """Return a Hebrew word without up to two prefix letters ("and", "the", "in", "as", "to",
    "from", "that") and without a plural ending."""
    for _ in range(2):
        if len(word) > 4 and word[0] in "והבכלמש":
            word = word[1:]
    if len(word) > 4 and word.endswith(("ים", "ות")):
        word = word[:-2]
    return word


def spelt_like(word: str, others: Collection[str]) -> list[str]:
    """Return those of `others` that differ from a word in one letter, or in two from eight letters
    on, the nearest first; words of three letters have too many neighbours."""
    from rapidfuzz.distance import OSA  # a turn that finds nothing to quote does not need it

    most = 0 if len(word) < 4 else 1 if len(word) < 8 else 2
    apart = {
        other: OSA.distance(word, other, score_cutoff=most)
        for other in others
        if most and abs(len(word) - len(other)) <= most
    }
    near = [other for other, distance in apart.items() if distance <= most]
    return sorted(near, key=lambda other: (apart[other], other))
