"""Where Groundhook can be extended: one narrow Protocol for each seam. Built-ins enter by the same
door.

A search source is a `Handler`, something that reorders results a `Reranker`, a language model a
`Connector`, an embedding model an `Embedder`; whatever runs hooks is a `HookEngine`. `Delegates`
are assistants and MCP tools that do a step for one of them. They take and return Groundhook's own
values and raise only errors of `host.core.errors`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from groundhook.host.core.errors import DelegateError
from groundhook.host.core.settings import (
    HttpSettings,
    RerankSettings,
    SearchSettings,
    UsesSettings,
)
from groundhook.host.core.types.collection_spec import CollectionSpec
from groundhook.host.core.types.delegation import (
    Answer,
    Asked,
)
from groundhook.host.core.types.model_spec import ModelSpec
from groundhook.host.core.types.search import (
    FacetCount,
    GraphNode,
    Item,
    RecordQuery,
    SearchRequest,
)
from groundhook.host.core.types.servers import ServerMethod
from groundhook.host.core.types.turn import (
    Identity,
    Message,
    Usage,
)
from groundhook.host.core.types.uses import (
    JsonReply,
    Use,
)
from groundhook.host.core.types.web import WebAnswer

Warn = Callable[[str, str], Awaitable[None]]  # code, message
Clock = Callable[[], datetime]


# --------------------------------------------------------------------------------------- delegation


def accepted(_answer: object) -> str:
    return ""


class Delegates(Protocol):
    """Assistants and MCP tools that do a step in the place of the built-in, as `uses.*` names
    them."""

    async def ask(
        self,
        use: Use[Asked, Answer],
        doer: str,
        asked: Asked,
        /,
        *,
        timeout_ms: int,
        hint: str = "",
        wrong: Callable[[Answer], str] = accepted,
        tries: int = 2,
    ) -> Answer:
        """What `doer` (`<assistant-id>` or `mcp:<server>[.<tool>]`) answers within `timeout_ms`, in
        all `tries`. `wrong` says what is wrong with an answer of the right shape ("": nothing); the
        next try is told. `hint` names the setting of the timeout. Raises DelegateError alone:
        whoever asked warns of it and does the step itself."""
        ...


class Nobody:
    """Delegates where there are none: outside a host."""

    async def ask(
        self,
        use: Use[Asked, Answer],
        doer: str,
        asked: Asked,
        /,
        *,
        timeout_ms: int,
        hint: str = "",
        wrong: Callable[[Answer], str] = accepted,
        tries: int = 2,
    ) -> Answer:
        raise DelegateError(f"{use.name} by {doer!r} failed: nobody can be asked here")


# ------------------------------------------------------------------------------------------ sources


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What a search may depend on beside its request: who asks, for which assistant, under which
    settings, when; and whom it may ask to do a step."""

    identity: Identity
    assistant_id: str
    settings: SearchSettings
    uses: UsesSettings
    now: Clock
    warn: Warn
    delegates: Delegates = Nobody()


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a source found: items best first, each with `key` (empty: derived from what it holds)
    and `citation_id` left empty. `total` counts all matches where the source knows it, else the
    items. `provider` is whom the source asked, where it has a choice."""

    items: tuple[Item, ...] = ()
    total: int | None = None
    provider: str = ""
    facets: Mapping[str, tuple[FacetCount, ...]] | None = None
    graph_nodes: tuple[GraphNode, ...] | None = None
    dsl: dict[str, Any] | None = None


class Handler(Protocol):
    """A source of one search type."""

    async def search(self, request: SearchRequest, scope: Scope, /) -> Found:
        """Search. `limit`, and for kb `collections`, `threshold`, `graph`, for db `models`, are
        always set. Raises SourceError; the caller's scope holds the deadline."""
        ...


@runtime_checkable
class FollowsDeclarations(Protocol):
    """A source that knows the app's collections and models, which a reload may replace."""

    def with_declarations(
        self, collections: Mapping[str, CollectionSpec], models: Mapping[str, ModelSpec], /
    ) -> Handler:
        """The same source over other declarations; searches under way keep the old one. It is
        closed with the first."""
        ...


@runtime_checkable
class Records(Protocol):
    """Records of models by conditions alone."""

    async def records(self, query: RecordQuery, scope: Scope, /) -> list[dict[str, Any]]:
        """What the identity may see of them, in the order asked for. Raises SourceError,
        NotPermitted."""
        ...


@runtime_checkable
class Documents(Protocol):
    """Whole documents of collections, for messages that refer to one."""

    async def fetch_document(self, collection: str, document_id: str, scope: Scope, /) -> Found:
        """The document's passages in reading order, each with a score of 1. Raises SourceError."""
        ...


class WebClient(Protocol):
    """The guarded way out to the web: to declared hosts, at public addresses, within limits of time
    and size."""

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: str | bytes | None = None,
        json: Any = None,
    ) -> WebAnswer:
        """Ask, and read the whole answer. Raises UsageError, NotPermitted and SourceError."""
        ...


ClientOf = Callable[[HttpSettings], WebClient]  # each client is closed with the host


# ---------------------------------------------------------------------------------------- rerankers


@dataclass(frozen=True)
class Ranked:
    """A reranker's word on one item: its position in the list it was given, and a score of 0-1."""

    index: int
    score: float


class Reranker(Protocol):
    async def rerank(
        self, query: str, items: Sequence[Item], options: RerankSettings, scope: Scope, /
    ) -> Sequence[Ranked]:
        """Judge the items, of which there are no more than `options.max_items`. The host multiplies
        the scores in, sorts and cuts; an item left out keeps its place behind those that were
        judged. Raises RerankError."""
        ...


# ------------------------------------------------------------------------------------------- models


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """One request to a language model. `messages` are complete: one leading system message at
    most, roles that alternate. `sources` is the text that the last user message begins with, for a
    connector that wants it elsewhere. `question` and `references` are what the messages were made
    of, for a connector that is no language model. `reply` is the schema of an answer that is to be
    JSON, for endpoints that can hold a model to it."""

    messages: Sequence[Message]
    sources: str = ""
    question: str = ""
    references: Sequence[Item] = ()
    tools: Sequence[Mapping[str, Any]] = ()
    temperature: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    reply: JsonReply | None = None


@dataclass(frozen=True)
class TextDelta:
    text: str


@dataclass(frozen=True)
class ToolDelta:
    """A piece of a tool call: pieces of one `index` are joined; `id` and `name` come once,
    `arguments` is JSON text."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True)
class Finished:
    """The last delta of an answer that is whole."""

    finish_reason: str
    model: str = ""
    usage: Usage = Usage()


Delta = TextDelta | ToolDelta | Finished


class Connector(Protocol):
    def stream(self, call: ModelCall, /) -> AbstractAsyncContextManager[AsyncIterator[Delta]]:
        """Enter the answer; leaving stops it. Iterating raises ModelError when the answer cannot be
        had or is cut."""
        ...


# --------------------------------------------------------------------------------------- embeddings


class Embedder(Protocol):
    """Turns text into vectors. `dimensions` is their length; vectors are normalised to length 1."""

    @property
    def provider(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def dimensions(self) -> int: ...

    async def embed_query(self, text: str, /) -> list[float]: ...
    async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]: ...

    def similarity(self, cosine: float, /) -> float:
        """This model's cosine as a similarity of 0-1 that means the same for every model."""
        ...


# -------------------------------------------------------------------------------------- MCP servers


class ToolServers(Protocol):
    """The MCP servers of an app, by full id."""

    async def ask(
        self, server: str, method: ServerMethod, params: Mapping[str, Any], /
    ) -> dict[str, Any]:
        """One request of the protocol, as plain data with its names; lists are whole ({tools:
        […]}). A tool that reports a failure is a value with `error`. Raises UnknownName,
        ConfigError, ServerError."""
        ...
