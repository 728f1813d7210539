"""Tools in Python, of the host and of toolkits, as offers: their schemas, the check of their
arguments, and their call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from inspect import Parameter, isawaitable, iscoroutinefunction, signature
from typing import Any

from anyio import to_thread
from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from groundhook.core.tool_ports import ToolScope
from groundhook.core.types.base import dotted, validate_known, validation_problems
from groundhook.core.types.tools import Tool
from groundhook.host.tools.offers import ToolAnswer, ToolOffer, wrong_arguments


def offer_of(tool: Tool, *, name: str = "", description: str = "", **more: Any) -> ToolOffer:
    """Return a tool of the host or of a toolkit as it is offered, under another `name` or with
    another description if they are given; `more` are fields of `ToolOffer`."""
    closed = tool.arguments.model_config.get("extra") != "allow"
    parameters = _make_parameters(tool.arguments)

    def check(arguments: dict[str, Any]) -> BaseModel:
        try:
            value, unknown = validate_known(tool.arguments, arguments) if closed else (None, [])
            if unknown:
                raise wrong_arguments(f"{key.path}: unknown key ({key.hint})" for key in unknown)
            return value or tool.arguments.model_validate(arguments)
        except ValidationError as exc:
            raise wrong_arguments(
                f"{dotted(path) or 'arguments'}:"
                f" {_with_bounds(message, path, arguments, parameters)}"
                for path, message in validation_problems(exc)
            ) from exc

    async def run(arguments: BaseModel, scope: ToolScope) -> ToolAnswer:
        given = (arguments, scope) if _takes_scope(tool.run) else (arguments,)
        if iscoroutinefunction(tool.run):
            answer = await tool.run(*given)
        else:
            answer = await to_thread.run_sync(tool.run, *given, abandon_on_cancel=True)
            if isawaitable(answer):  # `run` is a callable object, or wraps an async function
                answer = await answer
        return ToolAnswer(
            result=_convert_to_json(answer),
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
        "confirm": tool.confirm,
        "output": _make_output(tool.answers) if tool.answers else None,
        "deadline_ms": tool.deadline_ms,
        "cites": tool.items is not None,
        # Validators of plug-ins and programs may block.
        "slow_check": not tool.arguments.__module__.startswith("groundhook."),
    }
    return ToolOffer(
        schema={"type": "function", "function": function},
        tool=tool.name,
        check=check,
        run=run,
        **(fields | more),
    )


# Schemas are the same for every turn, and making one takes a millisecond.
@lru_cache(maxsize=1024)
def _make_parameters(model: type[BaseModel]) -> Mapping[str, Any]:
    """Return the schema of arguments. Its objects refuse unknown keys, unless the model allows
    them."""
    schema = model.model_json_schema()
    if model.model_config.get("extra") != "allow":
        _close_schema(schema)
    return schema


@lru_cache(maxsize=1024)
def _make_output(model: type[BaseModel]) -> Mapping[str, Any]:
    return model.model_json_schema(mode="serialization")


def _takes_scope(run: Callable[..., Any]) -> bool:
    try:
        given = signature(run).parameters.values()
    except (TypeError, ValueError):  # of a built-in function
        return False
    places = [one for one in given if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    required = [one for one in places if one.default is Parameter.empty]
    return len(required) > 1 or any(one.name == "scope" for one in places[1:])


def _convert_to_json(answer: Any) -> Any:
    try:
        return to_jsonable_python(answer, bytes_mode="base64", inf_nan_mode="null")
    except ValueError as exc:  # a type without a JSON form, or a cycle
        raise ValueError(f"the result of the tool has no JSON form: {exc}") from exc


def _with_bounds(
    message: str, path: Sequence[str | int], arguments: Any, parameters: Mapping[str, Any]
) -> str:
    """Return the message, for a number outside its bounds with both bounds and the number."""
    if len(path) != 1 or not message.startswith(("should be greater", "should be less")):
        return message
    schema, given = parameters["properties"].get(path[0], {}), arguments.get(path[0])
    for kind in schema.get("anyOf", [schema]):  # a number, or a number or null
        if "minimum" in kind and "maximum" in kind:
            return f"between {kind['minimum']} and {kind['maximum']}, not {given}"
    return f"{message}, not {given}"


def _close_schema(schema: Any) -> None:
    """Close a schema: its objects may only have the listed keys."""
    if isinstance(schema, dict):
        if "properties" in schema and schema.get("type") == "object":
            schema.setdefault("additionalProperties", False)
        for value in schema.values():
            _close_schema(value)
    elif isinstance(schema, list):
        for value in schema:
            _close_schema(value)
