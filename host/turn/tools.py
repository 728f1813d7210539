"""Tools that a model may call, of the host, of toolkits and of MCP servers: their schemas, who may
use them, and how a call is validated and run.

`Toolbox.call` is the one place where the failure of a tool becomes data, at every door.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from inspect import Parameter, isawaitable, iscoroutinefunction, signature
from typing import Any

import anyio
from anyio import to_thread
from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from groundhook.host.core.errors import (
    HostError,
    ModelError,
    NotFound,
    NotPermitted,
    ServerError,
    SourceError,
    SourceRateLimited,
    SourceTimeout,
    UnknownName,
    UsageError,
)
from groundhook.host.core.exception_groups import unwrapped
from groundhook.host.core.json_text import DEEPEST, is_deeper
from groundhook.host.core.ports import ToolServers
from groundhook.host.core.tool_ports import ToolScope
from groundhook.host.core.types.base import dotted, problems, read
from groundhook.host.core.types.collection_spec import PermissionSpec
from groundhook.host.core.types.search import Item
from groundhook.host.core.types.tools import (
    Needs,
    Tool,
    ToolErrorCode,
    ToolInfo,
    ToolOutcome,
    homonyms_of,
)
from groundhook.host.core.types.turn import Identity
from groundhook.host.mcp.servers import Toolset, toolset
from groundhook.host.mcp.shapes import parse_json, value_of

_ANYONE = PermissionSpec()


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What a tool returned: its answer as JSON, what of it can be cited, and the text for a model
    ("": the answer's JSON)."""

    result: Any
    items: Sequence[Item] = ()
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A tool as it is offered to models. `schema` is in the format of OpenAI's chat completions
    API. `check` validates the arguments and returns them as `run` takes them; it raises ValueError
    with a text for the model. `tool` is the owner's name for it; `server` the MCP server, `toolkit`
    the full id of the toolkit, `owner` its name among the listed ones, and `assistant` that of the
    assistant whose toolkit it is (empty: none). `aliases` are further names under which a call is
    understood. `withheld` says why it is not offered in this turn (empty: it is)."""

    schema: Mapping[str, Any]
    tool: str
    check: Callable[[dict[str, Any]], Any]
    run: Callable[[Any, ToolScope], Awaitable[Answered]]
    server: str = ""
    toolkit: str = ""
    owner: str = ""
    assistant: str = ""
    aliases: Sequence[str] = ()
    needs: Needs = Needs()
    permission: PermissionSpec = _ANYONE
    reads_only: bool = False
    output: Mapping[str, Any] | None = None
    deadline_ms: int = 0
    cites: bool = False
    withheld: str = ""

    @property
    def name(self) -> str:
        name: str = self.schema["function"]["name"]
        return name

    @property
    def toolkit_name(self) -> str:
        """The toolkit's part of the canonical name."""
        return self.toolkit.rpartition(".")[2]

    @property
    def canonical(self) -> str:
        owner = self.server or self.owner or self.toolkit_name
        return f"{owner}.{self.tool}" if owner else self.tool

    def info(self) -> ToolInfo:
        """Return the tool as doors describe it."""
        function = self.schema["function"]
        return ToolInfo(
            name=self.name,
            canonical=self.canonical,
            description=function.get("description", ""),
            parameters=function["parameters"],
            output=self.output,
            needs=self.needs,
            reads_only=self.reads_only,
            toolkit=self.toolkit_name,
            server=self.server,
        )

    def refusal(self, identity: Identity, metadata: Mapping[str, Any]) -> str:
        """Return why a request may not use the tool; "" if it may."""
        for part, word in self.needs.parts.items():
            if not getattr(identity, f"{part}_id"):
                named = part if word == part else f"{part} ({word})"
                return f"{self.tool} needs a {named}, and the request names none"
        if self.needs.scopes and not set(self.needs.scopes) & set(identity.scope.split()):
            words = " or ".join(map(repr, self.needs.scopes))
            return f"{self.tool} needs {words} in the identity's scope"
        for key in self.needs.metadata:
            if metadata.get(key) in (None, "", [], {}):
                return f"{self.tool} needs metadata.{key}, and the request has none"
        if not self.permission.admits(identity):
            return f"{self.canonical} is not open to this identity"
        return ""


# Makes the scope of a call: the offer, the id of the call, and the list that warnings join.
ScopeOf = Callable[[Offer, str, list[str]], ToolScope]


@dataclass
class Toolbox:
    """The tools of a turn, by the name under which they are offered. `problems` are the errors of
    toolkits that cannot be made, by name."""

    offers: dict[str, Offer] = field(default_factory=dict)
    problems: Mapping[str, HostError] = field(default_factory=dict)
    _aliases: dict[str, Offer] = field(default_factory=dict)

    @staticmethod
    def of(
        tools: Iterable[Tool | Offer] = (), problems: Mapping[str, HostError] | None = None
    ) -> Toolbox:
        """Raises ValueError for two tools of one name."""
        made = Toolbox(problems=problems or {})
        for tool in tools:
            offer = offer_of(tool) if isinstance(tool, Tool) else tool
            if offer.name in made.offers:
                raise ValueError(f"tool {offer.name!r} is already registered")
            made.offers[offer.name] = offer
        for offer in made.offers.values():
            for alias in (*offer.aliases, offer.canonical):
                made._aliases.setdefault(alias, offer)
        return made

    def __contains__(self, name: str) -> bool:
        return self.find(name) is not None

    @property
    def names(self) -> Collection[str]:
        """The names under which tools are offered."""
        return [name for name, offer in self.offers.items() if not offer.withheld]

    @property
    def cites(self) -> bool:
        """Whether results of the tools may have something to cite."""
        return any(offer.cites for offer in self.offers.values() if not offer.withheld)

    def find(self, name: str) -> Offer | None:
        """Return the tool by its offered, qualified or canonical name."""
        return self.offers.get(name) or self._aliases.get(name)

    def schemas(self) -> list[Mapping[str, Any]]:
        """Return the offered tools in the format of OpenAI's chat completions API."""
        return [offer.schema for offer in self.offers.values() if not offer.withheld]

    def joined(self, offers: Iterable[Offer]) -> Toolbox:
        """Return a toolbox with more tools; one whose name is taken is omitted."""
        return Toolbox.of(
            [*self.offers.values(), *(offer for offer in offers if offer.name not in self.offers)],
            self.problems,
        )

    async def call(
        self, call_id: str, name: str, arguments: str | Mapping[str, Any], scope_of: ScopeOf
    ) -> ToolOutcome:
        """Run one call and return its outcome. Arguments are JSON text as a model writes it, or an
        object. A wrong call is an outcome with `error`, from which the model can correct it."""
        began = time.perf_counter()
        offer = self.find(name)
        warnings: list[str] = []
        changes: dict[str, Any] = {}
        try:
            parsed = parse_arguments(arguments) if isinstance(arguments, str) else arguments
            if not isinstance(parsed, Mapping):
                raise _WrongArguments("the arguments are not a JSON object")
            changes["arguments"] = parsed = dict(parsed)
            if offer is None:
                raise self._unknown(name)
            with unwrapped():
                answered = await _run(offer, parsed, scope_of(offer, call_id, warnings))
            text = answered.text or text_of(answered.result)
            changes |= {"result": answered.result, "text": text, "items": tuple(answered.items)}
        except (HostError, ValueError, TimeoutError) as exc:
            message = str(exc) or "the tool did not answer in time"
            changes |= {"error": message, "text": text_of({"error": message}), "code": _code(exc)}
        return ToolOutcome(
            toolcall_id=call_id,
            server=offer.server if offer else "",
            tool=offer.tool if offer else name,
            name=offer.name if offer else name,
            toolkit=offer.toolkit_name if offer else "",
            warnings=tuple(warnings),
            duration_ms=int((time.perf_counter() - began) * 1000),
            **changes,
        )

    def _unknown(self, name: str) -> HostError:
        owner = name.partition("__")[0] if "__" in name else name.rpartition(".")[0]
        for known, problem in self.problems.items():
            if owner and f".{known}".endswith(f".{owner}"):
                return problem
        offered = [offer.canonical for offer in self.offers.values() if not offer.withheld]
        every = list(dict.fromkeys([*self.names, *self._aliases]))
        return UnknownName("tool", name, every, hint=homonyms_of(name, offered))


class _WrongArguments(ValueError):
    """The arguments of a call do not fit its schema."""


class _NotOffered(UsageError):
    """The tool exists, and is not offered in this turn."""


async def _run(offer: Offer, arguments: dict[str, Any], scope: ToolScope) -> Answered:
    """Raises NotPermitted before anything else, ValueError for the arguments, TimeoutError at the
    tool's deadline, and what the tool raises."""
    if offer.withheld:
        raise _NotOffered(f"{offer.tool}: {offer.withheld}")
    if refusal := offer.refusal(scope.identity, scope.metadata):
        raise NotPermitted(f"not permitted: {refusal}")
    checked = offer.check(arguments)
    if not offer.deadline_ms:
        return await offer.run(checked, scope)
    with anyio.move_on_after(offer.deadline_ms / 1000) as deadline:
        return await offer.run(checked, scope)
    assert deadline.cancelled_caught
    raise TimeoutError(f"{offer.tool} did not answer within {offer.deadline_ms} ms")


def _code(error: Exception) -> ToolErrorCode:
    match error:
        case NotPermitted():
            return "not_permitted"
        case _NotOffered():
            return "not_offered"
        case _WrongArguments():
            return "wrong_arguments"
        case UnknownName() if error.message.startswith("no tool "):
            return "unknown_tool"
        case NotFound():
            return "not_found"
        case TimeoutError() | SourceTimeout():
            return "timeout"
        case SourceRateLimited():
            return "rate_limited"
        case SourceError() | ServerError() | ModelError():
            return "service"
        case _:
            return "failed"


def text_of(value: Any) -> str:
    """Return a result as text: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):  # only tools of the host can return such a value
        return '{"error": "the result of the tool is nested too deeply, or contains itself"}'


# ------------------------------------------------------------------------------ tools in Python


def offer_of(tool: Tool, *, name: str = "", description: str = "", **more: Any) -> Offer:
    """Return a tool of the host or of a toolkit as it is offered, under another `name` or with
    another description if they are given; `more` are fields of `Offer`."""
    closed = tool.arguments.model_config.get("extra") != "allow"
    parameters = _parameters(tool.arguments)

    def check(arguments: dict[str, Any]) -> BaseModel:
        try:
            value, unknown = read(tool.arguments, arguments) if closed else (None, [])
            if unknown:
                raise _wrong_arguments(f"{key.path}: unknown key ({key.hint})" for key in unknown)
            return value or tool.arguments.model_validate(arguments)
        except ValidationError as exc:
            raise _wrong_arguments(
                f"{dotted(path) or 'arguments'}: {_bounded(message, path, arguments, parameters)}"
                for path, message in problems(exc)
            ) from exc

    async def run(arguments: BaseModel, scope: ToolScope) -> Answered:
        given = (arguments, scope) if _takes_scope(tool.run) else (arguments,)
        if iscoroutinefunction(tool.run):
            answer = await tool.run(*given)
        else:
            answer = await to_thread.run_sync(tool.run, *given, abandon_on_cancel=True)
            if isawaitable(answer):  # `run` is a callable object, or wraps an async function
                answer = await answer
        return Answered(
            result=_as_json(answer),
            items=tool.items(answer) if tool.items else (),
            text=tool.text(answer) if tool.text else "",
        )

    function = {
        "name": name or tool.name,
        "description": description or tool.description,
        "parameters": parameters,
    }
    fields: dict[str, Any] = {
        "needs": tool.needs,
        "reads_only": tool.reads_only,
        "output": _output(tool.answers) if tool.answers else None,
        "deadline_ms": tool.deadline_ms,
        "cites": tool.items is not None,
    }
    return Offer(
        schema={"type": "function", "function": function},
        tool=tool.name,
        check=check,
        run=run,
        **(fields | more),
    )


# Schemas are the same for every turn, and making one takes a millisecond.
@lru_cache(maxsize=1024)
def _parameters(model: type[BaseModel]) -> Mapping[str, Any]:
    """Return the schema of arguments. Its objects refuse unknown keys, unless the model allows
    them."""
    schema = model.model_json_schema()
    if model.model_config.get("extra") != "allow":
        _close(schema)
    return schema


@lru_cache(maxsize=1024)
def _output(model: type[BaseModel]) -> Mapping[str, Any]:
    return model.model_json_schema(mode="serialization")


def _takes_scope(run: Callable[..., Any]) -> bool:
    try:
        given = signature(run).parameters.values()
    except (TypeError, ValueError):  # of a built-in function
        return False
    places = [one for one in given if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    required = [one for one in places if one.default is Parameter.empty]
    return len(required) > 1 or any(one.name == "scope" for one in places[1:])


def _as_json(answer: Any) -> Any:
    try:
        return to_jsonable_python(answer, bytes_mode="base64", inf_nan_mode="null")
    except ValueError as exc:  # a type without a JSON form, or a cycle
        raise ValueError(f"the result of the tool has no JSON form: {exc}") from exc


def _bounded(
    message: str, path: Sequence[str | int], arguments: Any, parameters: Mapping[str, Any]
) -> str:
    """Return the message with both bounds of a number, and the number that is outside of them."""
    if len(path) != 1 or not message.startswith(("should be greater", "should be less")):
        return message
    schema, given = parameters["properties"].get(path[0], {}), arguments.get(path[0])
    if "minimum" in schema and "maximum" in schema:
        return f"between {schema['minimum']} and {schema['maximum']}, not {given}"
    return f"{message}, not {given}"


def _close(schema: Any) -> None:
    """Set, in a schema, that its objects have no other keys than those that it lists."""
    if isinstance(schema, dict):
        if "properties" in schema and schema.get("type") == "object":
            schema.setdefault("additionalProperties", False)
        for value in schema.values():
            _close(value)
    elif isinstance(schema, list):
        for value in schema:
            _close(value)


# --------------------------------------------------------------------------- tools of MCP servers


async def server_tools(
    servers: ToolServers, wanted: Mapping[str, Collection[str]], called: Mapping[str, str]
) -> tuple[list[Offer], Mapping[str, HostError]]:
    """Return the tools of MCP servers, and the errors of servers that did not list theirs. `wanted`
    maps full ids to the tools to offer (empty: all), `called` to the servers' names for models and
    outcomes."""
    found = await toolset(servers, wanted, called)
    return [_server_offer(servers, found, schema, called) for schema in found.schemas], found.failed


def _server_offer(
    servers: ToolServers, found: Toolset, schema: Mapping[str, Any], called: Mapping[str, str]
) -> Offer:
    function = schema["function"]
    server, tool = found.names[function["name"]].server, found.names[function["name"]].tool

    async def run(arguments: dict[str, Any], _: ToolScope) -> Answered:
        answer = await servers.ask(server, "tools/call", {"name": tool, "arguments": arguments})
        return Answered(result=value_of(called[server], tool, answer))

    check = schema_check(function["parameters"])
    return Offer(schema=schema, tool=tool, check=check, run=run, server=called[server])


def schema_check(parameters: Mapping[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return what validates arguments against a JSON Schema, for `Offer.check`."""
    validators: list[Any] = []

    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        # Imported here because it takes a tenth of a second, which turns without such tools save.
        from groundhook.host.mcp.arguments import problems_of, validator_of

        if not validators:
            validators.append(validator_of(parameters))
        wrong = problems_of(arguments, validators[0])
        if wrong:
            raise _wrong_arguments(wrong)
        return arguments

    return check


def _wrong_arguments(problems: Iterable[str]) -> ValueError:
    return _WrongArguments(f"wrong arguments: {'; '.join(problems)}")


def parse_arguments(text: str) -> dict[str, Any]:
    """Parse the arguments of a call as a model wrote them. Raises ValueError with a text for the
    model."""
    try:
        value = parse_json(text or "{}")
    except json.JSONDecodeError as exc:
        raise _WrongArguments(
            f"the arguments are not JSON: {exc.msg} at column {exc.colno}"
        ) from exc
    except UnicodeEncodeError as exc:
        raise _WrongArguments("the arguments are not JSON: half a surrogate pair") from exc
    except ValueError as exc:
        raise _WrongArguments(f"the arguments cannot be read: {exc}") from exc
    if not isinstance(value, dict):
        raise _WrongArguments("the arguments are not a JSON object")
    if is_deeper(value):
        raise _WrongArguments(f"the arguments are nested too deeply: at most {DEEPEST} levels")
    return value
