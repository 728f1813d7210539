"""Kept conversations: chats, their messages in branches, and the stored parts of an answer.

Times are whole milliseconds since 1970.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import Field

from groundhook.core.types.base import FewOf, Value, defaults_of
from groundhook.core.types.events import (
    Cited,
    Claims,
    Failed,
    HookJournal,
    Verdict,
    VerifiedSentence,
    Warned,
)
from groundhook.core.types.search import (
    Certainty,
    Item,
    LongTable,
    Origin,
    SearchAccount,
    SourceType,
)
from groundhook.core.types.turn import Identity, Message, Usage

TurnState = Literal["running", "done", "failed", "stopped", "lost"]
ENDED: tuple[TurnState, ...] = ("done", "failed", "stopped", "lost")


@dataclass(frozen=True)
class ChatOwner:
    """The owner of chats and turns. Without a user they belong to all callers of the tenant without
    a user id, who need the chat's id, which cannot be guessed. `program` is the owner of turns of a
    server's client that has no user."""

    tenant: str = ""
    user: str = ""
    program: str = ""

    @classmethod
    def of(cls, identity: Identity) -> Self:
        """Return the owner of the chats of this identity."""
        return cls(identity.tenant_id, identity.user_id)


class KeptCitation(Value):
    """A marker of an answer: each once, in the order of first use."""

    marker: str = Field(description="The marker as in the text")
    verdict: Verdict
    item: Item | None = Field(default=None, description="The source, with its passage")
    places: tuple[int, ...] = Field(
        default=(),
        description="Where the marker begins in the answer, in characters; the same text elsewhere"
        " (in a block of code) is not a citation",
    )
    missing: tuple[str, ...] = Field(
        default=(), description="Facts of the sentences that cite it which are not in the source"
    )
    verified: tuple[VerifiedSentence, ...] = Field(
        default=(), description="The sentences that cite it and that `uses.verify` has judged"
    )


class KeptSearch(SearchAccount):
    """A search of a turn with its results, without the passages."""

    search_id: str
    source: Origin
    search_type: SourceType
    query: str
    total: int = 0
    duration_ms: int = 0
    error: str | None = None
    provider: str = ""
    complete: bool = Field(default=False, description="Whether it ended before the turn did")
    items: tuple[Item, ...] = ()
    tables: tuple[LongTable, ...] = ()


class KeptTool(Value):
    """A tool call of the model, with its result."""

    call_id: str
    name: str
    server: str = ""
    toolkit: str = ""
    arguments: dict[str, Any] = {}
    result: Any = None
    error: str | None = None
    items: tuple[Item, ...] = Field(default=(), description="Without their passages")
    duration_ms: int = 0
    complete: bool = Field(default=False, description="Whether the result arrived")
    round: int = Field(default=0, description="Calls of one round were made at the same time")


class AskedCall(Value):
    """A tool call that runs only when the user approves it, or a `question` of a hook."""

    call_id: str
    name: str
    server: str = ""
    toolkit: str = ""
    arguments: dict[str, Any] = {}
    assistant_id: str = ""
    question: str = ""
    choices: tuple[str, ...] = ()


class PendingCall(AskedCall):
    """A call or a question that waits for the user. `journal`: what hooks did before."""

    journal: HookJournal = ()


class Decision(AskedCall):
    """A call that the user has decided about, or a question that the user has answered."""

    approved: bool
    reason: str = Field(
        default="", description="What the user says about it, for the model; the answer"
    )


class KeptMessage(Value):
    """A message of a hook in its last state."""

    message_id: str
    message: Any = None
    block_id: str = ""
    thread_id: str = ""
    ended: bool = False
    at: int = Field(default=0, description="Characters of the answer before it was first sent")


class KeptAnswer(Value):
    """The stored parts of an answer: everything needed to show it again as it was streamed."""

    turn_id: str = ""
    assistant_id: str = ""
    connector: str = ""
    content: str = ""
    citations: tuple[KeptCitation, ...] = ()
    searches: tuple[KeptSearch, ...] = ()
    tools: tuple[KeptTool, ...] = ()
    pending: tuple[PendingCall, ...] = Field(
        default=(), description="Calls that the user decides about with the next message"
    )
    messages: tuple[KeptMessage, ...] = ()
    data: Any = None
    metadata: dict[str, Any] = {}
    finish_reason: str = ""
    grounded: bool | None = None
    claims: Claims = defaults_of(Claims)
    certainty: Certainty | None = None
    usage: Usage = defaults_of(Usage)
    timings: dict[str, float] = {}
    warnings: tuple[Warned, ...] = ()
    errors: tuple[Failed, ...] = ()
    complete: bool = Field(default=False, description="Whether the turn came to its end")


class Feedback(Value):
    """A reader's feedback on an answer."""

    rating: Literal[-1, 0, 1] = Field(default=0, description="-1, 0 or 1")
    comment: str = Field(default="", max_length=10_000, description="What the reader writes")
    about: FewOf[str] = Field(default=(), max_length=100, description="Markers it is about")


class ChatMessage(Value):
    """One message of a chat: a question of the user, or an answer."""

    id: str
    chat_id: str
    parent: str = Field(default="", description="The message before it; empty: it is the first")
    role: Literal["user", "assistant"]
    content: str | list[dict[str, Any]] = Field(
        default="", description="The question, as text or parts; the text of the answer"
    )
    answer: KeptAnswer | None = None
    decisions: tuple[Decision, ...] = Field(
        default=(), description="Of a question: the user's about the calls of the answer before it"
    )
    made_at: int = 0
    feedback: Feedback | None = None
    siblings: tuple[str, ...] = Field(
        default=(),
        description="All messages after the same parent, including this one, the oldest first",
    )

    @property
    def text(self) -> str:
        """The text of the message, parts joined by a line break."""
        return Message(role=self.role, content=self.content).text


class EarlierMessage(Value):
    """A message of the conversation as hooks read it."""

    id: str = ""
    role: Literal["user", "assistant"]
    content: str = ""
    citations: tuple[Cited, ...] = ()
    made_at: int = 0


class Chat(Value):
    """A kept conversation. `leaf` is the last message of the branch that is shown; empty: it has no
    messages."""

    id: str
    assistant_id: str
    title: str = ""
    made_at: int = 0
    changed_at: int = 0
    leaf: str = ""
    archived: bool = False


class StoredTurn(Value):
    """A turn of a chat, or of none. While it runs, the process that runs it renews its lease.
    `read_until`: until then a reader in another process reads it."""

    id: str
    chat_id: str = ""
    question_id: str = ""
    answer_id: str = ""
    state: TurnState = "running"
    worker: str = ""
    lease_until: int = 0
    began_at: int = 0
    read_until: int = 0
