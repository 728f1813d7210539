"""Rules for the ages of persons with a known date of birth."""

from __future__ import annotations

from groundhook.handlers.db.question import dates, sense, when
from groundhook.handlers.db.question.cursor import Amount, Cursor
from groundhook.handlers.db.question.draft import OPPOSITE, Parsed
from groundhook.host.core.types.query_language import Where

LONGEST_LIFE = 120  # years


def aged(cursor: Cursor, amount: Amount, word: sense.Compare, negated: bool) -> Parsed | None:
    """ "members over 60", "trainers younger than 40": a condition on the date of birth."""
    born = cursor.born()
    if born is None or not _says_age(cursor, amount, word):
        return None
    # "older than 40" begins with those that are 41; the comparison with a date goes the other way.
    op = OPPOSITE[word.op] if negated else word.op
    earlier = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
    op = earlier.get(op, op) if word.kind == "date" else op
    wheres = []
    for bound, years in _ages(op, int(amount.value)):
        day = dates.stored(dates.midnight(dates.shifted(cursor.now, "year", -years)), born.kind)
        wheres.append(Where(field=born.name, op=bound, value=day))
    return Parsed(cursor.past_one(amount.end, sense.Adjective), tuple(wheres))


def _says_age(cursor: Cursor, amount: Amount, word: sense.Compare) -> bool:
    """Return whether a compared number can be an age and nothing else."""
    end = amount.end
    counted = cursor.counts(end) and not cursor.is_(end, when.DateUnit)
    fits = amount.kind in ("", "age") and word.kind in ("", "age", "date") and word.op in OPPOSITE
    named = any(cursor.number_named(at) for at in (end, cursor.past_one(end, sense.Filler)))
    related = cursor.about.relation in cursor.lexicon.births
    age = cursor.lexicon.of_kind("age", cursor.about.relation if related else "")
    other = named or cursor.is_(end, sense.Condition, sense.ModelRef) or age
    years = cursor.is_(end, when.DateUnit, sense.Adjective) or amount.kind == "age"
    bare = word.kind == "" and (
        cursor.unknown(end) or counted or not (cursor.lexicon.of_persons or years or related)
    )
    return fits and not (other or bare) and 0 < amount.value <= LONGEST_LIFE


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
