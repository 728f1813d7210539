"""Checks the functions of a package's scripts: functions of `src/tools.ts` that are not offered,
types without a schema, and MCP servers that name missing functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from groundhook.core.errors import ConfigError, HostError, suggestion
from groundhook.core.hook_engine import HookEngine, ScriptFunction, WrittenName
from groundhook.core.problems import Problem, problems_of
from groundhook.core.settings import Settings
from groundhook.core.types.server_spec import ServerSpec
from groundhook.core.types.servers import parse_listed
from groundhook.host.config.package import Package
from groundhook.host.config.packages import App
from groundhook.host.tools.server import schema_trouble
from groundhook.host.turn.package_tools import NAME, ProcessServer, is_tool

_NOT_CALLED = {
    "generator": "it is a generator",
    "class": "static methods of a class are not called",
}


async def script_problems(app: App, package: Package, engine: HookEngine) -> list[Problem]:
    """Return the problems of one package. Raises ConfigError for its settings."""
    resolved = app.settings_for(package)
    servers = dict(_list_process_servers(app, package, resolved.settings))
    named = {name for spec in servers.values() for name in _list_functions(spec)}
    found: list[Problem] = []
    if package.tools is not None:
        try:
            functions = await engine.functions(package.tools)
            found += _check_exports(functions)
            names = await engine.names(package.tools)
            found += _check_names(names, functions, package.tools.shown_entry)
            for function in functions:
                own = (
                    f"scripts.tools.{function.name}",
                    f"agents.{package.id}.tools.{function.name}",
                )
                found += _check_function(function, is_named=not named.isdisjoint(own))
        except HostError as exc:
            found += problems_of(exc)
    for name, spec in servers.items():
        if spec.resources:
            place = resolved.place("mcp", "servers")
            message = f"MCP server {name!r}: its resources are not offered"
            found.append(Problem("warning", message, place, "make each of them a tool", "not_read"))
        _, failed = await ProcessServer(spec, app, package, engine, name).found()
        different = {str(error): (tool, error) for tool, error in reversed(failed.items())}
        for tool, error in reversed(different.values()):
            if isinstance(error, ConfigError):
                found += problems_of(error)
                continue
            place = error.place or resolved.place("mcp", "servers")
            message = f"MCP server {name!r}: tool {tool!r}: {error.message}"
            found.append(Problem("error", message, place, error.hint, error.code))
    return found


def _list_process_servers(
    app: App, package: Package, settings: Settings
) -> Iterator[tuple[str, ServerSpec]]:
    """Yield the servers of the package's list whose tools are functions, by their names there."""
    for listed in (each for entry in settings.mcp.servers for each in parse_listed(entry)):
        try:
            spec = app.resolve_server(package.id, listed.name)
        except HostError:  # reported by the check of names
            continue
        if spec.transport == "process":
            yield listed.name, spec


def _list_functions(spec: ServerSpec) -> Iterable[str]:
    return spec.tools.values() if isinstance(spec.tools, Mapping) else ()


def _check_exports(functions: Sequence[ScriptFunction]) -> Iterator[Problem]:
    """Yield a warning for a `src/tools.ts` with a described function that exports none. Functions
    without a description may be there to be called by name."""
    described = next((each for each in functions if each.description), None)
    if described is None or any(each.exported for each in functions):
        return
    message = f"{described.name} is not exported, so it is not offered as a tool"
    hint = f"write `export` before {described.name}"
    yield Problem("warning", message, described.place, hint, "tool_without_export")


def _check_names(
    names: Sequence[WrittenName], functions: Sequence[ScriptFunction], file: str
) -> Iterator[Problem]:
    """Yield what `src/tools.ts` exports that cannot be a tool, and the schemas of no function.
    `file` is its name: what the files that it imports export is their own."""
    exported = [each.name for each in functions if each.exported]
    for each in (each for each in names if each.place.file == file):
        if each.noun == "schema" and each.name not in exported:
            yield Problem(
                "warning",
                f"schemas.{each.name} describes no exported function",
                each.place,
                suggestion(each.name, exported),
                "tool_schema",
            )
        elif each.noun in _NOT_CALLED:
            yield Problem(
                "warning",
                f"{each.name} is exported, but not offered as a tool: {_NOT_CALLED[each.noun]}",
                each.place,
                "export a function that returns the result",
                "tool_without_function",
            )


def _check_function(function: ScriptFunction, *, is_named: bool) -> Iterator[Problem]:
    """Yield what is wrong with a function of `src/tools.ts`; `is_named`: by an MCP server, which
    describes it."""
    if not function.exported:
        return
    if function.computed:
        yield Problem(
            "warning",
            "computed values in schemas are not read: the types of the parameters count instead",
            function.computed,
            "write a literal: the file is read, and not executed, to list its tools",
            "tool_schema",
        )
    if trouble := schema_trouble(function.parameters):
        yield Problem(
            "warning",
            f"schemas.{function.name} {trouble}",
            function.place,
            "arguments are not checked, and a model may refuse it",
            "tool_schema",
        )
    if not is_tool(function):
        if is_named:
            return
        reason, hint = (
            "it has no description",
            "describe it in a /** comment */ before the function",
        )
        if not NAME.fullmatch(function.name):
            reason = "a model cannot call this name"
            hint = "a name has at most 64 of the letters a-z and A-Z, digits, _ and -"
        yield Problem(
            "warning",
            f"{function.name} is exported, but not offered as a tool: {reason}",
            function.place,
            hint,
            "tool_without_description",
        )
        return
    for type, place in function.unread:
        yield Problem(
            "warning",
            f"the type {type!r} of the tool {function.name!r} has no JSON Schema: any value is"
            " accepted",
            place,
            "use a type of the package's files, or export const schemas = {…}",
            "tool_type",
        )
