"""Turns of one assistant with a scripted model and canned sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio

from groundhook import open_host
from groundhook.core.ports import Handler
from groundhook.core.types.connector_spec import (
    ConnectorOptions,
    ConnectorSpec,
)
from groundhook.core.types.events import Event, StreamEnd
from groundhook.core.types.search import (
    Item,
    SearchType,
)
from groundhook.core.types.tools import Tool
from groundhook.host.llm.scripted import ScriptedConnector
from groundhook.host.testing.canned import CannedSource, canned_item
from tests.conftest import MakeApp

ASSISTANT = (
    '{"name": "A", "connector": "script", "search": {"kb": true, "web": true}, "kb":'
    ' {"collections": ["docs"]}}'
)


COLLECTION = '{"name": "Docs"}'


def scripted(*script: Any) -> ScriptedConnector:
    return ScriptedConnector(
        ConnectorSpec(id="script", type="scripted", options=ConnectorOptions(script=script))
    )


def app_with(make_app: MakeApp, package: str = ASSISTANT, **files: str) -> Path:
    named = {
        f"assistants/a/{name.replace('__', '/').replace('_', '.')}": text
        for name, text in files.items()
    }
    return make_app({"assistants/a/package.yao": package, "kb/docs.kb.yao": COLLECTION, **named})


async def run(
    app: Path,
    messages: Any = "question",
    *,
    script: Sequence[Any] = ("Fine.",),
    sources: Mapping[SearchType, Handler] | None = None,
    tools: Sequence[Tool] = (),
    connector: ScriptedConnector | None = None,
    **requested: Any,
) -> list[Event]:
    model = connector or scripted(*script)
    found: Mapping[SearchType, Handler] = sources or {
        "kb": kb(),
        "web": web(),
        "db": CannedSource({}),
    }
    with anyio.fail_after(60):
        async with (
            open_host(
                app, environment={}, sources=found, connectors={"script": model}, tools=tools
            ) as host,
            host.stream("a", messages, **requested) as events,
        ):
            return [event async for event in events]


def kb(*items: Item) -> CannedSource:
    return CannedSource(
        {"*": items or (canned_item("k1", score=0.9), canned_item("k2", score=0.4))}
    )


def web(*items: Item) -> CannedSource:
    return CannedSource(
        {"*": items or (canned_item("w1", type="web", url="https://example.org/w1", score=0.8),)}
    )


def of(events: Sequence[Event], type: str) -> list[Any]:
    return [event for event in events if event.type == type]


def end(events: Sequence[Event]) -> StreamEnd:
    assert isinstance(events[-1], StreamEnd)
    return events[-1]
