"""The facts of a sentence that can be looked for in a source without a model: numbers with their
units, dates, quoted words and names. Pure.

A number is the same in every format ("1,234.50", "1 234,5"), small ones also as words, a unit under
all its names, and a month as a name or a number. Only sums of a column are computed: "a week" is
not in a source that says "7 days".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache, cached_property
from itertools import chain, islice
from typing import Literal

from groundhook.core.language.catalogue import all_words, language, languages
from groundhook.core.language.detect import detect
from groundhook.core.language.terms import fold
from groundhook.core.types.search import Item

LONGEST_SOURCE = 100_000  # characters that are looked through
LONGEST_QUOTE = 300
MOST_CELLS = 5000  # of a column that is added up
_GROUPS = r"\d{1,3}(?:[ \u00a0\u202f'’]\d{3})+(?:[.,]\d+)?(?!\d)"
_SIGN = "€$£¥₪"
_UNIT = rf"[ \u00a0\u202f-]?(?P<unit>[^\W\d_]{{1,20}}|[%°{_SIGN}])"
_NUMBER = re.compile(rf"(?P<number>{_GROUPS}|\d+(?:[.,]\d+)*)(?:(?={_UNIT}))?")
_WORD = re.compile(r"[^\W_](?:[\w'’-]*[^\W_])?")
_QUOTED = re.compile(rf"[“„«「『\"]([^“”„«»「」『』\"\n]{{2,{LONGEST_QUOTE}}})[”“»」』\"]")
_ENDING = re.compile(r"['’](?:s|re|m|ve|ll|d)?$")
_BETWEEN = re.compile(r"\D")
_MARKUP = re.compile(r"[*_`#|~\\\u00ad\u200b-\u200f\u2060]+")
_SAME_SIGNS = str.maketrans("“”„«»‘’‚–—−\u00a0\u202f", '"""""\'\'\'---  ')
_AFTER_START = re.compile(r"[.!?:;|>\"“„«(\[—–-]\s*(?:[*_`]{1,3})?$|^\W*$")
_FEWEST_LETTERS = 4  # of a name that may have another ending in its source
_TITLE_CASE = 0.6  # a line with more capitals is a heading


@dataclass(frozen=True)
class Fact:
    """One fact as it is written, with what it is looked for by: the `readings` of a number, one of
    which must be in the source, or all of its `parts`; a folded text otherwise. `unit` is the
    symbol of the number's unit."""

    kind: Literal["number", "quoted", "name"]
    text: str
    folded: str = ""
    readings: frozenset[str] = frozenset()
    parts: tuple[str, ...] = ()
    unit: str = ""


@dataclass(frozen=True)
class CitedSource:
    """What can be looked for in a source: its text, its words and its numbers. `measured` has the
    units of a number, "" where it stands without one; `columns` the numbers of each column of a
    table, by its name or place, each as the numbers that it may mean."""

    text: str
    words: frozenset[str]
    measured: Mapping[str, frozenset[str]]
    columns: Mapping[str, Sequence[frozenset[str]]] = field(default_factory=dict)

    @staticmethod
    def of(*texts: str) -> CitedSource:
        """Return the source with these texts."""
        plain = "\n".join(texts)[:LONGEST_SOURCE]
        text = flat(plain)
        # With and without what is no sign of a word, and may part words: "0*AP", a soft hyphen.
        apart = fold("\n".join(_WORD.findall(plain))).split()
        words = frozenset(map(_bare, {*_WORD.findall(text), *apart}))
        measured: dict[str, set[str]] = {}
        for number, unit in {(match["number"], unit) for match, unit in _measured(plain)}:
            for reading in chain(*_readings(number)):
                measured.setdefault(reading, set()).add(unit)
        for number in filter(None, map(_small_numbers().get, words)):
            measured.setdefault(number, set()).add("")
        for month in filter(None, map(_months().get, words)):
            measured.setdefault(month, set()).add("")
        numbers = {each: frozenset(of) for each, of in measured.items()}
        return CitedSource(text, words, numbers, _columns(plain))

    @staticmethod
    def of_item(item: Item) -> CitedSource:
        """Return the source of an item: everything of it that a model may have read."""
        texts = [item.title, item.content, item.published]
        texts += [str(value) for pair in (item.data or {}).items() for value in pair]
        if item.row:
            names, cells = item.row.table.columns, item.row.cells
            one = [(name, _cell(cell)) for name, cell in zip(names, cells, strict=False)]
            columns = {name: [number] for name, number in one if number}
            return replace(CitedSource.of(*texts, *names, *cells), columns=columns)
        return CitedSource.of(*texts)

    @cached_property
    def sums(self) -> frozenset[str]:
        """The sums of its columns."""
        return frozenset(_sums(self.columns))

    def has(self, fact: Fact) -> bool:
        """Return whether the source has a fact."""
        if fact.kind == "number":
            if any(self._measures(reading, fact.unit) for reading in fact.readings):
                return True
            return bool(fact.parts) and all(part in self.measured for part in fact.parts)
        if fact.kind == "name":
            return self._names(fact.folded)
        return fact.folded in self.text

    def _measures(self, reading: str, unit: str) -> bool:
        units = self.measured.get(reading, frozenset())
        return bool(units) and (not unit or unit in units or "" in units)

    def _names(self, word: str) -> bool:
        if word in self.words or _months().get(word, "-") in self.measured:
            return True
        stem = word[: max(_FEWEST_LETTERS, len(word) - 2)] if word.isalnum() else word
        return (len(word) >= _FEWEST_LETTERS or not word.isalnum()) and stem in self.text


def sums(sources: Sequence[CitedSource]) -> frozenset[str]:
    """Return the sums of the columns of each source, and of those of which each has one number:
    rows of a database are a source each."""
    alone: dict[str, list[frozenset[str]]] = {}
    for source in sources:
        for name, numbers in source.columns.items():
            if len(numbers) == 1:
                alone.setdefault(name, []).extend(numbers)
    return frozenset(_sums(alone)).union(*(source.sums for source in sources))


def _sums(columns: Mapping[str, Sequence[frozenset[str]]]) -> Iterator[str]:
    for numbers in columns.values():
        if 1 < len(numbers) <= MOST_CELLS:
            # "1,234" has the same meaning in all cells.
            for choose in (min, max):
                total = sum((choose(map(Decimal, number)) for number in numbers), Decimal())
                text = f"{total:f}"
                yield text.rstrip("0").rstrip(".") if "." in text else text


def _columns(text: str) -> dict[str, list[frozenset[str]]]:
    """Return the numbers of the columns of each table in Markdown, by table and place."""
    columns: dict[str, list[frozenset[str]]] = {}
    table = 0
    for line in text.split("\n"):
        if not line.lstrip().startswith("|"):
            table += 1
            continue
        for place, cell in enumerate(line.split("|")):
            if number := _cell(cell):
                columns.setdefault(f"{table}.{place}", []).append(number)
    return columns


def _cell(text: str) -> frozenset[str]:
    """Return what the only number of a cell may mean; nothing for other cells."""
    found = list(islice(_numbers(text), 2))
    return found[0].readings if len(found) == 1 else frozenset()


def facts(sentence: str, *, known: frozenset[str] = frozenset()) -> list[Fact]:
    """Return the facts of a sentence, each once. Names of `known` words, those of the question, are
    none."""
    found: dict[Fact, None] = {}
    for quote in _QUOTED.finditer(sentence):
        if folded := flat(quote[1]).strip(" .,;:!?"):
            found[Fact("quoted", quote[0], folded)] = None
    found.update(dict.fromkeys(chain(_numbers(sentence), _names(sentence, known))))
    return list(found)


def flat(text: str) -> str:
    """Return a text in one case, without markup, accents and differences of blanks and quotes."""
    plain = fold(_MARKUP.sub("", text.translate(_SAME_SIGNS)))
    return " ".join(plain.translate(_SAME_SIGNS).split())


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text as names are compared; of a long one those of its beginning."""
    return frozenset(map(_bare, set(_WORD.findall(flat(text[:LONGEST_SOURCE])))))


def _measured(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield the numbers of a text with the symbols of their units."""
    for match in _NUMBER.finditer(text):
        start = match.start()
        before = text[max(0, start - 2) : start]
        if before[-1:].isalpha() or before[-1:] == "_":  # of a name: "V8"
            continue
        unit = _units().get(fold(match["unit"]), "") if match["unit"] else ""
        sign = before.strip()[-1:]
        yield match, unit or (sign if sign and sign in _SIGN else "")


def _numbers(text: str) -> Iterator[Fact]:
    for match, unit in _measured(text):
        named = match["unit"] and _units().get(fold(match["unit"]))
        shown = text[match.start() : match.end("unit")] if named else match["number"]
        yield Fact("number", shown, "", *_readings(match["number"]), unit)


def _readings(number: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return what a number may mean, and its parts where it may be a date or a version."""
    if number.isdecimal():
        return frozenset((_plain(number),)), ()
    groups = _BETWEEN.split(number)
    whole = {_plain(groups[0])} if len(groups) == 1 else set()
    if len(groups) > 1 and all(len(group) == 3 for group in groups[1:]):
        whole.add(_plain("".join(groups)))
    if len(groups) > 1 and number[-len(groups[-1]) - 1] in ".,":
        whole.add(_plain("".join(groups[:-1]), groups[-1]))
    apart = len(groups) > 2 or (len(groups) == 2 and number[-len(groups[-1]) - 1] not in ".,")
    return frozenset(whole), tuple(map(_plain, groups)) if apart else ()


def _plain(whole: str, fraction: str = "") -> str:
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    digits = f"{whole}.{fraction}" if fraction else whole
    if digits.isascii():
        return digits
    # Digits of other scripts are the same numbers.
    return "".join(str(int(sign)) if sign.isdecimal() else sign for sign in digits)


def _names(sentence: str, known: frozenset[str]) -> Iterator[Fact]:
    for match in _capitalised(sentence):
        word = _bare(flat(match[0]))
        if len(word) > 1 and not (word in known or word in _common() or word in _units()):
            yield Fact("name", match[0], word)


def _capitalised(sentence: str) -> Iterator[re.Match[str]]:
    """Yield the words of a sentence that its language writes with capitals only as names; words
    with a capital inside also where it begins."""
    words = [match for match in _WORD.finditer(sentence) if not match[0][0].isdigit()]
    inner = {match.start() for match in words if any(map(str.isupper, match[0][1:]))}
    capitals = [match for match in words if match.start() in inner or match[0][0].isupper()]
    if not capitals or (len(words) > 2 and len(capitals) > _TITLE_CASE * len(words)):
        return
    # Also where the language is not recognised.
    alone = _capitalises_nouns(sentence)
    for match in capitals:
        begins = _AFTER_START.search(sentence[max(0, match.start() - 8) : match.start()])
        if match.start() in inner or not (alone or begins):
            yield match


def _bare(word: str) -> str:
    return _ENDING.sub("", word) if "'" in word or "’" in word else word


def _capitalises_nouns(sentence: str) -> bool:
    spoken = language(detect(sentence, question=True))
    return spoken is None or spoken.nouns_capitalised


@cache
def _common() -> frozenset[str]:
    """Return the words that are no names, whatever their case."""
    words = all_words("function") | all_words("capital pronouns") | all_words("asking")
    return frozenset(_bare(flat(word)) for word in words)


@cache
def _months() -> Mapping[str, str]:
    """Return the number of each month by its name in every language that lists them."""
    return _numbered("months", 1)


@cache
def _small_numbers() -> Mapping[str, str]:
    return _numbered("numbers", 0)


def _numbered(section: str, first: int) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for each in languages().values():
        words: Iterable[str] = " ".join(each.lines(section)).split()
        for n, word in enumerate(words, first):
            found.setdefault(flat(word), str(n))
    return found


@cache
def _units() -> Mapping[str, str]:
    """Return the symbol of each unit by its names."""
    symbols: dict[str, str] = {sign: sign for sign in f"%°{_SIGN}"}
    for each in languages().values():
        for line in each.lines("names of units"):
            symbol, *names = line.split()
            symbols |= {fold(name): symbol for name in (symbol, *names)}
    return symbols
