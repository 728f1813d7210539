"""The meanings that a phrase of a question can have, by the language (`vocabulary`) or by the model
(`lexicon`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, Literal, dataclass_transform

from groundhook.handlers.db.model.schema import Field

Phrase = tuple[str, ...]
Sorting = Literal["asc", "desc"]


@dataclass_transform(frozen_default=True, field_specifiers=(dataclass_field,))
class Sense:
    """The base of all meanings, each of which is a frozen dataclass."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


def has(meanings: Iterable[Sense], *kinds: type[Sense]) -> bool:
    """Return whether one of the meanings is of one of these kinds."""
    return any(isinstance(one, kinds) for one in meanings)


# ---- of the model


class OfField(Sense):
    field: Field


class FieldRef(OfField):
    """The name of the field."""


class ValueRef(OfField):
    """A value of the field: an option, or one from the samples. `rows` is the number of sampled
    rows with the value, 0 if it is not known."""

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


class Qualifier(Sense):
    """A word that speaks about other words: alone it is reported, and there is no use in searching
    for it."""


class FigureWord(Qualifier):
    """Requests a number over records: "how many", "average". `kind`: of the fields of that kind, as
    "revenue" does."""

    function: Literal["count", "sum", "avg", "min", "max"]
    kind: str = ""


class Preposition(Qualifier):
    """Selects the text field of the value after it: "from" the origin, "to" the destination."""

    kind: str


class Compare(Qualifier):
    op: str
    kind: str = ""


class Postfix(Qualifier):
    """A comparison after its number: "100 or more"."""

    op: str


class Unit(Sense):
    """A unit of a kind. `scale` is its size in the smallest unit of what can be measured, else
    0."""

    kind: str
    scale: float = 0.0


class Adjective(Qualifier):
    """ "long", "tall", "good": after a number of that kind it selects the field; alone it means
    nothing."""

    kind: str


class HowMuch(Qualifier):
    """ "how long": requests a number of a kind."""

    kind: str


class Ordering(Qualifier):
    order: Sorting


class Superlative(Ordering): ...


class OrderWord(Ordering):
    """An order by the first of these kinds. `vague`: it also says something of the records, but not
    where it begins: "cheap"."""

    kinds: tuple[str, ...]
    vague: bool = False


class Direction(Ordering): ...


class Condition(Qualifier):
    kind: str
    op: str
    value: Any


class Truth(Sense):
    value: bool


class Numeral(Sense):
    number: float


class Multiplier(Sense):
    factor: int


class Between(Qualifier): ...


class BetweenAnd(Qualifier): ...


class SortBy(Qualifier): ...


class Top(Qualifier): ...


class First(Qualifier): ...


class Not(Qualifier):
    """`of_verb`: a verb follows, as after "do not" and "never"."""

    of_verb: bool = False


class Except(Not):
    """Omits the records that are described after it."""


class But(Sense):
    """An `Except` after a request for everything."""


class Nor(Sense): ...


class And(Sense): ...


class Or(Sense): ...


class ValueLink(Qualifier):
    """Comes between a field and its value: "the price is 5", "a rating of 4"."""


class Missing(Qualifier):
    """ "missing", behind a field: it has no value."""


class Equals(Sense): ...


class Single(Sense): ...


class Contains(Sense): ...


class StartsWith(Sense): ...


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


class NumberVerb(Sense):
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


class Per(Qualifier): ...


class Than(Filler):
    """Comes between a comparative and its object: "heavier than"."""


class Each(Per): ...


class Different(Sense): ...
