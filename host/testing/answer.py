"""Makes the value that `turn()` returns in a test: the events of a turn, without values that differ
from run to run. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from groundhook.core.ports import ModelCall
from groundhook.core.types.events import (
    Event,
    Failed,
    HookMessage,
    SearchComplete,
    SearchFound,
    SearchStart,
    StreamEnd,
    Warned,
)
from groundhook.core.types.search import SearchRequest
from groundhook.host.testing.taped_models import model_call

MEASURED = frozenset({"turn_id", "at_ms", "duration_ms", "timings"})  # differ in each run
_FINDING = ("message", "code", "file", "line", "column", "hint")


@dataclass
class TurnRequests:
    """The requests of a turn: searches as the sources received them, and model calls with their
    connector."""

    searches: list[SearchRequest] = field(default_factory=list)
    models: list[tuple[str, ModelCall]] = field(default_factory=list)


def answer_of(events: Sequence[Event], requests: TurnRequests) -> dict[str, Any]:
    """Return {content, citations, searches, messages, certainty, data, metadata, model_calls,
    warnings, error, events}."""
    end = next((event for event in events if isinstance(event, StreamEnd)), StreamEnd())
    error = next((event for event in events if isinstance(event, Failed)), None)
    return {
        "content": end.content,
        "citations": [_make_plain(citation) for citation in end.citations],
        "searches": _searches(events, requests.searches),
        "messages": [
            _make_plain(event, "type") for event in events if isinstance(event, HookMessage)
        ],
        "certainty": end.certainty,
        "data": end.data,
        "metadata": end.metadata,
        "model_calls": [model_call(connector, call) for connector, call in requests.models],
        "warnings": [_finding(event) for event in events if isinstance(event, Warned)],
        "error": None if error is None else _finding(error),
        "events": [_make_plain(event) for event in events],
    }


def _searches(events: Sequence[Event], received: Sequence[SearchRequest]) -> list[dict[str, Any]]:
    """Return every search in the order of beginning: its origin, the request that the source
    received, the items found."""
    requests = list(received)
    found: dict[str, dict[str, Any]] = {}
    for event in events:
        match event:
            case SearchStart():
                request = next(
                    (
                        each
                        for each in requests
                        if (each.type, each.query) == (event.search_type, event.query)
                    ),
                    None,
                )
                if request is not None:
                    requests.remove(request)
                fields = (
                    {} if request is None else request.model_dump(mode="json", exclude_none=True)
                )
                about = {"type": event.search_type, "query": event.query, "source": event.source}
                found[event.search_id] = {**fields, **about, "items": [], "total": 0, "error": None}
            case SearchFound():
                found[event.search_id]["items"].append(_make_plain(event.item))
            case SearchComplete():
                found[event.search_id].update(
                    total=event.total, error=event.error, **event.account.model_dump(mode="json")
                )
            case _:
                pass
    return list(found.values())


def _finding(event: Failed | Warned) -> dict[str, Any]:
    return {key: getattr(event, key) for key in _FINDING}


def _make_plain(value: Any, *without: str) -> dict[str, Any]:
    """Return a value as JSON, without measured values."""
    raw = _drop_measured(value.model_dump(mode="json", exclude=set(without)))
    if raw.get("type") == "trace":
        node = _drop_measured(raw["node"])
        raw["node"] = {**node, "data": _drop_measured(node["data"])}
    return raw


def _drop_measured(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if key not in MEASURED}
