"""The meanings of the words about time."""

from __future__ import annotations

from typing import Literal

from groundhook.handlers.db.question.sense import Filler, Qualifier, Sense

Relation = Literal["since", "after", "before", "until", "during"]
DateUnitName = Literal["hour", "day", "week", "month", "quarter", "year"]
Which = Literal["previous", "rolling", "counted", "this", "next"]


class DatePostfix(Sense):
    """A comparison after its date: "2024 or newer"."""

    relation: str


class DateRelation(Qualifier):
    relation: str


class Period(Qualifier):
    """`previous` (last month), `rolling` (the last 30 days), `this`, `next` (next month, the next
    30 days), `counted` (rolling, where a number of units follows)."""

    which: Which


class PeriodBehind(Sense):
    """A `Period` in a language that puts it after the time."""

    which: Which


class DateUnit(Qualifier):
    unit: DateUnitName


class Month(Sense):
    number: int


class Unclear(Sense):
    """The name of a month that is also another word: "may"."""


class Length(Sense):
    """A length of time with a name of its own: "fortnight"."""

    count: int
    unit: DateUnitName


class Ahead(Sense):
    """ "upcoming": from now on; "past": until now; "overdue": a date that lies ahead is over;
    "expired": a date of that kind is."""

    future: bool
    due: bool = False
    kind: str = ""


class Happened(Filler):
    """A verb of what is over: "took place"."""


class Weekday(Sense):
    """`number` is 1 for Monday."""

    number: int


class DayWord(Sense):
    days: int


class Season(Sense):
    """ "summer"; `first` is its first month, in the north."""

    first: int


class Nth(Sense):
    """ "third", of the quarters or halves of a year."""

    number: int


class Half(Sense): ...


class Clock(Sense):
    """ "noon"."""

    hour: int


class Weekend(Sense): ...


class Decade(Sense):
    year: int


class Birthday(Sense):
    """Comes every year: of a time without a year we do not know whose it is."""


class BeforeYear(Sense): ...


class Ago(Qualifier): ...


class Old(Sense): ...


class Lasting(Sense):
    """ "for" before a length of time."""


class Definite(Sense): ...


class Falls(Sense):
    """Comes between the name of a date and the time: "whose inspection is due next week"."""
