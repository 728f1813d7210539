"""Joins the conditions of a question's pieces. Pure.

All must hold, except those with an "or" between them. An "or" joins the two conditions beside it,
and a condition before both applies to both ("direct flights to Rome or from Dublin"). If the model
is named again after the "or", it divides the whole question ("books under $15 or products rated
above 4.8"). If a value of the same field is repeated with a condition of its own ("lamps under 50
and chairs under 100"), each keeps its own condition. Two separate time spans are alternatives too
("in March and April"), since no day is in both."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from groundhook.handlers.db.question import sense
from groundhook.handlers.db.question.cursor import Cursor
from groundhook.handlers.db.question.draft import Draft
from groundhook.host.core.types.query_language import Where

Piece = tuple[int, int, list[Where]]


def joined(cursor: Cursor, draft: Draft) -> list[Where]:
    """Return the conditions of a question, all of which must hold."""
    apart, beside = [], set()
    for at in draft.alternatives:
        left = [number for number, piece in enumerate(draft.pieces) if piece[1] <= at]
        right = next((number for number, piece in enumerate(draft.pieces) if piece[0] > at), None)
        if (
            not left
            or right is None
            or any(at < i < draft.pieces[right][0] for i in draft.unplaced)
        ):
            draft.notes.append(
                f"the words around {cursor.typed[at].text!r} were not read as alternatives"
            )
        elif any(cursor.is_(i, sense.ModelRef) for i in range(at + 1, draft.pieces[right][0])):
            apart.append(right)
        else:
            beside.add(right)
    if not apart and (starts := _repeated(cursor, draft.pieces, beside)):
        shared = _all(cursor, draft.pieces, range(starts[0]), beside)
        parts = [
            _all(cursor, draft.pieces, range(*each), beside - {each[0]})
            for each in pairwise([*starts, len(draft.pieces)])
        ]
        return [
            *shared,
            Where(
                any_of=tuple(
                    part[0] if len(part) == 1 else Where(all_of=tuple(part)) for part in parts
                )
            ),
        ]
    bounds = [0, *sorted(set(apart)), len(draft.pieces)]
    parts = [
        _all(cursor, draft.pieces, range(start, end), beside) for start, end in pairwise(bounds)
    ]
    if len(parts) == 1:
        return parts[0]
    return [_any([part[0] if len(part) == 1 else Where(all_of=tuple(part)) for part in parts])]


def _repeated(cursor: Cursor, pieces: Sequence[Piece], beside: set[int]) -> list[int]:
    """Return where each group of pieces begins if several groups have a value of the same field and
    a condition of their own. The groups are joined by "or", or have conditions on the same fields.
    Empty if the question has no such groups."""
    names = [_value_field(cursor, piece) for piece in pieces]
    for first, name in enumerate(names):
        starts = [number for number in range(first, len(pieces)) if name and names[number] == name]
        if len(starts) > 1 and all(one + 1 < other for one, other in pairwise(starts)):
            groups = [pieces[start:end] for start, end in pairwise([*starts, len(pieces)])]
            fields = [
                {where.field for _, _, made in group[1:] for where in made} for group in groups
            ]
            if all(start in beside for start in starts[1:]) or fields[0].intersection(*fields[1:]):
                return starts
    return []


def _value_field(cursor: Cursor, piece: Piece) -> str:
    """Return the text field for which a piece has one value; "" for any other piece."""
    where = piece[2][0]
    known = (
        cursor.lexicon.fields.get(where.field)
        if len(piece[2]) == 1 and where.group is None
        else None
    )
    return where.field if known is not None and known.kind == "text" and where.op == "=" else ""


def _apart(one: Sequence[Where], other: Sequence[Where]) -> bool:
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


def _listed(cursor: Cursor, one: Piece, other: Piece) -> bool:
    """Return whether "and", "or" or a comma joins two pieces, and not "but"."""
    between = range(one[1], other[0])
    return any(
        cursor.is_(i, sense.And, sense.Or) or cursor.is_mark(i, ",") for i in between
    ) and not any(cursor.is_(i, sense.But) for i in between)


def _all(cursor: Cursor, pieces: Sequence[Piece], numbers: range, beside: set[int]) -> list[Where]:
    """Return the conditions of some pieces. `beside` has the numbers of the pieces that are
    alternatives to the piece before them."""
    groups: list[list[list[Where]]] = []
    for number in numbers:
        if groups and (
            number in beside
            or (
                _listed(cursor, *pieces[number - 1 : number + 1])
                and _apart(groups[-1][-1], pieces[number][2])
            )
        ):
            groups[-1].append(pieces[number][2])
        else:
            groups.append([pieces[number][2]])
    made: list[Where] = []
    for group in groups:
        if len(group) == 1:
            made += group[0]
        else:
            made.append(
                _any([part[0] if len(part) == 1 else Where(all_of=tuple(part)) for part in group])
            )
    return _merged(cursor, made)


def _any(parts: Sequence[Where]) -> Where:
    same = {where.field for where in parts if where.group is None and where.op in ("=", "in")}
    if len(same) == 1 and all(where.group is None and where.op in ("=", "in") for where in parts):
        return _one_of(same.pop(), [value for where in parts for value in _values(where)])
    return Where(any_of=tuple(parts))


def _merged(cursor: Cursor, wheres: Sequence[Where]) -> list[Where]:
    """Join several values of one text field as alternatives: a brand cannot be both Apple and
    Sony."""
    values: dict[str, list[object]] = {}
    for where in wheres:
        if (
            where.op in ("=", "in")
            and where.group is None
            and cursor.lexicon.fields[where.field].kind == "text"
        ):
            values.setdefault(where.field, []).extend(_values(where))
    merged: list[Where] = []
    for where in wheres:
        if where.group is not None or where.op not in ("=", "in") or where.field not in values:
            merged.append(where)
        elif found := values[where.field]:
            merged.append(_one_of(where.field, found))
            values[where.field] = []
    return merged


def _one_of(field: str, values: Sequence[object]) -> Where:
    found = list(dict.fromkeys(values))
    return Where(
        field=field, op="in" if len(found) > 1 else "=", value=found if len(found) > 1 else found[0]
    )


def _values(where: Where) -> list[object]:
    return list(where.value) if where.op == "in" else [where.value]
