"""What a turn searches for when its question is a follow-up, through the public door."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from groundhook import open_host
from groundhook.core.types.events import Event, Trace
from groundhook.host.output.terminal import Terminal, console
from tests.conftest import MakeApp
from tests.loopback.chat import chunk
from tests.loopback.server import Sse, serving
from tests.parts.turns import app_with, kb, of, run, scripted, web

FIRST = {"role": "user", "content": "Which oil does a bicycle chain need?"}
ANSWER = {"role": "assistant", "content": "A thin one."}
MESSAGES = [FIRST, ANSWER, {"role": "user", "content": "And how do I lubricate it?"}]
BUILTIN = "And how do I lubricate it oil bicycle chain need"


def package(by: str, timeout_ms: int = 1500) -> str:
    return json.dumps(
        {
            "name": "A",
            "connector": "script",
            "search": {"kb": True, "rewrite": {"timeout_ms": timeout_ms}},
            "kb": {"collections": ["docs"]},
            "uses": {"rewrite": by},
        }
    )


def queries(events: list[Event]) -> set[str]:
    return {event.query for event in of(events, "search_start")}


def rewriting(events: list[Event]) -> list[dict[str, Any]]:
    nodes = [event.node for event in events if isinstance(event, Trace)]
    return [node.data for node in nodes if node.type == "rewrite" and node.status != "running"]


async def test_every_search_of_a_follow_up_is_for_a_question_that_stands_alone(
    make_app: MakeApp,
) -> None:
    events = await run(app_with(make_app), MESSAGES)
    assert queries(events) == {BUILTIN}
    (data,) = rewriting(events)
    assert data["carried"] == ["oil", "bicycle", "chain", "need"]
    assert (data["question"], data["searched"]) == (MESSAGES[2]["content"], BUILTIN)


async def test_data_parts_of_a_follow_up_are_searched_for_the_same(make_app: MakeApp) -> None:
    source = {"type": "kb_collection", "name": "docs"}
    parts = [
        {"type": "text", "text": MESSAGES[2]["content"]},
        {"type": "data", "data": {"sources": [source]}},
    ]
    events = await run(app_with(make_app), [FIRST, ANSWER, {"role": "user", "content": parts}])
    assert [e.query for e in of(events, "search_start") if e.source == "user"] == [BUILTIN]


async def test_a_hook_reads_the_question_as_it_is_searched(make_app: MakeApp) -> None:
    hook = "function Create(ctx) { ctx.search.KB(ctx.question); return { messages: [] } }"
    app = app_with(make_app, package("builtin"), index_ts=hook)
    events = await run(app, MESSAGES)
    assert [e.query for e in of(events, "search_start") if e.source == "hook"] == [BUILTIN]


async def test_a_kept_conversation_searches_its_follow_ups_the_same(make_app: MakeApp) -> None:
    model = scripted("A thin one.", "With oil.")
    async with (
        open_host(
            app_with(make_app),
            environment={},
            sources={"kb": kb(), "web": web()},
            connectors={"script": model},
        ) as host,
        host.chat("a") as chat,
    ):
        async with chat.send(FIRST["content"]) as events:
            assert queries([event async for event in events]) == {FIRST["content"]}
        async with chat.send(MESSAGES[2]["content"]) as events:
            assert queries([event async for event in events]) == {BUILTIN}
    assert model.calls[1].messages[-1].text.endswith(MESSAGES[2]["content"])


async def test_a_first_question_has_no_step_of_rewriting(make_app: MakeApp) -> None:
    assert rewriting(await run(app_with(make_app), "And how do I lubricate it?")) == []


async def test_rewriting_can_be_switched_off(make_app: MakeApp) -> None:
    events = await run(app_with(make_app, package("disabled")), MESSAGES)
    assert queries(events) == {MESSAGES[2]["content"]}


async def test_a_language_model_rewrites_where_one_is_named(make_app: MakeApp) -> None:
    script = ['{"query": "How do I lubricate a bicycle chain?"}', "Fine."]
    events = await run(app_with(make_app, package("connector:script")), MESSAGES, script=script)
    assert queries(events) == {"How do I lubricate a bicycle chain?"}
    assert of(events, "stream_end")[0].content == "Fine."


@pytest.mark.parametrize("answer", ["I do not know.", '{"query": " "}', {"delay_ms": 5000}])
async def test_where_the_model_fails_the_built_in_rules_replace_it_with_a_warning(
    make_app: MakeApp, answer: Any
) -> None:
    app = app_with(make_app, package("connector:script", timeout_ms=100))
    events = await run(app, MESSAGES, script=[answer, "Fine."])
    assert queries(events) == {BUILTIN}
    assert any("built-in rewriting" in event.message for event in of(events, "warning"))


async def test_the_terminal_shows_what_is_searched_where_it_differs(make_app: MakeApp) -> None:
    out, err = io.StringIO(), io.StringIO()
    terminal = Terminal(console(out), console(err))
    for event in await run(app_with(make_app), MESSAGES):
        terminal.show(event)
    assert out.getvalue().count(f"Searched as: {BUILTIN}") == 1


async def test_a_rewriting_that_is_cut_is_not_called_slow(make_app: MakeApp) -> None:
    with serving() as model:
        cut: list[Any] = [
            chunk({"content": '{"query": "How do I lub'}),
            chunk(finish="length"),
            "[DONE]",
        ]
        model.on("/v1/chat/completions", Sse(cut))
        options = {"model": "m", "host": f"{model.url}/v1", "retries": 0}
        connector = json.dumps({"type": "openai", "options": options})
        app = app_with(make_app, package("connector:gpt", timeout_ms=60_000))
        (app / "connectors").mkdir(exist_ok=True)
        (app / "connectors/gpt.conn.yao").write_text(connector, encoding="utf-8")
        events = await run(app, MESSAGES)
    [warning] = [event for event in of(events, "warning") if "rewriting" in event.message]
    assert "the reply is cut at its token limit" in warning.message
    assert "the step has 300 tokens" in warning.message
    assert queries(events) == {BUILTIN}
