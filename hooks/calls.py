"""The table of what a hook may ask of the host: one row a call, the one source of the prelude and of the argument checks.

Owns the names JavaScript sees, what each takes, and how it becomes a call of `HookServices`; and the list of what hooks of
this kind reach for that is not offered, with what to use instead. It knows nothing of isolates.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import anyio
from pydantic import BaseModel, ValidationError

from hooks.printf import printf
from host.errors import UsageError, suggestion
from host.ports import HookServices
from host.types.base import dotted, problems, read
from host.types.search import SEARCH_TYPES, DBOptions, KBOptions, SearchRequest, SearchResult, SearchType, WebOptions

OPTIONS: dict[SearchType, type[WebOptions] | type[KBOptions] | type[DBOptions]] = {
    "web": WebOptions,
    "kb": KBOptions,
    "db": DBOptions,
}
LONGEST_SLEEP_MS = 60_000

Mode = Literal["all", "any", "race"]
Run = Callable[["HostCall", HookServices, Sequence[Any]], Awaitable[str]]
Late = Callable[[Sequence[Any], str], str]


@dataclass(frozen=True, kw_only=True)
class HostCall:
    """One call. `run` receives the arguments as JSON values and answers with JSON text, empty for undefined; it raises
    UsageError for wrong arguments, which throws a TypeError in JavaScript. `late` makes the answer for a call that found no
    end in time; without it the run ends. A call with an `effect` outside is never made a second time."""

    js: str
    doc: str
    run: Run
    options: type[BaseModel] | None = None
    result: Any = None
    late: Late | None = None
    effect: bool = False
    prints: bool = False

    @property
    def group(self) -> str:
        return self.js.rpartition(".")[0]


# ------------------------------------------------------------------------------------------------ search


def _search(type: SearchType) -> Run:
    async def run(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
        query, options = _padded(arguments, 2)
        request = await _request(call.js, type, query, {} if options is None else options, services)
        return (await services.search(request)).model_dump_json()

    return run


def _late_search(type: SearchType) -> Late:
    def late(arguments: Sequence[Any], message: str) -> str:
        return _unanswered(type, arguments[0], message).model_dump_json()

    return late


def _search_many(mode: Mode) -> Run:
    async def run(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
        (entries,) = _padded(arguments, 1)
        if not isinstance(entries, list):
            raise UsageError(f"{call.js}: requests must be a list of {{type, query, …}}, not {_kind(entries)}")
        requests = [await _entry(f"{call.js}: requests[{index}]", entry, services) for index, entry in enumerate(entries)]
        results = await services.search_many(requests, mode) if requests else []
        return f"[{','.join(result.model_dump_json() for result in results)}]"

    return run


def _late_many(arguments: Sequence[Any], message: str) -> str:
    results = [_unanswered(entry["type"], entry["query"], message) for entry in arguments[0]]
    return f"[{','.join(result.model_dump_json() for result in results)}]"


async def _entry(where: str, entry: Any, services: HookServices) -> SearchRequest:
    if not isinstance(entry, Mapping):
        raise UsageError(f"{where} must be an object with type and query, not {_kind(entry)}")
    type = entry.get("type")
    if type not in SEARCH_TYPES:
        hint = suggestion(type, SEARCH_TYPES) if isinstance(type, str) else f"known: {', '.join(SEARCH_TYPES)}"
        raise UsageError(f"{where}.type must be a search type, not {_quoted(type)} ({hint})")
    options = {key: value for key, value in entry.items() if key not in ("type", "query")}
    return await _request(where, type, entry.get("query"), options, services)


async def _request(where: str, type: SearchType, query: Any, options: Any, services: HookServices) -> SearchRequest:
    if not isinstance(query, str) or not query.strip():
        raise UsageError(f"{where}: query must be text that is not empty, not {_quoted(query)}")
    if not isinstance(options, Mapping):
        raise UsageError(f"{where}: options must be an object, not {_kind(options)}")
    if not options:
        return SearchRequest(type=type, query=query)
    try:
        known, unknown = read(OPTIONS[type], options)
    except ValidationError as exc:
        path, message = problems(exc)[0]
        raise UsageError(f"{where}: option {dotted(path)}: {message}") from exc
    for key in unknown:
        await services.warn("unknown_option", f"{where}: {key}")
    return SearchRequest(type=type, query=query, **dict(known))


def _unanswered(type: SearchType, query: str, message: str) -> SearchResult:
    return SearchResult(type=type, query=query, error=message)


# ------------------------------------------------------------------------------------------------ log, time


def _log(level: str) -> Run:
    async def run(_call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
        await services.log(level, printf(arguments))
        return ""

    return run


async def _sleep(call: HostCall, _services: HookServices, arguments: Sequence[Any]) -> str:
    (ms,) = _padded(arguments, 1)
    if isinstance(ms, bool) or not isinstance(ms, (int, float)) or not 0 <= ms <= LONGEST_SLEEP_MS:
        raise UsageError(f"{call.js}: milliseconds must be a number of 0-{LONGEST_SLEEP_MS}, not {_quoted(ms)}")
    await anyio.sleep(ms / 1000)
    return ""


# ------------------------------------------------------------------------------------------------ the table

CONSOLE = {
    "log": "info",
    "info": "info",
    "debug": "debug",
    "trace": "debug",
    "warn": "warn",
    "error": "error",
    "dir": "info",
    "table": "info",
}
LOG = {"Trace": "debug", "Debug": "debug", "Info": "info", "Warn": "warn", "Error": "error"}

TOGETHER: tuple[tuple[str, Mode, str], ...] = (
    ("Parallel", "all", "Several searches at once; every result, in order."),
    ("All", "all", "The same as Parallel."),
    ("Any", "any", "Several searches at once; the first that has items, in a list."),
    ("Race", "race", "Several searches at once; the first that ends, in a list."),
)

CALLS: tuple[HostCall, ...] = (
    HostCall(
        js="ctx.search.Web",
        doc="Search the web.",
        run=_search("web"),
        options=WebOptions,
        result=SearchResult,
        late=_late_search("web"),
    ),
    HostCall(
        js="ctx.search.KB",
        doc="Search knowledge base collections.",
        run=_search("kb"),
        options=KBOptions,
        result=SearchResult,
        late=_late_search("kb"),
    ),
    HostCall(
        js="ctx.search.DB",
        doc="Query database models in plain words.",
        run=_search("db"),
        options=DBOptions,
        result=SearchResult,
        late=_late_search("db"),
    ),
    *(
        HostCall(js=f"ctx.search.{name}", doc=doc, run=_search_many(mode), result=list[SearchResult], late=_late_many)
        for name, mode, doc in TOGETHER
    ),
    *(
        HostCall(js=f"console.{name}", doc=f"Write a line to the log ({level}).", run=_log(level), prints=True)
        for name, level in CONSOLE.items()
    ),
    *(
        HostCall(js=f"log.{name}", doc=f"Write a line to the log ({level}), printf style.", run=_log(level), prints=True)
        for name, level in LOG.items()
    ),
    HostCall(js="time.Sleep", doc="Wait a number of milliseconds.", run=_sleep),
)
BY_NAME = {call.js: call for call in CALLS}

_SEND = "return messages from Create or data from Next"
MISSING_ON_CTX = {
    **dict.fromkeys(("Send", "SendStream", "Append", "Replace", "Merge", "Set", "End", "EndBlock"), _SEND),
    **dict.fromkeys(("MessageID", "BlockID", "ThreadID"), _SEND),
    "memory": "return metadata, or keep what the turn needs in a variable: Create and Next share one script",
    "agent": "return delegate {agent_id, messages} to hand the turn to another assistant",
    "llm": "return messages from Create and let the turn's own model answer",
    "mcp": "return mcp_servers from Create and let the model call the tools",
    "tools": "return mcp_servers from Create and let the model call the tools",
    "trace": "use log.Info, log.Warn or log.Error; searches are traced by themselves",
}
MISSING_FUNCTIONS = {
    "Process": "use ctx.search.DB to read models; for text, plain JavaScript",
    "fetch": "use ctx.search.Web",
    "setTimeout": "use time.Sleep(ms)",
    "setInterval": "use time.Sleep(ms) in a loop",
    "queueMicrotask": "use Promise.resolve().then(…)",
    "structuredClone": "use JSON.parse(JSON.stringify(value))",
    "URL": "take addresses apart with a regular expression",
    "require": "use import with a path that begins with ./ or ../",
    "Query": "use ctx.search.DB",
}
MISSING_OBJECTS = {
    "http": "use ctx.search.Web",
    "process": "what a hook may know is in ctx; it sees no environment",
    "fs": "put data into a JSON file of the package and import it",
}
LATE = ("Exception", "atob", "btoa", "TextEncoder", "TextDecoder")


def table(units: int, seldom: str) -> str:
    """The prelude's first argument, as JavaScript. `units` is the size of the bridge's buffer in UTF-16 units, `seldom` the
    text of seldom.js."""
    groups: dict[str, dict[str, Any]] = {}
    for call in CALLS:
        path = call.group
        group = groups.setdefault(
            path,
            {
                "path": path,
                "on_ctx": path.startswith("ctx."),
                "name": path.removeprefix("ctx."),
                "prints": call.prints,
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
        "late": [*LATE, *MISSING_FUNCTIONS, *MISSING_OBJECTS],
        "missing_on_ctx": MISSING_ON_CTX,
        "missing_functions": MISSING_FUNCTIONS,
        "missing_objects": MISSING_OBJECTS,
    }
    return json.dumps(described)


def _padded(arguments: Sequence[Any], count: int) -> tuple[Any, ...]:
    return (*arguments[:count], *(None for _ in range(count - len(arguments))))


def _kind(value: Any) -> str:
    """A JSON value's type, as JavaScript would say it."""
    names: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "a boolean"),
        ((int, float), "a number"),
        (str, "text"),
        (list, "a list"),
        (Mapping, "an object"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), "nothing")


def _quoted(value: Any) -> str:
    return repr(value) if isinstance(value, str) else _kind(value)
