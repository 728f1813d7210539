"""The models' tables in one database: runs queries, samples values, loads sample rows, compares
models with tables."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from groundhook.handlers.db import fulltext
from groundhook.handlers.db.dsl import QueryDSL, reached
from groundhook.handlers.db.engine import Engine, render
from groundhook.handlers.db.loading import Loaded, load_model
from groundhook.handlers.db.paths import Permits
from groundhook.handlers.db.permission import Permit
from groundhook.handlers.db.schema import Schema
from groundhook.handlers.db.schema_diff import Difference, compare
from groundhook.handlers.db.statement import COUNTED, Compiler, searched
from groundhook.handlers.db.tables import Tables
from groundhook.host.core.errors import SourceTimeout
from groundhook.host.core.types.specs import ModelSpec

SAMPLE_ROWS = 5000  # looked at for each field
SAMPLE_VALUES = 300  # kept of each field
SAMPLE_LENGTH = 60  # characters; longer values are prose
SAMPLE_SECONDS = 30.0  # before a sample is taken again
INDEX_SECONDS = 30.0  # before it is looked again whether a table has a full-text index
SAMPLES = 64  # kept, of (model, permit)
AT_ONCE = 50  # rows that are fetched together

Samples = Mapping[str, tuple[str, ...]]
Row = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """The rows of a query. `total`: how many it has in all; maybe more where `more` is set. `cut`:
    rows are missing since the result would have been too large. `sql` and `parameters`: what was
    asked of the database, and the values bound to it."""

    rows: list[Row]
    total: int
    more: bool = False
    cut: bool = False
    sql: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


class Store:
    """The models of an app in the database of one engine."""

    def __init__(self, engine: Engine, models: Mapping[str, ModelSpec], result_kb: int) -> None:
        self._engine, self._models, self._most = engine, models, result_kb * 1024
        self._tables = Tables(models)
        self._compiler = Compiler(self._tables, engine.dialect)
        self._samples: OrderedDict[
            tuple[str, Permit | None], tuple[float, Samples | SourceTimeout]
        ] = OrderedDict()
        self._indexed: dict[str, tuple[float, bool]] = {}

    @property
    def schemas(self) -> Mapping[str, Schema]:
        return self._tables.schemas

    @property
    def shown(self) -> str:
        """The database as messages name it."""
        return self._engine.shown

    def sql(
        self, dsl: QueryDSL, permits: Permits, limit: int, *, indexed: bool = False
    ) -> tuple[str, dict[str, Any]]:
        """The statement of a query that the linter passed, and its bound values, as `run` would ask
        it."""
        return render(
            *self._compiler.query(dsl, permits, limit, indexed=indexed), self._engine.dialect
        )

    async def indexed(self, dsl: QueryDSL) -> bool:
        """Whether a full-text index can serve the query: it has words, and its table the index.
        Raises SourceError."""
        if not searched(dsl):
            return False
        looked, there = self._indexed.get(dsl.model, (0.0, False))
        if dsl.model not in self._indexed or time.monotonic() - looked > INDEX_SECONDS:
            declared = self._tables[dsl.model]
            there = await self._engine.inspect(
                lambda open: fulltext.present(open, declared.schema, declared.table)
            )
            self._indexed[dsl.model] = (time.monotonic(), there)
        return there

    async def run(
        self,
        dsl: QueryDSL,
        permits: Permits,
        limit: int,
        *,
        indexed: bool = False,
        counted: bool = False,
    ) -> Answer:
        """Run a query that the linter passed; `indexed`: by the full-text index. Rows beyond
        `limit` are counted, in a statement of their own, if `counted` says so. Raises
        SourceError."""
        statement, values = self._compiler.query(dsl, permits, limit, indexed=indexed)
        long = any(
            field.long or field.kind == "json" for field in self.schemas[dsl.model].fields.values()
        )

        def work(connection: Connection) -> Answer:
            answer = _within(
                connection, statement, values, self._most, stream=long and not dsl.computed
            )
            if not counted or (len(answer.rows) < limit and not answer.cut):
                return answer
            if len(answer.rows) >= COUNTED:
                return replace(answer, more=True)
            try:
                total = connection.execute(
                    self._compiler.count(dsl, permits, indexed=indexed)
                ).scalar_one()
            except sa.exc.OperationalError:  # most likely too slow; the rows are there all the same
                return replace(answer, more=True)
            return replace(answer, total=total, more=total == COUNTED)

        names = self._names(reached(dsl, self.schemas))
        if indexed:
            names.append(fulltext.name_of(self._tables[dsl.model].table.name))
        answer: Answer = await self._engine.read(work, names)
        return answer

    async def samples(self, model: str, permit: Permit | None) -> Samples:
        """Distinct values of the model's short text fields, among the rows that the permit shows.
        What took too long is not tried again for as long as a sample is kept. Raises
        SourceError."""
        key = (model, permit)
        taken, known = self._samples.get(key, (0.0, {}))
        if key in self._samples and time.monotonic() - taken < SAMPLE_SECONDS:
            self._samples.move_to_end(key)
            if isinstance(known, SourceTimeout):
                raise SourceTimeout(known.message, hint=known.hint)
            return known
        fields = [
            field for field in self.schemas[model].texts if not field.long and not field.options
        ]
        permits = {model: permit}
        asked = {
            one.name: self._compiler.sample(model, one, permits, SAMPLE_ROWS, SAMPLE_VALUES)
            for one in fields
        }

        def work(connection: Connection) -> Samples:
            return {
                name: _short(connection.execute(one).scalars().all()) for name, one in asked.items()
            }

        try:
            found: Samples = await self._engine.read(work, self._names([model]))
        except SourceTimeout as exc:
            self._keep(key, exc.with_traceback(None))
            raise
        self._keep(key, found)
        return found

    def _keep(self, key: tuple[str, Permit | None], found: Samples | SourceTimeout) -> None:
        self._samples[key] = (time.monotonic(), found)
        while len(self._samples) > SAMPLES:
            self._samples.popitem(last=False)

    async def load(self, model: str, now: datetime | None) -> Loaded:
        """Create and fill a model's table. `now` (UTC): the time of rows that do not say theirs.
        Raises HostError."""
        spec = self._tables[model].spec
        self._samples.clear()
        self._indexed.clear()
        loaded: Loaded = await self._engine.write(
            lambda connection: load_model(connection, spec, now)
        )
        return loaded

    async def compare(self, model: str) -> list[Difference]:
        """How a model's table differs from the model. Raises SourceError."""
        declared = self._tables[model]
        found: list[Difference] = await self._engine.inspect(
            lambda connection: compare(connection, declared)
        )
        return found

    async def close(self) -> None:
        await self._engine.close()

    def _names(self, models: Sequence[str]) -> list[str]:
        return [self._tables[model].table.name for model in models]


def _within(
    connection: Connection,
    statement: sa.Select[Any],
    values: Mapping[str, Any],
    most: int,
    *,
    stream: bool,
) -> Answer:
    """The rows that fit into so many bytes. `stream`: rows are fetched a few at a time, so that a
    large answer is never held whole; short rows are quicker at once."""
    options = {"stream_results": True, "max_row_buffer": AT_ONCE} if stream else {}
    result = connection.execute(statement, values, execution_options=options)
    names, size, cut = tuple(result.keys()), 0, False
    rows: list[Row] = []
    for row in result if stream else result.all():
        size += _size(row)
        if size > most and rows:
            _leave(connection, result)
            cut = True
            break
        rows.append(dict(zip(names, row, strict=True)))
    context: Any = result.context
    return Answer(
        rows,
        len(rows),
        cut=cut,
        sql=context.statement,
        parameters=_bound(context.compiled_parameters[0]),
    )


def _bound(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Each bound value under a name of its own, also those of a list."""
    bound: dict[str, Any] = {}
    for name, value in parameters.items():
        listed = isinstance(value, (list, tuple))
        bound.update(
            {f"{name}_{at}": one for at, one in enumerate(value, 1)} if listed else {name: value}
        )
    return bound


def _leave(connection: Connection, result: sa.CursorResult[Any]) -> None:
    """Read no further. MariaDB would send the rest all the same: there the connection is given up
    for another."""
    if connection.dialect.name == "mariadb":
        connection.invalidate()
        connection.rollback()
    else:
        result.close()


def _size(row: Sequence[Any]) -> int:
    """Roughly, in bytes."""
    size = 0
    for value in row:  # of every cell of every row
        kind = type(value)
        size += (
            len(value)
            if kind is str or kind is bytes
            else len(str(value))
            if kind is dict or kind is list
            else 8
        )
    return size


def _short(values: Sequence[Any]) -> tuple[str, ...]:
    return tuple(
        sorted(
            value for value in values if isinstance(value, str) and 0 < len(value) <= SAMPLE_LENGTH
        )
    )
