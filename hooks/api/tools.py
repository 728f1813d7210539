"""`ctx.tools`: the tools of the turn, the same that the model may call: the host's own and those of
the listed MCP servers.

The failure of a tool is `error` on its answer; an unknown name throws.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import to_json

from groundhook.core.errors import UsageError
from groundhook.core.hook_services import HookServices
from groundhook.hooks.api.row import HostCall, kind_of, pad, quote


async def _list(_call: HostCall, services: HookServices, _arguments: Sequence[Any]) -> str:
    return json.dumps([dict(tool) for tool in await services.tools.offered()], ensure_ascii=False)


async def _run(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
    name, given, options = pad(arguments, 3)
    if not isinstance(name, str) or not name.strip():
        raise UsageError(
            f"{call.js}: the tool's name must be text that is not empty, not {quote(name)}"
        )
    if not isinstance(given, Mapping | None):
        raise UsageError(f"{call.js}: arguments must be an object, not {kind_of(given)}")
    if not isinstance(options, Mapping | None):
        raise UsageError(f"{call.js}: options must be an object, not {kind_of(options)}")
    # An error and not a warning: a misspelt `pool` would lose the sources of the answer.
    if strange := sorted((options or {}).keys() - {"pool"}):
        raise UsageError(f"{call.js}: unknown option {quote(strange[0])} (known: pool)")
    pool = (options or {}).get("pool", False)
    if not isinstance(pool, bool):
        raise UsageError(f"{call.js}: options.pool must be true or false, not {kind_of(pool)}")
    outcome = await services.tools.call(name, given or {}, pool=pool)
    items = [item.model_dump(mode="json") for item in outcome.items]
    answer = {"name": name, "result": outcome.result, "error": outcome.error, "items": items}
    return to_json(answer, inf_nan_mode="null").decode()


# As for a tool that fails, so that a hook has one case to handle.
def _answer_late(arguments: Sequence[Any], message: str) -> str:
    return json.dumps({"name": arguments[0], "result": None, "error": message, "items": []})


_TYPES = """\
/** A tool, as the model sees it. */
export interface OfferedTool {
  name: ToolName;
  description: string;
  parameters: Record<string, any>;
}
"""
_OUTCOME = """\
/** The outcome of a tool call. */
export interface ToolReturn {
  name: ToolName;
  result: any;
  error: string | null;
  /** The citable items of the result, each with its `citation_id`. */
  items: Item[];
}
/** Options of `ctx.tools.Call`. */
export interface ToolCallOptions {
  /** Whether the items join the sources of the turn, as those of `ctx.search` do. */
  pool?: boolean;
}
"""

ROWS: tuple[HostCall, ...] = (
    HostCall(
        js="ctx.tools.List",
        doc="Return the tools of this turn.",
        run=_list,
        ts="(): OfferedTool[]",
        types=_TYPES,
    ),
    HostCall(
        js="ctx.tools.Call",
        doc="Call a tool of this turn; return its outcome.",
        run=_run,
        ts=(
            "(name: ToolName, arguments?: Record<string, any>, options?: ToolCallOptions):"
            " ToolReturn"
        ),
        types=_OUTCOME,
        answer_late=_answer_late,
        effect=True,
    ),
)
