"""`ctx.memory`: four namespaces of keys and JSON values, for the user, the team, the chat and the
turn.

Defines the names and the arguments. The host decides which memory a request reaches, and enforces
its limits.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from groundhook.core.errors import UsageError
from groundhook.core.hook_services import HookServices, MemoryOperation
from groundhook.hooks.api.row import HostCall, RunCall

NAMESPACES = {
    "user": "the user's memory",
    "team": "the team's memory",
    "chat": "the memory of this chat",
    "context": "the memory of this turn",
}
Argument = Literal[
    "key", "value", "ttlMs?", "by?", "values", "count", "index", "start", "end?", "page", "size"
]
TYPES = {
    "key": "key: string",
    "value": "value: any",
    "ttlMs?": "ttlMs?: number | null",
    "by?": "by?: number",
    "values": "values: any[]",
    "count": "count: number",
    "index": "index: number",
    "start": "start: number",
    "end?": "end?: number",
    "page": "page: number",
    "size": "size: number",
}


@dataclass(frozen=True)
class _Operation:
    js: str
    operation: MemoryOperation
    doc: str
    arguments: tuple[Argument, ...]
    returns: str
    effect: bool = False


# `{memory}` in a sentence is replaced by the namespace.
OPERATIONS = (
    _Operation(
        "Get", "get", "Return the value of a key in {memory}, or null without one.", ("key",), "any"
    ),
    _Operation(
        "Set",
        "set",
        "Keep a value under a key in {memory}, for `ttlMs` milliseconds or without limit.",
        ("key", "value", "ttlMs?"),
        "void",
        effect=True,
    ),
    _Operation(
        "Del",
        "delete",
        "Remove a key from {memory}, or all that begin with `prefix` for `prefix*`; return whether"
        " there was one.",
        ("key",),
        "boolean",
        effect=True,
    ),
    _Operation(
        "Delete",
        "delete",
        "Remove a key from {memory}, as Del does.",
        ("key",),
        "boolean",
        effect=True,
    ),
    _Operation("Has", "has", "Return whether a key exists in {memory}.", ("key",), "boolean"),
    _Operation("Keys", "keys", "Return all keys in {memory}, sorted.", (), "string[]"),
    _Operation("Len", "length", "Return the number of keys in {memory}.", (), "number"),
    _Operation(
        "Clear",
        "clear",
        "Remove all keys from {memory}; return their number.",
        (),
        "number",
        effect=True,
    ),
    _Operation(
        "Incr",
        "incr",
        "Add `by`, or 1, to a number in {memory}, which begins at 0; return the sum.",
        ("key", "by?"),
        "number",
        effect=True,
    ),
    _Operation(
        "Decr",
        "decr",
        "Subtract `by`, or 1, from a number in {memory}, which begins at 0; return the difference.",
        ("key", "by?"),
        "number",
        effect=True,
    ),
    _Operation(
        "Push",
        "push",
        "Append values to a list in {memory}; return its new length.",
        ("key", "values"),
        "number",
        effect=True,
    ),
    _Operation(
        "Pop",
        "pop",
        "Remove the last element of a list in {memory}; return it, or null if the list is empty.",
        ("key",),
        "any",
        effect=True,
    ),
    _Operation(
        "Pull",
        "pull",
        "Remove the last `count` elements of a list in {memory}; return them.",
        ("key", "count"),
        "any[]",
        effect=True,
    ),
    _Operation(
        "PullAll",
        "pull_all",
        "Remove all elements of a list in {memory}; return them.",
        ("key",),
        "any[]",
        effect=True,
    ),
    _Operation(
        "AddToSet",
        "add_to_set",
        "Append the values that a list in {memory} does not have; return its new length.",
        ("key", "values"),
        "number",
        effect=True,
    ),
    _Operation(
        "ArrayLen", "array_length", "Return the length of a list in {memory}.", ("key",), "number"
    ),
    _Operation(
        "ArrayGet",
        "array_get",
        "Return an element of a list in {memory}, or null beyond its end; a negative index counts"
        " from the end.",
        ("key", "index"),
        "any",
    ),
    _Operation(
        "ArraySet",
        "array_set",
        "Replace an element of a list in {memory}.",
        ("key", "index", "value"),
        "void",
        effect=True,
    ),
    _Operation(
        "ArraySlice",
        "array_slice",
        "Return the elements of a list in {memory} from `start` on, and before `end`.",
        ("key", "start", "end?"),
        "any[]",
    ),
    _Operation(
        "ArrayPage",
        "array_page",
        "Return a page of a list in {memory}; pages count from 1.",
        ("key", "page", "size"),
        "any[]",
    ),
    _Operation(
        "ArrayAll",
        "array_all",
        "Return a list in {memory}, empty without the key.",
        ("key",),
        "any[]",
    ),
    _Operation(
        "GetDel",
        "get_del",
        "Remove a key from {memory}; return its value, or null without one.",
        ("key",),
        "any",
        effect=True,
    ),
)


def _run(space: str, operation: _Operation) -> RunCall:
    async def run(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
        # The memory checks the values: programs reach it as well, without a hook.
        least = sum(not name.endswith("?") for name in operation.arguments)
        if len(arguments) < least:
            raise UsageError(f"{call.js}: the {operation.arguments[len(arguments)]} is missing")
        given = list(arguments[: len(operation.arguments)])
        # An optional argument that is null counts as one that is left out.
        while len(given) > least and given[-1] is None:
            given.pop()
        try:
            value = await services.memory.do(space, operation.operation, *given)
        except UsageError as exc:
            raise UsageError(f"{call.js}: {exc.message}", hint=exc.hint) from exc
        return "" if operation.returns == "void" else json.dumps(value)

    return run


ROWS: tuple[HostCall, ...] = tuple(
    HostCall(
        js=f"ctx.memory.{space}.{operation.js}",
        doc=operation.doc.format(memory=memory),
        run=_run(space, operation),
        ts=f"({', '.join(TYPES[name] for name in operation.arguments)}): {operation.returns}",
        effect=operation.effect,
        again=space == "context",
    )
    for space, memory in NAMESPACES.items()
    for operation in OPERATIONS
)
