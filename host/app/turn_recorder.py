"""Stores a turn while it runs: the log of its events every `flush_ms`, its answer at the end.

A failure of the store never ends a turn: an answer that cannot be stored still reaches its reader,
with a warning.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress

import anyio

from groundhook.core.app_settings import StoreSettings
from groundhook.core.error_events import warning_event
from groundhook.core.errors import StorageError
from groundhook.core.json_lines import line
from groundhook.core.ports import Clock
from groundhook.core.types.chats import ChatMessage, ChatOwner, KeptAnswer, StoredTurn, TurnState
from groundhook.core.types.events import Event, Failed, StreamEnd
from groundhook.host.chats.ports import AHEAD_MS, ChatStore, EndedTurn
from groundhook.host.output.dialects import kept
from groundhook.host.output.dialects.ending import ending

log = logging.getLogger("groundhook")

SILENT_S = 1.0  # between two renewals of the lease of a turn without events
CLOSING_S = 5.0  # longest wait for the store after the reader has left
KEEPING_S = 10.0  # longest wait for the store before the reader gets the last events
STORE = "check `store` in agent/agent.yml, and whether its server runs"
STOPPED = ("stopped", "the answer was stopped")


def milliseconds(now: Clock) -> int:
    """Return the time of a clock in whole milliseconds since 1970."""
    return round(now().timestamp() * 1000)


def lease_until(settings: StoreSettings) -> int:
    """Return when a lease that begins now ends. Leases use the real time, not the host's clock,
    which tests fix."""
    return round((time.time() + settings.lease_s) * 1000)


def has_ended(lease: int, settings: StoreSettings) -> bool:
    """Return whether a lease is over: its end is past, or further ahead than the end of any lease
    can be, which means that the clock was set back."""
    return not time.time() * 1000 <= lease <= lease_until(settings) + AHEAD_MS


def message_of(turn: StoredTurn, answer: KeptAnswer, at: int) -> ChatMessage:
    """Return the message that stores the answer of a turn."""
    return ChatMessage(
        id=turn.answer_id,
        chat_id=turn.chat_id,
        parent=turn.question_id,
        role="assistant",
        content=answer.content,
        answer=answer,
        made_at=at,
    )


def without_answer(turn: StoredTurn, at: int) -> EndedTurn:
    """Return the end of a turn whose answer the store has no room for."""
    failure = Failed(code="storage", message="the answer could not be stored")
    answer = message_of(turn, KeptAnswer(turn_id=turn.id, errors=(failure,)), at)
    # As a lost one, it is replaced if the answer can be stored after all.
    return EndedTurn(id=turn.id, answer=answer, state="lost", at=at, first=1, log=b"")


class TurnRecorder:
    """Iterates over the events of a turn for its reader, and stores them: in the log every
    `flush_ms`, and all of them before the reader gets the last event. `stop` ends the turn for its
    reader, with the events that have arrived. `is_ended`: the store knows that the turn is over.
    `is_unknown`: the store no longer had the turn when it ended, such as one whose chat was
    removed. `late`: the end that the store has not taken."""

    def __init__(
        self,
        store: ChatStore,
        owner: ChatOwner,
        turn: StoredTurn,
        events: AsyncIterator[Event],
        now: Clock,
        settings: StoreSettings,
    ) -> None:
        self.turn, self._settings = turn, settings
        self._store, self._owner, self._now = store, owner, now
        self._events = events
        self._state = kept.Keeping()
        self._unflushed: list[bytes] = []
        self._next = 1  # number of the first event in `_unflushed`
        self._leased = time.monotonic()
        self._at_ms = 0
        self._ready: deque[Event] = deque()  # for the reader, before the turn's next event
        self._waiting: anyio.CancelScope | None = None
        self._flushing = anyio.Lock()
        self._stopping = False
        self._end: TurnState | None = None  # how the turn ended, once its last events are kept
        self.is_ended = self.is_unknown = False
        self.late: EndedTurn | None = None
        self._settled = False  # whether the end is stored, or its reader knows that it is not

    def __aiter__(self) -> TurnRecorder:
        return self

    async def __anext__(self) -> Event:
        if self._ready:
            return self._ready.popleft()
        if self._end is not None:
            raise StopAsyncIteration
        event = await self._read_event()
        if event is None:
            await self._keep_end("stopped", self._make_ending())
        elif isinstance(event, StreamEnd):
            await self._keep_end("failed" if self._state.parts.errors else "done", [event])
        else:
            self._keep(event)
            return event
        return self._ready.popleft()

    def stop(self) -> None:
        """End the turn: the reader gets an `error` with the code `stopped`, and `stream_end`."""
        self._stopping = True
        if self._waiting is not None:
            self._waiting.cancel()

    async def keep_flushing(self) -> None:
        """Append what has arrived to the log every `flush_ms`, in a task of its own. Stops the turn
        if another process has requested it."""
        while self._end is None:
            await anyio.sleep(self._settings.flush_ms / 1000)
            await self._flush()

    async def close(self) -> None:
        """Store the events so far of a turn whose reader has left, or its end, if the reader left
        while that was being stored."""
        if self._settled:
            return
        with anyio.move_on_after(CLOSING_S, shield=True):
            if self._end is None:
                await self._keep_end("stopped", self._make_ending())
                return
            try:
                # False if the first attempt ended in its thread all the same.
                await self._end_in_store(self._end)
            except StorageError as exc:
                self._log_unkept(exc)

    async def _read_event(self) -> Event | None:
        """Return the next event; None when the turn is to stop."""
        event: Event | None = None
        with anyio.CancelScope() as self._waiting:
            # `stop` may have been called before the scope existed, which it would have cancelled.
            if not self._stopping:
                event = await anext(self._events, None)
        self._waiting = None
        return None if self._stopping else event

    def _make_ending(self) -> Sequence[Event]:
        ended = ending(kept.events_of(self._state.answer), *STOPPED)
        return [event.stamped(self.turn.id, self._at_ms) for event in ended]

    def _keep(self, event: Event) -> None:
        self._at_ms = event.at_ms
        self._state = kept.step(self._state, event)
        self._unflushed.append(line(event).encode())

    async def _flush(self) -> None:
        # Also without events now and then: it renews the lease, and reads whether to stop.
        due = time.monotonic() - self._leased > SILENT_S
        if self._end is not None or not (self._unflushed or due):
            return
        async with self._flushing:
            try:
                with self._taken() as (first, body):
                    lease = lease_until(self._settings)
                    marks = await self._store.logs.append(
                        self._owner, self.turn.id, first, body, lease
                    )
            except StorageError:  # the end of the turn tries again, and warns
                return
            self._leased = time.monotonic()
        if marks.stop:
            self.stop()

    @contextmanager
    def _taken(self) -> Iterator[tuple[int, bytes]]:
        """Yield the events that are not in the log, with the number of the first. They are still
        not there if the block raises."""
        first, taken = self._next, self._unflushed
        self._next, self._unflushed = first + len(taken), []
        try:
            yield first, b"".join(taken)
        except BaseException:
            self._next, self._unflushed = first, [*taken, *self._unflushed]
            raise

    async def _keep_end(self, state: TurnState, events: Sequence[Event]) -> None:
        """Store the answer with its last events, then pass these to the reader."""
        for event in events:
            self._keep(event)
        self._end = state
        failure = StorageError(f"the store did not answer within {KEEPING_S:g} s", hint=STORE)
        try:
            with anyio.move_on_after(KEEPING_S):
                if await self._end_in_store(state):
                    self._settled = True
                    self._ready.extend(events)
                    return
                failure = StorageError("its chat was removed meanwhile")
        except StorageError as exc:
            failure = exc
        self._settled = True
        if not self.is_unknown and await self._keep_late(state):
            self._ready.extend(events)
            return
        self._log_unkept(failure)
        yet = "was not kept" if self.is_ended else "is not kept yet"
        problem = StorageError(f"this answer {yet}: {failure.message}", hint=failure.hint)
        self._ready.append(warning_event(problem).stamped(self.turn.id, events[-1].at_ms))
        self._ready.extend(events)

    async def _keep_late(self, state: TurnState) -> bool:
        """Try once more to store the end, then one without the answer: on a full disk that may
        still fit, and the chat can go on. Returns whether the answer is stored."""
        with anyio.move_on_after(CLOSING_S):
            with suppress(StorageError):
                return await self._end_in_store(state)
            with suppress(StorageError):
                ended = without_answer(self.turn, milliseconds(self._now))
                await self._store.conversations.end(self._owner, ended)
                self.is_ended = True
        return False

    def _log_unkept(self, failure: StorageError) -> None:
        log.error("turn %s: its answer was not kept: %s", self.turn.id, failure)

    async def _end_in_store(self, state: TurnState) -> bool:
        # A flush may be under way, whose events come first in the log.
        async with self._flushing:
            with self._taken() as (first, body):
                at = milliseconds(self._now)
                answer = message_of(self.turn, self._state.answer, at)
                ended = EndedTurn(
                    id=self.turn.id, answer=answer, state=state, at=at, first=first, log=body
                )
                self.late = ended
                self.is_unknown = not await self._store.conversations.end(self._owner, ended)
                self.is_ended, self.late = True, None
        return not self.is_unknown
