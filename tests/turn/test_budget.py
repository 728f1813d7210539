"""What a prompt keeps when the context of the model is small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.types.events import Event
from groundhook.core.types.search import Item
from groundhook.core.types.turn import Message
from groundhook.host.testing.canned import canned_item
from groundhook.host.turn.prompt.budget import fit, room
from groundhook.host.turn.prompt.source_block import Prompt
from tests.conftest import MakeApp
from tests.parts.turns import ASSISTANT, app_with, kb, of, run, scripted

LONG = "word " * 1000
CONNECTOR = {"type": "scripted", "options": {"context_tokens": 2000, "script": []}}
OVERFLOW = {"error": {"code": "model_context_exceeded"}}


def build(items: Any, conversation: Any) -> Prompt:
    text = "\n".join(item.content for item in items)
    system = Message(role="system", content="Be brief.")
    messages = [system, *conversation[:-1], Message(role="user", content=text)]
    return Prompt(messages=[*messages, conversation[-1]], sources=text, conversation=conversation)


lengths = st.integers(0, 4000)


@given(st.lists(lengths, max_size=8), st.lists(lengths, max_size=8), st.integers(0, 6000))
def test_a_prompt_fits_or_has_the_prompts_and_the_question_alone(
    sources: list[int], history: list[int], most: int
) -> None:
    items = [canned_item(f"k{n}", content="x " * size) for n, size in enumerate(sources)]
    roles = ("user", "assistant")
    conversation = [
        Message(role=roles[n % 2], content="y " * size) for n, size in enumerate(history)
    ]
    conversation.append(Message(role="user", content="The question?"))
    found = fit(build, items, conversation, most)
    kept = [message for message in found.prompt.messages if message.content]
    assert kept[0].content == "Be brief."
    assert kept[-1].content == "The question?"
    if found.tokens > most:
        assert found.sources_omitted == len(items)
        assert [message.role for message in found.prompt.messages].count("assistant") == 0
    if found.sources_omitted or found.passage_characters:
        # nothing is taken from the sources while there is history
        assert found.messages_omitted == len(conversation) - 1
    history_kept = found.prompt.messages[1:-2]
    assert not history_kept or history_kept[0].role == "user"


def test_the_answer_and_the_tools_take_their_part_of_the_context() -> None:
    assert room(8000, 500, ()) == 7500
    assert room(8000, None, ()) == 8000 - 1024
    assert room(2000, None, ()) == 1500
    assert room(8000, 500, [{"name": "find"}]) < 7500


def warnings(events: list[Event]) -> list[str]:
    return [event.message for event in of(events, "warning")]


def long_items() -> list[Item]:
    return [canned_item(f"k{n}", content=f"{n} {LONG}", score=1 - n / 10) for n in range(4)]


MESSAGES = [
    {"role": "user", "content": "An earlier question"},
    {"role": "assistant", "content": 2 * LONG},
    {"role": "user", "content": "And where is it?"},
]
SUMMARISED = ASSISTANT.replace("{", '{"history": {"summarise": true}, ', 1)


def small(make_app: MakeApp, package: str = ASSISTANT) -> Path:
    """An app whose model has a window of 2,000 tokens."""
    app = app_with(make_app, package)
    (app / "connectors").mkdir()
    (app / "connectors/script.conn.yao").write_text(json.dumps(CONNECTOR), encoding="utf-8")
    return app


async def test_a_turn_cuts_its_prompt_to_the_context_of_the_connector(make_app: MakeApp) -> None:
    model = scripted("Fine.")
    app, messages = small(make_app), MESSAGES
    sources = {"kb": kb(*long_items()), "web": kb()}
    events = await run(app, messages, connector=model, sources=sources)  # type: ignore[arg-type]
    sent = "\n".join(message.text for message in model.calls[0].messages)
    assert "And where is it?" in sent
    assert "An earlier question" not in sent
    assert len(sent) < 8000
    (warning,) = warnings(events)
    assert "2 messages of the history omitted" in warning
    nodes = [event.node for event in of(events, "trace") if event.node.type == "context"]
    assert nodes[-1].data["messages_omitted"] == 2


async def test_what_is_omitted_is_summarised_where_that_is_wanted(make_app: MakeApp) -> None:
    model = scripted({"text": "They spoke of cats.", "expect": "An earlier question"}, "Fine.")
    events = await run(small(make_app, SUMMARISED), MESSAGES, connector=model)
    sent = [message for message in model.calls[1].messages if message.role == "user"]
    assert "They spoke of cats." in sent[0].text
    assert "And where is it?" in sent[-1].text
    assert "An earlier question" not in "".join(message.text for message in sent)
    assert of(events, "stream_end")[0].content == "Fine."
    nodes = [event.node for event in of(events, "trace") if event.node.type == "summary"]
    assert nodes[-1].status == "completed"


async def test_a_turn_goes_on_where_the_model_does_not_summarise(make_app: MakeApp) -> None:
    model = scripted({"error": {"code": "refused"}}, "Fine.")
    events = await run(small(make_app, SUMMARISED), MESSAGES, connector=model)
    assert of(events, "stream_end")[0].content == "Fine."
    assert "model_refused" in [event.code for event in of(events, "warning")]
    assert not of(events, "error")


async def test_an_overflow_that_the_endpoint_reports_is_tried_once_more_with_less(
    make_app: MakeApp,
) -> None:
    model = scripted(OVERFLOW, "Fine.")
    sources = {"kb": kb(*long_items()), "web": kb()}
    events = await run(app_with(make_app), connector=model, sources=sources)  # type: ignore[arg-type]
    first, second = (sum(len(m.text) for m in call.messages) for call in model.calls)
    assert second < first
    assert of(events, "stream_end")[0].content == "Fine."
    assert not of(events, "error")
    assert len(warnings(events)) == 1


async def test_a_second_overflow_is_the_error_of_the_turn(make_app: MakeApp) -> None:
    model = scripted(OVERFLOW, OVERFLOW, "Fine.")
    sources = {"kb": kb(*long_items()), "web": kb()}
    events = await run(app_with(make_app), connector=model, sources=sources)  # type: ignore[arg-type]
    assert [event.code for event in of(events, "error")] == ["model_context_exceeded"]
    assert len(model.calls) == 2
