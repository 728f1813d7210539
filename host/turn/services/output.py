"""`ctx.Send` and the other output calls for the hooks of one assistant:
`core.hook_services.HookOutput` over the turn's outbox.

Owns the list of message streams that these hooks have open, so that none outlives its hook.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from groundhook.core.types.events import MessageAction
from groundhook.host.turn.outbox import Outbox

IDS = ("message_id", "block_id", "thread_id")


@dataclass(frozen=True)
class Output:
    """Sends the messages of one run's hooks."""

    outbox: Outbox
    _opened: list[str] = field(default_factory=list)

    async def send(self, message: Mapping[str, Any], block_id: str, /, *, streaming: bool) -> str:
        """Send a message and return its id. A block named in the call outranks one named in the
        message."""
        own = {key: str(message.get(key) or "") for key in IDS}
        content = {key: value for key, value in message.items() if key not in IDS}
        id = await self.outbox.send(
            content,
            id=own["message_id"],
            block_id=block_id or own["block_id"],
            thread_id=own["thread_id"],
            streaming=streaming,
        )
        if streaming:
            self._opened.append(id)
        return id

    async def change(
        self, action: MessageAction, message_id: str, value: Any, path: str, /
    ) -> None:
        await self.outbox.change(action, message_id, value, path)

    async def end_block(self, block_id: str, /) -> None:
        await self.outbox.end_block(block_id)

    def new_id(self, kind: Literal["message", "block", "thread"], /) -> str:
        return self.outbox.new_id(kind)

    def close(self) -> None:
        """End the streams that a hook left open when it ended."""
        self.outbox.close(self._opened)
        self._opened.clear()
