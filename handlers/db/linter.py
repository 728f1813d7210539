"""What is wrong with a query, in words that whoever wrote it can act on: a person, or a model that
is asked again. Pure.

DSL000  not the shape of a query: an unknown key, a wrong type DSL001  no such field
DSL006  a relation where one cannot be followed DSL002  no such model                        DSL007
an aggregate or a group that cannot be computed DSL003  no such operator                     DSL008
an order by what the answer does not have DSL004  an operator that its field lacks     DSL009  too
many values, too many or too deep conditions DSL005  a value that does not fit            DSL010  a
value that is none of an enum's options (a warning)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ValidationError

from groundhook.handlers.db.coerce import coerce
from groundhook.handlers.db.dsl import (
    EVERY_TEXT,
    LISTS,
    MATCHES,
    NOTHING,
    OPERATORS,
    ORDERED,
    QueryDSL,
    conditions,
    operator,
)
from groundhook.handlers.db.schema import MOST_HOPS, Field, Route, Schema, Schemas, route
from groundhook.host.core.errors import SourceError, suggestion
from groundhook.host.core.types.base import dotted, problems, read
from groundhook.host.core.types.search import Aggregate, Where
from groundhook.host.core.types.specs import ModelSpec

MOST_VALUES = 1000  # of one condition
MOST_CONDITIONS = 200
DEEPEST = 8  # groups in groups
NUMBERS = frozenset({"integer", "number"})


@dataclass(frozen=True)
class Problem:
    """`path` says where, as in `wheres[0].or[1].value`; `hint` what there is instead. A warning
    does not stop the query."""

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
    """Everything that is wrong with a query on one of these models, by full id. Raises nothing."""
    return _linted(dsl, models)[1]


def checked(
    dsl: QueryDSL | Mapping[str, Any], models: Mapping[str, ModelSpec] | Mapping[str, Schema]
) -> QueryDSL:
    """The query with every operator in its one spelling and every value in the type of its field
    (dates, numbers, …), ready for the compiler. Raises SourceError with the first thing that is
    wrong."""
    return checked_with_warnings(dsl, models)[0]


def checked_with_warnings(
    dsl: QueryDSL | Mapping[str, Any], models: Mapping[str, ModelSpec] | Mapping[str, Schema]
) -> tuple[QueryDSL, list[Problem]]:
    """As `checked`, and what does not stop the query."""
    clean, found = _linted(dsl, models)
    errors = [problem for problem in found if problem.severity == "error"]
    if errors or clean is None:
        raise SourceError(errors[0].message, hint=errors[0].hint)
    return clean, found


def _linted(
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
        query, unknown = read(QueryDSL, raw)
    except ValidationError as exc:
        return None, [Problem("DSL000", dotted(path), message) for path, message in problems(exc)]
    return query, [Problem("DSL000", key.path, "no such key", key.hint) for key in unknown]


class _Wrong(Exception):
    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


@dataclass
class _Linter:
    query: QueryDSL
    schema: Schema
    schemas: Mapping[str, Schema]
    found: list[Problem] = field(default_factory=list)

    def clean(self) -> QueryDSL:
        query = self.query
        if sum(1 for _ in conditions(query.wheres)) > MOST_CONDITIONS:
            self._say("DSL009", "wheres", f"a query takes at most {MOST_CONDITIONS} conditions")
        for number, name in enumerate(query.select):
            self._single(f"select[{number}]", name)
        for number, name in enumerate(query.groups):
            self._single(f"groups[{number}]", name)
        for number, one in enumerate(query.aggregates):
            self._aggregate(f"aggregates[{number}]", one)
        self._names()
        for number, order in enumerate(query.orders):
            self._order(f"orders[{number}]", order.field)
        return query.model_copy(update={"wheres": self._wheres("wheres", query.wheres, 0)})

    # ---- parts

    def _wheres(self, path: str, wheres: Sequence[Where], depth: int) -> tuple[Where, ...]:
        if depth > DEEPEST:
            self._say("DSL009", path, f"groups of conditions are nested more than {DEEPEST} deep")
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
            except _Wrong as exc:
                self._say(exc.code, at, exc.message, exc.hint)
        return tuple(clean)

    def _where(self, at: str, where: Where) -> Where:
        op, value = operator(where.op), where.value
        if op is None:
            raise _Wrong(
                "DSL003", f"there is no operator {where.op!r}", f"known: {', '.join(OPERATORS)}"
            )
        if op in MATCHES:
            return Where(field=where.field, op=op, value=self._words(where.field, op, value))
        found = self._route(where.field)
        if value is None and op in ("=", "!=") and "value" not in where.model_fields_set:
            # A script's variable that is undefined must not become a search for what has no value.
            hint = "for records that have none say null, or the operator 'null'"
            raise _Wrong("DSL005", f"the condition on {where.field!r} has no value", hint)
        if value is None and op in ("=", "!=", *NOTHING):
            op = "null" if op in ("=", "null") else "not null"
        if op in NOTHING:
            return Where(field=where.field, op=op)
        if found.field is None:
            raise _Wrong(
                "DSL006",
                f"{where.field!r} is a relation: only 'null' and 'not null' can be asked of it",
                _named(found),
            )
        _fits(where.field, found.field, op)
        clean = _value(where.field, found.field, op, value)
        self._options(f"{at}.value", found.field, op, clean)
        return Where(field=where.field, op=op, value=clean)

    def _words(self, name: str, op: str, value: Any) -> list[Any]:
        if name != EVERY_TEXT:
            found = self._route(name)
            if found.field is None or found.field.kind != "text" or found.hops:
                raise _Wrong(
                    "DSL004",
                    f"the operator {op!r} cannot be used on {name!r}, which holds no text of this"
                    " model",
                )
        words = [value] if isinstance(value, str) else value
        if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
            raise _Wrong("DSL005", f"the operator {op!r} needs words, not {value!r}")
        if len(words) > MOST_VALUES:
            raise _Wrong(
                "DSL009", f"the operator {op!r} takes at most {MOST_VALUES} words, not {len(words)}"
            )
        return [_coerced(Field(name, "text"), word) for word in words]

    def _options(self, at: str, of: Field, op: str, value: Any) -> None:
        values = value if isinstance(value, list) else [value]
        strange = (
            [one for one in values if one not in of.options]
            if of.options and op in ("=", "!=", "in", "not in")
            else []
        )
        if strange:
            hint = suggestion(str(strange[0]), of.options)
            self._say(
                "DSL010",
                at,
                f"{strange[0]!r} is none of the options of {of.name!r}",
                hint,
                "warning",
            )

    def _aggregate(self, at: str, one: Aggregate) -> None:
        if one.field == EVERY_TEXT:
            if one.function != "count" or one.distinct:
                self._say(
                    "DSL007",
                    f"{at}.field",
                    f"{one.function!r} needs a field; only records are counted with '*'",
                )
            return
        found = self._single(f"{at}.field", one.field)
        if found is None or found.field is None:
            return
        kind = found.field.kind
        if (one.function in ("sum", "avg") and kind not in NUMBERS) or (
            one.function != "count" and kind in ("json", "boolean")
        ):
            names = [each.name for each in found.schema.visible if each.kind in NUMBERS]
            hint = f"numbers: {', '.join(names) or 'none'}"
            self._say(
                "DSL007",
                f"{at}.field",
                f"{one.function!r} of {one.field!r} cannot be computed: it is {_KINDS[kind]}",
                hint,
            )

    def _names(self) -> None:
        query = self.query
        called = [one.called for one in query.aggregates]
        for number, name in enumerate(called):
            if name in called[:number] or name in query.groups:
                self._say(
                    "DSL007",
                    f"aggregates[{number}]",
                    f"the answer would have {name!r} twice",
                    "name one with 'as'",
                )
        loose = [name for name in query.select if name not in query.groups and name not in called]
        if query.computed and loose:
            self._say(
                "DSL007",
                "select",
                f"{loose[0]!r} is neither grouped by nor computed",
                "add it to 'groups', or leave it out",
            )

    def _order(self, at: str, name: str) -> None:
        if not self.query.computed:
            self._single(f"{at}.field", name)
            return
        there = [*self.query.groups, *(one.called for one in self.query.aggregates)]
        if name not in there:
            self._say(
                "DSL008",
                f"{at}.field",
                f"the answer has no {name!r} to order by",
                suggestion(name, there),
            )

    # ---- names

    def _single(self, at: str, name: str) -> Route | None:
        """The route of a name that must lead to one field; None where it does not, which is
        said."""
        if (
            self.query.computed
            and at.startswith("select")
            and name in (one.called for one in self.query.aggregates)
        ):
            return None
        try:
            found = self._route(name)
            if found.field is None:
                raise _Wrong("DSL006", f"{name!r} is a relation, not a field", _named(found))
            if found.many:
                many = next(hop for hop in found.hops if hop.many)
                raise _Wrong(
                    "DSL006",
                    f"{name!r} leads to many records",
                    f"use it in conditions, or ask the model {many.model!r} instead",
                )
        except _Wrong as exc:
            self._say(exc.code, at, exc.message, exc.hint)
            return None
        return found

    def _route(self, name: str) -> Route:
        found = route(self.schema, name, self.schemas)
        if found is None:
            here, wrong = self._furthest(name)
            names = [each.name for each in here.visible] + [f"{each}.…" for each in here.relations]
            raise _Wrong(
                "DSL001", f"the model {here.id!r} has no field {wrong!r}", suggestion(wrong, names)
            )
        if len(found.hops) > MOST_HOPS:
            raise _Wrong(
                "DSL006",
                f"{name!r} goes over {len(found.hops)} relations; at most {MOST_HOPS} can be"
                " followed",
            )
        return found

    def _furthest(self, name: str) -> tuple[Schema, str]:
        """The last model that the name reaches, and the part of it that leads nowhere."""
        here = self.schema
        while "." in name:
            head, _, rest = name.partition(".")
            relation = here.relations.get(head)
            if relation is None or relation.model not in self.schemas:
                break
            here, name = self.schemas[relation.model], rest
        return here, name

    def _say(
        self,
        code: str,
        path: str,
        message: str,
        hint: str = "",
        severity: Literal["error", "warning"] = "error",
    ) -> None:
        self.found.append(Problem(code, path, message, hint, severity))


def _fits(name: str, of: Field, op: str) -> None:
    if of.kind == "json" and op != "like":
        raise _Wrong(
            "DSL004",
            f"the field {name!r} holds JSON: only 'like', 'null' and 'not null' can be asked of it",
        )
    if (op == "like" and of.kind not in ("text", "json")) or (
        op in ORDERED and of.kind == "boolean"
    ):
        raise _Wrong(
            "DSL004", f"the operator {op!r} cannot be used on {name!r}, which is {_KINDS[of.kind]}"
        )


def _value(name: str, of: Field, op: str, value: Any) -> Any:
    if value is None:
        raise _Wrong("DSL005", f"the operator {op!r} on {name!r} needs a value, and has none")
    if op not in LISTS:
        return str(value) if op == "like" and of.kind == "json" else _coerced(of, value)
    if not isinstance(value, (list, tuple)):
        raise _Wrong("DSL005", f"the operator {op!r} on {name!r} needs a list, not {value!r}")
    if op == "between" and len(value) != 2:
        raise _Wrong(
            "DSL005", f"'between' on {name!r} needs a list of two values, not {len(value)}"
        )
    if len(value) > MOST_VALUES:
        raise _Wrong(
            "DSL009",
            f"the operator {op!r} on {name!r} takes at most {MOST_VALUES} values, not {len(value)}",
        )
    return [_coerced(of, one) for one in value]


def _coerced(of: Field, value: Any) -> Any:
    try:
        return coerce(of, value)
    except SourceError as exc:
        hint = f"such as {_EXAMPLES[of.kind]}" if of.kind in _EXAMPLES else ""
        raise _Wrong("DSL005", exc.message, hint) from None


_EXAMPLES = {
    "date": "2026-11-22",
    "moment": "2026-11-22 17:30",
    "integer": "5",
    "number": "9.99",
    "boolean": "true",
}


def _named(found: Route) -> str:
    return f"name one of its fields: {', '.join(each.name for each in found.schema.visible)}"


_KINDS = {
    "text": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "date": "a date",
    "moment": "a date with time",
    "json": "JSON",
}
