"""`$ENV.NAME` in the strings of a document. The only module that reads the environment.

A variable that is not set is an error only when the value is needed: until then it is an `Unset`,
which records where it is used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from groundhook.core.concealed import conceal
from groundhook.core.errors import ConfigError
from groundhook.core.problems import raise_all
from groundhook.core.types.base import dotted
from groundhook.host.config.documents import ConfigDocument
from groundhook.host.config.locations import Path

Environment = Mapping[str, str]

_OF_CHILDREN = frozenset(
    {"PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "VIRTUAL_ENV", "SYSTEMROOT"}
)
_OF_CHILDREN_FAMILIES = ("LC_", "PYTHON", "LD_", "DYLD_", "COVERAGE_")

KEY_VARIABLE = "api_key_env"  # a setting that names a variable and does not hold its value

_PLAIN = (str, int, float, type(None))
_VARIABLE = re.compile(r"\$ENV\.([A-Za-z_][A-Za-z0-9_]*)")


def process_environment() -> Environment:
    """Return the environment of this process, as it is now."""
    return dict(os.environ)  # noqa: TID251


def child_environment() -> Environment:
    """Return the variables for a child process that runs untrusted code: enough for an interpreter
    to start and to find its packages."""
    given = process_environment()
    return {
        name: value
        for name, value in given.items()
        if name in _OF_CHILDREN or name.startswith(_OF_CHILDREN_FAMILIES)
    }


@dataclass(frozen=True)
class Unset:
    """The value of a string that needs a variable that is not set."""

    variable: str
    document: ConfigDocument
    path: Path

    def error(self) -> ConfigError:
        return ConfigError(
            f"{dotted(self.path)!r} needs the environment variable {self.variable!r}, which is"
            " not set",
            place=self.document.place(self.path),
            hint=f"set {self.variable}",
        )


def expand(document: ConfigDocument, environment: Environment) -> Any:
    """Return the document's data with `$ENV.NAME` replaced, in whole strings and in parts of
    strings."""
    if "$ENV." not in document.text:
        return document.data
    return _expand(document.data, (), document, environment)


def holds_variable(written: Any) -> bool:
    """Return whether a value as written (text, or a list of texts) uses a variable."""
    if isinstance(written, (list, tuple)):
        return any(holds_variable(entry) for entry in written)
    return isinstance(written, str) and _VARIABLE.search(written) is not None


def unset_in(value: Any) -> list[Unset]:
    """Return every variable that `value` needs and that is not set."""
    if isinstance(value, Unset):
        return [value]
    inner = (
        value.values()
        if isinstance(value, Mapping)
        else value
        if isinstance(value, (list, tuple))
        else ()
    )
    # Most values of a long document are none that holds others.
    deep = (entry for entry in inner if not isinstance(entry, _PLAIN))
    return [unset for entry in deep for unset in unset_in(entry)]


def without_unset(value: Any) -> Any:
    """Return the same data without the values whose variables are not set."""
    if isinstance(value, Mapping):
        return {
            key: entry if isinstance(entry, _PLAIN) else without_unset(entry)
            for key, entry in value.items()
            if not isinstance(entry, Unset)
        }
    if isinstance(value, (list, tuple)):
        return [without_unset(entry) for entry in value if not isinstance(entry, Unset)]
    return value


def need(value: Any) -> None:
    """Raise ConfigError when `value` needs a variable that is not set."""
    raise_all([unset.error() for unset in unset_in(value)])


def _read_variable_name(written: Any) -> Any:
    """Return the name in `$ENV.NAME`, for settings that name the variable of a key. Its value must
    not be used: it would be shown wherever the name is."""
    named = _VARIABLE.fullmatch(written) if isinstance(written, str) else None
    return named.group(1) if named else written


def without_values(message: str, written: Any, environment: Environment) -> str:
    """Return the message, or another one if it contains the value of a variable in `written`."""
    if isinstance(written, dict):
        written = [*written.values()]
    for entry in written if isinstance(written, (list, tuple)) else [written]:
        if isinstance(entry, (dict, list, tuple)):
            message = without_values(message, entry, environment)
        for name in _VARIABLE.findall(entry) if isinstance(entry, str) else ():
            if (value := environment.get(name)) and value in message:
                return f"what the environment variable {name!r} holds cannot be used here"
    return message


def _expand(value: Any, path: Path, document: ConfigDocument, environment: Environment) -> Any:
    if isinstance(value, dict):
        return {
            key: _read_variable_name(entry)
            if key == KEY_VARIABLE
            else _expand(entry, (*path, key), document, environment)
            for key, entry in value.items()
        }
    if isinstance(value, list):
        return [_expand(entry, (*path, n), document, environment) for n, entry in enumerate(value)]
    if not isinstance(value, str):
        return value
    for match in _VARIABLE.finditer(value):
        if match.group(1) not in environment:
            return Unset(match.group(1), document, path)
        conceal(match.group(1), environment[match.group(1)])
    return _VARIABLE.sub(lambda match: environment[match.group(1)], value)
