"""The list of toolkits of an assistant: `tools` in package.yao, and what Create returns. Pure: it
does not know which toolkits exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from groundhook.core.types.listed_entries import named_entries, names_in
from groundhook.core.types.tools import TOOL_NAME

KEYS = ("toolkit", "tools", "scopes", "when", "as")
SCOPE, DEFAULT_SCOPE = "scope", "general"  # key of the request's metadata, and its default


@dataclass(frozen=True)
class ListedToolkit:
    """A toolkit by its name in the list. `tools` are those that are offered; empty: all. They are
    offered only in turns whose `metadata.scope` (default `general`) is one of `scopes` (empty: any)
    and whose `metadata.<when>` is not false (`when` empty: any; absent: true). `names` maps tools
    to the names under which they are offered."""

    name: str
    tools: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    when: str = ""
    names: Mapping[str, str] = field(default_factory=dict, hash=False)

    def withheld(self, metadata: Mapping[str, Any]) -> str:
        """Return why the tools are not offered with this metadata; "" if they are."""
        scope = metadata.get(SCOPE) or DEFAULT_SCOPE
        if self.scopes and scope not in self.scopes:
            return f"not offered in this scope ({scope!r}; offered in {', '.join(self.scopes)})"
        if self.when and metadata.get(self.when, True) in (False, None, "", 0, "false"):
            return f"not offered in this scope (metadata.{self.when} is not set)"
        return ""


def parse_listed_toolkits(entry: Any) -> tuple[ListedToolkit, ...]:
    """Return the toolkits of an entry of `tools`: "id", {id: [tools]}, {id: {tools, scopes, when,
    as}} or {toolkit, tools, scopes, when, as}. Raises ValueError."""
    if not isinstance(entry, (str, Mapping)):
        raise ValueError(
            "should be the id of a toolkit, {id: [tools]}, or {toolkit, tools, scopes, when, as}"
        )
    named = named_entries(entry, "toolkit", "toolkit", KEYS, ", ".join(KEYS))
    return tuple(_parse_toolkit(name, keys) for name, keys in named)


def _parse_toolkit(name: str, keys: Mapping[str, Any]) -> ListedToolkit:
    when = keys.get("when") or ""
    if not isinstance(when, str):
        raise ValueError(f"'when' of {name!r} must be a key of the request's metadata")
    tools = names_in(name, "tools", keys)
    return ListedToolkit(
        name, tools, names_in(name, "scopes", keys), when, _parse_names(name, tools, keys.get("as"))
    )


def _parse_names(name: str, tools: Sequence[str], given: Any) -> Mapping[str, str]:
    if given is None:
        return {}
    if isinstance(given, str) and given and len(tools) == 1:
        given = {tools[0]: given}
    if not isinstance(given, Mapping) or not all(isinstance(one, str) for one in given.values()):
        raise ValueError(f"'as' of {name!r} must be a name if 'tools' has one, or {{tool: name}}")
    for offered in given.values():
        if not TOOL_NAME.fullmatch(offered):
            raise ValueError(
                f"'as' of {name!r}: {offered!r} cannot be the name of a tool: 1 to 64 letters,"
                " digits, - and _"
            )
    return dict(given)
