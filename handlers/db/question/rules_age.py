"""Rules for the ages of persons with a known date of birth."""

from __future__ import annotations

from groundhook.core.types.query_language import Where
from groundhook.handlers.db.question import dates, sense, when
from groundhook.handlers.db.question.bounds import Bound
from groundhook.handlers.db.question.cursor import Amount, Cursor
from groundhook.handlers.db.question.number_fields import LONGEST_LIFE, rated
from groundhook.handlers.db.question.parsed import Parsed

# A comparison of ages goes the other way than that of dates: "older than 40" is born earlier, and
# begins with those that are 41. Each comparison as comparisons of the date of birth, with the years
# that they are later than that birthday.
BORN: dict[str, tuple[tuple[str, int], ...]] = {
    ">": (("<=", 1),),
    ">=": (("<=", 0),),
    "<": ((">", 0),),
    "<=": ((">", 1),),
    "=": ((">", 1), ("<=", 0)),
}
EARLIER = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def aged(cursor: Cursor, bound: Bound) -> Parsed | None:
    """ "members over 60", "trainers younger than 40", "aged 20 to 30": a condition on the date of
    birth."""
    born = cursor.date_of_kind("birth")
    if born is None or not _says_age(cursor, bound):
        return None
    op = EARLIER.get(bound.op, bound.op) if bound.kind == "date" else bound.op
    ops = ("<=", ">=") if op == "between" else (op,)
    wheres = []
    for one, amount in zip(ops, reversed(bound.amounts), strict=False):
        for compared, more in BORN[one]:
            years = int(amount.value) + more
            day = dates.midnight(dates.shifted(cursor.now, "year", -years))
            value = dates.stored(day, born.kind)
            wheres.append(Where(field=born.name, op=compared, value=value))
    end = cursor.past_one(bound.last.end, when.DateUnit)
    return Parsed(cursor.past_one(end, sense.Adjective), tuple(wheres))


def _says_age(cursor: Cursor, bound: Bound) -> bool:
    """Return whether a compared number can be an age and nothing else."""
    amount = bound.last
    kinds = amount.kind in ("", "age") and bound.kind in ("", "age", "date")
    if not kinds or bound.op not in (*BORN, "between") or not 0 < amount.value <= LONGEST_LIFE:
        return False
    if _says_other(cursor, amount.end):
        return False
    return bound.kind != "" or _says_years(cursor, amount)


def _says_other(cursor: Cursor, end: int) -> bool:
    """Return whether a number that ends here is of a field, or the records have ages of their
    own."""
    topic = cursor.about.relation
    person = topic and cursor.lexicon.date_of_kind("birth", topic)
    age = cursor.lexicon.of_kind("age", topic if person else "")
    named = any(cursor.number_named(at) for at in cursor.steps(end, sense.Filler, most=1))
    return named or age is not None or cursor.is_(end, sense.Condition, sense.ModelRef)


def _says_years(cursor: Cursor, amount: Amount) -> bool:
    """Return whether a number whose comparison is about no kind is an age: "over 60" of persons,
    "over 3 years"."""
    end = amount.end
    if years := cursor.take(end, when.DateUnit):
        return years[0].unit == "year" and not cursor.is_(years[1], when.Ago)
    if cursor.unknown(end) or cursor.counts(end) or rated(cursor, end):
        return False
    topic = cursor.about.relation
    person = topic and cursor.lexicon.date_of_kind("birth", topic)
    old = cursor.is_(end, sense.Adjective) or amount.kind == "age"
    return bool(old or person) or cursor.lexicon.of_persons
