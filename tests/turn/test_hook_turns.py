"""Turns with a hook, through the public door: what Create and Next change."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from groundhook.core.types.contract import Contract
from groundhook.core.types.uses import JsonReply
from groundhook.hooks.api.logs import CONSOLE, LOG
from groundhook.host.testing.canned import CannedSource, canned_item
from tests.conftest import MakeApp
from tests.parts.hook_turns import hooked
from tests.parts.turns import ASSISTANT, end, kb, of, scripted, web

TREE = JsonReply(name="tree", schema={"type": "object", "properties": {"n": {"type": "array"}}})
RAIN = {"type": "function", "function": {"name": "rain", "parameters": {"type": "object"}}}
EXAMPLE_5 = """
function Create(ctx, messages, options) {
  const query = messages[messages.length - 1].content;
  const result = ctx.search.Web(query, { limit: 5 });
  const refs = result.items.map((item, i) => `[${i + 1}] ${item.title} - ${item.url}`).join("\\n");
  return {
    messages: [{ role: "system", content: `Use [N] to cite. References:\\n${refs}` }],
    citation: { autoInjectPrompt: false },
  };
}
"""


async def test_a_hook_that_formats_its_own_references_is_the_only_one_to_speak_of_them(
    make_app: MakeApp,
) -> None:
    model = scripted("As [1] says.")
    events = await hooked(make_app, EXAMPLE_5, connector=model)
    system = [message.text for message in model.calls[0].messages if message.role == "system"]
    assert len(system) == 1
    assert system[0].startswith("Use [N] to cite. References:\n[1] w1 - https://example.org/w1")
    assert [(event.source, event.search_type) for event in of(events, "search_start")] == [
        ("hook", "web")
    ]
    assert end(events).citations == ()


async def test_messages_without_a_user_message_are_context_and_with_one_the_conversation(
    make_app: MakeApp,
) -> None:
    model = scripted("a", "b")
    await hooked(
        make_app,
        "const Create = () => ({messages: [{role: 'system', content: 'context'}]})",
        connector=model,
    )
    replaced = (
        "const Create = () => ({messages: [{role: 'user', content: 'rewritten'}], search: false})"
    )
    await hooked(make_app, replaced, connector=model)
    assert [(m.role, m.text) for m in model.calls[0].messages] == [
        ("system", "context"),
        ("user", "question"),
    ]
    assert [(m.role, m.text) for m in model.calls[1].messages] == [("user", "rewritten")]


async def test_a_rewritten_question_is_what_is_searched_for(make_app: MakeApp) -> None:
    source = kb()
    hook = (
        "const Create = () => ({messages: [{role: 'user', content: 'rewritten'}], search:"
        " {search_types: ['kb']}})"
    )
    await hooked(make_app, hook, sources={"kb": source, "web": web()})
    assert [request.query for request in source.requests] == ["rewritten"]


async def test_results_of_hook_and_automatic_search_are_weighed_against_each_other(
    make_app: MakeApp,
) -> None:
    hook = "function Create(ctx) { ctx.search.Web('other'); return {search: true}; }"
    package = ASSISTANT.replace('"web": true, ', "").replace(', "web": true', "")
    sources = {
        "kb": kb(canned_item("auto", score=0.9)),
        "web": web(canned_item("hook", type="web", score=0.8)),
    }
    events = await hooked(make_app, hook, package, sources=sources, script=["{ref:0} {ref:1}"])
    assert [cited.title for cited in end(events).citations] == ["hook", "auto"]
    merged = [event.node.data for event in of(events, "trace") if event.node.type == "merge"][-1]
    assert [(entry["source"], entry["final"]) for entry in merged["entries"]] == [
        ("hook", 0.64),
        ("auto", 0.54),
    ]


async def test_a_hook_may_change_the_marker_for_its_turn(make_app: MakeApp) -> None:
    hook = "function Create(ctx) { ctx.search.KB('x'); return {citation: {format: '[{id}]'}}; }"
    model = scripted("See {ref:0}.")
    events = await hooked(make_app, hook, connector=model)
    cited = end(events).citations
    assert [c.verdict for c in cited] == ["ok"]
    assert cited[0].marker[0] + cited[0].marker[-1] == "[]"
    assert cited[0].marker in model.calls[0].messages[-1].text


async def test_a_hook_that_throws_ends_the_turn_with_the_line_of_the_typescript(
    make_app: MakeApp,
) -> None:
    hook = (
        "interface A { a: string }\n\nexport function Create(ctx: A) {\n  throw new Error('no"
        " luck');\n}\n"
    )
    events = await hooked(make_app, hook)
    (error,) = of(events, "error")
    assert (error.code, error.file, error.line) == ("hook_threw", "assistants/a/index.ts", 4)
    assert "no luck" in error.message
    assert events[-1].type == "stream_end"


async def test_with_on_error_continue_a_hook_that_fails_is_a_warning(make_app: MakeApp) -> None:
    package = ASSISTANT.replace('"name"', '"hooks": {"on_error": "continue"}, "name"')
    events = await hooked(
        make_app,
        "function Create() { throw new Error('no luck'); }",
        package,
        script=["Fine {ref:0}."],
    )
    assert [event.code for event in of(events, "warning")] == ["hook_threw"]
    assert not of(events, "error")
    assert end(events).citations[0].verdict == "ok"


async def test_next_sees_the_completion_and_gives_the_client_its_data(make_app: MakeApp) -> None:
    hook = """
    let created = 0;
    function Create() { created += 1; }
    function Next(ctx, payload) {
      const { content, finish_reason } = payload.completion;
      return { data: { content, finish_reason, created, error: payload.error }, metadata: { kind: "test" } };
    }
    """
    final = end(await hooked(make_app, hook, script=["Fine."]))
    assert final.data == {"content": "Fine.", "finish_reason": "stop", "created": 1, "error": None}
    assert final.metadata == {"kind": "test"}


async def test_next_runs_and_sees_the_error_when_the_model_fails(make_app: MakeApp) -> None:
    hook = (
        "function Next(ctx, payload) { return { data: [payload.completion.content, payload.error]"
        " }; }"
    )
    events = await hooked(make_app, hook, script=[{"text": "Half", "cut": True}])
    content, error = end(events).data
    assert content == "Half"
    assert "before it was complete" in error
    assert [event.code for event in of(events, "error")] == ["model_truncated"]


@pytest.mark.parametrize(
    ("hook", "expected_message"),
    [
        ("const Create = () => ({serach: false})", "did you mean 'search'?"),
        ("function Create(ctx) { ctx.search.KB('q', {limt: 3}); }", "did you mean 'limit'?"),
        ("function Create(ctx) { ctx.search.KB('q', {rerank: {topk: 3}}); }", "rerank.topk"),
    ],
)
async def test_a_key_that_nothing_reads_is_reported(
    make_app: MakeApp, hook: str, expected_message: str
) -> None:
    events = await hooked(make_app, hook)
    assert [expected_message in event.message for event in of(events, "warning")] == [True]
    assert [event.file for event in of(events, "warning")] == ["assistants/a/index.ts"]


@pytest.mark.parametrize(
    ("returned", "expected_message", "hint"),
    [
        (
            "connector: 'extractiv'",
            "Create returned an unknown connector: no connector 'extractiv'",
            "did you mean 'extractive'?",
        ),
        ("delegate: {agent_id: 'b'}", "delegate.agent_id: no assistant 'b'", "known: a"),
    ],
)
async def test_a_name_that_a_hook_returns_and_nothing_has_is_an_error_of_the_hook(
    make_app: MakeApp, returned: str, expected_message: str, hint: str
) -> None:
    events = await hooked(make_app, f"const Create = () => ({{{returned}}})")
    assert [(e.code, e.message, e.file, e.hint) for e in of(events, "error")] == [
        ("hook_return", expected_message, "assistants/a/index.ts", hint)
    ]


@pytest.mark.parametrize(
    ("returned", "expected_message"),
    [
        (
            "citation: {format: 'x'}",
            "Create returned a wrong 'citation.format': must contain {id} or {index}",
        ),
        (
            "mcp_servers: [5]",
            "Create returned a wrong 'mcp_servers[0]': should be the id of a server",
        ),
    ],
)
async def test_a_wrong_setting_that_a_hook_returns_is_named_as_it_was_returned(
    make_app: MakeApp, returned: str, expected_message: str
) -> None:
    (error,) = of(await hooked(make_app, f"const Create = () => ({{{returned}}})"), "error")
    assert (error.code, error.file) == ("hook_return", "assistants/a/index.ts")
    assert error.message.startswith(expected_message)


async def test_console_lines_are_nodes_of_the_trace_under_the_hook(make_app: MakeApp) -> None:
    events = await hooked(
        make_app, "function Create() { console.warn('found %d', 3); log.Info('x %s', 'y'); }"
    )
    nodes = {event.node.id: event.node for event in of(events, "trace")}
    lines = [node for node in nodes.values() if node.type == "log"]
    assert [(node.label, node.data["level"]) for node in lines] == [
        ("found 3", "warn"),
        ("x y", "info"),
    ]
    assert {nodes[node.parent].type for node in lines} == {"hook"}


@pytest.mark.parametrize(
    ("call", "level"),
    [
        *((f"console.{name}", level) for name, level in CONSOLE.items()),
        *((f"log.{name}", level) for name, level in LOG.items()),
    ],
)
async def test_whatever_writes_a_line_writes_it_at_its_level(
    make_app: MakeApp, call: str, level: str
) -> None:
    events = await hooked(make_app, f"function Create() {{ {call}('found %d', 3); }}")
    lines = {
        (event.node.label, event.node.data["level"])
        for event in of(events, "trace")
        if event.node.type == "log"
    }
    assert lines == {("found 3", level)}


async def test_a_failed_search_is_an_error_on_the_hooks_result_and_does_not_throw(
    make_app: MakeApp,
) -> None:
    hook = (
        "function Create(ctx) { const r = ctx.search.DB('x', {models: ['nope']}); return {metadata:"
        " {error: r.error}}; }"
    )
    events = await hooked(make_app, hook)
    assert "no model 'nope'" in end(events).metadata["error"]


async def test_any_answers_with_the_first_that_has_items_and_cancels_the_others(
    make_app: MakeApp,
) -> None:
    held = CannedSource({"*": ()}, gate=anyio.Event())
    hook = """
    function Create(ctx) {
      const found = ctx.search.Any([{type: "web", query: "a"}, {type: "kb", query: "b"}]);
      return { metadata: { titles: found.map((result) => result.items[0].title) }, search: false };
    }
    """
    events = await hooked(make_app, hook, sources={"web": held, "kb": kb(canned_item("k"))})
    assert end(events).metadata == {"titles": ["k"]}
    assert held.cancelled == 1


@pytest.mark.parametrize("format", ["[{id}]", "<ref>{id}</ref>"])
async def test_markers_that_a_hook_was_given_are_citations_whatever_format_it_then_returns(
    make_app: MakeApp, format: str
) -> None:
    hook = f"""
    function Create(ctx, messages) {{
      const found = ctx.search.KB("other").items.map((item) => item.citation_id).join(" ");
      return {{ messages: [{{ role: "system", content: found }}], citation: {{ format: "{format}" }}, search: true }};
    }}
    """
    item = canned_item("k1", score=0.9, content="says [zz99] and #ref:zz99")
    model = scripted("{ref:0}")
    await hooked(
        make_app, hook, connector=model, sources={"kb": kb(item), "web": CannedSource({"*": []})}
    )
    system, user = (message.text for message in model.calls[0].messages)
    given, sources = system.rpartition("\n\n")[2], user
    assert "#ref:zz99" not in sources + model.calls[0].references[0].content
    marker = format.replace("{id}", given.removeprefix("#ref:"))
    assert marker in sources
    answer = scripted(f"Both {given} and {marker}, not #ref:zz98.")
    events = await hooked(
        make_app, hook, connector=answer, sources={"kb": kb(item), "web": CannedSource({"*": []})}
    )
    assert [(cited.marker, cited.verdict) for cited in end(events).citations] == [
        (given, "ok"),
        (marker, "ok"),
        ("#ref:zz98", "unknown"),
    ]


async def test_a_format_that_a_hook_returns_is_checked_as_one_in_a_file(make_app: MakeApp) -> None:
    events = await hooked(make_app, 'const Create = () => ({ citation: { format: " {id}" } })')
    (failed,) = of(events, "error")
    assert "must have no blank at its beginning or end" in failed.message


async def test_unawaited_errors_and_values_without_json_are_warnings_and_the_turn_goes_on(
    make_app: MakeApp,
) -> None:
    hook = """\
async function save(answer) {
  throw new Error("no " + answer);
}
function Next(ctx, payload) {
  save(payload.completion.content);
  return { data: { score: 0 / 0 } };
}
"""
    events = await hooked(make_app, hook, script=["Fine."])
    assert [
        (event.code, event.message, event.file, event.line, event.column)
        for event in of(events, "warning")
    ] == [
        (
            "hook_not_finite",
            "what Next returned has NaN at data.score, which arrives as null",
            "assistants/a/index.ts",
            0,
            0,
        ),
        (
            "hook_uncaught",
            (
                "an async function that Next does not await threw no Fine. (called from"
                " assistants/a/index.ts:5:3 in Next)"
            ),
            "assistants/a/index.ts",
            2,
            9,
        ),
    ]
    assert end(events).data == {"score": None}
    assert of(events, "error") == []


async def test_a_hook_that_is_a_value_ends_the_turn_with_its_line(make_app: MakeApp) -> None:
    (failed,) = of(await hooked(make_app, "\nexport const Create = 5;"), "error")
    assert (failed.code, failed.message, failed.line) == (
        "hook_syntax",
        "Create is a number, not a function",
        2,
    )


async def test_a_hook_that_answers_needs_no_search_and_no_model_and_next_has_its_answer(
    make_app: MakeApp,
) -> None:
    model = scripted()
    hook = """
    const Create = () => ({answer: "Hello! How can I help?"});
    const Next = (ctx, payload) => ({data: payload.completion.content});
    """
    events = await hooked(make_app, hook, connector=model)
    assert model.calls == []
    assert of(events, "search_start") == []
    assert "".join(event.delta for event in of(events, "text")) == "Hello! How can I help?"
    assert end(events).content == end(events).data == "Hello! How can I help?"
    assert (end(events).finish_reason, end(events).grounded) == ("stop", None)


async def test_citations_in_the_answer_of_a_hook_are_checked(make_app: MakeApp) -> None:
    hook = """
    function Create(ctx) {
      const [item] = ctx.search.Web("q").items;
      return {answer: [
        {role: "assistant", content: `So ${item.citation_id}.`},
        {role: "assistant", content: "And #ref:zz99."},
      ]};
    }
    """
    last = end(await hooked(make_app, hook, connector=scripted()))
    assert [each.verdict for each in last.citations] == ["ok", "unknown"]
    assert last.content.split("\n\n")[1] == "And #ref:zz99."
    assert last.grounded is True


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        ('{answer: ""}', "is empty: leave the key away to let the model answer"),
        ('{answer: [{role: "user", content: "a"}]}', "answer"),
        ('{answer: "a", delegate: {agent_id: "b"}}', "has both answer and delegate"),
    ],
)
async def test_an_answer_that_is_none_is_refused(
    make_app: MakeApp, returned: str, problem: str
) -> None:
    events = await hooked(make_app, f"const Create = () => ({returned})", connector=scripted("m"))
    assert problem in " ".join(
        event.message for event in [*of(events, "error"), *of(events, "warning")]
    )


@pytest.mark.parametrize(("tools", "sent"), [((), TREE), ((RAIN,), None)])
async def test_the_endpoint_gets_the_form_that_a_client_demands_beside_a_hook_but_not_with_tools(
    make_app: MakeApp, tools: Any, sent: Any
) -> None:
    model = scripted('{"n": [1]}')
    hook = "const Next = () => ({ data: 1 })"
    demanded = Contract(tools=tools, reply=TREE)
    events = await hooked(make_app, hook, connector=model, contract=demanded)
    assert model.calls[0].reply == sent
    assert json.loads(end(events).content) == {"n": [1]}


@pytest.mark.parametrize(
    ("text", "contract", "content", "error"),
    [
        ('Here: {"n": [1]}', {"reply": TREE}, '{"n": [1]}', ""),
        ('{"n": 3}', {"reply": TREE}, "", "contract_broken"),
        ("One. Two. Three.", {"stop": (" Two",)}, "One.", ""),
        ("Rain?", {"tools": (RAIN,), "choice": "required"}, "", "contract_broken"),
    ],
)
async def test_an_answer_of_create_is_held_to_the_contract_of_the_client(
    make_app: MakeApp, text: str, contract: dict[str, Any], content: str, error: str
) -> None:
    hook = f"const Create = () => ({{ answer: {json.dumps(text)} }})"
    events = await hooked(make_app, hook, script=["Never"], contract=Contract(**contract))
    assert end(events).content == content
    assert [event.code for event in of(events, "error")] == ([error] if error else [])
