"""A package as they are written for another host: functions named in package.yao, types that nobody
imports, `option`, presets in the metadata, plug-ins of the program, thresholds of another scale."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from groundhook import open_host
from groundhook.core.errors import ConfigError
from groundhook.core.types.events import Event
from tests.conftest import MakeApp

PACKAGE = "assistants/desk/package.yao"
FILES = {
    "agent/agent.yml": "uses:\n  default: desk\n  keyword: builtin\n",
    "agent/prompts.yml": "- role: system\n  content: For everybody.\n",
    PACKAGE: """\
    {
      "name": "Help desk",
      "connector": "extractive",
      "option": { "temperature": 0.2 },
      "hooks": { "create": "src/index.ts:Create", "next": "src/after:Afterwards" }
    }
    """,
    "assistants/desk/prompts.yml": "- role: system\n  content: Answer politely.\n",
    "assistants/desk/prompts/chat/brief.yml": "- role: system\n  content: Answer briefly.\n",
    "assistants/desk/src/index.ts": """\
    import { topicOf } from "./lib";

    function Create(
      ctx: YaoAgent.Context,
      messages: YaoAgent.Message[],
      options?: YaoAgent.CreateOptions,
    ): YaoAgent.HookCreateResponse {
      const last: Message = messages[messages.length - 1];
      ctx.metadata.topic = topicOf(last);
      const wheres: QueryWhere[] = [{ field: "status", value: "open" }];
      ctx.metadata.wheres = wheres.length;
      return ctx;
    }
    """,
    "assistants/desk/src/lib.ts": """\
    export const topicOf = (message: Message): string => String(message.content).slice(0, 8);

    export function respond(ctx: Context, payload: NextPayload): NextResponse {
      const nothing: CreateResponse = null;
      return nothing ?? { data: { prompts: payload.messages.filter((each) => each.role === "system") } };
    }
    """,
    "assistants/desk/src/after.ts": """\
    import { respond } from "./lib";

    function Afterwards(ctx: Context, payload: NextHookPayload, options: HookOptions): YaoAgent.NextResponse {
      ctx.metadata.seen = ctx.metadata.topic;
      return { ...respond(ctx, payload), metadata: ctx.metadata };
    }
    """,
}


async def ask(app: Path, metadata: Mapping[str, Any] | None = None) -> list[Event]:
    async with (
        open_host(app, environment={}) as host,
        host.stream("desk", "A printer", options={"metadata": dict(metadata or {})}) as events,
    ):
        return [event async for event in events]


def prompts_of(events: list[Event]) -> str:
    return "\n".join(each["content"] for each in events[-1].data["prompts"])  # type: ignore[union-attr]


def warnings_of(events: list[Event]) -> list[str]:
    return [str(event.message) for event in events if event.type == "warning"]


async def checked(app: Path) -> list[str]:
    async with open_host(app, environment={}) as host:
        return [str(problem) for problem in await host.check()]


async def test_a_first_check_shows_mistakes_only(make_app: MakeApp) -> None:
    assert await checked(make_app(FILES)) == [
        f"{PACKAGE}:4:3: warning: 'option': read as 'options' (write 'options')",
    ]
    wrong = FILES["assistants/desk/src/lib.ts"].replace("slice(0, 8)", "slice('a')")
    found = await checked(make_app({**FILES, "assistants/desk/src/lib.ts": wrong}))
    assert ["TS2345" in each for each in found] == [False, True]


async def test_its_functions_run_and_of_a_returned_ctx_the_metadata_is_kept(
    make_app: MakeApp,
) -> None:
    events = await ask(make_app(FILES))
    end = events[-1]
    assert end.type == "stream_end"
    assert end.metadata == {"topic": "A printe", "wheres": 1, "seen": "A printe"}
    assert "Answer politely." in prompts_of(events)
    assert "For everybody." in prompts_of(events)
    assert [each for each in warnings_of(events) if "unknown" in each] == []


async def test_next_alone_is_a_function_of_the_file_that_it_names(make_app: MakeApp) -> None:
    package = '{"name": "N", "connector": "extractive", "hooks": {"next": "src/index.ts:Next"}}'
    hook = "export function Next() { return { metadata: { next: true } }; }"
    app = make_app({PACKAGE: package, "assistants/desk/src/index.ts": hook})
    assert await checked(app) == []
    end = (await ask(app))[-1]
    assert end.type == "stream_end"
    assert end.metadata == {"next": True}


async def test_a_function_that_the_file_lacks_is_named(make_app: MakeApp) -> None:
    package = FILES[PACKAGE].replace("Afterwards", "Later")
    app = make_app({**FILES, PACKAGE: package})
    assert any("the hook has no function 'Later'" in each for each in await checked(app))
    assert any("the hook has no function 'Later'" in each for each in warnings_of(await ask(app)))


async def test_a_function_needs_a_name(make_app: MakeApp) -> None:
    package = FILES[PACKAGE].replace(":Afterwards", ":after wards")
    with pytest.raises(ConfigError, match=r"'after wards' is not the name of a function"):
        await ask(make_app({**FILES, PACKAGE: package}))


@pytest.mark.parametrize(
    ("metadata", "has", "lacks", "warned"),
    [
        ({"__prompt_preset": "chat.brief"}, "Answer briefly.", "Answer politely.", ""),
        ({"__disable_global_prompts": True}, "Answer politely.", "For everybody.", ""),
        (
            {"__prompt_preset": "chat.brif"},
            "Answer politely.",
            "Answer briefly.",
            "no prompt preset 'chat.brif'; the default prompts are used",
        ),
        (
            {"__prompt_preset": 5, "__disable_global_prompts": "yes"},
            "Answer politely.",
            "Answer briefly.",
            "unknown key 'metadata.__prompt_preset' (only text counts)",
        ),
    ],
)
@pytest.mark.parametrize("by", ["request", "create"])
async def test_prompts_are_chosen_by_the_metadata(
    make_app: MakeApp, metadata: Mapping[str, Any], has: str, lacks: str, warned: str, by: str
) -> None:
    if by == "request":
        events = await ask(make_app(FILES), metadata=metadata)
    else:
        hook = f"function Create() {{ return {{ metadata: {dict(metadata)!r} }}; }}"
        hook = hook.replace("True", "true")
        events = await ask(make_app({**FILES, "assistants/desk/src/index.ts": hook}))
    assert has in prompts_of(events)
    assert lacks not in prompts_of(events)
    about_prompts = [each for each in warnings_of(events) if "no language model" not in each]
    assert any(warned in each for each in about_prompts) is bool(warned)


async def test_create_wins_over_the_metadata(make_app: MakeApp) -> None:
    hook = "function Create() { return { prompt_preset: 'chat.brief' }; }"
    app = make_app({**FILES, "assistants/desk/src/index.ts": hook})
    events = await ask(app, metadata={"__prompt_preset": "chat.other"})
    assert "Answer briefly." in prompts_of(events)


async def test_plug_ins_that_a_program_hands_over_are_warnings_and_near_misses_are_errors(
    make_app: MakeApp,
) -> None:
    other = {
        "agent/agent.yml": "uses:\n  rerank: shortest\n",
        "agent/search.yao": '{"web": {"provider": "mysearch"}}',
        "kb/faq.kb.yao": '{"name": "F", "embedding": {"provider": "minilm"}}',
        "connectors/own.conn.yao": '{"label": "O", "type": "ownmodel"}',
        "assistants/desk/toolkits/t.toolkit.yao": '{"type": "weather"}',
    }
    found = [each for each in await checked(make_app({**FILES, **other})) if ": no " in each]
    assert [": warning: " in each for each in found] == [True] * 5
    assert all("open_host(plugins=…)" in each for each in found)
    near = {"agent/search.yao": '{"web": {"provider": "tavilly"}}'}
    found = [each for each in await checked(make_app({**FILES, **near})) if ": no " in each]
    assert [": error: " in each for each in found if "tavilly" in each] == [True]


async def test_a_threshold_in_percent_is_pointed_out(make_app: MakeApp) -> None:
    found = await checked(make_app({**FILES, "agent/search.yao": '{"kb": {"threshold": 70}}'}))
    [message] = [each for each in found if "threshold" in each]
    assert "similarities are from 0 to 1: 0.7 in place of 70" in message
