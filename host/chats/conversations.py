"""The messages and turns of chats, in rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from groundhook.core.errors import AlreadyDecided, ChatBusy, RequestRepeated, UnknownName
from groundhook.core.json_lines import line
from groundhook.core.types.chats import ChatMessage, ChatOwner, Feedback, StoredTurn
from groundhook.host.chats.attachments import (
    keep_files,
    keep_picture_text,
    names_of,
    picture_text,
    read_files,
)
from groundhook.host.chats.logs import append_blob
from groundhook.host.chats.ports import EndedTurn, KeptFile, NewTurn
from groundhook.host.chats.storage.sql import Sql, SqlRow, Threads
from groundhook.host.chats.tables import (
    MESSAGE,
    TURN,
    body_of,
    known_id,
    message_in,
    owner_key,
    title_of,
    turn_in,
)

_UP = """
with recursive up (id, parent, depth) as (
    select id, parent, 0 from messages
        where owner = :owner and chat_id = :chat and id = :leaf
    union all
    select m.id, m.parent, up.depth + 1 from messages m join up on m.id = up.parent
        where m.owner = :owner and m.chat_id = :chat and up.depth + 1 < :limit
)
"""
# Messages: longer than any chat, and an end for a path that damaged rows would close to a circle.
NO_LIMIT = 1_000_000


class SqlConversations:
    """Implements `ports.Conversations`."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def path(
        self, owner: ChatOwner, chat: str, leaf: str = "", limit: int | None = None, /
    ) -> Sequence[ChatMessage]:
        """Return the messages from the first to `leaf` (empty: the chat's own), at most the newest
        `limit`. Raises UnknownName."""
        whose = {"owner": owner_key(owner), "chat": known_id("chat", chat)}

        def work(sql: Sql) -> tuple[Sequence[SqlRow], Sequence[SqlRow]]:
            found = sql.rows("select leaf from chats where owner = :owner and id = :chat", **whose)
            if not found:
                raise UnknownName("chat", chat, ())
            end = known_id("message", leaf) if leaf else found[0][0]
            if not end:
                return [], []
            at = {**whose, "leaf": end, "limit": NO_LIMIT if limit is None else max(limit, 1)}
            rows = sql.rows(
                f"{_UP} select {MESSAGE} from up join messages m on m.id = up.id"
                " order by up.depth desc",
                **at,
            )
            if not rows:
                raise UnknownName("message", end, ())
            children = sql.rows(
                f"{_UP} select m.parent, m.id from messages m where m.owner = :owner"
                " and m.chat_id = :chat and m.parent in (select parent from up)"
                " order by m.number",
                **at,
            )
            return rows, children

        rows, children = await self._threads.read(work)
        siblings: defaultdict[str, list[str]] = defaultdict(list)
        for parent, id in children:
            siblings[parent].append(id)
        return [message_in(row, tuple(siblings[row[2]])) for row in rows]

    async def message(self, owner: ChatOwner, id: str, /) -> ChatMessage:
        """Return a message. Raises UnknownName."""
        whose = {"owner": owner_key(owner), "id": known_id("message", id)}

        def work(sql: Sql) -> tuple[Sequence[SqlRow], Sequence[SqlRow]]:
            rows = sql.rows(
                f"select {MESSAGE} from messages m where m.owner = :owner and m.id = :id", **whose
            )
            if not rows:
                raise UnknownName("message", id, ())
            return rows, sql.rows(
                "select id from messages where owner = :owner and chat_id = :chat"
                " and parent = :parent order by number",
                owner=whose["owner"],
                chat=rows[0][1],
                parent=rows[0][2],
            )

        rows, siblings = await self._threads.read(work)
        return message_in(rows[0], tuple(sibling for (sibling,) in siblings))

    async def begin(self, owner: ChatOwner, turn: NewTurn, /) -> StoredTurn:
        """Store the question and a turn that runs. Raises UnknownName, ChatBusy,
        RequestRepeated."""
        question = turn.question
        begun = StoredTurn(
            id=turn.id,
            chat_id=turn.chat_id,
            question_id=question if isinstance(question, str) else question.id,
            answer_id=turn.answer_id,
            worker=turn.worker,
            lease_until=turn.lease_until,
            began_at=turn.at,
        )

        def work(sql: Sql) -> None:
            if turn.request is not None:
                _refuse_repeated(sql, owner, turn.request.key)
            if begun.chat_id:
                _take_chat(sql, owner, begun, turn.at)
                if isinstance(question, str):
                    _check_message(sql, owner, begun.chat_id, question, "user")
                else:
                    if question.decisions:
                        _refuse_second_decision(sql, owner, question)
                    _keep_question(sql, owner, question)
                    if turn.files:
                        keep_files(sql, owner, question, turn.files, turn.most_files)
                sql.change(
                    "update chats set leaf = :leaf where owner = :owner and id = :chat",
                    leaf=begun.question_id,
                    owner=owner_key(owner),
                    chat=begun.chat_id,
                )
            sql.change(
                f"insert into turns (owner, stop, brought, request_key, request_digest, {TURN})"
                " values (:owner, 0, :brought, :key, :digest, :id, :chat_id, :question_id,"
                " :answer_id, :state, :worker, :lease_until, :began_at, :read_until)",
                owner=owner_key(owner),
                key=turn.request.key if turn.request else "",
                digest=turn.request.digest if turn.request else "",
                brought=int(isinstance(question, ChatMessage)),
                **begun.model_dump(),
            )

        await self._threads.write(work)
        return begun

    async def undo(self, owner: ChatOwner, turn: str, /) -> None:
        """Remove a turn that could not be entered, with the question that it brought."""
        whose = {"owner": owner_key(owner), "id": known_id("turn", turn)}

        def work(sql: Sql) -> None:
            # Only a question that this turn brought and nothing answers: another answer to a stored
            # question leaves it where it is.
            rows = sql.rows(
                "select t.chat_id, t.question_id, m.parent from turns t"
                " join messages m on m.id = t.question_id"
                " where t.owner = :owner and t.id = :id and t.brought = 1"
                " and not exists (select 1 from messages c where c.parent = t.question_id)",
                **whose,
            )
            for chat, question, parent in rows:
                sql.change("delete from messages where id = :id", id=question)
                sql.change("delete from attachments where message_id = :id", id=question)
                sql.change(
                    "update chats set leaf = :parent where owner = :owner and id = :chat"
                    " and leaf = :leaf",
                    owner=whose["owner"],
                    parent=parent,
                    chat=chat,
                    leaf=question,
                )
            sql.change("delete from turns where owner = :owner and id = :id", **whose)

        await self._threads.write(work)

    async def end(self, owner: ChatOwner, turn: EndedTurn, /) -> bool:
        """Keep the answer, the rest of the log, and that the turn has ended. Returns whether it was
        under way, or counted as lost."""
        whose = {"owner": owner_key(owner), "id": turn.id}
        answer = turn.answer

        def work(sql: Sql) -> bool:
            # The chat's row first, as in `begin`: two transactions that take rows in another order
            # would wait for each other.
            sql.change(
                "update chats set leaf = leaf where owner = :owner and id = :chat",
                owner=whose["owner"],
                chat=answer.chat_id,
            )
            if not sql.change(
                "update turns set state = :state where owner = :owner and id = :id"
                " and state = 'running'",
                state=turn.state,
                **whose,
            ):
                return _replace_lost(sql, owner, turn)
            append_blob(sql, turn.id, turn.first, turn.log)
            if answer.chat_id:
                _insert(sql, owner, answer)
                # The leaf only if the question is still what is shown: the user may have gone to
                # another branch while it was answered.
                sql.change(
                    "update chats set changed_at = :at,"
                    " leaf = case when leaf = :question then :leaf else leaf end"
                    " where owner = :owner and id = :chat",
                    at=turn.at,
                    owner=whose["owner"],
                    leaf=answer.id,
                    chat=answer.chat_id,
                    question=answer.parent,
                )
            return True

        return await self._threads.write(work, abandon=True)

    async def turn(self, owner: ChatOwner, id: str, /) -> StoredTurn:
        """Return a turn. Raises UnknownName."""
        known = known_id("turn", id)
        rows = await self._threads.read(
            lambda sql: sql.rows(
                f"select {TURN} from turns where owner = :owner and id = :id",
                owner=owner_key(owner),
                id=known,
            )
        )
        if not rows:
            raise UnknownName("turn", id, ())
        return turn_in(rows[0])

    async def requested(self, owner: ChatOwner, key: str, /) -> tuple[StoredTurn, str] | None:
        """Return the turn that a request with this key began, and the digest of the request."""
        rows = await self._threads.read(
            lambda sql: sql.rows(
                f"select request_digest, {TURN} from turns where owner = :owner"
                " and request_key = :key and request_key <> ''",
                owner=owner_key(owner),
                key=key,
            )
        )
        return (turn_in(rows[0][1:]), rows[0][0]) if rows else None

    async def files(
        self, owner: ChatOwner, chat: str, ids: Sequence[str], /
    ) -> Mapping[str, KeptFile]:
        """Return files of a chat by id. Raises UnknownName for one that the chat does not have."""
        return await self._threads.read(lambda sql: read_files(sql, owner, chat, ids))

    async def picture_text(self, owner: ChatOwner, chat: str, digest: str, /) -> str:
        """Return the description of a picture of a chat; empty if none is kept."""
        return await self._threads.read(lambda sql: picture_text(sql, owner, chat, digest))

    async def keep_picture_text(
        self, owner: ChatOwner, chat: str, digest: str, text: str, /
    ) -> None:
        """Keep the description of a picture with its chat."""
        await self._threads.write(lambda sql: keep_picture_text(sql, owner, chat, digest, text))

    async def running(self, owner: ChatOwner, chat: str, /) -> StoredTurn | None:
        """Return the turn of a chat that runs, or None."""
        known = known_id("chat", chat)
        rows = await self._threads.read(
            lambda sql: sql.rows(
                f"select {TURN} from turns where owner = :owner and chat_id = :chat"
                " and state = 'running'",
                owner=owner_key(owner),
                chat=known,
            )
        )
        return turn_in(rows[0]) if rows else None

    async def newest_after(self, owner: ChatOwner, chat: str, id: str, /) -> str:
        """Return the newest message of the branches that begin with a message. Raises
        UnknownName."""
        known = known_id("message", id)
        rows = await self._threads.read(
            lambda sql: sql.rows(
                "select id, parent from messages where owner = :owner and chat_id = :chat"
                " order by number",
                owner=owner_key(owner),
                chat=known_id("chat", chat),
            )
        )
        if all(known != row[0] for row in rows):
            raise UnknownName("message", id, ())
        # A message comes after its parent.
        after, newest = {known}, known
        for each, parent in rows:
            if parent in after:
                after.add(each)
                newest = each
        return newest

    async def rate(self, owner: ChatOwner, message: str, feedback: Feedback, /) -> None:
        """Keep what the reader thinks of an answer. Raises UnknownName."""
        known = known_id("message", message)
        body = line(feedback).encode()
        if not await self._threads.write(
            lambda sql: sql.change(
                "update messages set feedback = :feedback where owner = :owner and id = :id"
                " and role = 'assistant'",
                feedback=body,
                owner=owner_key(owner),
                id=known,
            )
        ):
            raise UnknownName("answer", message, ())


def _replace_lost(sql: Sql, owner: ChatOwner, turn: EndedTurn) -> bool:
    """Keep the whole answer in place of the one that broke off: the process of the turn was only
    silent for too long. Returns whether the turn counted as lost."""
    if turn.state == "lost" or not sql.change(
        "update turns set state = :state where owner = :owner and id = :id and state = 'lost'",
        state=turn.state,
        owner=owner_key(owner),
        id=turn.id,
    ):
        return False
    sql.change(
        "update messages set body = :body where owner = :owner and id = :answer",
        body=body_of(turn.answer),
        owner=owner_key(owner),
        answer=turn.answer.id,
    )
    return True


def _take_chat(sql: Sql, owner: ChatOwner, turn: StoredTurn, at: int) -> None:
    """Lock the chat's row. Raises UnknownName, and ChatBusy while another turn runs."""
    if not sql.change(
        "update chats set changed_at = :at where owner = :owner and id = :chat",
        at=at,
        owner=owner_key(owner),
        chat=known_id("chat", turn.chat_id),
    ):
        raise UnknownName("chat", turn.chat_id, ())
    # Under the lock, so that of two questions at once only one finds no turn.
    running = sql.rows(
        "select id from turns where owner = :owner and chat_id = :chat and state = 'running'",
        owner=owner_key(owner),
        chat=turn.chat_id,
    )
    if running:
        raise ChatBusy(turn.chat_id, running[0][0])


def _refuse_repeated(sql: Sql, owner: ChatOwner, key: str) -> None:
    """Raise RequestRepeated if a turn has the key: its request came to another process."""
    whose = {"owner": owner_key(owner), "key": key}
    # The row does not exist yet, so two transactions would both find none.
    sql.lock(f"request {whose['owner']} {key}")
    rows = sql.rows("select id from turns where owner = :owner and request_key = :key", **whose)
    if rows:
        raise RequestRepeated(rows[0][0])


def _refuse_second_decision(sql: Sql, owner: ChatOwner, question: ChatMessage) -> None:
    """Raise AlreadyDecided if a message follows the answer whose calls are decided about. Under the
    lock of the chat, so that of two decisions at once only one finds none."""
    if sql.rows(
        "select id from messages where owner = :owner and chat_id = :chat and parent = :parent",
        owner=owner_key(owner),
        chat=question.chat_id,
        parent=question.parent,
    ):
        raise AlreadyDecided


def _keep_question(sql: Sql, owner: ChatOwner, question: ChatMessage) -> None:
    if question.parent:
        _check_message(sql, owner, question.chat_id, question.parent)
    _insert(sql, owner, question)
    title = title_of(question.text or names_of(question.content))
    sql.change(
        "update chats set title = :title, folded = :folded"
        " where owner = :owner and id = :chat and title = ''",
        owner=owner_key(owner),
        title=title,
        folded=title.casefold(),
        chat=question.chat_id,
    )


def _check_message(sql: Sql, owner: ChatOwner, chat: str, id: str, role: str = "") -> None:
    """Raise UnknownName unless the chat has the message, with that role if one is named."""
    rows = sql.rows(
        "select role from messages where owner = :owner and chat_id = :chat and id = :id",
        owner=owner_key(owner),
        chat=chat,
        id=known_id("message", id),
    )
    if not rows or role not in ("", rows[0][0]):
        raise UnknownName("question" if role == "user" else "message", id, ())


def _insert(sql: Sql, owner: ChatOwner, message: ChatMessage) -> None:
    sql.change(
        "insert into messages (id, owner, chat_id, parent, number, role, made_at, body)"
        " values (:id, :owner, :chat, :parent, (select coalesce(max(number), 0) + 1 from messages"
        " where owner = :owner and chat_id = :chat), :role, :at, :body)",
        id=message.id,
        owner=owner_key(owner),
        chat=message.chat_id,
        parent=message.parent,
        role=message.role,
        at=message.made_at,
        body=body_of(message),
    )
