"""A question to QueryDSL: which of the models offered it is about, its conditions, orders and limit, and the words left over.

Words that could not be placed are never dropped: they become a text search over the model's text fields, and are reported. No
condition on a field is ever made of a word that is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from handlers.db.dsl import EVERY_TEXT, MATCH, MATCH_NONE, QueryDSL
from handlers.db.question.cursor import Cursor, Draft
from handlers.db.question.lexicon import Lexicon, Lexicons, Samples
from handlers.db.question.meanings import (
    Ago,
    Between,
    BetweenAnd,
    Compare,
    Condition,
    DateRelation,
    Direction,
    First,
    Link,
    Meaning,
    Not,
    OrderWord,
    OtherModel,
    Period,
    Postfix,
    SortBy,
    Superlative,
    Top,
)
from handlers.db.question.rules import RULES
from handlers.db.question.tokens import Token, tokens_of
from handlers.db.question.vocabulary import Vocabulary
from handlers.db.schema import Schema
from host.types.search import Order, Where

# Words that speak about other words: alone they are reported, but there is no use in searching for them.
ABOUT_OTHERS: tuple[type[Meaning], ...] = (
    *(Compare, Postfix, Between, BetweenAnd, Superlative, OrderWord, SortBy, Direction, Top, First, Not, Link),
    *(DateRelation, Period, Ago, Condition),
)


@dataclass(frozen=True)
class Offer:
    """A model that the question may be about, and values that it has."""

    schema: Schema
    samples: Samples


@dataclass(frozen=True)
class Reading:
    """A question as a query on one model. `unplaced`: words that became no condition, in order, as typed. `notes`: what was
    read otherwise than typed. `named_at`: where the question names the model, None where it does not. `asks`: whether it asks
    the model for anything at all; "thank you" does not."""

    dsl: QueryDSL
    unplaced: tuple[str, ...]
    notes: tuple[str, ...]
    named_at: int | None
    effects: int
    asks: bool


def read_question(
    question: str,
    offers: Sequence[Offer],
    words: Vocabulary,
    now: datetime,
    lexicons: Lexicons | None = None,
) -> list[Reading]:
    """The readings of a question: one for the model that it names or fits best; several where models fit equally well."""
    tokens, made = tokens_of(question), lexicons or Lexicons()
    moment = now if now.tzinfo else now.replace(tzinfo=UTC)
    readings = []
    for offer in offers:
        rest = [other.schema for other in offers if other.schema.id != offer.schema.id]
        readings.append(read_for(tokens, made.get(offer.schema, offer.samples, words, rest), moment))
    return _meant(readings)


def read_for(tokens: Sequence[Token], lexicon: Lexicon, now: datetime) -> Reading:
    """The reading of a question for one model."""
    cursor, draft = Cursor(tokens, lexicon, now), Draft()
    i = 0
    while i < len(tokens):
        end = next((end for rule in RULES if (end := rule(cursor, draft, i)) is not None), None)
        if end is None:
            idle = cursor.is_(i, *ABOUT_OTHERS)
            end = cursor.at(i)[1] if idle else i + 1
            draft.unplaced.extend(range(i, end))
            draft.idle.update(range(i, end) if idle else ())
        else:
            _note_corrections(cursor, draft, i, end)
        i = end
    return _finished(cursor, draft)


def _meant(readings: list[Reading]) -> list[Reading]:
    named = [reading for reading in readings if reading.named_at is not None]
    if named:
        # What is named first is what is asked for, unless another one explains every word: "customer orders".
        first = min(named, key=lambda reading: reading.named_at or 0)
        whole = [reading for reading in named if not reading.unplaced]
        return [first if first in whole or not whole else whole[0]]

    def fit(reading: Reading) -> tuple[int, int]:
        return len(reading.unplaced), -reading.effects

    best = min(map(fit, readings), default=(0, 0))
    return [reading for reading in readings if fit(reading) == best]


def _finished(cursor: Cursor, draft: Draft) -> Reading:
    wheres = _merged(cursor, draft.wheres)
    orders = draft.orders or _implied(cursor, wheres)
    effects = len(wheres) + len(draft.orders) + (draft.limit is not None)
    words, reported = _words(cursor, draft, draft.unplaced)
    excluded, also_reported = _words(cursor, draft, draft.excluded)
    if searched := [*draft.phrases, *words]:
        wheres.append(Where(field=EVERY_TEXT, op=MATCH, value=searched))
    if excluded:
        wheres.append(Where(field=EVERY_TEXT, op=MATCH_NONE, value=excluded))
    asks = bool(wheres or draft.orders or draft.limit or draft.listing or draft.named_at is not None)
    dsl = QueryDSL(model=cursor.lexicon.schema.id, wheres=tuple(wheres), orders=tuple(orders), limit=draft.limit)
    return Reading(dsl, (*reported, *also_reported), tuple(dict.fromkeys(draft.notes)), draft.named_at, effects, asks)


def _words(cursor: Cursor, draft: Draft, places: Sequence[int]) -> tuple[list[str], list[str]]:
    """What to search for, and what to report, of the tokens at these places."""
    searched: list[str] = []
    reported: list[str] = []
    at = 0
    while at < len(places):
        end = at + 1
        while end < len(places) and _joined(cursor, places[end - 1], places[end]):
            end += 1
        first, last = places[at], places[end - 1] + 1
        text = cursor.text(first, last)
        reported.append(text)
        idle = all(i in draft.idle or _compared(cursor, draft, i) for i in range(first, last))
        if not idle and any(character.isalnum() for character in text):
            word = end - at == 1 and cursor.typed[first].kind == "word"
            searched.append(cursor.lexicon.vocabulary.stem(cursor.typed[first].norm) if word else text)
        at = end
    return list(dict.fromkeys(searched)), reported


def _compared(cursor: Cursor, draft: Draft, i: int) -> bool:
    """A number that was compared with what is not known: searching for its digits would find anything."""
    return i - 1 in draft.idle and cursor.number(i) is not None


def _joined(cursor: Cursor, one: int, other: int) -> bool:
    return other == one + 1 and cursor.typed[one].group == cursor.typed[other].group


def _note_corrections(cursor: Cursor, draft: Draft, start: int, end: int) -> None:
    for i in range(start, end):
        if cursor.tokens[i].norm != cursor.typed[i].norm and i not in draft.excluded:
            draft.notes.append(f"{cursor.typed[i].text!r} was read as {cursor.tokens[i].norm!r}")
    for other in cursor.all(start, OtherModel) if start in draft.unplaced else ():
        draft.notes.append(f"{cursor.typed[start].text!r} names the model {other.id!r}; models are not joined")


def _merged(cursor: Cursor, wheres: Sequence[Where]) -> list[Where]:
    """Several values of one text field are alternatives: a brand cannot be Apple and Sony."""
    values: dict[str, list[object]] = {}
    for where in wheres:
        if where.op in ("=", "in") and cursor.lexicon.schema.fields[where.field].kind == "text":
            values.setdefault(where.field, []).extend(where.value if where.op == "in" else [where.value])
    merged: list[Where] = []
    for where in wheres:
        if where.op not in ("=", "in") or where.field not in values:
            merged.append(where)
        elif found := list(dict.fromkeys(values.pop(where.field))):
            merged.append(
                Where(field=where.field, op="in" if len(found) > 1 else "=", value=found if len(found) > 1 else found[0])
            )
            values[where.field] = []
    return merged


def _implied(cursor: Cursor, wheres: Sequence[Where]) -> list[Order]:
    """Who asks for what is below a price wants the cheapest first, who asks for what is since a day the newest."""
    for where in wheres:
        kind = cursor.lexicon.schema.fields[where.field].kind
        if kind in ("integer", "number") and where.op in ("<", "<=", "between"):
            return [Order(field=where.field, order="asc")]
        if kind in ("integer", "number", "date", "moment") and where.op in (">", ">=", "<"):
            return [Order(field=where.field, order="desc")]
    return []
