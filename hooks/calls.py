"""The table of what a hook may ask of the host: one row a call, the one source of the prelude and of the argument checks.

The rows stand in `hooks/rows/`, one module for each group; here they are put together, beside the list of what hooks of this kind
reach for that is not offered, with what to use instead. It knows nothing of isolates.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hooks.row import HostCall
from hooks.rows import agents, http, logs, memory, output, process, search, servers, tools, trace

CALLS: tuple[HostCall, ...] = (
    *search.ROWS,
    *output.ROWS,
    *agents.ROWS,
    *trace.ROWS,
    *servers.ROWS,
    *tools.ROWS,
    *memory.ROWS,
    *http.ROWS,
    *process.ROWS,
    *logs.ROWS,
)
BY_NAME = {call.js: call for call in CALLS}

MISSING_ON_CTX: dict[str, str] = {}
MISSING_FUNCTIONS = {
    "fetch": "use http.Get(url) and its like, for hosts that the package declares under http.hosts",
    "require": "use import with a path that begins with ./ or ../",
    "Query": "use ctx.search.DB, or Process('models.<id>.Get', query)",
}
MISSING_OBJECTS = {
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
# Groups and functions that few runs need; they are made when they are first asked for.
LATE_GROUPS = (*(f"ctx.memory.{name}" for name in memory.NAMESPACES), "http")
LATE_FUNCTIONS = ("Process",)


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
        if not path or path in LATE_GROUPS:
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
    later = _later(dialect)
    described = {
        "units": units,
        "longest_log": 4096,
        "most_log": 32,
        "groups": list(groups.values()),
        "seldom": seldom,
        "added": dialect.script,
        "late": [*LATE, *MISSING_FUNCTIONS, *MISSING_OBJECTS, *later["globals"]],
        "late_groups": later["groups"],
        "missing_on_ctx": MISSING_ON_CTX,
        "missing_functions": MISSING_FUNCTIONS,
        "missing_objects": MISSING_OBJECTS,
    }
    return json.dumps(described)


def _later(dialect: Dialect) -> dict[str, Any]:
    """{groups: {"http": ["Get", …], "ctx.memory": {"user": ["Get", …]}}, globals: ["http", "Process"]}"""
    groups: dict[str, Any] = {}
    found = [call.js for call in dialect.calls if call.js in LATE_FUNCTIONS]
    for call in dialect.calls:
        if call.group not in LATE_GROUPS:
            continue
        outer, _, inner = call.group.rpartition(".")
        names = groups.setdefault(outer, {}).setdefault(inner, []) if outer else groups.setdefault(inner, [])
        names.append(call.js.rpartition(".")[2])
    return {"groups": groups, "globals": [*found, *(name for name in groups if "." not in name)]}
