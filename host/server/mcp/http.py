"""The app as an MCP server over HTTP. It is stateless; `host.server.api.mcp` calls it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from groundhook.core.extras import lacking
from groundhook.core.server_settings import ServerSettings
from groundhook.host.app.host import Host
from groundhook.host.server.identity.secret import Secret
from groundhook.host.server.mcp.caller import McpCaller
from groundhook.host.server.mcp.sources import McpSources
from groundhook.host.server.mcp.tools import McpTools

CALLER = "groundhook.mcp_caller"  # in the scope of a request


class McpEndpoint:
    """The MCP server of a process, as an ASGI app."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._manager.handle_request(scope, receive, send)

    def with_body(self, body: bytes) -> ASGIApp:
        """Return the app for a request whose body has been read."""

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            # The SDK reads the body again, which was read under the limit of the server.
            messages = iter([{"type": "http.request", "body": body, "more_body": False}])

            async def replayed() -> Message:
                return next(messages, None) or await receive()

            await self(scope, replayed, send)

        return app


@asynccontextmanager
async def open_mcp(
    host: Host, settings: ServerSettings, secret: Secret
) -> AsyncIterator[McpEndpoint | None]:
    """Open the MCP server; yield None if it is switched off or the extra `mcp` is not installed."""
    if not settings.mcp.enabled or lacking("mcp"):
        yield None
        return
    from groundhook.host.server.mcp.server import http_manager, mcp_server

    sources = McpSources(host=host, secret=secret, public_url=settings.public_url)
    tools = McpTools(host=host, sources=sources, connector=True)
    manager = http_manager(mcp_server(tools, _caller_of), settings.limits.body_kb * 1024)
    async with manager.run():
        yield McpEndpoint(manager)


def _caller_of(context: Any) -> McpCaller:
    request: Request = context.request
    caller = request.scope[CALLER]
    assert isinstance(caller, McpCaller)
    return caller
