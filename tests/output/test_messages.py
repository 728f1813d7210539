"""The current messages: a fold that takes any events and loses no text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from groundhook.core.hook_messages import (
    DEEPEST,
    MessageState,
    added_text,
    fold,
    merge,
    step,
    text_in,
)
from groundhook.core.types.events import HookMessage, MessageAction, Text

KEYS = st.sampled_from(["a", "b", "props", "content", "0"])
PATHS = st.lists(KEYS, max_size=4).map(".".join)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
EVENTS = st.builds(
    HookMessage,
    action=st.sampled_from(get_args(MessageAction)),
    message_id=st.sampled_from(["", "M1", "M2"]),
    block_id=st.sampled_from(["", "B1"]),
    streaming=st.booleans(),
    message=VALUES,
    path=PATHS,
)


def sent(message: Any = None, *, streaming: bool = True, **more: Any) -> HookMessage:
    text = {"type": "text", "props": {"content": ""}} if message is None else message
    return HookMessage(action="send", message_id="M1", message=text, streaming=streaming, **more)


def done(action: MessageAction, message: Any = None, path: str = "props.content") -> HookMessage:
    return HookMessage(action=action, message_id="M1", message=message, path=path)


def message(*events: HookMessage) -> Any:
    (standing,) = fold(events)
    return standing.message


@given(st.lists(EVENTS, max_size=12))
def test_any_events_leave_messages_each_with_an_id_of_its_own(
    events: Sequence[HookMessage],
) -> None:
    left = fold(events)
    assert [standing.id for standing in left] == list(
        dict.fromkeys(event.message_id for event in events if event.action == "send")
    )


@given(st.lists(EVENTS, max_size=8), EVENTS)
def test_one_more_event_changes_no_message_that_it_does_not_name(
    events: Sequence[HookMessage], last: HookMessage
) -> None:
    before = {standing.id: standing for standing in fold(events)}
    after = step(before, last)
    if last.message_id:
        assert all(
            after[id] == standing for id, standing in before.items() if id != last.message_id
        )
    else:
        assert all(after[id].message == standing.message for id, standing in before.items() if id)


@given(st.lists(st.text()))
def test_text_is_the_same_however_it_was_cut_in_pieces(pieces: Sequence[str]) -> None:
    whole = message(sent(), done("append", "".join(pieces)))
    assert message(sent(), *(done("append", piece) for piece in pieces)) == (
        whole if pieces else sent().message
    )


@given(VALUES, st.lists(KEYS.filter(lambda key: key != "0"), min_size=1, max_size=4).map(".".join))
def test_a_value_set_at_a_path_is_found_there(value: Any, path: str) -> None:
    found = message(sent({"type": "x"}), done("set", value, path))
    for key in path.split("."):
        found = found[key]
    assert found == value


OBJECTS = st.dictionaries(KEYS, VALUES, max_size=3)


@given(OBJECTS, OBJECTS)
def test_merging_the_same_twice_is_merging_it_once_and_keeps_the_other_keys(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    once = merge(old, new)
    assert merge(once, new) == once
    assert set(once) == set(old) | set(new)
    assert all(once[key] == old[key] for key in old if key not in new)


@given(st.lists(EVENTS, max_size=6), VALUES)
def test_a_replaced_message_is_what_replaced_it(events: Sequence[HookMessage], value: Any) -> None:
    assert (
        message(
            sent(),
            *(e.model_copy(update={"message_id": "M1"}) for e in events),
            done("replace", value),
        )
        == value
    )


def test_lists_grow_and_their_entries_are_reached_by_position() -> None:
    events = [
        sent({"type": "table", "props": {"rows": [{"n": 1}]}}),
        done("append", {"n": 2}, "props.rows"),
        done("append", [{"n": 3}, {"n": 4}], "props.rows"),
        done("set", 20, "props.rows.1.n"),
        done("merge", {"m": 1}, "props.rows.0"),
        done("set", {"n": 9}, "props.rows.99"),
        done("set", 1, "props.rows.first"),
    ]
    assert message(*events)["props"]["rows"] == [
        {"n": 1, "m": 1},
        {"n": 20},
        {"n": 3},
        {"n": 4},
        {"n": 9},
    ]


@pytest.mark.parametrize("digits", ["9" * 5000, "٩" * 5000])
def test_a_position_of_thousands_of_digits_is_behind_the_end_of_a_list(digits: str) -> None:
    rows = sent({"rows": [1]})
    assert message(rows, done("set", 2, f"rows.{digits}"))["rows"] == [1, 2]


@pytest.mark.parametrize("removed", ["", None, []])
def test_a_text_after_one_that_was_removed_is_read_alone(removed: Any) -> None:
    first, none, last = (MessageState("M1", each) for each in ("tea", removed, "coffee"))
    assert added_text(first, none) == ("", False)
    assert added_text(none, last) == ("coffee", True)


def test_a_message_is_ended_by_its_end_its_block_s_end_or_at_once() -> None:
    def ended(*events: HookMessage) -> bool:
        return fold(events)[0].ended

    assert not ended(sent())
    assert ended(sent(streaming=False))
    assert ended(sent(), done("end"))
    assert ended(sent(block_id="B1"), HookMessage(action="end", message_id="", block_id="B1"))
    assert not ended(sent(block_id="B1"), HookMessage(action="end", message_id="", block_id="B2"))


def test_invalid_messages_and_unknown_ids_change_nothing() -> None:
    assert fold([Text(delta="x"), done("append", "x"), done("replace", {}), done("end")]) == []
    assert message(sent(), done("set", 1, ".".join("a" * (DEEPEST + 1)))) == sent().message


@given(
    st.lists(EVENTS.map(lambda event: event.model_copy(update={"message_id": "M1"})), max_size=8)
)
@example([done("replace", each) for each in ("tea", "", "coffee")])
def test_a_reader_who_follows_the_changes_has_read_the_final_words(
    events: Sequence[HookMessage],
) -> None:
    read = ""
    standing: MessageState | None = None
    for event in [sent(), *events]:
        after = step({standing.id: standing} if standing else {}, event)["M1"]
        if event.action == "send":
            standing = None  # the same id again: another message
        text, anew = added_text(standing, after)
        read = text if anew else read + text
        standing = after
    assert standing is not None
    shown = text_in(standing.message)
    assert read == shown or not shown
