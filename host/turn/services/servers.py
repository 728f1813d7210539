"""`ctx.mcp` for the hooks of one assistant: `core.hook_services.HookServers` over the app's
MCP servers.

Checks which servers an assistant may use: those that its configuration lists, regardless of the
result of Create.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from groundhook.core.errors import (
    HostError,
    ToolFailed,
    UsageError,
    suggestion,
)
from groundhook.core.trace import span
from groundhook.core.types.servers import ServerCalling, ServerMethod, ToolAsk
from groundhook.host.search.searcher import run_all, run_first
from groundhook.host.tools.mcp.shapes import value_of
from groundhook.host.turn.grants import ServerListing
from groundhook.host.turn.package_tools import ProcessServer
from groundhook.host.turn.run import AssistantRun


@dataclass
class ServerCalls:
    """The server calls of one run's hooks. `listing` is that of the assistant's configuration."""

    run: AssistantRun
    listing: ServerListing

    @staticmethod
    def of(run: AssistantRun) -> ServerCalls:
        return ServerCalls(
            run, ServerListing.of(run.runtime.app, run.package.id, run.settings.mcp.servers)
        )

    async def ask(
        self, server: str, method: ServerMethod, params: Mapping[str, Any], /
    ) -> dict[str, Any]:
        id = self._find_server_id(server)
        listed = self.listing.servers[id]
        tool = str(params.get("name", "")) if method == "tools/call" else ""
        if tool and listed.tools and tool not in listed.tools:
            hint = f"{self._key} allows {', '.join(listed.tools)}"
            raise UsageError(
                f"tool {tool!r} of MCP server {server!r} is not among those that the assistant"
                " may use",
                hint=hint,
            )
        with span(
            "mcp",
            f"{listed.name}.{tool}" if tool else f"{listed.name} {method}",
            server=listed.name,
        ) as node:
            spec = self.run.runtime.app.servers.named(id)
            if spec.transport == "process":
                runtime = self.run.runtime
                process = ProcessServer(
                    spec, runtime.app, self.run.package, runtime.hooks, listed.name
                )
                answer = await process.ask(self.run, method, params)
            else:
                answer = await self.run.runtime.servers.ask(id, method, params)
            node.note(tool=node.label, input=params.get("arguments", {}), output=answer)
            if "error" in answer:
                node.fail(str(answer["error"]))
        if method == "tools/list":
            return {
                "tools": [
                    each
                    for each in answer["tools"]
                    if not listed.tools or each["name"] in listed.tools
                ]
            }
        return _add_result(listed.name, tool, answer) if tool else answer

    def start_ms(self, server: str, /) -> int:
        ids = (f"agents.{self.run.package.id}.{server}", server)
        id = next((id for id in ids if id in self.listing.servers), "")
        return self.run.runtime.servers.start_ms(id) if id else 0

    async def call_many(
        self, asks: Sequence[ToolAsk], calling: ServerCalling, /
    ) -> list[dict[str, Any]]:
        jobs = [partial(self._attempt, ask) for ask in asks]
        if calling == "in_order":
            return [await job() for job in jobs]
        if calling == "all":
            return await run_all(jobs)
        return await run_first(
            jobs,
            accept=(lambda answer: "error" not in answer) if calling == "any" else (lambda _: True),
        )

    async def _attempt(self, ask: ToolAsk) -> dict[str, Any]:
        """Call a tool. This is the one place where a failed call becomes `error` on an answer."""
        about = {"server": ask.server, "tool": ask.tool}
        try:
            return {
                **about,
                **await self.ask(
                    ask.server, "tools/call", {"name": ask.tool, "arguments": ask.arguments}
                ),
            }
        except HostError as exc:
            return {**about, "error": str(exc)}

    def _find_server_id(self, name: str) -> str:
        """Return the full id of a listed server. Raises UsageError when it is not listed, and the
        problem with it when it is listed wrongly."""
        if name in self.listing.problems:
            raise self.listing.problems[name]
        id = next(
            (
                full
                for full in (f"agents.{self.run.package.id}.{name}", name)
                if full in self.listing.servers
            ),
            None,
        )
        if id is None:
            names = [listed.name for listed in self.listing.servers.values()]
            hint = f"{self._key} lists them: {suggestion(name, names)}"
            raise UsageError(
                f"MCP server {name!r} is not among those that the assistant may use", hint=hint
            )
        return id

    @property
    def _key(self) -> str:
        return f"'mcp.servers' in {self.run.package.shown}/package.yao"


def _add_result(server: str, tool: str, answer: dict[str, Any]) -> dict[str, Any]:
    try:
        return {**answer, "result": value_of(server, tool, answer)}
    except ToolFailed:
        return answer
