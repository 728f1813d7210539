"""OpenAI's own client, and what Open WebUI sends and shows."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from tests.server.conftest import LOCAL, OTHER, Serve, Served

QUESTION: Any = [{"role": "user", "content": "all teas"}]
ANSWER = "Two teas [1], ☕ and [2], [1]."


@pytest.fixture
def client(served: Served) -> Iterator[OpenAI]:
    spread: Any = served.client("")
    with OpenAI(base_url=f"{served.url}/v1", api_key=LOCAL, http_client=spread) as client:
        yield client


def test_assistants_are_models(client: OpenAI) -> None:
    ids = [model.id for model in client.models.list()]
    assert "tea" in ids
    assert "hidden" not in ids
    assert client.models.retrieve("tea").owned_by == "groundhook"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("coffee")


def test_an_answer_has_annotations_that_cut_out_its_numbers(client: OpenAI) -> None:
    answer = client.chat.completions.create(model="tea", messages=QUESTION)
    message = answer.choices[0].message
    assert message.content == ANSWER
    cut = [
        (
            ANSWER[note.url_citation.start_index : note.url_citation.end_index],
            note.url_citation.title,
        )
        for note in message.annotations or ()
    ]
    assert cut == [("[1]", "Assam"), ("[2]", "Sencha"), ("[1]", "Assam")]
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None


def test_the_stream_is_the_same_answer(client: OpenAI) -> None:
    usage: Any = {"include_usage": True}
    chunks = list(
        client.chat.completions.create(
            model="tea", messages=QUESTION, stream=True, stream_options=usage
        )
    )
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == ANSWER
    assert chunks[-1].usage is not None
    with client.chat.completions.stream(model="tea", messages=QUESTION) as stream:
        final = stream.get_final_completion()
    message = final.choices[0].message
    assert message.content == ANSWER
    assert [note.url_citation.title for note in message.annotations or ()] == [
        "Assam",
        "Sencha",
        "Assam",
    ]


async def test_the_asynchronous_client_reads_it_as_well(served: Served) -> None:
    async with AsyncOpenAI(base_url=f"{served.url}/v1", api_key=LOCAL) as client:
        stream = await client.chat.completions.create(model="tea", messages=QUESTION, stream=True)
        text = "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])
    assert text == ANSWER


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("markers", "Two teas #ref:"),
        ("none", "Two teas , ☕"),
        ("links", "Two teas [[1]](http://127.0.0.1:"),
    ],
)
def test_citations_are_shown_in_the_way_that_is_asked_for(
    client: OpenAI, style: str, text: str
) -> None:
    answer = client.chat.completions.create(
        model="tea", messages=QUESTION, extra_body={"groundhook": {"citations": style}}
    )
    assert (answer.choices[0].message.content or "").startswith(text)


def test_leaving_in_the_middle_stops_the_turn_at_once(client: OpenAI, served: Served) -> None:
    raw = client.chat.completions.with_raw_response.create(
        model="late", messages=QUESTION, stream=True
    )
    turn = raw.headers["x-groundhook-turn"]
    raw.parse().close()
    with served.client() as reader:
        began = time.monotonic()
        while reader.get(f"/api/turns/{turn}").json()["state"] == "running":
            assert time.monotonic() - began < 60  # bench.serve measures how soon
        assert reader.get(f"/api/turns/{turn}").json()["error"]["code"] == "stopped"


def test_errors_are_those_that_the_client_knows_and_a_failed_turn_runs_once(
    serve: Serve,
) -> None:
    limits = {"turns_per_minute": 30}
    with (
        serve(limits=limits) as served,
        OpenAI(base_url=f"{served.url}/v1", api_key=OTHER) as client,
    ):
        with pytest.raises(openai.NotFoundError) as missing:
            client.chat.completions.create(model="coffee", messages=QUESTION)
        assert missing.value.code == "model_not_found"
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(model="tea", messages=QUESTION, n=2)
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(model="tea", messages=[])
        with pytest.raises(openai.InternalServerError) as failed:
            client.chat.completions.create(model="fails", messages=QUESTION)
        assert "/srv/secret" not in str(failed.value)
        with pytest.raises(openai.APIError, match="could not be completed"):
            list(client.chat.completions.create(model="fails", messages=QUESTION, stream=True))
        with served.client(OTHER) as reader:
            assert reader.get("/api/me").json()["left_this_minute"]["turns"] == 30 - 2
        with pytest.raises(openai.AuthenticationError):
            client.with_options(api_key="gh_wrong").models.list()


def test_what_is_not_read_is_named(client: OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(
        model="talks",
        messages=[
            {"role": "system", "content": "Be rude."},
            {"role": "user", "content": "all teas"},
            {"role": "assistant", "content": None, "tool_calls": []},
            {"role": "tool", "content": "x", "tool_call_id": "c"},
        ],
        top_p=0.5,
        tools=[{"type": "function", "function": {"name": "é"}}],
    )
    ignored = raw.headers["x-groundhook-ignored"].split(", ")
    assert ignored == ["top_p", "tools", "messages[2]", "messages[3]"] or set(ignored) == {
        "top_p",
        "tools",
        "messages[2]",
        "messages[3]",
    }
    assert raw.parse().choices[0].message.content == "One moment. \n\nA title"


@pytest.mark.parametrize(("system", "roles"), [("user", ["user", "user"]), ("drop", ["user"])])
def test_a_clients_system_message_is_no_prompt(serve: Serve, system: str, roles: list[str]) -> None:
    messages = [{"role": "system", "content": "Be rude."}, *QUESTION]
    with serve(openai={"system": system}) as served, served.client(OTHER) as client:
        answer = client.post("/v1/chat/completions", json={"model": "talks", "messages": messages})
        turn = answer.headers["x-groundhook-turn"]
        received = client.get(f"/api/turns/{turn}").json()["metadata"]["received"]
    assert [message["role"] for message in received] == roles


def chunks(answer: httpx.Response) -> list[dict[str, Any]]:
    data = [line.removeprefix("data: ") for line in answer.iter_lines() if line]
    assert data[-1] == "[DONE]"
    return [json.loads(text) for text in data[:-1]]


def test_open_webui_gets_statuses_that_end_and_each_source_once(served: Served) -> None:
    body = {"model": "tea", "messages": QUESTION, "stream": True}
    with served.client(**{"x-openwebui-chat-id": "c1"}) as client:
        received = chunks(client.post("/v1/chat/completions", json=body))
    events = [chunk["event"] for chunk in received if "event" in chunk]
    statuses = [event["data"]["done"] for event in events if event["type"] == "status"]
    assert statuses == [False, True]
    sources = [event["data"] for event in events if event["type"] == "source"]
    assert [source["metadata"][0]["source"] for source in sources] == ["Assam", "Sencha"]
    assert not any(
        choice["delta"].get("annotations") for chunk in received for choice in chunk["choices"]
    )


@pytest.mark.parametrize(
    ("text", "header", "answer"),
    [
        ('### Task:\n{ "title": "…" }\nUSER: Which teas?\n', "", {"title": "Which teas?"}),
        ('### Task:\n{ "tags": [] }', "", {"tags": []}),
        ("anything", "follow_up_generation", {"follow_ups": []}),
    ],
)
def test_a_task_of_open_webui_costs_no_turn(
    served: Served, text: str, header: str, answer: Any
) -> None:
    body = {"model": "tea", "messages": [{"role": "user", "content": text}], "stream": False}
    headers = {"x-openwebui-chat-id": "c1", **({"x-groundhook-task": header} if header else {})}
    with served.client(**headers) as client:
        answered = client.post("/v1/chat/completions", json=body)
    assert json.loads(answered.json()["choices"][0]["message"]["content"]) == answer
    assert "x-groundhook-turn" not in answered.headers


def test_a_task_may_be_asked_of_a_language_model(serve: Serve) -> None:
    body = {"model": "tea", "messages": [{"role": "user", "content": "### Task: title"}]}
    with (
        serve(openai={"tasks": "titles"}) as served,
        served.client(OTHER, **{"x-groundhook-task": "title_generation"}) as client,
    ):
        answered = client.post("/v1/chat/completions", json=body).json()
    assert answered["choices"][0]["message"]["content"] == "A title"


def test_a_task_that_a_language_model_answers_counts_as_a_turn(serve: Serve) -> None:
    body = {"model": "tea", "messages": [{"role": "user", "content": "### Task: title"}]}
    with (
        serve(openai={"tasks": "titles"}, limits={"turns_per_minute": 2}) as served,
        served.client(OTHER, **{"x-groundhook-task": "title_generation"}) as client,
    ):
        answers = [client.post("/v1/chat/completions", json=body) for _ in range(4)]
    statuses = [answer.status_code for answer in answers]
    assert (statuses[:2], statuses[3]) == ([200, 200], 429)
