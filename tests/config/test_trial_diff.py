"""A trial as a change of the assistant's files."""

from __future__ import annotations

from typing import Any

from groundhook import open_host
from groundhook.host.config.trial import trial_of
from groundhook.host.config.trial_diff import trial_changes, trial_diff
from tests.conftest import MakeApp

PACKAGE = """{
  // A comment
  "name": "A",
  "kb": { "collections": ["notes", "more"] },
  "search": { "kb": true, "rerank": { "topN": 5 } }
}
"""
APP = {
    "assistants/a/package.yao": PACKAGE,
    "assistants/a/prompts.yml": "- role: system\n  content: Of the files.\n",
    "assistants/b/package.yao": '{ "name": "B", "prompts": "Of the package." }',
}


async def diff(make_app: MakeApp, trial: dict[str, Any], id: str = "a") -> dict[str, str]:
    async with open_host(make_app(APP), environment={}) as host:
        package = host.app.package(id)
        return dict(trial_diff(package, trial_of(trial, package)))


def changed(text: str) -> list[str]:
    return [
        line for line in text.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]


async def test_settings_are_changed_as_the_file_spells_them(make_app: MakeApp) -> None:
    found = await diff(make_app, {"search": {"kb": {"max_results": 3}, "rerank": {"top_k": 2}}})
    assert list(found) == ["package.yao"]
    assert changed(found["package.yao"]) == [
        '-    "kb": true,',
        '+    "kb": {',
        '+      "enabled": true,',
        '+      "max_results": 3',
        "+    },",
        '-      "topN": 5',
        '+      "topN": 2',
    ]
    assert found["package.yao"].startswith("--- a/assistants/a/package.yao\n")


async def test_what_the_files_say_already_is_no_change(make_app: MakeApp) -> None:
    assert await diff(make_app, {"search": {"kb": True, "rerank": {"top_n": 5}}}) == {}


async def test_prompts_are_changed_where_they_are_written(make_app: MakeApp) -> None:
    trial = {"prompts": "Be short.\n\nCite."}
    assert changed((await diff(make_app, trial))["prompts.yml"]) == [
        "-  content: Of the files.",
        "+  content: |",
        "+    Be short.",
        "+",
        "+    Cite.",
    ]
    assert changed((await diff(make_app, trial, "b"))["package.yao"]) == [
        '-  "prompts": "Of the package."',
        '+  "prompts": "Be short.\\n\\nCite."',
    ]
    odd = await diff(make_app, {"prompts": " \x1b[31m"})
    assert '+  content: " \\u001b[31m"' in odd["prompts.yml"].splitlines()


async def test_changes_are_listed_with_the_value_before(make_app: MakeApp) -> None:
    async with open_host(make_app(APP), environment={}) as host:
        package = host.app.package("a")
        trial = trial_of({"connector": "x", "search": {"rerank": {"top_k": 2}}}, package)
        assert trial_changes(package, trial) == [
            {"key": "connector", "before": None, "after": "x"},
            {"key": "search.rerank.top_k", "before": 5, "after": 2},
        ]


async def test_a_trial_searches_some_of_the_collections_of_the_files(make_app: MakeApp) -> None:
    search = {"search": {"kb": {"collections": ["more"]}}}
    assert '-      "notes"' not in (await diff(make_app, search))["package.yao"]
