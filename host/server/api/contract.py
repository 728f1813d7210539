"""Reads what a request of OpenAI's API demands of the form of its answer: tools of the client,
JSON, texts that end it. What cannot be kept is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from anyio import to_thread

from groundhook.core.errors import NotSupported
from groundhook.core.types.contract import Contract
from groundhook.core.types.uses import JsonReply
from groundhook.host.server.problems import WrongRequest

MOST_TOOLS = 128
MOST_STOPS = 16
LONGEST_STOP = 200  # characters
SCHEMA_KB = 32  # of one schema
TOOLS_KB = 256  # of all tools
LONGEST_DESCRIPTION = 20_000
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)


async def read_contract(
    *,
    tools: Sequence[Any] | None,
    choice: Any,
    stop: Any,
    form: Any,
    form_path: str,
    function: str = ".function",
) -> Contract:
    """Return the contract of a request. `tools`, `choice` and `form` (`response_format`) are those
    of chat completions; `form_path` is the key that errors name, `function` the place of a function
    in its tool. Raises UsageError."""
    offered = await _read_tools(tools or (), function)
    names = {tool["function"]["name"] for tool in offered}
    chosen = _read_choice(choice, names)
    return Contract(
        tools=() if chosen == "none" else offered,
        choice="auto" if chosen == "none" else chosen,
        stop=_read_stop(stop),
        reply=await _read_form(form, form_path),
    )


async def _read_tools(given: Sequence[Any], place: str) -> tuple[Mapping[str, Any], ...]:
    if len(given) > MOST_TOOLS:
        raise WrongRequest(f"tools: at most {MOST_TOOLS} are accepted")
    if len(json.dumps(given)) > TOOLS_KB * 1024:
        raise WrongRequest(f"tools: at most {TOOLS_KB} kB are accepted")
    tools: dict[str, Mapping[str, Any]] = {}
    for n, tool in enumerate(given):
        if not isinstance(tool, Mapping) or tool.get("type") != "function":
            kind = str(tool.get("type"))[:80] if isinstance(tool, Mapping) else ""
            raise NotSupported(f"tools[{n}].type: only 'function' is offered, not {kind!r}")
        function, where = tool.get("function"), f"tools[{n}]{place}"
        name = function.get("name") if isinstance(function, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(name, str):
            raise WrongRequest(f"{where}.name: should be text")
        if not _NAME.fullmatch(name):
            raise WrongRequest(f"{where}.name: 1 to 64 letters, digits, '_' or '-'")
        if name in tools:
            raise WrongRequest(f"{where}.name: another tool has this name")
        schema = function.get("parameters") or {"type": "object", "properties": {}}
        await _check_schema(schema, f"{where}.parameters")
        described = str(function.get("description") or "")[:LONGEST_DESCRIPTION]
        made: dict[str, Any] = {"name": name, "description": described, "parameters": schema}
        if isinstance(function.get("strict"), bool):
            made["strict"] = function["strict"]
        tools[name] = {"type": "function", "function": made}
    return tuple(tools.values())


def _read_choice(given: Any, names: set[str]) -> str:
    if given is None or given in ("auto", "none"):
        return given or "auto"
    if given == "required":
        if not names:
            raise WrongRequest("tool_choice: 'required' needs tools")
        return "required"
    function = given.get("function") if isinstance(given, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str):
        raise NotSupported("tool_choice: offered are 'auto', 'none', 'required' and a function")
    if name not in names:
        raise WrongRequest(f"tool_choice: tools has no function {name[:80]!r}")
    return name


def _read_stop(given: Any) -> tuple[str, ...]:
    texts = () if given is None else (given,) if isinstance(given, str) else given
    if not isinstance(texts, (list, tuple)) or len(texts) > MOST_STOPS:
        raise WrongRequest(f"stop: should be a text or at most {MOST_STOPS} of them")
    for n, text in enumerate(texts):
        if not isinstance(text, str) or not 0 < len(text) <= LONGEST_STOP:
            raise WrongRequest(f"stop[{n}]: should be text of 1 to {LONGEST_STOP} characters")
    return tuple(texts)


async def _read_form(given: Any, path: str) -> JsonReply | Literal["json"] | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise WrongRequest(f"{path}: should be an object with a `type`")
    match given.get("type"):
        case "text":
            return None
        case "json_object":
            return "json"
        case "json_schema":
            wanted = given.get("json_schema", given)
            schema = wanted.get("schema") if isinstance(wanted, Mapping) else None
            where = f"{path}.json_schema.schema" if "json_schema" in given else f"{path}.schema"
            await _check_schema(schema, where)
            name = str(wanted.get("name") or "answer")
            if not _NAME.fullmatch(name):
                raise WrongRequest(f"{path}: the name has 1 to 64 letters, digits, '_' or '-'")
            assert isinstance(schema, Mapping)
            described, strict = wanted.get("description"), wanted.get("strict")
            return JsonReply(
                name=name,
                schema=schema,
                description=(
                    described[:LONGEST_DESCRIPTION] if isinstance(described, str) else None
                ),
                strict=strict if isinstance(strict, bool) else None,
            )
        case other:
            raise NotSupported(
                f"{path}.type: offered are 'text', 'json_object' and 'json_schema', not"
                f" {str(other)[:80]!r}"
            )


async def _check_schema(schema: Any, path: str) -> None:
    """Raise UsageError for a schema that answers or arguments cannot be checked against."""
    if not isinstance(schema, Mapping):
        raise WrongRequest(f"{path}: should be a JSON Schema, an object")
    if len(json.dumps(schema)) > SCHEMA_KB * 1024:
        raise WrongRequest(f"{path}: at most {SCHEMA_KB} kB are accepted")
    if problem := await to_thread.run_sync(_problem_of, schema):
        raise WrongRequest(f"{path}: {problem}")


async def unchecked_of(contract: Contract, path: str) -> list[str]:
    """Return the keywords of the demanded schema that are not checked, as paths."""
    if not isinstance(contract.reply, JsonReply):
        return []
    return [
        f"{path}: {name}" for name in await to_thread.run_sync(_unchecked, contract.reply.schema)
    ]


def _unchecked(schema: Mapping[str, Any]) -> list[str]:
    from groundhook.host.tools.mcp.arguments import unchecked_keywords

    return unchecked_keywords(schema)


def _problem_of(schema: Mapping[str, Any]) -> str:
    # Imported here since the library takes a tenth of a second to import.
    from groundhook.host.tools.mcp.arguments import schema_problem

    return schema_problem(schema)
