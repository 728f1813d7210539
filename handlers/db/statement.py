"""QueryDSL to SQLAlchemy `select`. Pure: no value ever becomes part of a statement's text, each is
a bound parameter.

The same query finds the same rows in the same order on every engine: how texts are compared is
`text`'s, how related records are reached and limited `places`'s. Without a value means last,
whichever way one sorts.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import ColumnElement
from sqlalchemy.types import TypeEngine

from groundhook.handlers.db import fulltext
from groundhook.handlers.db.dsl import EVERY_TEXT, MATCH, MATCH_ANY, MATCH_NONE, MATCHES, QueryDSL
from groundhook.handlers.db.paths import Permits, Place, always
from groundhook.handlers.db.schema import Field, Relation, Route, Schema, route
from groundhook.handlers.db.tables import Tables
from groundhook.handlers.db.text import Texts, containing, fold, pattern_of
from groundhook.host.core.types.search import Aggregate, Order, Where

COUNTED = 1000  # a total beyond this is not counted to its end, which would cost more than the rows
ROWS = "rows"  # of a query that computes: the column with the number of records behind a figure

MOST_KEPT = 256  # statements without values

Clause = ColumnElement[Any]
Kept = dict[tuple[Any, ...], sa.Select[Any]]
Statement = tuple[sa.Select[Any], dict[str, Any]]  # and the values that it leaves open
PLAIN = frozenset({"=", ">", ">=", "<", "<=", "between"})
_COMPARED: dict[str, Callable[[Any, Any], Clause]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


class Compiler:
    """Makes statements over the models of an app for one kind of database (`dialect`: SQLAlchemy's
    name for it)."""

    def __init__(self, tables: Tables, dialect: str) -> None:
        self._tables, self._dialect, self._texts = tables, dialect, Texts(dialect)
        self._kept: Kept = {}

    def query(
        self, dsl: QueryDSL, permits: Permits, limit: int, *, indexed: bool = False
    ) -> Statement:
        """The records, or the figures, that a query which the linter passed asks for: at most
        `limit`, in a stable order. Columns are labelled with the names that the query has for them.
        `permits`: of every model that the query touches. `indexed`: words are looked up in the
        full-text index, which is there."""
        asked = self._query(dsl, permits, indexed)
        return (asked.figures().limit(limit), {}) if dsl.computed else asked.records(limit)

    def count(self, dsl: QueryDSL, permits: Permits, *, indexed: bool = False) -> sa.Select[Any]:
        """How many rows the query has in all, as far as `COUNTED`."""
        asked = self._query(dsl, permits, indexed)
        some = asked.bare().limit(COUNTED).subquery()
        return sa.select(sa.func.count()).select_from(some)

    def sample(
        self, model: str, of: Field, permits: Permits, rows: int, values: int
    ) -> sa.Select[Any]:
        """Distinct values of a field, at most `values` of them, among the first `rows` rows that
        the permit shows."""
        declared = self._tables[model]
        column, key = declared.table.c[of.name], declared.table.c[declared.schema.key]
        limits = always(declared, declared.table, permits[model], self._texts)
        some = (
            sa.select(column)
            .where(*limits, column.is_not(None))
            .order_by(key)
            .limit(rows)
            .subquery()
        )
        return sa.select(some.c[of.name]).distinct().limit(values)

    def _query(self, dsl: QueryDSL, permits: Permits, indexed: bool) -> _Query:
        root = Place.root(self._tables, permits, self._texts, dsl.model)
        if len(self._kept) > MOST_KEPT:
            self._kept.clear()
        return _Query(dsl, root, self._tables, self._texts, self._dialect, indexed, self._kept)


@dataclass
class _Query:
    dsl: QueryDSL
    root: Place
    tables: Tables
    texts: Texts
    dialect: str
    indexed: bool
    kept: Kept
    labels: dict[str, Clause] = field(default_factory=dict)

    def records(self, limit: int) -> Statement:
        """The records. What does not hang on the values is made once: making a statement takes
        longer than many an answer."""
        schema, dsl = self.root.declared.schema, self.dsl
        chosen = dsl.select or [one.name for one in schema.visible]
        names = tuple(
            dict.fromkeys([schema.key, *([schema.title] if schema.title else []), *chosen])
        )
        by = tuple((order.field, order.order) for order in dsl.orders)
        own = schema.fields.keys() >= {*names, *(name for name, _ in by)} and not any(
            one.op == MATCH_ANY for one in dsl.wheres
        )
        plain = [one for one in dsl.wheres if own and _is_plain(schema, one)]
        rest = [one for one in dsl.wheres if not (own and _is_plain(schema, one))]
        wheres = [*self._all(self.root, rest), *self.root.always()]  # joins what it needs
        if self.root.joined or not own:
            return self._rows(names, limit).where(*self._all(self.root, plain), *wheres), {}
        given = [self._given(one) for one in plain]
        key = (
            schema.id,
            names,
            by,
            limit,
            *(
                (one.field, one.op, *map(type, some))
                for one, some in zip(plain, given, strict=True)
            ),
        )
        rows = self.kept.get(key)
        if rows is None:
            rows = self.kept[key] = self._rows(names, limit).where(*self._open(plain, given))
        values = {
            f"given{at}": value
            for at, value in enumerate(value for some in given for value in some)
        }
        return rows.where(*wheres) if wheres else rows, values

    def _given(self, where: Where) -> list[Any]:
        """The values of a condition, as they are bound."""
        value = self._bound(self.root.declared.schema.fields[where.field], where.value)
        return value if isinstance(value, list) else [value]

    def _open(self, wheres: Sequence[Where], given: Sequence[list[Any]]) -> Iterator[Clause]:
        """Plain conditions, their values left open: `given0`, `given1`, …"""
        at = count()
        for where, values in zip(wheres, given, strict=True):
            of, column = (
                self.root.declared.schema.fields[where.field],
                self.root.table.c[where.field],
            )
            open = [
                sa.bindparam(f"given{next(at)}", None, _type(column, value), required=False)
                for value in values
            ]
            yield self._compared(column, of, where.op, open if where.op == "between" else open[0])

    def _rows(self, names: Sequence[str], limit: int) -> sa.Select[Any]:
        """The records without their conditions."""
        columns = [self._named(name) for name in names]
        orders = [
            *self._best(),
            *(part for order in self.dsl.orders for part in self._order(order)),
            self._key(),
        ]
        return sa.select(*columns).select_from(self.root.source()).order_by(*orders).limit(limit)

    def _named(self, name: str) -> Any:
        """A column under the name that the query has for it."""
        own = self.root.table.c
        return own[name] if name in own else self._column(name).label(name)

    def figures(self) -> sa.Select[Any]:
        groups = {name: self._group(name) for name in self.dsl.groups}
        self.labels = {**groups, **{one.called: self._figure(one) for one in self.dsl.aggregates}}
        columns = [clause.label(name) for name, clause in self.labels.items()] + [
            sa.func.count().label(ROWS)
        ]
        statement = self._from(columns).group_by(*groups.values())
        ordered = {order.field for order in self.dsl.orders}
        orders = [
            part
            for order in self.dsl.orders
            for part in self._ordered(self.labels[order.field], order)
        ]
        rest = [
            part
            for name in groups
            if name not in ordered
            for part in self._ordered(groups[name], Order(field=name, order="asc"))
        ]
        return statement.order_by(*orders, *rest)

    def bare(self) -> sa.Select[Any]:
        """The same rows without what they hold."""
        groups = [self._group(name) for name in self.dsl.groups]
        if self.dsl.computed and not groups:
            return sa.select(sa.literal(1))
        return self._from([sa.literal(1).label("one")]).group_by(*groups)

    def _from(self, columns: Sequence[Any]) -> sa.Select[Any]:
        wheres = self._all(self.root, self.dsl.wheres)  # first, since it joins what it needs
        return (
            sa.select(*columns).select_from(self.root.source()).where(*wheres, *self.root.always())
        )

    # ---- columns

    def _route(self, place: Place, name: str) -> Route:
        found = route(place.declared.schema, name, self.tables.schemas)
        assert found is not None, name  # the linter knew it
        return found

    def _column(self, name: str) -> Clause:
        found = self._route(self.root, name)
        assert found.field is not None
        return self.root.column(found.hops, found.field)

    def _group(self, name: str) -> Clause:
        column, kind = self._column(name), self._kind(name)
        return self.texts.exact(column) if kind == "text" else column

    def _kind(self, name: str) -> str:
        found = self._route(self.root, name)
        return found.field.kind if found.field is not None else ""

    def _figure(self, one: Aggregate) -> Clause:
        if one.field == EVERY_TEXT:
            return sa.func.count()
        column = self._group(one.field)
        match one.function:
            case "count":
                return sa.func.count(sa.distinct(column) if one.distinct else column)
            case "avg":  # engines keep different numbers of digits of a decimal's average
                number = (
                    column * sa.literal_column("1e0")
                    if self.dialect == "mariadb"
                    else sa.cast(column, sa.Double)
                )
                return sa.func.avg(sa.distinct(number) if one.distinct else number)
            case "sum":
                return sa.func.sum(sa.distinct(column) if one.distinct else column)
            case "min":
                return sa.func.min(column)
            case _:
                return sa.func.max(column)

    # ---- conditions

    def _all(self, place: Place, wheres: Sequence[Where]) -> list[Clause]:
        """Conditions that must all hold. Those on the same related records are asked of one and the
        same record."""
        clauses: list[Clause] = []
        many: dict[tuple[Relation, ...], list[Where]] = {}
        for where in wheres:
            hops = self._to_many(place, where)
            if hops:
                rest = where.field.split(".", len(hops))[len(hops)]
                many.setdefault(hops, []).append(where.model_copy(update={"field": rest}))
            else:
                clauses.append(self._condition(place, where))
        for hops, inner in many.items():
            here = place.reach(hops[:-1])
            within = here.beside(hops[-1])
            clauses.append(here.exists(hops[-1], within, self._all(within, inner)))
        return clauses

    def _to_many(self, place: Place, where: Where) -> tuple[Relation, ...]:
        """The relations up to the first that leads to many records, for a condition on what they
        hold; else none."""
        if where.group is not None or where.field == EVERY_TEXT:
            return ()
        found = self._route(place, where.field)
        hops = found.hops if found.field is not None else found.hops[:-1]
        return next((hops[: number + 1] for number, hop in enumerate(hops) if hop.many), ())

    def _condition(self, place: Place, where: Where) -> Clause:
        if where.any_of is not None:
            return sa.or_(
                sa.false(), *(sa.and_(sa.true(), *self._all(place, [one])) for one in where.any_of)
            )
        if where.all_of is not None:
            return sa.and_(sa.true(), *self._all(place, where.all_of))
        if where.op in MATCHES:
            return self._words(place, where)
        found = self._route(place, where.field)
        if found.field is None:
            here = place.reach(found.hops[:-1])
            there = here.exists(found.hops[-1], here.beside(found.hops[-1]), ())
            return sa.not_(there) if where.op == "null" else there
        return self._compared(
            place.column(found.hops, found.field),
            found.field,
            where.op,
            self._bound(found.field, where.value),
        )

    def _compared(self, column: Clause, of: Field, op: str, value: Any) -> Clause:
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

    def _words(self, place: Place, where: Where) -> Clause:
        found = self._found(place, where)
        if where.op == MATCH_NONE:
            return sa.not_(sa.or_(sa.false(), *found))
        return sa.or_(sa.false(), *found) if where.op == MATCH_ANY else sa.and_(sa.true(), *found)

    def _found(self, place: Place, where: Where) -> list[Clause]:
        """For each word, whether one of the fields has it."""
        schema = place.declared.schema
        fields = schema.texts if where.field == EVERY_TEXT else [schema.fields[where.field]]
        columns = [place.table.c[one.name] for one in fields]
        has = [
            sa.or_(sa.false(), *(self._has(column, word) for column in columns))
            for word in where.value
        ]
        if not (self.indexed and where in searched(self.dsl)):
            return has
        name = place.declared.table.name
        begun = [
            fulltext.found(self.dialect, schema, place.table, name, word) for word in where.value
        ]
        return [
            one if begins is None else sa.and_(begins, one)
            for begins, one in zip(begun, has, strict=True)
        ]

    def _has(self, column: Clause, word: str) -> Clause:
        # Without a text there is nothing in it, rather than nothing known about it.
        return sa.func.coalesce(self.texts.like(column, containing(word)), sa.false())

    def _bound(self, of: Field, value: Any) -> Any:
        """Decimals for whole-number columns as floats: drivers have no other way to compare 4.5
        with one."""
        if isinstance(value, (list, tuple)):
            return [self._bound(of, one) for one in value]
        return float(value) if of.kind == "integer" and isinstance(value, Decimal) else value

    # ---- order

    def _key(self) -> Clause:
        """What decides between equals; the way of the last order, so that an index over that serves
        both."""
        key = self.root.table.c[self.root.declared.schema.key]
        return key.desc() if self.dsl.orders and self.dsl.orders[-1].order == "desc" else key.asc()

    def _best(self) -> list[Clause]:
        """Of records that have any of some words, those with most of them first."""
        return [
            sum(
                (sa.case((has, 1), else_=0) for has in self._found(self.root, where)), sa.literal(0)
            ).desc()
            for where in self.dsl.wheres
            if where.op == MATCH_ANY and where.group is None
        ]

    def _order(self, order: Order) -> list[Clause]:
        found = self._route(self.root, order.field)
        assert found.field is not None
        column = self.root.column(found.hops, found.field)
        by = self.texts.sorted(column) if found.field.kind == "text" else column
        return self._ordered(by, order, empty=bool(found.hops) or found.field.nullable)

    def _ordered(self, by: Clause, order: Order, *, empty: bool = True) -> list[Clause]:
        """Without a value (`empty`: there may be such) last. Not said where the engine does so
        anyway: an index may serve."""
        by_nature = (self.dialect == "postgresql") == (order.order == "asc")
        last = [by.is_(None)] if empty and not by_nature else []
        return [*last, by.asc() if order.order == "asc" else by.desc()]


def searched(dsl: QueryDSL) -> list[Where]:
    """The conditions of a query that an index over every text may serve: words that are wanted, not
    in a group."""
    return [
        one
        for one in dsl.wheres
        if one.group is None and one.field == EVERY_TEXT and one.op in (MATCH, MATCH_ANY)
    ]


def _is_plain(schema: Schema, where: Where) -> bool:
    """Whether a condition is the same piece of a statement whatever its value is."""
    of = schema.fields.get(where.field) if where.op in PLAIN else None
    return of is not None and of.kind in ("integer", "number", "date", "moment")


def _parameter(column: Clause, value: Any) -> sa.BindParameter[Any]:
    return (
        value
        if isinstance(value, sa.BindParameter)
        else sa.bindparam(None, value, type_=_type(column, value))
    )


def _type(column: Clause, value: Any) -> TypeEngine[Any]:
    return sa.Float() if isinstance(value, float) else column.type
