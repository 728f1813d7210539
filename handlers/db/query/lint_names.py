"""What the names in a query lead to: a field or a relation, of the model or of a related one, and
the field of a figure. Pure; a name that leads nowhere raises InvalidPart."""

from __future__ import annotations

from collections.abc import Mapping

from groundhook.core.errors import suggestion
from groundhook.core.types.query_language import Aggregate
from groundhook.handlers.db.model.schema import MAX_HOPS, NUMBERS, Field, Route, Schema, route
from groundhook.handlers.db.query.dsl import EVERY_TEXT
from groundhook.handlers.db.query.lint_values import KIND_NAMES, InvalidPart, field_hint


def route_of(schema: Schema, name: str, schemas: Mapping[str, Schema]) -> Route:
    """Return the route of a name."""
    found = route(schema, name, schemas)
    if found is None:
        here, wrong = _furthest(schema, name, schemas)
        names = [each.name for each in here.visible] + [f"{each}.…" for each in here.relations]
        raise InvalidPart(
            "DSL001", f"the model {here.id!r} has no field {wrong!r}", suggestion(wrong, names)
        )
    if len(found.hops) > MAX_HOPS:
        raise InvalidPart(
            "DSL006",
            f"{name!r} follows {len(found.hops)} relations; at most {MAX_HOPS} are allowed",
        )
    return found


def single_route(schema: Schema, name: str, schemas: Mapping[str, Schema]) -> Route:
    """Return the route of a name to a field with one value for each record."""
    found = route_of(schema, name, schemas)
    if found.field is None:
        raise InvalidPart("DSL006", f"{name!r} is a relation, not a field", field_hint(found))
    if found.many:
        many = next(hop for hop in found.hops if hop.many)
        raise InvalidPart(
            "DSL006",
            f"{name!r} leads to many records",
            f"use it in conditions, or query the model {many.model!r} instead",
        )
    return found


def check_aggregate(
    here: Schema, one: Aggregate, schemas: Mapping[str, Schema], within: str = ""
) -> Field | None:
    """Return the field that a figure is computed of; None for the number of records. Raises
    InvalidPart if it cannot be computed."""
    at = f"{within}.field"
    if one.field == EVERY_TEXT:
        if one.function != "count" or one.distinct:
            message = f"{one.function!r} needs a field; only records are counted with '*'"
            raise InvalidPart("DSL007", message, "", at)
        return None
    found = single_route(here, one.field, schemas)
    of = found.field
    assert of is not None
    if (one.function in ("sum", "avg") and of.kind not in NUMBERS) or (
        one.function != "count" and of.kind in ("json", "boolean")
    ):
        names = [each.name for each in found.schema.visible if each.kind in NUMBERS]
        raise InvalidPart(
            "DSL007",
            f"{one.function!r} of {one.field!r} cannot be computed: it is {KIND_NAMES[of.kind]}",
            f"numbers: {', '.join(names) or 'none'}",
            at,
        )
    return of


def _furthest(here: Schema, name: str, schemas: Mapping[str, Schema]) -> tuple[Schema, str]:
    """Return the last model that a name reaches, and the unknown part of the name."""
    while "." in name:
        head, _, rest = name.partition(".")
        relation = here.relations.get(head)
        if relation is None or any(model not in schemas for model in relation.models):
            break
        here, name = schemas[relation.model], rest
    return here, name
