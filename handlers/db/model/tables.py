"""SQLAlchemy Core tables of models, with column types that also read values stored by other
programs.

SQLite has neither decimals nor dates: decimals are stored as REAL, dates and timestamps as ISO 8601
text, which sorts correctly. A value that does not parse as its type is returned as stored, so that
one bad cell does not fail a whole result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine, UserDefinedType

from groundhook.core.json_text import NotJson, read_json
from groundhook.core.types.model_spec import (
    DELETED,
    PERMISSION,
    SHARE,
    TIMESTAMPS,
    ColumnSpec,
    ModelSpec,
)
from groundhook.handlers.db.model.coerce import to_json
from groundhook.handlers.db.model.schema import Schema, Schemas

FOLDED = frozenset({"string", "char"})  # types of short texts, which are compared without case


class Exact(TypeDecorator[Any]):
    """A decimal column."""

    impl = sa.Numeric
    cache_ok = True

    def __init__(self, precision: int, scale: int) -> None:
        super().__init__(precision, scale)

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(
            sa.REAL() if dialect.name == "sqlite" else self.impl_instance
        )

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return float(value) if dialect.name == "sqlite" and isinstance(value, Decimal) else value


class Day(TypeDecorator[Any]):
    """A date column."""

    impl = sa.Date
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(sa.String(10) if dialect.name == "sqlite" else sa.Date())

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return value.isoformat() if dialect.name == "sqlite" and isinstance(value, date) else value


class _UtcMoment(TypeDecorator[Any]):
    """A timestamp column, in UTC."""

    impl = sa.DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(sa.String(26) if dialect.name == "sqlite" else sa.DateTime())

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return to_json(value) if dialect.name == "sqlite" and isinstance(value, datetime) else value


class Json(TypeDecorator[Any]):
    """A JSON column."""

    impl = sa.JSON
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(sa.Text() if dialect.name == "sqlite" else sa.JSON())

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return (
            json.dumps(value, ensure_ascii=False)
            if dialect.name == "sqlite" and value is not None
            else value
        )

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return read_cell(value) if dialect.name == "sqlite" and isinstance(value, str) else value


def read_cell(text: str | bytes) -> Any:
    """Return the value of a JSON cell, which any program may have written; the text itself where it
    is not JSON that is read."""
    try:
        return read_json(text, nan=True)
    except NotJson:
        return text.decode("utf-8", "replace") if isinstance(text, bytes) else text


class Option(TypeDecorator[Any]):
    """An enum column: text, or in tables created by others an enum type of PostgreSQL, which does
    not accept parameters typed as text."""

    impl = sa.String
    cache_ok = True

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(
            _Untyped(self.length) if dialect.name == "postgresql" else sa.String(self.length)
        )


class _Untyped(UserDefinedType[Any]):
    cache_ok = True

    def __init__(self, length: int | None) -> None:
        self.length = length

    def get_col_spec(self, **_: Any) -> str:
        return f"VARCHAR({self.length})"


@dataclass(frozen=True)
class Declared:
    """A model with its schema and table."""

    spec: ModelSpec
    schema: Schema
    table: sa.Table

    def single(self, column: str) -> bool:
        """Return whether a column is unique."""
        for one in self.spec.columns:
            if one.name == column and (one.unique or self.schema.keys == (column,)):
                return True
        return any(
            index.type == "unique" and index.columns == (column,) for index in self.spec.indexes
        )


class Tables(Mapping[str, Declared]):
    """The models of an app with their tables by full id, each built by the first access."""

    def __init__(self, models: Mapping[str, ModelSpec]) -> None:
        self._models = models
        self.schemas = Schemas(models)
        self._made: dict[str, Declared] = {}

    def __getitem__(self, id: str) -> Declared:
        if id not in self._made:
            spec = self._models[id]
            self._made[id] = Declared(spec, self.schemas[id], table_of(spec))
        return self._made[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._models)

    def __len__(self) -> int:
        return len(self._models)


def table_of(spec: ModelSpec) -> sa.Table:
    """Build the table of a model, in a MetaData of its own."""
    columns = _build_columns(spec)
    table = sa.Table(spec.table.name, sa.MetaData(), *columns, comment=spec.table.comment or None)
    for column in spec.columns:
        if (column.index or column.unique) and column.type in FOLDED:
            _index_without_case(table.c[column.name])
    for index in spec.indexes:
        sa.Index(
            index.name, *(table.c[name] for name in index.columns), unique=index.type == "unique"
        )
    return table


def _build_columns(spec: ModelSpec) -> list[sa.Column[Any]]:
    """Return the declared columns, and those that the model's options add."""
    option, declared = spec.option, {column.name for column in spec.columns}
    moments = [*TIMESTAMPS] if option.timestamps else []
    if option.soft_deletes:
        moments.append(DELETED)
    columns = [_build_column(column) for column in spec.columns]
    columns += [sa.Column(name, _UtcMoment()) for name in moments if name not in declared]
    if option.permission is True:
        columns += [sa.Column(name, sa.String(255), index=name != SHARE) for name in PERMISSION]
    return columns


def _index_without_case(column: sa.Column[Any]) -> None:
    """Add an index for the comparison of `collation`; MariaDB's plain indexes serve it."""
    name = f"ix_{column.table.name}_{column.name}_nocase"
    sa.Index(name, sa.func.lower(sa.cast(column, sa.Text))).ddl_if(dialect="postgresql")
    sa.Index(name, sa.collate(column, "NOCASE")).ddl_if(dialect="sqlite")


def _build_column(column: ColumnSpec) -> sa.Column[Any]:
    key = column.primary or column.type == "ID"
    return sa.Column(
        column.name,
        TYPES.get(column.type, _build_string)(column),
        primary_key=key,
        autoincrement="auto" if column.type == "ID" else False,
        nullable=column.nullable and not key,
        index=column.index or None,
        unique=column.unique or None,
        comment=column.comment or None,
    )


class Real(TypeDecorator[Any]):
    """A floating point column."""

    impl = sa.Float
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return float(value) if isinstance(value, Decimal) else value


def _build_key(_: ColumnSpec) -> TypeEngine[Any]:
    # SQLite generates keys only for a column declared INTEGER.
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _build_decimal(column: ColumnSpec) -> TypeEngine[Any]:
    return Exact(column.precision or 18, 2 if column.scale is None else column.scale)


def _build_option(column: ColumnSpec) -> TypeEngine[Any]:
    return Option(column.length or max(64, *map(len, column.option)))


def _build_uuid(_: ColumnSpec) -> TypeEngine[Any]:
    return sa.Uuid(as_uuid=False).with_variant(sa.String(36), "sqlite", "mysql", "mariadb")


def _build_string(column: ColumnSpec) -> TypeEngine[Any]:
    return sa.String(column.length or 255)


# By the type that a model declares; any other is a string.
TYPES: Mapping[str, Callable[[ColumnSpec], TypeEngine[Any]]] = {
    "ID": _build_key,
    "bigInteger": _build_key,
    "integer": lambda _: sa.Integer(),
    "smallInteger": lambda _: sa.SmallInteger(),
    "float": lambda _: Real(),
    "double": lambda _: Real(),
    "decimal": _build_decimal,
    "boolean": lambda _: sa.Boolean(),
    "date": lambda _: Day(),
    "datetime": lambda _: _UtcMoment(),
    "timestamp": lambda _: _UtcMoment(),
    "text": lambda _: sa.Text(),
    "longText": lambda _: sa.Text(),
    "json": lambda _: Json(),
    "enum": _build_option,
    "char": lambda column: sa.CHAR(column.length or 36),
    "uuid": _build_uuid,
}
