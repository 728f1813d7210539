"""The toolkits that an assistant lists, and the names under which their tools are offered. Makes
toolkits, and calls none of their tools. A tool is offered under its own name if no other tool of
the list has that name; otherwise all of them are offered as `<toolkit>__<tool>`. Withheld tools
count too, so a name does not depend on the turn.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from groundhook.core.errors import ConfigError, HostError, PluginError, UnknownName
from groundhook.core.tool_ports import Toolkit
from groundhook.core.types.toolkit_listing import ListedToolkit, parse_listed_toolkits
from groundhook.core.types.toolkit_spec import ToolkitSpec
from groundhook.core.types.tools import Tool
from groundhook.host.config.packages import App
from groundhook.host.tools.offers import ToolOffer
from groundhook.host.tools.python import offer_of

ToolkitOf = Callable[[str], Toolkit]  # by full id; raises ConfigError, PluginError

_REFUSED = re.compile(r"[^A-Za-z0-9_-]")
LONGEST = 64  # characters of a tool's name, as APIs accept it


@dataclass(frozen=True)
class _ListedTool:
    """One listed tool."""

    spec: ToolkitSpec
    listed: ListedToolkit
    tool: Tool


@dataclass
class ListedTools:
    """The tools of a list of toolkits, and the problems with its entries, by the name in it."""

    entries: list[_ListedTool] = field(default_factory=list)
    problems: dict[str, HostError] = field(default_factory=dict)

    @staticmethod
    def of(
        app: App, assistant_id: str, listed: Iterable[str | Mapping[str, Any]], toolkits: ToolkitOf
    ) -> ListedTools:
        """Return the tools of an assistant's list."""
        found = ListedTools()
        for one in (each for entry in listed for each in parse_listed_toolkits(entry)):
            try:
                found._add(app.resolve_toolkit(assistant_id, one.name), one, toolkits)
            except (UnknownName, ConfigError, PluginError) as exc:
                found.problems[one.name] = exc
        return found

    @staticmethod
    def every(app: App, toolkits: ToolkitOf) -> ListedTools:
        """Return the tools of all toolkits of the app."""
        found = ListedTools()
        for id in app.toolkits:
            try:
                found._add(app.toolkits[id], ListedToolkit(id), toolkits)
            except (ConfigError, PluginError) as exc:
                found.problems[id] = exc
        return found

    def _add(self, spec: ToolkitSpec, listed: ListedToolkit, toolkits: ToolkitOf) -> None:
        tools = {tool.name: tool for tool in toolkits(spec.id).tools()}
        for name in listed.tools:
            if name not in tools:
                problem = UnknownName(f"tool of toolkit {listed.name!r}", name, tools)
                self.problems[f"{listed.name}.{name}"] = problem
        known = {(entry.spec.id, entry.tool.name) for entry in self.entries}
        self.entries += [
            _ListedTool(spec, listed, tool)
            for name, tool in tools.items()
            if (not listed.tools or name in listed.tools) and (spec.id, name) not in known
        ]

    def homonyms(self) -> Mapping[str, Sequence[str]]:
        """Return the toolkits of each name that several listed tools have."""
        named: dict[str, list[str]] = {}
        for entry in self.entries:
            if entry.tool.name not in entry.listed.names:
                named.setdefault(entry.tool.name, []).append(entry.listed.name)
        return {name: owners for name, owners in named.items() if len(owners) > 1}

    def offers(self, metadata: Mapping[str, Any], taken: Iterable[str] = ()) -> Iterator[ToolOffer]:
        """Yield the tools as they are offered. `taken` are the names of all other tools."""
        names = self._choose_names(taken)
        ids = {entry.spec.id: entry.spec.name for entry in self.entries}
        for entry, name in zip(self.entries, names, strict=True):
            spec, tool = entry.spec, entry.tool
            more: dict[str, Any] = {}
            if spec.common.deadline_ms is not None:
                more["deadline_ms"] = spec.common.deadline_ms
            yield offer_of(
                tool,
                name=name,
                toolkit=spec.id,
                owner=spec.name if list(ids.values()).count(spec.name) == 1 else spec.id,
                assistant=spec.assistant,
                aliases=(
                    qualified(spec.name, tool.name),
                    f"{spec.name}.{tool.name}",
                    f"{spec.id}.{tool.name}",
                ),
                permission=spec.common.permission,
                withheld=entry.listed.withheld(metadata),
                **more,
            )

    def _choose_names(self, taken: Iterable[str]) -> list[str]:
        wanted = [
            entry.listed.names.get(entry.tool.name, entry.tool.name) for entry in self.entries
        ]
        count = Counter([*wanted, *taken])
        short = [
            name if count[name] == 1 else qualified(entry.spec.name, entry.tool.name)
            for entry, name in zip(self.entries, wanted, strict=True)
        ]
        again = Counter([*short, *taken])
        names = [
            name if again[name] == 1 else qualified(entry.spec.id, entry.tool.name)
            for entry, name in zip(self.entries, short, strict=True)
        ]
        last = Counter([*names, *taken])  # of names that were shortened
        return [
            name if last[name] == 1 else f"{name[: LONGEST - 4]}_{place}"
            for place, name in enumerate(names)
        ]


def qualified(toolkit: str, tool: str) -> str:
    """Return the name of a tool among homonyms, as APIs accept it."""
    owner = _REFUSED.sub("_", toolkit)
    return f"{owner[: LONGEST - len(tool) - 2]}__{tool}"[:LONGEST]
