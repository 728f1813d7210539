"""The stored conversations of an open app: gives each turn its history, and stores it while it
runs."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
from pydantic import ValidationError

from groundhook.host.app.keeper import Keeper, has_ended, lease_until, message_of, milliseconds
from groundhook.host.app.requests import conversation, turn_options, validated
from groundhook.host.app.titles import write_title
from groundhook.host.chats.history import sources, split
from groundhook.host.chats.ports import (
    ChatStore,
    EndedTurn,
    NewTurn,
    RequestKey,
    chat_id,
    message_id,
    turn_id,
)
from groundhook.host.core.app_settings import StoreSettings
from groundhook.host.core.errors import UnknownName, UsageError
from groundhook.host.core.exception_groups import unwrap_exception_groups
from groundhook.host.core.json_lines import line
from groundhook.host.core.types.chats import Chat, ChatMessage, Feedback, Owner, StoredTurn
from groundhook.host.core.types.events import EVENT, Event
from groundhook.host.core.types.turn import Identity, Message, TurnOptions
from groundhook.host.dialects.ending import ending
from groundhook.host.dialects.kept import kept
from groundhook.host.turn.context import Conversation, Request, Runtime
from groundhook.host.turn.open_turns import OpenTurns
from groundhook.host.turn.stream import open_turn

LOST = ("turn_lost", "the answer broke off: the process that gave it ended")
UNDOING_S = 5.0
MOST_SUMMARISED = 200  # messages before the question, where the history is summarised
HOUR_MS = 3600 * 1000
DAY_MS = 24 * HOUR_MS

# A question of the user: text, parts, or a whole message.
Question = str | Sequence[Mapping[str, Any]] | Message | Mapping[str, Any]


@dataclass
class Conversations:
    """The conversations of one open app. `runtime` returns the current parts of the app, which a
    reload replaces."""

    store: ChatStore
    runtime: Callable[[], Runtime]
    turns: OpenTurns
    worker: str = field(default_factory=lambda: secrets.token_hex(8))
    _swept: bool = False

    @property
    def settings(self) -> StoreSettings:
        """The settings of the store."""
        return self.runtime().app.settings.store

    async def opened(
        self, assistant_id: str, identity: Identity, id: str | None, *, create: bool = False
    ) -> OpenChat:
        """Return a chat: a new one, which is stored from its first message on, or the stored one
        with this id. `create`: a new one with this id if there is none. Raises UnknownName, and
        UsageError for a chat with another assistant."""
        self.turns.refuse_if_closed()
        self.runtime().app.package(assistant_id)
        if not self._swept:  # a server does this regularly
            await self.sweep()
        if id is None:
            return OpenChat(self, identity, assistant_id, chat_id(), is_kept=False)
        try:
            chat = await self.store.chats.chat(Owner.of(identity), id)
        except UnknownName:
            if not create:
                raise
            return OpenChat(self, identity, assistant_id, id, is_kept=False)
        if chat.assistant_id != assistant_id:
            raise UsageError(
                f"the chat {id!r} is with the assistant {chat.assistant_id!r},"
                f" not with {assistant_id!r}"
            )
        return OpenChat(self, identity, assistant_id, id, is_kept=True)

    async def delete(self, owner: Owner, id: str) -> None:
        """Remove a chat with everything stored for it, also the values of its hooks. Raises
        UnknownName."""
        await self.store.chats.delete(owner, id)
        await self.forget(owner, id)

    async def forget(self, owner: Owner, id: str) -> None:
        """Remove the values that hooks keep for a chat (`ctx.memory.chat`)."""
        identity = Identity(tenant_id=owner.tenant, user_id=owner.user)
        await self.runtime().memory.of(identity, id).namespace("chat").clear()

    async def purge(self, now: int, days: int) -> int:
        """Remove the chats that have not changed for so many days before `now`, in milliseconds
        since 1970. Returns their number."""
        before = now - days * DAY_MS + 1
        removed = await self.store.upkeep.purge(chats_before=before, logs_before=0)
        for owner, id in removed:
            await self.forget(owner, id)
        return len(removed)

    async def sweep(self) -> int:
        """Remove the chats that are older than `store.keep_days`, and the logs of turns older than
        `store.logs_h`. Returns the number of chats."""
        now, settings = round(time.time() * 1000), self.settings
        removed = await self.store.upkeep.purge(
            chats_before=now - settings.keep_days * DAY_MS if settings.keep_days else 0,
            logs_before=now - round(settings.logs_h * HOUR_MS),
        )
        for owner, id in removed:
            await self.forget(owner, id)
        self._swept = True
        return len(removed)

    async def end_lost_turns(self) -> int:
        """End the turns of processes that no longer run, with their text so far as the answer.
        Returns the number of these turns."""
        lease = lease_until(self.settings)
        lost = await self.store.upkeep.lost(round(time.time() * 1000), lease)
        for owner, turn in lost:
            await self._end_lost(owner, turn)
        return len(lost)

    async def _end_lost(self, owner: Owner, turn: StoredTurn) -> None:
        blobs = await self.store.logs.read(owner, turn.id)
        lines = [text for _, body in blobs for text in body.splitlines()]
        events = list(_read_until_unknown(lines))
        rest = ending(events, *LOST)
        at = milliseconds(self.runtime().now)
        ended = EndedTurn(
            id=turn.id,
            answer=message_of(turn, kept([*events, *rest]), at),
            state="lost",
            at=at,
            first=len(lines) + 1,
            log=b"".join(line(event).encode() for event in rest),
        )
        await self.store.conversations.end(owner, ended)


def _read_until_unknown(lines: Iterable[bytes]) -> Iterator[Event]:
    """Yield the events of a log up to the first that this version cannot read."""
    with suppress(ValidationError):
        for text in lines:
            yield EVENT.validate_json(text)


@dataclass
class OpenChat:
    """One conversation with an assistant, stored as it proceeds. `id` continues it later:
    `host.chat(assistant, chat_id=id)`. One turn at a time: another one raises ChatBusy."""

    _of: Conversations
    _identity: Identity
    assistant_id: str
    id: str
    is_kept: bool  # whether the store has it; it does from the first message on
    request: RequestKey | None = None  # of the next turn, for a server whose clients repeat it
    _running: Keeper | None = None

    @asynccontextmanager
    async def send(
        self,
        message: Question,
        *,
        search: bool | None = None,
        connector: str | Sequence[str] | None = None,
        options: TurnOptions | Mapping[str, Any] | None = None,
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """Return a context manager that asks the next question, as text or parts, and yields the
        events of its turn. Leaving the block stops what is still running; the text so far is
        stored. Raises ChatBusy, UsageError and StorageError, and what `Host.stream` raises; then
        nothing is stored."""
        overrides = turn_options(search, connector, options)
        question = self._make_question(message, "")
        leaf = await self._store_chat()
        question = question.model_copy(update={"parent": leaf})
        async with self._run_turn(question, overrides, first=not leaf) as events:
            yield events

    @asynccontextmanager
    async def edit(
        self,
        message: ChatMessage | str,
        text: Question,
        *,
        search: bool | None = None,
        connector: str | Sequence[str] | None = None,
        options: TurnOptions | Mapping[str, Any] | None = None,
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """Return a context manager that asks a question of the chat in other words and yields the
        events of its turn, as `send` does. The new question begins a branch, which is shown from
        now on; the old one stays in its own. `message` is the old question or its id. Raises
        UsageError for an answer."""
        await self._end_lost_turn()
        before = await self._find_message(message)
        if before.role != "user":
            raise UsageError("only a question can be edited", hint="regenerate an answer instead")
        question = self._make_question(text, before.parent)
        async with self._run_turn(question, turn_options(search, connector, options)) as events:
            yield events

    @asynccontextmanager
    async def regenerate(
        self,
        message: ChatMessage | str | None = None,
        *,
        search: bool | None = None,
        connector: str | Sequence[str] | None = None,
        options: TurnOptions | Mapping[str, Any] | None = None,
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """Return a context manager that asks for another answer and yields the events of its turn,
        as `send` does; the old answer stays in its branch. `message` is that answer, its question,
        or the id of one of them (None: the last answer). Raises UsageError for a chat without a
        question."""
        await self._end_lost_turn()
        if message is None:
            path = await self.messages()
            if not path:
                raise UsageError("the chat has no question yet")
            message = path[-1]
        found = await self._find_message(message)
        id = found.id if found.role == "user" else found.parent
        question = found if found.role == "user" else await self._find_message(id)
        overrides = turn_options(search, connector, options)
        async with self._run_turn(question, overrides, again=True) as events:
            yield events

    async def messages(self, leaf: str = "") -> Sequence[ChatMessage]:
        """Return the messages from the first to the last of the branch that is shown, or to `leaf`,
        the id of any message. Raises UnknownName."""
        if not self.is_kept:
            return []
        return await self._of.store.conversations.path(self._owner, self.id, leaf)

    async def rate(
        self, message: ChatMessage | str, feedback: Feedback | Mapping[str, Any]
    ) -> None:
        """Store a reader's feedback on an answer. Raises UnknownName, UsageError."""
        id = message if isinstance(message, str) else message.id
        valid = validated(Feedback, feedback, "feedback")
        await self._of.store.conversations.rate(self._owner, id, valid)

    def stop(self) -> bool:
        """Stop the turn that runs in this object, and return whether one was running. Its reader
        gets an `error` with the code `stopped`, and `stream_end`."""
        if self._running is None:
            return False
        self._running.stop()
        return True

    # ---- one turn

    @property
    def _owner(self) -> Owner:
        return Owner.of(self._identity)

    @asynccontextmanager
    async def _run_turn(
        self,
        question: ChatMessage,
        options: TurnOptions,
        *,
        first: bool = False,
        again: bool = False,
    ) -> AsyncIterator[AsyncIterator[Event]]:
        self._of.turns.refuse_if_closed()
        runtime = self._of.runtime()
        new = NewTurn(
            id=turn_id(),
            chat_id=self.id,
            question=question.id if again else question,
            answer_id=message_id(),
            worker=self._of.worker,
            at=milliseconds(runtime.now),
            lease_until=lease_until(self._of.settings),
            request=self.request,
        )
        turn = await self._of.store.conversations.begin(self._owner, new)
        keeper: Keeper | None = None
        try:
            async with AsyncExitStack() as stack:
                request = await self._make_request(runtime, question, options, turn)
                events = await stack.enter_async_context(
                    open_turn(runtime, self._of.turns, request)
                )
                keeper = self._running = Keeper(
                    self._of.store, self._owner, turn, events, runtime.now, self._of.settings
                )
                stack.enter_context(unwrap_exception_groups())
                tasks = await stack.enter_async_context(anyio.create_task_group())
                tasks.start_soon(keeper.keep_flushing)
                if first:
                    # In the host's tasks: the title may take longer than the turn.
                    self._of.turns.tasks.start_soon(
                        write_title, runtime, self._of.store, request, question
                    )
                try:
                    yield keeper
                finally:
                    tasks.cancel_scope.cancel()
        finally:
            self._running = None
            if keeper is not None:
                await keeper.close()
            else:
                await self._undo(turn, first=first)

    async def _make_request(
        self, runtime: Runtime, question: ChatMessage, options: TurnOptions, turn: StoredTurn
    ) -> Request:
        """Return the request of a turn: the question, after the part of the history that the
        settings allow."""
        settings = runtime.app.settings_for(
            runtime.app.package(self.assistant_id), options=options
        ).settings.history
        conversations, owner = self._of.store.conversations, self._owner

        async def newest(limit: int) -> Sequence[ChatMessage]:
            if not question.parent or limit <= 0:
                return []
            return await conversations.path(owner, self.id, question.parent, limit)

        path = await newest(MOST_SUMMARISED if settings.summarise else settings.messages)
        omitted, before = split(path, most_messages=settings.messages, most_tokens=settings.tokens)
        return Request(
            assistant_id=self.assistant_id,
            messages=(*before, Message(role="user", content=question.content)),
            options=options.model_copy(update={"chat_id": self.id}),
            identity=self._identity,
            conversation=Conversation(
                answer_id=turn.answer_id, sources=sources(path), newest=newest, omitted=omitted
            ),
            turn_id=turn.id,
        )

    async def _store_chat(self) -> str:
        """Return the last message of the chat, and store the chat if it is new."""
        if self.is_kept:
            await self._end_lost_turn()
            return (await self._of.store.chats.chat(self._owner, self.id)).leaf
        self._of.turns.refuse_if_closed()
        at = milliseconds(self._of.runtime().now)
        chat = Chat(id=self.id, assistant_id=self.assistant_id, made_at=at, changed_at=at)
        await self._of.store.chats.make(self._owner, chat)
        self.is_kept = True
        return ""

    async def _end_lost_turn(self) -> None:
        """End a turn whose process no longer runs, so that the chat can continue."""
        turn = await self._of.store.conversations.running(self._owner, self.id)
        if turn is not None and has_ended(turn.lease_until, self._of.settings):
            await self._of.end_lost_turns()

    async def _undo(self, turn: StoredTurn, *, first: bool) -> None:
        """Remove a turn that could not begin, and the chat if it has no other turn."""
        with anyio.move_on_after(UNDOING_S, shield=True):
            await self._of.store.conversations.undo(self._owner, turn.id)
            if first:
                self.is_kept = False
                await self._of.store.chats.delete(self._owner, self.id)

    async def _find_message(self, message: ChatMessage | str) -> ChatMessage:
        """Return a message of this chat. Raises UnknownName."""
        id = message if isinstance(message, str) else message.id
        found = await self._of.store.conversations.message(self._owner, id)
        if found.chat_id != self.id:
            raise UnknownName("message", id, ())
        return found

    def _make_question(self, message: Question, parent: str) -> ChatMessage:
        parts = not isinstance(message, (Message, Mapping))
        raw: Any = {"role": "user", "content": message} if parts else message
        (valid,) = conversation([raw])
        if valid.role != "user":
            raise UsageError(f"a question has the role 'user', not {valid.role!r}")
        return ChatMessage(
            id=message_id(),
            chat_id=self.id,
            parent=parent,
            role="user",
            content=valid.content or "",
            made_at=milliseconds(self._of.runtime().now),
        )
