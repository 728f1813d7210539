"""The ports of tools: `Toolkit` is the extension point; `Collections`, `Models` and `Progress` are
the services that a tool gets, in the `ToolScope` of its call.

They know no engine: built-in toolkits and those of plug-ins use the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from groundhook.core.ports import Scope, WebClient
from groundhook.core.types.base import defaults_of
from groundhook.core.types.tools import Tool
from groundhook.core.types.turn import Message, Usage
from groundhook.core.types.uses import JsonReply

if TYPE_CHECKING:  # not imported at run time: an app without toolkits does not need them
    from groundhook.core.sync_source import SyncSource
    from groundhook.core.types.collection_queries import (
        CollectionAnswer,
        CollectionDocument,
        CollectionQuery,
        Owner,
        PutReport,
    )


class Collections(Protocol):
    """The collections that a toolkit reaches, bound to one identity and to the names that the
    toolkit's file may use. The host filters by the identity on every path; no call names one.

    A collection is named as the toolkit's file names it: that of its assistant first, then the
    app's. Every method raises UnknownName for a collection that is not declared (the hint has the
    nearest name), NotPermitted for one that the identity may not see or that needs an owner the
    identity lacks, UsageError for a wrong filter, ConfigError and StorageError."""

    async def find(self, queries: Sequence[CollectionQuery], /) -> list[CollectionAnswer]:
        """Return an answer for each question, in their order; `[]` for no questions. The texts are
        embedded in one request for each model, and questions to one collection are one request to
        its store. A collection into which nothing was ever put gives an answer with `filled=False`.
        Raises SourceError when the embedding fails."""
        ...

    async def get(
        self, collection: str, ids: Sequence[str], /, *, owner: Owner = "tenant"
    ) -> dict[str, CollectionDocument]:
        """Return whole documents by their raw ids, in one request. Ids that do not exist, and those
        of other owners, are omitted. `text` is letter for letter what was put."""
        ...

    async def count(
        self,
        collection: str,
        /,
        *,
        filter: Mapping[str, Any] | None = None,
        owner: Owner = "tenant",
        tenant: str = "",
    ) -> int:
        """Return the exact number of documents that fulfil the filter; 0 for a collection into
        which nothing was ever put. `tenant` counts in a sync only, as in `put`."""
        ...

    async def put(
        self,
        collection: str,
        documents: Sequence[CollectionDocument],
        /,
        *,
        owner: Owner = "tenant",
    ) -> PutReport:
        """Add documents and return a report, which has the problems of single documents. Each
        replaces the document with the same id and tenant; an unchanged one costs only a hash. For a
        tool the host sets `tenant` of the documents; in a sync it is what the documents have."""
        ...

    async def remove(
        self, collection: str, ids: Sequence[str], /, *, owner: Owner = "tenant", tenant: str = ""
    ) -> tuple[str, ...]:
        """Remove documents by their raw ids and return the ids that existed. `tenant` counts in a
        sync only, as in `put`."""
        ...


@dataclass(frozen=True, kw_only=True)
class ModelReply:
    """A whole answer of a language model. `data` is the first JSON value in its text (None without
    one, or if none was requested). `model` is the one that answered."""

    text: str
    data: Any = None
    model: str = ""
    finish_reason: str = ""
    usage: Usage = defaults_of(Usage)


class Models(Protocol):
    """The language models of an app, by the id of their connector: a connector in the folder of the
    toolkit's assistant first, then the app's."""

    async def complete(
        self,
        connector: str,
        messages: Sequence[Message],
        /,
        *,
        answer: Literal["text", "json"] | JsonReply = "text",
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> ModelReply:
        """Return the whole answer of a model.

        `messages` have at most one system message, at the beginning. `answer="json"` asks the
        endpoint for a JSON object, a `JsonReply` for JSON of its schema (an object at the top); an
        endpoint that refuses either is called again without it, and so is a model that refuses the
        `temperature`; both are remembered for the connector. The reply's `data` may have any
        shape: the caller validates it. Cancelling stops the model.
        Raises UnknownName for the connector, ConfigError, ModelError."""
        ...


class Progress(Protocol):
    """Reports how far a call is: an event of the turn, a line of the command line, a notification
    of MCP. If nothing shows progress, the call has no effect."""

    async def __call__(self, kind: str = "tool_progress", /, **data: Any) -> None:
        """Send an event. `kind` is the type of the event: `tool_progress` with `done` (a number),
        `total` (a number or None) and `message` (text), all optional;
        `search_documents.started` with `query`; `search_documents.completed` with `query`,
        `totalDocuments` and `error` (text or None). `call_id` and the tool's name are added by the
        host. Raises ValueError for another kind or other keys."""
        ...


@dataclass(frozen=True, kw_only=True)
class ToolScope(Scope):
    """The context of a tool call: what it needs in addition to its arguments.

    `identity`, `assistant_id` ("" outside of one), `settings` and `uses` (of the assistant, or the
    app's), `now`, `warn` and `delegates` are those of `Scope`; warnings are also in the outcome.
    `metadata` is the request's (and what Create set), `locale` the request's ("": none), `call_id`
    the call's. `web` reaches the hosts that the assistant declares in `http`; a toolkit with hosts
    of its own makes a client with `PluginContext.client_of`."""

    metadata: Mapping[str, Any]
    locale: str
    call_id: str
    progress: Progress
    collections: Collections
    models: Models
    web: WebClient


class Toolkit(Protocol):
    """A group of tools that is declared in a file, `toolkits/<name>.toolkit.yao`. It is made when
    an assistant that lists it is first used, once for each file."""

    def tools(self) -> Sequence[Tool]:
        """Return the tools; the same ones every time. Reads and starts nothing."""
        ...

    def sync(self) -> SyncSource | None:
        """Return the source that fills the toolkit's collections; None for a toolkit that reads
        live."""
        ...


@runtime_checkable
class HasOwners(Protocol):
    """A toolkit that reads and writes its collections with an `owner` may have this as well. The
    host refuses such a toolkit over a collection that cannot keep owners apart, and finds its
    documents for links and for MCP clients."""

    def owners(self) -> Mapping[str, Owner]:
        """Return the owner of the documents of each collection, by its name in the toolkit's
        file."""
        ...
