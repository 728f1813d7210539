"""Tools that are functions of a package: offered to the model, called by hooks and outside turns,
in an isolate under the limits of hooks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from groundhook import open_host
from groundhook.plugins import Tool, ToolScope
from tests.conftest import MakeApp
from tests.parts.tool_turns import called, names
from tests.parts.turns import end, of, run, scripted
from tests.tool_calls.conftest import Question

TOOLS = """\
import type { Context } from "groundhook";
import { rate } from "./rates";

interface Order {
  /** Its number. */
  number: number;
  states?: ("packing" | "shipped")[];
}

/** The state of an order. */
export function status(order: Order, ctx: Context) {
  return { number: order.number, by: ctx.assistant_id, user: ctx.authorized.user_id };
}

/**
 * Adds two numbers.
 * @param a the first
 */
export async function add(a: number, b = 2) {
  return a + b;
}

/** What an amount is in another currency. */
export const convert = (amount: number) => amount * rate;

/** Throws. */
export function wrong() {
  throw new Error("no stock");
}

/** Runs forever. */
export function endless() {
  for (;;);
}

/** Calls itself through the host. */
export function again(ctx: Context): any {
  const outcome = ctx.tools.Call("again", {});
  return outcome.error ?? outcome.result;
}

export function helper() {}
function inner() { return "inner"; }
"""
Shop = Callable[..., Path]


@pytest.fixture
def shop(make_app: MakeApp) -> Shop:
    def make(hook: str = "", **files: str) -> Path:
        package = {
            "connector": "script",
            "hooks": {"limits": {"cpu_ms": 200}},
            "mcp": {"servers": ["orders"]},
        }
        own = {
            "package.yao": json.dumps(package),
            "src/tools.ts": TOOLS,
            "src/rates.ts": "export const rate = 3;",
            "src/lib/text.ts": "export function loud(text: string) { return text + '!'; }",
            "mcps/orders.mcp.yao": json.dumps(
                {
                    "transport": "process",
                    "tools": {"sum": "scripts.tools.add", "loud": "agents.a.lib.text.loud"},
                }
            ),
            "mcps/mapping/orders/schemes/loud.in.yao": json.dumps(
                {
                    "type": "object",
                    "description": "Says it loud.",
                    "properties": {"words": {"type": "object"}},
                    "x-process-args": ["$args.words.first"],
                }
            ),
            **({"src/index.ts": hook} if hook else {}),
            **files,
        }
        workers = {"agent/agent.yml": "hooks: {workers: 0}\n"}
        return make_app(workers | {f"assistants/a/{name}": text for name, text in own.items()})

    return make


async def test_the_model_is_offered_each_described_function_with_its_schema(shop: Shop) -> None:
    model = scripted(called(("status", {"number": 7}), ("add", {"a": 1})), "Done.")

    events = await run(shop(), connector=model)

    offered = {each["function"]["name"]: each["function"] for each in model.calls[0].tools}
    assert names(model)[:6] == ["status", "add", "convert", "wrong", "endless", "again"]
    assert offered["status"] == {
        "name": "status",
        "description": "The state of an order.",
        "parameters": {
            "type": "object",
            "properties": {
                "number": {"type": "number", "description": "Its number."},
                "states": {
                    "type": "array",
                    "items": {"type": "string", "enum": ["packing", "shipped"]},
                },
            },
            "required": ["number"],
            "additionalProperties": False,
        },
    }
    assert offered["add"]["parameters"] == {
        "type": "object",
        "properties": {
            "a": {"type": "number", "description": "the first"},
            "b": {"type": "number"},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    results = {event.name: event.result for event in of(events, "tool_result")}
    assert results == {"status": {"number": 7, "by": "a", "user": ""}, "add": 3}


async def test_wrong_arguments_and_what_a_function_throws_are_errors_that_the_model_reads(
    shop: Shop,
) -> None:
    calls = called(("add", {"a": "x"}), ("convert", {"c": 1}), ("wrong", {}), ("endless", {}))
    events = await run(shop(), connector=scripted(calls, "Done."))

    errors = {event.name: event.error for event in of(events, "tool_result")}
    assert "number" in errors["add"]
    assert "amount" in errors["convert"]
    assert "no stock" in errors["wrong"]
    assert "assistants/a/src/tools.ts:28" in errors["wrong"]
    assert "cpu_ms" in errors["endless"]
    assert end(events).content == "Done."


async def test_a_function_that_calls_itself_through_the_host_ends_with_an_error(
    shop: Shop,
) -> None:
    events = await run(shop(), connector=scripted(called(("again", {})), "Done."))

    [result] = of(events, "tool_result")
    assert "more than 16 functions" in json.dumps([result.result, result.error])


async def test_hooks_call_the_same_functions_as_tools_servers_and_processes(shop: Shop) -> None:
    hook = """
    function Create(ctx) {
      return { metadata: {
        tool: ctx.tools.Call("convert", { amount: 2 }).result,
        server: ctx.mcp.CallTool("orders", "sum", { a: 5 }).result,
        mapped: ctx.mcp.CallTool("orders", "loud", { words: { first: "hey" } }).result,
        refused: ctx.mcp.CallTool("orders", "sum", { a: "x" }).isError,
        listed: ctx.mcp.ListTools("orders").tools.map((tool) => tool.name),
        process: Process("scripts.tools.add", 1, 4),
        own: Process("agents.a.lib.text.loud", "no"),
        inner: Process("scripts.tools.inner"),
        context: Process("scripts.tools.status", { number: 1 }, ctx).by,
      } };
    }
    """
    events = await run(shop(hook), connector=scripted("Done."))

    assert end(events).metadata == {
        "tool": 6,
        "server": 7,
        "mapped": "hey!",
        "refused": True,
        "listed": ["sum", "loud"],
        "process": 5,
        "own": "no!",
        "inner": "inner",
        "context": "a",
    }


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("scripts.tools.ad", "did you mean 'add'?"),
        ("scripts.gone.f", "neither assistants/a nor the app's folder scripts has 'gone'"),
        ("scripts...tools.add", "scripts has '..tools'"),
        ("agents.b.tools.add", "is not a function of the package 'a'"),
    ],
)
async def test_process_names_what_it_does_not_find(shop: Shop, name: str, message: str) -> None:
    hook = f"""function Create() {{
      try {{ Process({name!r}); }} catch (error) {{ return {{ metadata: {{ error: error.message }} }}; }}
    }}"""
    events = await run(shop(hook), connector=scripted("Done."))

    assert message in end(events).metadata["error"]


async def test_functions_of_a_package_are_called_outside_turns(shop: Shop) -> None:
    async with open_host(shop(), environment={}) as host:
        outcome = await host.tool(
            "status", {"number": 3}, assistant="a", identity={"user_id": "ann"}
        )
        listed = [info.name for info in await host.tools(assistant="a")]

    assert outcome.result == {"number": 3, "by": "a", "user": "ann"}
    assert "orders__sum" in listed
    assert "helper" not in listed


async def test_a_broken_file_of_tools_is_a_warning_and_the_turn_goes_on(shop: Shop) -> None:
    app = shop(**{"src/tools.ts": "export function ("})
    events = await run(app, connector=scripted("Done."))

    found = [event for event in of(events, "warning") if event.file == "assistants/a/src/tools.ts"]
    assert found
    assert "continues without its tools" in found[0].message
    assert end(events).content == "Done."


async def test_check_names_functions_without_a_description_types_without_a_schema_and_wrong_names(
    shop: Shop,
) -> None:
    server: dict[str, Any] = {"transport": "process", "tools": {"x": "scripts.tools.nothing"}}
    source = (
        'import type { Far } from "../../b/src/far";\n'
        "/** Finds. */\nexport function find(far: Far) {}\nexport function helper() {}\n"
    )
    app = shop(
        **{
            "src/tools.ts": source,
            "../b/src/far.ts": "export interface Far { x: number }\n",
            "mcps/orders.mcp.yao": json.dumps(server),
            "mcps/wrong.mcp.yao": '{"transport": "process"}',
        }
    )
    async with open_host(app, environment={}) as host:
        found = {str(problem.place): problem.message for problem in await host.check()}

    assert "'Far'" in found["assistants/a/src/tools.ts:3:27"]
    assert "helper is exported" in found["assistants/a/src/tools.ts:4:17"]
    assert any("'nothing'" in message for message in found.values())
    assert any("a process server needs" in message for message in found.values())


REEXPORTS = {
    "src/tools.ts": """
export { price, secret as hidden } from "./lib/price";
export * from "./lib/more";
export type { Row } from "./lib/more";
import count from "./lib/count";
export { count };
/** Its own. */
function mine(a: number) { return a + 1; }
export { mine as own };
""",
    "src/lib/price.ts": """
interface Wanted {
  /** What is bought. */
  name: string;
}
/** The price. */
export function price(wanted: Wanted, ctx: any) { return `${wanted.name} for ${ctx.assistant_id}`; }
/** Doubles. */
export const secret = (a: number) => a * 2;
/** Of nobody. */
export function left() {}
""",
    "src/lib/more.ts": """
export * from "./deep";
export interface Row { x: number }
/** Hides that of the other file. */
export function price() { return 0; }
""",
    "src/lib/deep.ts": """
export * from "./more";
/** Throws. */
export async function deep(rows: string[]) { throw new Error(`${rows.length} too deep`); }
""",
    "src/lib/count.ts": """
/** Counts. */
export default function counting(text: string) { return text.length; }
""",
}


async def test_functions_that_the_file_of_tools_exports_of_other_files_are_tools(
    shop: Shop,
) -> None:
    calls = called(
        ("price", {"name": "tea"}),
        ("hidden", {"a": 4}),
        ("deep", {"rows": ["x"]}),
        ("count", {"text": "abc"}),
        ("own", {"a": 1}),
    )
    model = scripted(calls, "Done.")

    events = await run(shop(**REEXPORTS), connector=model)

    offered = {each["function"]["name"]: each["function"] for each in model.calls[0].tools}
    assert {"left", "secret", "counting"}.isdisjoint(offered)
    assert offered["price"]["parameters"]["properties"] == {
        "name": {"type": "string", "description": "What is bought."}
    }
    results = {event.name: event.error or event.result for event in of(events, "tool_result")}
    assert "assistants/a/src/lib/deep.ts:4" in results.pop("deep")
    assert results == {"price": "tea for a", "hidden": 8, "count": 3, "own": 2}


TYPES = {
    "src/tools.ts": """
import type { Order, Paged, State as Condition } from "./types";
import type Place from "@types/place";
import * as kinds from "./kinds";

/** Orders. */
export function order(order: Order, paged?: Paged, condition?: Condition) {
  return `${order.lines[0].article} to ${order.to.town}`;
}
/** Moves. */
export function move(to: Place, kind: kinds.Kind, first: kinds.Level.High) { return [to, kind, first]; }
""",
    "src/types/index.ts": """
import { type Line, type Base as Root } from "./lines";
export type { State } from "./lines";
export * from "./paging";
export interface Order extends Root {
  /** What is bought. */
  lines: Line[];
  notes?: Pick<Line, "article">;
}
""",
    "src/types/lines.ts": """
import type { Order } from "./index";
import type Place from "@types/place";
export interface Line { article: string; amount?: number }
export interface Base { to: Place }
export enum State { Open, Closed }
""",
    "src/types/paging.d.ts": "export type Paged = { page: number } & Partial<Size>;\ninterface Size { size: number }\n",
    "lib/types/place.ts": "interface Town { town: string }\nexport default Town;\n",
    "src/kinds.ts": "interface Kinds { air: 1; sea: 2 }\nexport type Kind = keyof Kinds;\nexport enum Level { Low = 1, High = 4 }\n",
    "tsconfig.json": '{"compilerOptions": {"paths": {"@types/*": ["./lib/types/*"]}}}',
}
TOWN = {
    "type": "object",
    "properties": {"town": {"type": "string"}},
    "required": ["town"],
    "additionalProperties": False,
}


async def test_types_that_another_file_of_the_package_declares_have_schemas(shop: Shop) -> None:
    order = {"lines": [{"article": "tea"}], "to": {"town": "Haifa"}}
    calls = called(
        ("order", {"order": order}),
        ("order", {"order": {**order, "to": "Haifa"}}),
        ("move", {"to": {"town": "Acre"}, "kind": "sea", "first": 4}),
    )
    app = shop(**TYPES)
    for _ in range(2):  # compiled, and from the cache
        model = scripted(calls, "Done.")
        events = await run(app, connector=model)

        offered = {each["function"]["name"]: each["function"] for each in model.calls[0].tools}
        properties = offered["order"]["parameters"]["properties"]
        line = {"article": {"type": "string"}, "amount": {"type": "number"}}
        assert properties["order"]["properties"] == {
            "to": TOWN,
            "lines": {
                "type": "array",
                "description": "What is bought.",
                "items": {
                    "type": "object",
                    "properties": line,
                    "required": ["article"],
                    "additionalProperties": False,
                },
            },
            "notes": {
                "type": "object",
                "properties": {"article": {"type": "string"}},
                "required": ["article"],
                "additionalProperties": False,
            },
        }
        assert properties["order"]["required"] == ["to", "lines"]
        assert list(properties["paged"]["properties"]) == ["page", "size"]
        assert properties["paged"]["required"] == ["page"]
        assert properties["condition"] == {"type": "number", "enum": [0, 1]}
        assert offered["move"]["parameters"]["properties"] == {
            "to": TOWN,
            "kind": {"type": "string", "enum": ["air", "sea"]},
            "first": {"type": "number", "enum": [4]},
        }
        made, wrong, moved = sorted(of(events, "tool_result"), key=lambda each: each.call_id)
        assert made.result == "tea to Haifa"
        assert "order.to: 'Haifa' is not of type 'object'" in (wrong.error or "")
        assert moved.result == [{"town": "Acre"}, "sea", 4]


async def test_types_with_parameters_have_the_schemas_of_what_they_are_given(shop: Shop) -> None:
    source = """
interface Range<T, U = number> { from: T; to?: Range<U> | T; step?: U }
type Pair<A, B = A> = { left: A; right: B };
/** Finds. */
export function find<K extends "tea" | "oil", Any, Key extends keyof Pair<K>>(kind: K, days: Range<string>, pair: Pair<boolean>, other: Any, key: Key) {
  return [kind, days.from, pair.left, other, key];
}
"""
    model = scripted("Done.")
    await run(shop(**{"src/tools.ts": source}), connector=model)
    offered = {each["function"]["name"]: each["function"] for each in model.calls[0].tools}
    properties = offered["find"]["parameters"]["properties"]
    assert properties["kind"] == {"type": "string", "enum": ["tea", "oil"]}
    assert properties["days"]["properties"]["from"] == {"type": "string"}
    assert properties["days"]["properties"]["step"] == {"type": "number"}
    assert properties["pair"]["properties"] == {
        "left": {"type": "boolean"},
        "right": {"type": "boolean"},
    }
    assert properties["other"] == {}
    assert properties["key"] == {"type": "string", "enum": ["left", "right"]}


async def test_a_type_that_changes_in_another_file_changes_the_schema(shop: Shop) -> None:
    app = shop(**TYPES)
    async with open_host(app, environment={}) as host:
        before = {info.name: info for info in await host.tools(assistant="a")}["move"]
        kinds = app / "assistants/a/src/kinds.ts"
        kinds.write_text("export type Kind = 'road';\nexport enum Level { Low = 1, High = 9 }\n")
        after = {info.name: info for info in await host.tools(assistant="a")}["move"]

    assert before.parameters["properties"]["kind"]["enum"] == ["air", "sea"]
    assert after.parameters["properties"]["kind"]["enum"] == ["road"]
    assert after.parameters["properties"]["first"]["enum"] == [9]


NESTED = "\n".join(
    f"export interface T{depth} {{ a: T{depth + 1}; b: T{depth + 1} }}" for depth in range(40)
)


@pytest.mark.parametrize(
    ("types", "found"),
    [
        # outside of the package, by a path and through a link
        ("../../b/src/far", {"src/tools.ts:3:29": "'T0'"}),
        ("./linked", {"src/tools.ts:3:29": "'T0'"}),
        ("./gone", {"src/tools.ts:3:29": "'T0'"}),
        ("groundhook", {"src/tools.ts:3:29": "'T0'"}),
        # in it, and of no schema
        ("./circle", {"src/circle.ts:1:27": "'T0'"}),
        ("./calculated", {"src/calculated.ts:1:18": "'typeof Date'"}),
        ("./nested", {}),
    ],
)
async def test_a_type_without_a_schema_is_a_warning_where_it_is_written(
    shop: Shop, types: str, found: dict[str, str]
) -> None:
    tools = (
        f'import type {{ T0 }} from "{types}";\n/** Finds. */\nexport function find(first: T0) {{}}'
    )
    app = shop(
        **{
            "src/tools.ts": tools,
            "src/circle.ts": "export interface T0 { a?: T0 }",
            "src/calculated.ts": "export type T0 = typeof Date;",
            "src/nested.ts": NESTED,
            "../b/src/far.ts": "export type T0 = string;",
            "package.yao": '{"connector": "script"}',
        }
    )
    (app / "assistants/a/src/linked.ts").symlink_to(app / "assistants/b/src/far.ts")
    async with open_host(app, environment={}) as host:
        problems = {
            str(each.place).removeprefix("assistants/a/"): each.message
            for each in await host.check()
            if each.code == "tool_type"
        }
        [tool] = [info for info in await host.tools(assistant="a") if info.name == "find"]

    assert len(json.dumps(dict(tool.parameters))) < 1_000_000
    if not found:
        assert len(problems) >= 1
    for place, named in found.items():
        assert named in problems[place]


async def test_arguments_after_the_last_named_one_are_a_list(shop: Shop) -> None:
    tools = """
/** Names. */
export function named(ctx, title: string, ...names: string[]) { return [title, ctx.assistant_id, ...names]; }
/** Takes anything. */
export const all = (...args) => args.length;
/** Reads both. */
export function both([first, second]: string[], { third }: { third: number }) { return [first, second, third]; }
"""
    hook = """
    function Create(ctx) { return { metadata: {
      alone: Process("scripts.tools.named", "Dr"),
      several: Process("scripts.tools.named", "Dr", "Ann", "Bo"),
      passed: Process("scripts.tools.named", ctx, "Dr", "Ann"),
    } }; }
    """
    calls = called(
        ("named", {"title": "Dr", "names": ["Ann", "Bo"]}),
        ("named", {"title": "Dr"}),
        ("named", {"title": "Dr", "names": "Ann"}),
        ("all", {"args": [1, 2, 3]}),
        ("both", {"argument1": ["a", "b"], "argument2": {"third": 3}}),
    )
    model = scripted(calls, "Done.")

    events = await run(shop(hook, **{"src/tools.ts": tools}), connector=model)

    offered = {each["function"]["name"]: each["function"] for each in model.calls[0].tools}
    assert offered["named"]["parameters"] == {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "names": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["title"],
        "additionalProperties": False,
    }
    results = sorted(of(events, "tool_result"), key=lambda each: each.call_id)
    assert [each.result for each in results] == [
        ["Dr", "a", "Ann", "Bo"],
        ["Dr", "a"],
        None,
        3,
        ["a", "b", 3],
    ]
    assert "names: 'Ann' is not of type 'array'" in (results[2].error or "")
    assert end(events).metadata == {
        "alone": ["Dr", "a"],
        "several": ["Dr", "a", "Ann", "Bo"],
        "passed": ["Dr", "a", "Ann"],
    }


async def looked_up(query: Question, scope: ToolScope) -> dict[str, str]:
    return {"found": query.query}


LOOK_UP = Tool(name="lookUp", description="Looks up.", arguments=Question, run=looked_up)


@pytest.mark.parametrize(
    ("returned", "offered"),
    [
        ("[]", []),
        ("['add']", ["add"]),
        ("['lookUp', 'status']", ["lookUp", "status"]),
        ("['add', 'ad']", ["add"]),
    ],
)
async def test_what_create_returns_as_tools_is_all_that_the_model_is_offered(
    shop: Shop, returned: str, offered: list[str]
) -> None:
    hook = f"""
    function Create() {{ return {{ tools: {returned}, mcp_servers: [] }}; }}
    function Next(ctx) {{ return {{ data: ctx.tools.Call("convert", {{ amount: 2 }}).result }}; }}
    """
    model = scripted("Done.")

    events = await run(shop(hook), connector=model, tools=[LOOK_UP])

    assert names(model) == offered
    assert end(events).data == 6
    warned = [event.message for event in of(events, "warning")]
    assert (len(warned) == 1 and "no tool 'ad'" in warned[0]) if "'ad'" in returned else not warned


async def test_a_tool_that_create_describes_anew_takes_what_fits_both_schemas(shop: Shop) -> None:
    hook = """
    function Create() {
      const parameters = { type: "object", properties: { a: { type: "number", maximum: 5 } } };
      return { tools: [{ type: "function", function: { name: "add", description: "Adds two.", parameters } }] };
    }
    """
    model = scripted(called(("add", {"a": 3}), ("add", {"a": 7}), ("add", {})), "Done.")

    events = await run(shop(hook), connector=model)

    offered = model.calls[0].tools[0]["function"]
    assert (offered["name"], offered["description"]) == ("add", "Adds two.")
    assert offered["parameters"]["properties"]["a"]["maximum"] == 5
    results = sorted(of(events, "tool_result"), key=lambda event: event.call_id)
    first, large, none = results
    assert first.result == 5
    assert "maximum of 5" in (large.error or "")
    assert "'a'" in (none.error or "")


async def test_a_wrong_entry_of_tools_is_an_error_with_its_path(shop: Shop) -> None:
    hook = "const Create = () => ({ tools: ['add', { type: 'function', function: { name: 7 } }] });"

    events = await run(shop(hook), connector=scripted("Done."))

    [failed] = of(events, "error")
    assert "tools[1].function.name" in failed.message


async def test_a_schema_of_create_that_checks_nothing_is_a_warning_with_the_tools_name(
    shop: Shop,
) -> None:
    hook = """
    const tool = (name, parameters) => ({ type: "function", function: { name, parameters } });
    const Create = () => ({ tools: [
      tool("add", { type: 7 }),
      tool("convert", { properties: { a: { $ref: "http://127.0.0.1:9/a.json" } } }),
      tool("lookUp", { $defs: { a: {} }, properties: { a: { $ref: "#/$defs/a" } } }),
    ] });
    """
    model = scripted(called(("add", {"a": 3})), "Done.")

    events = await run(shop(hook), connector=model, tools=[LOOK_UP])

    assert [event.result for event in of(events, "tool_result")] == [5]
    invalid, external = [event.message for event in of(events, "warning")]
    assert "'add'" in invalid
    assert "is not a valid JSON Schema" in invalid
    assert "'convert'" in external
    assert "'http://127.0.0.1:9/a.json'" in external


async def test_a_schema_that_takes_long_to_check_does_not_stop_the_event_loop(shop: Shop) -> None:
    hook = """
    function Create() {
      const $defs = { a30: {} };
      for (let n = 0; n < 30; n++) $defs["a" + n] = { allOf: Array(2).fill({ $ref: "#/$defs/a" + (n + 1) }) };
      const parameters = { $defs, properties: { a: { $ref: "#/$defs/a0" } } };
      return { tools: [{ type: "function", function: { name: "add", parameters } }] };
    }
    """
    pauses: list[float] = []

    async def watch() -> None:
        while True:
            began = time.thread_time()
            await anyio.lowlevel.checkpoint()
            pauses.append(time.thread_time() - began)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        events = await run(shop(hook), connector=scripted(called(("add", {"a": 3})), "Done."))
        tasks.cancel_scope.cancel()

    [result] = of(events, "tool_result")
    assert "it takes too long" in (result.error or "")
    assert max(pauses) < 0.4  # seconds; the check takes 0.5


async def test_types_in_comments_are_those_of_tools_in_javascript(shop: Shop) -> None:
    source = """
    /**
     * Finds.
     * @param {string} name what
     * @param {number} [most] how many
     * @param {?Array<string>} tags
     */
    export function find(name, most, tags) { return [name, most, tags]; }
    /** Takes all. @param {any} args */
    export const all = (args, ctx) => ({ ...args, by: ctx.assistant_id });
    """
    app = shop(**{"src/tools.js": source})
    (app / "assistants/a/src/tools.ts").unlink()
    model = scripted(called(("find", {"name": "x", "tags": None}), ("all", {"n": 1})), "Done.")

    events = await run(app, connector=model)

    find, whole = [each["function"]["parameters"] for each in model.calls[0].tools[:2]]
    assert find["properties"] == {
        "name": {"type": "string", "description": "what"},
        "most": {"type": "number", "description": "how many"},
        "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
    }
    assert find["required"] == ["name", "tags"]
    assert whole == {"type": "object", "properties": {}}
    results = {event.name: event.result for event in of(events, "tool_result")}
    assert results == {"find": ["x", None, None], "all": {"n": 1, "by": "a"}}


async def test_functions_see_the_language_and_theme_that_create_set(shop: Shop) -> None:
    hook = "const Create = () => ({ locale: 'de', theme: 'dark', route: '/x' });"
    source = """
    /** Where it runs. */
    export function where(ctx: any) { return [ctx.locale, ctx.theme, ctx.route]; }
    """
    app = shop(hook, **{"src/tools.ts": source})

    events = await run(app, connector=scripted(called(("where", {})), "Done."))

    [result] = of(events, "tool_result")
    assert result.result == ["de", "dark", "/x"]


AWKWARD = """
enum State { Open = 1, Closed, Gone }
enum Flag { None, Low = 1 << 2, Both = Low | Flag.None, Last }
enum Late { First = "abc".length, Second = 7 }
/** Takes enums. */
export function take(state: State, flag: Flag, late: Late) { return [state, flag, late]; }
/** Shows. */
export function toString(valueOf: number) { return "shown " + valueOf; }
/** Takes what it calls constructor. */
export function valueOf(constructor: toString) { return constructor; }
/** Deletes. */
function remove(a: number) { return -a; }
export { remove as delete, remove as "re-move", remove as Date };
export { default } from "./lib/count";
export * from "./lib/star";
"""


async def test_tools_may_have_the_names_of_keywords_and_of_what_every_object_has(
    shop: Shop,
) -> None:
    star = 'export { default } from "./count";'
    files = {"src/lib/count.ts": REEXPORTS["src/lib/count.ts"], "src/lib/star.ts": star}
    calls = called(
        ("toString", {"valueOf": 1}),
        ("valueOf", {"constructor": 2}),
        ("delete", {"a": 3}),
        ("re-move", {"a": 4}),
        ("Date", {"a": 5}),
        ("default", {"text": "abc"}),
        ("take", {"state": 2, "flag": 5, "late": 3}),
    )
    model = scripted(calls, "Done.")

    events = await run(shop(**{"src/tools.ts": AWKWARD, **files}), connector=model)

    results = {event.name: event.error or event.result for event in of(events, "tool_result")}
    assert results == {
        "toString": "shown 1",
        "valueOf": 2,
        "delete": -3,
        "re-move": -4,
        "Date": -5,
        "default": 3,
        "take": [2, 5, 3],
    }
    offered = {each["function"]["name"]: each["function"] for each in model.calls[0].tools}
    assert offered["take"]["parameters"]["properties"] == {
        "state": {"type": "number", "enum": [1, 2, 3]},
        "flag": {"type": "number", "enum": [0, 4, 4, 5]},
        "late": {"type": "number"},
    }


async def test_a_schema_that_is_not_an_object_is_an_error_of_the_file_of_tools(
    shop: Shop,
) -> None:
    source = "export const schemas = { f: 'nonsense' };\n/** Does. */\nexport function f() {}\n"
    async with open_host(shop(**{"src/tools.ts": source}), environment={}) as host:
        found = {str(problem.place): problem.message for problem in await host.check()}

    assert "schemas.f is not a JSON Schema" in found["assistants/a/src/tools.ts:3:17"]


@pytest.mark.parametrize(
    ("schemas", "at"),
    [
        ("const make = () => ({});\nexport const schemas = make();", "2:24"),
        ("const it = {};\nexport const schemas = { f: it };", "2:29"),
        ("const a = {};\nexport const schemas = { f: { properties: { a } } };", "2:45"),
        ("const base = {};\nexport const schemas = { f: { ...base, title: 'f' } };", "2:31"),
        ("export const schemas = { f: { title: `${1}` } };", "1:38"),
        ('export { schemas } from "./schemas";', "1:10"),
    ],
)
async def test_the_types_count_where_a_schema_is_computed_and_check_names_its_place(
    shop: Shop, schemas: str, at: str
) -> None:
    tools = f"{schemas}\n/** Does. */\nexport function f(a: string) {{}}\n"
    files = {"src/tools.ts": tools, "src/schemas.ts": "export const schemas = {};"}
    async with open_host(shop(**files), environment={}) as host:
        [found] = [str(each) for each in await host.check() if each.code == "tool_schema"]

    assert found.startswith(
        f"assistants/a/src/tools.ts:{at}: warning: computed values in schemas are not read"
    )
    model = scripted("Done.")
    await run(shop(**files), connector=model)
    offered = {each["function"]["name"]: each["function"] for each in model.calls[0].tools}
    assert offered["f"]["parameters"]["properties"] == {"a": {"type": "string"}}


async def test_a_schema_that_is_not_valid_is_a_warning_of_check(shop: Shop) -> None:
    tools = """\
        export const schemas = { f: { type: "objekt" } };
        /** Does. */
        export function f() {}
    """
    async with open_host(shop(**{"src/tools.ts": tools}), environment={}) as host:
        [found] = [str(each) for each in await host.check() if each.code == "tool_schema"]

    assert found == (
        "assistants/a/src/tools.ts:3:17: warning: schemas.f is not a valid JSON Schema, or too"
        " large to check (arguments are not checked, and a model may refuse it)"
    )


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("src/tools.js", "/** T. */\nfunction T(a = '') { return a; }\nmodule.exports = { T };"),
        ("src/tools.js", "/** T. */\nfunction own(a = '') { return a; }\nexports.T = own;"),
        ("src/tools.js", "/** T. */\nexports.T = (a = '') => a;"),
        ("src/tools.js", "module.exports = {\n  /** T. */\n  T: async (a = '') => a,\n};"),
        ("src/tools.ts", "export default {\n  /** T. */\n  T(a = '') { return a; },\n};"),
        ("src/tools.ts", "/** T. */\nconst T = (a = '') => a;\nexport default { T };"),
        (
            "src/tools.js",
            "exports.T = (a) => a;\nexports.schemas = { T: { description: 'T.', properties: { a: {"
            " type: 'string' } } } };",
        ),
    ],
)
async def test_a_function_is_offered_however_it_is_exported(
    make_app: MakeApp, file: str, source: str
) -> None:
    hook = "const Create = (ctx) => ({ metadata: ctx.tools.Call('T', { a: 'x' }) });"
    root = make_app(
        {
            "assistants/a/package.yao": '{"connector": "script"}',
            "assistants/a/index.js": hook,
            f"assistants/a/{file}": source,
        }
    )
    model = scripted("Done.")
    events = await run(root, connector=model)
    [offered] = model.calls[0].tools
    assert offered["function"]["description"] == "T."
    assert offered["function"]["parameters"]["properties"] == {"a": {"type": "string"}}
    assert end(events).metadata["result"] == "x"


async def test_a_text_of_a_schema_may_be_written_in_parts(shop: Shop) -> None:
    tools = """\
        export const schemas = { f: { type: "object", description: "Does " + "this." } };
        export function f() {}
    """
    model = scripted("Done.")
    await run(shop(**{"src/tools.ts": tools}), connector=model)
    offered = {each["function"]["name"]: each["function"] for each in model.calls[0].tools}
    assert offered["f"]["description"] == "Does this."


async def test_many_unknown_names_that_create_returns_are_one_warning(shop: Shop) -> None:
    hook = "const Create = () => ({ tools: Array.from({ length: 2000 }, (_, n) => 'gone' + n) });"

    events = await run(shop(hook), connector=scripted("Done."))

    [warned] = of(events, "warning")
    assert "no tools 'gone0', 'gone1'," in warned.message
    assert "and 1995 more" in warned.message
