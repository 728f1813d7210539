"""Tools: their definition, the requests that may use them, and the outcome of a call. Every caller
(the model of a turn, hooks, Python, the command line, MCP, HTTP) gets the same `Tool` and the same
`ToolOutcome`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, Literal

from pydantic import BaseModel, Field

from groundhook.core.errors import LONGEST_NAME
from groundhook.core.types.base import Value
from groundhook.core.types.search import Item

TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

IdentityPart = Literal["user", "team", "tenant"]


@dataclass(frozen=True, kw_only=True)
class Needs:
    """The requests that may use a tool. It is enforced before `run` is called: a request that lacks
    a part gets NotPermitted, and nothing else happens.

    `identity`: the parts of the identity that must be set, each with the word that messages use for
    it: `{"tenant": "institution"}`, or `("user", "tenant")` for their own names. `scopes`: words of
    which `identity.scope` must have one. `metadata`: keys of the request's metadata that must be
    set (and neither empty nor None)."""

    identity: Mapping[IdentityPart, str] | Sequence[IdentityPart] = ()
    scopes: Sequence[str] = ()
    metadata: Sequence[str] = ()

    @property
    def parts(self) -> Mapping[IdentityPart, str]:
        """The parts of the identity that must be set, with the word for each."""
        if isinstance(self.identity, Mapping):
            return self.identity
        return {part: part for part in self.identity}


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool, as its toolkit or its program defines it.

    `arguments` is a pydantic model. The language model receives its JSON Schema, and every call is
    validated against it before `run` is called with an instance. Unknown keys are always refused
    unless the model has `extra="allow"`. No argument may name an identity: that is in the scope.

    `run(arguments)` or `run(arguments, scope)`, where `scope` is a `core.ports.ToolScope`.
    It is async, or a plain function, which is called in a thread. It returns a value with a JSON
    form (dates, decimals, sets, dataclasses and models have one) and raises HostError or
    ValueError.

    `answers` is the model of the answer, from which MCP and OpenAPI get the output schema.
    `reads_only`: a call changes nothing, so that it may be repeated. `confirm`: a call of a model
    runs only when the user approves it. `items(answer)` returns what
    the answer lets a model cite, `text(answer)` the text that a model gets in place of the answer's
    JSON; both receive what `run` returned, before it is turned into JSON. Items have a `key` that
    identifies the source (`kb`: collection and document), a title, and an http(s) `url` if there
    is one; the host sets their `citation_id`. An item's `document_id` (for db its `record_id`) is
    the id of its entry in the answer: the marker is put beside that entry in the model's text.
    `deadline_ms` ends a call.

    Raises ValueError for a name that APIs refuse."""

    name: str
    description: str
    arguments: type[BaseModel]
    run: Callable[..., Any]
    answers: type[BaseModel] | None = None
    needs: Needs = Needs()
    reads_only: bool = True
    confirm: bool = False
    items: Callable[[Any], Sequence[Item]] | None = None
    text: Callable[[Any], str] | None = None
    deadline_ms: int = 15_000

    def __post_init__(self) -> None:
        if not TOOL_NAME.fullmatch(self.name):
            raise ValueError(
                f"{self.name!r} cannot be the name of a tool: 1 to 64 letters, digits, - and _"
            )


@dataclass(frozen=True, kw_only=True)
class ToolInfo:
    """The description of a tool, the same for all callers. `name` is the offered one, `canonical`
    is `<toolkit>.<tool>`, or `<tool>` for a tool of the host, or `<server>.<tool>` for one of an
    MCP server. `parameters` and `output` are JSON Schemas; `output` is None if it is not known."""

    name: str
    canonical: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    output: Mapping[str, Any] | None = None
    needs: Needs = Needs()
    reads_only: bool = False
    confirm: bool = False
    toolkit: str = ""
    server: str = ""


# Why a call failed, for callers with codes of their own (HTTP statuses). `service`: what the tool
# calls (a portal, a model, an MCP server) failed; `failed`: any other reason.
ToolErrorCode = Literal[
    "",
    "wrong_arguments",
    "unknown_tool",
    "not_permitted",
    "not_offered",
    "not_found",
    "timeout",
    "rate_limited",
    "service",
    "failed",
]
# Errors of these codes are about the request, and reveal nothing about the services behind the app.
ABOUT_THE_REQUEST: tuple[ToolErrorCode, ...] = (
    "wrong_arguments",
    "unknown_tool",
    "not_permitted",
    "not_offered",
    "not_found",
)


DOOR_KEYS = ("name", "result", "text", "error", "items", "warnings", "duration_ms")


class ToolOutcome(Value):
    """A tool call with its result or its error; the same value for every caller.

    Callers outside a turn get the keys of `answer()`; a Next hook gets the whole value."""

    toolcall_id: str = Field(default="", description="Id of the call in the turn; empty outside")
    server: str = Field(default="", description="The MCP server of the tool; empty: none")
    tool: str = Field(description="The owner's name of the tool: `<tool>`")
    arguments: dict[str, Any] = {}
    result: Any = Field(default=None, description="The tool's answer as JSON; null on an error")
    error: str | None = Field(default=None, description="Reason of a failure; null without one")
    name: str = Field(default="", description="The name under which the tool was offered")
    toolkit: str = Field(default="", description="The toolkit of the tool; empty: none")
    text: str = Field(default="", description="Text for a model, uncut; empty in a Next hook")
    items: tuple[Item, ...] = Field(
        default=(), description="Citable items of the result, with their citation_id in a turn"
    )
    warnings: tuple[str, ...] = ()
    duration_ms: int = 0
    code: ToolErrorCode = Field(default="", description="Code of the failure, for programs")

    def answer(self) -> dict[str, Any]:
        """Return the keys for callers outside a turn: name, result, text, error, items, warnings,
        duration_ms."""
        dumped = self.model_dump(mode="json", include=set(DOOR_KEYS))
        return {key: dumped[key] for key in DOOR_KEYS}


def nearest_first(name: str, known: Iterable[str]) -> list[str]:
    """Return canonical names of tools, those that are spelled most like an unknown name first."""
    wanted = name[:LONGEST_NAME].rpartition(".")[2]
    likeness = {each: SequenceMatcher(None, wanted, each.rpartition(".")[2]) for each in known}
    return sorted(likeness, key=lambda each: (-likeness[each].ratio(), each))


def homonyms_of(name: str, known: Iterable[str]) -> str:
    """Return the advice for a name that tools of several toolkits have; '' when fewer than two of
    the canonical names end in it."""
    alike = [each for each in known if each.rpartition(".")[2] == name]
    return f"several have that name: {', '.join(alike)}" if len(alike) > 1 else ""
