"""`groundhook db check`: differences between existing tables and the models. Reads the catalogue
and changes nothing.

Columns that the model does not declare are ignored; every other difference that affects queries or
results is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.engine.reflection import Inspector
from sqlalchemy.types import TypeEngine

from groundhook.handlers.db.model.fulltext import is_text_index
from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.model.tables import Declared

Aspect = Literal["table", "column", "type", "nullable", "primary key", "index", "unique", "options"]

TEXT: tuple[type[TypeEngine[Any]], ...] = (sa.String, sa.Text, sa.Uuid)
FITTING: Mapping[str, tuple[type[TypeEngine[Any]], ...]] = {
    "text": TEXT,
    "integer": (sa.Integer,),
    "number": (sa.Numeric, sa.Float),
    "boolean": (sa.Boolean,),
    "date": (sa.Date,),
    "moment": (sa.DateTime, sa.TIMESTAMP),
    "json": (sa.JSON,),
}
MOST_KEYED = 100_000  # rows whose keys are compared, of a table without a primary key
# Types that engines use for a kind that they lack.
INSTEAD: Mapping[str, Mapping[str, tuple[type[TypeEngine[Any]], ...]]] = {
    "sqlite": {
        "number": (sa.Integer,),
        "boolean": (sa.Integer,),
        "date": TEXT,
        "moment": TEXT,
        "json": TEXT,
    },
    "mariadb": {"boolean": (sa.Integer,), "json": TEXT},
    "postgresql": {},
}


@dataclass(frozen=True)
class Difference:
    """A difference between a model and its table. `column` is "" for the table as a whole."""

    model: str
    table: str
    column: str
    aspect: Aspect
    says: str

    def __str__(self) -> str:
        where = f"{self.table}.{self.column}" if self.column else self.table
        return f"{self.model}: {where}: {self.says}"


def compare(connection: Connection, declared: Declared) -> list[Difference]:
    """Return the differences of one model's table."""
    inspector, name = sa.inspect(connection), declared.table.name
    if not inspector.has_table(name):
        message = "the table does not exist (`groundhook db load` creates it)"
        return [Difference(declared.spec.id, name, "", "table", message)]
    return list(_Comparison(declared, connection, inspector).all())


@dataclass(frozen=True)
class _Comparison:
    declared: Declared
    connection: Connection
    inspector: Inspector

    @property
    def dialect(self) -> str:
        return self.connection.dialect.name

    def all(self) -> Iterator[Difference]:
        table = self.declared.table
        there = {column["name"]: column for column in self.inspector.get_columns(table.name)}
        fields = self.declared.schema.fields
        for column in table.columns:
            if column.name not in there:
                near = [name for name in there if name.lower() == column.name.lower()]
                message = f"the column does not exist{f'; there is {near[0]!r}' if near else ''}"
                yield self._differs(column.name, "column", message)
                continue
            yield from self._compare_column(fields[column.name], column, there[column.name])
        # A view has neither keys nor indexes.
        if table.name not in self.inspector.get_view_names():
            yield from self._compare_keys({name for name in there if name in table.c})

    def _differs(self, column: str, aspect: Aspect, message: str) -> Difference:
        return Difference(self.declared.spec.id, self.declared.table.name, column, aspect, message)

    def _compare_column(
        self, field: Field, column: sa.Column[Any], found: Any
    ) -> Iterator[Difference]:
        """Compare the type, the options, and whether NULL is allowed."""
        kind: TypeEngine[Any] = found["type"]
        fitting = (*FITTING[field.kind], *INSTEAD[self.dialect].get(field.kind, ()))
        if not isinstance(kind, (*fitting, sa.types.NullType)):
            yield self._differs(
                field.name,
                "type",
                f"its type is {self._declared_type(field.name)} in the model, {kind} in the table",
            )
        options = getattr(kind, "enums", None)
        if field.options and options is not None and set(options) != set(field.options):
            missing, more = (
                set(field.options) - set(options),
                set(options) - set(field.options),
            )
            parts = [f"the table has no {', '.join(sorted(missing))}"] if missing else []
            parts += [f"the model has no {', '.join(sorted(more))}"] if more else []
            yield self._differs(field.name, "options", "; ".join(parts))
        if not column.primary_key and bool(found["nullable"]) != bool(column.nullable):
            message = (
                "the table allows NULL, the model does not"
                if found["nullable"]
                else "the table does not allow NULL, the model does"
            )
            yield self._differs(field.name, "nullable", message)

    def _declared_type(self, name: str) -> str:
        return next(
            (column.type for column in self.declared.spec.columns if column.name == name),
            "datetime",
        )

    def _compare_keys(self, there: set[str]) -> Iterator[Difference]:
        """Compare the primary key, and the columns that are unique or begin an index."""
        primary = self.inspector.get_pk_constraint(self.declared.table.name)["constrained_columns"]
        keys = self.declared.schema.keys
        if there.issuperset(keys):
            yield from self._compare_key(keys, primary)
        indexes = self._list_indexes()
        unique: list[list[str | None]] = [[*primary], *self._list_unique(indexes)]
        first = {names[0] for names in unique if names} | _find_first_columns(indexes, there)
        for column in self.declared.spec.columns:
            if column.name not in there:
                continue
            if column.unique and [column.name] not in unique:
                message = "the table has no unique constraint on it"
                yield self._differs(column.name, "unique", message)
            elif column.index and column.name not in first:
                message = "the table has no index that begins with it"
                yield self._differs(column.name, "index", message)

    def _compare_key(self, keys: Sequence[str], primary: Sequence[str]) -> Iterator[Difference]:
        """Compare the primary key. Of a table without one, no two of its first rows may have the
        same key."""
        generated = any(column.type == "ID" for column in self.declared.spec.columns)
        if set(primary) != set(keys) and (primary or generated):
            message = f"the table's primary key is {', '.join(primary) or 'none'}"
            yield self._differs(", ".join(keys), "primary key", message)
        elif not primary and self._repeats(keys):
            message = "the table has no primary key, and several rows have the same value"
            yield self._differs(", ".join(keys), "primary key", message)

    def _repeats(self, keys: Sequence[str]) -> bool:
        columns = [self.declared.table.c[name] for name in keys]
        some = sa.select(*columns).limit(MOST_KEYED).subquery()
        twice = sa.select(sa.literal(1)).select_from(some).group_by(*some.c)
        twice = twice.having(sa.func.count() > 1).limit(1)
        return self.connection.execute(twice).first() is not None

    def _list_indexes(self) -> list[Any]:
        """Return the table's indexes without those for full-text search."""
        name = self.declared.table.name
        return [one for one in self.inspector.get_indexes(name) if not is_text_index(one, name)]

    def _list_unique(self, indexes: Sequence[Any]) -> Iterator[list[str | None]]:
        """Yield the columns of each unique constraint and each unique index."""
        for one in self.inspector.get_unique_constraints(self.declared.table.name):
            yield [*one["column_names"]]
        yield from ([*one["column_names"]] for one in indexes if one["unique"])


def _find_first_columns(indexes: Sequence[Any], there: set[str]) -> set[str | None]:
    """Return the columns that begin an index, also within an expression."""
    plain = {one["column_names"][0] for one in indexes if one["column_names"]}
    expressions = [text for one in indexes for text in one.get("expressions", ())[:1]]
    return plain | {name for name in there if any(name in text for text in expressions)}
