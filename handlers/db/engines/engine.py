"""The interface of a database engine, and the choice of the engine for a URL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy import exc as sql
from sqlalchemy.engine import URL, Connection, Dialect

from groundhook.core.errors import SourceNotConfigured
from groundhook.core.extras import Extra, extra
from groundhook.handlers.db.engines.sqlite import SQLite

DatabaseWork = Callable[[Connection], Any]


# Spellings of a URL's scheme → the dialect and driver that are used. One driver per database, since
# drivers differ in behaviour.
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


class DatabaseEngine(Protocol):
    """One database. `shown` is its name in messages, without the password; `dialect` is
    SQLAlchemy's name."""

    @property
    def dialect(self) -> str: ...
    @property
    def shown(self) -> str: ...

    async def read(self, work: DatabaseWork, tables: Sequence[str], /) -> Any:
        """Run `work` on a connection that may only read `tables`. Its statement ends soon after the
        timeout or a cancellation of the caller. Raises SourceError."""
        ...

    async def inspect(self, work: DatabaseWork, /) -> Any:
        """Run `work` on a connection that may read everything, including the catalogue. Raises
        SourceError."""
        ...

    async def write(self, work: DatabaseWork, /) -> Any:
        """Run `work` in one transaction that may write. Raises HostError."""
        ...

    async def close(self) -> None: ...


def engine_for(url: str, *, timeout_ms: int, connections: int, result_kb: int) -> DatabaseEngine:
    """Return the engine for a URL; it connects when it is first used. Raises SourceNotConfigured
    for an unusable URL."""
    parsed, timeout = _parse_url(url), timeout_ms / 1000
    if parsed.get_backend_name() == "sqlite":
        return SQLite(parsed, timeout, connections, result_kb * 1024)
    name: Extra = "postgresql" if parsed.get_backend_name() == "postgresql" else "mariadb"
    with extra(name, f"a database of {name}", SourceNotConfigured):
        import_module("greenlet")  # by which SQLAlchemy waits for servers
        from groundhook.handlers.db.engines.servers import Server
    return Server(parsed, timeout, connections)


def problem_of(url: str) -> SourceNotConfigured | None:
    """Return the problem of an unusable URL, without connecting; None if it is usable."""
    try:
        _parse_url(url)
    except SourceNotConfigured as exc:
        return exc
    return None


def render(
    statement: sa.Select[Any], values: Mapping[str, Any], dialect: str
) -> tuple[str, dict[str, Any]]:
    """Return a statement's text and its bound values, for the trace. `values` are those of its open
    parameters."""
    compiled = statement.compile(
        dialect=_dialect(dialect), compile_kwargs={"render_postcompile": True}
    )
    return str(compiled), dict(compiled.construct_params(values))


@cache
def _dialect(name: str) -> Dialect:
    return sa.make_url(f"{DRIVERS[name]}://").get_dialect()()


def _parse_url(url: str) -> URL:
    kind = url.partition(":")[0]
    hint = "sqlite:///shop.db, postgresql://user@host/database or mariadb://user@host/database"
    if kind not in DRIVERS:
        raise SourceNotConfigured(
            f"the scheme {kind!r} of the database URL is not supported", hint=hint
        )
    try:
        parsed = sa.make_url(DRIVERS[kind] + url.removeprefix(kind))
        parsed.get_dialect()
    except ImportError as exc:
        raise SourceNotConfigured(
            f"the driver of the database URL is not installed ({exc.name})"
        ) from exc
    except (sql.ArgumentError, ValueError) as exc:
        raise SourceNotConfigured(f"the database URL ({kind!r}) is not valid", hint=hint) from exc
    if parsed.port is not None and not 0 < parsed.port < 65536:
        raise SourceNotConfigured(
            f"the port {parsed.port} of the database URL is not between 1 and 65535", hint=hint
        )
    if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise SourceNotConfigured("a SQLite database needs a file: sqlite:///path/to/file.db")
    return parsed
