"""The list of MCP servers of an assistant, and requests to them. Pure: it does not know which
servers exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import AliasChoices, Field

from groundhook.host.core.types.base import Value

ServerMethod = Literal[
    "tools/list", "tools/call", "resources/list", "resources/read", "prompts/list", "prompts/get"
]
ServerCalling = Literal["in_order", "all", "any", "race"]


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
    if isinstance(entry, str):
        return (_listed(entry, {}),)
    if "server_id" in entry:
        name, more = (
            entry["server_id"],
            {key: value for key, value in entry.items() if key != "server_id"},
        )
        if not isinstance(name, str):
            raise ValueError("'server_id' must be text")
        return (_listed(name, more),)
    if not entry:
        raise ValueError("names no server")
    return tuple(
        _listed(name, {"tools": keys} if isinstance(keys, (list, tuple)) else keys)
        for name, keys in entry.items()
    )


def _listed(name: str, keys: Any) -> ListedServer:
    if not name.strip():
        raise ValueError("names no server")
    if not isinstance(keys, Mapping):
        raise ValueError(f"{name!r} must be followed by a list of tools")
    unknown = sorted(set(keys) - {"tools", "resources"})
    if unknown:
        raise ValueError(
            f"{unknown[0]!r} is not a key of a server (known: server_id, tools, resources)"
        )
    return ListedServer(name, _texts(name, "tools", keys), _texts(name, "resources", keys))


def _texts(name: str, key: str, keys: Mapping[str, Any]) -> tuple[str, ...]:
    values = keys.get(key) or ()
    if (
        isinstance(values, str)
        or not isinstance(values, Sequence)
        or not all(isinstance(value, str) for value in values)
    ):
        raise ValueError(f"'{key}' of {name!r} must be a list of names")
    return tuple(values)
