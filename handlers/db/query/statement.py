"""Compilation of QueryDSL to SQLAlchemy `select`. Pure: values are never part of a statement's
text; each is a bound parameter.

A query returns the same rows in the same order on every engine. `conditions` compiles its
conditions, `collation` compares texts, and `joins` joins and limits related records. Rows without a
value are sorted last in both directions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import ColumnElement

from groundhook.core.types.query_language import (
    Aggregate,
    Order,
    Where,
)
from groundhook.handlers.db.model.collation import Texts, as_text
from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.model.tables import Tables
from groundhook.handlers.db.query.conditions import Conditions, bind_type, word_conditions
from groundhook.handlers.db.query.dsl import EVERY_TEXT, MATCH_ANY, QueryDSL
from groundhook.handlers.db.query.joins import Permits, TableNode, row_limits

# Totals are counted up to this number; counting on would cost more than the rows.
MAX_COUNT = 1000
ROWS = "rows"  # the column with the number of records behind a figure
MOST_ALIKE = 500  # values of a field that one question may name
MAX_CACHED = 256  # statements with open parameters

Clause = ColumnElement[Any]
StatementCache = dict[tuple[Any, ...], sa.Select[Any]]
Statement = tuple[sa.Select[Any], dict[str, Any]]  # with the values of its open parameters
PLAIN = frozenset({"=", ">", ">=", "<", "<=", "between"})


class Compiler:
    """Compiles queries on the models of an app for one kind of database (`dialect` is SQLAlchemy's
    name)."""

    def __init__(self, tables: Tables, dialect: str) -> None:
        self._tables, self._dialect, self._texts = tables, dialect, Texts(dialect)
        self._cache: StatementCache = {}

    def query(
        self, dsl: QueryDSL, permits: Permits, limit: int, *, use_index: bool = False
    ) -> Statement:
        """Return the statement of a linted query for at most `limit` records or figures, in a
        stable order. Columns are labelled with the query's names. `permits` has the limits of every
        model that the query reads. `use_index`: read the full-text index, which must exist."""
        builder = self._query(dsl, permits, use_index)
        return (
            (builder.aggregate_rows().limit(limit), {}) if dsl.computed else builder.records(limit)
        )

    def count(self, dsl: QueryDSL, permits: Permits, *, use_index: bool = False) -> sa.Select[Any]:
        """Return the statement that counts the query's rows up to `MAX_COUNT`."""
        builder = self._query(dsl, permits, use_index)
        some = builder.unit_rows().limit(MAX_COUNT).subquery()
        return sa.select(sa.func.count()).select_from(some)

    def sample(
        self, model: str, of: Field, permits: Permits, rows: int | None, values: int
    ) -> sa.Select[Any]:
        """Return the statement for at most `values` distinct values of a field, each with the
        number of its rows and the most frequent first, among the first `rows` rows that the permit
        allows. Among all rows (None) values are not counted: the number is 0."""
        declared = self._tables[model]
        column, key = declared.table.c[of.name], declared.table.c[declared.schema.key]
        limits = row_limits(declared, declared.table, permits[model], self._texts)
        chosen = as_text(column).label(of.name) if of.kind == "json" else column
        found = sa.select(chosen).where(*limits, column.is_not(None))
        if rows is None:
            return found.add_columns(sa.literal(0)).distinct().limit(values)
        value = found.order_by(key).limit(rows).subquery().c[of.name]
        number = sa.func.count()
        return sa.select(value, number).group_by(value).order_by(number.desc(), value).limit(values)

    def lookup(
        self, model: str, of: Field, permits: Permits, texts: Sequence[str], *, indexed: bool
    ) -> sa.Select[Any]:
        """Return the statement for the values of a field that are among the texts, in any case.
        `indexed`: an index can serve it, so accents count."""
        declared = self._tables[model]
        limits = row_limits(declared, declared.table, permits[model], self._texts)
        column = declared.table.c[of.name]
        alike = self._texts.equal if indexed else self._texts.alike
        return sa.select(column).where(*limits, alike(column, texts)).distinct().limit(MOST_ALIKE)

    def _query(self, dsl: QueryDSL, permits: Permits, use_index: bool) -> _SelectBuilder:
        root = TableNode.root(self._tables, permits, self._texts, dsl.model)
        if len(self._cache) > MAX_CACHED:
            self._cache.clear()
        indexable = word_conditions(dsl) if use_index else ()
        conditions = Conditions(self._tables, self._texts, self._dialect, indexable)
        return _SelectBuilder(dsl, root, conditions, self._texts, self._dialect, self._cache)


@dataclass
class _SelectBuilder:
    dsl: QueryDSL
    root: TableNode
    conditions: Conditions
    texts: Texts
    dialect: str
    cache: StatementCache
    labels: dict[str, Clause] = field(default_factory=dict)

    def records(self, limit: int) -> Statement:
        """Return the statement for records. Statements that differ only in values are cached with
        open parameters, since building a statement often takes longer than running it."""
        names = self._record_names()
        own = self._reads_own_fields(names)
        fixed = [one for one in self.dsl.wheres if own and self._has_fixed_shape(one)]
        rest = [one for one in self.dsl.wheres if not (own and self._has_fixed_shape(one))]
        # Also joins the tables it needs.
        wheres = [*self.conditions.all_of(self.root, rest), *self.root.row_limits()]
        if self.root.joined or not own:
            wheres = [*self.conditions.all_of(self.root, fixed), *wheres]
            return self._rows(names, limit).where(*wheres), {}
        given = [self._values_of(one) for one in fixed]
        rows = self._cached_rows(names, limit, fixed, given)
        values = {f"given{at}": value for at, value in enumerate(chain.from_iterable(given))}
        return rows.where(*wheres) if wheres else rows, values

    def _record_names(self) -> tuple[str, ...]:
        """Return the columns of records: the key, the title, and those that are selected."""
        schema = self.root.declared.schema
        chosen = self.dsl.select or [one.name for one in schema.visible]
        return tuple(dict.fromkeys(filter(None, (schema.key, schema.title, *chosen))))

    def _reads_own_fields(self, names: Sequence[str]) -> bool:
        """Return whether the columns and orders are fields of the model itself."""
        read = {*names, *(order.field for order in self.dsl.orders)}
        ranked = any(one.op == MATCH_ANY for one in self.dsl.wheres)
        return self.root.declared.schema.fields.keys() >= read and not ranked

    def _has_fixed_shape(self, where: Where) -> bool:
        """Return whether a condition compiles to the same SQL for every value."""
        of = self.root.declared.schema.fields.get(where.field) if where.op in PLAIN else None
        return of is not None and of.kind in ("integer", "number", "date", "moment")

    def _cached_rows(
        self,
        names: tuple[str, ...],
        limit: int,
        fixed: Sequence[Where],
        given: Sequence[list[Any]],
    ) -> sa.Select[Any]:
        """Return the select of the records with open parameters for the values of `fixed`."""
        orders = tuple((order.field, order.order) for order in self.dsl.orders)
        shapes = (
            (one.field, one.op, *map(type, values))
            for one, values in zip(fixed, given, strict=True)
        )
        key = (self.root.declared.schema.id, names, orders, limit, *shapes)
        rows = self.cache.get(key)
        if rows is None:
            rows = self._rows(names, limit).where(*self._open_conditions(fixed, given))
            self.cache[key] = rows
        return rows

    def _values_of(self, where: Where) -> list[Any]:
        """Return the values of a condition as they are bound."""
        value = self.conditions.bound(self.root.declared.schema.fields[where.field], where.value)
        return value if isinstance(value, list) else [value]

    def _open_conditions(
        self, wheres: Sequence[Where], given: Sequence[list[Any]]
    ) -> Iterator[Clause]:
        """Yield conditions with open parameters `given0`, `given1`, … for their values."""
        at = count()
        for where, values in zip(wheres, given, strict=True):
            of, column = (
                self.root.declared.schema.fields[where.field],
                self.root.table.c[where.field],
            )
            open = [
                sa.bindparam(f"given{next(at)}", None, bind_type(column, value), required=False)
                for value in values
            ]
            yield self.conditions.compare(
                column, of, where.op, open if where.op == "between" else open[0]
            )

    def _rows(self, names: Sequence[str], limit: int) -> sa.Select[Any]:
        """Return the select of the records without conditions."""
        columns = [self._label(name) for name in names]
        orders = [
            *self._rank_by_words(),
            *(part for order in self.dsl.orders for part in self._order(order)),
            self._key(),
        ]
        return sa.select(*columns).select_from(self.root.source()).order_by(*orders).limit(limit)

    def _label(self, name: str) -> Any:
        """Return a column labelled with the query's name for it."""
        own = self.root.table.c
        return own[name] if name in own else self._column(name).label(name)

    def aggregate_rows(self) -> sa.Select[Any]:
        """Return the statement for figures, one row per group."""
        groups = {name: self._group(name) for name in self.dsl.groups}
        self.labels = {
            **groups,
            **{one.called: self._format_figure(one) for one in self.dsl.aggregates},
        }
        columns = [clause.label(name) for name, clause in self.labels.items()] + [
            sa.func.count().label(ROWS)
        ]
        statement = self._from(columns).group_by(*groups.values())
        ordered = {order.field for order in self.dsl.orders}
        orders = [
            part
            for order in self.dsl.orders
            for part in self._sort_by(self.labels[order.field], order)
        ]
        rest = [
            part
            for name in groups
            if name not in ordered
            for part in self._sort_by(groups[name], Order(field=name, order="asc"))
        ]
        return statement.order_by(*orders, *rest)

    def unit_rows(self) -> sa.Select[Any]:
        """Return the same rows without their columns, for counting."""
        groups = [self._group(name) for name in self.dsl.groups]
        if self.dsl.computed and not groups:
            return sa.select(sa.literal(1))
        return self._from([sa.literal(1).label("one")]).group_by(*groups)

    def _from(self, columns: Sequence[Any]) -> sa.Select[Any]:
        # First, since it joins the tables it needs.
        wheres = self.conditions.all_of(self.root, self.dsl.wheres)
        return (
            sa.select(*columns)
            .select_from(self.root.source())
            .where(*wheres, *self.root.row_limits())
        )

    # ---- columns

    def _column(self, name: str) -> Clause:
        resolved = self.conditions.route_of(self.root, name)
        assert resolved.field is not None
        return self.root.column(resolved.hops, resolved.field)

    def _group(self, name: str) -> Clause:
        column, kind = self._column(name), self._kind(name)
        return self.texts.exact(column) if kind == "text" else column

    def _kind(self, name: str) -> str:
        resolved = self.conditions.route_of(self.root, name)
        return resolved.field.kind if resolved.field is not None else ""

    def _format_figure(self, one: Aggregate) -> Clause:
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

    # ---- order

    def _key(self) -> Clause:
        """Return the key as the last sort order, in the direction of the order before it, so that
        one index serves both."""
        key = self.root.table.c[self.root.declared.schema.key]
        return key.desc() if self.dsl.orders and self.dsl.orders[-1].order == "desc" else key.asc()

    def _rank_by_words(self) -> list[Clause]:
        """Sort records that match any of several words by the number of words, descending."""
        return [
            sum(
                (
                    sa.case((has, 1), else_=0)
                    for has in self.conditions.word_clauses(self.root, where)
                ),
                sa.literal(0),
            ).desc()
            for where in self.dsl.wheres
            if where.op == MATCH_ANY and where.group is None
        ]

    def _order(self, order: Order) -> list[Clause]:
        resolved = self.conditions.route_of(self.root, order.field)
        assert resolved.field is not None
        column = self.root.column(resolved.hops, resolved.field)
        by = self.texts.sorted(column) if resolved.field.kind == "text" else column
        return self._sort_by(by, order, empty=bool(resolved.hops) or resolved.field.nullable)

    def _sort_by(self, by: Clause, order: Order, *, empty: bool = True) -> list[Clause]:
        """Sort rows without a value last; `empty` is whether there may be any. Omitted where it is
        the engine's default, so that an index can be used."""
        is_default = (self.dialect == "postgresql") == (order.order == "asc")
        last = [by.is_(None)] if empty and not is_default else []
        return [*last, by.asc() if order.order == "asc" else by.desc()]
