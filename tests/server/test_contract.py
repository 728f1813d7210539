"""What a client demands of an answer is kept or refused: tools of its own, JSON, texts that end
it. OpenAI's own client asks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest
from openai import OpenAI
from pydantic import BaseModel

from tests.loopback.chat import answer as answered
from tests.loopback.server import Sse
from tests.loopback.server import serving as endpoint
from tests.server.conftest import OTHER, Serve

QUESTION: Any = [{"role": "user", "content": "all teas"}]
SCHEMA = {
    "type": "object",
    "properties": {"teas": {"type": "array", "items": {"type": "string"}}},
    "required": ["teas"],
    "additionalProperties": False,
}
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    },
}


def script(*entries: Any) -> str:
    options = {"script": [*entries]}
    return json.dumps({"label": "Script", "type": "scripted", "options": options})


@pytest.fixture
def asking(serve: Serve) -> Any:
    def ask(*entries: Any) -> Iterator[OpenAI]:
        files = {
            "connectors/script.conn.yao": script(*entries),
            "assistants/plain/package.yao": '{ "name": "Plain", "connector": "script" }',
        }
        with (
            serve(files) as served,
            OpenAI(base_url=f"{served.url}/v1", api_key=OTHER, max_retries=0) as client,
        ):
            yield client

    return contextmanager(ask)


class Teas(BaseModel):
    teas: list[str]


def test_an_answer_in_words_is_repaired_once(asking: Any) -> None:
    wrong = {"text": 'Here: {"teas": "Assam"}'}
    right = {"text": '```json\n{"teas": ["Assam"]}\n```', "expect": "teas: 'Assam' is not"}
    with asking(wrong, right) as client:
        parsed = client.chat.completions.parse(
            model="plain", messages=QUESTION, response_format=Teas
        )
    assert parsed.choices[0].message.parsed == Teas(teas=["Assam"])


def test_an_answer_that_stays_wrong_is_an_error_with_the_path(asking: Any) -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "teas", "schema": SCHEMA}}
    with (
        asking({"text": '{"teas": [1]}', "times": 0}) as client,
        pytest.raises(openai.UnprocessableEntityError, match=r"teas\[0\]: 1 is not") as wrong,
    ):
        client.chat.completions.create(model="plain", messages=QUESTION, response_format=form)
    assert wrong.value.code == "contract_broken"


def test_an_answer_that_lacks_a_key_names_the_demand_and_no_path(asking: Any) -> None:
    chat: Any = {"type": "json_schema", "json_schema": {"name": "teas", "schema": SCHEMA}}
    response: Any = {"format": {"type": "json_schema", "name": "teas", "schema": SCHEMA}}
    words = "the answer does not have the demanded form: 'teas' is a required property"
    with asking({"text": "{}", "times": 0}) as client:
        with pytest.raises(openai.UnprocessableEntityError) as wrong:
            client.chat.completions.create(model="plain", messages=QUESTION, response_format=chat)
        assert (wrong.value.param, wrong.value.response.json()["error"]["message"]) == (
            "response_format",
            words,
        )
        with pytest.raises(openai.UnprocessableEntityError) as wrong:
            client.responses.create(model="plain", input="all teas", text=response)
        assert (wrong.value.param, wrong.value.response.json()["error"]["message"]) == (
            "text.format",
            words,
        )


def test_the_endpoint_gets_the_schema_as_the_client_sent_it(serve: Serve) -> None:
    whole: Any = {"name": "teas", "description": "Teas", "schema": SCHEMA, "strict": True}
    plain: Any = {"name": "teas", "schema": SCHEMA}
    with endpoint() as model:
        model.on("/v1/chat/completions", Sse(answered('{"teas": []}')))
        options = {"model": "m", "host": f"{model.url}/v1", "retries": 0}
        files = {
            "connectors/own.conn.yao": json.dumps({"type": "openai", "options": options}),
            "assistants/plain/package.yao": '{ "name": "Plain", "connector": "own" }',
        }
        with (
            serve(files) as served,
            OpenAI(base_url=f"{served.url}/v1", api_key=OTHER, max_retries=0) as client,
        ):
            for form in (whole, plain):
                response: Any = {"format": {"type": "json_schema", **form}}
                client.chat.completions.create(
                    model="plain",
                    messages=QUESTION,
                    response_format={"type": "json_schema", "json_schema": form},
                )
                client.responses.create(model="plain", input="all teas", text=response)
        sent = [request.json["response_format"]["json_schema"] for request in model.requests]
    assert sent == [whole, whole, plain, plain]


def test_patterns_and_names_that_no_keyword_knows_are_checked(asking: Any) -> None:
    schema = {
        "type": "object",
        "properties": {"code": {"type": "string", "pattern": r"^\d{2}$"}},
        "patternProperties": {"^x-": {"type": "integer"}},
        "unevaluatedProperties": False,
    }
    form: Any = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    wrong = '{"code": "7", "x-a": "1", "other": 1}'
    with asking({"text": wrong, "times": 2}, {"text": '{"code": "07", "x-a": 1}', "times": 0}) as (
        client
    ):
        with pytest.raises(openai.UnprocessableEntityError) as broken:
            client.chat.completions.create(model="plain", messages=QUESTION, response_format=form)
        for part in ("code: '7' does not match", "x-a: '1' is not", "not allowed: 'other'"):
            assert part in broken.value.message
        raw = client.chat.completions.with_raw_response.create(
            model="plain", messages=QUESTION, response_format=form
        )
    assert "x-groundhook-ignored" not in raw.headers


def test_what_is_not_checked_of_a_schema_is_named(asking: Any) -> None:
    names = {"type": "string", "pattern": "^(?=x)", "format": "uri"}
    schema = {"properties": {"a": names, "pattern": {"type": "string"}}, "type": "object"}
    form: Any = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    with asking({"text": '{"a": "x"}', "times": 0}) as client:
        raw = client.chat.completions.with_raw_response.create(
            model="plain", messages=QUESTION, response_format=form
        )
        assert (
            raw.headers["x-groundhook-ignored"]
            == "response_format: format, response_format: pattern"
        )
        raw = client.responses.with_raw_response.create(
            model="plain",
            input="all teas",
            text={"format": {"type": "json_schema", "name": "a", "schema": schema}},
        )
        assert raw.headers["x-groundhook-ignored"] == "text.format: format, text.format: pattern"


def test_a_response_without_a_demanded_call_is_an_error(asking: Any) -> None:
    tool: Any = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
    with (
        asking({"text": "It rains.", "times": 0}) as client,
        pytest.raises(openai.UnprocessableEntityError) as wrong,
    ):
        client.responses.create(
            model="plain", input="all teas", tools=[tool], tool_choice="required"
        )
    assert (wrong.value.code, wrong.value.param) == ("contract_broken", "tool_choice")


def test_a_list_of_one_number_is_no_citation(asking: Any) -> None:
    answer = '{"ids": [1], "of": [[2]]}'
    form: Any = {"type": "json_object"}
    with asking({"text": answer, "times": 0}) as client:
        whole = client.chat.completions.create(
            model="plain", messages=QUESTION, response_format=form
        )
        pieces = client.chat.completions.create(
            model="plain", messages=QUESTION, response_format=form, stream=True
        )
        streamed = "".join(each.choices[0].delta.content or "" for each in pieces if each.choices)
        made = client.responses.create(
            model="plain", input="all teas", text={"format": {"type": "json_object"}}
        )
        read = client.responses.retrieve(made.id)
    for text in (whole.choices[0].message.content, streamed, made.output_text, read.output_text):
        assert json.loads(text or "") == {"ids": [1], "of": [[2]]}


def test_any_object_is_json(asking: Any) -> None:
    form: Any = {"type": "json_object"}
    with asking("No idea", '{"a": 1}') as client:
        answer = client.chat.completions.create(
            model="plain", messages=QUESTION, response_format=form
        )
    assert json.loads(answer.choices[0].message.content or "") == {"a": 1}


def test_a_call_of_the_clients_tool_ends_the_turn_and_its_result_continues_it(
    asking: Any,
) -> None:
    call = {"tool_calls": [{"name": "weather", "arguments": {"place": "Assam"}, "id": "c1"}]}
    with asking(call, {"text": "It rains.", "expect": "wet"}) as client:
        first = client.chat.completions.create(
            model="plain", messages=QUESTION, tools=[WEATHER], tool_choice="required"
        )
        choice = first.choices[0]
        assert choice.finish_reason == "tool_calls"
        [called] = choice.message.tool_calls or []
        assert called.type == "function"
        assert json.loads(called.function.arguments) == {"place": "Assam"}
        history: Any = [
            *QUESTION,
            choice.message.to_dict(),
            {"role": "tool", "tool_call_id": called.id, "content": "wet"},
        ]
        last = client.chat.completions.create(model="plain", messages=history, tools=[WEATHER])
    assert last.choices[0].message.content == "It rains."


def test_a_stream_has_the_call_of_the_clients_tool(asking: Any) -> None:
    call = {"tool_calls": [{"name": "weather", "arguments": {"place": "Assam"}}], "times": 0}
    with (
        asking(call) as client,
        client.chat.completions.stream(model="plain", messages=QUESTION, tools=[WEATHER]) as stream,
    ):
        final = stream.get_final_completion()
    [called] = final.choices[0].message.tool_calls or []
    assert called.function.name == "weather"


def test_a_call_that_is_demanded_and_not_made_is_an_error(asking: Any) -> None:
    body: Any = {"messages": QUESTION, "tools": [WEATHER], "tool_choice": "required"}
    with asking({"text": "No.", "times": 0}) as client:
        with pytest.raises(openai.APIError, match="called no tool"):
            list(client.chat.completions.create(model="plain", **body, stream=True))
        with pytest.raises(openai.UnprocessableEntityError, match="called no tool"):
            client.chat.completions.create(model="plain", **body)


@pytest.mark.parametrize("stop", ["END", ["zzz", "END"]])
def test_a_text_ends_the_answer_whatever_the_model_does(asking: Any, stop: Any) -> None:
    with asking({"text": "Two minutes. END And more.", "times": 0}) as client:
        answer = client.chat.completions.create(model="plain", messages=QUESTION, stop=stop)
    assert answer.choices[0].message.content == "Two minutes. "
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.prompt_tokens > 0
    assert answer.usage.completion_tokens > 3


def test_a_tool_with_the_name_of_one_of_the_assistant_is_refused(serve: Serve) -> None:
    files = {
        "connectors/script.conn.yao": script({"text": "No.", "times": 0}),
        "mcps/teas.mcp.yao": json.dumps(
            {"transport": "process", "label": "Teas", "tools": {"one": "models.tea.Find"}}
        ),
        "assistants/plain/package.yao": json.dumps(
            {"name": "Plain", "connector": "script", "mcp": {"servers": ["teas"]}}
        ),
    }
    mine: Any = {**WEATHER, "function": {**WEATHER["function"], "name": "teas__one"}}
    with (
        serve(files) as served,
        OpenAI(base_url=f"{served.url}/v1", api_key=OTHER, max_retries=0) as client,
    ):
        asked: Any = {"model": "plain", "messages": QUESTION}
        with pytest.raises(openai.UnprocessableEntityError, match=r"tools: .*'teas__one'") as taken:
            client.chat.completions.create(**asked, tools=[mine])
        with pytest.raises(openai.APIError, match=r"tools: .*'teas__one'"):
            list(client.chat.completions.create(**asked, tools=[mine], stream=True))
        assert taken.value.param == "tools"
        answer = client.chat.completions.create(**asked, tools=[WEATHER])
    assert answer.choices[0].message.content == "No."


CALLED = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function"}]}
WHOLE = {**CALLED, "tool_calls": [{"id": "c1", "function": {"name": "weather", "arguments": ""}}]}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"stop": [1]}, "stop[0]"),
        ({"stop": ["x"] * 17}, "stop"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [WEATHER, WEATHER]}, "tools[1].function.name"),
        ({"tools": [WEATHER], "tool_choice": {"function": {"name": "x"}}}, "tool_choice"),
        ({"tools": [WEATHER] * 200}, "tools"),
        ({"response_format": {"type": "grammar"}}, "response_format.type"),
        ({"n": 0}, "n"),
        ({"n": 2}, "n"),
        ({"modalities": ["text", "audio"], "audio": {"voice": "x"}}, "modalities"),
        ({"audio": {"voice": "x"}}, "audio"),
        ({"functions": [WEATHER["function"]]}, "functions"),
        ({"functions": []}, "functions"),
        ({"function_call": {"name": "weather"}}, "function_call"),
        ({"function_call": "auto"}, "function_call"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [*QUESTION, WHOLE]}, "messages[1].tool_calls[0]"),
        ({"messages": [*QUESTION, CALLED]}, "messages[1].tool_calls[0]"),
        (
            {"messages": [*QUESTION, {"role": "tool", "tool_call_id": "c", "content": "x"}]},
            "messages[1].tool_call_id",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_path(
    served: Any, body: dict[str, Any], param: str
) -> None:
    with served.client() as client:
        answer = client.post(
            "/v1/chat/completions", json={"model": "tea", "messages": QUESTION, **body}
        )
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "#"}, "refers to itself without end: '#'"),
        ({"$ref": "#/$defs/nix"}, "refers to a part that it does not have: '#/$defs/nix'"),
        (
            {"properties": {"x": {"items": {"$ref": "#/properties/x/items"}}}},
            "json_schema.schema: refers to itself without end: '#/properties/x/items'",
        ),
        ({"$ref": "https://evil.example/schema"}, "refers to another document"),
        ({"type": "nonsense"}, "not a valid JSON Schema"),
        ({"type": "object", "description": "x" * 40_000}, "at most 32 kB"),
        ([], "should be a JSON Schema"),
    ],
)
def test_a_schema_that_cannot_be_checked_is_refused(served: Any, schema: Any, words: str) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    with served.client() as client:
        answer = client.post(
            "/v1/chat/completions",
            json={"model": "tea", "messages": QUESTION, "response_format": form},
        )
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


def test_a_schema_that_refers_to_itself_is_checked_or_refused_in_bounded_time(asking: Any) -> None:
    tree = {
        "type": "object",
        "properties": {"under": {"type": "array", "items": {"$ref": "#"}}},
        "additionalProperties": False,
    }
    form: Any = {"type": "json_schema", "json_schema": {"name": "tree", "schema": tree}}
    with asking({"text": '{"under": [{"under": []}]}'}, {"text": "{}", "times": 0}) as client:
        made = client.chat.completions.create(
            model="plain", messages=QUESTION, response_format=form
        )
        assert made.choices[0].message.content == '{"under": [{"under": []}]}'
        for schema in ({"$ref": "#"}, {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}):
            form["json_schema"]["schema"] = schema
            with pytest.raises(openai.APIStatusError) as refused:
                client.chat.completions.create(
                    model="plain", messages=QUESTION, response_format=form
                )
            assert refused.value.status_code in (400, 422), schema
