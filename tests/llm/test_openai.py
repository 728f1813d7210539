"""The OpenAI-compatible connector: the real SDK against a server that behaves and misbehaves as
endpoints do."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from pydantic import TypeAdapter

from groundhook.core import extras
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
from groundhook.core.ports import Finished, ModelCall, TextDelta, ToolDelta
from groundhook.core.types.connector_spec import ConnectorSpec
from groundhook.core.types.turn import Message
from groundhook.host.llm.openai import OpenAIConnector
from groundhook.host.llm.request import needs_key, request
from tests.loopback.chat import answer, chunk
from tests.loopback.server import Answer, Cut, Hang, Html, Json, Loopback, Sse, serving
from tests.parts.clock import time_flies
from tests.parts.openai_asking import CALL, PATH, ask, ask_until_it_fails, spec


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving() as server:
        yield server


async def test_an_answer_streams_with_its_usage_and_the_request_has_the_options(
    server: Loopback,
) -> None:
    server.on(PATH, Sse(answer("Hel", "lo ", "שלום")))
    call = ModelCall(
        messages=[Message(role="system", content="Be brief."), *CALL.messages], temperature=0.5
    )
    *texts, last = await ask(
        spec(server, temperature=1.0, max_tokens=50, headers={"X-Team": "blue"}), call
    )
    assert "".join(delta.text for delta in texts if isinstance(delta, TextDelta)) == "Hello שלום"
    assert isinstance(last, Finished)
    assert (last.finish_reason, last.model, last.usage.prompt_tokens, last.usage.total_tokens) == (
        "stop",
        "test-model",
        7,
        10,
    )
    requested = server.requests[0]
    assert requested.headers["authorization"] == "Bearer sk-test"
    assert requested.headers["x-team"] == "blue"
    assert requested.json == {
        "model": "test-model",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello?"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "max_tokens": 50,
    }


@pytest.mark.parametrize(
    ("options", "requested", "sent"),
    [
        ({"max_tokens": 0}, {}, {}),
        ({"max_tokens": 50}, {"max_tokens": 0}, {}),
        ({"max_tokens": 50}, {}, {"max_tokens": 50}),
        ({"max_tokens": 50}, {"max_completion_tokens": 0}, {}),
        ({"max_tokens": 50}, {"max_completion_tokens": 9}, {"max_completion_tokens": 9}),
        ({"max_tokens": 50, "max_completion_tokens": 60}, {}, {"max_completion_tokens": 60}),
        ({"max_tokens": 50, "max_completion_tokens": 0}, {}, {"max_tokens": 50}),
        (
            {"top_p": 0.5, "seed": 3, "stop": ["END"], "body": {"top_k": 4}},
            {},
            {"top_p": 0.5, "seed": 3, "stop": ["END"], "top_k": 4},
        ),
    ],
)
def test_options_are_sent_unchanged_and_a_bound_of_no_tokens_is_not(
    options: dict[str, Any], requested: dict[str, Any], sent: dict[str, Any]
) -> None:
    made = TypeAdapter(ConnectorSpec).validate_python(
        {"type": "openai", "options": {"model": "m", **options}}
    )
    body = request(replace(CALL, **requested), made)
    assert {
        name: value for name, value in body.items() if name not in ("model", "messages", "stream")
    } == sent


async def test_tool_calls_arrive_in_pieces_of_their_own_index(server: Loopback) -> None:
    def piece(index: int, **call: Any) -> dict[str, Any]:
        return chunk({"tool_calls": [{"index": index, **call}]})

    server.on(
        PATH,
        Sse(
            [
                piece(0, id="a", type="function", function={"name": "search", "arguments": ""}),
                piece(0, function={"arguments": '{"q":'}),
                piece(1, id="b", type="function", function={"name": "add", "arguments": "{}"}),
                piece(0, function={"arguments": '"x"}'}),
                chunk(finish="tool_calls"),
                "[DONE]",
            ]
        ),
    )
    tools = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]
    *deltas, last = await ask(spec(server), ModelCall(messages=CALL.messages, tools=tools))
    assert deltas == [
        ToolDelta(0, "a", "search", ""),
        ToolDelta(0, arguments='{"q":'),
        ToolDelta(1, "b", "add", "{}"),
        ToolDelta(0, arguments='"x"}'),
    ]
    assert last == Finished("tool_calls", "test-model")
    assert server.requests[0].json["tools"] == tools


async def test_tool_calls_whose_indices_do_not_begin_with_0_keep_their_pieces(
    server: Loopback,
) -> None:
    def piece(index: int, id: str | None = None, name: str | None = None, text: str = "") -> Any:
        function = {"name": name, "arguments": text}
        return chunk({"tool_calls": [{"index": index, "id": id, "function": function}]})

    pieces = [
        piece(1, "a", "one"),
        piece(1, text='{"q":'),
        piece(1, text="1}"),
        piece(3, "b", "two"),
        piece(3, text="{}"),
        piece(3, "c", "three"),  # the same index again, which is another call
        piece(3, text="[]"),
    ]
    server.on(PATH, Sse([*pieces, chunk(finish="tool_calls"), "[DONE]"]))
    *deltas, _ = await ask(spec(server))
    assert deltas == [
        ToolDelta(0, "a", "one"),
        ToolDelta(0, arguments='{"q":'),
        ToolDelta(0, arguments="1}"),
        ToolDelta(1, "b", "two"),
        ToolDelta(1, arguments="{}"),
        ToolDelta(2, "c", "three"),
        ToolDelta(2, arguments="[]"),
    ]


async def test_a_token_count_without_a_sum_is_summed(server: Loopback) -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    server.on(PATH, Sse([chunk({"content": "x"}), chunk(finish="stop", usage=usage), "[DONE]"]))
    *_, last = await ask(spec(server))
    assert isinstance(last, Finished)
    assert last.usage.total_tokens == 10


async def test_parallel_tool_calls_without_an_index_stay_apart(server: Loopback) -> None:
    def call(id: str, name: str) -> dict[str, Any]:
        return chunk({"tool_calls": [{"id": id, "function": {"name": name, "arguments": "{}"}}]})

    server.on(PATH, Sse([call("a", "one"), call("b", "two"), chunk(finish="stop"), "[DONE]"]))
    assert await ask(spec(server)) == [
        ToolDelta(0, "a", "one", "{}"),
        ToolDelta(1, "b", "two", "{}"),
        Finished("tool_calls", "test-model"),
    ]


async def test_an_endpoint_that_cannot_count_tokens_is_retried_without_and_remembered(
    server: Loopback,
) -> None:
    refusal = Json(
        {"error": {"message": "Unrecognized request argument supplied: stream_options"}}, 400
    )
    server.on(PATH, refusal, Sse(answer("ok")))
    connector = OpenAIConnector(spec(server))
    for _ in range(2):
        async with connector.stream(CALL) as deltas:
            assert await anext(deltas) == TextDelta("ok")
    assert ["stream_options" in requested.json for requested in server.requests] == [
        True,
        False,
        False,
    ]


async def test_an_option_is_not_given_up_for_a_refusal_that_it_did_not_cause(
    server: Loopback,
) -> None:
    refusal = Json({"error": {"message": "Invalid schema for function 'look'"}}, 400)
    server.on(PATH, refusal, refusal, Sse(answer("{}")))
    connector = OpenAIConnector(spec(server))
    call = replace(CALL, reply="json")
    with pytest.raises(ModelRefused, match="Invalid schema for function"):
        async with connector.stream(call) as deltas:
            await anext(deltas)
    async with connector.stream(call) as deltas:
        await anext(deltas)
    assert ["response_format" in requested.json for requested in server.requests] == [
        True,
        False,
        True,
    ]


async def test_an_overloaded_endpoint_is_tried_again_before_the_first_byte(
    server: Loopback,
) -> None:
    server.on(
        PATH, Json({"error": {"message": "slow down"}}, 429, retry_after_ms="1"), Sse(answer("ok"))
    )
    assert (await ask(spec(server, retries=1)))[0] == TextDelta("ok")
    assert len(server.requests) == 2


async def test_a_stream_without_a_finish_reason_is_truncated_and_what_had_arrived_is_kept(
    server: Loopback,
) -> None:
    server.on(PATH, Sse([chunk({"content": "Hel"}), chunk({"content": "lo"})]))
    got, error = await ask_until_it_fails(spec(server), ModelTruncated)
    assert got == "Hello"
    assert "'gpt'" in error.message
    assert "finish_reason" in error.message


async def test_a_connection_cut_in_the_middle_is_truncated_and_what_had_arrived_is_kept(
    server: Loopback,
) -> None:
    server.on(PATH, Sse([chunk({"content": "Hel"})], then="cut"))
    got, _ = await ask_until_it_fails(spec(server), ModelTruncated)
    assert got == "Hel"


async def test_silence_in_the_middle_is_a_stall_and_what_had_arrived_is_kept(
    server: Loopback,
) -> None:
    server.on(PATH, Sse([chunk({"content": "Hel"})], then="hang"))
    async with OpenAIConnector(spec(server, timeout=300)).stream(CALL) as deltas:
        assert await anext(deltas) == TextDelta("Hel")
        with time_flies(), pytest.raises(ModelStalled, match="300 s"):
            await anext(deltas)


async def test_an_endpoint_that_never_answers_is_a_stall(server: Loopback) -> None:
    server.on(PATH, Hang())
    await ask_until_it_fails(spec(server, first_token_timeout=0.15), ModelStalled)


async def test_silence_after_the_last_word_costs_nothing_of_the_answer_and_little_time(
    server: Loopback,
) -> None:
    server.on(PATH, Sse([chunk({"content": "all"}), chunk(finish="stop")], then="hang"))
    with anyio.fail_after(60):
        assert await ask(spec(server, timeout=60)) == [
            TextDelta("all"),
            Finished("stop", "test-model"),
        ]
    server.on(
        PATH,
        Sse([chunk({"content": "all"}), chunk(finish="stop"), b"data: {garbage\n\n"], then="cut"),
    )
    assert await ask(spec(server)) == [TextDelta("all"), Finished("stop", "test-model")]


@pytest.mark.parametrize(
    "garbage",
    [
        b"data: {not json\n\n",
        b"data: 42\n\n",
        b'data: {"choices": "many"}\n\n',
        b"data: \xff\xfe\n\n",
        b"data: " + b"[" * 5000 + b"]" * 5000 + b"\n\n",
        b'data: {"created": ' + b"9" * 5000 + b"}\n\n",
    ],
    ids=["no json", "number", "shape", "bytes", "deep", "digits"],
)
async def test_garbage_in_the_stream_raises_and_the_text_before_it_is_kept(
    server: Loopback, garbage: bytes
) -> None:
    server.on(PATH, Sse([chunk({"content": "Hel"}), garbage]))
    got, error = await ask_until_it_fails(spec(server), ModelGarbled)
    assert got == "Hel"
    assert "'gpt'" in error.message


@pytest.mark.parametrize("body", [Html(), Json({"choices": []})])
async def test_an_answer_that_is_no_stream_names_what_came_instead(
    server: Loopback, body: Answer
) -> None:
    server.on(PATH, body)
    _, error = await ask_until_it_fails(spec(server), ModelGarbled)
    assert "instead of a stream" in error.message
    assert "options.host" in error.hint


async def test_an_error_inside_the_stream_keeps_the_endpoints_words(
    server: Loopback,
) -> None:
    server.on(
        PATH,
        Sse(
            [
                chunk({"content": "Hel"}),
                {"error": {"message": "context length exceeded", "code": "ctx"}},
            ]
        ),
    )
    got, error = await ask_until_it_fails(spec(server), ModelContextExceeded)
    assert got == "Hel"
    assert "context length exceeded" in error.message


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (401, ModelRefused, "refused the key (401)"),
        (403, ModelRefused, "refused the key (403)"),
        (404, ModelRefused, "was not found (404)"),
        (429, ModelRefused, "rate limit"),
        (400, ModelRefused, "refused the request (400)"),
        (500, ModelError, "failed (500)"),
    ],
)
async def test_every_refusal_has_its_kind_and_the_endpoints_message(
    server: Loopback, status: int, kind: type[ModelError], words: str
) -> None:
    server.on(PATH, Json({"error": {"message": "because I can"}}, status))
    _, error = await ask_until_it_fails(spec(server), kind)
    assert words in error.message
    assert "because I can" in error.message


async def test_the_first_answer_imports_the_sdk_in_a_thread(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported: list[tuple[str, bool]] = []

    def note(name: str) -> None:
        imported.append((name, threading.current_thread() is threading.main_thread()))

    monkeypatch.setattr(extras, "_imported", set())
    monkeypatch.setattr(extras, "import_module", note)
    server.on(PATH, Sse(answer("one")), Sse(answer("two")))
    await ask(spec(server))
    await ask(spec(server))
    assert imported == [("openai", False)]


async def test_a_refused_connection_names_the_address(server: Loopback) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        host = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        _, error = await ask_until_it_fails(spec(server, host=host), ModelUnreachable)
    assert host in error.message


async def test_a_connection_closed_before_any_answer_is_unreachable(server: Loopback) -> None:
    server.on(PATH, Cut())
    await ask_until_it_fails(spec(server), ModelUnreachable)


async def test_a_missing_key_names_the_file_and_nothing_is_sent(server: Loopback) -> None:
    for key in ("", "$ENV.NOT_SET"):
        with pytest.raises(ModelNotConfigured) as caught:
            await ask(spec(server, key=key, host="https://api.example.com/v1"))
        assert "connectors/gpt.conn.yao" in caught.value.hint
    with pytest.raises(ModelNotConfigured, match="names no model"):
        await ask(spec(server, model=""))


async def test_an_endpoint_on_this_machine_needs_no_key(server: Loopback) -> None:
    server.on(PATH, Sse(answer("ok")))
    assert (await ask(spec(server, key="")))[0] == TextDelta("ok")


def test_which_hosts_need_a_key() -> None:
    assert [
        needs_key(host) for host in ("", "https://api.example.com/v1", "https://8.8.8.8/v1")
    ] == [True] * 3
    free = (
        "http://localhost:1/v1",
        "http://127.0.0.1/v1",
        "http://192.168.1.7",
        "http://ollama:11434",
        "http://gpu.local",
        "http://[::1]",
    )
    assert [needs_key(host) for host in free] == [False] * len(free)


async def test_leaving_the_answer_early_closes_the_connection(server: Loopback) -> None:
    server.on(PATH, Sse([chunk({"content": "Hel"})], then="hang"))
    async with OpenAIConnector(spec(server)).stream(CALL) as deltas:
        async for delta in deltas:
            assert delta == TextDelta("Hel")
            break
    assert await anyio.to_thread.run_sync(server.requests[0].left.wait, 60)


async def test_cancelling_a_waiting_answer_closes_the_connection(server: Loopback) -> None:
    server.on(PATH, Hang())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, spec(server))
        await server.until_requested()
        tasks.cancel_scope.cancel()
    assert await anyio.to_thread.run_sync(server.requests[0].left.wait, 60)


async def test_parts_that_only_the_host_understands_are_not_sent(server: Loopback) -> None:
    server.on(PATH, Sse(answer("ok")))
    parts = [{"type": "text", "text": "Which?"}, {"type": "data", "data": {"sources": []}}]
    await ask(spec(server), ModelCall(messages=[Message(role="user", content=parts)]))
    assert server.requests[0].json["messages"] == [{"role": "user", "content": "Which?"}]
