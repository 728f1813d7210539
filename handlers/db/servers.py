"""PostgreSQL (psycopg 3) and MariaDB (asyncmy): sessions that may only read, with a timeout for
each statement.

The guard that holds whatever happens is the server's: a role that may only SELECT
(docs/databases.md). When the caller is cancelled the statement is cancelled on the server, and its
connection is free again before the cancellation goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio
import anyio.lowlevel
import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from groundhook.handlers.db.sql_errors import translated
from groundhook.host.core.errors import HostError

TO_CONNECT = 10.0  # seconds at most
TO_STOP = 5.0  # seconds in which a cancelled statement ends; then its connection is closed
KEPT = 300  # seconds that a connection is kept: servers and what stands between close idle ones

Work = Callable[[Connection], Any]

# What a session is told before anything else. {ms}: the timeout in milliseconds, {s}: in seconds.
READING = {
    "postgresql": (
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        "SET statement_timeout = {ms}",
        "SET lock_timeout = {ms}",
        "SET idle_in_transaction_session_timeout = 60000",
        "SET TIME ZONE 'UTC'",
    ),
    "mariadb": (
        # with it, how texts are quoted
        "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
        "SET SESSION TRANSACTION READ ONLY",
        "SET SESSION max_statement_time = {s}",
        "SET SESSION lock_wait_timeout = {whole}",
        "SET SESSION time_zone = '+00:00'",
    ),
}
WRITING = {"postgresql": ("SET TIME ZONE 'UTC'",), "mariadb": ("SET SESSION time_zone = '+00:00'",)}


class Server:
    """One database of a server. Implements `engine.Engine`."""

    def __init__(self, url: URL, timeout: float, connections: int) -> None:
        self._url, self._timeout, self._connections = url, timeout, connections
        self.dialect = url.get_backend_name()
        self._free = anyio.CapacityLimiter(connections)
        self._reading: AsyncEngine | None = None

    @property
    def shown(self) -> str:
        return self._url.render_as_string(hide_password=True)

    async def read(self, work: Work, tables: Sequence[str]) -> Any:
        async with self._free:
            with self._translated():
                if self._reading is None:
                    self._reading = self._engine(
                        READING, pool_size=self._connections, max_overflow=0, pool_recycle=KEPT
                    )
                connection = await self._reading.connect()
            try:
                return await self._stoppable(connection, work)
            finally:
                with anyio.CancelScope(shield=True), self._translated():
                    await connection.close()

    async def inspect(self, work: Work) -> Any:
        return await self.read(work, ())

    async def write(self, work: Work) -> Any:
        engine = self._engine(WRITING, poolclass=NullPool)
        with self._translated():
            async with engine.begin() as connection:
                return await connection.run_sync(work)

    async def close(self) -> None:
        if self._reading is not None:
            await self._reading.dispose()
            self._reading = None

    async def _stoppable(self, connection: AsyncConnection, work: Work) -> Any:
        """`work` on the connection. When the caller is cancelled the server is told, and the
        statement's end is waited for."""
        done, answer, failed = False, None, None

        async def stop_when_cancelled() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                if not done:
                    with anyio.move_on_after(TO_STOP, shield=True):
                        await self._stop(connection)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop_when_cancelled)
            with anyio.CancelScope(shield=True):
                try:
                    with self._translated():
                        answer = await connection.run_sync(work)
                except HostError as exc:
                    failed = exc  # raised outside: a task group would wrap it
            done = True
            tasks.cancel_scope.cancel()
        if failed is not None:
            await anyio.lowlevel.checkpoint_if_cancelled()  # it failed because it was stopped
            raise failed
        return answer

    async def _stop(self, connection: AsyncConnection) -> None:
        """Cancel what runs on the connection, from beside it."""
        raw: Any = (await connection.get_raw_connection()).driver_connection
        if self.dialect == "postgresql":
            await raw.cancel_safe(timeout=TO_STOP)
            return
        beside = self._engine(WRITING, poolclass=NullPool)
        async with beside.connect() as other:
            await other.exec_driver_sql(f"KILL QUERY {int(raw.thread_id())}")

    def _engine(self, said: Mapping[str, Sequence[str]], **pool: Any) -> AsyncEngine:
        seconds = {"connect_timeout": max(1, round(min(TO_CONNECT, max(self._timeout, 1))))}
        with self._translated():
            engine = create_async_engine(
                self._url, connect_args=seconds, pool_pre_ping="pool_size" in pool, **pool
            )
        timeout = {
            "ms": max(1, round(self._timeout * 1000)),
            "s": max(0.001, self._timeout),
            "whole": max(1, round(self._timeout)),
        }

        def tell(raw: Any, _: Any) -> None:
            cursor = raw.cursor()
            for statement in said[self.dialect]:
                cursor.execute(statement.format(**timeout))
            cursor.close()
            raw.commit()

        sa.event.listen(engine.sync_engine, "connect", tell)
        return engine

    def _translated(self) -> Any:
        return translated(self.shown, self._url.drivername, self._timeout)
