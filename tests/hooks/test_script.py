"""Packages: what may be imported, what a mistake says, and what the cache spares."""

from __future__ import annotations

import json
import os
import queue
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from groundhook.core.errors import HookSyntaxError
from groundhook.core.hook_engine import HookScript
from groundhook.hooks.compiler import ScriptCompiler
from groundhook.hooks.engine import IsolateOutcome
from groundhook.hooks.runner import open_engine
from groundhook.hooks.script import Linker, Transpile
from tests.hooks.conftest import Hooks

pytestmark = pytest.mark.usefixtures("processes_of_its_own")


async def test_files_are_linked_by_every_spelling_of_a_path(in_workers: Hooks) -> None:
    files = {
        "index.ts": (
            """
            import one from "./one";
            import { two } from "./two.js";
            import { three } from "./three.ts";
            import { four } from "./four/index";
            import { five } from "./five";
            import data from "./data.json";
            import * as all from "./data.json";
            import type { Nothing } from "./not-there";
            import { OnlyAType } from "@yao/agent";
            export { two as again } from "./two";
            function Create(ctx: OnlyAType): Nothing {
              return { metadata: { v: [one(), two, three, four, five, data.six, (all as any).six, require("./data.json").six] } };
            }
            """
        ),
        "one.ts": "export default () => 1;",
        "two.ts": "export const two: number = 2;",
        "three.ts": "export const three = 3;",
        "four/index.ts": "import { base } from '../base'; export const four = base + 1;",
        "five/index.js": "exports.five = 5;",
        "base.js": "export const base = 3;",
        "data.json": '{"six": 6, "text": "ü"}',
    }
    returned = await in_workers.create(files)
    assert returned is not None
    assert returned.metadata == {"v": [1, 2, 3, 4, 5, 6, 6, 6]}


async def test_files_that_import_each_other_are_linked(in_workers: Hooks) -> None:
    files = {
        "index.ts": (
            "import { even } from './even'; function Create() { return { metadata: { v: [even(4),"
            " even(7)] } }; }"
        ),
        "even.ts": (
            "import { odd } from './odd'; export const even = (n: number): boolean => n === 0 ||"
            " odd(n - 1);"
        ),
        "odd.ts": (
            "import { even } from './even'; export const odd = (n: number): boolean => n !== 0 &&"
            " even(n - 1);"
        ),
    }
    returned = await in_workers.create(files)
    assert returned is not None
    assert returned.metadata == {"v": [True, False]}


LANGUAGE = """
    enum Colour { Red = 1, Blue = "b" as any }
    const enum Fast { On = 3 }
    namespace Space { export const inside = 4; }
    class Point { #hidden = 5; static s = 9; constructor(private x: number, readonly y = 2) {}
      get sum() { return this.x + this.y + this.#hidden; } }
    abstract class Base<T> { abstract get(): T; }
    function overload(a: string): string; function overload(a: number): number; function overload(a: any) { return a; }
    const checked = { a: 1 } satisfies Record<string, number>;
    let maybe: { a?: { b: number } } | null = null;
    function* numbers() { yield 1; yield 2; }
    function Create() {
      label: for (const a of [1]) { for (const b of [2]) continue label; }
      return { metadata: { v: [Colour.Red, Fast.On, Space.inside, new Point(1).sum, Point.s, overload(1), checked.a,
        maybe?.a?.b ?? 7,
        [...numbers()].length, `t${1}`, 2 ** 3, ((a: number, ...rest: number[]) => rest.length)(1, 2, 3)] } };
    }
"""


async def test_the_language_is_all_there(in_workers: Hooks) -> None:
    returned = await in_workers.create(LANGUAGE)
    assert returned is not None
    assert returned.metadata == {"v": [1, 3, 4, 8, 9, 1, 1, 7, 2, "t1", 8, 2]}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"index.ts": "function Create() {\n  const a = ;\n}"},
            "assistants/x/index.ts:2:13: Expression expected.",
        ),
        (
            {"index.ts": "import './lib';", "lib.ts": "let x: number = 1;\nlet y = (;"},
            "assistants/x/lib.ts:2:10: Expression expected.",
        ),
        (
            {"index.ts": "type A = 1;\nlet a = 1;\nlet a = 2;"},
            "assistants/x/index.ts:3:5: Identifier 'a' has already been declared",
        ),
        (
            {"index.ts": "import data from './d.json'; data;", "d.json": '{\n  "a": ,\n}'},
            "assistants/x/d.json:2:8: is not JSON: ",
        ),
        (
            {"index.ts": "\nimport { a } from './gone';\na;"},
            "assistants/x/index.ts:2:1: the import './gone' finds no file (tried .ts",
        ),
        (
            {"index.ts": "import { a } from '@lib/runtime';\na();"},
            (
                "assistants/x/index.ts:1:1: cannot import '@lib/runtime' (only files of the package"
                " can be imported"
            ),
        ),
        (
            {"index.ts": "import fs from 'node:fs';\nfs;"},
            "assistants/x/index.ts:1:1: cannot import 'node:fs' (only files of the package",
        ),
        ({"index.ts": "import a from '/etc/passwd';\na;"}, "cannot import '/etc/passwd'"),
        (
            {"index.ts": "import a from './notes.txt';\na;", "notes.txt": "hi"},
            "the import './notes.txt' is not a script",
        ),
        (
            {"index.ts": "import { a } from '../outside';\na;"},
            "the import '../outside' leads outside assistants/x (imports must stay inside",
        ),
        (
            {
                "index.ts": "import { a } from '../beside';\na;",
                "../beside.ts": "export const a = 1;",
            },
            "the import '../beside' leads outside",
        ),
    ],
)
async def test_a_mistake_says_where_it_is(
    in_workers: Hooks, files: dict[str, str], message: str
) -> None:
    script = in_workers.script(files)
    with pytest.raises(HookSyntaxError) as caught:
        await in_workers.engine.check(script)
    assert message in str(caught.value)
    with pytest.raises(HookSyntaxError) as again:
        await in_workers.create(files)
    assert str(again.value) == str(caught.value)


async def test_a_symbolic_link_out_of_the_package_is_refused(in_workers: Hooks) -> None:
    script = in_workers.script(
        {"index.ts": "import { a } from './linked';\na;", "../secret.ts": "export const a = 1;"}
    )
    (script.root / "linked.ts").symlink_to(script.root.parent / "secret.ts")
    with pytest.raises(HookSyntaxError, match=r"the import './linked' leads outside assistants/x"):
        await in_workers.engine.check(script)


async def test_a_hook_that_is_a_link_out_of_its_package_is_named_as_the_link(
    in_workers: Hooks,
) -> None:
    script = in_workers.script({"index.ts": "", "../secret.ts": "export const a = 1;"})
    script.entry.unlink()
    script.entry.symlink_to(script.root.parent / "secret.ts")
    with pytest.raises(HookSyntaxError) as caught:
        await in_workers.engine.check(script)
    assert str(caught.value) == (
        "assistants/x/index.ts: the hook is not a file of its package (copy the file to which it"
        " links)"
    )


async def test_a_file_that_is_no_text_and_a_file_that_is_gone_are_named(in_workers: Hooks) -> None:
    script = in_workers.script("")
    script.entry.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(HookSyntaxError, match=r"assistants/x/index.ts: is not UTF-8 text"):
        await in_workers.engine.check(script)
    script.entry.unlink()
    with pytest.raises(
        HookSyntaxError, match=r"assistants/x/index.ts: the hook is not a file of its package"
    ):
        await in_workers.engine.check(script)


async def test_an_import_that_is_computed_is_refused_when_it_runs(in_workers: Hooks) -> None:
    value = await in_workers.value(
        "(() => { try { return require(['./a', 1].join('')); } catch (e) { return e.message; } })()"
    )
    assert value.startswith("cannot import ./a1: only files of the package")


async def test_checking_runs_nothing(in_workers: Hooks) -> None:
    await in_workers.engine.check(in_workers.script("throw new Error('ran');"))


async def test_a_changed_file_is_compiled_again(in_workers: Hooks) -> None:
    turn = in_workers.turn(
        {
            "index.ts": "import { v } from './lib'; function Create() { return { locale: v }; }",
            "lib.ts": "export const v = 'a';",
        }
    )
    seen = []
    for text in ("'a'", "'longer'"):
        (turn.script.root / "lib.ts").write_text(f"export const v = {text};")
        async with in_workers.engine.open(turn) as session:
            returned = await session.create([], {})
        assert returned is not None
        seen.append(returned.locale)
    assert seen == ["a", "longer"]


async def test_a_warm_cache_needs_no_compiler(in_workers: Hooks, tmp_path: Path) -> None:
    script = in_workers.script(
        {
            "index.ts": "import { v } from './lib'; export const Create = () => v;",
            "lib.ts": "export const v = 1;",
        }
    )
    cache = tmp_path / "state" / "hooks"
    async with open_engine(workers=1, cache=cache) as engine:
        await engine.check(script)
    assert len(list(cache.iterdir())) == 2
    program = await Linker(cache, _no_compiler).link(script)
    assert [module.file for module in program.modules] == [
        "assistants/x/index.ts",
        "assistants/x/lib.ts",
    ]


async def test_a_broken_cache_entry_and_a_cache_that_cannot_be_written_cost_only_time(
    in_workers: Hooks, tmp_path: Path
) -> None:
    script = in_workers.script("export const Create = () => null;")
    cache = tmp_path / "cache"
    async with open_engine(workers=1, cache=cache) as engine:
        await engine.check(script)
    (entry,) = cache.iterdir()
    entry.write_text("{")
    os.utime(script.entry, (1, 1))
    async with open_engine(workers=1, cache=cache) as engine:
        await engine.check(script)
    assert entry.read_text() != "{"
    blocked = tmp_path / "file"
    blocked.write_text("")
    async with open_engine(workers=1, cache=blocked / "cache") as engine:
        await engine.check(script)


async def test_turns_that_come_at_once_compile_once(in_workers: Hooks, tmp_path: Path) -> None:
    compiled: list[str] = []

    @asynccontextmanager
    async def counting() -> AsyncIterator[Transpile]:
        async def transpile(file: str, _source: str, _others: Mapping[str, Any]) -> str:
            compiled.append(file)
            await anyio.lowlevel.checkpoint()
            return json.dumps(
                {
                    "code": "",
                    "mappings": "",
                    "errors": [],
                    "requires": [],
                    "values": [],
                    "functions": [],
                    "reexports": [],
                    "imports": [],
                    "names": [],
                }
            )

        yield transpile

    linker = Linker(tmp_path / "cache", counting)
    script = in_workers.script("export {};")
    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(linker.link, script)
    assert compiled == ["index.ts"]


def test_files_given_to_one_compiler_at_once_get_their_own_answers() -> None:
    answers: queue.SimpleQueue[tuple[int, IsolateOutcome]] = queue.SimpleQueue()
    compiler = ScriptCompiler()
    try:
        for n in range(5):
            compiler.transpile(
                "a.ts",
                f"const a: number = {n};",
                {},
                lambda outcome, n=n: answers.put((n, outcome)),  # type: ignore[misc]
            )
        for _ in range(5):
            n, outcome = answers.get(timeout=60)
            assert json.loads(outcome.text)["code"].strip() == f"const a = {n};"
    finally:
        compiler.close()


def _no_compiler() -> Any:
    raise AssertionError("the compiler was called")


async def test_too_many_files_are_refused(tmp_path: Path) -> None:
    files = {f"m{n}.json": "1" for n in range(300)}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "index.ts").write_text(
        "".join(f"import a{n} from './m{n}.json'; a{n};\n" for n in range(300))
    )
    async with open_engine(workers=1, cache=tmp_path / "cache") as engine:
        with pytest.raises(HookSyntaxError, match="more than 256 files"):
            await engine.check(
                HookScript(entry=tmp_path / "index.ts", root=tmp_path, shown="assistants/x")
            )
