"""Reads numbers and fields at the positions of a question: small pieces that the rules share."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from groundhook.handlers.db.question import sense, when
from groundhook.handlers.db.question.meanings import Meanings
from groundhook.handlers.db.question.tokens import CURRENCY
from groundhook.handlers.db.schema import Field

NUMBERS = ("integer", "number")
TIMES = ("date", "moment")
COUNTED: tuple[type[sense.Sense], ...] = (
    sense.OtherModel,
    sense.RelationRef,
    when.DateUnit,
    sense.Unit,
    sense.Multiplier,
)  # of which we have no number
_PARTED = re.compile(r"[1-9]\d{0,2}\.\d{3}")
SHORTEST_MULTIPLIER = 2  # letters of one without a number before it: "m" alone is a metre


@dataclass(frozen=True)
class Amount:
    """A number with its unit's kind ("" without a unit) and, for a unit of measure, its `scale`.
    `factor` is that of a word such as "million", which `value` includes."""

    value: int | float
    kind: str
    end: int
    scale: float = 0.0
    factor: int = 1


class Cursor(Meanings):
    """The tokens of one question, with the numbers and the fields that they name."""

    def number(self, i: int) -> tuple[float, bool, int] | None:
        """Read a number in digits or as a word. Returns (value, whether it has a currency sign,
        end)."""
        if i < len(self.tokens) and self.tokens[i].kind == "number":
            return self.tokens[i].number, self.tokens[i].money, i + 1
        if self._minus(i):
            return -self.tokens[i + 1].number, self.tokens[i + 1].money, i + 2
        if numeral := self._numeral(i):
            return float(numeral[0].number), False, numeral[1]
        single = self.take(i, sense.Single)
        round_one = self.take(single[1] if single else i, sense.Multiplier)  # "over a million"
        alone = round_one and len(self.tokens[round_one[1] - 1].norm) > SHORTEST_MULTIPLIER
        return (float(round_one[0].factor), False, round_one[1]) if round_one and alone else None

    def _numeral(self, i: int) -> tuple[sense.Numeral, int] | None:
        """Return the number that is written as a word: "five", "a dozen"."""
        if (numeral := self.take(i, sense.Numeral)) or not self.is_(i, sense.Single):
            return numeral
        several = self.take(self.after(i), sense.Numeral)
        return several if several and several[0].number > 1 else None

    def is_number(self, i: int) -> bool:
        """Return whether a number in digits is here."""
        return 0 <= i < len(self.tokens) and self.tokens[i].kind == "number"

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
        """Read a number with its unit, before or after it, and a word such as "million"."""
        kind, start = self._unit_before(i)
        number = self.number(start)
        if number is None:
            return None
        value, money, end = number[0], number[1], self._past_hyphen(number[2])
        if measure := self._measure(end):
            return Amount(_without_point(value), measure[0].kind, measure[1], measure[0].scale)
        kind = "money" if money else kind
        factor, end = self.take(end, sense.Multiplier) or (sense.Multiplier(1), end)
        if (unit := self._unit(end)) and not self._named_like_unit(unit[0], end):
            kind, end = kind or unit[0].kind, unit[1]
        if kind == "money" and factor.factor == 1 and self._parts_thousands(start):
            value = round(value * 1000)
        return Amount(_without_point(value * factor.factor), kind, end, factor=factor.factor)

    def _unit_before(self, i: int) -> tuple[str, int]:
        """Return the kind of a unit before its number, and where the number begins."""
        unit = self.take(i, sense.Unit)
        return (unit[0].kind, unit[1]) if unit and self.number(unit[1]) else ("", i)

    def _past_hyphen(self, i: int) -> int:
        """Return the position after the hyphen between a number and what it counts: "a 3-room
        flat"."""
        counted = self.is_(i + 1, sense.Unit, when.DateUnit) or self.number_named(i + 1)
        return i + 1 if self.is_mark(i, "-") and counted else i

    def _parts_thousands(self, i: int) -> bool:
        """Return whether the point in a price parts thousands: "1.500 euros", since no price has
        three decimals."""
        token = self.tokens[i]
        return token.number < 1000 and bool(_PARTED.fullmatch(token.norm.strip(CURRENCY)))

    def upper(self, end: int) -> Amount | None:
        """Return the upper end of a range whose lower end is before this position: "to 20"."""
        until = self.take(end, sense.BetweenAnd)
        return self.amount(until[1]) if until else None

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
        return (found[0], self.after(i)) if found else self.take(i, sense.Unit)

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
        return _without_point(round(amount.value * amount.scale / own, 6) if own else amount.value)

    # ---- fields

    def field_of_kind(self, kind: str) -> Field | None:
        """Return the number field of a kind: of the current topic's relation, else of the model."""
        related = self.lexicon.of_kind(kind, self.about.relation) if self.about.relation else None
        return related or self.lexicon.of_kind(kind)

    def named(self, i: int, kinds: Collection[str]) -> Field | None:
        """Return the field of one of these kinds that is named at a position."""
        fields = (reference.field for reference in self.all(i, sense.FieldRef))
        return next((field for field in fields if field.kind in kinds), None)

    def number_named(self, i: int) -> Field | None:
        """Return the number field that is named at a position."""
        return self.named(i, NUMBERS)

    def names(self, i: int, field: Field) -> bool:
        """Return whether the words at a position name this field."""
        return any(reference.field.name == field.name for reference in self.all(i, sense.FieldRef))

    def is_key(self, field: Field) -> bool:
        """Return whether a field has the keys of the model or of related records."""
        schema = self.lexicon.schema
        foreign = (relation.foreign for relation in schema.relations.values())
        return field.name == schema.key or field.name in foreign

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
        return self.is_(i, when.DateUnit) and self.number_named(i) is None

    def continues(self, i: int) -> bool:
        """Return whether only words such as "and", "or" and "but" separate this position from the
        condition before it."""
        return i > 0 and self.is_(i - 1, sense.And, sense.Or, sense.But)


def _without_point(value: int | float) -> int | float:
    """Return a whole number as an integer."""
    return int(value) if value == int(value) else value
