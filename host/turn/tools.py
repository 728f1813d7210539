"""Tools that a model may call, of the host and of MCP servers: their schemas, and how a call is
validated and run."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from inspect import isawaitable, iscoroutinefunction
from typing import Any

from anyio import to_thread
from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from groundhook.host.core.errors import (
    HostError,
    UnknownName,
)
from groundhook.host.core.exception_groups import unwrapped
from groundhook.host.core.json_text import DEEPEST, is_deeper
from groundhook.host.core.ports import ToolServers
from groundhook.host.core.types.base import dotted, problems
from groundhook.host.core.types.tools import Tool, ToolOutcome
from groundhook.host.mcp.servers import Toolset, toolset
from groundhook.host.mcp.shapes import parse_json, value_of


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A tool as it is offered to models. `schema` is in the format of OpenAI's chat completions
    API. `check` validates the arguments and returns them as `run` takes them; it raises ValueError
    with a text for the model. `tool` is the owner's name for it, `server` the MCP server (empty:
    the host)."""

    schema: Mapping[str, Any]
    tool: str
    check: Callable[[dict[str, Any]], Any]
    run: Callable[[Any], Awaitable[Any]]
    server: str = ""

    @property
    def name(self) -> str:
        name: str = self.schema["function"]["name"]
        return name


class Toolbox:
    """The tools of a turn, by the name under which they are offered."""

    def __init__(self, tools: Iterable[Tool | Offer] = ()) -> None:
        self._offers: dict[str, Offer] = {}
        for tool in tools:
            offer = _offer(tool) if isinstance(tool, Tool) else tool
            if offer.name in self._offers:
                raise ValueError(f"tool {offer.name!r} is already registered")
            self._offers[offer.name] = offer

    def __contains__(self, name: str) -> bool:
        return name in self._offers

    @property
    def names(self) -> Collection[str]:
        return self._offers.keys()

    def schemas(self) -> list[Mapping[str, Any]]:
        """Return the tools in the format of OpenAI's chat completions API."""
        return [offer.schema for offer in self._offers.values()]

    def server(self, name: str) -> str:
        """Return the MCP server of a tool; empty for the host's own tools and for unknown ones."""
        return self._offers[name].server if name in self._offers else ""

    def joined(self, offers: Iterable[Offer]) -> Toolbox:
        """Return a toolbox with more tools; one whose name is taken is left out."""
        return Toolbox(
            [*self._offers.values(), *(offer for offer in offers if offer.name not in self._offers)]
        )

    async def call(
        self, call_id: str, name: str, arguments: str | Mapping[str, Any]
    ) -> tuple[ToolOutcome, int]:
        """Run one call and return its outcome and its duration in milliseconds. Arguments are JSON
        text as a model writes it, or an object. A wrong call is an outcome with `error`, from which
        the model can correct it."""
        began = time.perf_counter()
        offer = self._offers.get(name)
        pending = ToolOutcome(
            toolcall_id=call_id,
            server=offer.server if offer else "",
            tool=offer.tool if offer else name,
        )
        try:
            parsed = parse_arguments(arguments) if isinstance(arguments, str) else dict(arguments)
            pending = pending.model_copy(update={"arguments": parsed})
            if offer is None:
                raise UnknownName("tool", name, self._offers)
            with unwrapped():
                outcome = pending.model_copy(
                    update={"result": await offer.run(offer.check(parsed))}
                )
        except TimeoutError as exc:
            outcome = pending.model_copy(
                update={"error": str(exc) or "the tool did not answer in time"}
            )
        except (HostError, ValueError) as exc:
            outcome = pending.model_copy(update={"error": str(exc)})
        return outcome, int((time.perf_counter() - began) * 1000)


async def server_tools(
    servers: ToolServers, wanted: Mapping[str, Collection[str]], called: Mapping[str, str]
) -> tuple[list[Offer], Mapping[str, HostError]]:
    """Return the tools of MCP servers, and the errors of servers that did not list theirs. `wanted`
    maps full ids to the tools to offer (empty: all), `called` to the servers' names for models and
    outcomes."""
    found = await toolset(servers, wanted, called)
    return [_server_offer(servers, found, schema, called) for schema in found.schemas], found.failed


def _offer(tool: Tool) -> Offer:
    def check(arguments: dict[str, Any]) -> BaseModel:
        try:
            return tool.arguments.model_validate(arguments)
        except ValidationError as exc:
            raise _wrong_arguments(
                f"{dotted(path) or 'arguments'}: {message}" for path, message in problems(exc)
            ) from exc

    async def run(arguments: BaseModel) -> Any:
        if iscoroutinefunction(tool.run):
            answer = await tool.run(arguments)
        else:
            answer = await to_thread.run_sync(tool.run, arguments, abandon_on_cancel=True)
            if isawaitable(answer):  # `run` is a callable object, or wraps an async function
                answer = await answer
        try:
            return to_jsonable_python(answer, bytes_mode="base64", inf_nan_mode="null")
        except ValueError as exc:  # a type without a JSON form, or a cycle
            raise ValueError(f"the result of the tool has no JSON form: {exc}") from exc

    parameters = tool.arguments.model_json_schema()
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return Offer(
        schema={"type": "function", "function": function}, tool=tool.name, check=check, run=run
    )


def _server_offer(
    servers: ToolServers, found: Toolset, schema: Mapping[str, Any], called: Mapping[str, str]
) -> Offer:
    function = schema["function"]
    server, tool = found.names[function["name"]].server, found.names[function["name"]].tool

    validators: list[Any] = []

    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        # Imported here because it takes a tenth of a second, which turns without such tools save.
        from groundhook.host.mcp.arguments import problems_of, validator_of

        if not validators:
            validators.append(validator_of(function["parameters"]))
        wrong = problems_of(arguments, validators[0])
        if wrong:
            raise _wrong_arguments(wrong)
        return arguments

    async def run(arguments: dict[str, Any]) -> Any:
        answer = await servers.ask(server, "tools/call", {"name": tool, "arguments": arguments})
        return value_of(called[server], tool, answer)

    return Offer(schema=schema, tool=tool, check=check, run=run, server=called[server])


def _wrong_arguments(problems: Iterable[str]) -> ValueError:
    return ValueError(f"wrong arguments: {'; '.join(problems)}")


def parse_arguments(text: str) -> dict[str, Any]:
    """Parse the arguments of a call as a model wrote them. Raises ValueError with a text for the
    model."""
    try:
        value = parse_json(text or "{}")
    except json.JSONDecodeError as exc:
        raise ValueError(f"the arguments are not JSON: {exc.msg} at column {exc.colno}") from exc
    except UnicodeEncodeError as exc:
        raise ValueError("the arguments are not JSON: half a surrogate pair") from exc
    except ValueError as exc:
        raise ValueError(f"the arguments cannot be read: {exc}") from exc
    if not isinstance(value, dict):
        raise ValueError("the arguments are not a JSON object")
    if is_deeper(value):
        raise ValueError(f"the arguments are nested too deeply: at most {DEEPEST} levels")
    return value
