"""Turns that another process runs: their logs are read from the store, into which that process
writes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel
from pydantic import ValidationError

from groundhook.core.errors import StorageError, UnknownName
from groundhook.core.json_lines import line_bytes
from groundhook.core.types.chats import ENDED, ChatOwner, StoredTurn
from groundhook.core.types.events import EVENT, Event, StreamEnd, Warned
from groundhook.host.app.host import Host
from groundhook.host.output.dialects.ending import ending
from groundhook.host.server.turns.running import AT_ONCE, Logged, ServerTurn, portion

POLL_S = 0.1
PATIENCE_S = 15.0  # at least, with a store that cannot be read
OTHER_VERSION = (
    "other_version",
    "another version of Groundhook wrote an event of this turn, which this version cannot read",
)
HELD_S = 15.0  # how long a turn counts as read after a reader in another process has looked at it


async def requested_turn(host: Host, owner: ChatOwner, key: str) -> tuple[KeptTurn, str] | None:
    """Return the stored turn that an owner's request with this key began, and the digest of that
    request; None without one."""
    found = await host.chats.conversations.requested(owner, key)
    return (await kept_turn(host, owner, found[0].id), found[1]) if found else None


async def is_read_elsewhere(host: Host, owner: ChatOwner, turn_id: str) -> bool:
    """Return whether a reader in another process reads a turn of this one."""
    with suppress(StorageError, UnknownName):
        turn = await host.chats.conversations.turn(owner, turn_id)
        return turn.read_until > time.time() * 1000
    return False


async def kept_turn(host: Host, owner: ChatOwner, turn_id: str, token: str = "") -> KeptTurn:
    """Return a stored turn of an owner. `token` is that of an anonymous reader. Raises
    UnknownName."""
    turn = await host.chats.conversations.turn(owner, turn_id)
    stored = KeptTurn(host, owner, turn, token)
    if not stored.over:
        await stored.end_if_lost()
    await stored.events_so_far()
    return stored


@dataclass
class KeptTurn:
    """A turn in the store."""

    host: Host
    owner: ChatOwner
    turn: StoredTurn
    token: str = ""
    log: list[Logged] = field(default_factory=list)

    @property
    def turn_id(self) -> str:
        """The id of the turn."""
        return self.turn.id

    @property
    def over(self) -> bool:
        """Whether the turn is over, so that no more events follow."""
        return self.turn.state in ENDED

    @property
    def last(self) -> int:
        """The number of the last event that was read."""
        return len(self.log)

    async def events_so_far(self) -> Sequence[Logged]:
        """Return all events that have arrived. An event that this version cannot read is a warning;
        if the last one is, the turn ends with an error."""
        blobs = await self.host.chats.logs.read(self.owner, self.turn.id, len(self.log))
        for first, body in blobs:
            for seq, json in enumerate(body.splitlines(keepends=True), first):
                if seq == len(self.log) + 1:
                    self._append(*self._read(json))
                if seq % AT_ONCE == 0:
                    await anyio.lowlevel.checkpoint()  # a log may have a hundred thousand events
        if self.over and self.log and not isinstance(self.log[-1].event, StreamEnd):
            for event in ending((logged.event for logged in self.log), *OTHER_VERSION):
                self._append(event, line_bytes(event))
        return self.log

    def _read(self, json: bytes) -> tuple[Event, bytes]:
        """Return an event and its line; a warning in place of one that another version wrote."""
        try:
            return EVENT.validate_json(json), json
        except ValidationError:
            code, message = OTHER_VERSION
            at_ms = self.log[-1].event.at_ms if self.log else 0
            event = Warned(code=code, message=message).stamped(self.turn_id, at_ms)
            return event, line_bytes(event)

    def _append(self, event: Event, json: bytes) -> None:
        end = (self.log[-1].end if self.log else 0) + len(json)
        self.log.append(Logged(len(self.log) + 1, event, json, end))

    async def kept(self) -> Mapping[str, Any]:
        """Return what was kept with the turn when it began. Raises StorageError."""
        return await self.host.conversations.kept_with(self.owner, self.turn.id)

    async def ask_to_stop(self) -> bool:
        """Ask the process that runs the turn to end it; return whether it was under way."""
        return await self.host.chats.logs.stop(self.owner, self.turn.id)

    async def end_if_lost(self) -> None:
        """Read the turn's state again, and end the turn if its process no longer runs."""
        if self.turn.lease_until < time.time() * 1000:
            await self.host.conversations.end_lost_turns()
        self.turn = await self.host.chats.conversations.turn(self.owner, self.turn.id)

    @contextmanager
    def reader(
        self, after: int, on_last_reader_gone: Callable[[ServerTurn], None], /
    ) -> Iterator[KeptReader]:
        """Open a reader that begins after the event `after`. The turn's process does not know it,
        so it says in the store that it reads."""
        yield KeptReader(self, after)


class KeptReader:
    """A reader of a log in the store. It looks for new events ten times a second."""

    def __init__(self, turn: KeptTurn, after: int) -> None:
        self._turn, self._at = turn, min(after, turn.last)
        self._read_at = time.monotonic()
        self._held_at = float("-inf")

    async def next(self) -> Sequence[Logged] | None:
        """Return the events that have arrived, at least one; None at the end. While the store
        cannot be read (its server restarts, say), it waits. Raises StorageError if that takes too
        long."""
        while True:
            try:
                over = self._turn.over  # before the read: a turn that has ended has its whole log
                if not over:
                    await self._hold()
                log = await self._turn.events_so_far()
                self._read_at = time.monotonic()
                if self._at < len(log):
                    taken = log[self._at - 1].end if self._at else 0
                    news = portion(log, self._at, taken)
                    self._at = news[-1].seq
                    return news
                if over:
                    return None
                await anyio.sleep(POLL_S)
                await self._turn.end_if_lost()
            except StorageError:
                lease_s = self._turn.host.app.settings.store.lease_s
                if time.monotonic() - self._read_at > max(PATIENCE_S, lease_s):
                    raise
                await anyio.sleep(POLL_S)

    async def _hold(self) -> None:
        """Say in the store that the turn is read, so that its process does not stop it."""
        now = time.monotonic()
        if now - self._held_at > HELD_S / 3:
            self._held_at = now
            turn = self._turn
            until = round((time.time() + HELD_S) * 1000)
            await turn.host.chats.logs.hold(turn.owner, turn.turn_id, until)
