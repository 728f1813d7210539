"""A connection to an MCP server through the MCP SDK, and its requests.

Only this package imports the SDK. Importing it takes half a second, so `host.tools.mcp.owner`
imports it for the first connection. One task opens and closes a `McpSession`; results are plain
data with the protocol's field names, errors those of `core.errors`.

The SDK's transport before streamable HTTP: requests are posted, and one stream has all answers.

The SDK stops sending after a request that the server refuses, and the calls under way wait for
their deadlines. Here the refusal is the answer to its request.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx2
from anyio import to_thread
from mcp import Client, MCPError
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    METHOD_NOT_FOUND,
    CallToolResult,
    ErrorData,
    Implementation,
    JSONRPCError,
    ToolListChangedNotification,
)
from pydantic import BaseModel, ValidationError

from groundhook.core.errors import (
    ServerMalformed,
    ServerNotConfigured,
    ServerRefused,
)
from groundhook.core.json_text import read_json
from groundhook.core.types.server_spec import ServerSpec
from groundhook.host.tools.mcp.evidence import ConnectionEvidence
from groundhook.host.tools.mcp.http_client import McpHttpClient
from groundhook.host.tools.mcp.program import open_program
from groundhook.host.tools.mcp.sdk.counted import counted
from groundhook.host.tools.mcp.sdk.errors import (
    CONNECTION_ERRORS,
    PROTOCOL_ERRORS,
    known_errors,
    server_error,
)
from groundhook.host.tools.mcp.sdk.stdio import Streams, streams

log = logging.getLogger("groundhook")

_CLOSED = (anyio.BrokenResourceError, anyio.ClosedResourceError)


@asynccontextmanager
async def sse_streams(spec: ServerSpec) -> AsyncIterator[Streams]:
    """The pair of streams that the SDK's client expects of a transport."""
    send, receive = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    class Client(McpHttpClient):
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


T = TypeVar("T")


MAX_PAGES = 100
# Variables of the host that a stdio server inherits; the same as in the SDK's own client.
INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")

# The SDK's log repeats what our errors report; without a handler Python would print it to standard
# error.
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


class McpSession:
    """An open connection. Every method raises ServerError; ServerUnreachable means that the
    connection is lost."""

    def __init__(self, client: Client, evidence: ConnectionEvidence) -> None:
        self._client, self._evidence = client, evidence
        self._tools: dict[str, dict[str, Any]] | None = None

    async def list_tools(self) -> list[dict[str, Any]]:
        """Return all tools, and keep them for `tool`."""
        tools = await self._all_pages(
            "tools/list", "tools", lambda cursor: self._client.list_tools(cursor=cursor)
        )
        self._tools = {tool["name"]: tool for tool in tools}
        return tools

    async def tool(self, name: str) -> dict[str, Any] | None:
        """Return a tool by name, from the last list or else from a new one; None if unknown."""
        if self._tools is None or name not in self._tools:
            await self.list_tools()
        return (self._tools or {}).get(name)

    def tool_names(self) -> list[str]:
        """Return the names in the last list."""
        return sorted(self._tools or ())

    def forget_tools(self) -> None:
        """Drop the last list; `tool` fetches a new one."""
        self._tools = None

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return _as_dict(
            await self._request(
                f"tools/call {name!r}", self._client.call_tool(name, dict(arguments))
            )
        )

    async def check_result(self, name: str, result: CallToolResult) -> None:
        """Check a result against the schema that the tool declares, in place of the SDK, which does
        it on the event loop and lets a schema of the server take any time. Raises RuntimeError, as
        the SDK does."""
        schema = (self._tools or {}).get(name, {}).get("outputSchema")
        if schema is None or result.is_error:
            return
        content = result.structured_content
        if content is None:
            raise RuntimeError(f"tool {name!r} returned no structured content")
        if isinstance(content, Mapping) and (
            problems := await to_thread.run_sync(_problems, content, schema)
        ):
            raise RuntimeError("; ".join(problems))

    async def list_resources(self) -> list[dict[str, Any]]:
        return await self._all_pages(
            "resources/list", "resources", lambda cursor: self._client.list_resources(cursor=cursor)
        )

    async def read_resource(self, uri: str) -> dict[str, Any]:
        return _as_dict(
            await self._request(f"resources/read {uri!r}", self._client.read_resource(uri))
        )

    async def list_prompts(self) -> list[dict[str, Any]]:
        return await self._all_pages(
            "prompts/list", "prompts", lambda cursor: self._client.list_prompts(cursor=cursor)
        )

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> dict[str, Any]:
        return _as_dict(
            await self._request(
                f"prompts/get {name!r}", self._client.get_prompt(name, dict(arguments))
            )
        )

    async def _all_pages(
        self, method: str, key: str, get: Callable[[str | None], Awaitable[BaseModel]]
    ) -> list[dict[str, Any]]:
        """Return all pages of a list; empty if the server does not support the method."""
        entries: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            try:
                page = _as_dict(await self._request(method, get(cursor)))
            except ServerRefused as exc:
                if isinstance(exc.__cause__, MCPError) and exc.__cause__.code == METHOD_NOT_FOUND:
                    return entries
                raise
            entries += page[key]
            cursor = page.get("nextCursor")
            if not cursor:
                return entries
        raise ServerMalformed(
            f"{self._evidence.name} answered {method} with more than {MAX_PAGES} pages"
        )

    async def _request(self, request: str, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except (*CONNECTION_ERRORS, *PROTOCOL_ERRORS) as exc:
            raise await server_error(exc, self._evidence, request) from exc


@asynccontextmanager
async def open_session(
    evidence: ConnectionEvidence,
    environment: Mapping[str, str],
    folder: Path,
    lost: Callable[[], None],
) -> AsyncIterator[McpSession]:
    """Start or connect to the server of `evidence`, which records what happens. The variables
    INHERITED are taken from `environment`; `lost` is called when a program's output ends. Raises
    ServerError."""
    async with _single_error(evidence), AsyncExitStack() as stack:
        if evidence.spec.transport == "stdio":
            transport = await _start_program(stack, evidence, environment, folder, lost)
        else:
            transport = await _http_transport(stack, evidence.spec)
        yield await _connect(stack, evidence, transport)


async def _start_program(
    stack: AsyncExitStack,
    evidence: ConnectionEvidence,
    environment: Mapping[str, str],
    folder: Path,
    lost: Callable[[], None],
) -> AbstractAsyncContextManager[Streams]:
    spec = evidence.spec
    env = {name: environment[name] for name in INHERITED if name in environment} | spec.env
    max_bytes = spec.result_kb * 1024
    try:
        opening = open_program(
            spec.command,
            spec.args,
            env=env,
            folder=folder,
            max_bytes=max_bytes,
            on_end_of_output=lost,
        )
        evidence.program = await stack.enter_async_context(opening)
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else str(exc)
        raise ServerNotConfigured(
            f"{evidence.name} cannot be started: {spec.command!r}: {reason}",
            hint="check 'command' in its file",
        ) from exc
    return streams(evidence.program, evidence)


async def _http_transport(
    stack: AsyncExitStack, spec: ServerSpec
) -> AbstractAsyncContextManager[Streams]:
    if spec.transport == "sse":
        return sse_streams(spec)
    max_bytes = spec.result_kb * 1024
    client = McpHttpClient(
        spec.sent_headers,
        max_bytes=max_bytes,
        connect=spec.start_timeout,
        silence=2 * spec.timeout,
    )
    await stack.enter_async_context(client)
    return streamable_http_client(spec.url, http_client=client, max_sse_event_size=max_bytes)


async def _connect(
    stack: AsyncExitStack,
    evidence: ConnectionEvidence,
    transport: AbstractAsyncContextManager[Streams],
) -> McpSession:
    sessions: list[McpSession] = []

    async def on_message(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            for session in sessions:
                session.forget_tools()

    who = Implementation(name="groundhook", version=metadata.version("groundhook"))
    client = Client(counted(transport), cache=None, message_handler=on_message, client_info=who)
    try:
        await stack.enter_async_context(client)
    except (*CONNECTION_ERRORS, *PROTOCOL_ERRORS) as exc:
        raise await server_error(exc, evidence, "") from exc
    except ExceptionGroup as group:
        known = known_errors(group, (*CONNECTION_ERRORS, *PROTOCOL_ERRORS))
        if not known:
            raise
        raise await server_error(known[0], evidence, "") from group
    evidence.connected = True
    sessions.append(McpSession(client, evidence))
    client.session.validate_tool_result = sessions[0].check_result  # type: ignore[method-assign]
    return sessions[0]


@asynccontextmanager
async def _single_error(evidence: ConnectionEvidence) -> AsyncIterator[None]:
    """Raise a single ServerError for the exception group in which the SDK reports the end of a
    connection. Groups with other errors, which are bugs, pass."""
    try:
        yield
    except ExceptionGroup as group:
        known = known_errors(group, (*CONNECTION_ERRORS, MCPError, ValidationError))
        if not known:
            raise
        raise await server_error(known[0], evidence, "") from group


def _problems(content: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    # Imported here since the library takes a tenth of a second to import.
    from groundhook.host.tools.mcp.arguments import problems_of, validator_of

    return problems_of(content, validator_of(schema))


def _as_dict(result: BaseModel) -> dict[str, Any]:
    plain: dict[str, Any] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return plain
