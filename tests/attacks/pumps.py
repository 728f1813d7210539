"""Texts that make a regular expression slow, derived from its own parse tree, and the judgement
whether its time grows faster than they do.

A pump is a beginning, a part that is repeated, and an end. Parts are what a repetition of the
pattern reads, what comes before it, the whole pattern cut short, and characters of each kind that
the pattern tells apart.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

Items = Sequence[tuple[Any, Any]]
Run = Callable[[Any], object]

_ONE = (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN)
_REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
_CATEGORIES = {
    op.CATEGORY_DIGIT: r"\d",
    op.CATEGORY_NOT_DIGIT: r"\D",
    op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w",
    op.CATEGORY_NOT_WORD: r"\W",
}
_USUAL = " \n\ta0A_.-\"'(é中"
_LONG = 60  # repetitions; a pattern that reads at most so many again at each place is linear
_VARIANTS = 6  # samples of a pattern, each with other characters and branches
_MIXED = 30  # pumps of arbitrary characters
_SIZES = (16, 20, 25, 32, 40, 60, 90, 140, 200, 1000, 4000)
_FEW = 200  # characters: with fewer, only time that doubles every few characters is slow
_SLOW = 0.001  # seconds: below, a size says nothing about growth
_AS_ITS_TEXT = 1.2  # growth since the size before that needs no second look: a square has 4 or 5


def possessive_groups(pattern: re.Pattern[Any]) -> list[str]:
    """Return what possessive repetitions of a pattern repeat that is more than one character."""
    written, flags = pattern.pattern, pattern.flags
    if isinstance(written, bytes):
        written, flags = written.decode("latin-1"), flags & ~re.UNICODE
    found: list[str] = []

    def look(items: Any) -> None:
        for item in items:
            if isinstance(item, tuple) and item and item[0] is op.POSSESSIVE_REPEAT:
                inner = list(item[1][2])
                if len(inner) != 1 or inner[0][0] not in _ONE:
                    found.append(str(inner))
            if isinstance(item, tuple | list | _parser.SubPattern):
                look(item)

    look(_parser.parse(written, flags))
    return found


class Pump(NamedTuple):
    """A text of any size: `begin`, `part` again and again, `end`."""

    begin: str
    part: str
    end: str

    def text(self, size: int) -> str:
        """Return the text of about that many characters."""
        room = size - len(self.begin) - len(self.end)
        return self.begin + self.part * max(1, room // len(self.part)) + self.end


class Growth(NamedTuple):
    """A pump, and how many times as long its text takes that is so many times as long."""

    pump: Pump
    size: int
    longer: float
    slower: float


def growth(pattern: re.Pattern[Any], method: str) -> Growth | None:
    """Return a pump on which a pattern's processor time grows faster than its text; None for a
    linear pattern. `method` is how the pattern is used; "finditer" for all that read every match.
    """
    find = getattr(pattern, method)
    run: Run = find if method != "finditer" else lambda text: sum(1 for _ in find(text))
    encode = isinstance(pattern.pattern, bytes)
    for pump in dict.fromkeys(_Sampler(pattern).pumps()):
        # Judged twice: a machine that stands still for a moment may slow one of the measurements.
        if _judge(run, pump, encode) and (found := _judge(run, pump, encode)):
            return found
    return None


def _judge(run: Run, pump: Pump, encode: bool) -> Growth | None:
    def seconds(size: int, times: int = 1) -> float:
        text = pump.text(size)
        given = text.encode("latin-1", "replace") if encode else text
        return min(_time(run, given) for _ in range(times))

    taken = 0.0
    for shorter, size in pairwise((1, *_SIZES)):
        before, taken = taken, seconds(size)
        if taken < _SLOW:
            continue
        if taken <= min(before, seconds(shorter)) * size / shorter * _AS_ITS_TEXT:
            continue
        least = seconds(size, 3)
        if least < _SLOW:
            continue
        longer = 4.0 if size >= _FEW else 1.25
        slower = seconds(int(size * longer), 3) / least
        # Linear is 4, square 16; what a busy machine adds is in both, and the best of three counts.
        if slower > longer * 2:
            return Growth(pump, size, longer, slower)
    return None


def _time(run: Run, given: Any) -> float:
    began = time.thread_time()
    run(given)
    return time.thread_time() - began


class _Sampler:
    def __init__(self, pattern: re.Pattern[Any]) -> None:
        written = pattern.pattern
        flags = pattern.flags
        if isinstance(written, bytes):
            written, flags = written.decode("latin-1"), flags & ~re.UNICODE
        self._flags = flags
        self._tree: Items = _parser.parse(written, flags)
        self._groups: dict[int, str] = {}
        self._letters = self._distinct_letters()

    def pumps(self) -> Iterator[Pump]:
        """Yield the pumps, some of them twice."""
        for variant in range(min(_VARIANTS, max(4, len(self._letters)))):
            for times in (0, 1):
                yield from self._sampled(variant, times)
        for letter in self._letters:
            yield Pump("", letter, "")
            yield Pump("", letter, "\0")
        chosen = random.Random(7)
        for _ in range(_MIXED):
            begin, part, end = (
                "".join(chosen.choices(self._letters, k=chosen.randint(least, 3)))
                for least in (0, 1, 0)
            )
            yield Pump(begin, part, end)

    def _sampled(self, variant: int, times: int) -> Iterator[Pump]:
        whole = self._sample(self._tree, variant, times)
        for part in filter(None, (whole, whole[:-1])):
            yield Pump("", part, "")
            yield Pump("", part, "\0")
        for before, repeated in self._repeats(self._tree, variant, times, ""):
            part = self._sample(repeated, variant, 1) or "x"
            other = self._sample(repeated, variant + 1, 1)
            for end in ("", "\0"):
                yield Pump(before, part, end)
                yield Pump("", part, end)
                yield Pump("", before + part, end)
                yield Pump("", before or part, end)
                yield Pump(before, part + other, end)
                yield Pump("", part + other, end)
            yield Pump(before, part, whole[-1:])

    def _distinct_letters(self) -> list[str]:
        """Return a character for each set of the pattern's classes that one can belong to."""
        classes = {repr(one): one for one in _walk(self._tree) if one[0] in _ONE}
        letters = dict.fromkeys(_USUAL)
        for code, value in classes.values():
            letters |= dict.fromkeys(_named(code, value))
        kinds: dict[tuple[bool, ...], str] = {}
        for letter in letters:
            kind = tuple(self._is_in(letter, *one) for one in classes.values())
            kinds.setdefault(kind, letter)
        return list(kinds.values())

    def _is_in(self, letter: str, code: Any, value: Any) -> bool:
        match code:
            case op.LITERAL:
                same: bool = ord(letter) == value
                return same or bool(
                    self._flags & re.IGNORECASE and letter.lower() == chr(value).lower()
                )
            case op.NOT_LITERAL:
                return not self._is_in(letter, op.LITERAL, value)
            case op.ANY:
                return letter != "\n" or bool(self._flags & re.DOTALL)
            case op.RANGE:
                return bool(value[0] <= ord(letter) <= value[1])
            case op.CATEGORY:
                return re.match(_CATEGORIES[value], letter, self._flags & re.ASCII) is not None
        inside = any(self._is_in(letter, *each) for each in value if each[0] is not op.NEGATE)
        return inside != (value[0][0] is op.NEGATE)

    def _sample(self, items: Items, variant: int, times: int) -> str:
        """Return a text that the items match, but for what they assert about its surroundings; what
        may be absent is there `times` times."""
        made = ""
        for code, value in items:
            made += self._sample_one(code, value, variant, times, first=not made)
        return made

    def _sample_one(self, code: Any, value: Any, variant: int, times: int, first: bool) -> str:
        match code:
            case op.LITERAL:
                return chr(value)
            case op.NOT_LITERAL | op.ANY | op.IN:
                fitting = [each for each in self._letters if self._is_in(each, code, value)]
                return fitting[variant % len(fitting)] if fitting else "x"
            case op.SUBPATTERN:
                text = self._sample(value[3], variant, times)
                if value[0]:
                    self._groups[value[0]] = text
                return text
            case op.BRANCH:
                return self._sample(value[1][variant % len(value[1])], variant, times)
            case op.ATOMIC_GROUP:
                return self._sample(value, variant, times)
            case op.GROUPREF:
                return str(self._groups.get(value, ""))
            case op.ASSERT if value[0] < 0 and first:
                return self._sample(value[1], variant, times)
        if code in _REPEATS:
            least = max(value[0], min(times, value[1]))
            return self._sample(value[2], variant, times) * int(least)
        return ""

    def _repeats(
        self, items: Items, variant: int, times: int, before: str
    ) -> Iterator[tuple[str, Items]]:
        """Yield what each long repetition repeats, with a text that leads up to it."""
        for code, value in items:
            if code in _REPEATS and value[1] > _LONG:
                yield before, value[2]
            for inner in _inside(code, value):
                yield from self._repeats(inner, variant, times, before)
            before += self._sample([(code, value)], variant, times)


def _inside(code: Any, value: Any) -> list[Items]:
    if code in _REPEATS:
        return [value[2]]
    if code is op.SUBPATTERN:
        return [value[3]]
    if code is op.BRANCH:
        return list(value[1])
    if code in (op.ASSERT, op.ASSERT_NOT):
        return [value[1]]
    if code is op.ATOMIC_GROUP:
        return [value]
    return [each for each in value[1:] if each] if code is op.GROUPREF_EXISTS else []


def _walk(items: Items) -> Iterator[tuple[Any, Any]]:
    for code, value in items:
        yield code, value
        for inner in _inside(code, value):
            yield from _walk(inner)


def _named(code: Any, value: Any) -> Iterator[str]:
    if code in (op.LITERAL, op.NOT_LITERAL):
        yield chr(value)
    for each, inner in value if code is op.IN else ():
        if each in (op.LITERAL, op.RANGE):
            yield chr(inner if each is op.LITERAL else inner[0])
