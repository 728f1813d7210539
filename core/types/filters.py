"""Filters on payload fields: from the JSON of hooks and requests to conditions for the engines.
Pure.

    {"year": 2024}                          equals
    {"tag": ["a", "b"]}                     one of
    {"year": {"gte": 2020, "lt": 2024}}     a range: gt, gte, lt, lte
    {"author": {"exists": true}}            the field has a value; {"author": null}: it has none
    {"tag": {"not": "draft"}}               none of a field's conditions: a value, a list or a range
    {"year": 2024, "tag": "a"}              all of them
    {"and": [{…}, {…}]}, {"or": […]}, {"not": {…}}

`parse_filter` checks the form alone; `fit_filter` checks it against the fields that a collection
declares and returns a few simple kinds of conditions. A field with several values fulfils a
condition if one of them does. A field without a value fulfils no condition, and therefore each
`not`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, assert_never

from groundhook.core.errors import UsageError, suggestion
from groundhook.core.types.fields import FieldType, Scalar, scalar_value

DOCUMENT = "document_id"  # a field of every collection: the document's id
RANGES = ("gt", "gte", "lt", "lte")
WORDS = ("and", "or", "not")  # no field can have such a name
OPERATORS = (*RANGES, "eq", "in", "exists", "not")
_MOST, _DEEPEST = 1000, 16  # conditions of one filter, and levels of nesting


@dataclass(frozen=True)
class OneOf:
    """The field has one of the values, which are of one type: text, whole numbers or booleans.
    Without values it never holds."""

    field: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True)
class Range:
    """The field has a value between bounds: numbers, or moments as text in UTC. None: no bound."""

    field: str
    gt: float | str | None = None
    gte: float | str | None = None
    lt: float | str | None = None
    lte: float | str | None = None


@dataclass(frozen=True)
class Exists:
    """The field has a value."""

    field: str


@dataclass(frozen=True)
class Not:
    """The condition does not hold."""

    one: Filter


@dataclass(frozen=True)
class Both:
    """Conditions of which all must hold (`and`), or at least one (`or`); never empty."""

    kind: Literal["and", "or"]
    parts: tuple[Filter, ...]


Filter = OneOf | Range | Exists | Not | Both


def parse_filter(raw: Any) -> Filter | None:
    """Return the filter in its JSON; None for one without conditions. Raises UsageError for a wrong
    form, with the path."""
    return _Parser().filter(raw, "filter", 0)


def fit_filter(filter: Filter, fields: Mapping[str, FieldType], collection: str) -> Filter:
    """Return the filter with its values converted to the types of the declared fields. Raises
    UsageError for a field that is not declared, and for a value or a range that does not fit."""
    match filter:
        case Not(one):
            return Not(fit_filter(one, fields, collection))
        case Both(kind, parts):
            return Both(kind, tuple(fit_filter(part, fields, collection) for part in parts))
        case OneOf() | Range() | Exists():
            if filter.field not in fields:
                raise UsageError(
                    f"collection {collection!r} has no filterable field {filter.field!r}",
                    hint=suggestion(filter.field, [*fields]),
                )
            try:
                return _fit(filter, fields[filter.field])
            except ValueError as exc:
                raise UsageError(
                    f"filter.{filter.field}: {exc}", hint=_declaration_hint(fields[filter.field])
                ) from exc
        case _:
            assert_never(filter)


def dumped(filter: Filter) -> list[Any]:
    """Return a filter as plain lists, for a message to another process."""
    match filter:
        case OneOf(field, values):
            return ["in", field, list(values)]
        case Range(field):
            return ["range", field, [getattr(filter, bound) for bound in RANGES]]
        case Exists(field):
            return ["exists", field]
        case Not(one):
            return ["not", dumped(one)]
        case Both(kind, parts):
            return [kind, [dumped(part) for part in parts]]
        case _:
            assert_never(filter)


def loaded(raw: Sequence[Any]) -> Filter:
    """Return the filter of a list that `dumped` made."""
    kind, *rest = raw
    if kind == "in":
        return OneOf(rest[0], tuple(rest[1]))
    if kind == "range":
        return Range(rest[0], *rest[1])
    if kind == "exists":
        return Exists(rest[0])
    if kind == "not":
        return Not(loaded(rest[0]))
    return Both(kind, tuple(loaded(part) for part in rest[0]))


def _fit(condition: OneOf | Range | Exists, type: FieldType) -> Filter:
    if isinstance(condition, Exists):
        return condition
    if isinstance(condition, Range):
        if type not in ("integer", "float", "datetime"):
            raise ValueError(f"a {type} field has no order")
        inner: FieldType = "datetime" if type == "datetime" else "float"
        bounds = {
            bound: _scalar(value, inner)
            for bound in RANGES
            if (value := getattr(condition, bound)) is not None
        }
        return Range(condition.field, **bounds)
    values = tuple(dict.fromkeys(_scalar(value, type) for value in condition.values))
    if values and type in ("float", "datetime"):  # engines have no equality for these
        same = tuple(Range(condition.field, gte=value, lte=value) for value in values)
        return same[0] if len(same) == 1 else Both("or", same)
    return OneOf(condition.field, values)


def _scalar(value: Any, type: FieldType) -> Any:
    made = scalar_value(value, type)
    if made is None:
        raise ValueError("needs a value that is not empty")
    return made


def _declaration_hint(type: FieldType) -> str:
    return f"the field is declared as {type!r}"


@dataclass
class _Parser:
    seen: int = 0

    def filter(self, raw: Any, path: str, depth: int) -> Filter | None:
        if not isinstance(raw, Mapping):
            raise UsageError(
                f"{path} must be an object of conditions, not {_kind(raw)}",
                hint='such as {"year": 2024}',
            )
        _refuse_deep(path, depth)
        parts = [
            part
            for key, value in raw.items()
            for part in self._parse_entry(str(key), value, f"{path}.{key}", depth)
        ]
        return _join(parts) if parts else None

    def _parse_entry(self, key: str, value: Any, path: str, depth: int) -> Iterator[Filter]:
        if key in ("and", "or"):
            yield self._parse_group("and" if key == "and" else "or", value, path, depth)
        elif key == "not":
            yield Not(self._parse_required(value, path, depth + 1))
        else:
            yield from self._parse_conditions(key, value, path, depth)

    def _parse_group(self, kind: Literal["and", "or"], value: Any, path: str, depth: int) -> Filter:
        if not isinstance(value, (list, tuple)) or not value:
            raise UsageError(f"{path} must be a list of filters, and not an empty one")
        parts = tuple(
            self._parse_required(each, f"{path}[{index}]", depth + 1)
            for index, each in enumerate(value)
        )
        return parts[0] if len(parts) == 1 else Both(kind, parts)

    def _parse_required(self, raw: Any, path: str, depth: int) -> Filter:
        found = self.filter(raw, path, depth)
        if found is None:
            raise UsageError(f"{path} needs a condition")
        return found

    def _parse_conditions(self, field: str, value: Any, path: str, depth: int) -> Iterator[Filter]:
        self._count(path)
        if value is None:
            yield Not(Exists(field))
        elif isinstance(value, Mapping):
            yield from self._parse_operators(field, value, path, depth)
        else:
            yield self._parse_one_of(field, value, path)

    def _parse_operators(
        self, field: str, value: Mapping[str, Any], path: str, depth: int
    ) -> Iterator[Filter]:
        _refuse_deep(path, depth)
        if not value:
            raise UsageError(
                f"{path} needs a value or an operator", hint=f"operators: {', '.join(OPERATORS)}"
            )
        bounds = {
            bound: _require_scalar(value[bound], f"{path}.{bound}")
            for bound in RANGES
            if bound in value
        }
        if bounds:
            yield Range(field, **bounds)
        for operator, operand in value.items():
            at = f"{path}.{operator}"
            if operator == "eq":
                yield self._parse_one_of(field, _require_scalar(operand, at), at)
            elif operator == "in":
                yield self._parse_one_of(
                    field, _require_kind(operand, (list, tuple), "a list of values", at), at
                )
            elif operator == "exists":
                yield (
                    Exists(field)
                    if _require_kind(operand, (bool,), "true or false", at)
                    else Not(Exists(field))
                )
            elif operator == "not":
                yield Not(_join(list(self._parse_conditions(field, operand, at, depth + 1))))
            elif operator not in RANGES:
                raise UsageError(
                    f"{path}: no operator {operator!r}", hint=suggestion(str(operator), OPERATORS)
                )

    def _parse_one_of(self, field: str, value: Any, path: str) -> OneOf:
        values = tuple(value) if isinstance(value, (list, tuple)) else (value,)
        for index, each in enumerate(values):
            _require_scalar(each, f"{path}[{index}]" if isinstance(value, (list, tuple)) else path)
            self._count(path)
        return OneOf(field, values)

    def _count(self, path: str) -> None:
        self.seen += 1
        if self.seen > _MOST:
            raise UsageError(f"{path}: a filter may have {_MOST} conditions and values in all")


def _join(parts: list[Filter]) -> Filter:
    return parts[0] if len(parts) == 1 else Both("and", tuple(parts))


def _refuse_deep(path: str, depth: int) -> None:
    if depth > _DEEPEST:
        raise UsageError(f"{path[:80]} …: a filter may be {_DEEPEST} levels deep")


def _require_scalar(value: Any, path: str) -> Any:
    return _require_kind(value, (str, int, float, bool), "a value", path)


def _require_kind(value: Any, kinds: tuple[type, ...], wanted: str, path: str) -> Any:
    if not isinstance(value, kinds):
        raise UsageError(f"{path} must be {wanted}, not {_kind(value)}")
    return value


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    return "nothing" if value is None else repr(value)[:60]
