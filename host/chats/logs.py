"""The logs of turns, in rows: blobs of JSON lines, each with the numbers of its events."""

from __future__ import annotations

from collections.abc import Sequence

from groundhook.core.types.chats import ChatOwner
from groundhook.host.chats.ports import Marks
from groundhook.host.chats.storage.sql import Sql, Threads
from groundhook.host.chats.tables import known_id, owner_key


class SqlTurnLogs:
    """Implements `ports.TurnLogs`."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def append(
        self, owner: ChatOwner, turn: str, first: int, body: bytes, lease_until: int, /
    ) -> Marks:
        """Append events and renew the lease. An empty `body` renews only."""
        whose = {"owner": owner_key(owner), "id": known_id("turn", turn)}

        def work(sql: Sql) -> Marks:
            if not sql.change(
                "update turns set lease_until = :until where owner = :owner and id = :id"
                " and state = 'running'",
                until=lease_until,
                **whose,
            ):
                return Marks(lost=True)
            append_blob(sql, turn, first, body)
            ((stop,),) = sql.rows("select stop from turns where id = :id", id=turn)
            return Marks(stop=bool(stop))

        return await self._threads.write(work, abandon=True)

    async def read(
        self, owner: ChatOwner, turn: str, after: int = 0, /
    ) -> Sequence[tuple[int, bytes]]:
        """Return the blobs that hold events with a number above `after`, each with the number of
        its first event."""
        known = known_id("turn", turn)
        rows = await self._threads.read(
            lambda sql: sql.rows(
                "select l.first, l.body from logs l join turns t on t.id = l.turn_id"
                " where t.owner = :owner and l.turn_id = :id and l.last > :after"
                " order by l.first",
                owner=owner_key(owner),
                id=known,
                after=after,
            )
        )
        return [(first, bytes(body)) for first, body in rows]

    async def hold(self, owner: ChatOwner, turn: str, until: int, /) -> None:
        """Note that a reader in another process reads a turn until a time."""
        known = known_id("turn", turn)
        await self._threads.write(
            lambda sql: sql.change(
                "update turns set read_until = :until where owner = :owner and id = :id"
                " and read_until < :until",
                until=until,
                owner=owner_key(owner),
                id=known,
            )
        )

    async def stop(self, owner: ChatOwner, turn: str, /) -> bool:
        """Ask the process that runs a turn to stop it. Returns whether it was running."""
        known = known_id("turn", turn)
        return bool(
            await self._threads.write(
                lambda sql: sql.change(
                    "update turns set stop = 1 where owner = :owner and id = :id"
                    " and state = 'running'",
                    owner=owner_key(owner),
                    id=known,
                )
            )
        )


def append_blob(sql: Sql, turn: str, first: int, body: bytes) -> None:
    """Add events to the log of a turn; nothing for an empty body. A caller that does not know
    whether they were added adds them again, with those that came since."""
    if body:
        # A flush whose commit was not acknowledged is written again with what came since: it begins
        # at the same event, so it replaces itself.
        sql.change(
            "insert into logs (turn_id, first, last, body) values (:id, :first, :last, :body)"
            " on conflict (turn_id, first) do update set last = excluded.last,"
            " body = excluded.body",
            id=turn,
            first=first,
            last=first + body.count(b"\n") - 1,
            body=body,
        )
