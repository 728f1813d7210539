"""An app that is worked on while it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import anyio
import pytest

from groundhook import Host, open_host
from groundhook.core.types.events import Event
from groundhook.host.app.reload import Swap
from tests.conftest import MakeApp

HOOK = "function Create() { return { metadata: { version: VERSION } }; }\n"
FILES = {
    "assistants/a/package.yao": '{"name": "A", "connector": "says"}',
    "assistants/a/index.ts": HOOK.replace("VERSION", "1"),
    "assistants/b/package.yao": '{"name": "B", "connector": "says"}',
    "connectors/says.conn.yao": (
        '{"type": "scripted", "options": {"script": [{"text": "one", "times": 0}]}}'
    ),
}


@dataclass
class Author:
    """Edits files, and asks what holds."""

    app: Path
    host: Host

    async def save(self, **files: str) -> Swap:
        """Write files (`assistants__a__index_ts`) and have them taken over."""
        paths = []
        for name, text in files.items():
            path = self.app / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text), encoding="utf-8")
            paths.append(path)
        return await self.host.reload(paths)

    async def ask(self, assistant: str = "a", **requested: Any) -> list[Event]:
        with anyio.fail_after(60):
            async with self.host.stream(assistant, "hello", **requested) as events:
                return [event async for event in events]

    async def version(self, assistant: str = "a") -> Any:
        events = await self.ask(assistant)
        assert [event for event in events if event.type == "error"] == []
        return events[-1].metadata.get("version")  # type: ignore[union-attr]


@pytest.fixture
async def author(make_app: MakeApp) -> AsyncIterator[Author]:
    app = make_app(FILES)
    async with open_host(app, environment={}) as host, host.runtime.hooks.keep_compiler():
        await host.reload()
        yield Author(app, host)
