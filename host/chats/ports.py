"""The ports of stored conversations, and the values that they take.

Every method takes the owner first; none finds a row by its id alone. What belongs to somebody else
does not exist: UnknownName. Times are whole milliseconds since 1970. Every method may
raise StorageError.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from groundhook.core.types.chats import (
    Chat,
    ChatMessage,
    ChatOwner,
    Feedback,
    StoredTurn,
    TurnState,
)
from groundhook.host.chats.storage.sql import Times

AHEAD_MS = 60_000  # how far the clocks of two processes may be apart


def chat_id() -> str:
    """Return a new id of a chat: 128 bits, which cannot be guessed."""
    return f"c_{secrets.token_hex(16)}"


def message_id() -> str:
    """Return a new id of a message."""
    return f"m_{secrets.token_hex(12)}"


def turn_id() -> str:
    """Return a new id of a turn."""
    return f"t_{secrets.token_hex(6)}"


@dataclass(frozen=True, kw_only=True)
class ChatPage:
    """The chats to list: the last changed first, those after `after`, which is the `next` of the
    previous page. `words`: only chats whose title contains them."""

    limit: int = 50
    after: str = ""
    words: str = ""
    assistant_id: str = ""
    archived: bool | None = False  # None: both


@dataclass(frozen=True, kw_only=True)
class ChatListing:
    """A page of chats. `next` is empty after the last."""

    chats: Sequence[Chat]
    next: str = ""


@dataclass(frozen=True, kw_only=True)
class ChatChange:
    """The changes of a chat; None: no change. `leaf` is any of its messages: the branch that is
    shown ends there. `instead_of`: the title is changed only where it still is this one."""

    chat_id: str
    at: int
    title: str | None = None
    instead_of: str | None = None
    leaf: str | None = None
    archived: bool | None = None


@dataclass(frozen=True)
class RequestKey:
    """The key by which a client repeats a request, and a digest of what it requested."""

    key: str
    digest: str


@dataclass(frozen=True, kw_only=True)
class KeptFile:
    """A file or a picture of a question, without its part."""

    id: str
    name: str
    media_type: str
    body: bytes


@dataclass(frozen=True)
class FileLimits:
    """The most files that the chats of one person hold, and their bytes together."""

    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class NewTurn:
    """A turn that begins. `question` is the message to store, or the id of a stored one, for
    another answer to it; `files` are those of a message to store, which refers to them by id.
    `request` finds it again, with `requested`."""

    id: str
    chat_id: str
    question: ChatMessage | str
    answer_id: str
    worker: str
    at: int
    lease_until: int
    request: RequestKey | None = None
    files: Sequence[KeptFile] = ()
    most_files: FileLimits = FileLimits()


@dataclass(frozen=True, kw_only=True)
class EndedTurn:
    """A turn that ended, with its answer. `log`: events that were not appended yet, and the number
    of the first."""

    id: str
    answer: ChatMessage
    state: TurnState
    at: int
    first: int = 0
    log: bytes = b""


@dataclass(frozen=True)
class Marks:
    """Requests of others to a running turn. `lost`: it is not this worker's any more."""

    stop: bool = False
    lost: bool = False


@dataclass(frozen=True)
class KeptChat:
    """A chat, its owner, and the number of its messages in all branches."""

    owner: ChatOwner
    chat: Chat
    messages: int


class Chats(Protocol):
    """The chats of an owner."""

    async def make(self, owner: ChatOwner, chat: Chat, /) -> Chat:
        """Store a new chat and return it. Raises UsageError for an id that the owner uses."""
        ...

    async def chat(self, owner: ChatOwner, id: str, /) -> Chat:
        """Return a chat. Raises UnknownName."""
        ...

    async def list(self, owner: ChatOwner, page: ChatPage, /) -> ChatListing:
        """Return a page of the chats. Raises UsageError for an `after` that is none."""
        ...

    async def change(self, owner: ChatOwner, change: ChatChange, /) -> Chat:
        """Change a chat and return it. Raises UnknownName, also for the leaf."""
        ...

    async def delete(self, owner: ChatOwner, id: str, /) -> None:
        """Remove a chat with everything stored for it. Raises UnknownName."""
        ...


class Conversations(Protocol):
    """The messages and turns of chats."""

    async def path(
        self, owner: ChatOwner, chat: str, leaf: str = "", limit: int | None = None, /
    ) -> Sequence[ChatMessage]:
        """Return the messages from the first to `leaf` (empty: the chat's own), at most the newest
        `limit`. Raises UnknownName."""
        ...

    async def message(self, owner: ChatOwner, id: str, /) -> ChatMessage:
        """Return a message. Raises UnknownName."""
        ...

    async def begin(self, owner: ChatOwner, turn: NewTurn, /) -> StoredTurn:
        """Keep the question and a turn that runs, in one transaction; the question becomes the leaf
        of the chat. A turn without a chat has the question "". Raises UnknownName for the chat,
        the question, or its parent, ChatBusy while another turn of the chat runs,
        AlreadyDecided for decisions about an answer that a message follows already,
        RequestRepeated for a request whose key the owner has used, and UsageError for more files
        than `most_files`."""
        ...

    async def files(
        self, owner: ChatOwner, chat: str, ids: Sequence[str], /
    ) -> Mapping[str, KeptFile]:
        """Return files of a chat by id. Raises UnknownName for one that the chat does not have."""
        ...

    async def picture_text(self, owner: ChatOwner, chat: str, digest: str, /) -> str:
        """Return the description of a picture of a chat; empty if none is kept."""
        ...

    async def keep_picture_text(
        self, owner: ChatOwner, chat: str, digest: str, text: str, /
    ) -> None:
        """Keep the description of a picture with its chat; nothing if the chat was removed, or
        keeps as many as it may."""
        ...

    async def undo(self, owner: ChatOwner, turn: str, /) -> None:
        """Remove a turn that could not be entered, with the question that it brought."""
        ...

    async def end(self, owner: ChatOwner, turn: EndedTurn, /) -> bool:
        """Keep the answer, the rest of the log, and that the turn has ended, in one transaction.
        The answer becomes the leaf if the question still is it. The answer of a turn that counts as
        lost is replaced. Returns False, and stores nothing, when the turn has ended otherwise, or
        its chat was deleted."""
        ...

    async def turn(self, owner: ChatOwner, id: str, /) -> StoredTurn:
        """Return a turn. Raises UnknownName."""
        ...

    async def requested(self, owner: ChatOwner, key: str, /) -> tuple[StoredTurn, str] | None:
        """Return the turn that a request with this key began, and the digest of the request; None
        where there is none, or its turn is too old to be kept."""
        ...

    async def running(self, owner: ChatOwner, chat: str, /) -> StoredTurn | None:
        """Return the turn of a chat that runs, or None."""
        ...

    async def newest_after(self, owner: ChatOwner, chat: str, id: str, /) -> str:
        """Return the newest message of the branches that begin with a message: the message itself
        if nothing follows it. Raises UnknownName."""
        ...

    async def rate(self, owner: ChatOwner, message: str, feedback: Feedback, /) -> None:
        """Keep what the reader thinks of an answer. Raises UnknownName."""
        ...


class TurnLogs(Protocol):
    """The events of turns, in blobs of JSON lines, for readers in other processes and after a
    crash."""

    async def append(
        self, owner: ChatOwner, turn: str, first: int, body: bytes, lease_until: int, /
    ) -> Marks:
        """Append events, the first of which has the number `first`, and renew the lease. An empty
        `body` renews only."""
        ...

    async def read(
        self, owner: ChatOwner, turn: str, after: int = 0, /
    ) -> Sequence[tuple[int, bytes]]:
        """Return the blobs that hold events with a number above `after`, each with the number of
        its first event."""
        ...

    async def hold(self, owner: ChatOwner, turn: str, until: int, /) -> None:
        """Note that a reader in another process than the turn's reads it until a time, so that it
        is not stopped for want of readers."""
        ...

    async def stop(self, owner: ChatOwner, turn: str, /) -> bool:
        """Ask the process that runs a turn to stop it. Returns whether it was running."""
        ...


class Upkeep(Protocol):
    """Operations of the host's operator on the chats of all owners."""

    async def every(self, page: ChatPage, owner: ChatOwner | None = None, /) -> Sequence[KeptChat]:
        """Return a page of all chats, or of those of an owner, the last changed first."""
        ...

    async def owners_of(self, chat: str, /) -> Sequence[ChatOwner]:
        """Return the owners of the chats with this id: programs may choose ids, and two owners the
        same. Raises UnknownName."""
        ...

    async def rated(self, /) -> Sequence[tuple[ChatOwner, ChatMessage]]:
        """Return the answers of all chats that a reader gave feedback on, the oldest first."""
        ...

    async def lost(self, now: int, lease_until: int, /) -> Sequence[tuple[ChatOwner, StoredTurn]]:
        """Take over the turns whose lease ended before `now`, or ends more than `AHEAD_MS` after
        `lease_until`, since the clock was set back; return them, each to one caller, who ends
        them."""
        ...

    async def purge(
        self, *, chats_before: int, logs_before: int
    ) -> Sequence[tuple[ChatOwner, str]]:
        """Remove the chats that were not changed since one time, and the logs of turns that began
        before another. Returns the owners and ids of the chats."""
        ...

    async def probe(self, size: int, /) -> None:
        """Write `size` bytes, and remove them: raises StorageError where they cannot be stored."""
        ...


@dataclass(frozen=True, kw_only=True)
class ChatStore:
    """The ports of one store."""

    chats: Chats
    conversations: Conversations
    logs: TurnLogs
    upkeep: Upkeep
    times: Times
