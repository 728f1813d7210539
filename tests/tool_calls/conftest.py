"""Small toolkits, and a model that cites what a tool returned."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from groundhook import Item
from groundhook.core.sync_source import SyncSource
from groundhook.plugins import (
    Delta,
    Finished,
    ModelCall,
    Needs,
    Plugin,
    PluginContext,
    Plugins,
    TextDelta,
    Tool,
    ToolDelta,
    ToolkitSettings,
    ToolkitSpec,
    ToolScope,
)
from tests.conftest import MakeApp

EXAMPLE = Path(__file__).parents[2] / "docs/plugins/toolkit"
MARKER = re.compile(r"#ref:[a-z0-9]+")


class Question(BaseModel):
    query: str = Field(min_length=1)
    limit: int = Field(default=5, ge=1, le=20)


class ListSettings(ToolkitSettings):
    """Entries that are searched by words; `tenant` if a call needs one."""

    entries: list[dict[str, Any]] = []
    needs: list[str] = []
    xml: bool = False
    collection: str = ""
    ranker: str = ""


class ListKit:
    """`search` returns the entries of its file."""

    def __init__(self, settings: ListSettings) -> None:
        self.settings = settings

    def tools(self) -> Sequence[Tool]:
        identity: Any = {part: {"tenant": "institution"}.get(part, part) for part in self._needs}
        return [
            Tool(
                name="search",
                description="Search the list.",
                arguments=Question,
                run=self._search,
                needs=Needs(identity=identity),
                items=self._items,
                text=self._xml if self.settings.xml else None,
            )
        ]

    @property
    def _needs(self) -> list[str]:
        return self.settings.needs

    def sync(self) -> SyncSource | None:
        return None

    async def _search(self, question: Question, scope: ToolScope) -> dict[str, Any]:
        entries = self.settings.entries[: question.limit]
        return {"entries": entries, "total": len(self.settings.entries)}

    def _items(self, answer: Mapping[str, Any]) -> Sequence[Item]:
        return [
            Item(
                type="kb",
                key=f"list:{entry['id']}",
                title=entry["title"],
                content=entry["title"],
                url=entry.get("url", ""),
                score=0.9,
                collection="list",
                document_id=str(entry["id"]),
            )
            for entry in answer["entries"]
        ]

    def _xml(self, answer: Mapping[str, Any]) -> str:
        ids = "".join(f"<document><id>{entry['id']}</id></document>" for entry in answer["entries"])
        return f"<searchResults>{ids}</searchResults>"


def _make_list(spec: ToolkitSpec, _: PluginContext) -> ListKit:
    return ListKit(spec.read(ListSettings))


def _register(plugins: Plugins) -> None:
    plugins.toolkits.add("list", _make_list)


LISTS = Plugin(_register, requires=1)


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Plugin:
    """The example toolkit of docs/plugins.md."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    plugin: Plugin = importlib.import_module("groundhook_example_toolkit").plugin
    return plugin


@dataclass
class Citing:
    """A model that calls a tool once, and then cites the first marker that its result has. With
    `say` it says that instead."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=lambda: {"query": "pears"})
    say: str = ""
    calls: list[ModelCall] = field(default_factory=list)

    @property
    def received(self) -> str:
        """The result that the model was given."""
        return next(
            message.text for message in reversed(self.calls[-1].messages) if message.role == "tool"
        )

    @asynccontextmanager
    async def stream(self, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        self.calls.append(call)
        yield self._deltas(len(self.calls) == 1)

    async def _deltas(self, first: bool) -> AsyncIterator[Delta]:
        if first:
            yield TextDelta("Let me look.")
            yield ToolDelta(0, "c1", self.tool, json.dumps(dict(self.arguments)))
            yield Finished("tool_calls")
        else:
            found = MARKER.findall(self.received)
            yield TextDelta(self.say or f"It says so {found[-1] if found else '(nothing)'}.")
            yield Finished("stop")


PEARS = [
    {"id": 7, "title": "On pears", "url": "https://example.org/pears"},
    {"id": "8", "title": "On quinces"},
]

AppWith = Callable[..., Path]


@pytest.fixture
def app_with(make_app: MakeApp) -> AppWith:
    """An app whose assistant `a` lists toolkits, each with these keys."""

    def make(
        tools: Sequence[Any] = ("pears",),
        files: Mapping[str, str] | None = None,
        **toolkits: Mapping[str, Any],
    ) -> Path:
        declared = toolkits or {"pears": {"entries": PEARS}}
        return make_app(
            {
                "agent/agent.yml": "hooks:\n  workers: 0\n",
                "assistants/a/package.yao": json.dumps(
                    {"name": "A", "connector": "citing", "tools": list(tools)}
                ),
                **{
                    f"assistants/a/toolkits/{name}.toolkit.yao": json.dumps(
                        {"type": "list", **keys}
                    )
                    for name, keys in declared.items()
                },
                **(files or {}),
            }
        )

    return make
