"""A row of the table of host calls, and helpers for the arguments of all rows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from groundhook.core.hook_services import HookServices

RunCall = Callable[["HostCall", HookServices, Sequence[Any]], Awaitable[str]]
LateAnswer = Callable[[Sequence[Any], str], str]


@dataclass(frozen=True, kw_only=True)
class HostCall:
    """One host call. From its fields come the function in JavaScript, the check of its arguments,
    its declaration in TypeScript and its documentation."""

    js: str  # its name in JavaScript; one without a group is for functions of `hooks/objects.js`
    doc: str  # one sentence for authors, which begins with a verb
    # Receives the arguments as JSON values and returns JSON text, empty for undefined. A UsageError
    # for wrong arguments throws a TypeError in JavaScript.
    run: RunCall
    options: type[BaseModel] | None = None
    result: Any = None
    # Makes the answer of a call that exceeded its deadline, or raises what is thrown. Without it
    # the run ends, because the host cannot tell the hook what became of the call.
    answer_late: LateAnswer | None = None
    # Whether the call has an effect outside, so that a run that made it is never repeated in
    # another process; a function decides by the JSON of the arguments.
    effect: bool | Callable[[str], bool] = False
    # Whether Create makes the call again when it goes on behind a question to the user (`ctx.Ask`):
    # what it does concerns its own turn. Any other call keeps the answer that it had.
    again: bool = False
    prints: bool = False  # the arguments become log text
    # The function of `hooks/objects.js` that makes the call in JavaScript, the same for all rows of
    # a group.
    maker: str = ""
    # The signature in TypeScript, such as `(message: Message | string, blockId?: string): string`;
    # without it, one that takes anything and returns `result`. It may name the models of
    # `core.types` and what `types` declares (`interface Node { … }`; rows may share a text).
    ts: str = ""
    types: str = ""

    @property
    def group(self) -> str:
        """Return the object that has the function: `ctx.search` of `ctx.search.Web`."""
        return self.js.rpartition(".")[0]


def pad(arguments: Sequence[Any], count: int) -> tuple[Any, ...]:
    """Return exactly `count` arguments: cut, or filled with None."""
    return (*arguments[:count], *(None for _ in range(count - len(arguments))))


def kind_of(value: Any) -> str:
    """Return the name of a JSON value's type, for messages to authors."""
    names: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "a boolean"),
        ((int, float), "a number"),
        (str, "text"),
        (list, "a list"),
        (Mapping, "an object"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), "nothing")


def quote(value: Any) -> str:
    """Return a text in quotes, and the type of any other value."""
    return repr(value) if isinstance(value, str) else kind_of(value)
