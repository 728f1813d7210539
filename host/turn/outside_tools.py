"""Tool calls outside a turn: from Python, the command line, HTTP and MCP."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import anyio

from groundhook.core.channel import Channel
from groundhook.core.error_events import warning_event
from groundhook.core.errors import HostError
from groundhook.core.settings import Settings
from groundhook.core.trace import recording, span
from groundhook.core.types.events import Event, ToolResult, ToolStart, Warned
from groundhook.core.types.tools import Tool, ToolInfo, ToolOutcome
from groundhook.host.config.package import Package
from groundhook.host.search.citations.index import CitationIndex
from groundhook.host.tools.offers import ToolOffer
from groundhook.host.tools.python import offer_of
from groundhook.host.tools.server import server_tools
from groundhook.host.tools.toolbox import Toolbox
from groundhook.host.tools.toolkits import ListedTools
from groundhook.host.turn.context import Request, RunContext, Runtime, search_scope
from groundhook.host.turn.grants import ServerListing
from groundhook.host.turn.package_tools import RunOf, package_offers
from groundhook.host.turn.run import AssistantRun
from groundhook.host.turn.services.scripts import call_script
from groundhook.host.turn.services.tools import outside, process_offers
from groundhook.host.turn.stream import call_assistant
from groundhook.host.turn.tool_scopes import ToolScopes


@dataclass(frozen=True)
class OutsideTools:
    """The tools of one request: those that its assistant lists; without an assistant, the tools of
    all toolkits and of the host."""

    runtime: Runtime
    request: Request
    settings: Settings

    async def toolbox(self, channel: Channel | None = None) -> Toolbox:
        """Return the tools. The errors of toolkits and servers are its `problems`. Functions of the
        package send their events to `channel`."""
        runtime, id = self.runtime, self.request.assistant_id
        own = runtime.toolbox.offers
        if not id:
            listed = ListedTools.every(runtime.app, runtime.toolkits)
            return Toolbox.of([*own.values(), *listed.offers({}, own)], listed.problems)
        package = runtime.app.package(id)
        run = partial(self._begin, channel or Channel("tool"))
        problems: dict[str, HostError] = {}
        scripted: Sequence[ToolOffer] = ()
        try:
            scripted = await package_offers(runtime.hooks, package, run)
        except HostError as exc:
            problems["tools"] = exc
        first = {offer.name: offer for offer in scripted} | dict(own)
        listed = ListedTools.of(runtime.app, id, self.settings.tools, runtime.toolkits)
        offers = listed.offers(self.request.options.metadata, first)
        box = Toolbox.of([*first.values(), *offers], {**problems, **listed.problems})
        return await self._add_servers(box, package, run) if self.settings.mcp.servers else box

    def _begin(self, channel: Channel) -> AssistantRun:
        return AssistantRun.begin(self.runtime, self.request, channel, call_assistant, call_script)

    async def _add_servers(self, box: Toolbox, package: Package, run: RunOf) -> Toolbox:
        """Return the toolbox with the tools of the listed MCP servers."""
        runtime, app = self.runtime, self.runtime.app
        listing = ServerListing.of(app, package.id, self.settings.mcp.servers)
        servers = outside(app, listing)
        found, failed = await server_tools(
            runtime.servers,
            {id: each.tools for id, each in servers.items()},
            {id: each.name for id, each in servers.items()},
        )
        processes, wrong = await process_offers(app, package, runtime.hooks, listing, run)
        failed = {**failed, **wrong}
        called = {each.name: failed[id] for id, each in listing.servers.items() if id in failed}
        problems = {**listing.problems, **called, **box.problems}
        return Toolbox.of(box.joined([*found, *processes]).offers.values(), problems)

    async def listed(
        self, *, allowed: bool, on_problem: Callable[[Warned], object] | None = None
    ) -> list[ToolInfo]:
        """Return the tools; with `allowed` those that the identity may use. `on_problem` is
        called with a warning for each toolkit and server that failed."""
        identity, metadata = self.request.identity, self.request.options.metadata
        toolbox = await self.toolbox()
        if on_problem is not None:
            for error in toolbox.problems.values():
                on_problem(warning_event(error))
        return [
            offer.info()
            for offer in toolbox.offers.values()
            if not offer.withheld
            and not (
                allowed
                and offer.refusal(identity, {**_fill_metadata(offer.needs.metadata), **metadata})
            )
        ]

    async def run(
        self,
        tool: str | Tool,
        arguments: Mapping[str, Any],
        on_event: Callable[[Event], object] | None,
    ) -> ToolOutcome:
        """Call a tool, which is named or passed itself, and return the outcome. `on_event` is
        called with each event, in order; if the call is cancelled, also with the events by which
        its steps report their end."""
        channel = Channel("tool")
        recorders = self.runtime.recorders(channel, self.request)
        outcome: ToolOutcome | None = None
        if on_event is None:
            channel.close()  # nobody reads the events: they are dropped
            with recording(*recorders) if self.runtime.export else recording(None):
                return await self._run(tool, arguments, channel)

        async def forward() -> None:
            with anyio.CancelScope(shield=True):  # ends when the channel is closed, below
                async for event in channel:
                    on_event(event)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(forward)
            try:
                with recording(*recorders):
                    outcome = await self._run(tool, arguments, channel)
            finally:
                channel.close()
        assert outcome is not None
        return outcome

    async def _run(
        self, tool: str | Tool, arguments: Mapping[str, Any], channel: Channel
    ) -> ToolOutcome:
        async def warn(code: str, message: str) -> None:
            await channel.send(Warned(code=code, message=message))

        context = RunContext(runtime=self.runtime, turn_id=channel.turn_id)
        scope = search_scope(context, self.request, self.settings, call_assistant, warn)
        scopes = ToolScopes(
            self.runtime,
            scope,
            self.settings,
            channel,
            self.request.options.metadata,
            self.request.options.locale,
        )
        if isinstance(tool, Tool):
            name, toolbox = tool.name, Toolbox.of([offer_of(tool)])
        else:
            name, toolbox = tool, replace(await self.toolbox(channel), canonical=True)
        offer = toolbox.find(name)
        about = {
            "name": offer.name if offer else name,
            "server": offer.server if offer else "",
            "toolkit": offer.toolkit_name if offer else "",
        }
        call_id = "call"
        await channel.send(ToolStart(call_id=call_id, **about, arguments=dict(arguments)))
        with span("tool", about["name"], server=about["server"], toolkit=about["toolkit"]) as node:
            outcome = await toolbox.call(call_id, name, arguments, scopes)
            node.note(tool=about["name"], input=arguments, output=outcome.result)
            if outcome.error is not None:
                node.fail(outcome.error)
        index = CitationIndex(self.settings.search.citation.format, self.runtime.app.collections)
        items = tuple(index.cite(item) for item in outcome.items)
        await channel.send(
            ToolResult(
                call_id=call_id,
                **about,
                result=outcome.result,
                error=outcome.error,
                items=items,
                duration_ms=outcome.duration_ms,
            )
        )
        return outcome.model_copy(update={"items": items, "toolcall_id": ""})


def _fill_metadata(keys: Any) -> dict[str, Any]:
    """Return metadata that has all keys: it belongs to a call, not to the identity."""
    return dict.fromkeys(keys, True)
