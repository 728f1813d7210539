"""Joins the conditions of a question's pieces. Pure.

All must hold, except those with an "or" between them. An "or" joins the two conditions beside it,
and a condition before both applies to both ("direct flights to Rome or from Dublin"). If the model
is named again after the "or", or a word for anything there is, it divides the whole question
("books under $15 or products rated above 4.8", "red wines or anything from Alsace"). If a value of
the same field is repeated with a condition of its own ("lamps under 50 and chairs under 100"), each
keeps its own condition. Two separate time spans are alternatives too ("in March and April"), since
no day is in both. Of the conditions behind an exception ("all but those to Rome since March") not
all may hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple, TypeVar

from groundhook.handlers.db.dsl import conditions
from groundhook.handlers.db.question import sense
from groundhook.handlers.db.question.cursor import Cursor
from groundhook.handlers.db.question.draft import Draft
from groundhook.handlers.db.question.wheres import (
    opposite,
    require_all,
    require_any,
    require_one_of,
    requires_values,
    values_of,
)
from groundhook.handlers.db.schema import Field
from groundhook.host.core.types.query_language import Where

Piece = tuple[int, int, list[Where]]
T = TypeVar("T")
RECORDS = (sense.ModelRef, sense.Pronoun, sense.Everything)  # begin a description of their own


class _Alternatives(NamedTuple):
    """The pieces after each "or", by number: those that begin a whole of their own, and those that
    are alternatives to the piece before them alone."""

    apart: list[int]
    beside: set[int]


def join_conditions(cursor: Cursor, draft: Draft) -> list[Where]:
    """Return the conditions of a question, all of which must hold. An "or" that joins no two
    conditions is noted in the draft."""
    for at in reversed(draft.exceptions):
        _negate_exception(cursor, draft, at)
    return _join_pieces(cursor, draft)


def _negate_exception(cursor: Cursor, draft: Draft, at: int) -> None:
    """Put the opposite of the conditions behind an exception in their place. They are reported if
    there are none, or if no query can express it."""
    end = _end_of_clause(cursor, draft, at)
    within, draft.pieces = _part(draft.pieces, lambda piece: at < piece[0] < end)
    inside, draft.alternatives = _part(draft.alternatives, lambda place: at < place < end)
    unknown, known = _part(draft.not_understood, lambda place: at < place < end)
    wheres = _join_pieces(cursor, Draft(pieces=within, alternatives=inside))
    if len(within) > 1:
        text = cursor.text(at, within[-1][1])
        draft.notes.append(f"only records for which all of {text!r} holds were omitted")
    if unknown and not within:  # "except those by Tolstoy"
        draft.excluded, draft.not_understood = [*draft.excluded, *unknown], known
        return
    draft.idle.update(unknown)
    if within and not _of_many(cursor, wheres):
        against = list(opposite(wheres, cursor.lexicon.fields))
        draft.pieces = sorted([*draft.pieces, (at, within[-1][1], against)], key=itemgetter(0))
        return
    places = {at, *(place for start, last, _ in within for place in range(start, last))}
    draft.not_understood = sorted({*draft.not_understood, *places})
    draft.idle |= places
    draft.refused = True


def _part(listed: list[T], chosen: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """Return those that are chosen, and the others."""
    return [one for one in listed if chosen(one)], [one for one in listed if not chosen(one)]


def _end_of_clause(cursor: Cursor, draft: Draft, at: int) -> int:
    """Return the position of the first mark behind a position that is in no piece."""
    within = {i for start, end, _ in draft.pieces for i in range(start, end)}
    marks = (i for i in range(at, len(cursor.tokens)) if cursor.is_mark(i, ",;:."))
    return next((i for i in marks if i not in within), len(cursor.tokens))


def of_some(cursor: Cursor, wheres: Sequence[Where]) -> bool:
    """Return whether conditions are on many related records that are not the current topic:
    "without overdue invoices" differs from having some that are not overdue."""
    topic = f"{cursor.about.relation}."
    return any(not field.name.startswith(topic) for field in _of_many(cursor, wheres))


def _of_many(cursor: Cursor, wheres: Sequence[Where]) -> list[Field]:
    """Return the fields of conditions of which a record can have many values."""
    fields = (cursor.lexicon.fields.get(where.field) for where in conditions(wheres))
    return [field for field in fields if field is not None and cursor.many(field)]


def _join_pieces(cursor: Cursor, draft: Draft) -> list[Where]:
    pieces, (apart, beside) = draft.pieces, _place_alternatives(cursor, draft)
    if not apart and (starts := _find_groups(cursor, pieces, beside)):
        shared = _join(cursor, pieces, range(starts[0]), beside)
        # An "or" before a group joins whole groups, not the two conditions beside it.
        groups = [
            require_all(_join(cursor, pieces, range(start, end), beside - {start}))
            for start, end in pairwise([*starts, len(pieces)])
        ]
        return [*shared, Where(any_of=tuple(groups))]
    bounds = [0, *sorted(set(apart)), len(pieces)]
    parts = [_join(cursor, pieces, range(start, end), beside) for start, end in pairwise(bounds)]
    return parts[0] if len(parts) == 1 else [require_any([require_all(part) for part in parts])]


def _place_alternatives(cursor: Cursor, draft: Draft) -> _Alternatives:
    """Return what each "or" of the question joins."""
    found = _Alternatives([], set())
    for at in draft.alternatives:
        right = next((number for number, piece in enumerate(draft.pieces) if piece[0] > at), None)
        if right is None or not _joins_pieces(draft, at, draft.pieces[right]):
            draft.notes.append(
                f"the words around {cursor.typed[at].text!r} were not read as alternatives"
            )
        elif _begins_description(cursor, draft.pieces, at, right):
            found.apart.append(right)
        else:
            found.beside.add(right)
    return found


def _begins_description(cursor: Cursor, pieces: Sequence[Piece], at: int, right: int) -> bool:
    """Return whether a description of records begins between an "or" at `at` and the end of the
    pieces beside `right`: a word for the records is there, or a value of a field that the pieces
    before have too ("toys or discontinued books")."""
    if any(cursor.is_(i, *RECORDS) for i in range(at + 1, pieces[right][0])):
        return True
    before = {_value_field(cursor, piece) for piece in pieces[:right]} - {""}
    for piece, following in pairwise(pieces[right:]):
        if piece[1] < following[0]:
            break
        if _value_field(cursor, following) in before:
            return True
    return False


def _joins_pieces(draft: Draft, at: int, right: Piece) -> bool:
    """Return whether a condition is before an "or", and only words that were understood are between
    it and the condition after it."""
    between = range(at + 1, right[0])
    return any(end <= at for _, end, _ in draft.pieces) and not any(
        i in between for i in draft.not_understood
    )


def _find_groups(cursor: Cursor, pieces: Sequence[Piece], beside: set[int]) -> list[int]:
    """Return where each group of pieces begins if several groups have a value of the same field and
    a condition of their own. The groups are joined by "or", or have conditions on the same fields.
    Empty if the question has no such groups."""
    names = [_value_field(cursor, piece) for piece in pieces]
    for first, name in enumerate(names):
        starts = [number for number in range(first, len(pieces)) if names[number] == name]
        if name and _begin_groups(pieces, starts, beside):
            return starts
    return []


def _begin_groups(pieces: Sequence[Piece], starts: Sequence[int], beside: set[int]) -> bool:
    """Return whether several groups begin at these pieces, each with conditions of its own."""
    if len(starts) < 2 or any(one + 1 == other for one, other in pairwise(starts)):
        return False
    groups = [pieces[start + 1 : end] for start, end in pairwise([*starts, len(pieces)])]
    fields = [{where.field for _, _, wheres in group for where in wheres} for group in groups]
    return beside.issuperset(starts[1:]) or bool(set.intersection(*fields))


def _value_field(cursor: Cursor, piece: Piece) -> str:
    """Return the text field for which a piece has one value; "" for any other piece."""
    where = piece[2][0]
    known = (
        cursor.lexicon.fields.get(where.field)
        if len(piece[2]) == 1 and where.group is None
        else None
    )
    return where.field if known is not None and known.kind == "text" and where.op == "=" else ""


def _have_no_common_day(one: Sequence[Where], other: Sequence[Where]) -> bool:
    """Return whether these are two spans of the same date field that have no day in common."""
    spans = [
        {where.op: where for where in wheres if where.group is None} for wheres in (one, other)
    ]
    if any(
        len(wheres) != 2 or set(span) != {">=", "<"}
        for wheres, span in zip((one, other), spans, strict=True)
    ):
        return False
    fields = {where.field for span in spans for where in span.values()}
    ends = [(span[">="].value, span["<"].value) for span in spans]
    return len(fields) == 1 and (ends[0][1] <= ends[1][0] or ends[1][1] <= ends[0][0])


def _are_listed(cursor: Cursor, one: Piece, other: Piece) -> bool:
    """Return whether "and", "or" or a comma joins two pieces, and not "but"."""
    between = range(one[1], other[0])
    return any(
        cursor.is_(i, sense.And, sense.Or) or cursor.is_mark(i, ",") for i in between
    ) and not any(cursor.is_(i, sense.But) for i in between)


def _join(cursor: Cursor, pieces: Sequence[Piece], numbers: range, beside: set[int]) -> list[Where]:
    """Return the conditions of some pieces. `beside` has the numbers of the pieces that are
    alternatives to the piece before them."""
    groups: list[list[list[Where]]] = []
    for number in numbers:
        if groups and (
            number in beside
            or (
                _are_listed(cursor, *pieces[number - 1 : number + 1])
                and _have_no_common_day(groups[-1][-1], pieces[number][2])
            )
        ):
            groups[-1].append(pieces[number][2])
        else:
            groups.append([pieces[number][2]])
    joined: list[Where] = []
    for group in groups:
        parts = [require_all(wheres) for wheres in group]
        joined += group[0] if len(group) == 1 else [require_any(parts)]
    return _merge_values(cursor, joined)


def _merge_values(cursor: Cursor, wheres: Sequence[Where]) -> list[Where]:
    """Join several values of one text field as alternatives: a brand cannot be both Apple and
    Sony."""
    values: dict[str, list[object]] = {}
    for where in wheres:
        if requires_values(where) and cursor.lexicon.fields[where.field].kind == "text":
            values.setdefault(where.field, []).extend(values_of(where))
    merged: list[Where] = []
    for where in wheres:
        if not requires_values(where) or where.field not in values:
            merged.append(where)
        elif found := values[where.field]:
            merged.append(require_one_of(where.field, found))
            values[where.field] = []
    return merged
