"""The messages that hooks send to the client in addition to the answer: their ids, and the events
that make and change them.

All assistants of a turn share one outbox; ids are `M1`, `B1`, `T1` in the order of their requests.
It keeps the ids but not the contents, which `core.hook_messages` computes from the events.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from groundhook.core.channel import Channel
from groundhook.core.errors import UsageError
from groundhook.core.types.events import HookMessage, MessageAction

_Kind = Literal["message", "block", "thread"]

LETTERS: dict[_Kind, str] = {"message": "M", "block": "B", "thread": "T"}
SHOWN_IDS = 12


class Outbox:
    """The messages of one turn."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        # Every id that was handed out, with or without a message; a dict keeps the order.
        self._ids: dict[_Kind, dict[str, None]] = {kind: {} for kind in LETTERS}
        self._made: dict[_Kind, int] = dict.fromkeys(LETTERS, 0)
        self._sent: dict[str, tuple[str, str]] = {}  # message → its block and thread
        self._streaming: set[str] = set()

    def new_id(self, kind: _Kind) -> str:
        """Return an id that no message, block or thread has."""
        while True:
            self._made[kind] += 1
            id = f"{LETTERS[kind]}{self._made[kind]}"
            if id not in self._ids[kind]:
                self._ids[kind][id] = None
                return id

    async def send(
        self,
        message: Mapping[str, Any],
        *,
        id: str = "",
        block_id: str = "",
        thread_id: str = "",
        streaming: bool = False,
    ) -> str:
        """Send a message and return its id. Raises UsageError when a message with that id
        exists."""
        if id in self._sent:
            raise UsageError(
                f"a message {id!r} was sent before",
                hint="Replace changes it; MessageID() makes a new id",
            )
        id = id or self.new_id("message")
        self._ids["message"][id] = self._ids["block"][block_id] = self._ids["thread"][thread_id] = (
            None
        )
        self._sent[id] = (block_id, thread_id)
        if streaming:
            self._streaming.add(id)
        await self._send_event(id, "send", dict(message), streaming=streaming)
        return id

    async def change(
        self, action: MessageAction, id: str, value: Any = None, path: str = ""
    ) -> None:
        """Change or end a message. Ending it twice does nothing. Raises UsageError for a message
        that was not sent."""
        self._require_sent(id)
        if action != "end":
            await self._send_event(id, action, value, path=path)
        elif id in self._streaming:
            self._streaming.remove(id)
            await self._send_event(id, "end")

    async def end_block(self, id: str) -> None:
        """End a block and the messages in it that are still streaming. Raises UsageError for an
        unknown block."""
        if not id or id not in self._ids["block"]:
            raise UsageError(
                f"no block {id!r}",
                hint=_describe_known_ids([known for known in self._ids["block"] if known]),
            )
        for message in [
            message
            for message in self._sent
            if message in self._streaming and self._sent[message][0] == id
        ]:
            await self.change("end", message)
        await self._channel.send(HookMessage(action="end", message_id="", block_id=id))

    def close(self, ids: Collection[str]) -> None:
        """End those of the messages that are still streaming. Does not wait, so that a cancelled
        hook can call it."""
        for id in [id for id in ids if id in self._streaming]:
            self._streaming.remove(id)
            block_id, thread_id = self._sent[id]
            self._channel.send_nowait(
                HookMessage(action="end", message_id=id, block_id=block_id, thread_id=thread_id)
            )

    def _require_sent(self, id: str) -> None:
        if id in self._sent:
            return
        if id in self._ids["message"]:
            raise UsageError(
                f"nothing was sent under the id {id!r} yet", hint="Send takes it as `message_id`"
            )
        raise UsageError(f"no message {id!r}", hint=_describe_known_ids(self._sent))

    async def _send_event(
        self, id: str, action: MessageAction, message: Any = None, **more: Any
    ) -> None:
        block_id, thread_id = self._sent[id]
        event = HookMessage(
            action=action,
            message_id=id,
            block_id=block_id,
            thread_id=thread_id,
            message=message,
            **more,
        )
        await self._channel.send(event)


def _describe_known_ids(ids: Collection[str]) -> str:
    if not ids:
        return "no ids exist yet"
    shown = list(ids)[-SHOWN_IDS:]
    return f"known ids: {'…, ' if len(shown) < len(ids) else ''}{', '.join(shown)}"
