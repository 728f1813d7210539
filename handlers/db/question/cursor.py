"""Reads numbers and fields at the positions of a question: small pieces that the rules share."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.question import sense, when
from groundhook.handlers.db.question.meanings import NOWHERE, Meanings
from groundhook.handlers.db.question.tokens import CURRENCY

NUMBERS = ("integer", "number")
TIMES = ("date", "moment")
# Of these we have no number.
COUNTED = (sense.OtherModel, sense.RelationRef, when.DateUnit, sense.Unit, sense.Multiplier)
_PARTED = re.compile(r"[1-9]\d{0,2}\.\d{3}")
SHORTEST_MULTIPLIER = 2  # letters of one without a number before it: "m" alone is a metre


@dataclass(frozen=True)
class Amount:
    """A number with its unit: `units` are the meanings of the word for it ("pounds" are money or a
    weight), `kind` and `scale` those of the first. `factor` is that of a word such as "million",
    which `value` includes."""

    value: int | float
    kind: str
    end: int
    units: tuple[sense.Unit, ...] = ()
    factor: int = 1

    @property
    def scale(self) -> float:
        return self.units[0].scale if self.units else 0.0

    def in_kind(self, kind: str) -> Amount:
        """Return the amount with its unit of a kind first, if it has one."""
        units = sorted(self.units, key=lambda unit: unit.kind != kind)
        return replace(self, kind=units[0].kind, units=tuple(units)) if units else self


class Cursor(Meanings):
    """The tokens of one question, with the numbers and the fields that they name."""

    def number(self, i: int) -> tuple[float, bool, int] | None:
        """Read a number in digits or as a word. Returns (value, whether it has a currency sign,
        end)."""
        value, money, end = self._digits(i) or self._in_words(i) or (0.0, False, i)
        if end == i:
            return None
        a = self.after(end) if self.is_(end, sense.And) else end
        half = self.after(a) if self.is_(a, sense.Single) else a
        if a > end and half > a and self.is_(half, when.Half):
            return value + 0.5, money, self.after(half)  # "one and a half"
        return value, money, end

    def _digits(self, i: int) -> tuple[float, bool, int] | None:
        if self.is_number(i):
            return self.tokens[i].number, self.tokens[i].money, i + 1
        if self._minus(i):
            return -self.tokens[i + 1].number, self.tokens[i + 1].money, i + 2
        return None

    def _in_words(self, i: int) -> tuple[float, bool, int] | None:
        if numeral := self._numeral(i):
            return float(numeral[0].number), False, numeral[1]
        single = self.past_one(i, sense.Single)
        word = self.take(single, sense.Multiplier)  # "over a million"
        alone = word and len(self.tokens[word[1] - 1].norm) > SHORTEST_MULTIPLIER
        return (float(word[0].factor), False, word[1]) if word and alone else None

    def _numeral(self, i: int) -> tuple[sense.Numeral, int] | None:
        """Return the number that is written as a word: "five", "a dozen"."""
        if (numeral := self.take(i, sense.Numeral)) or not self.is_(i, sense.Single):
            return numeral
        several = self.take(self.after(i), sense.Numeral)
        return several if several and several[0].number > 1 else None

    def _minus(self, i: int) -> bool:
        """Return whether the token is a minus sign: a space before it and none after it."""
        if not self.is_mark(i, "-") or not self.is_number(i + 1):
            return False
        at, before = self.typed[i].group, self.typed[i - 1] if i else NOWHERE
        return self.typed[i + 1].group == at + 1 and before.group + len(before.text) < at

    def whole(self, i: int, most: int) -> tuple[int, int] | None:
        """Read a whole number from 1 to `most` without a currency sign."""
        value, money, end = self.number(i) or (0.0, False, i)
        return None if money or value % 1 or not 1 <= value <= most else (int(value), end)

    def amount(self, i: int) -> Amount | None:
        """Read a number with its unit, before or after it, and a word such as "million"."""
        before, start = self._unit_before(i)
        number = self.number(start)
        if number is None:
            return None
        value, money, end = number[0], number[1], self._past_hyphen(number[2])
        factor, (units, after) = 1, self._units(end)
        if not any(unit.scale for unit in units) and (word := self.take(end, sense.Multiplier)):
            factor, (units, after) = word[0].factor, self._units(word[1])
        kind = "money" if money else before or next((unit.kind for unit in units), "")
        if kind == "money" and factor == 1 and self._parts_thousands(start):
            value = round(value * 1000)
        return Amount(without_point(value * factor), kind, after, tuple(units), factor)

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

    def _units(self, i: int) -> tuple[list[sense.Unit], int]:
        """Return the meanings of the unit here, those of which there is a field first, and the
        position after it."""
        units = sorted(self.all(i, sense.Unit), key=lambda unit: not self._has_field(unit))
        if units and not self._is_unit(units[0], i):
            units = []
        return units, self.after(i) if units else i

    def _has_field(self, unit: sense.Unit) -> bool:
        kind = unit.kind
        return bool(self.lexicon.with_unit(kind) if unit.scale else self.field_of_kind(kind))

    def _is_unit(self, unit: sense.Unit, i: int) -> bool:
        """Return whether a word is meant as this unit: the "m" of "100 m" may be millions."""
        if unit.scale:
            return self._has_field(unit) or not self.is_(i, sense.Multiplier)
        return not self._named_like_unit(unit, i)

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

    # ---- fields

    def field_of_kind(self, kind: str) -> Field | None:
        """Return the number field of a kind: of the current topic's relation, else of the model."""
        topic, of_kind = self.about.relation, self.lexicon.of_kind
        return (of_kind(kind, topic) if topic else None) or of_kind(kind)

    def doubts(self, start: int, end: int, kind: str, field: Field) -> tuple[str, ...]:
        """Return a note that the words from `start` to `end`, which name only the kind of a field,
        may mean another one; empty if no other fits as well."""
        others = " or ".join(repr(one.name) for one in self.lexicon.fitting_too(kind, field))
        typed = self.text(start, end)
        note = f"{typed!r} was read as {field.name!r}; it may mean {others} as well"
        return (note,) if others else ()

    def date_of_kind(self, kind: str) -> Field | None:
        """Return the date of a kind, such as that of birth: of the current topic, else of the
        model's records."""
        topic, of_kind = self.about.relation, self.lexicon.date_of_kind
        return (of_kind(kind, topic) if topic else None) or of_kind(kind)

    def fields(self, i: int) -> list[Field]:
        """Return the fields that are named at a position."""
        return [reference.field for reference in self.all(i, sense.FieldRef)]

    def named(self, i: int, kinds: Collection[str]) -> Field | None:
        """Return the field of one of these kinds that is named at a position."""
        return next((field for field in self.fields(i) if field.kind in kinds), None)

    def number_named(self, i: int) -> Field | None:
        """Return the number field that is named at a position."""
        return self.named(i, NUMBERS)

    def names(self, i: int, field: Field) -> bool:
        """Return whether the words at a position name this field."""
        return any(one.name == field.name for one in self.fields(i))

    def is_key(self, field: Field) -> bool:
        """Return whether a field has the keys of the model or of related records."""
        schema = self.lexicon.schema
        foreign = (relation.foreign for relation in schema.relations.values())
        return field.name == schema.key or field.name in foreign

    def only_number(self) -> Field | None:
        """Return the model's number field if it has exactly one; keys do not count."""
        numbers = [one for one in self.lexicon.schema.visible if one.kind in NUMBERS]
        own = [one for one in numbers if not (self.is_key(one) or one.name.endswith("_id"))]
        return own[0] if len(own) == 1 else None

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


def without_point(value: int | float) -> int | float:
    """Return a whole number as an integer."""
    return int(value) if value == int(value) else value
