"""The MCP servers as a request reaches them outside hooks: in delegated steps, and from the command
line. Requests to servers whose tools are functions (`transport: "process"`) are answered here,
under the request's identity; all others go to the app's servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import anyio

from groundhook.core.channel import Channel
from groundhook.core.errors import UsageError
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.ports import Warn
from groundhook.core.types.events import Warned
from groundhook.core.types.server_spec import ServerSpec
from groundhook.core.types.servers import ServerMethod
from groundhook.host.turn.context import Request, RunContext
from groundhook.host.turn.package_tools import ProcessServer
from groundhook.host.turn.run import AssistantRun
from groundhook.host.turn.services.scripts import call_script
from groundhook.host.turn.stream import call_assistant


@dataclass(frozen=True)
class RequestServers:
    """`core.ports.ToolServers` for one request. `warn` is called with the warnings of the
    functions; their other events are dropped."""

    context: RunContext
    request: Request
    warn: Warn

    async def ask(
        self, server: str, method: ServerMethod, params: Mapping[str, Any], /
    ) -> dict[str, Any]:
        runtime = self.context.runtime
        spec = runtime.app.servers.named(server)
        if spec.transport != "process":
            return await runtime.servers.ask(server, method, params)
        channel = Channel(self.context.turn_id)

        async def forward() -> None:
            async for event in channel:
                if isinstance(event, Warned):
                    await self.warn(event.code, event.message)

        with unwrap_exception_groups():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(forward)
                try:
                    run = self._begin(spec, channel)
                    engine = runtime.hooks
                    process = ProcessServer(spec, runtime.app, run.package, engine, spec.id)
                    answer = await process.ask(run, method, params)
                finally:
                    channel.close()
        return answer

    def start_ms(self, server: str, /) -> int:
        return self.context.runtime.servers.start_ms(server)

    def _begin(self, spec: ServerSpec, channel: Channel) -> AssistantRun:
        """Return the run of the request's assistant, else of the one that declares the server."""
        context, request = self.context, self.request
        app = context.runtime.app
        id = request.assistant_id or app.owner_of(spec.id) or next(iter(sorted(app.packages)), "")
        if not id:
            raise UsageError(
                f"the tools of MCP server {spec.id!r} are functions of an assistant's package, but"
                " the app has no assistant"
            )
        # The function is a link of the chain, so that one that leads to itself is refused.
        chain = (*context.chain[:-1], f"{id} (mcp:{spec.id})")
        return AssistantRun.begin(
            context.runtime,
            replace(request, assistant_id=id),
            channel,
            call_assistant,
            call_script,
            context=replace(context, chain=chain),
        )
