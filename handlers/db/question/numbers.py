"""Conditions on numbers: "under $100", "between 4 and 6 kg", "longer than 20 minutes", "4 or more
stars", "over 65"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from groundhook.core.types.query_language import Where
from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.question import dates
from groundhook.handlers.db.question.clauses import Clause, Here
from groundhook.handlers.db.question.language_file import TimeUnit
from groundhook.handlers.db.question.question import Amount
from groundhook.handlers.db.question.scope import NUMBERS, TIMES

MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
COUNTED = frozenset({"=", "<", "<=", ">", ">="})  # operators of numbers of records
DIGITS = 6
MOST_MEANT = 3  # numbers of a record, of each of which a bound without a name or unit may be
LONGEST_LIFE = 130  # years


@dataclass(frozen=True)
class Bound:
    """Numbers and how a field is compared with them. `kind` is what the comparison speaks of
    ("cheaper than": money), `led` whether a word says how it is compared."""

    op: str
    amounts: tuple[Amount, ...]
    kind: str = ""
    led: bool = True

    @property
    def end(self) -> int:
        return self.amounts[-1].end


def number_conditions(here: Here, i: int) -> Iterator[Clause]:
    """Yield the conditions on numbers that begin at a position."""
    yield from _of_named_field(here, i)
    # "products under 100"
    behind = any(end == i for start in range(max(0, i - 4), i) for end, _ in here.nouns_at(start))
    for at in here.question.leads(i, "having", "of"):
        for bound in bounds(here, at):
            yield from _bounded(here, bound, several=behind and at == i)
    for start, kind in here.question.all(i, "number_verbs"):
        for at in here.question.past(start, "articles"):
            for bound in bounds(here, at):
                if not bound.kind or bound.kind == kind:
                    yield from _bounded(here, replace(bound, kind=kind))


def bounds(here: Here, i: int) -> Iterator[Bound]:
    """Yield the bounds that begin at a position, each with the unit of its number and without."""
    question = here.question
    compared = [(end, op, "") for end, op in question.all(i, "comparisons") if op != "!="]
    compared += [(end, *value) for end, value in question.all(i, "comparisons_of")]
    for end, op, kind in compared:
        if not question.inside(i, end):
            for amount in question.amounts(end):
                yield Bound(op, (amount,), kind)
    for start, _ in question.all(i, "between"):
        yield from _ranges(here, start)
    yield from _ranges(here, i, bare=True)
    for amount in question.amounts(i):
        for end, op in question.all(amount.end, "after_number"):
            units = list(question.all(end, "units"))
            yield Bound(op, (replace(amount, end=end),))
            for stop, kind in units:
                yield Bound(op, (replace(amount, end=stop, units=((kind, 0.0),)),))
        yield Bound("=", (amount,), led=False)


def counts(here: Here, i: int, *leads: str) -> Iterator[tuple[int, str, int]]:
    """Yield the numbers of records that are asked behind a word of these kinds: the end of each,
    the operator and the number."""
    places = [at for lead in leads for at in here.question.after(i, lead)]
    for bound in (bound for at in dict.fromkeys(places) for bound in bounds(here, at)):
        number, plain = bound.amounts[-1], bound.op in COUNTED and not bound.kind
        if plain and not number.units and not number.value % 1 and number.value >= 0:
            yield bound.end, bound.op, int(number.value)


def _ranges(here: Here, i: int, *, bare: bool = False) -> Iterator[Bound]:
    """ "between 4 and 6", "4 to 6", "4-6"."""
    question = here.question
    for first in question.amounts(i):
        for at, _ in question.all(first.end, "between_and"):
            if bare and question.is_(first.end, "and"):
                continue  # "4 and 6" are no range
            for last in question.amounts(at):
                yield Bound("between", (first, last))


def _of_named_field(here: Here, i: int) -> Iterator[Clause]:
    """ "price under 100", "whose rating is at least 4", "with a height of 5 m"."""
    question = here.question
    for at in question.leads(i, "having", "relatives"):
        for end, one in here.fields_at(at, *NUMBERS):
            sign = question.is_mark(end, "=") or question.is_mark(end, ":")
            for link in [*question.past(end, "be", "of", "have"), *([end + 1] if sign else [])]:
                for bound in bounds(here, link):
                    fits = not bound.kind or here.scope.is_kind(one, bound.kind)
                    if fits and (where := compare(here, bound, one)):
                        yield Clause("c", bound.end, (where,))


def _bounded(here: Here, bound: Bound, *, several: bool = False) -> Iterator[Clause]:
    for end, one, named in _fields_for(here, bound, several=several):
        if not bound.led and not named:
            continue
        if where := compare(here, bound, one):
            kind = "p" if bound.op == "=" and not bound.led else "c"
            yield Clause(kind, end, (where,))
    yield from _ages(here, bound)


def _fields_for(here: Here, bound: Bound, *, several: bool) -> Iterator[tuple[int, Field, bool]]:
    """Yield the fields that a bound may be of, each with the end of the words for it, and whether
    they name it. If `several`, it may be of each number of the record."""
    question, scope, end = here.question, here.scope, bound.end
    for at in question.past(end, "of"):
        for stop, one in here.fields_at(at, *NUMBERS):
            if not bound.kind or scope.is_kind(one, bound.kind):
                yield stop, one, True
    said = [*question.all(end, "adjectives"), *question.all(end, "number_verbs")]
    for stop, kind in said:
        yield from ((stop, one, True) for one in _of_kind_or_unit(here, kind, bound.amounts[-1]))
    if not said and bound.kind != "date":
        rated = any(kind == "rating" for kind, _ in bound.amounts[-1].units)
        yield from (
            (end, one, rated) for one in _unnamed(here, bound, MOST_MEANT if several else 1)
        )


def _unnamed(here: Here, bound: Bound, most: int) -> list[Field]:
    """Return the fields of a bound that no word names: of its unit, of what its comparison speaks
    of, or the numbers there are, if they are no more than `most`."""
    scope, last = here.scope, bound.amounts[-1]
    if last.units or bound.kind:
        return _of_kind_or_unit(here, bound.kind, last)
    numbers = [one for one in scope.own if one.kind in NUMBERS and not scope.is_kind(one, "year")]
    return numbers if len(numbers) <= most and not scope.of_persons else []


def _of_kind_or_unit(here: Here, kind: str, amount: Amount) -> list[Field]:
    """Return the fields that an adjective speaks of: "long" of a length or a duration."""
    if amount.units:
        return _with_unit(here, amount, kind)
    return here.scope.of_kind(kind, NUMBERS)


def _with_unit(here: Here, amount: Amount, kind: str) -> list[Field]:
    """Return the fields of the unit of a number; of several those of `kind`, if there are any."""
    scope, found = here.scope, []
    for unit, scale in amount.units:
        if scale:
            own = (one for one in scope.own if one.kind in NUMBERS)
            found += [one for one in own if unit in (each for each, _ in scope.units(one))]
        else:
            found += scope.of_kind(unit, NUMBERS)
    fitting = [one for one in found if kind and scope.is_kind(one, kind)]
    return list(dict.fromkeys(fitting or found))


def compare(here: Here, bound: Bound, one: Field) -> Where | None:
    """Return the condition of a bound on a field; None if a unit does not fit it."""
    units = bound.amounts[-1].units
    values = []
    for amount in bound.amounts:
        value = converted(here, amount if amount.units else replace(amount, units=units), one)
        if value is None:
            return None
        values.append(value)
    if bound.op == "between" and values[0] > values[1]:
        return None
    return Where(
        field=one.name, op=bound.op, value=tuple(values) if bound.op == "between" else values[0]
    )


def converted(here: Here, amount: Amount, one: Field) -> float | int | None:
    """Return a number in the unit of a field; None if its unit is of another kind, or the field
    names none."""
    value = amount.value
    if amount.units:
        own = dict(here.scope.units(one))
        for kind, scale in amount.units:
            if scale and kind in own:
                value = amount.value * scale / own[kind]
                break
            if not scale and here.scope.is_kind(one, kind):
                break
        else:
            return None
    rounded = round(value, DIGITS)
    return int(rounded) if rounded == int(rounded) else rounded


# --------------------------------------------------------------------------------------------- ages


def _ages(here: Here, bound: Bound) -> Iterator[Clause]:
    """ "over 65", "older than 40", "30 years old" of persons; "older than 6 months" of records."""
    question, last = here.question, bound.amounts[-1]
    timed = all(kind == "duration" for kind, _ in last.units)
    ends: list[tuple[int, Any]] = [(last.end, ""), *question.all(last.end, "date_units")]
    for end, unit in ends if _is_whole(bound) and timed else ():
        old = [stop for stop, kind in question.all(end, "adjectives") if kind == "age"]
        bare = [end] if bound.led and (bound.kind or not unit) else []
        if unit in ("", "year") and not last.units:
            yield from _of_persons(here, bound, [*old, *bare])
        if unit and bound.kind and not here.scope.of_persons:
            yield from _of_records(here, bound, unit, bare)


def _is_whole(bound: Bound) -> bool:
    return bound.kind in ("", "date") and all(
        amount.value >= 0 and amount.value % 1 == 0 for amount in bound.amounts
    )


def _of_records(here: Here, bound: Bound, unit: TimeUnit, ends: Sequence[int]) -> Iterator[Clause]:
    """Yield the conditions on the age of a record."""
    moment = dates.shifted(here.question.now, unit, -int(bound.amounts[-1].value))
    for one in here.scope.day:
        where = Where(field=one.name, op=bound.op, value=dates.stored(moment, one.kind))
        yield from (Clause("c", end, (where,)) for end in ends)


def _of_persons(here: Here, bound: Bound, ends: Sequence[int]) -> Iterator[Clause]:
    """Yield the conditions on an age, or on a birthday where there is no age."""
    scope = here.scope
    op = MIRRORED.get(bound.op, bound.op) if bound.kind == "date" else bound.op
    aged = scope.of_kind("age", NUMBERS)
    born = scope.of_kind("birth", TIMES) if scope.of_persons and not aged else []
    wheres = [compare(here, replace(bound, op=op, kind=""), one) for one in aged]
    found = [(where,) for where in wheres if where] + [_born(here, op, bound, one) for one in born]
    yield from (Clause("c", end, each) for end in ends for each in found)


def _born(here: Here, op: str, bound: Bound, one: Field) -> tuple[Where, ...]:
    """Return the conditions on a birthday: who is "over 65" is 66 or older."""
    now = dates.midnight(here.question.now)
    least, most = 0, LONGEST_LIFE
    first, last = int(bound.amounts[0].value), int(bound.amounts[-1].value)
    if op in (">", ">="):
        least = first + (op == ">")
    elif op in ("<", "<="):
        most = first - (op == "<")
    else:
        least, most = first, last
    wheres = []
    if least:
        oldest = dates.stored(dates.shifted(now, "year", -least), one.kind)
        wheres.append(Where(field=one.name, op="<=", value=oldest))
    if most < LONGEST_LIFE:
        youngest = dates.stored(dates.shifted(now, "year", -most - 1), one.kind)
        wheres.append(Where(field=one.name, op=">", value=youngest))
    return tuple(wheres)
