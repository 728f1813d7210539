"""The endpoint for front ends of AG-UI. Its conversation is that of the client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from pydantic import Field
from starlette.types import ASGIApp

from groundhook.core.types.base import Few, Value
from groundhook.host.output.dialects.ag_ui import AGUI, result_id
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
        function="",
    )
    given, paths = _run_messages(wanted, await _own_calls(call, assistant, wanted))
    read = ReadConversation.of(given, settings.openai.system, items=paths, result_key="toolCallId")
    messages = request_body.check_lengths(read.messages, settings.limits, paths=read.paths)
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


_Read = tuple[dict[str, Any], tuple[str, ...]]  # a message, and the paths of it and its calls


def _run_messages(
    wanted: RunRequest, own: Set[str]
) -> tuple[list[dict[str, Any]], list[tuple[str, ...]]]:
    """Return the messages of a run as those of chat completions, without the calls `own`, and the
    paths of each: its own, and those of its calls."""
    made: list[_Read] = []
    for n, each in enumerate(wanted.context):
        if not isinstance(each.get("value"), str):
            raise WrongRequest(f"context[{n}].value: should be text")
        content = f"{each.get('description')}: {each['value']}"
        made.append(({"role": "system", "content": content}, (f"context[{n}]",)))
    for n, each in enumerate(wanted.messages):
        # What the page was sent beside the answer, and results of own calls.
        if each.get("role") in ("activity", "reasoning") or str(each.get("toolCallId")) in own:
            continue
        if read := _run_message(each, f"messages[{n}]", own):
            made.append(read)
    return [message for message, _ in made], [paths for _, paths in made]


def _run_message(given: Mapping[str, Any], where: str, own: Set[str]) -> _Read | None:
    """Return a message; None for one that consists of own calls."""
    content, listed = given.get("content"), _calls_of(given)
    calls = {f"{where}.toolCalls[{n}]": each for n, each in enumerate(listed)}
    calls = {path: each for path, each in calls.items() if _id_of(each) not in own}
    if listed and not calls and not content:
        return None
    if isinstance(content, list):
        content = _run_content(content, f"{where}.content")
    message: dict[str, Any] = {"role": given.get("role"), "content": content}
    if calls:
        message["tool_calls"] = [*calls.values()]
    if given.get("role") == "tool":
        message["tool_call_id"] = given.get("toolCallId")
    return message, (where, *calls)


async def _own_calls(call: Call, assistant: str, wanted: RunRequest) -> Set[str]:
    """Return the ids of calls of the assistant's own tools, which a page sends back: the turn that
    made them has answered from their results. They have the result that this server has sent, or
    none, if the page has left."""
    results = {str(each.get("toolCallId")): each.get("id") for each in wanted.messages}
    offered = {str(tool.get("name")) for tool in wanted.tools}
    others = [
        each
        for message in wanted.messages
        for each in _calls_of(message)
        if _name_of(each) not in offered
    ]
    own = {_id_of(each) for each in others if results.get(_id_of(each)) == result_id(_id_of(each))}
    left = [each for each in others if _id_of(each) not in own]
    if left:
        found = await call.serving.host.tools(identity=call.caller.identity, assistant=assistant)
        names = {tool.name for tool in found}
        own |= {_id_of(each) for each in left if _name_of(each) in names}
    return own


def _calls_of(message: Mapping[str, Any]) -> list[Any]:
    calls = message.get("toolCalls") or []
    return calls if isinstance(calls, list) else [calls]


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
