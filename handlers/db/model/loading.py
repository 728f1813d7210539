"""`groundhook db load`: creation of missing tables, and loading of the models' sample rows into
empty ones.

An existing table is never altered or emptied. Each model is one transaction: after an interrupted
load a table is complete or missing, and loading again completes the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from groundhook.core.errors import ConfigError, SourceError, suggestion
from groundhook.core.types.model_spec import (
    SHARE,
    TIMESTAMPS,
    ModelSpec,
)
from groundhook.handlers.db.model import fulltext
from groundhook.handlers.db.model.coerce import coerce
from groundhook.handlers.db.model.schema import Field, schema_of
from groundhook.handlers.db.model.tables import table_of

BATCH = 500


@dataclass(frozen=True)
class Loaded:
    """The result for one model: `rows` is the number of inserted rows, `had` the number of earlier
    rows, and `note` a remark for the user."""

    model: str
    table: str
    created: bool
    rows: int
    had: int
    note: str = ""

    def __str__(self) -> str:
        done = "created" if self.created else f"existed with {self.had} rows"
        return f"{self.model}: table {self.table!r} {done}, {self.rows} rows loaded" + (
            f"; {self.note}" if self.note else ""
        )


def load_model(connection: Connection, spec: ModelSpec, now: datetime | None) -> Loaded:
    """Create and fill one model's table. `now` (UTC) fills the timestamps of rows without them.
    Raises ConfigError that names the first row which does not fit the model."""
    table = table_of(spec)
    inspector = sa.inspect(connection)
    exists = inspector.has_table(spec.table.name)
    had, note = 0, ""
    if exists:
        had = connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
        note = _differences(
            table, {column["name"] for column in inspector.get_columns(spec.table.name)}
        )
    else:
        table.create(connection)
        fulltext.create(connection, schema_of(spec), table)
    rows = [] if had else rows_of(spec, now)
    for start in range(0, len(rows), BATCH):
        try:
            connection.execute(table.insert(), rows[start : start + BATCH])
        except sa.exc.IntegrityError as exc:
            raise ConfigError(
                f"the values of the model {spec.id!r} cannot be loaded: {exc.orig}"
            ) from exc
    return Loaded(spec.id, spec.table.name, not exists, len(rows), had, note)


def load_rows(
    connection: Connection, spec: ModelSpec, rows: Iterable[Mapping[str, Any]], *, anew: bool
) -> None:
    """Create the table of a model and insert rows in the types of its columns. `anew`: instead of
    the table that there is. Raises ConfigError for a table that exists otherwise."""
    table = table_of(spec)
    if sa.inspect(connection).has_table(spec.table.name):
        if not anew:
            raise ConfigError(
                f"the table {spec.table.name!r} exists, and existing tables are not altered",
                hint="choose another name with --table",
            )
        fulltext.drop(connection, table)
        sa.Table(table.name, sa.MetaData()).drop(connection)
    table.create(connection)
    fulltext.create(connection, schema_of(spec), table)
    _insert(connection, table, rows)


def add_rows(
    connection: Connection, spec: ModelSpec, rows: Callable[[int], Iterable[Mapping[str, Any]]]
) -> int:
    """Insert rows into the table of a model, and return how many it had: `rows` is called with the
    highest number of its key. Raises ConfigError for a key that the table has."""
    table = table_of(spec)
    if not sa.inspect(connection).has_table(table.name):
        raise ConfigError(f"there is no table {table.name!r}", hint="--replace makes it anew")
    [key, *others] = table.primary_key.columns
    highest = None
    if not others and isinstance(key.type, sa.Integer):
        highest = connection.execute(sa.select(sa.func.max(key))).scalar()
    count = connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
    try:
        _insert(connection, table, rows(highest or 0))
    except sa.exc.IntegrityError as exc:
        raise ConfigError(
            f"no row was added: {exc.orig}",
            hint="rows of the file are in the table already? --replace takes the file alone",
        ) from exc
    return int(count)


def _insert(connection: Connection, table: sa.Table, rows: Iterable[Mapping[str, Any]]) -> None:
    remaining = iter(rows)
    while some := [dict(row) for row in islice(remaining, BATCH)]:
        connection.execute(table.insert(), some)


def rows_of(spec: ModelSpec, now: datetime | None) -> list[dict[str, Any]]:
    """Return the model's sample rows in the types of its columns, with defaults. Raises
    ConfigError."""
    fields, defaults = schema_of(spec).fields, _list_defaults(spec, now)
    required = [one.name for one in spec.columns if not one.nullable and one.type != "ID"]
    names = set(defaults).union(*(row.keys() for row in spec.values)) if spec.values else set()
    rows = []
    for number, row in enumerate(spec.values):
        where = f"the model {spec.id!r}, values[{number}]"
        whole = {**dict.fromkeys(names), **defaults, **row}
        missing = next((name for name in required if whole.get(name) is None), None)
        if missing is not None:
            raise ConfigError(f"{where}: the column {missing!r} has no value and is not nullable")
        rows.append({name: _convert(fields, name, value, where) for name, value in whole.items()})
    return rows


def _list_defaults(spec: ModelSpec, now: datetime | None) -> dict[str, Any]:
    """Return the values of columns that a row does not name."""
    defaults = {one.name: one.default for one in spec.columns if one.default is not None}
    stamped = spec.option.timestamps and now is not None
    return defaults | (dict.fromkeys(TIMESTAMPS, now) if stamped else {})


def _convert(fields: Mapping[str, Field], name: str, value: Any, where: str) -> Any:
    field = fields.get(name)
    if field is None:
        raise ConfigError(
            f"{where}: unknown column {name!r}", hint=suggestion(name, sorted(fields))
        )
    if name == SHARE and isinstance(value, bool):
        value = "team" if value else "private"
    if value is None:
        return None
    try:
        converted = coerce(field, value)
    except SourceError as exc:
        raise ConfigError(f"{where}: {exc.message}") from exc
    if field.options and converted not in field.options:
        raise ConfigError(
            f"{where}: {value!r} is not among the options of {name!r}",
            hint=suggestion(str(value), field.options),
        )
    return converted


def _differences(table: sa.Table, there: set[str]) -> str:
    missing = [column.name for column in table.columns if column.name not in there]
    return (
        f"the table has no {', '.join(missing)}; existing tables are not altered" if missing else ""
    )
