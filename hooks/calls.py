"""The table of what a hook may ask of the host: one row a call, the one source of the prelude and of the argument checks.

The rows stand in `hooks/rows/`, one module for each group; here they are put together, beside the list of what hooks of this kind
reach for that is not offered, with what to use instead. It knows nothing of isolates.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hooks.row import HostCall
from hooks.rows import agents, logs, output, search, trace

CALLS: tuple[HostCall, ...] = (*search.ROWS, *output.ROWS, *agents.ROWS, *trace.ROWS, *logs.ROWS)
BY_NAME = {call.js: call for call in CALLS}

MISSING_ON_CTX = {
    "memory": "return metadata, or keep what the turn needs in a variable: Create and Next share one script",
    "mcp": "return mcp_servers from Create and let the model call the tools",
    "tools": "return mcp_servers from Create and let the model call the tools",
}
MISSING_FUNCTIONS = {
    "Process": "use ctx.search.DB to read models; for text, plain JavaScript",
    "fetch": "use ctx.search.Web",
    "require": "use import with a path that begins with ./ or ../",
    "Query": "use ctx.search.DB",
}
MISSING_OBJECTS = {
    "http": "use ctx.search.Web",
    "process": "what a hook may know is in ctx; it sees no environment",
    "fs": "put data into a JSON file of the package and import it",
}
LATE = (
    "Exception",
    "atob",
    "btoa",
    "TextEncoder",
    "TextDecoder",
    "queueMicrotask",
    "setTimeout",
    "clearTimeout",
    "setInterval",
    "clearInterval",
    "structuredClone",
    "URL",
    "URLSearchParams",
)


@dataclass(frozen=True)
class Dialect:
    """What scripts of one kind may call. `script` is JavaScript that is evaluated in every isolate before them: a function of
    what the prelude took from the language, whose value holds functions that are called as hooks are."""

    calls: tuple[HostCall, ...]
    script: str = ""


HOOKS = Dialect(CALLS)


def table(units: int, seldom: str, dialect: Dialect = HOOKS) -> str:
    """The prelude's first argument, as JavaScript. `units` is the size of the bridge's buffer in UTF-16 units, `seldom` the
    text of seldom.js. Calls without a group are left to the dialect's script."""
    groups: dict[str, dict[str, Any]] = {}
    for call in dialect.calls:
        path = call.group
        if not path:
            continue
        group = groups.setdefault(
            path,
            {
                "path": path,
                "on_ctx": path.split(".")[0] == "ctx",
                "name": path.removeprefix("ctx."),
                "prints": call.prints,
                "maker": call.maker,
                "names": [],
            },
        )
        group["names"].append(call.js.rpartition(".")[2])
    described = {
        "units": units,
        "longest_log": 4096,
        "most_log": 32,
        "groups": list(groups.values()),
        "seldom": seldom,
        "added": dialect.script,
        "late": [*LATE, *MISSING_FUNCTIONS, *MISSING_OBJECTS],
        "missing_on_ctx": MISSING_ON_CTX,
        "missing_functions": MISSING_FUNCTIONS,
        "missing_objects": MISSING_OBJECTS,
    }
    return json.dumps(described)
