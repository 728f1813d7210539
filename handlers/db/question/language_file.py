"""A language's file, `<language>.toml`, and the words under its keys, which `en.toml` explains.

A word is called like its key: the phrases under `comparisons_of.money."<"` are words of the kind
`comparisons_of` with the value `("<", "money")`, the keys on the way to them, the innermost first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, ConfigDict

from groundhook.core.types.base import Value
from groundhook.core.types.query_language import BucketUnit


def words_of(value: Any) -> Any:
    """Split "a, b" into words."""
    if not isinstance(value, str):
        return value
    return tuple(filter(None, (" ".join(word.split()) for word in value.split(","))))


Words = Annotated[tuple[str, ...], BeforeValidator(words_of)]
NamedWords = dict[str, Words]
Direction = Literal["asc", "desc"]
TimeUnit = Literal["hour", "day", "week", "month", "quarter", "year"]
Which = Literal["previous", "rolling", "counted", "this", "next"]


class Word(NamedTuple):
    """One meaning of a phrase. `value` has the keys below `kind`, the innermost first: nothing, one
    value, or a tuple. Keys that are numbers are numbers."""

    kind: str
    value: Any = None


class OrderEntry(Value):
    """Words that sort by the first kind of field that a model has; `vague`: nobody knows where
    "cheap" begins."""

    kinds: Words
    order: Direction
    words: Words
    vague: bool = False


class ConditionEntry(Value):
    """Words that are a condition on the field of a kind."""

    kind: str
    op: str
    value: Any = None
    words: Words


class DateWords(Value):
    """What is no word of a question by itself among the words about time; all others are extra."""

    model_config = ConfigDict(extra="allow")

    nouns: Words = ()
    unclear: Words = ()
    past: Words = ()
    ordinals: Words = ()
    decades: Words = ()


class LanguageFile(Value):
    """The keys that are read by name. All others have words, by the kinds that they are called
    like; English has every key. `say` has the sentences of readings and declines."""

    model_config = ConfigDict(extra="allow")

    name: str
    letters: str = ""
    decimal: Literal[".", ","] = "."
    endings: tuple[tuple[str, str], ...] = ()
    endings_kept: Words = ()
    prefixes: dict[str, str] = {}
    kinds: NamedWords
    persons: Words = ()
    synonyms: tuple[Words, ...] = ()
    prepositions: NamedWords = {}
    measures: dict[str, dict[float, Words]] = {}
    orders: tuple[OrderEntry, ...]
    conditions: tuple[ConditionEntry, ...]
    name_parts: Words = ()
    verbs_last: bool = False
    verbs_of_nouns: tuple[tuple[str, str], ...] = ()
    parts: dict[BucketUnit, str]
    days_of_week: tuple[str, str, str, str, str, str, str]
    say: dict[str, str]
    dates: DateWords


def words_in(file: LanguageFile) -> Iterator[tuple[str, Word]]:
    """Yield the phrases of a language, each with its meaning; one with several occurs again. Kinds
    of words about time begin with `date_`."""
    for part, prefix in ((file, ""), (file.dates, "date_")):
        for key, value in (part.model_extra or {}).items():
            yield from _spread(value, prefix + key)
    yield from _spread(file.prepositions, "prepositions")
    yield from _spread(file.measures, "measures")
    for kind, entries in (("orders", file.orders), ("conditions", file.conditions)):
        yield from ((word, Word(kind, entry)) for entry in entries for word in entry.words)


def _spread(value: Any, kind: str, *keys: Any) -> Iterator[tuple[str, Word]]:
    """Yield the phrases of a key. Those of a list are numbered from 1."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _spread(inner, kind, _number_in(key), *keys)
    elif isinstance(value, list):
        yield from _spread(dict(enumerate(value, 1)), kind, *keys)
    else:
        meaning = Word(kind, keys[0] if len(keys) == 1 else keys or None)
        yield from ((phrase, meaning) for phrase in words_of(value))


def _number_in(key: Any) -> Any:
    digits = str(key).removeprefix("-")
    return int(key) if digits.isdecimal() else float(key) if digits[:1].isdecimal() else key
