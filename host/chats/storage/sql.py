"""The port of a storage of rows: a SQLite file or a PostgreSQL database.

Statements are written once, for both: `:name` for a value, `blob` and `bigint` as types, no
function that only one of them has. Any text without half of a surrogate pair can be stored. A part
of the host (the chats, the memory) declares its tables as `TableScripts`; parts may share a
storage.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

import anyio
import anyio.to_thread

from groundhook.core.errors import StorageError

SqlRow = tuple[Any, ...]
_Result = TypeVar("_Result")

READERS = 4  # threads that read at the same time

VERSIONS = "create table if not exists parts (name text primary key, version bigint not null)"


@dataclass(frozen=True)
class TableScripts:
    """The tables of one part of the host. `steps` are scripts, statements separated by `;` at the
    end of a line: each takes the tables one version forward, and is never changed once released.
    """

    name: str
    steps: tuple[str, ...]


class Sql(Protocol):
    """Statements inside one transaction."""

    def rows(self, sql: str, /, **values: Any) -> Sequence[SqlRow]:
        """Run a statement and return its rows."""
        ...

    def change(self, sql: str, /, **values: Any) -> int:
        """Run a statement and return the number of rows that it changed."""
        ...

    def lock(self, name: str, /) -> None:
        """Wait until no other transaction holds the lock of this name, and hold it to the end of
        this one: for changes that depend on rows which were read, or may not exist yet."""
        ...

    def try_lock(self, name: str, /) -> bool:
        """Take the lock to the end of the transaction if no other transaction holds it, and return
        whether it was taken."""
        ...

    def be_patient(self) -> None:
        """Wait without a limit for the statements of this transaction, which changes very many
        rows."""
        ...


class Storage(Protocol):
    """A storage of rows. Every call blocks, may come from any thread, and raises StorageError. The
    first use creates the file and the tables."""

    @property
    def writers(self) -> int:
        """Number of threads that may write at the same time."""
        ...

    def reading(self) -> AbstractContextManager[Sql]:
        """Return a context manager that yields a transaction, which sees one state of the rows."""
        ...

    def writing(self) -> AbstractContextManager[Sql]:
        """Return a context manager that yields a transaction, which may change rows and is
        committed unless the block raises."""
        ...

    def close(self) -> None:
        """Close the connections; those in use are closed when they are returned."""
        ...


@dataclass
class Spent:
    """The number of transactions of one kind, and how long their callers waited for them."""

    count: int = 0
    seconds: float = 0.0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Count a transaction that takes as long as the block."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.count += 1
            self.seconds += time.perf_counter() - began


Times = Mapping[Literal["read", "write"], Spent]


class Threads:
    """Runs transactions of a storage in threads, so that none waits on the event loop."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.times: Times = {"read": Spent(), "write": Spent()}
        self._reading = anyio.CapacityLimiter(READERS)
        self._writing = anyio.CapacityLimiter(storage.writers)

    async def read(self, work: Callable[[Sql], _Result]) -> _Result:
        """Run `work` in a transaction that reads and return its result. Raises StorageError."""

        def run() -> _Result:
            with self._storage.reading() as sql:
                return work(sql)

        with self.times["read"].one():
            return await anyio.to_thread.run_sync(run, limiter=self._reading)

    async def write(self, work: Callable[[Sql], _Result], *, abandon: bool = False) -> _Result:
        """Run `work` in a transaction that may change rows and return its result. Raises
        StorageError. A cancelled caller waits for the transaction, unless it may `abandon` it: the
        transaction then ends some time later, in its thread."""

        def run() -> _Result:
            with self._storage.writing() as sql:
                return work(sql)

        with self.times["write"].one():
            return await anyio.to_thread.run_sync(
                run, limiter=self._writing, abandon_on_cancel=abandon
            )


def migrate(sql: Sql, parts: Sequence[TableScripts], noun: str) -> None:
    """Take the tables of each part to its newest version. The transaction must be the only one that
    migrates. Raises StorageError for tables of a newer version."""
    run_script(sql, VERSIONS)
    known: Mapping[str, int] = dict(sql.rows("select name, version from parts"))
    for part in parts:
        version = known.get(part.name, 0)
        if version > len(part.steps):
            raise StorageError(
                f"{noun} was written by a newer version of Groundhook"
                f" ({part.name}: version {version}, this one knows {len(part.steps)})"
            )
        for step in part.steps[version:]:
            run_script(sql, step)
        if version < len(part.steps):
            sql.change(
                "insert into parts (name, version) values (:name, :version)"
                " on conflict (name) do update set version = excluded.version",
                name=part.name,
                version=len(part.steps),
            )


def run_script(sql: Sql, script: str) -> None:
    """Run the statements of a script in order."""
    for statement in re.split(r";\s*\n", script.strip().removesuffix(";") + "\n"):
        if statement.strip():
            sql.change(statement)
