"""`groundhook db load`: makes the tables that are missing and puts the models' sample rows into
empty ones.

A table that exists is never altered and never emptied. Each model is one transaction: an
interrupted load leaves a table whole or not at all, and loading again completes the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from groundhook.handlers.db import fulltext
from groundhook.handlers.db.coerce import coerce
from groundhook.handlers.db.schema import Field, schema_of
from groundhook.handlers.db.tables import table_of
from groundhook.host.core.errors import ConfigError, SourceError, suggestion
from groundhook.host.core.types.specs import SHARE, TIMESTAMPS, ModelSpec

BATCH = 500


@dataclass(frozen=True)
class Loaded:
    """What became of one model. `rows`: how many were put in; `had`: how many were there before;
    `note`: what to know."""

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
    """Create and fill one model's table. `now` (UTC): the time of rows that do not say theirs.
    Raises ConfigError for a row that does not fit the model, naming it."""
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


def rows_of(spec: ModelSpec, now: datetime | None) -> list[dict[str, Any]]:
    """The model's sample rows in the types of its columns, defaults filled in."""
    fields = schema_of(spec).fields
    defaults = {
        column.name: column.default for column in spec.columns if column.default is not None
    }
    if spec.option.timestamps and now is not None:
        defaults.update(dict.fromkeys(TIMESTAMPS, now))
    keys = {column.name for column in spec.columns if column.type == "ID"}
    wanted = [
        column.name for column in spec.columns if not column.nullable and column.name not in keys
    ]
    said = set(defaults).union(*(row.keys() for row in spec.values)) if spec.values else set()
    rows = []
    for number, row in enumerate(spec.values):
        where = f"the model {spec.id!r}, values[{number}]"
        whole = {**dict.fromkeys(said), **defaults, **row}
        for name in wanted:
            if whole.get(name) is None:
                raise ConfigError(f"{where}: the column {name!r} has no value and is not nullable")
        rows.append({name: _value(fields, name, value, where) for name, value in whole.items()})
    return rows


def _value(fields: Mapping[str, Field], name: str, value: Any, where: str) -> Any:
    field = fields.get(name)
    if field is None:
        raise ConfigError(
            f"{where}: there is no column {name!r}", hint=suggestion(name, sorted(fields))
        )
    if name == SHARE and isinstance(value, bool):
        value = "team" if value else "private"
    if value is None:
        return None
    try:
        found = coerce(field, value)
    except SourceError as exc:
        raise ConfigError(f"{where}: {exc.message}") from exc
    if field.options and found not in field.options:
        raise ConfigError(
            f"{where}: {value!r} is no option of {name!r}",
            hint=suggestion(str(value), field.options),
        )
    return found


def _differences(table: sa.Table, there: set[str]) -> str:
    missing = [column.name for column in table.columns if column.name not in there]
    return f"the table lacks {', '.join(missing)}, which is not altered" if missing else ""
