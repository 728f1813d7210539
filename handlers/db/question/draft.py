"""The result of a grammar rule, and the state of the question while it is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from groundhook.handlers.db.schema import Field
from groundhook.host.core.types.query_language import Aggregate, Order, Where

# How a draft takes the attributes of what a rule found.
COLLECTED = ("notes", "not_understood", "excluded", "alternatives", "exceptions", "phrases")
COLLECTED_ONCE = ("orders", "aggregates", "groups")
FLAGS = ("listing", "person", "refused")


@dataclass(frozen=True)
class Parsed:
    """What a rule made of some words, and the position after them. `not_understood` are positions
    of words that became nothing, `idle` those of words that only qualify other words."""

    end: int
    wheres: tuple[Where, ...] = ()
    orders: tuple[Order, ...] = ()
    notes: tuple[str, ...] = ()
    not_understood: tuple[int, ...] = ()
    idle: tuple[int, ...] = ()
    excluded: tuple[int, ...] = ()
    alternatives: tuple[int, ...] = ()
    exceptions: tuple[int, ...] = ()
    phrases: tuple[str, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    groups: tuple[str, ...] = ()
    limit: int | None = None
    named_at: int | None = None
    singular: bool = False
    listing: bool = False
    person: bool = False
    refused: bool = False
    mention: Field | None = None
    about: About | None = None


@dataclass(frozen=True)
class About:
    """The current topic: the relation that the next words are about ("" for the model itself), and
    the name of its records."""

    relation: str
    title: Field | None = None


def figure_of(function: str, name: str = "*", *, distinct: bool = False) -> Aggregate:
    return Aggregate(function=cast(Any, function), field=name, distinct=distinct)


def constraint(end: int, name: str, op: str, value: Any = None) -> Parsed:
    return Parsed(end, (Where(field=name, op=op, value=value),))


@dataclass
class Draft:
    """What the rules have made of the question so far. `not_understood`, `excluded` and `idle` are
    positions: of words that became no condition, of negated words, and of words that only qualify
    other words. `alternatives` are the positions of every "or" between conditions, `exceptions`
    those of every word that omits the records described after it. `refused`: the question has a
    "not" that no query can express. `pieces`: for each piece of the question that became
    conditions, its begin, its end and the conditions."""

    wheres: list[Where] = field(default_factory=list)
    pieces: list[tuple[int, int, list[Where]]] = field(default_factory=list)
    alternatives: list[int] = field(default_factory=list)
    exceptions: list[int] = field(default_factory=list)
    aggregates: list[Aggregate] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    limit: int | None = None
    phrases: list[str] = field(default_factory=list)
    excluded: list[int] = field(default_factory=list)
    not_understood: list[int] = field(default_factory=list)
    idle: set[int] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    named_at: int | None = None
    listing: bool = False
    person: bool = False
    refused: bool = False
    singular: bool = False
    mention: Field | None = None

    def add(self, where: Where) -> None:
        name, value = where.field, where.value
        # Of a flag that is mentioned twice ("not subscribed to the newsletter") the first word
        # counts.
        before = [there.value for there in self.wheres if there.field == name]
        flag = isinstance(value, bool) and bool(before)
        if flag and value is False and before == [True]:
            self.notes.append(
                f"{name!r} was requested both with and without; records with it are shown"
            )
        if where not in self.wheres and not flag:
            self.wheres.append(where)

    def take(self, parsed: Parsed) -> int:
        """Add what a rule found. Returns the position after it."""
        for where in parsed.wheres:
            self.add(where)
        for name in COLLECTED:
            getattr(self, name).extend(getattr(parsed, name))
        for name in COLLECTED_ONCE:
            there = getattr(self, name)
            there += [one for one in getattr(parsed, name) if one not in there]
        for name in FLAGS:
            setattr(self, name, getattr(self, name) or getattr(parsed, name))
        self.idle.update(parsed.idle)
        self.limit = self.limit if parsed.limit is None else parsed.limit
        self.mention = parsed.mention or self.mention
        if self.named_at is None and parsed.named_at is not None:
            self.named_at, self.singular = parsed.named_at, parsed.singular
        return parsed.end

    def sort(self, name: str, order: str) -> Order | None:
        """Return an order by a field; None if the question already has the opposite order."""
        made = Order(field=name, order="asc" if order == "asc" else "desc")
        there = next((one for one in self.orders if one.field == name), None)
        return made if there in (None, made) else None
