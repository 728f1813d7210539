"""The connector for Anthropic's API: the real SDK against a server that streams as the API does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from groundhook.core.errors import (
    ModelContextExceeded,
    ModelError,
    ModelGarbled,
    ModelNotConfigured,
    ModelRefused,
    ModelStalled,
    ModelTruncated,
    ModelUnreachable,
)
from groundhook.core.ports import (
    Delta,
    Finished,
    ModelCall,
    ReasoningDelta,
    TextDelta,
    ToolDelta,
)
from groundhook.core.types.connector_spec import ConnectorSpec
from groundhook.core.types.sampling import Sampling
from groundhook.core.types.turn import Message
from groundhook.host.llm.anthropic import AnthropicConnector
from tests.conftest import MakeApp
from tests.keys import key
from tests.loopback.server import Cut, Hang, Json, Loopback, Reply, Sse, serving
from tests.parts.anthropic_events import answered, block, event, started, text, thinking
from tests.parts.clock import time_flies
from tests.parts.turns import end, of, run

PATH = "/v1/messages"
CALL = ModelCall(messages=[Message(role="user", content="Hello?")])
TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Look", "parameters": {"type": "object"}},
}


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving() as server:
        yield server


def spec(server: Loopback, **options: Any) -> ConnectorSpec:
    known = {
        "model": "claude-x",
        "host": server.url,
        "key": key("ant"),
        "timeout": 60,
        "retries": 0,
    }
    return ConnectorSpec.model_validate(
        {"id": "claude", "type": "anthropic", "options": {**known, **options}}
    )


def calling(index: int, id: str, *parts: str) -> list[bytes]:
    deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
    return block(index, {"type": "tool_use", "id": id, "name": "look", "input": {}}, *deltas)


async def ask(connector: AnthropicConnector, call: ModelCall = CALL) -> list[Delta]:
    async with connector.stream(call) as deltas:
        return [delta async for delta in deltas]


async def test_an_answer_streams_with_its_usage(server: Loopback) -> None:
    server.on(PATH, answered(text(0, "Hel", "lo")))
    call = ModelCall(
        messages=[Message(role="system", content="Be brief."), *CALL.messages],
        temperature=1.5,
        sampling=Sampling(top_p=0.5, stop=("END",), seed=3),
    )
    *texts, last = await ask(AnthropicConnector(spec(server, max_tokens=50)), call)
    assert texts == [TextDelta("Hel"), TextDelta("lo")]
    assert isinstance(last, Finished)
    assert (last.finish_reason, last.model) == ("stop", "claude-x-1")
    assert (last.usage.prompt_tokens, last.usage.total_tokens) == (10, 15)
    [sent] = server.requests
    assert sent.headers["authorization"] == f"Bearer {key('ant')}"  # as the SDK sends a key
    assert sent.json == {
        "model": "claude-x",
        "system": "Be brief.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello?"}]}],
        "max_tokens": 50,
        "temperature": 1.0,
        "top_p": 0.5,
        "stop_sequences": ["END"],
        "stream": True,
    }


async def test_thinking_is_reasoning_and_goes_back_with_the_results_of_tools(
    server: Loopback,
) -> None:
    server.on(
        PATH,
        answered(
            thinking(0, "I should ", "look."),
            text(1, "Looking."),
            calling(2, "toolu_1", '{"at": ', '"x"}'),
            reason="tool_use",
        ),
        answered(text(0, "Found.")),
    )
    connector = AnthropicConnector(spec(server, reasoning_effort="low"))
    call = ModelCall(messages=CALL.messages, tools=[TOOL], temperature=0.5)
    *deltas, last = await ask(connector, call)
    assert deltas == [
        ReasoningDelta("I should "),
        ReasoningDelta("look."),
        TextDelta("Looking."),
        ToolDelta(0, id="toolu_1", name="look"),
        ToolDelta(0, arguments='{"at": '),
        ToolDelta(0, arguments='"x"}'),
    ]
    assert isinstance(last, Finished)
    assert last.finish_reason == "tool_calls"
    first = server.requests[0].json
    assert first["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert (first["max_tokens"], "temperature" in first) == (4096 + 2048, False)
    assert first["tools"] == [
        {"name": "look", "description": "Look", "input_schema": {"type": "object"}}
    ]
    requested = {"id": "toolu_1", "function": {"name": "look", "arguments": '{"at": "x"}'}}
    messages = [
        *CALL.messages,
        Message(role="assistant", content="Looking.", tool_calls=[requested]),
        Message(role="tool", tool_call_id="toolu_1", content="a door"),
    ]
    await ask(connector, ModelCall(messages=messages, tools=[TOOL]))
    assert server.requests[1].json["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I should look.", "signature": "sig=="},
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "x"}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a door"}],
        },
    ]


async def test_thinking_never_goes_to_another_call_of_the_same_id(server: Loopback) -> None:
    """Some endpoints number the calls of each answer, and all users have one connector."""
    server.on(
        PATH,
        answered(thinking(0, "Ann's balance is 40."), calling(1, "call_0", '{"at": "x"}')),
        answered(text(0, "Found.")),
    )
    connector = AnthropicConnector(spec(server, reasoning_effort="low"))
    await ask(connector, ModelCall(messages=CALL.messages, tools=[TOOL]))
    deep = '{"at": ' * 2000 + "1" + "}" * 2000
    for arguments in ('{"at": "y"}', deep):
        requested = {"id": "call_0", "function": {"name": "look", "arguments": arguments}}
        messages = [
            *CALL.messages,
            Message(role="assistant", content="", tool_calls=[requested]),
            Message(role="tool", tool_call_id="call_0", content="a door"),
        ]
        await ask(connector, ModelCall(messages=messages, tools=[TOOL]))
        assert b"balance" not in server.requests[-1].body


async def test_thinking_is_off_where_an_earlier_call_has_none(server: Loopback) -> None:
    server.on(PATH, answered(text(0, "Fine.")))
    requested = {"id": "c9", "function": {"name": "look", "arguments": ""}}
    messages = [
        *CALL.messages,
        Message(role="assistant", content="", tool_calls=[requested]),
        Message(role="tool", tool_call_id="c9", content=""),
    ]
    connector = AnthropicConnector(spec(server, reasoning_effort="high", temperature=0.2))
    await ask(connector, ModelCall(messages=messages))
    assert "thinking" not in server.requests[0].json
    assert server.requests[0].json["temperature"] == 0.2


async def test_images_are_sent_as_the_api_takes_them(server: Loopback) -> None:
    server.on(PATH, answered(text(0, "A cat.")))
    parts = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image_url", "image_url": "https://example.org/cat.png"},
        {"type": "image", "source": {"type": "file", "file_id": "f1"}},
        {"type": "data", "data": {"sources": []}},
    ]
    await ask(
        AnthropicConnector(spec(server)), ModelCall(messages=[Message(role="user", content=parts)])
    )
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    assert server.requests[0].json["messages"][0]["content"] == [
        {"type": "text", "text": "What is it?"},
        {"type": "image", "source": source},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/cat.png"}},
        {"type": "image", "source": {"type": "file", "file_id": "f1"}},
    ]


async def test_blank_texts_beside_images_are_left_out_since_the_api_refuses_them(
    server: Loopback,
) -> None:
    server.on(PATH, answered(text(0, "A cat.")))
    image = {"type": "image_url", "image_url": {"url": "https://pictures.example/cat.png"}}
    content = [{"type": "text", "text": ""}, image, {"type": "text", "text": " \n"}]
    await ask(
        AnthropicConnector(spec(server)),
        ModelCall(messages=[Message(role="user", content=content)]),
    )
    [message] = server.requests[0].json["messages"]
    assert [block["type"] for block in message["content"]] == ["image"]


def refused(kind: str, message: str, status: int) -> Reply:
    return Json({"type": "error", "error": {"type": kind, "message": message}}, status)


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (refused("authentication_error", "invalid x-api-key", 401), ModelRefused, "the key (401)"),
        (refused("invalid_request_error", "bad", 400), ModelRefused, "the request (400): bad"),
        (
            refused("invalid_request_error", "prompt is too long: 9 tokens", 400),
            ModelContextExceeded,
            "longer than the context",
        ),
        (refused("rate_limit_error", "slow down", 429), ModelRefused, "(429): slow down"),
        (refused("overloaded_error", "Overloaded", 529), ModelError, "failed (529): Overloaded"),
        (
            Sse(
                [
                    started(),
                    *text(0, "Hel"),
                    event("error", error={"type": "overloaded_error", "message": "Overloaded"}),
                ]
            ),
            ModelError,
            "reported an error: Overloaded",
        ),
        (Sse([started(), *text(0, "Hel")]), ModelTruncated, "no message_stop"),
        (Sse([started(), *text(0, "Hel")], then="cut"), ModelTruncated, "broke before"),
        (Cut(), ModelUnreachable, "cannot be reached"),
    ],
)
async def test_every_failure_is_an_error_of_its_own_kind(
    server: Loopback, answer: Any, kind: type[ModelError], words: str
) -> None:
    server.on(PATH, answer)
    with pytest.raises(kind) as caught:
        await ask(AnthropicConnector(spec(server)))
    assert type(caught.value) is kind
    assert words in str(caught.value)


DEEP = "[" * 5000 + "]" * 5000


@pytest.mark.parametrize(
    "wrong",
    [
        b"data: {not json\n\n",
        b"data: 42\n\n",
        b"data: \xff\xfe\n\n",
        f"data: {DEEP}\n\n".encode(),
        b'data: {"type": "ping", "at": ' + b"9" * 5000 + b"}\n\n",
        b"data: [" + b"[]," * 200_000 + b"[]]\n\n",
        event("content_block_delta", index=[0], delta={"type": "input_json_delta"}),
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": [{}]}),
        event("content_block_delta", index=0, delta=[{}] * 50_000),
        event("message_start", message={"model": 5}),
        event("message_delta", delta={}, usage=[7]),
        event("content_block_start"),
    ],
    ids=lambda wrong: wrong[:50].decode(errors="replace"),
)
async def test_an_event_that_the_api_does_not_have_is_an_error_of_the_model(
    server: Loopback, wrong: bytes
) -> None:
    wrong = b"event: message_start\n" + wrong if wrong.startswith(b"data") else wrong
    server.on(PATH, Sse([started(), *text(0, "Hel"), wrong]))
    async with AnthropicConnector(spec(server)).stream(CALL) as deltas:
        assert await anext(deltas) == TextDelta("Hel")
        with pytest.raises(ModelGarbled, match="'claude' sent an event that the API does not have"):
            await anext(deltas)


async def test_a_model_that_sends_nothing_is_stalled(server: Loopback) -> None:
    server.on(PATH, Hang())
    with pytest.raises(ModelStalled, match="no token within"):
        await ask(AnthropicConnector(spec(server, first_token_timeout=0.3)))
    server.on(PATH, Sse([started(), *text(0, "Hel")], then="hang"))
    async with AnthropicConnector(spec(server)).stream(CALL) as deltas:
        assert await anext(deltas) == TextDelta("Hel")
        with time_flies(), pytest.raises(ModelStalled, match="stopped sending"):
            await anext(deltas)


async def test_an_overloaded_model_is_tried_again(server: Loopback) -> None:
    server.on(PATH, refused("overloaded_error", "Overloaded", 529), answered(text(0, "Now.")))
    assert (await ask(AnthropicConnector(spec(server, retries=1))))[0] == TextDelta("Now.")


async def test_a_key_and_a_model_are_needed(server: Loopback) -> None:
    far = {"host": "https://api.anthropic.example", "key": "$ENV.NOT_SET"}
    with pytest.raises(ModelNotConfigured, match="has no key"):
        await ask(AnthropicConnector(spec(server, **far)))
    with pytest.raises(ModelNotConfigured, match="names no model"):
        await ask(AnthropicConnector(spec(server, model="")))


async def test_a_turn_shows_reasoning_beside_the_answer(
    make_app: MakeApp, server: Loopback
) -> None:
    server.on(PATH, answered(thinking(0, "Let me see."), text(1, "Yes.")))
    connector = spec(server, reasoning_effort="low").model_dump(exclude_defaults=True)
    app = make_app(
        {
            "assistants/a/package.yao": '{"connector": "claude"}',
            "connectors/claude.conn.yao": json.dumps(
                {key: value for key, value in connector.items() if key != "id"}
            ),
        }
    )
    events = await run(app)
    assert [each.delta for each in of(events, "reasoning")] == ["Let me see."]
    assert end(events).content == "Yes."
