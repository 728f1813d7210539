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

from groundhook.handlers.db.question.language_file import DateWords, LanguageFile, Words
from groundhook.handlers.db.question.meanings import (
    Adjective,
    Ago,
    Ahead,
    And,
    AskedValue,
    Auxiliary,
    BeforeYear,
    Between,
    BetweenAnd,
    But,
    Called,
    Compare,
    Condition,
    Contains,
    DatePostfix,
    DateRelation,
    DateUnit,
    DayWord,
    Decade,
    Definite,
    Different,
    Direction,
    Each,
    Equals,
    Everything,
    Falls,
    FigureWord,
    Filler,
    First,
    Having,
    HowMuch,
    LeadIn,
    Length,
    Link,
    LinkingVerb,
    MadeVerb,
    Meaning,
    Measure,
    Month,
    Multiplier,
    Nor,
    Not,
    NumberVerb,
    Numeral,
    Old,
    Or,
    OrderWord,
    Per,
    Period,
    PeriodBehind,
    Person,
    Phrase,
    Postfix,
    Preposition,
    QuestionWord,
    Request,
    Single,
    SortBy,
    Superlative,
    Than,
    Top,
    Truth,
    Unit,
    Weekday,
    Weekend,
)
from groundhook.handlers.db.question.tokens import phrase_of
from groundhook.host.core.errors import ConfigError, SourceNotConfigured, suggestion
from groundhook.host.core.types.base import dotted, problems

FOLDER = files("groundhook.handlers.db.question")
SHORTEST_STEM = 3


@dataclass(frozen=True)
class Vocabulary:
    """A language. `phrases` has the meanings that its words have for every model."""

    language: str
    file: LanguageFile
    phrases: Mapping[Phrase, tuple[Meaning, ...]]
    function_words: frozenset[str]
    adjectives: frozenset[str]
    spoken: frozenset[str]
    kinds: Mapping[str, Words]
    persons: frozenset[str]

    def stem(self, word: str) -> str:
        """The word without its plural ending."""
        return _without(word, self.file.endings, self.file.endings_kept)

    def root(self, word: str) -> str:
        """Return the word without the endings of any form. A verb or an adjective shares it with
        its noun: "earning", "earns" and "earned" become "earn". It is not a word of the language,
        and is only compared with other roots."""
        endings, kept = self.file.forms or self.file.endings, self.file.endings_kept
        return _without(_without(word, endings, kept), endings, kept)


@lru_cache(maxsize=20_000)
def _without(word: str, endings: tuple[tuple[str, str], ...], kept: Words) -> str:
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
        path, message = problems(exc)[0]
        raise ConfigError(f"the words of {language!r}: {dotted(path)}: {message}") from exc
    phrases: dict[Phrase, list[Meaning]] = {}
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
) -> Iterator[tuple[Iterable[str], Meaning]]:
    yield from ((words, FigureWord(function)) for function, words in file.figures.items())
    for kind, groups in file.figures_of.items():
        yield from ((words, FigureWord(function, kind)) for function, words in groups.items())
    yield file.per, Per()
    yield file.each, Each()
    yield file.different, Different()
    yield file.asked_values, AskedValue()
    yield file.who, Person()
    yield from ((words, Preposition(kind)) for kind, words in file.prepositions.items())
    yield from ((words, Unit(kind)) for kind, words in file.units.items())
    for kind, scales in file.measures.items():
        yield from ((words, Measure(kind, scale)) for scale, words in scales.items())
    yield from ((words, Adjective(kind)) for kind, words in file.adjectives.items())
    yield from ((words, HowMuch(kind)) for kind, words in file.how_much.items())
    yield from ((words, Compare(op)) for op, words in file.comparisons.items())
    for kind, group in file.comparisons_of.items():
        yield from ((words, Compare(op, kind)) for op, words in group.items())
    yield from ((words, Postfix(op)) for op, words in file.after_number.items())
    yield file.between, Between()
    yield file.between_and, BetweenAnd()
    yield from ((words, Superlative(order)) for order, words in file.superlatives.items())
    yield from ((entry.words, OrderWord(entry.kinds, entry.order)) for entry in file.orders)
    yield file.sort_by, SortBy()
    yield from ((words, Direction(order)) for order, words in file.directions.items())
    yield file.top, Top()
    yield file.first, First()
    yield from (
        (entry.words, Condition(entry.kind, entry.op, entry.value)) for entry in file.conditions
    )
    yield file.having, Having()
    yield file.negations, Not()
    yield file.verb_negations, Not(of_verb=True)
    yield file.nor, Nor()
    yield file.but, But()
    yield file.than, Than()
    yield file.yes, Truth(True)
    yield file.no, Truth(False)
    yield connectors["and"], And()
    yield connectors["or"], Or()
    yield file.links, Link()
    yield file.equals, Equals()
    yield file.single, Single()
    yield file.contains, Contains()
    yield file.called, Called()
    yield from (([word], Numeral(number)) for word, number in file.numerals.items())
    yield from (([word], Multiplier(number)) for word, number in file.multipliers.items())
    yield from _dates(file.dates)
    yield file.everything, Everything()
    yield file.fillers, Filler()
    yield file.requests, Request()
    yield file.question_words, QuestionWord()
    yield file.lead_ins, LeadIn()
    yield file.made_verbs, MadeVerb()
    yield file.linking_verbs, LinkingVerb()
    yield file.auxiliaries, Auxiliary()
    yield from ((words, NumberVerb(kind)) for kind, words in file.number_verbs.items())


def _dates(dates: DateWords) -> Iterator[tuple[Iterable[str], Meaning]]:
    for relation in ("since", "after", "before", "until", "during"):
        yield getattr(dates, relation), DateRelation(relation)
    yield dates.with_year, BeforeYear()
    yield dates.previous, Period("previous")
    yield dates.rolling, Period("rolling")
    yield dates.counted, Period("counted")
    yield dates.definite, Definite()
    yield dates.this, Period("this")
    yield dates.next, Period("next")
    for which in ("previous", "rolling", "this", "next"):
        yield getattr(dates, f"{which}_behind"), PeriodBehind(which)
    yield dates.upcoming, Ahead(True)
    yield dates.past, Ahead(False)
    yield dates.ago, Ago()
    yield dates.old, Old()
    yield from ((words, DatePostfix(relation)) for relation, words in dates.after_date.items())
    yield dates.falls, Falls()
    yield dates.today, DayWord(0)
    yield dates.yesterday, DayWord(-1)
    yield dates.tomorrow, DayWord(1)
    yield from ((words, DateUnit(unit)) for unit, words in dates.units.items())
    yield dates.weekend, Weekend()
    yield from ((words, Decade(year)) for year, words in dates.decade_words.items())
    for unit, lengths in dates.lengths.items():
        yield from ((words, Length(unit, count)) for count, words in lengths.items())
    for number, words in enumerate(dates.months, 1):
        yield from (([word], Month(number, word not in dates.unclear)) for word in words)
    yield from ((words, Weekday(number)) for number, words in enumerate(dates.weekdays))
