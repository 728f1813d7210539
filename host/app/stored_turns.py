"""Turns that are stored while they run, those of chats and others: any process of the app reads
them, and ends those of a process that has ended."""

from __future__ import annotations

import secrets
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
from pydantic import ValidationError

from groundhook.core.app_settings import StoreSettings
from groundhook.core.errors import ChatBusy, StorageError, UnknownName
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.json_lines import line
from groundhook.core.json_text import read_json
from groundhook.core.types.chats import ChatMessage, ChatOwner, StoredTurn
from groundhook.core.types.contract import NO_CONTRACT, Contract
from groundhook.core.types.events import EVENT, Event
from groundhook.core.types.turn import Identity, Message, TurnOptions
from groundhook.host.app.requests import conversation
from groundhook.host.app.turn_recorder import (
    TurnRecorder,
    lease_until,
    message_of,
    milliseconds,
    without_answer,
)
from groundhook.host.chats.ports import (
    ChatStore,
    EndedTurn,
    FileLimits,
    KeptFile,
    NewTurn,
    RequestKey,
    message_id,
    turn_id,
)
from groundhook.host.output.dialects.ending import ending
from groundhook.host.output.dialects.kept import kept
from groundhook.host.turn.context import Request, Runtime
from groundhook.host.turn.open_turns import OpenTurns
from groundhook.host.turn.stream import open_turn

LOST = ("turn_lost", "the answer is incomplete: its process ended")
NOTHING: Mapping[str, Any] = {}
QUESTION = 0  # the number of the line in front of the events of a log
MOST_LATE = 200  # ends of turns that wait for the store
UNDOING_S = 5.0  # longest wait for the store after a turn that could not begin


@dataclass
class StoredTurns:
    """The stored turns of one open app. `runtime` returns the current parts of the app, which a
    reload replaces."""

    store: ChatStore
    runtime: Callable[[], Runtime]
    turns: OpenTurns
    worker: str = field(default_factory=lambda: secrets.token_hex(8))
    # Turns of this process that are over, though the store has them as running, by their ids; with
    # their ends, unless there are many.
    _unended: dict[str, tuple[ChatOwner, StoredTurn, EndedTurn | None]] = field(
        default_factory=dict
    )

    @property
    def settings(self) -> StoreSettings:
        """The settings of the store."""
        return self.runtime().app.settings.store

    def stream(
        self,
        owner: ChatOwner,
        assistant_id: str,
        messages: Sequence[Message],
        *,
        identity: Identity,
        options: TurnOptions,
        contract: Contract = NO_CONTRACT,
        request: RequestKey | None = None,
        kept: Mapping[str, Any] = NOTHING,
    ) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """Run a turn without a chat, as `Host.stream` does, and store its events while it runs, so
        that other processes can read them; they belong to `owner`. `kept` is
        stored with them, for `kept_with`. Raises RequestRepeated, StorageError and what
        `Host.stream` raises."""
        runtime = self.runtime()
        asked = Request(
            assistant_id=assistant_id,
            messages=conversation(
                messages, runtime.app.settings.turns, runtime.app.settings.attachments
            ),
            options=options,
            identity=identity,
            contract=contract,
        )

        async def make_request(turn: StoredTurn) -> Request:
            await self.keep_with(owner, turn, kept)
            return replace(asked, turn_id=turn.id)

        return self.run(runtime, owner, self.new_turn("", "", request), make_request)

    async def keep_with(self, owner: ChatOwner, turn: StoredTurn, value: Mapping[str, Any]) -> None:
        """Store a JSON object with a turn that has no events yet, as long as its log. Raises
        StorageError."""
        if value:
            body = line(value).encode()
            await self.store.logs.append(owner, turn.id, QUESTION, body, turn.lease_until)

    async def kept_with(self, owner: ChatOwner, turn_id: str) -> Mapping[str, Any]:
        """Return the object that was stored with a turn; an empty one if there was none, or the log
        has been removed. Raises StorageError."""
        blobs = await self.store.logs.read(owner, turn_id, QUESTION - 1)
        if not blobs or blobs[0][0] != QUESTION:
            return NOTHING
        value: Mapping[str, Any] = read_json(blobs[0][1])
        return value

    def new_turn(
        self,
        chat_id: str,
        question: ChatMessage | str,
        request: RequestKey | None,
        files: Sequence[KeptFile] = (),
    ) -> NewTurn:
        """Return a turn that begins now, with the files of its question."""
        limits = self.runtime().app.settings.attachments
        return NewTurn(
            id=turn_id(),
            chat_id=chat_id,
            question=question,
            answer_id=message_id(),
            worker=self.worker,
            at=milliseconds(self.runtime().now),
            lease_until=lease_until(self.settings),
            request=request,
            files=files,
            most_files=FileLimits(limits.person_files, round(limits.person_mb * 1024 * 1024)),
        )

    @asynccontextmanager
    async def run(
        self,
        runtime: Runtime,
        owner: ChatOwner,
        new: NewTurn,
        make_request: Callable[[StoredTurn], Awaitable[Request]],
    ) -> AsyncIterator[TurnRecorder]:
        """Run a turn, and store it while it runs. A turn that cannot begin is not stored. Raises
        ChatBusy, RequestRepeated, StorageError and what `Host.stream` raises."""
        self.turns.refuse_if_closed()
        turn = await self._begin(owner, new)
        recorder: TurnRecorder | None = None
        try:
            async with AsyncExitStack() as stack:
                request = await make_request(turn)
                events = await stack.enter_async_context(open_turn(runtime, self.turns, request))
                recorder = TurnRecorder(self.store, owner, turn, events, runtime.now, self.settings)
                stack.enter_context(unwrap_exception_groups())
                tasks = await stack.enter_async_context(anyio.create_task_group())
                tasks.start_soon(recorder.keep_flushing)
                try:
                    yield recorder
                finally:
                    tasks.cancel_scope.cancel()
        finally:
            if recorder is not None:
                await recorder.close()
                if not recorder.is_ended:
                    late = recorder.late if len(self._unended) < MOST_LATE else None
                    self._unended[turn.id] = owner, turn, late
                if recorder.is_unknown and turn.chat_id:
                    await self._forget_removed(owner, turn.chat_id)
            else:
                with anyio.move_on_after(UNDOING_S, shield=True):
                    await self.store.conversations.undo(owner, turn.id)

    async def _begin(self, owner: ChatOwner, new: NewTurn) -> StoredTurn:
        try:
            return await self.store.conversations.begin(owner, new)
        except ChatBusy as busy:
            if busy.turn_id not in self._unended:
                raise
            await self._end_unended(busy.turn_id)
        return await self.store.conversations.begin(owner, new)

    async def _end_unended(self, id: str) -> None:
        """Store that a turn is over, with its answer or its text so far, so that its chat need not
        wait for the end of its lease. Raises StorageError."""
        owner, turn, late = self._unended[id]
        if late is None or not await self._keeps(owner, late):
            await self._end_lost(owner, turn)
        self._unended.pop(id, None)

    async def _keeps(self, owner: ChatOwner, end: EndedTurn) -> bool:
        """Return whether the store takes an end: a full disk may have room for a shorter one."""
        with suppress(StorageError):
            await self.store.conversations.end(owner, end)
            return True
        return False

    async def forget(self, owner: ChatOwner, id: str) -> None:
        """Remove the values that hooks keep for a chat (`ctx.memory.chat`)."""
        identity = Identity(tenant_id=owner.tenant, user_id=owner.user)
        await self.runtime().memory.of(identity, id).namespace("chat").clear()

    async def _forget_removed(self, owner: ChatOwner, chat: str) -> None:
        """Remove what hooks have kept for a chat since it was removed: its turn went on."""
        with anyio.move_on_after(UNDOING_S, shield=True), suppress(StorageError):
            try:
                await self.store.chats.chat(owner, chat)
            except UnknownName:
                await self.forget(owner, chat)

    async def end_lost_turns(self) -> int:
        """End the turns of processes that no longer run, with their text so far as the answer, and
        those of this one whose end could not be stored. Returns the number of the former."""
        while self._unended:
            await self._end_unended(next(iter(self._unended)))
        lease = lease_until(self.settings)
        lost = await self.store.upkeep.lost(round(time.time() * 1000), lease)
        for owner, turn in lost:
            await self._end_lost(owner, turn)
        return len(lost)

    async def _end_lost(self, owner: ChatOwner, turn: StoredTurn) -> None:
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
        try:
            await self.store.conversations.end(owner, ended)
        except StorageError:  # a full disk may still have room for an end without the answer
            await self.store.conversations.end(owner, without_answer(turn, at))


def _read_until_unknown(lines: Iterable[bytes]) -> Iterator[Event]:
    """Yield the events of a log up to the first that this version cannot read."""
    with suppress(ValidationError):
        for text in lines:
            yield EVENT.validate_json(text)
