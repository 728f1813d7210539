"""Keys of `package.yao` as such packages write them: accepted, and acted upon where they mean
something here; unknown ones are warnings, but for misspellings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from groundhook.core.errors import ConfigError
from groundhook.core.ports import ModelCall
from groundhook.core.types.connector_spec import ConnectorSpec
from groundhook.core.types.sampling import Sampling
from groundhook.core.types.tools import Tool
from groundhook.core.types.turn import Message
from groundhook.host.check.check import check
from groundhook.host.config.packages import load_app
from groundhook.host.llm.anthropic_request import request as to_anthropic
from groundhook.host.llm.request import request
from tests.conftest import MakeApp
from tests.parts.agents import turn, value
from tests.parts.turns import end, of, run, scripted

SAMPLING = {
    "top_p": 0.4,
    "presence_penalty": -1.5,
    "frequency_penalty": 0.5,
    "stop": ["END"],
    "seed": 7,
    "response_format": {"type": "json_object"},
    "reasoning_effort": "low",
}


def findings(root: Path) -> list[str]:
    return [str(problem) for problem in check(load_app(root, {}))]


def test_a_key_of_a_section_that_is_written_outside_of_it_names_its_place(
    make_app: MakeApp,
) -> None:
    root = make_app(
        {
            "assistants/a/package.yao": '{"temperature": 1, "threshold": 1}',
            "agent/agent.yml": "default: a\n",
            "apis/x.api.yao": '{"url": "http://a.test", "items": "a", "title": "name"}',
            "connectors/c.conn.yao": (
                '{"type": "anthropic", "options": {"model": "m", "key": "", "thinking": {}}}'
            ),
        }
    )
    hints = {
        line.split("unknown key ")[1].split("'")[1]: line.split(" (")[1][:-1]
        for line in findings(root)
        if "unknown key" in line
    }
    assert hints["temperature"] == "did you mean 'options.temperature'?"
    assert hints["title"] == "did you mean 'fields.title'?"
    assert hints["options.thinking"] == "set reasoning_effort, which switches thinking on"
    assert hints["threshold"].startswith("known: ")  # several sections have it
    assert hints["default"] == "did you mean 'uses.default'?"


def test_an_unknown_key_is_a_warning_that_names_the_nearest_one(make_app: MakeApp) -> None:
    root = make_app(
        {
            "assistants/a/package.yao": (
                '{"name": "A",\n "sandbox": {"image": "x"},\n'
                ' "search": {"web": {"provider_name": "tavily"}}, "id": "a"}'
            )
        }
    )

    assert load_app(root, {}).package("a").name == "A"
    found = findings(root)
    assert [line.split(" (")[0] for line in found] == [
        "assistants/a/package.yao:2:2: warning: unknown key 'sandbox', which nothing reads",
        "assistants/a/package.yao:3:21: warning: unknown key 'search.web.provider_name', which"
        " nothing reads",
        "assistants/a/package.yao:3:50: warning: unknown key 'id', which nothing reads",
    ]
    assert found[1].endswith("(did you mean 'provider'?)")


def test_a_setting_that_has_gone_is_a_warning_that_says_so(make_app: MakeApp) -> None:
    gone = '{"name": "A", "search": {"kb": {"company": false}}}'
    root = make_app({"assistants/a/package.yao": gone})

    assert load_app(root, {}).package("a").name == "A"
    (found,) = (line for line in findings(root) if "company" in line)
    assert found.startswith(
        "assistants/a/package.yao:1:33: warning: unknown key 'search.kb.company'"
    )
    assert "passages are no longer compared with each other" in found


@pytest.mark.parametrize(
    ("text", "key", "known"),
    [
        ('{"serach": {"kb": true}}', "serach", "search"),
        ('{"conector": "x"}', "conector", "connector"),
        ('{"search": {"kbs": true}}', "search.kbs", "kb"),
        ('{"options": {"temprature": 1}}', "options.temprature", "temperature"),
    ],
)
def test_a_key_that_is_nearly_a_known_one_is_an_error(
    make_app: MakeApp, text: str, key: str, known: str
) -> None:
    root = make_app({"assistants/a/package.yao": text})
    with pytest.raises(ConfigError, match=rf"unknown key '{key}' \(did you mean '{known}'\?\)"):
        load_app(root, {}).package("a")


async def test_options_of_the_model_reach_it_from_the_package(make_app: MakeApp) -> None:
    package = {"connector": "script", "options": {**SAMPLING, "stop": "END"}}
    model = scripted("Fine.")
    await run(make_app({"assistants/a/package.yao": json.dumps(package)}), connector=model)
    assert model.calls[0].sampling.over(Sampling()) == SAMPLING


async def test_options_of_the_model_reach_it_from_a_hook(make_app: MakeApp) -> None:
    ask = f"ctx.llm.Stream('b', 'Hello', {json.dumps({**SAMPLING, 'response_format': 'text'})})"
    assert (await value(make_app, ask))["error"] is None


def test_options_of_the_model_are_sent_and_those_of_the_call_come_first() -> None:
    spec = ConnectorSpec.model_validate(
        {"type": "openai", "options": {"model": "m", "seed": 1, "top_p": 0.9, "stop": "A"}}
    )
    call = ModelCall(
        messages=[Message(role="user", content="x")],
        sampling=Sampling.model_validate({**SAMPLING, "stop": [], "seed": 0}),
    )
    sent = request(call, spec)
    assert {name: sent[name] for name in SAMPLING} == {**SAMPLING, "stop": ["A"], "seed": 0}


class Nothing(BaseModel):
    """The arguments of a tool that takes none."""


TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
LOOK = {"type": "function", "function": {"name": "look"}}


@pytest.mark.parametrize(
    ("choice", "other"),
    [
        ("auto", {"type": "auto"}),
        ("required", {"type": "any"}),
        ("none", {"type": "none"}),
        (LOOK, {"type": "tool", "name": "look"}),
    ],
)
async def test_the_choice_of_a_tool_and_the_user_reach_each_api_in_its_form(
    make_app: MakeApp, choice: Any, other: dict[str, str]
) -> None:
    options = {"tools": [TOOL], "tool_choice": choice, "user": "u-1", "reasoning_effort": "low"}
    hook = f"function Create(ctx) {{ ctx.llm.Stream('b', 'x', {json.dumps(options)}); }}"
    _, models = await turn(make_app, {"a": hook}, {"b": ["Fine."]})
    [call] = models["b"].calls

    spec = {name: ConnectorSpec.model_validate({"type": name}) for name in ("openai", "anthropic")}
    sent = request(call, spec["openai"])
    assert (sent["tool_choice"], sent["user"]) == (choice, "u-1")
    sent = to_anthropic(call, spec["anthropic"], lambda _: [])
    assert (sent["tool_choice"], sent["metadata"]) == (other, {"user_id": "u-1"})
    assert ("thinking" in sent) == (choice in ("auto", "none"))  # else the API refuses it


IMAGE = {"type": "image_url", "image_url": "data:image/png;base64,AAAA"}


@pytest.mark.parametrize(
    ("capabilities", "sent"),
    [
        ({}, {"type": "image_url", "image_url": {"url": IMAGE["image_url"]}}),
        (["vision"], {"type": "image_url", "image_url": {"url": IMAGE["image_url"]}}),
        ({"vision": False}, {"type": "text", "text": ""}),
    ],
)
def test_images_go_to_models_that_can_see(capabilities: Any, sent: dict[str, Any]) -> None:
    spec = ConnectorSpec.model_validate({"type": "openai", "capabilities": capabilities})
    message = Message(role="user", content=[{"type": "text", "text": "What is it?"}, IMAGE])
    named = {"type": "image_url", "image_url": {"url": IMAGE["image_url"], "filename": "a.png"}}
    content = request(ModelCall(messages=[message]), spec)["messages"][0]["content"]
    if sent["type"] == "text":
        assert content == "What is it?\n[image, image/png, 1 kB: not read by this model]"
    else:
        assert content == [{"type": "text", "text": "What is it?"}, sent]
        kept = Message(role="user", content=[named])
        assert request(ModelCall(messages=[kept]), spec)["messages"][0]["content"] == [sent]


def test_a_model_without_tool_calls_is_offered_no_tools() -> None:
    tool = {"type": "function", "function": {"name": "x", "parameters": {}}}
    call = ModelCall(messages=[Message(role="user", content="x")], tools=[tool])
    options = {"capabilities": {"tool_calls": False}}
    spec = ConnectorSpec.model_validate({"type": "openai", "options": options})
    assert "tools" not in request(call, spec)
    assert "tools" in request(call, ConnectorSpec(type="openai"))


@pytest.mark.parametrize(
    ("options", "calls", "rounds"),
    [({"tool_loop": False}, 1, 1), ({"max_turn": 2}, 3, 2), ({"max_turn": 0}, 1, 0)],
)
async def test_the_loop_of_tools_is_as_long_as_the_package_wants(
    make_app: MakeApp, options: dict[str, Any], calls: int, rounds: int
) -> None:
    async def count(_: Nothing) -> int:
        return 1

    tool = Tool(name="count", description="x", arguments=Nothing, run=count)
    app = make_app(
        {
            "assistants/a/package.yao": json.dumps(
                {"connector": "script", "mcp": {"options": options}}
            ),
            "assistants/a/index.ts": (
                "function Next(ctx, payload) { return { data: payload.tools.length }; }"
            ),
        }
    )
    model = scripted({"tool_calls": [{"name": "count"}], "times": 0})
    events = await run(app, connector=model, tools=[tool])
    assert (len(model.calls), end(events).data) == (calls, rounds)


async def test_create_and_next_may_be_in_files_that_the_package_names(make_app: MakeApp) -> None:
    package = {"connector": "script", "hooks": {"create": "src/before.ts", "next": "src/after"}}
    shared = "export let seen = { count: 0 };"
    app = make_app(
        {
            "assistants/a/package.yao": json.dumps(package),
            "assistants/a/src/shared.ts": shared,
            "assistants/a/src/before.ts": """
                import { seen } from "./shared";
                function Create(ctx, messages) { seen.count++; return { metadata: { by: "before" } }; }
                function Next() { throw new Error("not this one"); }
            """,
            "assistants/a/src/after.ts": """
                import { seen } from "./shared";
                function Create() { throw new Error("not this one"); }
                function Next(ctx, payload) { return { data: { seen: seen.count } }; }
            """,
        }
    )
    events = await run(app, connector=scripted("Fine."))
    assert not of(events, "error")
    assert (end(events).metadata, end(events).data) == ({"by": "before"}, {"seen": 1})


async def test_an_error_in_the_file_of_next_names_that_file(make_app: MakeApp) -> None:
    app = make_app(
        {
            "assistants/a/package.yao": '{"connector": "script", "hooks": {"next": "next.ts"}}',
            "assistants/a/index.ts": "function Create() { return null; }",
            "assistants/a/next.ts": "function Next() {\n  throw new Error('broken');\n}",
        }
    )
    events = await run(app, connector=scripted("Fine."))
    [error] = of(events, "error")
    assert (error.file, error.line, error.message) == (
        "assistants/a/next.ts",
        2,
        "Next threw broken",
    )


def test_a_file_of_a_hook_that_does_not_exist_is_an_error_with_its_line(make_app: MakeApp) -> None:
    root = make_app({"assistants/a/package.yao": '{\n  "hooks": {"create": "../b/index.ts"}\n}'})
    assert findings(root) == [
        "assistants/a/package.yao:2:23: error: 'hooks.create': no file '../b/index.ts' in this"
        " package (a path below the package's folder, such as src/create.ts, or"
        " src/create.ts:Create)"
    ]


def test_other_names_of_keys_are_the_same_keys(make_app: MakeApp) -> None:
    package = {
        "uses": {"querydsl": "b"},
        "search": {"querydsl": {"strict": True}, "weights": {"user": 2, "auto": 1.5}},
        "connector_options": {"optional": True, "connectors": ["script"], "filters": ["vision"]},
        "capabilities": "Answers questions.",
        "mcp": {"servers": [], "options": {"tool_loop": True, "max_turn": 3}},
    }
    app = load_app(
        make_app(
            {
                "assistants/a/package.yao": json.dumps(package),
                "assistants/b/package.yao": '{"uses": {"query": "builtin"}}',
            }
        ),
        {},
    )
    settings = app.settings_for(app.package("a")).settings
    assert (settings.uses.query, settings.search.query.strict) == ("b", True)
    assert (settings.search.weights.user, settings.search.weights.auto) == (2, 1.5)
    assert settings.mcp.options.max_turn == 3
    assert app.package("a").info["capabilities"] == "Answers questions."
    assert findings(app.root) == []
