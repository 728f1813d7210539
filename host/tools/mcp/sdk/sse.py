"""The SDK's transport before streamable HTTP: requests are posted, and one stream has all answers.

The SDK stops sending after a request that the server refuses, and the calls under way wait for
their deadlines. Here the refusal is the answer to its request.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import httpx2
from mcp.client.sse import sse_client
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError

from groundhook.core.json_text import read_json
from groundhook.core.types.server_spec import ServerSpec
from groundhook.host.tools.mcp.http_client import GuardedClient
from groundhook.host.tools.mcp.sdk.stdio import Streams

log = logging.getLogger("groundhook")

_CLOSED = (anyio.BrokenResourceError, anyio.ClosedResourceError)


@asynccontextmanager
async def sse_streams(spec: ServerSpec) -> AsyncIterator[Streams]:
    """The pair of streams that the SDK's client expects of a transport."""
    send, receive = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    class Client(GuardedClient):
        async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
            response = await super().send(request, **options)
            if request.method != "POST" or response.status_code < 400:
                return response
            error = ErrorData.model_validate(read_json(await response.aread())["error"])
            sent = read_json(request.content)
            if "method" in sent and "id" in sent:
                answer = JSONRPCError(jsonrpc="2.0", id=sent["id"], error=error)
                with suppress(*_CLOSED):
                    await send.send(SessionMessage(answer))
            else:  # a notification, or the answer to a request of the server
                what = sent.get("method", "an answer")
                log.warning("MCP server at %s refused %s: %s", spec.url, what, error.message[:200])
            return httpx2.Response(202, request=request)

    # Without a limit of silence: the stream is silent between calls.
    client = Client(
        spec.sent_headers,
        max_bytes=spec.result_kb * 1024,
        connect=spec.start_timeout,
        silence=None,
    )

    async def forward(incoming: Any) -> None:
        async with send:
            async for message in incoming:
                with suppress(*_CLOSED):
                    await send.send(message)

    async with (
        # First, so that they are closed also when the server cannot be reached.
        send,
        receive,
        sse_client(spec.url, httpx_client_factory=lambda *_, **__: client) as (incoming, outgoing),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(forward, incoming)
        yield receive, outgoing
        tasks.cancel_scope.cancel()
