"""MCP servers whose tools are functions, at every door where a server can be named; and the scripts
of an app."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from groundhook import open_host
from groundhook.core.types.events import Event
from tests.cli.conftest import run_in
from tests.conftest import MakeApp
from tests.parts.turns import end, of, scripted

STEPS = """
export function words(args: any) { return { keywords: ["nib"] }; }
export function look(args: any, ctx: any) {
  return { items: [{ title: "Of " + args.query, url: "https://example.org/pen", content: "For " + ctx.authorized.user_id }] };
}
export function turn(args: any) { return { order: args.items.map((each: any) => each.citation_id).reverse() }; }
"""
FILES: dict[str, Any] = {
    "agent/agent.yml": "hooks: {workers: 0}\n",
    "scripts/math.ts": """
import { twice } from "./lib/twice";
/** Adds. */
export function Add(a: number, b: number) { return twice(a) + b; }
function Who(ctx: any) { return `${ctx.assistant_id} for ${ctx.authorized.user_id}`; }
""",
    "scripts/lib/twice.ts": "export const twice = (a: number) => 2 * a;",
    "mcps/common.mcp.yao": {
        "transport": "process",
        "tools": {
            "add": "scripts.math.Add",
            "who": "scripts.math.Who",
            "count": "agents.shop.orders.Count",
            "one": "scripts.math.Add",
        },
    },
    "mcps/mapping/common/schemes/one.in.yao": {
        "type": "object",
        "properties": {"x": {"type": "number"}},
        "x-process-args": ["$args.x", 1],
    },
    "assistants/shop/package.yao": {"connector": "script", "mcp": {"servers": ["common", "own"]}},
    "assistants/shop/src/orders.ts": """
/** Counts. */
export function Count(n: number, ctx: any) { return { n, by: ctx.assistant_id, user: ctx.authorized.user_id }; }
""",
    "assistants/shop/src/math.ts": "export function Add() { return 'own'; }",
    "assistants/shop/mcps/own.mcp.yao": {
        "transport": "process",
        "tools": {"add": "scripts.math.Add"},
    },
    "assistants/other/package.yao": {
        "connector": "script",
        "mcp": {"servers": ["common", "agents.shop.own"]},
    },
    "assistants/steps/package.yao": {
        "connector": "script",
        "uses": {
            "keyword": "mcp:steps.words",
            "web": "mcp:steps.look",
            "rerank": "mcp:steps.turn",
        },
        "search": {"web": {"enabled": True}},
    },
    "assistants/steps/mcps/steps.mcp.yao": {
        "transport": "process",
        "tools": {name: f"scripts.steps.{name}" for name in ("words", "look", "turn")},
    },
    "assistants/steps/src/steps.ts": STEPS,
}


def app_with(make_app: MakeApp, **more: Any) -> Path:
    files = FILES | more
    return make_app(
        {name: text if isinstance(text, str) else json.dumps(text) for name, text in files.items()}
    )


def hook(*calls: str) -> dict[str, str]:
    """Return a hook whose metadata are the values of calls, or what they throw."""
    each = ", ".join(f"() => {call}" for call in calls)
    return {
        "src/index.ts": f"""function Create(ctx) {{
          const value = (call) => {{ try {{ return call(); }} catch (error) {{ return error.message; }} }};
          return {{ metadata: {{ values: [{each}].map(value) }} }};
        }}"""
    }


async def turn(root: Path, assistant: str) -> list[Event]:
    identity = {"user_id": "ann"}
    model = scripted("Done.")
    async with (
        open_host(root, environment={}, connectors={"script": model}) as host,
        host.stream(assistant, "which pens?", identity=identity) as events,
    ):
        return [event async for event in events]


async def values_of(make_app: MakeApp, assistant: str, *calls: str) -> list[Any]:
    files = {f"assistants/{assistant}/{name}": text for name, text in hook(*calls).items()}
    events = await turn(app_with(make_app, **files), assistant)
    values: list[Any] = end(events).metadata["values"]
    return values


async def test_scripts_of_the_app_are_called_by_every_package_after_its_own(
    make_app: MakeApp,
) -> None:
    calls = (
        'Process("scripts.math.Add", 1, 2)',
        'Process("scripts.lib.twice.twice", 4)',
        'Process("scripts.gone.f")',
    )

    own, deep, gone = await values_of(make_app, "shop", *calls)

    assert (own, deep) == ("own", 8)
    assert "neither assistants/shop nor the app's folder scripts has 'gone'" in gone
    assert (await values_of(make_app, "other", *calls))[0] == 4


async def test_a_server_of_the_app_calls_functions_of_the_app_and_of_their_owners(
    make_app: MakeApp,
) -> None:
    values = await values_of(
        make_app,
        "other",
        'ctx.mcp.CallTool("common", "add", {a: 1, b: 2}).result',
        'ctx.mcp.CallTool("common", "who").result',
        'ctx.mcp.CallTool("common", "count", {n: 1}).result',
        'ctx.mcp.CallTool("common", "one", {x: 5}).result',
        'ctx.mcp.CallTool("agents.shop.own", "add").result',
        'ctx.mcp.ListResources("common").resources',
        'Process("agents.shop.orders.Count", 1)',
    )

    assert values[:6] == [
        4,
        "other for ann",
        {"n": 1, "by": "shop", "user": "ann"},
        11,
        "own",
        [],
    ]
    assert "is not a function of the package 'other'" in values[6]


async def test_steps_are_done_by_functions_under_the_identity_of_the_request(
    make_app: MakeApp,
) -> None:
    events = await turn(app_with(make_app), "steps")

    assert of(events, "warning") == []
    [found] = [event.item for event in of(events, "search_result")]
    assert (found.title, found.content) == ("Of nib", "For ann")


def test_the_command_line_calls_functions_with_an_identity(make_app: MakeApp) -> None:
    root = app_with(make_app)

    assert "Counts." in run_in(root, "mcp", "list", "common").out
    who = run_in(
        root, "mcp", "call", "common", "who", "{}", "--assistant", "other", "--user", "bob"
    )
    assert who.out == "other for bob\n"
    wrong = run_in(root, "mcp", "call", "common", "add", '{"a": "x"}')
    assert wrong.code == 1
    assert "is not of type 'number'" in wrong.out


async def test_check_reads_schemas_of_tools_and_names_what_a_server_cannot_call(
    make_app: MakeApp,
) -> None:
    wrong = {
        "transport": "process",
        "tools": {"x": "models.pen.Save"},
        "resources": {"y": "models.pen.Find"},
    }
    root = app_with(
        make_app,
        **{
            "assistants/wrong/package.yao": {"mcp": {"servers": ["wrong"]}},
            "assistants/wrong/mcps/wrong.mcp.yao": wrong,
        },
    )
    async with open_host(root, environment={}) as host:
        found = [str(problem) for problem in await host.check()]

    assert not [problem for problem in found if "nothing reads this file" in problem]
    assert any("models are read only: Find and Get" in problem for problem in found)
    assert any("its resources are not offered" in problem for problem in found)


PENS = {
    "name": "Pens",
    "table": {"name": "pen"},
    "columns": [
        {"name": "id", "type": "ID"},
        {"name": "colour", "type": "string"},
    ],
    "option": {"permission": True},
    "values": [
        {"id": 1, "colour": "red", "__yao_created_by": "ann"},
        {"id": 2, "colour": "blue", "__yao_created_by": "bob"},
        {"id": 3, "colour": "red", "__yao_created_by": "ann"},
    ],
}


async def test_tools_that_read_records_see_those_of_the_identity(make_app: MakeApp) -> None:
    server = {
        "transport": "process",
        "tools": {"one": "models.pen.Find", "some": "models.pen.Get", "red": "models.pen.Get"},
    }
    scheme = {
        "type": "object",
        "properties": {"most": {"type": "integer"}},
        "x-process-args": [{"wheres": [{"field": "colour", "value": "red"}], "select": ["id"]}],
    }
    calls = (
        'ctx.mcp.CallTool("pens", "one", { id: 1 }).structuredContent.colour',
        'ctx.mcp.CallTool("pens", "one", { id: 2 }).result',
        'ctx.mcp.CallTool("pens", "some", { wheres: [{ field: "id", op: ">", value: 1 }] }).result.length',
        'ctx.mcp.CallTool("pens", "red").result.map((row) => row.id)',
        'ctx.mcp.CallTool("pens", "some", { wheres: [{ field: "weight", value: 1 }] }).error',
    )
    root = app_with(
        make_app,
        **{
            "models/pen.mod.yao": PENS,
            "assistants/pens/package.yao": {"connector": "script", "mcp": {"servers": ["pens"]}},
            "assistants/pens/mcps/pens.mcp.yao": server,
            "assistants/pens/mcps/mapping/pens/schemes/red.in.yao": scheme,
            **{f"assistants/pens/{name}": text for name, text in hook(*calls).items()},
        },
    )
    loaded = run_in(root, "db", "load")
    assert loaded.code == 0, loaded.err

    values = end(await turn(root, "pens")).metadata["values"]

    assert values[:4] == ["red", None, 1, [1, 3]]
    assert "weight" in values[4]
    async with open_host(root, environment={}) as host:
        assert all(tool.reads_only for tool in await host.tools(assistant="pens"))


async def test_functions_of_other_assistants_count_with_those_of_the_turn(
    make_app: MakeApp,
) -> None:
    wait = """
    /** Waits, beside others of its kind. */
    export async function Wait() { await new Promise((done) => setTimeout(done, 100)); return 1; }
    """
    many = [{"tool": "wait", "arguments": {}} for _ in range(20)]
    files = {
        "mcps/turns.mcp.yao": {
            "transport": "process",
            "tools": {"wait": "agents.b.lib.Wait"},
        },
        "assistants/b/package.yao": {"connector": "script", "mcp": {"servers": ["turns"]}},
        "assistants/b/src/lib.ts": wait,
        "assistants/a/package.yao": {"connector": "script", "mcp": {"servers": ["turns"]}},
    }
    call = f'ctx.mcp.CallToolsParallel("turns", {json.dumps(many)}).map((each) => each.error ?? each.result)'
    hooks = {f"assistants/a/{name}": text for name, text in hook(call).items()}

    values = end(await turn(app_with(make_app, **files, **hooks), "a")).metadata["values"]

    assert any("more than 16 functions" in str(each) for each in values[0])
    assert values[0].count(1) >= 16


async def test_a_tool_with_a_wrong_name_is_missing_alone(make_app: MakeApp) -> None:
    tools = {"bad": "models.secret.Get", "add": "scripts.math.Add"}
    files = {
        "mcps/half.mcp.yao": {"transport": "process", "tools": tools},
        "assistants/half/package.yao": {"connector": "script", "mcp": {"servers": ["half"]}},
    }
    calls = hook('ctx.mcp.ListTools("half").tools.map((each) => each.name)')
    hooks = {f"assistants/half/{name}": text for name, text in calls.items()}
    root = app_with(make_app, **files, **hooks)

    events = await turn(root, "half")
    async with open_host(root, environment={}) as host:
        offered = [info.name for info in await host.tools(assistant="half")]
        problems = [problem.message for problem in await host.check()]

    assert end(events).metadata["values"] == [["add"]]
    assert any("MCP server 'half': tool 'bad'" in each.message for each in of(events, "warning"))
    assert "half__add" in offered
    assert any("'half'" in each and "'bad'" in each for each in problems)
