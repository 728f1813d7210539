"""What a phrase of a question can mean: by the language (`vocabulary`) or by the model
(`lexicon`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from groundhook.handlers.db.schema import Field

Phrase = tuple[str, ...]
Sorting = Literal["asc", "desc"]
Relation = Literal["since", "after", "before", "until", "during"]
DateUnitName = Literal["hour", "day", "week", "month", "quarter", "year"]


class Meaning:
    """The base of all meanings."""


# ---- of the model


@dataclass(frozen=True)
class FieldRef(Meaning):
    field: Field


@dataclass(frozen=True)
class ValueRef(Meaning):
    """A value that the field has: an option, or one that was sampled."""

    field: Field
    value: str


@dataclass(frozen=True)
class ModelRef(Meaning):
    """The model itself."""


@dataclass(frozen=True)
class RelationRef(Meaning):
    """A model that records of this one are related to. `title`: its field that names a record best,
    as this model says it."""

    relation: str
    title: Field | None


@dataclass(frozen=True)
class OtherModel(Meaning):
    """Another model of the app."""

    id: str


# ---- of the language


@dataclass(frozen=True)
class FigureWord(Meaning):
    """Asks for a number over records: "how many", "average"; `kind`: of the fields of that kind, as
    "revenue" does."""

    function: Literal["count", "sum", "avg", "min", "max"]
    kind: str = ""


@dataclass(frozen=True)
class Preposition(Meaning):
    """Says which of several text fields the value after it belongs to: "from" the origin, "to" the
    destination."""

    kind: str


@dataclass(frozen=True)
class Compare(Meaning):
    op: str
    kind: str = ""


@dataclass(frozen=True)
class Postfix(Meaning):
    """A comparison said after its number."""

    op: str


@dataclass(frozen=True)
class DatePostfix(Meaning):
    """A comparison said after its date: "2024 or newer"."""

    relation: str


@dataclass(frozen=True)
class Unit(Meaning):
    kind: str


@dataclass(frozen=True)
class Measure(Meaning):
    """A unit of a kind, worth `scale` of the smallest one."""

    kind: str
    scale: float


@dataclass(frozen=True)
class Adjective(Meaning):
    """ "long", "tall", "good": behind a number of that kind it says which; alone nothing."""

    kind: str


@dataclass(frozen=True)
class HowMuch(Meaning):
    """ "how long": asks for a number of a kind."""

    kind: str


@dataclass(frozen=True)
class Superlative(Meaning):
    order: Sorting


@dataclass(frozen=True)
class OrderWord(Meaning):
    kinds: tuple[str, ...]
    order: Sorting


@dataclass(frozen=True)
class Direction(Meaning):
    order: Sorting


@dataclass(frozen=True)
class Condition(Meaning):
    kind: str
    op: str
    value: Any


@dataclass(frozen=True)
class Truth(Meaning):
    value: bool


@dataclass(frozen=True)
class Numeral(Meaning):
    number: int


@dataclass(frozen=True)
class Multiplier(Meaning):
    factor: int


@dataclass(frozen=True)
class DateRelation(Meaning):
    relation: str


@dataclass(frozen=True)
class Period(Meaning):
    """`previous` (last month), `rolling` (the last 30 days), `this`, `next` (next month, the next
    30 days), `counted` (rolling, where a number of units follows)."""

    which: Literal["previous", "rolling", "counted", "this", "next"]


@dataclass(frozen=True)
class PeriodBehind(Meaning):
    """The same, in a language that says it after the time."""

    which: Literal["previous", "rolling", "this", "next"]


@dataclass(frozen=True)
class DateUnit(Meaning):
    unit: DateUnitName


@dataclass(frozen=True)
class Month(Meaning):
    number: int
    clear: bool


@dataclass(frozen=True)
class Ahead(Meaning):
    """ "upcoming": from now on; "past": until now."""

    future: bool


@dataclass(frozen=True)
class Weekday(Meaning):
    number: int


@dataclass(frozen=True)
class DayWord(Meaning):
    days: int


class Between(Meaning): ...


class BetweenAnd(Meaning): ...


class SortBy(Meaning): ...


class Top(Meaning): ...


class First(Meaning): ...


class Not(Meaning): ...


class But(Meaning):
    """Behind a question for everything: what is left out."""


@dataclass(frozen=True)
class Nor(Meaning): ...


class And(Meaning): ...


class Or(Meaning): ...


class Link(Meaning): ...


class Equals(Meaning): ...


class Single(Meaning): ...


class BeforeYear(Meaning): ...


class Contains(Meaning): ...


class Called(Meaning): ...


class Ago(Meaning): ...


class Old(Meaning): ...


class Definite(Meaning): ...


class Falls(Meaning):
    """Between the name of a date and the time: "whose inspection is due next week"."""


class Filler(Meaning): ...


class Everything(Filler): ...


class Having(Filler): ...


class Person(Filler):
    """ "who": a model of persons is meant."""


class AskedValue(Filler):
    """ "what is": the "highest price" behind it is a number and not a record."""


class Per(Meaning): ...


class Than(Filler):
    """Between a comparative and what is compared with: "heavier than"."""


class Each(Per): ...


class Different(Meaning): ...
