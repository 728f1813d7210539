"""The languages of follow-ups (`host.turn.follow_up`): those of `core.language.catalogue` whose
files have sections `follow-up …`. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache

from groundhook.core.language.catalogue import Language, all_words, languages
from groundhook.core.language.detect import detect

WORD = re.compile(r"[^\W_]+(?:['’\-.:/_][^\W_]+)*")
# "sont-ils" is two words.
_INVERTED = re.compile(r"-(?:t-)?(?=(?:ils?|elles?|on|je|tu|nous|vous|ce)\b)", re.I)
# So is "l'installer", where the pronoun is the object of a verb in the infinitive.
_OBJECT = re.compile(r"\bl['’](?=\w+(?:er|ir|re)\b)", re.I)
_ELIDED = re.compile(r"^(?:[ldjcnmts]|qu)['’](?=\w{2})", re.I)


class FollowUpWords:
    """The words of one language by their part in follow-ups, in lower case."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self.id = language.code
        self.openers = self._phrases("openers")
        self.expletives = self._phrases("expletives")

    def of(self, kind: str) -> frozenset[str]:
        """Return the words of a kind: `pronouns`, `prepositions`, …"""
        return self._language.words(f"follow-up {kind}")

    def has(self, kind: str, word: str) -> bool:
        """Return whether a word is of a kind."""
        return word in self.of(kind)

    def is_content(self, word: str) -> bool:
        """Return whether a word is a noun, a verb or an adjective."""
        return word not in self._language.words("frequent", "function", "relating")

    def is_month(self, word: str) -> bool:
        """Return whether a word is the name of a month."""
        return word in self._language.words("months")

    def _phrases(self, kind: str) -> tuple[tuple[str, ...], ...]:
        """Return the phrases of a kind, the longest first."""
        phrases = [tuple(line.split()) for line in self._language.lines(f"follow-up {kind}")]
        return tuple(sorted(phrases, key=len, reverse=True))


def is_article(word: str) -> bool:
    """Return whether a word in lower case is an article of any language."""
    return word in all_words("articles")


def split_words(text: str) -> list[str]:
    """Return the words of a text, without elided articles and with inverted pronouns apart."""
    apart = _OBJECT.sub("le ", _INVERTED.sub(" ", text))
    return [_ELIDED.sub("", word) for word in WORD.findall(apart)]


def opener_of(lower: Sequence[str], language: FollowUpWords) -> tuple[str, ...]:
    """Return the phrase with which a question continues another one; () without one."""
    for phrase in language.openers:
        if tuple(lower[: len(phrase)]) == phrase:
            return phrase
    return ()


def longest_first(words: Collection[str]) -> list[str]:
    """Return the words so that a part of another one comes after it; in one order, always."""
    return sorted(words, key=lambda word: (-len(word), word))


def language_of(text: str, context: str = "") -> FollowUpWords:
    """Return the language of a text; `context` decides between equals. English where none is
    recognised."""
    known = _known()
    return known[detect(text, question=True, context=context, among=known.keys()) or "en"]


@cache
def _known() -> dict[str, FollowUpWords]:
    return {
        code: FollowUpWords(language)
        for code, language in languages().items()
        if language.lines("follow-up pronouns")
    }
