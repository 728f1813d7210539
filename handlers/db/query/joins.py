"""Joins of related tables in a statement, each with the row limits of its own model.

A relation to one record is a LEFT JOIN; a condition that some of many records meet is an IN, and
one on their number a LEFT JOIN of the numbers by key. None of them is evaluated row by row, as a
correlated subquery would be. The limits of the related model are part of the ON or the subquery, so
that a record which the identity may not see does not exist for the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import FromClause

from groundhook.core.errors import SourceError
from groundhook.core.types.model_options import PermissionColumns
from groundhook.core.types.model_spec import (
    CREATED_BY,
    DELETED,
    SHARE,
    TEAM,
    TENANT,
    UPDATED_BY,
)
from groundhook.handlers.db.model.coerce import coerce
from groundhook.handlers.db.model.collation import SqlClause, TextComparison
from groundhook.handlers.db.model.schema import Field, Relation
from groundhook.handlers.db.model.tables import Declared, Tables
from groundhook.handlers.db.permission import Permit

Permits = Mapping[str, Permit | None]


def row_limits(
    declared: Declared, table: FromClause, permit: Permit | None, texts: TextComparison
) -> list[SqlClause]:
    """Return the clauses for every row that may be read: not soft-deleted, and permitted."""
    alive = [table.c[DELETED].is_(None)] if declared.spec.option.soft_deletes else []
    return alive + (_permit_clauses(declared, table, permit, texts) if permit else [])


def _permit_clauses(
    declared: Declared, table: FromClause, permit: Permit, texts: TextComparison
) -> list[SqlClause]:
    """Return the clauses of a permit. Ids are compared exactly, whatever the column's collation: a
    tenant `acmé` is not `Acme`."""
    column, columns = table.c, declared.spec.option.permission
    extra = [_in_values(declared, column[name], values, texts) for name, values in permit.extra]
    if isinstance(columns, PermissionColumns):
        return [*_declared_column_clauses(declared, table, columns, permit, texts), *extra]

    def equals(name: str, value: str) -> SqlClause:
        return (
            texts.same(column[name], [value])
            if value
            else texts.exact(sa.func.coalesce(column[name], "")) == ""
        )

    shared = [sa.and_(column[SHARE] == "team", equals(TEAM, permit.team))] if permit.team else []
    unowned = sa.and_(equals(CREATED_BY, ""), sa.or_(equals(TEAM, ""), equals(TEAM, permit.team)))
    own = [equals(CREATED_BY, permit.user)] if permit.user else []
    clauses = [
        equals(TENANT, permit.tenant),
        sa.or_(*own, *shared, column[SHARE] == "tenant", unowned),
    ]
    if permit.own or permit.created:
        clauses.append(equals(CREATED_BY, permit.user))
    if permit.own:
        clauses.append(sa.or_(equals(TEAM, ""), equals(TEAM, permit.team)))
    if permit.edited:
        clauses.append(equals(UPDATED_BY, permit.user))
    if permit.of_team:
        clauses.append(equals(TEAM, permit.team))
    return clauses + extra


def _declared_column_clauses(
    declared: Declared,
    table: FromClause,
    columns: PermissionColumns,
    permit: Permit,
    texts: TextComparison,
) -> Iterator[SqlClause]:
    """Return the clauses for a model that declares its own columns. A column that is not declared,
    or an id that the identity lacks, matches no row."""

    def equals(name: str, value: str) -> SqlClause:
        return _in_values(declared, table.c[name], [value], texts) if name and value else sa.false()

    by_user, by_team = equals(columns.user, permit.user), equals(columns.team, permit.team)
    personal = permit.own or permit.created or permit.edited
    if personal:
        yield by_user
    if permit.of_team:
        yield by_team
    if columns.user or columns.team:
        yield sa.or_(by_user, by_team)
    if columns.tenant:
        yield equals(columns.tenant, permit.tenant)


def _in_values(
    declared: Declared, column: SqlClause, values: Sequence[Any], texts: TextComparison
) -> SqlClause:
    """Return the clause for a column among the allowed values. A value that does not fit the field
    matches no row."""
    of = declared.schema.fields[column.name]
    fitting = []
    for value in values:
        try:
            fitting.append(coerce(of, value))
        except SourceError:
            continue
    return texts.same(column, fitting) if of.kind == "text" else column.in_(fitting)


@dataclass
class TableNode:
    """A model's table in a statement, and what is joined to it: related tables by the names of
    their relations, and `numbers` of related records with the clauses that link them. `permits`
    must have every model that is joined: a missing one raises KeyError instead of giving access."""

    tables: Tables
    permits: Permits
    texts: TextComparison
    declared: Declared
    table: FromClause
    joined: dict[str, TableNode] = field(default_factory=dict)
    numbers: list[tuple[FromClause, SqlClause]] = field(default_factory=list)

    @staticmethod
    def root(tables: Tables, permits: Permits, texts: TextComparison, model: str) -> TableNode:
        return TableNode(tables, permits, texts, tables[model], tables[model].table)

    def row_limits(self) -> list[SqlClause]:
        """Return the clauses for every row of this table that may be read."""
        return self._row_limits(self.table)

    def _row_limits(self, table: FromClause) -> list[SqlClause]:
        return row_limits(self.declared, table, self.permits[self.declared.spec.id], self.texts)

    @property
    def alone(self) -> bool:
        """Whether nothing is joined to the table."""
        return not (self.joined or self.numbers)

    def join(self, hops: Sequence[Relation]) -> TableNode:
        """Return the table at the end of to-one relations, joined by the first call."""
        here = self
        for hop in hops:
            if hop.name not in here.joined:
                here.joined[hop.name] = here.other_table(hop.model)
            here = here.joined[hop.name]
        return here

    def column(self, hops: Sequence[Relation], of: Field) -> SqlClause:
        """Return a column of the table at the end of to-one relations."""
        return self.join(hops).table.c[of.name]

    def source(self) -> FromClause:
        """Return the FROM clause of the statement."""
        return self._join_all(self.table)

    def _join_all(self, source: FromClause) -> FromClause:
        for number, link in self.numbers:
            source = source.outerjoin(number, link)
        for name, node in self.joined.items():
            links = node._link_clauses(self, self.declared.schema.relations[name])
            source = source.outerjoin(node.table, sa.and_(*links, *node.row_limits()))
            source = node._join_all(source)
        return source

    def other_table(self, model: str) -> TableNode:
        """Return a new alias of a model's table, with nothing joined."""
        declared = self.tables[model]
        return TableNode(self.tables, self.permits, self.texts, declared, declared.table.alias())

    def _link_clauses(self, here: TableNode, hop: Relation) -> list[SqlClause]:
        """Return the clauses that link this table to `here` by a to-one relation. If several rows
        match, the first is used."""
        links: list[SqlClause] = [self.table.c[hop.key] == here.table.c[hop.foreign]]
        if self.declared.single(hop.key):
            return links
        chosen: list[str] = []
        for key in self.declared.schema.keys:  # the least, column by column
            other = self.declared.table.alias()
            first = sa.select(sa.func.min(other.c[key])).where(
                other.c[hop.key] == here.table.c[hop.foreign],
                *(other.c[name] == self.table.c[name] for name in chosen),
                *self._row_limits(other),
            )
            first = first.correlate(here.table, self.table)
            links.append(self.table.c[key] == first.scalar_subquery())
            chosen.append(key)
        return links

    def has_related(
        self, hop: Relation, within: TableNode, clauses: Sequence[SqlClause]
    ) -> SqlClause:
        """Return the clause for "a related record meets these clauses"; `within` is the related
        table, from `other_table`."""
        keys = within.select([within.table.c[hop.key]], clauses)
        if hop.through:
            link = self.other_table(hop.through.model)
            meets = link.table.c[hop.through.foreign].in_(keys)
            keys = link.select([link.table.c[hop.through.key]], [meets])
        return self.table.c[hop.foreign].in_(keys)

    def number_related(
        self, hop: Relation, within: TableNode, clauses: Sequence[SqlClause], *, failed: bool
    ) -> tuple[SqlClause, SqlClause]:
        """Return the number of related records that meet the clauses, and with `failed` the number
        of those that do not; both are joined by key."""
        key, linked = within.table.c[hop.key], []
        if hop.through:
            link = self.other_table(hop.through.model)
            within.numbers.append((link.table, link.table.c[hop.through.foreign] == key))
            key = link.table.c[hop.through.key]
            linked = [key.is_not(None), *link.row_limits()]
        meets = sa.case((sa.and_(sa.true(), *clauses), 1), else_=0)
        columns = [
            key.label("key"),
            sa.func.sum(meets).label("met"),
            sa.func.sum(1 - meets).label("failed"),
        ]
        rows = within.select(columns, [*linked, *(() if failed else clauses)])
        found = rows.group_by(key).subquery()
        self.numbers.append((found, found.c["key"] == self.table.c[hop.foreign]))
        return sa.func.coalesce(found.c["met"], 0), sa.func.coalesce(found.c["failed"], 0)

    def select(self, columns: Sequence[Any], clauses: Sequence[SqlClause]) -> sa.Select[Any]:
        """Return the select of columns of the rows that may be read and meet the clauses, for a
        subquery that is independent of the statement around it."""
        rows = sa.select(*columns).select_from(self.source())
        return rows.where(*self.row_limits(), *clauses).correlate(None)
