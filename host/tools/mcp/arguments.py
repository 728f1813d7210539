"""Validation of a tool's arguments against its JSON Schema. The only module that imports
jsonschema; it is itself imported by the first call of a tool, since the library takes a tenth of a
second to import.

The schema comes from a server and is untrusted. References to other documents, which would make the
host send requests, are left to the server. An invalid schema checks nothing. The time of a check is
limited, since references and alternatives can multiply each other without end; callers run checks
in a thread. Validators written in Rust (jsonschema-rs) are quicker, but nothing can end a check of
theirs, and they hold Python's lock meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import unquote

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from groundhook.core.types.base import dotted
from groundhook.host.tools.mcp.keywords import BOUNDED, TooLong, end, is_readable, require_time

MAX_PROBLEMS = 5
MAX_PROBLEM_CHARS = 200  # the library quotes whole values
SECONDS = 0.5  # of processor time, for a check of arguments and for that of a schema

# ArithmeticError: `multipleOf` with a fraction and a number that is too large. The last two: a part
# under a keyword that is unknown, which nothing has checked, and to which a reference leads.
_LEFT_ALONE = (Unresolvable, RecursionError, ArithmeticError, AttributeError, TypeError)


def problems_of(
    arguments: Mapping[str, Any], validator: Validator | None, whole: str = "arguments"
) -> list[str]:
    """Return at most MAX_PROBLEMS problems of the arguments, worded so that a model can correct
    them; empty if they are valid. `validator` comes from `validator_of`, which takes longer than
    the check and is worth caching. Arguments whose check takes too long are a problem. `whole` is
    the path of the value itself; "": its problems have none."""
    if validator is None:
        return []
    try:
        with _limited_time():
            errors = sorted(
                _first(validator.iter_errors(dict(arguments))),
                key=lambda error: [str(step) for step in error.path],
            )
    except _LEFT_ALONE:
        return []
    except TooLong:
        return [f"the {whole or 'value'} cannot be checked against this schema: it takes too long"]
    return [_describe(error, whole) for error in errors]


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
        return _without_end(_endless_reference(schema))
    except TooLong:
        return "takes too long to check"
    except _LEFT_ALONE:
        pass  # the first is reported below
    parts = list(_objects(schema))
    known = {part["$id"].partition("#")[0] for part in parts if isinstance(part.get("$id"), str)}
    for part in parts:
        ref = part.get("$ref")
        if isinstance(ref, str) and ref.partition("#")[0] not in {"", *known}:
            return f"refers to another document, which is not read: {ref[:MAX_PROBLEM_CHARS]!r}"
        if isinstance(ref, str) and ref[:2] == "#/" and not known and _target(schema, ref) is None:
            return f"refers to a part that it does not have: {ref[:MAX_PROBLEM_CHARS]!r}"
    endless = _endless_reference(schema)  # also in a part that the empty object does not reach
    return _without_end(endless) if endless else ""


def unchecked_keywords(schema: Mapping[str, Any]) -> list[str]:
    """Return the keywords of a schema that are not checked, each once: patterns that cannot be
    read, and `format`, which JSON Schema takes for a note."""
    found = (
        ["format"] if any(isinstance(each.get("format"), str) for each in _objects(schema)) else []
    )
    try:
        with _limited_time():
            return [*found, *dict.fromkeys(_unreadable(schema))]
    except TooLong:
        return [*found, "pattern", "patternProperties"]


def _unreadable(schema: Mapping[str, Any]) -> Iterator[str]:
    for part in _objects(schema):
        # A property may have such a name, too: its schema is an object, but a pattern is a text.
        if isinstance(part.get("pattern"), str) and not is_readable(part["pattern"]):
            yield "pattern"
        names = part.get("patternProperties")
        if isinstance(names, Mapping) and not all(map(is_readable, names)):
            yield "patternProperties"


def _without_end(reference: str) -> str:
    place = f": {reference[:MAX_PROBLEM_CHARS]!r}" if reference else ""
    return f"refers to itself without end{place}"


def _endless_reference(schema: Mapping[str, Any]) -> str:
    """Return a reference that leads back to itself by parts of a schema that hold for the same
    value, so that no check of it ends; "" if there is none, or a part is a document of its own."""
    parts = list(_objects(schema))
    if any(isinstance(part.get("$id"), str) for part in parts[1:]):
        return ""
    done: set[int] = set()
    for part in parts:
        # The parts on the way, each with the reference that led to it ("": none) and what is left.
        way = {id(part): ("", _held_together(schema, part))}
        while way:
            last, (_, left) = next(reversed(way.items()))
            ref, following = next(left, ("", None))
            if following is None:
                done.add(last)
                del way[last]
            elif id(following) in way:
                begun = list(way).index(id(following)) + 1
                led = [entered for entered, _ in way.values()][begun:]
                return next(filter(None, [*led, ref]))  # without a reference there is no way back
            elif id(following) not in done:
                way[id(following)] = (ref, _held_together(schema, following))
    return ""


def _held_together(
    schema: Mapping[str, Any], part: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the parts that hold for the same value as a part, each with its reference or ""."""
    ref = part.get("$ref")
    if isinstance(ref, str) and isinstance(target := _target(schema, ref), Mapping):
        yield ref, target
    found: list[Any] = [part.get(key) for key in ("not", "if", "then", "else")]
    for key in ("allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies"):
        listed = part.get(key)
        if isinstance(listed, Mapping):
            found += listed.values()
        elif isinstance(listed, list):
            found += listed
    yield from (("", each) for each in found if isinstance(each, Mapping))


def _target(schema: Any, ref: str) -> Any:
    """Return what a reference within a document names (a JSON pointer), or None."""
    head, *steps = unquote(ref).split("/")
    if head != "#":
        return None
    for step in steps:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(schema, Mapping):
            schema = schema.get(name)
        elif isinstance(schema, list) and name.isdecimal() and len(name) < 7:
            schema = schema[int(name)] if int(name) < len(schema) else None
        else:
            return None
    return schema


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
    """Return a dialect whose time is limited."""
    own = {name: check for name, check in BOUNDED.items() if name in known.VALIDATORS}
    checks = {**known.VALIDATORS, **own}
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
    token = end.set(time.thread_time() + SECONDS)
    try:
        yield
    except BaseException as exc:
        # The library's maps are written in Rust, where the end of the stack is no RecursionError.
        if type(exc).__name__ == "PanicException":
            raise RecursionError from None
        raise
    finally:
        end.reset(token)


def _timed(check: Any) -> Any:
    def timed(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        require_time()
        return check(validator, value, instance, schema)

    return timed


def _first(errors: Iterator[ValidationError]) -> Iterator[ValidationError]:
    return (error for error, _ in zip(errors, range(MAX_PROBLEMS), strict=False))


def _describe(error: ValidationError, whole: str) -> str:
    message = " ".join(error.message.split())
    short = message if len(message) <= MAX_PROBLEM_CHARS else f"{message[:MAX_PROBLEM_CHARS]}…"
    path = dotted(tuple(error.absolute_path)) or whole
    return f"{path}: {short}" if path else short
