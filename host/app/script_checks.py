"""What is wrong with the functions of a package's scripts: functions of `src/tools.ts` that are not
offered, types without a schema, and MCP servers that name functions which do not exist."""

from __future__ import annotations

from collections.abc import Iterator

from groundhook.host.config.packages import App, Package
from groundhook.host.core.errors import ConfigError, HostError
from groundhook.host.core.hook_engine import HookEngine, ScriptFunction
from groundhook.host.core.problems import Problem, problems_of
from groundhook.host.core.types.servers import parse_listed
from groundhook.host.turn.package_tools import ProcessServer, is_tool


async def script_problems(app: App, package: Package, engine: HookEngine) -> list[Problem]:
    """Return the problems of one package. Raises ConfigError for its settings."""
    found: list[Problem] = []
    if package.tools is not None:
        try:
            for function in await engine.functions(package.tools):
                found += _problems(function)
        except HostError as exc:
            found += problems_of(exc)
    resolved = app.settings_for(package)
    names = [each.name for entry in resolved.settings.mcp.servers for each in parse_listed(entry)]
    for name in names:
        try:
            spec = app.resolve_server(package.id, name)
        except HostError:  # reported by the check of names
            continue
        if spec.transport != "process":
            continue
        try:
            await ProcessServer(spec, package, name).listed(engine)
        except ConfigError as exc:
            found += problems_of(exc)
        except HostError as exc:
            place = resolved.place("mcp", "servers")
            message = f"MCP server {name!r}: {exc.message}"
            found.append(Problem("error", message, exc.place or place, exc.hint, exc.code))
    return found


def _problems(function: ScriptFunction) -> Iterator[Problem]:
    if not function.exported:
        return
    if not is_tool(function):
        yield Problem(
            "warning",
            f"{function.name} is exported and not offered as a tool: it has no description",
            function.place,
            "a /** comment */ before the function describes it",
            "tool_without_description",
        )
        return
    for type, place in function.unread:
        yield Problem(
            "warning",
            f"the type {type!r} of the tool {function.name!r} has no JSON Schema: any value is"
            " accepted",
            place,
            "use a type of this file, or export const schemas = {…}",
            "tool_type",
        )
