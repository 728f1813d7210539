"""Finds names in a layer of configuration that do not exist, and keys without an effect."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from groundhook.core.errors import HostError, UnknownName
from groundhook.core.extras import reranker_hint
from groundhook.core.problems import Problem, problems_of
from groundhook.core.settings import AUTO, BY_CONNECTOR, DISABLED, UsesSettings
from groundhook.core.types.base import dotted
from groundhook.core.types.connector_spec import EXTRACTIVE
from groundhook.core.types.search import SEARCH_TYPES
from groundhook.core.types.servers import parse_listed
from groundhook.core.types.toolkit_listing import parse_listed_toolkits
from groundhook.host.config.layers import Layer
from groundhook.host.config.locations import Path
from groundhook.host.config.packages import App

# Lists of names: path → what they name.
_LISTS: dict[Path, str] = {
    ("search", "kb", "collections"): "collection",
    ("kb", "collections"): "collection",
    ("search", "db", "models"): "model",
    ("db", "models"): "model",
    ("mcp", "servers"): "MCP server",
    ("tools",): "toolkit",
}
_SINGLE: dict[Path, str] = {
    ("connector",): "connector",
    ("search", "rerank", "agent"): "assistant",
}


@dataclass(frozen=True)
class References:
    """Looks up names for one layer; values of a wrong type are skipped. `owner` is the assistant
    whose own declarations count, "" for the app's layers; `providers` are the web search providers
    (empty: they are not checked), `rerankers` the rerankers of plug-ins and the host."""

    app: App
    layer: Layer
    owner: str
    providers: frozenset[str] = frozenset()
    rerankers: frozenset[str] = frozenset()

    def problems(self) -> Iterator[Problem]:
        for path, noun in _LISTS.items():
            entries = self._find_value(path)
            for number, entry in enumerate(entries if isinstance(entries, list) else ()):
                for name in _list_names(entry, noun):
                    yield from self._check_name((*path, number), noun, name)
        for path, noun in _SINGLE.items():
            names = self._find_value(path)
            if isinstance(names, list):
                for number, name in enumerate(names):
                    yield from self._check_name((*path, number), noun, name)
            elif isinstance(names, str):
                yield from self.check_delegate(path, noun, names)
        uses = self._find_value(("uses",))
        for step, value in uses.items() if isinstance(uses, Mapping) else ():
            yield from self._check_uses(("uses", step), value)
        yield from self._check_provider(("search", "web", "provider"))
        if isinstance(server := self._find_value(("search", "rerank", "mcp")), str):
            yield from self.check_delegate(
                ("search", "rerank", "mcp"), "MCP server", f"mcp:{server.removeprefix('mcp:')}"
            )

    def _find_value(self, path: Path) -> Any:
        value: Any = self.layer.data
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        return value

    def _list_known(self, noun: str) -> Collection[str]:
        app = self.app
        known: dict[str, Collection[str]] = {
            "collection": app.collections,
            "model": app.models,
            "connector": app.connectors,
            "assistant": app.packages,
            "reranker or assistant": {*self.rerankers, *app.packages},
            "MCP server": app.servers,
            "toolkit": app.toolkits,
            "web search provider": {"auto", *self.providers, *app.packages},
        }
        return known[noun]

    def _check_name(self, path: Path, noun: str, name: Any) -> Iterator[Problem]:
        if not isinstance(name, str) or (not name and noun != "connector"):
            return  # no name, or an unset variable
        known, own = self._list_known(noun), f"agents.{self.owner}."
        if name not in known and own + name not in known:
            short = [each.removeprefix(own) for each in known]
            yield from problems_of(UnknownName(noun, name, short, place=self.layer.place(path)))

    def _check_uses(self, path: Path, value: Any) -> Iterator[Problem]:
        if not isinstance(value, str) or value in ("", "builtin"):
            return
        if value == AUTO and path[-1] == "query":
            return
        if path[-1] == "default":
            yield from self._check_default(path, value)
            return
        if value == DISABLED and path[-1] in ("search", "rewrite", *SEARCH_TYPES):
            return
        extra = UsesSettings.model_fields[str(path[-1])].json_schema_extra
        if isinstance(extra, dict) and isinstance(hint := extra.get("unread"), str):
            yield Problem(
                "warning",
                f"'uses.{path[-1]}' has no effect",
                self.layer.place(path),
                hint,
                "unread",
            )
        elif path[-1] == "rerank" and not value.startswith(("mcp:", BY_CONNECTOR)):
            yield from self._check_reranker(path, value)
        else:
            yield from self.check_delegate(path, "assistant", value)

    def _check_default(self, path: Path, name: str) -> Iterator[Problem]:
        """Yield the problem with the assistant of requests that name none."""
        if self.owner:
            message = "'uses.default' has no effect"
            hint = "it applies to the whole app: set it in agent/agent.yml"
            yield Problem("warning", message, self.layer.place(path), hint, "unread")
        else:
            yield from self._check_name(path, "assistant", name)

    def _check_reranker(self, path: Path, name: str) -> Iterator[Problem]:
        if name in self.rerankers:
            return
        for problem in self._check_name(path, "reranker or assistant", name):
            yield replace(problem, hint=reranker_hint(name, problem.hint))

    def _check_provider(self, path: Path) -> Iterator[Problem]:
        name = self._find_value(path)
        if self.providers and isinstance(name, str):
            yield from self.check_delegate(path, "web search provider", name)

    def check_delegate(self, path: Path, noun: str, name: str) -> Iterator[Problem]:
        """Yield the problem with the name of a step's delegate: `noun` by name, `connector:<id>`,
        or `mcp:<server>[.<tool>]`, either part of which may have dots."""
        if name.startswith(BY_CONNECTOR):
            yield from self._check_model(path, name.removeprefix(BY_CONNECTOR))
            return
        if not name.startswith("mcp:"):
            yield from self._check_name(path, noun, name)
            return
        server = whole = name.removeprefix("mcp:")
        while "." in server and not self._is_server(server):
            server = server.rpartition(".")[0]
        yield from self._check_name(
            path, "MCP server", server if self._is_server(server) else whole
        )

    def _check_model(self, path: Path, name: str) -> Iterator[Problem]:
        """Yield the problem with a language model that does a step."""
        place = self.layer.place(path)
        if path[-1] in ("web", "provider", "fetch"):
            step = "read pages of the web" if path[-1] == "fetch" else "search the web"
            message = f"{dotted(path)!r}: a language model alone cannot {step}"
            yield Problem("error", message, place, "name an assistant or an MCP tool")
            return
        yield from self._check_name(path, "connector", name)
        with suppress(HostError):  # an unknown name, or a wrong file, is reported by its own check
            spec = self.app.connector(self.app.connector_id(self.owner, name))
            if spec.type == EXTRACTIVE:
                message = f"{dotted(path)!r}: the connector {name!r} is no language model"
                hint = "it only quotes sources: name one of another type"
                yield Problem("error", message, place, hint)
            elif path[-1] == "vision" and spec.lacks("vision"):
                message = (
                    f"'uses.vision': the model of the connector {name!r} does not see pictures"
                )
                hint = "its capabilities say so: name one that sees"
                yield Problem("error", message, place, hint)

    def _is_server(self, name: str) -> bool:
        return name in self.app.servers or f"agents.{self.owner}.{name}" in self.app.servers


def _list_names(entry: Any, noun: str) -> list[Any]:
    """Return the ids in an entry of a list: the entry itself, or the ids in {id: [tools]},
    {server_id, tools} and {toolkit, tools}; none for an invalid entry."""
    if not isinstance(entry, Mapping):
        return [entry]
    try:
        if noun == "toolkit":
            return [listed.name for listed in parse_listed_toolkits(entry)]
        return [listed.name for listed in parse_listed(entry)]
    except ValueError:
        return []
