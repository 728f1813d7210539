"""The tools that a Create hook returns as `tools`: toolkits, and single tools by name.

The list replaces the turn's tools, except those of MCP servers, which `mcp_servers` lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from groundhook.core.errors import ConfigError, HookReturnInvalid, UnknownName
from groundhook.core.types.events import Warned
from groundhook.core.types.tools import TOOL_NAME
from groundhook.host.config.packages import App
from groundhook.host.tools.offers import ToolOffer
from groundhook.host.tools.server import schema_check, schema_trouble
from groundhook.host.tools.toolbox import Toolbox

_KEYS = ("name", "description", "parameters", "strict")


@dataclass(frozen=True)
class ChosenTools:
    """`toolkits` are entries as in package.yao. `named` are tools by the names under which they are
    offered, each with the parts of its schema to replace (may be empty)."""

    toolkits: tuple[Any, ...] = ()
    named: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @staticmethod
    def of(app: App, assistant_id: str, returned: Iterable[Any]) -> ChosenTools:
        """Sort the entries that Create returned. Raises HookReturnInvalid."""
        toolkits: list[Any] = []
        named: dict[str, Mapping[str, Any]] = {}
        for index, entry in enumerate(returned):
            if isinstance(entry, Mapping) and entry.get("type") == "function":
                function = _parse_function(entry, f"tools[{index}]")
                named[function["name"]] = function
            elif isinstance(entry, str) and not _is_toolkit(app, assistant_id, entry):
                named[entry] = {}
            else:  # wrong entries are reported when the settings are resolved
                toolkits.append(entry)
        return ChosenTools(tuple(toolkits), named)

    def pick(self, toolbox: Toolbox) -> tuple[list[ToolOffer], list[str]]:
        """Return the named tools of a toolbox, and the names that it does not have."""
        picked: dict[str, ToolOffer] = {}
        missing: list[str] = []
        for name, changed in self.named.items():
            offer = toolbox.find(name)
            if offer is None:
                missing.append(name)
            else:
                picked[offer.name] = _change_tool(offer, changed)
        return list(picked.values()), missing

    def unchecked(self) -> list[Warned]:
        """Return warnings of tools whose new schema checks nothing."""
        found = {
            name: schema_trouble(changed["parameters"])
            for name, changed in self.named.items()
            if changed.get("parameters")
        }
        return [
            Warned(
                code=HookReturnInvalid.code,
                message=f"Create returned a tool {name!r} whose schema 'parameters' {problem}; its "
                "arguments are not checked against it",
                hint="write the whole schema into 'parameters', of the JSON Schema dialect 2020-12",
            )
            for name, problem in found.items()
            if problem
        ]


def missing_tool(name: str, known: Sequence[str]) -> UnknownName:
    """Return the error of a name that Create returned and no tool has."""
    # Without a hint, UnknownName names the nearest of the known ones.
    hint = "" if known else "export a function of that name from src/tools.ts"
    return UnknownName("tool", name, known, hint=hint)


def _is_toolkit(app: App, assistant_id: str, name: str) -> bool:
    try:
        app.resolve_toolkit(assistant_id, name)
    except UnknownName:
        return False
    except ConfigError:
        pass  # its file is invalid, but it is a toolkit
    return True


def _parse_function(entry: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    function = entry.get("function")
    if not isinstance(function, Mapping):
        raise HookReturnInvalid(f"Create returned '{path}.function', which is not an object")
    name, parameters = function.get("name"), function.get("parameters", {})
    if not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
        raise HookReturnInvalid(f"Create returned a wrong '{path}.function.name': {name!r}")
    if not isinstance(parameters, Mapping):
        message = f"Create returned '{path}.function.parameters', which is not a JSON Schema"
        raise HookReturnInvalid(message)
    return {key: function[key] for key in _KEYS if key in function}


def _change_tool(offer: ToolOffer, changed: Mapping[str, Any]) -> ToolOffer:
    """Return a tool with another description or schema for the model. Arguments are validated
    against both schemas."""
    if not changed:
        return offer
    function = {**offer.schema["function"], **changed, "name": offer.name}
    found = replace(offer, schema={"type": "function", "function": function})
    if "parameters" not in changed:
        return found
    check_changed = schema_check(changed["parameters"])
    return replace(
        found, check=lambda arguments: offer.check(check_changed(arguments)), slow_check=True
    )
