"""Detects the language of a question: the one with most of its words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from groundhook.handlers.db.question.tokens import tokens_of
from groundhook.handlers.db.question.vocabulary import Vocabulary, alphabet, languages, vocabulary

AUTO = "auto"


@lru_cache(maxsize=1024)
def language_of(question: str, among: tuple[str, ...] = ()) -> str:
    """Return the language whose words occur most often in the question, `among` these or all; with
    equal counts the first one, and English is the first of all. An alphabet that belongs to one
    language decides at once, and so does a language that has all the words."""
    among, letters = tuple(among) or languages(), [sign for sign in question if sign.isalpha()]
    for one in among:
        if 2 * sum(sign in alphabet(one) for sign in letters) > len(letters):
            return one
    without = [one for one in among if not alphabet(one)]
    return _with_most_words(question, without) if len(without) > 1 else [*without, *among][0]


def _with_most_words(question: str, among: Sequence[str]) -> str:
    words = [token.norm for token in tokens_of(question) if token.kind == "word"]
    counts: dict[str, int] = {}
    for language in among:
        counts[language] = sum(word in vocabulary(language).spoken for word in words)
        if counts[language] == len(words):
            break  # no other can have more
    return max(counts, key=lambda language: counts[language])


def words_for(language: str | tuple[str, ...], question: str) -> Vocabulary:
    """Return the vocabulary for a question. `language` may be `auto` or several; words of others
    are not loaded. Raises SourceNotConfigured for a language without a file."""
    if language == AUTO:
        return vocabulary(language_of(question))
    return vocabulary(language if isinstance(language, str) else language_of(question, language))
