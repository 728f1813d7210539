"""`ctx.mcp`: the MCP servers that the assistant lists.

A single request throws when the server cannot be reached or refuses; the failure of a tool is
`error` on its answer. Of several calls, each failure is `error` in its place. A call may have
effects outside, so it is never repeated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pydantic import ValidationError

from groundhook.core.errors import ServerTimeout, UsageError
from groundhook.core.hook_services import HookServices
from groundhook.core.types.base import UnknownKey, dotted, validate_known, validation_problems
from groundhook.core.types.servers import ServerCalling, ServerMethod, ToolAsk
from groundhook.hooks.api.row import HostCall, RunCall, kind_of, pad, quote

MOST_TOGETHER = 50  # calls at once: each is a task of the host

# the call's name, the arguments after the server
Params = Callable[[str, Sequence[Any]], Mapping[str, Any]]


# -------------------------------------------------------------------------------------- one request


def _request(method: ServerMethod, params: Params) -> RunCall:
    async def run(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
        (server,) = pad(arguments, 1)
        request = params(call.js, arguments[1:])
        return _to_json(
            await services.servers.ask(
                _require_text(call.js, "the server's id", server), method, request
            )
        )

    return run


def _make_no_params(_js: str, _arguments: Sequence[Any]) -> Mapping[str, Any]:
    return {}


def _parse_uri(js: str, arguments: Sequence[Any]) -> Mapping[str, Any]:
    (uri,) = pad(arguments, 1)
    return {"uri": _require_text(js, "the resource's uri", uri)}


def _parse_name(what: str) -> Params:
    def params(js: str, arguments: Sequence[Any]) -> Mapping[str, Any]:
        name, given = pad(arguments, 2)
        return {
            "name": _require_text(js, f"the {what}'s name", name),
            "arguments": _require_object(js, given),
        }

    return params


def _raise_timeout(js: str, _arguments: Sequence[Any], message: str) -> str:
    """Raise the error of a single request that took too long, as for one that is refused."""
    raise ServerTimeout(f"{js}: {message}")


# ------------------------------------------------------------------------------------ several calls


def _call_together(calling: ServerCalling, *, of_one: bool) -> RunCall:
    async def run(call: HostCall, services: HookServices, arguments: Sequence[Any]) -> str:
        asks, unknown = _parse_calls(call.js, arguments, of_one=of_one)
        for where, key in unknown:
            await services.warn("unknown_option", f"{where}: {key}")
        return _to_json(await services.servers.call_many(asks, calling))

    return run


def _answer_late(
    js: str, arguments: Sequence[Any], message: str, *, of_one: bool, alone: bool
) -> str:
    asks, _ = _parse_calls(js, arguments, of_one=of_one)
    answers = [{"server": ask.server, "tool": ask.tool, "error": message} for ask in asks]
    return _to_json(answers[:1] if alone else answers)


def _parse_calls(
    js: str, arguments: Sequence[Any], *, of_one: bool
) -> tuple[list[ToolAsk], list[tuple[str, UnknownKey]]]:
    """Return the calls and the unknown keys. Raises UsageError. `of_one`: the first argument is the
    server of all calls."""
    server, calls = pad(arguments, 2) if of_one else ("", *pad(arguments, 1))
    if of_one:
        _require_text(js, "the server's id", server)
    shape = "{tool, arguments}" if of_one else "{server, tool, arguments}"
    if not isinstance(calls, list):
        raise UsageError(f"{js}: the calls must be a list of {shape}, not {kind_of(calls)}")
    if len(calls) > MOST_TOGETHER:
        raise UsageError(f"{js}: at most {MOST_TOGETHER} calls at once, not {len(calls)}")
    asks: list[ToolAsk] = []
    unknown: list[tuple[str, UnknownKey]] = []
    for index, entry in enumerate(calls):
        where = f"{js}: calls[{index}]"
        if not isinstance(entry, Mapping):
            raise UsageError(f"{where} must be an object {shape}, not {kind_of(entry)}")
        ask, strays = _parse_call(where, entry)
        if of_one:
            ask = ask.model_copy(update={"server": server})
        elif not ask.server:
            raise UsageError(f"{where}: server is missing")
        asks.append(ask)
        unknown += [(where, stray) for stray in strays]
    return asks, unknown


def _parse_call(where: str, entry: Mapping[str, Any]) -> tuple[ToolAsk, list[UnknownKey]]:
    # A key that a hook sets to null is one that it leaves out.
    fields = {key: value for key, value in entry.items() if value is not None}
    try:
        return validate_known(ToolAsk, fields)
    except ValidationError as exc:
        path, message = validation_problems(exc)[0]
        raise UsageError(f"{where}: {dotted(path)}: {message}") from exc


# ---------------------------------------------------------------------------------------- arguments


def _require_text(js: str, what: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{js}: {what} must be text that is not empty, not {quote(value)}")
    return value


def _require_object(js: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping | None):
        raise UsageError(f"{js}: arguments must be an object, not {kind_of(value)}")
    return value or {}


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# ----------------------------------------------------------------------------------------- the rows

_TYPES = """\
/** A part of an MCP server's answer: text, an image, a resource. */
export interface ContentBlock {
  type: string;
  text?: string;
  data?: string;
  mimeType?: string;
  [key: string]: any;
}
"""
_ANSWER = """\
/** The answer of a tool of an MCP server. `result` is the answer as one value; `error` is set when
 * the tool failed. */
export interface ToolAnswer {
  content?: ContentBlock[];
  structuredContent?: any;
  result?: any;
  isError?: boolean;
  error?: string;
  /** Of several calls: which one it was. */
  server?: string;
  tool?: string;
}
"""
_CALL = """\
export interface ToolRequest {
  tool: string;
  arguments?: Record<string, any>;
}
"""
_TOOL = """\
export interface ServerTool {
  name: string;
  title?: string;
  description?: string;
  inputSchema: Record<string, any>;
  outputSchema?: Record<string, any>;
  annotations?: Record<string, any>;
}
"""
_OTHERS = """\
export interface ServerResource {
  uri: string;
  name: string;
  description?: string;
  mimeType?: string;
  [key: string]: any;
}
"""
_PROMPTS = """\
export interface ServerPrompt {
  name: string;
  description?: string;
  arguments?: { name: string; description?: string; required?: boolean }[];
  [key: string]: any;
}
"""
_READ = "{ uri: string; mimeType?: string; text?: string; blob?: string }[]"
_GIVEN = "{ description?: string; messages: { role: string; content: ContentBlock }[] }"
_TOGETHER: tuple[tuple[str, ServerCalling, str], ...] = (
    (
        "All",
        "all",
        "Call tools of several MCP servers at once; return every answer, in the order of the"
        " calls.",
    ),
    (
        "Any",
        "any",
        "Call tools of several MCP servers at once; return the first answer without an error, in a"
        " list.",
    ),
    (
        "Race",
        "race",
        "Call tools of several MCP servers at once; return the first answer, in a list.",
    ),
)


def _make_row(
    name: str,
    doc: str,
    method: ServerMethod,
    params: Params,
    ts: str,
    types: str,
    *,
    effect: bool = False,
) -> HostCall:
    js = f"ctx.mcp.{name}"
    run = _request(method, params)
    return HostCall(
        js=js,
        doc=doc,
        run=run,
        ts=ts,
        types=types,
        effect=effect,
        answer_late=partial(_raise_timeout, js),
    )


def _make_together_row(name: str, doc: str, calling: ServerCalling, *, of_one: bool) -> HostCall:
    js = f"ctx.mcp.{name}"
    return HostCall(
        js=js,
        doc=doc,
        run=_call_together(calling, of_one=of_one),
        ts=(
            "(server: ServerName, calls: ToolRequest[]): ToolAnswer[]"
            if of_one
            else "(calls: ({ server: ServerName } & ToolRequest)[]): ToolAnswer[]"
        ),
        types=_CALL,
        answer_late=partial(_answer_late, js, of_one=of_one, alone=calling in ("any", "race")),
        effect=True,
    )


ROWS: tuple[HostCall, ...] = (
    _make_row(
        "ListTools",
        "Return the tools of an MCP server that the assistant may use.",
        "tools/list",
        _make_no_params,
        "(server: ServerName): { tools: ServerTool[] }",
        _TOOL,
    ),
    _make_row(
        "CallTool",
        "Call a tool of an MCP server; return its answer.",
        "tools/call",
        _parse_name("tool"),
        "(server: ServerName, tool: string, arguments?: Record<string, any>): ToolAnswer",
        _ANSWER,
        effect=True,
    ),
    _make_together_row(
        "CallTools",
        "Call several tools of an MCP server, one after the other; return every answer.",
        "in_order",
        of_one=True,
    ),
    _make_together_row(
        "CallToolsParallel",
        "Call several tools of an MCP server at once; return every answer, in the order of the"
        " calls.",
        "all",
        of_one=True,
    ),
    _make_row(
        "ListResources",
        "Return the resources of an MCP server.",
        "resources/list",
        _make_no_params,
        "(server: ServerName): { resources: ServerResource[] }",
        _OTHERS,
    ),
    _make_row(
        "ReadResource",
        "Read a resource of an MCP server; return its contents.",
        "resources/read",
        _parse_uri,
        f"(server: ServerName, uri: string): {{ contents: {_READ} }}",
        _TYPES,
    ),
    _make_row(
        "ListPrompts",
        "Return the prompts of an MCP server.",
        "prompts/list",
        _make_no_params,
        "(server: ServerName): { prompts: ServerPrompt[] }",
        _PROMPTS,
    ),
    _make_row(
        "GetPrompt",
        "Fill in a prompt of an MCP server; return its messages.",
        "prompts/get",
        _parse_name("prompt"),
        f"(server: ServerName, name: string, arguments?: Record<string, any>): {_GIVEN}",
        _TYPES,
    ),
    *(_make_together_row(name, doc, calling, of_one=False) for name, calling, doc in _TOGETHER),
)
