"""OpenAI's Responses: a turn as a response, streamed or whole; read and cancelled by its id. A
response to one question is kept in a chat of the caller, where the next one continues it; one with
tools or several messages with its own messages, as long as its log."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any

import anyio
from pydantic import Field
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from groundhook.core.errors import NotSupported, UnknownName
from groundhook.core.json_lines import line
from groundhook.core.types.attached import WrongFile
from groundhook.core.types.base import Few, Value
from groundhook.core.types.chats import ENDED, ChatMessage, ChatOwner, StoredTurn
from groundhook.core.types.contract import Contract
from groundhook.core.types.events import Event, StreamStart
from groundhook.core.types.turn import Message, TurnOptions
from groundhook.host.app.open_chat import OpenChat
from groundhook.host.output.dialects.openai_chat import OpenAIChat
from groundhook.host.output.dialects.responses import After, Responses
from groundhook.host.server import request_body
from groundhook.host.server.api.contract import read_contract, unchecked_of
from groundhook.host.server.api.conversation import ReadConversation
from groundhook.host.server.api.openai import (
    IGNORED,
    Extension,
    ignored_header,
    named_model,
    offered_package,
    unread_limits,
)
from groundhook.host.server.api.response_items import as_choice, as_messages, as_tool
from groundhook.host.server.api.turns import Start, begin, begin_in_chat, stream, turn_headers
from groundhook.host.server.problems import Refused, WrongRequest, failure_status
from groundhook.host.server.request_body import AskOptions
from groundhook.host.server.serving import Call
from groundhook.host.server.turns.kept_turns import KeptTurn
from groundhook.host.server.turns.running import Logged, ServerTurn, TurnLog
from groundhook.host.server.turns.sse import SSE, FoldWriter, folded, folded_so_far

PREFIX = "resp_"
PREVIOUS = "previous_response_id"
ECHOED = {
    "instructions",
    "max_output_tokens",
    "metadata",
    "previous_response_id",
    "safety_identifier",
    "temperature",
    "tool_choice",
    "tools",
    "user",
}
_PLAIN: Mapping[str, Any] = {"format": {"type": "text"}}
CANCEL_S = 10.0  # how long a cancelled response is waited for


class ResponseRequest(Value):
    """The keys of a request for a response that are read."""

    model: str = Field(
        default="", max_length=1000, description="Id of an assistant; empty: `uses.default`"
    )
    input: str | Few[tuple[dict[str, Any], ...]] = Field(
        description="The question, or the items of the conversation"
    )
    instructions: str | None = Field(
        default=None, description="Read as a system message of chat completions"
    )
    previous_response_id: str | None = Field(
        default=None, max_length=200, description="A response that was kept: this continues it"
    )
    store: bool | None = Field(
        default=None, description="`false`: the question and its answer are not kept in a chat"
    )
    stream: bool | None = Field(default=False, description="As events, as they happen")
    background: bool | None = Field(default=None, description="Only `false`")
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_output_tokens: int | None = Field(default=None, ge=1)
    user: str | None = Field(default=None, description="The user, for keys with `acts_for`")
    safety_identifier: str | None = Field(default=None, description="Used if `user` is not set")
    metadata: dict[str, Any] | None = Field(default=None, description="`ctx.metadata` of hooks")
    conversation: Any = Field(
        default=None, description="Refused: `previous_response_id` continues a response"
    )
    prompt: Any = Field(default=None, description="Refused: assistants have prompts of their own")
    text: dict[str, Any] | None = Field(
        default=None, description="`{format}`: `json_object`, or `json_schema` with a schema"
    )
    tools: Few[tuple[Any, ...]] | None = Field(
        default=None, description="Functions of the client, beside the assistant's own"
    )
    tool_choice: Any = Field(default=None, description="`auto`, `none`, `required` or a function")
    groundhook: Extension = Field(default=Extension(), description="`Extension`")


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A request that was read. `previous` is the id of the answer that it continues in a chat.
    `kept` are the messages for the request that continues this one: without `instructions`, of
    which each request has its own."""

    messages: tuple[Message, ...]
    kept: Sequence[Mapping[str, Any]]
    options: TurnOptions
    contract: Contract
    chat_id: str = ""
    previous: str = ""


async def create(call: Call) -> ASGIApp:
    """Run a turn as a response."""
    wanted, unknown = request_body.validate_body(ResponseRequest, await call.json())
    _refuse_other_forms(wanted)
    caller = call.serving.sign_in.acting(call.caller, wanted.user or wanted.safety_identifier or "")
    call = replace(call, caller=caller)
    named = named_model(call, caller, wanted.model)
    wanted = wanted.model_copy(update={"model": named})
    limits = unread_limits(call, offered_package(call, caller, named).id, wanted)
    wanted = wanted.model_copy(update=dict.fromkeys(limits))  # so that it is not repeated
    asked, not_read = await _read(call, wanted)
    unchecked = await unchecked_of(asked.contract, "text.format")
    ignored = [*(key.path for key in unknown), *limits, *not_read, *unchecked]
    headers = {IGNORED: ignored_header(ignored)} if ignored else {}
    call.admit_stream()  # before the turn begins
    stored = wanted.store is not False and _keeps(call)
    in_chat = bool(asked.previous) or (stored and _is_one_question(asked))
    kept = _kept(wanted, stored=in_chat or stored)
    if stored and not in_chat:
        kept["messages"] = list(asked.kept)
    running = await (_begin_kept if in_chat else _begin_alone)(call, wanted, asked, kept)
    fold = _fold(call, running, kept)
    headers |= turn_headers(call, running)
    if wanted.stream:
        return stream(call, running, 0, FoldWriter(fold, call.audience()), SSE, headers)
    if not await call.until_over(running):
        return Response(status_code=204)  # the client has left; nobody reads this
    return await _whole(call, running, fold, headers)


def _refuse_other_forms(wanted: ResponseRequest) -> None:
    """Raise NotSupported for what would make another response than the one that is given."""
    if wanted.background:
        raise NotSupported("background: a response begins at once; stream it or wait for it")
    if wanted.conversation is not None:
        raise NotSupported("conversation: not offered; previous_response_id continues a response")
    if wanted.prompt is not None:
        raise NotSupported("prompt: not offered; an assistant has prompts of its own")


async def _read(call: Call, wanted: ResponseRequest) -> tuple[_Asked, list[str]]:
    """Return a request as it is asked, and the paths of what is not read. Raises UsageError."""
    settings = call.serving.settings
    contract = await read_contract(
        tools=[as_tool(tool) for tool in wanted.tools or ()],
        choice=as_choice(wanted.tool_choice),
        stop=None,
        form=(wanted.text or {}).get("format"),
        form_path="text.format",
        function="",
    )
    said, items, turn = await _said(call, wanted, contract)
    given = said
    if wanted.instructions:
        given = [{"role": "system", "content": wanted.instructions}, *said]
        items = [("instructions",), *items]
    read = ReadConversation.of(given, settings.openai.system, items=items, result_key="call_id")
    messages = request_body.check_lengths(read.messages, settings.limits, "input", read.paths)
    messages = request_body.with_sources(messages, wanted.groundhook.data.sources)
    asked = _Asked(
        messages=messages,
        kept=said,
        options=_options(call, wanted),
        contract=contract,
        chat_id=turn.chat_id if turn else "",
        previous=turn.answer_id if turn else "",
    )
    tuned = [f"text.{key}" for key in wanted.text or () if key != "format"]
    return asked, [*read.ignored, *tuned]


async def _said(
    call: Call, wanted: ResponseRequest, contract: Contract
) -> tuple[list[dict[str, Any]], list[tuple[str, ...]], StoredTurn | None]:
    """Return the messages of a request with those that it continues, the paths of the items of
    which each is made, and the turn behind which the question is put in its chat, if it is."""
    given = wanted.input
    said, items = as_messages(given if isinstance(given, str) else await _with_items(call, given))
    if not wanted.previous_response_id:
        return said, items, None
    turn = await _previous(call, wanted.previous_response_id)
    is_question = [each["role"] for each in said] == ["user"] and not contract.tools
    if turn.chat_id and is_question:
        return said, items, turn
    history = await _history(call, turn)
    return [*history, *said], [*([(PREVIOUS,)] * len(history)), *items], None


async def _with_items(call: Call, given: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the input with the items that it names by their ids (`item_reference`). Raises
    WrongRequest for one that is not kept, or another caller's."""
    found: dict[str, dict[str, Any]] = {}
    made: list[dict[str, Any]] = []
    for n, item in enumerate(given):
        if item.get("type") != "item_reference":
            made.append(item)
            continue
        id = str(item.get("id"))
        if id not in found:
            found |= await _items_of(call, id.partition("_")[2])
        if id not in found:
            raise WrongRequest(
                f"input[{n}].id: no item {id[:80]!r} is kept; send it whole, as SDKs do with"
                " `store: false`"
            )
        made.append(found[id])
    return made


async def _items_of(call: Call, turn_id: str) -> dict[str, dict[str, Any]]:
    """Return the items of a response by their ids; none if it is not kept."""
    try:
        running = await call.turn(turn_id)
    except UnknownName:
        return {}
    response = await _response_so_far(call, running)
    return {item["id"]: item for item in response["output"]}


async def retrieve(call: Call) -> ASGIApp:
    """Return a response by its id, as far as it is; with `stream=true` its events, from the first
    one or after `starting_after`."""
    running = await _turn(call)
    asked = call.request.query_params
    if asked.get("stream", "").lower() not in ("true", "1"):
        return _json(await _response_so_far(call, running))
    after = asked.get("starting_after", "-1")
    if after != "-1" and not (after.isascii() and after.isdecimal() and len(after) < 10):
        raise WrongRequest("starting_after: should be the `sequence_number` of an event")
    log = await running.events_so_far()
    whole = await _kept_fold(call, running, log)
    fold = After(whole, int(after))
    if running.over and (number := await _events(call, whole, log)) <= fold.after:
        raise WrongRequest(f"starting_after: the response has the events 0 to {number - 1}")
    headers = turn_headers(call, running)
    return stream(call, running, 0, FoldWriter(fold, call.audience()), SSE, headers)


async def _kept_fold(call: Call, running: TurnLog, log: Sequence[Logged]) -> Responses:
    # Of a turn that no request for a response has begun nothing is kept.
    begun = {"model": _assistant(log), "created": _created(running), "echoed": {}}
    return _fold(call, running, {**begun, **await running.kept()})


async def _events(call: Call, fold: Responses, log: Sequence[Logged]) -> int:
    """Return how many events a response has that is over."""
    state, _ = await folded_so_far(fold, call.audience(), log)
    return int(fold.end(state)[-1].data["sequence_number"]) + 1


async def _response_so_far(call: Call, running: TurnLog) -> dict[str, Any]:
    log = await running.events_so_far()
    fold = await _kept_fold(call, running, log)
    state, _ = await folded_so_far(fold, call.audience(), log)
    if running.over:
        return dict(fold.end(state)[-1].data["response"])
    return fold.response(state, over=False)


async def cancel(call: Call) -> Response:
    """Stop a response and return it when it is over, so that its chat is free; its text so far
    remains."""
    running = await _turn(call)
    await running.ask_to_stop()
    with anyio.move_on_after(CANCEL_S):
        await call.until_over(running)
    return _json(await _response_so_far(call, running))


async def _turn(call: Call) -> TurnLog:
    id = str(call.request.path_params["response"])
    try:
        return await call.turn(_turn_id(id))
    except UnknownName:
        raise UnknownName("response", id[:80], ()) from None


def _turn_id(id: str) -> str:
    if not id.startswith(PREFIX):
        raise UnknownName("response", id[:80], ())
    return id.removeprefix(PREFIX)


def _created(running: TurnLog) -> int:
    return running.turn.began_at // 1000 if isinstance(running, KeptTurn) else _at(running)


def _at(running: TurnLog) -> int:
    return running.created if isinstance(running, ServerTurn) else 0


def _assistant(log: Sequence[Logged]) -> str:
    starts = (each.event for each in log if isinstance(each.event, StreamStart))
    return next((start.assistant_id for start in starts), "")


def _keeps(call: Call) -> bool:
    return call.serving.has("chats") and bool(call.caller.identity.user_id)


def _is_one_question(asked: _Asked) -> bool:
    return [message.role for message in asked.messages] == ["user"] and not asked.contract.tools


async def _previous(call: Call, id: str) -> StoredTurn:
    """Return the turn of the response that a request continues. Raises Refused for one that is not
    there, or another caller's, and UsageError for one that is under way."""
    if not _keeps(call):
        raise Refused("needs_user", "responses are kept for users, and this key has none")
    owner = ChatOwner.of(call.caller.identity)
    try:
        turn = await call.serving.host.chats.conversations.turn(owner, _turn_id(id))
    except UnknownName:
        raise _unknown_previous(f"there is no response {id[:80]!r}") from None
    if turn.state not in ENDED:
        raise WrongRequest(f"{PREVIOUS}: that response is under way")
    return turn


def _unknown_previous(why: str) -> Refused:
    hint = "send the whole history as input"
    return Refused("previous_response_not_found", f"{PREVIOUS}: {why}", hint=hint)


async def _history(call: Call, turn: StoredTurn) -> list[dict[str, Any]]:
    """Return the messages of a response and those before it. Raises Refused for one that was not
    kept."""
    host, owner = call.serving.host, ChatOwner.of(call.caller.identity)
    if turn.chat_id:
        path = await host.chats.conversations.path(owner, turn.chat_id, turn.answer_id)
        return [{"role": each.role, "content": _without_markers(each)} for each in path]
    messages = (await host.conversations.kept_with(owner, turn.id)).get("messages")
    if not messages:
        raise _unknown_previous("that response was not kept (`store: false`), or is too old")
    answered, _ = as_messages(list((await _items_of(call, turn.id)).values()))
    return [*messages, *answered]


def _without_markers(message: ChatMessage) -> Any:
    """Return the content of a message of a chat without its citations, which belong to its turn."""
    if message.answer is None:
        return message.content
    text, done = "", 0
    marks = [(at, each.marker) for each in message.answer.citations for at in each.places]
    for at, marker in sorted(marks):
        text += message.text[done:at]
        done = at + len(marker)
    return text + message.text[done:]


async def _begin_alone(
    call: Call, wanted: ResponseRequest, asked: _Asked, kept: Mapping[str, Any]
) -> ServerTurn:
    start = Start(
        caller=call.caller,
        assistant_id=wanted.model,
        messages=asked.messages,
        options=asked.options,
        contract=asked.contract,
        # The SDKs name its items in later requests, as long as it is kept.
        stored=wanted.store is not False and bool(call.caller.identity.user_id),
        kept=kept,
    )
    return await begin(call.serving, start)


async def _begin_kept(
    call: Call, wanted: ResponseRequest, asked: _Asked, kept: Mapping[str, Any]
) -> ServerTurn:
    def send(chat: OpenChat) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        chat.contract = asked.contract
        chat.can_ask = False  # its clients cannot show calls that the user approves
        question = asked.messages[-1].content or ""
        return chat.send(question, after=asked.previous, options=asked.options)

    try:
        return await begin_in_chat(call, wanted.model, asked.chat_id or None, send, kept=kept)
    except WrongFile as exc:
        raise WrongRequest(f"input: {exc.message}") from None


async def _whole(
    call: Call, running: ServerTurn, fold: Responses, headers: Mapping[str, str]
) -> Response:
    *before, last = await folded(fold, call.audience(), running.log)
    whole = last.data["response"]
    if whole["status"] != "failed":
        return _json(whole, headers)
    error = next(piece.data for piece in before if piece.event == "error")
    body = {key: error[key] for key in ("message", "param", "code")}
    # One turn only: SDKs would try a failed one twice more.
    headers = {**headers, "x-should-retry": "false"}
    status = failure_status(str(error["code"]))
    return JSONResponse({"error": {**body, "type": "server_error"}}, status, headers)


def _json(value: Any, headers: Mapping[str, str] | None = None) -> Response:
    return Response(line(value), media_type="application/json", headers=dict(headers or {}))


def _fold(call: Call, running: TurnLog, kept: Mapping[str, Any]) -> Responses:
    echoed = kept["echoed"]
    chat = OpenAIChat(
        id=f"{PREFIX}{running.turn_id}",
        model=kept["model"],
        created=kept["created"],
        public_url=call.public_url,
        citations=kept.get("citations")
        or call.caller.citations
        or call.serving.settings.openai.citations,
        usage=True,
        is_json=echoed.get("text", _PLAIN)["format"]["type"] != "text",
        form="text.format",
    )
    return Responses(chat=chat, echoed=echoed)


def _kept(wanted: ResponseRequest, *, stored: bool) -> dict[str, Any]:
    """Return what is kept with a response: the keys of the request that it repeats. Keys that are
    not read are not repeated."""
    given = wanted.model_dump(include=ECHOED, exclude_none=True)
    form = (wanted.text or {}).get("format")
    return {
        "model": wanted.model,
        "created": int(time.time()),
        "citations": wanted.groundhook.citations,
        "echoed": {**given, "store": stored, "text": {"format": form} if form else _PLAIN},
    }


def _options(call: Call, wanted: ResponseRequest) -> TurnOptions:
    given = {
        "temperature": wanted.temperature,
        "max_tokens": wanted.max_output_tokens,
        "metadata": wanted.metadata,
    }
    chosen = AskOptions(**{key: value for key, value in given.items() if value is not None})
    made = request_body.turn_options(
        chosen, wanted.groundhook.search, call.request, call.serving.settings, call.address, ""
    )
    chat = wanted.groundhook.chat_id
    return made.model_copy(update={"chat_id": chat}) if chat else made
