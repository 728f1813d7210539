"""Validation of a tool's arguments against its JSON Schema. The only module that imports
jsonschema; it is itself imported by the first call of a tool, since the library takes a tenth of a
second to import.

The schema comes from a server and is untrusted. Keywords that could block the host or make it send
requests are left to the server: regular expressions, which can take unbounded time and have another
dialect, and references to other documents. An invalid schema checks nothing.
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

MAX_PROBLEMS = 5
MAX_PROBLEM_CHARS = 200  # the library quotes whole values


def problems_of(arguments: Mapping[str, Any], validator: Validator | None) -> list[str]:
    """Return at most MAX_PROBLEMS problems of the arguments, worded so that a model can correct
    them; empty if they are valid. `validator` comes from `validator_of`, which takes longer than
    the check and is worth caching."""
    if validator is None:
        return []
    try:
        errors = sorted(
            _first(validator.iter_errors(dict(arguments))),
            key=lambda error: [str(step) for step in error.path],
        )
    # ArithmeticError: `multipleOf` with a fraction and a number that is too large.
    except (Unresolvable, RecursionError, ArithmeticError):
        return []
    return [_describe(error) for error in errors]


def validator_of(schema: Mapping[str, Any]) -> Validator | None:
    """Return a validator for a schema, or None if the schema is invalid."""
    known = validator_for(schema, default=Draft202012Validator)
    skipped = dict.fromkeys(("pattern", "patternProperties", "unevaluatedProperties"), _skip_check)
    kind = extend(
        known,
        {
            **skipped,
            "additionalProperties": _skip_with_patterns(known.VALIDATORS["additionalProperties"]),
        },
    )
    try:
        known.check_schema(schema)
    except (SchemaError, RecursionError):
        return None
    made: Validator = kind(schema, registry=Registry())
    return made


def _skip_check(*_: Any) -> Iterator[ValidationError]:
    return iter(())


def _skip_with_patterns(check: Any) -> Any:
    def additional(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        return () if "patternProperties" in schema else check(validator, value, instance, schema)

    return additional


def _first(errors: Iterator[ValidationError]) -> Iterator[ValidationError]:
    return (error for error, _ in zip(errors, range(MAX_PROBLEMS), strict=False))


def _describe(error: ValidationError) -> str:
    message = " ".join(error.message.split())
    short = message if len(message) <= MAX_PROBLEM_CHARS else f"{message[:MAX_PROBLEM_CHARS]}…"
    return f"{dotted(tuple(error.absolute_path)) or 'arguments'}: {short}"
