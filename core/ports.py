"""The extension points of Groundhook: one narrow Protocol for each. Built-ins use the same ones.

A search source is a `Handler`, a reranker a `Reranker`, a language model a `Connector`, an
embedding model an `Embedder`. `Delegates` are the models, assistants and MCP tools that do a step
for one of them. All take and return values of Groundhook and raise only errors of `core.errors`.
The ports of toolkits are in `core.tool_ports`, that of the hook engine in `core.hook_engine`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

from groundhook.core.errors import DelegateError, HostError
from groundhook.core.settings import (
    HttpSettings,
    RerankSettings,
    SearchSettings,
    UsesSettings,
)
from groundhook.core.source_settings import WebSettings
from groundhook.core.types.base import defaults_of
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.delegation import DelegateAnswer, DelegateRequest, Outline
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.sampling import Sampling
from groundhook.core.types.search import (
    Certainty,
    FacetCount,
    GraphNode,
    Item,
    KBOptions,
    RecordQuery,
    SearchAccount,
    SearchRequest,
    SourceType,
    TotalIs,
)
from groundhook.core.types.servers import ServerMethod
from groundhook.core.types.turn import (
    Identity,
    Message,
    Usage,
)
from groundhook.core.types.uses import JsonReply, ModelPrompt, Use
from groundhook.core.types.web import WebAnswer

Warn = Callable[[str, str], Awaitable[None]]  # code, message
Clock = Callable[[], datetime]


# --------------------------------------------------------------------------------------- delegation


# Returns the problem of an answer ("": none), at once or when awaited.
FindProblem = Callable[[DelegateAnswer], str | Awaitable[str]]


def accept_any(_answer: object) -> str:
    """Return no problem: every answer of the right shape is accepted."""
    return ""


class Delegates(Protocol):
    """Language models, assistants and MCP tools that do a step in place of the built-in, as
    `uses.*` names them."""

    async def ask(
        self,
        use: Use[DelegateRequest, DelegateAnswer],
        doer: str,
        request: DelegateRequest,
        /,
        *,
        timeout_ms: int,
        hint: str = "",
        wrong: FindProblem[DelegateAnswer] = accept_any,
        tries: int = 2,
        prompt: ModelPrompt | None = None,
    ) -> DelegateAnswer:
        """Return the answer of `doer` (`connector:<id>`, `<assistant-id>` or
        `mcp:<server>[.<tool>]`).

        `timeout_ms` is the deadline of all `tries` together. `wrong` returns the problem of an
        answer of the right shape ("": none), at once or when awaited; the next try receives it.
        `hint` names the setting of
        the deadline. `prompt` is what a language model gets in place of the request as JSON. Raises
        only DelegateError: the caller warns and does the step itself."""
        ...


class NoDelegates:
    """The delegates outside a host, which refuse every request."""

    async def ask(
        self,
        use: Use[DelegateRequest, DelegateAnswer],
        doer: str,
        request: DelegateRequest,
        /,
        *,
        timeout_ms: int,
        hint: str = "",
        wrong: FindProblem[DelegateAnswer] = accept_any,
        tries: int = 2,
        prompt: ModelPrompt | None = None,
    ) -> DelegateAnswer:
        """Return nothing: always raises DelegateError."""
        raise DelegateError(f"{use.name} by {doer!r} failed: there are no delegates outside a host")


# ------------------------------------------------------------------------------------------ sources


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The context of a search: what it needs in addition to its request.

    `identity` is that of the request, `assistant_id` the assistant ("" outside of one), `settings`
    and `uses` those of the layer that searches, `now` the clock. `warn(code, message)` sends a
    warning; `delegates` do the steps that `uses` delegates. `connector` is the assistant's own
    language model as they call it, `connector:<id>` ("": it has none). `partition` is the value of
    a collection's `tenant_field` for documents of a team or user ("": those of the tenant)."""

    identity: Identity
    assistant_id: str
    settings: SearchSettings
    uses: UsesSettings
    now: Clock
    warn: Warn
    delegates: Delegates = NoDelegates()
    connector: str = ""
    partition: str = ""


@dataclass(frozen=True, kw_only=True)
class SourceResult:
    """The result of a source: items best first, without `citation_id`.

    An item's `key` may be empty: it is then derived from its content. `total` counts all matches,
    exactly or at least (`total_is`); None: not known, the items are counted. `below` counts what
    was compared and did not reach the threshold. `provider` is the service that answered, if the
    source has a choice. `facets`, `graph_nodes` and `dsl` are those of `SearchResult`, and so are
    the fields of `account`: how the question was read, and how far the items answer it."""

    items: tuple[Item, ...] = ()
    total: int | None = None
    total_is: TotalIs = "exact"
    below: int = 0
    provider: str = ""
    facets: Mapping[str, tuple[FacetCount, ...]] | None = None
    graph_nodes: tuple[GraphNode, ...] | None = None
    dsl: dict[str, Any] | None = None
    account: SearchAccount = defaults_of(SearchAccount)


Found = SourceResult  # the name that plug-ins import, kept for them


class Handler(Protocol):
    """A source of one search type."""

    async def search(self, request: SearchRequest, scope: Scope, /) -> SourceResult:
        """Search and return the items found. `limit` of the request is always set; for kb also
        `collections`, `threshold` and `graph`, for db `models`. Raises SourceError. The caller
        cancels the search at its deadline."""
        ...


@runtime_checkable
class ChoosesRequests(Protocol):
    """A source that takes some of the searches of its type. One that does not have this takes
    all."""

    def can_handle(self, request: SearchRequest, scope: Scope, /) -> bool:
        """Return whether the source takes a search; of one that it does not, `search` is not
        called. It must not wait for anything."""
        ...


@runtime_checkable
class FollowsDeclarations(Protocol):
    """A source that holds the app's collections and models, which a reload may replace."""

    def with_declarations(
        self, collections: Mapping[str, CollectionSpec], models: Mapping[str, ModelSpec], /
    ) -> Handler:
        """Return the same source over other declarations; running searches keep the old one. It is
        closed with the first."""
        ...


@runtime_checkable
class ChecksSettings(Protocol):
    """A source of web searches that knows before a search whether it can run. One that does not
    have this can always run."""

    def problem(self, settings: WebSettings, uses: str, /) -> HostError | None:
        """Return why a search cannot run under these settings and this `uses.web`."""
        ...


@runtime_checkable
class Records(Protocol):
    """A source of records by conditions alone."""

    async def records(self, query: RecordQuery, scope: Scope, /) -> list[dict[str, Any]]:
        """Return the records that the identity may see, as {field: value}, in the order of the
        query. Raises SourceError, NotPermitted."""
        ...


@runtime_checkable
class Documents(Protocol):
    """A source of whole documents, for messages that refer to one."""

    async def fetch_document(
        self, collection: str, document_id: str, scope: Scope, /
    ) -> SourceResult:
        """Return the document's passages in reading order, each with a score of 1. Raises
        SourceError, NotPermitted."""
        ...


@runtime_checkable
class WebPages(Protocol):
    """A source of whole pages of the web."""

    async def fetch_page(self, url: str, scope: Scope, /) -> Item:
        """Return a page with its whole text as content. Raises SourceError, IngestError where
        nothing can be read from it, NotPermitted for an address that is not public."""
        ...


@runtime_checkable
class Outlined(Protocol):
    """A source that knows what its collections are about."""

    async def outlines(self, options: KBOptions, scope: Scope, /) -> list[Outline]:
        """Return an outline of each collection of the options, made only of documents that the
        identity may see and that fulfil the filter. Collections that cannot be read are omitted."""
        ...


class WebClient(Protocol):
    """The guarded HTTP client: declared hosts, public addresses, limits of time and size."""

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
        """Send a request and return the whole answer, whatever its status. Raises UsageError for
        wrong arguments, NotPermitted for a host or an address that is not allowed, SourceError
        without an answer."""
        ...


@runtime_checkable
class ChecksAddresses(Protocol):
    """A client that can say of an address whether it would send a request to it."""

    async def check(self, url: str, /) -> None:
        """Raise UsageError, NotPermitted, or SourceError for a host that cannot be found, where no
        request is sent."""
        ...


ClientOf = Callable[[HttpSettings], WebClient]  # each client is closed with the host


# ---------------------------------------------------------------------------------------- rerankers


@dataclass(frozen=True)
class Ranked:
    """A reranker's judgement of one item: its position in the list of items, and a score of 0-1."""

    index: int
    score: float


class Reranker(Protocol):
    """Judges how well items answer a question."""

    async def rerank(
        self, query: str, items: Sequence[Item], options: RerankSettings, scope: Scope, /
    ) -> Sequence[Ranked]:
        """Return a score for each item; there are at most `options.max_items`. The host multiplies
        the scores in, sorts and cuts. An item without a score stays behind the judged ones. Raises
        RerankError."""
        ...


# ------------------------------------------------------------------------------------------- models


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """One request to a language model.

    `messages` are complete: at most one system message, at the beginning, then alternating roles.
    `sources` is the text at the beginning of the last user message, for a connector that moves it
    elsewhere. `question` and `references` are the parts of that message, for a connector without a
    language model; citable items of tool results follow in `references`; `failed_searches` are the
    sources of the searches that failed, `declined` says why others answered nothing, and
    `certainty` how far the passages found answer the question; `sentences` returns those of an
    answer for people, by their keys in `core.settings.MessageSettings`. `tools` and `tool_choice`
    are those of OpenAI's API; `user` is an id for the endpoint ("": none). `reply` asks endpoints
    that can enforce it for a JSON answer: any object ("json"), or one of a schema. `is_step`: a
    step of another's turn."""

    messages: Sequence[Message]
    sources: str = ""
    question: str = ""
    references: Sequence[Item] = ()
    failed_searches: Sequence[SourceType] = ()
    declined: Sequence[str] = ()
    certainty: Certainty | None = None
    sentences: Callable[[], Mapping[str, str]] | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    temperature: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    sampling: Sampling = defaults_of(Sampling)
    tool_choice: str | Mapping[str, Any] | None = None
    user: str = ""
    reply: JsonReply | Literal["json"] | None = None
    is_step: bool = False


@dataclass(frozen=True)
class TextDelta:
    """More text of the answer."""

    text: str


@dataclass(frozen=True)
class ReasoningDelta:
    """More text of the model's thinking, which is not a part of the answer."""

    text: str


@dataclass(frozen=True)
class ToolDelta:
    """A piece of a tool call. Pieces with the same `index` are joined; `id` and `name` come once,
    `arguments` is JSON text."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True)
class Finished:
    """The last delta of a complete answer. `finish_reason` is that of OpenAI's API, `model` the
    model that answered."""

    finish_reason: str
    model: str = ""
    usage: Usage = defaults_of(Usage)


@dataclass(frozen=True)
class Notice:
    """A warning about the request or the answer, for the trace and the reader of the turn."""

    code: str
    message: str
    hint: str = ""


Delta = TextDelta | ReasoningDelta | ToolDelta | Notice | Finished


class Connector(Protocol):
    """A language model."""

    def stream(self, call: ModelCall, /) -> AbstractAsyncContextManager[AsyncIterator[Delta]]:
        """Return a context manager that enters the stream of the answer; leaving it stops the
        model. Entering and iterating raise ModelError if the answer fails or breaks off."""
        ...


@runtime_checkable
class LearnsWindow(Protocol):
    """A connector whose endpoint may report the window of its model."""

    @property
    def window(self) -> int | None:
        """Tokens of the window, including the answer; 0: the endpoint does not report it; None: not
        known yet, or no longer up to date."""
        ...

    async def learn_window(self) -> None:
        """Ask the endpoint, with a deadline. Failures are in the trace; raises nothing."""
        ...


@runtime_checkable
class ReadsParts(Protocol):
    """A connector that knows which parts of messages its model reads."""

    def reads(self, part: Mapping[str, Any], /) -> bool:
        """Return whether the model reads a part, such as `{type: "image_url", …}`; it is sent a
        note in place of others."""
        ...


# --------------------------------------------------------------------------------------- embeddings


class Embedder(Protocol):
    """An embedding model: turns text into vectors of length 1 with `dimensions` numbers."""

    @property
    def provider(self) -> str:
        """The provider's name, kept with the vectors of a collection."""
        ...

    @property
    def model(self) -> str:
        """The model's name, kept with the vectors of a collection."""
        ...

    @property
    def dimensions(self) -> int:
        """Numbers in a vector."""
        ...

    async def embed_query(self, text: str, /) -> list[float]:
        """Return the vector of a question. Raises SourceError."""
        ...

    async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]:
        """Return a vector for each text, in their order. Raises SourceError."""
        ...

    def similarity(self, cosine: float, /) -> float:
        """Return a cosine of this model as a similarity of 0-1, on a scale that is the same for
        every model."""
        ...


# -------------------------------------------------------------------------------------- MCP servers


class ToolServers(Protocol):
    """The MCP servers of an app, by full id."""

    async def ask(
        self, server: str, method: ServerMethod, params: Mapping[str, Any], /
    ) -> dict[str, Any]:
        """Send one request of the protocol and return its result as plain data; lists are complete
        ({tools: […]}). A tool that reports a failure is a value with `error`. Raises UnknownName,
        ConfigError, ServerError."""
        ...

    def start_ms(self, server: str, /) -> int:
        """Return the milliseconds that a server has to start with the next request; 0 when it
        runs."""
        ...
