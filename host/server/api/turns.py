"""Endpoints of turns without a chat: ask, read, resume, stop."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, get_args

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from groundhook.core.errors import StorageError
from groundhook.core.json_lines import line
from groundhook.core.types.chats import ChatOwner
from groundhook.core.types.contract import NO_CONTRACT, Contract
from groundhook.core.types.events import Event, Text
from groundhook.core.types.turn import Message, TurnOptions
from groundhook.host.app.host import Host
from groundhook.host.app.open_chat import OpenChat
from groundhook.host.app.stored_turns import NOTHING
from groundhook.host.chats.ports import RequestKey
from groundhook.host.config.trial import Trial
from groundhook.host.output.dialects.native import Whole
from groundhook.host.server import request_body
from groundhook.host.server.api.trials import trial_for
from groundhook.host.server.identity.caller import Caller
from groundhook.host.server.problems import Refused, WrongRequest
from groundhook.host.server.request_body import TurnRequest
from groundhook.host.server.serving import Call, Serving
from groundhook.host.server.turns.blocks_writer import BlocksWriter
from groundhook.host.server.turns.idempotency import digest_of
from groundhook.host.server.turns.kept_turns import is_read_elsewhere, requested_turn
from groundhook.host.server.turns.running import (
    OnDisconnect,
    ServerTurn,
    TurnLog,
    TurnParameters,
    new_token,
)
from groundhook.host.server.turns.sse import (
    JSON_LINES,
    SSE,
    NativeWriter,
    StreamAnswer,
    Writer,
    folded,
)

log = logging.getLogger("groundhook.server")

LARGEST = 2**53
TYPES = frozenset(kind.model_fields["type"].default for kind in get_args(get_args(Event)[0]))


async def create(call: Call) -> ASGIApp:
    """Run a turn, in the form that `Accept` names."""
    serving, settings = call.serving, call.serving.settings
    body = await request_body.read_body(call.request, settings.limits)
    wanted = request_body.validate_strictly(TurnRequest, request_body.parse_json(body))
    assistant = serving.assistant_for(call.caller, wanted.assistant)
    serving.check_options(call.caller, assistant, wanted.options)
    messages = request_body.read_conversation(wanted, settings)
    options = request_body.turn_options(
        wanted.options, wanted.search, call.request, settings, call.address
    )
    # Refused before the turn begins.
    trial = _trial(call, assistant, wanted)
    _types(call)
    wants_blocks(call)
    call.admit_stream()
    # Not of an anonymous caller: visitors of one address are not told apart, and the same key would
    # give one of them the turn of another, with its token.
    key = None if call.caller.anonymous else call.request.headers.get("idempotency-key")
    address = f"{call.request.method} {call.request.url.path}"
    start = Start(
        caller=call.caller,
        assistant_id=assistant,
        messages=messages,
        options=options,
        leaving=wanted.leaving,
        trial=trial,
        request=RequestKey(key, digest_of(address, body)) if key else None,
    )
    running = await serving.repeats.once(
        call.caller.owner,
        key,
        address,
        body,
        serving.turns.get,
        lambda: begin(serving, start),
        partial(requested_turn, serving.host, start.owner) if serving.stores_turns else None,
    )
    return await answer(call, running, 0)


def _trial(call: Call, assistant: str, wanted: TurnRequest) -> Trial | None:
    """Return the trial of a request. Raises Refused for callers who are no authors, and the errors
    of `trial_for`."""
    if not wanted.options.trial:
        return None
    if "author" not in call.caller.scopes:
        raise Refused("not_permitted", "options.trial needs the scope 'author'")
    return trial_for(call, assistant, wanted.options.trial)[1]


@dataclass(frozen=True, kw_only=True)
class Start:
    """A turn without a chat that is to begin."""

    caller: Caller
    assistant_id: str
    messages: Sequence[Message]
    options: TurnOptions
    contract: Contract = NO_CONTRACT
    leaving: OnDisconnect = "stop"
    linger_s: float | None = None
    trial: Trial | None = None  # which no other process can repeat: such a turn is not stored
    request: RequestKey | None = None
    stored: bool = False  # also where one process serves the app
    kept: Mapping[str, Any] = field(default_factory=dict)  # for `TurnLog.kept`
    token: str = field(default_factory=new_token)

    @property
    def owner(self) -> ChatOwner:
        """The owner of the turn, if it is stored."""
        return self.caller.stored_owner(self.token)


async def begin(serving: Serving, start: Start) -> ServerTurn:
    """Begin a turn without a chat. It is stored if several processes serve the app, so that each of
    them can answer requests about it. Raises Refused, and the errors of `Host.stream`."""
    stored = serving.stores_turns or (start.stored and serving.has("chats"))
    stored = stored and start.trial is None

    def enter_alone(host: Host) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        return host.stream(
            start.assistant_id,
            start.messages,
            identity=start.caller.identity,
            options=start.options,
            contract=start.contract,
            trial=start.trial,
        )

    @asynccontextmanager
    async def enter_stored(host: Host) -> AsyncIterator[AsyncIterator[Event]]:
        async with AsyncExitStack() as stack:
            try:
                turn = host.conversations.stream(
                    start.owner,
                    start.assistant_id,
                    start.messages,
                    identity=start.caller.identity,
                    options=start.options,
                    contract=start.contract,
                    request=start.request,
                    kept=start.kept,
                )
                events = await stack.enter_async_context(turn)
            except StorageError as exc:
                # The answer is worth more than that other processes know of it.
                log.warning("a turn is not stored, so it belongs to its process alone: %s", exc)
                events = await stack.enter_async_context(enter_alone(host))
            yield events

    ask = TurnParameters(
        owner=start.caller.owner,
        assistant_id=start.assistant_id,
        leaving=start.leaving,
        linger_s=start.linger_s,
        token=start.token,
        kept=start.kept,
        read_elsewhere=partial(is_read_elsewhere, serving.host, start.owner) if stored else None,
    )
    return await serving.begin(start.caller, ask, enter_stored if stored else enter_alone)


async def begin_in_chat(
    call: Call,
    assistant_id: str,
    chat_id: str | None,
    send: Callable[[OpenChat], AbstractAsyncContextManager[AsyncIterator[Event]]],
    *,
    create: bool = False,
    leaving: OnDisconnect = "stop",
    kept: Mapping[str, Any] = NOTHING,
) -> ServerTurn:
    """Begin the turn of a chat that `send` opens; `chat_id` and `create` are those of `Host.chat`,
    `kept` is what is kept with it. Raises Refused, and the errors of `Host.chat` and `send`."""
    serving, caller = call.serving, call.caller

    @asynccontextmanager
    async def enter(host: Host) -> AsyncIterator[AsyncIterator[Event]]:
        opened = host.chat(assistant_id, identity=caller.identity, chat_id=chat_id, create=create)
        async with opened as chat:
            chat.kept = kept
            async with send(chat) as events:
                yield events

    ask = TurnParameters(
        owner=caller.owner,
        assistant_id=assistant_id,
        leaving=leaving,
        kept=kept,
        read_elsewhere=partial(is_read_elsewhere, serving.host, ChatOwner.of(caller.identity)),
    )
    return await serving.begin(caller, ask, enter)


async def events(call: Call) -> ASGIApp:
    """Return the stream of a turn, from its beginning or after an event."""
    running = await call.turn(call.request.path_params["turn"])
    after = _after(call)
    _types(call)
    wants_blocks(call)
    if running.over and after >= running.last:
        return Response(status_code=204)  # which ends an EventSource
    return await answer(call, running, after)


async def state(call: Call) -> Response:
    """Return whether a turn runs, and its answer so far."""
    running = await call.turn(call.request.path_params["turn"])
    log = await running.events_so_far()
    (piece,) = await folded(Whole(), call.audience(), log)
    text = "".join(each.event.delta for each in log if isinstance(each.event, Text))
    so_far = {} if running.over else {"content": text}
    document = {
        **piece.data.model_dump(mode="json"),
        **so_far,
        "turn_id": running.turn_id,
        "state": "done" if running.over else "running",
        "last_event": running.last,
    }
    return Response(line(document), media_type="application/json")


async def stop(call: Call) -> Response:
    """End a turn, keeping its text so far."""
    running = await call.turn(call.request.path_params["turn"])
    stopped = await running.ask_to_stop()
    return JSONResponse({"turn_id": running.turn_id, "stopped": stopped}, 202 if stopped else 200)


async def answer(call: Call, running: TurnLog, after: int) -> ASGIApp:
    """Return a turn in the form that the request accepts."""
    accept = call.request.headers.get("accept", "")
    headers = turn_headers(call, running)
    if "application/json" in accept and "text/event-stream" not in accept:
        if not await call.until_over(running):
            return Response(status_code=204)  # the client has left; nobody reads this
        (piece,) = await folded(Whole(), call.audience(), await running.events_so_far())
        return Response(line(piece.data), media_type="application/json", headers=headers)
    sse = JSON_LINES not in accept
    audience = call.audience(trace=call.request.query_params.get("trace") == "1")
    native = NativeWriter(audience, sse, _types(call), b"retry: 1000\n\n" if sse else b"")
    media_type = SSE if sse else JSON_LINES
    if not wants_blocks(call):
        return stream(call, running, after, native, media_type, headers)
    # From the beginning: blocks are made of the whole text.
    writer = BlocksWriter(native, after, call.serving.readers)
    return stream(call, running, 0, writer, media_type, headers)


def wants_blocks(call: Call) -> bool:
    """Return whether the request asks for blocks. Raises WrongRequest for another view."""
    view = call.request.query_params.get("view", "")
    if view not in ("", "blocks"):
        raise WrongRequest("view must be `blocks`")
    return view == "blocks"


def stream(
    call: Call,
    running: TurnLog,
    after: int,
    writer: Writer,
    media_type: str,
    headers: Mapping[str, str],
) -> StreamAnswer:
    """Return the response that follows a turn's log. Raises Refused for too many open streams."""
    call.admit_stream()
    return StreamAnswer(
        open=partial(call.reading, running, after),
        writer=writer,
        media_type=media_type,
        settings=call.serving.settings.streams,
        headers=headers,
        on_slow_reader=call.serving.metrics.slow_readers.inc,
    )


def turn_headers(call: Call, running: TurnLog) -> dict[str, str]:
    """Return the headers that name a turn; an anonymous reader comes back with the token."""
    headers = {"x-groundhook-turn": running.turn_id}
    if call.caller.anonymous:
        headers["x-groundhook-resume"] = running.token
    return headers


def _after(call: Call) -> int:
    given = call.request.headers.get("last-event-id") or call.request.query_params.get("after", "0")
    if not (given.isascii() and given.isdecimal() and len(given) < 20):
        raise WrongRequest("Last-Event-ID, or `after`, must be the id of an event: a whole number")
    return min(int(given), LARGEST)


def _types(call: Call) -> frozenset[str]:
    given = call.request.query_params.get("events", "")
    types = frozenset(name for name in given.split(",") if name)
    if unknown := sorted(types - TYPES):
        raise WrongRequest(
            f"events: no event type {unknown[0][:80]!r}", hint=", ".join(sorted(TYPES))
        )
    return types
