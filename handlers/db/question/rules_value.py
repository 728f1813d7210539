"""Rules for values that the model is known to have: which field has them, and lists of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from groundhook.core.types.query_language import Where
from groundhook.handlers.db.model.schema import TITLES, Field
from groundhook.handlers.db.question import sense
from groundhook.handlers.db.question.cursor import Cursor
from groundhook.handlers.db.question.lexicon import JSON
from groundhook.handlers.db.question.parsed import Parsed
from groundhook.handlers.db.question.wheres import require_one_of


def values(cursor: Cursor, i: int, of: Field | None = None) -> Parsed | None:
    """ "Apple", "Apple or Samsung", "electronics category", "delivered, shipped and paid"."""
    each = _of_each_field(cursor, i, of)
    if not each:
        return None
    chosen = _chosen(cursor, i, each)
    if _is_deed(cursor, i, chosen.field, chosen.value):
        return None
    listed, end = _listed(cursor, i, chosen)
    either = len(listed) > 1 and any(cursor.is_(at, sense.Or) for at in range(i, end))
    fields, others = _sought_in(cursor, i, each, chosen)
    wheres = [one for field in fields for one in _has(cursor, field, listed, either=either)]
    if len(fields) > 1:
        wheres = [Where(any_of=tuple(wheres))]
    note = _note(cursor.text(i, cursor.after(i)), fields, others)
    return Parsed(end, tuple(wheres), notes=(note,) if others or len(fields) > 1 else ())


def _is_deed(cursor: Cursor, i: int, field: Field, value: str) -> bool:
    """ "who rented the van": return whether a verb in the past is what somebody did, and not the
    option "rented" of a related record."""
    option = bool(field.options) and "." in field.name and cursor.is_(i - 1, sense.Person)
    return option and value.endswith(cursor.lexicon.vocabulary.file.dates.verb_endings)


def _sought_in(
    cursor: Cursor, i: int, each: Sequence[sense.ValueRef], chosen: sense.ValueRef
) -> tuple[list[Field], list[Field]]:
    """Return the fields in which a value is looked for, and the others that have it too."""
    others = [one.field for one in each if one is not chosen]
    if others and not _by_word(cursor, i, each) and _alike(cursor, each):
        return [chosen.field, *others], []
    return [chosen.field], others or _other_titles(cursor, i, chosen)


def _other_titles(cursor: Cursor, i: int, chosen: sense.ValueRef) -> list[Field]:
    """Return the fields of related records with the same value as the title that was chosen: of a
    lake that is called like a state. The title, if a value of theirs was chosen."""
    title = cursor.lexicon.schema.title
    others = [one.field for one in cursor.all(i, sense.ValueRef) if _path(one) != _path(chosen)]
    own, name = chosen.field.name == title, chosen.field.name.rpartition(".")[2]
    titles = (one for one in others if one.name.rpartition(".")[2] in TITLES)
    return list(titles) if own else [one for one in others if one.name == title and name in TITLES]


def _note(typed: str, sought_in: Sequence[Field], others: Sequence[Field]) -> str:
    """Return the note on a value of several fields."""
    fields, also = (
        " and ".join(dict.fromkeys(one.name for one in each)) for each in (sought_in, others)
    )
    note = f"{typed!r} was looked for in {fields}"
    return f"{note}; it is also a value of {also}" if also else note


def _of_each_field(cursor: Cursor, i: int, of: Field | None) -> list[sense.ValueRef]:
    """Return the value that the words here name, and the same value of other fields of the same
    record; those of the field `of`, or of the one named after it, alone."""
    found = [one for one in cursor.all(i, sense.ValueRef) if of in (None, one.field)]
    named = _named_behind(cursor, i, found)
    if named or not found:
        return named[:1]
    first = next((one for one in found if _is_own_option(one)), found[0])
    elsewhere = (one for one in found if _path(one) == _path(first))
    return list({one.field: one for one in (first, *elsewhere, first)}.values())


def _named_behind(cursor: Cursor, i: int, found: Sequence[sense.ValueRef]) -> list[sense.ValueRef]:
    """Return the values whose field is named behind them; in "where was Lincoln found" that field
    is requested, of the record with the title."""
    end, title = cursor.after(i), cursor.lexicon.schema.title
    asked = cursor.is_(i - 1, sense.Auxiliary) and cursor.is_(end, sense.FieldRef)
    titles = [one for one in found if asked and one.field.name == title]
    return titles or [one for one in found if cursor.names(end, one.field)]


def _is_own_option(value: sense.ValueRef) -> bool:
    return bool(value.field.options) and "." not in value.field.name


def _listed(cursor: Cursor, i: int, chosen: sense.ValueRef) -> tuple[list[str], int]:
    """Return the value and those that are listed after it, and the position after the words for
    them and their field."""
    listed, end = [chosen.value], cursor.after(i)
    while (more := _next_value(cursor, end, chosen.field)) is not None:
        listed.append(more[0])
        end = more[1]
    if cursor.names(end, chosen.field):
        end = cursor.after(end)
    return listed, _past_verb(cursor, chosen.field, end)


def _past_verb(cursor: Cursor, field: Field, i: int) -> int:
    """ "English speaking", "die Englisch sprechen": the position after a verb of the field."""
    end = cursor.after(i)
    last = cursor.ended(end) or cursor.is_(end, sense.ModelRef)
    return end if last and field in _of_verb(cursor, i) else i


def _has(cursor: Cursor, field: Field, listed: list[str], *, either: bool) -> tuple[Where, ...]:
    """Return the condition that the field has these values; of a list that it contains them."""
    parted_by = cursor.lexicon.lists.get(field.name)
    if parted_by is None:
        return (require_one_of(field.name, listed),)
    each = [_contains_one(cursor, field, piece, parted_by) for piece in listed]
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


def _chosen(cursor: Cursor, i: int, each: Sequence[sense.ValueRef]) -> sense.ValueRef:
    """Return the value that is meant, of the same value of several fields: the option, the one that
    a word beside it selects, the title if one record is requested, that of most rows."""
    if _is_own_option(each[0]):
        return each[0]
    if (by_word := _by_word(cursor, i, each)) is not None:
        return by_word
    title = cursor.lexicon.schema.title
    titled = next((one for one in each if one.field.name == title), None)
    if titled is not None and _asks_of_one(cursor, i):
        return titled
    return max(each, key=lambda one: one.rows)


def _by_word(cursor: Cursor, i: int, each: Sequence[sense.ValueRef]) -> sense.ValueRef | None:
    """ "French speaking", "French drivers": return the value of the field that the verb behind it
    selects, or the one that is a nationality rather than a language."""
    fields = _of_verb(cursor, cursor.after(i))
    of_verb = next((one for one in each if one.field in fields), None)
    nations = (one for one in each if cursor.lexicon.is_kind(one.field, "nationality"))
    return of_verb or next(nations, None)


def _of_verb(cursor: Cursor, i: int) -> list[Field]:
    """Return the text fields that a verb here selects."""
    return [] if cursor.is_(i, sense.Filler) else selected(cursor, i)


def selected(cursor: Cursor, i: int) -> list[Field]:
    """Return the text fields that a preposition or a verb here selects."""
    words = cursor.all(i, sense.Preposition)
    return [field for word in words for field in cursor.lexicon.texts_of_kind(word.kind)]


def _asks_of_one(cursor: Cursor, i: int) -> bool:
    """ "how long is the Ohio": return whether a number of one record is requested, and the value
    here names it."""
    end = cursor.after(i)
    model = cursor.take(end, sense.ModelRef)
    if (model and not cursor.is_singular(model[1])) or cursor.is_(i - 1, sense.Preposition):
        return False
    return any(cursor.is_(at, sense.HowMuch) for at in range(i))


def _alike(cursor: Cursor, each: Sequence[sense.ValueRef]) -> bool:
    """Return whether a value that several fields have, such as "Oslo" in "flights Oslo", selects
    the rows where any of them has it. A value of a field of options or names never does."""
    if any(one.field.options or cursor.lexicon.is_kind(one.field, "name") for one in each):
        return False
    as_often = len({one.rows for one in each}) == 1
    return as_often or _told_apart(cursor, [one.field for one in each])


def _path(value: sense.ValueRef) -> str:
    return value.field.name.rpartition(".")[0]


def prepositioned(cursor: Cursor, i: int) -> Parsed | None:
    """ "from Oslo", "to Rome": the word before a value selects one of several fields."""
    fields = [] if cursor.is_(i, sense.Not) else selected(cursor, i)  # "outside Rome"
    for field in fields:
        for start in cursor.steps(cursor.after(i), sense.Filler, most=1):
            if _is_own_before(cursor, start, field):
                continue
            if (parsed := values(cursor, start, field)) is not None:
                return replace(parsed, notes=_other_fields(cursor, start, parsed, field))
    return None


def _is_own_before(cursor: Cursor, i: int, field: Field) -> bool:
    """Return whether a value that a preposition would select of related records is one of the
    record's own: boats "from Kiel" have it as their port, whatever the city of the owner. A title
    ("lakes in Florida", of a lake that is called so) is no such value."""
    relation, title = field.name.rpartition(".")[0], cursor.lexicon.schema.title
    if not relation or relation == cursor.about.relation:
        return False
    first = next((one.field.name for one in cursor.all(i, sense.ValueRef)), title)
    return first is not None and "." not in first and first != title


def _other_fields(cursor: Cursor, i: int, parsed: Parsed, field: Field) -> tuple[str, ...]:
    """Return a note on other fields with the same value, unless prepositions tell them apart."""
    path = field.name.rpartition(".")[0]
    near = (one.field for one in cursor.all(i, sense.ValueRef) if _path(one) == path)
    others = [one for one in near if one != field]
    if not others or _told_apart(cursor, others):
        return parsed.notes
    return (*parsed.notes, _note(cursor.text(i, cursor.after(i)), [field], others))


def _told_apart(cursor: Cursor, fields: Sequence[Field]) -> bool:
    """Return whether each of the fields has a preposition that selects it: "from", "to"."""
    kinds = cursor.lexicon.vocabulary.file.prepositions
    selected = [field for kind in kinds for field in cursor.lexicon.texts_of_kind(kind)]
    return all(field in selected for field in fields)


def _next_value(cursor: Cursor, i: int, field: Field) -> tuple[str, int] | None:
    """Return the next value of a list, and the position after it."""
    at = i
    while cursor.is_mark(at, ",") or cursor.is_(at, sense.And, sense.Or):
        at = max(cursor.after(at), at + 1)
    for start in cursor.steps(at, sense.Filler, sense.ValueLink, most=2) if at > i else ():
        for value in cursor.all(start, sense.ValueRef):
            if value.field == field:
                return value.value, cursor.after(start)
        other = cursor.is_(start, sense.Preposition) and field not in selected(cursor, start)
        if other or cursor.is_(start, sense.Pronoun):
            return None  # "to Rome or from Dublin" is no list
    return None
