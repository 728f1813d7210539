"""The tables of stored conversations, and rows as values."""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from groundhook.core.errors import StorageError, UnknownName
from groundhook.core.json_lines import line
from groundhook.core.types.base import Value, validate_known
from groundhook.core.types.chats import (
    Chat,
    ChatMessage,
    ChatOwner,
    Decision,
    Feedback,
    KeptAnswer,
    StoredTurn,
)
from groundhook.host.chats.storage.sql import SqlRow, TableScripts

CHATS = TableScripts(
    "chats",
    (
        """
        create table chats (
            owner text not null, id text not null, assistant_id text not null,
            title text not null, folded text not null, made_at bigint not null,
            changed_at bigint not null, leaf text not null, archived bigint not null,
            primary key (owner, id)
        );
        create index chats_of_owner on chats (owner, changed_at, id);
        create index chats_by_change on chats (changed_at);
        create table messages (
            id text primary key, owner text not null, chat_id text not null, parent text not null,
            number bigint not null, role text not null, made_at bigint not null,
            body blob not null, feedback blob
        );
        create unique index messages_of_chat on messages (owner, chat_id, number);
        create table turns (
            id text primary key, owner text not null, chat_id text not null,
            question_id text not null, answer_id text not null, state text not null,
            worker text not null, lease_until bigint not null, began_at bigint not null,
            stop bigint not null, brought bigint not null
        );
        create unique index one_turn_at_a_time on turns (owner, chat_id)
            where state = 'running' and chat_id <> '';
        create index turns_of_chat on turns (owner, chat_id);
        create index turns_that_run on turns (lease_until) where state = 'running';
        create index turns_by_begin on turns (began_at);
        create table logs (
            turn_id text not null, first bigint not null, last bigint not null,
            body blob not null, primary key (turn_id, first)
        );
        """,
        """
        alter table turns add column request_key text not null default '';
        alter table turns add column request_digest text not null default '';
        create unique index turns_by_request on turns (owner, request_key)
            where request_key <> '';
        """,
        """
        alter table turns add column read_until bigint not null default 0;
        """,
        """
        create table attachments (
            id text primary key, owner text not null, chat_id text not null,
            message_id text not null, name text not null, media_type text not null,
            size bigint not null, body blob not null
        );
        create index attachments_of_chat on attachments (owner, chat_id);
        """,
        """
        create table picture_texts (
            owner text not null, chat_id text not null, digest text not null, body text not null,
            primary key (owner, chat_id, digest)
        );
        """,
    ),
)

CHAT = "id, assistant_id, title, made_at, changed_at, leaf, archived"
MESSAGE = "m.id, m.chat_id, m.parent, m.role, m.made_at, m.body, m.feedback"
TURN = "id, chat_id, question_id, answer_id, state, worker, lease_until, began_at, read_until"
TITLE_LENGTH = 60

_ID = re.compile(r"[!-~]{1,100}")
# What PostgreSQL cannot store as text: NUL and half of a surrogate pair.
_UNKEPT = re.compile("[\x00\ud800-\udfff]")


class Body(Value):
    """The part of a message that is stored as JSON."""

    content: str | list[dict[str, Any]] = ""
    answer: KeptAnswer | None = None
    decisions: tuple[Decision, ...] = ()


def owner_key(owner: ChatOwner) -> str:
    """Return the text that identifies an owner in every row: ASCII for any ids, and different for
    ("a", "bc") and ("ab", "c")."""
    program = (owner.program,) if owner.program else ()
    return json.dumps([owner.tenant, owner.user, *program])


def owner_in(key: str) -> ChatOwner:
    """Return the owner of a row."""
    return ChatOwner(*json.loads(key))


def known_id(noun: str, id: str) -> str:
    """Return an id that a caller sent. Raises UnknownName for one that no row can have."""
    if not is_id(id):
        raise UnknownName(noun, id[:100], ())
    return id


def is_id(id: str) -> bool:
    """Return whether a row can have this id."""
    return _ID.fullmatch(id) is not None


def title_of(text: str) -> str:
    """Return the title of a chat whose first question is `text`: its beginning, cut at a word."""
    line = " ".join(_UNKEPT.sub("", text).split())
    if len(line) <= TITLE_LENGTH:
        return line
    head = line[: TITLE_LENGTH - 1]
    word, blank, _ = head.rpartition(" ")
    return f"{word if blank and len(word) > TITLE_LENGTH // 2 else head}…"


def kept_text(text: str) -> str:
    """Return a text without the characters that PostgreSQL cannot store."""
    return _UNKEPT.sub("", text)


def chat_in(row: SqlRow) -> Chat:
    id, assistant_id, title, made_at, changed_at, leaf, archived = row
    return Chat(
        id=id,
        assistant_id=assistant_id,
        title=title,
        made_at=made_at,
        changed_at=changed_at,
        leaf=leaf,
        archived=bool(archived),
    )


def turn_in(row: SqlRow) -> StoredTurn:
    names = TURN.split(", ")
    return StoredTurn(**dict(zip(names, row, strict=True)))


def message_in(row: SqlRow, siblings: tuple[str, ...]) -> ChatMessage:
    """Return a message. Raises StorageError for a body that cannot be read."""
    id, chat_id, parent, role, made_at, body, feedback = row
    kept = _read_value(Body, body, id)
    return ChatMessage(
        id=id,
        chat_id=chat_id,
        parent=parent,
        role=role,
        content=kept.content,
        answer=kept.answer,
        decisions=kept.decisions,
        made_at=made_at,
        feedback=_read_value(Feedback, feedback, id) if feedback is not None else None,
        siblings=siblings,
    )


def body_of(message: ChatMessage) -> bytes:
    """Return the part of a message that is stored as JSON. Does not raise for any content."""
    body = Body.model_construct(
        content=message.content, answer=message.answer, decisions=message.decisions
    )
    return line(body).encode()


def _read_value(model: type[Any], body: bytes, id: str) -> Any:
    try:
        return model.model_validate_json(body)
    except ValidationError:
        pass
    try:  # stored by a version with other fields
        return validate_known(model, from_json(body))[0]
    except ValueError as exc:
        raise StorageError(f"the message {id!r} was kept by another version, or damaged") from exc
