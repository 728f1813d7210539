"""`$ENV.NAME` in the strings of a document. The one place in the program that reads the
environment.

A variable that is not set is no error until the value is needed: it becomes an `Unset`, which says
where it was asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from groundhook.host.config.documents import Document
from groundhook.host.config.locations import Path
from groundhook.host.core.errors import ConfigError
from groundhook.host.core.problems import raise_all
from groundhook.host.core.types.base import dotted

Environment = Mapping[str, str]

_OF_CHILDREN = frozenset(
    {"PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "VIRTUAL_ENV", "SYSTEMROOT"}
)
_OF_CHILDREN_FAMILIES = ("LC_", "PYTHON", "LD_", "DYLD_", "COVERAGE_")

_VARIABLE = re.compile(r"\$ENV\.([A-Za-z_][A-Za-z0-9_]*)")


def process_environment() -> Environment:
    """The environment of this process, as it is now."""
    return dict(os.environ)  # noqa: TID251


def child_environment() -> Environment:
    """What a child process that runs strangers' code is given: enough for an interpreter to start
    and to find its packages."""
    given = process_environment()
    return {
        name: value
        for name, value in given.items()
        if name in _OF_CHILDREN or name.startswith(_OF_CHILDREN_FAMILIES)
    }


@dataclass(frozen=True)
class Unset:
    """Stands where a string needs a variable that is not set."""

    variable: str
    document: Document
    path: Path

    def error(self) -> ConfigError:
        return ConfigError(
            f"{dotted(self.path)!r} needs the environment variable {self.variable!r}, which is"
            " not set",
            place=self.document.place(self.path),
            hint=f"set {self.variable}",
        )


def expand(document: Document, environment: Environment) -> Any:
    """The document's data with `$ENV.NAME` replaced, whole strings and parts of strings alike. The
    document stays as it is."""
    if "$ENV." not in document.text:
        return document.data
    return _expand(document.data, (), document, environment)


def holds_variable(written: Any) -> bool:
    """Whether a value as written (text, or a list with text) takes something from the
    environment."""
    if isinstance(written, (list, tuple)):
        return any(holds_variable(entry) for entry in written)
    return isinstance(written, str) and _VARIABLE.search(written) is not None


def unset_in(value: Any) -> list[Unset]:
    """Every variable that `value` needs and that is not set."""
    if isinstance(value, Unset):
        return [value]
    inner = (
        value.values()
        if isinstance(value, Mapping)
        else value
        if isinstance(value, (list, tuple))
        else ()
    )
    return [unset for entry in inner for unset in unset_in(entry)]


def without_unset(value: Any) -> Any:
    """The same data, leaving out what cannot be known."""
    if isinstance(value, Mapping):
        return {
            key: without_unset(entry)
            for key, entry in value.items()
            if not isinstance(entry, Unset)
        }
    if isinstance(value, (list, tuple)):
        return [without_unset(entry) for entry in value if not isinstance(entry, Unset)]
    return value


def need(value: Any) -> None:
    """Raises ConfigError when `value` needs a variable that is not set."""
    raise_all([unset.error() for unset in unset_in(value)])


def _expand(value: Any, path: Path, document: Document, environment: Environment) -> Any:
    if isinstance(value, dict):
        return {
            key: _expand(entry, (*path, key), document, environment) for key, entry in value.items()
        }
    if isinstance(value, list):
        return [_expand(entry, (*path, n), document, environment) for n, entry in enumerate(value)]
    if not isinstance(value, str):
        return value
    for match in _VARIABLE.finditer(value):
        if match.group(1) not in environment:
            return Unset(match.group(1), document, path)
    return _VARIABLE.sub(lambda match: environment[match.group(1)], value)
