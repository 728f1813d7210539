"""Times of day: "on 15 November after 6 pm", "tomorrow between 9:30 and noon". Conditions have no
time without its day: one without a day is reported."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from groundhook.core.types.query_language import Where
from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.question import dates, sense, when
from groundhook.handlers.db.question.cursor import Cursor
from groundhook.handlers.db.question.parsed import Parsed
from groundhook.handlers.db.question.rules_time import date_led

Clock = tuple[int, int, int]  # hour, minute, and the position after the words
LAST_HOUR, LAST_MINUTE, NOON = 23, 59, 12
# How a time that is named once bounds the moment; "at" holds for its minute.
BOUNDS = {"after": (">",), "since": (">=",), "before": ("<",), "until": ("<=",), "during": ()}


def time_of_day(cursor: Cursor, draft: Parsed, i: int, of: Field | None = None) -> Parsed | None:
    """A time of day, next to the day that it belongs to; of the field that was named before."""
    found = _range(cursor, i) or _bound(cursor, i)
    if found is None:
        return None
    bounds, end = found
    named = of or draft.mention
    moment = named if named and named.kind == "moment" else None
    later = date_led(cursor, draft, end, moment) or Parsed(end)
    behind = _day_of(cursor, later.wheres)
    before = _day_of(cursor, draft.pieces[-1].wheres) if draft.pieces else None
    if (day := behind or before) is None:
        return Parsed(end).unplaced(range(i, end))
    field, start = day
    wheres = tuple(
        Where(field=field.name, op=op, value=dates.stored(start + since_midnight, field.kind))
        for op, since_midnight in bounds
    )
    return replace(later, wheres=(*later.wheres, *wheres)) if behind else Parsed(end, wheres)


def _bound(cursor: Cursor, i: int) -> tuple[list[tuple[str, timedelta]], int] | None:
    """ "after 6 pm", "at 18:30", "by noon"."""
    relation = cursor.take(i, when.DateRelation)
    clock = _clock(cursor, cursor.past_one(relation[1], sense.Filler) if relation else i)
    if clock is None:
        return None
    time = timedelta(hours=clock[0], minutes=clock[1])
    ops = BOUNDS[relation[0].relation if relation else "during"]
    minute = [(">=", time), ("<", time + timedelta(minutes=1))]
    return [(op, time) for op in ops] or minute, clock[2]


def _range(cursor: Cursor, i: int) -> tuple[list[tuple[str, timedelta]], int] | None:
    """ "between 9 and 11 am", "from 9:30 to noon". Of two bare numbers nobody knows that they are
    hours."""
    start = cursor.past_one(i, sense.Between)
    hour_of = _hour if start > i else _clock
    first = hour_of(cursor, start)
    until = cursor.take(first[2], sense.BetweenAnd) if first else None
    last = hour_of(cursor, until[1]) if until else None
    if first is None or until is None or last is None:
        return None
    clear = _clock(cursor, start) is not None
    if not (clear or _clock(cursor, until[1])):
        return None
    hour, minute, _ = first
    afternoon = cursor.is_word(last[2] - 1, cursor.lexicon.vocabulary.file.dates.pm)
    if not clear and afternoon and hour + NOON <= last[0]:
        hour += NOON  # "between 2 and 4 pm"
    ends = timedelta(hours=hour, minutes=minute), timedelta(hours=last[0], minutes=last[1])
    return [(">=", ends[0]), ("<=", ends[1])], last[2]


def _hour(cursor: Cursor, i: int) -> Clock | None:
    """ "9:30", or the "9" of "between 9 and 11 am"."""
    hour = cursor.whole(i, LAST_HOUR)
    return _clock(cursor, i) or ((hour[0], 0, hour[1]) if hour else None)


def _clock(cursor: Cursor, i: int) -> Clock | None:
    """ "6 pm", "18:30", "9 o'clock", "18 Uhr", "noon"."""
    if word := cursor.take(i, when.Clock):
        return (word[0].hour, 0, word[1])
    words = cursor.lexicon.vocabulary.file.dates
    before = cursor.is_word(i, words.clock_before)
    at = i + before
    if not cursor.is_number(at) or cursor.tokens[at].number % 1:
        return None
    minutes = _minutes(cursor, at)
    end = at + 1 if minutes is None else at + 3
    named = cursor.is_word(end, (*words.am, *words.pm, *words.clock))
    if not (named or before or minutes is not None):
        return None
    hour = _of_day(cursor, int(cursor.tokens[at].number), end)
    valid = hour <= LAST_HOUR and (minutes or 0) <= LAST_MINUTE
    return (hour, minutes or 0, end + named) if valid else None


def _of_day(cursor: Cursor, hour: int, end: int) -> int:
    """Return the hour in a day of 24, by the "am" or "pm" at a position."""
    words = cursor.lexicon.vocabulary.file.dates
    if cursor.is_word(end, words.pm) and hour < NOON:
        return hour + NOON
    return 0 if cursor.is_word(end, words.am) and hour == NOON else hour


def _minutes(cursor: Cursor, i: int) -> int | None:
    """Return the minutes of "18:30", whose three pieces are written together."""
    if not cursor.is_mark(i + 1, ":") or not cursor.is_number(i + 2):
        return None
    hour, sign, minute = cursor.typed[i : i + 3]
    together = sign.group == hour.group + len(hour.text) and minute.group == sign.group + 1
    return int(minute.number) if together and len(minute.text) == 2 else None


def _day_of(cursor: Cursor, wheres: tuple[Where, ...]) -> tuple[Field, datetime] | None:
    """Return the field and the day of conditions that hold on one day."""
    ends = {where.op: where for where in wheres if not where.group}
    field = cursor.lexicon.fields.get(wheres[0].field) if set(ends) == {">=", "<"} else None
    if field is None or field.kind != "moment":
        return None
    first, last = (datetime.fromisoformat(str(ends[op].value)) for op in (">=", "<"))
    start = first.replace(tzinfo=UTC).astimezone(cursor.now.tzinfo)
    return (field, start) if last - first == timedelta(days=1) else None
