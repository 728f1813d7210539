"""What the check says of packages, and where: providers, names of files, quotes, enums;
host calls that took too long."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from groundhook import open_host
from tests.conftest import MakeApp
from tests.parts.turns import end, of, run, scripted

SLOW = """
import sys, time
time.sleep(%s)
"""


async def findings(root: Path, **environment: str) -> list[str]:
    async with open_host(root, environment=environment) as host:
        return [str(problem) for problem in await host.check()]


async def test_a_web_search_without_any_provider_is_a_warning(make_app: MakeApp) -> None:
    root = make_app({"assistants/a/package.yao": '{\n  "search": {"web": true}\n}'})
    assert await findings(root) == [
        "assistants/a/package.yao:2:21: warning: 'search.web' is on, and no web search provider is"
        " configured (set the key of a provider, such as TAVILY_API_KEY; `groundhook docs web-search` has"
        " all)"
    ]
    assert await findings(root, SERPAPI_API_KEY="k") == []


@pytest.mark.parametrize(
    "package",
    [
        {"search": {"web": {"provider": "tavily"}}, "uses": {"search": "disabled"}},
        {"search": {"web": True}, "uses": {"web": "b"}},
        {"search": {"web": True}, "uses": {"web": "disabled"}},
    ],
)
async def test_a_web_search_that_never_asks_a_provider_needs_none(
    make_app: MakeApp, package: dict[str, object]
) -> None:
    files = {"assistants/a/package.yao": json.dumps(package), "assistants/b/package.yao": "{}"}
    assert await findings(make_app(files)) == []


async def test_a_hook_under_another_name_is_a_warning(make_app: MakeApp) -> None:
    hook = "function Create() { return null; }"
    root = make_app(
        {
            "assistants/a/package.yao": "{}",
            "assistants/a/hook.ts": hook,
            "assistants/b/package.yao": '{"hooks": {"create": "hook.ts"}}',
            "assistants/b/hook.ts": hook,
            "assistants/c/package.yao": "{}",
            "assistants/c/index.ts": f'import "./hook";\n{hook}',
            "assistants/c/hook.ts": "export {};",
        }
    )
    [found] = await findings(root)
    assert found.startswith("assistants/a/hook.ts: warning: nothing reads this file (only index.ts")


async def test_a_second_hook_that_nothing_imports_is_a_warning(make_app: MakeApp) -> None:
    hook = "export function Create(ctx) { return null; }"
    root = make_app(
        {
            "assistants/a/package.yao": '{"mcp": {"servers": ["desk"]}}',
            "assistants/a/src/index.ts": f"import {{ one }} from '@lib/main';\n{hook}",
            "assistants/a/tsconfig.json": '{"compilerOptions": {"paths": {"@lib/*": ["./src/*"]}}}',
            "assistants/a/hook.ts": hook,
            "assistants/a/src/main.ts": "export { one } from '../hooks';",
            "assistants/a/hooks/index.ts": "export const one = 1;",
            "assistants/a/hooks/next.js": "export function Next(ctx) {}",
            "assistants/a/src/create.ts": "export function Find() { return 1; }",
            "assistants/a/mcps/desk.mcp.yao": json.dumps(
                {"transport": "process", "tools": {"find": "scripts.create.Find"}}
            ),
        }
    )
    found = [line.partition(" (")[0] for line in await findings(root)]
    assert found == [
        "assistants/a/hook.ts: warning: nothing reads this file",
        "assistants/a/hooks/next.js: warning: nothing reads this file",
    ]


async def test_a_hook_that_is_no_file_is_a_warning(make_app: MakeApp) -> None:
    root = make_app(
        {
            "assistants/a/package.yao": "{}",
            "assistants/b/package.yao": "{}",
            "assistants/b/index.ts/readme.md": "",
        }
    )
    (root / "assistants/a/index.ts").symlink_to(root / "gone.ts")
    assert await findings(root) == [
        "assistants/a/index.ts: warning: a link that leads nowhere, and not a file: this hook does"
        " not run",
        "assistants/b/index.ts: warning: a folder, and not a file: this hook does not run",
    ]


async def test_values_of_a_wrong_type_are_errors_wherever_a_file_of_the_package_is_named(
    make_app: MakeApp,
) -> None:
    package = '{"hooks": "src/x", "kb": true}'
    root = make_app({"assistants/a/package.yao": package, "assistants/a/index.ts": ""})
    assert await findings(root) == [
        "assistants/a/package.yao:1:11: error: 'hooks': should be an object, not 'src/x'",
        "assistants/a/package.yao:1:26: error: 'kb': should be an object, not true",
        "assistants/a/index.ts: warning: the hook defines neither Create nor Next (the host calls"
        " functions of these names)",
    ]


async def test_of_a_value_with_several_types_the_meant_one_is_reported(make_app: MakeApp) -> None:
    server = '{"transport": "process", "tools": {"a": "scripts.x.F", "b": 5}}'
    root = make_app({"mcps/desk.mcp.yao": server, "assistants/a/package.yao": "{}"})
    assert await findings(root) == [
        "mcps/desk.mcp.yao:1:61: error: 'tools.b': should be text, not 5",
    ]


async def test_a_described_function_that_no_model_can_call_is_a_warning(make_app: MakeApp) -> None:
    root = make_app(
        {
            "assistants/a/package.yao": "{}",
            "assistants/a/src/tools.js": "/** Add. */\nfunction add(a, b) { return a + b; }",
            "assistants/b/package.yao": "{}",
            "assistants/b/src/tools.js": "function called() { return 1; }",
            "assistants/c/package.yao": "{}",
            "assistants/c/src/tools.js": "/** Measure. */\nexport const größe = (a) => a;",
        }
    )
    assert await findings(root) == [
        "assistants/a/src/tools.js:2:10: warning: add is not exported, so it is not offered as a"
        " tool (write `export` before add)",
        "assistants/c/src/tools.js:2:14: warning: größe is exported, but not offered as a tool: a"
        " model cannot call this name (a name has at most 64 of the letters a-z and A-Z, digits, _"
        " and -)",
    ]


@pytest.mark.parametrize(
    ("path", "is_hook"),
    [
        ("src/Index.ts", True),
        ("hooks/index.ts", True),
        ("src/assistant.ts", True),
        ("assistant.js", True),
        ("src/helpers.ts", False),
        ("src/orders.ts", False),
        ("src/index.test.ts", False),
    ],
)
async def test_a_script_that_is_meant_to_be_a_hook_is_a_warning(
    make_app: MakeApp, path: str, is_hook: bool
) -> None:
    code = "export function Next(ctx) {}"
    if not is_hook:
        code = "export function Create(order: { id: number }) { return order; }"
    root = make_app({"assistants/a/package.yao": "{}", f"assistants/a/{path}": code})
    found = [line.partition(" (")[0] for line in await findings(root)]
    expected = [f"assistants/a/{path}: warning: nothing reads this file"]
    assert found == (expected if is_hook else [])


async def test_schemas_of_a_packages_own_tools_are_read_and_describe_them(
    make_app: MakeApp,
) -> None:
    schema = {"description": "Confirm an order.", "x-process-args": ["$args.id"]}
    server = {"transport": "process", "tools": {"confirm": "agents.a.tools.Confirm"}}
    root = make_app(
        {
            "assistants/a/package.yao": '{"mcp": {"servers": ["desk"]}}',
            "assistants/a/mcps/desk.mcp.yao": json.dumps(server),
            "assistants/a/mcps/mapping/desk/schemes/confirm.in.yao": json.dumps(schema),
            "assistants/a/mcps/mapping/desk/schemes/confirm.out.yao": "{}",
            "assistants/a/mcps/mapping/confirm.in.yao": "{}",
            "assistants/a/src/tools.ts": (
                "export function Confirm(id: string) { return id; }\n"
                "export function Forgotten(id: string) { return id; }\n"
            ),
        }
    )
    assert await findings(root) == [
        "assistants/a/mcps/mapping/confirm.in.yao: warning: nothing reads this file (names in mcps/"
        " end with .mcp.yao)",
        "assistants/a/src/tools.ts:2:17: warning: Forgotten is exported, but not offered as a tool:"
        " it has no description (describe it in a /** comment */ before the function)",
    ]


async def test_what_tools_ts_exports_and_no_model_can_call_is_reported_with_its_line(
    make_app: MakeApp,
) -> None:
    code = """import { Slow } from "./helper";
        export { Slow as Late };
        export const schemas = { Conform: {}, "Late": {} };
        /** Confirm an order. */
        export function Confirm(args: { id: string }) { return args.id; }
        export async function* Each() { yield 1; }
        function* Own() { yield 1; }
        export class Desk { static Open() { return [...Own()]; } }
        export class Held { open = 1; Close() { return 1; } }
        export const Walk = function* () { yield new Held(); };
        """
    helper = """export function* Slow() { yield 1; }
        export const schemas = { Nothing: {} };
        """
    root = make_app(
        {
            "assistants/a/package.yao": "{}",
            "assistants/a/src/tools.ts": "".join(f"{line.strip()}\n" for line in code.splitlines()),
            "assistants/a/src/helper.ts": helper,
        }
    )
    offered, result = "is exported, but not offered as a tool", "export a function that returns the"
    file = "assistants/a/src/tools.ts"
    assert await findings(root) == [
        f"{file}:3:26: warning: schemas.Conform describes no exported function"
        " (did you mean 'Confirm'?)",
        f"{file}:3:39: warning: schemas.Late describes no exported function (known: Confirm)",
        f"{file}:6:24: warning: Each {offered}: it is a generator ({result} result)",
        f"{file}:8:14: warning: Desk {offered}: static methods of a class are not called"
        f" ({result} result)",
        f"{file}:10:14: warning: Walk {offered}: it is a generator ({result} result)",
    ]


async def test_the_provider_of_a_web_search_is_suggested_whatever_its_case(
    make_app: MakeApp,
) -> None:
    package = {"search": {"web": {"provider": "SerpAPI"}}}
    root = make_app({"assistants/a/package.yao": json.dumps(package)})
    [found] = await findings(root)
    assert found.endswith("no web search provider 'SerpAPI' (did you mean 'serpapi'?)")


@pytest.mark.parametrize(
    ("prompts", "expected"),
    [
        (
            '- role: system\n  content: "You help.\n- role: user\n',
            "2:12: error: a quote that is never closed (close it where the text ends)",
        ),
        (
            '- content: "You help.\n  Cite.\n- role: user\n  content: "Hello"\n',
            "1:12: error: the quote that begins here ends in line 4, column 12, and more text"
            ' follows (inside "…" write \\" for ")',
        ),
        (
            "- content: 'Don't guess.'\n",
            "1:12: error: the quote that begins here ends in line 1, column 16, and more text"
            " follows (inside '…' write '' for ')",
        ),
        (
            '- content: "C:\\quotes"\n',
            "1:16: error: found unknown escape character 'q' in a quoted text (write \\\\ for a"
            " backslash, or '…' instead of \"…\")",
        ),
    ],
)
async def test_a_wrong_quote_is_reported_where_it_began(
    make_app: MakeApp, prompts: str, expected: str
) -> None:
    files = {"assistants/a/package.yao": "{}", "assistants/a/prompts.yml": prompts}
    assert await findings(make_app(files)) == [f"assistants/a/prompts.yml:{expected}"]


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("", "3:3: error: 'columns[1]': the enum column 'kind' has no 'option' with its values"),
        (
            ', "option": []',
            "3:3: error: 'columns[1]': the enum column 'kind' has no 'option' with its values",
        ),
        (
            ', "option": null',
            "3:36: error: 'columns[1].option': should be a list, and it is empty",
        ),
    ],
)
async def test_an_enum_without_options_is_reported_at_its_column(
    make_app: MakeApp, option: str, expected: str
) -> None:
    root = make_app(
        {
            "assistants/a/package.yao": "{}",
            "models/m.mod.yao": (
                '{"table": {"name": "m"}, "columns": [\n  {"name": "id", "type": "ID"},\n'
                f'  {{"name": "kind", "type": "enum"{option}}}\n]}}'
            ),
        }
    )
    assert await findings(root) == [f"models/m.mod.yao:{expected}"]


async def test_encrypted_columns_are_refused_and_other_keys_of_writers_accepted(
    make_app: MakeApp,
) -> None:
    columns = [
        {"name": "id", "type": "increments", "validations": [{"method": "typeof"}]},
        {"name": "data", "type": "jsonb", "title": "Data", "example": {"a": 1}},
        {"name": "secret", "type": "string", "crypt": "PASSWORD"},
    ]
    model = {"label": "Users", "tags": ["x"], "table": {"name": "m"}, "columns": columns}
    root = make_app({"agent/agent.yml": "{}", "models/m.mod.yao": json.dumps(model)})
    [found] = await findings(root)
    assert "'columns[2].crypt': encrypted columns cannot be read (remove the column" in found


@pytest.mark.parametrize(
    ("written", "wrong"), [("1m30s", False), ("500ms", False), ("0s", True), ("soon", True)]
)
async def test_a_servers_times_may_be_written_with_units(
    make_app: MakeApp, written: str, wrong: bool
) -> None:
    server = {"command": "sh", "timeout": written, "name": "T", "version": "1.0"}
    root = make_app({"agent/agent.yml": "{}", "mcps/t.mcp.yao": json.dumps(server)})
    assert [line.split(": ")[2] for line in await findings(root)] == (["'timeout'"] * wrong)


DIALECT = """
import { agent, http, Process } from "@yao/runtime";

interface SearchItem { citation_id: string; title: string; url: string; score: number }
interface SearchResult { type: string; query: string; items: SearchItem[]; total: number; error?: string }

function Create(ctx: agent.Context, messages: agent.Message[], options: agent.HookOptions): agent.Create {
  const query: string = messages[messages.length - 1].content;
  const web: SearchResult = ctx.search.Web(query, { limit: 5, time_range: options.range });
  const [kb, db]: SearchResult[] = ctx.search.All([
    { type: "kb", query, collections: ["docs"] },
    { type: "db", query, orders: [{ column: "total", option: "desc" }] },
  ]);
  const items = [...web.items, ...(kb?.items ?? []), ...db.items].sort((a, b) => b.score - a.score);
  const seen: { [url: string]: SearchItem } = {};
  for (const item of items) seen[item.url] = item;
  const first: number = ctx.search.DB(query).items[0].data.total + web.items[0].title.length;
  const names = ctx.search.KB(query, { graph: true }).graph_nodes.map((node) => node.name).join();
  const parts: agent.ContentPart[] = [{ type: "text", text: names }];
  const memory: agent.Memory = ctx.memory;
  memory.chat.Set("first", first);
  if (ctx.space) ctx.space.Set("first", first);
  const found = ctx.mcp.CallTool("echo", "ping", { query }).items.length;
  const answer = ctx.agent.Call("a", messages, { skip: { history: true } }).response.content;
  const reply = ctx.llm.Stream("gpt", messages, { onChunk: (chunk) => chunk.content.length }).content;
  const rows = Process("models.order.Get", { orders: [{ column: "id", option: "desc" }] });
  const page = http.Get("https://example.org").data.items.map((each) => each.title);
  return {
    messages: [...messages, { role: "user", content: parts }],
    metadata: { found, answer, reply, rows, page, seen },
    audio: { voice: "alloy" },
  };
}

function Next(ctx: agent.Context, payload: agent.Payload, options: agent.HookOptions): agent.Next {
  const calls: agent.ToolCall[] = payload.completion.tool_calls;
  const results = payload.tools.map((tool) => tool.result.text);
  return { data: { calls, results, tokens: payload.completion.usage.total_tokens } };
}
"""


async def test_results_in_the_types_of_the_dialect_are_what_an_author_says(
    make_app: MakeApp,
) -> None:
    files = {"assistants/a/src/index.ts": DIALECT, "kb/docs.kb.yao": "{}"}
    assert await findings(make_app({"assistants/a/package.yao": "{}", **files})) == []


async def test_what_the_runtime_does_not_offer_is_named_with_what_to_use(make_app: MakeApp) -> None:
    hook = 'import { FS } from "@yao/runtime";\nfunction Create() { new FS("data"); }'
    root = make_app({"assistants/a/package.yao": "{}", "assistants/a/src/index.ts": hook})
    about = "'FS' is not offered by this host"
    advice = "hooks have no file system; use an MCP server"
    assert await findings(root) == [
        f"assistants/a/src/index.ts:1:10: error: TS2305: {about} ({advice})"
    ]
    [error] = of(await run(root), "error")
    assert f"{about}: {advice}".replace("'", "") in error.message


async def test_calls_of_several_servers_wait_for_the_slowest_start(make_app: MakeApp) -> None:
    package = {"connector": "script", "mcp": {"servers": ["slow"]}}
    spec = {"command": sys.executable, "args": ["-c", SLOW % 60], "start_timeout": 0.2}
    app = make_app(
        {
            "assistants/a/package.yao": json.dumps(
                {**package, "hooks": {"limits": {"call_ms": 300}}}
            ),
            "assistants/a/index.ts": (
                "function Next(ctx) { return { data: ctx.mcp.All([{ mcp: 'slow', tool: 'x' }]) }; }"
            ),
            "mcps/slow.mcp.yao": json.dumps({**spec, "timeout": 30}),
        }
    )
    [answer] = end(await run(app, connector=scripted("Fine."))).data
    assert "'slow' was not ready after 0.2 s" in answer["error"] or (
        "no answer in 500 ms to ctx.mcp.All(['slow'])" in answer["error"]
    )


@pytest.mark.parametrize(
    ("call", "about"),
    [
        ("ctx.mcp.ListTools('slow')", "ctx.mcp.ListTools('slow')"),
        (
            "Process('text.ExtractJSON', 'x'.repeat(10)) || time.Sleep(2000)",
            "took more than 300 ms: time.Sleep()",
        ),
    ],
)
async def test_a_host_call_that_took_too_long_names_the_call_and_its_line(
    make_app: MakeApp, call: str, about: str
) -> None:
    package = {
        "connector": "script",
        "mcp": {"servers": ["slow"]},
        "hooks": {"limits": {"call_ms": 300}},
    }
    spec = {"command": sys.executable, "args": ["-c", SLOW % 60], "start_timeout": 0.2}
    app = make_app(
        {
            "assistants/a/package.yao": json.dumps(package),
            "assistants/a/index.ts": f"function Create(ctx) {{\n  const x = 1;\n  {call};\n}}",
            "mcps/slow.mcp.yao": json.dumps({**spec, "timeout": 30}),
        }
    )
    events = await run(app, connector=scripted("Fine."))
    [error] = of(events, "error")
    assert (error.file, error.line) == ("assistants/a/index.ts", 3)
    assert about in error.message
    if call.startswith("ctx.mcp"):  # the server's own time to start is added to that of the call
        assert "no answer in 500 ms to ctx.mcp.ListTools('slow')" in error.message


async def test_the_problems_of_a_file_come_in_the_order_of_its_lines(make_app: MakeApp) -> None:
    package = '{\n  "uses": {"rerank": "nobody"},\n  "kb": ["nothing"],\n  "colour": "red"\n}'
    found = await findings(make_app({"assistants/a/package.yao": package}))
    lines = [each.split(":")[1] for each in found if each.startswith("assistants/a/package.yao:")]
    assert lines == ["2", "3", "4"]


NAMED = """
function Create(ctx, messages) {
  const mine = ["none"], kind = "kb";
  ctx.search.KB("x", { collections: ["guide", "guid"], limit: 3 });
  ctx.search.KB("x", { "collections": "gone" as string });
  ctx.search.DB("x", { models: [`ordr`] });
  ctx.search.Parallel([
    { type: "kb", query: "x", collections: ["agents.a.guide", "noneatall"] },
    { type: "db", query: "x", models: ["orders", "__yao.user"] },
    { type: kind, query: "x", collections: mine },
    ...messages,
  ]);
  ctx?.search?.Document("manul", "d1");
  ctx.search.KB("x", { collections: [...mine, mine[0], "" + kind] });
  ctx.other?.KB("x", { collections: ["none"] });
  return { search: { kb: { collections: ["none"] } } };
}
"""


async def test_a_collection_or_model_that_a_hook_names_and_no_app_has_is_a_warning_at_its_place(
    make_app: MakeApp,
) -> None:
    typed = """import type { Context } from "groundhook";
    function Next(ctx: Context) { ctx.search.KB("x", { collections: ["guid"] }); }"""
    table = {"table": {"name": "orders"}, "columns": [{"name": "id", "type": "ID"}]}
    root = make_app(
        {
            "assistants/a/package.yao": "{}",
            "assistants/a/index.ts": NAMED,
            "assistants/a/kb/guide.kb.yao": "{}",
            "assistants/a/models/orders.mod.yao": json.dumps(table),
            "assistants/b/package.yao": "{}",
            "assistants/b/index.ts": typed,
            "kb/manual.kb.yao": "{}",
        }
    )
    found = await findings(root)
    assert [each.removeprefix("assistants/a/index.ts:") for each in found[:-1]] == [
        "4:47: warning: no collection 'guid' (did you mean 'guide'?)",
        "5:39: warning: no collection 'gone' (known: guide, manual)",
        "6:33: warning: no model 'ordr' (did you mean 'orders'?)",
        "8:63: warning: no collection 'noneatall' (known: guide, manual)",
        "13:25: warning: no collection 'manul' (did you mean 'manual'?)",
    ]
    # Where `ctx` has a type, the name is a wrong type, once.
    assert found[-1].startswith("assistants/b/index.ts:2:70: error: TS2820: Type '\"guid\"'")


async def test_names_in_files_that_a_hook_or_a_tool_imports_are_checked(make_app: MakeApp) -> None:
    search = "export const find = (ctx: any) => ctx.search.KB('x', { collections: ['gone'] });"
    root = make_app(
        {
            "assistants/a/package.yao": "{}",
            "assistants/a/src/index.ts": "import { find } from './lib/find';\nfunction Next(ctx) { find(ctx); }",
            "assistants/a/src/tools.ts": "import './lib/find';\n/** Finds. */\nexport function f(ctx) { return ctx.search.DB('x', { models: ['none'] }); }",
            "assistants/a/src/lib/find.ts": search,
        }
    )
    assert [line.partition(" (")[0] for line in await findings(root)] == [
        "assistants/a/src/lib/find.ts:1:70: warning: no collection 'gone'",
        "assistants/a/src/tools.ts:3:63: warning: no model 'none'",
    ]
