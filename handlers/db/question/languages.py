"""Detects the language of a question: the one with most of its words. Pure."""

from __future__ import annotations

from functools import lru_cache

from groundhook.handlers.db.question.tokens import tokens_of
from groundhook.handlers.db.question.vocabulary import (
    Vocabulary,
    alphabet,
    languages,
    vocabulary,
)

AUTO = "auto"


@lru_cache(maxsize=1024)
def language_of(question: str) -> str:
    """Return the language whose words occur most often in the question; with equal counts the first
    one, and English is the first of all. An alphabet that belongs to one language decides at
    once."""
    signs = set(question)
    possible = [one for one in languages() if not (own := alphabet(one)) or own & signs]
    counts = {language: _known(question, vocabulary(language)) for language in possible}
    return max(counts, key=lambda language: counts[language])


def words_for(language: str, question: str) -> Vocabulary:
    """Return the vocabulary for a question; `language` may be `auto`. Raises SourceNotConfigured
    for a language without a file."""
    return vocabulary(language_of(question) if language == AUTO else language)


def _known(question: str, words: Vocabulary) -> int:
    letters = [sign for sign in question if sign.isalpha()]
    own = sum(sign in words.letters for sign in letters)
    if words.letters:
        return 100 if own * 2 > len(letters) else 0
    return sum(token.norm in words.single for token in tokens_of(question))
