"""Endpoints for tools: the tools of an assistant, and calls of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

import anyio
from starlette.responses import JSONResponse, Response, StreamingResponse

from groundhook.core.audience import TOOL_FAILED
from groundhook.core.errors import UnknownName, UsageError
from groundhook.core.json_lines import line
from groundhook.core.types.events import Event, ToolProgress
from groundhook.core.types.tools import ABOUT_THE_REQUEST, ToolErrorCode, ToolInfo, ToolOutcome
from groundhook.host.server.serving import Call

_STATUSES: Mapping[ToolErrorCode, int] = {
    "": 200,
    "wrong_arguments": 400,
    "not_permitted": 403,
    "unknown_tool": 404,
    "not_offered": 403,
    "not_found": 404,
    "rate_limited": 429,
    "service": 502,
    "failed": 502,
    "timeout": 504,
}


async def list_tools(call: Call) -> Response:
    """Return the tools that the caller may use."""
    return JSONResponse({"tools": [_describe(tool) for tool in await _offered_tools(call)]})


async def get_tool(call: Call) -> Response:
    """Return one tool, with the schemas of its arguments and its answer."""
    name = call.request.path_params["tool"]
    listed = await _offered_tools(call)
    for one in listed:
        if name in (one.name, one.canonical):
            return JSONResponse(_describe(one))
    raise UnknownName("tool", name[:80], ())


async def call_tool(call: Call) -> Response:
    """Call a tool with the body as its arguments. The call ends when the client leaves."""
    assistant = _read_assistant(call)
    arguments = await call.json()
    if not isinstance(arguments, dict):
        raise UsageError("the body must be the tool's arguments, a JSON object")
    name = call.request.path_params["tool"]
    host = call.serving.host
    call.admit_stream()
    await call.serving.limits.count("turns", call.caller.owner)
    if "text/event-stream" in call.request.headers.get("accept", ""):
        return StreamingResponse(
            _stream_call(call, name, arguments, assistant), media_type="text/event-stream"
        )
    run = partial(host.tool, name, arguments, identity=call.caller.identity, assistant=assistant)
    with call.stream():
        outcome = await call.unless_left(run)
    if outcome is None:
        return Response(status_code=204)  # the client has left; nobody reads this
    return Response(
        line(_answer_for(call, outcome)), _STATUSES[outcome.code], media_type="application/json"
    )


async def _stream_call(
    call: Call, name: str, arguments: Mapping[str, Any], assistant: str | None
) -> AsyncIterator[bytes]:
    """Call a tool, and yield its progress and its outcome as server-sent events."""
    sending, receiving = anyio.create_memory_object_stream[bytes](64)

    def send_progress(event: Event) -> None:
        if isinstance(event, ToolProgress) and not sending.statistics().current_buffer_used >= 64:
            sending.send_nowait(_encode_event("tool_progress", event))

    async def run_call() -> None:
        async with sending:
            outcome = await call.serving.host.tool(
                name,
                arguments,
                identity=call.caller.identity,
                assistant=assistant,
                events=send_progress,
            )
            await sending.send(_encode_event("tool_result", _answer_for(call, outcome)))

    with call.stream():
        async with anyio.create_task_group() as tasks, receiving:
            tasks.start_soon(run_call)
            async for part in receiving:
                yield part


def _encode_event(name: str, data: Any) -> bytes:
    return f"event: {name}\ndata: {line(data)}\n".encode()


async def _offered_tools(call: Call) -> list[ToolInfo]:
    return await call.serving.host.tools(
        identity=call.caller.identity, assistant=_read_assistant(call)
    )


def _read_assistant(call: Call) -> str | None:
    """Return the assistant that the request names. None means the tools of the app, which only
    callers with access to all assistants may use."""
    assistant = call.request.query_params.get("assistant")
    if assistant:
        call.serving.package(call.caller, assistant)
        return assistant
    if not call.caller.reaches_all:
        raise UsageError("assistant: name one, whose tools are listed and called")
    return None


def _describe(tool: ToolInfo) -> dict[str, Any]:
    return {
        "name": tool.name,
        "canonical": tool.canonical,
        "description": tool.description,
        "parameters": dict(tool.parameters),
        "output": None if tool.output is None else dict(tool.output),
        "reads_only": tool.reads_only,
    }


def _answer_for(call: Call, outcome: ToolOutcome) -> dict[str, Any]:
    answer = outcome.answer()
    if "author" not in call.caller.scopes:
        answer["warnings"] = []
        if outcome.error is not None and outcome.code not in ABOUT_THE_REQUEST:
            answer["error"] = answer["text"] = TOOL_FAILED
    return answer
