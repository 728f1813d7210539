"""Arguments of a tool held against its JSON Schema. The one module that knows the library for that,
which takes a tenth of a second to import: it is imported when the first tool of a server is called.

The schema comes from a server. What could make the host wait or reach out is left to that server:
regular expressions, which can take for ever and are of another dialect, and references to other
documents. A schema that is none checks nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from groundhook.host.core.types.base import dotted

MOST_PROBLEMS = 5
LONGEST_PROBLEM = 200  # characters; the library quotes values whole


def problems_of(arguments: Mapping[str, Any], validator: Validator | None) -> list[str]:
    """What is wrong with the arguments, worded for a model to mend them; nothing when all is well.
    `validator` is what `validator_of` made of the schema, which takes longer than the check."""
    if validator is None:
        return []
    try:
        found = sorted(
            _first(validator.iter_errors(dict(arguments))),
            key=lambda error: [str(step) for step in error.path],
        )
    except (
        Unresolvable,
        RecursionError,
        ArithmeticError,
    ):  # the last: a number too large to be a multiple of a fraction
        return []
    return [_worded(error) for error in found]


def validator_of(schema: Mapping[str, Any]) -> Validator | None:
    """None for a schema that is none."""
    known = validator_for(schema, default=Draft202012Validator)
    left = dict.fromkeys(("pattern", "patternProperties", "unevaluatedProperties"), _unchecked)
    kind = extend(
        known,
        {
            **left,
            "additionalProperties": _unless_patterns(known.VALIDATORS["additionalProperties"]),
        },
    )
    try:
        known.check_schema(schema)
    except (SchemaError, RecursionError):
        return None
    made: Validator = kind(schema, registry=Registry())
    return made


def _unchecked(*_: Any) -> Iterator[ValidationError]:
    return iter(())


def _unless_patterns(check: Any) -> Any:
    def additional(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        return () if "patternProperties" in schema else check(validator, value, instance, schema)

    return additional


def _first(errors: Iterator[ValidationError]) -> Iterator[ValidationError]:
    return (error for error, _ in zip(errors, range(MOST_PROBLEMS), strict=False))


def _worded(error: ValidationError) -> str:
    message = " ".join(error.message.split())
    short = message if len(message) <= LONGEST_PROBLEM else f"{message[:LONGEST_PROBLEM]}…"
    return f"{dotted(tuple(error.absolute_path)) or 'arguments'}: {short}"
