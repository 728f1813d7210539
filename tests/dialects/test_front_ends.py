"""The streams of front ends hold what their SDKs check: each part is begun before it grows and
ended once, also where the log breaks off."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.types.events import (
    ApprovalRequired,
    CitationSeen,
    Event,
    Failed,
    HookMessage,
    Reasoning,
    SearchComplete,
    SearchFound,
    SearchStart,
    StreamEnd,
    StreamStart,
    Text,
    ToolProgress,
    ToolResult,
    ToolStart,
)
from groundhook.host.output.dialects.ag_ui import AGUI
from groundhook.host.output.dialects.audience import Audience
from groundhook.host.output.dialects.fold import run
from groundhook.host.output.dialects.openai_chat import DONE, OpenAIChat, completion
from groundhook.host.output.dialects.ui_stream import UIStream
from tests.dialects.logs import ITEMS, LOGS

PUBLIC = "https://tea.example"
READER = Audience(public_url=PUBLIC)
# The types that the SDK knows; it refuses others, except those that begin with `data-`.
TYPES = {
    *("start", "start-step", "finish-step", "finish", "error", "abort"),
    *("text-start", "text-delta", "text-end"),
    *("reasoning-start", "reasoning-delta", "reasoning-end"),
    *("source-url", "source-document"),
    *("tool-input-available", "tool-output-available", "tool-output-error"),
    "tool-approval-request",
}


def chat(**more: Any) -> OpenAIChat:
    return OpenAIChat(id="x", model="tea", created=1, public_url=PUBLIC, usage=True, **more)


def chunks(events: Sequence[Event], **more: Any) -> list[dict[str, Any]]:
    shown = [seen for event in events if (seen := READER.of(event)) is not None]
    *pieces, last = run(UIStream(chat=chat(**more)), shown)
    assert last.data == DONE
    return [piece.data for piece in pieces]


def run_of(events: Sequence[Event], **more: Any) -> list[dict[str, Any]]:
    shown = [seen for event in events if (seen := READER.of(event)) is not None]
    fold = AGUI(ui=UIStream(chat=chat(**more)), thread_id="c", run_id="r")
    return [piece.data for piece in run(fold, shown)]


def of_type(sent: Sequence[dict[str, Any]], type: str) -> list[dict[str, Any]]:
    return [each for each in sent if each["type"] == type]


@given(log=LOGS, at=st.integers(0, 40))
def test_a_ui_stream_is_one_that_the_sdk_accepts_wherever_the_log_breaks_off(
    log: list[Event], at: int
) -> None:
    sent = chunks(log[:at])
    open_parts: set[str] = set()
    calls: dict[str, bool] = {}
    sources: list[str] = []
    for chunk in sent:
        kind = chunk["type"]
        assert kind in TYPES or kind.startswith("data-")
        assert None not in chunk.values()
        match kind.split("-"):
            case ["text" | "reasoning", "start"]:
                assert chunk["id"] not in open_parts
                open_parts.add(chunk["id"])
            case ["text" | "reasoning", "delta"]:
                assert chunk["id"] in open_parts
                assert chunk["delta"]
            case ["text" | "reasoning", "end"]:
                open_parts.remove(chunk["id"])
            case ["tool", "input", _]:
                assert chunk["toolCallId"] not in calls
                calls[chunk["toolCallId"]] = False
            case ["tool", "output", _]:
                assert calls[chunk["toolCallId"]] is False
                calls[chunk["toolCallId"]] = True
            case ["tool", "approval", _]:  # no result follows
                calls[chunk["toolCallId"]] = True
            case ["source", _]:
                sources.append(chunk["sourceId"])
    assert open_parts == set()
    assert all(calls.values())
    assert len(set(sources)) == len(sources)
    failed = any(isinstance(event, Failed) for event in log[:at])
    whole = any(isinstance(event, StreamEnd) for event in log[:at])
    last = "finish" if whole and not failed else "error"
    assert sent[-1]["type"] == last
    assert sum(chunk["type"] in ("finish", "error", "abort") for chunk in sent) == 1


@given(log=LOGS)
def test_the_text_of_a_ui_stream_is_that_of_a_completion_and_its_citations_cut_out_numbers(
    log: list[Event],
) -> None:
    sent = chunks(log)
    text = "".join(chunk["delta"] for chunk in of_type(sent, "text-delta"))
    shown = [seen for event in log if (seen := READER.of(event)) is not None]
    whole = completion(piece for piece in run(chat(), shown) if "error" not in piece.data)
    message = whole["choices"][0]["message"]
    assert text == (message["content"] or "")
    sources = {
        chunk["sourceId"]: chunk
        for chunk in sent
        if chunk["type"] in ("source-url", "source-document")
    }
    citations = [each for part in of_type(sent, "data-citations") for each in part["data"]]
    assert len(citations) == len(message.get("annotations", ()))
    for citation in citations:
        assert text[citation["start"] : citation["end"]] == f"[{citation['sourceId']}]"
        assert citation["sourceId"] in sources


@given(log=LOGS, at=st.integers(0, 40))
def test_a_run_of_ag_ui_is_one_that_its_client_accepts_wherever_the_log_breaks_off(
    log: list[Event], at: int
) -> None:
    sent = run_of(log[:at])
    assert sent[0]["type"] in ("RUN_STARTED", "RUN_ERROR")
    ends = [each["type"] for each in sent if each["type"] in ("RUN_FINISHED", "RUN_ERROR")]
    assert [sent[-1]["type"]] == ends
    open_messages: set[str] = set()
    calls: dict[str, str] = {}
    for event in sent:
        match event["type"]:
            case "TEXT_MESSAGE_START":
                open_messages.add(event["messageId"])
            case "TEXT_MESSAGE_CONTENT":
                assert event["messageId"] in open_messages
                assert event["delta"]
            case "TEXT_MESSAGE_END":
                open_messages.remove(event["messageId"])
            case "TOOL_CALL_START":
                assert event["toolCallId"] not in calls
                calls[event["toolCallId"]] = "open"
            case "TOOL_CALL_END":
                assert calls[event["toolCallId"]] == "open"
                calls[event["toolCallId"]] = "called"
            case "TOOL_CALL_RESULT":
                assert calls[event["toolCallId"]] == "called"
                calls[event["toolCallId"]] = "done"
    assert open_messages == set()
    waiting = {event.call_id for event in log if isinstance(event, ApprovalRequired)}
    assert {state for call, state in calls.items() if call not in waiting} <= {"done"}


EVENTS: list[Event] = [
    StreamStart(assistant_id="tea", message_id="m_1", chat_id="c_1"),
    SearchStart(search_id="s1", source="auto", search_type="kb", query="tea"),
    SearchFound(search_id="s1", item=ITEMS[0]),
    SearchComplete(search_id="s1", total=223, duration_ms=1),
    Reasoning(delta="Hm"),
    Reasoning(delta="."),
    ToolStart(call_id="a", name="brew", arguments={"n": 1}),
    ToolProgress(call_id="a", name="brew", done=1, total=2, message="warm"),
    ToolResult(call_id="a", name="brew", result={"ok": True}),
    ToolStart(call_id="a", name="brew", arguments={"n": 2}),
    HookMessage(action="send", message_id="h1", message={"type": "card", "n": [1]}, streaming=True),
    HookMessage(action="append", message_id="h1", message=[2], path="n"),
    Text(delta="Two minutes "),
    CitationSeen(marker="#ref:k3vd", verdict="ok", item=ITEMS[0]),
    Text(delta="#ref:k3vd"),
    StreamEnd(content="…", finish_reason="length", data={"x": None}, grounded=True),
]


def test_each_event_is_a_part_of_the_message() -> None:
    sent = chunks([event.model_copy().stamped("t_1", 1) for event in EVENTS])
    kinds = [chunk["type"] for chunk in sent]
    assert kinds == [
        *("start", "start-step", "data-search", "data-search"),
        *("reasoning-start", "reasoning-delta", "reasoning-delta"),
        *("tool-input-available", "data-progress", "tool-output-available"),
        *("tool-input-available", "data-message", "data-message"),
        *("reasoning-end", "text-start", "text-delta", "source-url", "text-delta", "text-end"),
        *("data-citations", "tool-output-error", "finish-step", "finish"),
    ]
    by_type = {chunk["type"]: chunk for chunk in sent}
    assert by_type["start"]["messageId"] == "m_1"
    assert by_type["data-search"]["data"]["state"] == "done"
    assert by_type["data-search"]["data"]["found"] == 1  # what was found, not all matches
    assert by_type["data-message"]["data"]["message"]["n"] == [1, 2]
    assert [chunk["toolCallId"] for chunk in of_type(sent, "tool-input-available")] == [
        "a",
        "a (2)",
    ]
    source = by_type["source-url"]
    assert (source["sourceId"], source["title"]) == ("1", "Tea")
    assert source["url"] == f"{PUBLIC}/api/sources/kb/notes/tea/tea.md?start=0&end=12"
    assert source["providerMetadata"]["groundhook"]["passage"] == "Two minutes."
    [cited] = by_type["data-citations"]["data"]
    assert cited == {
        "sourceId": "1",
        "marker": "#ref:k3vd",
        "verdict": "ok",
        "start": 12,
        "end": 15,
    }
    finish = by_type["finish"]
    assert finish["finishReason"] == "length"
    assert finish["messageMetadata"]["grounded"] is True
    assert finish["messageMetadata"]["data"] == {"x": None}


def test_with_markers_each_marker_is_a_source_of_its_own() -> None:
    log: list[Event] = [StreamStart(assistant_id="tea")]
    for item in ITEMS[2:4]:  # two markers of one page
        log += [
            CitationSeen(marker=item.citation_id, verdict="ok", item=item),
            Text(delta=item.citation_id),
        ]
    sent = chunks([*log, StreamEnd()], citations="markers")
    assert [chunk["sourceId"] for chunk in of_type(sent, "source-url")] == [
        "#ref:w1ab",
        "#ref:w1ac",
    ]
    assert [chunk["sourceId"] for chunk in of_type(chunks([*log, StreamEnd()]), "source-url")] == [
        "1"
    ]


@pytest.mark.parametrize("code", ["stopped", "hook"])
def test_a_turn_that_was_stopped_is_aborted_and_one_that_failed_is_an_error(code: str) -> None:
    log: list[Event] = [
        StreamStart(assistant_id="tea"),
        Text(delta="Two"),
        Failed(code=code, message="why"),
        StreamEnd(content="Two"),
    ]
    ui, run = chunks(log)[-1], run_of(log)[-1]
    if code == "stopped":
        assert ui["type"] == "abort"
        assert run["outcome"] == {"type": "cancelled"}
    else:
        assert ui["type"] == "error"
        assert (run["type"], run["code"]) == ("RUN_ERROR", code)


def test_calls_of_a_pages_own_tools_end_the_run_without_a_result() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "pick", "arguments": '{"a": 1}'}}
    log: list[Event] = [StreamStart(assistant_id="tea"), StreamEnd(tool_calls=(call,))]
    sent = run_of(log)
    assert [event["type"] for event in sent] == [
        *("RUN_STARTED", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "RUN_FINISHED"),
    ]
    assert json.loads(sent[2]["delta"]) == {"a": 1}
    assert sent[-1]["result"]["finish_reason"] == "tool-calls"
    [shown] = of_type(chunks(log), "tool-input-available")
    assert shown["input"] == {"a": 1}


def test_a_run_of_ag_ui_carries_sources_and_citations_beside_the_text() -> None:
    sent = run_of([event.model_copy().stamped("t_1", 1) for event in EVENTS])
    custom = [event["name"] for event in of_type(sent, "CUSTOM")]
    assert custom == [
        *("groundhook.search", "groundhook.search", "groundhook.progress"),
        *("groundhook.message", "groundhook.message", "groundhook.source"),
        "groundhook.citations",
    ]
    results = [event["content"] for event in of_type(sent, "TOOL_CALL_RESULT")]
    assert json.loads(results[0]) == {"ok": True}
    thoughts = {event["messageId"] for event in sent if event["type"].startswith("REASONING")}
    assert len(thoughts) == 1
    [finished] = of_type(sent, "RUN_FINISHED")
    assert finished["result"]["grounded"] is True
