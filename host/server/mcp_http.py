"""The app as an MCP server over HTTP: `/mcp`, stateless, with the keys and tokens of every other
endpoint."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from groundhook.host.app.host import Host
from groundhook.host.core.extras import lacking
from groundhook.host.server.mcp_tools import McpCaller, McpTools
from groundhook.host.server.problems import Refused

if TYPE_CHECKING:
    from groundhook.host.server.serving import Call

PATH = "/mcp"
METADATA = "/.well-known/oauth-protected-resource/mcp"
CALLER = "groundhook.mcp_caller"  # in the scope of a request
LARGEST = 4 * 1024 * 1024


class McpEndpoint:
    """The MCP server of a process, as an ASGI app."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._manager.handle_request(scope, receive, send)


@asynccontextmanager
async def open_mcp(host: Host, public_url: str) -> AsyncIterator[McpEndpoint | None]:
    """Open the MCP server; None where the extra `mcp` is not installed."""
    if lacking("mcp"):
        yield None
        return
    from groundhook.host.server.mcp_server import http_manager, mcp_server

    tools = McpTools(host=host, connector=True, public_url=public_url)
    manager = http_manager(mcp_server(tools, _caller_of), LARGEST)
    async with manager.run():
        yield McpEndpoint(manager)


def _caller_of(context: Any) -> McpCaller:
    request: Request = context.request
    caller = request.scope[CALLER]
    assert isinstance(caller, McpCaller)
    return caller


async def mcp(call: Call) -> Any:
    """Tools, documents and whole answers for MCP clients."""
    serving = call.serving
    if serving.mcp is None:
        raise Refused("unknown_name", "there is no MCP server here")
    assistant = call.request.query_params.get("assistant", "")
    if assistant:
        serving.package(call.who, assistant)
    call.request.scope[CALLER] = McpCaller(
        identity=call.who.identity,
        assistant=assistant,
        assistants=None if call.who.reaches_all else serving.offered(call.who),
        admit=partial(_admitted, call),
        count=partial(serving.limits.count, "turns", call.who.owner),
    )
    return serving.mcp


@asynccontextmanager
async def _admitted(call: Call) -> AsyncIterator[None]:
    """Admit a whole answer as a turn of the caller. Raises Refused."""
    if "chat" not in call.who.scopes:
        raise Refused("not_permitted", "this needs the scope 'chat'")
    async with call.serving.admitted(call.who):
        yield


async def metadata(call: Call) -> Response:
    """Where clients of the MCP server sign in (RFC 9728)."""
    issuers = [entry.issuer for entry in call.serving.settings.auth.jwt]
    return JSONResponse(
        {
            "resource": f"{call.public_url}{PATH}",
            "authorization_servers": issuers,
            "bearer_methods_supported": ["header"],
        }
    )
