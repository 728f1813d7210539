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

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from groundhook.core.types.query_language import Where
from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.query.dsl import conditions
from groundhook.handlers.db.question import sense
from groundhook.handlers.db.question.cursor import Cursor
from groundhook.handlers.db.question.parsed import Parsed, Piece
from groundhook.handlers.db.question.wheres import (
    has_opposite,
    opposite,
    require_all,
    require_any,
    require_one_of,
    requires_values,
    values_of,
)

RECORDS = (sense.ModelRef, sense.Pronoun, sense.Everything)  # begin a description of their own


class _Alternatives(NamedTuple):
    """Where the pieces after each "or" begin: those that begin a description of their own, and
    those that are alternatives to the piece before them alone. Notes on each other "or"."""

    apart: set[int]
    beside: set[int]
    notes: list[str]


def join_conditions(cursor: Cursor, draft: Parsed) -> tuple[list[Where], Parsed]:
    """Return the conditions of a question, all of which must hold, and the question with notes on
    what was not joined."""
    for at in reversed(draft.exceptions):
        draft = _negate_exception(cursor, draft, at)
    notes = _place_alternatives(cursor, draft).notes
    return _join_pieces(cursor, draft), replace(draft, notes=(*draft.notes, *notes))


def _negate_exception(cursor: Cursor, draft: Parsed, at: int) -> Parsed:
    """Put the opposite of the conditions behind an exception in their place. They are reported if
    there are none, or if no query can express it."""
    end = _end_of_clause(cursor, draft, at)
    within = tuple(piece for piece in draft.pieces if at < piece.start < end)
    inside = tuple(one for one in draft.alternatives if at < one < end)
    unknown = tuple(one for one in draft.not_understood if at < one < end)
    outside = tuple(one for one in draft.alternatives if one not in inside)
    draft = replace(draft, alternatives=outside)
    if not within:
        return _exclude(draft, unknown) if unknown else replace(draft.without([], at), refused=True)
    draft = replace(draft, idle=(*draft.idle, *unknown))
    wheres = _join_pieces(cursor, Parsed(pieces=within, alternatives=inside))
    if not _can_omit(cursor, wheres):
        return replace(draft.without(within, at), refused=True)
    whole = Piece(at, within[-1].end, opposite(wheres, cursor.lexicon.fields))
    text = cursor.text(at, whole.end)
    note = [f"only records for which all of {text!r} holds were omitted"] * (len(within) > 1)
    first, last = draft.pieces.index(within[0]), draft.pieces.index(within[-1])
    pieces = (*draft.pieces[:first], whole, *draft.pieces[last + 1 :])
    return replace(draft, pieces=pieces, notes=(*draft.notes, *note))


def _can_omit(cursor: Cursor, wheres: Sequence[Where]) -> bool:
    """Return whether a query can omit the records that meet these conditions."""
    return not _of_many(cursor, wheres) and has_opposite(wheres)


def _exclude(draft: Parsed, unknown: tuple[int, ...]) -> Parsed:
    """ "except those by Tolstoy": the records with these words are omitted."""
    left = tuple(one for one in draft.not_understood if one not in unknown)
    return replace(draft, not_understood=left, excluded=(*draft.excluded, *unknown))


def _end_of_clause(cursor: Cursor, draft: Parsed, at: int) -> int:
    """Return the position of the first mark behind a position that is in no piece."""
    within = {i for piece in draft.pieces for i in range(piece.start, piece.end)}
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


def _join_pieces(cursor: Cursor, draft: Parsed) -> list[Where]:
    apart, beside, _ = _place_alternatives(cursor, draft)
    if not apart and (starts := _find_groups(cursor, draft.pieces, beside)):
        shared, *groups = _split(draft.pieces, starts)
        # An "or" before a group joins whole groups, not the two conditions beside it.
        each = [require_all(_join(cursor, group, beside - starts)) for group in groups]
        return [*_join(cursor, shared, beside), Where(any_of=tuple(each))]
    parts = [_join(cursor, part, beside) for part in _split(draft.pieces, apart)]
    return parts[0] if len(parts) == 1 else [require_any([require_all(part) for part in parts])]


def _split(pieces: Sequence[Piece], starts: set[int]) -> list[list[Piece]]:
    """Return the pieces before the first of these positions, and those from each of them on."""
    parts: list[list[Piece]] = [[]]
    for piece in pieces:
        if piece.start in starts:
            parts.append([])
        parts[-1].append(piece)
    return parts


def _place_alternatives(cursor: Cursor, draft: Parsed) -> _Alternatives:
    """Return what each "or" of the question joins."""
    found = _Alternatives(set(), set(), [])
    for at in draft.alternatives:
        right = next(
            (number for number, piece in enumerate(draft.pieces) if piece.start > at), None
        )
        if right is None or not _joins_pieces(draft, at, draft.pieces[right]):
            word = cursor.typed[at].text
            found.notes.append(f"the words around {word!r} were not read as alternatives")
        else:
            apart = _begins_description(cursor, draft.pieces, at, right)
            (found.apart if apart else found.beside).add(draft.pieces[right].start)
    return found


def _begins_description(cursor: Cursor, pieces: Sequence[Piece], at: int, right: int) -> bool:
    """Return whether a description of records begins between an "or" at `at` and the end of the
    pieces beside `right`: a word for the records is there, or a value of a field that the pieces
    before have too ("toys or discontinued books")."""
    if any(cursor.is_(i, *RECORDS) for i in range(at + 1, pieces[right].start)):
        return True
    before = {_value_field(cursor, piece) for piece in pieces[:right]} - {""}
    for piece, following in pairwise(pieces[right:]):
        if piece.end < following.start:
            break
        if _value_field(cursor, following) in before:
            return True
    return False


def _joins_pieces(draft: Parsed, at: int, right: Piece) -> bool:
    """Return whether a condition is before an "or", and only words that were understood are between
    it and the condition after it."""
    before = any(piece.end <= at for piece in draft.pieces)
    return before and not any(at < i < right.start for i in draft.not_understood)


def _find_groups(cursor: Cursor, pieces: Sequence[Piece], beside: set[int]) -> set[int]:
    """Return where each group of pieces begins if several groups have a value of the same field and
    a condition of their own. The groups are joined by "or", or have conditions on the same fields.
    Empty if the question has no such groups."""
    names = [_value_field(cursor, piece) for piece in pieces]
    for first, name in enumerate(names):
        starts = {pieces[i].start for i in range(first, len(pieces)) if names[i] == name}
        if name and _begin_groups(_split(pieces, starts)[1:], beside):
            return starts
    return set()


def _begin_groups(groups: Sequence[Sequence[Piece]], beside: set[int]) -> bool:
    """Return whether there are several groups, each with conditions of its own."""
    if len(groups) < 2 or any(len(group) < 2 for group in groups[:-1]):
        return False
    fields = [{one.field for piece in group[1:] for one in piece.wheres} for group in groups]
    return beside.issuperset(group[0].start for group in groups[1:]) or bool(
        set.intersection(*fields)
    )


def _value_field(cursor: Cursor, piece: Piece) -> str:
    """Return the text field for which a piece has one value; "" for any other piece."""
    where, several = piece.wheres[0], len(piece.wheres) > 1
    known = None if several or where.group else cursor.lexicon.fields.get(where.field)
    return where.field if known is not None and known.kind == "text" and where.op == "=" else ""


def _have_no_common_day(one: Sequence[Where], other: Sequence[Where]) -> bool:
    """Return whether these are two spans of the same date field that have no day in common."""
    spans = [{where.op: where for where in wheres if not where.group} for wheres in (one, other)]
    if any(set(span) != {">=", "<"} for span in spans):
        return False
    fields = {where.field for span in spans for where in span.values()}
    (start, end), (later, last) = ((span[">="].value, span["<"].value) for span in spans)
    return len(fields) == 1 and (end <= later or last <= start)


def _are_listed(cursor: Cursor, one: Piece, other: Piece) -> bool:
    """Return whether "and", "or" or a comma joins two pieces, and not "but"."""
    between = range(one.end, other.start)
    joined = (cursor.is_(i, sense.And, sense.Or) or cursor.is_mark(i, ",") for i in between)
    return any(joined) and not any(cursor.is_(i, sense.But) for i in between)


def _join(cursor: Cursor, pieces: Sequence[Piece], beside: set[int]) -> list[Where]:
    """Return the conditions of some pieces. `beside` are where those begin that are alternatives to
    the piece before them."""
    groups: list[list[Piece]] = []
    for piece in pieces:
        before = groups[-1][-1] if groups else None
        if before and (piece.start in beside or _excludes(cursor, before, piece)):
            groups[-1].append(piece)
        else:
            groups.append([piece])
    joined: list[Where] = []
    for first, *others in groups:
        parts = [require_all(piece.wheres) for piece in (first, *others)]
        joined += [require_any(parts)] if others else first.wheres
    return _merge_values(cursor, joined)


def _excludes(cursor: Cursor, one: Piece, other: Piece) -> bool:
    """Return whether two pieces that are listed cannot both hold."""
    return _are_listed(cursor, one, other) and _have_no_common_day(one.wheres, other.wheres)


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
