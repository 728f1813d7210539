"""Full-text indexes: made beside the tables that `groundhook db load` creates, used for words where
they are there.

    SQLite       an FTS5 table `<table>__text` over the table's own rows, kept current by triggers
    PostgreSQL   a GIN index `<table>__text` over to_tsvector('simple', the text columns)
    MariaDB      a FULLTEXT index over the text columns, whoever made it

An index finds where a word begins. What it finds is compared once more as without it, since the
engines part and fold texts in ways of their own: with an index, a word finds the records where it
begins a word, and the same ones on every engine.
"""

from __future__ import annotations

import re
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Connection
from sqlalchemy.sql import ColumnElement, FromClause

from groundhook.handlers.db.schema import Schema
from groundhook.handlers.db.text import fold

NAMED = "__text"  # behind the table's name
SHADOWS = (
    "_config",
    "_data",
    "_docsize",
    "_idx",
)  # FTS5's own tables, behind the name of the table that they belong to
MOST_COLUMNS = 16  # of an index on MariaDB
LONGEST_NAME = 56  # of a table, so that the index's own name is none too long for PostgreSQL
LONGEST = 60  # characters of a word in an index; MariaDB keeps no longer ones than 84
SHORTEST = 3  # MariaDB keeps no shorter ones
# characters of a record; PostgreSQL refuses to index a text with more than a megabyte of words
INDEXED = 200_000
PARTING = "-./_@:+~&<>?=#;"  # PostgreSQL would read addresses, paths and signed numbers as one word
# InnoDB's list of words that it does not keep.
UNKEPT = frozenset(
    re.findall(
        r"\w+",
        "a about an are as at be by com de en for from how i in is it la of on or that the this to"
        " und was what when where who will with www",
    )
)

Clause = ColumnElement[Any]


def name_of(table: str) -> str:
    """What a table's index is called."""
    return table + NAMED


def create(connection: Connection, schema: Schema, table: sa.Table) -> None:
    """Make the index of a table that was just created; nothing where the engine or the table's
    shape has none."""
    if not _possible(schema, table):
        return
    name, columns = name_of(table.name), _columns(schema, table)
    match connection.dialect.name:
        case "postgresql":
            sa.Index(name, _lexemes(columns), postgresql_using="gin").create(connection)
        case "mariadb":
            sa.Index(name, *columns, mariadb_prefix="FULLTEXT").create(connection)
        case _ if _has_fts5(connection) and _numbered(schema, table):
            for statement in _fts5(connection, name, schema, table):
                connection.exec_driver_sql(statement)


def present(connection: Connection, schema: Schema, table: sa.Table) -> bool:
    """Whether the table has an index over all of the model's text fields, and no others."""
    if not _possible(schema, table):
        return False
    inspector, name, names = (
        sa.inspect(connection),
        name_of(table.name),
        {field.name for field in schema.texts},
    )
    match connection.dialect.name:
        case "postgresql":
            there = {one["name"]: one for one in inspector.get_indexes(table.name)}
            said = " ".join(there[name].get("expressions", ())) if name in there else ""
            return said.lower().count("coalesce(") == len(names) and all(
                re.search(rf"\b{re.escape(one)}\b", said) for one in names
            )
        case "mariadb":
            indexes = inspector.get_indexes(table.name)
            return any(
                is_text_index(one, table.name) and set(one["column_names"]) == names
                for one in indexes
            )
        case _:
            if not (
                _has_fts5(connection) and _numbered(schema, table) and inspector.has_table(name)
            ):
                return False
            listed = (
                sa.select(sa.func.count())
                .select_from(sa.table("sqlite_master"))
                .where(
                    sa.column("type") == "trigger",
                    sa.column("name").in_(
                        [f"{name}_{event}" for event in ("insert", "delete", "update")]
                    ),
                )
            )
            columns = [one["name"] for one in inspector.get_columns(name)]
            return columns == [field.name for field in schema.texts] and bool(
                connection.execute(listed).scalar_one() == 3
            )


def is_text_index(index: Any, table: str) -> bool:
    """Whether an index of the catalogue is one for words, which serves no other condition."""
    return bool(index["name"] == name_of(table) or index.get("type") == "FULLTEXT")


def found(dialect: str, schema: Schema, table: FromClause, name: str, word: str) -> Clause | None:
    """By the index: the records that have a word which begins with `word`, or, of a phrase, with
    each of its words. None for what an index cannot find. `name`: the table's in the database."""
    words = _parted(word, dialect)
    if not words:
        return None
    match dialect:
        case "postgresql":
            wanted = sa.func.to_tsquery(_SIMPLE, " & ".join(f"'{one}':*" for one in words))
            return _lexemes(_columns(schema, table)).op("@@", is_comparison=True)(wanted)
        case "mariadb":
            asked = " ".join(f"+{one}*" for one in words)
            return mysql.match(*_columns(schema, table), against=asked).in_boolean_mode()
        case _:
            fts = sa.table(name_of(name), sa.column("rowid"), sa.column(name_of(name)))
            matching = fts.c[name_of(name)].op("MATCH", is_comparison=True)(
                " AND ".join(f'"{one}"*' for one in words)
            )
            return table.c[schema.key].in_(sa.select(fts.c.rowid).where(matching))


def _parted(word: str, dialect: str) -> list[str]:
    """The words of what is searched, letters and digits alone: nothing that could be an operator of
    an engine."""
    if any(not letter.isalnum() and not letter.isascii() for letter in word):
        return []
    words = re.findall(r"[^\W_]+", fold(word))
    if any(len(one) > LONGEST for one in words):
        return []
    if dialect == "mariadb":
        words = [one for one in words if len(one) >= SHORTEST and one not in UNKEPT]
    return words


_SIMPLE = sa.text("CAST('simple' AS regconfig)")


def _lexemes(columns: list[Clause]) -> Clause:
    """The words of all columns, for PostgreSQL. The index serves only where both say the very same:
    no parameters here."""
    parts: list[Clause] = [
        sa.func.coalesce(sa.cast(column, sa.Text), sa.text("''")) for column in columns
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.op("||")(sa.text("' '")).op("||")(part)
    apart = sa.func.translate(whole, sa.text(f"'{PARTING}'"), sa.text(f"'{' ' * len(PARTING)}'"))
    return sa.func.to_tsvector(_SIMPLE, sa.func.left(apart, sa.text(str(INDEXED))))


def _columns(schema: Schema, table: FromClause) -> list[Clause]:
    return [table.c[field.name] for field in schema.texts]


def _possible(schema: Schema, table: sa.Table) -> bool:
    return 0 < len(schema.texts) <= MOST_COLUMNS and len(table.name) <= LONGEST_NAME


def _numbered(schema: Schema, table: sa.Table) -> bool:
    """Whether SQLite's number of a row is the row's key: it would change the others when it tidies
    up."""
    return [one.name for one in table.primary_key] == [schema.key] and schema.fields[
        schema.key
    ].kind == "integer"


def _has_fts5(connection: Connection) -> bool:
    return bool(
        connection.exec_driver_sql(
            "SELECT count(*) FROM pragma_module_list WHERE name = 'fts5'"
        ).scalar_one()
    )


def _fts5(connection: Connection, name: str, schema: Schema, table: sa.Table) -> list[str]:
    """Statements for an empty table. Names are quoted; there are no values."""
    quote = connection.dialect.identifier_preparer.quote_identifier
    fts, own, key = quote(name), quote(table.name), quote(schema.key)
    columns = [quote(field.name) for field in schema.texts]
    listed = ", ".join(columns)
    content, rowid = (text.replace("'", "''") for text in (table.name, schema.key))

    def put(row: str) -> str:
        return (
            f"INSERT INTO {fts} (rowid, {listed}) VALUES ({row}.{key},"
            f" {', '.join(f'{row}.{one}' for one in columns)});"
        )

    def out(row: str) -> str:
        values = ", ".join(f"{row}.{one}" for one in columns)
        return (
            f"INSERT INTO {fts} ({fts}, rowid, {listed}) VALUES ('delete', {row}.{key}, {values});"
        )

    def trigger(event: str, does: str) -> str:
        return (
            f"CREATE TRIGGER {quote(f'{name}_{event}')} AFTER {event.upper()} ON {own} BEGIN"
            f" {does} END"
        )

    options = (
        f"content='{content}', content_rowid='{rowid}', tokenize='unicode61 remove_diacritics 2'"
    )
    return [
        f"CREATE VIRTUAL TABLE {fts} USING fts5({listed}, {options})",
        trigger("insert", put("new")),
        trigger("delete", out("old")),
        trigger("update", out("old") + " " + put("new")),
    ]
