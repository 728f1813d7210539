"""The table of host calls: one row for everything that a hook can call. The prelude, the checks of
arguments, `groundhook.d.ts` and the documentation are made from it. Each module of `hooks/api/` has
the rows of one group; this one joins them, and has the globals that V8 alone lacks, and the names
that hooks of other hosts use with what to use instead. It knows nothing of isolates.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from groundhook.hooks.api import (
    agents,
    chat,
    http,
    logs,
    memory,
    output,
    process,
    search,
    servers,
    sleep,
    tools,
    trace,
)
from groundhook.hooks.api.row import HostCall

CALLS: tuple[HostCall, ...] = (
    *search.ROWS,
    *output.ROWS,
    *agents.ROWS,
    *trace.ROWS,
    *servers.ROWS,
    *tools.ROWS,
    *memory.ROWS,
    *chat.ROWS,
    *http.ROWS,
    *process.ROWS,
    *logs.ROWS,
    *sleep.ROWS,
)

# Parts of `ctx` in other hosts. Here such a path is undefined, and a call throws.
MISSING_ON_CTX: dict[str, str] = {
    "sandbox": "hooks have no file system and start no programs; use an MCP server",
    "computer": "hooks have no file system and start no programs; use an MCP server",
    "workspace": "hooks have no file system; keep values in ctx.memory",
    "vfs": "hooks have no file system; keep values in ctx.memory",
    "robot": "there are no robots; call other assistants with ctx.agent.Call",
    "space": "use ctx.memory.context, ctx.memory.chat or ctx.memory.user",
    "shared": "use ctx.memory.context",
    "sid": "use ctx.chat_id",
    "session": "use ctx.memory.chat",
    "history": "use the hook's second argument, or ctx.chat.History(limit), which reads further",
    "messages": "the conversation is the hook's second argument",
    "user": "use ctx.authorized.user_id",
    "silent": "a called assistant is silent unless options.forward is true",
    "trace.Start": "use ctx.trace.Add",
    "trace.End": "use Complete of what ctx.trace.Add returns",
    "trace.Event": "use ctx.trace.Info",
}
MISSING_FUNCTIONS = {
    "fetch": "use http.Get(url) and its like, for hosts that the package declares under http.hosts",
    "require": "use import with a path that begins with ./ or ../",
    "Query": "use ctx.search.DB, or Process('models.<id>.Get', query)",
    "FS": "hooks have no file system; use an MCP server",
    "Store": "use ctx.memory",
    "Plan": "use ctx.memory",
    "Job": "there are no jobs; call an assistant from a scheduler",
}
MISSING_OBJECTS = {
    "process": "what a hook may know is in ctx; it sees no environment",
    "fs": "put data into a JSON file of the package and import it",
}
# globals that the bare engine lacks; `lazy_globals.js` makes each when it is first used
LAZY_GLOBALS = (
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
ENGINE_GLOBALS = ("WebAssembly",)  # that V8 has, and ECMAScript does not
FUNCTIONS = ("Process", "$L")  # calls that are globals themselves, without an object around them


@dataclass(frozen=True)
class Dialect:
    """The host calls of one kind of script. `script` is JavaScript that is evaluated in every
    isolate first: a function of the builtins that the prelude took from the language. It returns
    functions that are called as hooks are."""

    calls: tuple[HostCall, ...]
    script: str = ""


HOOKS = Dialect(CALLS)


def prelude_argument(units: int, dialect: Dialect = HOOKS) -> str:
    """Return the argument of prelude.js, as JavaScript. `units` is the size of the bridge's buffer
    in UTF-16 units. Calls without a group are left to the dialect's script."""
    root: list[dict[str, Any]] = []
    groups: dict[str, dict[str, Any]] = {}
    for call in dialect.calls:
        if call.group:
            group = _add_group(root, groups, call.group)
            group |= {"prints": call.prints, "maker": call.maker}
            group["names"].append(call.js.rpartition(".")[2])
    functions = [call.js for call in dialect.calls if call.js in FUNCTIONS]
    described = {
        "units": units,
        "groups": root,
        "added": dialect.script,
        "lazy": [*LAZY_GLOBALS, *MISSING_FUNCTIONS, *MISSING_OBJECTS, *functions],
    }
    # Every isolate parses this; V8 parses JSON faster than an object literal.
    return f"JSON.parse({json.dumps(json.dumps(described, separators=(',', ':')))})"


def lazy_globals_argument() -> str:
    """Return the argument of lazy_globals.js, as JavaScript."""
    described = {
        "longest_log": 4096,
        "most_log": 32,
        "missing_on_ctx": MISSING_ON_CTX,
        "missing_functions": MISSING_FUNCTIONS,
        "missing_objects": MISSING_OBJECTS,
    }
    return json.dumps(described)


def _add_group(
    root: list[dict[str, Any]], groups: dict[str, dict[str, Any]], path: str
) -> dict[str, Any]:
    """Return the group of a path, made together with the groups around it. Groups on ctx are in
    the root beside the globals."""
    if path not in groups:
        outer, _, name = path.rpartition(".")
        on_ctx = path.split(".")[0] == "ctx"
        # A group is made in JavaScript when it is first used, so each knows the groups in it.
        groups[path] = {
            "path": path,
            "name": name,
            "on_ctx": on_ctx,
            "prints": False,
            "maker": "",
            "names": [],
            "inner": [],
        }
        around = root if outer in ("", "ctx") else _add_group(root, groups, outer)["inner"]
        around.append(groups[path])
    return groups[path]
