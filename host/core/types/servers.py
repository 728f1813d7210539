"""MCP servers as an assistant lists them, and what is asked of them. Pure: nothing here knows which
servers there are."""

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
    """One server under the name that the list uses. `tools` may be used (none named: all)."""

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
    """What an entry of `mcp.servers` names: "id", {id: [tools]}, {id: {tools, resources}} or
    {server_id, tools, resources}. Raises ValueError."""
    if isinstance(entry, str):
        return (_named(entry, {}),)
    if "server_id" in entry:
        name, more = (
            entry["server_id"],
            {key: value for key, value in entry.items() if key != "server_id"},
        )
        if not isinstance(name, str):
            raise ValueError("'server_id' must be text")
        return (_named(name, more),)
    if not entry:
        raise ValueError("names no server")
    return tuple(
        _named(name, {"tools": said} if isinstance(said, (list, tuple)) else said)
        for name, said in entry.items()
    )


def _named(name: str, said: Any) -> ListedServer:
    if not name.strip():
        raise ValueError("names no server")
    if not isinstance(said, Mapping):
        raise ValueError(f"{name!r} must be followed by a list of tools")
    strange = sorted(set(said) - {"tools", "resources"})
    if strange:
        raise ValueError(
            f"{strange[0]!r} is no key of a server (there are server_id, tools, resources)"
        )
    return ListedServer(name, _texts(name, "tools", said), _texts(name, "resources", said))


def _texts(name: str, key: str, said: Mapping[str, Any]) -> tuple[str, ...]:
    values = said.get(key) or ()
    if (
        isinstance(values, str)
        or not isinstance(values, Sequence)
        or not all(isinstance(value, str) for value in values)
    ):
        raise ValueError(f"'{key}' of {name!r} must be a list of names")
    return tuple(values)
