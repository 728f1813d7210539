"""Hooks held against their types: what is found, where, and what is left alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from groundhook.core.hook_engine import HookScript
from groundhook.hooks.typecheck import type_errors
from groundhook.hooks.typings import AppNames, typings
from tests.hooks.conftest import Hooks


def package(root: Path, files: str | Mapping[str, str], name: str = "x") -> HookScript:
    texts = {"index.ts": files} if isinstance(files, str) else files
    for path, text in texts.items():
        (root / name / path).parent.mkdir(parents=True, exist_ok=True)
        (root / name / path).write_text(dedent(text), encoding="utf-8")
    return HookScript(
        entry=root / name / next(iter(texts)), root=root / name, shown=f"assistants/{name}"
    )


async def found(root: Path, files: str | Mapping[str, str]) -> list[str]:
    return [str(error) for error in await type_errors([package(root, files)], typings())]


def listed(root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in root.rglob("*")]


async def test_a_finding_names_file_line_column_and_code(tmp_path: Path) -> None:
    source = """\
        import type { Context } from "groundhook";

        export function Create(ctx: Context) {
          return ctx.search.Wbe("x");
        }
    """
    (error,) = await type_errors([package(tmp_path, source)], typings())
    assert str(error.place) == "assistants/x/index.ts:4:21"
    assert error.code == "TS2339"
    assert error.message.startswith("TS2339: Property 'Wbe' does not exist on type")


@pytest.mark.parametrize(
    "source",
    [
        (
            "function Create(ctx, messages, options) { return ctx.nonsense(messages.x,"
            " options[0].y); }"
        ),
        "// @ts-nocheck\nfunction Create(ctx) { const n: number = 'text'; return ctx.x; }",
        (
            "export async function Create(ctx, messages) { const all = []; all.push(await"
            " ctx.a.b()); return { messages: all }; }"
        ),
        (
            "const cache = {}; function Next(ctx, payload) { cache[payload.x] = 1; return { data:"
            " cache }; }"
        ),
        (
            "let last; function Create(ctx, messages) { last = messages[messages.length -"
            " 1].content.trim(); return null; }"
        ),
    ],
)
async def test_hooks_without_annotations_pass_in_silence(tmp_path: Path, source: str) -> None:
    assert await found(tmp_path, source) == []


async def test_what_the_engine_has_is_known_to_the_types(hooks: Hooks, tmp_path: Path) -> None:
    expression = (
        "[Object.keys(Object.groupBy([1, 2], (n) => n % 2 ? 'odd' : 'even')).length,"
        " new Set([1]).union(new Set([2])).size, [2, 1].toSorted()[0],"
        " typeof Promise.withResolvers().promise.then, typeof WebAssembly.Memory]"
    )
    assert await found(tmp_path / "a", f"function Create() {{ return {expression}; }}") == []
    assert await hooks.value(expression) == [2, 2, 1, "function", "function"]
    source = "function Create() { using x = { [Symbol.dispose]() {} }; return null; }"
    assert await found(tmp_path / "b", source) == []
    assert await hooks.create(source) is None


async def test_javascript_is_checked_only_when_it_asks_for_it(tmp_path: Path) -> None:
    wrong = "const n = 1;\nn.nothing();\nfunction Create() {}\n"
    assert await found(tmp_path / "a", {"index.js": wrong}) == []
    checked = await found(tmp_path / "b", {"index.js": f"// @ts-check\n{wrong}"})
    assert [line[:24] for line in checked] == ["assistants/x/index.js:3:"]


async def test_files_that_a_hook_imports_are_checked_where_they_are(tmp_path: Path) -> None:
    files = {
        "src/index.ts": (
            """\
            import { f } from "../lib/f";
            import data from "../data.json";
            function Create() { f(data.n, data.s); }
        """
        ),
        "lib/f.ts": "export const f = (n: number, m: number): string => n;",
        "data.json": '{"n": 1, "s": "x"}',
        "unused.ts": "const n: number = 'not imported';",
    }
    assert [line.partition(" ")[0] for line in await found(tmp_path, files)] == [
        "assistants/x/lib/f.ts:1:52:",
        "assistants/x/src/index.ts:3:31:",
    ]


async def test_a_missing_function_names_its_replacement(tmp_path: Path) -> None:
    (line,) = await found(tmp_path, 'function Create() { return process.env["KEY"]; }')
    assert "TS2" in line
    assert "'process' is not offered by this host (what a hook may know is in ctx" in line


async def test_a_name_that_the_app_does_not_have_comes_with_the_nearest_one(tmp_path: Path) -> None:
    source = """\
        import type { Context } from "groundhook";
        function Create(ctx: Context) { ctx.search.KB("q", { collections: ["dcos"] }); }
    """
    declarations = typings(AppNames(collections=["docs", "agents.faq.answers"]))
    (error,) = await type_errors([package(tmp_path, source)], declarations)
    assert (error.code, error.hint) == ("TS2322", "did you mean 'docs'?")
    other = source.replace(
        'ctx.search.KB("q", { collections: ["dcos"] })', 'ctx.agent.Call("hlper", "Hi")'
    )
    (error,) = await type_errors(
        [package(tmp_path, other)], typings(AppNames(assistants=["helper", "guide"]))
    )
    assert (error.code, error.hint) == ("TS2345", "did you mean 'helper'?")


async def test_hooks_that_export_nothing_do_not_get_into_each_others_way(tmp_path: Path) -> None:
    scripts = [
        package(tmp_path, "const MINE = 1; function Create() { return null; }", name)
        for name in ("a", "b", "b/c")
    ]
    assert await type_errors(scripts, typings()) == []


async def test_a_package_inside_another_is_named_by_its_own_folder(tmp_path: Path) -> None:
    scripts = [
        package(tmp_path, "function Create(): number { return 'x'; }", name)
        for name in ("b", "b/c")
    ]
    errors = await type_errors(scripts, typings())
    assert [str(error.place) for error in errors] == [
        "assistants/b/c/index.ts:1:29",
        "assistants/b/index.ts:1:29",
    ]


async def test_nothing_is_left_beside_the_hooks(tmp_path: Path) -> None:
    before = {*listed(tmp_path)}
    script = package(tmp_path, "function Create() { return null; }")
    assert await type_errors([script], typings()) == []
    assert {*listed(tmp_path)} - before == {"x", "x/index.ts"}


async def test_no_hooks_no_compiler() -> None:
    assert await type_errors([], typings()) == []


async def test_the_examples_of_the_page_for_authors_fit_the_types(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/writing-assistants.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```ts\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(examples) == 3
    scripts = [package(tmp_path, text, f"x{number}") for number, text in enumerate(examples)]
    assert [str(error) for error in await type_errors(scripts, typings())] == []
