"""docs/testing.md: its example passes, and it names everything there is. The sample assistants' own
tests pass."""

from __future__ import annotations

import re
import shutil
from importlib.resources import files
from pathlib import Path

from groundhook.host.testing.answer import TurnRequests, answer_of
from groundhook.host.testing.stage import TurnArguments
from tests.conftest import MakeApp
from tests.testing.conftest import rerun

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")


async def test_the_example_passes_as_it_is_written(make_app: MakeApp) -> None:
    written = re.findall(
        r"^`(assistants/\S+)`:\n\n```\w+\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
    )
    assert len(written) == 5
    ran = await rerun(make_app(dict(written)))
    shown = re.findall(r"^  ok (.*) \(\d+ ms\)$", PAGE, re.MULTILINE)
    assert ran.outcome == dict.fromkeys(shown, "passed"), ran.results


def test_every_option_of_a_turn_is_named() -> None:
    assert [name for name in TurnArguments.model_fields if f"`{name}`" not in PAGE] == []


def test_every_part_of_an_answer_is_named() -> None:
    assert [name for name in answer_of([], TurnRequests()) if f"`{name}`" not in PAGE] == []


def test_every_expectation_is_named() -> None:
    source = (files("groundhook.hooks") / "testing.js").read_text(encoding="utf-8")
    names = set(re.findall(r"^    (to[A-Z]\w+)[:(]", source, re.MULTILINE))
    assert len(names) > 20
    assert {name for name in names if f"`{name}" not in PAGE} == set()
    declared = (files("groundhook.hooks") / "testing.d.ts").read_text(encoding="utf-8")
    assert set(re.findall(r"^    (to[A-Z]\w+)\(", declared, re.MULTILINE)) == names


async def test_the_sample_assistants_pass_their_tests(tmp_path: Path) -> None:
    for folder in ("agent", "assistants"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    ran = await rerun(tmp_path)
    assert {result.assistant for result in ran.results} == {"docs", "research", "shop"}
    assert [result for result in ran.results if result.status != "passed"] == [], (
        "record them again: groundhook test --record"
    )
