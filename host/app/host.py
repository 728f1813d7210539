"""An open app: its turns, searches and checks, and its reload. `host.app.opening.open_host` makes
it; everything that it started ends with it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import anyio
from anyio import to_thread

from groundhook.core.channel import Channel
from groundhook.core.errors import ConfigError, HostError, SourceError, UsageError
from groundhook.core.ports import Delegates, Warn
from groundhook.core.problems import Problem, by_file
from groundhook.core.settings import Settings
from groundhook.core.tool_ports import Collections
from groundhook.core.types.contract import NO_CONTRACT, Contract
from groundhook.core.types.events import Event, Warned
from groundhook.core.types.search import SearchRequest, SearchResult
from groundhook.core.types.tables import Exported
from groundhook.core.types.tools import Tool, ToolInfo, ToolOutcome
from groundhook.core.types.turn import Identity, Message, TurnOptions
from groundhook.host.app.connectors import Connectors
from groundhook.host.app.plugins import Plugins
from groundhook.host.app.reload import Reloads, Swap
from groundhook.host.app.requests import conversation, turn_options, validated
from groundhook.host.app.sources import AppSources
from groundhook.host.app.toolkits import Toolkits, owners_of
from groundhook.host.config.packages import App
from groundhook.host.config.resolve import Explained
from groundhook.host.config.trial import Trial, trial_of
from groundhook.host.search.citations.index import CitationIndex
from groundhook.host.search.searcher import Searcher
from groundhook.host.turn.context import Request, RunContext, Runtime, search_scope
from groundhook.host.turn.names import AssistantNames
from groundhook.host.turn.open_turns import OpenTurns
from groundhook.host.turn.stream import call_assistant, open_turn

if TYPE_CHECKING:
    from groundhook.core.types.collection_queries import Owner
    from groundhook.handlers.db.database import Database
    from groundhook.handlers.kb.ingest.report import AddProgress, AddReport
    from groundhook.handlers.kb.knowledge_base import KnowledgeBase
    from groundhook.host.app.conversations import AppConversations
    from groundhook.host.app.open_chat import OpenChat
    from groundhook.host.app.syncs import Syncs
    from groundhook.host.chats.ports import ChatStore
    from groundhook.host.turn.outside_tools import OutsideTools

MOST_EXPORTED = 10_000  # rows


@dataclass(kw_only=True, eq=False)
class Host:
    """An app that is open. It may serve any number of turns and searches at the same time."""

    runtime: Runtime
    sources: AppSources
    plugins: Plugins
    turns: OpenTurns
    open_chats: Callable[[], ChatStore]
    _reloads: Reloads = field(default_factory=Reloads)
    _reloading: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def app(self) -> App:
        """The app's files as last read."""
        return self.runtime.app

    @property
    def kb(self) -> KnowledgeBase:
        """The built-in knowledge base, whichever source serves searches of type kb."""
        return self.sources.knowledge_base

    @property
    def database(self) -> Database:
        """The built-in database, whichever source serves searches of type db."""
        return self.sources.database

    @property
    def syncs(self) -> Syncs:
        """The syncs of the app's toolkits with their sources."""
        from groundhook.host.app.syncs import Syncs
        from groundhook.host.sync.engine import SyncEngine

        engine = SyncEngine(self.app.state, self.runtime.now)
        return Syncs(self.app, self.sources, self.runtime.toolkits, engine)

    def assistants(self) -> list[str]:
        """Return the ids of the app's assistants in alphabetical order."""
        return sorted(self.app.packages)

    def stream(
        self,
        assistant_id: str,
        messages: str | Sequence[Message | Mapping[str, Any]],
        *,
        search: bool | None = None,
        connector: str | Sequence[str] | None = None,
        identity: Identity | Mapping[str, Any] | None = None,
        options: TurnOptions | Mapping[str, Any] | None = None,
        contract: Contract = NO_CONTRACT,
        trial: Trial | Mapping[str, Any] | None = None,
    ) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """Return a context manager that runs one turn and yields its events; leaving the block
        stops what is still running. `assistant_id` is one of `assistants`, or "" for the default of
        the app (`uses.default`). `messages` is the conversation or one user message. With several
        `connector`s the next one answers when one cannot be reached. `contract` is the form that
        the answer must have; `trial`, keys of `package.yao`, replaces settings and prompts of the
        files for this turn. Entering raises UnknownName, ConfigError and TooManyTurns; later
        failures are `error` events. Raises UsageError."""
        assistant_id = self.app.assistant_or_default(assistant_id)
        if trial is not None and not isinstance(trial, Trial):
            trial = trial_of(trial, self.app.package(assistant_id))
        request = Request(
            assistant_id=assistant_id,
            messages=conversation(messages, self.app.settings.turns, self.app.settings.attachments),
            options=turn_options(search, connector, options),
            identity=validated(Identity, identity or {}, "identity"),
            contract=contract,
            trial=trial,
        )
        return open_turn(self.runtime, self.turns, request)

    @asynccontextmanager
    async def chat(
        self,
        assistant_id: str,
        *,
        identity: Identity | Mapping[str, Any] | None = None,
        chat_id: str | None = None,
        create: bool = False,
    ) -> AsyncIterator[OpenChat]:
        """Return a context manager that yields a stored conversation: a new one, or the one with
        this id. It belongs to the tenant and user of `identity`. `create`: begin a conversation
        with this id if it does not exist. `assistant_id` is that of `stream`. Raises UnknownName,
        ConfigError, UsageError and StorageError."""
        owner = validated(Identity, identity or {}, "identity")
        id = self.app.assistant_or_default(assistant_id)
        yield await self.conversations.opened(id, owner, chat_id, create=create)

    @cached_property
    def chats(self) -> ChatStore:
        """The store of conversations, opened by the first use."""
        return self.open_chats()

    @cached_property
    def conversations(self) -> AppConversations:
        """The stored conversations."""
        # Imported here because turns outside of conversations do not need it.
        from groundhook.host.app.conversations import AppConversations

        return AppConversations(self.chats, lambda: self.runtime, self.turns)

    async def search(
        self,
        request: SearchRequest | Mapping[str, Any],
        *,
        identity: Identity | Mapping[str, Any] | None = None,
        assistant: str | None = None,
        warned: Callable[[Warned], object] | None = None,
    ) -> SearchResult:
        """Return the result of a search outside a turn, with the settings and names of an
        assistant, or else of the app. A search that fails is a result with `error`; `warned` is
        called with every warning. Raises UsageError for an invalid request, UnknownName for the
        assistant."""
        searcher = self._searcher(identity, assistant, warned)
        return await searcher.search(validated(SearchRequest, request), "user")

    async def search_many(
        self,
        requests: Sequence[SearchRequest | Mapping[str, Any]],
        *,
        mode: Literal["all", "any", "race"] = "all",
        identity: Identity | Mapping[str, Any] | None = None,
        assistant: str | None = None,
        warned: Callable[[Warned], object] | None = None,
    ) -> list[SearchResult]:
        """Return the results of several searches, which run at the same time, each as `search`
        does: with `all` every result, in the order of the requests; with `any` the first that has
        items, in a list (the first to end if none has); with `race` the first to end, likewise. The
        searches that are left are cancelled."""
        valid = [validated(SearchRequest, request) for request in requests]
        return await self._searcher(identity, assistant, warned).search_many(valid, mode, "user")

    async def export(
        self,
        request: SearchRequest | Mapping[str, Any],
        *,
        identity: Identity | Mapping[str, Any] | None = None,
        assistant: str | None = None,
        warned: Callable[[Warned], object] | None = None,
    ) -> Exported:
        """Return all rows of a search of a database, up to `MOST_EXPORTED`, with exact values.
        Raises UsageError for another search and for a question that was not understood,
        SourceError, UnknownName for the assistant."""
        valid = validated(SearchRequest, request)
        if valid.type != "db":
            raise UsageError(f"a {valid.type} search has no rows to export", hint="search type db")
        searcher = self._searcher(identity, assistant, warned)
        result = await searcher.search(valid.model_copy(update={"rerank": None}), "user")
        if result.error is not None:
            raise SourceError(result.error)
        if result.certainty == "none":
            raise UsageError(result.explanation or "the question was not understood")
        query = dict(result.dsl or {})
        if "model" not in query:
            raise UsageError("the search has not one query to export", hint="name one model")
        first = result.items[0].row if result.items else None
        if valid.limit is not None:
            query["limit"] = min(valid.limit, query["limit"])
        elif not (first and first.table.whole):
            del query["limit"]
        language = first.table.language if first else ""
        return await self.database.export(query, MOST_EXPORTED, searcher.scope, language=language)

    def _searcher(
        self,
        identity: Identity | Mapping[str, Any] | None,
        assistant: str | None,
        warned: Callable[[Warned], object] | None,
    ) -> Searcher:
        """Return a searcher outside a turn."""
        self.turns.refuse_if_closed()
        settings = self.settings(assistant)
        channel = Channel("search")
        warn = _make_warner(warned)
        context = RunContext(runtime=self.runtime, turn_id=channel.turn_id)
        caller = _make_caller(identity, assistant)
        searcher = Searcher(
            plugins=self.runtime.plugins,
            settings=settings,
            scope=search_scope(context, caller, settings, call_assistant, warn),
            names=AssistantNames(self.app, assistant or "", settings),
            citation_index=CitationIndex(settings.search.citation.format, self.app.collections),
            channel=channel,
        )
        # Nobody reads the events: a closed channel drops them instead of keeping them.
        channel.close()
        return searcher

    async def tool(
        self,
        name: str | Tool,
        arguments: Mapping[str, Any] | None = None,
        *,
        identity: Identity | Mapping[str, Any] | None = None,
        assistant: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        locale: str = "",
        events: Callable[[Event], object] | None = None,
    ) -> ToolOutcome:
        """Call a tool outside a turn, such as `catalogue.searchDatasets`, and return the outcome.
        With `assistant` only the tools that it lists can be called, by their names and with their
        settings there; without it, the tools of all toolkits and of the host. A `Tool` itself is
        called as if it were one of the host's. A failure of the call is `error` of the outcome,
        with `code` for programs. `events` is called with the progress, the trace and the warnings.
        Raises UnknownName for the assistant, UsageError for an invalid identity."""
        call = self._make_tool_call(identity, assistant, metadata, locale)
        return await call.run(name, arguments or {}, events)

    async def tools(
        self,
        *,
        identity: Identity | Mapping[str, Any] | None = None,
        assistant: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        problem: Callable[[Warned], object] | None = None,
    ) -> list[ToolInfo]:
        """Return the tools that `tool` may call, in the order in which a model gets them, without
        those that the metadata withholds. With `identity`: only the tools that it may use. Toolkits
        and servers that fail are omitted; `problem` is called with a warning for each. Raises
        UnknownName for the assistant."""
        call = self._make_tool_call(identity, assistant, metadata, "")
        return await call.listed(allowed=identity is not None, on_problem=problem)

    def collections(
        self,
        *,
        identity: Identity | Mapping[str, Any] | None = None,
        assistant: str | None = None,
    ) -> Collections:
        """Return the interface of tools to the collections, for an identity: several questions at
        once, whole documents by id, counts. Names are those of the assistant, or the app's. Raises
        UnknownName for the assistant, UsageError for an invalid identity."""
        caller = _make_caller(identity, assistant)
        context = RunContext(runtime=self.runtime, turn_id="")
        scope = search_scope(
            context, caller, self.settings(assistant), call_assistant, _make_warner(None)
        )
        return self.runtime.collections(scope, assistant or "")

    def owners_of(self, collection: str) -> Sequence[Owner]:
        """Return the owners of the documents in a collection, given its full id: those that
        toolkits name for it, or else `tenant`."""
        return owners_of(self.app, self.runtime.toolkits, collection)

    def _make_tool_call(
        self,
        identity: Identity | Mapping[str, Any] | None,
        assistant: str | None,
        metadata: Mapping[str, Any] | None,
        locale: str,
    ) -> OutsideTools:
        # Imported here because turns have their own tools.
        from groundhook.host.turn.outside_tools import OutsideTools

        self.turns.refuse_if_closed()
        request = Request(
            assistant_id=assistant or "",
            messages=(),
            options=validated(TurnOptions, {"metadata": dict(metadata or {}), "locale": locale}),
            identity=validated(Identity, identity or {}, "identity"),
        )
        return OutsideTools(self.runtime, request, self.settings(assistant))

    async def add_documents(
        self,
        collection: str,
        paths: str | Path | Iterable[str | Path],
        *,
        tenant: str = "",
        progress: AddProgress | None = None,
    ) -> AddReport:
        """Add files, and the files in folders, to a collection of the built-in knowledge base and
        return a report, which has the problems of single files. As `groundhook kb add` does, it
        replaces changed documents and removes documents whose files no longer exist in the same
        folders. `progress` is called with the bytes done, the bytes in total, the current document
        and the passages embedded. Raises UnknownName for the collection, UsageError, ConfigError,
        StorageError."""
        notes: list[str] = []
        report = await self.kb.add(
            collection,
            [Path(path) for path in ([paths] if isinstance(paths, (str, Path)) else paths)],
            tenant=tenant,
            progress=progress,
            delegates=self.delegates(warned=lambda event: notes.append(event.message)),
        )
        return replace(report, notes=(*report.notes, *notes))

    async def remove_documents(
        self, collection: str, documents: Iterable[str] | None, *, tenant: str = ""
    ) -> tuple[str, ...]:
        """Remove documents by their ids, or all (None), from a collection of the built-in knowledge
        base, and return the ids that were removed. Raises UnknownName for a collection or a
        document that does not exist (nothing is removed then), UsageError, StorageError."""
        ids = None if documents is None else list(documents)
        id = self.kb.full_id(collection)
        removed = await self.kb.remove(id, ids, tenant=tenant)
        await self.sources.texts().remove(id, tenant, ids)
        return removed

    async def remains(
        self, collection: str, documents: Iterable[str], *, tenant: str = ""
    ) -> list[dict[str, Any]]:
        """Return what is left of documents that were removed, one dictionary for each: `document`,
        then the number of entries in the list (`listed`), of passages by id (`passages`), of
        documents that searches compare (`searched`), of passages of an export (`exported`), of
        versions in the graph (`graph`) and of exact texts (`texts`). All are 0 for a document that
        is gone. Raises UnknownName for the collection, UsageError, StorageError."""
        ids = list(documents)
        id = self.kb.full_id(collection)
        left = await self.kb.count_remaining(id, ids, tenant=tenant)
        texts = await self.sources.texts().get(id, tenant, ids)
        return [{**vars(each), "texts": int(each.document in texts)} for each in left]

    def delegates(
        self,
        *,
        identity: Identity | Mapping[str, Any] | None = None,
        assistant: str | None = None,
        warned: Callable[[Warned], object] | None = None,
    ) -> Delegates:
        """Return the delegates for steps outside a turn; `warned` is called with their warnings."""
        warn = _make_warner(warned)
        context = RunContext(runtime=self.runtime, turn_id="")
        caller = _make_caller(identity, assistant)
        return search_scope(
            context, caller, self.settings(assistant), call_assistant, warn
        ).delegates

    async def reload(self, paths: Iterable[Path] | None = None) -> Swap:
        """Read the app's files again and return the changes and the problems. A broken file does
        not replace its last good version, and running turns keep the files that they began with.
        MCP servers do not change until the host is opened again. `paths` are the files that
        changed (None: any of them)."""
        # One reading at a time: of two, the older could otherwise be swapped in last.
        async with self._reloading:
            app, swap = await self._reloads.read(self.app, self.runtime.hooks, paths)
            if app is not self.app:
                self._take_over(app)
        return swap

    def _take_over(self, app: App) -> None:
        sources = self.sources.with_app(app)
        connectors, toolkits = self.runtime.connectors, self.runtime.toolkits
        # One assignment: a turn that begins now has the old parts or the new ones, never some of
        # both.
        self.runtime = replace(
            self.runtime,
            app=app,
            plugins=replace(
                self.runtime.plugins, handlers=sources.handlers, imported=sources.imported
            ),
            documents=sources,
            records=sources,
            web_configured=sources.web_configured,
            connectors=connectors.with_app(app)
            if isinstance(connectors, Connectors)
            else connectors,
            toolkits=toolkits.with_app(app) if isinstance(toolkits, Toolkits) else toolkits,
            collections=partial(sources.collections, app),
        )
        self.sources = sources

    async def check(self, assistant: str | None = None) -> list[Problem]:
        """Return the problems with the app's files, or with one assistant: configuration,
        references between files, hooks that do not compile or do not fit their types. Raises
        UnknownName."""
        # Imported here because turns and searches do not need these modules.
        from groundhook.host.check.check import check
        from groundhook.host.check.hook_diagnostics import hook_problems

        # In a thread: an app may have hundreds of models, and a server goes on meanwhile.
        found = await to_thread.run_sync(
            partial(
                check,
                self.app,
                assistant or "",
                providers=self.plugins.web_providers.names(),
                rerankers=self.plugins.rerankers.names(),
                collection=self.kb.declaration_error,
                web_problem=self.sources.web_problem,
                toolkits=self.runtime.toolkits,
            )
        )
        ids = [assistant] if assistant else sorted(self.app.packages)
        outdated = [
            Problem(_severity(one), one.message, hint=one.hint, code=one.code)
            for one in await self.kb.check_collections()
        ]
        hooks = await hook_problems(self.app, ids, self.runtime.hooks, self._tools)
        return by_file([*found, *outdated, *hooks])

    def declarations(self) -> str:
        """Return the TypeScript declarations for the hooks of this app."""
        from groundhook.host.check.hook_diagnostics import declarations

        return declarations(self.app, self._tools)

    def explain(self, assistant: str) -> list[Explained]:
        """Return every setting of an assistant and of the app, with the layer and place that set
        it. Raises UnknownName, ConfigError."""
        return self.app.explain(assistant)

    @property
    def _tools(self) -> list[str]:
        return [schema["function"]["name"] for schema in self.runtime.toolbox.schemas()]

    def settings(self, assistant: str | None = None) -> Settings:
        """Return an assistant's settings, or the app's. Raises UnknownName, ConfigError."""
        if assistant is not None:
            return self.app.settings_for(self.app.package(assistant)).settings
        return self.app.common.settings


def _make_caller(identity: Identity | Mapping[str, Any] | None, assistant: str | None) -> Request:
    """Return the request of a search or a step outside a turn: who asks, and for which assistant.
    Raises UsageError for an invalid identity."""
    return Request(
        assistant_id=assistant or "",
        messages=(),
        identity=validated(Identity, identity or {}, "identity"),
    )


def _make_warner(on_warning: Callable[[Warned], object] | None) -> Warn:
    async def warn(code: str, message: str) -> None:
        if on_warning is not None:
            on_warning(Warned(code=code, message=message))

    return warn


def _severity(error: HostError) -> Literal["error", "warning"]:
    return "error" if isinstance(error, ConfigError) else "warning"
