"""Trials: what they set, what they may not set, and how a turn runs under one."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from groundhook import open_host
from groundhook.core.errors import UsageError
from groundhook.core.types.events import StreamEnd, StreamStart
from groundhook.host.config.trial import trial_of
from tests.conftest import MakeApp


def script(text: str) -> str:
    options = {"script": [{"text": text, "times": 0}]}
    return json.dumps({"label": "x", "type": "scripted", "options": options})


APP = {
    "assistants/a/package.yao": '{"name": "A", "connector": "one", "prompts": "Of the files."}',
    "assistants/b/package.yao": '{"name": "B", "connector": "one"}',
    "assistants/b/index.ts": 'function Create() { return { delegate: { agent_id: "a" } }; }',
    "assistants/c/package.yao": '{"name": "C", "connector": "one"}',
    "assistants/c/index.ts": 'function Create() { return { connector: "three" }; }',
    "connectors/one.conn.yao": script("One."),
    "connectors/two.conn.yao": script("Two."),
    "connectors/three.conn.yao": script("Three."),
    "connectors/strict.conn.yao": json.dumps(
        {
            "label": "x",
            "type": "scripted",
            "options": {"script": [{"text": "Tried.", "expect": "Of the trial.", "times": 0}]},
        }
    ),
}


async def answer(make_app: MakeApp, assistant: str, trial: dict[str, Any] | None) -> StreamEnd:
    async with open_host(make_app(APP), environment={}) as host:
        with anyio.fail_after(60):
            async with host.stream(assistant, "Hello?", trial=trial) as events:
                found = [event async for event in events]
    assert isinstance(found[0], StreamStart)
    assert isinstance(found[-1], StreamEnd)
    return found[-1]


async def test_a_trial_outranks_the_files(make_app: MakeApp) -> None:
    assert (await answer(make_app, "a", None)).content == "One."
    assert (await answer(make_app, "a", {"connector": "two"})).content == "Two."


async def test_its_prompts_replace_those_of_the_files(make_app: MakeApp) -> None:
    trial = {"connector": "strict", "prompts": [{"role": "system", "content": "Of the trial."}]}
    assert (await answer(make_app, "a", trial)).content == "Tried."
    assert (await answer(make_app, "a", {**trial, "prompts": "Of the trial."})).content == "Tried."


async def test_the_hook_outranks_a_trial(make_app: MakeApp) -> None:
    assert (await answer(make_app, "c", {"connector": "two"})).content == "Three."


async def test_the_assistant_that_takes_over_runs_as_in_its_files(make_app: MakeApp) -> None:
    assert (await answer(make_app, "b", {"connector": "two"})).content == "One."


@pytest.mark.parametrize(
    ("trial", "problem"),
    [
        ({"kb": {"collections": ["secret"]}}, "'kb' cannot be set by a trial"),
        ({"KB": ["secret"]}, "'KB' cannot be set by a trial"),
        ({"mcp": {"servers": ["x"]}}, "'mcp' cannot be set"),
        ({"http": ["*"]}, "'http' cannot be set"),
        ({"hooks": {"limits": {"heap_mb": 9999}}}, "'hooks' cannot be set"),
        ({"name": "B"}, "'name' cannot be set"),
        ({"search": {"web": {"host": "http://10.0.0.1"}}}, "'search.web.host' cannot be set"),
        ({"search": {"web": {"apiKeyEnv": "HOME"}}}, "'search.web.apiKeyEnv' cannot be set"),
        ({"search": {"web": {"pages": {"hosts": ["10.0.0.1"]}}}}, "'search.web.pages.hosts'"),
        ({"search": {"rerank": {"host": "http://10.0.0.1"}}}, "'search.rerank.host' cannot"),
        ({"search": {"rerank": {"path": "/etc"}}}, "'search.rerank.path' cannot be set"),
        ({"serch": {}}, "unknown key 'serch'"),
        ({"search": {"kb": {"max_results": "many"}}}, "max_results"),
        ({"prompts": {"short": [{"role": "system", "content": "x"}]}}, "must be a text or a list"),
        ({"prompts": [{"role": "tool", "content": "x"}]}, "role"),
        ({"locale": "$ENV.HOME"}, "environment variable 'HOME', which is not set"),
        ({"prompts": "$ENV.HOME"}, "environment variable 'HOME', which is not set"),
        ({"options": {"temperature": float("nan")}}, "must be a JSON object"),
    ],
)
async def test_a_trial_reaches_no_further_than_its_assistant(
    make_app: MakeApp, trial: dict[str, Any], problem: str
) -> None:
    async with open_host(make_app(APP), environment={"HOME": "/root"}) as host:
        with pytest.raises(UsageError) as raised:
            trial_of(trial, host.app.package("a"))
    assert problem in str(raised.value)


async def test_a_trial_nested_without_end_is_refused(make_app: MakeApp) -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"search": deep}
    async with open_host(make_app(APP), environment={}) as host:
        with pytest.raises(UsageError):
            trial_of(deep, host.app.package("a"))
