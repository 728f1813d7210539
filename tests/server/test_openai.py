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
        assert (missing.value.code, missing.value.param) == ("model_not_found", "model")
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
            # More, where a minute of the counter has ended meanwhile.
            assert reader.get("/api/me").json()["left_this_minute"]["turns"] >= 30 - 2
        with pytest.raises(openai.AuthenticationError):
            client.with_options(api_key="gh_wrong").models.list()


def test_what_is_not_read_is_named(client: OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(
        model="talks",
        messages=[
            {"role": "system", "content": "Be rude."},
            {"role": "user", "content": "all teas"},
            {"role": "assistant", "content": None, "tool_calls": []},
        ],
        top_p=0.5,
        seed=1,
        logit_bias={"é": 1},
    )
    ignored = raw.headers["x-groundhook-ignored"].split(", ")
    assert set(ignored) == {"top_p", "seed", "logit_bias", "messages[2]"}
    assert raw.parse().choices[0].message.content == "One moment. \n\nA title"


@pytest.mark.parametrize("key", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
def test_a_limit_of_tokens_is_named_where_no_language_model_counts_them(
    serve: Serve, key: str
) -> None:
    path = "responses" if key == "max_output_tokens" else "chat/completions"
    asked = {"messages": QUESTION} if path != "responses" else {"input": "all teas"}
    quotes = {"assistants/quotes/package.yao": '{ "name": "Quotes" }'}
    with serve(quotes) as server, server.client() as client:
        without = client.post(f"/v1/{path}", json={"model": "quotes", key: 5, **asked})
        with_model = client.post(f"/v1/{path}", json={"model": "tea", key: 500, **asked})
    assert without.headers["x-groundhook-ignored"] == key
    assert without.json().get(key) is None  # a response does not repeat what was not read
    assert "x-groundhook-ignored" not in with_model.headers


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
    assert statuses == [False, True, True]
    counts = [event["data"]["count"] for event in events if "count" in event["data"]]
    assert counts == [2]  # of what the model was given
    sources = [event["data"] for event in events if event["type"] == "source"]
    assert [source["metadata"][0]["source"] for source in sources] == ["Assam", "Sencha"]
    assert not any(
        choice["delta"].get("annotations") for chunk in received for choice in chunk["choices"]
    )


@pytest.mark.parametrize(
    ("text", "header", "answer"),
    [
        ('### Task:\n{ "title": "…" }\nUSER: Which teas?\n', "", {"title": "Which teas?"}),
        ('### Task:\n{ "title": "…" }' + "\n" * 120_000 + "USER: Tea?", "", {"title": "Tea?"}),
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


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("as_parts", [False, True])
def test_a_question_about_documents_of_open_webui_is_searched_without_them(
    one_process: Served, stream: bool, as_parts: bool
) -> None:
    source = (
        '<source id="1" name="tea.md">A "title": Assam was sold out on </context> Monday.</source>'
    )
    text = (
        "### Task:\nRespond to the user query using the provided context, with citations [id].\n\n"
        f"### Output:\nCite.\n\n<context>\n{source}\n</context>\n\nall teas"
    )
    content = [{"type": "text", "text": text}] if as_parts else text
    body = {"model": "tea", "messages": [{"role": "user", "content": content}], "stream": stream}
    with one_process.client(**{"x-openwebui-chat-id": "c1"}) as client:
        turn = client.post("/v1/chat/completions", json=body).headers["x-groundhook-turn"]
        events = client.get(f"/api/turns/{turn}/events?trace=1").text
    assert '"query":"all teas"' in events.replace('": "', '":"')
    assert "Monday" in events
    assert "Respond to the user query" not in events


def test_a_placeholder_that_nothing_has_filled_is_no_task(served: Served) -> None:
    body = {"model": "tea", "messages": [{"role": "user", "content": "all teas"}]}
    with served.client(**{"x-groundhook-task": "{{TASK}}"}) as client:
        answered = client.post("/v1/chat/completions", json=body)
    assert answered.json()["choices"][0]["message"]["content"]
    assert "x-groundhook-turn" in answered.headers


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


def test_an_unknown_address_is_no_unknown_model(client: OpenAI, served: Served) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        client.files.list()
    assert missing.value.code == "unknown_url"
    assert "POST /v1/chat/completions" in missing.value.message
    with served.client() as other:
        answer = other.post("/chat/completions", json={})
    assert "did you mean /v1/chat/completions" in answer.json()["detail"]


def test_a_model_with_a_prefix_is_answered_with_the_one_that_was_meant(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="did you mean 'tea'") as missing:
        client.chat.completions.create(model="openai/tea", messages=QUESTION)
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.NotFoundError) as hidden:
        client.chat.completions.create(model="openai/hidden", messages=QUESTION)
    assert "did you mean" not in str(hidden.value)


def test_models_have_names_and_descriptions(served: Served) -> None:
    with served.client() as client:
        (tea,) = [m for m in client.get("/v1/models/").json()["data"] if m["id"] == "tea"]
        assert (tea["name"], tea["description"]) == ("Tea", "All about tea")
        assert client.get("/v1/models/tea").json() == tea


def test_an_error_names_the_part_of_the_request(client: OpenAI) -> None:
    messages: Any = [*QUESTION, {"role": "user", "content": None}]
    with pytest.raises(openai.BadRequestError) as wrong:
        client.chat.completions.create(model="tea", messages=messages)
    assert wrong.value.param == "messages[1].content"


def test_clients_can_read_whether_an_answer_cites_a_source(client: OpenAI) -> None:
    claims = {"cited": 1, "supported": 1, "doubtful": 0, "uncited": 0}
    claims |= {"verified": 0, "unsupported": 0}
    judged = {"grounded": True, "certainty": "sure", "claims": claims}
    whole = client.chat.completions.create(model="tea", messages=QUESTION)
    assert whole.to_dict()["groundhook"] == judged
    chunks = client.chat.completions.create(model="tea", messages=QUESTION, stream=True)
    *_, last = [chunk.to_dict() for chunk in chunks if chunk.choices]
    assert last["groundhook"] == judged


@pytest.mark.parametrize("form", ["float", "base64"])
def test_the_embedding_model_of_the_app_embeds_texts(client: OpenAI, form: Any) -> None:
    made = client.embeddings.create(model="default", input=["tea", "coffee"], encoding_format=form)
    one, two = [item.embedding for item in made.data]
    assert len(one) == len(two) > 100
    if form == "float":
        assert sum(a * a for a in one) == pytest.approx(1, abs=1e-3)
    with pytest.raises(openai.NotFoundError, match="default"):
        client.embeddings.create(model="text-embedding-3-small", input="tea")
    with pytest.raises(openai.BadRequestError, match="tokens are not accepted"):
        client.embeddings.create(model="default", input=[[1, 2, 3]])


def test_completions_without_a_chat_are_refused_with_what_to_use(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="use POST /v1/chat/completions"):
        client.completions.create(model="tea", prompt="all teas")


def test_browsers_may_send_the_headers_of_openais_and_mcps_clients(serve: Serve) -> None:
    headers = "authorization,x-stainless-lang,mcp-protocol-version,mcp-session-id"
    asked = {
        "origin": "https://shop.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": headers,
    }
    with serve(origins=["https://shop.example"]) as served, served.client("") as client:
        allowed = client.options("/v1/chat/completions", headers=asked)
        refused = client.options("/mcp", headers={**asked, "origin": "https://evil.example"})
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-headers"] == headers
    assert refused.status_code == 400


CHAT = "<chat_history>\nUSER: Which teas?\n</chat_history>\n"
EMOJI = "Your task is to reflect the speaker's likely facial expression through a fitting emoji."
MERGE = "You have been provided with a set of responses from various models to the latest user"
TOOLS = 'Available Tools: []\n\nReturn only JSON with a "tool_calls" array.'


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("before", "text", "answer"),
    [
        ("", f'### Task:\nA title.\n{CHAT}{{ "title": "…" }}', '{"title": "Which teas?"}'),
        ("Be kind.", f'### Task:\nTags.\n{CHAT}{{ "tags": [] }}', '{"tags": []}'),
        ("", f"{EMOJI}\n\nMessage: ```hi```", ""),
        ("", f'{MERGE} query: "x"', "Answers of several models are not merged here."),
        (TOOLS, "Query: which teas?", '{"tool_calls": []}'),
    ],
)
def test_a_task_is_recognised_by_its_prompts_on_any_connection(
    one_process: Served, before: str, text: str, answer: str, *, stream: bool
) -> None:
    system = [{"role": "system", "content": before}] if before else []
    messages = [*system, {"role": "user", "content": text}]
    body = {"model": "tea", "messages": messages, "stream": stream}
    with one_process.client() as client:
        answered = client.post("/v1/chat/completions", json=body)
    assert "x-groundhook-turn" not in answered.headers
    if stream:
        [chunk] = chunks(answered)
        assert chunk["choices"][0]["delta"]["content"] == answer
    else:
        assert answered.json()["choices"][0]["message"]["content"] == answer


@pytest.mark.parametrize("before", [[], [{"role": "assistant", "content": "Hello."}]])
def test_a_question_that_begins_like_a_task_is_a_question(
    one_process: Served, before: list[dict[str, str]]
) -> None:
    question = {"role": "user", "content": "### Task: all teas"}
    body = {"model": "tea", "messages": [*before, question], "stream": True}
    with one_process.client(**{"x-openwebui-chat-id": "c1"}) as client:
        assert "x-groundhook-turn" in client.post("/v1/chat/completions", json=body).headers
