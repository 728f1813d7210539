"""Steps that assistants and MCP tools do in place of the built-in: their requests, and
which answers count."""

from __future__ import annotations

import json
from typing import Any

import pytest

from groundhook import open_host
from groundhook.core.types.delegation import (
    KeywordAnswer,
    KeywordAsk,
    QueryAnswer,
    RerankAnswer,
    WebSearchAnswer,
)
from groundhook.core.types.events import Warned
from groundhook.core.types.turn import Identity
from groundhook.core.types.uses import KEYWORD
from tests.conftest import MakeApp
from tests.delegation.conftest import PROGRAM, QUESTION, AskingSource, Turn, requested
from tests.parts.turns import end, scripted

GOOD = {"keywords": [{"k": "red pens", "w": 0.9}, {"k": "cheap", "w": 0.4}]}
PAIRS = [("red pens", 0.9), ("cheap", 0.4)]


# ------------------------------------------------------------------------------------- an assistant


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOOD),
        f"Sure! Here you are:\n\n```json\n{json.dumps(GOOD, indent=2)}\n```\nAnything else?",
        f"Keywords: {json.dumps(GOOD)}.",
        json.dumps(GOOD["keywords"]),
        json.dumps({**GOOD, "thoughts": "hard to say"}),
        json.dumps(
            {"keywords": [{"keyword": "red pens", "weight": 0.9}, {"text": "cheap", "score": 0.4}]}
        ),
    ],
    ids=["json", "fence", "sentence", "list", "more-keys", "other-names"],
)
async def test_the_json_in_an_assistants_text_is_its_answer(turn: Turn, text: str) -> None:
    turned = await turn("kw", model=[text])
    assert turned.source.keywords == PAIRS
    assert turned.warnings == []
    assert end(turned.events).content == "Fine."


async def test_data_of_the_next_hook_is_the_answer_before_the_text(turn: Turn) -> None:
    hook = """function Next(ctx, payload) {
        const request = JSON.parse(payload.messages[payload.messages.length - 1].content);
        return { data: { keywords: request.query.split(" ").map((k, n) => ({ k, w: n })) } };
    }"""
    turned = await turn("kw", model=['{"keywords": ["not this"]}'], hook=hook)
    assert turned.source.keywords == [("cheap", 0), ("red", 1), ("pens", 2)]


async def test_it_receives_one_message_of_json_and_nothing_of_the_conversation(
    turn: Turn,
) -> None:
    turned = await turn("kw", model=[json.dumps(GOOD)], identity=Identity(user_id="u1"))
    wanted = requested(turned.models["kw"])
    assert {key: wanted[key] for key in ("task", "query", "max_keywords", "language")} == {
        "task": "keyword",
        "query": QUESTION,
        "max_keywords": 2,
        "language": "auto",
    }
    assert "JSON alone" in wanted["reply"]


async def test_its_turn_does_not_search_and_appears_in_the_callers_trace(turn: Turn) -> None:
    hook = "function Create(ctx) { ctx.Send('hidden'); ctx.trace.Info(ctx.authorized.user_id); }"
    turned = await turn("kw", model=[json.dumps(GOOD)], hook=hook, identity=Identity(user_id="u1"))
    delegate, agent = turned.node("delegate"), turned.node("agent")
    assert (delegate.label, delegate.data["use"], delegate.status) == ("kw", "keyword", "completed")
    assert turned.nodes[delegate.parent].type == "search"
    assert agent.parent == delegate.id
    inside = {node.type for node in turned.nodes.values() if node.parent == agent.id}
    assert {"hook", "plan", "model"} <= inside
    assert "search" not in inside
    assert [node.label for node in turned.nodes.values() if node.label == "u1"] == ["u1"]
    assert [event for event in turned.events if event.type == "message"] == []


async def test_a_wrong_answer_is_tried_once_more_with_what_was_wrong(turn: Turn) -> None:
    turned = await turn("kw", model=['{"keywords": [{"k": "red", "w": -1}]}', json.dumps(GOOD)])
    assert turned.source.keywords == PAIRS
    retry = requested(turned.models["kw"], 1)["retry"]
    assert retry["problem"] == "keywords[0].w: should be greater than or equal to 0"
    assert json.loads(retry["answer"]) == {"keywords": [{"k": "red", "w": -1}]}
    assert turned.warnings == []


async def test_a_reply_cut_at_its_bound_raises_an_error_and_is_not_retried(
    turn: Turn,
) -> None:
    cut = {"text": '{"keywords": [{"k": "red"}, {"k": "pe', "finish_reason": "length"}
    turned = await turn("kw", model=[cut])
    (error,) = turned.source.errors
    assert "the reply is cut at its token limit" in error
    assert "no JSON" not in error
    assert "options.max_tokens" in error
    assert len(turned.models["kw"].calls) == 1


async def test_a_reply_that_is_whole_before_its_bound_counts(turn: Turn) -> None:
    text = f"{json.dumps(GOOD)} I chose these words, since"
    turned = await turn("kw", model=[{"text": text, "finish_reason": "length"}])
    assert turned.source.keywords == PAIRS
    assert [warning for warning in turned.warnings if "the answer is cut" in warning]


async def test_an_echo_of_the_request_is_no_answer(turn: Turn) -> None:
    echo = {"task": "keyword", "query": QUESTION, "max_keywords": 2, "language": "auto"}
    turned = await turn("kw", model=[json.dumps(echo), json.dumps({**echo, **GOOD})])
    assert turned.source.keywords == PAIRS
    retry = requested(turned.models["kw"], 1)["retry"]
    assert retry["problem"] == "it repeats the request instead of answering it"


async def test_the_schema_of_the_answer_goes_with_the_call_unless_a_hook_reads_the_text(
    turn: Turn,
) -> None:
    turned = await turn("kw", model=[json.dumps(GOOD)])
    assert turned.models["kw"].calls[0].reply == KEYWORD.json_reply
    hook = "function Next(ctx, payload) { return { data: [payload.completion.content] }; }"
    turned = await turn("kw", model=["pens"], hook=hook)
    assert turned.models["kw"].calls[0].reply is None
    assert turned.models["a"].calls[0].reply is None


async def test_the_callers_objection_to_an_answer_is_sent_as_well(turn: Turn) -> None:
    source = AskingSource(
        tries=3,
        wrong=lambda answer: "" if answer.keywords[0].k == "c" else f"not {answer.keywords[0].k!r}",
    )
    turned = await turn("kw", model=['["a"]', '["b"]', '["c"]'], source=source)
    assert turned.source.keywords == [("c", 1.0)]
    assert [requested(turned.models["kw"], call)["retry"]["problem"] for call in (1, 2)] == [
        "not 'a'",
        "not 'b'",
    ]


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (["I do not know."], "there is no JSON in it; it was I do not know."),
        (["{}"], "keywords: field required; it was {}"),
        (['{"keywords": []}'], "keywords: "),
        (['{"keywords": [{"k": "a", "w": NaN}]}'], "there is no JSON in it"),
        ([json.dumps({"keywords": ["x"] * 1001})], "at most 1000 entries"),
        (["x" * 5000], "x…"),
        (["[" * 3000], "there is no JSON in it"),
        ([""], "there is no JSON in it; it was empty"),
    ],
    ids=["prose", "missing", "none", "nan", "many", "long", "deep", "silent"],
)
async def test_an_answer_that_stays_wrong_is_an_error_that_shows_it(
    turn: Turn, model: list[str], problem: str
) -> None:
    turned = await turn("kw", model=[{"text": model[0], "times": 0}])
    (error,) = turned.source.errors
    assert error.startswith("keyword by 'kw' failed: no usable answer: ")
    assert problem in error
    assert len(error) < 1000
    assert len(turned.models["kw"].calls) == 2
    assert turned.node("delegate").status == "failed"
    assert end(turned.events).content == "Fine."


@pytest.mark.parametrize(
    ("doer", "hook", "model", "problem"),
    [
        ("kw", "", [{"error": {"code": "refused", "message": "no credit"}}], "no credit"),
        ("kw", "function Create() { throw new Error('broken'); }", ["{}"], "Create threw broken"),
        ("gone", "", ["{}"], "no assistant 'gone'"),
        ("a", "", ["{}"], "in a circle: a → a"),
    ],
    ids=["model", "hook", "unknown", "circle"],
)
async def test_a_delegate_that_fails_raises_an_error_and_is_not_retried(
    turn: Turn, doer: str, hook: str, model: list[Any], problem: str
) -> None:
    turned = await turn(doer, hook=hook, model=model)
    (error,) = turned.source.errors
    assert error.startswith(f"keyword by {doer!r} failed: ")
    assert problem in error
    assert len(turned.models["kw"].calls) <= 1
    assert end(turned.events).content == "Fine."


async def test_a_chain_of_delegated_steps_ends(turn: Turn) -> None:
    """`kw` searches in its hook, which asks for keywords of `kw2`, whose hook searches, and so
    on."""
    search = "function Create(ctx) { ctx.search.Web('again'); }"
    files = {"assistants/kw/index.ts": search}
    for number in range(2, 8):
        package = {"name": "K", "connector": "kw", "uses": {"keyword": f"kw{number + 1}"}}
        files[f"assistants/kw{number}/package.yao"] = json.dumps(package)
        files[f"assistants/kw{number}/index.ts"] = search
    files["assistants/kw/package.yao"] = (
        '{"name": "K", "connector": "kw", "uses": {"keyword": "kw2"}}'
    )
    turned = await turn("kw", model=[{"text": json.dumps(GOOD), "times": 0}], files=files)
    assert len(turned.source.answers) == 4
    assert [
        error
        for error in turned.source.errors
        if "more than 5 deep: a → kw → kw2 → kw3 → kw4 → kw5" in error
    ]


async def test_an_answer_that_does_not_come_in_time_is_an_error_that_names_the_setting(
    turn: Turn,
) -> None:
    turned = await turn(
        "kw", model=[{"text": "{}", "delay_ms": 30_000}], source=AskingSource(timeout_ms=500)
    )
    assert turned.source.errors == [
        "keyword by 'kw' failed: no answer within 500 ms (search.keyword.timeout_ms)"
    ]
    assert turned.node("agent").data["error"] == "stopped"


async def test_warnings_of_a_delegated_turn_are_reported_with_its_name(turn: Turn) -> None:
    hook = "function Create(ctx) { return { search: false, mesages: [] }; }"
    turned = await turn("kw", model=[json.dumps(GOOD)], hook=hook)
    assert any(warning.startswith("kw: ") and "mesages" in warning for warning in turned.warnings)


async def test_warnings_of_a_delegated_turn_are_reported_once_and_bounded(turn: Turn) -> None:
    hook = "function Create(ctx) { return { search: false, %s }; }"
    again = await turn("kw", model=["no", json.dumps(GOOD)], hook=hook % "mesages: []")
    assert len([warning for warning in again.warnings if "mesages" in warning]) == 1
    many = ", ".join(f"odd{n}: {n}" for n in range(30))
    warnings = (await turn("kw", model=[json.dumps(GOOD)], hook=hook % many)).warnings
    assert len(warnings) == 21
    assert warnings[-1] == "kw has more warnings, which are omitted"


async def test_steps_outside_of_turns_warn_their_caller(make_app: MakeApp) -> None:
    hook = """
    function Create(ctx) { return { search: false, mesages: [] }; }
    function Next(ctx, payload) { return { data: ["pens"] }; }
    """
    files = {
        "agent/agent.yml": "hooks:\n  workers: 0\n",
        "assistants/kw/package.yao": "{}",
        "assistants/kw/index.ts": hook,
    }
    warned: list[Warned] = []
    async with open_host(
        make_app(files), environment={}, connectors={"extractive": scripted("")}
    ) as host:
        delegates = host.delegates(warned=warned.append)
        answer = await delegates.ask(KEYWORD, "kw", KeywordAsk(query="red pens"), timeout_ms=20_000)
    assert [keyword.k for keyword in answer.keywords] == ["pens"]
    assert ["mesages" in event.message for event in warned] == [True]


async def test_a_search_outside_of_a_turn_has_its_steps_done_as_well(make_app: MakeApp) -> None:
    hook = (
        "function Next(ctx, payload) { return { data:"
        " [JSON.parse(payload.messages[0].content).query] }; }"
    )
    app = make_app(
        {
            "agent/agent.yml": "uses:\n  keyword: kw\nhooks:\n  workers: 0\n",
            "assistants/kw/package.yao": '{"name": "K"}',
            "assistants/kw/index.ts": hook,
        }
    )
    source = AskingSource()
    async with open_host(app, environment={}, sources={"web": source}) as host:
        await host.search({"type": "web", "query": "pens"})
        await host.search({"type": "web", "query": "inks"}, assistant="kw")
    assert [each.keywords[0].k for each in source.answers] == ["pens", "inks"]


# -------------------------------------------------------------------------------------- an MCP tool


@pytest.mark.parametrize(
    ("doer", "keywords"),
    [
        ("mcp:steps", [("cheap", 1.0), ("red", 0.5)]),
        ("mcp:steps.keyword", [("cheap", 1.0), ("red", 0.5)]),
        ("mcp:steps.as_text", [(QUESTION, 1.0)]),
        ("mcp:steps.as_list", [("cheap", 1.0), ("red", 1.0), ("pens", 1.0)]),
        ("mcp:steps.learns", [("keywords: should have at least 1 item, not 0", 1.0)]),
    ],
)
async def test_a_tools_answer_is_structured_content_or_json_in_its_text(
    turn: Turn, doer: str, keywords: list[tuple[str, float]]
) -> None:
    turned = await turn(doer)
    assert turned.source.errors == []
    assert turned.source.keywords == keywords


async def test_a_tool_of_a_program_is_a_node_of_the_callers_trace(turn: Turn) -> None:
    turned = await turn("mcp:steps", files={"mcps/steps.mcp.yao": json.dumps(PROGRAM)})
    node = turned.node("mcp")
    assert (node.label, node.parent, node.status) == (
        "steps.keyword",
        turned.node("delegate").id,
        "completed",
    )


@pytest.mark.parametrize(
    ("doer", "problem"),
    [
        ("mcp:steps.fails", "tool 'fails' of MCP server 'steps' failed: "),
        (
            "mcp:steps.wants",
            (
                "tool 'steps.wants' requires 'topic', which requests of keyword do not have (they have: query,"
                " content, max_keywords, language)"
            ),
        ),
        ("mcp:steps.keywrd", "no MCP tool 'steps.keywrd' (did you mean 'steps.keyword'?)"),
        ("mcp:stps", "no MCP server 'stps' (did you mean 'steps'?)"),
        ("mcp:stps.x.y", "no MCP server 'stps.x.y'"),
        ("mcp:gone.x", "'gone'"),
    ],
)
async def test_a_tool_that_cannot_be_used_is_an_error_that_says_why(
    turn: Turn, doer: str, problem: str
) -> None:
    turned = await turn(
        doer, files={"mcps/gone.mcp.yao": '{"command": "there-is-no-such-program"}'}
    )
    (error,) = turned.source.errors
    assert problem in error


async def test_a_tool_that_does_not_answer_in_time_is_left(turn: Turn) -> None:
    turned = await turn("mcp:steps.late", source=AskingSource(timeout_ms=3000))
    assert turned.source.errors == [
        "keyword by 'mcp:steps.late' failed: no answer within 3000 ms (search.keyword.timeout_ms)"
    ]


@pytest.mark.parametrize(
    ("listed", "doer", "allowed"),
    [
        ([], "mcp:steps", False),
        (["steps"], "mcp:steps", True),
        ([{"steps": ["as_list"]}], "mcp:steps", False),
        ([{"steps": ["as_list"]}], "mcp:steps.as_list", True),
    ],
)
async def test_a_hook_gives_steps_only_to_servers_that_the_assistant_was_given(
    turn: Turn, listed: list[Any], doer: str, allowed: bool
) -> None:
    hook = f"function Create() {{ return {{ uses: {{ keyword: '{doer}' }} }}; }}"
    turned = await turn(
        "builtin", files={"assistants/a/index.ts": hook}, package={"mcp": {"servers": listed}}
    )
    assert bool(turned.source.answers) == allowed
    assert allowed or "the assistant 'a' may not use" in turned.source.errors[0]


# ------------------------------------------------------------------------------------- the dialects


def test_rankings_are_understood_in_every_dialect() -> None:
    def read(raw: Any) -> list[tuple[str, int | None, float | None]]:
        return [
            (each.citation_id, each.index, each.score)
            for each in RerankAnswer.model_validate(raw).items
        ]

    plain = [("b", None, None), ("a", None, None)]
    assert (
        read({"order": ["b", "a"]})
        == read({"items": [{"citation_id": "b"}, {"id": "a"}]})
        == read(["b", "a"])
        == plain
    )
    assert read({"results": [{"index": 1, "relevance_score": 0.5}]}) == [("", 1, 0.5)]
    assert read([1, 0]) == [("", 1, None), ("", 0, None)]
    wrongs: list[Any] = [
        {"order": []},
        {"order": [{}]},
        {"order": [True]},
        [{"id": "a", "score": float("nan")}],
        "a",
        None,
    ]
    for wrong in wrongs:
        with pytest.raises(ValueError):
            read(wrong)


def test_queries_are_understood_in_every_dialect() -> None:
    dsl = {"model": "pen", "wheres": [{"field": "price", "op": "<", "value": 5}]}
    for raw in (
        {"dsl": dsl, "explain": "cheap", "warnings": ["red"]},
        {"queries": [dsl]},
        [dsl],
        dsl,
    ):
        assert QueryAnswer.model_validate(raw).queries == [dsl]
    wrongs: list[Any] = [{"dsl": None}, {}, {"dsl": "select 1"}, "x"]
    for wrong in wrongs:
        with pytest.raises(ValueError):
            QueryAnswer.model_validate(wrong)


def test_pages_and_keywords_are_understood_in_every_dialect() -> None:
    page = {"link": "https://example.org", "title": "T", "snippet": "S"}
    for raw in ({"results": [page]}, {"organic": [page]}, [page]):
        (found,) = WebSearchAnswer.model_validate(raw).results
        assert (found.url, found.content, found.score) == ("https://example.org", "S", None)
    assert WebSearchAnswer.model_validate([]).results == ()
    assert [each.k for each in KeywordAnswer.model_validate(["a", {"word": "b"}]).keywords] == [
        "a",
        "b",
    ]
