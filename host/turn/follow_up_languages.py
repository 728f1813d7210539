"""The languages of follow-ups (`host.turn.follow_up`): the words of each, from the files of
`follow_up_words/`, and the recognition of a text's language. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_WORDS = Path(__file__).with_name("follow_up_words")
WORD = re.compile(r"[^\W_]+(?:['’\-.:/_][^\W_]+)*")
_LATIN = ("en", "de", "fr", "es")
_SCRIPTS = (
    ("zh", re.compile(r"[\u3400-\u9fff]")),
    ("he", re.compile(r"[\u05d0-\u05ea]")),
    ("ar", re.compile(r"[\u0621-\u064a]")),
)
# "sont-ils" is two words.
_INVERTED = re.compile(r"-(?:t-)?(?=(?:ils?|elles?|on|je|tu|nous|vous|ce)\b)", re.I)
# So is "l'installer", where the pronoun is the object of a verb in the infinitive.
_OBJECT = re.compile(r"\bl['’](?=\w+(?:er|ir|re)\b)", re.I)
_ELIDED = re.compile(r"^(?:[ldjcnmts]|qu)['’](?=\w{2})", re.I)

ARTICLES = {"a", "an", "the", "der", "die", "das", "den", "dem", "des", "ein", "eine", "einen"}
ARTICLES |= {"einem", "einer", "le", "la", "les", "l", "un", "une", "el", "los", "las"}


@dataclass(frozen=True)
class Language:
    """The words of one language, in lower case, by kind."""

    id: str
    words: dict[str, frozenset[str]]
    openers: tuple[tuple[str, ...], ...]  # the longest first
    expletives: tuple[tuple[str, ...], ...]

    def has(self, kind: str, word: str) -> bool:
        """Return whether a word is of a kind."""
        return word in self.words.get(kind, frozenset())

    def is_content(self, word: str) -> bool:
        """Return whether a word is a noun, a verb or an adjective."""
        return not self.has("function", word)


def split_words(text: str) -> list[str]:
    """Return the words of a text, without elided articles and with inverted pronouns apart."""
    apart = _OBJECT.sub("le ", _INVERTED.sub(" ", text))
    return [_ELIDED.sub("", word) for word in WORD.findall(apart)]


def opener_of(lower: Sequence[str], language: Language) -> tuple[str, ...]:
    """Return the phrase with which a question continues another one; () without one."""
    for phrase in language.openers:
        if tuple(lower[: len(phrase)]) == phrase:
            return phrase
    return ()


def longest_first(words: Collection[str]) -> list[str]:
    """Return the words so that a part of another one comes after it; in one order, always."""
    return sorted(words, key=lambda word: (-len(word), word))


def language_of(text: str, context: str = "") -> Language:
    """Return the language of a text: by its script, else the one that has most of its words;
    `context` decides between equals."""
    for id, script in _SCRIPTS:
        if script.search(text):
            return _language(id)
    words = [word.lower() for word in split_words(text)]
    around = [word.lower() for word in split_words(context)]

    def known(id: str, of: Sequence[str]) -> int:
        return sum(_language(id).has("function", word) for word in of)

    return _language(max(_LATIN, key=lambda id: (known(id, words), known(id, around))))


@cache
def _language(id: str) -> Language:
    words: dict[str, frozenset[str]] = {}
    phrases: dict[str, tuple[tuple[str, ...], ...]] = {"openers": (), "expletives": ()}
    kind = ""
    for line in (_WORDS / f"{id}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            kind = line.strip("[]")
        elif line and not line.startswith("#"):
            if kind in phrases:
                phrases[kind] += (tuple(line.split()),)
            else:
                words[kind] = words.get(kind, frozenset()) | frozenset(line.split())
    ordered = {kind: tuple(sorted(found, key=len, reverse=True)) for kind, found in phrases.items()}
    return Language(id, words, ordered["openers"], ordered["expletives"])
