"""A row of the table of host calls, and helpers for the arguments of all rows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from groundhook.host.core.hook_services import HookServices

Run = Callable[["HostCall", HookServices, Sequence[Any]], Awaitable[str]]
Late = Callable[[Sequence[Any], str], str]


@dataclass(frozen=True, kw_only=True)
class HostCall:
    """One host call.

    `js` is its name in JavaScript, `doc` one sentence for authors. `run` receives the arguments as
    JSON values and returns JSON text, empty for undefined; a UsageError for wrong arguments throws
    a TypeError in JavaScript. `late` makes the answer of a call that exceeded its deadline, or
    raises what is thrown; without it the run ends. A call with an `effect` outside is never
    repeated; a function decides by the JSON of the arguments. `prints`: the arguments become log
    text. `maker` names the function of `hooks/objects.js` that makes the call in JavaScript, the
    same for all rows of a group; a row whose name has no group is for such functions only.

    `ts` is the TypeScript signature, `(message: Message | string, blockId?: string): string`;
    without it, one that takes anything and returns `result`. It may name the models of
    `host.core.types` and what `types` declares (`interface Node { … }`; rows may share the same
    text)."""

    js: str
    doc: str
    run: Run
    options: type[BaseModel] | None = None
    result: Any = None
    late: Late | None = None
    effect: bool | Callable[[str], bool] = False
    prints: bool = False
    maker: str = ""
    ts: str = ""
    types: str = ""

    @property
    def group(self) -> str:
        return self.js.rpartition(".")[0]


def padded(arguments: Sequence[Any], count: int) -> tuple[Any, ...]:
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


def quoted(value: Any) -> str:
    """Return a text in quotes, and the type of any other value."""
    return repr(value) if isinstance(value, str) else kind_of(value)
