"""Translation of the errors of databases and their drivers to HostErrors. Pure."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import exc as sql

from groundhook.core.errors import (
    HostError,
    SourceError,
    SourceMalformed,
    SourceNotConfigured,
    SourceRefused,
    SourceTimeout,
    StorageError,
)

TOO_SLOW = (
    "ask about fewer records, index the columns that questions name, or raise database.timeout_ms"
)
NOT_LOADED = "run `groundhook db load` to create it"


@contextmanager
def translated_errors(shown: str, timeout: float) -> Iterator[None]:
    """Raise the errors of SQLAlchemy and the drivers as HostErrors. `shown` is the database's name
    in messages; `timeout` is a statement's limit in seconds."""
    try:
        yield
    except sql.TimeoutError as exc:
        raise SourceTimeout(f"the database {shown!r} had no connection free in time") from exc
    except (sql.SQLAlchemyError, sqlite3.Error, OSError) as exc:
        raise _host_error(exc, shown, timeout) from exc


def _host_error(exc: Exception, shown: str, timeout: float) -> HostError:
    original = getattr(exc, "orig", None) or exc
    message = _driver_message(original)
    low = message.lower()
    for clue, make in _CLUES:
        if re.search(clue, low):
            return make(shown, message)
    if re.search(_SLOW, low):
        return SourceTimeout(
            f"the database {shown!r} did not answer within {timeout:g} s", hint=TOO_SLOW
        )
    if isinstance(exc, OSError) or (
        isinstance(exc, sql.DBAPIError) and (exc.connection_invalidated or _lost(exc))
    ):
        return SourceError(f"the connection to {shown!r} was lost: {message}")
    return SourceError(f"the database {shown!r} could not be queried: {message}")


def _driver_message(original: BaseException) -> str:
    """Return a driver's message on one line, without the error number and the statement that some
    drivers add."""
    args = original.args
    text = str(args[1]) if len(args) > 1 and isinstance(args[0], int) else str(original)
    return text.strip().split("\nLINE ")[0].replace("\n", " ") or original.__class__.__name__


def _lost(exc: sql.DBAPIError) -> bool:
    return isinstance(exc, sql.InterfaceError)


def _no_file(shown: str, _: str) -> HostError:
    return SourceNotConfigured(f"the database {shown!r} cannot be opened", hint=NOT_LOADED)


def _no_system_table(shown: str, message: str) -> HostError:
    hint = (
        "Groundhook never creates it: set database.url to the host's database, or name its table in"
        " models/__yao/user.mod.yao"
    )
    return SourceNotConfigured(
        f"the database {shown!r} has no table of the host's users or teams: {message}", hint=hint
    )


def _no_table(_: str, message: str) -> HostError:
    return SourceNotConfigured(f"a model's table does not exist: {message}", hint=NOT_LOADED)


def _no_database(shown: str, message: str) -> HostError:
    return SourceNotConfigured(f"the database {shown!r} cannot be opened: {message}")


def _no_column(_: str, message: str) -> HostError:
    hint = "`groundhook db check` shows the differences; existing tables are never altered"
    return SourceNotConfigured(f"the table differs from the model: {message}", hint=hint)


def _denied(_: str, message: str) -> HostError:
    return SourceRefused(f"the database refused the query: {message}")


def _login_refused(shown: str, message: str) -> HostError:
    return SourceRefused(f"the database {shown!r} refused the login: {message}")


def _unreachable(shown: str, message: str) -> HostError:
    return SourceError(f"the database {shown!r} cannot be reached: {message}")


def _damaged(shown: str, message: str) -> HostError:
    return SourceMalformed(f"{shown!r} is not a readable database: {message}")


def _full(shown: str, message: str) -> HostError:
    return StorageError(f"the database {shown!r} could not be written: {message}")


def _large(shown: str, message: str) -> HostError:
    return SourceError(
        f"the database {shown!r} has a value larger than database.result_kb: {message}"
    )


_SLOW = (
    r"interrupted|statement timeout|max_statement_time|query execution was interrupted|lock"
    r" timeout|lock wait timeout"
)


# Patterns of lower-case messages; the first match counts.
def _locked(shown: str, message: str) -> HostError:
    hint = "another program writes to it: try again, or let it write in shorter transactions"
    return SourceError(f"the database {shown!r} could not be queried: {message}", hint=hint)


_CLUES: tuple[tuple[str, Callable[[str, str], HostError]], ...] = (
    (r"unable to open database file", _no_file),
    (r"database (table )?is locked", _locked),
    (
        (
            r"no such table.*__yao_(user|team)\b|(relation|table) .*__yao_(user|team)\b.* (does"
            r" not|doesn't) exist"
        ),
        _no_system_table,
    ),
    (r"no such table|relation .* does not exist|table .* doesn't exist", _no_table),
    (
        (
            r"no such column|has no column|column .* does not exist|unknown column|invalid input"
            r" value for enum"
        ),
        _no_column,
    ),
    # The column has another type.
    (r"operator does not exist|function .* does not exist", _no_column),
    (r"database .* does not exist|unknown database", _no_database),
    (
        (
            r"password authentication failed|access denied for user .*using password|role .* does"
            r" not exist|no pg_hba"
        ),
        _login_refused,
    ),
    (
        (
            r"not authorized|prohibited|permission denied|readonly|read only transaction|read-only"
            r" transaction|denied"
        ),
        _denied,
    ),
    (
        (
            r"connection refused|can't connect|could not translate host|connection failed|timed"
            r" out|name or service"
        ),
        _unreachable,
    ),
    (r"connection timeout", _unreachable),
    (r"not a database|malformed", _damaged),
    (r"disk is full|disk i/o error|no space left", _full),
    (r"string or blob too big", _large),
)
