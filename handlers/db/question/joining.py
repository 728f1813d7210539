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
from typing import NamedTuple

from groundhook.handlers.db.question import sense
from groundhook.handlers.db.question.cursor import Cursor
from groundhook.handlers.db.question.draft import Draft
from groundhook.host.core.types.query_language import Where

Piece = tuple[int, int, list[Where]]


class _Alternatives(NamedTuple):
    """The pieces after each "or", by number: those that begin a whole of their own, and those that
    are alternatives to the piece before them alone."""

    apart: list[int]
    beside: set[int]


def join_conditions(cursor: Cursor, draft: Draft) -> list[Where]:
    """Return the conditions of a question, all of which must hold. An "or" that joins no two
    conditions is noted in the draft."""
    pieces, (apart, beside) = draft.pieces, _place_alternatives(cursor, draft)
    if not apart and (starts := _find_groups(cursor, pieces, beside)):
        shared = _join(cursor, pieces, range(starts[0]), beside)
        # An "or" before a group joins whole groups, not the two conditions beside it.
        groups = [
            _require_all(_join(cursor, pieces, range(start, end), beside - {start}))
            for start, end in pairwise([*starts, len(pieces)])
        ]
        return [*shared, Where(any_of=tuple(groups))]
    bounds = [0, *sorted(set(apart)), len(pieces)]
    parts = [_join(cursor, pieces, range(start, end), beside) for start, end in pairwise(bounds)]
    return parts[0] if len(parts) == 1 else [_require_any([_require_all(part) for part in parts])]


def _place_alternatives(cursor: Cursor, draft: Draft) -> _Alternatives:
    """Return what each "or" of the question joins."""
    found = _Alternatives([], set())
    for at in draft.alternatives:
        right = next((number for number, piece in enumerate(draft.pieces) if piece[0] > at), None)
        if right is None or not _joins_pieces(draft, at, draft.pieces[right]):
            draft.notes.append(
                f"the words around {cursor.typed[at].text!r} were not read as alternatives"
            )
        elif any(cursor.is_(i, sense.ModelRef) for i in range(at + 1, draft.pieces[right][0])):
            found.apart.append(right)
        else:
            found.beside.add(right)
    return found


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
        parts = [_require_all(wheres) for wheres in group]
        joined += group[0] if len(group) == 1 else [_require_any(parts)]
    return _merge_values(cursor, joined)


def _require_all(wheres: Sequence[Where]) -> Where:
    """Return one condition that holds where all of these hold."""
    return wheres[0] if len(wheres) == 1 else Where(all_of=tuple(wheres))


def _require_any(parts: Sequence[Where]) -> Where:
    """Return one condition that holds where any of these holds."""
    if all(map(_requires_values, parts)) and len({where.field for where in parts}) == 1:
        values = [value for where in parts for value in _list_values(where)]
        return _require_one_of(parts[0].field, values)
    return Where(any_of=tuple(parts))


def _requires_values(where: Where) -> bool:
    """Return whether a condition requires one of some values."""
    return where.group is None and where.op in ("=", "in")


def _merge_values(cursor: Cursor, wheres: Sequence[Where]) -> list[Where]:
    """Join several values of one text field as alternatives: a brand cannot be both Apple and
    Sony."""
    values: dict[str, list[object]] = {}
    for where in wheres:
        if _requires_values(where) and cursor.lexicon.fields[where.field].kind == "text":
            values.setdefault(where.field, []).extend(_list_values(where))
    merged: list[Where] = []
    for where in wheres:
        if not _requires_values(where) or where.field not in values:
            merged.append(where)
        elif found := values[where.field]:
            merged.append(_require_one_of(where.field, found))
            values[where.field] = []
    return merged


def _require_one_of(field: str, values: Sequence[object]) -> Where:
    found = list(dict.fromkeys(values))
    return Where(
        field=field, op="in" if len(found) > 1 else "=", value=found if len(found) > 1 else found[0]
    )


def _list_values(where: Where) -> list[object]:
    return list(where.value) if where.op == "in" else [where.value]
