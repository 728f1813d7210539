"""JSON lines hold whatever hooks and databases put into values, one value to a line."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.errors import ConfigError, Place
from host.output.findings import failures
from host.output.lines import line
from host.types.events import EVENT, StreamEnd, Text
from host.types.search import Item

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.text())
def test_an_event_comes_back_from_its_line(text: str) -> None:
    assert EVENT.validate_json(line(Text(delta=text))) == Text(delta=text)


@given(JSON)
def test_data_of_any_shape_is_one_line(data: Any) -> None:
    written = line(StreamEnd(data=data))
    assert len(written.splitlines()) == 1
    assert json.loads(written)["data"] == data


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (float("nan"), None),
        (float("inf"), None),
        ("\ud83d", "\ufffd"),
        ({"half \udc00": ["\ud83d"]}, {"half \ufffd": ["\ufffd"]}),
        (b"\xff", "/w=="),
        (Decimal("1.50"), "1.50"),
        (datetime(2026, 3, 1, tzinfo=UTC), "2026-03-01T00:00:00Z"),
        ({1, 2}, [1, 2]),
        (LookupError("no such row"), "no such row"),
    ],
)
def test_what_json_cannot_say_is_replaced(value: Any, written: Any) -> None:
    assert json.loads(line(StreamEnd(data=value)))["data"] == written


def test_the_key_of_an_item_does_not_go_over_the_wire() -> None:
    assert "secret-key" not in line(Item(type="web", key="secret-key", data={"half": "\ud83d"}))


def test_an_error_keeps_its_place_and_hint() -> None:
    (event,) = failures(ConfigError("no such key", place=Place("a.yao", 3, 4), hint="did you mean 'b'?"))
    assert (event.code, event.file, event.line, event.column, event.hint) == ("config", "a.yao", 3, 4, "did you mean 'b'?")
