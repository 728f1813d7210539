"""Full-text indexes: created with the tables that `groundhook db load` creates, and used for words
where they exist.

    SQLite       an FTS5 table `<table>__text` over the table's own rows, kept current by triggers
    PostgreSQL   a GIN index `<table>__text` over to_tsvector('simple', the text columns)
    MariaDB      a FULLTEXT index over the text columns, also one created by others

An index matches the beginnings of words. Its matches are filtered by the comparison that is used
without an index, since engines split and fold texts differently. With an index, a word therefore
matches the records with a word that starts with it, and the same records on every engine.
"""

from __future__ import annotations

import re
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Connection
from sqlalchemy.engine.reflection import Inspector
from sqlalchemy.sql import FromClause

from groundhook.handlers.db.model.collation import SqlClause, fold
from groundhook.handlers.db.model.schema import Schema

SUFFIX = "__text"  # of an index's name, after the table's name
# Of FTS5's own tables, after the name of the index.
FTS5_SUFFIXES = ("_config", "_data", "_docsize", "_idx")
FTS5_NAMES = frozenset({"rank", "rowid"})  # of its own columns; a text field may not have them
MAX_COLUMNS = 16  # in an index of MariaDB
MAX_NAME = 56  # of a table's name, so that the index's name is not too long for PostgreSQL
MAX_WORD = 60  # characters of an indexed word; MariaDB's limit is 84
MIN_WORD = 3  # characters; MariaDB does not index shorter words
# Indexed characters of a record; PostgreSQL rejects texts with more than a megabyte of words.
MAX_INDEXED = 200_000
SEPARATORS = (
    "-./_@:+~&<>?=#;"  # PostgreSQL would index addresses, paths and signed numbers as one word
)
# Words that InnoDB does not index.
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a about an are as at be by com de en for from how i in is it la of on or that the this to"
        " und was what when where who will with www",
    )
)


def name_of(table: str) -> str:
    """Return the name of a table's index."""
    return table + SUFFIX


def create(connection: Connection, schema: Schema, table: sa.Table) -> None:
    """Create the index of a new table, if the engine and the table's shape support one."""
    if not _can_index(schema, table):
        return
    name, columns = name_of(table.name), _columns(schema, table)
    match connection.dialect.name:
        case "postgresql":
            sa.Index(name, _tsvector(columns), postgresql_using="gin").create(connection)
        case "mariadb":
            sa.Index(name, *columns, mariadb_prefix="FULLTEXT").create(connection)
        case _ if _has_fts5(connection) and _fits_fts5(schema, table):
            for statement in _fts5(connection, name, schema, table):
                connection.exec_driver_sql(statement)


def drop(connection: Connection, table: sa.Table) -> None:
    """Remove the index of a table that is about to be removed, where it is a table of its own."""
    if connection.dialect.name == "sqlite":
        name = connection.dialect.identifier_preparer.quote(name_of(table.name))
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {name}")


def is_present(connection: Connection, schema: Schema, table: sa.Table) -> bool:
    """Return whether the table has an index over exactly the model's text fields."""
    if not _can_index(schema, table):
        return False
    match connection.dialect.name:
        case "postgresql":
            return _has_gin(sa.inspect(connection), schema, table)
        case "mariadb":
            names = {field.name for field in schema.texts}
            return any(
                is_text_index(one, table.name) and set(one["column_names"]) == names
                for one in sa.inspect(connection).get_indexes(table.name)
            )
        case _:
            return (
                _has_fts5(connection)
                and _fits_fts5(schema, table)
                and _has_fts5_table(connection, schema, name_of(table.name))
            )


def _has_gin(inspector: Inspector, schema: Schema, table: sa.Table) -> bool:
    """Return whether PostgreSQL's index has exactly the text fields in its expression."""
    by_name = {one["name"]: one for one in inspector.get_indexes(table.name)}
    index = by_name.get(name_of(table.name))
    expressions = " ".join(index.get("expressions", ())) if index else ""
    return expressions.lower().count("coalesce(") == len(schema.texts) and all(
        re.search(rf"\b{re.escape(field.name)}\b", expressions) for field in schema.texts
    )


def _has_fts5_table(connection: Connection, schema: Schema, name: str) -> bool:
    """Return whether SQLite's index has exactly the text fields, and its three triggers."""
    inspector = sa.inspect(connection)
    if not inspector.has_table(name):
        return False
    triggers = [f"{name}_{event}" for event in ("insert", "delete", "update")]
    listed = (
        sa.select(sa.func.count())
        .select_from(sa.table("sqlite_master"))
        .where(sa.column("type") == "trigger", sa.column("name").in_(triggers))
    )
    columns = [one["name"] for one in inspector.get_columns(name)]
    fields = [field.name for field in schema.texts]
    return columns == fields and bool(connection.execute(listed).scalar_one() == len(triggers))


def is_text_index(index: Any, table: str) -> bool:
    """Return whether an index of the catalogue is a full-text index, which serves no other
    conditions."""
    return bool(index["name"] == name_of(table) or index.get("type") == "FULLTEXT")


def matching(
    dialect: str, schema: Schema, table: FromClause, name: str, word: str
) -> SqlClause | None:
    """Return the clause that finds records by the index: those with a word that starts with `word`,
    or for a phrase with each of its words. None if the index cannot find it. `name` is the table's
    name in the database."""
    words = _split_words(word, dialect)
    if not words:
        return None
    match dialect:
        case "postgresql":
            wanted = sa.func.to_tsquery(_SIMPLE, " & ".join(f"'{one}':*" for one in words))
            return _tsvector(_columns(schema, table)).op("@@", is_comparison=True)(wanted)
        case "mariadb":
            expression = " ".join(f"+{one}*" for one in words)
            return mysql.match(*_columns(schema, table), against=expression).in_boolean_mode()
        case _:
            fts = sa.table(name_of(name), sa.column("rowid"), sa.column(name_of(name)))
            matching = fts.c[name_of(name)].op("MATCH", is_comparison=True)(
                " AND ".join(f'"{one}"*' for one in words)
            )
            return table.c[schema.keys[0]].in_(sa.select(fts.c.rowid).where(matching))


def _split_words(word: str, dialect: str) -> list[str]:
    """Return the words of a search text, as letters and digits only, so that none is an operator of
    an engine."""
    if any(not letter.isalnum() and not letter.isascii() for letter in word):
        return []
    words = re.findall(r"[^\W_]+", fold(word))
    if any(len(one) > MAX_WORD for one in words):
        return []
    if dialect == "mariadb":
        words = [one for one in words if len(one) >= MIN_WORD and one not in STOP_WORDS]
    return words


_SIMPLE = sa.text("CAST('simple' AS regconfig)")


def _tsvector(columns: list[SqlClause]) -> SqlClause:
    """Return PostgreSQL's expression for the words of all columns. The index is used only for the
    identical expression, so it must not contain parameters."""
    parts: list[SqlClause] = [
        sa.func.coalesce(sa.cast(column, sa.Text), sa.text("''")) for column in columns
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.op("||")(sa.text("' '")).op("||")(part)
    apart = sa.func.translate(
        whole, sa.text(f"'{SEPARATORS}'"), sa.text(f"'{' ' * len(SEPARATORS)}'")
    )
    return sa.func.to_tsvector(_SIMPLE, sa.func.left(apart, sa.text(str(MAX_INDEXED))))


def _columns(schema: Schema, table: FromClause) -> list[SqlClause]:
    return [table.c[field.name] for field in schema.texts]


def _can_index(schema: Schema, table: sa.Table) -> bool:
    return 0 < len(schema.texts) <= MAX_COLUMNS and len(table.name) <= MAX_NAME


def _fits_fts5(schema: Schema, table: sa.Table) -> bool:
    """Return whether SQLite's rowid is the table's key, and no text field has a name that FTS5
    keeps for itself. Other rowids may change when SQLite vacuums the file."""
    keys = [one.name for one in table.primary_key]
    has_rowid_key = keys == list(schema.keys) and _has_integer_key(schema)
    return has_rowid_key and FTS5_NAMES.isdisjoint(one.name.lower() for one in schema.texts)


def _has_integer_key(schema: Schema) -> bool:
    return [schema.fields[name].kind for name in schema.keys] == ["integer"]


def _has_fts5(connection: Connection) -> bool:
    return bool(
        connection.exec_driver_sql(
            "SELECT count(*) FROM pragma_module_list WHERE name = 'fts5'"
        ).scalar_one()
    )


def _fts5(connection: Connection, name: str, schema: Schema, table: sa.Table) -> list[str]:
    """Return the statements that create the index and its triggers for an empty table. Names are
    quoted; there are no values."""
    quote = connection.dialect.identifier_preparer.quote_identifier
    fts, own, key = quote(name), quote(table.name), quote(schema.keys[0])
    columns = [quote(field.name) for field in schema.texts]
    listed = ", ".join(columns)
    content, rowid = (text.replace("'", "''") for text in (table.name, schema.keys[0]))

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
