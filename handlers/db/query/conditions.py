"""Conditions of a query as SQL clauses. Pure: every value is a bound parameter.

Texts are compared as `collation` defines; tables are joined and limited by `joins`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

from groundhook.core.types.query_language import Aggregate, Compared, Where
from groundhook.handlers.db.model import fulltext
from groundhook.handlers.db.model.collation import (
    SqlClause,
    TextComparison,
    containing,
    fold,
    pattern_of,
)
from groundhook.handlers.db.model.schema import DATES, Field, Relation, Route, figure_field, route
from groundhook.handlers.db.model.tables import Tables
from groundhook.handlers.db.query.dsl import (
    EVERY_TEXT,
    MATCH,
    MATCH_ANY,
    MATCH_NONE,
    MATCHES,
    QueryDSL,
    model_named,
)
from groundhook.handlers.db.query.figures import Figures
from groundhook.handlers.db.query.joins import TableNode

_COMPARED: dict[str, Callable[[Any, Any], SqlClause]] = {
    "=": operator.eq,
    "!=": operator.ne,
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
    texts: TextComparison
    dialect: str
    indexed: Sequence[Where] = ()

    def __post_init__(self) -> None:
        self.figures = Figures(self.texts, self.dialect)

    def all_of(self, node: TableNode, wheres: Sequence[Where]) -> list[SqlClause]:
        """Return clauses that must all hold. Conditions on the same to-many relation must hold for
        one and the same related record."""
        clauses: list[SqlClause] = []
        many: dict[tuple[Relation, ...], list[Where]] = {}
        for where in wheres:
            hops = self._hops_to_many(node, where)
            if hops:
                rest = where.field.split(".", len(hops))[len(hops)]
                many.setdefault(hops, []).append(where.model_copy(update={"field": rest}))
            else:
                clauses.append(self._condition(node, where))
        for (*before, hop), inner in many.items():
            within = node.other_table(hop.model)
            clauses.append(node.join(before).has_related(hop, within, self.all_of(within, inner)))
        return clauses

    def _hops_to_many(self, node: TableNode, where: Where) -> tuple[Relation, ...]:
        """Return the relations up to the first to-many one, for a condition on the related records;
        else ()."""
        if not where.field or where.field == EVERY_TEXT:
            return ()
        resolved = self.route_of(node, where.field)
        hops = resolved.hops if resolved.field is not None else resolved.hops[:-1]
        return next((hops[: number + 1] for number, hop in enumerate(hops) if hop.many), ())

    def _condition(self, node: TableNode, where: Where) -> SqlClause:
        if where.any_of is not None:
            return sa.or_(
                sa.false(),
                *(sa.and_(sa.true(), *self.all_of(node, [one])) for one in where.any_of),
            )
        if where.related:
            return self._related(node, where)
        if where.all_of is not None:
            return sa.and_(sa.true(), *self.all_of(node, where.all_of))
        if where.op in MATCHES:
            return self._words(node, where)
        resolved = self.route_of(node, where.field)
        if resolved.field is None:
            absent = where.op == "null"
            return self._related(node, Where(related=where.field, none=absent))
        column, of = node.column(resolved.hops, resolved.field), resolved.field
        if where.other is not None:
            return self._against_other(node, column, of, where.op, where.other)
        return self.compare(column, of, where.op, self.bound(of, where.value))

    # ---- related records

    def _related(self, node: TableNode, where: Where) -> SqlClause:
        *before, hop = self.route_of(node, where.related).hops
        if not hop.many:
            return self._related_one(node.join([*before, hop]), where)
        here, within = node.join(before), node.other_table(hop.model)
        clauses = self.all_of(within, where.all_of or ())
        if not (where.count or where.none or where.every):
            return here.has_related(hop, within, clauses)
        met, failed = here.number_related(hop, within, clauses, failed=where.every)
        if where.every:
            return sa.and_(met > 0, failed == 0)
        wanted = where.count or {"=": 0}
        return sa.and_(*(_COMPARED[op](met, number) for op, number in wanted.items()))

    def _related_one(self, there: TableNode, where: Where) -> SqlClause:
        exists = there.table.c[there.declared.schema.keys[0]].is_not(None)
        holds = sa.and_(exists, *self.all_of(there, where.all_of or ()))
        return sa.case((holds, 0), else_=1) == 1 if where.none else holds

    # ---- other values of the database

    def _against_other(
        self, node: TableNode, column: SqlClause, of: Field, op: str, other: Compared
    ) -> SqlClause:
        """Return the comparison with another field, or with a figure; one without a value is
        unequal to any value."""
        if other.function is not None:
            against, kind = self._scalar(node, other), of.kind
        else:
            against, against_field = self.column_of(node, other.field)
            kind = against_field.kind
        one, two = column, against
        if of.kind == "text":
            one, two = self.texts.sorted(one), self.texts.sorted(two)
        elif {of.kind, kind} == DATES:  # a date has no time: compared are the days
            one, two = self.figures.bucket(one, "day"), self.figures.bucket(two, "day")
        if op != "!=":
            return _COMPARED[op](one, two)
        return sa.or_(
            one != two,
            sa.and_(column.is_(None), against.is_not(None)),
            sa.and_(column.is_not(None), against.is_(None)),
        )

    def _scalar(self, node: TableNode, other: Compared) -> SqlClause:
        """Return the subquery of one figure over the records that may be read."""
        here = node.declared.schema
        within = node.other_table(model_named(here, other.model, self.tables.schemas))
        assert other.aggregate is not None
        figure, _ = self.figure_of(within, other.aggregate)
        clauses = self.all_of(within, other.wheres)
        return within.select([figure], clauses).scalar_subquery()

    # ---- figures

    def column_of(self, node: TableNode, name: str) -> tuple[SqlClause, Field]:
        """Return the column of a field with one value for each record."""
        resolved = self.route_of(node, name)
        assert resolved.field is not None
        return node.column(resolved.hops, resolved.field), resolved.field

    def figure_of(self, node: TableNode, one: Aggregate) -> tuple[SqlClause, Field]:
        """Return a figure, and its kind as a field."""
        if one.field == EVERY_TEXT:
            return self.figures.figure(one, None, ""), figure_field(one, None)
        column, of = self.column_of(node, one.field)
        return self.figures.figure(one, column, of.kind), figure_field(one, of)

    def havings(
        self, figures: Mapping[str, tuple[SqlClause, Field]], wheres: Sequence[Where]
    ) -> Iterator[SqlClause]:
        """Yield clauses on figures by their names, which must all hold."""
        for where in wheres:
            if where.group is not None:
                join = sa.and_ if where.any_of is None else sa.or_
                default = sa.true() if where.any_of is None else sa.false()
                yield join(default, *self.havings(figures, where.group))
                continue
            figure, of = figures[where.field]
            yield self.compare(figure, of, where.op, _without_decimals(where.value))

    # ---- values

    def compare(self, column: SqlClause, of: Field, op: str, value: Any) -> SqlClause:
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

    def _against(self, column: SqlClause, of: Field, op: str, value: Any) -> SqlClause:
        if of.kind == "text":
            return _COMPARED[op](self.texts.sorted(column), fold(value))
        return _COMPARED[op](column, _parameter(column, value))

    def _equal(self, column: SqlClause, of: Field, values: Sequence[Any]) -> SqlClause:
        if of.kind != "text" or (of.options and set(values) <= set(of.options)):
            return (
                column.in_(values) if len(values) > 1 else column == _parameter(column, values[0])
            )
        return self.texts.equal(column, values)

    def _words(self, node: TableNode, where: Where) -> SqlClause:
        resolved = self.word_clauses(node, where)
        if where.op == MATCH_NONE:
            return sa.not_(sa.or_(sa.false(), *resolved))
        return (
            sa.or_(sa.false(), *resolved)
            if where.op == MATCH_ANY
            else sa.and_(sa.true(), *resolved)
        )

    def word_clauses(self, node: TableNode, where: Where) -> list[SqlClause]:
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

    def _has(self, column: SqlClause, word: str) -> SqlClause:
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


def _without_decimals(value: Any) -> Any:
    """Return a value of a figure as it is bound: SQLite's driver has no decimals."""
    if isinstance(value, (list, tuple)):
        return [_without_decimals(one) for one in value]
    return float(value) if isinstance(value, Decimal) else value


def word_conditions(dsl: QueryDSL) -> list[Where]:
    """Return the conditions of a query that a full-text index can serve: required words in any
    text, outside of groups."""
    return [one for one in dsl.wheres if one.field == EVERY_TEXT and one.op in (MATCH, MATCH_ANY)]


def _parameter(column: SqlClause, value: Any) -> sa.BindParameter[Any]:
    return (
        value
        if isinstance(value, sa.BindParameter)
        else sa.bindparam(None, value, type_=bind_type(column, value))
    )


def bind_type(column: SqlClause, value: Any) -> TypeEngine[Any]:
    return sa.Float() if isinstance(value, float) else column.type
