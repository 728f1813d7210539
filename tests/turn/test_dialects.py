"""Packages as they are published elsewhere run as they are: where files lie, what they import, how
options are spelled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groundhook import open_host
from groundhook.core.errors import ConfigError
from groundhook.core.types.events import Event
from groundhook.host.testing.canned import CannedSource
from tests.conftest import MakeApp
from tests.parts.turns import end, kb, of, run, scripted, web

PACKAGE = """
    {
      // as packages are written
      "name": "{{ name }}", "connector": "script", "description": "x", "tags": ["a"], "placeholder": { "title": "t" },
      "options": { "temperature": 0.5, },
      "kb": { "collections": ["docs"] },
      "search": { "web": { "provider": "tavily" }, "kb": { "threshold": 0.5 }, "citation": { "format": "#ref:{id}" } },
      "uses": { "keyword": "builtin" },
    }
"""

HOOK = """
    // @ts-nocheck
    import { agent } from "@yao/runtime";
    import { Exception, log } from "@yao/runtime";
    import * as runtime from "@yao/runtime";
    import type { Message } from "@yao/agent";
    import { AgentContext } from "@yao/agent";
    import { words } from "./lib";
    import { shout } from "@lib/loud";
    import config from "@config";

    const SEARCH_TYPES: string[] = ["web"];

    function Create(ctx: agent.Context, messages: agent.Message[]): agent.Create {
      log.Info("started for %%s", ctx.assistant_id);
      runtime.console.log("again");
      const query = words(messages);
      if (!query) throw new Exception("the question is empty", 400);
      const result = ctx.search.Web(query, { limit: 3, time_range: "week", rerank: { type: "score", top_n: 2 } });
      return {
        messages: [{ role: "system", content: shout(result.items[0].title) + config.mark }, ...messages],
        search: { need_search: true, %s: SEARCH_TYPES },
        metadata: { seen: result.items.length },
      };
    }

    function Next(ctx: agent.Context, payload: agent.Payload): agent.Next {
      return { data: { text: payload.completion.content } };
    }
"""


def files(choice: str = "search_types") -> dict[str, str]:
    return {
        "assistants/a/package.yao": PACKAGE,
        "assistants/a/src/index.ts": HOOK % choice,
        "assistants/a/src/lib.ts": (
            "export const words = (messages: any[]) => messages[messages.length - 1].content;"
        ),
        "assistants/a/src/shared/loud.ts": (
            "export function shout(text: string) { return text.toUpperCase(); }"
        ),
        "assistants/a/src/config.json": '{"mark": "!"}',
        "assistants/a/tsconfig.json": (
            """
            {
              // for editors, and for the names of files
              "compilerOptions": {
                "baseUrl": "./src",
                "paths": {
                  "@yao/*": ["../../../types/*"],
                  "@lib/*": ["./nowhere/*", "./shared/*"],
                  "@config": ["config"],
                },
              },
            }
        """
        ),
        "kb/docs.kb.yao": '{"name": "Docs"}',
    }


async def turn(app: Path, **more: Any) -> list[Event]:
    return await run(
        app, "what is new?", sources={"kb": kb(), "web": web(), "db": CannedSource({})}, **more
    )


@pytest.mark.parametrize("choice", ["search_types", "types"])
async def test_a_package_in_the_common_dialect_runs_unchanged(
    make_app: MakeApp, choice: str
) -> None:
    model = scripted("Fine.")
    source = web()
    events = await run(
        make_app(files(choice)),
        "what is new?",
        connector=model,
        sources={"kb": kb(), "web": source},
    )
    assert not of(events, "error")
    assert (
        next(message.text for message in model.calls[0].messages if message.role == "system")
    ).endswith("\n\nW1!")
    assert [event.source for event in of(events, "search_start")] == ["hook", "auto"]
    assert {event.search_type for event in of(events, "search_start")} == {"web"}
    assert (source.requests[0].time_range, source.requests[0].limit) == ("week", 3)
    assert source.requests[0].rerank is not None
    assert source.requests[0].rerank.top_k == 2
    assert end(events).data == {"text": "Fine."}
    assert end(events).metadata == {"seen": 1}
    assert model.calls[0].temperature == 0.5
    assert "started for a" in [event.node.label for event in of(events, "trace")]


async def test_what_the_runtime_does_not_have_cannot_be_imported_from_it(make_app: MakeApp) -> None:
    hook = 'import { Store } from "@yao/runtime";\nfunction Create() {\n  Store("x").Get("y");\n}'
    events = await turn(make_app({**files(), "assistants/a/src/index.ts": hook}))
    (error,) = of(events, "error")
    assert "Store is not offered by this host" in error.message
    assert (error.file, error.line) == ("assistants/a/src/index.ts", 3)


@pytest.mark.parametrize(
    ("target", "expected_message"),
    [
        ("../../../outside/*", "leads outside assistants/a"),
        ("./empty/*", "finds no file"),
    ],
)
async def test_names_of_files_stay_inside_the_package(
    make_app: MakeApp, target: str, expected_message: str
) -> None:
    config = f'{{"compilerOptions": {{"paths": {{"@lib/*": ["{target}"]}}}}}}'
    app = make_app(
        {
            **files(),
            "assistants/a/tsconfig.json": config,
            "outside/loud.ts": "export const shout = 1;",
        }
    )
    (error,) = of(await turn(app), "error")
    assert f"the import '@lib/loud' {expected_message}" in error.message
    assert (error.file, error.line) == ("assistants/a/src/index.ts", 9)


@pytest.mark.parametrize(
    ("config", "expected_message"),
    [
        ('{"compilerOptions": {"paths": []}}', "tsconfig.json:1:31: should be an object"),
        ('{"compilerOptions": {"paths": {"@a/*/*": []}}}', "'@a/*/*' may have one star"),
        ('{"compilerOptions": {"paths": {"@a": "b"}}}', "should be a list of places"),
        ('{"compilerOptions": {"paths": {"@a": [1]}}}', "tsconfig.json:1:39: should be a path"),
        ('{"compilerOptions": ', "tsconfig.json:1:"),
    ],
)
async def test_a_wrong_tsconfig_says_where(
    make_app: MakeApp, config: str, expected_message: str
) -> None:
    app = make_app({**files(), "assistants/a/tsconfig.json": config})
    async with open_host(app, environment={}) as host:
        with pytest.raises(ConfigError) as caught:
            async with host.stream("a", "x"):
                pass
    assert expected_message in str(caught.value)
