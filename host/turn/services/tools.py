"""The tools of one turn: the host's own and those of the MCP servers that the assistant lists, as
one toolbox; and `ctx.tools`.

Servers list their tools when the turn first needs them, once for the same list of servers. A server
that fails is a warning, and the turn goes on without its tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groundhook.host.core.errors import HostError, UnknownName
from groundhook.host.core.trace import span
from groundhook.host.core.types.events import Warned
from groundhook.host.core.types.tools import ToolOutcome
from groundhook.host.turn.grants import Listing
from groundhook.host.turn.run import AssistantRun
from groundhook.host.turn.tools import Offer, Toolbox, server_tools


async def tools_of(run: AssistantRun) -> Toolbox:
    """Return the tools of a turn under its current settings."""
    listed = run.settings.mcp.servers
    if not listed:
        return run.runtime.toolbox
    async with run.tools_lock:
        if run.tools is None or run.tools[0] != listed:
            run.tools = (
                listed,
                await _fetch(run, Listing.of(run.runtime.app, run.package.id, listed)),
            )
        return run.tools[1]


async def _fetch(run: AssistantRun, listing: Listing) -> Toolbox:
    for problem in listing.problems.values():
        await run.warn(problem)
    wanted = {id: listed.tools for id, listed in listing.servers.items()}
    called = {id: listed.name for id, listed in listing.servers.items()}
    with span("tools", ", ".join(called.values())) as node:
        offers, failed = await server_tools(run.runtime.servers, wanted, called)
        node.data["count"] = len(offers)
    for error in failed.values():
        await run.channel.send(_as_warning(error))
    await _warn_of_missing(run, listing, offers, failed)
    return run.runtime.toolbox.joined(offers)


def _as_warning(error: HostError) -> Warned:
    return Warned(
        code=error.code,
        message=f"{error.message}; the turn goes on without its tools",
        hint=error.hint,
    )


async def _warn_of_missing(
    run: AssistantRun, listing: Listing, offers: Sequence[Offer], failed: Mapping[str, HostError]
) -> None:
    """Warn of listed tools that a server does not have, and of tools whose name is taken."""
    for id, listed in listing.servers.items():
        found = [offer.tool for offer in offers if offer.server == listed.name]
        for tool in listed.tools:
            if id not in failed and tool not in found:
                await run.warn(UnknownName(f"tool of MCP server {listed.name!r}", tool, found))
    for offer in offers:
        if offer.name in run.runtime.toolbox:
            message = (
                f"the host's own tool {offer.name!r} is offered instead of that of {offer.server!r}"
            )
            await run.channel.send(Warned(code="tool_name", message=message))


@dataclass(frozen=True)
class TurnTools:
    """The tools for the hooks of one run: `host.core.hook_services.HookTools`."""

    run: AssistantRun

    async def offered(self) -> Sequence[Mapping[str, Any]]:
        return [schema["function"] for schema in (await tools_of(self.run)).schemas()]

    async def call(self, name: str, arguments: Mapping[str, Any], /) -> ToolOutcome:
        toolbox = await tools_of(self.run)
        if name not in toolbox:
            raise UnknownName("tool", name, toolbox.names)
        with span("tool", name, server=toolbox.server(name)) as node:
            outcome, _ = await toolbox.call("", name, arguments)
            if outcome.error is not None:
                node.fail(outcome.error)
        return outcome
