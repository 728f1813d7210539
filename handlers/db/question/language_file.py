"""The keys of a language's file, `<language>.yml`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from groundhook.host.core.types.base import Value

Words = tuple[str, ...]


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
    nouns: Words = ()
    since: Words
    after: Words
    before: Words
    until: Words
    during: Words
    previous: Words
    rolling: Words
    counted: Words = ()
    definite: Words = ()
    this: Words
    next: Words
    previous_behind: Words = ()
    rolling_behind: Words = ()
    this_behind: Words = ()
    next_behind: Words = ()
    ago: Words
    with_year: Words
    old: Words
    after_date: dict[Literal["since", "until"], Words] = {}
    falls: Words = ()
    weekend: Words = ()
    seasons: dict[Literal[3, 6, 9, 12], Words] = {}
    nth: tuple[Words, ...] = ()
    half: Words = ()
    clock_times: dict[int, Words] = {}
    clock: Words = ()
    clock_before: Words = ()
    am: Words = ()
    pm: Words = ()
    decade_words: dict[int, Words] = {}
    lengths: dict[Literal["hour", "day", "week", "month", "year"], dict[int, Words]] = {}
    verb_endings: Words = ()
    verb_beginnings: Words = ()
    verbs_behind: bool = False
    rates: dict[Literal["hour", "day", "week", "month", "quarter", "year"], Words] = {}
    today: Words
    yesterday: Words
    tomorrow: Words
    upcoming: Words = ()
    overdue: Words = ()
    past: Words = ()
    units: dict[Literal["hour", "day", "week", "month", "quarter", "year"], Words]
    months: tuple[Words, ...]
    weekdays: tuple[Words, ...]
    unclear: Words = ()
    ordinals: Words = ()
    decades: Words = ()


class LanguageFile(Value):
    """The keys of a language's file; the comments of `en.yml` explain them."""

    name: str
    letters: str = ""
    decimal: Literal[".", ","] = "."
    endings: tuple[tuple[str, str], ...] = ()
    endings_kept: Words = ()
    forms: tuple[tuple[str, str], ...] = ()
    adverbs: Words = ()
    prefixes: dict[str, str] = {}
    kinds: dict[str, Words]
    persons: Words = ()
    synonyms: tuple[Words, ...] = ()
    prepositions: dict[str, Words] = {}
    figures: dict[Literal["count", "sum", "avg", "min", "max"], Words]
    figures_of: dict[str, dict[Literal["sum"], Words]] = {}
    per: Words
    each: Words = ()
    different: Words = ()
    asked_values: Words = ()
    who: Words = ()
    units: dict[str, Words]
    measures: dict[str, dict[float, Words]] = {}
    adjectives: dict[str, Words] = {}
    how_much: dict[str, Words] = {}
    number_verbs: dict[str, Words] = {}
    comparisons: dict[str, Words]
    comparisons_of: dict[str, dict[str, Words]]
    than: Words = ()
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
    having: Words = ()
    negations: Words
    verb_negations: Words = ()
    nor: Words = ()
    but: Words = ()
    yes: Words
    no: Words
    and_: Words = Field((), alias="and")
    or_: Words = Field((), alias="or")
    links: Words
    equals: Words
    contains: Words
    called: Words
    numerals: dict[str, float]
    single: Words
    multipliers: dict[str, int]
    dates: DateWords
    everything: Words
    fillers: Words
    requests: Words = ()
    question_words: Words = ()
    lead_ins: Words = ()
    made_verbs: Words = ()
    linking_verbs: Words = ()
    auxiliaries: Words = ()
    relatives: Words = ()
