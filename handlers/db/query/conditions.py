"""Conditions of a query as SQL clauses. Pure: every value is a bound parameter.

Texts are compared as `collation` defines; tables are joined and limited by `joins`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import ColumnElement
from sqlalchemy.types import TypeEngine

from groundhook.core.types.query_language import Where
from groundhook.handlers.db.model import fulltext
from groundhook.handlers.db.model.collation import Texts, containing, fold, pattern_of
from groundhook.handlers.db.model.schema import Field, Relation, Route, route
from groundhook.handlers.db.model.tables import Tables
from groundhook.handlers.db.query.dsl import (
    EVERY_TEXT,
    MATCH,
    MATCH_ANY,
    MATCH_NONE,
    MATCHES,
    QueryDSL,
)
from groundhook.handlers.db.query.joins import TableNode

Clause = ColumnElement[Any]
_COMPARED: dict[str, Callable[[Any, Any], Clause]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


@dataclass
class Conditions:
    """Compiles conditions for one kind of database. `indexed` are the conditions on words that use
    the full-text index."""

    tables: Tables
    texts: Texts
    dialect: str
    indexed: Sequence[Where] = ()

    def all_of(self, node: TableNode, wheres: Sequence[Where]) -> list[Clause]:
        """Return clauses that must all hold. Conditions on the same to-many relation must hold for
        one and the same related record."""
        clauses: list[Clause] = []
        many: dict[tuple[Relation, ...], list[Where]] = {}
        for where in wheres:
            hops = self._hops_to_many(node, where)
            if hops:
                rest = where.field.split(".", len(hops))[len(hops)]
                many.setdefault(hops, []).append(where.model_copy(update={"field": rest}))
            else:
                clauses.append(self._condition(node, where))
        for hops, inner in many.items():
            here = node.join(hops[:-1])
            within = here.related_table(hops[-1])
            clauses.append(here.exists(hops[-1], within, self.all_of(within, inner)))
        return clauses

    def _hops_to_many(self, node: TableNode, where: Where) -> tuple[Relation, ...]:
        """Return the relations up to the first to-many one, for a condition on the related records;
        else ()."""
        if where.group is not None or where.field == EVERY_TEXT:
            return ()
        resolved = self.route_of(node, where.field)
        hops = resolved.hops if resolved.field is not None else resolved.hops[:-1]
        return next((hops[: number + 1] for number, hop in enumerate(hops) if hop.many), ())

    def _condition(self, node: TableNode, where: Where) -> Clause:
        if where.any_of is not None:
            return sa.or_(
                sa.false(),
                *(sa.and_(sa.true(), *self.all_of(node, [one])) for one in where.any_of),
            )
        if where.all_of is not None:
            return sa.and_(sa.true(), *self.all_of(node, where.all_of))
        if where.op in MATCHES:
            return self._words(node, where)
        resolved = self.route_of(node, where.field)
        if resolved.field is None:
            here = node.join(resolved.hops[:-1])
            there = here.exists(resolved.hops[-1], here.related_table(resolved.hops[-1]), ())
            return sa.not_(there) if where.op == "null" else there
        return self.compare(
            node.column(resolved.hops, resolved.field),
            resolved.field,
            where.op,
            self.bound(resolved.field, where.value),
        )

    def compare(self, column: Clause, of: Field, op: str, value: Any) -> Clause:
        match op:
            case "null":
                return column.is_(None)
            case "not null":
                return column.is_not(None)
            case "like":
                return self.texts.like(column, pattern_of(value))
            case "=":
                return self._equal(column, of, [value])
            case "in":
                return self._equal(column, of, value) if value else sa.false()
            case "!=":
                return sa.or_(sa.not_(self._equal(column, of, [value])), column.is_(None))
            case "not in":
                return (
                    sa.or_(sa.not_(self._equal(column, of, value)), column.is_(None))
                    if value
                    else sa.true()
                )
            case "between":
                if of.kind == "text":
                    return self.texts.sorted(column).between(*map(fold, value))
                return column.between(_parameter(column, value[0]), _parameter(column, value[1]))
            case _:
                return self._against(column, of, op, value)

    def _against(self, column: Clause, of: Field, op: str, value: Any) -> Clause:
        if of.kind == "text":
            return _COMPARED[op](self.texts.sorted(column), fold(value))
        return _COMPARED[op](column, _parameter(column, value))

    def _equal(self, column: Clause, of: Field, values: Sequence[Any]) -> Clause:
        if of.kind != "text" or (of.options and set(values) <= set(of.options)):
            return (
                column.in_(values) if len(values) > 1 else column == _parameter(column, values[0])
            )
        return self.texts.equal(column, values)

    def _words(self, node: TableNode, where: Where) -> Clause:
        resolved = self.word_clauses(node, where)
        if where.op == MATCH_NONE:
            return sa.not_(sa.or_(sa.false(), *resolved))
        return (
            sa.or_(sa.false(), *resolved)
            if where.op == MATCH_ANY
            else sa.and_(sa.true(), *resolved)
        )

    def word_clauses(self, node: TableNode, where: Where) -> list[Clause]:
        """Return for each word a clause for "one of the fields contains it"."""
        schema = node.declared.schema
        fields = schema.texts if where.field == EVERY_TEXT else [schema.fields[where.field]]
        columns = [node.table.c[one.name] for one in fields]
        has = [
            sa.or_(sa.false(), *(self._has(column, word) for column in columns))
            for word in where.value
        ]
        if where not in self.indexed:
            return has
        name = node.declared.table.name
        begun = [
            fulltext.matching(self.dialect, schema, node.table, name, word) for word in where.value
        ]
        return [
            one if begins is None else sa.and_(begins, one)
            for begins, one in zip(begun, has, strict=True)
        ]

    def _has(self, column: Clause, word: str) -> Clause:
        # NULL contains no word: false instead of SQL's unknown.
        return sa.func.coalesce(self.texts.like(column, containing(word)), sa.false())

    def bound(self, of: Field, value: Any) -> Any:
        """Return a value as it is bound. Decimals for integer columns become floats: drivers cannot
        compare 4.5 with an integer column otherwise."""
        if isinstance(value, (list, tuple)):
            return [self.bound(of, one) for one in value]
        return float(value) if of.kind == "integer" and isinstance(value, Decimal) else value

    def route_of(self, node: TableNode, name: str) -> Route:
        resolved = route(node.declared.schema, name, self.tables.schemas)
        assert resolved is not None, name  # the linter has checked it
        return resolved


def word_conditions(dsl: QueryDSL) -> list[Where]:
    """Return the conditions of a query that a full-text index can serve: required words in any
    text, outside of groups."""
    return [
        one
        for one in dsl.wheres
        if one.group is None and one.field == EVERY_TEXT and one.op in (MATCH, MATCH_ANY)
    ]


def _parameter(column: Clause, value: Any) -> sa.BindParameter[Any]:
    return (
        value
        if isinstance(value, sa.BindParameter)
        else sa.bindparam(None, value, type_=bind_type(column, value))
    )


def bind_type(column: Clause, value: Any) -> TypeEngine[Any]:
    return sa.Float() if isinstance(value, float) else column.type
