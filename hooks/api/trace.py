"""`ctx.trace`: nodes of the turn's trace, and their lines and data.

JavaScript holds nodes as objects (`hooks/objects.js`), which pass their id before the arguments of
every call; the id of the hook's own node is empty.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from groundhook.hooks.api.row import HostCall, Run, kind_of, padded, quoted
from groundhook.hooks.printf import printf
from groundhook.host.core.errors import UsageError
from groundhook.host.core.hook_services import HookServices

LONGEST_LABEL = 200
NAMED = ("type", "label")


async def _add(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    node, input, options = padded(arguments, 3)
    if not isinstance(options, Mapping | None):
        raise UsageError(
            f"{call.js}: options must be an object such as {{type, label}}, not {kind_of(options)}"
        )
    fields = options or {}
    type, label = (fields.get(name) for name in NAMED)
    for name, value in (("type", type), ("label", label)):
        if not isinstance(value, str | None):
            raise UsageError(f"{call.js}: the {name} must be text, not {quoted(value)}")
    data = {key: value for key, value in fields.items() if key not in NAMED}
    if input is not None:
        data["input"] = input
    text = label or (input if isinstance(input, str) else "")
    return json.dumps(await services.trace.add(node, type or "custom", text[:LONGEST_LABEL], data))


def _log(level: str) -> Run:
    async def run(_call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
        await services.trace.log(arguments[0], level, printf(arguments[1:]))
        return ""

    return run


async def _set_output(_call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    node, output = padded(arguments, 2)
    await services.trace.note(node, {"output": output})
    return ""


async def _set_metadata(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    """Set metadata, from an object or from a key and its value."""
    node, first, value = padded(arguments, 3)
    fields = {first: value} if isinstance(first, str) else first
    if not isinstance(fields, Mapping):
        raise UsageError(f"{call.js}: give an object, or a key and a value, not {kind_of(first)}")
    await services.trace.note(node, fields)
    return ""


async def _complete(_call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    node, output = padded(arguments, 2)
    if output is not None:
        await services.trace.note(node, {"output": output})
    await services.trace.close(node, None)
    return ""


async def _fail(_call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    node, error = padded(arguments, 2)
    await services.trace.close(node, printf([error]) if error is not None else "failed")
    return ""


_TYPES = """\
/** A node of the turn's trace. */
interface TraceStep {
  readonly id: string;
  /** Begin a node under this one. */
  Add(input?: any, options?: TraceOptions): TraceStep;
  Info(...values: any[]): void;
  Debug(...values: any[]): void;
  Warn(...values: any[]): void;
  Error(...values: any[]): void;
  SetOutput(output: any): void;
  SetMetadata(metadata: Record<string, any>): void;
  SetMetadata(key: string, value: any): void;
  Complete(output?: any): void;
  Fail(error?: any): void;
}
export interface TraceOptions {
  label?: string;
  type?: string;
  [key: string]: any;
}
"""


def _row(name: str, doc: str, run: Run, ts: str, *, prints: bool = False) -> HostCall:
    return HostCall(
        js=f"ctx.trace.{name}", doc=doc, run=run, ts=ts, types=_TYPES, maker="node", prints=prints
    )


ROWS: tuple[HostCall, ...] = (
    _row(
        "Add",
        "Begin a node under the hook's own.",
        _add,
        "(input?: any, options?: TraceOptions): TraceStep",
    ),
    *(
        _row(
            level.capitalize(),
            f"Write a line to the node ({level}), printf style.",
            _log(level),
            "(...values: any[]): void",
            prints=True,
        )
        for level in ("info", "debug", "warn", "error")
    ),
    _row("SetOutput", "Set the output of the node's step.", _set_output, "(output: any): void"),
    _row(
        "SetMetadata",
        "Set metadata of the node.",
        _set_metadata,
        "(metadata: Record<string, any>): void\n(key: string, value: any): void",
    ),
    _row(
        "Complete",
        "The node's step is done; the hook's own ends with the hook.",
        _complete,
        "(output?: any): void",
    ),
    _row("Fail", "The node's step failed.", _fail, "(error?: any): void"),
)
