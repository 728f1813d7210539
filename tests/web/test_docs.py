"""docs/web-search.md: its example runs as it is written, and every setting is described."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from groundhook import open_host
from groundhook.core.source_settings import BreakerSettings, PageSettings, WebSettings
from tests.conftest import MakeApp
from tests.loopback.server import Json, serving
from tests.parts.turns import end

PAGE = (Path(__file__).parents[2] / "docs" / "web-search.md").read_text(encoding="utf-8")


async def test_the_example_runs_as_it_is_written(make_app: MakeApp) -> None:
    written = dict(
        re.findall(r"^`(assistants/\S+)`:\n\n```\w+\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    )
    assert len(written) == 2
    found = {
        "results": [
            {
                "title": "The Spree",
                "url": "https://spree.example/",
                "content": "The Spree flows through Berlin.",
            }
        ]
    }
    with serving() as server:
        server.on("/search", Json(found))
        async with (
            open_host(make_app(written), environment={"SEARXNG_URL": server.url}) as host,
            host.stream("news", "Which rivers flow through Berlin?") as stream,
        ):
            events = [event async for event in stream]
        requested = [parse_qs(urlsplit(each.path).query) for each in server.requests]
    assert not [event for event in events if event.type in ("error", "warning")]
    assert end(events).metadata == {"provider": "searxng", "recent": ["The Spree"]}
    assert [cited.url for cited in end(events).citations] == ["https://spree.example/"]
    assert [each.get("time_range") for each in requested] == [["week"], None]
    assert {each["q"][0] for each in requested} == {"-site:example.org rivers flow through Berlin"}
    assert {each["language"][0] for each in requested} == {"en"}


def test_every_setting_is_named() -> None:
    names = [*WebSettings.model_fields, *PageSettings.model_fields, *BreakerSettings.model_fields]
    unnamed = [name for name in names if name not in ("enabled",) and name not in PAGE]
    assert unnamed == []
