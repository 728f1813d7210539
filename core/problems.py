"""Findings in the files of an app, as values: `groundhook check` lists them; all other callers
raise them as errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from groundhook.core.errors import ConfigError, ConfigErrors, HostError, Place


@dataclass(frozen=True)
class Problem:
    """One finding. An app with warnings alone can run."""

    severity: Literal["error", "warning"]
    message: str
    place: Place | None = None
    hint: str = ""
    code: str = "config"

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{where}{self.severity}: {self.message}{hint}"


def problems_of(error: HostError, severity: Literal["error", "warning"] = "error") -> list[Problem]:
    """Return a finding for each error that `error` carries."""
    errors: Sequence[HostError] = error.errors if isinstance(error, ConfigErrors) else [error]
    return [Problem(severity, each.message, each.place, each.hint, each.code) for each in errors]


def raise_all(errors: Sequence[ConfigError]) -> None:
    """Raise the error, or several as one ConfigErrors; without errors do nothing."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ConfigErrors(errors)


def by_file(found: Iterable[Problem]) -> list[Problem]:
    """Return the problems file by file, in the order in which the files first occur, and those of
    one file by line and column."""
    files: dict[str, list[Problem]] = {}
    for problem in found:
        files.setdefault(problem.place.file if problem.place else "", []).append(problem)
    return [problem for each in files.values() for problem in sorted(each, key=_position)]


def _position(problem: Problem) -> tuple[int, int]:
    return (problem.place.line, problem.place.column) if problem.place else (0, 0)
