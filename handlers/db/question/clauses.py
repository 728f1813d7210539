"""Clauses: the parts that a question is made of. Each rule returns all clauses that may begin at a
word, so every reading is seen, and each word belongs to one clause or stays unread.

A clause's `kind` is one letter, so that a question is a word of letters, whose forms are in
`forms`:

    r  words of a request      n  the records' name        c  a condition behind the name
    a  an article              m  "anything", "who"        p  a condition also before the name
    b  "is"   h  "has"         R  related records          N  the name of one record
    w  "that" k  "and"         f  "how many"               g  a figure of a field
    O  "of"   d  "does"        q  a field that is asked    s  a superlative
    e  "there are"             t  "top 5"                  o  "sorted by …"
    v  "located"               G  "per …"                  x  "by"
    H  "with over 5 orders"    V  "who never ordered"      Q  "costs"
    i  "currently" (left out)  M  "the most"             z  a time of no named field
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from groundhook.core.types.query_language import Where
from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.question.question import TokenizedQuestion
from groundhook.handlers.db.question.scope import QuestionScope
from groundhook.handlers.db.question.values import FoundValue, NamedValues
from groundhook.handlers.db.question.wheres import has_opposite, opposite


@dataclass(frozen=True)
class Clause:
    """A part of a question up to the position `end`. `notes` say how it was read where that is not
    certain; `span`: its time names no year; `list_only`: no figure may come of it."""

    kind: str
    end: int
    wheres: tuple[Where, ...] = ()
    fields: tuple[Field, ...] = ()
    figure: str = ""
    direction: str = ""
    count: int = 0
    plural: bool = False
    bucket: str = ""
    relation: str = ""
    notes: tuple[str, ...] = ()
    yearless: bool = False
    list_only: bool = False


_Rule = Callable[["Here", int], Iterable[Clause]]


@dataclass
class Here:
    """A question and the model that its records are of, or within a relation the related model.
    Clauses are kept by position."""

    question: TokenizedQuestion
    scope: QuestionScope
    many: bool = False
    _kept: dict[Any, Any] = field(default_factory=dict)
    _within: dict[str, Here] = field(default_factory=dict)

    @cached_property
    def values(self) -> NamedValues:
        return NamedValues.of(self.question, self.scope)

    @cached_property
    def fields(self) -> dict[str, Field]:
        return {one.name: one for one in self.scope.own}

    def titles(self, relation: str) -> list[Field]:
        """Return the fields that name the records of a relation; none of one that the identity may
        not see."""
        related = self.scope.related.get(relation)
        return related.titles if related else []

    def within(self, relation: str) -> Here:
        """Return the same question for the records of a relation."""
        if relation not in self._within:
            many = self.scope.schema.relations[relation].many
            self._within[relation] = Here(self.question, self.scope.related[relation], many)
        return self._within[relation]

    def once(self, rule: _Rule, i: int) -> Sequence[Clause]:
        """Return the clauses of a rule at a position, which are computed once."""
        key = (rule, i)
        if key not in self._kept:
            self._kept[key] = ()  # a rule that leads to itself finds nothing more
            self._kept[key] = tuple(dict.fromkeys(rule(self, i)))
        found: Sequence[Clause] = self._kept[key]
        return found

    def named(self, i: int, table: str) -> list[tuple[int, Any]]:
        """Return the names at a position, the longest first: of `fields` or `relations`."""
        if (table, i) in self._kept:
            kept: list[tuple[int, Any]] = self._kept[table, i]
            return kept
        question, names = self.question, getattr(self.scope, table)
        found: list[tuple[int, Any]] = []
        for end in range(min(len(question), i + 5), i, -1):
            if not self.within_name(i, end):
                found += [(end, one) for one in names.get(question.stems(i, end), ())]
        longest = max((end for end, _ in found), default=0)
        self._kept[table, i] = [each for each in found if each[0] == longest]
        return self.named(i, table)

    def fields_at(self, i: int, *kinds: str) -> list[tuple[int, Field]]:
        """Return the fields of these kinds that are named at a position. "number of" may come
        before a number."""
        found = [
            (end, one) for end, one in self.named(i, "fields") if one.kind in kinds or not kinds
        ]
        if not found and "integer" in kinds:
            for end, function in self.question.all(i, "figures"):
                if function == "count":
                    found += list(self.fields_at(end, "integer"))
        return found

    def free_values(self, i: int) -> list[FoundValue]:
        """Return the values at a position that may stand without their field's name."""
        found = self.values.at.get(i, ())
        return [each for each in found if each.free and not self.within_name(i, each.end)]

    def values_of(self, one: Field, places: Iterable[int]) -> list[FoundValue]:
        """Return the values of a field that begin at these positions."""
        found = (value for at in places for value in self.values.at.get(at, ()))
        return [value for value in found if value.field == one]

    def nouns_at(self, i: int) -> list[tuple[int, bool]]:
        """Return the end of the name of the records at a position, and whether it is plural."""
        question = self.question
        return [
            (end, question.norm(end - 1) != question.words.stem(question.norm(end - 1)))
            for end in range(min(len(question), i + 5), i, -1)
            if question.stems(i, end) in self.scope.nouns and not self.within_name(i, end)
        ][:1]

    @cached_property
    def _long_names(self) -> set[tuple[int, int]]:
        """The places of names and free values of several words, whose words alone mean nothing."""
        question, scope = self.question, self.scope
        places = set()
        for i in range(len(question)):
            for end in range(i + 2, min(len(question), i + 5) + 1):
                stems = question.stems(i, end)
                if stems in scope.nouns or stems in scope.fields or stems in scope.relations:
                    places.add((i, end))
            for value in self.values.at.get(i, ()):
                if value.end > i + 1 and (
                    scope.is_title(value.field) or scope.repeats(value.field)
                ):
                    places.add((i, value.end))
        return places

    def within_name(self, i: int, end: int) -> bool:
        return any(
            first <= i and end <= last and (first, last) != (i, end)
            for first, last in self._long_names
        )


def negated(here: Here, clause: Clause, end: int) -> list[Clause]:
    """Return the clause that holds where this one does not; nothing if no query can say so."""
    if clause.relation or not has_opposite(clause.wheres):
        return []
    against = opposite(clause.wheres, here.fields)
    kind = clause.kind if clause.kind in "pz" else "c"
    return [replace(clause, wheres=against, end=end, kind=kind)]
