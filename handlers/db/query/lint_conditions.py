"""Checks of conditions for the linter: on fields, on related records, on figures of groups. Pure.

Each method returns the conditions ready for the compiler, without those that have a problem;
problems go to `add`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from groundhook.core.errors import suggestion
from groundhook.core.types.query_language import Compared, Where
from groundhook.handlers.db.model.schema import Field, Route, Schema, comparable, figure_field
from groundhook.handlers.db.query.dsl import (
    COMPARISONS,
    EVERY_TEXT,
    MATCHES,
    NULL_OPERATORS,
    OPERATORS,
    conditions,
    model_named,
    normalize_operator,
)
from groundhook.handlers.db.query.lint_names import check_aggregate, route_of, single_route
from groundhook.handlers.db.query.lint_values import (
    KIND_NAMES,
    InvalidPart,
    check_operator,
    check_value,
    coerce_value,
    field_hint,
)

MAX_DEPTH = 8  # of nested groups, related records and figures
MAX_WORDS = 200  # of a query, each counted once for each field in which it is looked for
MAX_RELATED = 16  # conditions on related records and figures, each of which may read a whole table


class Add(Protocol):
    """Records a problem."""

    def __call__(
        self, code: str, path: str, message: str, hint: str = "", *, warning: bool = False
    ) -> None: ...


def count_conditions(wheres: Sequence[Where]) -> int:
    """Return the number of conditions at all depths."""
    return sum(1 + sum(map(count_conditions, _within(where))) for where in conditions(wheres))


def _within(where: Where) -> Iterator[Sequence[Where]]:
    if where.related:
        yield where.all_of or ()
    if where.other is not None:
        yield where.other.wheres


@dataclass
class ConditionLinter:
    """Checks the conditions of one query."""

    schemas: Mapping[str, Schema]
    add: Add
    related: int = 0  # conditions that read another table as a whole
    words: int = 0  # that are looked for, by the fields in which they are

    def wheres(
        self, path: str, wheres: Sequence[Where], here: Schema, depth: int = 0
    ) -> tuple[Where, ...]:
        """Check conditions on the records of `here`."""
        if depth > MAX_DEPTH:
            self.add("DSL009", path, f"groups of conditions are nested more than {MAX_DEPTH} deep")
            return ()
        clean = []
        for number, where in enumerate(wheres):
            at = f"{path}[{number}]"
            try:
                clean.append(self._where(at, where, here, depth))
            except InvalidPart as exc:
                self.add(exc.code, at + exc.within, exc.message, exc.hint)
        return tuple(clean)

    def havings(
        self, path: str, havings: Sequence[Where], figures: Mapping[str, Field], depth: int = 0
    ) -> tuple[Where, ...]:
        """Check conditions on figures, by their names in results."""
        if depth > MAX_DEPTH:
            self.add("DSL009", path, f"groups of conditions are nested more than {MAX_DEPTH} deep")
            return ()
        clean = []
        for number, having in enumerate(havings):
            at = f"{path}[{number}]"
            if having.group is not None:
                key, name = _group_key(having)
                inner = self.havings(f"{at}.{key}", having.group, figures, depth + 1)
                clean.append(having.model_copy(update={name: inner}))
                continue
            try:
                clean.append(self._having(at, having, figures))
            except InvalidPart as exc:
                self.add(exc.code, at, exc.message, exc.hint)
        return tuple(clean)

    def _where(self, at: str, where: Where, here: Schema, depth: int) -> Where:
        if where.group is not None:
            key, name = _group_key(where)
            inner = self.wheres(f"{at}.{key}", where.group, here, depth + 1)
            return where.model_copy(update={name: inner})
        if where.related:
            return self._related(at, where, here, depth)
        op = _operator(where.op)
        if where.other is not None:
            return self._other(at, where.field, op, where.other, here, depth)
        if op in MATCHES:
            return Where(field=where.field, op=op, value=self._words(where, op, here))
        return self._value(at, where, op, route_of(here, where.field, self.schemas))

    def _value(self, at: str, where: Where, op: str, found: Route) -> Where:
        """Check a condition with a value."""
        value = where.value
        if value is None and op in ("=", "!=") and "value" not in where.model_fields_set:
            # A script's undefined variable must not become a search for records without a value.
            hint = "for records without one, use null or the operator 'null'"
            raise InvalidPart("DSL005", f"the condition on {where.field!r} has no value", hint)
        if value is None and op in ("=", "!=", *NULL_OPERATORS):
            op = "null" if op in ("=", "null") else "not null"
        if op in NULL_OPERATORS:
            if found.field is None:
                self._reads_related()
            return Where(field=where.field, op=op)
        if found.field is None:
            raise InvalidPart(
                "DSL006",
                f"{where.field!r} is a relation, which supports only 'null' and 'not null'",
                field_hint(found),
            )
        check_operator(where.field, found.field, op)
        clean = check_value(where.field, found.field, op, value)
        self._options(f"{at}.value", found.field, op, clean)
        return Where(field=where.field, op=op, value=clean)

    def _words(self, where: Where, op: str, here: Schema) -> list[Any]:
        name, value = where.field, where.value
        if name != EVERY_TEXT:
            found = route_of(here, name, self.schemas)
            if found.field is None or found.field.kind not in ("text", "json") or found.hops:
                raise InvalidPart(
                    "DSL004",
                    f"the operator {op!r} cannot be used on {name!r}, which is not a text field of"
                    " this model",
                )
        words = [value] if isinstance(value, str) else value
        if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
            raise InvalidPart("DSL005", f"the operator {op!r} needs words, not {value!r}")
        fields = max(1, len(here.texts)) if name == EVERY_TEXT else 1
        self.words += fields * len(words)
        if self.words > MAX_WORDS:
            raise InvalidPart(
                "DSL009",
                f"a query takes at most {MAX_WORDS} words, each for each field that it is looked"
                f" for in, not {self.words}",
            )
        return [coerce_value(Field(name, "text"), word) for word in words]

    def _options(self, at: str, of: Field, op: str, value: Any) -> None:
        values = value if isinstance(value, list) else [value]
        strange = (
            [one for one in values if one not in of.options]
            if of.options and op in ("=", "!=", "in", "not in")
            else []
        )
        if strange:
            self.add(
                "DSL010",
                at,
                f"{strange[0]!r} is not among the options of {of.name!r}",
                suggestion(str(strange[0]), of.options),
                warning=True,
            )

    # ---- related records

    def _related(self, at: str, where: Where, here: Schema, depth: int) -> Where:
        found = route_of(here, where.related, self.schemas)
        if found.field is not None:
            known = ", ".join(found.schema.relations) or "none"
            raise InvalidPart(
                "DSL006",
                f"{where.related!r} is a field, not a relation",
                f"relations of {found.schema.id!r}: {known}",
                ".related",
            )
        *before, last = found.hops
        if any(hop.many for hop in before):
            raise InvalidPart(
                "DSL006",
                f"{where.related!r} leads over several records to the relation {last.name!r}",
                f"put a condition on {last.name!r} into the 'wheres' of the first relation",
                ".related",
            )
        self._reads_related()
        if where.count is not None and not last.many:
            raise InvalidPart(
                "DSL007",
                f"{where.related!r} leads to at most one record, which is not counted",
                "leave 'count' out, or use 'none'",
                ".count",
            )
        if where.every and not where.all_of:
            raise InvalidPart("DSL005", "'all' needs 'wheres' that each related record meets")
        inner = self.wheres(f"{at}.wheres", where.all_of or (), found.schema, depth + 1)
        return where.model_copy(update={"all_of": inner, "count": _check_count(where.count)})

    def _reads_related(self) -> None:
        self.related += 1
        if self.related > MAX_RELATED:
            raise InvalidPart(
                "DSL009",
                f"a query takes at most {MAX_RELATED} conditions on related records and figures",
            )

    # ---- other values of the database

    def _other(
        self, at: str, name: str, op: str, other: Compared, here: Schema, depth: int
    ) -> Where:
        """Check a condition that compares a field with another one, or with a figure."""
        if op not in COMPARISONS:
            raise InvalidPart(
                "DSL004",
                f"the operator {op!r} cannot be used with 'other'",
                f"known: {', '.join(COMPARISONS)}",
            )
        found = route_of(here, name, self.schemas)
        if found.field is None:
            raise InvalidPart("DSL006", f"{name!r} is a relation, not a field", field_hint(found))
        if other.function is not None:
            figure, clean = self._figure(at, other, here, depth)
            return _compared(name, op, found.field, figure, clean)
        if found.many:
            many = next(hop for hop in found.hops if hop.many)
            raise InvalidPart(
                "DSL006",
                f"{name!r} leads to many records, and 'other' is a field of one",
                f"use both fields in a condition with 'related': {many.name!r}",
            )
        second = single_route(here, other.field, self.schemas)
        assert second.field is not None
        return _compared(name, op, found.field, second.field, other)

    def _figure(self, at: str, other: Compared, here: Schema, depth: int) -> tuple[Field, Compared]:
        """Check a figure; return it as a field, and ready for the compiler."""
        self._reads_related()
        model = model_named(here, other.model, self.schemas)
        if model not in self.schemas:
            hint = suggestion(other.model, sorted(self.schemas))
            raise InvalidPart("DSL002", f"no model {other.model!r}", hint, ".other.model")
        there, one = self.schemas[model], other.aggregate
        assert one is not None
        if there.connection != here.connection:
            raise InvalidPart(
                "DSL006",
                f"the model {other.model!r} is in another database",
                "a query reads one database",
                ".other.model",
            )
        of = check_aggregate(there, one, self.schemas, ".other")
        figure = figure_field(one, of)
        if figure.kind == "text":
            raise InvalidPart(
                "DSL007", f"{one.function!r} of the text {one.field!r} is not a figure"
            )
        inner = self.wheres(f"{at}.other.wheres", other.wheres, there, depth + 1)
        return figure, other.model_copy(update={"model": model, "wheres": inner})

    # ---- figures

    def _having(self, at: str, having: Where, figures: Mapping[str, Field]) -> Where:
        if having.related or having.other is not None:
            raise InvalidPart("DSL007", "a condition on a figure compares it with a value")
        of = figures.get(having.field)
        if of is None:
            raise InvalidPart(
                "DSL008",
                f"the result has no figure {having.field!r}",
                f"{suggestion(having.field, list(figures))}; conditions on fields belong into"
                " 'wheres'",
            )
        op = _operator(having.op)
        if op in MATCHES:
            raise InvalidPart("DSL004", f"the operator {op!r} cannot be used on a figure")
        return self._value(at, having, op, Route((), _NO_SCHEMA, of))


_NO_SCHEMA = Schema("", "", (), {}, (), "")


def _group_key(where: Where) -> tuple[str, str]:
    return ("and", "all_of") if where.any_of is None else ("or", "any_of")


def _operator(op: str) -> str:
    known = normalize_operator(op)
    if known is None:
        raise InvalidPart("DSL003", f"unknown operator {op!r}", f"known: {', '.join(OPERATORS)}")
    return known


def _check_count(count: Mapping[str, int] | None) -> dict[str, int] | None:
    if count is None:
        return None
    clean = {normalize_operator(op) or op: number for op, number in count.items()}
    for op, number in clean.items():
        if op not in COMPARISONS:
            known = f"known: {', '.join(COMPARISONS)}"
            raise InvalidPart("DSL003", f"unknown operator {op!r}", known, ".count")
        if not 0 <= number < 2**31:
            raise InvalidPart("DSL005", f"{number} is not a number of records", "", ".count")
    if not clean:
        raise InvalidPart("DSL005", "'count' needs a comparison", "such as {'>': 6}", ".count")
    return clean


def _compared(name: str, op: str, one: Field, two: Field, other: Compared) -> Where:
    """Return the condition. Raises InvalidPart if the kinds of the two sides do not fit."""
    check_operator(name, one, op)
    if not comparable(one, two):
        raise InvalidPart(
            "DSL005",
            f"{name!r} is {KIND_NAMES[one.kind]}, which cannot be compared with {two.name!r}, which"
            f" is {KIND_NAMES[two.kind]}",
        )
    return Where(field=name, op=op, other=other)
