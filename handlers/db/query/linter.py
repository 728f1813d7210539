"""Validation of queries, with messages that their author, a person or a language model, can act on.
Pure.

DSL000  the wrong shape: an unknown key, a wrong type
DSL001  an unknown field
DSL002  an unknown model
DSL003  an unknown operator
DSL004  an operator that the field does not support
DSL005  a value that does not fit the field
DSL006  a relation where one cannot be followed
DSL007  an aggregate or a group that cannot be computed
DSL008  an order by a name that the result does not have
DSL009  too many values, too many conditions, or too deeply nested ones
DSL010  a value that is not among an enum's options (a warning)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ValidationError

from groundhook.core.errors import SourceError, suggestion
from groundhook.core.types.base import dotted, validate_known, validation_problems
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.query_language import (
    Aggregate,
    Where,
)
from groundhook.handlers.db.model.schema import Field, Route, Schema, Schemas
from groundhook.handlers.db.query.dsl import (
    EVERY_TEXT,
    MATCHES,
    NULL_OPERATORS,
    OPERATORS,
    QueryDSL,
    conditions,
    normalize_operator,
)
from groundhook.handlers.db.query.lint_names import route_of, single_route
from groundhook.handlers.db.query.lint_values import (
    KIND_NAMES,
    MAX_VALUES,
    InvalidPart,
    check_operator,
    check_value,
    coerce_value,
    field_hint,
)

MAX_CONDITIONS = 200
MAX_DEPTH = 8  # of nested groups
NUMBERS = frozenset({"integer", "number"})


@dataclass(frozen=True)
class Problem:
    """A problem at `path`, such as `wheres[0].or[1].value`; `hint` is what to do. A warning does
    not stop the query."""

    code: str
    path: str
    message: str
    hint: str = ""
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        return f"{self.code} {self.path}: {self.message}" + (f" ({self.hint})" if self.hint else "")


def lint(
    dsl: QueryDSL | Mapping[str, Any], models: Mapping[str, ModelSpec] | Mapping[str, Schema]
) -> list[Problem]:
    """Return all problems of a query on one of these models, by full id. Never raises."""
    return _lint(dsl, models)[1]


def checked(
    dsl: QueryDSL | Mapping[str, Any], models: Mapping[str, ModelSpec] | Mapping[str, Schema]
) -> QueryDSL:
    """Return the query ready for the compiler: operators in their canonical spelling, and values in
    the type of their field. Raises SourceError with the first problem."""
    return checked_with_warnings(dsl, models)[0]


def checked_with_warnings(
    dsl: QueryDSL | Mapping[str, Any], models: Mapping[str, ModelSpec] | Mapping[str, Schema]
) -> tuple[QueryDSL, list[Problem]]:
    """Return the query as `checked` does, and the warnings. Raises SourceError with the first
    error."""
    clean, found = _lint(dsl, models)
    errors = [problem for problem in found if problem.severity == "error"]
    if errors or clean is None:
        raise SourceError(errors[0].message, hint=errors[0].hint)
    return clean, found


def _lint(
    dsl: QueryDSL | Mapping[str, Any], models: Mapping[str, ModelSpec] | Mapping[str, Schema]
) -> tuple[QueryDSL | None, list[Problem]]:
    query, found = (dsl, []) if isinstance(dsl, QueryDSL) else _read(dsl)
    if query is None:
        return None, found
    schemas = models if isinstance(models, Schemas) else _schemas(models)
    if query.model not in schemas:
        return None, [
            *found,
            Problem(
                "DSL002",
                "model",
                f"no model {query.model!r}",
                suggestion(query.model, sorted(schemas)),
            ),
        ]
    linter = _Linter(query, schemas[query.model], schemas, found)
    return linter.clean(), linter.found


def _schemas(models: Mapping[str, Any]) -> Mapping[str, Schema]:
    if any(isinstance(model, Schema) for model in models.values()):
        return models
    return Schemas(models)


def _read(raw: Mapping[str, Any]) -> tuple[QueryDSL | None, list[Problem]]:
    try:
        query, unknown = validate_known(QueryDSL, raw)
    except ValidationError as exc:
        return None, [
            Problem("DSL000", dotted(path), message) for path, message in validation_problems(exc)
        ]
    return query, [Problem("DSL000", key.path, "no such key", key.hint) for key in unknown]


@dataclass
class _Linter:
    query: QueryDSL
    schema: Schema
    schemas: Mapping[str, Schema]
    found: list[Problem] = field(default_factory=list)

    def clean(self) -> QueryDSL:
        query = self.query
        if sum(1 for _ in conditions(query.wheres)) > MAX_CONDITIONS:
            self._add("DSL009", "wheres", f"a query takes at most {MAX_CONDITIONS} conditions")
        for number, name in enumerate(query.select):
            self._single_field(f"select[{number}]", name)
        for number, name in enumerate(query.groups):
            self._single_field(f"groups[{number}]", name)
        for number, one in enumerate(query.aggregates):
            self._aggregate(f"aggregates[{number}]", one)
        self._names()
        for number, order in enumerate(query.orders):
            self._order(f"orders[{number}]", order.field)
        return query.model_copy(update={"wheres": self._wheres("wheres", query.wheres, 0)})

    # ---- parts

    def _wheres(self, path: str, wheres: Sequence[Where], depth: int) -> tuple[Where, ...]:
        if depth > MAX_DEPTH:
            self._add("DSL009", path, f"groups of conditions are nested more than {MAX_DEPTH} deep")
            return ()
        clean = []
        for number, where in enumerate(wheres):
            at = f"{path}[{number}]"
            if where.group is not None:
                key, name = ("and", "all_of") if where.any_of is None else ("or", "any_of")
                clean.append(
                    where.model_copy(
                        update={name: self._wheres(f"{at}.{key}", where.group, depth + 1)}
                    )
                )
                continue
            try:
                clean.append(self._where(at, where))
            except InvalidPart as exc:
                self._add(exc.code, at, exc.message, exc.hint)
        return tuple(clean)

    def _where(self, at: str, where: Where) -> Where:
        op, value = normalize_operator(where.op), where.value
        if op is None:
            raise InvalidPart(
                "DSL003", f"unknown operator {where.op!r}", f"known: {', '.join(OPERATORS)}"
            )
        if op in MATCHES:
            return Where(field=where.field, op=op, value=self._words(where.field, op, value))
        found = route_of(self.schema, where.field, self.schemas)
        if value is None and op in ("=", "!=") and "value" not in where.model_fields_set:
            # A script's undefined variable must not become a search for records without a value.
            hint = "for records without one, use null or the operator 'null'"
            raise InvalidPart("DSL005", f"the condition on {where.field!r} has no value", hint)
        if value is None and op in ("=", "!=", *NULL_OPERATORS):
            op = "null" if op in ("=", "null") else "not null"
        if op in NULL_OPERATORS:
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

    def _words(self, name: str, op: str, value: Any) -> list[Any]:
        if name != EVERY_TEXT:
            found = route_of(self.schema, name, self.schemas)
            if found.field is None or found.field.kind not in ("text", "json") or found.hops:
                raise InvalidPart(
                    "DSL004",
                    f"the operator {op!r} cannot be used on {name!r}, which is not a text field of"
                    " this model",
                )
        words = [value] if isinstance(value, str) else value
        if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
            raise InvalidPart("DSL005", f"the operator {op!r} needs words, not {value!r}")
        if len(words) > MAX_VALUES:
            raise InvalidPart(
                "DSL009", f"the operator {op!r} takes at most {MAX_VALUES} words, not {len(words)}"
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
            hint = suggestion(str(strange[0]), of.options)
            self._add(
                "DSL010",
                at,
                f"{strange[0]!r} is not among the options of {of.name!r}",
                hint,
                "warning",
            )

    def _aggregate(self, at: str, one: Aggregate) -> None:
        if one.field == EVERY_TEXT:
            if one.function != "count" or one.distinct:
                self._add(
                    "DSL007",
                    f"{at}.field",
                    f"{one.function!r} needs a field; only records are counted with '*'",
                )
            return
        found = self._single_field(f"{at}.field", one.field)
        if found is None or found.field is None:
            return
        kind = found.field.kind
        if (one.function in ("sum", "avg") and kind not in NUMBERS) or (
            one.function != "count" and kind in ("json", "boolean")
        ):
            names = [each.name for each in found.schema.visible if each.kind in NUMBERS]
            hint = f"numbers: {', '.join(names) or 'none'}"
            self._add(
                "DSL007",
                f"{at}.field",
                f"{one.function!r} of {one.field!r} cannot be computed: it is {KIND_NAMES[kind]}",
                hint,
            )

    def _names(self) -> None:
        query = self.query
        called = [one.called for one in query.aggregates]
        for number, name in enumerate(called):
            if name in called[:number] or name in query.groups:
                self._add(
                    "DSL007",
                    f"aggregates[{number}]",
                    f"the result would have {name!r} twice",
                    "name one with 'as'",
                )
        loose = [name for name in query.select if name not in query.groups and name not in called]
        if query.computed and loose:
            self._add(
                "DSL007",
                "select",
                f"{loose[0]!r} is neither in 'groups' nor computed",
                "add it to 'groups', or leave it out",
            )

    def _order(self, at: str, name: str) -> None:
        if not self.query.computed:
            self._single_field(f"{at}.field", name)
            return
        there = [*self.query.groups, *(one.called for one in self.query.aggregates)]
        if name not in there:
            self._add(
                "DSL008",
                f"{at}.field",
                f"the result has no {name!r} to order by",
                suggestion(name, there),
            )

    # ---- names

    def _single_field(self, at: str, name: str) -> Route | None:
        """Return the route of a name to a single field; None after a problem was added."""
        if (
            self.query.computed
            and at.startswith("select")
            and name in (one.called for one in self.query.aggregates)
        ):
            return None
        try:
            return single_route(self.schema, name, self.schemas)
        except InvalidPart as exc:
            self._add(exc.code, at, exc.message, exc.hint)
            return None

    def _add(
        self,
        code: str,
        path: str,
        message: str,
        hint: str = "",
        severity: Literal["error", "warning"] = "error",
    ) -> None:
        self.found.append(Problem(code, path, message, hint, severity))
