"""Endpoints for front ends: the AI SDK's chat (`useChat`), with its resume and stop, and AG-UI.

A chat of the AI SDK is kept under the id that the page chose. Of the messages that a page sends,
only the last question is read then: the history is the store's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast, get_args

from pydantic import Field
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from groundhook.core.errors import UnknownName
from groundhook.core.server_settings import CitationStyle
from groundhook.core.types.base import Few, Value
from groundhook.core.types.chats import ChatMessage, ChatOwner
from groundhook.core.types.events import Event
from groundhook.core.types.turn import Message, TurnOptions
from groundhook.host.app.host import Host
from groundhook.host.app.open_chat import OpenChat
from groundhook.host.output.dialects.ag_ui import AGUI
from groundhook.host.output.dialects.openai_chat import OpenAIChat
from groundhook.host.output.dialects.ui_stream import UIStream
from groundhook.host.server import request_body
from groundhook.host.server.api.contract import read_contract
from groundhook.host.server.api.conversation import ReadConversation
from groundhook.host.server.api.turns import Start, begin, stream, turn_headers
from groundhook.host.server.problems import Refused, WrongRequest
from groundhook.host.server.request_body import AskedData, AskOptions
from groundhook.host.server.serving import Call
from groundhook.host.server.turns.kept_turns import is_read_elsewhere
from groundhook.host.server.turns.running import ServerTurn, TurnLog, TurnParameters
from groundhook.host.server.turns.sse import SSE, FoldWriter

UI_STREAM = {"x-vercel-ai-ui-message-stream": "v1"}


class UIChatRequest(Value):
    """What `DefaultChatTransport` of the AI SDK sends, with options of this server's own."""

    id: str = Field(default="", max_length=100, description="Id of the chat, as the page chose it")
    messages: Few[tuple[dict[str, Any], ...]] = Field(
        description="The page's messages: `{id, role, parts}`"
    )
    trigger: Literal["submit-message", "regenerate-message"] = Field(
        default="submit-message", description="A question, or another answer"
    )
    messageId: str | None = Field(  # noqa: N815
        default=None,
        max_length=100,
        description="The question that is replaced, or the answer that is regenerated",
    )
    search: bool | None = Field(default=None, description=request_body.SEARCH)
    options: AskOptions = Field(default=AskOptions(), description=request_body.OPTIONS)
    data: AskedData = Field(default=AskedData(), description=request_body.DATA)


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


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A request of the AI SDK that was read. `after` is the id of the page's last answer before the
    question ("": none), `page` its messages."""

    assistant_id: str
    chat_id: str
    again: bool
    message_id: str
    after: str
    question: Message | None
    options: TurnOptions
    page: tuple[Message, ...]


# ---- the AI SDK


async def ui_chat(call: Call) -> ASGIApp:
    """Run a turn as a UI message stream of the AI SDK."""
    wanted = request_body.validate_strictly(UIChatRequest, await call.json())
    style = _style(call)
    asked = _read(call, wanted)
    call.admit_stream()  # before the turn begins
    kept = bool(asked.chat_id) and _keeps(call)
    running = await (_begin_kept if kept else _begin_alone)(call, asked)
    return _ui_stream(call, running, asked.assistant_id, style)


async def ui_resume(call: Call) -> ASGIApp:
    """Return the stream of the turn of a chat that is under way, from its beginning; 204 if none
    is."""
    assistant, chat = _names(call)
    style = _style(call)
    running = await _running(call, chat)
    if running is None:
        return Response(status_code=204)
    return _ui_stream(call, running, assistant, style)


async def ui_stop(call: Call) -> Response:
    """Stop the turn of a chat that is under way; its text so far remains."""
    _, chat = _names(call)
    running = await _running(call, chat)
    stopped = running is not None and await running.ask_to_stop()
    named = {"turn_id": running.turn_id} if running is not None else {}
    return JSONResponse({**named, "stopped": stopped}, 202 if stopped else 200)


def _names(call: Call) -> tuple[str, str]:
    """Return the assistant and the chat of an address. Raises UnknownName."""
    assistant, chat = (str(call.request.path_params[name]) for name in ("assistant", "chat"))
    call.serving.package(call.caller, assistant)
    return assistant, chat


async def _running(call: Call, chat: str) -> TurnLog | None:
    """Return the turn of a chat of the caller that is under way."""
    if not _keeps(call):
        return None
    owner = ChatOwner.of(call.caller.identity)
    try:
        turn = await call.serving.host.chats.conversations.running(owner, chat)
        running = await call.turn(turn.id) if turn else None
    except UnknownName:  # an id that no chat has yet, or a turn that has just ended
        return None
    return None if running is None or running.over else running


def _ui_stream(call: Call, running: TurnLog, assistant: str, style: CitationStyle) -> ASGIApp:
    headers = {**UI_STREAM, **turn_headers(call, running)}
    writer = FoldWriter(_fold(call, assistant, style), call.audience())
    return stream(call, running, 0, writer, SSE, headers)


def _fold(call: Call, assistant: str, style: CitationStyle) -> UIStream:
    chat = OpenAIChat(
        id="", model=assistant, created=0, public_url=call.public_url, citations=style, usage=True
    )
    return UIStream(chat=chat)


def _style(call: Call) -> CitationStyle:
    """Return how citations are shown. Raises WrongRequest."""
    settings = call.serving.settings
    given = call.request.query_params.get("citations", "")
    if given and given not in get_args(CitationStyle):
        raise WrongRequest(f"citations: should be one of {', '.join(get_args(CitationStyle))}")
    return cast(CitationStyle, given) or call.caller.citations or settings.openai.citations


def _keeps(call: Call) -> bool:
    """Return whether chats of the caller are kept."""
    return (
        call.serving.has("chats")
        and "chats" in call.caller.scopes
        and bool(call.caller.identity.user_id)
    )


def _read(call: Call, wanted: UIChatRequest) -> _Asked:
    """Return a request as it is asked. Raises UsageError, UnknownName."""
    serving, assistant = call.serving, str(call.request.path_params["assistant"])
    serving.check_options(call.caller, assistant, wanted.options)
    settings = serving.settings
    listed = wanted.messages
    if wanted.trigger == "regenerate-message" and listed and listed[-1].get("role") == "assistant":
        listed = listed[:-1]
    page = _page_messages(listed)
    question = page[-1] if page and page[-1].role == "user" else None
    if question is None and wanted.trigger == "submit-message":
        raise WrongRequest("messages: the last one should be a question, of the role 'user'")
    if page:
        page = request_body.with_sources(
            request_body.check_lengths(page, settings.limits), wanted.data.sources
        )
    answers = [each for each in listed if each.get("role") == "assistant"]
    return _Asked(
        assistant_id=assistant,
        chat_id=wanted.id,
        again=wanted.trigger == "regenerate-message",
        message_id=wanted.messageId or "",
        after=str(answers[-1].get("id") or "")[:100] if answers else "",
        question=page[-1] if question else None,
        options=request_body.turn_options(
            wanted.options, wanted.search, call.request, settings, call.address
        ),
        page=page,
    )


def _page_messages(given: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    """Return the messages of a page. Those of the role `system`, and answers without text, are not
    read. Raises WrongRequest."""
    made: list[Message] = []
    for n, each in enumerate(given):
        role, parts = each.get("role"), each.get("parts")
        if role not in ("user", "assistant", "system"):
            raise WrongRequest(f"messages[{n}].role: should be 'user' or 'assistant'")
        if not isinstance(parts, list):
            raise WrongRequest(f"messages[{n}].parts: should be a list of parts")
        content = _as_content(parts, f"messages[{n}].parts", files=role == "user")
        if role == "system" or (role == "assistant" and not content):
            continue
        fields = {"role": role, "content": content}
        message, _ = request_body.validate_body(Message, fields, f"messages[{n}]")
        made.append(message)
    return tuple(made)


def _as_content(parts: Sequence[Any], path: str, *, files: bool) -> str | list[dict[str, Any]]:
    """Return the text of the parts, with their files if there are any. Parts of other types are the
    page's memory of what it was sent."""
    made: list[dict[str, Any]] = []
    for n, part in enumerate(parts):
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "text":
            if not isinstance(part.get("text"), str):
                raise WrongRequest(f"{path}[{n}].text: should be text")
            made.append({"type": "text", "text": part["text"]})
        elif kind == "file" and files:
            made.append(_as_file(part, f"{path}[{n}]"))
    if all(part["type"] == "text" for part in made):
        return "".join(part["text"] for part in made)
    return made


def _as_file(part: Mapping[str, Any], path: str) -> dict[str, Any]:
    url, kind = part.get("url"), str(part.get("mediaType", ""))
    if not isinstance(url, str):
        raise WrongRequest(f"{path}.url: should be text, a data URL")
    if kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    name = str(part.get("filename") or "file")
    return {"type": "file", "file": {"filename": name, "file_data": url}}


async def _begin_alone(call: Call, asked: _Asked) -> ServerTurn:
    """Begin a turn that is not kept, from the messages of the page."""
    if asked.question is None:
        raise WrongRequest("messages: the last one should be a question, of the role 'user'")
    start = Start(
        caller=call.caller,
        assistant_id=asked.assistant_id,
        messages=asked.page,
        options=asked.options,
        linger_s=0,  # nobody can come back to it
    )
    return await begin(call.serving, start)


async def _begin_kept(call: Call, asked: _Asked) -> ServerTurn:
    serving, caller = call.serving, call.caller
    owner = ChatOwner.of(caller.identity)

    @asynccontextmanager
    async def enter(host: Host) -> AsyncIterator[AsyncIterator[Event]]:
        async with (
            host.chat(
                asked.assistant_id, identity=caller.identity, chat_id=asked.chat_id, create=True
            ) as chat,
            await _turn(host, owner, chat, asked) as events,
        ):
            yield events

    ask = TurnParameters(
        owner=caller.owner,
        assistant_id=asked.assistant_id,
        leaving="continue",  # a page that leaves comes back, or stops the turn itself
        read_elsewhere=partial(is_read_elsewhere, serving.host, owner),
    )
    return await serving.begin(caller, ask, enter)


async def _turn(
    host: Host, owner: ChatOwner, chat: OpenChat, asked: _Asked
) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
    """Return the turn of a chat that a page asks for. The page knows the store's ids of answers,
    and has its own of questions: a question is found by the answer before it."""
    path = await chat.messages()
    after = await _known(host, owner, chat, asked.after)
    if asked.again or (asked.message_id and path):
        if asked.again and any(each.id == asked.message_id for each in path):
            return chat.regenerate(asked.message_id, options=asked.options)
        replaced = _question_after(path, after)
        if replaced and asked.again:
            return chat.regenerate(replaced, options=asked.options)
        if replaced and asked.question:
            return chat.edit(replaced, asked.question, options=asked.options)
    if asked.question is None:
        raise WrongRequest("messages: the last one should be a question, of the role 'user'")
    return chat.send(asked.question, after=after, options=asked.options)


async def _known(host: Host, owner: ChatOwner, chat: OpenChat, id: str) -> str:
    """Return the id of a message if the chat has it."""
    if not id or not chat.is_kept:
        return ""
    try:
        found = await host.chats.conversations.message(owner, id)
    except UnknownName:  # of an answer that the page has made itself
        return ""
    return found.id if found.chat_id == chat.id else ""


def _question_after(path: Sequence[ChatMessage], answer: str) -> str:
    """Return the id of the question behind an answer (""; the first one), or "" without one."""
    return next((each.id for each in path if each.role == "user" and each.parent == answer), "")


# ---- AG-UI


async def ag_ui(call: Call) -> ASGIApp:
    """Run a turn as a run of AG-UI."""
    assistant, settings = str(call.request.path_params["assistant"]), call.serving.settings
    wanted, _ = request_body.validate_body(RunRequest, await call.json())
    forwarded, _ = request_body.validate_body(
        Forwarded, wanted.forwardedProps or {}, "forwardedProps"
    )
    style = _style(call)
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
    fold = AGUI(ui=_fold(call, assistant, style), thread_id=wanted.threadId, run_id=wanted.runId)
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
            made.append(_as_file({"url": url, "mediaType": media}, f"{path}[{n}]"))
        else:
            raise Refused(
                "unsupported_value",
                f"{path}[{n}].type: offered are 'text', 'image' and 'document'",
            )
    return made
