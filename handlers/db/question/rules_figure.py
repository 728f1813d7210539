"""Rules for questions that ask for a number over records: "how many", "average price", "per
category"."""

from __future__ import annotations

from groundhook.handlers.db.question.cursor import NUMBERS, Cursor, Draft
from groundhook.handlers.db.question.meanings import (
    AskedValue,
    BeforeYear,
    Between,
    Compare,
    Different,
    Each,
    FieldRef,
    FigureWord,
    Filler,
    Link,
    ModelRef,
    OrderWord,
    Per,
    RelationRef,
    SortBy,
    Superlative,
    Top,
    ValueRef,
)
from groundhook.handlers.db.question.rules_field import said_of
from groundhook.handlers.db.question.rules_number import TIMES
from groundhook.handlers.db.schema import Field

MOST = 1000  # groups
OF_ORDER = {"asc": "min", "desc": "max"}


def figure(cursor: Cursor, draft: Draft, i: int) -> int | None:
    """ "how many", "number of", "average price", "total of the fines", "on average", "how many
    different cities"."""
    words = cursor.all(i, FigureWord)
    if not words:
        return _extreme(cursor, draft, i) or _most(cursor, draft, i)
    end = cursor.at(i)[1]
    own = _called_so(cursor, i)
    if own is not None and (cursor.is_(end, Compare, Between) or cursor.number(end)):
        return said_of(cursor, draft, own, end, False)  # "a total of 100"
    if any(word.function == "count" for word in words):
        if own is None:
            return _count(cursor, draft, end)
        draft.figure("sum", own.name)
        draft.notes.append(f"{cursor.text(i, end)!r} was read as the sum of {own.name!r}")
        return end
    words = [word for word in words if not word.kind] or words
    function = words[0].function
    if (earned := _of_kind(cursor, i)) is not None and not cursor.is_(i - 1, SortBy):
        draft.figure(function, earned.name)  # "revenue"
        return end
    at, model = end, None
    while cursor.is_(at, Filler, Link, FigureWord, ModelRef) and not cursor.is_(at, FieldRef):
        if (earned := _of_kind(cursor, at)) is not None:
            draft.figure(function, earned.name)  # "average revenue"
            return cursor.at(at)[1]
        if (said := _called_so(cursor, at)) is not None:
            draft.figure(function, said.name)  # "average total of", "total amount of"
            return cursor.at(at)[1]
        model = at if cursor.is_(at, ModelRef) else model  # "average order value"
        at = cursor.at(at)[1]
    named = next(
        (one.field for one in cursor.all(at, FieldRef) if _measured(cursor, one.field, function)),
        None,
    )
    if named is not None and cursor.number(cursor.past(cursor.at(at)[1], Link)) is None:
        draft.figure(function, named.name)
        draft.named_at = model if draft.named_at is None else draft.named_at
        return cursor.at(at)[1]
    if (
        draft.mention is not None
        and _measured(cursor, draft.mention, function)
        and not draft.aggregates
    ):
        draft.figure(function, draft.mention.name)  # "the price on average"
        return end
    if (whole := _of_records(cursor, at, own, model)) is not None and _measured(
        cursor, whole, function
    ):
        draft.figure(function, whole.name)
        return end
    again = any(one.function == function for one in draft.aggregates)  # "… in total"
    later = function == "sum" and any(
        _of_kind(cursor, place) for place in range(at, len(cursor.tokens))
    )
    paid = (
        cursor.lexicon.of_kind("turnover")
        if function == "sum" and not (again or later or draft.aggregates)
        else None
    )
    if paid is not None and draft.named_at is None and not cursor.is_(i, FieldRef):
        draft.figure("sum", paid.name)  # "how much was paid by card"
        return end
    return end if again or later else None  # "how much did customers from France spend"


def figures(cursor: Cursor, draft: Draft, i: int) -> int | None:
    """ "average, min and max price", "total and average of invoices"."""
    functions, last, at = [], i, i
    while word := next(
        (one for one in cursor.all(at, FigureWord) if one.function != "count" and not one.kind),
        None,
    ):
        functions.append(word.function)
        last, at = at, cursor.joint(cursor.at(at)[1])
        if at == cursor.at(last)[1]:
            break
    if len(functions) < 2:
        return None
    scratch = Draft(mention=draft.mention, named_at=draft.named_at, pieces=draft.pieces)
    end = figure(cursor, scratch, last)
    if end is None or len(scratch.aggregates) != 1:
        return None
    for function in functions:
        draft.figure(function, scratch.aggregates[0].field)
    draft.named_at = scratch.named_at
    return end


def ranked(cursor: Cursor, draft: Draft, i: int) -> int | None:
    """ "top 3 brands by revenue", "top 5 cities by number of customers"."""
    top = cursor.take(i, Top)
    number = cursor.whole(top[1], MOST) if top else None
    at = number[1] if number else cursor.at(i)[1]
    group = _grouping(cursor, at) if top else []
    by = cursor.at(at)[1]
    if not group or cursor.is_(at, ModelRef, ValueRef) or not cursor.is_(by, SortBy):
        return None
    scratch, start = Draft(), cursor.at(by)[1]
    paid = next(
        (
            one.field
            for one in cursor.all(start, FieldRef)
            if cursor.lexicon.is_kind(one.field, "turnover")
        ),
        None,
    )
    earned = _of_kind(cursor, start) or (paid if paid and _measured(cursor, paid, "sum") else None)
    if earned is not None:
        scratch.figure("sum", earned.name)
    end = cursor.at(start)[1] if earned is not None else figure(cursor, scratch, start)
    if end is None or not scratch.aggregates:
        return None
    draft.aggregates, draft.groups, draft.limit = (
        scratch.aggregates,
        group,
        number[0] if number else draft.limit,
    )
    draft.sort(scratch.aggregates[0].called, "desc")
    return end


def grouped(cursor: Cursor, draft: Draft, i: int) -> int | None:
    """ "per genre", "by city", "for each airline". What may also sort ("by") groups only where a
    number is asked for."""
    asked = any(cursor.is_(at, FigureWord) for at in range(len(cursor.tokens)))
    ordered = any(cursor.is_(at, OrderWord, Superlative) for at in range(len(cursor.tokens)))
    clear = not cursor.is_(i, SortBy, Each) and not ordered  # "the newest per author" is no number
    if not cursor.is_(i, Per, SortBy) or not (asked or clear):
        return None
    at = cursor.at(i)[1]
    at = at if cursor.is_(at, FieldRef) else cursor.past(at, Filler, most=1)
    names = _grouping(cursor, at)
    if not names:
        return None
    draft.groups += [name for name in names if name not in draft.groups]
    if not draft.aggregates:
        earned = (
            draft.mention
            if draft.mention is not None and cursor.lexicon.is_kind(draft.mention, "turnover")
            else None
        )
        if earned is not None and _measured(cursor, earned, "sum"):
            draft.figure("sum", earned.name)  # "revenue by city", where a field is called so
        else:
            draft.figure("count")
    end = cursor.at(at)[1]
    further = (
        cursor.past(cursor.joint(end), Filler, Per, most=1) if cursor.joint(end) > end else end
    )
    if (
        further > end
        and not cursor.is_(further, ValueRef, ModelRef, FigureWord)
        and (more := _grouping(cursor, further))
    ):
        draft.groups += [
            name for name in more if name not in draft.groups
        ]  # "per status and country"
        end = cursor.at(further)[1]
    return end


def _grouping(cursor: Cursor, at: int) -> list[str]:
    """What is named here and can be grouped by: a field, or related records; empty where nothing
    is."""
    fields = [one.field for one in cursor.all(at, FieldRef) if one.field.kind != "number"]
    named = [field for field in fields if not field.long and not cursor.many(field)]
    related = [
        one.title
        for one in cursor.all(at, RelationRef)
        if one.title is not None and not cursor.many(one.title)
    ]
    return [named[0].name] if named else _each(cursor, related[0]) if related else []


def _each(cursor: Cursor, title: Field) -> list[str]:
    """What tells related records from each other: two may be called the same."""
    relation = cursor.lexicon.schema.relations.get(title.name.rpartition(".")[0])
    return [title.name, *([relation.foreign] if relation else [])]


def _count(cursor: Cursor, draft: Draft, i: int) -> int | None:
    at = cursor.past(i, Filler, Link, most=2)
    if different := cursor.take(at, Different):
        named = cursor.take(different[1], FieldRef)
        if named is None or cursor.many(named[0].field):
            return None
        draft.figure("count", named[0].field.name, distinct=True)
        return named[1]
    if cursor.number_named(at) is not None and not cursor.is_(at, ModelRef, RelationRef):
        return i  # "how many seats are left" asks for what the records say
    draft.figure("count")
    return i


def _extreme(cursor: Cursor, draft: Draft, i: int) -> int | None:
    """ "what is the highest fee"; "the doctor with the highest fee" is a record."""
    asked = cursor.take(i, AskedValue)
    at = cursor.past(asked[1], Filler, most=1) if asked else i
    word = cursor.take(at, Superlative) if asked else None
    at = cursor.past(word[1], ModelRef, most=1) if word else i
    named = (
        cursor.take(word[1], FieldRef) or cursor.take(at, FieldRef) if word else None
    )  # "the highest payment amount"
    if word is None or named is None or not _measured(cursor, named[0].field, "max"):
        return None
    draft.figure(OF_ORDER[word[0].order], named[0].field.name)
    return named[1]


def _most(cursor: Cursor, draft: Draft, i: int) -> int | None:
    """ "which brand has the most products": the group with most records, or with fewest."""
    word, group = cursor.take(i, Superlative), draft.mention or cursor.spoken_of
    model = cursor.take(word[1], ModelRef) if word else None
    if (
        word is None
        or model is None
        or group is None
        or group.kind in (*NUMBERS, *TIMES)
        or cursor.many(group)
    ):
        return None
    draft.named_at = i if draft.named_at is None else draft.named_at
    draft.figure("count")
    draft.groups += [group.name] if draft.mention else _each(cursor, group)
    draft.sort(draft.aggregates[0].called, word[0].order)
    draft.limit = draft.limit or 1
    return model[1]


def _called_so(cursor: Cursor, i: int) -> Field | None:
    """The model's number that is called like the first word of a figure of several: "amount of", of
    payments with an amount."""
    alone, end = cursor.lexicon.meanings(cursor.tokens[i : i + 1], 0)
    if cursor.at(i)[1] - i != 2 or not end:
        return None
    named = [one.field for one in alone if isinstance(one, FieldRef)]
    return next(
        (field for field in named if _measured(cursor, field, "sum") and "." not in field.name),
        None,
    )


def _of_records(cursor: Cursor, i: int, own: Field | None, model: int | None) -> Field | None:
    """ "total of paid invoices", "average payment": records named where a field would be are sums
    of money themselves. `model`: where they were named before this position."""
    while cursor.is_(i, Filler, Link, ValueRef) and not cursor.is_(i, ModelRef):
        i = cursor.at(i)[1]
    named = model is not None or cursor.is_(i, ModelRef)
    return own or cursor.lexicon.of_kind("turnover") if named else None


def _of_kind(cursor: Cursor, i: int) -> Field | None:
    """The field whose figure a word names by itself; a field that is called so comes first."""
    kinds = [word.kind for word in cursor.all(i, FigureWord) if word.kind]
    behind = cursor.past(cursor.at(i)[1], Link, Filler)
    in_year = cursor.is_(behind - 1, BeforeYear) and not cursor.is_(
        behind - 1, Link
    )  # "revenue in 2025"
    number = cursor.number(behind) is not None and not in_year
    compared = cursor.is_(behind, Compare, Between) or number  # "revenue over 500" is a condition
    if not kinds or compared:
        return None
    if called := [one.field for one in cursor.all(i, FieldRef)]:
        asked = i == 0 or cursor.is_(cursor.back(i), AskedValue)
        return next(
            (
                one
                for one in called
                if asked and cursor.lexicon.is_kind(one, kinds[0]) and _measured(cursor, one, "sum")
            ),
            None,
        )
    return cursor.lexicon.of_kind(kinds[0])


def _measured(cursor: Cursor, field: Field, function: str) -> bool:
    schema = cursor.lexicon.schema
    keys = {schema.key, *(relation.foreign for relation in schema.relations.values())}
    if cursor.many(field) or (field.name in keys and function in ("sum", "avg")):
        return False
    return field.kind in NUMBERS or (field.kind in TIMES and function in ("min", "max"))
