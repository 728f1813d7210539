"""Checks of one condition for the linter: whether its operator and its values fit the field.
Pure."""

from __future__ import annotations

from typing import Any

from groundhook.core.errors import SourceError
from groundhook.handlers.db.model.coerce import coerce
from groundhook.handlers.db.model.schema import Field, Route
from groundhook.handlers.db.query.dsl import LISTS, ORDERED

MAX_VALUES = 1000  # of one condition


class InvalidPart(Exception):
    """A problem of one part of a query; the linter adds its position. `within` is the key of the
    part that has it: `.related`."""

    def __init__(self, code: str, message: str, hint: str = "", within: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.hint, self.within = code, message, hint, within


def check_operator(name: str, of: Field, op: str) -> None:
    """Raise InvalidPart if the field does not support the operator."""
    if of.kind == "json" and op != "like":
        raise InvalidPart(
            "DSL004",
            f"the field {name!r} is JSON, which supports only 'like', 'null' and 'not null'",
        )
    if (op == "like" and of.kind not in ("text", "json")) or (
        op in ORDERED and of.kind == "boolean"
    ):
        raise InvalidPart(
            "DSL004",
            f"the operator {op!r} cannot be used on {name!r}, which is {KIND_NAMES[of.kind]}",
        )


def check_value(name: str, of: Field, op: str, value: Any) -> Any:
    """Return the condition's value in the type of the field. Raises InvalidPart if it does not
    fit."""
    if value is None:
        raise InvalidPart("DSL005", f"the operator {op!r} on {name!r} needs a value")
    if op not in LISTS:
        return str(value) if op == "like" and of.kind == "json" else coerce_value(of, value)
    if not isinstance(value, (list, tuple)):
        raise InvalidPart("DSL005", f"the operator {op!r} on {name!r} needs a list, not {value!r}")
    if op == "between" and len(value) != 2:
        raise InvalidPart(
            "DSL005", f"'between' on {name!r} needs a list of two values, not {len(value)}"
        )
    if len(value) > MAX_VALUES:
        raise InvalidPart(
            "DSL009",
            f"the operator {op!r} on {name!r} takes at most {MAX_VALUES} values, not {len(value)}",
        )
    return [coerce_value(of, one) for one in value]


def coerce_value(of: Field, value: Any) -> Any:
    """Convert one value to the type of the field. Raises InvalidPart if it does not fit."""
    try:
        return coerce(of, value)
    except SourceError as exc:
        hint = f"such as {_EXAMPLES[of.kind]}" if of.kind in _EXAMPLES else ""
        raise InvalidPart("DSL005", exc.message, hint) from None


_EXAMPLES = {
    "date": "2026-11-22",
    "moment": "2026-11-22 17:30",
    "integer": "5",
    "number": "9.99",
    "boolean": "true",
}


def field_hint(found: Route) -> str:
    """The hint for a relation where a field is needed."""
    return f"name one of its fields: {', '.join(each.name for each in found.schema.visible)}"


KIND_NAMES = {
    "text": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "date": "a date",
    "moment": "a date with time",
    "json": "JSON",
}
