"""Models for the tables of an existing database: columns, keys, relations from foreign keys, labels
from names, and options from few distinct values.

A model has one primary key: tables without one, and with a key of several columns, are named and
left out, as are columns of types that no model has. Nothing is written to the database.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.types import TypeEngine

from groundhook.handlers.db.model import fulltext

SAMPLED = 5000  # rows that are read for the options of a column
MOST_OPTIONS = 12
LEAST_REPEATS = 5  # rows for each option
LONGEST_OPTION = 40  # characters
TYPES: tuple[tuple[type[TypeEngine[Any]], str], ...] = (
    (sa.Boolean, "boolean"),
    (sa.SmallInteger, "smallInteger"),
    (sa.BigInteger, "bigInteger"),
    (sa.Integer, "integer"),
    (sa.Float, "double"),
    (sa.Numeric, "decimal"),
    (sa.DateTime, "datetime"),
    (sa.Date, "date"),
    (sa.JSON, "json"),
    (sa.Uuid, "uuid"),
    (sa.Enum, "enum"),
    (sa.Text, "text"),
    (sa.String, "string"),
)
INTEGERS = frozenset({"smallInteger", "bigInteger", "integer"})


@dataclass
class ImportedModel:
    """The content of a model's file, and what was left out of it."""

    id: str
    content: dict[str, Any]
    notes: list[str] = field(default_factory=list)

    @property
    def table(self) -> str:
        return str(self.content["table"]["name"])

    def text(self) -> str:
        """Return the content of its file."""
        return json.dumps(self.content, indent=2, ensure_ascii=False) + "\n"


@dataclass
class Import:
    """The models of a database's tables, and why other tables have none."""

    models: list[ImportedModel]
    left_out: dict[str, str]


def read_models(connection: Connection) -> Import:
    """Return models for the tables of a database."""
    return _Reader.read(connection)


@dataclass
class _Reader:
    connection: Connection
    inspector: sa.Inspector
    models: dict[str, ImportedModel] = field(default_factory=dict)  # by table
    left_out: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def read(connection: Connection) -> Import:
        reader = _Reader(connection, sa.inspect(connection))
        tables = reader.inspector.get_table_names()
        indexes = tuple(map(fulltext.name_of, tables))
        for table in sorted(tables):
            if not table.startswith(indexes):  # SQLite keeps a full-text index in tables
                reader._add(table)
        for table in reader.models:
            reader._relate(table)
        return Import(list(reader.models.values()), reader.left_out)

    def _add(self, table: str) -> None:
        key = self.inspector.get_pk_constraint(table)["constrained_columns"]
        if len(key) != 1:
            kind = f"of several columns ({', '.join(key)})" if key else "missing"
            self.left_out[table] = f"its primary key is {kind}"
            return
        model = ImportedModel(self._id(table), {"name": words_of(table), "table": {"name": table}})
        unique = {
            names[0]
            for one in self.inspector.get_unique_constraints(table)
            if len(names := one["column_names"]) == 1
        }
        columns: list[dict[str, Any]] = []
        for found in self.inspector.get_columns(table):
            column = self._column(table, found, primary=found["name"] == key[0])
            if column is None:
                model.notes.append(f"the column {found['name']!r} ({found['type']!r}) is left out")
                if found["name"] == key[0]:
                    self.left_out[table] = f"the type of its primary key is {found['type']!r}"
                    return
                continue
            if found["name"] in unique:
                column["unique"] = True
            columns.append(column)
        self.models[table] = model
        model.content["columns"] = columns

    def _id(self, table: str) -> str:
        """Return a file's name for a table that no other model has."""
        plain = re.sub(r"\W+", "_", "_".join(parts_of(table))).strip("_").lower() or "table"
        taken = {model.id for model in self.models.values()}
        numbers = (f"{plain}_{number}" for number in range(2, len(taken) + 3))
        return plain if plain not in taken else next(id for id in numbers if id not in taken)

    def _column(
        self, table: str, found: Mapping[str, Any], *, primary: bool
    ) -> dict[str, Any] | None:
        """Return a column of the model; None if no model has its type or its name."""
        name, kind = found["name"], found["type"]
        type = next((name for of, name in TYPES if isinstance(kind, of)), None)
        if type is None or "." in name:
            return None
        column: dict[str, Any] = {"name": name, "type": type, "label": words_of(name)}
        if found.get("comment"):
            column["comment"] = found["comment"]
        if primary:
            return {**column, **self._key(type, found)}
        if found["nullable"]:
            column["nullable"] = True
        return {**column, **self._details(table, name, type, kind)}

    def _key(self, type: str, found: Mapping[str, Any]) -> dict[str, Any]:
        """Return how a column is the primary key: generated by the database, or not."""
        generated = (
            self.connection.dialect.name == "sqlite"  # any integer key is
            or found.get("autoincrement") in (True, "auto")
            or found.get("identity")
        )
        return {"type": "ID"} if type in INTEGERS and generated else {"primary": True}

    def _details(self, table: str, name: str, type: str, kind: Any) -> dict[str, Any]:
        """Return the digits, the length or the options of a column."""
        if type == "decimal" and kind.precision:
            return {"precision": kind.precision, "scale": kind.scale or 0}
        if type == "enum":
            return {"option": list(kind.enums)}
        if type in ("string", "text") and (options := self._options(table, name)):
            return {"type": "enum", "option": options}
        return {"length": kind.length} if type == "string" and kind.length else {}

    def _options(self, table: str, name: str) -> list[str]:
        """Return the values of a text column that has few; else none."""
        column: sa.ColumnClause[Any] = sa.column(name)
        some = sa.select(column).select_from(sa.table(table, column)).limit(SAMPLED)
        values = [value for value in self.connection.execute(some).scalars() if value is not None]
        counts = Counter(map(str, values))
        few = 1 < len(counts) <= MOST_OPTIONS and len(values) >= LEAST_REPEATS * len(counts)
        short = all(0 < len(value.strip()) == len(value) <= LONGEST_OPTION for value in counts)
        return sorted(counts) if few and short else []

    def _relate(self, table: str) -> None:
        """Add the relations of a table's foreign keys, on both sides."""
        here = self.models[table]
        for one in self.inspector.get_foreign_keys(table):
            there = self.models.get(one["referred_table"])
            if there is None or len(one["constrained_columns"]) != 1:
                columns = ", ".join(one["constrained_columns"])
                here.notes.append(
                    f"no relation for {columns} (to the table {one['referred_table']!r})"
                )
                continue
            (foreign,), (key,) = one["constrained_columns"], one["referred_columns"]
            name = re.sub(r"_?id$", "", "_".join(parts_of(foreign)).lower()) or there.id
            _add_relation(
                here, name, {"type": "hasOne", "model": there.id, "key": key, "foreign": foreign}
            )
            back = here.id if there is not here else f"{here.id}_of_{name}"
            if name not in (there.id, there.id.removesuffix("s")) and there is not here:
                back = f"{here.id}_as_{name}"
            _add_relation(
                there, back, {"type": "hasMany", "model": here.id, "key": foreign, "foreign": key}
            )


def _add_relation(model: ImportedModel, name: str, relation: dict[str, Any]) -> None:
    """Add a relation under a name that neither a column nor another relation has."""
    relations = model.content.setdefault("relations", {})
    taken = {*relations, *(column["name"] for column in model.content["columns"])}
    names: Iterator[str] = (f"{name}_{number}" for number in range(2, len(taken) + 3))
    relations[name if name not in taken else next(one for one in names if one not in taken)] = (
        relation
    )


def parts_of(name: str) -> list[str]:
    """Return the words of a name: of `UnitPrice` and `unit_price` the same two."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return [part for part in re.split(r"[_\s]+", split) if part]


def words_of(name: str) -> str:
    """Return a name for readers: `Unit price`; abbreviations in capitals stay."""
    words = [part if part.isupper() and len(part) > 1 else part.lower() for part in parts_of(name)]
    text = " ".join(words)
    return text[:1].upper() + text[1:]
