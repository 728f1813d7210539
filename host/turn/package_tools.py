"""The tools that a package brings as functions in its own scripts: `src/tools.ts`, and MCP servers
with `transport: "process"`, which name functions of any file.

Finds functions and makes them offers; `host.turn.services.scripts` calls them.

Tools of process servers that read records: `models.<id>.Find` and `models.<id>.Get`, as hooks
call them by `Process`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from anyio import to_thread
from pydantic import ValidationError

from groundhook.core.errors import (
    HookError,
    HostError,
    NotPermitted,
    NotSupported,
    SourceError,
    UnknownName,
    UsageError,
    suggestion,
)
from groundhook.core.hook_engine import HookEngine, HookScript, ScriptFunction
from groundhook.core.tool_ports import ToolScope
from groundhook.core.types.base import dotted, validate_known, validation_problems
from groundhook.core.types.search import RecordQuery
from groundhook.core.types.server_spec import ServerSpec
from groundhook.core.types.servers import ServerMethod
from groundhook.host.config.documents import read_document
from groundhook.host.config.package import Package
from groundhook.host.config.packages import App
from groundhook.host.tools.offers import ToolAnswer, ToolOffer
from groundhook.host.tools.server import schema_check
from groundhook.host.tools.toolbox import text_of
from groundhook.host.turn.run import AssistantRun

_NAME = re.compile(r"models\.(?P<model>.+)\.(?P<verb>find|get)", re.IGNORECASE)
_PARAMETERS: dict[str, dict[str, Any]] = {
    "find": {
        "properties": {"id": {"type": ["integer", "string"], "description": "The primary key."}},
        "required": ["id"],
    },
    "get": {
        "properties": {
            "wheres": {
                "type": "array",
                "items": {"type": "object"},
                "description": "Conditions {field, op, value}, all of which must hold.",
            },
            "orders": {
                "type": "array",
                "items": {"type": "object"},
                "description": "Sort orders {field, order: asc or desc}.",
            },
            "select": {"type": "array", "items": {"type": "string"}, "description": "Fields."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 1000},
        }
    },
}


@dataclass(frozen=True)
class RecordProcess:
    """A read of a model. `model` is its name for the assistant."""

    model: str
    verb: Literal["find", "get"]

    @staticmethod
    def of(name: str) -> RecordProcess | None:
        """Return the read that a name means; None for any other name."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        return RecordProcess(found["model"], "find" if found["verb"].lower() == "find" else "get")

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The JSON Schema of the arguments, for a server without one of its own."""
        return {"type": "object", **_PARAMETERS[self.verb], "additionalProperties": False}

    @property
    def description(self) -> str:
        noun = "One record" if self.verb == "find" else "Records"
        return f"{noun} of {self.model}."

    async def call(self, run: AssistantRun, given: Mapping[str, Any] | Sequence[Any]) -> Any:
        """Return the records that the identity of the run may see, or the one record. `given` are
        the arguments by name, or in the order of the process. Raises ValueError, SourceError,
        NotPermitted and UnknownName."""
        if isinstance(given, Mapping):
            ordered: Sequence[Any] = [given.get("id")] if self.verb == "find" else [given]
        else:
            ordered = given
        query = self._make_query(ordered)
        model = await run.searcher.model(query.model)
        found = await run.runtime.records.records(
            query.model_copy(update={"model": model}), run.searcher.scope
        )
        if self.verb == "get":
            return found
        return found[0] if found else None

    def _make_query(self, given: Sequence[Any]) -> RecordQuery:
        key, more = None, given[0] if given else None
        if self.verb == "find":
            key, more = more, given[1] if len(given) > 1 else None
            if isinstance(key, bool) or not isinstance(key, (int, float, str)):
                raise ValueError("the primary key must be a number or text")
        fields = dict(more) if isinstance(more, Mapping) else {}
        one = {} if key is None else {"record_id": key, "limit": 1}
        try:
            query, unknown = validate_known(RecordQuery, {**fields, **one, "model": self.model})
        except ValidationError as exc:
            path, message = validation_problems(exc)[0]
            raise ValueError(f"{dotted(path)}: {message}") from None
        if unknown:
            raise ValueError(f"the query has an {unknown[0]}")
        return query


RunOf = Callable[[], AssistantRun]  # the run whose services the functions get

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
CONFIRM = "confirm"  # of a schema: a call of a model runs only when the user approves it
MAPPING = "x-process-args"  # of a schema: how arguments become those of a function
_UNNAMEABLE = re.compile(r"[^A-Za-z0-9_-]")


def is_tool(function: ScriptFunction) -> bool:
    """Return whether a function of `src/tools.ts` is a tool: exported and described."""
    described = function.description or function.parameters.get("description")
    return bool(function.exported and described and NAME.fullmatch(function.name))


async def package_offers(engine: HookEngine, package: Package, run: RunOf) -> list[ToolOffer]:
    """Return the tools of a package's `src/tools.ts`. Raises HookSyntaxError."""
    script = package.tools
    if script is None:
        return []
    return [
        _Callable(function, script).offer(run, function.name)
        for function in await engine.functions(script)
        if is_tool(function)
    ]


@dataclass(frozen=True)
class Named:
    """A function by its name. `owner` is the assistant whose file has it; "": a file of the app."""

    script: HookScript
    function: ScriptFunction
    owner: str


@dataclass(frozen=True)
class FunctionNames:
    """The functions that a name may mean: in `scripts.<file>.<function>` a file of the package, or
    else of the app's folder `scripts`; in `agents.<assistant>.<file>.<function>` one of that
    package. `shared` names are those of a server of the app: its files come first, and the files of
    every package may be named."""

    app: App
    package: Package
    engine: HookEngine
    shared: bool = False

    async def find(self, name: str) -> Named:
        """Return the function of a name. Raises UsageError for an unknown or another package's
        function, HookSyntaxError and ConfigError."""
        if name.startswith("scripts."):
            file, _, function = name.removeprefix("scripts.").rpartition(".")
            places = [(self.app.script, ""), (self.package.script, self.package.id)]
            shown = f"neither {self.package.shown} nor the app's folder scripts has {file!r}"
            places = places if self.shared else places[::-1]
        else:
            package = self._find_package(name)
            file, _, function = name.removeprefix(f"agents.{package.id}.").rpartition(".")
            places = [(package.script, package.id)]
            shown = f"{package.shown} has no script {file!r}"
        for script_of, owner in places:
            script = script_of(file)
            if script is not None:
                return Named(script, await self._find_function(script, function), owner)
        path = file.replace(".", "/")
        hint = f"src/{path}.ts of the package"
        if len(places) > 1:
            hint += f", or scripts/{path}.ts of the app"
        raise UsageError(f"Process: {name!r}: {shown}", hint=hint)

    def _find_package(self, name: str) -> Package:
        own = f"agents.{self.package.id}."
        owner = self.app.owner_of(name) if self.shared else ""
        if owner:
            return self.app.package(owner)
        if name.startswith(own):
            return self.package
        if name.startswith("models."):
            raise UsageError(f"{name!r} is not offered", hint="models are read only: Find and Get")
        raise UsageError(
            f"Process: {name!r} is not a function of the package {self.package.id!r}",
            hint=f"scripts.<file>.<function>, {own}<file>.<function>; ctx.agent.Call calls others",
        )

    async def _find_function(self, script: HookScript, name: str) -> ScriptFunction:
        functions = {each.name: each for each in await self.engine.functions(script)}
        if name not in functions:
            raise UsageError(
                f"{script.shown_entry} has no function {name!r}",
                hint=suggestion(name, list(functions)),
            )
        return functions[name]


def run_of(run: AssistantRun, owner: str) -> AssistantRun:
    """Return the run under which a function is called: that of the assistant which owns its file,
    for the same identity. Raises UsageError when assistants call each other in a circle."""
    if owner in ("", run.package.id):
        return run
    metadata = run.request_metadata
    request = run.request.for_assistant(owner, run.request.messages, metadata=metadata)
    begun = AssistantRun.begin(
        run.runtime,
        request,
        run.channel,
        run.call_assistant,
        run.call_script,
        context=run.context,
        outbox=run.outbox,
    )
    begun.open_scripts = run.open_scripts
    return begun


@dataclass(frozen=True)
class _Callable:
    """A function, or a read of records, as a tool. `schema` is that of the tool's file; None: its
    own. `owner` is the assistant whose file has the function; "": that of the run."""

    of: ScriptFunction | RecordProcess
    script: HookScript | None = None
    schema: Mapping[str, Any] | None = None
    owner: str = ""

    @property
    def parameters(self) -> dict[str, Any]:
        written = self.of.parameters if self.schema is None else self.schema
        return {key: written[key] for key in written if key not in (MAPPING, "description")}

    @property
    def description(self) -> str:
        return (self.schema or {}).get("description") or (
            self.of.description or self.of.parameters.get("description", "")
        )

    @property
    def is_read(self) -> bool:
        return isinstance(self.of, RecordProcess)

    async def call(self, run: AssistantRun, arguments: Mapping[str, Any]) -> Any:
        """Return the value. Raises ValueError for wrong arguments, HookError, SourceError."""
        checked = await to_thread.run_sync(schema_check(self.parameters), dict(arguments))
        order = (self.schema or {}).get(MAPPING)
        given = checked if order is None else list(_map_arguments(order, checked))
        if isinstance(self.of, RecordProcess):
            return await self.of.call(run, given)
        if self.schema is not None and order is None:
            given = [checked]
        assert self.script is not None
        under = run_of(run, self.owner)
        return await run.call_script(under, self.script, self.of, given)

    def offer(self, run: RunOf, name: str, **more: Any) -> ToolOffer:
        async def call(arguments: dict[str, Any], _: ToolScope) -> ToolAnswer:
            return ToolAnswer(result=await self.call(run(), arguments))

        parameters = {key: self.parameters[key] for key in self.parameters if key != CONFIRM}
        about = {"name": name, "description": self.description, "parameters": parameters}
        return ToolOffer(
            schema={"type": "function", "function": about},
            check=lambda arguments: arguments,  # `call` validates them
            run=call,
            confirm=self.parameters.get(CONFIRM) is True,
            **{"tool": name, **more},
        )


@dataclass(frozen=True)
class ProcessServer:
    """An MCP server whose tools are functions, of the package that declares it or of the app, and
    reads of records. `package` is that of the run, and `name` the server's in messages."""

    spec: ServerSpec
    app: App
    package: Package
    engine: HookEngine
    name: str

    async def found(self) -> tuple[dict[str, _Callable], dict[str, HostError]]:
        """Return the tools by name, and the errors of those that cannot be called."""
        tools: dict[str, _Callable] = {}
        failed: dict[str, HostError] = {}
        for tool in self.spec.tools:
            try:
                tools[tool] = await self._make_tool(tool)
            except HostError as exc:
                failed[tool] = exc
        return tools, failed

    async def offers(self, run: RunOf) -> tuple[list[ToolOffer], HostError | None]:
        """Return the tools, each as `<server>__<tool>`, and an error that names the others."""
        tools, failed = await self.found()
        offers = [
            found.offer(
                run,
                # 64 characters, as APIs accept them.
                _UNNAMEABLE.sub("_", f"{self.name}__{tool}")[:64],
                server=self.name,
                tool=tool,
                reads_only=found.is_read or tool in self.spec.read_only,
            )
            for tool, found in tools.items()
        ]
        return offers, self._make_missing_error(failed)

    def _make_missing_error(self, failed: Mapping[str, HostError]) -> HostError | None:
        """Return one error for the tools that cannot be called, with the place of the first."""
        if not failed:
            return None
        first, *_ = failed.values()
        named = [f"tool {tool!r}: {exc.message}" for tool, exc in failed.items()]
        more = f"; and {len(named) - 3} more tools" if len(named) > 3 else ""
        message = f"MCP server {self.name!r}: {'; '.join(named[:3])}{more}"
        error = UsageError(message, place=first.place, hint=first.hint)
        error.code = first.code
        return error

    async def ask(
        self, run: AssistantRun, method: ServerMethod, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Answer a request as MCP does; tools that cannot be called are not listed, with a warning.
        Raises the errors of `call`, and NotSupported."""
        match method:
            case "tools/list":
                tools, failed = await self.found()
                if error := self._make_missing_error(failed):
                    await run.warn(error)
                return {"tools": _list_tools(tools)}
            case "tools/call":
                return await self.call(run, str(params["name"]), params.get("arguments") or {})
            case "resources/list":
                return {"resources": []}
            case "prompts/list":
                return {"prompts": []}
            case _:
                message = f"MCP server {self.name!r} (transport: 'process') has tools only"
                raise NotSupported(message)

    async def call(
        self, run: AssistantRun, tool: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Call a tool and return its answer as MCP does. A function that fails is `error` of the
        answer. Raises ConfigError, UsageError, UnknownName and HookSyntaxError."""
        if tool not in self.spec.tools:
            known = [f"{self.name}.{each}" for each in self.spec.tools]
            raise UnknownName("MCP tool", f"{self.name}.{tool}", known)
        found = await self._make_tool(tool)
        try:
            value = await found.call(run, arguments)
        except (HookError, NotPermitted, SourceError, ValueError) as exc:
            content = [{"type": "text", "text": str(exc)}]
            return {"content": content, "isError": True, "error": str(exc)}
        answer: dict[str, Any] = {"content": [{"type": "text", "text": text_of(value)}]}
        return {**answer, "structuredContent": value} if isinstance(value, dict) else answer

    async def _make_tool(self, tool: str) -> _Callable:
        assert isinstance(self.spec.tools, Mapping)
        owner = self.app.owner_of(self.spec.id)
        package = self.app.package(owner) if owner not in ("", self.package.id) else self.package
        schema, name = self._read_schema(tool, owner, package), self.spec.tools[tool]
        records = RecordProcess.of(name)
        if records is not None:
            self.app.resolve_model(package.id, records.model)
            return _Callable(records, schema=schema)
        names = FunctionNames(self.app, package, self.engine, shared=not owner)
        found = await names.find(name)
        return _Callable(found.function, found.script, schema, found.owner)

    def _read_schema(self, tool: str, owner: str, package: Package) -> Mapping[str, Any] | None:
        """Return the schema in `mcps/mapping/<server>/schemes/<tool>.in.yao` of the folder (the
        package's or the app's) that has the server's file; None without such a file."""
        server = self.spec.id.removeprefix(f"agents.{owner}.").replace(".", "/")
        below = f"mcps/mapping/{server}/schemes/{tool}.in.yao"
        folder, shown = (
            (package.folder, f"{package.shown}/{below}") if owner else (self.app.root, below)
        )
        if not (folder / below).is_file():
            return None
        data: Mapping[str, Any] = read_document(folder / below, shown).data
        return data


def _list_tools(tools: Mapping[str, _Callable]) -> list[dict[str, Any]]:
    """Return tools as MCP lists them."""
    return [
        {"name": name, "description": tool.description, "inputSchema": tool.parameters}
        for name, tool in tools.items()
    ]


def _map_arguments(order: Sequence[Any], arguments: Mapping[str, Any]) -> Iterator[Any]:
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
