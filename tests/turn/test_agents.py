"""Hooks that ask other assistants and models, and hand their turn on: through the public door."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from groundhook import open_host
from groundhook.core.types.turn import Identity
from groundhook.host.testing.canned import CannedSource
from tests.conftest import MakeApp
from tests.parts.agents import LONG, PLAIN, turn, value
from tests.parts.turns import end, of, scripted

SEARCHING = (
    '{"name": "B", "connector": "b", "search": {"kb": true}, "kb": {"collections": ["docs"]}}'
)


# -------------------------------------------------------------------------------- another assistant


async def test_a_called_assistant_runs_a_turn_of_its_own(make_app: MakeApp) -> None:
    hooks = {
        "a": (
            "function Create(ctx) { globalThis.own = 1; return { metadata: { r: ctx.agent.Call('b',"
            " 'what?') } }; }"
        ),
        "b": (
            """
            function Next(ctx, payload) {
              const data = { who: ctx.authorized.user_id, chat: ctx.chat_id, id: ctx.assistant_id, own: typeof globalThis.own };
              return { data, metadata: { m: 1 } };
            }
        """
        ),
    }
    models = {"b": ["See {ref:0}."]}
    events, connectors = await turn(
        make_app,
        hooks,
        models,
        {"b": SEARCHING},
        identity=Identity(user_id="u1"),
        options={"chat_id": "c1"},
    )
    result = end(events).metadata["r"]
    assert (result["agent_id"], result["error"], result["finish_reason"]) == ("b", None, "stop")
    assert result["data"] == {"who": "u1", "chat": "c1", "id": "b", "own": "undefined"}
    assert result["metadata"] == {"m": 1}
    assert [(cited["verdict"], cited["title"]) for cited in result["citations"]] == [("ok", "k1")]
    assert result["citations"][0]["marker"] in result["content"]
    last = connectors["b"].calls[0].messages[-1].text
    assert last.endswith("\n\nwhat?")
    assert "question" not in last


async def test_its_text_and_events_stay_with_the_caller_and_its_steps_are_in_the_callers_trace(
    make_app: MakeApp,
) -> None:
    hook = "function Create(ctx) { ctx.agent.Call('b', 'x'); }"
    events, _ = await turn(
        make_app,
        {"a": hook, "b": "function Create(ctx) { ctx.Send('hidden'); }"},
        packages={"b": SEARCHING},
    )
    assert "".join(event.delta for event in of(events, "text")) == end(events).content == "Fine."
    assert not of(events, "search_start")
    assert not of(events, "message")
    assert len(of(events, "stream_start")) == len(of(events, "stream_end")) == 1
    nodes = {event.node.id: event.node for event in of(events, "trace")}
    (agent,) = [node for node in nodes.values() if node.type == "agent"]
    assert (agent.label, agent.status, nodes[agent.parent].label) == ("b", "completed", "Create")
    inside = [node.type for node in nodes.values() if node.parent == agent.id]
    assert {"hook", "search", "model"} <= set(inside)


async def test_forwarded_text_reaches_the_client_as_messages_of_a_thread(
    make_app: MakeApp,
) -> None:
    hooks = {
        "a": (
            "function Create(ctx) { ctx.Send('first'); ctx.agent.Call('b', 'x', { forward: true });"
            " ctx.Send('last'); }"
        ),
        "b": "function Create(ctx) { ctx.Send('from b'); }",
    }
    events, _ = await turn(make_app, hooks)
    sent = of(events, "message")
    assert [(e.message_id, e.thread_id) for e in sent if e.action == "send"] == [
        ("M1", ""),
        ("M2", ""),
        ("M3", "T1"),
        ("M4", ""),
    ]
    text = "".join(
        e.message["props"]["content"] if e.action == "send" else e.message
        for e in sent
        if e.thread_id and e.message
    )
    assert text == LONG
    assert [e.action for e in sent if e.message_id == "M3"][-1] == "end"
    assert end(events).content == "Fine."


@pytest.mark.parametrize(
    ("options", "searched"),
    [("{ search: false }", False), ("{}", True), ("{ skip: { search: true } }", False)],
)
async def test_whether_it_searches_is_the_callers_choice(
    make_app: MakeApp, options: str, searched: bool
) -> None:
    events, _ = await turn(
        make_app,
        {"a": f"function Create(ctx) {{ ctx.agent.Call('b', 'x', {options}); }}"},
        packages={"b": SEARCHING},
    )
    assert any(event.node.type == "search" for event in of(events, "trace")) == searched


async def test_options_of_other_hosts_are_accepted_and_its_steps_may_be_left_out_of_the_trace(
    make_app: MakeApp,
) -> None:
    hook = """function Create(ctx) {
        ctx.agent.Call("b", "x", { mode: "task", skip: { trace: true, output: true } });
    }"""
    events, _ = await turn(make_app, {"a": hook}, packages={"b": SEARCHING})
    assert not of(events, "warning")
    nodes = {event.node.id: event.node for event in of(events, "trace")}
    (agent,) = [node for node in nodes.values() if node.type == "agent"]
    assert (agent.status, agent.data["characters"]) == ("completed", len(LONG))
    assert not [node for node in nodes.values() if node.parent == agent.id]
    assert [node.type for node in nodes.values()].count("model") == 1


async def test_history_puts_the_callers_conversation_first(make_app: MakeApp) -> None:
    hook = """function Create(ctx) {
        ctx.agent.Call("b", [{ role: "user", content: "more?" }], { history: true, temperature: 0.1, connector: "c" });
        ctx.agent.Call("b", { role: "user", content: "alone?" }, { skip: { history: false } });
    }"""
    _, models = await turn(make_app, {"a": hook}, {"c": ["ok"]})
    assert [message.text for message in models["c"].calls[0].messages] == ["question\n\nmore?"]
    assert models["c"].calls[0].temperature == 0.1
    assert [message.text for message in models["b"].calls[0].messages] == ["question\n\nalone?"]


@pytest.mark.parametrize(
    ("models", "hook", "expected_message", "content"),
    [
        (
            {"b": [{"text": "Half of it", "cut": True}]},
            "",
            "ended before it was complete",
            "Half of it",
        ),
        ({"b": [{"error": {"code": "refused", "message": "no key"}}]}, "", "no key", ""),
        ({}, "function Create() { throw new Error('broken'); }", "Create threw broken", ""),
        ({}, "function Create( {", "expected", ""),
    ],
)
async def test_a_failure_of_the_other_assistant_is_an_error_on_the_result(
    make_app: MakeApp, models: dict[str, Any], hook: str, expected_message: str, content: str
) -> None:
    hooks = {
        "a": "function Create(ctx) { return { metadata: { r: ctx.agent.Call('b', 'x') } }; }",
        **({"b": hook} if hook else {}),
    }
    events, _ = await turn(make_app, hooks, models)
    result = end(events).metadata["r"]
    assert expected_message in result["error"]
    assert result["content"] == content
    assert not of(events, "error")
    assert [event.node.status for event in of(events, "trace") if event.node.type == "agent"] == [
        "running",
        "failed",
    ]
    assert end(events).content == "Fine."


async def test_unknown_assistants_and_models_are_errors_with_the_nearest_name(
    make_app: MakeApp,
) -> None:
    found = await value(
        make_app, "[ctx.agent.Call('bb', 'x').error, ctx.llm.Stream('extractiv', 'x').error]"
    )
    assert found == [
        "no assistant 'bb' (did you mean 'b'?)",
        "no connector 'extractiv' (did you mean 'extractive'?)",
    ]


# ------------------------------------------------------------------------------------------ circles


async def test_a_circle_of_calls_is_an_error_that_shows_the_chain(make_app: MakeApp) -> None:
    calling = (
        "function Create(ctx) {{ return {{ metadata: {{ error: ctx.agent.Call('{}', 'x').error }}"
        " }}; }}"
    )
    passing = (
        "function Create(ctx) { const r = ctx.agent.Call('a', 'x'); return { metadata: { inner:"
        " r.error } }; }"
    )
    result = (
        "function Create(ctx) { return { metadata: { r: ctx.agent.Call('b', 'x').metadata } }; }"
    )
    events, _ = await turn(make_app, {"a": result, "b": passing})
    assert end(events).metadata["r"]["inner"].endswith("in a circle: a → b → a")
    events, _ = await turn(make_app, {"a": calling.format("a")})
    assert end(events).metadata["error"].endswith("in a circle: a → a")


async def test_calls_go_five_deep_and_no_deeper(make_app: MakeApp) -> None:
    def hook(next: str) -> str:
        call = f"const r = ctx.agent.Call('{next}', 'x');"
        return (
            f"function Create(ctx) {{ {call} return {{ metadata: {{ r: r.error ?? r.metadata.r }}"
            " }; }"
        )

    names = "abcdef"
    models = {name: ["ok"] for name in names}
    hooks = {name: hook(after) for name, after in zip(names, [*names[1:], "g"], strict=True)}
    events, _ = await turn(make_app, hooks, models)
    assert end(events).metadata["r"].endswith("more than 5 deep: a → b → c → d → e → f")


async def test_the_same_assistant_may_be_called_again(make_app: MakeApp) -> None:
    assert await value(make_app, "[1, 2].map(() => ctx.agent.Call('b', 'x').content)") == [
        LONG,
        LONG,
    ]


@pytest.mark.parametrize(
    ("hooks", "chain"),
    [
        (
            {
                "a": "const Create = () => ({ delegate: { agent_id: 'b' } })",
                "b": "const Create = () => ({ delegate: { agent_id: 'a' } })",
            },
            "a → b → a",
        ),
        (
            {
                "a": "const Next = () => ({ delegate: { agent_id: 'b' } })",
                "b": "const Next = () => ({ delegate: { agent_id: 'b' } })",
            },
            "a → b → b",
        ),
        (
            {
                "a": "const Create = () => ({ delegate: { agent_id: 'b' } })",
                "b": "const Create = (ctx) => { throw new Error(ctx.agent.Call('a', 'x').error) }",
            },
            "a → b → a",
        ),
        (
            {
                "a": "const Create = (ctx) => { throw new Error(ctx.agent.Call('b', 'x').error) }",
                "b": "const Create = () => ({ delegate: { agent_id: 'a' } })",
            },
            "a → b → a",
        ),
    ],
    ids=["create", "next", "delegate-then-call", "call-then-delegate"],
)
async def test_a_circle_across_delegation_shows_the_chain(
    make_app: MakeApp, hooks: dict[str, str], chain: str
) -> None:
    events, _ = await turn(make_app, hooks, {"a": [{"text": "ok", "times": 0}]})
    (error,) = of(events, "error")
    assert error.message.endswith(f"in a circle: {chain}")
    assert events[-1].type == "stream_end"


# ------------------------------------------------------------------------------ handing the turn on


@pytest.mark.parametrize("hook", ["Create", "Next"])
async def test_a_delegated_turn_goes_on_in_the_same_stream(make_app: MakeApp, hook: str) -> None:
    hooks = {
        "a": (
            f"""
            function Create(ctx) {{
              ctx.search.KB("q", {{ collections: ["docs"] }});
              ctx.Send("a says");
              return handed("Create");
            }}
            function Next(ctx) {{ return handed("Next"); }}
            const handed = (name) => name !== "{hook}" ? null : {{ delegate: {{
              agent_id: "b",
              messages: [{{ role: "user", content: "rather this" }}],
              options: {{ temperature: 0.2, metadata: {{ from: "a" }} }},
            }} }};
        """
        ),
        "b": (
            """
            function Create(ctx) { ctx.Send("b says"); }
            const Next = (ctx) => ({ data: { id: ctx.assistant_id, from: ctx.metadata.from } });
        """
        ),
    }
    events, models = await turn(
        make_app, hooks, packages={"b": SEARCHING}, options={"chat_id": "c1"}
    )
    assert not of(events, "error")
    assert [(event.assistant_id, event.chat_id) for event in of(events, "stream_start")] == [
        ("a", "c1"),
        ("b", "c1"),
    ]
    assert len(of(events, "stream_end")) == 1
    assert len({event.turn_id for event in events}) == 1
    assert [
        (event.message_id, event.message["props"]["content"]) for event in of(events, "message")
    ] == [
        ("M1", "a says"),
        ("M2", "b says"),
    ]
    assert [event.search_id for event in of(events, "search_start")] == ["s1", "s2"]
    assert end(events).content == "".join(event.delta for event in of(events, "text"))
    assert end(events).content.endswith(LONG)
    assert end(events).data == {"id": "b", "from": "a"}
    call = models["b"].calls[0]
    assert call.messages[-1].text.endswith("\n\nrather this")
    assert call.temperature == 0.2
    assert len(models["a"].calls) == (hook == "Next")


@pytest.mark.parametrize("hook", ["Create", "Next"])
async def test_a_delegation_to_nobody_names_the_nearest(make_app: MakeApp, hook: str) -> None:
    events, _ = await turn(
        make_app, {"a": f"const {hook} = () => ({{ delegate: {{ agent_id: 'bb' }} }})"}
    )
    assert [(event.code, event.file, event.hint) for event in of(events, "error")] == [
        ("hook_return", "assistants/a/index.ts", "did you mean 'b'?")
    ]


async def test_wrong_options_of_a_delegation_are_reported(make_app: MakeApp) -> None:
    wrong = (
        "const Create = () => ({ delegate: { agent_id: 'b', options: { temperature: 'hot' } } })"
    )
    events, _ = await turn(make_app, {"a": wrong})
    assert "delegate.options.temperature" in of(events, "error")[0].message
    odd = wrong.replace("temperature: 'hot'", "temprature: 1")
    events, _ = await turn(make_app, {"a": odd})
    assert "did you mean 'temperature'?" in of(events, "warning")[0].message
    assert end(events).content == LONG


# ------------------------------------------------------------------------------------------- models


async def test_a_model_call_sends_the_given_messages_and_options(make_app: MakeApp) -> None:
    hook = """function Create(ctx) {
        const tools = [{ type: "function", function: { name: "t", parameters: {} } }];
        const messages = [{ role: "system", content: "be brief" }, { role: "user", content: "hi" }];
        return { metadata: { r: ctx.llm.Stream("b", messages, { temperature: 0.3, max_tokens: 9, tools }) } };
    }"""
    script = [{"text": "Hello", "tool_calls": [{"name": "t", "arguments": {"x": 1}, "id": "c1"}]}]
    events, models = await turn(make_app, {"a": hook}, {"b": script})
    result = end(events).metadata["r"]
    assert (result["connector"], result["content"], result["finish_reason"], result["error"]) == (
        "b",
        "Hello",
        "tool_calls",
        None,
    )
    assert result["tool_calls"] == [{"id": "c1", "name": "t", "arguments": {"x": 1}}]
    assert set(result["usage"]) == {"prompt_tokens", "completion_tokens", "total_tokens"}
    requested = models["b"].calls[0]
    assert (
        [message.text for message in requested.messages],
        requested.temperature,
        requested.max_tokens,
    ) == (
        ["be brief", "hi"],
        0.3,
        9,
    )
    assert requested.tools[0]["function"]["name"] == "t"
    assert [event.node.label for event in of(events, "trace") if event.node.type == "llm"] == [
        "b",
        "b",
    ]


@pytest.mark.parametrize("arguments", ["[" * 5000 + "]" * 5000, '{"n": ' + "9" * 5000 + "}"])
async def test_arguments_that_nobody_can_parse_reach_the_hook_as_their_text(
    make_app: MakeApp, arguments: str
) -> None:
    script = [{"tool_calls": [{"name": "t", "arguments": arguments, "id": "c1"}]}]
    found = await value(make_app, "ctx.llm.Stream('b', 'x')", {"b": script})
    assert found["error"] is None
    assert found["tool_calls"] == [{"id": "c1", "name": "t", "arguments": arguments}]


async def test_a_model_that_fails_is_an_error_with_what_had_arrived(make_app: MakeApp) -> None:
    found = await value(
        make_app, "ctx.llm.Stream('b', 'x')", {"b": [{"text": "Half", "cut": True}]}
    )
    assert (found["content"], "before it was complete" in found["error"]) == ("Half", True)


# ------------------------------------------------------------------------------------ as it arrives

HEARD = """(() => {
    const heard = [];
    const r = %s;
    return { heard, r };
})()"""


@pytest.mark.parametrize(
    "call", ["ctx.agent.Call('b', 'x', { onChunk })", "ctx.llm.Stream('b', 'x', { onChunk })"]
)
async def test_on_chunk_hears_the_text_in_order_while_it_arrives(
    make_app: MakeApp, call: str
) -> None:
    body = HEARD % call.replace("onChunk", "onChunk: (chunk) => { heard.push(chunk); }")
    found = await value(make_app, body)
    assert "".join(chunk["content"] for chunk in found["heard"]) == found["r"]["content"] == LONG
    assert len(found["heard"]) > 3
    assert found["heard"][0] == {
        "type": "text",
        "index": 0,
        "content": LONG[:6],
        "props": {"content": LONG[:6]},
    }


async def test_on_chunk_is_called_before_the_answer_is_whole(make_app: MakeApp) -> None:
    hook = """function Create(ctx) {
        let calls = 0;
        ctx.llm.Stream("b", "x", { onChunk() { if (++calls === 1) ctx.Send("first piece"); } });
        ctx.Send("whole");
    }"""
    script = [{"text": "x" * 6000}]
    events, _ = await turn(make_app, {"a": hook}, {"b": script})
    order = [
        event.message["props"]["content"] if event.type == "message" else event.node.status
        for event in events
        if event.type == "message" or (event.type == "trace" and event.node.type == "llm")
    ]
    assert order == ["running", "first piece", "completed", "whole"]


@pytest.mark.parametrize("answer", ["1", "-2", "true"])
@pytest.mark.parametrize("call", ["ctx.agent.Call", "ctx.llm.Stream"])
async def test_a_number_other_than_zero_stops_the_call(
    make_app: MakeApp, call: str, answer: str
) -> None:
    script = [{"text": "x" * 60_000, "times": 0}]
    body = (
        HEARD % f"{call}('b', 'x', {{ onChunk: (c) => {{ heard.push(c); return heard.length === 2 ?"
        f" {answer} : 0; }} }})"
    )
    found = await value(make_app, body, {"b": script})
    assert len(found["heard"]) == 2
    assert found["r"]["finish_reason"] == "stopped"
    assert found["r"]["error"] is None
    assert 12 <= len(found["r"]["content"]) < 10_000


@pytest.mark.parametrize(
    "answer", ["0", "undefined", "null", "'x'", "false", "NaN", "Promise.resolve(1)"]
)
async def test_any_other_value_goes_on(make_app: MakeApp, answer: str) -> None:
    assert (await value(make_app, f"ctx.llm.Stream('b', 'x', {{ onChunk: () => {answer} }})"))[
        "content"
    ] == LONG


async def test_what_on_chunk_throws_stops_the_call_and_goes_to_the_hook(make_app: MakeApp) -> None:
    body = """(() => {
        try { ctx.llm.Stream("b", "x", { onChunk() { throw new Error("enough"); } }); } catch (e) { return e.message; }
    })()"""
    assert await value(make_app, body, {"b": [{"text": "x" * 60_000}]}) == "enough"


async def test_an_answer_that_stalls_is_an_error_after_the_deadline_of_a_call(
    make_app: MakeApp,
) -> None:
    package = '{"name": "A", "connector": "a", "hooks": {"limits": {"call_ms": 60}}}'
    slow = [{"text": "late", "delay_ms": 20_000, "times": 0}]
    body = """[
        ctx.llm.Stream("b", "x"),
        ctx.llm.Stream("b", "x", { onChunk() {} }),
        ...ctx.agent.All([{ agent: "b", messages: "x" }]),
    ]"""
    found = await value(make_app, body, {"b": slow}, {"a": package})
    assert all("no answer in 60 ms" in result["error"] for result in found)
    assert len(found) == 3


async def test_an_answer_that_was_left_open_ends_with_the_hook(make_app: MakeApp) -> None:
    hook = """function Create(ctx) {
        ctx.llm.Stream("b", "x", { onChunk() { for (;;) ; } });
    }"""
    package = (
        '{"name": "A", "connector": "a", "hooks": {"on_error": "continue", "limits": {"cpu_ms":'
        " 60}}}"
    )
    events, _ = await turn(make_app, {"a": hook}, {"b": [{"text": "x" * 60_000}]}, {"a": package})
    nodes = {event.node.id: event.node for event in of(events, "trace")}
    assert [node.status for node in nodes.values() if node.type == "llm"] == ["failed"]
    assert [event.code for event in of(events, "warning")] == ["hook_limit"], of(events, "error")
    assert end(events).content == "Fine."


# ---------------------------------------------------------------------------------- several at once


async def test_all_answers_in_the_order_of_the_requests_and_failures_in_their_slots(
    make_app: MakeApp,
) -> None:
    body = """[
        ctx.agent.All([
            { agent: "b", messages: "x" },
            { agent: "nobody", messages: "x" },
            { agent_id: "b", messages: "y", options: { search: false } },
        ]),
        ctx.llm.All([{ connector: "c", messages: "x" }, { connector: "b", messages: [{ role: "user", content: "x" }] }]),
        ctx.agent.All([]),
    ]"""
    agents, models, none = await value(make_app, body, {"c": [{"text": "slow", "delay_ms": 30}]})
    assert [
        (result["agent_id"], result["content"], bool(result["error"])) for result in agents
    ] == [
        ("b", LONG, False),
        ("nobody", "", True),
        ("b", LONG, False),
    ]
    assert [result["content"] for result in models] == ["slow", LONG]
    assert none == []


async def test_any_takes_the_first_that_did_not_fail_and_race_the_first(make_app: MakeApp) -> None:
    requests = (
        "[{ connector: 'c', messages: 'x' }, { connector: 'd', messages: 'x' }, { connector: 'e',"
        " messages: 'x' }]"
    )
    models = {
        "c": [{"error": {"code": "refused", "message": "no"}, "times": 0}],
        "d": [{"text": "second", "delay_ms": 20, "times": 0}],
        "e": [{"text": "late", "delay_ms": 25_000, "times": 0}],
    }
    any_, race, all_failed = await value(
        make_app,
        f"[ctx.llm.Any({requests}), ctx.llm.Race({requests}), ctx.llm.Any([{requests}[0]])]",
        models,
    )
    assert [result["content"] for result in any_] == ["second"]
    assert [(result["connector"], result["error"]) for result in race] == [("c", "no")]
    assert [result["error"] for result in all_failed] == ["no"]


async def test_chunks_of_several_carry_their_position(make_app: MakeApp) -> None:
    body = """(() => {
        const texts = ["", ""], own = [];
        const requests = [
            { agent: "b", messages: "x", options: { onChunk: (c) => { own.push(c.index); texts[c.index] += c.content; } } },
            { agent: "c", messages: "x" },
        ];
        const r = ctx.agent.All(requests, { onChunk: (c) => { texts[c.index] += c.content; } });
        return { texts, own: [...new Set(own)], content: r.map((one) => one.content) };
    })()"""
    found = await value(make_app, body, {"c": ["And from the third."]}, {"c": PLAIN % "c"})
    assert found["texts"] == found["content"] == [LONG, "And from the third."]
    assert found["own"] == [0]


async def test_stopping_one_of_several_stops_them_all(make_app: MakeApp) -> None:
    body = (
        "ctx.llm.All([{ connector: 'b', messages: 'x' }, { connector: 'c', messages: 'x' }], {"
        " onChunk: (c) => c.index })"
    )
    models = {"b": [{"text": "never", "delay_ms": 25_000}], "c": [{"text": "x" * 60_000}]}
    found = await value(make_app, body, models)
    assert [result["finish_reason"] for result in found] == ["stopped", "stopped"]
    assert [bool(result["content"]) for result in found] == [False, True]


# ---------------------------------------------------------------------------------- wrong arguments


@pytest.mark.parametrize(
    ("call", "expected_message"),
    [
        (
            "agent.Call()",
            "ctx.agent.Call: an assistant's id must be text that is not empty, not nothing",
        ),
        ("agent.Call('b')", "messages must be text or a list of {role, content}, not nothing"),
        (
            "agent.Call('b', [])",
            "messages must be text or a list of {role, content}, not an empty list",
        ),
        ("agent.Call('b', [{ role: 'usr', content: 'x' }])", "messages[0].role"),
        ("agent.Call('b', 'x', 'y')", "options must be an object, not text"),
        ("agent.Call('b', 'x', { search: 'maybe' })", "option search"),
        ("llm.Stream(4, 'x')", "a connector's id must be text that is not empty, not a number"),
        (
            "llm.Stream('b', 'x', { temperature: 'hot', onChunk() {} })",
            "ctx.llm.Stream: option temperature",
        ),
        (
            "agent.All({})",
            "ctx.agent.All: requests must be a list of {agent, messages, options}, not an object",
        ),
        (
            "llm.Any(['b'])",
            "requests[0] must be an object {connector, messages, options}, not text",
        ),
        (
            "llm.Race([{ connector: 'b', messages: 'x' }, { messages: 'x' }])",
            "requests[1]: a connector's id must be text",
        ),
    ],
)
async def test_wrong_arguments_throw_and_nothing_is_requested(
    make_app: MakeApp, call: str, expected_message: str
) -> None:
    hook = f"""function Create(ctx) {{
        try {{ ctx.{call}; }} catch (e) {{ return {{ metadata: {{ caught: [e.constructor.name, e.message] }} }}; }}
    }}"""
    events, models = await turn(make_app, {"a": hook})
    kind, message = end(events).metadata["caught"]
    assert kind == "TypeError"
    assert expected_message in message
    assert models["b"].calls == []


async def test_an_option_that_nothing_reads_is_a_warning_with_the_nearest(
    make_app: MakeApp,
) -> None:
    events, _ = await turn(
        make_app, {"a": "function Create(ctx) { ctx.agent.Call('b', 'x', { serach: false }); }"}
    )
    assert ["did you mean 'search'?" in event.message for event in of(events, "warning")] == [True]


async def test_leaving_the_turn_stops_the_called_assistant(make_app: MakeApp) -> None:
    files = {
        "assistants/a/package.yao": PLAIN % "a",
        "assistants/a/index.ts": (
            "function Create(ctx) { ctx.agent.Call('b', 'x', { onChunk() {} }); }"
        ),
        "assistants/b/package.yao": SEARCHING,
        "kb/docs.kb.yao": '{"name": "Docs"}',
    }
    held = CannedSource({"*": ()}, gate=anyio.Event())
    with anyio.fail_after(60):
        models = {"a": scripted(), "b": scripted()}
        async with open_host(
            make_app(files), environment={}, sources={"kb": held}, connectors=models
        ) as host:
            async with host.stream("a", "question") as events:
                async for event in events:
                    if event.type == "trace" and event.node.type == "search":
                        break
                while not held.requests:
                    await anyio.lowlevel.checkpoint()
            assert held.cancelled == 1


async def test_results_are_plain_values(make_app: MakeApp) -> None:
    found = await value(make_app, "JSON.stringify(ctx.llm.Stream('b', 'x'))")
    assert json.loads(found)["content"] == LONG


async def test_a_hook_that_replaces_builtins_hears_its_chunks_all_the_same(
    make_app: MakeApp,
) -> None:
    hostile = """(() => {
        const stolen = [], { push } = Array.prototype;
        const trap = { set(value) { stolen[stolen.length] = value; }, configurable: true };
        Object.defineProperty(Array.prototype, "0", trap);
        Object.defineProperty(Object.prototype, "value", trap);
        Array.prototype[Symbol.iterator] = function* () { yield "forged"; };
        Array.prototype.push = String.prototype.slice = String.prototype.lastIndexOf = () => "forged";
        JSON.parse = JSON.stringify = () => "forged";
        let text = "";
        const r = ctx.llm.Stream("b", "x", { onChunk(chunk) { text += chunk.content; } });
        const node = ctx.trace.Add("step", { label: "named" });
        node.Info("line");
        return { text, content: r.content, stolen: stolen.length, id: node.id };
    })()"""
    found = await value(make_app, hostile)
    assert (found["text"], found["content"], found["stolen"]) == (LONG, LONG, 0)
    assert found["id"].startswith("n")
