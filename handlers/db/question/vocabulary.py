"""The words of a language: read from `<language>.yml` beside this module, checked, and made into a table of phrases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from handlers.db.question.meanings import (
    Ago,
    And,
    BeforeYear,
    Between,
    BetweenAnd,
    Called,
    Compare,
    Condition,
    Contains,
    DateRelation,
    DateUnit,
    DayWord,
    Definite,
    Direction,
    Equals,
    Everything,
    Filler,
    First,
    Link,
    Meaning,
    Month,
    Multiplier,
    Not,
    Numeral,
    Old,
    Or,
    OrderWord,
    Period,
    Phrase,
    Postfix,
    Single,
    SortBy,
    Superlative,
    Top,
    Truth,
    Unit,
    Weekday,
)
from handlers.db.question.tokens import phrase_of
from host.errors import ConfigError, SourceNotConfigured, suggestion
from host.types.base import Value, dotted, problems

Words = tuple[str, ...]
FOLDER = Path(__file__).parent


class OrderEntry(Value):
    kinds: Words
    order: Literal["asc", "desc"]
    words: Words


class ConditionEntry(Value):
    kind: str
    op: str
    value: Any
    words: Words


class DateWords(Value):
    since: Words
    after: Words
    before: Words
    until: Words
    during: Words
    previous: Words
    rolling: Words
    definite: Words = ()
    this: Words
    ago: Words
    with_year: Words
    old: Words
    today: Words
    yesterday: Words
    units: dict[Literal["hour", "day", "week", "month", "quarter", "year"], Words]
    months: tuple[Words, ...]
    weekdays: tuple[Words, ...]
    unclear: Words = ()
    ordinals: Words = ()


class LanguageFile(Value):
    """The keys of a language's file; `en.yml` says what each is for."""

    endings: tuple[tuple[str, str], ...] = ()
    endings_kept: Words = ()
    kinds: dict[str, Words]
    units: dict[str, Words]
    comparisons: dict[str, Words]
    comparisons_of: dict[str, dict[str, Words]]
    after_number: dict[str, Words]
    between: Words
    between_and: Words
    superlatives: dict[Literal["asc", "desc"], Words]
    orders: tuple[OrderEntry, ...]
    sort_by: Words
    directions: dict[Literal["asc", "desc"], Words]
    top: Words
    first: Words
    conditions: tuple[ConditionEntry, ...]
    negations: Words
    yes: Words
    no: Words
    links: Words
    equals: Words
    contains: Words
    called: Words
    numerals: dict[str, int]
    single: Words
    multipliers: dict[str, int]
    dates: DateWords
    everything: Words
    fillers: Words


@dataclass(frozen=True)
class Vocabulary:
    """A language: `phrases` are what its words mean by themselves, whatever the model."""

    language: str
    file: LanguageFile
    phrases: Mapping[Phrase, tuple[Meaning, ...]]
    function_words: frozenset[str]

    def stem(self, word: str) -> str:
        """The word without its plural ending."""
        if len(word) > 3 and not word.endswith(self.file.endings_kept):
            for ending, instead in self.file.endings:
                if word.endswith(ending):
                    return word[: -len(ending)] + instead
        return word


@cache
def vocabulary(language: str) -> Vocabulary:
    """Raises SourceNotConfigured for a language without a file, ConfigError for a file that is wrong."""
    path = FOLDER / f"{language}.yml"
    known = sorted(file.stem for file in FOLDER.glob("*.yml"))
    if language not in known:
        raise SourceNotConfigured(f"questions in {language!r} cannot be read", hint=suggestion(language, known))
    return made(language, _yaml(path))


def made(language: str, raw: Mapping[str, Any]) -> Vocabulary:
    """A vocabulary from the content of a language's file. Raises ConfigError that names the key."""
    connectors = {name: tuple(raw.get(name, ())) for name in ("and", "or")}
    try:
        file = LanguageFile.model_validate({key: value for key, value in raw.items() if key not in connectors})
    except ValidationError as exc:
        path, message = problems(exc)[0]
        raise ConfigError(f"the words of {language!r}: {dotted(path)}: {message}") from exc
    phrases: dict[Phrase, list[Meaning]] = {}
    for words, meaning in _entries(file, connectors):
        for phrase in filter(None, map(phrase_of, words)):
            phrases.setdefault(phrase, []).append(meaning)
    groups = (file.fillers, file.everything, file.negations, file.links, file.single, *connectors.values())
    function = {word for group in (*groups, *file.comparisons.values()) for word in group}
    return Vocabulary(language, file, {key: tuple(value) for key, value in phrases.items()}, frozenset(function))


def _yaml(path: Path) -> Mapping[str, Any]:
    from ruamel.yaml import YAML

    with path.open(encoding="utf-8") as stream:
        raw: Mapping[str, Any] = YAML(typ="safe").load(stream)
    return raw


def _entries(file: LanguageFile, connectors: Mapping[str, Words]) -> Iterator[tuple[Iterable[str], Meaning]]:
    yield from ((words, Unit(kind)) for kind, words in file.units.items())
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
    yield from ((entry.words, Condition(entry.kind, entry.op, entry.value)) for entry in file.conditions)
    yield file.negations, Not()
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


def _dates(dates: DateWords) -> Iterator[tuple[Iterable[str], Meaning]]:
    for relation in ("since", "after", "before", "until", "during"):
        yield getattr(dates, relation), DateRelation(relation)
    yield dates.with_year, BeforeYear()
    yield dates.previous, Period("previous")
    yield dates.rolling, Period("rolling")
    yield dates.definite, Definite()
    yield dates.this, Period("this")
    yield dates.ago, Ago()
    yield dates.old, Old()
    yield dates.today, DayWord(0)
    yield dates.yesterday, DayWord(-1)
    yield from ((words, DateUnit(unit)) for unit, words in dates.units.items())
    for number, words in enumerate(dates.months, 1):
        yield from (([word], Month(number, word not in dates.unclear)) for word in words)
    yield from ((words, Weekday(number)) for number, words in enumerate(dates.weekdays))
