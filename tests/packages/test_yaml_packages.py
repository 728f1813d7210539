"""Packages and settings of searches in YAML: the same documents as in JSON with comments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from groundhook import open_host
from groundhook.core.errors import ConfigError
from groundhook.host.check.yao import yao_notes
from groundhook.host.config.trial import trial_of
from groundhook.host.config.trial_diff import trial_diff
from tests.conftest import MakeApp

PACKAGE = """\
# Of the help desk
name: Help desk
connector: extractive
kb: [notes]
search:
  kb: true
  rerank: {topN: 5}
"""
FILES = {
    "assistants/desk/package.yml": PACKAGE,
    "assistants/desk/prompts.yml": "- role: system\n  content: Answer politely.\n",
    "agent/search.yml": "kb:\n  threshold: 0.25\n",
    "kb/notes.kb.yao": "{}",
}
YAO = '{"name": "Help desk", "connector": "extractive"}'


async def explained(app: Path, assistant: str = "desk") -> dict[str, tuple[Any, str]]:
    async with open_host(app, environment={}) as host:
        return {each.key: (each.value, str(each.place or "")) for each in host.explain(assistant)}


async def problems(app: Path) -> list[str]:
    async with open_host(app, environment={}) as host:
        return [str(problem) for problem in await host.check()]


@pytest.mark.parametrize("ending", ["yml", "yaml"])
async def test_a_package_in_yaml_is_an_assistant_with_its_places(
    make_app: MakeApp, ending: str
) -> None:
    app = make_app(
        {
            "assistants/team/desk/package." + ending: PACKAGE,
            "assistants/team/desk/src/index.ts": "export function Create() { return null; }",
            "agent/search." + ending: FILES["agent/search.yml"],
            "kb/notes.kb.yao": "{}",
        }
    )
    assert await problems(app) == []
    found = await explained(app, "team.desk")
    assert found["search.rerank.top_k"] == (5, f"assistants/team/desk/package.{ending}:7:18")
    assert found["search.kb.threshold"] == (0.25, f"agent/search.{ending}:2:14")


async def test_a_wrong_value_is_reported_with_its_line(make_app: MakeApp) -> None:
    wrong = PACKAGE.replace("topN: 5", "topN: none")
    found = await problems(make_app({**FILES, "assistants/desk/package.yml": wrong}))
    assert [each.split(" ")[0] for each in found] == ["assistants/desk/package.yml:7:18:"]


TWICE: Mapping[str, tuple[str, str, str]] = {
    "a package": ("assistants/desk/package.yao", YAO, "'package.yao' and 'package.yml'"),
    "two in YAML": ("assistants/desk/package.yaml", PACKAGE, "'package.yml' and 'package.yaml'"),
    "searches": ("agent/search.yao", "{}", "'search.yao' and 'search.yml'"),
}


@pytest.mark.parametrize("case", TWICE)
async def test_two_of_them_are_an_error_that_names_both(make_app: MakeApp, case: str) -> None:
    path, text, named = TWICE[case]
    app = make_app({**FILES, path: text})
    message = f"{named} are the same document in two forms"
    assert any(message in each and "remove one of them" in each for each in await problems(app))
    async with open_host(app, environment={}) as host:
        with pytest.raises(ConfigError, match=message):
            async with host.stream("desk", "A printer"):
                pass


async def test_a_trial_is_shown_as_a_change_of_the_yaml(make_app: MakeApp) -> None:
    async with open_host(make_app(FILES), environment={}) as host:
        package = host.app.package("desk")
        found = dict(trial_diff(package, trial_of({"search": {"kb": {"max_results": 3}}}, package)))
    assert list(found) == ["package.yml"]
    assert "-  kb: true\n" in found["package.yml"]
    assert "+  kb:\n+    enabled: true\n" in found["package.yml"]


def test_what_packages_of_yao_expect_is_noted_in_yaml_as_well(make_app: MakeApp) -> None:
    app = make_app({**FILES, "agent/search.yml": "kb:\n  threshold: 0.8\n"})
    assert ["agent/search.yml:2:3" in str(each) for each in yao_notes(app)] == [True]
