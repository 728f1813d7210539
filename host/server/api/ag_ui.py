"""The endpoint for front ends of AG-UI. Its conversation is that of the client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field
from starlette.types import ASGIApp

from groundhook.core.types.base import Few, Value
from groundhook.host.output.dialects.ag_ui import AGUI
from groundhook.host.server import request_body
from groundhook.host.server.api.contract import read_contract
from groundhook.host.server.api.conversation import ReadConversation
from groundhook.host.server.api.turns import Start, begin, stream, turn_headers
from groundhook.host.server.api.ui_chat import citation_style, file_part, ui_fold
from groundhook.host.server.problems import Refused, WrongRequest
from groundhook.host.server.request_body import AskedData, AskOptions
from groundhook.host.server.serving import Call
from groundhook.host.server.turns.sse import SSE, FoldWriter


class RunRequest(Value):
    """AG-UI's `RunAgentInput`."""

    threadId: str = Field(min_length=1, max_length=200, description="`ctx.chat_id` of hooks")  # noqa: N815
    runId: str = Field(min_length=1, max_length=200, description="Id of the run, in its events")  # noqa: N815
    messages: Few[tuple[dict[str, Any], ...]] = Field(description="The whole conversation")
    tools: Few[tuple[dict[str, Any], ...]] = Field(
        default=(), description="Functions of the page, beside the assistant's own tools"
    )
    context: Few[tuple[dict[str, Any], ...]] = Field(
        default=(), description="`{description, value}`: read as system messages"
    )
    forwardedProps: Any = Field(  # noqa: N815
        default=None, description="`{search, options, data}` as for the AI SDK"
    )


class Forwarded(Value):
    """The keys of `forwardedProps` that are read."""

    search: bool | None = None
    options: AskOptions = AskOptions()
    data: AskedData = AskedData()


async def ag_ui(call: Call) -> ASGIApp:
    """Run a turn as a run of AG-UI."""
    assistant, settings = str(call.request.path_params["assistant"]), call.serving.settings
    wanted, _ = request_body.validate_body(RunRequest, await call.json())
    forwarded, _ = request_body.validate_body(
        Forwarded, wanted.forwardedProps or {}, "forwardedProps"
    )
    style = citation_style(call)
    call.serving.check_options(call.caller, assistant, forwarded.options)
    contract = await read_contract(
        tools=[_as_tool(tool) for tool in wanted.tools],
        choice=None,
        stop=None,
        form=None,
        form_path="",
    )
    read = ReadConversation.of(_run_messages(wanted), settings.openai.system)
    messages = request_body.check_lengths(read.messages, settings.limits)
    if not any(message.role == "user" for message in messages):
        raise WrongRequest("messages: should have a question, of the role 'user'")
    options = request_body.turn_options(
        forwarded.options, forwarded.search, call.request, settings, call.address
    )
    call.admit_stream()  # before the turn begins
    start = Start(
        caller=call.caller,
        assistant_id=assistant,
        messages=request_body.with_sources(messages, forwarded.data.sources),
        options=options.model_copy(update={"chat_id": wanted.threadId}),
        contract=contract,
        linger_s=0,  # `abortRun` is only a disconnect
    )
    running = await begin(call.serving, start)
    fold = AGUI(ui=ui_fold(call, assistant, style), thread_id=wanted.threadId, run_id=wanted.runId)
    writer = FoldWriter(fold, call.audience())
    return stream(call, running, 0, writer, SSE, turn_headers(call, running))


def _as_tool(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a tool of AG-UI as chat completions have it."""
    kept = {key: tool[key] for key in ("name", "description", "parameters") if key in tool}
    return {"type": "function", "function": kept}


def _run_messages(wanted: RunRequest) -> list[Mapping[str, Any]]:
    """Return the messages of a run as those of chat completions."""
    made: list[Mapping[str, Any]] = []
    for n, each in enumerate(wanted.context):
        if not isinstance(each.get("value"), str):
            raise WrongRequest(f"context[{n}].value: should be text")
        made.append({"role": "system", "content": f"{each.get('description')}: {each['value']}"})
    for n, each in enumerate(wanted.messages):
        role, content = each.get("role"), each.get("content")
        if role in ("activity", "reasoning"):
            continue  # what the page was sent beside the answer
        if isinstance(content, list):
            content = _run_content(content, f"messages[{n}].content")
        message = {"role": role, "content": content}
        if each.get("toolCalls"):
            message["tool_calls"] = each["toolCalls"]
        if role == "tool":
            message["tool_call_id"] = each.get("toolCallId")
        made.append(message)
    return _without_own_calls(made, {str(tool.get("name")) for tool in wanted.tools})


def _without_own_calls(
    messages: Sequence[Mapping[str, Any]], names: set[str]
) -> list[Mapping[str, Any]]:
    """Return the messages without calls of the assistant's own tools, which a page sends back with
    their results: the turn that made them has answered from them."""
    made: list[Mapping[str, Any]] = []
    dropped: set[Any] = set()
    for each in messages:
        calls = each.get("tool_calls")
        if isinstance(calls, list):
            mine = [call for call in calls if _name_of(call) in names]
            dropped |= {_id_of(call) for call in calls if _name_of(call) not in names}
            each = {**each, "tool_calls": mine}
            if not mine and not each.get("content"):
                continue
        if each.get("role") == "tool" and str(each.get("tool_call_id")) in dropped:
            continue
        made.append(each)
    return made


def _name_of(call: Any) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    return str(function.get("name")) if isinstance(function, Mapping) else ""


def _id_of(call: Any) -> str:
    return str(call.get("id")) if isinstance(call, Mapping) else ""


def _run_content(parts: Sequence[Any], path: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for n, part in enumerate(parts):
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "text":
            made.append({"type": "text", "text": part.get("text")})
        elif kind in ("image", "document"):
            source = part.get("source")
            value = source.get("value") if isinstance(source, Mapping) else None
            if not isinstance(source, Mapping) or not isinstance(value, str):
                raise WrongRequest(f"{path}[{n}].source: should have a value")
            media = str(source.get("mimeType") or "")
            url = f"data:{media};base64,{value}" if source.get("type") == "data" else value
            media = "image/" if kind == "image" else media
            made.append(file_part({"url": url, "mediaType": media}, f"{path}[{n}]"))
        else:
            raise Refused(
                "unsupported_value",
                f"{path}[{n}].type: offered are 'text', 'image' and 'document'",
            )
    return made
