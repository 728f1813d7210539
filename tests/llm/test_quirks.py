"""What models send beside the API that they promise: one table of quirks, each as the endpoints of
both connectors send it, read by the real client libraries from a loopback server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import TypeAdapter

from groundhook.core.errors import ModelError, ModelStalled, ModelTruncated
from groundhook.core.ports import (
    Connector,
    ModelCall,
    Notice,
    ReasoningDelta,
)
from groundhook.core.types.connector_spec import ConnectorSpec
from groundhook.core.types.turn import Message
from groundhook.host.llm import anthropic_request
from groundhook.host.llm.anthropic import AnthropicConnector
from groundhook.host.llm.deltas import answering
from groundhook.host.llm.openai import OpenAIConnector
from groundhook.host.turn.draft import Draft, step
from tests.loopback.chat import chunk
from tests.loopback.server import Fixed, Json, Loopback, Sse, serving
from tests.parts.anthropic_events import answered as anthropic_sent
from tests.parts.anthropic_events import block, ended, event, text, thinking

CALL = ModelCall(messages=[Message(role="user", content="Hello?")])
DONE = "[DONE]"
STOP = (chunk(finish="stop"), DONE)
CALLED = (chunk(finish="tool_calls"), DONE)


@dataclass(frozen=True)
class Answered:
    """An answer as the host must read it. `calls` are names with their arguments."""

    text: str = ""
    thought: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    finish: str = "stop"


def called(*calls: Mapping[str, Any]) -> dict[str, Any]:
    return chunk({"tool_calls": [dict(call) for call in calls]})


def function(name: str, arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def openai(*events: Any) -> tuple[str, Fixed]:
    return ("openai", Sse(list(events)))


def anthropic(*blocks: list[bytes], reason: str = "end_turn") -> tuple[str, Fixed]:
    return ("anthropic", anthropic_sent(*blocks, reason=reason))


def calling(index: int, name: str, arguments: str) -> list[bytes]:
    start = {"type": "tool_use", "id": "", "name": name, "input": {}}
    return block(index, start, {"type": "input_json_delta", "partial_json": arguments})


OSLO = (("weather", {"city": "Oslo"}),)
PARTS = {"content": [{"type": "text", "text": "80 "}, {"type": "text", "text": "degrees"}]}
THOUGHT = {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]}
LOW, HIGH = '"\\ude00 80"', '"Hi \\ud83d"'


def raw(content: str) -> bytes:
    return b'data: {"choices":[{"index":0,"delta":{"content":%s}}]}\n\n' % content.encode()


def raw_text(content: str) -> bytes:
    return (
        b"event: content_block_delta\ndata: "
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}\n\n'
    ) % content.encode()


BEGUN = event("content_block_start", index=0, content_block={"type": "text", "text": ""})
ENDED = event("content_block_stop", index=0)

QUIRKS: dict[str, tuple[Answered, list[tuple[str, Fixed]]]] = {
    "content is a list of parts": (
        Answered("80 degrees", thought="Hm."),
        [
            openai(chunk(THOUGHT), chunk(PARTS), *STOP),
            anthropic(thinking(0, "Hm."), text(1, "80 ", "degrees")),
        ],
    ),
    "content is one part": (
        Answered("80"),
        [openai(chunk({"content": {"type": "text", "text": "80"}}), *STOP)],
    ),
    "arguments of a tool are an object": (
        Answered(calls=OSLO, finish="tool_calls"),
        [
            openai(
                called({"index": 0, "id": "a", "function": function("weather", {"city": "Oslo"})}),
                *CALLED,
            )
        ],
    ),
    "ids are numbers": (
        Answered(calls=OSLO, finish="tool_calls"),
        [
            openai(
                called({"index": "0", "id": 5, "function": function("weather", '{"city":"Oslo"}')}),
                *CALLED,
            )
        ],
    ),
    "two calls without an index and an id": (
        Answered(calls=(("now", {}), *OSLO), finish="tool_calls"),
        [
            openai(
                called(
                    {"function": function("now", "{}")},
                    {"function": function("weather", '{"city":"Oslo"}')},
                ),
                *CALLED,
            ),
            openai(
                called({"function": function("now", "{}")}),
                called({"function": function("weather", '{"city":')}),
                called({"function": {"arguments": '"Oslo"}'}}),
                *STOP,
            ),
            anthropic(
                calling(0, "now", "{}"), calling(1, "weather", '{"city":"Oslo"}'), reason="tool_use"
            ),
        ],
    ),
    "no reason before the end of the stream": (
        Answered("80 degrees"),
        [
            openai(chunk({"content": "80 "}), chunk({"content": "degrees"}), DONE),
            openai(chunk({"content": "80 degrees"}), chunk(finish=""), DONE),
        ],
    ),
    "a message in place of a delta": (
        Answered("80"),
        [
            openai(
                {"choices": [{"index": 0, "message": {"content": "80"}, "finish_reason": "stop"}]},
                DONE,
            ),
            (
                "openai",
                Json({"choices": [{"message": {"content": "80"}, "finish_reason": "stop"}]}),
            ),
        ],
    ),
    "thinking in the content": (
        Answered("It is 80.", thought="The #ref:abc1 fits."),
        [
            openai(chunk({"content": "<think>The #ref:abc1 fits.</think>\n\nIt is 80."}), *STOP),
            openai(
                *(
                    chunk({"content": c})
                    for c in "\n<think>The #ref:abc1 fits.</think>\n\nIt is 80."
                ),
                *STOP,
            ),
            anthropic(text(0, "<thi", "nk>The #ref:abc1 fits.</t", "hink>\n\nIt is", " 80.")),
        ],
    ),
    "tags in the middle of an answer": (
        Answered("Write <think> first."),
        [
            openai(chunk({"content": "Write <think> first."}), *STOP),
            anthropic(text(0, "Write <think> first.")),
        ],
    ),
    "half a character in each of two chunks": (
        Answered("Hi 😀 80"),
        [
            openai(raw(HIGH), raw(LOW), *STOP),
            anthropic([BEGUN, raw_text(HIGH), raw_text(LOW), ENDED]),
        ],
    ),
    "half a character alone": (
        Answered("Hi �"),
        [openai(raw(HIGH), *STOP), anthropic([BEGUN, raw_text(HIGH), ENDED])],
    ),
    "a refusal": (
        Answered("I cannot help."),
        [
            openai(chunk({"refusal": "I cannot help."}), *STOP),
            openai(chunk({"content": [{"type": "refusal", "refusal": "I cannot help."}]}), *STOP),
        ],
    ),
    "a content filter": (
        Answered("It is", finish="content_filter"),
        [
            openai(chunk({"content": "It is"}), chunk(finish="content_filter"), DONE),
            anthropic(text(0, "It is"), reason="refusal"),
        ],
    ),
    "no text": (Answered(), [openai(*STOP), anthropic()]),
    "thinking alone": (
        Answered(thought="Hm."),
        [
            openai(chunk({"reasoning_content": "Hm."}), *STOP),
            openai(chunk({"content": "<think>Hm."}), *STOP),
            anthropic(thinking(0, "Hm.")),
        ],
    ),
    "choices and usage that are null": (
        Answered("80"),
        [openai({"id": "c", "choices": None, "usage": None}, chunk({"content": "80"}), *STOP)],
    ),
    "a usage without the fields of the cache": (
        Answered("80"),
        [
            (
                "anthropic",
                Sse(
                    [
                        event(
                            "message_start",
                            message={
                                "id": "m",
                                "type": "message",
                                "role": "assistant",
                                "content": [],
                                "model": "c",
                                "usage": {},
                            },
                        ),
                        *text(0, "80"),
                        *ended(),
                    ]
                ),
            )
        ],
    ),
}
REPORTED = {"error": {"message": "Upstream idle timeout", "code": 502}}
FAILURES: dict[str, tuple[type[ModelError], str, list[tuple[str, Fixed]]]] = {
    "an error with status 200": (
        ModelError,
        "reported an error: Upstream idle timeout",
        [
            ("openai", Json(REPORTED)),
            openai(chunk({"content": "It is "}), REPORTED),
            ("openai", Json({"object": "error", "message": "Upstream idle timeout"})),
            ("openai", Json({"error": "Upstream idle timeout"})),
        ],
    ),
    "a reason that is an error": (
        ModelError,
        "finish_reason error",
        [openai(chunk({"content": "It is "}), chunk(finish="error"), DONE)],
    ),
    "a stream that is cut": (
        ModelTruncated,
        "before it was complete",
        [openai(chunk({"content": "It is "})), openai(DONE)],
    ),
}


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving() as server:
        yield server


def connector(server: Loopback, type: str, answer: Fixed | None, **options: Any) -> Connector:
    host, path = {
        "openai": (f"{server.url}/v1", "/v1/chat/completions"),
        "anthropic": (server.url, "/v1/messages"),
    }[type]
    if answer is not None:
        server.on(path, answer)
    given = {"model": "m", "host": host, "key": "k", "timeout": 60, "retries": 0, **options}
    spec = TypeAdapter(ConnectorSpec).validate_python({"id": "gpt", "type": type, "options": given})
    return OpenAIConnector(spec) if type == "openai" else AnthropicConnector(spec)


async def hear(asked: Connector, call: ModelCall = CALL) -> Answered:
    draft, thought = Draft(), ""
    async with answering(asked, call) as deltas:
        async for delta in deltas:
            draft = step(draft, delta)
            thought += delta.text if isinstance(delta, ReasoningDelta) else ""
    assert draft.finished is not None
    calls = tuple((call.name, json.loads(call.arguments)) for call in draft.calls)
    return Answered(draft.text, thought, calls, draft.finished.finish_reason)


def rows(table: Mapping[str, Any]) -> list[Any]:
    return [
        pytest.param(*expected, type, answer, id=f"{quirk}: {type} {n}")
        for quirk, (*expected, sent) in table.items()
        for n, (type, answer) in enumerate(sent)
    ]


@pytest.mark.parametrize(("expected", "type", "sent"), rows(QUIRKS))
async def test_an_answer_is_read_whatever_the_endpoint_makes_of_the_api(
    server: Loopback, expected: Answered, type: str, sent: Fixed
) -> None:
    assert await hear(connector(server, type, sent)) == expected


@pytest.mark.parametrize(("kind", "words", "type", "sent"), rows(FAILURES))
async def test_an_error_in_the_place_of_an_answer_has_the_words_of_the_endpoint(
    server: Loopback, kind: type[ModelError], words: str, type: str, sent: Fixed
) -> None:
    with pytest.raises(kind) as caught:
        await hear(connector(server, type, sent))
    assert caught.type is kind
    assert words in str(caught.value)


async def test_a_refusal_is_a_warning_as_well(server: Loopback) -> None:
    pieces = [chunk({"refusal": "I cannot "}), chunk({"refusal": "help."})]
    asked = connector(server, "openai", Sse([*pieces, *STOP]))
    async with answering(asked, CALL) as deltas:
        noticed = [delta.code async for delta in deltas if isinstance(delta, Notice)]
    assert noticed == ["answer_refused"]


async def test_thinking_whose_beginning_is_in_the_template_is_no_answer_with_the_option(
    server: Loopback,
) -> None:
    sent = Sse([chunk({"content": "Let me see.</think>\n\nIt is 80."}), *STOP])
    marked = connector(server, "openai", sent, begins_thinking=True)
    assert await hear(marked) == Answered("It is 80.", thought="Let me see.")


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([b": OPENROUTER PROCESSING\n\n"], "it sent comments only"),
        (
            [chunk(prompt_progress={"total": 90, "cache": 0, "processed": 40, "time_ms": 9})],
            "it has read 40 of 90 tokens of the prompt",
        ),
    ],
)
async def test_signs_of_life_are_no_tokens_and_the_error_names_them(
    server: Loopback, events: list[Any], words: str
) -> None:
    slow = connector(server, "openai", Sse(events, then="hang"), first_token_timeout=1)
    with pytest.raises(ModelStalled, match=words):
        await hear(slow)


PDF = "data:application/pdf;base64," + "QUJD" * 4096
FILE = {"type": "file", "file": {"filename": "report.pdf", "file_data": PDF}}
SHEET = {
    "type": "file",
    "file": {"filename": "a.xlsx", "file_data": "data:application/zip;base64,QUJD"},
}
AUDIO = {"type": "input_audio", "input_audio": {"data": "QUJD" * 2048, "format": "wav"}}
VIDEO = {"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}}
UNKNOWN = {"type": "hologram", "data": "QUJD" * 512, "name": "h\nalt"}
NOTE = "[file report.pdf, application/pdf, 12 kB: not read by this model]"


@pytest.mark.parametrize(
    ("type", "part", "options", "sent"),
    [
        ("openai", FILE, {}, NOTE),
        ("openai", FILE, {"capabilities": ["files"]}, FILE),
        (
            "anthropic",
            FILE,
            {},
            {
                "type": "document",
                "title": "report.pdf",
                "source": {
                    "type": "base64",
                    "media_type": "application/pdf",
                    "data": "QUJD" * 4096,
                },
            },
        ),
        ("anthropic", FILE, {"capabilities": {"files": False}}, NOTE),
        ("anthropic", SHEET, {}, "[file a.xlsx, application/zip, 1 kB: not read by this model]"),
        (
            "anthropic",
            AUDIO,
            {"capabilities": ["audio"]},
            "[audio, wav, 6 kB: not read by this model]",
        ),
        ("openai", AUDIO, {}, "[audio, wav, 6 kB: not read by this model]"),
        ("openai", AUDIO, {"capabilities": ["audio"]}, AUDIO),
        ("openai", VIDEO, {}, "[video: not read by this model]"),
        ("openai", UNKNOWN, {}, "[part of type 'hologram' h alt, 1 kB: not read by this model]"),
        ("anthropic", UNKNOWN, {}, "[part of type 'hologram' h alt, 1 kB: not read by this model]"),
    ],
)
async def test_a_part_that_the_model_does_not_read_becomes_a_note_with_a_warning(
    server: Loopback, type: str, part: dict[str, Any], options: dict[str, Any], sent: Any
) -> None:
    reply = {"openai": openai(chunk({"content": "x"}), *STOP), "anthropic": anthropic(text(0, "x"))}
    asked = connector(server, type, reply[type][1], **options)
    content = [{"type": "text", "text": "What is it?"}, part]
    noticed = []
    call = ModelCall(messages=[Message(role="user", content=content)])
    async with answering(asked, call) as deltas:
        async for delta in deltas:
            noticed += [delta] if isinstance(delta, Notice) else []
    got = server.requests[0].json["messages"][0]["content"]
    wire = got.split("\n") if isinstance(got, str) else got
    assert wire[-1] in (sent, {"type": "text", "text": sent})
    assert [each.code for each in noticed] == (["part_not_read"] if isinstance(sent, str) else [])
    if isinstance(sent, str):
        assert sent[1:].partition(": not read")[0] in noticed[0].message


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("claude-opus-4-6", "adaptive"),
        ("claude-sonnet-5", "adaptive"),
        ("claude-opus-4-20250514", "enabled"),
        ("claude-sonnet-4-5-20250929", "enabled"),
        ("claude-3-7-sonnet-latest", "enabled"),
    ],
)
def test_thinking_is_requested_in_the_form_that_the_model_takes(model: str, thinking: str) -> None:
    spec = TypeAdapter(ConnectorSpec).validate_python(
        {"type": "anthropic", "options": {"model": model, "reasoning_effort": "low"}}
    )
    body = anthropic_request.request(CALL, spec, lambda key: [])
    assert body["thinking"]["type"] == thinking
    assert (body.get("output_config") == {"effort": "low"}) == (thinking == "adaptive")


async def test_a_conversation_that_the_model_continues_ends_without_white_space(
    server: Loopback,
) -> None:
    messages = [*CALL.messages, Message(role="assistant", content="It is \n")]
    asked = connector(server, "anthropic", anthropic(text(0, "80"))[1])
    await hear(asked, ModelCall(messages=messages))
    assert server.requests[0].json["messages"][-1]["content"][-1]["text"] == "It is"
