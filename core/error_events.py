"""Turns errors and findings into events for a client."""

from __future__ import annotations

from typing import Any

from groundhook.core.errors import HostError, Place
from groundhook.core.problems import Problem, problems_of
from groundhook.core.types.events import Failed, Warned


def error_events(error: HostError) -> list[Failed]:
    """Return an `error` event for each error that `error` carries."""
    return [Failed(**_event_fields(problem)) for problem in problems_of(error)]


def warning_event(finding: HostError | Problem) -> Warned:
    """Return the `warning` event of a finding after which the turn goes on."""
    return Warned(**_event_fields(finding))


def _event_fields(finding: HostError | Problem) -> dict[str, Any]:
    place = finding.place or Place("")
    return {
        "code": finding.code,
        "message": finding.message,
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "hint": finding.hint,
    }
