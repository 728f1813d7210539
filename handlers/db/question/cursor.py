"""A question being read: what its tokens can mean at each position, the small pieces that rules share, and the draft that the
rules fill. Positions are indices of tokens; what takes tokens returns the position after them, or None."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from handlers.db.question import dates
from handlers.db.question.dates import Span
from handlers.db.question.lexicon import Lexicon
from handlers.db.question.meanings import (
    Ago,
    BeforeYear,
    DateRelation,
    DateUnit,
    DateUnitName,
    DayWord,
    Definite,
    Filler,
    Link,
    Meaning,
    Month,
    Multiplier,
    Numeral,
    Period,
    Single,
    Unit,
    Weekday,
)
from handlers.db.question.tokens import Token
from handlers.db.schema import Field
from host.types.search import Order, Where

M = TypeVar("M", bound=Meaning)


@dataclass(frozen=True)
class Amount:
    """A number and the kind its unit says, empty without one."""

    value: int | float
    kind: str
    end: int


@dataclass
class Draft:
    """What the rules have made of the question so far. `unplaced`, `excluded` and `idle` are positions: of words that became no
    condition, of those that were negated, of those that only speak about other words."""

    wheres: list[Where] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    limit: int | None = None
    phrases: list[str] = field(default_factory=list)
    excluded: list[int] = field(default_factory=list)
    unplaced: list[int] = field(default_factory=list)
    idle: set[int] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    named_at: int | None = None
    listing: bool = False

    def add(self, name: str, op: str, value: Any = None) -> None:
        where = Where(field=name, op=op, value=value)
        # Of a flag that is mentioned twice ("not subscribed to the newsletter") the first word counts.
        flag = isinstance(value, bool) and any(there.field == name for there in self.wheres)
        if where not in self.wheres and not flag:
            self.wheres.append(where)

    def sort(self, name: str, order: str) -> None:
        if name not in [there.field for there in self.orders]:
            self.orders.append(Order(field=name, order="asc" if order == "asc" else "desc"))


class Cursor:
    """The tokens of one question and what they mean for one model."""

    def __init__(self, tokens: Sequence[Token], lexicon: Lexicon, now: datetime) -> None:
        self.typed = list(tokens)
        self.tokens = [lexicon.corrected(token) for token in tokens]
        self.lexicon, self.now = lexicon, now
        self._memo: dict[int, tuple[tuple[Meaning, ...], int]] = {}

    def at(self, i: int) -> tuple[tuple[Meaning, ...], int]:
        """All meanings of the longest phrase at a position, and the position after it."""
        if i not in self._memo:
            known = i < len(self.tokens) and self.tokens[i].kind != "quoted"
            self._memo[i] = self.lexicon.meanings(self.tokens, i) if known else ((), i)
        return self._memo[i]

    def take(self, i: int, kind: type[M]) -> tuple[M, int] | None:
        meanings, end = self.at(i)
        found = next((meaning for meaning in meanings if isinstance(meaning, kind)), None)
        return (found, end) if found is not None else None

    def all(self, i: int, kind: type[M]) -> list[M]:
        return [meaning for meaning in self.at(i)[0] if isinstance(meaning, kind)]

    def is_(self, i: int, *kinds: type[Meaning]) -> bool:
        return any(isinstance(meaning, kinds) for meaning in self.at(i)[0])

    def ended(self, i: int) -> bool:
        return i >= len(self.tokens) or (self.tokens[i].kind == "mark" and not self.at(i)[0])

    def unknown(self, i: int) -> bool:
        """A word, number or date that means nothing by itself."""
        return i < len(self.tokens) and self.tokens[i].kind in ("word", "number") and not self.at(i)[0]

    def is_mark(self, i: int, marks: str) -> bool:
        return i < len(self.tokens) and self.tokens[i].kind == "mark" and self.tokens[i].norm in marks

    def past(self, i: int, *kinds: type[Meaning], most: int = 3) -> int:
        """The position after up to `most` phrases of these kinds."""
        for _ in range(most):
            if not self.is_(i, *kinds):
                break
            i = self.at(i)[1]
        return i

    def text(self, start: int, end: int) -> str:
        """What was typed; the pieces of one compound put together again."""
        parts: list[str] = []
        for i in range(start, end):
            joined = i > start and self.typed[i].group == self.typed[i - 1].group
            between = "" if joined and self.typed[i - 1].kind == "number" else "-" if joined else " " if i > start else ""
            parts.append(between + self.typed[i].text)
        return "".join(parts)

    # ---- numbers

    def number(self, i: int) -> tuple[float, bool, int] | None:
        """A number in digits or as a word: (value, whether it has a currency sign, end)."""
        if i < len(self.tokens) and self.tokens[i].kind == "number":
            return self.tokens[i].number, self.tokens[i].money, i + 1
        numeral = self.take(i, Numeral)
        return (float(numeral[0].number), False, numeral[1]) if numeral else None

    def whole(self, i: int, most: int) -> tuple[int, int] | None:
        """A whole number from 1 to `most` without a currency sign."""
        number = self.number(i)
        if number is None or number[1] or number[0] != int(number[0]) or not 1 <= number[0] <= most:
            return None
        return int(number[0]), number[2]

    def amount(self, i: int) -> Amount | None:
        before = self.take(i, Unit)
        start = before[1] if before and self.number(before[1]) else i
        number = self.number(start)
        if number is None:
            return None
        value, money, end = number
        kind = "money" if money else before[0].kind if before and start != i else ""
        if factor := self.take(end, Multiplier):
            value, end = value * factor[0].factor, factor[1]
        if unit := self.take(end, Unit):
            kind, end = kind or unit[0].kind, unit[1]
        return Amount(int(value) if value == int(value) else value, kind, end)

    # ---- dates

    def duration(self, i: int) -> tuple[int, DateUnitName, int] | None:
        """ "3 months", "a week"."""
        single = self.take(i, Single)
        count = (1, single[1]) if single else self.whole(i, dates.LONGEST)
        unit = self.take(count[1], DateUnit) if count else None
        return (count[0], unit[0].unit, unit[1]) if count and unit else None

    def dated(self, i: int, *, year: bool = False) -> tuple[str, Span, int] | None:
        """A time with the word before it that relates to it: ("since", span, end). `year`: a bare number may be one."""
        relation = self.take(i, DateRelation)
        if relation is None:
            span = self.span(i, said=year, year=year)
            return ("during", *span) if span else None
        at, year = relation[1], year or self.is_(i, BeforeYear)
        for _ in range(3):  # "in the", "since the end of" do not change what is meant
            span = self.span(at, said=True, year=year)
            if span is not None:
                return (relation[0].relation, *span)
            if not self.is_(at, Filler, Link):
                return None
            at = self.at(at)[1]
        return None

    def span(self, i: int, *, said: bool, year: bool) -> tuple[Span, int] | None:
        """A time. `said`: a word before it announced one, so that "may" can be a month; `year`: so that 2024 can be a year."""
        if i >= len(self.tokens):
            return None
        token, now = self.tokens[i], self.now
        if token.day is not None:
            moment = now.replace(year=token.day.year, month=token.day.month, day=token.day.day)
            return dates.day(moment), i + 1
        if word := self.take(i, DayWord):
            return dates.day(dates.shifted(now, "day", word[0].days)), word[1]
        found = self._period(i) or self._ago(i) or self._quarter(i) or self._month(i, said=said) or self._day_month(i)
        if found is not None:
            return found
        if said and (weekday := self.take(i, Weekday)):
            return dates.weekday(now, weekday[0].number, before_today=False), weekday[1]
        number = self._year(i) if year else None
        return (dates.year(now, number), i + 1) if number else None

    def _year(self, i: int) -> int | None:
        if i >= len(self.tokens) or self.tokens[i].kind != "number" or not self.tokens[i].norm.isdecimal():
            return None
        number = int(self.tokens[i].norm)
        return number if dates.FIRST_YEAR <= number <= dates.LAST_YEAR else None

    def _period(self, i: int) -> tuple[Span, int] | None:
        which = {period.which for period in self.all(i, Period)}
        if not which:
            return None
        after = self.at(i)[1]
        if "this" not in which and (length := self.duration(after)):
            return dates.rolling(self.now, length[1], length[0]), length[2]
        if unit := self.take(after, DateUnit):
            the_last = "rolling" in which and i > 0 and self.is_(i - 1, Definite)
            if "previous" in which and not the_last:
                return dates.previous(self.now, unit[0].unit), unit[1]
            whole = dates.current(self.now, unit[0].unit) if "this" in which else dates.rolling(self.now, unit[0].unit, 1)
            return whole, unit[1]
        if weekday := self.take(after, Weekday):
            return dates.weekday(self.now, weekday[0].number, before_today="this" not in which), weekday[1]
        if month := self.take(after, Month):
            year = self.now.year if "this" in which or month[0].number < self.now.month else self.now.year - 1
            return dates.month(self.now, month[0].number, year), month[1]
        return None

    def _ago(self, i: int) -> tuple[Span, int] | None:
        length = self.duration(i)
        ago = self.take(length[2], Ago) if length else None
        return (dates.day(dates.shifted(self.now, length[1], -length[0])), ago[1]) if length and ago else None

    def _quarter(self, i: int) -> tuple[Span, int] | None:
        norm = self.tokens[i].norm
        if len(norm) != 2 or norm[0] != "q" or norm[1] not in "1234":
            return None
        year = self._year(i + 1)
        return dates.quarter(self.now, int(norm[1]), year), i + 2 if year else i + 1

    def _month(self, i: int, *, said: bool) -> tuple[Span, int] | None:
        """ "March", "March 2024", "March 5", "March 5th, 2024"."""
        month = self.take(i, Month)
        if month is None:
            return None
        number, end = month[0].number, month[1]
        if year := self._year(end):
            return dates.month(self.now, number, year), end + 1
        if day := self.whole(end, 31):
            return self._on(day[0], number, self._ordinal(day[1]))
        return (dates.month(self.now, number, None), end) if said or month[0].clear else None

    def _day_month(self, i: int) -> tuple[Span, int] | None:
        """ "5 March", "5th of March 2024"."""
        day = self.whole(i, 31)
        month = self.take(self.past(self._ordinal(day[1]), Link), Month) if day else None
        return self._on(day[0], month[0].number, month[1]) if day and month else None

    def _on(self, day: int, month: int, end: int) -> tuple[Span, int] | None:
        comma = end + 1 if self.is_mark(end, ",") else end
        year = self._year(comma)
        span = dates.month(self.now, month, year)
        moment = dates.shifted(span.start, "day", day - 1)
        return (dates.day(moment), comma + 1 if year else end) if moment < span.end else None

    def _ordinal(self, i: int) -> int:
        ordinal = i < len(self.tokens) and self.tokens[i].norm in self.lexicon.vocabulary.file.dates.ordinals
        return i + 1 if ordinal else i

    # ---- fields

    def field_of_kind(self, kind: str) -> Field | None:
        return self.lexicon.of_kind(kind)
