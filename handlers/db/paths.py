"""Tables in a statement, reached over relations; each under the limits of its own model.

A relation to one record is a LEFT JOIN, a relation to many an EXISTS. What a model's permit hides
is hidden there as well: the limits stand in the ON and in the EXISTS, so that a record that may not
be seen is as good as none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import ColumnElement, FromClause

from groundhook.handlers.db.coerce import coerce
from groundhook.handlers.db.permission import Permit
from groundhook.handlers.db.schema import Field, Relation
from groundhook.handlers.db.tables import Declared, Tables
from groundhook.handlers.db.text import Texts
from groundhook.host.core.errors import SourceError
from groundhook.host.core.types.model_options import PermissionColumns
from groundhook.host.core.types.specs import CREATED_BY, DELETED, SHARE, TEAM, TENANT, UPDATED_BY

Clause = ColumnElement[Any]
Permits = Mapping[str, Permit | None]


def always(
    declared: Declared, table: FromClause, permit: Permit | None, texts: Texts
) -> list[Clause]:
    """What holds for every row of a model that is ever read."""
    alive = [table.c[DELETED].is_(None)] if declared.spec.option.soft_deletes else []
    return alive + (_permitted(declared, table, permit, texts) if permit else [])


def _permitted(declared: Declared, table: FromClause, permit: Permit, texts: Texts) -> list[Clause]:
    """Names are compared letter for letter: a tenant `acmé` is not `Acme`, whatever the database's
    collation says."""
    column, columns = table.c, declared.spec.option.permission
    extra = [_one_of(declared, column[name], values, texts) for name, values in permit.extra]
    if isinstance(columns, PermissionColumns):
        return [*_belonging(declared, table, columns, permit, texts), *extra]

    def is_(name: str, value: str) -> Clause:
        return (
            texts.same(column[name], [value])
            if value
            else texts.exact(sa.func.coalesce(column[name], "")) == ""
        )

    shared = [sa.and_(column[SHARE] == "team", is_(TEAM, permit.team))] if permit.team else []
    nobodys = sa.and_(is_(CREATED_BY, ""), sa.or_(is_(TEAM, ""), is_(TEAM, permit.team)))
    own = [is_(CREATED_BY, permit.user)] if permit.user else []
    clauses = [
        is_(TENANT, permit.tenant),
        sa.or_(*own, *shared, column[SHARE] == "tenant", nobodys),
    ]
    if permit.own or permit.created:
        clauses.append(is_(CREATED_BY, permit.user))
    if permit.own:
        clauses.append(sa.or_(is_(TEAM, ""), is_(TEAM, permit.team)))
    if permit.edited:
        clauses.append(is_(UPDATED_BY, permit.user))
    if permit.of_team:
        clauses.append(is_(TEAM, permit.team))
    return clauses + extra


def _belonging(
    declared: Declared, table: FromClause, columns: PermissionColumns, permit: Permit, texts: Texts
) -> Iterator[Clause]:
    """By the columns that a model names itself. What it does not name, or the identity does not
    say, lets nobody in."""

    def is_(name: str, value: str) -> Clause:
        return _one_of(declared, table.c[name], [value], texts) if name and value else sa.false()

    mine, ours = is_(columns.user, permit.user), is_(columns.team, permit.team)
    personal = permit.own or permit.created or permit.edited
    if personal:
        yield mine
    if permit.of_team:
        yield ours
    if columns.user or columns.team:
        yield sa.or_(mine, ours)
    if columns.tenant:
        yield is_(columns.tenant, permit.tenant)


def _one_of(
    declared: Declared, column: ColumnElement[Any], values: Sequence[Any], texts: Texts
) -> Clause:
    """One of what an identity is limited to; nothing fits a value that does not fit the field."""
    of = declared.schema.fields[column.name]
    fitting = []
    for value in values:
        try:
            fitting.append(coerce(of, value))
        except SourceError:
            continue
    return texts.same(column, fitting) if of.kind == "text" else column.in_(fitting)


@dataclass
class Place:
    """A model's table in a statement, and those that were joined to it. `permits` must name every
    model that is reached: one that it does not name is a KeyError, not an open door."""

    tables: Tables
    permits: Permits
    texts: Texts
    declared: Declared
    table: FromClause
    joined: dict[tuple[str, ...], Place] = field(default_factory=dict)

    @staticmethod
    def root(tables: Tables, permits: Permits, texts: Texts, model: str) -> Place:
        return Place(tables, permits, texts, tables[model], tables[model].table)

    def always(self) -> list[Clause]:
        return self._always(self.table)

    def _always(self, table: FromClause) -> list[Clause]:
        return always(self.declared, table, self.permits[self.declared.spec.id], self.texts)

    def reach(self, hops: Sequence[Relation]) -> Place:
        """The place at the end of relations to one record, joined when it is first reached."""
        here = self
        for count, hop in enumerate(hops, 1):
            path = tuple(each.name for each in hops[:count])
            if path not in self.joined:
                self.joined[path] = here.beside(hop)
            here = self.joined[path]
        return here

    def column(self, hops: Sequence[Relation], of: Field) -> ColumnElement[Any]:
        return self.reach(hops).table.c[of.name]

    def source(self) -> FromClause:
        """The FROM of the statement."""
        source = self.table
        for path, place in self.joined.items():
            here = self.joined[path[:-1]] if path[:-1] else self
            relation = here.declared.schema.relations[path[-1]]
            source = source.outerjoin(
                place.table, sa.and_(*place.linked(here, relation), *place.always())
            )
        return source

    def beside(self, hop: Relation) -> Place:
        declared = self.tables[hop.model]
        return Place(self.tables, self.permits, self.texts, declared, declared.table.alias())

    def linked(self, here: Place, hop: Relation) -> list[Clause]:
        """This place's rows belong to that of `here`. Of several where there should be one, the
        first counts."""
        link = self.table.c[hop.key] == here.table.c[hop.foreign]
        if hop.many or self.declared.single(hop.key):
            return [link]
        key, other = self.declared.schema.key, self.declared.table.alias()
        first = sa.select(sa.func.min(other.c[key])).where(
            other.c[hop.key] == here.table.c[hop.foreign],
            *self._always(other),
        )
        return [link, self.table.c[key] == first.correlate(here.table).scalar_subquery()]

    def exists(self, hop: Relation, within: Place, clauses: Sequence[Clause]) -> Clause:
        """Whether there is a related record, the rows of `within` (made by `beside(hop)`), which
        meets the clauses."""
        found = sa.select(sa.literal(1)).select_from(within.source())
        return (
            found.where(*within.linked(self, hop), *within.always(), *clauses)
            .correlate(self.table)
            .exists()
        )
