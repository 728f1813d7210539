"""The words of a language: read from `<language>.toml` beside this module, checked, and made into a
table of phrases."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from pydantic import ValidationError

from groundhook.core.errors import ConfigError, SourceNotConfigured, suggestion
from groundhook.core.types.base import dotted, validation_problems
from groundhook.handlers.db.question import sense
from groundhook.handlers.db.question.language_file import LanguageFile, Words, meanings_of
from groundhook.handlers.db.question.sense import Phrase
from groundhook.handlers.db.question.tokens import phrase_of

FOLDER = files("groundhook.handlers.db.question")
SHORTEST_STEM = 3


@dataclass(frozen=True)
class Vocabulary:
    """A language. `phrases` has the meanings that its words have for every model."""

    language: str
    file: LanguageFile
    phrases: Mapping[Phrase, tuple[sense.Sense, ...]]
    function_words: frozenset[str]
    adjectives: frozenset[str]
    spoken: frozenset[str]
    kinds: Mapping[str, Words]
    persons: frozenset[str]

    def stem(self, word: str) -> str:
        """The word without its plural ending."""
        return _strip_ending(word, self.file.endings, self.file.endings_kept)

    def root(self, word: str) -> str:
        """Return the word without the endings of any form. A verb or an adjective shares it with
        its noun: "earning", "earns" and "earned" become "earn". It is not a word of the language,
        and is only compared with other roots."""
        endings, kept = self.file.forms or self.file.endings, self.file.endings_kept
        return _strip_ending(_strip_ending(word, endings, kept), endings, kept)


@lru_cache(maxsize=20_000)
def _strip_ending(word: str, endings: tuple[tuple[str, str], ...], kept: Words) -> str:
    if len(word) > 3 and not word.endswith(kept):
        for ending, instead in endings:
            if word.endswith(ending) and len(word) - len(ending) + len(instead) >= SHORTEST_STEM:
                return word[: len(word) - len(ending)] + instead
    return word


@cache
def vocabulary(language: str) -> Vocabulary:
    """Return the vocabulary of a language. Raises SourceNotConfigured for a language without a
    file, ConfigError for an invalid file."""
    if language not in languages():
        raise SourceNotConfigured(
            f"questions in {language!r} cannot be read", hint=suggestion(language, languages())
        )
    return build_vocabulary(language, tomllib.loads(_text_of(language)))


@cache
def languages() -> tuple[str, ...]:
    """Return the languages that have a file, English first."""
    names = (file.name for file in FOLDER.iterdir())
    found = (name.removesuffix(".toml") for name in names if name.endswith(".toml"))
    return tuple(sorted(found, key=lambda name: (name != "en", name)))


@cache
def alphabet(language: str) -> frozenset[str]:
    """Return the letters of a language with an alphabet of its own, without reading the rest of its
    file."""
    if language not in languages():
        return frozenset()
    letters = re.search(r'^letters = "(\w+)"', _text_of(language), re.MULTILINE)
    return frozenset(letters[1]) if letters else frozenset()


def _text_of(language: str) -> str:
    return (FOLDER / f"{language}.toml").read_text(encoding="utf-8")


def build_vocabulary(language: str, raw: Mapping[str, Any]) -> Vocabulary:
    """Make a vocabulary from the content of a language's file. Raises ConfigError with the key."""
    try:
        file = LanguageFile.model_validate(raw)
    except ValidationError as exc:
        path, message = validation_problems(exc)[0]
        raise ConfigError(f"the words of {language!r}: {dotted(path)}: {message}") from exc
    phrases: dict[Phrase, list[sense.Sense]] = {}
    for words, meaning in meanings_of(file):
        if phrase := phrase_of(words):
            phrases.setdefault(phrase, []).append(meaning)
    return Vocabulary(
        language,
        file,
        phrases={phrase: tuple(meanings) for phrase, meanings in phrases.items()},
        function_words=_list_function_words(file),
        adjectives=frozenset(word for words in file.adjectives.values() for word in words),
        spoken=frozenset(word for phrase in phrases for word in phrase if len(word) > 1),
        kinds=_kinds_of(file),
        persons=frozenset(map(_fold, file.persons)),
    )


def _kinds_of(file: LanguageFile) -> dict[str, tuple[str, ...]]:
    """Return the words of each kind of fields, best first. A field "in euros" is money too, after
    those that are called so; "pounds" may be a weight."""
    kinds = {kind: tuple(map(_fold, words)) for kind, words in file.kinds.items()}
    scales = [words for each in file.measures.values() for words in each.values()]
    measures = {word for words in scales for word in words}
    currencies = (_fold(word) for word in file.units.get("money", ()) if word not in measures)
    return {**kinds, "money": (*kinds.get("money", ()), *filter(None, currencies))}


def _list_function_words(file: LanguageFile) -> frozenset[str]:
    """Return the words without content of their own: a value that consists of them alone would be
    found in questions that do not mean it."""
    groups = (
        file.fillers,
        file.everything,
        file.negations,
        file.verb_negations,
        file.links,
        file.single,
        file.and_,
        file.or_,
        *file.comparisons.values(),
    )
    return frozenset(word for group in groups for phrase in group for word in phrase_of(phrase))


def _fold(text: str) -> str:
    return " ".join(phrase_of(text))
