"""Detects the language of a question: the one with most of its words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from groundhook.handlers.db.model.schema import Schema
from groundhook.handlers.db.question.tokens import LONGEST_QUESTION, tokens_of
from groundhook.handlers.db.question.vocabulary import Vocabulary, alphabet, languages, vocabulary

AUTO = "auto"


def language_of(question: str, among: Sequence[str] = (), schemas: Iterable[Schema] = ()) -> str:
    """Return the language whose words occur most often in the question, `among` these or all. Of
    languages with as many, that in which most words are names of the models or of their fields in
    any form ("Rechnungen", of Rechnung), then the first; English is the first of all. An alphabet
    that belongs to one language decides at once, and so does a language that has all the words."""
    best = _candidates(question, tuple(among) or languages())
    if len(best) == 1:
        return best[0]
    words, names = _words_of(question), [_names_in(schema) for schema in schemas]
    named = {one: _count_named(words, names, vocabulary(one)) for one in best}
    return max(best, key=lambda one: named[one])


@lru_cache(maxsize=1024)
def _candidates(question: str, among: tuple[str, ...]) -> tuple[str, ...]:
    """Return the languages with the most words of a question."""
    letters = [sign for sign in question[:LONGEST_QUESTION] if sign.isalpha()]
    for one in among:
        if 2 * sum(sign in alphabet(one) for sign in letters) > len(letters):
            return (one,)
    without = [one for one in among if not alphabet(one)]
    if len(without) < 2:
        return (*without, *among)[:1]
    words, counts = _words_of(question), {}
    for one in without:
        counts[one] = sum(word in vocabulary(one).spoken for word in words)
        if counts[one] == len(words) > 0:
            return (one,)  # no other can have more
    return tuple(one for one in without if counts[one] == max(counts.values()))


def _count_named(words: Sequence[str], names: Sequence[tuple[str, ...]], own: Vocabulary) -> int:
    """Return how many words are those of names, with the endings of a language."""
    known = frozenset[str]().union(*(_stems_of(each, own.language) for each in names))
    return sum(own.stem(word) in known for word in words)


@lru_cache(maxsize=4096)
def _stems_of(names: tuple[str, ...], language: str) -> frozenset[str]:
    own = vocabulary(language)
    return frozenset(stem for name in names for stem in own.stems(name))


def _names_in(schema: Schema) -> tuple[str, ...]:
    return (*schema.names, *(one.shown for one in schema.visible))


def _words_of(question: str) -> list[str]:
    return [token.norm for token in tokens_of(question) if token.kind == "word"]


def words_for(
    language: str | tuple[str, ...], question: str, schemas: Iterable[Schema] = ()
) -> Vocabulary:
    """Return the vocabulary for a question about these models. `language` may be `auto` or several;
    words of others are not loaded. Raises SourceNotConfigured for a language without a file."""
    if language == AUTO:
        return vocabulary(language_of(question, (), schemas))
    if isinstance(language, str):
        return vocabulary(language)
    return vocabulary(language_of(question, language, schemas))
