"""The keys of a language's file, `<language>.toml`, and which meaning the words under each have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from groundhook.core.types.base import Value
from groundhook.handlers.db.question import sense, when


def _split(value: Any) -> Any:
    """Split "a, b" into words."""
    if not isinstance(value, str):
        return value
    return tuple(filter(None, (" ".join(word.split()) for word in value.split(","))))


@dataclass(frozen=True)
class Means:
    """The meaning of the words under a key. Where the key has names below it, `make` gets those on
    the way to the words, the innermost first."""

    make: Callable[..., sense.Sense]


def _measure(scale: float, kind: str) -> sense.Unit:
    return sense.Unit(kind, scale)


Words = Annotated[tuple[str, ...], BeforeValidator(_split)]
Named = dict[str, Words]
Numbered = dict[int, Words]
Unit = Literal["hour", "day", "week", "month", "quarter", "year"]


class OrderEntry(Value):
    kinds: Words
    order: sense.Sorting
    words: Words
    vague: bool = False


class ConditionEntry(Value):
    kind: str
    op: str
    value: Any = None
    words: Words


class DateWords(Value):
    nouns: Words = ()
    relations: Annotated[
        dict[Literal["since", "after", "before", "until", "during"], Words],
        Means(when.DateRelation),
    ]
    periods: Annotated[
        dict[Literal["previous", "rolling", "counted", "this", "next"], Words], Means(when.Period)
    ] = {}
    periods_behind: Annotated[
        dict[Literal["previous", "rolling", "this", "next"], Words], Means(when.PeriodBehind)
    ] = {}
    definite: Annotated[Words, Means(when.Definite)] = ()
    ago: Annotated[Words, Means(when.Ago)] = ()
    with_year: Annotated[Words, Means(when.BeforeYear)]
    old: Annotated[Words, Means(when.Old)] = ()
    lasting: Annotated[Words, Means(when.Lasting)] = ()
    after_date: Annotated[dict[Literal["since", "until"], Words], Means(when.DatePostfix)] = {}
    falls: Annotated[Words, Means(when.Falls)] = ()
    weekend: Annotated[Words, Means(when.Weekend)] = ()
    seasons: Annotated[Numbered, Means(when.Season)] = {}
    nth: Annotated[tuple[Words, ...], Means(when.Nth)] = ()
    half: Annotated[Words, Means(when.Half)] = ()
    clock_times: Annotated[Numbered, Means(when.Clock)] = {}
    clock: Words = ()
    clock_before: Words = ()
    am: Words = ()
    pm: Words = ()
    decade_words: Annotated[Numbered, Means(when.Decade)] = {}
    lengths: Annotated[dict[Unit, Numbered], Means(when.Length)] = {}
    verb_endings: Words = ()
    verb_beginnings: Words = ()
    verbs_behind: bool = False
    rates: dict[Unit, Words] = {}
    days: Annotated[Numbered, Means(when.DayWord)]
    upcoming: Annotated[Words, Means(partial(when.Ahead, True))] = ()
    happened: Annotated[Words, Means(when.Happened)] = ()
    overdue: Annotated[Words, Means(partial(when.Ahead, False, due=True))] = ()
    expired: Annotated[Words, Means(partial(when.Ahead, False, kind="expiry"))] = ()
    past: Annotated[Words, Means(partial(when.Ahead, False))] = ()
    units: Annotated[dict[Unit, Words], Means(when.DateUnit)]
    months: Annotated[tuple[Words, ...], Means(when.Month)]
    weekdays: Annotated[tuple[Words, ...], Means(when.Weekday)]
    unclear: Annotated[Words, Means(when.Unclear)] = ()
    birthdays: Annotated[Words, Means(when.Birthday)] = ()
    ordinals: Words = ()
    decades: Words = ()


class LanguageFile(Value):
    """The keys of a language's file; the comments of `en.toml` explain them."""

    name: str
    letters: str = ""
    decimal: Literal[".", ","] = "."
    endings: tuple[tuple[str, str], ...] = ()
    endings_kept: Words = ()
    forms: tuple[tuple[str, str], ...] = ()
    adverbs: Words = ()
    prefixes: dict[str, str] = {}
    kinds: Named
    persons: Words = ()
    synonyms: tuple[Words, ...] = ()
    prepositions: Annotated[Named, Means(sense.Preposition)] = {}
    figures: Annotated[
        dict[Literal["count", "sum", "avg", "min", "max"], Words], Means(sense.FigureWord)
    ]
    figures_of: Annotated[dict[str, dict[Literal["sum"], Words]], Means(sense.FigureWord)] = {}
    per: Annotated[Words, Means(sense.Per)]
    each: Annotated[Words, Means(sense.Each)] = ()
    different: Annotated[Words, Means(sense.Different)] = ()
    asked_values: Annotated[Words, Means(sense.AskedValue)] = ()
    who: Annotated[Words, Means(sense.Person)] = ()
    units: Annotated[Named, Means(sense.Unit)]
    measures: Annotated[
        dict[str, dict[float, Words]], Means(lambda scale, kind: sense.Unit(kind, scale))
    ] = {}
    adjectives: Annotated[Named, Means(sense.Adjective)] = {}
    how_much: Annotated[Named, Means(sense.HowMuch)] = {}
    number_verbs: Annotated[Named, Means(sense.NumberVerb)] = {}
    comparisons: Annotated[Named, Means(sense.Compare)]
    comparisons_of: Annotated[dict[str, Named], Means(sense.Compare)]
    than: Annotated[Words, Means(sense.Than)] = ()
    after_number: Annotated[Named, Means(sense.Postfix)]
    between: Annotated[Words, Means(sense.Between)]
    between_and: Annotated[Words, Means(sense.BetweenAnd)]
    superlatives: Annotated[dict[sense.Sorting, Words], Means(sense.Superlative)]
    orders: tuple[OrderEntry, ...]
    sort_by: Annotated[Words, Means(sense.SortBy)]
    directions: Annotated[dict[sense.Sorting, Words], Means(sense.Direction)]
    top: Annotated[Words, Means(sense.Top)]
    first: Annotated[Words, Means(sense.First)]
    conditions: tuple[ConditionEntry, ...]
    having: Annotated[Words, Means(sense.Having)] = ()
    negations: Annotated[Words, Means(sense.Not)]
    verb_negations: Annotated[Words, Means(partial(sense.Not, of_verb=True))] = ()
    exceptions: Annotated[Words, Means(sense.Except)] = ()
    nor: Annotated[Words, Means(sense.Nor)] = ()
    but: Annotated[Words, Means(sense.But)] = ()
    yes: Annotated[Words, Means(partial(sense.Truth, True))]
    no: Annotated[Words, Means(partial(sense.Truth, False))]
    and_: Annotated[Words, Means(sense.And)] = Field((), alias="and")
    or_: Annotated[Words, Means(sense.Or)] = Field((), alias="or")
    links: Annotated[Words, Means(sense.ValueLink)]
    equals: Annotated[Words, Means(sense.Equals)]
    missing: Annotated[Words, Means(sense.Missing)] = ()
    contains: Annotated[Words, Means(sense.Contains)]
    starts_with: Annotated[Words, Means(sense.StartsWith)] = ()
    called: Annotated[Words, Means(sense.Called)]
    numerals: Annotated[dict[float, Words], Means(sense.Numeral)]
    single: Annotated[Words, Means(sense.Single)] = ()
    multipliers: Annotated[Numbered, Means(sense.Multiplier)]
    everything: Annotated[Words, Means(sense.Everything)]
    pronouns: Annotated[Words, Means(sense.Pronoun)] = ()
    fillers: Annotated[Words, Means(sense.Filler)]
    requests: Annotated[Words, Means(sense.Request)] = ()
    question_words: Annotated[Words, Means(sense.QuestionWord)] = ()
    lead_ins: Annotated[Words, Means(sense.LeadIn)] = ()
    made_verbs: Annotated[Words, Means(sense.MadeVerb)] = ()
    linking_verbs: Annotated[Words, Means(sense.LinkingVerb)] = ()
    auxiliaries: Annotated[Words, Means(sense.Auxiliary)] = ()
    relatives: Annotated[Words, Means(sense.Relative)] = ()
    dates: DateWords


def meanings_of(file: LanguageFile) -> Iterator[tuple[str, sense.Sense]]:
    """Yield the words of a language, each with its meaning; a word with several occurs again."""
    for part in (file, file.dates):
        for name, info in type(part).model_fields.items():
            for means in info.metadata:
                if isinstance(means, Means):
                    yield from _spread(getattr(part, name), means.make)
    for order in file.orders:
        meaning = sense.OrderWord(order.order, order.kinds, order.vague)
        yield from ((word, meaning) for word in order.words)
    for one in file.conditions:
        yield from ((word, sense.Condition(one.kind, one.op, one.value)) for word in one.words)


def _spread(
    value: Any, make: Callable[..., sense.Sense], *names: Any
) -> Iterator[tuple[str, sense.Sense]]:
    """Yield the words of a key. Those of a list are numbered from 1."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _spread(inner, make, name, *names)
    elif value and isinstance(value[0], tuple):
        yield from _spread(dict(enumerate(value, 1)), make, *names)
    else:
        yield from ((word, make(*names)) for word in value)
