"""The files of chats: kept beside the messages, so that a history is read without them.

A message refers to its files by id; a file is found by the owner and the chat as well, never by its
id alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from groundhook.core.errors import UnknownName, UsageError
from groundhook.core.types.attached import (
    FILES,
    AttachedPart,
    attached_part,
    attached_picture,
    data_url,
)
from groundhook.core.types.chats import ChatMessage, ChatOwner
from groundhook.host.chats.ports import FileLimits, KeptFile
from groundhook.host.chats.storage.sql import Sql
from groundhook.host.chats.tables import kept_text, known_id, owner_key

MOST_PICTURE_TEXTS = 200  # of one chat
_OURS = "f_"  # ids of files; others are those of a model's host
_Content = str | list[dict[str, Any]]


def without_files(content: _Content) -> tuple[_Content, list[KeptFile]]:
    """Return the content of a message with references in place of its files and pictures, and
    these. Raises UsageError for one that is no valid base64."""
    if isinstance(content, str):
        return content, []
    parts: list[dict[str, Any]] = []
    files: list[KeptFile] = []
    for part in content:
        file = _file_of(part)
        if file is None or not file.data_url:
            parts.append(part)
            continue
        kept = KeptFile(
            id=f"{_OURS}{secrets.token_hex(12)}",
            name=file.name,
            media_type=file.media_type,
            body=file.data,
        )
        files.append(kept)
        about = {
            "filename": kept.name,
            "media_type": kept.media_type,
            "bytes": len(kept.body),
            "file_id": kept.id,
        }
        if part.get("type") in FILES:
            parts.append({"type": "file", "file": about})
        else:
            parts.append({"type": "image_url", "image_url": {"url": "", **about}})
    return parts, files


def _file_of(part: Mapping[str, Any]) -> AttachedPart | None:
    """Return the file or picture of a part; None also for a malformed one, which is reported by
    the turn."""
    try:
        return attached_part(part) or attached_picture(part)
    except UsageError:
        return None


def names_of(content: _Content) -> str:
    """Return the names of the files that a message refers to, in one line."""
    parts = content if isinstance(content, list) else []
    files = [_file_of(part) for part in parts]
    return ", ".join(file.name for file in files if file is not None)


def file_ids(content: _Content | None) -> Iterator[str]:
    """Yield the ids of the files that a message refers to."""
    for part in content if isinstance(content, list) else ():
        file = _file_of(part)
        if file is not None and file.id.startswith(_OURS) and not file.data_url:
            yield file.id


def with_files(content: _Content, files: Mapping[str, KeptFile]) -> _Content:
    """Return the content of a message with its files in place of their references."""
    if isinstance(content, str):
        return content
    return [_with_file(part, files) for part in content]


def _with_file(part: dict[str, Any], files: Mapping[str, KeptFile]) -> dict[str, Any]:
    file = _file_of(part)
    kept = files.get(file.id) if file is not None and not file.data_url else None
    if kept is None:
        return part
    url = data_url(kept.body, kept.media_type)
    if part.get("type") in FILES:
        return {"type": "file", "file": {"filename": kept.name, "file_data": url}}
    return {"type": "image_url", "image_url": {"url": url, "filename": kept.name}}


def keep_files(
    sql: Sql, owner: ChatOwner, question: ChatMessage, files: Sequence[KeptFile], most: FileLimits
) -> None:
    """Keep the files of a question. Raises UsageError above the limits of a person."""
    whose = {"owner": owner_key(owner)}
    # Two questions at once would both find room for one.
    sql.lock(f"files {whose['owner']}")
    rows = sql.rows(
        "select count(*), coalesce(sum(size), 0) from attachments where owner = :owner", **whose
    )
    count, size = int(rows[0][0]) + len(files), int(rows[0][1]) + sum(len(f.body) for f in files)
    for held, limit, what, key in (
        (count, most.files, f"{most.files} files", "person_files"),
        (size, most.bytes, f"{most.bytes / 2**20:g} MB of files", "person_mb"),
    ):
        if held > limit:
            raise UsageError(
                f"the chats of one person hold at most {what}",
                hint=f"remove a chat with files; attachments.{key}",
            )
    for file in files:
        sql.change(
            "insert into attachments (id, owner, chat_id, message_id, name, media_type, size, body)"
            " values (:id, :owner, :chat, :message, :name, :type, :size, :body)",
            id=file.id,
            chat=question.chat_id,
            message=question.id,
            name=file.name,
            type=file.media_type,
            size=len(file.body),
            body=file.body,
            **whose,
        )


def read_files(sql: Sql, owner: ChatOwner, chat: str, ids: Sequence[str]) -> dict[str, KeptFile]:
    """Return files of a chat by id. Raises UnknownName for one that the chat does not have."""
    found: dict[str, KeptFile] = {}
    for id in dict.fromkeys(ids):
        rows = sql.rows(
            "select id, name, media_type, body from attachments"
            " where owner = :owner and chat_id = :chat and id = :id",
            owner=owner_key(owner),
            chat=known_id("chat", chat),
            id=known_id("file", id),
        )
        if not rows:
            raise UnknownName("file", id, ())
        _, name, media_type, body = rows[0]
        found[id] = KeptFile(id=id, name=name, media_type=media_type, body=bytes(body))
    return found


def picture_text(sql: Sql, owner: ChatOwner, chat: str, digest: str) -> str:
    """Return the description of a picture of a chat; empty if none is kept."""
    rows = sql.rows(
        "select body from picture_texts"
        " where owner = :owner and chat_id = :chat and digest = :digest",
        owner=owner_key(owner),
        chat=known_id("chat", chat),
        digest=digest,
    )
    return str(rows[0][0]) if rows else ""


def keep_picture_text(sql: Sql, owner: ChatOwner, chat: str, digest: str, text: str) -> None:
    """Keep the description of a picture; not for a chat that was removed meanwhile, nor more than
    `MOST_PICTURE_TEXTS`."""
    whose = {"owner": owner_key(owner), "chat": known_id("chat", chat)}
    # The chat's row first, so that its removal waits.
    if not sql.change("update chats set leaf = leaf where owner = :owner and id = :chat", **whose):
        return
    sql.change(
        "insert into picture_texts (owner, chat_id, digest, body)"
        " select :owner, :chat, :digest, :body where"
        " (select count(*) from picture_texts where owner = :owner and chat_id = :chat) < :most"
        " on conflict do nothing",
        digest=digest,
        body=kept_text(text),
        most=MOST_PICTURE_TEXTS,
        **whose,
    )
