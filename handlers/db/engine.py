"""Which engine a database URL means, and what each of them can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy import exc as sql
from sqlalchemy.engine import URL, Connection, Dialect

from groundhook.handlers.db.servers import Server
from groundhook.handlers.db.sqlite import SQLite
from groundhook.host.core.errors import SourceNotConfigured

Work = Callable[[Connection], Any]

# What people write → the dialect and driver that are used. One driver a database: each has ways of
# its own.
DRIVERS = {
    "sqlite": "sqlite",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
    "mariadb": "mariadb+asyncmy",
    "mysql": "mariadb+asyncmy",
    "mariadb+asyncmy": "mariadb+asyncmy",
    "mysql+asyncmy": "mariadb+asyncmy",
}


class Engine(Protocol):
    """One database. `shown` is how messages name it, without its password."""

    @property
    def dialect(self) -> str: ...
    @property
    def shown(self) -> str: ...

    async def read(self, work: Work, tables: Sequence[str], /) -> Any:
        """`work` on a connection that may only read `tables`. Its statement ends soon after the
        timeout has passed or the caller was cancelled. Raises SourceError."""
        ...

    async def inspect(self, work: Work, /) -> Any:
        """`work` on a connection that reads what it likes, the catalogue as well. Raises
        SourceError."""
        ...

    async def write(self, work: Work, /) -> Any:
        """`work` in one transaction that may write. Raises HostError."""
        ...

    async def close(self) -> None: ...


def engine_for(url: str, *, timeout_ms: int, connections: int, result_kb: int) -> Engine:
    """The engine of a URL; connects when it is first used. Raises SourceNotConfigured for a URL
    that cannot be used."""
    parsed, timeout = _parsed(url), timeout_ms / 1000
    if parsed.get_backend_name() == "sqlite":
        return SQLite(parsed, timeout, connections, result_kb * 1024)
    return Server(parsed, timeout, connections)


def problem_of(url: str) -> SourceNotConfigured | None:
    """What is wrong with a URL that no engine could use; nothing is connected to."""
    try:
        _parsed(url)
    except SourceNotConfigured as exc:
        return exc
    return None


def render(
    statement: sa.Select[Any], values: Mapping[str, Any], dialect: str
) -> tuple[str, dict[str, Any]]:
    """A statement's text and its bound values, for the trace; `values`: those that it leaves
    open."""
    compiled = statement.compile(
        dialect=_dialect(dialect), compile_kwargs={"render_postcompile": True}
    )
    return str(compiled), dict(compiled.construct_params(values))


@cache
def _dialect(name: str) -> Dialect:
    return sa.make_url(f"{DRIVERS[name]}://").get_dialect()()


def _parsed(url: str) -> URL:
    kind = url.partition(":")[0]
    hint = "sqlite:///shop.db, postgresql://user@host/database or mariadb://user@host/database"
    if kind not in DRIVERS:
        raise SourceNotConfigured(f"the database URL ({kind!r}) cannot be used", hint=hint)
    try:
        parsed = sa.make_url(DRIVERS[kind] + url.removeprefix(kind))
        parsed.get_dialect()
    except ImportError as exc:
        raise SourceNotConfigured(
            f"the driver of the database URL is not installed ({exc.name})"
        ) from exc
    except (sql.ArgumentError, ValueError) as exc:
        raise SourceNotConfigured(f"the database URL ({kind!r}) cannot be used", hint=hint) from exc
    if parsed.port is not None and not 0 < parsed.port < 65536:
        raise SourceNotConfigured(
            f"the database URL names a port that there is not: {parsed.port}", hint=hint
        )
    if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise SourceNotConfigured("a SQLite database needs a file: sqlite:///path/to/file.db")
    return parsed
