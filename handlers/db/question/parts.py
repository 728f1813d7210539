"""What a question wants of its records: figures, groups, orders, fields, and the words that only
join these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.question.clauses import Clause, Here
from groundhook.handlers.db.question.numbers import counts
from groundhook.handlers.db.question.scope import NUMBERS, TIMES

MOST_RECORDS = 1000  # of "top 5"
LINKS = {
    "requests": "r",
    "articles": "a",
    "be": "b",
    "have": "h",
    "relatives": "w",
    "and": "k",
    "of": "O",
    "do": "d",
    "exist": "e",
    "place_verbs": "v",
    "idle": "i",
    "polite": "y",
    "pronouns": "m",
    "sort_by": "x",
    "when": "T",
}
FUNCTION_OF = {"desc": "max", "asc": "min"}


def parts(here: Here, i: int) -> Iterator[Clause]:
    """Yield the clauses at a position that are no conditions."""
    question = here.question
    for kind, letter in LINKS.items():
        if kind == "requests" and i and not question.is_(i - 1, "polite"):
            begun = any(end == i for start in range(i) for end, _ in question.all(start, kind))
            if not begun:
                continue
        yield from (Clause(letter, end) for end, _ in question.all(i, kind))
    if question.is_mark(i, ","):
        yield Clause("k", i + 1)
    if here.scope.of_persons:
        yield from (Clause("m", end) for end, _ in question.all(i, "who"))
    yield from (Clause("n", end, plural=plural) for end, plural in here.nouns_at(i))
    yield from _figures(here, i)
    yield from _groups(here, i)
    yield from _kept_groups(here, i)
    yield from _orders(here, i)
    yield from _asked(here, i)


def _figures(here: Here, i: int) -> Iterator[Clause]:
    """ "how many", "average price", "number of different cities", "revenue"."""
    question = here.question
    for end, function in question.all(i, "figures"):
        if function == "count":
            yield Clause("f", end)
            yield from _different(here, end)
            continue
        kinds = (*NUMBERS, *TIMES) if function in ("min", "max") else NUMBERS
        for start in question.past(end, "of"):
            for at in question.past(start, "articles"):
                yield from _figure_of(here, at, function, kinds)
                yield from _totals(here, at) if function == "sum" else ()
    yield from _totals(here, i)
    for end, one in here.fields_at(i, *NUMBERS):  # "מחיר ממוצע"
        for stop, function in question.all(end, "figures"):
            if function != "count":
                yield Clause("g", stop, fields=(one,), figure=function)
        if any(function == "sum" for stop, function in question.all(i, "figures") if stop == end):
            yield Clause("g", end, fields=(one,), figure="sum")
    for end, direction in question.all(i, "superlatives"):
        yield from _figure_of(here, end, FUNCTION_OF[direction], (*NUMBERS, *TIMES))


def _figure_of(here: Here, i: int, function: str, kinds: Iterable[str]) -> Iterator[Clause]:
    for at in (i, *(end for end, _ in here.nouns_at(i))):  # "average order total"
        for end, one in here.fields_at(at, *kinds):
            yield Clause("g", end, fields=(one,), figure=function)
    sums = here.scope.of_kind("money", NUMBERS) if function in ("avg", "sum") else []
    if len(sums) == len([one for one in here.scope.own if one.kind in NUMBERS]) == 1:
        for end, _ in here.nouns_at(i):  # "average salary", of records that are sums of money
            yield Clause("g", end, fields=(sums[0],), figure=function)


def _different(here: Here, i: int) -> Iterator[Clause]:
    for start, _ in here.question.all(i, "different"):
        yield from _figure_of(here, start, "different", ("text", "integer"))
        for end, titles in _relations(here, start):
            yield Clause("g", end, fields=titles[:1], figure="different")


def _totals(here: Here, i: int) -> Iterator[Clause]:
    """ "revenue"."""
    for end, kind in here.question.all(i, "figures_of"):
        for one in here.scope.of_kind(kind, NUMBERS):
            yield Clause("g", end, fields=(one,), figure="sum")


def _groups(here: Here, i: int) -> Iterator[Clause]:
    """ "per genre", "by country", "for each teacher", "per month", "monthly"."""
    question = here.question
    for kind in ("per", "each", "sort_by"):
        for start, _ in question.all(i, kind):
            weak = "weak" if kind == "sort_by" else ""
            for at in question.past(start, "articles"):
                for end, one in here.fields_at(at, "text", "boolean", "integer", "json"):
                    yield Clause("G", end, fields=(one,), direction=weak)
                for end, titles in _relations(here, at):
                    yield Clause("G", end, fields=titles, direction=weak)
                for end, unit in (
                    *question.all(at, "date_units"),
                    *question.all(at, "date_grouped"),
                ):
                    # "lessons every week" may be no question for their number
                    yield from _bucket(here, end, unit, "" if kind == "per" else "weak")
    for end, unit in question.all(i, "date_repeated"):
        named = any(found.end == end for found in here.values.at.get(i, ()))
        # "are monthly", "annual reports"
        said_of = question.is_(i - 1, "be") or here.nouns_at(end)
        if not (named or said_of or here.within_name(i, end)):
            yield from _bucket(here, end, unit, "")


def _bucket(here: Here, end: int, unit: str, direction: str) -> Iterator[Clause]:
    """Yield the group by a part of the only date that a time may be of."""
    days = here.scope.day
    if len(days) == 1 and (unit != "hour" or days[0].kind == "moment"):
        yield Clause("G", end, fields=(days[0],), bucket=unit, direction=direction)


def _relations(here: Here, i: int) -> list[tuple[int, tuple[Field, ...]]]:
    """Return the to-one relations that are named at a position, each with the fields that name its
    records."""
    found = []
    for end, relation in here.named(i, "relations"):
        titles = here.titles(relation.name)
        if not relation.many and titles:
            found.append((end, tuple(titles)))
    return found


def _kept_groups(here: Here, i: int) -> Iterator[Clause]:
    """ "with more than 5 customers", of cities that customers are in."""
    for at, op, count in counts(here, i, "having", "have"):
        for end, _ in here.nouns_at(at):
            yield Clause("H", end, count=count, direction=op)


def _orders(here: Here, i: int) -> Iterator[Clause]:
    """ "cheapest", "with the highest price", "sorted by price descending", "top 5", "the most"."""
    question = here.question
    for start in question.past(i, "having"):
        for at in question.past(start, "articles"):
            yield from _superlatives(here, at)
    yield from (Clause("M", end, direction=how) for end, how in question.all(i, "superlatives"))
    for end, one in here.fields_at(i, *TIMES):  # "restored most recently"
        for stop, entry in question.all(end, "orders"):
            if "date" in entry.kinds:
                yield Clause("s", stop, fields=(one,), direction=entry.order)
    for start, _ in question.all(i, "sort_by"):
        # "by country" alone may be a group
        bare = question.is_(i, "prepositions") or question.is_(i, "per")
        for at in question.past(start, "articles"):
            yield from _sorted(here, at, bare=bare)
    for start in [i, *(end for end, _ in question.all(i, "top"))]:
        amount = question.number(start)
        if amount and amount.value % 1 == 0 and 0 < amount.value <= MOST_RECORDS:
            yield Clause("t", amount.end, count=int(amount.value))


def _superlatives(here: Here, i: int) -> Iterator[Clause]:
    question = here.question
    for end, entry in question.all(i, "orders"):
        notes = ("how_many",) if entry.vague else ()
        for one in _ordered_fields(here, entry.kinds):
            yield Clause("s", end, fields=(one,), direction=entry.order, notes=notes)
    for end, direction in question.all(i, "superlatives"):
        for stop, one in here.fields_at(end, *NUMBERS, *TIMES):
            yield Clause("s", stop, fields=(one,), direction=direction)


def _sorted(here: Here, i: int, *, bare: bool) -> Iterator[Clause]:
    for end, one in here.fields_at(i):
        for at in [end, end + here.question.is_mark(end, ",")]:
            for stop, how in here.question.all(at, "directions"):
                yield Clause("o", stop, fields=(one,), direction=how)
        yield Clause(
            "o", end, fields=(one,), direction="asc" if one.kind == "text" and not bare else ""
        )


def _ordered_fields(here: Here, kinds: tuple[str, ...]) -> list[Field]:
    scope = here.scope
    for kind in kinds:
        types = TIMES if kind in ("date", "birth", "begun") else NUMBERS
        found = scope.day if kind == "date" else scope.of_kind(kind, types)
        if kind == "date" and not found:
            found = scope.of_kind("begun", TIMES)
        if kind == "year" and not found:
            found = scope.of_kind("year", TIMES)
        if found:
            return found
    return []


def _asked(here: Here, i: int) -> Iterator[Clause]:
    """ "email", "manager", "how long"."""
    question = here.question
    if not question.is_(i, "figures"):  # "total of all invoices" is a sum
        yield from (Clause("q", end, fields=(one,)) for end, one in here.fields_at(i))
    yield from (Clause("q", end, fields=titles) for end, titles in _relations(here, i))
    for end, kind in question.all(i, "how_much"):
        if question.is_(end, "do"):  # "how much does it weigh": the verb says of what
            yield Clause("r", end)
        found = here.scope.of_kind(kind, NUMBERS)
        found = found or (here.scope.of_kind("birth", TIMES) if kind == "age" else [])
        yield from (Clause("q", end, fields=(one,)) for one in found)
    for end, kind in question.all(i, "number_verbs"):  # "what does the pen cost"
        for one in here.scope.of_kind(kind, NUMBERS):
            yield Clause("Q", end, fields=(one,))
