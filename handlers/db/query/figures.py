"""Figures and groups as SQL expressions, with the same values on every engine. Pure.

No expression has a bound parameter: PostgreSQL would not recognise a group in SELECT and GROUP BY
as the same one.
"""

from __future__ import annotations

import sqlalchemy as sa

from groundhook.core.types.query_language import Aggregate, BucketUnit
from groundhook.handlers.db.model.collation import SqlClause, TextComparison, as_text

_PLAIN = sa.literal_column
# The Thursday of a date's week: it lies in the year and has the number of the week of ISO 8601.
_THURSDAY = ("'-3 days'", "'weekday 4'")
_FORMATS = {
    "sqlite": {"month": "%Y-%m", "day": "%Y-%m-%d"},
    "postgresql": {
        "quarter": 'YYYY-"Q"Q',
        "month": "YYYY-MM",
        "week": 'IYYY-"W"IW',
        "day": "YYYY-MM-DD",
    },
    "mariadb": {"month": "%Y-%m", "week": "%x-W%v", "day": "%Y-%m-%d"},
}


class Figures:
    """Expressions for one kind of database (`dialect` is SQLAlchemy's name)."""

    def __init__(self, texts: TextComparison, dialect: str) -> None:
        self._texts, self._dialect = texts, dialect

    def group(self, column: SqlClause, kind: str) -> SqlClause:
        """Return the column to group by: only identical texts are equal. PostgreSQL does not
        compare JSON, but its text."""
        if kind == "json":
            return as_text(column)
        return self._texts.exact(column) if kind == "text" else column

    def figure(self, one: Aggregate, column: SqlClause | None, kind: str) -> SqlClause:
        """Return a figure of a column; of the records without one."""
        if column is None:
            return sa.func.count()
        column = self.group(column, kind)
        match one.function:
            case "count":
                return sa.func.count(sa.distinct(column) if one.distinct else column)
            case "avg":  # engines keep different numbers of digits of a decimal's average
                number = (
                    column * _PLAIN("1e0")
                    if self._dialect == "mariadb"
                    else sa.cast(column, sa.Double)
                )
                return sa.func.avg(sa.distinct(number) if one.distinct else number)
            case "sum":
                return sa.func.sum(sa.distinct(column) if one.distinct else column)
            case "min":
                return sa.func.min(column)
            case _:
                return sa.func.max(column)

    def bucket(self, column: SqlClause, by: BucketUnit) -> SqlClause:
        """Return a part of a date, as `DateBucket` defines it."""
        form = _FORMATS[self._dialect].get(by)
        if self._dialect == "sqlite":
            return _sqlite_bucket(column, by, form)
        if form is not None:
            write = sa.func.to_char if self._dialect == "postgresql" else sa.func.date_format
            return write(column, _PLAIN(f"'{form}'"), type_=sa.Text)
        if self._dialect == "postgresql":
            return sa.cast(sa.extract("isodow" if by == "weekday" else by, column), sa.Integer)
        if by == "quarter":
            number = sa.func.quarter(column)
            return sa.func.concat(sa.func.year(column), _PLAIN("'-Q'"), number, type_=sa.Text)
        if by == "weekday":
            return sa.func.weekday(column, type_=sa.Integer) + _PLAIN("1", sa.Integer)
        return sa.Function(by, column, type_=sa.Integer)


def _sqlite_bucket(column: SqlClause, by: BucketUnit, form: str | None) -> SqlClause:
    def write(form: str, *moved: str) -> SqlClause:
        return sa.func.strftime(_PLAIN(f"'{form}'"), column, *map(_PLAIN, moved), type_=sa.Text)

    def number(form: str, *moved: str) -> SqlClause:
        return sa.cast(write(form, *moved), sa.Integer)

    if form is not None:
        return write(form)
    if by == "quarter":
        quarter = (number("%m") + _PLAIN("2", sa.Integer)) // _PLAIN("3", sa.Integer)
        return write("%Y") + _PLAIN("'-Q'", sa.Text) + sa.cast(quarter, sa.Text)
    if by == "week":
        week = (number("%j", *_THURSDAY) + _PLAIN("6", sa.Integer)) // _PLAIN("7", sa.Integer)
        two = sa.func.printf(_PLAIN("'%02d'"), week, type_=sa.Text)
        return write("%Y", *_THURSDAY) + _PLAIN("'-W'", sa.Text) + two
    if by == "weekday":  # SQLite counts from Sunday, which is 0
        return (number("%w") + _PLAIN("6", sa.Integer)) % _PLAIN("7", sa.Integer) + _PLAIN(
            "1", sa.Integer
        )
    return number("%Y" if by == "year" else "%H")
