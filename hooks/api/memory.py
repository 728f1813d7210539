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

from groundhook.hooks.api.row import HostCall, Run
from groundhook.host.core.errors import UsageError
from groundhook.host.core.hook_services import HookServices, MemoryOperation

NAMESPACES = {
    "user": "values of the user",
    "team": "values of the team",
    "chat": "values of this chat of the user",
    "context": "values that last for the turn",
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


OPERATIONS = (
    _Operation("Get", "get", "The value of a key, null without one", ("key",), "any"),
    _Operation(
        "Set",
        "set",
        "Set a value, for milliseconds or without limit",
        ("key", "value", "ttlMs?"),
        "void",
        effect=True,
    ),
    _Operation(
        "Del", "delete", "Remove a key; whether it existed", ("key",), "boolean", effect=True
    ),
    _Operation("Delete", "delete", "The same as Del", ("key",), "boolean", effect=True),
    _Operation("Has", "has", "Whether a key exists", ("key",), "boolean"),
    _Operation("Keys", "keys", "All keys, sorted", (), "string[]"),
    _Operation("Len", "length", "The number of keys", (), "number"),
    _Operation("Clear", "clear", "Remove all keys; their number", (), "number", effect=True),
    _Operation(
        "Incr",
        "incr",
        "Add to a number, 0 without one; the sum",
        ("key", "by?"),
        "number",
        effect=True,
    ),
    _Operation(
        "Decr",
        "decr",
        "Subtract from a number, 0 without one; the difference",
        ("key", "by?"),
        "number",
        effect=True,
    ),
    _Operation(
        "Push",
        "push",
        "Append values to a list; its new length",
        ("key", "values"),
        "number",
        effect=True,
    ),
    _Operation(
        "Pop", "pop", "Remove and return a list's last element", ("key",), "any", effect=True
    ),
    _Operation(
        "Pull",
        "pull",
        "Remove and return a list's last elements",
        ("key", "count"),
        "any[]",
        effect=True,
    ),
    _Operation("PullAll", "pull_all", "Empty a list and return it", ("key",), "any[]", effect=True),
    _Operation(
        "AddToSet",
        "add_to_set",
        "Append the values that a list does not have; its new length",
        ("key", "values"),
        "number",
        effect=True,
    ),
    _Operation("ArrayLen", "array_length", "The length of a list", ("key",), "number"),
    _Operation(
        "ArrayGet", "array_get", "An element of a list, null beyond it", ("key", "index"), "any"
    ),
    _Operation(
        "ArraySet",
        "array_set",
        "Replace an element of a list",
        ("key", "index", "value"),
        "void",
        effect=True,
    ),
    _Operation("ArraySlice", "array_slice", "A part of a list", ("key", "start", "end?"), "any[]"),
    _Operation(
        "ArrayPage", "array_page", "A page of a list, from 1", ("key", "page", "size"), "any[]"
    ),
    _Operation("ArrayAll", "array_all", "A list, empty without one", ("key",), "any[]"),
    _Operation("GetDel", "get_del", "Remove a key; its value", ("key",), "any", effect=True),
)


def _run(space: str, operation: _Operation) -> Run:
    async def run(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
        least = sum(not name.endswith("?") for name in operation.arguments)
        if len(arguments) < least:
            raise UsageError(f"{call.js}: the {operation.arguments[len(arguments)]} is missing")
        given = list(arguments[: len(operation.arguments)])
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
        doc=f"{operation.doc}: {about}.",
        run=_run(space, operation),
        ts=f"({', '.join(TYPES[name] for name in operation.arguments)}): {operation.returns}",
        effect=operation.effect,
    )
    for space, about in NAMESPACES.items()
    for operation in OPERATIONS
)
