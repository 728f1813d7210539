"""The tools that a package brings as functions in its own scripts: `src/tools.ts`, and MCP servers
with `transport: "process"`, which name functions of any file.

Finds functions and makes offers of them; `host.turn.services.scripts` calls them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groundhook.host.config.documents import read_document
from groundhook.host.config.packages import Package
from groundhook.host.core.errors import HookError, UnknownName, UsageError
from groundhook.host.core.hook_engine import HookEngine, HookScript, ScriptFunction
from groundhook.host.core.tool_ports import ToolScope
from groundhook.host.core.types.server_spec import ServerSpec
from groundhook.host.turn.run import AssistantRun
from groundhook.host.turn.tools import Answered, Offer, schema_check, text_of

RunOf = Callable[[], AssistantRun]  # the run whose services the functions get

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
MAPPING = "x-process-args"  # of a schema: how arguments become those of a function
_UNNAMEABLE = re.compile(r"[^A-Za-z0-9_-]")


def is_tool(function: ScriptFunction) -> bool:
    """Return whether a function of `src/tools.ts` is a tool: exported and described."""
    described = function.description or function.parameters.get("description")
    return bool(function.exported and described and _NAME.fullmatch(function.name))


async def package_offers(engine: HookEngine, package: Package, run: RunOf) -> list[Offer]:
    """Return the tools of a package's `src/tools.ts`. Raises HookSyntaxError."""
    script = package.tools
    if script is None:
        return []
    return [
        _Function(script, function).offer(run, function.name)
        for function in await engine.functions(script)
        if is_tool(function)
    ]


async def function_named(
    engine: HookEngine, package: Package, name: str
) -> tuple[HookScript, ScriptFunction]:
    """Return the function `scripts.<file>.<function>` or `agents.<assistant>.<file>.<function>` of
    a package. Raises UsageError for another package's, UnknownName, HookSyntaxError."""
    own = f"agents.{package.id}."
    if not name.startswith(("scripts.", own)):
        raise UsageError(
            f"Process: {name!r} is not a function of the package {package.id!r}",
            hint=f"scripts.<file>.<function>, {own}<file>.<function>; ctx.agent.Call calls others",
        )
    file, _, function_name = name.removeprefix(own).removeprefix("scripts.").rpartition(".")
    script = package.script(file)
    if script is None:
        raise UsageError(
            f"Process: {name!r}: {package.shown} has no script {file!r}",
            hint=f"src/{file.replace('.', '/')}.ts, or the same without src or in scripts",
        )
    functions = {each.name: each for each in await engine.functions(script)}
    if function_name not in functions:
        raise UnknownName(f"function in {script.shown_entry}", function_name, functions)
    return script, functions[function_name]


@dataclass(frozen=True)
class _Function:
    """A function as a tool. `schema` is that of the tool's file; None: the function's own."""

    script: HookScript
    function: ScriptFunction
    schema: Mapping[str, Any] | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        written = self.function.parameters if self.schema is None else self.schema
        return {key: written[key] for key in written if key not in (MAPPING, "description")}

    @property
    def description(self) -> str:
        return (self.schema or {}).get("description") or (
            self.function.description or self.function.parameters.get("description", "")
        )

    async def call(self, run: AssistantRun, arguments: Mapping[str, Any]) -> Any:
        """Return the value. Raises ValueError for wrong arguments, HookError."""
        checked = schema_check(self.parameters)(dict(arguments))
        order = (self.schema or {}).get(MAPPING)
        given = checked if order is None else list(_mapped(order, checked))
        if self.schema is not None and order is None:
            given = [checked]
        return await run.call_script(run, self.script, self.function, given)

    def offer(self, run: RunOf, name: str, **more: Any) -> Offer:
        async def call(arguments: dict[str, Any], _: ToolScope) -> Answered:
            return Answered(result=await self.call(run(), arguments))

        about = {
            "name": name,
            "description": self.description,
            "parameters": self.parameters,
        }
        return Offer(
            schema={"type": "function", "function": about},
            check=lambda arguments: arguments,  # `call` validates them
            run=call,
            **{"tool": self.function.name, **more},
        )


@dataclass(frozen=True)
class ProcessServer:
    """An MCP server whose tools are functions of a package. `name` is that in messages."""

    spec: ServerSpec
    package: Package
    name: str

    async def offers(self, engine: HookEngine, run: RunOf) -> list[Offer]:
        """Return the tools, each as `<server>__<tool>`. Raises ConfigError, UsageError, UnknownName
        and HookSyntaxError."""
        return [
            (await self._tool(engine, tool)).offer(
                run,
                _UNNAMEABLE.sub("_", f"{self.name}__{tool}")[:64],
                server=self.name,
                tool=tool,
            )
            for tool in self.spec.tools
        ]

    async def listed(self, engine: HookEngine) -> list[dict[str, Any]]:
        """Return the tools as MCP lists them. Raises the same errors."""
        tools = {tool: await self._tool(engine, tool) for tool in self.spec.tools}
        return [
            {"name": name, "description": tool.description, "inputSchema": tool.parameters}
            for name, tool in tools.items()
        ]

    async def call(
        self, run: AssistantRun, tool: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Call a tool and return its answer as MCP does. A function that fails is `error` of the
        answer. Raises the errors of `offers`."""
        if tool not in self.spec.tools:
            known = [f"{self.name}.{each}" for each in self.spec.tools]
            raise UnknownName("MCP tool", f"{self.name}.{tool}", known)
        found = await self._tool(run.runtime.hooks, tool)
        try:
            value = await found.call(run, arguments)
        except (HookError, ValueError) as exc:
            content = [{"type": "text", "text": str(exc)}]
            return {"content": content, "isError": True, "error": str(exc)}
        answer: dict[str, Any] = {"content": [{"type": "text", "text": text_of(value)}]}
        return {**answer, "structuredContent": value} if isinstance(value, dict) else answer

    async def _tool(self, engine: HookEngine, tool: str) -> _Function:
        assert isinstance(self.spec.tools, Mapping)
        script, function = await function_named(engine, self.package, self.spec.tools[tool])
        return _Function(script, function, self._schema(tool))

    def _schema(self, tool: str) -> Mapping[str, Any] | None:
        """Return the schema in `mcps/mapping/<server>/schemes/<tool>.in.yao`, if there is one."""
        server = self.spec.id.removeprefix(f"agents.{self.package.id}.")
        below = f"mcps/mapping/{server.replace('.', '/')}/schemes/{tool}.in.yao"
        path = self.package.folder / below
        if not path.is_file():
            return None
        data: Mapping[str, Any] = read_document(path, f"{self.package.shown}/{below}").data
        return data


def _mapped(order: Sequence[Any], arguments: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the arguments in the order that a schema's `x-process-args` sets: `:arguments` is all
    of them, `$args.a.b` and `$a` one of them, anything else is a constant."""
    for entry in order:
        if entry == ":arguments":
            yield dict(arguments)
        elif isinstance(entry, str) and entry.startswith("$"):
            value: Any = arguments
            for key in entry.removeprefix("$args.").removeprefix("$").split("."):
                value = value.get(key) if isinstance(value, Mapping) else None
            yield value
        else:
            yield entry
