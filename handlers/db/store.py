"""The tables of an app's models in one database: running queries, sampling values, loading sample
rows, and comparing models with tables."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Literal

import anyio
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from groundhook.core.errors import SourceError, SourceNotConfigured, SourceTimeout
from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.engines.engine import DatabaseEngine, render
from groundhook.handlers.db.model import fulltext
from groundhook.handlers.db.model.loading import Loaded, load_model
from groundhook.handlers.db.model.schema import Field, Schema, list_members
from groundhook.handlers.db.model.schema_diff import Difference, compare
from groundhook.handlers.db.model.tables import Tables
from groundhook.handlers.db.permission import Permit
from groundhook.handlers.db.query.conditions import word_conditions
from groundhook.handlers.db.query.dsl import QueryDSL, models_of
from groundhook.handlers.db.query.joins import Permits
from groundhook.handlers.db.query.statement import MAX_COUNT, MAX_TIES, QueryCompiler

FEW_ROWS = 500  # below which all rows of a table are read
SAMPLE_ROWS = 5000  # read for each field
SAMPLE_VALUES = 300  # kept of each field
INDEXED_VALUES = 2000  # kept of an indexed column, whose every row is read
SAMPLE_LENGTH = 60  # characters; longer values are prose
SAMPLE_SECONDS = 30.0  # before a sample is taken again
LOOKUP_SHARE = 0.3  # of the time that a search has left
INDEX_HINT = "create an index on the columns that questions name (`groundhook db check`)"
LARGE = 50_000  # rows, beyond which a look-up that reads them all is noticed
INDEX_SECONDS = 30.0  # before the existence of a full-text index is checked again
MAX_SAMPLES = 64  # cached, by (model, permit), beside one of each model
BATCH_ROWS = 50  # fetched together
TOGETHER = 50  # tables that are sampled in one read

_Row = dict[str, Any]


@dataclass(frozen=True)
class Samples:
    """Values of the short text fields of a model with their number of rows, by field; `whole` are
    the fields of which they are all."""

    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    whole: frozenset[str] = frozenset()


@dataclass(frozen=True)
class QueryResult:
    """The rows of a query. `total` is the number of all matches; with `total_is_lower_bound` there
    may be more. `truncated`: rows were omitted since the result was too large. `sql` and
    `parameters` are the executed statement and its bound values."""

    rows: list[_Row]
    total: int
    total_is_lower_bound: bool = False
    truncated: bool = False
    sql: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ServedDatabase:
    """One database: its engine, the compiler for it, and the largest result in bytes."""

    engine: DatabaseEngine
    compiler: QueryCompiler
    max_bytes: int


@dataclass(frozen=True)
class SlowColumn:
    """A column of a table of more than `LARGE` rows, where every question reads all rows to find
    the values that it names, for want of an index."""

    model: str
    table: str
    column: str
    aspect: Literal["slow"] = "slow"
    says: str = f"it has no index, and the table more than {LARGE:,} rows"


class Store:
    """The models of an app, in the databases of some engines. `engines` are by the name that the
    `connection` of a model has, each with its largest result in kB."""

    def __init__(
        self, engines: Mapping[str, tuple[DatabaseEngine, int]], models: Mapping[str, ModelSpec]
    ) -> None:
        self._models = models
        self._tables = Tables(models)
        self._places = {
            name: ServedDatabase(
                engine, QueryCompiler(self._tables, engine.dialect), result_kb * 1024
            )
            for name, (engine, result_kb) in engines.items()
        }
        self._samples: OrderedDict[
            tuple[str, Permit | None], tuple[float, Samples | SourceTimeout]
        ] = OrderedDict()
        self._slow: dict[tuple[str, Permit | None], float] = {}  # look-ups that took too long
        self._indexed: dict[str, tuple[float, bool]] = {}

    @property
    def schemas(self) -> Mapping[str, Schema]:
        return self._tables.schemas

    @property
    def shown(self) -> str:
        """The names of the databases in messages."""
        used = {spec.connection for spec in self._models.values()} or {""}
        return ", ".join(self._places[one].engine.shown for one in self._places if one in used)

    def _place(self, model: str) -> ServedDatabase:
        """Return the database of a model. Relations never leave it."""
        connection = self._models[model].connection
        if connection not in self._places:
            raise SourceNotConfigured(
                f"the model {model!r} is in the database {connection!r}, which is not configured",
                hint=f"set databases.{connection}.url in agent/agent.yml",
            )
        return self._places[connection]

    def sql(
        self, dsl: QueryDSL, permits: Permits, limit: int, *, use_index: bool = False
    ) -> tuple[str, dict[str, Any]]:
        """Return the statement of a linted query and its bound values, as `run` executes it."""
        place = self._place(dsl.model)
        statement = place.compiler.query(dsl, permits, limit, use_index=use_index)
        return render(*statement, place.engine.dialect)

    async def has_index(self, dsl: QueryDSL) -> bool:
        """Return whether a full-text index can serve the query: it has words, and its table has the
        index. Raises SourceError."""
        if not word_conditions(dsl):
            return False
        looked, there = self._indexed.get(dsl.model, (0.0, False))
        if dsl.model not in self._indexed or time.monotonic() - looked > INDEX_SECONDS:
            declared = self._tables[dsl.model]
            there = await self._place(dsl.model).engine.inspect(
                lambda open: fulltext.is_present(open, declared.schema, declared.table)
            )
            self._indexed[dsl.model] = (time.monotonic(), there)
        return there

    async def run(
        self,
        dsl: QueryDSL,
        permits: Permits,
        limit: int,
        *,
        use_index: bool = False,
        count_total: bool = False,
    ) -> QueryResult:
        """Run a linted query; `use_index`: read the full-text index. With `count_total`, a second
        statement counts the matches beyond `limit`, up to the query's own. Raises SourceError."""
        place, asked = self._place(dsl.model), dsl.limit or limit
        statement, values = place.compiler.query(dsl, permits, limit, use_index=use_index)
        long = any(
            field.long or field.kind == "json" for field in self.schemas[dsl.model].fields.values()
        )

        def work(connection: Connection) -> QueryResult:
            answer = _fetch(
                connection, statement, values, place.max_bytes, stream=long and not dsl.computed
            )
            answer = replace(answer, total=dsl.offset + len(answer.rows))
            complete = not answer.truncated and (
                len(answer.rows) < limit + MAX_TIES
                if dsl.ties and asked <= limit
                else len(answer.rows) < limit and (answer.rows or not dsl.offset)
            )
            if complete or not (count_total or dsl.ties):
                return answer
            if len(answer.rows) >= MAX_COUNT:
                return replace(answer, total_is_lower_bound=True)
            try:
                total = connection.execute(
                    place.compiler.count(dsl, permits, asked, use_index=use_index)
                ).scalar_one()
            except sa.exc.OperationalError:  # most likely the timeout; the rows are complete
                return replace(answer, total_is_lower_bound=True)
            if dsl.limit and not dsl.ties and total > dsl.offset + dsl.limit:
                return replace(answer, total=dsl.offset + dsl.limit)
            return replace(answer, total=total, total_is_lower_bound=total == MAX_COUNT)

        names = self._names(models_of(dsl, self.schemas))
        if use_index:
            names.append(fulltext.name_of(self._tables[dsl.model].table.name))
        answer: QueryResult = await place.engine.read(work, names)
        return answer

    async def samples(self, model: str, permit: Permit | None) -> Samples:
        """Return distinct values of the model's short text fields, among the rows that the permit
        allows. Samples are cached, and so is a timeout, which is then raised again. Raises
        SourceError."""
        key = (model, permit)
        taken, known = self._samples.get(key, (0.0, Samples()))
        if key in self._samples and time.monotonic() - taken < SAMPLE_SECONDS:
            self._samples.move_to_end(key)
            if isinstance(known, SourceTimeout):
                raise SourceTimeout(known.message, hint=known.hint)
            return known
        try:
            [samples] = await self._sample_all([key])
        except SourceTimeout as exc:
            self._cache_samples(key, exc.with_traceback(None))
            raise
        self._cache_samples(key, samples)
        return samples

    async def sample_together(self, keys: Iterable[tuple[str, Permit | None]]) -> None:
        """Sample models with their permits `TOGETHER` at a time, since each read has its costs. A
        table that is missing, differs or takes too long is left to `samples`."""
        now, wanted = time.monotonic(), dict[str, list[tuple[str, Permit | None]]]()
        for key in dict.fromkeys(keys):
            if now - self._samples.get(key, (-SAMPLE_SECONDS, None))[0] >= SAMPLE_SECONDS:
                wanted.setdefault(self._models[key[0]].connection, []).append(key)
        for connection, there in wanted.items():
            for at in range(0, len(there) if connection in self._places else 0, TOGETHER):
                some = there[at : at + TOGETHER]
                with suppress(SourceError):
                    for key, samples in zip(some, await self._sample_all(some), strict=True):
                        self._cache_samples(key, samples)

    async def _sample_all(self, some: Sequence[tuple[str, Permit | None]]) -> list[Samples]:
        found: list[Samples] = await self._place(some[0][0]).engine.read(
            lambda connection: [self._sample(connection, *key) for key in some],
            self._names([model for model, _ in some]),
        )
        return found

    def _sample(self, connection: Connection, model: str, permit: Permit | None) -> Samples:
        sampled, compiler = sampled_fields(self.schemas[model]), self._place(model).compiler
        sample = partial(compiler.sample, model, permits={model: permit})
        few = compiler.rows(model, sampled, {model: permit}, FEW_ROWS)
        rows = connection.execute(few).all() if sampled else []
        if len(rows) < FEW_ROWS:  # one statement is enough for most of hundreds of tables
            columns = zip(sampled, zip(*rows, strict=True), strict=False)
            counts = {one.name: _short(Counter(column).items()) for one, column in columns}
            return Samples(counts, frozenset(one.name for one in sampled))
        counts, whole = {}, set()
        for one in sampled:
            rows = connection.execute(sample(one, rows=SAMPLE_ROWS, values=SAMPLE_VALUES)).all()
            if len(rows) < SAMPLE_VALUES and sum(row[1] for row in rows) < SAMPLE_ROWS:
                whole.add(one.name)
            elif self._has_index(model, one):
                every = sample(one, rows=None, values=INDEXED_VALUES)
                all_of_it = connection.execute(every).all()
                if len(all_of_it) < INDEXED_VALUES:
                    whole.add(one.name)
                rows = [*all_of_it, *rows]
            counts[one.name] = _short((row[0], row[1]) for row in rows)
        return Samples(counts, frozenset(whole))

    async def lookup(
        self, model: str, permit: Permit | None, samples: Samples, texts: Sequence[str]
    ) -> dict[str, list[str]]:
        """Return which values of the short text fields are among the texts, in any case and without
        accents, where the samples do not have all values. A field with an index is looked up in the
        index, where accents count. It has a part of the time that the search has left, so that the
        query can follow. Raises SourceError; a timeout again for half a minute."""
        incomplete = [
            one
            for one in sampled_fields(self.schemas[model])
            if one.kind == "text" and one.name not in samples.whole
        ]
        if not (incomplete and texts):
            return {}
        place = self._place(model)
        statements = {
            one.name: place.compiler.lookup(
                model,
                one,
                {model: permit},
                texts,
                indexed=self._has_index(model, one),
            )
            for one in incomplete
        }

        def work(connection: Connection) -> dict[str, list[str]]:
            return {
                name: list(connection.execute(one).scalars().all())
                for name, one in statements.items()
            }

        if time.monotonic() - self._slow.get((model, permit), -SAMPLE_SECONDS) < SAMPLE_SECONDS:
            raise SourceTimeout("looking up took too long before", hint=INDEX_HINT)
        left = anyio.current_effective_deadline() - anyio.current_time()
        try:
            with anyio.fail_after(left * LOOKUP_SHARE):
                found: dict[str, list[str]] = await place.engine.read(work, self._names([model]))
        except (TimeoutError, SourceTimeout) as exc:
            self._slow[model, permit] = time.monotonic()
            raise SourceTimeout("looking up took too long", hint=INDEX_HINT) from exc
        return {name: values for name, values in found.items() if values}

    def _has_index(self, model: str, of: Field) -> bool:
        return any(
            column.index or column.unique
            for column in self._tables[model].spec.columns
            if column.name == of.name
        )

    def _cache_samples(
        self, key: tuple[str, Permit | None], found: Samples | SourceTimeout
    ) -> None:
        self._samples[key] = (time.monotonic(), found)
        # A question samples all models in turn: with room for fewer, none would be found again.
        while len(self._samples) > MAX_SAMPLES + len(self._models):
            self._samples.popitem(last=False)

    async def load(self, model: str, now: datetime | None) -> Loaded:
        """Create and fill a model's table. `now` (UTC) fills the timestamps of rows without them.
        Raises HostError."""
        spec = self._tables[model].spec
        self._samples.clear()
        self._slow.clear()
        self._indexed.clear()
        loaded: Loaded = await self._place(model).engine.write(
            lambda connection: load_model(connection, spec, now)
        )
        return loaded

    async def compare(self, model: str) -> list[Difference]:
        """Return the differences between a model and its table. Raises SourceError."""
        declared = self._tables[model]
        differences: list[Difference] = await self._place(model).engine.inspect(
            lambda connection: compare(connection, declared)
        )
        return differences

    async def slow_columns(self, model: str) -> list[SlowColumn]:
        """Return the columns of a model that want an index. Raises SourceError."""
        table, keys = self._tables[model].table, self.schemas[model].keys
        samples = await self.samples(model, None)
        wanting = [
            one.name
            for one in sampled_fields(self.schemas[model])
            if one.kind == "text" and one.name not in keys and not self._has_index(model, one)
            if one.name not in samples.whole
        ]
        if not wanting:
            return []
        first = sa.select(sa.literal(1)).select_from(table).limit(LARGE + 1).subquery()
        count = sa.select(sa.func.count()).select_from(first)
        rows: int = await self._place(model).engine.read(
            lambda connection: connection.execute(count).scalar_one(), self._names([model])
        )
        return [SlowColumn(model, table.name, each) for each in wanting] if rows > LARGE else []

    async def close(self) -> None:
        for place in self._places.values():
            await place.engine.close()

    def _names(self, models: Sequence[str]) -> list[str]:
        return [self._tables[model].table.name for model in models]


def _fetch(
    connection: Connection,
    statement: sa.Select[Any],
    values: Mapping[str, Any],
    max_bytes: int,
    *,
    stream: bool,
) -> QueryResult:
    """Run a statement and return its rows up to `max_bytes`. With `stream`, rows are fetched in
    small batches, so that a large result is never in memory as a whole; without it, short rows are
    faster."""
    options = {"stream_results": True, "max_row_buffer": BATCH_ROWS} if stream else {}
    result = connection.execute(statement, values, execution_options=options)
    names, size, truncated = tuple(result.keys()), 0, False
    rows: list[_Row] = []
    for row in result if stream else result.all():
        size += _size(row)
        if size > max_bytes and rows:
            _stop_reading(connection, result)
            truncated = True
            break
        rows.append(dict(zip(names, row, strict=True)))
    context: Any = result.context
    return QueryResult(
        rows,
        len(rows),
        truncated=truncated,
        sql=context.statement,
        parameters=_bound(context.compiled_parameters[0]),
    )


def _bound(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bound values by name, with the elements of lists under names of their own."""
    bound: dict[str, Any] = {}
    for name, value in parameters.items():
        listed = isinstance(value, (list, tuple))
        bound.update(
            {f"{name}_{at}": one for at, one in enumerate(value, 1)} if listed else {name: value}
        )
    return bound


def _stop_reading(connection: Connection, result: sa.CursorResult[Any]) -> None:
    """Stop reading a result. MariaDB would still send the rest, so its connection is closed and
    replaced."""
    if connection.dialect.name == "mariadb":
        connection.invalidate()
        connection.rollback()
    else:
        result.close()


def _size(row: Sequence[Any]) -> int:
    """Return the approximate size of a row in bytes."""
    size = 0
    for value in row:  # a plain loop: this runs for every cell
        kind = type(value)
        size += (
            len(value)
            if kind is str or kind is bytes
            else len(str(value))
            if kind is dict or kind is list
            else 8
        )
    return size


def sampled_fields(schema: Schema) -> list[Field]:
    """Return the fields whose values questions may name: short texts, and JSON for its lists."""
    return [
        one
        for one in schema.visible
        if one.kind == "json" or (one.kind == "text" and not one.long and not one.options)
    ]


def _short(rows: Iterable[tuple[Any, int]]) -> dict[str, int]:
    """Return the values that are no prose, each with its number of rows."""
    found: dict[str, int] = {}
    for value, number in rows:
        members = list_members(value) if isinstance(value, str) else None
        for text in [value] if members is None else members:
            if isinstance(text, str) and 0 < len(text) <= SAMPLE_LENGTH:
                found[text] = found.get(text, 0) + number
    return dict(sorted(found.items()))
