"""Reads the tokens of a question: what each can mean at its position, and small pieces that the
rules share.

A position is an index of a token. A method that takes tokens returns the position after them, or
None."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from groundhook.handlers.db.question import sense
from groundhook.handlers.db.question.draft import About
from groundhook.handlers.db.question.lexicon import Lexicon
from groundhook.handlers.db.question.tokens import CURRENCY, Token
from groundhook.handlers.db.schema import Field

NUMBERS = ("integer", "number")
COUNTED: tuple[type[sense.Sense], ...] = (
    sense.OtherModel,
    sense.RelationRef,
    sense.DateUnit,
    sense.Unit,
    sense.Multiplier,
)  # of which we have no number
_PARTED = re.compile(r"[1-9]\d{0,2}\.\d{3}")
SHORTEST_MULTIPLIER = 2  # letters of one without a number before it: "m" alone is a metre
M = TypeVar("M", bound=sense.Sense)


@dataclass(frozen=True)
class Amount:
    """A number with its unit's kind ("" without a unit) and, for a unit of measure, its `scale`.
    `factor` is that of a word such as "million", which `value` includes."""

    value: int | float
    kind: str
    end: int
    scale: float = 0.0
    factor: int = 1


class Cursor:
    """The tokens of one question and what they mean for one model."""

    def __init__(self, tokens: Sequence[Token], lexicon: Lexicon, now: datetime) -> None:
        pieces = lexicon.read(tokens)
        self.typed, self.tokens = [typed for typed, _ in pieces], [read for _, read in pieces]
        self.lexicon, self.now = lexicon, now
        self.about = About("")  # the topic of the next words: the last one mentioned
        self._memo: dict[int, tuple[tuple[sense.Sense, ...], int]] = {}
        self._raw: dict[int, tuple[tuple[sense.Sense, ...], int]] = {}
        self._unnamed = self._relations_unnamed()

    def at(self, i: int) -> tuple[tuple[sense.Sense, ...], int]:
        """Return all meanings of the longest phrase at a position, and the position after it.
        Meanings of related records whose model the question does not name are omitted."""
        found = self._memo.get(i)
        if found is None:
            meanings, end = self._meanings(i)
            meant = tuple(
                meaning
                for meaning in meanings
                if _relation_of(meaning) not in self._unnamed
                and (
                    not isinstance(meaning, (sense.LeadIn, sense.LinkingVerb, sense.Request))
                    or self._idle(meaning, i, end)
                )
            )
            found = self._memo[i] = (meant, end if meant else i)
        return found

    def _idle(self, word: sense.Filler, i: int, end: int) -> bool:
        """Return whether a word that may be content carries no condition at its place."""
        if isinstance(word, sense.Request):
            return self._begins(i)
        if isinstance(word, sense.LeadIn) and self._may_be(i, sense.FieldRef, sense.ValueRef):
            return False
        if isinstance(word, sense.LinkingVerb):
            governed = (sense.ValueRef, sense.FieldRef, sense.Superlative)
            article = self._may_be(end, sense.Definite, sense.Single)
            return self._may_be(end, *governed) or (article and self._may_be(end + 1, *governed))
        # The meanings of neighbours are looked up without their places, which would not end.
        governing = (sense.Preposition, sense.DateRelation, sense.Compare)
        if (
            end >= len(self.tokens)
            or self.tokens[end].kind == "mark"
            or self._may_be(end, sense.And, sense.Or)
        ):
            return not self._may_be(i - 1, *governing)
        return self.tokens[end].kind == "number" or self._may_be(
            end,
            *governing,
            sense.Between,
            sense.Period,
            sense.Per,
            sense.Not,
            sense.Link,
            sense.Filler,
        )

    def _may_be(self, i: int, *kinds: type[sense.Sense]) -> bool:
        return any(isinstance(meaning, kinds) for meaning in self._meanings(i)[0])

    def _begins(self, i: int) -> bool:
        """Return whether only fillers come before a position."""
        at = 0
        while at < i and (self.is_(at, sense.Filler) or self.tokens[at].kind == "mark"):
            at = max(self.at(at)[1], at + 1)
        return at >= i

    def _meanings(self, i: int) -> tuple[tuple[sense.Sense, ...], int]:
        """Return the same with the meanings of related records that are not named."""
        found = self._raw.get(i)
        if found is None:
            known = 0 <= i < len(self.tokens) and self.tokens[i].kind != "quoted"
            found = self.lexicon.meanings(self.tokens, i) if known else ((), i)
            if (
                known
                and i
                and (names := self.lexicon.names.get(self.typed[i].text))
                and found[1] <= i + 1
            ):
                found = ((*names, *found[0]), i + 1)
            self._raw[i] = found
        return found

    def _relations_unnamed(self) -> frozenset[str]:
        """Return the relations to many records that the question does not name. Their fields and
        values are never meant."""
        many = {
            relation.name for relation in self.lexicon.schema.relations.values() if relation.many
        }
        found = [self._meanings(i)[0] for i in range(len(self.tokens))] if many else []
        named = {
            meaning.relation
            for meanings in found
            for meaning in meanings
            if isinstance(meaning, sense.RelationRef)
        }
        return frozenset(many - named)

    def take(self, i: int, kind: type[M]) -> tuple[M, int] | None:
        meanings, end = self.at(i)
        if kind in (sense.FieldRef, sense.ValueRef):
            found = self.all(i, kind)
            return (found[0], end) if found else None
        for meaning in meanings:
            if isinstance(meaning, kind):
                return meaning, end
        return None

    def all(self, i: int, kind: type[M]) -> list[M]:
        """Return the meanings of a kind. Fields and values of the current topic come first, then
        the model's own."""
        meanings, end = self.at(i)
        found = [meaning for meaning in meanings if isinstance(meaning, kind)]
        if len(found) < 2 or kind not in (sense.FieldRef, sense.ValueRef):
            return found
        ahead = {
            meaning.relation
            for meaning in self.at(end)[0]
            if isinstance(meaning, sense.RelationRef)
        }

        def far(meaning: M) -> int:
            relation = _relation_of(meaning)
            return (
                0
                if relation in ahead
                else 1
                if relation == self.about.relation
                else 2
                if not relation
                else 3
            )

        return sorted(found, key=far)

    def is_(self, i: int, *kinds: type[sense.Sense]) -> bool:
        for meaning in self.at(i)[0]:  # noqa: SIM110
            if isinstance(meaning, kinds):
                return True
        return False

    def ended(self, i: int) -> bool:
        return i >= len(self.tokens) or (self.tokens[i].kind == "mark" and not self.at(i)[0])

    def unknown(self, i: int) -> bool:
        """Return whether a word, number or date has no meaning of its own here."""
        return (
            i < len(self.tokens) and self.tokens[i].kind in ("word", "number") and not self.at(i)[0]
        )

    def is_mark(self, i: int, marks: str) -> bool:
        return (
            i < len(self.tokens) and self.tokens[i].kind == "mark" and self.tokens[i].norm in marks
        )

    def past(self, i: int, *kinds: type[sense.Sense], most: int = 3) -> int:
        """The position after up to `most` phrases of these kinds."""
        for _ in range(most):
            if not self.is_(i, *kinds):
                break
            i = self.at(i)[1]
        return i

    def back(self, i: int) -> int:
        """Return where the phrase before a position begins, skipping filler words."""
        starts = [0]
        while (end := max(self.at(starts[-1])[1], starts[-1] + 1)) < i:
            starts.append(end)
        return next((at for at in reversed(starts) if at == 0 or not self.is_(at, sense.Filler)), 0)

    def text(self, start: int, end: int) -> str:
        """Return the text as typed; the pieces of a compound are joined again."""
        parts: list[str] = []
        for i in range(start, end):
            joined = i > start and self.typed[i].group == self.typed[i - 1].group
            between = (
                ""
                if joined and self.typed[i - 1].kind == "number"
                else "-"
                if joined
                else " "
                if i > start
                else ""
            )
            parts.append(between + self.typed[i].text)
        return "".join(parts)

    def joint(self, i: int) -> int:
        """Return the position after a comma, an "and" or an "or" here; the same position without
        one."""
        at = i + 1 if self.is_mark(i, ",") else i
        return self.at(at)[1] if self.is_(at, sense.And, sense.Or) else at

    def act(self, i: int) -> str | None:
        """Return the relation to many records that a verb implies: "ordered" implies a customer's
        orders."""
        word = self.tokens[i].norm if i < len(self.tokens) and self.tokens[i].kind == "word" else ""
        return (
            self.lexicon.acts.get(self.lexicon.vocabulary.root(word))
            if word and not self.at(i)[0]
            else None
        )

    # ---- numbers

    def number(self, i: int) -> tuple[float, bool, int] | None:
        """Read a number in digits or as a word. Returns (value, whether it has a currency sign,
        end)."""
        if i < len(self.tokens) and self.tokens[i].kind == "number":
            return self.tokens[i].number, self.tokens[i].money, i + 1
        if self._minus(i):
            return -self.tokens[i + 1].number, self.tokens[i + 1].money, i + 2
        numeral = self.take(i, sense.Numeral)
        if numeral is None and self.is_(i, sense.Single):
            several = self.take(self.at(i)[1], sense.Numeral)  # "a dozen"
            numeral = several if several and several[0].number > 1 else None
        if numeral is not None:
            return float(numeral[0].number), False, numeral[1]
        single = self.take(i, sense.Single)
        round_one = self.take(single[1] if single else i, sense.Multiplier)  # "over a million"
        alone = round_one and len(self.tokens[round_one[1] - 1].norm) > SHORTEST_MULTIPLIER
        return (float(round_one[0].factor), False, round_one[1]) if round_one and alone else None

    def _minus(self, i: int) -> bool:
        """Return whether the token is a minus sign: a space before it and none after it."""
        if (
            not self.is_mark(i, "-")
            or i + 1 >= len(self.tokens)
            or self.tokens[i + 1].kind != "number"
        ):
            return False
        at, before = self.typed[i].group, self.typed[i - 1] if i else None
        return self.typed[i + 1].group == at + 1 and (
            before is None or before.group + len(before.text) < at
        )

    def whole(self, i: int, most: int) -> tuple[int, int] | None:
        """Read a whole number from 1 to `most` without a currency sign."""
        number = self.number(i)
        if number is None or number[1] or number[0] != int(number[0]) or not 1 <= number[0] <= most:
            return None
        return int(number[0]), number[2]

    def amount(self, i: int) -> Amount | None:
        before = self.take(i, sense.Unit)
        start = before[1] if before and self.number(before[1]) else i
        number = self.number(start)
        if number is None:
            return None
        value, money, end = number
        if self.is_mark(end, "-") and (
            self.is_(end + 1, sense.Unit, sense.DateUnit) or self.number_named(end + 1)
        ):
            end += 1  # "a 3-room flat"
        kind = "money" if money else before[0].kind if before and start != i else ""
        measure = self._measure(end)
        if factor := None if measure else self.take(end, sense.Multiplier):
            value, end = value * factor[0].factor, factor[1]
        if (unit := self._unit(end)) and not self._named_like_unit(unit[0], end):
            kind, end = kind or unit[0].kind, unit[1]
        if (
            kind == "money"
            and value < 1000
            and not factor
            and _PARTED.fullmatch(self.tokens[start].norm.strip(CURRENCY))
        ):
            value = round(value * 1000)  # "1.500 euros": no price has three decimals
        whole = int(value) if value == int(value) else value
        if measure is not None:
            return Amount(whole, measure[0].kind, measure[1], measure[0].scale)
        return Amount(whole, kind, end, factor=factor[0].factor if factor else 1)

    def range_of(self, lower: Amount, upper: Amount) -> tuple[Amount, Amount]:
        """Return both ends of a range: in "10 to 20 million" the word belongs to both."""
        if lower.factor == 1 < upper.factor and lower.value < 1000:
            return replace(lower, value=lower.value * upper.factor), upper
        return lower, upper

    def _measure(self, i: int) -> tuple[sense.Measure, int] | None:
        """Return the unit here if some field of the model has, or may have, that unit."""
        found = self.take(i, sense.Measure)
        return found if found and self.lexicon.with_unit(found[0].kind, "") else None

    def _unit(self, i: int) -> tuple[sense.Unit, int] | None:
        """Return the unit here; of several, one of a kind that the model has a field for."""
        found = [one for one in self.all(i, sense.Unit) if self.field_of_kind(one.kind)]
        return (found[0], self.at(i)[1]) if found else self.take(i, sense.Unit)

    def _named_like_unit(self, unit: sense.Unit, i: int) -> bool:
        """Return whether a field is named like a unit without being of its kind, as "people" of a
        population."""
        field = self.number_named(i)
        own = self.field_of_kind(unit.kind)
        counted = unit.kind in ("capacity", "quantity")
        return field is not None and (field != own if own and not counted else counted)

    def counts(self, i: int) -> bool:
        """Return whether a number before this position counts something of which no number is
        known: "five open jobs"."""
        behind = self.past(i, sense.ValueRef)
        named = behind > i and self.is_(behind, sense.ModelRef)
        return named or self.is_(i, *COUNTED) or self.is_(behind, sense.RelationRef)

    def in_unit_of(self, field: Field, amount: Amount) -> int | float:
        """Return the amount in the unit of a field: 1.5 kg are 1500 for a field in grams."""
        own = self.lexicon.scale_of(field, amount.kind) if amount.scale else None
        value = round(amount.value * amount.scale / own, 6) if own else amount.value
        return int(value) if value == int(value) else value

    # ---- fields

    def field_of_kind(self, kind: str) -> Field | None:
        """Return the number field of a kind: of the current topic's relation, else of the model."""
        related = self.lexicon.of_kind(kind, self.about.relation) if self.about.relation else None
        return related or self.lexicon.of_kind(kind)

    def number_named(self, i: int) -> Field | None:
        """Return the number field that is named at a position."""
        return next(
            (
                reference.field
                for reference in self.all(i, sense.FieldRef)
                if reference.field.kind in NUMBERS
            ),
            None,
        )

    def born(self) -> Field | None:
        """Return the date of birth of the current topic, else of the model's records."""
        related = self.lexicon.births.get(self.about.relation)
        return related or self.lexicon.birth_field

    def only_number(self) -> Field | None:
        """Return the model's number field if it has exactly one; keys do not count."""
        schema = self.lexicon.schema
        numbers = [
            one
            for one in schema.visible
            if one.kind in NUMBERS and one.name != schema.key and not one.name.endswith("_id")
        ]
        return numbers[0] if len(numbers) == 1 else None

    def many(self, field: Field) -> bool:
        """Return whether a record can have several values of the field, through a relation to many
        records."""
        relation = self.lexicon.schema.relations.get(field.name.rpartition(".")[0])
        return relation is not None and relation.many

    def time_unit(self, i: int) -> bool:
        """Return whether a unit of time is here that is not also the name of a number field."""
        return self.is_(i, sense.DateUnit) and self.number_named(i) is None

    def continues(self, i: int) -> bool:
        """Return whether only words such as "and", "or" and "but" separate this position from the
        condition before it."""
        return i > 0 and self.is_(i - 1, sense.And, sense.Or)


def _relation_of(meaning: sense.Sense) -> str:
    """Return the relation that leads to a field or value; "" for the model's own and for other
    meanings."""
    return (
        meaning.field.name.rpartition(".")[0]
        if isinstance(meaning, (sense.FieldRef, sense.ValueRef))
        else ""
    )
