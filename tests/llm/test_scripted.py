"""The scripted connector answers in order, fails as scripted, and is loud about what was not
expected."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.errors import ConfigError, ModelError, ModelStalled, ModelTruncated
from groundhook.core.ports import Connector, Delta, Finished, ModelCall, TextDelta, ToolDelta
from groundhook.core.types.connector_spec import (
    ConnectorOptions,
    ConnectorSpec,
)
from groundhook.core.types.search import Item
from groundhook.core.types.turn import Message
from groundhook.host.llm.scripted import ScriptedConnector

CALL = ModelCall(
    messages=[Message(role="user", content="What is the capital of Germany?")],
    references=[
        Item(type="web", title="Berlin", citation_id="#ref:a1b2"),
        Item(type="web", title="Bonn", citation_id="#ref:c3d4"),
    ],
)


def scripted(*script: Any) -> Connector:
    return ScriptedConnector(
        ConnectorSpec(id="test", type="scripted", options=ConnectorOptions(script=script))
    )


async def ask(connector: Connector, got: list[Delta] | None = None) -> list[Delta]:
    got = [] if got is None else got
    async with connector.stream(CALL) as deltas:
        async for delta in deltas:
            got.append(delta)
    return got


def text(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


async def test_replies_come_in_order_in_small_pieces_and_one_too_many_is_an_error() -> None:
    connector = scripted("Berlin, of course.", {"text": "And Bonn before."})
    first = await ask(connector)
    assert text(first) == "Berlin, of course."
    assert len(first) > 3
    assert first[-1] == Finished("stop", "scripted")
    assert text(await ask(connector)) == "And Bonn before."
    with pytest.raises(ModelError, match="got call 3, but its script has 2 replies"):
        await ask(connector)
    assert isinstance(connector, ScriptedConnector)
    assert len(connector.calls) == 3


async def test_a_reply_can_cite_the_references_of_the_call() -> None:
    assert (
        text(await ask(scripted("Berlin {ref:0}, not Bonn {ref:1}.")))
        == "Berlin #ref:a1b2, not Bonn #ref:c3d4."
    )
    with pytest.raises(ModelError, match=r"references: \{ref:0\} to \{ref:1\}"):
        await ask(scripted("{ref:2}"))


async def test_tool_calls_come_as_a_model_sends_them() -> None:
    deltas = await ask(
        scripted(
            {
                "tool_calls": [
                    {"name": "search", "arguments": {"query": "capital of Germany"}},
                    {"name": "now"},
                ]
            }
        )
    )
    calls = [delta for delta in deltas if isinstance(delta, ToolDelta)]
    assert [(call.index, call.name) for call in calls if call.name] == [(0, "search"), (1, "now")]
    assert (
        "".join(call.arguments for call in calls if call.index == 0)
        == '{"query": "capital of Germany"}'
    )
    assert len({call.id for call in calls if call.id}) == 2
    assert deltas[-1] == Finished("tool_calls", "scripted")


async def test_failures_come_after_what_had_arrived() -> None:
    got: list[Delta] = []
    with pytest.raises(ModelStalled, match="too quiet"):
        await ask(
            scripted(
                {
                    "text": "Berlin is",
                    "error": {"code": "stalled", "message": "too quiet", "after": 6},
                }
            ),
            got,
        )
    assert text(got) == "Berlin"
    got.clear()
    with pytest.raises(ModelTruncated):
        await ask(scripted({"text": "Berlin is", "cut": True}), got)
    assert text(got) == "Berlin is"


async def test_an_unexpected_call_raises_an_error_that_shows_its_messages() -> None:
    assert text(await ask(scripted({"expect": "Germany", "text": "yes"}))) == "yes"
    with pytest.raises(ModelError, match="France") as caught:
        await ask(scripted({"expect": ["Germany", "France"], "text": "yes"}))
    assert "capital of Germany" in caught.value.hint


async def test_a_reply_may_serve_several_calls_or_all_that_follow() -> None:
    connector = scripted({"text": "twice", "times": 2}, {"text": "for ever", "times": 0})
    assert [text(await ask(connector)) for _ in range(5)] == [
        "twice",
        "twice",
        "for ever",
        "for ever",
        "for ever",
    ]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"txet": "hello"}, r"options\.script\[1\]\.txet"),
        ({"error": {"code": "on fire"}}, r"options\.script\[1\]\.error\.code"),
        (7, r"options\.script\[1\]"),
    ],
)
def test_a_wrong_entry_is_named_when_the_connector_is_built(entry: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        scripted("fine", entry)


@given(st.text())
async def test_the_pieces_of_any_text_make_that_text(message: str) -> None:
    message = message.replace("{", "(")
    assert text(await ask(scripted(message))) == message
