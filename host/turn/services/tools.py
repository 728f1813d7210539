"""The tools of one turn: the host's own, those of the package's scripts, and those of the toolkits
and of the MCP servers that the assistant lists, as one toolbox; and `ctx.tools`.

Servers list their tools when the turn first needs them, once for the same list of servers. A server
or a toolkit that fails is a warning, and the turn continues without its tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from groundhook.core.errors import HostError, UnknownName, UsageError
from groundhook.core.hook_engine import HookEngine
from groundhook.core.trace import span
from groundhook.core.types.events import Warned
from groundhook.core.types.search import SearchResult
from groundhook.core.types.servers import ListedServer
from groundhook.core.types.tools import ToolOutcome
from groundhook.host.config.package import Package
from groundhook.host.config.packages import App
from groundhook.host.tools.chosen import ChosenTools, missing_tool
from groundhook.host.tools.offers import ToolOffer
from groundhook.host.tools.server import server_tools
from groundhook.host.tools.toolbox import Toolbox
from groundhook.host.tools.toolkits import ListedTools
from groundhook.host.turn.grants import ServerListing
from groundhook.host.turn.package_tools import ProcessServer, RunOf, package_offers
from groundhook.host.turn.run import AssistantRun
from groundhook.host.turn.tool_scopes import ToolScopes

MOST_NAMED = 5  # unknown tools of Create with a warning each; of more, one warning names the first


async def tools_of(run: AssistantRun, toolkits: Sequence[Any] | None = None) -> Toolbox:
    """Return the tools of a turn under its current settings, or with another list of toolkits."""
    servers = run.settings.mcp.servers
    listed = run.settings.tools if toolkits is None else toolkits
    chosen = run.chosen if toolkits is None else None
    if not servers and not listed and run.package.tools is None and chosen is None:
        return run.runtime.toolbox
    metadata = run.request_metadata if listed or chosen else {}
    key = (servers, listed, metadata, chosen)
    # Servers are started early, during the search: the step that needs the tools waits for them.
    async with run.tools_lock:
        for known, toolbox in run.toolboxes:
            if known == key:
                return toolbox
        made = await _fetch_tools(run, listed, metadata, chosen)
        run.toolboxes.append((key, made))
        return made


def scopes_of(run: AssistantRun) -> ToolScopes:
    """Return what makes the scopes of a turn's tool calls."""
    return ToolScopes(
        run.runtime,
        run.searcher.scope,
        run.settings,
        run.channel,
        run.request_metadata,
        run.request.options.locale,
    )


async def _fetch_tools(
    run: AssistantRun,
    toolkits: Sequence[Any],
    metadata: Mapping[str, Any],
    chosen: ChosenTools | None,
) -> Toolbox:
    first = await _list_own_tools(run)
    missing: Sequence[str] = ()
    if chosen is not None:
        every = await _add_toolkits(run, first, _list_toolkits(run), metadata)
        first, missing = chosen.pick(every)
        for warning in await to_thread.run_sync(chosen.unchecked):
            await run.channel.send(warning)
    own = await _add_toolkits(run, first, toolkits, metadata)
    made = own.joined(await _fetch_server_tools(run, own)) if run.settings.mcp.servers else own
    unknown = [name for name in missing if name not in made]
    for name in unknown if len(unknown) <= MOST_NAMED else ():
        error = missing_tool(name, list(every.names))
        await run.channel.send(_make_warning(error, "it"))
    if len(unknown) > MOST_NAMED:
        first_names = ", ".join(repr(name[:64]) for name in unknown[:MOST_NAMED])
        message = (
            f"no tools {first_names} and {len(unknown) - MOST_NAMED} more that Create returned"
        )
        await run.channel.send(_make_warning(UsageError(message), "them"))
    return made


async def _list_own_tools(run: AssistantRun) -> list[ToolOffer]:
    """Return the tools of the host and those of the package's scripts."""
    runtime = run.runtime
    scripted: Sequence[ToolOffer] = ()
    try:
        scripted = await package_offers(runtime.hooks, run.package, lambda: run)
    except HostError as exc:
        await run.channel.send(_make_warning(exc))
    of_host = runtime.toolbox.offers
    for offer in scripted:
        if offer.name in of_host:
            message = f"{offer.name!r} of the host is offered instead of that of the package"
            await run.channel.send(Warned(code="tool_name", message=message))
    return [*of_host.values(), *(offer for offer in scripted if offer.name not in of_host)]


async def _add_toolkits(
    run: AssistantRun,
    first: Sequence[ToolOffer],
    toolkits: Sequence[Any],
    metadata: Mapping[str, Any],
) -> Toolbox:
    """Return the tools with those of a list of toolkits that are not among them."""
    runtime = run.runtime
    listed = ListedTools.of(runtime.app, run.package.id, toolkits, runtime.toolkits)
    for problem in listed.problems.values():
        await run.channel.send(_make_warning(problem))
    known = {(offer.toolkit, offer.tool) for offer in first if offer.toolkit}
    taken = [offer.name for offer in first]
    offers = [
        offer
        for offer in listed.offers(metadata, taken)
        if (offer.toolkit, offer.tool) not in known
    ]
    return Toolbox.of([*first, *offers], listed.problems)


def _list_toolkits(run: AssistantRun) -> Sequence[Any]:
    """Return the toolkits that the assistant's files list, whatever Create returned."""
    return run.runtime.app.settings_for(run.package).settings.tools


async def process_offers(
    app: App, package: Package, engine: HookEngine, listing: ServerListing, run: RunOf
) -> tuple[list[ToolOffer], dict[str, HostError]]:
    """Return the tools of the listed servers that are functions of the package, and the errors of
    servers by full id."""
    offers: list[ToolOffer] = []
    failed: dict[str, HostError] = {}
    for id, listed in listing.servers.items():
        spec = app.servers.named(id)
        if spec.transport == "process":
            server = ProcessServer(spec, app, package, engine, listed.name)
            found, error = await server.offers(run)
            offers += [each for each in found if not listed.tools or each.tool in listed.tools]
            if error is not None:
                failed[id] = error
    return offers, failed


def outside(app: App, listing: ServerListing) -> dict[str, ListedServer]:
    """Return the listed servers that are programs or addresses."""
    return {
        id: listed
        for id, listed in listing.servers.items()
        if app.servers.named(id).transport != "process"
    }


async def _fetch_server_tools(run: AssistantRun, own: Toolbox) -> Sequence[ToolOffer]:
    app = run.runtime.app
    listing = ServerListing.of(app, run.package.id, run.settings.mcp.servers)
    for problem in listing.problems.values():
        await run.warn(problem)
    servers = outside(app, listing)
    wanted = {id: listed.tools for id, listed in servers.items()}
    called = {id: listed.name for id, listed in servers.items()}
    with span("tools", ", ".join(called.values())) as node:
        offers, failed = await server_tools(run.runtime.servers, wanted, called)
        node.data["count"] = len(offers)
    processes, wrong = await process_offers(
        app, run.package, run.runtime.hooks, listing, lambda: run
    )
    offers, failed = [*offers, *processes], {**failed, **wrong}
    for error in failed.values():
        await run.channel.send(_make_warning(error))
    await _warn_of_missing(run, listing, own, offers, failed)
    return offers


def _make_warning(error: HostError, what: str = "its tools") -> Warned:
    return Warned(
        code=error.code,
        message=f"{error.message}; the turn continues without {what}",
        hint=error.hint,
        file=error.place.file if error.place else "",
        line=error.place.line if error.place else 0,
        column=error.place.column if error.place else 0,
    )


async def _warn_of_missing(
    run: AssistantRun,
    listing: ServerListing,
    own: Toolbox,
    offers: Sequence[ToolOffer],
    failed: Mapping[str, HostError],
) -> None:
    """Warn of listed tools that a server does not have, and of tools whose name is taken."""
    for id, listed in listing.servers.items():
        found = [offer.tool for offer in offers if offer.server == listed.name]
        for tool in listed.tools:
            if id not in failed and tool not in found:
                await run.warn(UnknownName(f"tool of MCP server {listed.name!r}", tool, found))
    for offer in offers:
        if taken := own.offers.get(offer.name):
            owner = f"toolkit {taken.toolkit_name!r}" if taken.toolkit else "the host or package"
            message = f"{offer.name!r} of {owner} is offered instead of that of {offer.server!r}"
            await run.channel.send(Warned(code="tool_name", message=message))


@dataclass(frozen=True)
class TurnTools:
    """The tools for the hooks of one run: `core.hook_services.HookTools`. `toolkits` is the
    assistant's own list: Create changes what the model is offered, not what a hook may call."""

    run: AssistantRun
    toolkits: Sequence[Any]

    async def offered(self) -> Sequence[Mapping[str, Any]]:
        toolbox = await tools_of(self.run, self.toolkits)
        return [schema["function"] for schema in toolbox.schemas()]

    async def call(
        self, name: str, arguments: Mapping[str, Any], /, *, pool: bool = False
    ) -> ToolOutcome:
        run = self.run
        toolbox = await tools_of(run, self.toolkits)
        offer = toolbox.find(name)
        if offer is None:
            raise UnknownName("tool", name, toolbox.names)
        with span("tool", name, server=offer.server, toolkit=offer.toolkit_name) as node:
            outcome = await toolbox.call("", name, arguments, scopes_of(run))
            node.note(tool=name, input=arguments, output=outcome.result)
            if outcome.error is not None:
                node.fail(outcome.error)
        index = run.searcher.citation_index
        items = tuple(index.cite(item) for item in outcome.items)
        if pool and items:
            types = dict.fromkeys(item.type for item in items)
            by_type = {type: [item for item in items if item.type == type] for type in types}
            run.results += [
                SearchResult(
                    type=type,
                    query=run.question or name,
                    source="hook",
                    items=tuple(found),
                    total=len(found),
                    duration_ms=outcome.duration_ms,
                )
                for type, found in by_type.items()
            ]
        return outcome.model_copy(update={"items": items})
