"""The list of MCP servers of an assistant, and requests to them. Pure: it does not know which
servers exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import AliasChoices, Field

from groundhook.core.types.base import Value
from groundhook.core.types.listed_entries import named_entries, names_in

ServerMethod = Literal[
    "tools/list", "tools/call", "resources/list", "resources/read", "prompts/list", "prompts/get"
]
ServerCalling = Literal["in_order", "all", "any", "race"]
_KEYS = ("tools", "resources")  # of an entry


@dataclass(frozen=True)
class ListedServer:
    """One server by its name in the list. `tools` are those that may be used; empty: all."""

    name: str
    tools: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()


class ToolAsk(Value):
    """One call of a tool of an MCP server."""

    server: str = Field(default="", validation_alias=AliasChoices("server", "mcp", "server_id"))
    tool: str = Field(validation_alias=AliasChoices("tool", "name"), min_length=1)
    arguments: dict[str, Any] = Field(
        default={}, validation_alias=AliasChoices("arguments", "args")
    )


def parse_listed(entry: str | Mapping[str, Any]) -> tuple[ListedServer, ...]:
    """Return the servers of an entry of `mcp.servers`: "id", {id: [tools]}, {id: {tools,
    resources}} or {server_id, tools, resources}. Raises ValueError."""
    named = named_entries(entry, "server", "server_id", _KEYS, "server_id, tools, resources")
    return tuple(
        ListedServer(name, names_in(name, "tools", keys), names_in(name, "resources", keys))
        for name, keys in named
    )
