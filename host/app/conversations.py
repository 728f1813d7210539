"""The stored conversations of an open app."""

from __future__ import annotations

import time
from dataclasses import dataclass

from groundhook.core.errors import UnknownName, UsageError
from groundhook.core.types.chats import ChatOwner
from groundhook.core.types.turn import Identity
from groundhook.host.app.open_chat import OpenChat
from groundhook.host.app.stored_turns import StoredTurns
from groundhook.host.chats.ports import chat_id

HOUR_MS = 3600 * 1000
DAY_MS = 24 * HOUR_MS


@dataclass
class AppConversations(StoredTurns):
    """The conversations of one open app: opens them, and removes those that are old."""

    _swept: bool = False

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
            chat = await self.store.chats.chat(ChatOwner.of(identity), id)
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

    async def delete(self, owner: ChatOwner, id: str) -> None:
        """Remove a chat with everything stored for it, also the values of its hooks. Raises
        UnknownName."""
        await self.store.chats.delete(owner, id)
        await self.forget(owner, id)

    async def purge(self, now: int, days: int) -> int:
        """Remove the chats that have not changed for `days` before `now`, in milliseconds since
        1970. Returns their number."""
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
