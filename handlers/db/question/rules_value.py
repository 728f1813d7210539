"""Rules for values that the model is known to have: which field has them, and lists of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from groundhook.handlers.db.dsl import MATCH_NONE
from groundhook.handlers.db.question import sense
from groundhook.handlers.db.question.cursor import Cursor
from groundhook.handlers.db.question.draft import Draft, Parsed
from groundhook.handlers.db.question.lexicon import JSON
from groundhook.handlers.db.schema import Field
from groundhook.host.core.types.query_language import Where


def values(cursor: Cursor, i: int, negated: bool, of: Field | None = None) -> Parsed | None:
    """ "Apple", "Apple or Samsung", "electronics category", "delivered, shipped and paid"."""
    found = [
        one for one in cursor.all(i, sense.ValueRef) if of is None or one.field.name == of.name
    ]
    if not found:
        return None
    end = cursor.after(i)
    behind = [reference.field.name for reference in cursor.all(end, sense.FieldRef)]
    named = [one for one in found if one.field.name in behind]
    chosen, also = (named[0], []) if named else _chosen(cursor, i, found)
    listed = [chosen.value]
    while (more := _next_value(cursor, end, chosen.field)) is not None:
        listed.append(more[0])
        end = more[1]
    if any(
        reference.field.name == chosen.field.name for reference in cursor.all(end, sense.FieldRef)
    ):
        end = cursor.after(end)
    end = _past_verb(cursor, chosen.field, end)
    either = len(listed) > 1 and any(cursor.is_(at, sense.Or) for at in range(i, end))
    first = _has(cursor, chosen.field, listed, either=either, negated=negated)
    if of is not None or not also:
        return Parsed(end, first)
    typed = repr(cursor.text(i, cursor.after(i)))
    chosen_by_word = _of_verb_behind(cursor, i, found) or _nationality(cursor, found)
    if chosen_by_word is not None or not _alike(cursor, chosen, also):
        names = " and ".join(one.field.name for one in also)
        note = f"{typed} was looked for in {chosen.field.name}; it is also a value of {names}"
        return Parsed(end, first, notes=(note,))
    each = [
        first,
        *(_has(cursor, one.field, listed, either=either, negated=negated) for one in also),
    ]
    names = " and ".join(one.field.name for one in (chosen, *also))
    wheres = tuple(where for one in each for where in one)
    note = f"{typed} was looked for in {names}"
    return Parsed(end, wheres if negated else (Where(any_of=wheres),), notes=(note,))


def _past_verb(cursor: Cursor, field: Field, i: int) -> int:
    """ "English speaking", "die Englisch sprechen": the position after a verb of the field."""
    verbs = [] if cursor.is_(i, sense.Filler) else cursor.all(i, sense.Preposition)
    of_field = any(field in cursor.lexicon.texts_of_kind(verb.kind) for verb in verbs)
    end = cursor.after(i)
    return end if of_field and (cursor.ended(end) or cursor.is_(end, sense.ModelRef)) else i


def _has(
    cursor: Cursor, field: Field, listed: list[str], *, either: bool, negated: bool
) -> tuple[Where, ...]:
    """Return the condition that the field has these values; of a list that it contains them."""
    if (parted_by := cursor.lexicon.lists.get(field.name)) is not None:
        return _contains(cursor, field, listed, parted_by, either=either, negated=negated)
    if len(listed) == 1:
        return (Where(field=field.name, op="!=" if negated else "=", value=listed[0]),)
    return (Where(field=field.name, op="not in" if negated else "in", value=listed),)


def _contains(
    cursor: Cursor, field: Field, pieces: list[str], parted_by: str, *, either: bool, negated: bool
) -> tuple[Where, ...]:
    """Return the condition that a list contains these pieces, any of them, or none."""
    if negated:
        quoted = [f'"{piece}"' for piece in pieces] if parted_by == JSON else pieces
        return (Where(field=field.name, op=MATCH_NONE, value=quoted),)
    each = [_contains_one(cursor, field, piece, parted_by) for piece in pieces]
    return (Where(any_of=tuple(each)),) if either else tuple(each)


def _contains_one(cursor: Cursor, field: Field, piece: str, parted_by: str) -> Where:
    def like(pattern: str) -> Where:
        return Where(field=field.name, op="like", value=pattern)

    if parted_by == JSON:
        return like(f'"{piece}"')
    within = any(piece in one and piece != one for one in cursor.lexicon.pieces[field.name])
    if not within:
        return like(piece)
    # "Java" is no piece of "JavaScript": the separators are looked for too.
    sides = (f"{piece}{parted_by}%", f"%{parted_by}{piece}", f"%{parted_by} {piece}")
    middle = (f"%{parted_by}{piece}{parted_by}%", f"%{parted_by} {piece}{parted_by}%")
    alone = Where(field=field.name, value=piece)
    return Where(any_of=(alone, *map(like, (*sides, *middle))))


def _chosen(
    cursor: Cursor, i: int, found: Sequence[sense.ValueRef]
) -> tuple[sense.ValueRef, list[sense.ValueRef]]:
    """Return the value that is meant, and the same value of other fields of the same record."""
    options = [one for one in found if one.field.options and "." not in one.field.name]
    first = next(iter(options or found))
    near = [one for one in found if _path(one) == _path(first) and one is not first]
    rivals = list({one.field.name: one for one in near if one.field != first.field}.values())
    if options or not rivals:
        return first, rivals
    title, each = cursor.lexicon.schema.title, (first, *rivals)
    if (
        chosen_by_word := _of_verb_behind(cursor, i, each) or _nationality(cursor, each)
    ) is not None:
        return chosen_by_word, [one for one in each if one is not chosen_by_word]
    if _asks_of_one(cursor, i) and any(one.field.name == title for one in (first, *rivals)):
        chosen = next(one for one in (first, *rivals) if one.field.name == title)
    else:
        chosen = max((first, *rivals), key=lambda one: one.rows)
    return chosen, [one for one in (first, *rivals) if one is not chosen]


def _of_verb_behind(
    cursor: Cursor, i: int, found: Sequence[sense.ValueRef]
) -> sense.ValueRef | None:
    """ "French speaking": return the value of the field that the verb behind it selects."""
    end = cursor.after(i)
    verbs = [] if cursor.is_(end, sense.Filler) else cursor.all(end, sense.Preposition)
    fields = [field for verb in verbs for field in cursor.lexicon.texts_of_kind(verb.kind)]
    return next((one for one in found if one.field in fields), None)


def _nationality(cursor: Cursor, found: Sequence[sense.ValueRef]) -> sense.ValueRef | None:
    """ "French drivers": return the value that is a nationality rather than a language."""
    of_kind = cursor.lexicon.is_kind
    return next((one for one in found if of_kind(one.field, "nationality")), None)


def _asks_of_one(cursor: Cursor, i: int) -> bool:
    """ "how long is the Ohio": return whether a number of one record is requested, and the value
    here names it."""
    end = cursor.after(i)
    model = cursor.take(end, sense.ModelRef)
    stem, last = (
        cursor.lexicon.vocabulary.stem,
        cursor.tokens[(model[1] if model else end) - 1].norm,
    )
    several = model is not None and stem(last) != last
    before = range(i)
    return any(cursor.is_(at, sense.HowMuch) for at in before) and not (
        several or cursor.is_(i - 1, sense.Preposition)
    )


def _alike(cursor: Cursor, chosen: sense.ValueRef, also: Sequence[sense.ValueRef]) -> bool:
    """Return whether the same value of several fields may be any of them: "flights Oslo". A name
    that is the value of another field ("Apple") is not meant by itself."""
    each = (chosen, *also)
    if any(one.field.options or cursor.lexicon.is_kind(one.field, "name") for one in each):
        return False
    if _told_apart(cursor, [one.field.name for one in each]):
        return True
    return all(one.rows == chosen.rows for one in also)


def _path(value: sense.ValueRef) -> str:
    return value.field.name.rpartition(".")[0]


def excepted(cursor: Cursor, draft: Draft, i: int) -> Parsed | None:
    """ "all makes but Volvo"."""
    if not (draft.listing and cursor.is_(i, sense.But)):
        return None
    return values(cursor, cursor.past_one(cursor.after(i), sense.Single), True)


def prepositioned(cursor: Cursor, i: int, negated: bool = False) -> Parsed | None:
    """ "from Oslo", "to Rome": the word before a value selects one of several fields."""
    at = cursor.past_one(cursor.after(i), sense.Filler) if cursor.is_(i, sense.Preposition) else i
    for word in cursor.all(i, sense.Preposition):
        for field in cursor.lexicon.texts_of_kind(word.kind):
            for start in dict.fromkeys((cursor.after(i), at)):
                parsed = values(cursor, start, negated, field)
                if parsed is not None:
                    return replace(parsed, notes=_other_fields(cursor, start, parsed, field))
    return None


def _other_fields(cursor: Cursor, i: int, parsed: Parsed, field: Field) -> tuple[str, ...]:
    """Return a note on other fields with the same value, unless prepositions tell them apart."""
    found = [one for one in cursor.all(i, sense.ValueRef) if one.field.name != field.name]
    path = field.name.rpartition(".")[0]
    names = [one.field.name for one in found if _path(one) == path]
    if not names or _told_apart(cursor, names):
        return parsed.notes
    typed, others = cursor.text(i, cursor.after(i)), " and ".join(dict.fromkeys(names))
    note = f"{typed!r} was looked for in {field.name}; it is also a value of {others}"
    return (*parsed.notes, note)


def _told_apart(cursor: Cursor, names: list[str]) -> bool:
    """Return whether each of the fields has a preposition that selects it: "from", "to"."""
    kinds = cursor.lexicon.vocabulary.file.prepositions
    selected = {one.name for kind in kinds for one in cursor.lexicon.texts_of_kind(kind)}
    return selected.issuperset(names)


def _next_value(cursor: Cursor, i: int, field: Field) -> tuple[str, int] | None:
    at, joined = i, False
    while cursor.is_mark(at, ",") or cursor.is_(at, sense.And, sense.Or):
        at, joined = max(cursor.after(at), at + 1), True
    words = cursor.all(at, sense.Preposition)
    other = bool(words) and all(
        field not in cursor.lexicon.texts_of_kind(word.kind) for word in words
    )
    further = (
        at if other else cursor.past(at, sense.Filler, sense.Link, most=2)
    )  # "to Rome or from Dublin"
    for start in dict.fromkeys((at, further)) if joined else ():
        value = next(
            (
                meaning
                for meaning in cursor.all(start, sense.ValueRef)
                if meaning.field.name == field.name
            ),
            None,
        )
        if value is not None:
            return value.value, cursor.after(start)
    return None
