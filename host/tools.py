"""Tools that a model may call: what each takes, and how a call is checked and run."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from host.errors import HostError, UnknownName
from host.types.base import dotted, problems
from host.types.turn import ToolOutcome


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool of the host. `arguments` is a pydantic model: its JSON Schema is what the model is shown, and every call is
    validated against it before `run` sees it. `run` returns something that JSON can hold and raises HostError."""

    name: str
    description: str
    arguments: type[BaseModel]
    run: Callable[[Any], Awaitable[Any]]


class Toolbox:
    """The tools of a host, by name."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ValueError(f"tool {tool.name!r} is already registered")
            self._tools[tool.name] = tool

    def schemas(self) -> list[Mapping[str, Any]]:
        """The tools as OpenAI's chat completions API takes them."""
        return [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.arguments.model_json_schema(),
                },
            }
            for tool in self._tools.values()
        ]

    async def call(self, call_id: str, name: str, arguments: str) -> tuple[ToolOutcome, int]:
        """Run one call of the model → its outcome and how many milliseconds it took. A wrong call is an outcome with
        `error`, worded for the model to mend it."""
        began = time.perf_counter()
        parsed: dict[str, Any] = {}
        try:
            parsed = _parsed(arguments)
            if name not in self._tools:
                raise UnknownName("tool", name, self._tools)
            tool = self._tools[name]
            result = await tool.run(tool.arguments.model_validate(parsed))
            outcome = ToolOutcome(toolcall_id=call_id, tool=name, arguments=parsed, result=result)
        except ValidationError as exc:
            wrong = "; ".join(f"{dotted(path) or 'arguments'}: {message}" for path, message in problems(exc))
            outcome = ToolOutcome(toolcall_id=call_id, tool=name, arguments=parsed, error=f"wrong arguments: {wrong}")
        except (HostError, ValueError) as exc:
            outcome = ToolOutcome(toolcall_id=call_id, tool=name, arguments=parsed, error=str(exc))
        return outcome, int((time.perf_counter() - began) * 1000)


def _parsed(arguments: str) -> dict[str, Any]:
    try:
        value = json.loads(arguments or "{}")
    except json.JSONDecodeError as exc:
        raise ValueError(f"the arguments are not JSON: {exc.msg} at column {exc.colno}") from exc
    if not isinstance(value, dict):
        raise ValueError("the arguments are not a JSON object")
    return value
