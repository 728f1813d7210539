"""JSON lines hold whatever hooks and databases put into values, one value to a line."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.error_events import error_events
from groundhook.core.errors import ConfigError, Place
from groundhook.core.json_lines import line
from groundhook.core.types.events import EVENT, SearchFound, StreamEnd, Text, Trace, TraceNode
from groundhook.core.types.search import Item

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
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
        (LookupError("half \ud83d"), "half \ufffd"),
        ({b"\xff": "\ud83d"}, {"/w==": "\ufffd"}),
    ],
)
def test_values_without_json_form_are_replaced(value: Any, written: Any) -> None:
    assert json.loads(line(StreamEnd(data=value)))["data"] == written


def nested(levels: int, *, mapping: bool) -> Any:
    value: Any = "deep"
    for _ in range(levels):
        value = {"a": value} if mapping else [value]
    return value


def depth(value: Any) -> int:
    levels = 0
    while isinstance(value, (dict, list)):
        value, levels = next(iter(value.values() if isinstance(value, dict) else value)), levels + 1
    assert value in ("deep", "…")
    return levels


@pytest.mark.parametrize("levels", [100, 240, 260, 900, 10_000])
@pytest.mark.parametrize("mapping", [True, False])
def test_a_value_nested_too_deeply_for_readers_is_cut(levels: int, mapping: bool) -> None:
    data = nested(levels, mapping=mapping)
    for value in (
        StreamEnd(data=data),
        {"data": data},
        Trace(node=TraceNode(id="1", type="t", data={"x": data})),
    ):
        written = json.loads(line(value))
        assert written.get("type") in ("stream_end", "trace", None)
        shown = written["data"] if "data" in written else written["node"]["data"]["x"]
        assert depth(shown) == levels if levels <= 240 else 150 < depth(shown) <= 200
    assert json.loads(line(StreamEnd(data=[data, "\ud83d", 1])))["data"][1:] == (["\ufffd", 1])


def test_a_value_that_contains_itself_is_cut_where_it_begins_again() -> None:
    circle: dict[str, Any] = {"n": 1}
    circle["self"] = [circle, circle]
    assert json.loads(line(StreamEnd(data=circle)))["data"] == {"n": 1, "self": ["…", "…"]}


def test_an_event_with_odd_content_keeps_everything_else() -> None:
    item = Item(
        type="db",
        title="t",
        record_id=7,
        data={"half": "\ud83d", "at": datetime(2026, 3, 1, tzinfo=UTC)},
        key="k",
    )
    event = SearchFound(search_id="s1", item=item)
    plain = event.model_copy(
        update={
            "item": item.model_copy(
                update={"data": {"half": "\ufffd", "at": "2026-03-01T00:00:00Z"}}
            )
        }
    )
    assert json.loads(line(event)) == plain.model_dump(mode="json")


def test_the_key_of_an_item_does_not_go_over_the_wire() -> None:
    assert "secret-key" not in line(Item(type="web", key="secret-key", data={"half": "\ud83d"}))


def test_an_error_keeps_its_place_and_hint() -> None:
    (event,) = error_events(
        ConfigError("no such key", place=Place("a.yao", 3, 4), hint="did you mean 'b'?")
    )
    assert (event.code, event.file, event.line, event.column, event.hint) == (
        "config",
        "a.yao",
        3,
        4,
        "did you mean 'b'?",
    )
