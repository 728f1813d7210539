"""Validation of a tool's arguments against its JSON Schema. The only module that imports
jsonschema; it is itself imported by the first call of a tool, since the library takes a tenth of a
second to import.

The schema comes from a server and is untrusted. Keywords that could block the host or make it send
requests are left to the server: regular expressions, which can take unbounded time and have another
dialect, and references to other documents. An invalid schema checks nothing. The time of a check is
limited, since references and alternatives can multiply each other without end; callers run checks
in a thread.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from groundhook.core.types.base import dotted

MAX_PROBLEMS = 5
MAX_PROBLEM_CHARS = 200  # the library quotes whole values
SECONDS = 0.5  # of processor time, for a check of arguments and for that of a schema

_SKIPPED = ("pattern", "patternProperties", "unevaluatedItems", "unevaluatedProperties")
_end: ContextVar[float] = ContextVar("end of the check, in processor time of its thread")


class TooLong(Exception):
    """A check that takes longer than it may."""


def problems_of(arguments: Mapping[str, Any], validator: Validator | None) -> list[str]:
    """Return at most MAX_PROBLEMS problems of the arguments, worded so that a model can correct
    them; empty if they are valid. `validator` comes from `validator_of`, which takes longer than
    the check and is worth caching. Arguments whose check takes too long are a problem."""
    if validator is None:
        return []
    try:
        with _limited_time():
            errors = sorted(
                _first(validator.iter_errors(dict(arguments))),
                key=lambda error: [str(step) for step in error.path],
            )
    # ArithmeticError: `multipleOf` with a fraction and a number that is too large.
    except (Unresolvable, RecursionError, ArithmeticError):
        return []
    except TooLong:
        return ["the arguments cannot be checked against this schema: it takes too long"]
    return [_describe(error) for error in errors]


def validator_of(schema: Mapping[str, Any]) -> Validator | None:
    """Return a validator for a schema, or None if the schema is invalid, or too large to check."""
    known: Any = validator_for(schema, default=Draft202012Validator)
    try:
        with _limited_time():
            if not _bounded(known)(known.META_SCHEMA, registry=Registry()).is_valid(schema):
                return None
    except (RecursionError, TooLong):
        return None
    made: Validator = _bounded(known)(schema, registry=Registry())
    return made


def schema_problem(schema: Mapping[str, Any]) -> str:
    """Return why arguments are not checked against a schema; "" if they are."""
    validator = validator_of(schema)
    if validator is None:
        return "is not a valid JSON Schema, or too large to check"
    try:
        with _limited_time():
            list(_first(validator.iter_errors({})))
    except RecursionError:
        return "refers to itself without end"
    except TooLong:
        return "takes too long to check"
    except (Unresolvable, ArithmeticError):
        pass  # the first is reported below
    parts = list(_objects(schema))
    known = {part["$id"].partition("#")[0] for part in parts if isinstance(part.get("$id"), str)}
    for part in parts:
        ref = part.get("$ref")
        if isinstance(ref, str) and ref.partition("#")[0] not in {"", *known}:
            return f"refers to another document, which is not read: {ref[:MAX_PROBLEM_CHARS]!r}"
    return ""


def _objects(schema: Any) -> Iterator[Mapping[str, Any]]:
    left = [schema]
    while left:
        part = left.pop()
        if isinstance(part, Mapping):
            yield part
            left += part.values()
        elif isinstance(part, list):
            left += part


@cache
def _bounded(known: Any) -> Any:
    """Return a dialect without the keywords that could block the host, whose time is limited."""
    checks = {
        **known.VALIDATORS,
        **dict.fromkeys(_SKIPPED, _skip_check),
        "uniqueItems": _unique_items,
        "additionalProperties": _skip_with_patterns(known.VALIDATORS["additionalProperties"]),
    }
    kind: Any = extend(known, {name: _timed(check) for name, check in checks.items()})
    kind.evolve = _evolve
    return kind


def _evolve(self: Any, **changes: Any) -> Any:
    """Return the same validator for a part of the schema. The library's own takes another, whose
    time is not limited, for a part with its own `$schema`."""
    kept = {"schema": self.schema, "registry": self._registry, "_resolver": self._resolver}
    return type(self)(**{**kept, **changes})


@contextmanager
def _limited_time() -> Iterator[None]:
    token = _end.set(time.thread_time() + SECONDS)
    try:
        yield
    except BaseException as exc:
        # The library's maps are written in Rust, where the end of the stack is no RecursionError.
        if type(exc).__name__ == "PanicException":
            raise RecursionError from None
        raise
    finally:
        _end.reset(token)


def _timed(check: Any) -> Any:
    def timed(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        if time.thread_time() > _end.get():
            raise TooLong
        return check(validator, value, instance, schema)

    return timed


def _unique_items(_: Any, wanted: Any, items: Any, __: Any) -> Iterator[ValidationError]:
    """The library's own compares each item with each other one."""
    if wanted and isinstance(items, list):
        written = [json.dumps(_comparable(item), sort_keys=True, default=str) for item in items]
        if len(set(written)) < len(items):
            yield ValidationError(f"{items!r} has non-unique elements")


def _comparable(value: Any) -> Any:
    """Return a value whose JSON text is that of each equal one: 1.0 is 1."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_comparable(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _comparable(entry) for key, entry in value.items()}
    return value


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
