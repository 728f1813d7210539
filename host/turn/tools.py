"""Tools that a model may call, of the host and of MCP servers: what each takes, and how a call is
checked and run."""

from __future__ import annotations

import json
import re
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
from groundhook.host.core.types.turn import ToolOutcome
from groundhook.host.mcp.servers import Toolset, toolset
from groundhook.host.mcp.shapes import parse_json, value_of

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool of the host. `arguments` is a pydantic model: its JSON Schema is what the model is
    shown, and every call is validated against it before `run` sees it. `run` is async, or a plain
    function, which is called in a thread; it returns what has a JSON form (dates, decimals, sets,
    dataclasses and models have one) and raises HostError or ValueError. Making one raises
    ValueError for a name that no API takes."""

    name: str
    description: str
    arguments: type[BaseModel]
    run: Callable[[Any], Any]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"{self.name!r} cannot be the name of a tool: 1 to 64 letters, digits, - and _"
            )


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A tool as models are offered it: `schema` as OpenAI's chat completions API takes it. `check`
    makes of the arguments what `run` wants and raises ValueError, worded for a model. `tool` is
    what its owner calls it, `server` the MCP server."""

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
    """Tools by the name under which they are offered."""

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
        """The tools as OpenAI's chat completions API takes them."""
        return [offer.schema for offer in self._offers.values()]

    def server(self, name: str) -> str:
        """The MCP server that a tool belongs to; empty for the host's own and for one that is not
        there."""
        return self._offers[name].server if name in self._offers else ""

    def joined(self, offers: Iterable[Offer]) -> Toolbox:
        """With more tools; one whose name is taken is left out."""
        return Toolbox(
            [*self._offers.values(), *(offer for offer in offers if offer.name not in self._offers)]
        )

    async def call(
        self, call_id: str, name: str, arguments: str | Mapping[str, Any]
    ) -> tuple[ToolOutcome, int]:
        """Run one call → its outcome and how many milliseconds it took. Arguments are JSON text as
        a model writes it, or an object. A wrong call is an outcome with `error`, worded for the
        model to mend it."""
        began = time.perf_counter()
        offer = self._offers.get(name)
        said = ToolOutcome(
            toolcall_id=call_id,
            server=offer.server if offer else "",
            tool=offer.tool if offer else name,
        )
        try:
            parsed = parse_arguments(arguments) if isinstance(arguments, str) else dict(arguments)
            said = said.model_copy(update={"arguments": parsed})
            if offer is None:
                raise UnknownName("tool", name, self._offers)
            with unwrapped():
                outcome = said.model_copy(update={"result": await offer.run(offer.check(parsed))})
        except TimeoutError as exc:
            outcome = said.model_copy(
                update={"error": str(exc) or "the tool did not answer in time"}
            )
        except (HostError, ValueError) as exc:
            outcome = said.model_copy(update={"error": str(exc)})
        return outcome, int((time.perf_counter() - began) * 1000)


async def server_tools(
    servers: ToolServers, wanted: Mapping[str, Collection[str]], called: Mapping[str, str]
) -> tuple[list[Offer], Mapping[str, HostError]]:
    """Tools of MCP servers (full id → the tools that are wanted, none named: all), and the servers
    that could not be asked. `called` has the name of each server for models and outcomes."""
    found = await toolset(servers, wanted, called)
    return [_server_offer(servers, found, schema, called) for schema in found.schemas], found.failed


def _offer(tool: Tool) -> Offer:
    def check(arguments: dict[str, Any]) -> BaseModel:
        try:
            return tool.arguments.model_validate(arguments)
        except ValidationError as exc:
            raise _wrong(
                f"{dotted(path) or 'arguments'}: {message}" for path, message in problems(exc)
            ) from exc

    async def run(arguments: BaseModel) -> Any:
        if iscoroutinefunction(tool.run):
            answer = await tool.run(arguments)
        else:
            answer = await to_thread.run_sync(tool.run, arguments, abandon_on_cancel=True)
            if isawaitable(
                answer
            ):  # of an object that is called, or a function around an async one
                answer = await answer
        try:
            return to_jsonable_python(answer, bytes_mode="base64", inf_nan_mode="null")
        except ValueError as exc:  # of an unknown kind, or holding itself
            raise ValueError(f"the tool answered what has no JSON form: {exc}") from exc

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
        # Imported here because it takes a tenth of a second, which a turn without such tools need
        # not wait for.
        from groundhook.host.mcp.arguments import problems_of, validator_of

        if not validators:
            validators.append(validator_of(function["parameters"]))
        wrong = problems_of(arguments, validators[0])
        if wrong:
            raise _wrong(wrong)
        return arguments

    async def run(arguments: dict[str, Any]) -> Any:
        answer = await servers.ask(server, "tools/call", {"name": tool, "arguments": arguments})
        return value_of(called[server], tool, answer)

    return Offer(schema=schema, tool=tool, check=check, run=run, server=called[server])


def _wrong(problems: Iterable[str]) -> ValueError:
    return ValueError(f"wrong arguments: {'; '.join(problems)}")


def parse_arguments(text: str) -> dict[str, Any]:
    """The arguments of a call as a model wrote them. Raises ValueError, worded for the model."""
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
