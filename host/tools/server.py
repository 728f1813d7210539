"""Tools of MCP servers as offers."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from groundhook.core.errors import HostError
from groundhook.core.ports import ToolServers
from groundhook.core.tool_ports import ToolScope
from groundhook.host.tools.mcp.servers import Toolset, toolset
from groundhook.host.tools.mcp.shapes import attachments_of, unread_of, value_of
from groundhook.host.tools.offers import ToolAnswer, ToolOffer, wrong_arguments


async def server_tools(
    servers: ToolServers, wanted: Mapping[str, Collection[str]], called: Mapping[str, str]
) -> tuple[list[ToolOffer], Mapping[str, HostError]]:
    """Return the tools of MCP servers, and the errors of servers that did not list theirs. `wanted`
    maps full ids to the tools to offer (empty: all), `called` to the servers' names for models and
    outcomes."""
    found = await toolset(servers, wanted, called)
    return [_make_offer(servers, found, schema, called) for schema in found.schemas], found.failed


def _make_offer(
    servers: ToolServers, found: Toolset, schema: Mapping[str, Any], called: Mapping[str, str]
) -> ToolOffer:
    function = schema["function"]
    server, tool = found.names[function["name"]].server, found.names[function["name"]].tool

    async def run(arguments: dict[str, Any], scope: ToolScope) -> ToolAnswer:
        answer = await servers.ask(server, "tools/call", {"name": tool, "arguments": arguments})
        for note in unread_of(answer):
            await scope.warn("part_not_read", f"{function['name']}: not read of its result: {note}")
        value, beside = value_of(called[server], tool, answer), attachments_of(answer)
        if not beside or isinstance(value, str):
            return ToolAnswer(result=value)
        # The structured content repeats the texts of a result, and nothing else of it.
        return ToolAnswer(result=value, text=f"{json.dumps(value, ensure_ascii=False)}\n{beside}")

    return ToolOffer(
        schema=schema,
        tool=tool,
        check=schema_check(function["parameters"]),
        slow_check=True,
        run=run,
        server=called[server],
    )


def schema_check(parameters: Mapping[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function that validates arguments against a JSON Schema, for `ToolOffer.check`."""
    validators: list[Any] = []

    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        # Imported here because the import takes a tenth of a second, and most turns have no such
        # tools.
        from groundhook.host.tools.mcp.arguments import problems_of, validator_of

        if not validators:
            validators.append(validator_of(parameters))
        wrong = problems_of(arguments, validators[0])
        if wrong:
            raise wrong_arguments(wrong)
        return arguments

    return check


def schema_trouble(parameters: Mapping[str, Any]) -> str:
    """Return why arguments are not checked against a JSON Schema; "" if they are."""
    from groundhook.host.tools.mcp.arguments import schema_problem  # as above

    return schema_problem(parameters)
