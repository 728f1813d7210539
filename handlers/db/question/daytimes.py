"""Times of day: "on 15 November after 6 pm", "tomorrow between 9:30 and noon". Conditions have no
time without its day: one without a day is reported."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from groundhook.handlers.db.question import dates, sense, when
from groundhook.handlers.db.question.cursor import Cursor
from groundhook.handlers.db.question.draft import Draft, Parsed
from groundhook.handlers.db.question.rules_time import date_led
from groundhook.handlers.db.schema import Field
from groundhook.host.core.types.query_language import Where

Clock = tuple[int, int, int]  # hour, minute, and the position after the words
LAST_HOUR, LAST_MINUTE, NOON = 23, 59, 12
# How a time that is named once bounds the moment; "at" holds for its minute.
BOUNDS = {"after": (">",), "since": (">=",), "before": ("<",), "until": ("<=",), "during": ()}


def time_of_day(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """A time of day, next to the day that it belongs to."""
    found = _range(cursor, i) or _bound(cursor, i)
    if found is None:
        return None
    bounds, end = found
    later = date_led(cursor, draft, end)
    day = _day_of(cursor, later.wheres if later else ()) or _day_of(
        cursor, draft.pieces[-1][2] if draft.pieces else ()
    )
    if day is None:
        places = tuple(range(i, end))
        return Parsed(end, unplaced=places, idle=places)
    field, start = day
    wheres = tuple(
        Where(field=field.name, op=op, value=dates.stored(start + since_midnight, field.kind))
        for op, since_midnight in bounds
    )
    if later is None or _day_of(cursor, later.wheres) is None:
        return Parsed(end, wheres)
    return replace(later, wheres=(*later.wheres, *wheres))


def _bound(cursor: Cursor, i: int) -> tuple[list[tuple[str, timedelta]], int] | None:
    """ "after 6 pm", "at 18:30", "by noon"."""
    relation = cursor.take(i, when.DateRelation)
    at = cursor.past_one(relation[1], sense.Filler) if relation else i
    clock = _clock(cursor, at)
    if clock is None:
        return None
    time = timedelta(hours=clock[0], minutes=clock[1])
    ops = BOUNDS[relation[0].relation if relation else "during"]
    minute = [(">=", time), ("<", time + timedelta(minutes=1))]
    return [(op, time) for op in ops] or minute, clock[2]


def _range(cursor: Cursor, i: int) -> tuple[list[tuple[str, timedelta]], int] | None:
    """ "between 9 and 11 am", "from 9:30 to noon"."""
    word = cursor.take(i, sense.Between)
    first = word[1] if word else i
    number = cursor.whole(first, LAST_HOUR)
    clock = _clock(cursor, first)
    until = cursor.take(clock[2] if clock else number[1] if number else i, sense.BetweenAnd)
    last = _clock(cursor, until[1]) if until else None
    if last is None or not (clock or (word and number)):
        return None
    hour, minute = clock[:2] if clock else (number[0] if number else 0, 0)
    words = cursor.lexicon.vocabulary.file.dates
    if clock is None and _is_word(cursor, last[2] - 1, words.pm) and hour + NOON <= last[0]:
        hour += NOON  # "between 2 and 4 pm"
    first_time, last_time = (
        timedelta(hours=hour, minutes=minute),
        timedelta(hours=last[0], minutes=last[1]),
    )
    return [(">=", first_time), ("<=", last_time)], last[2]


def _clock(cursor: Cursor, i: int) -> Clock | None:
    """ "6 pm", "18:30", "9 o'clock", "18 Uhr", "noon"."""
    words = cursor.lexicon.vocabulary.file.dates
    if word := cursor.take(i, when.Clock):
        return (word[0].hour, 0, word[1])
    before = _is_word(cursor, i, words.clock_before)
    at = i + before
    if at >= len(cursor.tokens) or cursor.tokens[at].kind != "number":
        return None
    hour, minute, end = cursor.tokens[at].number, 0.0, at + 1
    minutes = _minutes(cursor, at)
    if minutes is not None:
        minute, end = minutes, at + 3
    early, late = _is_word(cursor, end, words.am), _is_word(cursor, end, words.pm)
    named = early or late or _is_word(cursor, end, words.clock)
    if hour != int(hour) or not (named or before or minutes is not None):
        return None
    hour += NOON if late and hour < NOON else -NOON if early and hour == NOON else 0
    if hour > LAST_HOUR or minute > LAST_MINUTE:
        return None
    return int(hour), int(minute), end + named


def _minutes(cursor: Cursor, i: int) -> float | None:
    """Return the minutes of "18:30", whose three pieces are written together."""
    if i + 2 >= len(cursor.typed) or not cursor.is_mark(i + 1, ":"):
        return None
    hour, sign, minute = cursor.typed[i : i + 3]
    together = sign.group == hour.group + len(hour.text) and minute.group == sign.group + 1
    two = minute.kind == "number" and len(minute.text) == 2
    return minute.number if together and two else None


def _is_word(cursor: Cursor, i: int, words: tuple[str, ...]) -> bool:
    return i < len(cursor.tokens) and cursor.tokens[i].norm in words


def _day_of(
    cursor: Cursor, wheres: tuple[Where, ...] | list[Where]
) -> tuple[Field, datetime] | None:
    """Return the field and the day of conditions that hold on one day."""
    ends = {where.op: where for where in wheres if where.group is None}
    field = cursor.lexicon.fields.get(wheres[0].field) if set(ends) == {">=", "<"} else None
    if field is None or field.kind != "moment":
        return None
    first, last = (datetime.fromisoformat(str(ends[op].value)) for op in (">=", "<"))
    start = first.replace(tzinfo=UTC).astimezone(cursor.now.tzinfo)
    return (field, start) if last - first == timedelta(days=1) else None
