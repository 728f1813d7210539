"""docs/delegation.md: its schemas are those of the program, and its example runs as it is
written."""

from __future__ import annotations

import re
from pathlib import Path

from groundhook import open_host
from scripts.delegation_doc import DOCUMENT, with_section
from tests.conftest import MakeApp
from tests.delegation.conftest import AskingSource

PAGE = (Path(__file__).parents[2] / DOCUMENT).read_text(encoding="utf-8")


def test_the_committed_schemas_are_those_of_the_models() -> None:
    assert with_section(PAGE) == PAGE, "run `make docs`"


async def test_the_example_makes_keywords(make_app: MakeApp) -> None:
    written = dict(
        re.findall(r"^`(assistants/\S+)`:\n\n```\w+\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    )
    assert len(written) == 3
    source = AskingSource()
    async with open_host(make_app(written), environment={}, sources={"web": source}) as host:
        assert [str(problem) for problem in await host.check() if problem.severity == "error"] == []
        await host.search(
            {"type": "web", "query": "What are the best headphones?"}, assistant="guide"
        )
    assert [each.k for each in source.answers[0].keywords] == ["what", "best"]
