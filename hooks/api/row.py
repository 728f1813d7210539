"""A row of the table of host calls, and what the rows share: arguments, and how they are named in
messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from groundhook.host.core.ports import HookServices

Run = Callable[["HostCall", HookServices, Sequence[Any]], Awaitable[str]]
Late = Callable[[Sequence[Any], str], str]


@dataclass(frozen=True, kw_only=True)
class HostCall:
    """One call. `run` receives the arguments as JSON values and answers with JSON text, empty for
    undefined; it raises UsageError for wrong arguments, which throws a TypeError in JavaScript.
    `late` makes the answer for a call that found no end in time, or raises what is thrown; without
    it the run ends. A call with an `effect` outside is never made a second time. `maker` names the
    function of `hooks/objects.js` that makes the call in JavaScript, the same for all rows of a
    group. A row whose name has no group is for such functions only.

    For authors: `ts` is the signature in TypeScript, `(message: Message | string, blockId?:
    string): string`; without it, one that takes anything and returns `result`. It may name the
    models of `host.core.types` and what `types` declares (`interface Node { … }`; rows may share
    the same text)."""

    js: str
    doc: str
    run: Run
    options: type[BaseModel] | None = None
    result: Any = None
    late: Late | None = None
    effect: bool = False
    prints: bool = False
    maker: str = ""
    ts: str = ""
    types: str = ""

    @property
    def group(self) -> str:
        return self.js.rpartition(".")[0]


def padded(arguments: Sequence[Any], count: int) -> tuple[Any, ...]:
    return (*arguments[:count], *(None for _ in range(count - len(arguments))))


def kind_of(value: Any) -> str:
    """A JSON value's type, as JavaScript would say it."""
    names: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "a boolean"),
        ((int, float), "a number"),
        (str, "text"),
        (list, "a list"),
        (Mapping, "an object"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), "nothing")


def quoted(value: Any) -> str:
    return repr(value) if isinstance(value, str) else kind_of(value)
