"""Bodies with too much in them: to refuse one costs little more than to read it."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, get_args, get_origin

import httpx
import pytest
from pydantic import BaseModel, FailFast

from groundhook.core.errors import UsageError
from groundhook.core.json_text import MOST_LISTS, MOST_VALUES, has_more_values
from groundhook.host.server.api.table import ENDPOINTS
from groundhook.host.server.request_body import TurnRequest, parse_json, validate_body
from tests.server.conftest import Served

BODIES = sorted({e.body for e in ENDPOINTS if e.body is not None}, key=lambda model: model.__name__)
PLAIN = {"assistant": "tea", "model": "tea", "query": "?", "type": "kb", "key": "k"}
SIZE = 1_000_000  # bytes of the largest body
WRONG: tuple[Any, ...] = (1, {}, "", None, [], {"role": 5}, {"role": "user", "content": [1, 1]})
# Seconds of computing, on a slow machine beside other tests; all errors of a megabyte take ten.
LONGEST = 2.0


def _shown(value: Any) -> str:
    return json.dumps(value)[:40]


@pytest.mark.parametrize("model", BODIES, ids=lambda model: model.__name__)
def test_every_list_in_a_body_reports_its_first_wrong_entry_alone(model: type[BaseModel]) -> None:
    assert list(_slow_lists(model)) == []


@pytest.mark.parametrize("model", BODIES, ids=lambda model: model.__name__)
def test_a_list_of_wrong_entries_is_refused_at_once_in_every_field_of_a_body(
    model: type[Any],
) -> None:
    for path in _paths(model):
        for wrong in WRONG:
            body = _body(path, [wrong] * (MOST_VALUES // 5))
            began = time.thread_time()
            message = _message(model, body)
            assert time.thread_time() - began < LONGEST, (path, wrong)
            assert len(message) < 500


@pytest.mark.parametrize("wrong", [*WRONG, {str(n): n for n in range(50_000)}], ids=_shown)
def test_a_megabyte_of_wrong_entries_is_refused_at_once(wrong: Any) -> None:
    body = _body(("messages",), [wrong] * (SIZE // (len(json.dumps(wrong)) + 2)))
    began = time.thread_time()
    assert f"at most {MOST_VALUES}" in _message(TurnRequest, body)
    assert time.thread_time() - began < LONGEST


def test_a_body_of_wrong_entries_takes_no_more_memory_than_its_json() -> None:
    body = _body(("messages",), [1] * (SIZE // 3))
    tracemalloc.start()
    try:
        _message(TurnRequest, body)
        assert tracemalloc.get_traced_memory()[1] < 10 * SIZE
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("value", "more"),
    [
        ([1] * MOST_VALUES, False),
        ([1] * (MOST_VALUES + 1), True),
        ([[1] * (MOST_VALUES // 20 - 1)] * 20, False),
        ([[1] * (MOST_VALUES // 20)] * 20, True),
        ({"a": {"b": [{}] * MOST_VALUES}}, True),
        ("text", False),
    ],
    ids=["list", "one more", "lists", "lists themselves", "objects", "no list"],
)
def test_the_values_of_a_body_are_counted_at_every_level(value: Any, more: bool) -> None:
    assert has_more_values(value) is more


def test_a_message_for_mcp_with_too_many_values_is_refused(served: Served) -> None:
    params: dict[str, Any] = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1", "icons": [1] * (MOST_VALUES + 1)},
    }
    with served.client() as client:
        answer = _initialize(client, params)
        assert answer.status_code == 400
        assert f"at most {MOST_VALUES}" in answer.json()["detail"]
        params["clientInfo"]["icons"] = [[]] * (MOST_LISTS + 1)  # not even parsed
        assert _initialize(client, params).json()["code"] == "usage"
        params["clientInfo"]["icons"] = []
        assert _initialize(client, params).status_code == 200


def _initialize(client: httpx.Client, params: dict[str, Any]) -> httpx.Response:
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    accepted = {"accept": "application/json, text/event-stream"}
    return client.post("/mcp", json=message, headers=accepted)


def _body(path: Sequence[str], value: Any) -> bytes:
    for key in reversed(path[1:]):
        value = {key: value}
    return json.dumps({**PLAIN, path[0]: value}).encode()


def _message(model: type[Any], body: bytes) -> str:
    """What the answer to a body says; empty if it is accepted."""
    try:
        validate_body(model, parse_json(body))
    except UsageError as exc:
        return str(exc)
    return ""


def _paths(model: type[BaseModel], before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every field, those of inner objects too."""
    for name, field in model.model_fields.items():
        yield (*before, name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _paths(field.annotation, (*before, name))


def _slow_lists(model: type[BaseModel], seen: frozenset[Any] = frozenset()) -> Iterator[str]:
    """The lists of a model, and of models in it, whose every wrong entry is reported."""
    for name, field in model.model_fields.items():
        if name != "connector":  # at most eight, which its own check ensures first
            for found in _slow(field.annotation, field.metadata, seen | {model}):
                yield f"{model.__name__}.{name}: {found}"


def _slow(kind: Any, metadata: Sequence[Any], seen: frozenset[Any]) -> Iterator[str]:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        yield from _slow(inner[0], inner[1:], seen)
        return
    first_alone = any(isinstance(each, FailFast) for each in metadata)
    if origin in (list, tuple, set, frozenset) and inner[:1] != (Any,) and not first_alone:
        yield str(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in seen:
        yield from _slow_lists(kind, seen)
    for each in inner:
        yield from _slow(each, (), seen)
