"""The engine for PostgreSQL (psycopg 3) and MariaDB (asyncmy): read-only sessions with a timeout
for each statement.

The final safeguard is on the server: a role that may only SELECT (docs/databases.md). If the caller
is cancelled, the statement is cancelled on the server and its connection is free again before the
cancellation continues.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from groundhook.core.errors import HostError, SourceNotConfigured
from groundhook.core.extras import Extra, extra
from groundhook.handlers.db.engines.errors import translated_errors
from groundhook.handlers.db.model.tables import read_cell

CONNECT_TIMEOUT = 10.0  # seconds
CANCEL_TIMEOUT = 5.0  # seconds for a cancelled statement to end; then its connection is closed
MAX_CONNECTION_AGE = 300  # seconds; servers and proxies close idle connections


_Work = Callable[[Connection], Any]

# The first statements of a session. {ms} is the timeout in milliseconds, {s} in seconds.
READ_SESSION = {
    "postgresql": (
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        "SET statement_timeout = {ms}",
        "SET lock_timeout = {ms}",
        "SET idle_in_transaction_session_timeout = 60000",
        "SET TIME ZONE 'UTC'",
    ),
    "mariadb": (
        # also sets how strings are quoted
        "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
        "SET SESSION TRANSACTION READ ONLY",
        "SET SESSION max_statement_time = {s}",
        "SET SESSION lock_wait_timeout = {whole}",
        "SET SESSION time_zone = '+00:00'",
    ),
}
WRITE_SESSION = {
    "postgresql": ("SET TIME ZONE 'UTC'",),
    "mariadb": ("SET SESSION time_zone = '+00:00'",),
}


class Server:
    """One database of a server. Implements `engine.DatabaseEngine`."""

    def __init__(self, url: URL, timeout: float, connections: int) -> None:
        self._url, self._timeout, self._connections = url, timeout, connections
        self.dialect = url.get_backend_name()
        self._slots = anyio.CapacityLimiter(connections)
        self._reading: AsyncEngine | None = None

    @property
    def shown(self) -> str:
        return self._url.render_as_string(hide_password=True)

    async def read(self, work: _Work, tables: Sequence[str]) -> Any:
        async with self._slots:
            with self._translate_errors():
                if self._reading is None:
                    self._reading = self._engine(
                        READ_SESSION,
                        pool_size=self._connections,
                        max_overflow=0,
                        pool_recycle=MAX_CONNECTION_AGE,
                    )
                connection = await self._reading.connect()
            try:
                return await self._run_cancellable(connection, work)
            finally:
                with anyio.CancelScope(shield=True), self._translate_errors():
                    await connection.close()

    async def inspect(self, work: _Work) -> Any:
        return await self.read(work, ())

    async def write(self, work: _Work) -> Any:
        engine = self._engine(WRITE_SESSION, poolclass=NullPool)
        with self._translate_errors():
            async with engine.begin() as connection:
                return await connection.run_sync(work)

    async def close(self) -> None:
        if self._reading is not None:
            await self._reading.dispose()
            self._reading = None

    async def _run_cancellable(self, connection: AsyncConnection, work: _Work) -> Any:
        """Run `work` on the connection. If the caller is cancelled, cancel the statement on the
        server and wait for its end."""
        done, answer, failed = False, None, None

        async def stop_when_cancelled() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                if not done:
                    with anyio.move_on_after(CANCEL_TIMEOUT, shield=True):
                        await self._stop(connection)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop_when_cancelled)
            with anyio.CancelScope(shield=True):
                try:
                    with self._translate_errors():
                        answer = await connection.run_sync(work)
                except HostError as exc:
                    failed = exc  # raised outside: a task group would wrap it
            done = True
            tasks.cancel_scope.cancel()
        if failed is not None:
            await anyio.lowlevel.checkpoint_if_cancelled()  # the failure is the cancellation
            raise failed
        return answer

    async def _stop(self, connection: AsyncConnection) -> None:
        """Cancel the statement of a connection, over another connection."""
        raw: Any = (await connection.get_raw_connection()).driver_connection
        if self.dialect == "postgresql":
            await raw.cancel_safe(timeout=CANCEL_TIMEOUT)
            return
        canceller = self._engine(WRITE_SESSION, poolclass=NullPool)
        async with canceller.connect() as other:
            await other.exec_driver_sql(f"KILL QUERY {int(raw.thread_id())}")

    def _engine(self, session: Mapping[str, Sequence[str]], **pool: Any) -> AsyncEngine:
        seconds = {"connect_timeout": max(1, round(min(CONNECT_TIMEOUT, max(self._timeout, 1))))}
        with self._translate_errors(), self._driver():
            engine = create_async_engine(
                self._url,
                connect_args=seconds,
                pool_pre_ping="pool_size" in pool,
                # Texts in JSON are written as they are, so that they can be searched for.
                json_serializer=partial(json.dumps, ensure_ascii=False),
                json_deserializer=read_cell,
                **pool,
            )
        timeout = {
            "ms": max(1, round(self._timeout * 1000)),
            "s": max(0.001, self._timeout),
            "whole": max(1, round(self._timeout)),
        }

        def configure(raw: Any, _: Any) -> None:
            cursor = raw.cursor()
            for statement in session[self.dialect]:
                cursor.execute(statement.format(**timeout))
            cursor.close()
            raw.commit()

        sa.event.listen(engine.sync_engine, "connect", configure)
        return engine

    def _translate_errors(self) -> Any:
        return translated_errors(self.shown, self._timeout)

    def _driver(self) -> AbstractContextManager[None]:
        name: Extra = "postgresql" if self.dialect == "postgresql" else "mariadb"
        return extra(name, f"the database {self.shown!r}", SourceNotConfigured)
