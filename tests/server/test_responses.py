"""OpenAI's own client asks for responses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI
from pydantic import BaseModel

from tests.server.conftest import LOCAL, OTHER, Serve, Served

ANSWER = "Two teas [1], ☕ and [2], [1]."
WEATHER: Any = {
    "type": "function",
    "name": "weather",
    "strict": False,
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
}


@pytest.fixture
def client(served: Served) -> Iterator[OpenAI]:
    spread: Any = served.client("")
    with OpenAI(base_url=f"{served.url}/v1", api_key=LOCAL, http_client=spread) as client:
        yield client


def scripted(*entries: Any) -> dict[str, str]:
    connector = {"label": "Script", "type": "scripted", "options": {"script": [*entries]}}
    return {
        "connectors/script.conn.yao": json.dumps(connector),
        "assistants/plain/package.yao": '{ "name": "Plain", "connector": "script" }',
    }


def test_a_response_has_annotations_that_cut_out_its_numbers(client: OpenAI) -> None:
    made = client.responses.create(model="tea", input="all teas")
    assert (made.status, made.output_text) == ("completed", ANSWER)
    [message] = made.output
    assert message.type == "message"
    [part] = message.content
    assert part.type == "output_text"
    cut = [
        (ANSWER[note.start_index : note.end_index], note.title)
        for note in part.annotations
        if note.type == "url_citation"
    ]
    assert cut == [("[1]", "Assam"), ("[2]", "Sencha"), ("[1]", "Assam")]
    claims = {"cited": 1, "supported": 1, "doubtful": 0, "uncited": 0}
    claims |= {"verified": 0, "unsupported": 0}
    assert made.to_dict()["groundhook"] == {"grounded": True, "certainty": "sure", "claims": claims}
    assert made.usage is not None


def test_the_stream_is_the_same_response_and_can_be_read_later(client: OpenAI) -> None:
    with client.responses.stream(model="tea", input="all teas") as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert final.output_text == ANSWER
    later = client.responses.retrieve(final.id)
    assert later.output[0].to_dict()["id"] == final.output[0].to_dict()["id"]
    assert later.output_text == ANSWER
    assert later.usage == final.usage
    assert (later.model, later.status) == ("tea", "completed")
    again = list(client.responses.retrieve(final.id, stream=True))
    assert [event.type for event in again] == [event.type for event in events]
    assert "".join(e.delta for e in again if e.type == "response.output_text.delta") == ANSWER
    rest = list(client.responses.retrieve(final.id, stream=True, starting_after=3))
    assert [each.to_dict() for each in rest] == [each.to_dict() for each in again[4:]]
    with pytest.raises(openai.BadRequestError, match="starting_after"):
        client.responses.retrieve(final.id, stream=True, starting_after=-2)
    last = len(events) - 1
    assert list(client.responses.retrieve(final.id, stream=True, starting_after=last)) == []
    with pytest.raises(openai.BadRequestError, match=f"has the events 0 to {last}"):
        client.responses.retrieve(final.id, stream=True, starting_after=last + 1)


@pytest.mark.parametrize("in_chat", [True, False])
def test_a_response_repeats_its_request_whole_streamed_and_read_later(
    client: OpenAI, in_chat: bool
) -> None:
    asked: Any = {
        "model": "tea",
        "input": "all teas",
        "metadata": {"topic": "tea"},
        "temperature": 0.5,
        "max_output_tokens": 500,
        "safety_identifier": "u",
        "extra_body": {"groundhook": {"citations": "links"}},
    }
    if not in_chat:
        asked |= {"tools": [WEATHER], "tool_choice": "none", "instructions": "Be brief."}
    whole = client.responses.create(**asked)
    *_, last = client.responses.create(stream=True, **asked)
    assert last.type == "response.completed"
    for made in (whole, last.response):
        shown = made.to_dict()
        assert shown["instructions"] == (None if in_chat else "Be brief.")
        assert shown["metadata"] == {"topic": "tea"}
        assert (shown["temperature"], shown["max_output_tokens"]) == (0.5, 500)
        assert (shown["store"], shown["safety_identifier"]) == (True, "u")
        tools = ([], "auto") if in_chat else ([WEATHER], "none")
        assert (shown["tools"], shown["tool_choice"]) == tools
        assert "[[1]](" in made.output_text
        for _ in range(2):  # by each process
            assert client.responses.retrieve(made.id).to_dict() == shown


def test_the_next_response_continues_the_chat_of_the_one_before_it(serve: Serve) -> None:
    files = scripted("Two minutes.", {"text": "At 80 °C.", "expect": "Two minutes."}, "Three.")
    with (
        serve(files) as served,
        OpenAI(base_url=f"{served.url}/v1", api_key=LOCAL) as client,
    ):
        first = client.responses.create(model="plain", input="How long does tea steep?")
        assert first.to_dict()["store"] is True
        second = client.responses.create(
            model="plain", input="How hot is its water?", previous_response_id=first.id
        )
        assert second.output_text == "At 80 °C."
        assert second.previous_response_id == first.id
        with served.client() as reader:
            [chat] = reader.get("/api/chats").json()["chats"]
            shown = reader.get(f"/api/chats/{chat['id']}").json()["messages"]
        assert [message["role"] for message in shown] == ["user", "assistant"] * 2
        with OpenAI(base_url=f"{served.url}/v1", api_key=OTHER) as other:
            with pytest.raises(openai.NotFoundError):
                other.responses.retrieve(first.id)
            with pytest.raises(openai.NotFoundError):
                other.responses.retrieve(first.id, stream=True)
            with pytest.raises(openai.NotFoundError):
                other.responses.cancel(first.id)
            with pytest.raises(openai.BadRequestError) as foreign:
                other.responses.create(model="plain", input="?", previous_response_id=first.id)
            assert foreign.value.code == "previous_response_not_found"
        alone = client.responses.create(model="plain", input="Coffee?", store=False)
        with pytest.raises(openai.APIStatusError) as lost:
            client.responses.create(model="plain", input="?", previous_response_id=alone.id)
        assert lost.value.code == "previous_response_not_found"
        assert lost.value.param == "previous_response_id"


def test_a_call_of_the_clients_tool_is_an_item_and_its_output_continues_it(serve: Serve) -> None:
    call = {"tool_calls": [{"name": "weather", "arguments": {"place": "Assam"}}]}
    files = scripted(call, {"text": "It rains.", "expect": "wet"}, call)
    with (
        serve(files) as served,
        OpenAI(base_url=f"{served.url}/v1", api_key=OTHER) as client,
    ):
        history: Any = [{"role": "user", "content": "How is it in Assam?"}]
        with client.responses.stream(model="plain", input=history, tools=[WEATHER]) as stream:
            first = stream.get_final_response()
        [called] = first.output
        assert called.type == "function_call"
        assert json.loads(called.arguments) == {"place": "Assam"}
        history += [item.to_dict() for item in first.output]
        history.append({"type": "function_call_output", "call_id": called.call_id, "output": "wet"})
        last = client.responses.create(model="plain", input=history, tools=[WEATHER])
    assert last.output_text == "It rains."


def test_previous_response_id_continues_answers_with_tools_of_their_owner(serve: Serve) -> None:
    call = {"tool_calls": [{"name": "weather", "arguments": {"place": "Assam"}}]}
    files = scripted(
        "Two minutes.",
        {**call, "expect": "Two minutes."},
        {"text": "It rains.", "expect": "wet"},
        {"text": "In Assam.", "expect": "It rains."},
        "Alone.",
    )
    with (
        serve(files) as served,
        OpenAI(base_url=f"{served.url}/v1", api_key=LOCAL) as client,
        OpenAI(base_url=f"{served.url}/v1", api_key=OTHER) as other,
    ):
        tea = client.responses.create(model="plain", input="How long?")  # kept in a chat
        first = client.responses.create(
            model="plain",
            instructions="Be brief.",
            input="How is the weather there?",
            tools=[WEATHER],
            previous_response_id=tea.id,
        )
        assert first.to_dict()["store"] is True
        [called] = first.output
        assert called.type == "function_call"
        result: Any = [{"type": "function_call_output", "call_id": called.call_id, "output": "wet"}]
        for wrong in ({"input": "?"}, {"input": [{**result[0], "call_id": "x"}]}):
            with pytest.raises(openai.BadRequestError):
                client.responses.create(
                    model="plain", tools=[WEATHER], previous_response_id=first.id, **wrong
                )
        with pytest.raises(openai.BadRequestError):
            other.responses.create(
                model="plain", input=result, tools=[WEATHER], previous_response_id=first.id
            )
        second = client.responses.create(
            model="plain", input=result, tools=[WEATHER], previous_response_id=first.id
        )
        assert second.output_text == "It rains."
        third = client.responses.create(
            model="plain", input="Where?", previous_response_id=second.id
        )
        assert third.output_text == "In Assam."
        alone = client.responses.create(
            model="plain", input="?", tools=[WEATHER], store=False, extra_body={"seed": 1}
        )
        with pytest.raises(openai.APIStatusError) as lost:
            client.responses.create(model="plain", input="?", previous_response_id=alone.id)
        assert lost.value.status_code in (400, 404)


class Teas(BaseModel):
    teas: list[str]


def test_a_response_has_the_form_that_is_demanded(serve: Serve) -> None:
    with (
        serve(scripted("Assam", '{"teas": ["Assam"]}')) as served,
        OpenAI(base_url=f"{served.url}/v1", api_key=OTHER) as client,
    ):
        made = client.responses.parse(model="plain", input="all teas", text_format=Teas)
        kept = client.responses.retrieve(made.id)
    assert made.output_parsed == Teas(teas=["Assam"])
    assert kept.to_dict()["text"] == made.to_dict()["text"]
    assert '"json_schema"' in made.to_json(indent=None)


def test_a_response_that_fails_is_an_error_whole_and_streamed(client: OpenAI) -> None:
    with pytest.raises(openai.InternalServerError):
        client.with_options(max_retries=0).responses.create(model="fails", input="x")
    events = list(client.responses.create(model="fails", input="x", stream=True))
    assert [event.type for event in events[-2:]] == ["error", "response.failed"]


def test_an_answer_that_breaks_off_is_an_error_and_no_whole_answer(serve: Serve) -> None:
    broken = {"text": "Two min", "error": {"code": "truncated", "message": "gone", "after": 3}}
    question: Any = [{"role": "user", "content": "x"}]
    with (
        serve(scripted(*[broken] * 4)) as served,
        OpenAI(base_url=f"{served.url}/v1", api_key=OTHER) as client,
    ):
        with pytest.raises(openai.InternalServerError, match="incomplete") as whole:
            client.chat.completions.create(model="plain", messages=question)
        assert whole.value.code == "model_truncated"
        with pytest.raises(openai.InternalServerError, match="incomplete"):
            client.responses.create(model="plain", input="x")
        with pytest.raises(openai.APIError, match="incomplete"):
            list(client.chat.completions.create(model="plain", messages=question, stream=True))
        *_, last = client.responses.create(model="plain", input="x", stream=True)
        assert last.type == "response.failed"
        assert last.response.output_text == "Two"
        kept = client.responses.retrieve(last.response.id)
        assert (kept.status, kept.output_text) == ("failed", "Two")


def test_a_response_under_way_is_cancelled(client: OpenAI) -> None:
    with client.responses.create(model="late", input="x", stream=True) as stream:
        first = next(iter(stream))
        assert first.type == "response.created"
        id = first.response.id
        assert client.responses.cancel(id).status == "cancelled"
        *_, last = stream
        # OpenAI's SDKs know no event of a cancelled response.
        assert last.type == "response.failed"
        assert last.response.status == "cancelled"
        assert client.responses.retrieve(id).status == "cancelled"


def test_the_chat_of_a_cancelled_response_is_free(serve: Serve) -> None:
    files = scripted({"text": "Never", "delay_ms": 3_600_000})
    with (
        serve(files) as served,
        OpenAI(base_url=f"{served.url}/v1", api_key=LOCAL) as client,
    ):
        with client.responses.create(model="plain", input="How long?", stream=True) as stream:
            first = next(iter(stream))
            assert first.type == "response.created"
            assert client.responses.cancel(first.response.id).status == "cancelled"
        with served.client() as reader:
            [chat] = reader.get("/api/chats").json()["chats"]
            asked = reader.post(f"/api/chats/{chat['id']}/turns", json={"text": "And now?"})
        assert asked.status_code == 200


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": {"a": 5}}, "input"),
        ({"input": ["x"]}, "input[0]"),
        ({"input": [{"role": "user", "content": 5}]}, "input[0].content"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"instructions": "Be brief.", "input": [{"role": "x", "content": "y"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": "x"}, {"role": "user"}]}, "input[1].content"),
        ({"input": [{"type": "function_call_output", "call_id": "c"}]}, "input[0].output"),
        ({"input": [{"type": "function_call", "call_id": "c"}]}, "input[0].name"),
        ({"text": {"format": {"type": "grammar"}}}, "text.format.type"),
        ({"tools": [{"type": "function", "name": "not a name"}]}, "tools[0].name"),
        ({"metadata": {"x": "y" * 17_000}}, "metadata"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0].id"),
        ({"input": [{"type": "message", "role": "user", "content": [{"type": "x"}]}]}, None),
        (
            {"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]},
            "input[0].call_id",
        ),
        (
            {"input": [{"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"}]},
            "input[0]",
        ),
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"text": {"format": {"type": "json_schema", "schema": {"$ref": "#"}}}}, None),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_file", "file_data": "%%%"}]}]},
            "input",
        ),
        ({"input": [{}]}, None),
        ({"input": [{"type": ["x"]}]}, "input[0].type"),
    ],
)
def test_a_request_that_cannot_be_answered_is_refused(
    served: Served, body: dict[str, Any], param: str | None
) -> None:
    with served.client() as client:
        answer = client.post("/v1/responses", json={"model": "tea", "input": "x", **body})
    assert answer.status_code == 400
    assert param is None or answer.json()["error"]["param"] == param


def test_what_only_tunes_a_response_is_named(client: OpenAI) -> None:
    raw = client.responses.with_raw_response.create(
        model="tea", input="all teas", text={"verbosity": "low"}, parallel_tool_calls=False
    )
    ignored = raw.headers["x-groundhook-ignored"].split(", ")
    assert sorted(ignored) == ["parallel_tool_calls", "text.verbosity"]


@pytest.mark.parametrize("id", ["resp_none", "none", "resp_"])
def test_an_unknown_response_is_not_found(served: Served, id: str) -> None:
    with served.client() as client:
        for read in (
            client.get(f"/v1/responses/{id}"),
            client.post(f"/v1/responses/{id}/cancel"),
        ):
            assert (read.status_code, read.json()["error"]["code"]) == (404, "response_not_found")
        asked = {"model": "tea", "input": "x", "previous_response_id": id}
        answer = client.post("/v1/responses", json=asked)
        code = answer.json()["error"]["code"]
        assert (answer.status_code, code) == (400, "previous_response_not_found")


def test_items_of_a_kept_response_are_named_in_later_inputs_of_their_owner(serve: Serve) -> None:
    script = ["Two minutes.", {"text": "Four.", "expect": "Two minutes."}, "Five."]
    with (
        serve(scripted(*script)) as served,
        OpenAI(base_url=f"{served.url}/v1", api_key=LOCAL) as client,
        OpenAI(base_url=f"{served.url}/v1", api_key=OTHER) as other,
    ):
        history: Any = [{"role": "user", "content": "How long?"}]
        for question in ("And black tea?", "And white tea?"):
            made = client.responses.create(model="plain", input=history)
            history += [{"type": "item_reference", "id": made.output[0].to_dict()["id"]}]
            history += [{"role": "user", "content": question}]
        assert client.responses.create(model="plain", input=history).output_text == "Five."
        unknown: Any = [{"type": "item_reference", "id": "msg_none"}, *history[-1:]]
        for bad in (history, unknown):
            with pytest.raises(openai.BadRequestError, match="is kept"):
                other.responses.create(model="plain", input=bad)
        # Half of a history: a result without its call, and a call without its result.
        call: Any = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"}
        result: Any = {"type": "function_call_output", "call_id": "c1", "output": "wet"}
        for half in ([result], [history[0], result], [history[0], call], [history[0], call, call]):
            with pytest.raises(openai.BadRequestError):
                client.responses.create(model="plain", input=half, tools=[WEATHER])
