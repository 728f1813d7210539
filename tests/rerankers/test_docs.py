"""docs/reranking.md: its example runs as it is written, and every setting is in it."""

from __future__ import annotations

import re
from pathlib import Path

from groundhook import open_host
from groundhook.core.settings import RerankSettings
from groundhook.host.testing.canned import CannedSource, canned_item
from tests.conftest import MakeApp
from tests.parts.reranked_turns import order, warnings

PAGE = (Path(__file__).parents[2] / "docs/reranking.md").read_text(encoding="utf-8")


async def test_the_example_puts_short_passages_first(make_app: MakeApp) -> None:
    written = dict(
        re.findall(
            r"^`((?:assistants|kb)/\S+)`:\n\n```\w+\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
        )
    )
    assert len(written) == 4
    found = [
        canned_item(name, content="x" * length, score=0.9)
        for name, length in (("a", 30), ("b", 10), ("c", 20))
    ]
    source = CannedSource({"*": found})
    async with open_host(make_app(written), environment={}, sources={"kb": source}) as host:
        assert [str(problem) for problem in await host.check() if problem.severity == "error"] == []
        async with host.stream("guide", "short ones?") as events:
            seen = [event async for event in events]
    assert warnings(seen) == []
    assert order(seen) == "bca"


def test_every_setting_is_described() -> None:
    assert [
        name
        for name in RerankSettings.model_fields
        if f"`{name}`" not in PAGE and f'"{name}"' not in PAGE
    ] == []
