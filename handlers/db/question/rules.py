"""The rules of the grammar, in the order in which they are tried at each position of a question.

A rule adds to the draft and returns the position after what it took, or returns None and adds
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from groundhook.handlers.db.question.cursor import OPPOSITE, Cursor, Draft
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
Rule = Callable[[Cursor, Draft, int], int | None]


def identifier(cursor: Cursor, draft: Draft, i: int) -> int | None:
    """ "SO-10744" that is no known value: one word to search for, not a word and a number."""
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
    draft.unplaced.extend(range(i, end))
    return end


def negation(cursor: Cursor, draft: Draft, i: int) -> int | None:
    """ "not from Apple", "except discontinued ones", "without a description", "not more than 50",
    "neither paid nor sent"."""
    if not cursor.is_(i, Not) and not (draft.negated and cursor.is_(i, Nor)):
        return None
    draft.negated = True
    direct = cursor.at(i)[1]
    later = cursor.past(direct, Filler, Link)
    governed = _behind_verb(cursor, later)
    for at in dict.fromkeys((direct, later, *governed)):
        for rule in (compare, prepositioned, field_led, values, condition):
            scratch = replace(draft, wheres=[*draft.wheres])
            end = rule(cursor, scratch, at, True)
            if end is not None and _of_some(cursor, scratch.wheres[len(draft.wheres) :]):
                draft.refused = True
                return None
            if end is not None:
                draft.wheres = scratch.wheres
                verb = range(later, later + 1) if at in governed else range(0)
                draft.unplaced.extend(verb)
                draft.idle.update(verb)
                return _nor_what_follows(cursor, draft, end) if end == cursor.at(at)[1] else end
        if (end := _not_within(cursor, draft, at)) is not None:
            return end
        if cursor.is_(at, RelationRef) and _goes_on(cursor, cursor.at(at)[1]):
            draft.refused = True
            return None
        if related := cursor.take(at, RelationRef):  # "customers without orders"
            draft.add(related[0].relation, "null")
            return related[1]
        if act := cursor.act(at):  # "customers who never ordered"
            draft.add(act, "null")
            return at + 1
    if later < len(cursor.tokens) and cursor.unknown(later) and cursor.tokens[later].kind == "word":
        draft.excluded.append(later)
        return later + 1
    return None


def _behind_verb(cursor: Cursor, i: int) -> list[int]:
    """Where the rest of a negated clause begins, behind a verb that is not known: "not painted in
    red", "do not last longer than"."""
    verb = cursor.unknown(i) and cursor.tokens[i].kind == "word"
    rest = cursor.past(i + 1, Filler)
    return (
        [i + 1, rest] if verb and (rest > i + 1 or cursor.is_(rest, Compare, Preposition)) else []
    )


def _of_some(cursor: Cursor, wheres: Sequence[Where]) -> bool:
    """Whether conditions are on related records of which there are many, and which were not spoken
    of before: "without overdue invoices" is not the same as with some that are not overdue."""
    fields = [cursor.lexicon.fields.get(where.field) for where in wheres]
    return any(
        field is not None and cursor.many(field) and not field.name.startswith(f"{cursor.focus}.")
        for field in fields
    )


def _goes_on(cursor: Cursor, i: int) -> bool:
    """Whether more is said of the related records that there are none of: "without orders since
    March"."""
    for at in dict.fromkeys((i, cursor.past(i, Filler, Link))):
        ends = [rule(cursor, Draft(), at) for rule in (date_led, compared_date)]
        said = cursor.is_(at, Compare, Between) or any(end is not None for end in ends)
        if said or any(cursor.many(one.field) for one in cursor.all(at, ValueRef)[:1]):
            return True
    return False


def _nor_what_follows(cursor: Cursor, draft: Draft, i: int) -> int:
    """ "not paid or cancelled": of two single words behind a "not" neither holds. → the position
    after them."""
    while cursor.is_(i, Or) and not cursor.is_(i, Nor):
        at, scratch = cursor.at(i)[1], Draft(pieces=draft.pieces)
        end = next(
            (
                end
                for rule in (field_led, values)
                if (end := rule(cursor, scratch, at, True)) is not None
            ),
            None,
        )
        if end is None or end != cursor.at(at)[1]:
            break
        draft.wheres += scratch.wheres
        i = end
    return i


def _not_within(cursor: Cursor, draft: Draft, i: int) -> int | None:
    """ "not between 50 and 100", "not in October", "price not between 50 and 100", "not older than
    a month"."""
    field = draft.mention if cursor.is_(i - 2, FieldRef) else None
    for rule in (between, compared_date, date_led):
        scratch = Draft(pieces=draft.pieces)
        end = rule(cursor, scratch, i, field) or rule(cursor, scratch, i)
        if end is not None and all(where.op in (*OPPOSITE, "between") for where in scratch.wheres):
            draft.negate(scratch.wheres, cursor.lexicon.fields)
            return end
    return None


def condition(cursor: Cursor, draft: Draft, i: int, negated: bool = False) -> int | None:
    """ "in stock", "sold out"."""
    opposite = {">": "=", "=": ">"}
    for found in cursor.all(i, Condition):
        field = cursor.field_of_kind(found.kind)
        if field is not None:
            draft.add(field.name, opposite[found.op] if negated else found.op, found.value)
            return cursor.at(i)[1]
    return None


def having(cursor: Cursor, draft: Draft, i: int) -> int | None:
    """ "with a phone number", "with seats left": of a field that nothing else is said about."""
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
        draft.add(field.name, "!=", none)
    elif field.nullable and "." not in field.name and field.kind != "boolean":
        draft.add(field.name, "not null")
    elif field == cursor.lexicon.of_kind("debt") or (
        field.kind == "integer" and not _measure(cursor, field)
    ):
        draft.add(field.name, ">", 0)
    else:
        return None
    return named[1]


def _measure(cursor: Cursor, field: Field) -> bool:
    """Whether every record has some of it: a price, a length, a year. Of what is counted there may
    be none."""
    kinds = ("money", "rating", "age", "size", "weight", "duration", "distance", "year")
    return any(cursor.lexicon.is_kind(field, kind) for kind in kinds)


def called(cursor: Cursor, draft: Draft, i: int) -> int | None:
    """ "called Magic Keyboard": the title contains it."""
    word, title = cursor.take(i, Called), cursor.lexicon.schema.title
    found = literal(cursor, word[1]) if word and title else None
    if word is not None and cursor.is_(word[1], ValueRef):
        return word[1]  # "called April Summers", who is known
    if word is None or found is None:
        return None
    known = [
        field.name
        for field in cursor.lexicon.parts.get(cursor.tokens[word[1]].norm, ())
        if "." not in field.name
    ]
    draft.add(title if title in known or not known else known[0], "like", found[0])
    return found[1]


def part(cursor: Cursor, draft: Draft, i: int) -> int | None:
    """ "orders of customer Anna", "author Sato": a word of a name that occurs, where it is said
    whose name it is."""
    fields = cursor.lexicon.parts.get(cursor.tokens[i].norm, ()) if cursor.unknown(i) else ()
    for field in fields:
        relation = field.name.rpartition(".")[0]
        named = draft.mention is not None and draft.mention.name == field.name
        own = (
            not relation and not cursor.focus and cursor.lexicon.of_persons and field.name == "name"
        )
        if named or own or (relation and relation == cursor.focus):
            draft.add(field.name, "like", cursor.typed[i].text)
            return i + 1
    return None


def containing(cursor: Cursor, _: Draft, i: int) -> int | None:
    """ "containing rush delivery": the words behind it are searched for."""
    word = cursor.take(i, Contains)
    return word[1] if word and literal(cursor, word[1]) is not None else None


def quoted(cursor: Cursor, draft: Draft, i: int) -> int | None:
    """A quoted text: a value if the model has it, else searched for as it is."""
    if cursor.tokens[i].kind != "quoted":
        return None
    text = cursor.typed[i].text
    known = cursor.lexicon.exact.get(phrase_of(text), []) if text else []
    value = next((meaning for meaning in known if isinstance(meaning, ValueRef)), None)
    if value is not None:
        draft.add(value.field.name, "=", value.value)
    elif text:
        draft.phrases.append(text)
    return i + 1


def named(cursor: Cursor, draft: Draft, i: int) -> int | None:
    """The model's name; with a number behind it in the singular, one record: "order 1042"."""
    model = cursor.take(i, ModelRef)
    if model is None or _corrected(cursor, i, model[1]):
        return None
    last, schema = cursor.tokens[model[1] - 1].norm, cursor.lexicon.schema
    singular = cursor.lexicon.vocabulary.stem(last) == last
    # In "customer orders" the second name says what is asked for.
    aside = (singular and cursor.is_(model[1], RelationRef, OtherModel)) or (
        i > 0 and cursor.is_(i - 1, Per, SortBy)
    )
    if draft.named_at is None and not aside:
        draft.named_at, draft.singular = i, singular
    cursor.focus = ""
    number = _record_number(cursor, model[1])
    if number is None or schema.fields[schema.key].kind != "integer":
        return model[1]
    draft.add(schema.key, "=", number[0])
    return number[1]


def _record_number(cursor: Cursor, i: int) -> tuple[int, int] | None:
    """The number of one record behind the singular of what its model is called, and the position
    after it."""
    last, number = cursor.tokens[i - 1].norm, cursor.whole(i, 10**12)
    if (
        number is None
        or cursor.lexicon.vocabulary.stem(last) != last
        or cursor.tokens[i].kind != "number"
    ):
        return None
    return number if cursor.ended(number[1]) or cursor.is_(number[1], *AFTER_A_RECORD) else None


def related(cursor: Cursor, draft: Draft, i: int) -> int | None:
    """The name of a model that records are related to: what follows is said of it. With a number
    behind it in the singular, one record: "invoices of customer 42"."""
    relation = cursor.take(i, RelationRef)
    if relation is None or _corrected(cursor, i, relation[1]):
        return None
    cursor.focus, cursor.spoken_of = relation[0].relation, relation[0].title
    known, number = (
        cursor.lexicon.schema.relations[relation[0].relation],
        _record_number(cursor, relation[1]),
    )
    if (
        number is None
        or known.many
        or cursor.lexicon.schema.fields[known.foreign].kind != "integer"
    ):
        return relation[1]
    draft.add(known.foreign, "=", number[0])
    return number[1]


def how_much(cursor: Cursor, draft: Draft, i: int) -> int | None:
    """ "how long is the Ohio": what the records say."""
    for asked in cursor.all(i, HowMuch):
        field = cursor.field_of_kind(asked.kind)
        if field is not None:
            draft.mention = field
            return cursor.at(i)[1]
    return None


def mentioned(cursor: Cursor, draft: Draft, i: int) -> int | None:
    """A field that nothing is said about: "the price of …"."""
    field = cursor.take(i, FieldRef)
    if field is None or _corrected(cursor, i, field[1]):
        return None
    draft.mention = field[0].field
    if happened(cursor, draft.mention, i, field[1]):
        draft.add(draft.mention.name, "not null")
    if relation := cursor.take(i, RelationRef):
        cursor.focus = relation[0].relation
    return field[1]


def nothing(cursor: Cursor, draft: Draft, i: int) -> int | None:
    """Words that carry no condition, and punctuation."""
    if cursor.tokens[i].kind == "mark":
        return i + 1
    draft.listing = draft.listing or cursor.is_(i, Everything)
    draft.person = draft.person or cursor.is_(i, Person)
    if cursor.is_(i, Or) and draft.wheres:
        draft.alternatives.append(i)
    return cursor.at(i)[1] if cursor.is_(i, Filler, And, Or, Link) else None


def _corrected(cursor: Cursor, start: int, end: int) -> bool:
    """A misspelt word that would change nothing is better searched for than dropped; the name of a
    model changes which."""
    wrong = any(cursor.tokens[i].norm != cursor.typed[i].norm for i in range(start, end))
    return wrong and not cursor.is_(start, ModelRef)


def _values(cursor: Cursor, draft: Draft, i: int) -> int | None:
    return values(cursor, draft, i, False)


def _compare(cursor: Cursor, draft: Draft, i: int) -> int | None:
    return compare(cursor, draft, i, False)


def _field_led(cursor: Cursor, draft: Draft, i: int) -> int | None:
    return field_led(cursor, draft, i, False)


def _condition(cursor: Cursor, draft: Draft, i: int) -> int | None:
    return condition(cursor, draft, i)


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
    grouped,
    prepositioned,
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
