"""`groundhook mcp`: lists the app's MCP servers and calls their tools, for authors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from groundhook.core.error_events import warning_event
from groundhook.core.errors import ConfigError
from groundhook.core.extras import extra
from groundhook.core.ports import ToolServers
from groundhook.core.types.events import Failed, Warned
from groundhook.core.types.server_spec import ServerSpec
from groundhook.core.types.turn import Identity
from groundhook.host.app.host import Host
from groundhook.host.app.opening import open_host
from groundhook.host.cli import options
from groundhook.host.cli.edge import FAILED, execute
from groundhook.host.cli.report import Report
from groundhook.host.output.flow import visible
from groundhook.host.turn.context import Request, RunContext


@click.group("mcp")
def command() -> None:
    """List MCP servers and their tools, call a tool, and serve the app as an MCP server."""


@command.command("list", short_help="List the servers, or what one of them offers.")
@click.argument("server", required=False)
@options.common
def list_(server: str | None, app: Path, as_json: bool, debug: bool) -> int:
    """List the app's MCP servers, or what SERVER offers: tools, resources and prompts.

    Without SERVER nothing is started.
    """
    report = Report(json=as_json)

    async def work() -> int:
        async with open_host(app, tune_gc=True) as host:
            if server is None:
                _show_servers(host, report)
            else:
                await _show_offers(host, server, report)
        return 0

    return execute(work, report, debug=debug)


@command.command("serve", short_help="Serve the app's tools and collections to MCP clients.")
@click.option(
    "--assistant",
    metavar="ID",
    default="",
    help="Serve only the tools of this assistant, and the assistant itself (default: all).",
)
@click.option(
    "--connector",
    is_flag=True,
    help="Also serve `search` and `fetch`, which chat clients require of a connector.",
)
@options.identity_options
@options.common
def serve(
    assistant: str,
    connector: bool,
    user: str,
    team: str,
    tenant: str,
    app: Path,
    as_json: bool,
    debug: bool,
) -> int:
    """Serve the app as an MCP server over standard input and output: its tools, `ask` for a whole
    answer, and its documents as resources.

    The options set the identity; clients cannot change it. For an IDE:

    \b
      {"mcpServers": {"groundhook": {"command": "groundhook",
        "args": ["mcp", "serve", "--app", "/path/to/app"]}}}
    """
    report = Report(json=as_json)

    async def work() -> int:
        with extra("mcp", "an MCP server"):
            from groundhook.host.server.mcp.server import mcp_server, serve_stdio
        from groundhook.host.server.identity.secret import Secret
        from groundhook.host.server.mcp.caller import McpCaller
        from groundhook.host.server.mcp.sources import McpSources
        from groundhook.host.server.mcp.tools import McpTools

        identity = options.identity(user=user, team=team, tenant=tenant) or Identity()
        caller = McpCaller(identity=identity, assistant=assistant)
        async with open_host(app, tune_gc=True) as host:
            if assistant:
                host.settings(assistant)  # raises UnknownName
            sources = McpSources(host=host, secret=Secret(host.app.state))
            tools = McpTools(host=host, sources=sources, connector=connector)
            await serve_stdio(mcp_server(tools, lambda _: caller))
        return 0

    return execute(work, report, debug=debug)


@command.command("call", short_help="Call a tool and print its answer.")
@click.argument("server")
@click.argument("tool")
@click.argument("arguments", default="{}")
@click.option(
    "--assistant",
    metavar="ID",
    default="",
    help="Assistant for which a function of the package runs, if the tool is one.",
)
@options.identity_options
@options.common
def call(
    server: str,
    tool: str,
    arguments: str,
    assistant: str,
    user: str,
    team: str,
    tenant: str,
    app: Path,
    as_json: bool,
    debug: bool,
) -> int:
    """Call TOOL of SERVER with ARGUMENTS, a JSON object, and print its answer.

    Only servers whose tools are functions of a package (`transport: process`) use the identity.
    """
    report = Report(json=as_json)
    given = _parse_object(arguments)
    identity = options.identity(user=user, team=team, tenant=tenant)

    async def work() -> int:
        async with open_host(app, tune_gc=True) as host:
            servers = _reach_servers(host, report, assistant, identity)
            answer = await servers.ask(server, "tools/call", {"name": tool, "arguments": given})
        if report.json:
            report.line(answer)
        else:
            for text in _describe_blocks(answer):
                report.show(Text(visible(text)))
        if "error" in answer and not report.json:
            report.failed(
                Failed(code="tool_failed", message=f"tool {tool!r} of MCP server {server!r} failed")
            )
        return FAILED if "error" in answer else 0

    return execute(work, report, debug=debug)


def _reach_servers(
    host: Host, report: Report, assistant: str = "", identity: Identity | None = None
) -> ToolServers:
    """Return the app's servers as they serve a request of the identity. Raises UnknownName."""
    if assistant:
        host.settings(assistant)
    context = RunContext(runtime=host.runtime, turn_id="mcp")
    request = Request(assistant_id=assistant, messages=(), identity=identity or Identity())

    async def warn(code: str, message: str) -> None:
        report.warned(Warned(code=code, message=message))

    return host.runtime.servers_for(context, request, warn)


def _show_servers(host: Host, report: Report) -> None:
    specs: list[ServerSpec] = []
    for id in sorted(host.app.servers):
        try:
            specs.append(host.app.servers.named(id))
        except ConfigError as exc:
            report.warned(warning_event(exc))
    rows = [(spec.id, spec.transport, _describe_place(spec), spec.label) for spec in specs]
    if report.json:
        for row in rows:
            report.line(dict(zip(("server", "transport", "where", "label"), row, strict=True)))
    report.rows(("server", "transport", "where", "label"), rows)
    if not host.app.servers:
        report.show("The app has no MCP servers.")


def _describe_place(spec: ServerSpec) -> str:
    if spec.transport == "process" and isinstance(spec.tools, Mapping):
        return ", ".join(spec.tools.values())
    return " ".join((spec.command, *spec.args)) if spec.transport == "stdio" else spec.url


async def _show_offers(host: Host, server: str, report: Report) -> None:
    servers = _reach_servers(host, report)
    tools = (await servers.ask(server, "tools/list", {}))["tools"]
    resources = (await servers.ask(server, "resources/list", {}))["resources"]
    prompts = (await servers.ask(server, "prompts/list", {}))["prompts"]
    if report.json:
        for kind, entries in (("tool", tools), ("resource", resources), ("prompt", prompts)):
            for entry in entries:
                report.line({"kind": kind, **entry})
        return
    rows = [
        *(
            (
                "tool",
                tool["name"],
                _describe_parameters(tool.get("inputSchema") or {}),
                _describe(tool),
            )
            for tool in tools
        ),
        *(("resource", each["uri"], "", _describe(each)) for each in resources),
        *(
            (
                "prompt",
                each["name"],
                ", ".join(given["name"] for given in each.get("arguments") or ()),
                _describe(each),
            )
            for each in prompts
        ),
    ]
    report.rows(("", "name", "arguments", "description"), rows)
    if not rows:
        report.show(f"{server} offers nothing.")


def _describe_parameters(schema: Mapping[str, Any]) -> str:
    """Return the names of a tool's arguments; optional ones with a question mark."""
    required = schema.get("required") or ()
    return ", ".join(
        name if name in required else f"{name}?" for name in schema.get("properties") or ()
    )


def _describe(entry: Mapping[str, Any]) -> str:
    return str(entry.get("description") or entry.get("title") or "")


def _describe_blocks(answer: Mapping[str, Any]) -> Iterator[str]:
    """Return a tool's answer for people: its text, and the kinds of its other blocks."""
    if not answer.get("content") and "structuredContent" in answer:
        yield json.dumps(answer["structuredContent"], ensure_ascii=False, indent=2)
    for block in answer.get("content") or ():
        if block.get("type") == "text":
            yield block["text"]
        else:
            yield f"[{block.get('type')} {block.get('mimeType', '')}]".replace(" ]", "]")


def _parse_object(text: str) -> dict[str, Any]:
    value = options.json_of("ARGUMENTS", text, """'{"text": "hello"}'""")
    if not isinstance(value, dict):
        raise click.UsageError('ARGUMENTS must be a JSON object, such as \'{"text": "hello"}\'')
    return value
