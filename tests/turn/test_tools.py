"""Tools of a turn over real MCP servers, through the public door: what the model is offered, and
what its calls come to."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from groundhook.core.json_lines import line
from groundhook.core.types.events import Event
from groundhook.core.types.tools import Tool
from groundhook.host.llm.scripted import ScriptedConnector
from groundhook.host.tools.toolbox import parse_arguments
from tests.conftest import MakeApp
from tests.mcp.conftest import SERVER, HttpServer, serving
from tests.parts.tool_turns import called, names
from tests.parts.turns import end, of, run, scripted

Served = Callable[..., Path]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """One server for all turns, since starting one takes a second."""
    with serving(tmp_path_factory.mktemp("mcp") / "diary") as made:
        yield made


@pytest.fixture
def served(make_app: MakeApp, server: HttpServer) -> Served:
    """An app with servers, of which the assistant lists some."""

    def make(
        servers: Any = ("tests",),
        hook: str = "",
        agent: str = "",
        spec: Mapping[str, Any] = server.spec,
    ) -> Path:
        package = {"name": "A", "connector": "script", "mcp": {"servers": list(servers)}}
        more = {"assistants/a/index.ts": hook}
        return make_app(
            {
                "agent/agent.yml": f"hooks:\n  workers: 0\n{agent}",
                "assistants/a/package.yao": json.dumps(package),
                "assistants/a/mcps/own.mcp.yao": json.dumps(spec),
                "mcps/tests.mcp.yao": json.dumps(spec),
                "mcps/gone.mcp.yao": '{"command": "there-is-no-such-program"}',
                "mcps/broken.mcp.yao": '{"command": "x", "comand": "y"}',
                **{name: text for name, text in more.items() if text},
            }
        )

    return make


async def turn(
    app: Path, *script: Any, tools: Sequence[Tool] = ()
) -> tuple[list[Event], ScriptedConnector]:
    model = scripted(*(script or ("Fine.",)))
    return await run(app, connector=model, tools=tools), model


def reported(model: ScriptedConnector) -> list[str]:
    """The results of the first round's calls, as the model received them."""
    return [message.text for message in model.calls[1].messages if message.role == "tool"]


class Where(BaseModel):
    city: str


async def test_tools_of_servers_stand_beside_those_of_the_host(served: Served) -> None:
    async def weather(where: Where) -> dict[str, Any]:
        return {"city": where.city, "sky": "clear"}

    tool = Tool(name="weather", description="The weather in a city", arguments=Where, run=weather)
    script = called(("tests__echo", {"text": "hello"}), ("weather", {"city": "Haifa"}))
    events, model = await turn(served(), script, "Done.", tools=[tool])
    assert {"weather", "tests__echo", "tests__search"} <= set(names(model))
    assert [json.loads(text) for text in reported(model)] == [
        {"result": "hello"},
        {"city": "Haifa", "sky": "clear"},
    ]
    assert {(event.name, event.server) for event in of(events, "tool_start")} == {
        ("tests__echo", "tests"),
        ("weather", ""),
    }
    assert {event.name: event.error for event in of(events, "tool_result")} == {
        "tests__echo": None,
        "weather": None,
    }
    nodes = {
        event.node.label: event.node for event in of(events, "trace") if event.node.type == "tool"
    }
    assert {label: (node.status, node.data["server"]) for label, node in nodes.items()} == {
        "tests__echo": ("completed", "tests"),
        "weather": ("completed", ""),
    }
    assert end(events).content == "Done."


async def test_next_receives_the_server_of_each_tool(served: Served) -> None:
    hook = (
        "function Next(ctx, payload) { return { data: [payload.tools,"
        " payload.completion.tool_calls] }; }"
    )
    events, _ = await turn(served(hook=hook), called(("tests__plain", {"text": "hello"})), "Done.")
    tools, calls = end(events).data
    assert [
        (tool["server"], tool["tool"], tool["arguments"], tool["result"]) for tool in tools
    ] == [("tests", "plain", {"text": "hello"}, "hello")]
    assert [(call["name"], call["arguments"]) for call in calls] == [
        ("tests__plain", {"text": "hello"})
    ]


@pytest.mark.parametrize(
    ("servers", "offered"),
    [
        (["tests"], None),
        ([{"tests": ["echo", "plain"]}], {"tests__echo", "tests__plain"}),
        ([{"tests": {"tools": ["echo"]}}], {"tests__echo"}),
        ([{"server_id": "tests", "tools": ["echo"]}], {"tests__echo"}),
        ([{"own": ["echo"]}], {"own__echo"}),
        ([{"tests": ["echo"]}, {"own": ["plain"]}], {"tests__echo", "own__plain"}),
        ([{"tests": ["echo"]}, {"tests": ["plain"]}], {"tests__echo", "tests__plain"}),
        ([], set()),
    ],
)
async def test_every_way_of_listing_servers_is_understood(
    served: Served, servers: Any, offered: set[str] | None
) -> None:
    events, model = await turn(served(servers))
    assert (
        set(names(model)) == offered
        if offered is not None
        else {"tests__echo", "tests__act"} < set(names(model))
    )
    assert of(events, "warning") == []


async def test_the_list_that_create_returns_replaces_the_configured_one(served: Served) -> None:
    hook = "const Create = () => ({ mcp_servers: [{ own: ['echo'] }] })"
    _, model = await turn(served(hook=hook))
    assert names(model) == ["own__echo"]
    _, model = await turn(served(hook="const Create = () => ({ mcp_servers: [] })"))
    assert names(model) == []


async def test_arguments_that_do_not_fit_the_schema_do_not_reach_the_server(served: Served) -> None:
    script = called(
        ("tests__echo", {"text": 7}), ("tests__echo", {}), ("tests__echo", "{"), ("tests__ecko", {})
    )
    events, model = await turn(served(), script, "Sorry.")
    assert [json.loads(text)["error"] for text in reported(model)] == [
        "wrong arguments: text: 7 is not of type 'string'",
        "wrong arguments: arguments: 'text' is a required property",
        "the arguments are not JSON: Expecting property name enclosed in double quotes at column 2",
        "no tool 'tests__ecko' (did you mean 'tests__echo'?)",
    ]
    assert end(events).content == "Sorry."


@pytest.mark.parametrize(
    ("arguments", "expected_message"),
    [
        ("[" * 50_000, "the arguments are nested too deeply: at most 100 levels"),
        (
            '{"text": ' + "9" * 5000 + "}",
            "the arguments are not JSON: a number has too many digits",
        ),
        ('{"text": "\\ud800"}', "the arguments are not JSON: half a surrogate pair"),
        ("[]", "the arguments are not a JSON object"),
    ],
    ids=["deep", "digits", "surrogate", "list"],
)
async def test_the_model_receives_an_error_for_arguments_that_are_not_json(
    served: Served, arguments: str, expected_message: str
) -> None:
    events, model = await turn(
        served([{"tests": ["echo"]}]), called(("tests__echo", arguments)), "Sorry."
    )
    assert json.loads(reported(model)[0])["error"].startswith(expected_message)
    assert [event.arguments for event in of(events, "tool_start")] == [{"arguments": arguments}]
    assert all(event.model_dump_json() for event in events)


@pytest.mark.parametrize(
    "text", ["[" * 200_000, '{"a": "\\ud800"}', "9" * 5000], ids=["deep", "surrogate", "digits"]
)
async def test_text_of_a_tool_that_only_looks_like_json_stays_text(
    served: Served, text: str
) -> None:
    events, model = await turn(
        served([{"tests": ["plain"]}]), called(("tests__plain", {"text": text})), "Done."
    )
    assert of(events, "tool_result")[0].result == text
    assert reported(model)[0].startswith(text[:60_000])
    assert all(event.model_dump_json() for event in events)


async def test_a_tool_that_fails_is_an_error_that_the_model_may_mend(served: Served) -> None:
    events, model = await turn(served(), called(("tests__fail", {"why": "no ink"})), "Sorry.")
    assert "tool 'fail' of MCP server 'tests' failed" in json.loads(reported(model)[0])["error"]
    assert ["failed" in event.error for event in of(events, "tool_result")] == [True]
    assert [event.node.status for event in of(events, "trace") if event.node.type == "tool"][
        -1
    ] == "failed"


async def test_calls_of_a_round_run_at_the_same_time_and_are_reported_in_order(
    served: Served,
) -> None:
    script = called(
        *(("tests__wait", {"seconds": seconds}) for seconds in (0.6, 0.5, 0.4)),
        ("tests__plain", {"text": "quick"}),
    )
    events, model = await turn(served(), script, "Done.")
    finished = [event.name for event in of(events, "tool_result")]
    took = [event.at_ms for event in of(events, "tool_result")][-1] - of(events, "tool_start")[
        0
    ].at_ms
    assert finished[0] == "tests__plain"
    assert took < 1300, "one after the other would take 1500 ms"
    assert [json.loads(text) for text in reported(model)[:3]] == [{"result": "waited"}] * 3
    assert reported(model)[3] == "quick"


async def test_a_long_result_is_cut_for_the_model_and_whole_for_everybody_else(
    served: Served,
) -> None:
    app = served(agent="options:\n  tool_result_kb: 2\n")
    events, model = await turn(app, called(("tests__large", {"megabytes": 0.1})), "Done.")
    (text,) = reported(model)
    assert text.startswith(
        "x" * 2048 + "\n[cut here: the result has 103 KB, and only the first 2 KB are above]"
    )
    (result,) = of(events, "tool_result")
    assert len(result.result) == int(0.1 * 1024 * 1024)
    (node,) = [
        event.node
        for event in of(events, "trace")
        if event.node.type == "tool" and event.node.status == "completed"
    ]
    assert node.data["cut"] == "the model gets 2 of 103 KB (options.tool_result_kb)"


async def test_rounds_of_tool_calls_are_bounded_and_the_last_answer_is_without_tools(
    served: Served,
) -> None:
    app = served(agent="options:\n  tool_rounds: 2\n")
    script = (
        called(("tests__echo", {"text": "1"})),
        called(("tests__echo", {"text": "2"})),
        "Done.",
    )
    events, model = await turn(app, *script)
    assert [bool(requested.tools) for requested in model.calls] == [True, True, False]
    assert len(of(events, "tool_result")) == 2
    (warning,) = of(events, "warning")
    assert (warning.code, warning.hint) == (
        "tool_rounds",
        "options.tool_rounds sets the number of rounds",
    )
    assert "after 2 rounds of tool calls the model has to answer without tools" in warning.message
    assert end(events).content == "Done."


async def test_a_tool_call_after_the_last_round_is_reported(
    served: Served,
) -> None:
    app = served(agent="options:\n  tool_rounds: 1\n")
    again = called(("tests__echo", {"text": "again"}))
    events, _ = await turn(app, again, again)
    assert len(of(events, "tool_result")) == 1
    assert [event.message for event in of(events, "warning")][
        -1
    ] == "the model called tools that were not run: tests__echo"
    assert end(events).content == ""


@pytest.mark.parametrize(
    ("servers", "code", "expected_message"),
    [
        (["gone", "tests"], "server_not_configured", "'there-is-no-such-program'"),
        (["tsets", "tests"], "unknown_name", "no MCP server 'tsets'"),
        (["broken", "tests"], "config", "comand"),
        ([{"tests": ["echo", "ehco"]}], "unknown_name", "no tool of MCP server 'tests' 'ehco'"),
        ([{"server_id": "tests", "resources": ["memo://gone"]}], "server_refused", "memo://gone"),
    ],
)
async def test_an_unavailable_source_is_a_warning_and_the_turn_goes_on(
    served: Served, servers: Any, code: str, expected_message: str
) -> None:
    events, model = await turn(
        served(servers), called(("tests__echo", {"text": "still here"})), "Done."
    )
    assert [(event.code, expected_message in event.message) for event in of(events, "warning")] == [
        (code, True)
    ]
    assert json.loads(reported(model)[0]) == {"result": "still here"}
    assert end(events).content == "Done."


async def test_a_server_that_dies_under_a_call_is_an_error_and_back_for_the_next(
    served: Served,
) -> None:
    script = (
        called(("tests__die", {"code": 3})),
        called(("tests__echo", {"text": "again"})),
        "Done.",
    )
    events, _ = await turn(served(spec={"command": sys.executable, "args": [SERVER]}), *script)
    first, second = of(events, "tool_result")
    assert "MCP server 'tests'" in first.error
    assert (second.result, second.error) == ({"result": "again"}, None)


async def test_a_list_that_is_none_names_its_place(served: Served) -> None:
    events, _ = await turn(served(hook="const Create = () => ({ mcp_servers: [{ tests: 3 }] })"))
    (error,) = of(events, "error")
    assert (error.code, "'tests' must be followed by a list of tools" in error.message) == (
        "hook_return",
        True,
    )


# ------------------------------------------------------------------------------- ctx.mcp, ctx.tools


async def value(app_hook: str, served: Served, servers: Any = ("tests",)) -> Any:
    """What an expression is worth in a hook of the assistant, through the whole turn."""
    hook = f"function Create(ctx) {{ return {{ metadata: {{ value: {app_hook} }} }}; }}"
    events, _ = await turn(served(servers, hook=hook))
    assert of(events, "error") == []
    return end(events).metadata["value"]


async def test_a_hook_calls_a_tool_and_reads_its_value(served: Served) -> None:
    both = await value("[ctx.mcp.CallTool('tests', 'search', {query: 'pens'}), ctx.mcp.CallTool('own', 'fail', {why: 'x'})]",
                       served, ["tests", "own"])  # fmt: skip
    assert (
        both[0]["result"]
        == both[0]["structuredContent"]
        == {"results": [{"title": "pens", "score": None}]}
    )
    assert (both[1]["isError"], "x" in both[1]["error"], "result" in both[1]) == (True, True, False)


async def test_a_hook_reads_resources_and_prompts(served: Served) -> None:
    expression = """[
      ctx.mcp.ListTools("tests").tools.map((tool) => tool.name),
      ctx.mcp.ListResources("tests").resources[0].uri,
      ctx.mcp.ReadResource("tests", "memo://today").contents[0].text,
      ctx.mcp.ListPrompts("tests").prompts[0].name,
      ctx.mcp.GetPrompt("tests", "greet", { name: "Ada" }).messages[0].content.text,
    ]"""
    tools, *others = await value(expression, served, [{"tests": ["echo", "plain"]}])
    assert tools == ["echo", "plain"]
    assert others == ["memo://today", "nothing", "greet", "Say hello to Ada."]


async def test_a_failing_call_among_several_is_an_error_in_its_place(served: Served) -> None:
    calls = (
        "[{server: 'gone', tool: 'x'}, {server: 'tests', tool: 'plain', arguments: {text: 'a'}},"
        " {server: 'tests', tool: 'pain'}]"
    )
    answers, first = await value(
        f"[ctx.mcp.All({calls}), ctx.mcp.Any({calls})]", served, ["gone", "tests"]
    )
    assert ["error" in answer for answer in answers] == [True, False, True]
    assert (answers[1]["server"], answers[1]["tool"], answers[1]["result"]) == (
        "tests",
        "plain",
        "a",
    )
    assert "did you mean 'tests.plain'" in answers[2]["error"]
    assert [answer["result"] for answer in first] == ["a"]


async def test_calls_in_order_and_in_parallel_keep_their_order(served: Served) -> None:
    calls = "[{tool: 'wait', arguments: {seconds: 0.1}}, {tool: 'plain', arguments: {text: 'b'}}]"
    ordered, parallel, first = await value(
        f"[ctx.mcp.CallTools('tests', {calls}), ctx.mcp.CallToolsParallel('tests', {calls}),"
        " ctx.mcp.Race([{server: 'tests', tool: 'wait', arguments: {seconds: 20}}, {server:"
        " 'tests', tool: 'plain', arguments: {text: 'c'}}])]",
        served,
    )
    assert (
        [answer["result"] for answer in ordered]
        == [answer["result"] for answer in parallel]
        == [{"result": "waited"}, "b"]
    )
    assert [answer["result"] for answer in first] == ["c"]


@pytest.mark.parametrize(
    ("servers", "call", "expected_message"),
    [
        (
            ["tests"],
            "ListTools('gone')",
            "MCP server 'gone' is not among those that the assistant may use",
        ),
        (
            ["tests"],
            "ListTools('gone')",
            "'mcp.servers' in assistants/a/package.yao lists them: known: tests",
        ),
        (
            [],
            "ListTools('tests')",
            "'mcp.servers' in assistants/a/package.yao lists them: none are known",
        ),
        (
            [{"tests": ["echo"]}],
            "CallTool('tests', 'act')",
            "tool 'act' of MCP server 'tests' is not among those",
        ),
        (["tsets"], "ListTools('tsets')", "no MCP server 'tsets' (known: "),
        (["broken"], "ListTools('broken')", "mcps/broken.mcp.yao"),
        (["gone"], "ListTools('gone')", "there-is-no-such-program"),
    ],
)
async def test_a_hook_uses_only_what_the_package_lists(
    served: Served, servers: Any, call: str, expected_message: str
) -> None:
    caught = await value(
        f"(() => {{ try {{ return ctx.mcp.{call} }} catch (e) {{ return e.message }} }})()",
        served,
        servers,
    )
    assert expected_message in caught


async def test_a_list_that_create_returns_does_not_widen_what_hooks_may_use(served: Served) -> None:
    hook = """
    const Create = () => ({ mcp_servers: ["tests"] });
    function Next(ctx) {
      try { return { data: ctx.mcp.ListTools("tests") }; } catch (e) { return { data: e.message }; }
    }
    """
    events, model = await turn(served([], hook=hook))
    assert "tests__echo" in names(model)
    assert "is not among those" in end(events).data


async def test_a_hook_lists_and_calls_the_tools_of_the_turn(served: Served) -> None:
    async def weather(where: Where) -> str:
        return f"clear in {where.city}"

    tool = Tool(name="weather", description="The weather in a city", arguments=Where, run=weather)
    hook = """
    function Create(ctx) {
      const names = ctx.tools.List().map((tool) => tool.name);
      const wrong = ctx.tools.Call("tests__plain", { text: 1 });
      const right = [ctx.tools.Call("weather", { city: "Haifa" }), ctx.tools.Call("tests__plain", { text: "b" })];
      return { metadata: { names, answers: [...right, wrong] } };
    }
    """
    events, _ = await turn(served([{"tests": ["plain"]}], hook=hook), tools=[tool])
    metadata = end(events).metadata
    assert metadata["names"] == ["weather", "tests__plain"]
    assert [
        (expected_message["result"], expected_message["error"])
        for expected_message in metadata["answers"]
    ] == [
        ("clear in Haifa", None),
        ("b", None),
        (None, "wrong arguments: text: 1 is not of type 'string'"),
    ]
    assert of(events, "tool_start") == []


async def test_a_hooks_request_to_a_server_is_in_the_trace_under_the_hook(served: Served) -> None:
    hook = "function Create(ctx) { ctx.mcp.CallTool('tests', 'fail', {why: 'x'}); }"
    events, _ = await turn(served(hook=hook))
    nodes = {event.node.id: event.node for event in of(events, "trace")}
    (requested,) = [node for node in nodes.values() if node.type == "mcp"]
    assert (
        requested.label,
        requested.status,
        requested.data["server"],
        nodes[requested.parent].type,
    ) == (
        "tests.fail",
        "failed",
        "tests",
        "hook",
    )


def deep(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


@pytest.mark.parametrize(
    ("arguments", "mistake"),
    [
        ("[" * 100_000, "nested too deeply"),
        (deep(3000), "nested too deeply"),
        (deep(800), "nested too deeply: at most 100 levels"),
        (deep(101), "nested too deeply: at most 100 levels"),
        ('{"a": ' + "9" * 5000 + "}", "a number has too many digits"),
        ('{"a": "\\ud83d"}', "half a surrogate pair"),
    ],
)
async def test_the_model_receives_an_error_for_unreadable_arguments(
    make_app: MakeApp, arguments: str, mistake: str
) -> None:
    async def weather(where: Where) -> str:
        return "clear"

    tool = Tool(name="weather", description="The weather in a city", arguments=Where, run=weather)
    app = make_app({"assistants/a/package.yao": '{"name": "A", "connector": "script"}'})
    events, model = await turn(app, called(("weather", arguments)), "Done.", tools=[tool])
    assert mistake in json.loads(reported(model)[0])["error"]
    assert of(events, "tool_start")[0].arguments == {"arguments": arguments}
    assert end(events).content == "Done."
    assert all(json.loads(line(event)) for event in events)


@pytest.mark.parametrize("levels", [99, 100])
def test_arguments_may_be_nested_a_hundred_levels_deep(levels: int) -> None:
    assert parse_arguments(deep(levels))


async def test_a_result_without_a_json_form_is_reported_as_such(make_app: MakeApp) -> None:
    async def weather(where: Where) -> Any:
        circle: list[Any] = []
        circle.append(circle)
        return circle

    tool = Tool(name="weather", description="The weather in a city", arguments=Where, run=weather)
    app = make_app({"assistants/a/package.yao": '{"name": "A", "connector": "script"}'})
    events, model = await turn(app, called(("weather", {"city": "Haifa"})), "Done.", tools=[tool])
    assert "has no JSON form" in json.loads(reported(model)[0])["error"]
    assert end(events).content == "Done."


async def test_what_the_model_says_in_two_rounds_are_two_paragraphs(make_app: MakeApp) -> None:
    async def weather(where: Where) -> str:
        return "clear"

    tool = Tool(name="weather", description="The weather in a city", arguments=Where, run=weather)
    app = make_app({"assistants/a/package.yao": '{"name": "A", "connector": "script"}'})
    call = called(("weather", {"city": "Haifa"}))
    script = [
        {"text": "Looking #ref:nk47", **call},
        call,
        {"text": "Again.", **call},
        "The answer.",
    ]
    events, model = await turn(app, *script, tools=[tool])
    assert end(events).content == "Looking #ref:nk47\n\nAgain.\n\nThe answer."
    assert "".join(event.delta for event in of(events, "text")) == end(events).content
    assert [cited.marker for cited in end(events).citations] == ["#ref:nk47"]
    assert [
        message.content for message in model.calls[3].messages if message.role == "assistant"
    ] == [
        "Looking #ref:nk47",
        "",
        "Again.",
    ]


@dataclass
class Weather:
    day: date
    degrees: Decimal
    winds: frozenset[str]


@pytest.mark.parametrize("kind", ["async", "plain", "around"])
async def test_a_tool_answers_with_values_of_python_and_may_be_a_plain_function(
    make_app: MakeApp, kind: str
) -> None:
    loop = threading.get_ident()
    threads: list[int] = []

    def weather(where: Where) -> Weather:
        threads.append(threading.get_ident())
        return Weather(date(2026, 1, 2), Decimal("3.5"), frozenset({where.city}))

    async def slowly(where: Where) -> Weather:
        return weather(where)

    run = {"async": slowly, "plain": weather, "around": lambda where: slowly(where)}[kind]
    tool = Tool(name="weather", description="", arguments=Where, run=run)
    app = make_app({"assistants/a/package.yao": '{"connector": "script"}'})
    events, model = await turn(app, called(("weather", {"city": "Oslo"})), "Cold.", tools=[tool])
    expected_message = {"day": "2026-01-02", "degrees": "3.5", "winds": ["Oslo"]}
    assert [(event.result, event.error) for event in of(events, "tool_result")] == [
        (expected_message, None)
    ]
    assert [json.loads(text) for text in reported(model)] == [expected_message]
    assert (threads[0] == loop) == (kind != "plain")


async def test_a_result_without_json_form_is_an_error_of_the_tool_and_not_of_the_turn(
    make_app: MakeApp,
) -> None:
    tool = Tool(name="odd", description="", arguments=Where, run=lambda where: object())
    app = make_app({"assistants/a/package.yao": '{"connector": "script"}'})
    events, _ = await turn(app, called(("odd", {"city": "Oslo"})), "Odd.", tools=[tool])
    assert ["has no JSON form" in event.error for event in of(events, "tool_result")] == [True]
    assert end(events).content == "Odd."


@pytest.mark.parametrize("name", ["", "the weather", "x" * 65])
def test_a_name_that_no_api_takes_is_refused_when_the_tool_is_made(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a tool"):
        Tool(name=name, description="", arguments=Where, run=print)
