"""The rules of the grammar, in the order in which they are tried at each position of a question.

A rule returns what it made of the words at a position, or None, and changes nothing; the reading
adds the result to the draft (`Draft.take`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from groundhook.handlers.db.question.cursor import Cursor
from groundhook.handlers.db.question.draft import (
    OPPOSITE,
    About,
    Draft,
    Parsed,
    constraint,
    negation_of,
)
from groundhook.handlers.db.question.meanings import (
    And,
    Between,
    Called,
    Compare,
    Condition,
    Contains,
    DateRelation,
    Everything,
    FieldRef,
    Filler,
    Having,
    HowMuch,
    Link,
    ModelRef,
    Nor,
    Not,
    Or,
    OtherModel,
    Per,
    Period,
    Person,
    Postfix,
    Preposition,
    RelationRef,
    SortBy,
    ValueRef,
)
from groundhook.handlers.db.question.rules_age import age_led
from groundhook.handlers.db.question.rules_field import (
    excepted,
    field_led,
    happened,
    lacking,
    literal,
    prepositioned,
    values,
)
from groundhook.handlers.db.question.rules_figure import figure, figures, grouped, ranked
from groundhook.handlers.db.question.rules_list import amounts
from groundhook.handlers.db.question.rules_number import (
    amount_led,
    between,
    compare,
    compared_date,
    date_led,
)
from groundhook.handlers.db.question.rules_order import limit, order_words
from groundhook.handlers.db.question.tokens import phrase_of
from groundhook.handlers.db.schema import Field
from groundhook.host.core.types.query_language import Where

AFTER_A_RECORD = (Filler, And, Or, Link, Compare, Between, DateRelation, Period)
Rule = Callable[[Cursor, Draft, int], Parsed | None]


def identifier(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """ "SO-10744", when it is no known value: one word to search for, not a word and a number."""
    group, end = cursor.typed[i].group, i
    while end < len(cursor.typed) and cursor.typed[end].group == group:
        end += 1
    prefixes = cursor.lexicon.vocabulary.file.prefixes
    if cursor.typed[i].norm in prefixes:
        return None
    mixed = cursor.typed[i].kind == "word" and any(
        cursor.typed[k].kind == "number" for k in range(i, end)
    )
    if not mixed or cursor.at(i)[1] >= end:
        return None
    return Parsed(end, unplaced=tuple(range(i, end)))


def negation(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """ "not from Apple", "except discontinued ones", "without a description", "not more than 50",
    "neither paid nor sent"."""
    again = cursor.is_(i, Nor) and any(cursor.is_(at, Not) for at in range(i))
    if not (cursor.is_(i, Not) or again):
        return None
    direct = cursor.at(i)[1]
    later = cursor.past(direct, Filler, Link)
    governed = _behind_verb(cursor, later)
    for at in dict.fromkeys((direct, later, *governed)):
        found = _negated(cursor, draft, at)
        if found is not None and found.refused:
            return replace(
                found, end=direct, unplaced=(*range(i, direct),), idle=(*range(i, direct),)
            )
        if found is not None:
            verb = (later,) if at in governed else ()
            return replace(found, unplaced=verb, idle=verb)
    if later < len(cursor.tokens) and cursor.unknown(later) and cursor.tokens[later].kind == "word":
        return Parsed(later + 1, excluded=(later,))
    return None


def _negated(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """Return the opposite of the condition that begins here; `refused` if no query can express
    it."""
    for rule in (_compare, _prepositioned, _field_led, _values, _condition):
        found = rule(cursor, draft, i, True)
        if found is not None and _of_some(cursor, found.wheres):
            return Parsed(i, refused=True)
        if found is not None:
            return (
                _nor_what_follows(cursor, draft, found) if found.end == cursor.at(i)[1] else found
            )
    if (within := _not_within(cursor, draft, i)) is not None:
        return within
    if cursor.is_(i, RelationRef) and _goes_on(cursor, cursor.at(i)[1]):
        return Parsed(i, refused=True)
    if related := cursor.take(i, RelationRef):  # "customers without orders"
        return constraint(related[1], related[0].relation, "null")
    act = cursor.act(i)  # "customers who never ordered"
    return constraint(i + 1, act, "null") if act else None


def _behind_verb(cursor: Cursor, i: int) -> list[int]:
    """Return where the rest of a negated clause begins after an unknown verb: "not painted in red",
    "do not last longer than"."""
    verb = cursor.unknown(i) and cursor.tokens[i].kind == "word"
    rest = cursor.past(i + 1, Filler)
    return (
        [i + 1, rest] if verb and (rest > i + 1 or cursor.is_(rest, Compare, Preposition)) else []
    )


def _of_some(cursor: Cursor, wheres: Sequence[Where]) -> bool:
    """Return whether conditions are on many related records that are not the current topic:
    "without overdue invoices" differs from having some that are not overdue."""
    fields = [cursor.lexicon.fields.get(where.field) for where in wheres]
    many = (field for field in fields if field is not None and cursor.many(field))
    return any(not field.name.startswith(f"{cursor.about.relation}.") for field in many)


def _goes_on(cursor: Cursor, i: int) -> bool:
    """Return whether further conditions apply to the excluded related records: "without orders
    since March"."""
    for at in dict.fromkeys((i, cursor.past(i, Filler, Link))):
        ends = [rule(cursor, Draft(), at) for rule in (date_led, compared_date)]
        compared = cursor.is_(at, Compare, Between) or any(end is not None for end in ends)
        if compared or any(cursor.many(one.field) for one in cursor.all(at, ValueRef)[:1]):
            return True
    return False


def _nor_what_follows(cursor: Cursor, draft: Draft, found: Parsed) -> Parsed:
    """ "not paid or cancelled": after a "not", neither of two single words holds."""
    while cursor.is_(found.end, Or) and not cursor.is_(found.end, Nor):
        at = cursor.at(found.end)[1]
        more = field_led(cursor, draft, at, True) or values(cursor, at, True)
        if more is None or more.end != cursor.at(at)[1]:
            break
        found = replace(found, end=more.end, wheres=(*found.wheres, *more.wheres))
    return found


def _not_within(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """ "not between 50 and 100", "not in October", "price not between 50 and 100", "not older than
    a month"."""
    field = draft.mention if cursor.is_(i - 2, FieldRef) else None
    for rule in (between, compared_date, date_led):
        found = rule(cursor, draft, i, field) or rule(cursor, draft, i)
        if found and all(where.op in (*OPPOSITE, "between") for where in found.wheres):
            return negation_of(found, cursor.lexicon.fields)
    return None


def condition(cursor: Cursor, i: int, negated: bool = False) -> Parsed | None:
    """ "in stock", "sold out"."""
    opposite = {">": "=", "=": ">"}
    for found in cursor.all(i, Condition):
        field = cursor.field_of_kind(found.kind)
        if field is not None:
            op = opposite[found.op] if negated else found.op
            return constraint(cursor.at(i)[1], field.name, op, found.value)
    return None


def having(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """ "with a phone number", "with seats left": a field without a further condition."""
    word = cursor.take(i, Having)
    named = cursor.take(word[1], FieldRef) if word else None
    if (
        word is None
        or named is None
        or field_led(cursor, Draft(pieces=draft.pieces), word[1], False) is not None
    ):
        return None
    if cursor.is_(cursor.past(named[1], Link, Filler), Compare, Postfix) or cursor.number(
        cursor.past(named[1], Link, Filler)
    ):
        return None
    field = named[0].field
    if (none := lacking(cursor, field)) is not None:
        return constraint(named[1], field.name, "!=", none)
    if field.nullable and "." not in field.name and field.kind != "boolean":
        return constraint(named[1], field.name, "not null")
    if field == cursor.lexicon.of_kind("debt") or (
        field.kind == "integer" and not _measure(cursor, field)
    ):
        return constraint(named[1], field.name, ">", 0)
    return None


def _measure(cursor: Cursor, field: Field) -> bool:
    """Return whether every record has some of it, as of a price, a length or a year. A count can be
    0."""
    kinds = ("money", "rating", "age", "size", "weight", "duration", "distance", "year")
    return any(cursor.lexicon.is_kind(field, kind) for kind in kinds)


def called(cursor: Cursor, _: Draft, i: int) -> Parsed | None:
    """ "called Magic Keyboard": the title contains it."""
    word, title = cursor.take(i, Called), cursor.lexicon.schema.title
    found = literal(cursor, word[1]) if word and title else None
    if word is not None and cursor.is_(word[1], ValueRef):
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


def part(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """ "orders of customer Anna", "author Sato": a word from a name, next to the field that it
    belongs to."""
    fields = cursor.lexicon.parts.get(cursor.tokens[i].norm, ()) if cursor.unknown(i) else ()
    about = cursor.about.relation
    for field in fields:
        relation = field.name.rpartition(".")[0]
        named = draft.mention is not None and draft.mention.name == field.name
        person = cursor.lexicon.of_persons and field.name == "name"
        own = not (relation or about) and person
        if named or own or (relation and relation == about):
            return constraint(i + 1, field.name, "like", cursor.typed[i].text)
    return None


def containing(cursor: Cursor, _: Draft, i: int) -> Parsed | None:
    """ "containing rush delivery": searches for the words after it."""
    word = cursor.take(i, Contains)
    return Parsed(word[1]) if word and literal(cursor, word[1]) is not None else None


def quoted(cursor: Cursor, _: Draft, i: int) -> Parsed | None:
    """A quoted text: a value if the model has it, else it is searched for unchanged."""
    if cursor.tokens[i].kind != "quoted":
        return None
    text = cursor.typed[i].text
    known = cursor.lexicon.exact.get(phrase_of(text), []) if text else []
    value = next((meaning for meaning in known if isinstance(meaning, ValueRef)), None)
    if value is not None:
        return constraint(i + 1, value.field.name, "=", value.value)
    return Parsed(i + 1, phrases=(text,) if text else ())


def named(cursor: Cursor, _: Draft, i: int) -> Parsed | None:
    """The model's name; a singular with a number after it is one record: "order 1042"."""
    model = cursor.take(i, ModelRef)
    if model is None or _corrected(cursor, i, model[1]):
        return None
    last, schema = cursor.tokens[model[1] - 1].norm, cursor.lexicon.schema
    singular = cursor.lexicon.vocabulary.stem(last) == last
    # In "customer orders" the second name is the model that the question wants.
    aside = (singular and cursor.is_(model[1], RelationRef, OtherModel)) or (
        i > 0 and cursor.is_(i - 1, Per, SortBy)
    )
    at = None if aside else i
    found = Parsed(model[1], named_at=at, singular=singular, about=About("", cursor.about.title))
    return _numbered(cursor, found, schema.key)


def _numbered(cursor: Cursor, found: Parsed, key: str) -> Parsed:
    """The name with the number of a record after it: "order 1042", "invoices of customer 42"."""
    number = _record_number(cursor, found.end)
    if number is None or cursor.lexicon.schema.fields[key].kind != "integer":
        return found
    return replace(found, end=number[1], wheres=(Where(field=key, value=number[0]),))


def _record_number(cursor: Cursor, i: int) -> tuple[int, int] | None:
    """Return the number of one record after the singular of its model's name, and the position
    after it."""
    last, number = cursor.tokens[i - 1].norm, cursor.whole(i, 10**12)
    if (
        number is None
        or cursor.lexicon.vocabulary.stem(last) != last
        or cursor.tokens[i].kind != "number"
    ):
        return None
    return number if cursor.ended(number[1]) or cursor.is_(number[1], *AFTER_A_RECORD) else None


def related(cursor: Cursor, _: Draft, i: int) -> Parsed | None:
    """The name of a related model: it becomes the current topic. A singular with a number after it
    is one record: "invoices of customer 42"."""
    relation = cursor.take(i, RelationRef)
    if relation is None or _corrected(cursor, i, relation[1]):
        return None
    found = Parsed(relation[1], about=About(relation[0].relation, relation[0].title))
    known = cursor.lexicon.schema.relations[relation[0].relation]
    return found if known.many else _numbered(cursor, found, known.foreign)


def how_much(cursor: Cursor, _: Draft, i: int) -> Parsed | None:
    """ "how long is the Ohio": requests the value of a field."""
    for word in cursor.all(i, HowMuch):
        born = cursor.lexicon.birth_field if word.kind == "age" else None
        field = cursor.field_of_kind(word.kind) or born
        if field is not None:
            return Parsed(cursor.at(i)[1], mention=field)
    return None


def mentioned(cursor: Cursor, _: Draft, i: int) -> Parsed | None:
    """A field without a condition: "the price of …"."""
    field = cursor.take(i, FieldRef)
    if field is None or _corrected(cursor, i, field[1]):
        return None
    mention = field[0].field
    there = happened(cursor, mention, i, field[1])
    wheres = (Where(field=mention.name, op="not null"),) if there else ()
    relation = cursor.take(i, RelationRef)
    about = About(relation[0].relation, cursor.about.title) if relation else None
    return Parsed(field[1], wheres, mention=mention, about=about)


def nothing(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """Words without a condition, and punctuation."""
    if cursor.tokens[i].kind == "mark":
        return Parsed(i + 1)
    alternative = cursor.is_(i, Or) and bool(draft.wheres)
    found = Parsed(
        cursor.at(i)[1],
        listing=cursor.is_(i, Everything),
        person=cursor.is_(i, Person),
        alternatives=(i,) if alternative else (),
    )
    return found if cursor.is_(i, Filler, And, Or, Link) else None


def _corrected(cursor: Cursor, start: int, end: int) -> bool:
    """Return whether a misspelt word was corrected to one that changes nothing: it is searched for
    instead. The name of a model does change something."""
    wrong = any(cursor.tokens[i].norm != cursor.typed[i].norm for i in range(start, end))
    return wrong and not cursor.is_(start, ModelRef)


def _values(cursor: Cursor, _: Draft, i: int, negated: bool = False) -> Parsed | None:
    return values(cursor, i, negated)


def _prepositioned(cursor: Cursor, _: Draft, i: int, negated: bool = False) -> Parsed | None:
    return prepositioned(cursor, i, negated)


def _compare(cursor: Cursor, draft: Draft, i: int, negated: bool = False) -> Parsed | None:
    return compare(cursor, draft, i, negated)


def _field_led(cursor: Cursor, draft: Draft, i: int, negated: bool = False) -> Parsed | None:
    return field_led(cursor, draft, i, negated)


def _condition(cursor: Cursor, _: Draft, i: int, negated: bool = False) -> Parsed | None:
    return condition(cursor, i, negated)


# Those that may take a word that means nothing.
RULES_UNKNOWN: tuple[Rule, ...] = (identifier, part)
RULES: tuple[Rule, ...] = (
    identifier,
    negation,
    excepted,
    ranked,
    figures,
    figure,
    how_much,
    age_led,
    grouped,
    _prepositioned,
    between,
    compared_date,
    date_led,
    limit,
    _compare,
    amounts,
    amount_led,
    _field_led,
    having,
    _values,
    _condition,
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
