"""A tool as it is offered to models, wherever it comes from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groundhook.core.tool_ports import ToolScope
from groundhook.core.types.collection_spec import PermissionSpec
from groundhook.core.types.search import Item
from groundhook.core.types.tools import Needs, ToolInfo
from groundhook.core.types.turn import Identity

_ANYONE = PermissionSpec()


@dataclass(frozen=True, kw_only=True)
class ToolAnswer:
    """The result of a tool: its answer as JSON, its citable items, and the text for a model ("":
    the answer's JSON)."""

    result: Any
    items: Sequence[Item] = ()
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class ToolOffer:
    """A tool as it is offered to models. `schema` is in the format of OpenAI's chat completions
    API. `check` validates the arguments and returns them in the form for `run`; it raises
    ValueError with a text for the model. With `slow_check` it may take long: the schema or the
    model is another's. `tool` is the owner's name for it; `server` the MCP server, `toolkit` the
    full id of the toolkit, `owner` its name among the listed ones, and `assistant` that of the
    assistant whose toolkit it is (empty: none). `aliases` are further names under which a call is
    understood. `confirm`: a call of a model runs only when the user
    approves it. `withheld` is the reason why it is not offered in this turn (empty: it is
    offered)."""

    schema: Mapping[str, Any]
    tool: str
    check: Callable[[dict[str, Any]], Any]
    run: Callable[[Any, ToolScope], Awaitable[ToolAnswer]]
    server: str = ""
    toolkit: str = ""
    owner: str = ""
    assistant: str = ""
    aliases: Sequence[str] = ()
    needs: Needs = Needs()
    permission: PermissionSpec = _ANYONE
    reads_only: bool = False
    confirm: bool = False
    output: Mapping[str, Any] | None = None
    deadline_ms: int = 0
    slow_check: bool = False
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
        """Return the description of the tool."""
        function = self.schema["function"]
        return ToolInfo(
            name=self.name,
            canonical=self.canonical,
            description=function.get("description", ""),
            parameters=function["parameters"],
            output=self.output,
            needs=self.needs,
            reads_only=self.reads_only,
            confirm=self.confirm,
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


# Makes the scope of a call, given the offer, the id of the call, and the list for its warnings.
ScopeOf = Callable[[ToolOffer, str, list[str]], ToolScope]


class WrongArguments(ValueError):
    """The arguments of a call do not fit its schema."""


def wrong_arguments(problems: Iterable[str]) -> WrongArguments:
    """Return the error for these problems of the arguments."""
    return WrongArguments(f"wrong arguments: {'; '.join(problems)}")
