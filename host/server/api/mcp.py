"""`/mcp`: the app as an MCP server, which accepts the keys and tokens of every other endpoint."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from groundhook.host.server.mcp.caller import McpCaller
from groundhook.host.server.mcp.http import CALLER
from groundhook.host.server.problems import Refused
from groundhook.host.server.request_body import check_values, read_body
from groundhook.host.server.serving import Call

PATH = "/mcp"
METADATA = "/.well-known/oauth-protected-resource/mcp"


async def endpoint(call: Call) -> ASGIApp:
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
    call.admit_stream()
    body = await read_body(call.request, serving.settings.limits)
    check_values(body)
    answering = serving.mcp.with_body(body)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        with call.stream():
            await answering(scope, receive, send)

    return app


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
