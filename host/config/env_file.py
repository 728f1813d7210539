"""The file `.env` of an app's folder: values of variables that the environment does not set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from groundhook.core.errors import ConfigError, Place
from groundhook.host.config.documents import decode_text
from groundhook.host.config.environment import Environment, process_environment

if TYPE_CHECKING:
    from dotenv.parser import Original

ENV_FILE = ".env"


@dataclass(frozen=True, kw_only=True)
class EnvFile:
    """The values of a file, and the lines that set nothing because they could not be read."""

    values: Mapping[str, str]
    unread: tuple[int, ...] = ()


def app_environment(root: Path) -> Environment:
    """Return the environment of this process, and the variables of the app's `.env` that it does
    not set. Raises ConfigError for a file that cannot be read."""
    environment = process_environment()
    file = read_env_file(root)
    return {**file.values, **environment} if file else environment


def read_env_file(root: Path) -> EnvFile | None:
    """Return the app's `.env`; None without one. `${NAME}` in a value is the environment's, or else
    that of the lines above. Raises ConfigError."""
    path = root / ENV_FILE
    if not path.is_file():
        return None
    # Imported here because most apps have no such file.
    from dotenv.main import resolve_variables
    from dotenv.parser import parse_stream

    try:
        raw = path.read_bytes()
    except OSError as exc:
        place = Place(ENV_FILE)
        raise ConfigError(f"cannot be read: {exc.strerror or exc}", place=place) from exc
    bindings = list(parse_stream(StringIO(decode_text(raw, ENV_FILE))))
    named = [(each.key, each.value) for each in bindings if each.key and not each.error]
    values = resolve_variables(named, override=False)
    return EnvFile(
        values={name: value for name, value in values.items() if value is not None},
        unread=tuple(_line_of(each.original) for each in bindings if each.error),
    )


def _line_of(statement: Original) -> int:
    """Return the line of a statement, which begins with the blank lines before it."""
    text = statement.string
    return statement.line + text[: len(text) - len(text.lstrip())].count("\n")
