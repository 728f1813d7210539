"""Validation of queries, with messages that their author, a person or a language model, can act on.
Pure.

DSL000  the wrong shape: an unknown key, a wrong type
DSL001  an unknown field
DSL002  an unknown model
DSL003  an unknown operator
DSL004  an operator that the field does not support
DSL005  a value that does not fit the field
DSL006  a relation where one cannot be followed
DSL007  a figure, a group or a set of rows that cannot be computed
DSL008  an order by, or a condition on, a name that the result does not have
DSL009  too many values, too many conditions, or too deeply nested ones
DSL010  a value that is not among an enum's options (a warning)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ValidationError

from groundhook.core.errors import SourceError, suggestion
from groundhook.core.types.base import dotted, validate_known, validation_problems
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.query_language import (
    Aggregate,
    DateBucket,
    Group,
    group_field,
    group_name,
)
from groundhook.handlers.db.model.schema import DATES, Field, Route, Schema, Schemas, figure_field
from groundhook.handlers.db.query.dsl import QueryDSL
from groundhook.handlers.db.query.lint_conditions import ConditionLinter, count_conditions
from groundhook.handlers.db.query.lint_names import check_aggregate, single_route
from groundhook.handlers.db.query.lint_values import KIND_NAMES, InvalidPart

MAX_CONDITIONS = 200


@dataclass(frozen=True)
class QueryProblem:
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
) -> list[QueryProblem]:
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
) -> tuple[QueryDSL, list[QueryProblem]]:
    """Return the query as `checked` does, and the warnings. Raises SourceError with the first
    error."""
    clean, found = _lint(dsl, models)
    errors = [problem for problem in found if problem.severity == "error"]
    if errors or clean is None:
        raise SourceError(errors[0].message, hint=errors[0].hint)
    return clean, found


def _lint(
    dsl: QueryDSL | Mapping[str, Any], models: Mapping[str, ModelSpec] | Mapping[str, Schema]
) -> tuple[QueryDSL | None, list[QueryProblem]]:
    query, found = (dsl, []) if isinstance(dsl, QueryDSL) else _read(dsl)
    if query is None:
        return None, found
    schemas = models if isinstance(models, Schemas) else _schemas(models)
    if query.model not in schemas:
        return None, [
            *found,
            QueryProblem(
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


def _read(raw: Mapping[str, Any]) -> tuple[QueryDSL | None, list[QueryProblem]]:
    try:
        query, unknown = validate_known(QueryDSL, raw)
    except ValidationError as exc:
        return None, [
            QueryProblem("DSL000", dotted(path), message)
            for path, message in validation_problems(exc)
        ]
    return query, [QueryProblem("DSL000", key.path, "no such key", key.hint) for key in unknown]


@dataclass
class _Linter:
    query: QueryDSL
    schema: Schema
    schemas: Mapping[str, Schema]
    found: list[QueryProblem] = field(default_factory=list)

    def clean(self) -> QueryDSL:
        query = self.query
        if count_conditions([*query.wheres, *query.havings]) > MAX_CONDITIONS:
            self._add("DSL009", "wheres", f"a query takes at most {MAX_CONDITIONS} conditions")
            return query
        for number, name in enumerate(query.select):
            self._selected(f"select[{number}]", name)
        for number, group in enumerate(query.groups):
            self._group(f"groups[{number}]", group)
        figures: dict[str, Field] = {}
        for number, one in enumerate(query.aggregates):
            figures[one.called] = self._aggregate(f"aggregates[{number}]", one)
        self._names()
        for number, order in enumerate(query.orders):
            self._order(f"orders[{number}]", order.field)
        self._rows()
        conditions = ConditionLinter(self.schemas, self._add)
        return query.model_copy(
            update={
                "wheres": conditions.wheres("wheres", query.wheres, self.schema),
                "havings": conditions.havings("havings", query.havings, figures),
            }
        )

    # ---- parts

    def _group(self, at: str, group: Group) -> None:
        found = self._single_field(at, group_field(group))
        if found is None or found.field is None or not isinstance(group, DateBucket):
            return
        kind = found.field.kind
        if kind not in DATES:
            self._add(
                "DSL007",
                f"{at}.by",
                f"'by' groups dates, and {group.field!r} is {KIND_NAMES[kind]}",
                "name the field alone",
            )
        elif group.by == "hour" and kind == "date":
            self._add("DSL007", f"{at}.by", f"{group.field!r} is a date without time")

    def _aggregate(self, at: str, one: Aggregate) -> Field:
        try:
            return figure_field(one, check_aggregate(self.schema, one, self.schemas))
        except InvalidPart as exc:
            self._add(exc.code, at + (exc.within or ".field"), exc.message, exc.hint)
            return Field(one.called, "number")

    def _names(self) -> None:
        query = self.query
        groups = list(map(group_name, query.groups))
        called = [*groups, *(one.called for one in query.aggregates)]
        for number, name in enumerate(called):
            if name in called[:number]:
                at = number - len(groups)
                self._add(
                    "DSL007",
                    f"groups[{number}]" if at < 0 else f"aggregates[{at}]",
                    f"the result would have {name!r} twice",
                    "name one with 'as'" if at >= 0 else "leave it out, or name it with 'as'",
                )
        loose = [name for name in query.select if name not in called]
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
        there = self._columns()
        if name not in there:
            self._add(
                "DSL008",
                f"{at}.field",
                f"the result has no {name!r} to order by",
                suggestion(name, there),
            )

    def _rows(self) -> None:
        """Check what the rows of the result are."""
        query = self.query
        if query.havings and not query.aggregates:
            self._add("DSL007", "havings", "'havings' need 'aggregates', whose figures they limit")
        if query.ties and not (query.orders or query.groups):
            self._add("DSL008", "ties", "'ties' needs 'orders', in which rows are equal")
        if query.ties and query.offset:
            self._add("DSL007", "offset", "'offset' cannot be used with 'ties'")

    # ---- names

    def _columns(self) -> list[str]:
        """Return the names of the result of groups and figures."""
        query = self.query
        return [*map(group_name, query.groups), *(one.called for one in query.aggregates)]

    def _selected(self, at: str, name: str) -> None:
        if not (self.query.computed and name in self._columns()):
            self._single_field(at, name)

    def _single_field(self, at: str, name: str) -> Route | None:
        """Return the route of a name to a single field; None after a problem was added."""
        try:
            return single_route(self.schema, name, self.schemas)
        except InvalidPart as exc:
            self._add(exc.code, at, exc.message, exc.hint)
            return None

    def _add(
        self, code: str, path: str, message: str, hint: str = "", *, warning: bool = False
    ) -> None:
        severity: Literal["error", "warning"] = "warning" if warning else "error"
        self.found.append(QueryProblem(code, path, message, hint, severity))
