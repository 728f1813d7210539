"""`groundhook types`, and what `groundhook check` says of hooks that do not fit them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Groundhook

HOOK = """\
import type { Context, CreateReturn } from "groundhook";

export function Create(ctx: Context): CreateReturn {
  const found = ctx.search.DB("pens", { models: ["%s"] });
  return { messages: [{ role: "system", content: found.%s }] };
}
"""


def write(app: Path, name: str, text: str) -> None:
    (app / name).parent.mkdir(parents=True, exist_ok=True)
    (app / name).write_text(text, encoding="utf-8")


def test_types_are_written_with_the_apps_names_and_only_when_they_changed(
    groundhook: Groundhook, shop: Path
) -> None:
    write(shop, "assistants/a/b/package.yao", "{}")
    write(shop, "assistants/a/b/kb/own.kb.yao", "{}")
    assert groundhook("types").out == "types/groundhook.d.ts written\ntsconfig.json written\n"
    text = (shop / "types/groundhook.d.ts").read_text(encoding="utf-8")
    assert 'type CollectionName = "agents.a.b.own" | "own";' in text
    assert 'type ModelName = "__yao.team" | "__yao.user" | "product";' in text
    assert 'type AssistantName = "a.b" | "shop";' in text
    assert 'type ConnectorName = "cites" | "cut" | "extractive" |' in text
    config = json.loads((shop / "tsconfig.json").read_text(encoding="utf-8"))
    assert config["include"] == ["types/groundhook.d.ts", "assistants"]
    again = groundhook("types", "--json")
    assert again.lines == [{"file": "types/groundhook.d.ts", "written": False}]


def test_an_existing_tsconfig_is_left_alone_and_reported(
    groundhook: Groundhook, shop: Path
) -> None:
    mine = '{ "compilerOptions": { "strict": true } } // mine'
    write(shop, "tsconfig.json", mine)
    ran = groundhook("types")
    assert (ran.code, ran.out) == (0, "types/groundhook.d.ts written\n")
    assert '"types/groundhook.d.ts"' in ran.err
    assert (shop / "tsconfig.json").read_text(encoding="utf-8") == mine


def test_check_fails_on_a_hook_that_does_not_fit_its_types(
    groundhook: Groundhook, shop: Path
) -> None:
    write(shop, "assistants/shop/index.ts", HOOK % ("product", "itmes"))
    ran = groundhook("check", "shop")
    assert (ran.code, ran.out) == (1, "1 error, no warnings\n")
    assert "assistants/shop/index.ts:5:56: TS2551: Property 'itmes' does not exist" in ran.err


def test_a_hook_that_does_not_fit_its_types_runs_all_the_same(
    groundhook: Groundhook, shop: Path
) -> None:
    hook = (
        'export function Create(ctx): null { const n: number = "text"; console.log(n); return "x"'
        " && null; }\n"
    )
    write(shop, "assistants/shop/index.ts", hook)
    assert groundhook("check", "shop").code == 1
    assert groundhook("chat", "shop", "products").code == 0


def test_findings_have_typescripts_code_in_json(groundhook: Groundhook, shop: Path) -> None:
    write(shop, "assistants/shop/index.ts", HOOK % ("product", "itmes"))
    (line,) = groundhook("check", "--json").lines
    assert (line["type"], line["code"][:2], line["file"], line["line"]) == (
        "error",
        "TS",
        "assistants/shop/index.ts",
        5,
    )
