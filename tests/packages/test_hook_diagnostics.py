"""What the check of an app says of its hooks: types, names, files of tests, and hooks with nothing
to run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from groundhook import open_host
from groundhook.core.problems import Problem
from groundhook.host.testing.runner import Result, open_runner
from tests.conftest import MakeApp

APP = {
    "agent/agent.yml": "hooks: {workers: 0}\n",
    "assistants/shop/package.yao": "{}",
    "models/product.mod.yao": '{"table": {"name": "p"}, "columns": [{"name": "id", "type": "ID"}]}',
    "models/order.mod.yao": '{"table": {"name": "o"}, "columns": [{"name": "id", "type": "ID"}]}',
}
HOOK = """\
import type { Context, CreateReturn } from "groundhook";

export function Create(ctx: Context): CreateReturn {
  const found = ctx.search.DB("pens", { models: ["%s"] });
  return { messages: [{ role: "system", content: found.%s }] };
}
"""


async def problems(root: Path, assistant: str | None = None) -> list[Problem]:
    async with open_host(root, environment={}) as host:
        return await host.check(assistant)


@pytest.fixture
def shop(make_app: MakeApp) -> MakeApp:
    def make(files: Mapping[str, str]) -> Path:
        return make_app(
            {**APP, **{f"assistants/shop/{name}": text for name, text in files.items()}}
        )

    return make


@pytest.mark.parametrize(
    ("model", "value", "expected_message"),
    [
        (
            "product",
            "items[0].titel",
            "assistants/shop/index.ts:5:65: error: TS2551: Property 'titel' does not exist",
        ),
        (
            "prodcut",
            "query",
            "assistants/shop/index.ts:4:50: error: TS2820: Type '\"prodcut\"' is not assignable",
        ),
        (
            "product",
            "total",
            "assistants/shop/index.ts:5:41: error: TS2322: Type 'number' is not assignable",
        ),
    ],
)
async def test_a_hook_that_does_not_fit_its_types_is_an_error(
    shop: MakeApp, model: str, value: str, expected_message: str
) -> None:
    (problem,) = await problems(shop({"index.ts": HOOK % (model, value)}), "shop")
    assert str(problem).startswith(expected_message)


async def test_a_name_that_the_app_does_not_have_comes_with_those_that_it_has(
    shop: MakeApp,
) -> None:
    (problem,) = await problems(shop({"index.ts": HOOK % ("customers", "query")}))
    assert (problem.code, problem.hint) == (
        "TS2322",
        "known: __yao.team, __yao.user, order, product",
    )


async def test_a_hook_that_does_not_compile_is_reported_once(shop: MakeApp) -> None:
    (problem,) = await problems(shop({"index.ts": "export function Create( { return null; }"}))
    assert (problem.severity, problem.code) == ("error", "hook_syntax")


async def test_files_of_tests_are_checked_as_well(shop: MakeApp) -> None:
    test = 'test("a", () => {\n  expect(turn("hi")).toHaveSerched("db");\n});\n'
    (problem,) = await problems(shop({"tests/a.test.ts": test}))
    assert str(problem).startswith("assistants/shop/tests/a.test.ts:2:22: error: TS2551")
    assert problem.message.endswith("Did you mean 'toHaveSearched'?")


async def test_a_mistake_in_a_file_of_two_programs_is_reported_once(shop: MakeApp) -> None:
    files = {
        "tsconfig.json": '{"compilerOptions": {"paths": {"@lib/*": ["./lib/*"]}}}',
        "index.ts": (
            'import { n } from "@lib/n";\nexport const Create = () => ({ metadata: { n } });'
        ),
        "lib/n.ts": 'export const n: number = "text";',
        "tests/a.test.ts": 'import { n } from "@lib/n";\ntest("a", () => expect(n).toBe(1));\n',
    }
    (problem,) = await problems(shop(files))
    assert str(problem).startswith("assistants/shop/lib/n.ts:1:14: error: TS2322")


@pytest.mark.parametrize(
    ("hook", "hint"),
    [
        ("function create(ctx) { return null; }", "did you mean 'Create'?"),
        ("const next = () => null; // Next comes later", "did you mean 'Next'?"),
        ("export const TITLE = 'Create';", "the host calls functions of these names"),
    ],
)
async def test_a_hook_with_nothing_to_run_is_a_warning(shop: MakeApp, hook: str, hint: str) -> None:
    (problem,) = await problems(shop({"index.ts": hook}))
    assert (
        str(problem)
        == f"assistants/shop/index.ts: warning: the hook defines neither Create nor Next ({hint})"
    )


async def test_a_hook_that_is_a_value_is_an_error_with_its_line(shop: MakeApp) -> None:
    (problem,) = await problems(shop({"index.ts": "\nexport const Create = 5;"}))
    assert str(problem).startswith(
        "assistants/shop/index.ts:2:14: error: Create is a number, not a function"
    )


@pytest.mark.parametrize(
    "hook",
    [
        "const Next = (ctx, payload) => null;",
        'export * from "./lib";',
        'export { hook as Create } from "./lib";',
        'export { default } from "./lib";',
        'import hooks from "./lib";\nexport default hooks;',
        "export = { Create: () => null };",
    ],
)
async def test_a_hook_with_something_to_run_is_none(shop: MakeApp, hook: str) -> None:
    lib = "export function hook() { return null; }\nexport default { Create: hook };"
    assert await problems(shop({"index.ts": hook, "lib.ts": lib})) == []


async def test_declarations_of_names_that_have_changed_are_a_warning(shop: MakeApp) -> None:
    root = shop({"index.ts": HOOK % ("product", "query")})
    async with open_host(root, environment={}) as host:
        text = host.declarations()
    fresh = shop({"../../types/groundhook.d.ts": text})
    assert await problems(fresh) == []
    stale = shop({"../more/package.yao": "{}"})
    (problem,) = await problems(stale)
    assert str(problem).startswith("types/groundhook.d.ts: warning: names or calls have changed")


async def test_a_broken_package_does_not_hide_what_is_wrong_with_the_others(shop: MakeApp) -> None:
    root = shop(
        {
            "index.ts": HOOK % ("product", "nothing"),
            "../broken/package.yao": "{",
            "../broken/index.ts": "x",
        }
    )
    assert {problem.place.file for problem in await problems(root) if problem.place} == {
        "assistants/broken/package.yao",
        "assistants/broken/index.ts",
        "assistants/shop/index.ts",
    }


async def test_what_files_of_tests_really_have_is_declared(shop: MakeApp) -> None:
    listing = """\
        test("list", () => {
          const answer = turn("hi", { model: ["Hello."] });
          throw new Error(JSON.stringify([Object.keys(expect(1)), Object.keys(answer)]));
        });
    """
    async with open_runner(shop({"tests/a.test.ts": listing}), environment={}) as runner:
        (listed,) = [result.fault async for result in runner.run() if isinstance(result, Result)]
    assert listed is not None
    matchers, fields = json.loads(listed.message)
    assert {"toBe", "toHaveCited", "not"} <= set(matchers)
    assert {"content", "searches"} <= set(fields)
    uses = [
        *(f"expect(1).{name};" for name in matchers),
        *(f'turn("hi").{name};' for name in fields),
    ]
    assert await problems(shop({"tests/a.test.ts": "\n".join(uses)})) == []
