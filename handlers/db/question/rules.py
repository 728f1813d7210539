"""The rules of the grammar, in the order in which they are tried at each position of a question.

A rule returns what it made of the words at a position, or None, and changes nothing; the reading
adds the result to what the rules before made (`Parsed.then`). A rule is a list of alternatives:
readers of a few words, each of which returns what it read with the position after it, or None. In
all of them `i` is the position of the first word, `end` the one after the last, `of` the field that
was named before. The examples in a docstring are such words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from groundhook.core.types.query_language import Where
from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.question import sense, when
from groundhook.handlers.db.question.cursor import NUMBERS, TIMES, Cursor
from groundhook.handlers.db.question.daytimes import time_of_day
from groundhook.handlers.db.question.parsed import About, Parsed, constraint
from groundhook.handlers.db.question.rules_field import field_led, happened, lacking, literal
from groundhook.handlers.db.question.rules_figure import figure, figures
from groundhook.handlers.db.question.rules_group import grouped, most, ranked, rate_of_bound
from groundhook.handlers.db.question.rules_length import compared_date
from groundhook.handlers.db.question.rules_negation import (
    condition,
    excepted,
    negation,
    preposition_rule,
    time_rule,
    values_rule,
)
from groundhook.handlers.db.question.rules_number import (
    between,
    number,
    of_age,
    verb_led,
)
from groundhook.handlers.db.question.rules_order import extreme_of_each, limit, order_words
from groundhook.handlers.db.question.rules_value import selected
from groundhook.handlers.db.question.time_fields import names_event
from groundhook.handlers.db.question.times import dated
from groundhook.handlers.db.question.tokens import phrase_of

Rule = Callable[[Cursor, Parsed, int], Parsed | None]
AFTER_A_RECORD = (
    *(sense.Filler, sense.And, sense.Or, sense.ValueLink, sense.Compare, sense.Between),
    *(when.DateRelation, when.Period),
)


def identifier(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "SO-10744", unless it is a known value: one word to search for, not a word and a number."""
    first, end = cursor.typed[i], i
    while end < len(cursor.typed) and cursor.typed[end].group == first.group:
        end += 1
    numbered = first.kind == "word" and any(cursor.is_number(k) for k in range(i, end))
    prefixed = first.norm in cursor.lexicon.vocabulary.file.prefixes
    if prefixed or not numbered or cursor.after(i) >= end:
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
    some = field.kind == "integer" or field == cursor.lexicon.of_kind("debt")
    return constraint(end, field.name, ">", 0) if some else None


def having_related(cursor: Cursor, _: Parsed, i: int) -> Parsed | None:
    """ "with orders", "customers have orders": related records without a further condition."""
    has = cursor.is_(i, sense.Auxiliary) and cursor.is_(i - 1, sense.ModelRef)
    at = cursor.after(i) if has or cursor.is_(i, sense.Having) else i
    related = cursor.take(at, sense.RelationRef) if at > i else None
    if related is None or cursor.is_(at, sense.FieldRef):
        return None
    if not cursor.lexicon.schema.relations[related[0].relation].many:
        return None
    last = cursor.ended(related[1]) or cursor.is_(related[1], sense.And, sense.Or, sense.But)
    return constraint(related[1], related[0].relation, "not null") if last else None


def _goes_on(cursor: Cursor, draft: Parsed, i: int, end: int) -> bool:
    """Return whether a condition on the field that is named from `i` to `end` follows."""
    after = cursor.past(end, sense.ValueLink, sense.Filler)
    compared = cursor.is_(after, sense.Compare, sense.Postfix) or cursor.number(after)
    return bool(compared or field_led(cursor, Parsed(pieces=draft.pieces), i))


def called(cursor: Cursor, _: Parsed, i: int) -> Parsed | None:
    """ "called Magic Keyboard": the title contains it."""
    word, title = cursor.take(i, sense.Called), cursor.lexicon.schema.title
    if word is not None and cursor.is_(word[1], sense.ValueRef):
        return Parsed(word[1])  # "called April Summers", who is known
    found = literal(cursor, word[1]) if word and title else None
    if word is None or found is None:
        return None
    parts = cursor.lexicon.parts.get(cursor.tokens[word[1]].norm, ())
    known = [field.name for field in parts if "." not in field.name]
    return constraint(found[1], title if title in known else [*known, title][0], "like", found[0])


def part(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "orders of customer Anna", "author Sato", "by Sato", "by Ortiz or Sato": a word from a name,
    next to the field that it belongs to or the word that selects the field."""
    fields = cursor.lexicon.parts.get(cursor.tokens[i].norm, ()) if cursor.unknown(i) else ()
    last = draft.last.field if cursor.continues(i) and draft.last else ""
    mention, about = draft.mention.name if draft.mention else "", cursor.about.relation
    for field in sorted(fields, key=lambda field: field.name != mention):
        relation = field.name.rpartition(".")[0]
        chosen = field.name in (mention, last) or field in selected(cursor, i - 1)
        if chosen or (about and relation == about) or _is_own_name(cursor, i, field):
            return constraint(i + 1, field.name, "like", cursor.typed[i].text)
    return None


def _is_own_name(cursor: Cursor, i: int, field: Field) -> bool:
    """Return whether a part of a name is that of the person who is requested."""
    person = cursor.lexicon.of_persons and field.name == "name" and not cursor.about.relation
    return person and not _names_other(cursor, i, field)


def _names_other(cursor: Cursor, i: int, field: Field) -> bool:
    """Return whether the words before a part of a name are another text field: of "reporting to
    Anna" Anna is the manager."""
    before = cursor.fields(cursor.back(i))
    return any(one != field and one.kind == "text" for one in before)


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
    for value in (one for one in known if isinstance(one, sense.ValueRef)):
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


def number_verb(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """ "how much does the laptop cost": requests the number that the verb names; of no record "how
    much did we earn" does. It may repeat the figure before it or the length of time behind it."""
    verbs, end = cursor.all(i, sense.NumberVerb), cursor.after(i)
    at = cursor.past(end, sense.ValueLink, sense.Filler)
    lasts = any(verb.kind == "duration" for verb in verbs)
    repeats = any(figure.function != "count" for figure in draft.aggregates)
    if verbs and (repeats or (lasts and (cursor.is_(at, sense.Compare) or cursor.number(at)))):
        return Parsed(end)
    known = any(cursor.is_(before, sense.ModelRef, sense.ValueRef) for before in range(i))
    field = next(filter(None, (cursor.field_of_kind(verb.kind) for verb in verbs if known)), None)
    return Parsed(end, mention=field) if field else None


def named(cursor: Cursor, _: Parsed, i: int) -> Parsed | None:
    """The model's name; a singular with a number after it is one record: "order 1042"."""
    if not cursor.is_(i, sense.ModelRef):
        return None
    end, singular = cursor.after(i), cursor.is_singular(cursor.after(i))
    # In "customer orders" the second name is the model that the question wants.
    aside = singular and cursor.is_(end, sense.RelationRef, sense.OtherModel)
    at = None if aside or cursor.is_(i - 1, sense.Per, sense.SortBy) else i
    found = Parsed(end, named_at=at, singular=singular, about=About("", cursor.about.title))
    return _numbered(cursor, found, cursor.lexicon.schema.key)


def _numbered(cursor: Cursor, found: Parsed, key: str) -> Parsed:
    """A singular with the number of a record after it: "order 1042", "invoices of customer 42"."""
    number = cursor.whole(found.end, 10**12) if cursor.is_number(found.end) else None
    whole = cursor.lexicon.schema.fields[key].kind == "integer"
    if number is None or not (whole and cursor.is_singular(found.end)):
        return found
    last = cursor.ended(number[1]) or cursor.is_(number[1], *AFTER_A_RECORD)
    where = Where(field=key, value=number[0])
    return replace(found, end=number[1], wheres=(where,)) if last else found


def related(cursor: Cursor, _: Parsed, i: int) -> Parsed | None:
    """The name of a related model: it becomes the current topic. A singular with a number after it
    is one record: "invoices of customer 42"."""
    relation = cursor.take(i, sense.RelationRef)
    if relation is None or corrected(cursor, i, relation[1]):
        return None
    found = Parsed(relation[1], about=About(relation[0].relation, relation[0].title))
    known = cursor.lexicon.schema.relations[relation[0].relation]
    return found if known.many else _numbered(cursor, found, known.foreign)


def corrected(cursor: Cursor, start: int, end: int) -> bool:
    """Return whether a misspelt word was corrected to one that changes nothing: it is searched for
    instead."""
    root = cursor.lexicon.vocabulary.root
    pairs = zip(cursor.tokens[start:end], cursor.typed[start:end], strict=True)
    return any(root(read.norm) != root(typed.norm) for read, typed in pairs)


def mentioned(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """A field without a condition: "the price of …"."""
    field = cursor.take(i, sense.FieldRef)
    if field is None or corrected(cursor, i, field[1]):
        return None
    mention = field[0].field
    described = cursor.is_(field[1], sense.ModelRef)
    if described and (mention.options or cursor.is_(i, sense.Adjective)):
        return None  # "lange Flüsse", whose length is called "Länge"
    there = happened(cursor, mention, i, field[1])
    if not there and _says_only(cursor, draft, i, mention):
        return Parsed(field[1]).unplaced(range(i, field[1]))
    wheres = (Where(field=mention.name, op="not null"),) if there else ()
    relation = cursor.take(i, sense.RelationRef)
    about = About(relation[0].relation, cursor.about.title) if relation else None
    return Parsed(field[1], wheres, mention=mention, about=about)


def _says_only(cursor: Cursor, draft: Parsed, i: int, field: Field) -> bool:
    """ "who is still employed", "due loans": return whether the name of a field would have to be a
    condition. "is the price" requests it, "latest enrolled" repeats it; every record was made."""
    end, before = cursor.after(i), i - 1
    repeated = field.name in {order.field for order in draft.orders}
    article = cursor.is_(before, when.Definite, sense.Single)
    if repeated or article or cursor.lexicon.is_kind(field, "made"):
        return False
    behind = cursor.past_one(end, sense.Equals)
    # "who was on vacation last week" is not about a number of days
    timed = field.kind in NUMBERS and dated(cursor, behind) is not None
    alone = (cursor.ended(behind) or timed) and (behind > end or _is_predicate(cursor, i))
    return alone or (field.kind in (*TIMES, *NUMBERS) and cursor.is_(end, sense.ModelRef))


def _is_predicate(cursor: Cursor, i: int) -> bool:
    """Return whether a word such as "is" comes before a position, with fillers between at most."""
    before = i - 1
    while cursor.is_(before, sense.Filler) and not cursor.is_(before, sense.Equals):
        before -= 1
    return cursor.is_(before, sense.Equals)


def nothing(cursor: Cursor, draft: Parsed, i: int) -> Parsed | None:
    """Words without a condition, and punctuation."""
    if cursor.tokens[i].kind == "mark":
        return Parsed(i + 1)
    if cursor.is_(i, sense.Preposition) and cursor.is_(cursor.after(i), sense.Not):
        return Parsed(cursor.after(i))  # "speak neither English nor French"
    if cursor.is_(i, when.Month) and cursor.is_(i - 1, when.DateRelation):
        return None  # a birthday "in May" is not the verb "may"
    if names_event(cursor, i) and dated(cursor, cursor.after(i)):
        return Parsed(cursor.after(i)).unplaced(range(i, cursor.after(i)))
    alternative = cursor.is_(i, sense.Or) and bool(draft.pieces)
    found = Parsed(cursor.after(i), alternatives=(i,) if alternative else ())
    return found if cursor.is_(i, sense.Filler, sense.And, sense.Or, sense.ValueLink) else None


# Rules that may take a word without a meaning.
RULES_UNKNOWN: tuple[Rule, ...] = (identifier, part, most)
RULES: tuple[Rule, ...] = (
    identifier,
    negation,
    excepted,
    ranked,
    figures,
    figure,
    most,
    how_much,
    of_age,
    verb_led,
    rate_of_bound,
    grouped,
    preposition_rule,
    time_of_day,
    between,
    compared_date,
    time_rule,
    extreme_of_each,
    limit,
    number,
    field_led,
    having_related,
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
    number_verb,
    nothing,
)
