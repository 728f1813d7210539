"""The host for programs without an event loop: scripts and notebooks.

    from groundhook.sync import open_host

    with open_host("path/to/app") as host:
        with host.stream("docs", "What is a hook?") as events:
            for event in events: ...

An event loop runs in a thread of its own until the block is left. Every method may be called from
any thread.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from anyio.from_thread import BlockingPortal, start_blocking_portal

from groundhook.host.app.opening import open_host as _open_host
from groundhook.memory import Memory as _Memory

if TYPE_CHECKING:
    from groundhook.core.problems import Problem
    from groundhook.core.types.chats import ChatMessage, Feedback
    from groundhook.core.types.events import Event, Warned
    from groundhook.core.types.search import SearchRequest, SearchResult
    from groundhook.core.types.tools import Tool, ToolOutcome
    from groundhook.core.types.turn import Identity, Message, TurnOptions
    from groundhook.handlers.kb.ingest.report import AddProgress, AddReport
    from groundhook.host.app.host import Host as _Host
    from groundhook.host.app.open_chat import ChatQuestion, OpenChat
    from groundhook.host.app.plugins import Plugin
    from groundhook.host.app.reload import Swap
    from groundhook.memory import Preview, ShelvedMemory, WholeMemory

__all__ = ["Chat", "Host", "Memory", "open_host"]


class Host:
    """An open app. Its methods are those of `groundhook.Host`, and block."""

    def __init__(self, host: _Host, portal: BlockingPortal) -> None:
        self._host, self._portal = host, portal

    def assistants(self) -> list[str]:
        """Return the ids of the app's assistants in alphabetical order."""
        return self._host.assistants()

    def stream(
        self,
        assistant_id: str,
        messages: str | Sequence[Message | Mapping[str, Any]],
        *,
        search: bool | None = None,
        connector: str | Sequence[str] | None = None,
        identity: Identity | Mapping[str, Any] | None = None,
        options: TurnOptions | Mapping[str, Any] | None = None,
    ) -> AbstractContextManager[Iterator[Event]]:
        """Return a context manager that runs one turn and yields its events; leaving the block
        stops what is still running. Entering raises UnknownName, ConfigError and TooManyTurns."""
        turn = self._host.stream(
            assistant_id,
            messages,
            search=search,
            connector=connector,
            identity=identity,
            options=options,
        )
        return _enter(self._portal, turn)

    @contextmanager
    def chat(
        self,
        assistant_id: str,
        *,
        identity: Identity | Mapping[str, Any] | None = None,
        chat_id: str | None = None,
        create: bool = False,
    ) -> Iterator[Chat]:
        """Return a context manager that yields a kept conversation: a new one, or the one with this
        id. It belongs to the tenant and user of `identity`. `create`: begin a conversation with
        this id if it does not exist. Raises UnknownName, ConfigError, UsageError, StorageError."""
        opening = self._host.chat(assistant_id, identity=identity, chat_id=chat_id, create=create)
        with self._portal.wrap_async_context_manager(opening) as chat:
            yield Chat(chat, self._portal)

    def search(
        self,
        request: SearchRequest | Mapping[str, Any],
        *,
        identity: Identity | Mapping[str, Any] | None = None,
        assistant: str | None = None,
        warned: Callable[[Warned], object] | None = None,
    ) -> SearchResult:
        """Return the result of a search outside a turn. A search that fails is a result with
        `error`. Raises UsageError and UnknownName."""

        async def search() -> SearchResult:
            return await self._host.search(
                request, identity=identity, assistant=assistant, warned=warned
            )

        return self._portal.call(search)

    def search_many(
        self,
        requests: Sequence[SearchRequest | Mapping[str, Any]],
        *,
        mode: Literal["all", "any", "race"] = "all",
        identity: Identity | Mapping[str, Any] | None = None,
        assistant: str | None = None,
        warned: Callable[[Warned], object] | None = None,
    ) -> list[SearchResult]:
        """Return the results of several searches, which run at the same time: of `all`, of the
        first that has items (`any`), or of the first to end (`race`). Raises UsageError and
        UnknownName."""

        async def search() -> list[SearchResult]:
            return await self._host.search_many(
                requests, mode=mode, identity=identity, assistant=assistant, warned=warned
            )

        return self._portal.call(search)

    def tool(
        self,
        name: str | Tool,
        arguments: Mapping[str, Any] | None = None,
        *,
        identity: Identity | Mapping[str, Any] | None = None,
        assistant: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        locale: str = "",
    ) -> ToolOutcome:
        """Call a tool outside a turn, `catalogue.searchDatasets` or a `Tool`, and return the
        outcome. Every failure is `error` of the outcome. Raises UnknownName for the assistant,
        UsageError."""

        async def call() -> ToolOutcome:
            return await self._host.tool(
                name,
                arguments,
                identity=identity,
                assistant=assistant,
                metadata=metadata,
                locale=locale,
            )

        return self._portal.call(call)

    def add_documents(
        self,
        collection: str,
        paths: str | Path | Iterable[str | Path],
        *,
        tenant: str = "",
        progress: AddProgress | None = None,
    ) -> AddReport:
        """Add files, and the files in folders, to a collection, and return a report, which has the
        problems of single files. `progress` is called in the host's thread. Raises UnknownName for
        the collection, UsageError, ConfigError, StorageError."""

        async def add() -> AddReport:
            return await self._host.add_documents(
                collection, paths, tenant=tenant, progress=progress
            )

        return self._portal.call(add)

    def check(self, assistant: str | None = None) -> list[Problem]:
        """Return the problems with the app's files, or with one assistant. Raises UnknownName."""
        return self._portal.call(self._host.check, assistant)

    def reload(self) -> Swap:
        """Read the app's files again, and return the changes and the problems."""
        return self._portal.call(self._host.reload)


class Chat:
    """A kept conversation. Its methods are those of `groundhook.OpenChat`, and block."""

    def __init__(self, chat: OpenChat, portal: BlockingPortal) -> None:
        self._chat, self._portal = chat, portal

    @property
    def id(self) -> str:
        """The id for continuing the conversation: `host.chat(assistant, chat_id=id)`."""
        return self._chat.id

    def send(
        self,
        message: ChatQuestion,
        *,
        search: bool | None = None,
        connector: str | Sequence[str] | None = None,
        options: TurnOptions | Mapping[str, Any] | None = None,
    ) -> AbstractContextManager[Iterator[Event]]:
        """Return a context manager that asks the next question and yields the events of its turn.
        Leaving the block stops what is still running; the text so far is kept. Entering raises
        ChatBusy, UsageError, StorageError, and what `Host.stream` raises."""
        turn = self._chat.send(message, search=search, connector=connector, options=options)
        return _enter(self._portal, turn)

    def edit(
        self,
        message: ChatMessage | str,
        text: ChatQuestion,
        *,
        search: bool | None = None,
        connector: str | Sequence[str] | None = None,
        options: TurnOptions | Mapping[str, Any] | None = None,
    ) -> AbstractContextManager[Iterator[Event]]:
        """Return a context manager that asks a question of the chat in other words, in a new
        branch, and yields the events of its turn, as `send` does."""
        turn = self._chat.edit(message, text, search=search, connector=connector, options=options)
        return _enter(self._portal, turn)

    def decide(
        self,
        approved: bool | Mapping[str, bool],
        *,
        message: ChatMessage | str | None = None,
        reason: str = "",
        options: TurnOptions | Mapping[str, Any] | None = None,
    ) -> AbstractContextManager[Iterator[Event]]:
        """Return a context manager that continues an answer whose calls wait for the user's
        approval, as `OpenChat.decide` does."""
        turn = self._chat.decide(approved, message=message, reason=reason, options=options)
        return _enter(self._portal, turn)

    def regenerate(
        self,
        message: ChatMessage | str | None = None,
        *,
        search: bool | None = None,
        connector: str | Sequence[str] | None = None,
        options: TurnOptions | Mapping[str, Any] | None = None,
    ) -> AbstractContextManager[Iterator[Event]]:
        """Return a context manager that asks for another answer than `message` (None: the last
        one), in a new branch, and yields the events of its turn, as `send` does."""
        turn = self._chat.regenerate(message, search=search, connector=connector, options=options)
        return _enter(self._portal, turn)

    def messages(self, leaf: str = "") -> Sequence[ChatMessage]:
        """Return the messages of the branch that is shown, or of the one that ends in `leaf`.
        Raises UnknownName."""
        return self._portal.call(self._chat.messages, leaf)

    def rate(self, message: ChatMessage | str, feedback: Feedback | Mapping[str, Any]) -> None:
        """Store a reader's feedback on an answer. Raises UnknownName, UsageError."""
        self._portal.call(self._chat.rate, message, feedback)

    def stop(self) -> bool:
        """Stop the turn that runs in this object, and return whether one was running. Call it from
        another thread than the one that reads the events."""
        return self._portal.call(self._chat.stop)


class Memory:
    """The memories of an identity. Its methods are those of `groundhook.memory.Memory`, and
    block; the errors are the same."""

    def __init__(
        self,
        host: Host,
        *,
        identity: Identity | Mapping[str, Any] | None = None,
        toolkit: str = "memory",
        assistant: str | None = None,
    ) -> None:
        self._memory = _Memory(host._host, identity=identity, toolkit=toolkit, assistant=assistant)
        self._portal = host._portal

    def search(self, query: str, collection: str, limit: int = 20) -> list[Preview]:
        """Return at most `limit` (1-1,000) previews, best first, without contents; `[]` for an
        unknown collection."""
        return self._portal.call(self._memory.search, query, collection, limit)

    def fetch(self, doc_id: int, collection: str) -> WholeMemory:
        """Return a whole memory. Raises MemoryNotFound, which is a ValueError."""
        return self._portal.call(self._memory.fetch, doc_id, collection)

    def batch_fetch(self, doc_refs: Sequence[tuple[int, str]]) -> list[ShelvedMemory]:
        """Return the whole memories of at most 1,000 references (id, collection), in their order.
        Those that do not exist are omitted."""
        return self._portal.call(self._memory.batch_fetch, doc_refs)


@contextmanager
def open_host(
    path: str | Path = ".",
    *,
    environment: Mapping[str, str] | None = None,
    plugins: Iterable[Plugin] = (),
) -> Iterator[Host]:
    """Return a context manager that opens the app in a folder and yields its `Host`, as
    `groundhook.open_host` does. Raises ConfigError, PluginError."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            _open_host(path, environment=environment, plugins=plugins)
        ) as host,
    ):
        yield Host(host, portal)


@contextmanager
def _enter(
    portal: BlockingPortal, turn: AbstractAsyncContextManager[AsyncIterator[Event]]
) -> Iterator[Iterator[Event]]:
    with portal.wrap_async_context_manager(turn) as events:

        def read() -> Iterator[Event]:
            while (event := portal.call(_next, events)) is not None:
                yield event

        yield read()


async def _next(events: AsyncIterator[Event]) -> Event | None:
    return await anext(events, None)
