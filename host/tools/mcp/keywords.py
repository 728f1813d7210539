"""Keywords of JSON Schema whose checks by the library have no bound: patterns, here by RE2 in time
that grows as the text does, and comparisons of each entry with each other.

Patterns of JSON Schema are ECMAScript's. One that RE2 does not read (with look-around or a back
reference, or too large) is not checked.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import re2
from jsonschema.exceptions import ValidationError

MOST_STEPS = 10_000_000  # of one search: a quarter of a second
_ESCAPED = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|.)", re.DOTALL)
_OPTIONS = re2.Options()
_OPTIONS.max_mem = 1 << 20  # bytes of one compiled pattern
_OPTIONS.log_errors = False


class TooLong(Exception):
    """A check that takes longer than it may."""


end: ContextVar[float] = ContextVar("end of the check, in processor time of its thread")


def require_time() -> None:
    """Raise TooLong if the check has taken as long as it may."""
    if time.thread_time() > end.get():
        raise TooLong


def is_readable(pattern: str) -> bool:
    """Return whether a pattern is checked. Raises TooLong."""
    require_time()  # a large one takes 15 ms to compile
    return _compiled(pattern) is not None


def _compiled(pattern: str) -> Any:
    """Return a pattern in RE2's dialect, compiled; None if it cannot be read."""
    text = _ESCAPED.sub(lambda found: rf"\x{{{found[1]}}}" if found[1] else found[0], pattern)
    try:
        return re2.compile(text, _OPTIONS)
    except (re2.error, UnicodeEncodeError):
        return None


def _matches(pattern: str, text: str) -> bool | None:
    """Return whether a pattern is found in a text; None for one that cannot be read. Raises
    TooLong."""
    require_time()
    compiled = _compiled(pattern)
    if compiled is None:
        return None
    if compiled.programsize * len(text) > MOST_STEPS:
        raise TooLong
    return compiled.search(text.encode(errors="replace").decode()) is not None


def _pattern(_: Any, pattern: Any, text: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(text, str) and _matches(pattern, text) is False:
        yield ValidationError(f"{text!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Any, instance: Any, _: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, Mapping):
        return
    for pattern, part in patterns.items():
        for name, value in instance.items():
            if _matches(pattern, name):
                yield from validator.descend(value, part, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, wanted: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, Mapping):
        return
    known = _named(instance, schema)
    yield from _none_left(validator, wanted, instance, known, "Additional properties")


def _unevaluated(
    validator: Any, wanted: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, Mapping):
        known = _evaluated(validator, instance, _without(schema, "unevaluatedProperties"))
        yield from _none_left(validator, wanted, instance, known, "Unevaluated properties")


def _unevaluated_items(
    validator: Any, wanted: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, list):
        known = _evaluated(validator, instance, _without(schema, "unevaluatedItems"))
        entries = dict(enumerate(instance))
        yield from _none_left(validator, wanted, entries, known, "Unevaluated items")


def _without(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: part for key, part in schema.items() if key != name}


def _none_left(
    validator: Any, wanted: Any, entries: Mapping[Any, Any], known: set[Any], what: str
) -> Iterator[ValidationError]:
    """Yield what is wrong with the entries that no other keyword knows."""
    rest = [key for key in entries if key not in known]
    if wanted is False and rest:
        yield ValidationError(f"{what} are not allowed: {', '.join(map(repr, rest[:5]))}")
    elif isinstance(wanted, Mapping):
        for key in rest:
            yield from validator.descend(entries[key], wanted, path=key)


def _named(instance: Mapping[str, Any], schema: Mapping[str, Any]) -> set[Any]:
    """Return the names of an object that `properties` or `patternProperties` of a schema name; all
    of them if a pattern cannot be read."""
    known: set[Any] = set(instance.keys() & schema.get("properties", {}).keys())
    for pattern in schema.get("patternProperties", ()):
        if not is_readable(pattern):
            return set(instance)
        known |= {name for name in instance if _matches(pattern, name)}
    return known


def _evaluated(validator: Any, instance: Any, schema: Any) -> set[Any]:
    """Return the names or places of an instance that the keywords of a schema evaluate, with those
    of the parts that hold for the same instance."""
    require_time()  # references can lead to one part by many ways
    if not isinstance(schema, Mapping):
        return set()
    known = _own(validator, instance, schema)
    for name in ("$ref", "$dynamicRef"):
        if name in schema:
            found = validator._resolver.lookup(schema[name])  # as the library's own keywords
            inner = validator.evolve(schema=found.contents, _resolver=found.resolver)
            known |= _evaluated(inner, instance, found.contents)
    for part in _holding(validator, instance, schema):
        known |= _evaluated(validator, instance, part)
    return known


def _own(validator: Any, instance: Any, schema: Mapping[str, Any]) -> set[Any]:
    if isinstance(instance, Mapping):
        if "additionalProperties" in schema or "unevaluatedProperties" in schema:
            return set(instance)
        return _named(instance, schema)
    before = schema.get("prefixItems", schema.get("items"))  # a list before the draft of 2020
    listed = isinstance(before, Sequence)
    if {"additionalItems", "unevaluatedItems"} & schema.keys() or (
        "items" in schema and not isinstance(schema["items"], list)
    ):
        return set(range(len(instance)))
    known: set[Any] = set(range(len(before))) if listed and before else set()
    if "contains" in schema:
        wanted = schema["contains"]
        known |= {n for n, each in enumerate(instance) if _holds(validator, each, wanted)}
    return known


def _holding(validator: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the parts of a schema that hold for the same instance."""
    for keyword in ("allOf", "anyOf", "oneOf"):
        parts = schema.get(keyword, ())
        yield from (part for part in parts if _holds(validator, instance, part))
    if "if" in schema:
        holds = _holds(validator, instance, schema["if"])
        if holds:
            yield schema["if"]
        yield schema.get("then" if holds else "else")
    if isinstance(instance, Mapping):
        for name, part in schema.get("dependentSchemas", {}).items():
            if name in instance:
                yield part


def _holds(validator: Any, instance: Any, schema: Any) -> bool:
    return next(iter(validator.descend(instance, schema)), None) is None


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


BOUNDED: Mapping[str, Any] = {
    "additionalProperties": _additional_properties,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "unevaluatedItems": _unevaluated_items,
    "unevaluatedProperties": _unevaluated,
    "uniqueItems": _unique_items,
}
