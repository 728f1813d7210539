"""Compilation of QueryDSL to SQLAlchemy `select`. Pure: values are never part of a statement's
text; each is a bound parameter.

A query returns the same rows in the same order on every engine. `conditions` compiles its
conditions, `collation` compares texts, and `joins` joins and limits related records. Rows without a
value are sorted last in both directions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import sqlalchemy as sa

from groundhook.core.types.query_language import (
    DateBucket,
    Group,
    Order,
    Where,
    group_field,
    group_name,
)
from groundhook.handlers.db.model.collation import SqlClause, TextComparison, as_text
from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.model.tables import Tables
from groundhook.handlers.db.query.conditions import Conditions, bind_type, word_conditions
from groundhook.handlers.db.query.dsl import MATCH_ANY, QueryDSL
from groundhook.handlers.db.query.joins import Permits, TableNode, row_limits

# Totals are counted up to this number; counting on would cost more than the rows.
MAX_COUNT = 10_000
ROWS = "rows"  # the column with the number of records behind a figure
MOST_ALIKE = 500  # values of a field that one question may name
MAX_TIES = 100  # rows beyond the limit that equal its last one
RANK, POSITION = "rank of row", "position of row"  # no name of a field has blanks
MAX_CACHED = 256  # statements with open parameters

StatementCache = dict[tuple[Any, ...], sa.Select[Any]]
Statement = tuple[sa.Select[Any], dict[str, Any]]  # with the values of its open parameters
PLAIN = frozenset({"=", ">", ">=", "<", "<=", "between"})


class QueryCompiler:
    """Compiles queries on the models of an app for one kind of database (`dialect` is SQLAlchemy's
    name)."""

    def __init__(self, tables: Tables, dialect: str) -> None:
        self._tables, self._dialect, self._texts = tables, dialect, TextComparison(dialect)
        self._cache: StatementCache = {}

    def query(
        self, dsl: QueryDSL, permits: Permits, limit: int, *, use_index: bool = False
    ) -> Statement:
        """Return the statement of a linted query for at most `limit` records or figures, in a
        stable order; with `ties` for up to MAX_TIES more that equal the last one. Columns are
        labelled with the query's names. `permits` has the limits of every model that the query
        reads. `use_index`: read the full-text index, which must exist."""
        builder = self._query(dsl, permits, use_index)
        return builder.figures(limit) if dsl.computed else builder.records(limit)

    def count(
        self, dsl: QueryDSL, permits: Permits, limit: int, *, use_index: bool = False
    ) -> sa.Select[Any]:
        """Return the statement that counts the query's rows up to `MAX_COUNT`, with `ties` those of
        the first `limit` and their equals."""
        builder = self._query(dsl, permits, use_index)
        rows = builder.ranked(limit) if dsl.ties else builder.unit_rows()
        some = rows.limit(MAX_COUNT).subquery()
        return sa.select(sa.func.count()).select_from(some)

    def sample(
        self, model: str, of: Field, permits: Permits, rows: int | None, values: int
    ) -> sa.Select[Any]:
        """Return the statement for at most `values` distinct values of a field, each with the
        number of its rows and the most frequent first, among the first `rows` rows that the permit
        allows. Among all rows (None) values are not counted: the number is 0."""
        declared = self._tables[model]
        column, keys = (
            declared.table.c[of.name],
            [declared.table.c[name] for name in declared.schema.keys],
        )
        limits = row_limits(declared, declared.table, permits[model], self._texts)
        found = sa.select(_shown(column, of)).where(*limits, column.is_not(None))
        if rows is None:
            return found.add_columns(sa.literal(0)).distinct().limit(values)
        value = found.order_by(*keys).limit(rows).subquery().c[of.name]
        number = sa.func.count()
        return sa.select(value, number).group_by(value).order_by(number.desc(), value).limit(values)

    def rows(
        self, model: str, fields: Sequence[Field], permits: Permits, most: int
    ) -> sa.Select[Any]:
        """Return the statement for these fields of up to `most` rows that the permit allows."""
        declared = self._tables[model]
        limits = row_limits(declared, declared.table, permits[model], self._texts)
        columns = [_shown(declared.table.c[one.name], one) for one in fields]
        return sa.select(*columns).where(*limits).limit(most)

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


def _shown(column: sa.Column[Any], of: Field) -> sa.ColumnElement[Any]:
    """Return the column of a field, of JSON as text."""
    return as_text(column).label(of.name) if of.kind == "json" else column


@dataclass
class _SelectBuilder:
    dsl: QueryDSL
    root: TableNode
    conditions: Conditions
    texts: TextComparison
    dialect: str
    cache: StatementCache

    def records(self, limit: int) -> Statement:
        """Return the statement for records. Statements that differ only in values are cached with
        open parameters, since building a statement often takes longer than running it."""
        names = self._record_names()
        if self.dsl.ties:
            return self._with_ties(names, limit), {}
        own = self._reads_own_fields(names)
        fixed = [one for one in self.dsl.wheres if own and self._has_fixed_shape(one)]
        rest = [one for one in self.dsl.wheres if not (own and self._has_fixed_shape(one))]
        # Also joins the tables it needs.
        wheres = [*self.conditions.all_of(self.root, rest), *self.root.row_limits()]
        if not (self.root.alone and own):
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
        return tuple(dict.fromkeys(filter(None, (*schema.keys, *schema.title_fields, *chosen))))

    def _reads_own_fields(self, names: Sequence[str]) -> bool:
        """Return whether the columns and orders are fields of the model itself."""
        read = {*names, *(order.field for order in self.dsl.orders)}
        ranked = any(one.op == MATCH_ANY for one in self.dsl.wheres)
        return self.root.declared.schema.fields.keys() >= read and not ranked

    def _has_fixed_shape(self, where: Where) -> bool:
        """Return whether a condition compiles to the same SQL for every value."""
        plain = where.op in PLAIN and where.other is None
        of = self.root.declared.schema.fields.get(where.field) if plain else None
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
        schema, offset = self.root.declared.schema, self.dsl.offset
        key = (schema.id, names, orders, limit, offset, *shapes)
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
    ) -> Iterator[SqlClause]:
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
        orders = [*self._record_orders(), *self._key()]
        rows = sa.select(*columns).select_from(self.root.source())
        return self._page(rows.order_by(*orders), limit)

    def _page(self, rows: sa.Select[Any], limit: int) -> sa.Select[Any]:
        rows = rows.limit(limit)
        return rows.offset(self.dsl.offset) if self.dsl.offset else rows

    def _record_orders(self) -> list[SqlClause]:
        orders = (part for order in self.dsl.orders for part in self._order(order))
        return [*self._rank_by_words(), *orders]

    def _label(self, name: str) -> Any:
        """Return a column labelled with the query's name for it."""
        own = self.root.table.c
        return own[name] if name in own else self._column(name).label(name)

    def figures(self, limit: int) -> Statement:
        """Return the statement for figures, one row per group."""
        if self.dsl.ties:
            return self._with_ties((), limit), {}
        rows, orders, rest = self._groups()
        return self._page(rows.order_by(*orders, *rest), limit), {}

    def _groups(self) -> tuple[sa.Select[Any], list[SqlClause], list[SqlClause]]:
        """Return the select of the figures, its sort orders, and those of equal rows."""
        groups = {group_name(one): self._group(one) for one in self.dsl.groups}
        figures = {
            one.called: self.conditions.figure_of(self.root, one) for one in self.dsl.aggregates
        }
        labels = {**groups, **{name: clause for name, (clause, _) in figures.items()}}
        columns = [clause.label(name) for name, clause in labels.items()]
        rows = self._from([*columns, sa.func.count().label(ROWS)]).group_by(*groups.values())
        if self.dsl.havings:
            rows = rows.having(*self.conditions.havings(figures, self.dsl.havings))
        wanted = self.dsl.orders or self._natural_order()
        ordered = {order.field for order in wanted}
        orders = [part for order in wanted for part in self._sort_by(labels[order.field], order)]
        rest = [
            part
            for name in groups
            if name not in ordered
            for part in self._sort_by(groups[name], Order(field=name, order="asc"))
        ]
        return rows, orders, rest

    def _natural_order(self) -> list[Order]:
        """Return the order of groups without one: the first figure, descending; parts of dates
        first, in order of time."""
        dates = [
            Order(field=one.called, order="asc")
            for one in self.dsl.groups
            if isinstance(one, DateBucket)
        ]
        figures = self.dsl.aggregates[:1] if self.dsl.groups else ()
        return [*dates, *(Order(field=one.called) for one in figures)]

    def _with_ties(self, names: Sequence[str], limit: int) -> sa.Select[Any]:
        """Return the statement of the first rows and of those that equal the last of them in every
        order; of groups without `names`."""
        return self.ranked(limit, names).limit(limit + MAX_TIES)

    def ranked(self, limit: int, names: Sequence[str] = ()) -> sa.Select[Any]:
        """Return the select of all rows whose rank is within the limit."""
        if self.dsl.computed:
            rows, orders, rest = self._groups()
        else:
            names = names or self.root.declared.schema.keys
            orders = self._record_orders()  # First, with the columns, since they join tables.
            columns = [self._label(name) for name in names]
            rows, rest = self._from(columns), self._key()
        shown = [column.name for column in rows.selected_columns]
        numbered = rows.add_columns(
            sa.func.rank().over(order_by=orders).label(RANK),
            sa.func.row_number().over(order_by=[*orders, *rest]).label(POSITION),
        ).subquery()
        return (
            sa.select(*(numbered.c[name] for name in shown))
            .where(numbered.c[RANK] <= limit)
            .order_by(numbered.c[POSITION])
        )

    def unit_rows(self) -> sa.Select[Any]:
        """Return the same rows without their columns, for counting."""
        groups = [self._group(one) for one in self.dsl.groups]
        if self.dsl.computed and not groups and not self.dsl.havings:
            return sa.select(sa.literal(1))
        if self.dsl.havings:
            return self._groups()[0]
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

    def _column(self, name: str) -> SqlClause:
        return self.conditions.column_of(self.root, name)[0]

    def _group(self, group: Group) -> SqlClause:
        column, of = self.conditions.column_of(self.root, group_field(group))
        if isinstance(group, DateBucket):
            return self.conditions.figures.bucket(column, group.by)
        return self.conditions.figures.group(column, of.kind)

    # ---- order

    def _key(self) -> list[SqlClause]:
        """Return the key as the last sort order, in the direction of the order before it, so that
        one index serves both."""
        down = bool(self.dsl.orders) and self.dsl.orders[-1].order == "desc"
        columns = (self.root.table.c[name] for name in self.root.declared.schema.keys)
        return [column.desc() if down else column.asc() for column in columns]

    def _rank_by_words(self) -> list[SqlClause]:
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
            if where.op == MATCH_ANY
        ]

    def _order(self, order: Order) -> list[SqlClause]:
        resolved = self.conditions.route_of(self.root, order.field)
        assert resolved.field is not None
        column = self.root.column(resolved.hops, resolved.field)
        kind = resolved.field.kind
        by = self.texts.sorted(column) if kind == "text" else column
        by = as_text(column) if kind == "json" else by
        return self._sort_by(by, order, empty=bool(resolved.hops) or resolved.field.nullable)

    def _sort_by(self, by: SqlClause, order: Order, *, empty: bool = True) -> list[SqlClause]:
        """Sort rows without a value last; `empty` is whether there may be any. Omitted where it is
        the engine's default, so that an index can be used."""
        is_default = (self.dialect == "postgresql") == (order.order == "asc")
        last = [by.is_(None)] if empty and not is_default else []
        return [*last, by.asc() if order.order == "asc" else by.desc()]
