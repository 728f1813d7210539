"""The keys of a language's file, `<language>.toml`, and the words under each.

A word is called like its key: the phrases under `comparisons_of.money."<"` are words of the kind
`comparisons_of` with the value `("<", "money")`, the keys on the way to them, the innermost first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from groundhook.core.types.base import Value
from groundhook.core.types.query_language import BucketUnit


def _split(value: Any) -> Any:
    """Split "a, b" into words."""
    if not isinstance(value, str):
        return value
    return tuple(filter(None, (" ".join(word.split()) for word in value.split(","))))


_Words = Annotated[tuple[str, ...], BeforeValidator(_split)]
_NamedWords = dict[str, _Words]
Numbered = dict[int, _Words]
Direction = Literal["asc", "desc"]
TimeUnit = Literal["hour", "day", "week", "month", "quarter", "year"]
_TimeRelation = Literal["since", "after", "before", "until", "during"]
Which = Literal["previous", "rolling", "counted", "this", "next"]
# Keys that are no words of questions.
_PLAIN = frozenset(
    [
        "name",
        "letters",
        "decimal",
        "endings",
        "endings_kept",
        "prefixes",
        "kinds",
        "persons",
        "synonyms",
        "orders",
        "conditions",
        "name_parts",
        "verbs_last",
        "verbs_of_nouns",
        "say",
        "dates",
        "nouns",
        "ordinals",
        "decades",
        "unclear",
        "past",
    ]
)


class Word(NamedTuple):
    """One meaning of a phrase. `value` has the keys below `kind`, the innermost first: nothing, one
    value, or a tuple."""

    kind: str
    value: Any = None


class OrderEntry(Value):
    """Words that sort by the first kind of field that a model has; `vague`: nobody knows where
    "cheap" begins."""

    kinds: _Words
    order: Direction
    words: _Words
    vague: bool = False


class ConditionEntry(Value):
    """Words that are a condition on the field of a kind."""

    kind: str
    op: str
    value: Any = None
    words: _Words


class DateWords(Value):
    """The words about time."""

    nouns: _Words = ()
    relations: dict[_TimeRelation, _Words]
    periods: dict[Which, _Words] = {}
    periods_behind: dict[Which, _Words] = {}
    definite: _Words = ()
    ago: _Words = ()
    after_date: dict[_TimeRelation, _Words] = {}
    weekend: _Words = ()
    seasons: Numbered = {}
    nth: tuple[_Words, ...] = ()
    half: _Words = ()
    decade_words: Numbered = {}
    lengths: dict[TimeUnit, Numbered] = {}
    days: Numbered
    units: dict[TimeUnit, _Words]
    grouped: dict[BucketUnit, _Words] = {}
    repeated: dict[BucketUnit, _Words] = {}
    months: tuple[_Words, ...]
    weekdays: tuple[_Words, ...]
    unclear: _Words = ()
    past: _Words = ()
    ordinals: _Words = ()
    decades: _Words = ()


class ReadingSentences(Value):
    """How a reading is written, and why a question was not answered. Names in braces are filled
    in."""

    count: str
    different: str
    given: str
    sum: str
    avg: str
    min: str
    max: str
    min_date: str
    max_date: str
    of: str
    where: str
    each: str
    desc: str
    asc: str
    desc_date: str
    asc_date: str
    desc_text: str
    asc_text: str
    first: str
    first_one: str
    and_: str = Field(alias="and")
    or_: str = Field(alias="or")
    empty: str
    filled: str
    contains: str
    begins: str
    with_: str = Field(alias="with")
    without: str
    all: str
    number: str
    having: str
    ties: str
    model_figure: str
    parts: dict[BucketUnit, str]
    weekdays: tuple[str, str, str, str, str, str, str]
    yes: str
    no: str
    nothing: str
    quoted: str
    unread: str
    not_looked_up: str
    understood: str
    structure: str
    several: str
    near: str
    none_found: str
    no_rows: str
    no_year: str
    known: str
    read_word: str
    left_out: str
    how_many: str
    not_rows: str
    who: str
    too_long: str


class LanguageFile(Value):
    """The keys of a language's file; the comments of `en.toml` explain them."""

    name: str
    letters: str = ""
    decimal: Literal[".", ","] = "."
    endings: tuple[tuple[str, str], ...] = ()
    endings_kept: _Words = ()
    prefixes: dict[str, str] = {}
    kinds: _NamedWords
    persons: _Words = ()
    synonyms: tuple[_Words, ...] = ()
    prepositions: _NamedWords = {}
    figures: dict[Literal["count", "sum", "avg", "min", "max"], _Words]
    figures_of: _NamedWords = {}
    per: _Words
    each: _Words = ()
    different: _Words = ()
    units: _NamedWords
    measures: dict[str, dict[float, _Words]] = {}
    adjectives: _NamedWords = {}
    how_much: _NamedWords = {}
    number_verbs: _NamedWords = {}
    comparisons: _NamedWords
    comparisons_of: dict[str, _NamedWords]
    after_number: _NamedWords
    between: _Words
    between_and: _Words
    superlatives: dict[Direction, _Words]
    orders: tuple[OrderEntry, ...]
    sort_by: _Words
    directions: dict[Direction, _Words]
    top: _Words
    conditions: tuple[ConditionEntry, ...]
    nor: _Words = ()
    yes: _Words
    no: _Words
    and_: _Words = Field((), alias="and")
    or_: _Words = Field((), alias="or")
    contains: _Words
    starts_with: _Words = ()
    called: _Words
    numerals: dict[float, _Words]
    multipliers: Numbered
    requests: _Words
    articles: _Words = ()
    be: _Words
    have: _Words
    do: _Words = ()
    relatives: _Words
    of: _Words = ()
    exist: _Words = ()
    when: _Words = ()
    place_verbs: _Words = ()
    made_verbs: _Words = ()
    polite: _Words = ()
    idle: _Words = ()
    pronouns: _Words = ()
    who: _Words = ()
    name_parts: _Words = ()
    verbs_last: bool = False
    verbs_of_nouns: tuple[tuple[str, str], ...] = ()
    negations: _Words
    exceptions: _Words
    having: _Words
    lacking: _Words
    missing: _Words
    say: ReadingSentences
    dates: DateWords


def words_in(file: LanguageFile) -> Iterator[tuple[str, Word]]:
    """Yield the phrases of a language, each with its meaning; one with several occurs again. Kinds
    of words about time begin with `date_`."""
    for part, prefix in ((file, ""), (file.dates, "date_")):
        for key in type(part).model_fields:
            if key not in _PLAIN:
                yield from _spread(getattr(part, key), prefix + key.rstrip("_"))
    for order in file.orders:
        yield from ((word, Word("orders", order)) for word in order.words)
    for condition in file.conditions:
        yield from ((word, Word("conditions", condition)) for word in condition.words)


def _spread(value: Any, kind: str, *keys: Any) -> Iterator[tuple[str, Word]]:
    """Yield the phrases of a key. Those of a list of lists are numbered from 1."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _spread(inner, kind, key, *keys)
    elif value and isinstance(value[0], tuple):
        yield from _spread(dict(enumerate(value, 1)), kind, *keys)
    else:
        meaning = Word(kind, keys[0] if len(keys) == 1 else keys or None)
        yield from ((phrase, meaning) for phrase in value)
