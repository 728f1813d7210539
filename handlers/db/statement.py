"""QueryDSL to SQLAlchemy `select`. Pure: no value ever becomes part of a statement's text, each is a bound parameter.

Text is compared as a person compares it, without regard to case. SQLite's own `lower`, `LIKE` and NOCASE know only the ASCII
letters, so a value with others goes through the function `FOLD`, which `engine` gives to each SQLite connection.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import ColumnElement

from handlers.db.dsl import EVERY_TEXT, MATCH_ANY, MATCH_NONE, MATCHES, QueryDSL, conditions
from handlers.db.permission import Permit
from handlers.db.schema import Field, Schema
from host.errors import SourceError
from host.types.search import Order, Where
from host.types.specs import CREATED_BY, DELETED, SHARE, TEAM, TENANT, UPDATED_BY, ModelSpec

FOLD = "groundhook_fold"
ESCAPE = "\\"

Clause = ColumnElement[Any]


def fold(text: Any) -> Any:
    """Text without case and compatibility forms, so that `STRASSE` is `straße`; anything else as it is."""
    if not isinstance(text, str):
        return text
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


class Compiler:
    """Makes the statements for one model on one kind of database (`dialect`: SQLAlchemy's name for it)."""

    def __init__(self, spec: ModelSpec, schema: Schema, table: sa.Table, dialect: str) -> None:
        self._spec, self._schema, self._table, self._dialect = spec, schema, table, dialect

    def query(self, dsl: QueryDSL, permit: Permit | None, limit: int) -> sa.Select[Any]:
        """The records that a query that `lint` passed asks for, at most `limit`, in a stable order."""
        chosen = [self._schema.fields[name].name for name in dsl.select] or [field.name for field in self._schema.visible]
        names = dict.fromkeys([self._schema.key, *([self._schema.title] if self._schema.title else []), *chosen])
        columns = [self._table.c[name] for name in names]
        orders = [*self._best(dsl), *(part for order in dsl.orders for part in self._order(order))]
        return sa.select(*columns).where(*self._conditions(dsl, permit)).order_by(*orders, self._key()).limit(limit)

    def count(self, dsl: QueryDSL, permit: Permit | None) -> sa.Select[Any]:
        """How many records the query matches in all."""
        return sa.select(sa.func.count()).select_from(self._table).where(*self._conditions(dsl, permit))

    def sample(self, field: Field, permit: Permit | None, rows: int, values: int) -> sa.Select[Any]:
        """Distinct values of a field, at most `values` of them, among the first `rows` rows that the permit shows."""
        column = self._table.c[field.name]
        some = sa.select(column).where(*self._always(permit), column.is_not(None)).order_by(self._key()).limit(rows).subquery()
        return sa.select(some.c[field.name]).distinct().limit(values)

    # ---- conditions

    def _conditions(self, dsl: QueryDSL, permit: Permit | None) -> list[Clause]:
        if dsl.computed or any("." in name for name in self._named(dsl)):
            raise SourceError("a query over relations, and one that computes figures, cannot be answered by this version")
        return [*(self._condition(where) for where in dsl.wheres), *self._always(permit)]

    def _named(self, dsl: QueryDSL) -> list[str]:
        return [*dsl.select, *(order.field for order in dsl.orders), *(where.field for where in conditions(dsl.wheres))]

    def _condition(self, where: Where) -> Clause:
        if where.group is not None:
            parts = [self._condition(one) for one in where.group]
            return sa.or_(sa.false(), *parts) if where.any_of is not None else sa.and_(sa.true(), *parts)
        return self._words(where) if where.op in MATCHES else self._where(where)

    def _always(self, permit: Permit | None) -> list[Clause]:
        alive = [self._table.c[DELETED].is_(None)] if self._spec.option.soft_deletes else []
        return alive + (self._permitted(permit) if permit else [])

    def _where(self, where: Where) -> Clause:
        field, column = self._schema.fields[where.field], self._table.c[where.field]
        value = self._bound(field, where.value)
        match where.op:
            case "null":
                return column.is_(None)
            case "not null":
                return column.is_not(None)
            case "like":
                return self._like(column, _pattern(where.value))
            case "=":
                return self._equal(field, [value])
            case "in":
                return self._equal(field, value) if value else sa.false()
            case "!=":
                return sa.or_(sa.not_(self._equal(field, [value])), column.is_(None))
            case "not in":
                return sa.or_(sa.not_(self._equal(field, value)), column.is_(None)) if value else sa.true()
            case "between":
                return sa.and_(column >= self._parameter(column, value[0]), column <= self._parameter(column, value[1]))
            case ">":
                return column > self._parameter(column, value)
            case ">=":
                return column >= self._parameter(column, value)
            case "<":
                return column < self._parameter(column, value)
            case _:
                return column <= self._parameter(column, value)

    def _words(self, where: Where) -> Clause:
        found = self._found(where)
        if where.op == MATCH_NONE:
            return sa.not_(sa.or_(sa.false(), *found))
        return sa.or_(sa.false(), *found) if where.op == MATCH_ANY else sa.and_(sa.true(), *found)

    def _found(self, where: Where) -> list[Clause]:
        """For each word, whether one of the fields has it."""
        fields = self._schema.texts if where.field == EVERY_TEXT else [self._schema.fields[where.field]]
        columns = [self._table.c[field.name] for field in fields]
        return [sa.or_(sa.false(), *(self._has(column, word) for column in columns)) for word in where.value]

    def _equal(self, field: Field, values: Sequence[Any]) -> Clause:
        column = self._table.c[field.name]
        if field.kind != "text" or (field.options and set(values) <= set(field.options)):
            return column.in_(values) if len(values) > 1 else column == self._parameter(column, values[0])
        if self._dialect == "sqlite" and all(str(value).isascii() for value in values):
            return sa.collate(column, "NOCASE").in_(values)
        return self._folded(column).in_([fold(value) for value in values])

    def _has(self, column: sa.Column[Any], word: str) -> Clause:
        # Without a text there is nothing in it, rather than nothing known about it.
        return sa.func.coalesce(self._like(column, _containing(word)), sa.false())

    def _like(self, column: sa.Column[Any], pattern: str) -> Clause:
        if self._dialect == "sqlite" and pattern.isascii():
            return column.like(pattern, escape=ESCAPE)  # without case for ASCII
        return self._folded(column).like(fold(pattern), escape=ESCAPE)

    def _folded(self, column: sa.Column[Any]) -> Clause:
        text = column if isinstance(column.type, sa.String) else sa.cast(column, sa.Text)
        return getattr(sa.func, FOLD)(column, type_=sa.Text) if self._dialect == "sqlite" else sa.func.lower(text)

    def _bound(self, field: Field, value: Any) -> Any:
        """Decimals for whole-number columns as floats: drivers have no other way to compare 4.5 with one."""
        if isinstance(value, (list, tuple)):
            return [self._bound(field, one) for one in value]
        return float(value) if field.kind == "integer" and isinstance(value, Decimal) else value

    def _parameter(self, column: sa.Column[Any], value: Any) -> sa.BindParameter[Any]:
        return sa.bindparam(None, value, type_=sa.Float() if isinstance(value, float) else column.type)

    # ---- order

    def _key(self) -> Clause:
        return self._table.c[self._schema.key].asc()

    def _best(self, dsl: QueryDSL) -> list[Clause]:
        """Of records that have any of some words, those with most of them first."""
        counts = [
            sum((sa.case((has, 1), else_=0) for has in self._found(where)), sa.literal(0)).desc()
            for where in dsl.wheres
            if where.op == MATCH_ANY
        ]
        return list(counts)

    def _order(self, order: Order) -> list[Clause]:
        field, column = self._schema.fields[order.field], self._table.c[order.field]
        sorted_by = sa.collate(column, "NOCASE") if self._dialect == "sqlite" and field.kind == "text" else column
        last = [column.is_(None)] if field.nullable else []  # NULLS LAST, in words that every database knows
        return [*last, sorted_by.asc() if order.order == "asc" else sorted_by.desc()]

    # ---- permission

    def _permitted(self, permit: Permit) -> list[Clause]:
        column = self._table.c

        def is_(name: str, value: str) -> Clause:
            return column[name] == value if value else sa.func.coalesce(column[name], "") == ""

        shared = [sa.and_(column[SHARE] == "team", is_(TEAM, permit.team))] if permit.team else []
        nobodys = sa.and_(is_(CREATED_BY, ""), sa.or_(is_(TEAM, ""), is_(TEAM, permit.team)))
        own = [is_(CREATED_BY, permit.user)] if permit.user else []
        clauses = [is_(TENANT, permit.tenant), sa.or_(*own, *shared, column[SHARE] == "tenant", nobodys)]
        if permit.own or permit.created:
            clauses.append(is_(CREATED_BY, permit.user))
        if permit.own:
            clauses.append(sa.or_(is_(TEAM, ""), is_(TEAM, permit.team)))
        if permit.edited:
            clauses.append(is_(UPDATED_BY, permit.user))
        if permit.of_team:
            clauses.append(is_(TEAM, permit.team))
        return clauses + [column[name].in_(values) for name, values in permit.extra]


def _containing(word: str) -> str:
    """The LIKE pattern of texts that contain the word, its own wildcards taken literally."""
    for special in (ESCAPE, "%", "_"):
        word = word.replace(special, ESCAPE + special)
    return f"%{word}%"


def _pattern(value: str) -> str:
    """A pattern where the author wrote `%`, else "contains"."""
    return value if "%" in value else _containing(value)
