"""The rules of the grammar, in the order in which they are tried at each position of a question.

A rule returns what it made of the words at a position, or None, and changes nothing; the reading
adds the result to the draft (`Draft.take`). A rule is a list of alternatives: readers of a few
words, each of which returns what it read with the position after it, or None. In all of them `i` is
the position of the first word, `end` the one after the last, `of` the field that was named before.
The examples in a docstring are such words."""

from __future__ import annotations

from collections.abc import Callable

from groundhook.handlers.db.question import sense, when
from groundhook.handlers.db.question.cursor import Cursor
from groundhook.handlers.db.question.daytimes import time_of_day
from groundhook.handlers.db.question.parsed import About, Parsed, constraint
from groundhook.handlers.db.question.rules_field import field_led, happened, lacking, literal
from groundhook.handlers.db.question.rules_figure import figure, figures, grouped, ranked
from groundhook.handlers.db.question.rules_model import corrected, named, related
from groundhook.handlers.db.question.rules_negation import (
    condition,
    excepted,
    negation,
    preposition_rule,
    values_rule,
)
from groundhook.handlers.db.question.rules_number import (
    between,
    number,
    of_age,
    verb_led,
)
from groundhook.handlers.db.question.rules_order import extreme_of_each, limit, order_words
from groundhook.handlers.db.question.rules_time import compared_date, date_led
from groundhook.handlers.db.question.tokens import phrase_of
from groundhook.handlers.db.schema import Field
from groundhook.host.core.types.query_language import Where

Rule = Callable[[Cursor, Parsed, int], Parsed | None]


def identifier(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "SO-10744", unless it is a known value: one word to search for, not a word and a number."""
    group, end = cursor.typed[i].group, i
    while end < len(cursor.typed) and cursor.typed[end].group == group:
        end += 1
    prefixes = cursor.lexicon.vocabulary.file.prefixes
    if cursor.typed[i].norm in prefixes:
        return None
    mixed = cursor.typed[i].kind == "word" and any(
        cursor.typed[k].kind == "number" for k in range(i, end)
    )
    if not mixed or cursor.after(i) >= end:
        return None
    return Parsed(end, not_understood=tuple(range(i, end)))


def having(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "with a phone number", "with seats left": a field without a further condition."""
    word = cursor.take(i, sense.Having)
    named = cursor.take(word[1], sense.FieldRef) if word else None
    if word is None or named is None or _goes_on(cursor, draft, word[1], named[1]):
        return None
    field, end = named[0].field, named[1]
    if (none := lacking(cursor, field)) is not None:
        return constraint(end, field.name, "!=", none)
    if field.nullable and "." not in field.name and field.kind != "boolean":
        return constraint(end, field.name, "not null")
    counted = field.kind == "integer" and not _measure(cursor, field)
    some = counted or field == cursor.lexicon.of_kind("debt")
    return constraint(end, field.name, ">", 0) if some else None


def _goes_on(cursor: Cursor, draft: Parsed, i: int, end: int) -> bool:
    """Return whether a condition on the field that is named from `i` to `end` follows."""
    after = cursor.past(end, sense.ValueLink, sense.Filler)
    compared = cursor.is_(after, sense.Compare, sense.Postfix) or cursor.number(after)
    return bool(compared or field_led(cursor, Parsed(pieces=draft.pieces), i))


def _measure(cursor: Cursor, field: Field) -> bool:
    """Return whether every record has some of it, as of a price, a length or a year. A count can be
    0."""
    kinds = ("money", "rating", "age", "size", "weight", "duration", "distance", "year")
    return any(cursor.lexicon.is_kind(field, kind) for kind in kinds)


def called(cursor: Cursor, _: Parsed, i: int) -> Parsed | None:
    """ "called Magic Keyboard": the title contains it."""
    word, title = cursor.take(i, sense.Called), cursor.lexicon.schema.title
    found = literal(cursor, word[1]) if word and title else None
    if word is not None and cursor.is_(word[1], sense.ValueRef):
        return Parsed(word[1])  # "called April Summers", who is known
    if word is None or found is None:
        return None
    known = [
        field.name
        for field in cursor.lexicon.parts.get(cursor.tokens[word[1]].norm, ())
        if "." not in field.name
    ]
    name = title if title in known or not known else known[0]
    return constraint(found[1], name, "like", found[0])


def part(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "orders of customer Anna", "author Sato": a word from a name, next to the field that it
    belongs to."""
    fields = cursor.lexicon.parts.get(cursor.tokens[i].norm, ()) if cursor.unknown(i) else ()
    about = cursor.about.relation
    for field in sorted(fields, key=lambda field: not _is_mentioned(draft, field)):
        relation = field.name.rpartition(".")[0]
        named = _is_mentioned(draft, field)
        person = cursor.lexicon.of_persons and field.name == "name"
        own = not (relation or about) and person and not _names_other(cursor, i, field)
        own = own or _selected(cursor, draft, i, field)
        if named or own or (relation and relation == about):
            return constraint(i + 1, field.name, "like", cursor.typed[i].text)
    return None


def _names_other(cursor: Cursor, i: int, field: Field) -> bool:
    """Return whether the words before a part of a name are another text field: of "reporting to
    Anna" Anna is the manager."""
    before = cursor.all(cursor.back(i), sense.FieldRef)
    return any(one.field != field and one.field.kind == "text" for one in before)


def _is_mentioned(draft: Parsed, field: Field) -> bool:
    return draft.mention is not None and draft.mention.name == field.name


def _selected(cursor: Cursor, draft: Parsed, i: int, field: Field) -> bool:
    """Return whether the word before a part of a name selects its field: "by Sato", "by Ortiz or
    Sato"."""
    last = draft.last if cursor.continues(i) else None
    selecting = cursor.all(i - 1, sense.Preposition) if i else []
    return (last is not None and last.field == field.name) or any(
        field in cursor.lexicon.texts_of_kind(word.kind) for word in selecting
    )


def containing(cursor: Cursor, _: Parsed, i: int) -> Parsed | None:
    """ "containing rush delivery": searches for the words after it."""
    word = cursor.take(i, sense.Contains)
    return Parsed(word[1]) if word and literal(cursor, word[1]) is not None else None


def quoted(cursor: Cursor, _: Parsed, i: int) -> Parsed | None:
    """A quoted text: a value if the model has it, else it is searched for unchanged."""
    if cursor.tokens[i].kind != "quoted":
        return None
    text = cursor.typed[i].text
    known = cursor.lexicon.exact.get(phrase_of(text), []) if text else []
    value = next((meaning for meaning in known if isinstance(meaning, sense.ValueRef)), None)
    if value is not None:
        return constraint(i + 1, value.field.name, "=", value.value)
    return Parsed(i + 1, phrases=(text,) if text else ())


def how_much(cursor: Cursor, _: Parsed, i: int) -> Parsed | None:
    """ "how long is the Ohio": requests the value of a field."""
    for word in cursor.all(i, sense.HowMuch):
        born = cursor.lexicon.date_of_kind("birth") if word.kind == "age" else None
        field = cursor.field_of_kind(word.kind) or born
        if field is not None:
            return Parsed(cursor.after(i), mention=field)
    return None


def mentioned(cursor: Cursor, _: Parsed, i: int) -> Parsed | None:
    """A field without a condition: "the price of …"."""
    field = cursor.take(i, sense.FieldRef)
    if field is None or corrected(cursor, i, field[1]):
        return None
    mention = field[0].field
    described = cursor.is_(field[1], sense.ModelRef)
    if described and (mention.options or cursor.is_(i, sense.Adjective)):
        return None  # "lange Flüsse", whose length is called "Länge"
    there = happened(cursor, mention, i, field[1])
    wheres = (Where(field=mention.name, op="not null"),) if there else ()
    relation = cursor.take(i, sense.RelationRef)
    about = About(relation[0].relation, cursor.about.title) if relation else None
    return Parsed(field[1], wheres, mention=mention, about=about)


def nothing(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """Words without a condition, and punctuation."""
    if cursor.tokens[i].kind == "mark":
        return Parsed(i + 1)
    if cursor.is_(i, sense.Preposition) and cursor.is_(cursor.after(i), sense.Not):
        return Parsed(cursor.after(i))  # "speak neither English nor French"
    if cursor.is_(i, when.Month) and cursor.is_(i - 1, when.DateRelation):
        return None  # a birthday "in May" is not the verb "may"
    alternative = cursor.is_(i, sense.Or) and bool(draft.pieces)
    found = Parsed(
        cursor.after(i),
        alternatives=(i,) if alternative else (),
    )
    return found if cursor.is_(i, sense.Filler, sense.And, sense.Or, sense.ValueLink) else None


# Rules that may take a word without a meaning.
RULES_UNKNOWN: tuple[Rule, ...] = (identifier, part, figure)
RULES: tuple[Rule, ...] = (
    identifier,
    negation,
    excepted,
    ranked,
    figures,
    figure,
    how_much,
    of_age,
    verb_led,
    grouped,
    preposition_rule,
    time_of_day,
    between,
    compared_date,
    date_led,
    extreme_of_each,
    limit,
    number,
    field_led,
    having,
    values_rule,
    condition,
    order_words,
    called,
    containing,
    quoted,
    part,
    named,
    related,
    mentioned,
    nothing,
)
