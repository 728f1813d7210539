"""Rules for the ages of persons with a known date of birth."""

from __future__ import annotations

from groundhook.handlers.db.question import dates, sense, when
from groundhook.handlers.db.question.cursor import Amount, Cursor
from groundhook.handlers.db.question.draft import Parsed
from groundhook.host.core.types.query_language import Where

LONGEST_LIFE = 120  # years
BOUNDS = ("<", "<=", ">", ">=", "=")


def aged(cursor: Cursor, amount: Amount, word: sense.Compare) -> Parsed | None:
    """ "members over 60", "trainers younger than 40": a condition on the date of birth."""
    born = cursor.born()
    if born is None or not _says_age(cursor, amount, word):
        return None
    # "older than 40" begins with those that are 41; the comparison with a date goes the other way.
    earlier = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
    op = earlier.get(word.op, word.op) if word.kind == "date" else word.op
    wheres = []
    for bound, years in _ages(op, int(amount.value)):
        day = dates.stored(dates.midnight(dates.shifted(cursor.now, "year", -years)), born.kind)
        wheres.append(Where(field=born.name, op=bound, value=day))
    return Parsed(cursor.past_one(amount.end, sense.Adjective), tuple(wheres))


def _says_age(cursor: Cursor, amount: Amount, word: sense.Compare) -> bool:
    """Return whether a compared number can be an age and nothing else."""
    kinds = amount.kind in ("", "age") and word.kind in ("", "age", "date")
    if not kinds or word.op not in BOUNDS or not 0 < amount.value <= LONGEST_LIFE:
        return False
    if _says_other(cursor, amount.end):
        return False
    return word.kind != "" or _says_years(cursor, amount)


def _says_other(cursor: Cursor, end: int) -> bool:
    """Return whether a number that ends here is of a field, or the records have ages of their
    own."""
    topic = cursor.about.relation
    age = cursor.lexicon.of_kind("age", topic if topic in cursor.lexicon.births else "")
    named = any(cursor.number_named(at) for at in (end, cursor.past_one(end, sense.Filler)))
    return named or age is not None or cursor.is_(end, sense.Condition, sense.ModelRef)


def _says_years(cursor: Cursor, amount: Amount) -> bool:
    """Return whether a number whose comparison is about no kind is an age: "over 60" of persons,
    "over 3 years"."""
    end, unit = amount.end, cursor.is_(amount.end, when.DateUnit)
    if cursor.unknown(end) or (cursor.counts(end) and not unit):
        return False
    years = unit or cursor.is_(end, sense.Adjective) or amount.kind == "age"
    return years or cursor.lexicon.of_persons or cursor.about.relation in cursor.lexicon.births


def _ages(op: str, years: int) -> list[tuple[str, int]]:
    """Return conditions on a date of birth, each with its number of years before today."""
    known: dict[str, list[tuple[str, int]]] = {
        ">": [("<=", years + 1)],
        ">=": [("<=", years)],
        "<": [(">", years)],
        "<=": [(">", years + 1)],
        "=": [(">", years + 1), ("<=", years)],
    }
    return known.get(op, [])
