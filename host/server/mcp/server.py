"""An app as an MCP server: its tools and collections for the clients of that protocol. The one
module beside `host.tools.mcp.sdk` that knows the SDK (mcp 2.3).

    tools = McpTools(host=host, sources=McpSources(host=host, secret=Secret(state)))
    server = mcp_server(tools, lambda _: McpCaller(identity=identity))
    await serve_stdio(server)
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from sse_starlette.sse import AppStatus

from groundhook.core.errors import HostError, UsageError
from groundhook.host.server.mcp.caller import McpCaller
from groundhook.host.server.mcp.tools import McpTools
from groundhook.host.server.mcp.values import (
    RESOURCES,
    FormAnswer,
    McpAnswer,
    OfferedTool,
    UserForm,
)
from groundhook.host.server.problems import INTERNAL

log = logging.getLogger("groundhook")

Context = ServerRequestContext[Any, Any]
P = TypeVar("P")
R = TypeVar("R")
FORM = "form"  # the key of a form in a request for input
WARNINGS = "groundhook/warnings"  # the key in `_meta` of an answer
CallerOf = Callable[[Context], McpCaller]


def mcp_server(tools: McpTools, caller_of: CallerOf) -> Server[Any]:
    """Return a server of these tools. `caller_of` returns who sent a request: a fixed identity
    over stdio, that of a key or token over HTTP; never one that the client names."""

    async def list_tools(
        context: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        offered = await tools.offered(caller_of(context))
        return types.ListToolsResult(tools=[_described(tool) for tool in offered])

    async def call_tool(
        context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        answer = await _call(tools, context, params, caller_of(context))
        if isinstance(answer, types.InputRequiredResult):
            return answer
        links = [types.ResourceLink(name=title or uri, uri=uri) for uri, title in answer.links]
        return types.CallToolResult(
            # One text alone, which clients of `search` and `fetch` parse as JSON.
            content=[types.TextContent(text=answer.text), *links],
            _meta={WARNINGS: list(answer.warnings)} if answer.warnings else None,
            structured_content=None if answer.structured is None else dict(answer.structured),
            is_error=answer.failed,
        )

    async def list_resources(
        context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        cursor = (params.cursor if params else None) or ""
        return await _resources(tools, caller_of(context), cursor)

    async def list_templates(
        _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        document = types.ResourceTemplate(
            name="document",
            uri_template=f"{RESOURCES}kb/{{collection}}/{{+document}}",
            description="A document of a collection, whole",
            mime_type="text/markdown",
        )
        record = types.ResourceTemplate(
            name="record",
            uri_template=f"{RESOURCES}db/{{model}}/{{+record}}",
            description="A record of a database, by its primary key",
            mime_type="text/markdown",
        )
        return types.ListResourceTemplatesResult(resource_templates=[document, record])

    async def read_resource(
        context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            kind, _, rest = unquote(uri.removeprefix(RESOURCES)).partition("/")
            text = await tools.read(f"{kind}:{rest}", caller_of(context))
        except HostError as exc:
            raise MCPError(types.INVALID_PARAMS, f"there is no resource {uri!r}") from exc
        content = types.TextResourceContents(uri=uri, mime_type="text/markdown", text=text)
        return types.ReadResourceResult(contents=[content])

    server: Server[Any] = Server(
        "groundhook",
        version=version("groundhook"),
        on_list_tools=_without_causes(list_tools),
        on_call_tool=_without_causes(call_tool),
        on_list_resources=_without_causes(list_resources),
        on_list_resource_templates=_without_causes(list_templates),
        on_read_resource=_without_causes(read_resource),
    )
    server.middleware.append(_instructing(tools, caller_of))
    return server


def _instructing(tools: McpTools, caller_of: CallerOf) -> ServerMiddleware[Any]:
    """Return what adds the instructions for a caller to the answer that describes the server."""

    async def instruct(ctx: Context, call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method not in ("initialize", "server/discover") or not isinstance(result, dict):
            return result
        try:
            return {**result, "instructions": tools.instructions(caller_of(ctx))}
        except Exception:
            log.exception("an MCP client got no instructions: a bug in Groundhook")
            return result

    return instruct


async def _call(
    tools: McpTools, context: Context, params: types.CallToolRequestParams, caller: McpCaller
) -> McpAnswer | types.InputRequiredResult:
    """Call a tool. Where it needs its user first, a client of the new protocol repeats its request
    with what the user has given; an older one is asked while the call waits."""
    can_show, given = _shows_forms(context), _given(params)
    while True:
        answer = await tools.call(
            params.name,
            params.arguments or {},
            caller,
            context.session.report_progress,
            given=given,
            can_show=can_show,
        )
        if answer.form is None:
            return answer
        form = _form(answer.form)
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return types.InputRequiredResult(
                input_requests={FORM: types.ElicitRequest(params=form)},
                request_state=answer.form.state or None,
            )
        shown = await context.session.elicit_form(form.message, form.requested_schema)
        given = FormAnswer(values=_values(shown), state=answer.form.state)


def _shows_forms(context: Context) -> bool:
    """Return whether the client shows forms to its user, and can be asked to."""
    form = types.ClientCapabilities(elicitation=types.ElicitationCapability())
    if not context.session.check_client_capability(form):
        return False
    modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
    return modern or context.session.can_send_request


def _form(form: UserForm) -> types.ElicitRequestFormParams:
    properties = {name: dict(schema) for name, schema in form.properties.items()}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return types.ElicitRequestFormParams(message=form.message, requested_schema=schema)


def _given(params: types.CallToolRequestParams) -> FormAnswer | None:
    """Return what the user has given, if the client repeats its request with it."""
    response = (params.input_responses or {}).get(FORM)
    if response is None:
        return None
    values = _values(response) if isinstance(response, types.ElicitResult) else {}
    return FormAnswer(values=values, state=params.request_state or "")


def _values(shown: types.ElicitResult) -> dict[str, Any]:
    return dict(shown.content or {}) if shown.action == "accept" else {}


def _without_causes(
    handler: Callable[[Context, P], Awaitable[R]],
) -> Callable[[Context, P], Awaitable[R]]:
    """Return the handler with an error without details in place of an unexpected one, whose text
    the SDK would send to the client: it may have a path, a statement, a key."""

    async def handle(context: Context, params: P) -> R:
        try:
            return await handler(context, params)
        except MCPError:
            raise
        except Exception as exc:
            log.exception("an MCP request failed: a bug in Groundhook")
            raise MCPError(types.INTERNAL_ERROR, INTERNAL) from exc

    return handle


def http_manager(server: Server[Any], largest: int) -> StreamableHTTPSessionManager:
    """Return the manager that serves it over HTTP. It has no sessions, so any process can answer
    any request, and it checks Host and Origin first."""
    # Otherwise every stream of the SDK ends with the signal, before its answer.
    AppStatus.enable_automatic_graceful_drain = False
    return StreamableHTTPSessionManager(
        app=server,
        stateless=True,
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=largest,
    )


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client over standard input and output, until it closes them."""
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


async def _resources(tools: McpTools, caller: McpCaller, cursor: str) -> types.ListResourcesResult:
    """Return a page of the documents. Raises MCPError."""
    try:
        found, following = await tools.sources.listed(caller, cursor)
    except UsageError as exc:
        raise MCPError(types.INVALID_PARAMS, exc.message) from exc
    except HostError as exc:
        message = f"the documents cannot be listed ({exc.code})"
        raise MCPError(types.INTERNAL_ERROR, message) from exc
    return types.ListResourcesResult(
        resources=[
            types.Resource(name=one.title, uri=_uri(one.id), mime_type="text/markdown")
            for one in found
        ],
        next_cursor=following or None,
    )


def _described(tool: OfferedTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=dict(tool.parameters),
        output_schema=None if tool.output is None else dict(tool.output),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.reads_only,
            idempotent_hint=tool.reads_only,
            destructive_hint=tool.destructive,
            open_world_hint=tool.open_world,
        ),
    )


def _uri(id: str) -> str:
    kind, _, rest = id.partition(":")
    return f"{RESOURCES}{kind}/{quote(rest)}"
