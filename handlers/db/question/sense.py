"""The meanings that a phrase of a question can have, by the language (`vocabulary`) or by the model
(`lexicon`)."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, Literal, dataclass_transform

from groundhook.handlers.db.schema import Field

Phrase = tuple[str, ...]
Sorting = Literal["asc", "desc"]


@dataclass_transform(frozen_default=True, field_specifiers=(dataclass_field,))
class Sense:
    """The base of all meanings, each of which is a frozen dataclass."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


# ---- of the model


class FieldRef(Sense):
    field: Field


class ValueRef(Sense):
    """A value of the field: an option, or one from the samples. `rows` is the number of sampled
    rows with the value, 0 if it is not known."""

    field: Field
    value: str
    rows: int = dataclass_field(default=0, compare=False)


class ModelRef(Sense):
    """The model itself."""


class RelationRef(Sense):
    """A model with related records. `title` is its title field, as seen from this model."""

    relation: str
    title: Field | None


class OtherModel(Sense):
    """Another model of the app."""

    id: str


# ---- of the language


class FigureWord(Sense):
    """Requests a number over records: "how many", "average". `kind`: of the fields of that kind, as
    "revenue" does."""

    function: Literal["count", "sum", "avg", "min", "max"]
    kind: str = ""


class Preposition(Sense):
    """Selects the text field of the value after it: "from" the origin, "to" the destination."""

    kind: str


class Compare(Sense):
    op: str
    kind: str = ""


class Postfix(Sense):
    """A comparison after its number: "100 or more"."""

    op: str


class Unit(Sense):
    """A unit of a kind. `scale` is its size in the smallest unit of what can be measured, else
    0."""

    kind: str
    scale: float = 0.0


class Adjective(Sense):
    """ "long", "tall", "good": after a number of that kind it selects the field; alone it means
    nothing."""

    kind: str


class HowMuch(Sense):
    """ "how long": requests a number of a kind."""

    kind: str


class Superlative(Sense):
    order: Sorting


class OrderWord(Sense):
    """An order by the first of these kinds. `vague`: it also says something of the records, but not
    where it begins: "cheap"."""

    kinds: tuple[str, ...]
    order: Sorting
    vague: bool = False


class Direction(Sense):
    order: Sorting


class Condition(Sense):
    kind: str
    op: str
    value: Any


class Truth(Sense):
    value: bool


class Numeral(Sense):
    number: float


class Multiplier(Sense):
    factor: int


class Between(Sense): ...


class BetweenAnd(Sense): ...


class SortBy(Sense): ...


class Top(Sense): ...


class First(Sense): ...


class Not(Sense):
    """`of_verb`: a verb follows, as after "do not" and "never"."""

    of_verb: bool = False


class Except(Not):
    """Omits the records that are described after it."""


class But(Sense):
    """An `Except` after a request for everything."""


class Nor(Sense): ...


class And(Sense): ...


class Or(Sense): ...


class ValueLink(Sense):
    """Comes between a field and its value: "the price is 5", "a rating of 4"."""


class Equals(Sense): ...


class Single(Sense): ...


class Contains(Sense): ...


class Called(Sense): ...


class Filler(Sense): ...


class QuestionWord(Filler):
    """ "which", "what": the field after it is requested."""


class Request(Filler):
    """A verb such as "show" that requests something where the question begins; elsewhere it has a
    meaning of its own."""


class Auxiliary(Filler):
    """ "do", "did", "have": the subject follows in a question."""


class Relative(Filler):
    """ "who", "that" before a clause about the records."""


class LeadIn(Filler):
    """A verb or noun without a condition before a preposition or a number ("living in", "records
    with"); elsewhere it has a meaning of its own ("living authors")."""


class MadeVerb(LeadIn):
    """A verb for making a record: "placed", "created"."""


class LinkingVerb(Filler):
    """A verb without a condition before a value or a field: "that need full sun"."""


class NumberVerb(LeadIn):
    """A verb that names the kind of the number after it: "weighs", "earning"."""

    kind: str


class Everything(Filler): ...


class Pronoun(Filler):
    """ "those", "anything": stands for the records in the place of the model's name."""


class Having(Filler): ...


class Person(Filler):
    """ "who": a model of persons."""


class AskedValue(Filler):
    """ "what is": the "highest price" after it is a number and not a record."""


class Per(Sense): ...


class Than(Filler):
    """Comes between a comparative and its object: "heavier than"."""


class Each(Per): ...


class Different(Sense): ...
