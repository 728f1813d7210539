"""Operations of a host's operator on all chats, in rows."""

from __future__ import annotations

from collections.abc import Sequence
from secrets import token_hex

from groundhook.core.errors import UnknownName
from groundhook.core.types.chats import ChatMessage, ChatOwner, StoredTurn
from groundhook.host.chats.chats import delete_chat, list_rows
from groundhook.host.chats.ports import AHEAD_MS, ChatPage, KeptChat
from groundhook.host.chats.storage.sql import Sql, Threads
from groundhook.host.chats.tables import (
    CHAT,
    MESSAGE,
    TURN,
    chat_in,
    known_id,
    message_in,
    owner_in,
    turn_in,
)


class SqlUpkeep:
    """Implements `ports.Upkeep`."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def every(self, page: ChatPage, owner: ChatOwner | None = None, /) -> Sequence[KeptChat]:
        """Return a page of all chats, or of those of an owner, the last changed first."""
        columns = (
            "owner, (select count(*) from messages m where m.owner = chats.owner"
            f" and m.chat_id = chats.id), {CHAT}"
        )
        rows = await self._threads.read(lambda sql: list_rows(sql, page, columns, owner))
        return [KeptChat(owner_in(row[0]), chat_in(row[2:]), row[1]) for row in rows[: page.limit]]

    async def owners_of(self, chat: str, /) -> Sequence[ChatOwner]:
        """Return the owners of the chats with this id. Raises UnknownName."""
        known = known_id("chat", chat)
        rows = await self._threads.read(
            lambda sql: sql.rows("select owner from chats where id = :id", id=known)
        )
        if not rows:
            raise UnknownName("chat", chat, ())
        return [owner_in(owner) for (owner,) in rows]

    async def rated(self, /) -> Sequence[tuple[ChatOwner, ChatMessage]]:
        """Return the answers that a reader gave feedback on, the oldest first."""
        rows = await self._threads.read(
            lambda sql: sql.rows(
                f"select m.owner, {MESSAGE} from messages m where m.feedback is not null"
                " order by m.made_at, m.id"
            )
        )
        return [(owner_in(row[0]), message_in(row[1:], ())) for row in rows]

    async def lost(self, now: int, lease_until: int, /) -> Sequence[tuple[ChatOwner, StoredTurn]]:
        """Take over the turns whose lease ended before `now`, or is too long to be one of this
        clock; return them."""
        # One statement takes and returns them: of two processes that look at the same time, each
        # gets other turns.
        rows = await self._threads.write(
            lambda sql: sql.rows(
                "update turns set lease_until = :until where state = 'running'"
                f" and (lease_until < :now or lease_until > :ahead) returning owner, {TURN}",
                until=lease_until,
                now=now,
                ahead=lease_until + AHEAD_MS,
            )
        )
        return [(owner_in(row[0]), turn_in(row[1:])) for row in rows]

    async def purge(
        self, *, chats_before: int, logs_before: int
    ) -> Sequence[tuple[ChatOwner, str]]:
        """Remove the chats that were not changed since one time, and the logs of turns that began
        before another. Returns the owners and ids of the chats."""

        def work(sql: Sql) -> list[tuple[ChatOwner, str]]:
            sql.be_patient()
            rows = sql.rows(
                "select owner, id from chats where changed_at < :before and not exists"
                " (select 1 from turns where owner = chats.owner and chat_id = chats.id"
                " and state = 'running')",
                before=chats_before,
            )
            for owner, id in rows:
                delete_chat(sql, owner, id)
            sql.change(
                "delete from logs where turn_id in (select id from turns where began_at < :before"
                " and state <> 'running')",
                before=logs_before,
            )
            sql.change(
                "delete from turns where began_at < :before and state <> 'running'",
                before=logs_before,
            )
            return [(owner_in(owner), id) for owner, id in rows]

        return await self._threads.write(work)

    async def probe(self, size: int, /) -> None:
        """Write `size` bytes, and remove them. Raises StorageError where they cannot be stored."""
        name = f"probe {token_hex(8)}"

        def write(sql: Sql) -> None:
            sql.change(
                "insert into logs (turn_id, first, last, body) values (:id, 0, 0, :body)",
                id=name,
                body=bytes(size),
            )

        def remove(sql: Sql) -> None:
            sql.change("delete from logs where turn_id like 'probe %'")  # also of a killed process

        # Two transactions: pages that one writes and frees again never reach the disk.
        await self._threads.write(write)
        await self._threads.write(remove)
