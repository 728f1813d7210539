"""Errors and findings as the events that tell a client of them."""

from __future__ import annotations

from typing import Any

from groundhook.host.core.errors import HostError, Place
from groundhook.host.core.problems import Problem, problems_of
from groundhook.host.core.types.events import Failed, Warned


def failures(error: HostError) -> list[Failed]:
    """What ended something: one event for each error that it carries."""
    return [Failed(**_said(problem)) for problem in problems_of(error)]


def warning(finding: HostError | Problem) -> Warned:
    """What something goes on in spite of."""
    return Warned(**_said(finding))


def _said(finding: HostError | Problem) -> dict[str, Any]:
    place = finding.place or Place("")
    return {
        "code": finding.code,
        "message": finding.message,
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "hint": finding.hint,
    }
