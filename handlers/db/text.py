"""Text compared, searched and sorted alike on every engine: case does not count, accents and blanks
do.

The engines differ by nature: SQLite knows the case of ASCII letters alone, PostgreSQL compares
exactly, MariaDB follows the column's collation, mostly without accents. So texts are compared in
small letters (`fold`), and sorted by their code points:

    SQLite       `groundhook_fold`, which `engine` gives to each connection; NOCASE where the value
    is ASCII, for its indexes PostgreSQL   lower(), which uses an index over lower(column) MariaDB
    the column's own comparison, for its indexes, and lower() under a binary collation besides
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.sql import ColumnElement

FOLD = "groundhook_fold"
ESCAPE = "!"  # in LIKE; a backslash would be one thing to PostgreSQL and another to MariaDB
# MariaDB's only comparison that takes neither accents, case nor blanks at the end lightly
BINARY = "utf8mb4_nopad_bin"

Clause = ColumnElement[Any]
_ODD = {"İ": "i"}  # letters whose small one Python writes with two


def fold(text: Any) -> Any:
    """Text in small letters, each character by itself as the engines do it; anything else as it
    is."""
    if not isinstance(text, str):
        return text
    if text.isascii():
        return text.lower()
    return "".join(
        _ODD.get(letter) or (low if len(low := letter.lower()) == 1 else letter) for letter in text
    )


def containing(word: str) -> str:
    """The LIKE pattern of texts that contain the word, its own wildcards taken literally."""
    for special in (ESCAPE, "%", "_"):
        word = word.replace(special, ESCAPE + special)
    return f"%{word}%"


def pattern_of(value: str) -> str:
    """A pattern where the author wrote `%`, else "contains"."""
    return value.replace(ESCAPE, ESCAPE * 2) if "%" in value else containing(value)


class Texts:
    """How texts are compared on one kind of database (`dialect`: SQLAlchemy's name for it)."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect

    def equal(self, column: Clause, values: Sequence[Any]) -> Clause:
        """The column is one of the values, whatever their case."""
        if self._dialect == "sqlite" and all(str(value).isascii() for value in values):
            return sa.collate(column, "NOCASE").in_(values)
        alike = self.folded(column).in_([fold(value) for value in values])
        return sa.and_(column.in_(values), alike) if self._dialect == "mariadb" else alike

    def like(self, column: Clause, pattern: str) -> Clause:
        if self._dialect == "sqlite" and pattern.isascii():
            return column.like(pattern, escape=ESCAPE)  # without case for ASCII
        return self.folded(column).like(fold(pattern), escape=ESCAPE)

    def sorted(self, column: Clause) -> Clause:
        """What to sort the column by: small letters, by code point."""
        folded = self.folded(column)
        return sa.collate(folded, "C") if self._dialect == "postgresql" else folded

    def exact(self, column: Clause) -> Clause:
        """The column as it is grouped by and compared with itself: nothing is equal but what is the
        same."""
        if self._dialect == "mariadb":
            return sa.collate(_utf8(column), BINARY)
        return (
            sa.collate(_as_text(column), "C")
            if self._dialect == "postgresql"
            else sa.collate(column, "BINARY")
        )

    def same(self, column: Clause, values: Sequence[str]) -> Clause:
        """The column is one of the values, letter for letter, whatever its collation says; by an
        index where there is one."""
        return sa.and_(column.in_(values), self.exact(column).in_(values))

    def folded(self, column: Clause) -> Clause:
        if self._dialect == "sqlite":
            return sa.Function(FOLD, column, type_=sa.Text())
        if self._dialect == "mariadb":
            return sa.collate(sa.func.lower(_utf8(column)), BINARY)
        return sa.func.lower(_as_text(column), type_=sa.Text)


def _as_text(column: Clause) -> Clause:
    return sa.cast(column, sa.Text)


def _utf8(column: Clause) -> Clause:
    """A column of whatever character set, so that it can have a collation of this one."""
    return sa.cast(column, mysql.CHAR(charset="utf8mb4"))
