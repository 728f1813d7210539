"""Deadlines and tries of the OpenAI-compatible connector, and what an endpoint does not take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from groundhook.core.errors import ModelContextExceeded, ModelRefused, ModelStalled
from groundhook.core.ports import Finished, ReasoningDelta, TextDelta
from groundhook.core.trace import recording
from groundhook.core.types.events import TraceNode
from groundhook.core.types.uses import KEYWORD
from groundhook.host.llm.openai import OpenAIConnector
from tests.loopback.chat import answer, chunk
from tests.loopback.server import Hang, Json, Loopback, Sse, serving
from tests.parts.clock import time_flies
from tests.parts.openai_asking import CALL, PATH, ask, ask_until_it_fails, spec


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving() as server:
        yield server


async def test_the_first_token_has_a_deadline_of_its_own_and_is_not_waited_for_again(
    server: Loopback,
) -> None:
    server.on(PATH, Hang())
    slow = spec(server, first_token_timeout=0.2, timeout=60, retries=2)
    _, error = await ask_until_it_fails(slow, ModelStalled)
    assert "no token within 0.2 s" in error.message
    assert "options.first_token_timeout" in error.hint
    assert len(server.requests) <= 1  # none where connecting took the whole time


async def test_an_opening_without_a_token_is_still_waited_for_as_the_first(
    server: Loopback,
) -> None:
    server.on(PATH, Sse([chunk({"role": "assistant", "content": ""})], then="hang"))
    _, error = await ask_until_it_fails(
        spec(server, first_token_timeout=0.2, timeout=60), ModelStalled
    )
    assert "0.2 s" in error.message


async def test_thoughts_are_tokens_and_what_follows_has_the_deadline_between_tokens(
    server: Loopback,
) -> None:
    server.on(PATH, Sse([chunk({"reasoning_content": "Hm."})], then="hang"))
    slow = spec(server, first_token_timeout=60, timeout=300)
    async with OpenAIConnector(slow).stream(CALL) as deltas:
        assert await anext(deltas) == ReasoningDelta("Hm.")
        with time_flies(), pytest.raises(ModelStalled) as caught:
            await anext(deltas)
    assert "no further token within 300 s" in caught.value.message
    assert "options.timeout" in caught.value.hint


async def test_each_try_that_failed_is_a_step_of_the_trace(server: Loopback) -> None:
    busy = Json({"error": {"message": "slow down"}}, 429, retry_after_ms="1")
    server.on(PATH, busy, Json({}, 503, retry_after_ms="2"), Sse(answer("ok")))
    nodes: list[TraceNode] = []
    with recording(nodes.append):
        await ask(spec(server, retries=2))
    ended = [node for node in nodes if node.status == "failed"]
    assert [(node.type, node.label) for node in ended] == [
        ("model_try", "try 1 of 3"),
        ("model_try", "try 2 of 3"),
    ]
    assert "slow down" in ended[0].data["error"]
    assert [node.data["next_try_after_ms"] for node in ended] == [1, 2]


async def test_a_refusal_that_asks_for_a_long_wait_is_not_tried_again(server: Loopback) -> None:
    server.on(PATH, Json({"error": {"message": "no"}}, 429, retry_after="3600"))
    await ask_until_it_fails(spec(server, retries=2), ModelRefused)
    assert len(server.requests) == 1


async def test_an_endpoint_that_takes_no_schema_is_retried_without_and_remembered(
    server: Loopback,
) -> None:
    refusal = Json({"error": {"message": "response_format json_schema is not supported"}}, 400)
    server.on(PATH, refusal, Sse(answer("{}")))
    connector = OpenAIConnector(spec(server))
    for _ in range(2):
        async with connector.stream(replace(CALL, reply=KEYWORD.json_reply)) as deltas:
            assert await anext(deltas) == TextDelta("{}")
    sent = [requested.json.get("response_format") for requested in server.requests]
    assert [bool(each) for each in sent] == [True, False, False]
    assert sent[0]["json_schema"]["name"] == "keyword"
    assert [requested.json["stream_options"] for requested in server.requests] == [
        {"include_usage": True}
    ] * 3


async def test_a_schema_that_an_endpoint_finds_invalid_costs_no_other_call_its_schema(
    server: Loopback,
) -> None:
    message = "Invalid schema for response_format 'a': 'additionalProperties' is required"
    server.on(PATH, Json({"error": {"message": message}}, 400), Sse(answer("{}")))
    connector = OpenAIConnector(spec(server))
    for _ in range(2):
        async with connector.stream(replace(CALL, reply=KEYWORD.json_reply)) as deltas:
            assert await anext(deltas) == TextDelta("{}")
    sent = ["response_format" in requested.json for requested in server.requests]
    assert sent == [True, False, True]


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
        "the request exceeds the available context size, try increasing it",
        "prompt is too long: 9000 tokens > 8192 maximum",
    ],
)
async def test_a_full_context_has_a_code_of_its_own_and_names_the_settings(
    server: Loopback, message: str
) -> None:
    server.on(PATH, Json({"error": {"message": message}}, 400))
    _, error = await ask_until_it_fails(spec(server, retries=2), ModelContextExceeded)
    assert error.code == "model_context_exceeded"
    assert message[:30] in error.message
    assert "search.rerank.top_k" in error.hint
    assert len(server.requests) == 1


async def test_a_template_without_a_system_role_is_answered_with_the_option(
    server: Loopback,
) -> None:
    server.on(PATH, Json({"error": {"message": "System role not supported"}}, 400))
    _, error = await ask_until_it_fails(spec(server), ModelRefused)
    assert 'options.system: "none"' in error.hint


async def test_an_answer_of_no_text_is_whole(server: Loopback) -> None:
    server.on(PATH, Sse([chunk(finish="stop")]))
    assert await ask(spec(server)) == [Finished("stop", "test-model")]
