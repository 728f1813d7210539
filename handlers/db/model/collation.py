"""Uniform comparison, search and sorting of texts on every engine: case is ignored, accents and
blanks count.

The engines differ: SQLite folds ASCII letters only, PostgreSQL compares exactly, and MariaDB
follows the column's collation, mostly without accents. Texts are therefore compared in lower case
(`fold`) and sorted by code point:

    SQLite       `groundhook_fold`, registered on each connection; NOCASE for ASCII values, which
                 can use an index
    PostgreSQL   lower(), which can use an index over lower(column)
    MariaDB      the column's own comparison, which can use an index, and lower() under a binary
                 collation
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.sql import ColumnElement

FOLD = "groundhook_fold"
PLAIN = "groundhook_plain"
ESCAPE = "!"  # in LIKE; the meaning of a backslash differs between PostgreSQL and MariaDB
# MariaDB's only collation that distinguishes accents, case and trailing blanks
BINARY = "utf8mb4_nopad_bin"

SqlClause = ColumnElement[Any]
_ODD = {"İ": "i"}  # letters whose lower case has two characters in Python


def fold(text: Any) -> Any:
    """Return text in lower case, character by character as the engines do it; other values
    unchanged."""
    if not isinstance(text, str):
        return text
    if text.isascii():
        return text.lower()
    return "".join(
        _ODD.get(letter) or (low if len(low := letter.lower()) == 1 else letter) for letter in text
    )


def plain(text: Any) -> Any:
    """Return text in lower case without accents; other values unchanged."""
    if not isinstance(text, str) or text.isascii():
        return fold(text)
    parted = unicodedata.normalize("NFKD", fold(text))
    return "".join(letter for letter in parted if not unicodedata.combining(letter))


# Letters with accents, and those without, for an engine that has no function of ours.
_ACCENTED = "".join(
    letter for letter in map(chr, range(0xC0, 0x250)) if len(plain(letter)) == 1 != plain(letter)
)
_BARE = "".join(map(plain, _ACCENTED))


def containing(word: str) -> str:
    """Return the LIKE pattern of texts that contain the word, with wildcards escaped."""
    for special in (ESCAPE, "%", "_"):
        word = word.replace(special, ESCAPE + special)
    return f"%{word}%"


def pattern_of(value: str) -> str:
    """Return the value as a LIKE pattern if it has `%`, else the pattern of texts that contain
    it."""
    return value.replace(ESCAPE, ESCAPE * 2) if "%" in value else containing(value)


class TextComparison:
    """Comparison of texts on one kind of database (`dialect` is SQLAlchemy's name)."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect

    def equal(self, column: SqlClause, values: Sequence[Any]) -> SqlClause:
        """Return the clause for a column among the values, ignoring case."""
        if self._dialect == "sqlite" and all(str(value).isascii() for value in values):
            return sa.collate(column, "NOCASE").in_(values)
        alike = self.folded(column).in_([fold(value) for value in values])
        return sa.and_(column.in_(values), alike) if self._dialect == "mariadb" else alike

    def alike(self, column: SqlClause, texts: Sequence[str]) -> SqlClause:
        """Return the clause for a column among the texts, ignoring case and accents. It reads every
        row."""
        wanted = list(dict.fromkeys(map(plain, texts)))
        if self._dialect == "mariadb":
            return sa.collate(_utf8(column), "utf8mb4_unicode_ci").in_(wanted)
        if self._dialect == "postgresql":
            bare = sa.func.translate(self.folded(column), _ACCENTED, _BARE, type_=sa.Text)
            return sa.func.lower(bare).in_(wanted)
        # The comparison of other than ASCII texts costs a call of Python for each row.
        other = sa.type_coerce(column, sa.Text()).op("GLOB")("*[^ -~]*")
        same = sa.Function(PLAIN, column, type_=sa.Text()).in_(wanted)
        return sa.or_(sa.func.lower(column).in_(wanted), sa.and_(other, same))

    def like(self, column: SqlClause, pattern: str) -> SqlClause:
        """Return the LIKE clause, ignoring case."""
        if self._dialect == "sqlite" and pattern.isascii():
            return sa.type_coerce(column, sa.Text()).like(
                pattern, escape=ESCAPE
            )  # without case for ASCII
        return self.folded(column).like(fold(pattern), escape=ESCAPE)

    def sorted(self, column: SqlClause) -> SqlClause:
        """Return the expression to sort by: lower case, by code point."""
        folded = self.folded(column)
        return sa.collate(folded, "C") if self._dialect == "postgresql" else folded

    def exact(self, column: SqlClause) -> SqlClause:
        """Return the column for grouping and exact comparison: only identical texts are equal."""
        if self._dialect == "mariadb":
            return sa.collate(_utf8(column), BINARY)
        return (
            sa.collate(as_text(column), "C")
            if self._dialect == "postgresql"
            else sa.collate(column, "BINARY")
        )

    def same(self, column: SqlClause, values: Sequence[str]) -> SqlClause:
        """Return the clause for a column exactly among the values, whatever its collation; it can
        use an index."""
        return sa.and_(column.in_(values), self.exact(column).in_(values))

    def folded(self, column: SqlClause) -> SqlClause:
        """Return the column in lower case."""
        if self._dialect == "sqlite":
            return sa.Function(FOLD, column, type_=sa.Text())
        if self._dialect == "mariadb":
            return sa.collate(sa.func.lower(_utf8(column)), BINARY)
        return sa.func.lower(as_text(column), type_=sa.Text)


def as_text(column: SqlClause) -> SqlClause:
    """Return the column as text, such as JSON in its written form."""
    return sa.cast(column, sa.Text)


def _utf8(column: SqlClause) -> SqlClause:
    """Cast a column of any character set to utf8mb4, so that it can have a collation of utf8mb4."""
    return sa.cast(column, mysql.CHAR(charset="utf8mb4"))
