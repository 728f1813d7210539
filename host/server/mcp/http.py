"""The app as an MCP server over HTTP, at `/mcp`. It is stateless, and accepts the keys and tokens
of every other endpoint."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from groundhook.core.extras import lacking
from groundhook.core.server_settings import ServerSettings
from groundhook.host.app.host import Host
from groundhook.host.server.identity.secret import Secret
from groundhook.host.server.mcp.caller import McpCaller
from groundhook.host.server.mcp.sources import McpSources
from groundhook.host.server.mcp.tools import McpTools
from groundhook.host.server.problems import Refused
from groundhook.host.server.request_body import check_values, read_body

if TYPE_CHECKING:
    from groundhook.host.server.serving import Call

PATH = "/mcp"
METADATA = "/.well-known/oauth-protected-resource/mcp"
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


async def mcp(call: Call) -> ASGIApp:
    """Tools, documents and whole answers for MCP clients."""
    serving = call.serving
    if serving.mcp is None:
        raise Refused("unknown_name", "there is no MCP server here")
    assistant = call.request.query_params.get("assistant", "")
    if assistant:
        serving.package(call.caller, assistant)
    call.request.scope[CALLER] = McpCaller(
        identity=call.caller.identity,
        assistant=assistant,
        assistants=None if call.caller.reaches_all else serving.offered(call.caller),
        admit=partial(_admitted, call),
        count=partial(serving.limits.count, "turns", call.caller.owner),
    )
    body = await read_body(call.request, serving.settings.limits)
    check_values(body)
    return serving.mcp.with_body(body)


@asynccontextmanager
async def _admitted(call: Call) -> AsyncIterator[None]:
    """Count a whole answer as a turn of the caller while the block runs. Raises Refused."""
    if "chat" not in call.caller.scopes:
        raise Refused("not_permitted", "this needs the scope 'chat'")
    async with call.serving.admitted(call.caller):
        with call.serving.turns.answer_without_log() as scope:
            yield
        if scope.cancelled_caught:
            raise Refused("draining", "the server was stopped before the answer was complete")


async def metadata(call: Call) -> Response:
    """Return where clients of the MCP server sign in (RFC 9728)."""
    issuers = [entry.issuer for entry in call.serving.settings.auth.jwt]
    if not issuers:  # the standard wants at least one; clients would look for it here
        raise Refused("unknown_name", "callers have keys of this server; none signs in elsewhere")
    return JSONResponse(
        {
            "resource": f"{call.public_url}{PATH}",
            "authorization_servers": issuers,
            "bearer_methods_supported": ["header"],
        }
    )
