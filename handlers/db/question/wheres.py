"""Conditions joined, and their opposites. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groundhook.core.types.query_language import Where
from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.query.dsl import MATCH_NONE, conditions
from groundhook.handlers.db.question.scope import NUMBERS

OPPOSITE = {
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
    "=": "!=",
    "!=": "=",
    "in": "not in",
    "not in": "in",
    "null": "not null",
    "not null": "null",
}
AROUND_PIECE = "%,;| "  # what a pattern may have around a piece of a list


def require_all(wheres: Sequence[Where]) -> Where:
    """Return one condition that holds where all of these hold."""
    return wheres[0] if len(wheres) == 1 else Where(all_of=tuple(wheres))


def require_any(parts: Sequence[Where]) -> Where:
    """Return one condition that holds where any of these holds."""
    return parts[0] if len(parts) == 1 else Where(any_of=tuple(parts))


def require_one_of(field: str, values: Sequence[object]) -> Where:
    found = tuple(dict.fromkeys(values))
    if len(found) == 1:
        return Where(field=field, op="=", value=found[0])
    return Where(field=field, op="in", value=found)


def has_opposite(wheres: Sequence[Where]) -> bool:
    """Return whether there are conditions, and a query can express that not all of them hold. It
    cannot for the beginning of a text, or for what a text of a related record contains."""
    return bool(wheres) and not any(
        "." in where.field or where.value == f"{str(where.value).strip(AROUND_PIECE)}%"
        for where in conditions(wheres)
        if where.op == "like"
    )


def opposite(wheres: Sequence[Where], fields: Mapping[str, Field]) -> tuple[Where, ...]:
    """Return the conditions that hold where not all of these hold. A record without a value meets
    none of these, but no bound of a number. Of a list "not A and B" is neither. `has_opposite` must
    be true of them."""
    against: list[Where] = []
    for where in wheres:
        against += [one for one in _against(where, fields) if one not in against]
    against.sort(key=lambda one: one.op == "null")
    merged = _merge_excluded(against)
    if len(merged) == 1:
        return tuple(merged[0].all_of or merged)
    return (Where(any_of=tuple(merged)),)


def _against(where: Where, fields: Mapping[str, Field]) -> list[Where]:
    """Return the conditions of which one holds wherever this one does not."""
    if where.all_of is not None:
        return [require_all(opposite(where.all_of, fields))]
    if where.any_of is not None:
        each = [require_all(opposite([one], fields)) for one in where.any_of]
        return [require_all(_merge_excluded(each))]
    field = fields.get(where.field)
    against = _values_against(where)
    compared = where.op in ("<", "<=", ">", ">=", "between")
    if field is None or not field.nullable or not compared:
        return against
    bound = field.kind in NUMBERS and where.op != "between"
    return against if bound else [*against, Where(field=field.name, op="null")]


def _values_against(where: Where) -> list[Where]:
    """Return the conditions of which a value meets one if it does not meet this one."""
    name, op, value = where.field, where.op, where.value
    if op == "like":
        return [Where(field=name, op=MATCH_NONE, value=(value.strip(AROUND_PIECE),))]
    if isinstance(value, bool):
        return [Where(field=name, value=not value)]
    if op == "between":
        bounds = zip(("<", ">"), value, strict=True)
        return [Where(field=name, op=beyond, value=bound) for beyond, bound in bounds]
    return [Where(field=name, op=OPPOSITE[op], value=value)]


def _merge_excluded(wheres: Sequence[Where]) -> list[Where]:
    """Return the conditions with those merged that lists lack some pieces."""
    excluded = [where for where in wheres if where.op == MATCH_NONE]
    if len(excluded) < len(wheres) or len({where.field for where in wheres}) > 1:
        return list(wheres)
    pieces = list(dict.fromkeys(piece for where in excluded for piece in where.value))
    return [Where(field=excluded[0].field, op=MATCH_NONE, value=tuple(pieces))]
