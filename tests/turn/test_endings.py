"""Answers of models that end otherwise than with their last word: the reader is told, and the trace
has a warning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from groundhook.host.turn.endings import LOOKED_AT, repeated
from tests.conftest import MakeApp
from tests.loopback.chat import answer, chunk
from tests.loopback.server import Loopback, Sse, serving
from tests.parts.turns import end, of, run

PATH = "/v1/chat/completions"


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving() as server:
        yield server


def app_of(make_app: MakeApp, server: Loopback, hook: str = "") -> Any:
    connector = {
        "type": "openai",
        "options": {"model": "m", "host": f"{server.url}/v1", "retries": 0},
    }
    files = {
        "assistants/a/package.yao": '{"connector": "gpt"}',
        "connectors/gpt.conn.yao": json.dumps(connector),
    }
    if hook:
        files["assistants/a/src/index.ts"] = hook
    return make_app(files)


THOUGHT = chunk({"reasoning_content": "Hm."})


@pytest.mark.parametrize(
    ("events", "code", "words", "said"),
    [
        ([chunk(finish="stop")], "answer_empty", "an empty answer", "I could not answer this."),
        (
            [THOUGHT, chunk(finish="stop")],
            "answer_empty",
            "only its thinking",
            "I could not answer this.",
        ),
        (
            [THOUGHT, chunk(finish="length")],
            "answer_cut",
            "while it was still thinking",
            "I could not answer this.",
        ),
        (
            [chunk(finish="content_filter")],
            "answer_filtered",
            "content_filter",
            "I could not answer this.",
        ),
        (
            [chunk({"content": "It is "}), chunk(finish="content_filter")],
            "answer_filtered",
            "content_filter",
            "It is ",
        ),
        (
            [chunk({"content": "Let me see.</think>\n\nIt is 80."}), chunk(finish="stop")],
            "thinking_unmarked",
            "may be the model's thinking",
            "It is 80.",
        ),
    ],
)
async def test_an_answer_that_is_no_answer_is_a_warning_and_the_reader_is_told(
    make_app: MakeApp, server: Loopback, events: list[Any], code: str, words: str, said: str
) -> None:
    server.on(PATH, Sse([*events, "[DONE]"]))
    seen = await run(app_of(make_app, server))
    [warning] = [each for each in of(seen, "warning") if each.code != "unread"]
    assert warning.code == code
    assert words in warning.message
    assert said in end(seen).content
    assert "".join(each.delta for each in of(seen, "text")) == end(seen).content


async def test_a_hook_that_answers_itself_needs_no_text_of_the_model(
    make_app: MakeApp, server: Loopback
) -> None:
    server.on(PATH, Sse([chunk(finish="stop"), "[DONE]"]))
    hook = "export function Next() { return { data: { done: true } } }"
    seen = await run(app_of(make_app, server, hook))
    assert end(seen).content == ""
    assert end(seen).data == {"done": True}


async def test_what_is_live_is_what_is_kept_when_a_character_comes_in_halves(
    make_app: MakeApp, server: Loopback
) -> None:
    halves = [
        b'data: {"choices":[{"index":0,"delta":{"content":"Hi \\ud83d"}}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"content":"\\ude00."}}]}\n\n',
    ]
    server.on(PATH, Sse([*halves, chunk(finish="stop"), "[DONE]"]))
    seen = await run(app_of(make_app, server))
    assert "".join(each.delta for each in of(seen, "text")) == end(seen).content == "Hi 😀."


async def test_a_file_that_the_model_does_not_read_is_named_once(
    make_app: MakeApp, server: Loopback
) -> None:
    server.on(PATH, Sse([chunk({"content": "No."}), chunk(finish="stop"), "[DONE]"]))
    file = {"filename": "report.pdf", "file_data": "data:application/pdf;base64,QUJD"}
    content = [{"type": "text", "text": "What is it?"}, {"type": "file", "file": file}]
    seen = await run(app_of(make_app, server), messages=[{"role": "user", "content": content}])
    [unreadable, warning] = of(seen, "warning")  # neither by a reader of documents nor by the model
    assert "'report.pdf' was not read: it is not a PDF" in unreadable.message
    assert warning.code == "part_not_read"
    assert "file report.pdf, application/pdf, 1 kB" in warning.message
    sent = server.requests[-1].json["messages"][-1]["content"]
    assert "[file report.pdf, application/pdf, 1 kB: not read by this model]" in sent
    assert "QUJD" not in json.dumps(server.requests[-1].json)


@pytest.mark.parametrize(("calls", "codes"), [(128, []), (129, ["model_garbled"])])
async def test_an_answer_with_more_calls_than_any_model_makes_is_an_error_of_the_model(
    make_app: MakeApp, server: Loopback, calls: int, codes: list[str]
) -> None:
    function = {"name": "none", "arguments": "{}"}
    called = [
        chunk({"tool_calls": [{"index": n, "id": f"c{n}", "function": function}]})
        for n in range(calls)
    ]
    server.on(PATH, Sse([*called, chunk(finish="tool_calls"), "[DONE]"]), Sse(answer("Done.")))
    seen = await run(app_of(make_app, server))
    assert [each.code for each in of(seen, "error")] == codes


FILE = {"filename": "report.pdf", "file_data": "data:application/pdf;base64,QUJD"}
WITH_FILE: list[dict[str, Any]] = [
    {
        "role": "user",
        "content": [{"type": "text", "text": "What?"}, {"type": "file", "file": FILE}],
    }
]


@pytest.mark.parametrize(
    ("connector", "capabilities", "hint"),
    [
        ("extractive", {}, "quotes sources and reads text alone"),
        ("scripted", {}, "capabilities of connector 'mine'"),
        ("scripted", {"files": True}, ""),
    ],
)
async def test_a_file_that_is_read_without_a_model_is_named_as_well(
    make_app: MakeApp, connector: str, capabilities: dict[str, bool], hint: str
) -> None:
    spec = {
        "type": connector,
        "capabilities": capabilities,
        **({"options": {"script": ["Yes."]}} if connector == "scripted" else {}),
    }
    files = {
        "connectors/mine.conn.yao": json.dumps(spec),
        "assistants/a/package.yao": '{"connector": "mine"}',
    }
    seen = await run(make_app(files), messages=WITH_FILE)
    named = [each for each in of(seen, "warning") if each.code == "part_not_read"]
    assert [hint in str(each.hint) for each in named] == ([True] if hint else [])
    assert all("file report.pdf, application/pdf, 1 kB" in each.message for each in named)


SENTENCE = "A hook is a piece of code that runs around a turn. "


async def test_an_answer_in_a_loop_is_reported(make_app: MakeApp) -> None:
    app = make_app({"assistants/a/package.yao": '{"connector": "script"}'})
    events = await run(app, script=[f"So it is. {SENTENCE * 40}A hook is a pie"])
    (warning,) = [each for each in of(events, "warning") if each.code == "answer_repeats"]
    assert "A hook" in warning.message or "hook is" in warning.message


@pytest.mark.parametrize(
    "text",
    [
        "",
        SENTENCE * 3,
        "-" * 900,
        "| 0 | 1 |\n" * 90,
        "".join(f"Line {n} of it. " for n in range(99)),
    ],
)
def test_rows_signs_and_a_few_repetitions_are_no_loop(text: str) -> None:
    assert repeated(text) == ""


def test_a_loop_is_found_wherever_its_last_repetition_breaks_off() -> None:
    for cut in range(len(SENTENCE)):
        assert repeated(f"Before. {SENTENCE * 9}{SENTENCE[:cut]}")
    assert repeated(SENTENCE * LOOKED_AT)
