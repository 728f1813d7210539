"""Endpoints for pages of the AI SDK (`useChat`): its chat, with resume and stop.

A chat is kept under the id that the page chose. Of the messages that a page sends,
only the last question is read then: the history is the store's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
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
from groundhook.host.output.dialects.literal import without_citations
from groundhook.host.output.dialects.openai_chat import OpenAIChat
from groundhook.host.output.dialects.ui_stream import UIStream
from groundhook.host.server import request_body
from groundhook.host.server.api.turns import Start, begin, begin_in_chat, stream, turn_headers
from groundhook.host.server.problems import WrongRequest
from groundhook.host.server.request_body import AskedData, AskOptions
from groundhook.host.server.serving import Call
from groundhook.host.server.turns.running import ServerTurn, TurnLog
from groundhook.host.server.turns.sse import SSE, FoldWriter

LONGEST_REASON = 1000
NOTHING: Mapping[str, bool] = {}
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


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A request of the AI SDK that was read. `decided` are calls of the answer `after` that the
    user has decided about. `after` is the id of the page's last answer before the
    question ("": none), `page` its messages."""

    assistant_id: str
    chat_id: str
    decided: Mapping[str, bool]
    reason: str
    again: bool
    message_id: str
    after: str
    question: Message | None
    options: TurnOptions
    page: tuple[Message, ...]


async def ui_chat(call: Call) -> ASGIApp:
    """Run a turn as a UI message stream of the AI SDK."""
    wanted = request_body.validate_strictly(UIChatRequest, await call.json())
    style = citation_style(call)
    asked = _read(call, wanted)
    call.admit_stream()  # before the turn begins
    kept = bool(asked.chat_id) and _keeps(call)
    running = await (_begin_kept if kept else _begin_alone)(call, asked)
    return _ui_stream(call, running, asked.assistant_id, style, decided=asked.decided)


async def ui_resume(call: Call) -> ASGIApp:
    """Return the stream of the turn of a chat that is under way, from its beginning; 204 if none
    is."""
    assistant, chat = _names(call)
    style = citation_style(call)
    running = await _running(call, chat)
    if running is None:
        return Response(status_code=204)
    decided = await _decisions_of(call, running.turn_id)
    return _ui_stream(call, running, assistant, style, decided=decided)


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


async def _decisions_of(call: Call, turn_id: str) -> dict[str, bool]:
    """Return the decisions about calls that a turn of the caller continues."""
    conversations, owner = call.serving.host.chats.conversations, ChatOwner.of(call.caller.identity)
    turn = await conversations.turn(owner, turn_id)
    question = await conversations.message(owner, turn.question_id)
    return {each.call_id: each.approved for each in question.decisions}


def _ui_stream(
    call: Call,
    running: TurnLog,
    assistant: str,
    style: CitationStyle,
    *,
    decided: Mapping[str, bool] = NOTHING,
) -> ASGIApp:
    headers = {**UI_STREAM, **turn_headers(call, running)}
    fold = replace(ui_fold(call, assistant, style), decided=decided)
    return stream(call, running, 0, FoldWriter(fold, call.audience()), SSE, headers)


def ui_fold(call: Call, assistant: str, style: CitationStyle) -> UIStream:
    chat = OpenAIChat(
        id="", model=assistant, created=0, public_url=call.public_url, citations=style, usage=True
    )
    return UIStream(chat=chat)


def citation_style(call: Call) -> CitationStyle:
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
    listed, again = wanted.messages, wanted.trigger == "regenerate-message"
    if again and listed and listed[-1].get("role") == "assistant":
        listed = listed[:-1]
    page = _page_messages(listed)
    if page:
        page = request_body.check_lengths(page, settings.limits)
    question = page[-1] if page and page[-1].role == "user" else None
    decided, reason = _decided(listed)
    if question is not None:
        page = request_body.with_sources(page, wanted.data.sources)
    elif not decided and not again:
        raise WrongRequest("messages: the last one should be a question, of the role 'user'")
    return _Asked(
        assistant_id=assistant,
        chat_id=wanted.id,
        decided=decided,
        reason=reason,
        again=again,
        message_id=wanted.messageId or "",
        after=_last_answer(listed),
        question=page[-1] if question else None,
        options=request_body.turn_options(
            wanted.options, wanted.search, call.request, settings, call.address
        ),
        page=page,
    )


def _last_answer(given: Sequence[Mapping[str, Any]]) -> str:
    """Return the id of the last answer of a page, or ""."""
    answers = [each for each in given if each.get("role") == "assistant"]
    return str(answers[-1].get("id") or "")[:100] if answers else ""


def _decided(given: Sequence[Mapping[str, Any]]) -> tuple[dict[str, bool], str]:
    """Return the decisions in the last message of a page, an answer whose calls it shows, and what
    the user says about them."""
    last = given[-1] if given else {}
    parts = last.get("parts")
    if last.get("role") != "assistant" or not isinstance(parts, list):
        return {}, ""
    decided: dict[str, bool] = {}
    reasons: list[str] = []
    for part in parts:
        approval = part.get("approval") if isinstance(part, Mapping) else None
        if not isinstance(approval, Mapping) or part.get("state") != "approval-responded":
            continue
        decided[str(part.get("toolCallId"))] = approval.get("approved") is True
        if isinstance(reason := approval.get("reason"), str) and reason:
            reasons.append(reason[:LONGEST_REASON])
    return decided, "; ".join(dict.fromkeys(reasons))


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
        if role == "assistant":  # models imitate the numbers that they read
            content = without_citations(content)
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
            made.append(file_part(part, f"{path}[{n}]"))
    if all(part["type"] == "text" for part in made):
        return "".join(part["text"] for part in made)
    return made


def file_part(part: Mapping[str, Any], path: str) -> dict[str, Any]:
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
    @asynccontextmanager
    async def send(chat: OpenChat) -> AsyncIterator[AsyncIterator[Event]]:
        owner = ChatOwner.of(call.caller.identity)
        async with await _turn(call.serving.host, owner, chat, asked) as events:
            yield events

    # A page that leaves comes back, or stops the turn itself.
    return await begin_in_chat(
        call, asked.assistant_id, asked.chat_id, send, create=True, leaving="continue"
    )


async def _turn(
    host: Host, owner: ChatOwner, chat: OpenChat, asked: _Asked
) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
    """Return the turn of a chat that a page asks for. The page knows the store's ids of answers,
    and has its own of questions: a question is found by the answer before it."""
    path = await chat.messages()
    if asked.decided:
        answer = _asking(path, asked.decided) or asked.after
        return chat.decide(
            asked.decided, message=answer, reason=asked.reason, options=asked.options
        )
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
    if found.chat_id != chat.id:
        return ""
    if found.answer and found.answer.pending:  # the page has added to it what came behind
        return await host.chats.conversations.newest_after(owner, chat.id, found.id)
    return found.id


def _asking(path: Sequence[ChatMessage], calls: Mapping[str, bool]) -> str:
    """Return the id of the answer with these calls: a page's message may hold several answers."""
    for each in path:
        pending = each.answer.pending if each.answer else ()
        if calls.keys() <= {call.call_id for call in pending}:
            return each.id
    return ""


def _question_after(path: Sequence[ChatMessage], answer: str) -> str:
    """Return the id of the question behind an answer (""; the first one), or "" without one."""
    return next((each.id for each in path if each.role == "user" and each.parent == answer), "")
