"""The chats of an owner, in rows."""

from __future__ import annotations

import re

from groundhook.core.errors import UnknownName, UsageError
from groundhook.core.types.chats import Chat, ChatOwner
from groundhook.host.chats.ports import ChatChange, ChatListing, ChatPage
from groundhook.host.chats.storage.sql import Sql, SqlRow, Threads
from groundhook.host.chats.tables import (
    CHAT,
    chat_in,
    is_id,
    kept_text,
    known_id,
    owner_key,
)

MOST_LISTED = 1000
_AFTER = re.compile(r"(\d{1,18})\.([!-~]{1,100})")


class SqlChats:
    """Implements `ports.Chats`."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def make(self, owner: ChatOwner, chat: Chat, /) -> Chat:
        """Keep a new chat and return it. Raises UsageError for an id that the owner uses."""
        title = kept_text(chat.title)
        if not is_id(chat.id):
            raise UsageError(
                f"{chat.id[:100]!r} cannot be the id of a chat",
                hint="an id has 1 to 100 visible characters of ASCII",
            )

        def work(sql: Sql) -> None:
            # Programs may choose ids, and two of them the same at once.
            made = sql.change(
                f"insert into chats (owner, folded, {CHAT}) values (:owner, :folded, :id,"
                " :assistant_id, :title, :made_at, :changed_at, :leaf, :archived)"
                " on conflict (owner, id) do nothing",
                owner=owner_key(owner),
                folded=title.casefold(),
                **{**chat.model_dump(), "title": title, "archived": int(chat.archived)},
            )
            if not made:
                raise UsageError(f"there is a chat {chat.id!r} already")

        await self._threads.write(work)
        return chat.model_copy(update={"title": title})

    async def chat(self, owner: ChatOwner, id: str, /) -> Chat:
        """Return a chat. Raises UnknownName."""
        known = known_id("chat", id)
        return await self._threads.read(lambda sql: find_chat(sql, owner, known))

    async def list(self, owner: ChatOwner, page: ChatPage, /) -> ChatListing:
        """Return a page of the chats. Raises UsageError for an `after` that is none."""
        rows = await self._threads.read(lambda sql: list_rows(sql, page, CHAT, owner))
        chats = [chat_in(row) for row in rows[: page.limit]]
        following = f"{chats[-1].changed_at}.{chats[-1].id}" if len(rows) > page.limit else ""
        return ChatListing(chats=chats, next=following)

    async def change(self, owner: ChatOwner, change: ChatChange, /) -> Chat:
        """Change a chat and return it. Raises UnknownName, also for the leaf."""
        known = known_id("chat", change.chat_id)
        whose = {"owner": owner_key(owner), "chat": known}

        def work(sql: Sql) -> Chat:
            find_chat(sql, owner, known)
            if change.title is not None:
                title = kept_text(change.title)
                # A title that was written beside the first turn comes late: the user may have
                # changed it meanwhile, and then the user's stays.
                sql.change(
                    "update chats set title = :title, folded = :folded, changed_at = :at"
                    " where owner = :owner and id = :chat and title = coalesce(:before, title)",
                    title=title,
                    folded=title.casefold(),
                    at=change.at,
                    before=change.instead_of,
                    **whose,
                )
            if change.leaf is not None:
                leaf = known_id("message", change.leaf)
                if not sql.rows(
                    "select 1 from messages"
                    " where owner = :owner and chat_id = :chat and id = :leaf",
                    leaf=leaf,
                    **whose,
                ):
                    raise UnknownName("message", leaf, ())
                sql.change(
                    "update chats set leaf = :leaf where owner = :owner and id = :chat",
                    leaf=leaf,
                    **whose,
                )
            if change.archived is not None:
                sql.change(
                    "update chats set archived = :archived where owner = :owner and id = :chat",
                    archived=int(change.archived),
                    **whose,
                )
            return find_chat(sql, owner, known)

        return await self._threads.write(work)

    async def delete(self, owner: ChatOwner, id: str, /) -> None:
        """Remove a chat with everything stored for it. Raises UnknownName."""
        known = known_id("chat", id)

        def work(sql: Sql) -> None:
            find_chat(sql, owner, known)
            delete_chat(sql, owner_key(owner), known)

        await self._threads.write(work)


def find_chat(sql: Sql, owner: ChatOwner, id: str) -> Chat:
    """Return a chat. Raises UnknownName."""
    rows = sql.rows(
        f"select {CHAT} from chats where owner = :owner and id = :id",
        owner=owner_key(owner),
        id=id,
    )
    if not rows:
        raise UnknownName("chat", id, ())
    return chat_in(rows[0])


def delete_chat(sql: Sql, owner: str, id: str) -> None:
    """Remove the rows of a chat; `owner` is the owner's key."""
    whose = {"owner": owner, "id": id}
    # The logs first: they have no owner of their own, and are found by their turns.
    turns = "select id from turns where owner = :owner and chat_id = :id"
    sql.change(f"delete from logs where turn_id in ({turns})", **whose)
    sql.change("delete from turns where owner = :owner and chat_id = :id", **whose)
    sql.change("delete from attachments where owner = :owner and chat_id = :id", **whose)
    sql.change("delete from picture_texts where owner = :owner and chat_id = :id", **whose)
    sql.change("delete from messages where owner = :owner and chat_id = :id", **whose)
    sql.change("delete from chats where owner = :owner and id = :id", **whose)


def list_rows(
    sql: Sql, page: ChatPage, columns: str, owner: ChatOwner | None = None
) -> list[SqlRow]:
    """Return the rows of a page, and one more if there are more. Raises UsageError."""
    if not 0 < page.limit <= MOST_LISTED:
        raise UsageError(f"a page has between 1 and {MOST_LISTED} chats, not {page.limit}")
    # One more than the page has: it tells whether another page follows.
    conditions, values = ["1 = 1"], {"limit": page.limit + 1}
    texts: dict[str, str] = {}
    if owner is not None:
        conditions.append("owner = :owner")
        texts["owner"] = owner_key(owner)
    if page.assistant_id:
        conditions.append("assistant_id = :assistant")
        texts["assistant"] = kept_text(page.assistant_id)
    if page.archived is not None:
        conditions.append("archived = :archived")
        values["archived"] = int(page.archived)
    if page.words:
        # The column has the folded title, since SQLite's lower() knows ASCII alone.
        conditions.append("folded like :words escape '!'")
        literal = re.sub("([!%_])", r"!\1", kept_text(page.words).casefold())
        texts["words"] = f"%{literal}%"
    if page.after:
        place = _AFTER.fullmatch(page.after)
        if place is None:
            raise UsageError("`after` is not the `next` of a page")
        # Two chats may have changed in one millisecond, so the id decides as well.
        conditions.append("(changed_at, id) < (:changed, :after)")
        values["changed"] = int(place[1])
        texts["after"] = place[2]
    return list(
        sql.rows(
            f"select {columns} from chats where {' and '.join(conditions)}"
            " order by changed_at desc, id desc limit :limit",
            **values,
            **texts,
        )
    )
