"""The MCP servers and tools that an assistant may use: those that its configuration lists. A hook
and a request choose among them.

`ServerListing` is for `mcp.servers` (`host.turn.services.servers` and `.tools`), `Grants` for the
steps that `uses.*` and similar settings delegate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from groundhook.core.errors import ConfigError, HostError, NotPermitted, UnknownName
from groundhook.core.settings import Settings
from groundhook.core.types.servers import ListedServer, parse_listed
from groundhook.host.config.packages import App


@dataclass(frozen=True)
class ServerListing:
    """The servers that a list names, by full id, and the problems with others, by their names in
    the list. Entries for the same server are merged."""

    servers: Mapping[str, ListedServer] = field(default_factory=dict)
    problems: Mapping[str, HostError] = field(default_factory=dict)

    @staticmethod
    def of(
        app: App, assistant_id: str, entries: Iterable[str | Mapping[str, Any]]
    ) -> ServerListing:
        servers: dict[str, ListedServer] = {}
        problems: dict[str, HostError] = {}
        for listed in (each for entry in entries for each in parse_listed(entry)):
            try:
                id = app.resolve_server(assistant_id, listed.name).id
            except (UnknownName, ConfigError) as exc:
                problems[listed.name] = exc
                continue
            servers[id] = _merge(servers[id], listed) if id in servers else listed
        return ServerListing(servers, problems)

    def resource(self, server: str, uri: str) -> tuple[str, ListedServer]:
        """Return the full id and the entry of the server whose resource may be read; `server` may
        be "" when there is one only. Raises NotPermitted, UnknownName and ConfigError."""
        if server in self.problems:
            raise self.problems[server]
        found = [(id, each) for id, each in self.servers.items() if server in ("", id, each.name)]
        if not found or (not server and len(found) > 1):
            names = ", ".join(repr(each.name) for each in self.servers.values()) or "none"
            subject = f"MCP server {server!r}" if server else f"the server of {uri!r}"
            raise NotPermitted(
                f"{subject} is not among those that the assistant may use",
                hint=f"'mcp.servers' lists {names}",
            )
        id, listed = found[0]
        if listed.resources and uri not in listed.resources:
            raise NotPermitted(
                f"the resource {uri!r} of MCP server {listed.name!r} is not among those that the"
                " assistant may use",
                hint=f"'mcp.servers' allows {', '.join(listed.resources)}",
            )
        return id, listed


@dataclass(frozen=True)
class Grants:
    """The permissions of an assistant for delegated steps. The empty id stands for the app's owner,
    who may use everything."""

    app: App
    assistant_id: str

    def server(self, name: str) -> str:
        """Return the full id of a server: the assistant's own of that name, else the app's. Raises
        UnknownName, ConfigError."""
        return self.app.resolve_server(self.assistant_id, name).id

    def permit(self, target: str, server: str, tool: str) -> None:
        """Raise NotPermitted for a tool that neither `mcp.servers` nor a setting in the assistant's
        files names. `target` is what the step is delegated to, `mcp:…`; `server` is a full id."""
        if not self.assistant_id:
            return
        settings = self.app.settings_for(self.app.package(self.assistant_id)).settings
        if target in _list_delegate_targets(settings):
            return
        listed = ServerListing.of(self.app, self.assistant_id, settings.mcp.servers).servers.get(
            server
        )
        if listed is None or (listed.tools and tool not in listed.tools):
            raise NotPermitted(
                f"the assistant {self.assistant_id!r} may not use {target!r}",
                hint=(
                    "name the server in 'mcp.servers' or 'uses' of its files: hooks and requests"
                    " choose only among those"
                ),
            )


def _list_delegate_targets(settings: Settings) -> Iterator[str]:
    """Yield the targets of the delegated steps in the settings."""
    uses = settings.uses
    yield from (
        uses.rewrite,
        uses.title,
        uses.keyword,
        uses.query,
        uses.rerank,
        uses.web,
        uses.fetch,
    )
    yield uses.verify
    yield uses.vision
    yield settings.search.web.provider
    if settings.search.rerank.mcp:
        yield f"mcp:{settings.search.rerank.mcp.removeprefix('mcp:')}"


def _merge(one: ListedServer, other: ListedServer) -> ListedServer:
    tools = (*one.tools, *other.tools) if one.tools and other.tools else ()
    return ListedServer(one.name, tools, (*one.resources, *other.resources))
