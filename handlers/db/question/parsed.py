"""What words of a question became: the result of a rule, and of all rules so far. A value that does
not change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

from groundhook.core.types.query_language import Aggregate, Order, Where
from groundhook.handlers.db.model.schema import Field

# How the attributes of two results are joined; the others are those of the later one.
COLLECTED = [
    "notes",
    "not_understood",
    "idle",
    "excluded",
    "alternatives",
    "exceptions",
    "phrases",
    "years",
]
COLLECTED_ONCE = ("orders", "aggregates", "groups")


class Piece(NamedTuple):
    """A piece of the question that became conditions: its begin, its end and the conditions."""

    start: int
    end: int
    wheres: tuple[Where, ...]


@dataclass(frozen=True)
class About:
    """The current topic: the relation that the next words are about ("" for the model itself), and
    the name of its records."""

    relation: str
    title: Field | None = None


@dataclass(frozen=True)
class Parsed:
    """What some words became, up to `end`. Of a single rule, `wheres` are its conditions; of all
    rules together, `pieces` have them. `not_understood`, `excluded` and `idle` are positions: of
    words that became no condition, of negated words, and of words that only qualify other words.
    `alternatives` are the positions of every "or" between conditions, `exceptions` those of every
    word that omits the records described after it. `refused`: there is a "not" that no query can
    express. `mention` is the last field that was named without a condition, `years`
    have the fields of which a whole year was requested."""

    end: int = 0
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
    refused: bool = False
    mention: Field | None = None
    about: About | None = None
    years: tuple[tuple[str, int], ...] = ()
    pieces: tuple[Piece, ...] = ()

    @property
    def conditions(self) -> list[Where]:
        return [where for piece in self.pieces for where in piece.wheres]

    @property
    def last(self) -> Where | None:
        """The last condition."""
        return self.pieces[-1].wheres[-1] if self.pieces else None

    def then(self, found: Parsed) -> Parsed:
        """Return this with what a rule found behind it."""
        wheres, notes = self._new_conditions(found.wheres)
        piece = (Piece(self.end, found.end, wheres),) if wheres else ()
        joined: dict[str, Any] = {
            name: (*getattr(self, name), *getattr(found, name)) for name in COLLECTED
        }
        for name in COLLECTED_ONCE:
            joined[name] = tuple(dict.fromkeys((*getattr(self, name), *getattr(found, name))))
        first = self if self.named_at is not None else found
        return replace(
            self,
            **{**joined, "notes": (*joined["notes"], *notes)},
            end=found.end,
            pieces=(*self.pieces, *piece),
            limit=self.limit if found.limit is None else found.limit,
            named_at=first.named_at,
            singular=first.singular,
            refused=self.refused or found.refused,
            mention=found.mention or self.mention,
        )

    def _new_conditions(
        self, wheres: tuple[Where, ...]
    ) -> tuple[tuple[Where, ...], tuple[str, ...]]:
        """Return the conditions that are new, and notes. Of a flag that is mentioned twice ("not
        subscribed to the newsletter") the first word counts."""
        before = {where.field: where.value for where in reversed(self.conditions)}
        flags = {where.field for where in wheres if isinstance(where.value, bool)} & set(before)
        both = [one.field for one in wheres if one.value is False and before.get(one.field) is True]
        new = [one for one in wheres if one not in self.conditions and one.field not in flags]
        return tuple(new), tuple(
            f"{name!r} was requested both with and without; records with it are shown"
            for name in both
        )

    def sort(self, name: str, order: str) -> tuple[Order, ...]:
        """Return an order by a field; empty if the question already has the opposite order."""
        made = Order(field=name, order="asc" if order == "asc" else "desc")
        there = next((one for one in self.orders if one.field == name), made)
        return (made,) if there == made else ()

    def without(self, pieces: Sequence[Piece], *also: int) -> Parsed:
        """Return this without some pieces: their words, and those at `also`, are reported and not
        searched for."""
        places = {*also, *(i for piece in pieces for i in range(piece.start, piece.end))}
        return replace(
            self,
            pieces=tuple(piece for piece in self.pieces if piece not in pieces),
            not_understood=tuple(sorted({*self.not_understood, *places})),
            idle=(*self.idle, *places),
        )

    def unplaced(self, places: range) -> Parsed:
        """Return this with words that are reported and not searched for."""
        return replace(self, not_understood=tuple(places), idle=tuple(places))


def figure_of(function: str, name: str = "*", *, distinct: bool = False) -> Aggregate:
    return Aggregate(function=cast(Any, function), field=name, distinct=distinct)


def constraint(end: int, name: str, op: str, value: Any = None) -> Parsed:
    return Parsed(end, (Where(field=name, op=op, value=value),))
