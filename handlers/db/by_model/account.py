"""What of a question has no part in a query: numbers, dates, values, names and words of conditions.
Pure.

The words are those that the vocabulary of the language knows; it decides nothing about the rest of
the question, which is what a language model reads better. A word that may be a condition and may be
part of a name counts as the name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

from groundhook.core.types.query_language import Aggregate, Where, group_field
from groundhook.handlers.db.query.dsl import QueryDSL
from groundhook.handlers.db.question import times
from groundhook.handlers.db.question.dates import TimeSpan, is_year
from groundhook.handlers.db.question.question import Amount, TokenizedQuestion
from groundhook.handlers.db.question.scope import QuestionScope
from groundhook.handlers.db.question.tokens import phrase_of
from groundhook.handlers.db.question.values import NamedValues

BELOW, ABOVE = frozenset({"<", "<=", "between"}), frozenset({">", ">=", "between"})
NEGATIVE = frozenset({"!=", "not in", "null", "not null", "match none"})
NOUNS_IN_CAPITALS = ("de",)
# Kinds of words that carry no meaning of their own.
IDLE = frozenset(
    [
        "requests",
        "articles",
        "be",
        "have",
        "do",
        "polite",
        "idle",
        "pronouns",
        "relatives",
        "of",
        "exist",
        "who",
    ]
)
A_DAY = timedelta(days=1)
ALIKE = 0.75  # of words, from 0 to 1


@dataclass
class Parts:
    """What a query says: its texts (folded), numbers and days, the operators of its conditions, the
    functions of its figures, and the words of the names that it uses."""

    query: QueryDSL
    texts: set[str] = field(default_factory=set)
    numbers: set[float] = field(default_factory=set)
    days: list[date] = field(default_factory=list)
    operators: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    names: list[str] = field(default_factory=list)
    negative: bool = False
    either: bool = False
    related: bool = False

    @staticmethod
    def of(query: QueryDSL) -> Parts:
        parts = Parts(query)
        parts._add_wheres([*query.wheres, *query.havings])
        parts._add_figures(query.aggregates)
        names = [*map(group_field, query.groups), *query.select]
        parts.names += [query.model, *names, *(one.field for one in query.orders)]
        for number in (query.limit, query.offset and query.offset + 1):
            if number:
                parts.numbers.add(float(number))
        return parts

    def holds_text(self, text: str) -> bool:
        """Return whether a text of the query has these words."""
        wanted = " ".join(phrase_of(text))
        return any(wanted in each or (each and each in wanted) for each in self.texts)

    def holds_alike(self, word: str) -> bool:
        """Return whether a text of the query has a word that this one may be a misspelling of."""
        words = {each for text in self.texts for each in text.split()}
        return bool(get_close_matches(" ".join(phrase_of(word)), words, n=1, cutoff=ALIKE))

    def _add_figures(self, figures: Sequence[Aggregate]) -> None:
        self.functions |= {one.function for one in figures}
        self.functions |= {"distinct" for one in figures if one.distinct}
        self.names += [one.field for one in figures]

    def _add_wheres(self, wheres: Sequence[Where]) -> None:
        for where in wheres:
            if where.group is not None:
                self.either |= where.any_of is not None
                self._add_wheres(where.group)
                continue
            self.names.append(where.name)
            if where.related:
                self._add_related(where)
                continue
            op = where.op.lower()
            self.operators.add(op)
            self.negative |= op in NEGATIVE
            if where.other is not None:
                self._add_wheres(where.other.wheres)
                self.names.append(where.other.field)
                if where.other.aggregate is not None:
                    self._add_figures([where.other.aggregate])
                continue
            listed = where.value if isinstance(where.value, (list, tuple)) else [where.value]
            self.either |= op in ("in", "not in") and len(listed) > 1
            for value in listed:
                self._add_value(value)

    def _add_related(self, where: Where) -> None:
        self.related = True
        self.negative |= where.none or where.every
        for op, number in (where.count or {}).items():
            self.operators.add(op)
            self.numbers.add(float(number))
            self.negative |= number == 0
        self._add_wheres(where.all_of or ())

    def _add_value(self, value: Any) -> None:
        if isinstance(value, bool) or value is None:
            self.negative |= value is not True
        elif isinstance(value, (date, datetime)):
            self._add_day(value.isoformat())
            if isinstance(value, datetime) and value.hour:
                self.numbers |= {float(value.hour), value.hour - 12.0}  # "after 6 pm"
        elif isinstance(value, (int, float, Decimal)):
            self.numbers.add(float(value))
            self.negative |= value == 0
        elif isinstance(value, str):
            self.texts.add(" ".join(phrase_of(value.strip("%"))))
            self._add_day(value)
            with suppress(ValueError):
                self.numbers.add(float(value))

    def _add_day(self, text: str) -> None:
        with suppress(ValueError):
            self.days.append(date.fromisoformat(text[:10]))


def unaccounted(
    question: TokenizedQuestion, query: QueryDSL, scopes: Sequence[QuestionScope]
) -> tuple[str, ...]:
    """Return the phrases of a question, as typed, for which a query has no part. `scopes` are the
    models that the question may be about."""
    return tuple(dict.fromkeys(_Account(question, Parts.of(query), scopes).left()))


def meaningful(question: TokenizedQuestion, phrases: Sequence[str]) -> tuple[str, ...]:
    """Return those of the phrases that have more than words without a meaning of their own."""
    known = question.words.phrases
    return tuple(
        phrase
        for phrase in phrases
        if any(
            not any(word.kind in IDLE for word in known.get((norm,), ()))
            for norm in phrase_of(phrase)
        )
    )


@dataclass
class _Account:
    question: TokenizedQuestion
    parts: Parts
    scopes: Sequence[QuestionScope]
    covered: set[int] = field(default_factory=set)

    def left(self) -> Iterator[str]:
        """Yield what has no part, in the order of kinds: values first, since a word in a value
        means nothing else."""
        yield from self._values()
        yield from self._times()
        yield from self._conditions()
        yield from self._numbers()
        yield from self._names()

    def _cover(self, i: int, end: int) -> None:
        self.covered.update(range(i, end))

    def _is_covered(self, i: int, end: int) -> bool:
        return any(at in self.covered for at in range(i, end))

    # ---- values and names

    def _values(self) -> Iterator[str]:
        missing: dict[tuple[int, int], bool] = {}
        for i, end, free, spellings in self._found_values():
            if end == i + 1 and self.question.tokens[i].kind == "number":
                continue  # it counts as a number
            if any(self.parts.holds_text(each) for each in spellings) or self._is_name(i, end):
                self._cover(i, end)
            else:
                missing[i, end] = missing.get((i, end), False) or free
        for i, token in enumerate(self.question.tokens):
            if token.kind == "quoted":
                if self.parts.holds_text(token.text):
                    self._cover(i, i + 1)
                else:
                    missing[i, i + 1] = True
        for (i, end), free in sorted(missing.items(), key=lambda each: (each[0][0], -each[0][1])):
            if free and not self._is_covered(i, end):
                self._cover(i, end)
                yield self.question.typed(i, end)

    def _found_values(self) -> Iterator[tuple[int, int, bool, Sequence[str]]]:
        for scope in self.scopes:
            for each in (scope, *scope.related.values()):
                for i, found in NamedValues.of(self.question, each).at.items():
                    for one in found:
                        yield i, one.end, one.free and one.exact, one.spellings

    def _is_name(self, i: int, end: int) -> bool:
        """Return whether words name a model or a field."""
        stems = self.question.stems(i, end)
        return any(
            stems in scope.nouns or stems in scope.fields or stems in scope.relations
            for scope in self.scopes
        )

    def _names(self) -> Iterator[str]:
        """Yield names that nobody knows: capitals within the question."""
        words = self.question.words
        if words.language in NOUNS_IN_CAPITALS:
            return
        for i, token in enumerate(self.question.tokens):
            name = token.kind == "word" and i > 0 and len(token.text) > 1
            name = name and token.text[0].isupper()
            if not name or i in self.covered or token.norm in words.spoken:
                continue
            known = self._is_name(i, i + 1) or self.parts.holds_text(token.text)
            if not (known or self.parts.holds_alike(token.text)):
                yield self.question.typed(i, i + 1)

    # ---- times and numbers

    def _times(self) -> Iterator[str]:
        i = 0
        while i < len(self.question):
            found = times.spans(self.question, i) if i not in self.covered else []
            end = max((stop for _, stop in found), default=i)
            # A year alone may be any number: only the direction of "before 2020" is checked here.
            alone = end == i + 1 and self.question.tokens[i].kind == "number"
            if found and not alone and not self._has_time([span for span, _ in found], i, end):
                yield self.question.typed(i, end)
            elif found and not self._is_directed(i):
                yield self.question.typed(i - 1, end)
                self._cover(i, end)
            if found and not alone:
                self._cover(i, end)
            i = max(i + 1, end)

    def _has_time(self, spans: Sequence[TimeSpan], i: int, end: int) -> bool:
        """Return whether the query has a day at a border of a time, or its year; or whether the
        words name a field."""
        bounds = [at.date() for span in spans for at in (span.start, span.end)]
        yearless = all(span.yearless for span in spans)
        near = any(
            abs(day - (_in_year(at, day.year) if yearless else at)) <= A_DAY
            for day in self.parts.days
            for at in bounds
        )
        years = {float(at.year) for at in bounds} & self.parts.numbers
        return near or bool(years) or self._is_name(i, end)

    def _is_directed(self, i: int) -> bool:
        """Return whether the query compares in the direction of a word before a time: "before"."""
        for start in range(max(0, i - 2), i):
            for end, relation in self.question.all(start, "date_relations"):
                if end == i and relation != "during":
                    wanted = BELOW if relation in ("before", "until") else ABOVE
                    return not wanted.isdisjoint(self.parts.operators)
        return True

    def _numbers(self) -> Iterator[str]:
        i = 0
        while i < len(self.question):
            amount = self.question.number(i) if i not in self.covered else None
            if amount is None:
                i += 1
                continue
            one = self.question.tokens[i].kind != "number" and amount.value == 1  # "the one that"
            if not (one or self._has_number(i) or self._is_used_name(i, amount.end)):
                yield self.question.typed(i, amount.end)
            i = amount.end

    def _has_number(self, i: int) -> bool:
        """Return whether the query has the number at a position: as it is, in another unit, as a
        year, as an age or a length of time of a date, or within a text."""
        norm = self.question.norm(i)
        amounts = self.question.amounts(i)
        return any(norm in text for text in self.parts.texts) or any(
            self._has_amount(each) or self._is_of_a_day(each) for each in amounts
        )

    def _has_amount(self, amount: Amount) -> bool:
        measures = self.question.words.file.measures
        wanted = {amount.value, amount.value / 100}
        for kind, scale in amount.units:
            wanted |= {amount.value * scale / each for each in measures.get(kind, ()) if each}
        return any(_alike(one, two) for one in wanted for two in self.parts.numbers)

    def _is_of_a_day(self, amount: Amount) -> bool:
        days, now = self.parts.days, self.question.now
        if days and self.question.all(amount.end, "date_units"):
            return True  # "older than 30 days"
        year = is_year(amount.value)
        return any(
            (year and amount.value in (day.year, (day - A_DAY).year))
            or abs(now.year - day.year - amount.value) <= 1
            for day in days
        )

    # ---- words of conditions

    def _conditions(self) -> Iterator[str]:
        tests = self._tests()
        for i in range(len(self.question)):
            for kind, holds in tests.items():
                for end, value in self.question.all(i, kind):
                    if self._is_covered(i, end) or self.question.inside(i, end):
                        continue
                    if not holds(i, end, value) and not self._is_used_name(i, end):
                        yield self.question.typed(i, end)

    def _is_used_name(self, i: int, end: int) -> bool:
        """Return whether words are part of a name that the query uses, or of a longer name."""
        stems = set(self.question.stems(i, end))
        words = self.question.words
        used = {word for name in self.parts.names for word in words.stems(name.replace(".", "_"))}
        longer = any(
            self._is_name(start, stop)
            for start in range(max(0, i - 2), i + 1)
            for stop in range(end, min(len(self.question), end + 2) + 1)
            if stop - start > end - i
        )
        return stems <= used or longer or self._is_name(i, end)

    def _is_grouped(self, _: int, end: int, __: Any) -> bool:
        # "under 40 a day", "per month" of a rent: a unit, where no figure is wanted
        unit = not self.parts.functions and bool(self.question.all(end, "date_units"))
        return unit or bool(self.parts.query.groups)

    def _tests(self) -> Mapping[str, Callable[[int, int, Any], bool]]:
        parts, question = self.parts, self.question
        query, operators, functions = parts.query, parts.operators, parts.functions
        below, above = (not each.isdisjoint(operators) for each in (BELOW, ABOVE))
        in_order = bool(query.orders) or bool(functions & {"min", "max"})

        def compares(_: int, end: int, value: Any) -> bool:
            op = value if isinstance(value, str) else value[0]
            amounts = [question.number(at) for at in question.past(end, "articles")]
            numbers = [each.value for each in amounts if each is not None]
            if not numbers:
                return True  # "over", "under", "up to" of other things than numbers
            if op == "=" or parts.negative:
                return True
            other = not parts.numbers.intersection(numbers)  # an age, or another unit
            if other or not isinstance(value, str):
                return below or above
            return below if op in BELOW else above

        def bounds(i: int, _: int, value: str) -> bool:
            numeral = i > 0 and question.number(i - 1) is not None
            return not numeral or (below if value in BELOW else above)

        def between(_: int, end: int, __: Any) -> bool:
            return question.number(end) is None or (below and above)

        def figure(_: int, __: int, value: str) -> bool:
            if value in functions or (value in ("min", "max") and query.orders):
                return True
            return value == "count" and bool(functions or query.select or parts.related)

        def either(i: int, end: int, _: Any) -> bool:
            # "or so", "or not", "or what": only what stands between two values is a choice
            around = (self.covered.intersection(at) for at in ([i - 1], range(end, end + 3)))
            return parts.either or not all(around)

        def sorts(_: int, __: int, entry: Any) -> bool:
            return in_order or entry.vague

        def negates(*_: Any) -> bool:
            return parts.negative or below or above

        return {
            **dict.fromkeys(("negations", "exceptions", "lacking", "missing", "nor"), negates),
            "comparisons": compares,
            "comparisons_of": compares,
            "after_number": bounds,
            "between": between,
            "figures": figure,
            "per": self._is_grouped,
            "different": lambda *_: bool(query.groups) or "distinct" in functions,
            "superlatives": lambda *_: in_order,
            "orders": sorts,
            "top": lambda *_: bool(query.limit),
            "or": either,
        }


def _in_year(day: date, year: int) -> date:
    return day.replace(year=year, day=min(day.day, 28 if day.month == 2 else day.day))


def _alike(one: float, two: float) -> bool:
    return abs(one - two) <= 1e-6 * max(1.0, abs(one), abs(two))
