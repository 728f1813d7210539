"""Endpoints of stored chats: list, read, ask, edit, regenerate, export, rate. A chat belongs to the
user who created it, within the tenant."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

from anyio import to_thread
from anyio.lowlevel import checkpoint
from pydantic import Field
from starlette.responses import Response
from starlette.types import ASGIApp

from groundhook.core.errors import HostError, UsageError
from groundhook.core.json_lines import as_json, line
from groundhook.core.types.base import FEW, Few, Value
from groundhook.core.types.chats import Chat, ChatMessage, ChatOwner, Feedback, KeptAnswer
from groundhook.core.types.events import Event
from groundhook.core.types.turn import Message, TurnOptions
from groundhook.host.app.open_chat import OpenChat
from groundhook.host.app.turn_recorder import milliseconds
from groundhook.host.chats.ports import ChatChange, ChatPage, RequestKey, chat_id
from groundhook.host.output.dialects import markdown
from groundhook.host.output.dialects.audience import Audience
from groundhook.host.output.dialects.blocks import plain_block, written
from groundhook.host.output.dialects.kept import events_of, kept
from groundhook.host.server import request_body
from groundhook.host.server.api.turns import answer, begin_in_chat, wants_blocks
from groundhook.host.server.problems import Refused
from groundhook.host.server.request_body import AskedData, AskOptions
from groundhook.host.server.serving import Call
from groundhook.host.server.turns.blocks_writer import parsed_of
from groundhook.host.server.turns.idempotency import digest_of
from groundhook.host.server.turns.kept_turns import requested_turn
from groundhook.host.server.turns.running import OnDisconnect

_Send = Callable[[OpenChat], AbstractAsyncContextManager[AsyncIterator[Event]]]

LONGEST_TITLE = 200
MOST_LISTED = 200
MOST_BLOCK_BYTES = 4 << 20  # of the messages of one answer; a hundred ordinary ones have a half MB
# Pictures that browsers show and that have no script.
PICTURES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))


class NewChat(Value):
    """A chat to create."""

    assistant: str = Field(
        default="", max_length=1000, description="Id of the assistant; empty: `uses.default`"
    )
    title: str = Field(
        default="",
        max_length=LONGEST_TITLE,
        description="Empty: made of the first question",
    )


class ChatChanges(Value):
    """The changes of a chat."""

    title: str | None = Field(default=None, max_length=LONGEST_TITLE, description="A new title")
    leaf: str | None = Field(
        default=None, description="A message: the branch that is shown ends there"
    )
    branch: str | None = Field(
        default=None,
        description="A message: the branch that is shown ends with the newest one after it",
    )
    archived: bool | None = Field(default=None, description="Archive it, or restore it")


class ChatTurn(Value):
    """A question in a chat."""

    text: str | None = Field(default=None, description="The question")
    content: Few[list[dict[str, Any]]] | None = Field(
        default=None, description="Parts, instead of `text`"
    )
    edit: str = Field(
        default="",
        max_length=100,
        description="A question of the chat that this one replaces, in a branch beside it",
    )
    search: bool | None = Field(default=None, description=request_body.SEARCH)
    options: AskOptions = Field(default=AskOptions(), description=request_body.OPTIONS)
    data: AskedData = Field(default=AskedData(), description=request_body.DATA)
    leaving: OnDisconnect = Field(default="continue", description=request_body.LEAVING)


class Again(Value):
    """Another answer."""

    message_id: str = Field(default="", max_length=100, description="An answer; empty: the last")
    search: bool | None = Field(default=None, description=request_body.SEARCH)
    options: AskOptions = Field(default=AskOptions(), description=request_body.OPTIONS)
    leaving: OnDisconnect = Field(default="continue", description=request_body.LEAVING)


class DecisionRequest(Value):
    """The user's decision about the calls that wait in an answer."""

    message_id: str = Field(default="", max_length=100, description="The answer; empty: the last")
    approved: bool | None = Field(default=None, description="About all of its calls")
    calls: Annotated[dict[str, bool], FEW] | None = Field(
        default=None, description="About each, by its `call_id`, instead of `approved`"
    )
    reason: str = Field(
        default="",
        max_length=10_000,
        description="What the user says about it; to a question of a hook, the answer",
    )
    options: AskOptions = Field(default=AskOptions(), description=request_body.OPTIONS)
    leaving: OnDisconnect = Field(default="continue", description=request_body.LEAVING)


async def list_chats(call: Call) -> Response:
    """Return the caller's chats, the last changed first."""
    wanted = call.request.query_params
    page = ChatPage(
        limit=_limit(wanted.get("limit", "50")),
        after=wanted.get("after", "")[:200],
        words=wanted.get("q", "")[:200],
        archived=wanted.get("archived") == "1",
    )
    found = await call.serving.host.chats.chats.list(_owner(call), page)
    body = {"chats": [chat.model_dump(mode="json") for chat in found.chats], "next": found.next}
    return _json(body)


async def create_chat(call: Call) -> Response:
    """Create a chat and return it."""
    owner = _owner(call)
    wanted = request_body.validate_strictly(NewChat, await call.json())
    host = call.serving.host
    assistant = call.serving.assistant_for(call.caller, wanted.assistant)
    call.serving.package(call.caller, assistant)
    at = milliseconds(host.runtime.now)
    chat = Chat(
        id=chat_id(),
        assistant_id=assistant,
        title=wanted.title,
        made_at=at,
        changed_at=at,
    )
    return _json((await host.chats.chats.make(owner, chat)).model_dump(mode="json"), 201)


async def get_chat(call: Call) -> Response:
    """Return a chat, with the messages of the branch that is shown and the turn that runs."""
    chat, part = await _read_part(call, "")
    running = await call.serving.host.chats.conversations.running(_owner(call), chat.id)
    return _json({**chat.model_dump(mode="json"), "running": running.id if running else "", **part})


async def get_branch(call: Call) -> Response:
    """Return the messages of a branch."""
    _, part = await _read_part(call, call.request.query_params.get("leaf", "")[:100])
    return _json(part)


async def change_chat(call: Call) -> Response:
    """Change the title, the shown branch or `archived` of a chat, and return it."""
    wanted = request_body.validate_strictly(ChatChanges, await call.json())
    host = call.serving.host
    fields = wanted.model_dump(exclude={"branch"})
    if wanted.branch is not None:
        if wanted.leaf is not None:
            raise UsageError("give `leaf` or `branch`")
        fields["leaf"] = await host.chats.conversations.newest_after(
            _owner(call), _chat_id(call), wanted.branch
        )
    change = ChatChange(chat_id=_chat_id(call), at=milliseconds(host.runtime.now), **fields)
    chat = await host.chats.chats.change(_owner(call), change)
    return _json(chat.model_dump(mode="json"))


async def delete_chat(call: Call) -> Response:
    """Remove a chat with everything stored for it."""
    await call.serving.host.conversations.delete(_owner(call), _chat_id(call))
    call.serving.turns.forget_chat(_chat_id(call))
    return Response(status_code=204)


async def run_turn(call: Call) -> ASGIApp:
    """Run a turn of a chat: the next question, or a rephrased one."""
    body = await request_body.read_body(call.request, call.serving.settings.limits)
    given = request_body.validate_strictly(ChatTurn, request_body.parse_json(body))
    if (given.text is None) == (given.content is None):
        raise UsageError("give `text` or `content`")
    content = given.text if given.text is not None else given.content
    (message,) = request_body.with_sources(
        request_body.check_lengths(
            (Message(role="user", content=content),), call.serving.settings.limits
        ),
        given.data.sources,
    )
    options = _turn_options(call, given.options, given.search)

    def send(chat: OpenChat) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        if given.edit:
            return chat.edit(given.edit, message, options=options)
        return chat.send(message, options=options)

    return await _begin_turn(call, body, given, send)


async def regenerate_answer(call: Call) -> ASGIApp:
    """Run a turn that regenerates an answer; the earlier one is kept."""
    body = await request_body.read_body(call.request, call.serving.settings.limits)
    given = request_body.validate_strictly(Again, request_body.parse_json(body))
    options = _turn_options(call, given.options, given.search)
    return await _begin_turn(
        call,
        body,
        given,
        lambda chat: chat.regenerate(given.message_id or None, options=options),
    )


async def decide(call: Call) -> ASGIApp:
    """Run the turn that continues an answer after the user's decision about its calls."""
    body = await request_body.read_body(call.request, call.serving.settings.limits)
    given = request_body.validate_strictly(DecisionRequest, request_body.parse_json(body))
    if (given.approved is None) == (given.calls is None):
        raise UsageError("give `approved` or `calls`")
    approved = given.approved if given.calls is None else given.calls
    assert approved is not None
    options = _turn_options(call, given.options, None)
    return await _begin_turn(
        call,
        body,
        given,
        lambda chat: chat.decide(
            approved, message=given.message_id or None, reason=given.reason, options=options
        ),
    )


async def export_chat(call: Call) -> Response:
    """Return a chat as one document."""
    form = call.request.query_params.get("format", "json")
    if form not in ("json", "markdown"):
        raise UsageError("format must be 'json' or 'markdown'")
    chat, messages = await _read_branch(call, "")
    audience, name = call.audience(), _assistant_name(call, chat.assistant_id)
    public_url = call.public_url

    def text() -> str:
        if form == "json":
            shown, _ = _render_messages(audience, messages)
            return json.dumps({**chat.model_dump(mode="json"), "messages": shown}, indent=1)
        seen = [as_seen_by(message, audience) for message in messages]
        return markdown.exported(chat, seen, name=name, public_url=public_url)

    # In a thread: a chat may have megabytes.
    ending, media_type = ("json", "application/json") if form == "json" else ("md", "text/markdown")
    return _download(f"{chat.id}.{ending}", await to_thread.run_sync(text), media_type)


async def get_file(call: Call) -> Response:
    """Return a file of a chat: a picture as such, anything else to be saved."""
    id = call.request.path_params["file"][:100]
    store = call.serving.host.chats.conversations
    file = (await store.files(_owner(call), _chat_id(call), [id]))[id]
    shown = file.media_type in PICTURES
    disposition = "inline" if shown else f"attachment; filename*=UTF-8''{quote(file.name, safe='')}"
    return Response(
        file.body,
        media_type=file.media_type if shown else "application/octet-stream",
        headers={
            "content-disposition": disposition,
            "content-security-policy": "default-src 'none'; sandbox",
        },
    )


def _download(name: str, text: str, media_type: str) -> Response:
    """Return a response that clients save as a file. Programs may choose the ids of chats, so
    characters that would end the header are removed from the name."""
    safe = "".join(sign for sign in name if sign.isascii() and (sign.isalnum() or sign in "._-"))
    disposition = f'attachment; filename="{safe}"'
    return Response(text, media_type=media_type, headers={"content-disposition": disposition})


def _assistant_name(call: Call, assistant: str) -> str:
    """Return the name of an assistant; its id if its files are missing or invalid."""
    try:
        return call.serving.host.app.package(assistant).name or assistant
    except HostError:
        return assistant


async def rate_answer(call: Call) -> Response:
    """Store the reader's feedback on an answer."""
    feedback = request_body.validate_strictly(Feedback, await call.json())
    id = call.request.path_params["message"]
    await call.serving.host.chats.conversations.rate(_owner(call), id, feedback)
    return Response(status_code=204)


async def _begin_turn(
    call: Call, body: bytes, given: ChatTurn | Again | DecisionRequest, send_in: _Send
) -> ASGIApp:
    serving, caller, owner = call.serving, call.caller, _owner(call)
    chat = await serving.host.chats.chats.chat(owner, _chat_id(call))
    serving.check_options(caller, chat.assistant_id, given.options)
    call.admit_stream()  # before the turn begins
    key = call.request.headers.get("idempotency-key")
    address = f"{call.request.method} {call.request.url.path}"
    repeated = RequestKey(key, digest_of(address, body)) if key else None

    def send(opened: OpenChat) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        opened.request = repeated
        return send_in(opened)

    running = await serving.repeats.once(
        caller.owner,
        key,
        address,
        body,
        serving.turns.get,
        lambda: begin_in_chat(call, chat.assistant_id, chat.id, send, leaving=given.leaving),
        partial(requested_turn, serving.host, owner),
    )
    return await answer(call, running, 0)


def _turn_options(call: Call, given: AskOptions, search: bool | None) -> TurnOptions:
    return request_body.turn_options(
        given, search, call.request, call.serving.settings, call.address
    )


async def _read_branch(
    call: Call, leaf: str, limit: int | None = None
) -> tuple[Chat, list[ChatMessage]]:
    """Return a chat and the messages of a branch that ends at `leaf` (empty: that of the chat), at
    most the newest `limit`. Raises UnknownName."""
    host, owner = call.serving.host, _owner(call)
    chat = await host.chats.chats.chat(owner, _chat_id(call))
    if not (leaf or chat.leaf):
        return chat, []
    return chat, list(await host.chats.conversations.path(owner, chat.id, leaf, limit))


def _owner(call: Call) -> ChatOwner:
    if not call.caller.identity.user_id:
        raise Refused("needs_user", "chats belong to a user, and this key has none")
    return ChatOwner.of(call.caller.identity)


def _chat_id(call: Call) -> str:
    return str(call.request.path_params["chat"])


async def _read_part(call: Call, leaf: str) -> tuple[Chat, dict[str, Any]]:
    """Return a chat, the part of a branch that a request wants, and whether messages come before
    it. Raises UsageError, UnknownName."""
    wanted = call.request.query_params
    before = wanted.get("before", "")[:100]
    most = _limit(wanted["limit"]) if "limit" in wanted else None
    # One more than the part tells whether there are earlier ones; `before` is not in it.
    read = None if most is None else most + 1 + bool(before)
    chat, messages = await _read_branch(call, before or leaf, read)
    if before:
        messages = messages[:-1]
    part = messages if most is None else messages[-most:]
    # In a thread: an answer may have thousands of citations.
    shown, answers = await to_thread.run_sync(_render_messages, call.audience(), part)
    if wants_blocks(call):
        await _add_blocks(call, shown, answers)
    return chat, {"messages": shown, "earlier": len(part) < len(messages)}


def _limit(given: str) -> int:
    """Return the number of things that a request wants. Raises UsageError."""
    if not (given.isascii() and given.isdecimal() and len(given) < 10):
        given = "0"
    if not 0 < int(given) <= MOST_LISTED:
        raise UsageError(f"limit must be 1 to {MOST_LISTED}")
    return int(given)


def _render_messages(
    audience: Audience, messages: list[ChatMessage]
) -> tuple[list[Any], list[KeptAnswer | None]]:
    """Return the messages as JSON values, and the answers of those that are answers."""
    seen = [as_seen_by(message, audience) for message in messages]
    return [each.model_dump(mode="json") for each in seen], [each.answer for each in seen]


async def _add_blocks(call: Call, shown: list[Any], answers: list[KeptAnswer | None]) -> None:
    room = MOST_BLOCK_BYTES
    # The newest first: those that have no room are shown as they are written.
    for each, kept_answer in reversed(list(zip(shown, answers, strict=True))):
        if kept_answer is not None:
            await checkpoint()  # a chat may have hundreds of answers
            each["blocks"] = [plain_block(kept_answer.content)]
            if room > 0:
                each["blocks"] = (await parsed_of(call.serving.readers, *written(kept_answer)))[0]
                room -= len(as_json(each["blocks"]))


def as_seen_by(message: ChatMessage, audience: Audience) -> ChatMessage:
    """Return a stored message as its reader was shown it live."""
    if message.answer is None:
        return message
    # By the same function as the live stream, so that what a reader may not see is decided once.
    events = (audience.of(event) for event in events_of(message.answer))
    answer = kept(event for event in events if event is not None)
    return message.model_copy(update={"answer": answer})


def _json(value: Any, status: int = 200) -> Response:
    return Response(line(value), status, media_type="application/json")
