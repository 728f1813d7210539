"""`ctx.trace`: nodes of the turn's trace, and their lines and data.

JavaScript holds nodes as objects (`hooks/objects.js`), which pass their id before the arguments of
every call; the id of the hook's own node is empty.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from groundhook.core.errors import UsageError
from groundhook.core.hook_services import HookServices
from groundhook.core.json_text import read_json
from groundhook.hooks.api.row import HostCall, RunCall, kind_of, pad, quote
from groundhook.hooks.printf import printf

LONGEST_LABEL = 200
NAMED = ("type", "label")


async def _add(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    node, input, options = pad(arguments, 3)
    if not isinstance(options, Mapping | None):
        raise UsageError(
            f"{call.js}: options must be an object such as {{type, label}}, not {kind_of(options)}"
        )
    fields = options or {}
    type, label = (fields.get(name) for name in NAMED)
    for name, value in (("type", type), ("label", label)):
        if not isinstance(value, str | None):
            raise UsageError(f"{call.js}: the {name} must be text, not {quote(value)}")
    data = {key: value for key, value in fields.items() if key not in NAMED}
    if input is not None:
        data["input"] = input
    # A node without a label is named by its input, as other hosts do.
    text = label or (input if isinstance(input, str) else "")
    return json.dumps(await services.trace.add(node, type or "custom", text[:LONGEST_LABEL], data))


async def _parallel(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    """Add several nodes; return the list of their ids."""
    node, inputs = pad(arguments, 2)
    if not isinstance(inputs, list):
        raise UsageError(f"{call.js}: give a list of {{input, option}}, not {kind_of(inputs)}")
    ids = []
    for index, each in enumerate(inputs):
        if not isinstance(each, Mapping):
            raise UsageError(f"{call.js}: [{index}] must be an object, not {kind_of(each)}")
        # Packages write `option`; `options` is what the second argument of Add is called.
        option = each.get("option", each.get("options"))
        ids.append(read_json(await _add(call, services, [node, each.get("input"), option])))
    return json.dumps(ids)


async def _create_space(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    """Add a node for a space, whose values `hooks/objects.js` keeps and puts into its metadata."""
    node, option = pad(arguments, 2)
    named = {"label": option} if isinstance(option, str) else option
    if not isinstance(named, Mapping | None):
        raise UsageError(f"{call.js}: give an object such as {{label}}, not {kind_of(option)}")
    return await _add(call, services, [node, None, {"type": "space", **(named or {})}])


async def _get_space(_call: HostCall, _services: HookServices, _arguments: Sequence[Any]) -> str:
    """Return null: `hooks/objects.js` answers for the spaces that it knows."""
    return json.dumps(None)


async def _is_complete(_call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    return json.dumps(services.trace.is_complete(arguments[0]))


async def _release(_call: HostCall, _services: HookServices, _arguments: Sequence[Any]) -> str:
    """Do nothing: the host closes the nodes that a hook leaves open."""
    return ""


def _log(level: str) -> RunCall:
    async def run(_call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
        await services.trace.log(arguments[0], level, printf(arguments[1:]))
        return ""

    return run


async def _set_output(_call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    node, output = pad(arguments, 2)
    await services.trace.note(node, {"output": output})
    return ""


async def _set_metadata(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    """Set metadata, from an object or from a key and its value."""
    node, first, value = pad(arguments, 3)
    fields = {first: value} if isinstance(first, str) else first
    if not isinstance(fields, Mapping):
        raise UsageError(f"{call.js}: give an object, or a key and a value, not {kind_of(first)}")
    await services.trace.note(node, fields)
    return ""


async def _complete(_call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    node, output = pad(arguments, 2)
    if output is not None:
        await services.trace.note(node, {"output": output})
    await services.trace.close(node, None)
    return ""


async def _fail(_call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    node, error = pad(arguments, 2)
    await services.trace.close(node, printf([error]) if error is not None else "failed")
    return ""


_TYPES = """\
/** A node of the turn's trace. Calls without an answer of their own return the node. */
interface TraceStep {
  readonly id: string;
  /** Begin a node under this one; return it. */
  Add(input?: any, options?: TraceOptions): TraceStep;
  /** Begin several nodes under this one; return them. */
  Parallel(inputs: { input?: any; option?: TraceOptions }[]): TraceStep[];
  Info(...values: any[]): TraceStep;
  Debug(...values: any[]): TraceStep;
  Warn(...values: any[]): TraceStep;
  Error(...values: any[]): TraceStep;
  SetOutput(output: any): TraceStep;
  SetMetadata(metadata: Record<string, any>): TraceStep;
  SetMetadata(key: string, value: any): TraceStep;
  Complete(output?: any): TraceStep;
  Fail(error?: any): TraceStep;
  /** Return whether the node's step has ended. */
  IsComplete(): boolean;
  MarkComplete(): TraceStep;
  Release(): void;
}
/** A node with values, which are in its metadata. */
interface TraceSpace extends TraceStep {
  Set(key: string, value: any): TraceSpace;
  Get(key: string): any;
  Has(key: string): boolean;
  Delete(key: string): TraceSpace;
  Clear(): TraceSpace;
  Keys(): string[];
}
export interface TraceOptions {
  label?: string;
  type?: string;
  [key: string]: any;
}
"""
_SELF = "TraceStep"


def _make_row(name: str, doc: str, run: RunCall, ts: str, *, prints: bool = False) -> HostCall:
    return HostCall(
        js=f"ctx.trace.{name}",
        doc=doc,
        run=run,
        ts=ts,
        types=_TYPES,
        maker="node",
        prints=prints,
        again=True,
    )


ROWS: tuple[HostCall, ...] = (
    _make_row(
        "Add",
        "Begin a node under the hook's own; return it.",
        _add,
        "(input?: any, options?: TraceOptions): TraceStep",
    ),
    *(
        _make_row(
            level.capitalize(),
            f"Write a line to the node ({level}), printf style.",
            _log(level),
            f"(...values: any[]): {_SELF}",
            prints=True,
        )
        for level in ("info", "debug", "warn", "error")
    ),
    _make_row(
        "SetOutput", "Set the output of the node's step.", _set_output, f"(output: any): {_SELF}"
    ),
    _make_row(
        "SetMetadata",
        "Set metadata of the node, from an object or from a key and its value.",
        _set_metadata,
        f"(metadata: Record<string, any>): {_SELF}\n(key: string, value: any): {_SELF}",
    ),
    _make_row(
        "Complete",
        "Mark the node's step as done, with its output.",
        _complete,
        f"(output?: any): {_SELF}",
    ),
    _make_row(
        "Fail", "Mark the node's step as failed, with the reason.", _fail, f"(error?: any): {_SELF}"
    ),
    _make_row(
        "Parallel",
        "Begin several nodes under the hook's own; return them in a list.",
        _parallel,
        "(inputs: { input?: any; option?: TraceOptions }[]): TraceStep[]",
    ),
    _make_row(
        "CreateSpace",
        "Begin a node with values under the hook's own; return it.",
        _create_space,
        "(options?: TraceOptions): TraceSpace",
    ),
    _make_row(
        "GetSpace",
        "Return a space of this turn by its id, or null if there is none.",
        _get_space,
        "(id: string): TraceSpace | null",
    ),
    _make_row(
        "IsComplete", "Return whether the node's step has ended.", _is_complete, "(): boolean"
    ),
    _make_row(
        "MarkComplete", "Mark the node's step as done, as Complete does.", _complete, f"(): {_SELF}"
    ),
    _make_row("Release", "Do nothing: open nodes end with the hook.", _release, "(): void"),
    HostCall(
        js="ctx.Release",
        doc="Do nothing: open nodes end with the hook.",
        run=_release,
        ts="(): void",
    ),
)
