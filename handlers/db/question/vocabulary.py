"""The words of a language: read from `<language>.yml` beside this module, checked, and made into a
table of phrases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from pydantic import ValidationError

from groundhook.handlers.db.question import sense, when
from groundhook.handlers.db.question.language_file import DateWords, LanguageFile, Words
from groundhook.handlers.db.question.sense import Phrase
from groundhook.handlers.db.question.tokens import phrase_of
from groundhook.host.core.errors import ConfigError, SourceNotConfigured, suggestion
from groundhook.host.core.types.base import dotted, validation_problems

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
    return made(language, _yaml(FOLDER / f"{language}.yml"))


@cache
def languages() -> tuple[str, ...]:
    """Return the languages that have a file, English first."""
    names = (file.name for file in FOLDER.iterdir())
    found = (name.removesuffix(".yml") for name in names if name.endswith(".yml"))
    return tuple(sorted(found, key=lambda name: (name != "en", name)))


@cache
def alphabet(language: str) -> frozenset[str]:
    """Return the letters of a language with an alphabet of its own, without reading the rest of its
    file."""
    if language not in languages():
        return frozenset()
    text = (FOLDER / f"{language}.yml").read_text(encoding="utf-8")
    letters = re.search(r"^letters: *(\S+)", text, re.MULTILINE)
    return frozenset(letters[1].strip("\"'")) if letters else frozenset()


def made(language: str, raw: Mapping[str, Any]) -> Vocabulary:
    """Make a vocabulary from the content of a language's file. Raises ConfigError with the key."""
    connectors = {name: tuple(raw.get(name, ())) for name in ("and", "or")}
    try:
        file = LanguageFile.model_validate(
            {key: value for key, value in raw.items() if key not in connectors}
        )
    except ValidationError as exc:
        path, message = validation_problems(exc)[0]
        raise ConfigError(f"the words of {language!r}: {dotted(path)}: {message}") from exc
    phrases: dict[Phrase, list[sense.Sense]] = {}
    for words, meaning in _entries(file, connectors):
        for phrase in filter(None, map(phrase_of, words)):
            phrases.setdefault(phrase, []).append(meaning)
    groups = (
        file.fillers,
        file.everything,
        file.negations,
        file.verb_negations,
        file.links,
        file.single,
        *connectors.values(),
    )
    function = {
        word
        for group in (*groups, *file.comparisons.values())
        for phrase in group
        for word in phrase_of(phrase)
    }
    spoken = frozenset(word for key in phrases for word in key if len(word) > 1)
    made_of = {key: tuple(value) for key, value in phrases.items()}
    kinds = {
        kind: tuple(" ".join(phrase_of(word)) for word in words)
        for kind, words in file.kinds.items()
    }
    persons = frozenset(" ".join(phrase_of(word)) for word in file.persons)
    return Vocabulary(
        language,
        file,
        made_of,
        frozenset(function),
        frozenset(word for phrase in file.adjectives.values() for word in phrase),
        spoken,
        kinds,
        persons,
    )


def _yaml(path: Traversable) -> Mapping[str, Any]:
    from ruamel.yaml import YAML

    with path.open(encoding="utf-8") as stream:
        raw: Mapping[str, Any] = YAML(typ="safe").load(stream)
    return raw


def _entries(
    file: LanguageFile, connectors: Mapping[str, Words]
) -> Iterator[tuple[Iterable[str], sense.Sense]]:
    yield from ((words, sense.FigureWord(function)) for function, words in file.figures.items())
    for kind, groups in file.figures_of.items():
        yield from ((words, sense.FigureWord(function, kind)) for function, words in groups.items())
    yield file.per, sense.Per()
    yield file.each, sense.Each()
    yield file.different, sense.Different()
    yield file.asked_values, sense.AskedValue()
    yield file.who, sense.Person()
    yield from ((words, sense.Preposition(kind)) for kind, words in file.prepositions.items())
    yield from ((words, sense.Unit(kind)) for kind, words in file.units.items())
    for kind, scales in file.measures.items():
        yield from ((words, sense.Measure(kind, scale)) for scale, words in scales.items())
    yield from ((words, sense.Adjective(kind)) for kind, words in file.adjectives.items())
    yield from ((words, sense.HowMuch(kind)) for kind, words in file.how_much.items())
    yield from ((words, sense.Compare(op)) for op, words in file.comparisons.items())
    for kind, group in file.comparisons_of.items():
        yield from ((words, sense.Compare(op, kind)) for op, words in group.items())
    yield from ((words, sense.Postfix(op)) for op, words in file.after_number.items())
    yield file.between, sense.Between()
    yield file.between_and, sense.BetweenAnd()
    yield from ((words, sense.Superlative(order)) for order, words in file.superlatives.items())
    yield from ((entry.words, sense.OrderWord(entry.kinds, entry.order)) for entry in file.orders)
    yield file.sort_by, sense.SortBy()
    yield from ((words, sense.Direction(order)) for order, words in file.directions.items())
    yield file.top, sense.Top()
    yield file.first, sense.First()
    yield from (
        (entry.words, sense.Condition(entry.kind, entry.op, entry.value))
        for entry in file.conditions
    )
    yield file.having, sense.Having()
    yield file.negations, sense.Not()
    yield file.verb_negations, sense.Not(of_verb=True)
    yield file.nor, sense.Nor()
    yield file.but, sense.But()
    yield file.than, sense.Than()
    yield file.yes, sense.Truth(True)
    yield file.no, sense.Truth(False)
    yield connectors["and"], sense.And()
    yield connectors["or"], sense.Or()
    yield file.links, sense.Link()
    yield file.equals, sense.Equals()
    yield file.single, sense.Single()
    yield file.contains, sense.Contains()
    yield file.called, sense.Called()
    yield from (([word], sense.Numeral(number)) for word, number in file.numerals.items())
    yield from (([word], sense.Multiplier(number)) for word, number in file.multipliers.items())
    yield from _dates(file.dates)
    yield file.everything, sense.Everything()
    yield file.fillers, sense.Filler()
    yield file.requests, sense.Request()
    yield file.question_words, sense.QuestionWord()
    yield file.lead_ins, sense.LeadIn()
    yield file.made_verbs, sense.MadeVerb()
    yield file.linking_verbs, sense.LinkingVerb()
    yield file.auxiliaries, sense.Auxiliary()
    yield file.relatives, sense.Relative()
    yield from ((words, sense.NumberVerb(kind)) for kind, words in file.number_verbs.items())


def _dates(dates: DateWords) -> Iterator[tuple[Iterable[str], sense.Sense]]:
    for relation in ("since", "after", "before", "until", "during"):
        yield getattr(dates, relation), when.DateRelation(relation)
    yield dates.with_year, when.BeforeYear()
    yield dates.previous, when.Period("previous")
    yield dates.rolling, when.Period("rolling")
    yield dates.counted, when.Period("counted")
    yield dates.definite, when.Definite()
    yield dates.this, when.Period("this")
    yield dates.next, when.Period("next")
    for which in ("previous", "rolling", "this", "next"):
        yield getattr(dates, f"{which}_behind"), when.PeriodBehind(which)
    yield dates.upcoming, when.Ahead(True)
    yield dates.past, when.Ahead(False)
    yield dates.overdue, when.Ahead(False, due=True)
    yield dates.ago, when.Ago()
    yield dates.old, when.Old()
    yield from ((words, when.DatePostfix(relation)) for relation, words in dates.after_date.items())
    yield dates.falls, when.Falls()
    yield dates.today, when.DayWord(0)
    yield dates.yesterday, when.DayWord(-1)
    yield dates.tomorrow, when.DayWord(1)
    yield from ((words, when.DateUnit(unit)) for unit, words in dates.units.items())
    yield dates.weekend, when.Weekend()
    yield from ((words, when.Season(first)) for first, words in dates.seasons.items())
    yield from ((words, when.Nth(number)) for number, words in enumerate(dates.nth, 1))
    yield dates.half, when.Half()
    yield from ((words, when.Clock(hour)) for hour, words in dates.clock_times.items())
    yield from ((words, when.Decade(year)) for year, words in dates.decade_words.items())
    for unit, lengths in dates.lengths.items():
        yield from ((words, when.Length(unit, count)) for count, words in lengths.items())
    for number, words in enumerate(dates.months, 1):
        yield from (([word], when.Month(number, word not in dates.unclear)) for word in words)
    yield from ((words, when.Weekday(number)) for number, words in enumerate(dates.weekdays))
