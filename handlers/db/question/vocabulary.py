"""The words of a language: read from `<language>.toml` beside this module, checked, and made into a
table of phrases."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any

from pydantic import ValidationError

from groundhook.core.errors import ConfigError, SourceNotConfigured, suggestion
from groundhook.core.types.base import dotted, validation_problems
from groundhook.handlers.db.question.language_file import (
    LanguageFile,
    Word,
    Words,
    words_in,
    words_of,
)
from groundhook.handlers.db.question.tokens import phrase_of

FOLDER = files("groundhook.handlers.db.question")
SHORTEST_STEM = 3
MOST_STEMS = 20_000  # kept, of words and of names, for each language

Phrase = tuple[str, ...]


@dataclass(frozen=True)
class Vocabulary:
    """A language. `phrases` has the meanings that its words have for every model, `longest` the
    number of words of the longest phrase that begins with a word, `spoken` all words."""

    language: str
    file: LanguageFile
    phrases: Mapping[Phrase, tuple[Word, ...]]
    longest: Mapping[str, int]
    spoken: frozenset[str]
    kinds: Mapping[str, Words]
    persons: frozenset[str]

    @cached_property
    def stem(self) -> Callable[[str], str]:
        """Return a word without its plural ending."""
        return lru_cache(MOST_STEMS)(self._strip_ending)

    @cached_property
    def stems(self) -> Callable[[str], Phrase]:
        """Return the stems of the words of a name. `FirstName` and `first_name` have two."""
        return lru_cache(MOST_STEMS)(self._stems_of)

    @cached_property
    def synonyms(self) -> list[list[Phrase]]:
        """Names of fields that mean the same, as stems."""
        return [list(map(self.stems, group)) for group in self.file.synonyms]

    def _strip_ending(self, word: str) -> str:
        if len(word) > SHORTEST_STEM and not word.endswith(self.file.endings_kept):
            for ending, instead in self.file.endings:
                left = len(word) - len(ending)
                if word.endswith(ending) and left + len(instead) >= SHORTEST_STEM:
                    return word[:left] + instead
        return word

    def _stems_of(self, text: str) -> Phrase:
        parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", text)
        return tuple(map(self.stem, phrase_of(parted)))


@cache
def vocabulary(language: str) -> Vocabulary:
    """Return the vocabulary of a language. Raises SourceNotConfigured for a language without a
    file, ConfigError for an invalid file."""
    if language not in languages():
        raise SourceNotConfigured(
            f"questions in {language!r} cannot be read", hint=suggestion(language, languages())
        )
    return build_vocabulary(language, _raw(language))


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


@cache
def _raw(language: str) -> Mapping[str, Any]:
    return tomllib.loads(_text_of(language))


def build_vocabulary(language: str, raw: Mapping[str, Any]) -> Vocabulary:
    """Make a vocabulary from the content of a language's file. Raises ConfigError with the key that
    is wrong, or that English does not have."""
    english = _raw("en")
    for part, known in ((raw, english), (raw.get("dates", {}), english["dates"])):
        for key in part.keys() - known.keys():
            said = f"the words of {language!r}: {key}: no such key"
            raise ConfigError(said, hint=suggestion(key, list(known)))
    if missing := sorted(english["say"].keys() - raw.get("say", {}).keys()):
        raise ConfigError(f"the words of {language!r}: say.{missing[0]}: missing")
    try:
        file = LanguageFile.model_validate(raw)
    except ValidationError as exc:
        path, message = validation_problems(exc)[0]
        raise ConfigError(f"the words of {language!r}: {dotted(path)}: {message}") from exc
    phrases: dict[Phrase, list[Word]] = {}
    longest: dict[str, int] = {}
    for words, meaning in words_in(file):
        if phrase := phrase_of(words):
            phrases.setdefault(phrase, []).append(meaning)
            longest[phrase[0]] = max(len(phrase), longest.get(phrase[0], 0))
    return Vocabulary(
        language,
        file,
        phrases={phrase: tuple(meanings) for phrase, meanings in phrases.items()},
        longest=longest,
        spoken=frozenset(word for phrase in phrases for word in phrase if len(word) > 1),
        kinds={
            kind: tuple(map(_fold, (*file.kinds.get(kind, ()), *words_of(words))))
            for kind, words in english["kinds"].items()
        },
        persons=frozenset(map(_fold, file.persons)),
    )


def _fold(text: str) -> str:
    return " ".join(phrase_of(text))
