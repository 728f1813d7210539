"""Steps that a language model does by itself: `connector:<id>` in `uses.*`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from groundhook import open_host
from groundhook.core.types.uses import KEYWORD, USES
from tests.conftest import MakeApp
from tests.delegation.conftest import QUESTION, Turn
from tests.loopback.chat import chunk
from tests.loopback.server import Sse, serving
from tests.parts.turns import app_with, end, kb, of, run

GOOD = {"keywords": [{"k": "red pens", "w": 0.9}, {"k": "cheap", "w": 0.4}]}
PAIRS = [("red pens", 0.9), ("cheap", 0.4)]


async def test_a_model_does_a_step_without_an_assistant(turn: Turn) -> None:
    turned = await turn("connector:kw", model=[f"Here: {json.dumps(GOOD)}"])
    assert turned.source.keywords == PAIRS
    assert turned.warnings == []
    system, user = turned.models["kw"].calls[0].messages
    assert (system.role, system.text) == ("system", f"{KEYWORD.task} {KEYWORD.reply}")
    assert json.loads(user.text) == {
        "query": QUESTION,
        "content": QUESTION,
        "max_keywords": 2,
        "language": "auto",
    }
    assert turned.models["kw"].calls[0].reply == KEYWORD.json_reply
    assert end(turned.events).content == "Fine."


async def test_a_wrong_answer_goes_back_to_the_model_with_its_problem(turn: Turn) -> None:
    turned = await turn("connector:kw", model=["I would rather not.", json.dumps(GOOD)])
    assert turned.source.keywords == PAIRS
    again = turned.models["kw"].calls[1].messages
    assert [each.role for each in again] == ["system", "user", "assistant", "user"]
    assert again[2].text == "I would rather not."
    assert "there is no JSON in it" in again[3].text


async def test_a_call_of_a_model_is_in_the_trace_below_its_step(turn: Turn) -> None:
    turned = await turn("connector:kw", model=[json.dumps(GOOD)])
    delegate = turned.node("delegate")
    models = [node for node in turned.nodes.values() if node.type == "model"]
    (below,) = [node for node in models if node.parent == delegate.id]
    assert delegate.label == "connector:kw"
    assert below.data["characters"] == len(json.dumps(GOOD))
    assert "total_tokens" in below.data


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ({"error": {"code": "unreachable", "message": "nobody there"}}, "nobody there"),
        ({"cut": True, "text": '{"keywords": ['}, "before it was complete"),
        (
            {"text": '{"keywords": [{"k": "red', "finish_reason": "length"},
            "the step has 400 tokens",
        ),
        ({"text": json.dumps({"query": QUESTION, "max_keywords": 2})}, "repeats the request"),
    ],
    ids=["down", "ends-early", "token-limit", "echo"],
)
async def test_a_model_that_fails_costs_a_warning_and_no_turn(
    turn: Turn, reply: dict[str, Any], why: str
) -> None:
    turned = await turn("connector:kw", model=[reply, reply])
    assert not turned.source.answers
    assert any(why in each for each in turned.warnings), turned.warnings
    assert end(turned.events).content == "Fine."


async def test_an_unknown_model_is_named_with_the_nearest_one(turn: Turn) -> None:
    turned = await turn("connector:kww", files={"connectors/kw.conn.yao": '{"type": "scripted"}'})
    (warning,) = turned.warnings
    assert "keyword by 'connector:kww' failed" in warning
    assert "kww" in warning


async def test_a_model_of_the_assistants_own_folder_does_the_step(make_app: MakeApp) -> None:
    own = json.dumps({"type": "scripted", "options": {"script": ['{"query": "oil?"}']}})
    package = {
        "name": "A",
        "connector": "script",
        "search": {"kb": True},
        "kb": {"collections": ["docs"]},
        "uses": {"rewrite": "connector:mine"},
    }
    app = app_with(make_app, json.dumps(package), connectors__mine_conn_yao=own)
    messages = [
        {"role": "user", "content": "Which oil does a chain need?"},
        {"role": "assistant", "content": "A thin one."},
        {"role": "user", "content": "And which of them is thin?"},
    ]
    events = await run(app, messages)
    assert {event.query for event in of(events, "search_start")} == {"oil?"}


async def test_a_model_orders_what_was_found(make_app: MakeApp) -> None:
    package = json.loads(
        '{"name": "A", "connector": "script", "search": {"kb": true},'
        ' "kb": {"collections": ["docs"]}, "uses": {"rerank": "connector:script"}}'
    )
    events = await run(
        app_with(make_app, json.dumps(package)),
        script=['{"order": [1, 0]}', "Fine. {ref:0}"],
        sources={"kb": kb()},
    )
    assert not of(events, "warning")
    (cited,) = of(events, "citation_seen") or of(events, "citation")
    assert "k2" in str(cited)


async def test_the_endpoint_gets_the_schema_of_the_answer(make_app: MakeApp) -> None:
    with serving() as model:
        texts: list[Any] = [chunk({"content": json.dumps({"order": [0]})}), chunk(finish="stop")]
        model.on("/v1/chat/completions", Sse([*texts, "[DONE]"]))
        options = {"model": "m", "host": f"{model.url}/v1", "retries": 0}
        package = {
            "name": "A",
            "connector": "script",
            "search": {"kb": True, "rerank": {"timeout_ms": 60_000}},
            "kb": {"collections": ["docs"]},
            "uses": {"rerank": "connector:gpt"},
        }
        app = app_with(
            make_app,
            json.dumps(package),
            connectors__gpt_conn_yao=json.dumps({"type": "openai", "options": options}),
        )
        await run(app, sources={"kb": kb()})
        (sent,) = [request.json for request in model.requests]
    assert sent["response_format"]["json_schema"]["name"] == "rerank"
    assert sent["temperature"] == 0


@pytest.mark.parametrize("step", ["rewrite", "title", "keyword", "query", "rerank", "verify"])
async def test_check_knows_the_models_of_every_step(make_app: MakeApp, step: str) -> None:
    def app(name: str) -> Any:
        package = json.dumps({"name": "A", "uses": {step: f"connector:{name}"}})
        model = {"type": "scripted", "options": {"script": ["{}"]}}
        return make_app(
            {"assistants/a/package.yao": package, "connectors/small.conn.yao": json.dumps(model)}
        )

    async with open_host(app("small"), environment={}) as host:
        assert [str(each) for each in await host.check()] == []
    async with open_host(app("smal"), environment={}) as host:
        (problem,) = await host.check()
        assert "no connector 'smal'" in problem.message
        assert "small" in problem.hint
    async with open_host(app("extractive"), environment={}) as host:
        (problem,) = await host.check()
        assert f"'uses.{step}': the connector 'extractive' is no language model" in problem.message


async def test_no_model_searches_the_web_alone(make_app: MakeApp) -> None:
    package = '{"name": "A", "search": {"web": true}, "uses": {"web": "connector:extractive"}}'
    async with open_host(make_app({"assistants/a/package.yao": package}), environment={}) as host:
        (problem,) = [each for each in await host.check() if each.severity == "error"]
        assert "a language model alone cannot search the web" in problem.message
        result = await host.search({"type": "web", "query": "x"}, assistant="a")
    assert result.error is not None
    assert "a language model alone cannot do this step" in result.error


def test_every_step_but_those_on_the_web_can_be_done_by_a_model() -> None:
    assert [use.name for use in USES if not use.task] == ["web", "fetch"]
