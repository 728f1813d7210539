"""The models' tables in one database: runs queries and samples values in threads, loads sample rows.

Blocking work runs in a worker thread under a guard; when the caller is cancelled the statement is stopped, and the thread is
free again before the cancellation goes on.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Event
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from handlers.db.dsl import QueryDSL
from handlers.db.engine import Engines
from handlers.db.loading import Loaded, load_model
from handlers.db.permission import Permit
from handlers.db.schema import Schema, Schemas
from handlers.db.statement import Compiler
from handlers.db.tables import table_of
from host.errors import HostError, UnknownName
from host.types.specs import ModelSpec

SAMPLE_ROWS = 5000  # looked at for each field
SAMPLE_VALUES = 300  # kept of each field
SAMPLE_LENGTH = 60  # characters; longer values are prose
SAMPLE_SECONDS = 30.0  # before a sample is taken again
SAMPLES = 64  # kept, of (model, permit)

Samples = Mapping[str, tuple[str, ...]]
Row = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """The rows of a query, and how many records match in all."""

    rows: list[Row]
    total: int


class Store:
    """Not more than this class and `engine` know that SQLAlchemy is there."""

    def __init__(self, url: str, timeout_ms: int, models: Mapping[str, ModelSpec]) -> None:
        """Raises SourceNotConfigured for a URL that cannot be used."""
        self._engines = Engines(url, timeout_ms)
        self._models = models
        self._compilers: dict[str, Compiler] = {}
        self.schemas = Schemas(models)
        self._samples: OrderedDict[tuple[str, Permit | None], tuple[float, Samples]] = OrderedDict()

    def schema(self, model: str) -> Schema:
        return self.schemas[model]

    def statement(self, dsl: QueryDSL, permit: Permit | None, limit: int) -> sa.Select[Any]:
        """The statement of a query that the linter passed."""
        return self._compiler(dsl.model).query(dsl, permit, limit)

    def render(self, statement: sa.Select[Any]) -> tuple[str, dict[str, Any]]:
        return self._engines.render(statement)

    async def run(self, dsl: QueryDSL, permit: Permit | None, limit: int) -> Answer:
        """Run a query that the linter passed. Raises SourceError."""
        statement, count = self.statement(dsl, permit, limit), self._compiler(dsl.model).count(dsl, permit)

        def work(connection: Connection) -> Answer:
            rows = [dict(row) for row in connection.execute(statement).mappings()]
            full = len(rows) == limit
            return Answer(rows, connection.execute(count).scalar_one() if full else len(rows))

        answer: Answer = await self._read(work, dsl.model)
        return answer

    async def samples(self, model: str, permit: Permit | None) -> Samples:
        """Distinct values of the model's short text fields, among the rows that the permit shows. Raises SourceError."""
        key = (model, permit)
        taken, known = self._samples.get(key, (0.0, {}))
        if key in self._samples and time.monotonic() - taken < SAMPLE_SECONDS:
            self._samples.move_to_end(key)
            return known
        compiler, schema = self._compiler(model), self.schema(model)
        fields = [field for field in schema.texts if not field.long and not field.options]
        statements = {field.name: compiler.sample(field, permit, SAMPLE_ROWS, SAMPLE_VALUES) for field in fields}

        def work(connection: Connection) -> Samples:
            return {name: _short(connection.execute(one).scalars().all()) for name, one in statements.items()}

        found: Samples = await self._read(work, model)
        self._samples[key] = (time.monotonic(), found)
        while len(self._samples) > SAMPLES:
            self._samples.popitem(last=False)
        return found

    async def load(self, model: str, now: datetime | None) -> Loaded:
        """Create and fill a model's table. `now` (UTC): the time of rows that do not say theirs. Raises HostError."""
        spec = self._spec(model)

        def work() -> Loaded:
            loaded: Loaded = self._engines.write(lambda connection: load_model(connection, spec, now))
            return loaded

        self._samples.clear()
        return await anyio.to_thread.run_sync(work)

    async def close(self) -> None:
        await anyio.to_thread.run_sync(self._engines.close)

    async def _read(self, work: Callable[[Connection], Any], model: str) -> Any:
        tables = [self._spec(model).table.name]
        return await _stoppable(lambda stop: self._engines.read(work, tables, stop))

    def _spec(self, model: str) -> ModelSpec:
        if model not in self._models:
            raise UnknownName("model", model, self._models)
        return self._models[model]

    def _compiler(self, model: str) -> Compiler:
        if model not in self._compilers:
            spec = self._spec(model)
            self._compilers[model] = Compiler(spec, self.schema(model), table_of(spec), self._engines.dialect)
        return self._compilers[model]


async def _stoppable(work: Callable[[Event], Any]) -> Any:
    """`work` in a thread. When the caller is cancelled the event is set, and the thread's end is waited for."""
    stop, answer, failed = Event(), None, None

    async def stop_when_cancelled() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            stop.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_when_cancelled)
        with anyio.CancelScope(shield=True):
            try:
                answer = await anyio.to_thread.run_sync(work, stop)
            except HostError as exc:
                failed = exc  # raised outside: a task group would wrap it
        tasks.cancel_scope.cancel()
    if failed is not None:
        await anyio.lowlevel.checkpoint_if_cancelled()  # it failed because it was stopped
        raise failed
    return answer


def _short(values: Sequence[Any]) -> tuple[str, ...]:
    return tuple(sorted(value for value in values if isinstance(value, str) and 0 < len(value) <= SAMPLE_LENGTH))
