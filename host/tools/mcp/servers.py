"""The MCP servers of an app by id: their tools, resources and prompts, and calls of them.

    async with open_servers(app.servers, app.environment, folder=app.root) as servers:
        await servers.call_tool("files", "read", {"path": "README.md"})

A server starts when it is first used and ends with the block. Results are plain data with the
protocol's field names. Every call raises UnknownName for a server that is not declared, ConfigError
for one whose file is invalid, and ServerError.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskGroup

from groundhook.core.errors import (
    HostError,
    NotSupported,
    ServerUnreachable,
    UnknownName,
    UsageError,
)
from groundhook.core.ports import ToolServers
from groundhook.core.types.server_spec import ServerSpec
from groundhook.core.types.servers import ServerMethod
from groundhook.host.config.catalogue import Catalogue
from groundhook.host.tools.mcp.shapes import (
    function_schema,
    is_read_only,
    prompt_arguments,
    tool_result,
    unique_names,
)

if TYPE_CHECKING:
    from groundhook.host.tools.mcp.owner import Job, ServerOwner
    from groundhook.host.tools.mcp.sdk.session import McpSession


@dataclass(frozen=True)
class ToolName:
    """The full name of a tool."""

    server: str
    tool: str


@dataclass(frozen=True)
class Toolset:
    """Tools for a language model: `schemas` in the format of OpenAI's chat completions API, `names`
    from a function's name there to the tool, and `failed`, the servers that could not list their
    tools."""

    schemas: tuple[Mapping[str, Any], ...] = ()
    names: Mapping[str, ToolName] = field(default_factory=dict)
    failed: Mapping[str, HostError] = field(default_factory=dict)


class Servers:
    """`core.ports.ToolServers` for the declared servers. Callable from any task of the event
    loop. `server` is a full id (`App.resolve_server(assistant, name).id`)."""

    def __init__(
        self,
        catalogue: Catalogue[ServerSpec],
        environment: Mapping[str, str],
        folder: Path,
        tasks: TaskGroup,
    ) -> None:
        self._catalogue, self._environment, self._folder, self._tasks = (
            catalogue,
            environment,
            folder,
            tasks,
        )
        self._owners: dict[str, ServerOwner] = {}
        self._closed = False

    def start_ms(self, server: str, /) -> int:
        """Return the milliseconds that a server has to start with the next request; 0 when it
        runs."""
        owner = self._owners.get(server)
        if owner is not None and owner.is_connected:
            return 0
        try:
            return round(self._catalogue.named(server).start_timeout * 1000)
        except HostError:  # which the request itself reports
            return 0

    async def list_tools(self, server: str) -> dict[str, Any]:
        """{tools: [{name, description?, title?, inputSchema, outputSchema?, annotations?}]},
        limited to the tools that its file allows."""
        spec = self._catalogue.named(server)

        async def work(session: McpSession, job: Job) -> list[dict[str, Any]]:
            return await session.list_tools()

        tools = await self._owner(spec).ask("tools/list", work)
        return {"tools": [tool for tool in tools if not spec.tools or tool["name"] in spec.tools]}

    async def call_tool(
        self, server: str, tool: str, arguments: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """{content: [{type: "text", text} | {type: "image", data, mimeType} | …],
        structuredContent?}, or for a tool that reports a failure {content, isError: true, error:
        its text}. `host.tools.mcp.shapes.value_of` converts either to one value. Raises UnknownName
        for a tool that the server does not have, UsageError for one that its file does not
        allow."""
        spec = self._catalogue.named(server)
        if spec.tools and tool not in spec.tools:
            raise _not_allowed(spec, tool)

        async def work(session: McpSession, job: Job) -> dict[str, Any]:
            known = await session.tool(tool)
            if known is None:
                allowed = [
                    name for name in session.tool_names() if not spec.tools or name in spec.tools
                ]
                raise UnknownName(
                    "MCP tool", f"{server}.{tool}", [f"{server}.{name}" for name in allowed]
                )
            job.is_repeatable = tool in spec.read_only or is_read_only(known)
            return tool_result(await session.call_tool(tool, arguments or {}))

        result: dict[str, Any] = await self._owner(spec).ask(f"tools/call {tool!r}", work)
        return result

    async def list_resources(self, server: str) -> dict[str, Any]:
        """{resources: [{uri, name, title?, description?, mimeType?, size?}]}"""

        async def work(session: McpSession, job: Job) -> list[dict[str, Any]]:
            return await session.list_resources()

        return {
            "resources": await self._owner(self._catalogue.named(server)).ask(
                "resources/list", work
            )
        }

    async def read_resource(self, server: str, uri: str) -> dict[str, Any]:
        """{contents: [{uri, mimeType?, text | blob (base64)}]}"""

        async def work(session: McpSession, job: Job) -> dict[str, Any]:
            return await session.read_resource(uri)

        read = await self._owner(self._catalogue.named(server)).ask(f"resources/read {uri!r}", work)
        return {"contents": read["contents"]}

    async def list_prompts(self, server: str) -> dict[str, Any]:
        """{prompts: [{name, title?, description?, arguments?: [{name, description?,
        required?}]}]}"""

        async def work(session: McpSession, job: Job) -> list[dict[str, Any]]:
            return await session.list_prompts()

        return {
            "prompts": await self._owner(self._catalogue.named(server)).ask("prompts/list", work)
        }

    async def get_prompt(
        self, server: str, name: str, arguments: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """{messages: [{role, content: {type, …}}], description?}. Arguments other than text are
        sent as JSON."""

        async def work(session: McpSession, job: Job) -> dict[str, Any]:
            return await session.get_prompt(name, prompt_arguments(arguments or {}))

        prompt = await self._owner(self._catalogue.named(server)).ask(f"prompts/get {name!r}", work)
        return {key: prompt[key] for key in ("description", "messages") if key in prompt}

    async def schemas(self, wanted: Iterable[str] | Mapping[str, Collection[str]]) -> Toolset:
        """Return the tools of these servers; a mapping lists the wanted tools of each (empty:
        all)."""
        return await toolset(
            self, dict(wanted) if isinstance(wanted, Mapping) else dict.fromkeys(wanted, ())
        )

    async def ask(
        self, server: str, method: ServerMethod, params: Mapping[str, Any], /
    ) -> dict[str, Any]:
        """Call one of the methods above by its name in the protocol:
        `core.ports.ToolServers`."""
        match method:
            case "tools/list":
                return await self.list_tools(server)
            case "tools/call":
                return await self.call_tool(server, params["name"], params.get("arguments"))
            case "resources/list":
                return await self.list_resources(server)
            case "resources/read":
                return await self.read_resource(server, params["uri"])
            case "prompts/list":
                return await self.list_prompts(server)
            case "prompts/get":
                return await self.get_prompt(server, params["name"], params.get("arguments"))

    def close(self) -> None:
        """Close all servers; `open_servers` waits until they have ended."""
        self._closed = True
        for owner in self._owners.values():
            owner.close()

    def _owner(self, spec: ServerSpec) -> ServerOwner:
        if self._closed:
            raise ServerUnreachable(f"MCP server {spec.id!r} was closed", delivered=False)
        if spec.transport == "process":
            raise NotSupported(
                f"MCP server {spec.id!r} (transport: 'process') exists inside turns of its package",
                hint="a request reaches it, with its identity",
            )
        if spec.id not in self._owners:
            # Imported when the first server is used: most turns use none.
            from groundhook.host.tools.mcp.owner import ServerOwner

            self._owners[spec.id] = ServerOwner(spec, self._environment, self._folder)
            self._tasks.start_soon(self._owners[spec.id].run)
        return self._owners[spec.id]


async def toolset(
    servers: ToolServers,
    wanted: Mapping[str, Collection[str]],
    called: Mapping[str, str] | None = None,
) -> Toolset:
    """Fetch the tools of several servers concurrently: the wanted ones of each (empty: all).
    `called` gives servers other names for the functions' names. A server that fails is in `failed`
    and does not affect the others."""
    listed: dict[str, list[dict[str, Any]]] = {}
    failed: dict[str, HostError] = {}

    async def ask(server: str, only: Collection[str]) -> None:
        try:
            tools = (await servers.ask(server, "tools/list", {}))["tools"]
            listed[server] = [tool for tool in tools if not only or tool["name"] in only]
        except HostError as exc:
            failed[server] = exc

    async with anyio.create_task_group() as tasks:
        for server, only in wanted.items():
            tasks.start_soon(ask, server, only)
    shown = {server: (called or {}).get(server, server) for server in wanted}
    offered = [(server, tool) for server in wanted for tool in listed.get(server, ())]
    names = unique_names((shown[server], tool["name"]) for server, tool in offered)
    return Toolset(
        schemas=tuple(
            function_schema(names[shown[server], tool["name"]], tool) for server, tool in offered
        ),
        names={
            names[shown[server], tool["name"]]: ToolName(server, tool["name"])
            for server, tool in offered
        },
        failed=failed,
    )


@asynccontextmanager
async def open_servers(
    catalogue: Catalogue[ServerSpec], environment: Mapping[str, str], *, folder: Path = Path()
) -> AsyncIterator[Servers]:
    """Open the servers of a catalogue. Programs run in `folder`, with HOME, LOGNAME, PATH, SHELL,
    TERM and USER of `environment` and the variables of their files. Leaving ends them all at the
    same time; each has at most two seconds to exit by itself."""
    try:
        async with anyio.create_task_group() as tasks:
            servers = Servers(catalogue, environment, folder, tasks)
            try:
                yield servers
            finally:
                servers.close()
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        # The error of the caller's block, unwrapped.
        raise group.exceptions[0] from group.exceptions[0].__cause__


def _not_allowed(spec: ServerSpec, tool: str) -> UsageError:
    allowed = ", ".join(sorted(spec.tools))
    return UsageError(
        f"tool {tool!r} of MCP server {spec.id!r} is not allowed",
        hint=f"'tools' in its file allows {allowed}",
    )
