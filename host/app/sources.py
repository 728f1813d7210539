"""The search sources of an open app. A source is made when a search first needs it, and the sources
of one type are searched together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import anyio.to_thread

from groundhook.core.errors import HostError, NotPermitted, SourceError, SourceNotConfigured
from groundhook.core.ports import (
    ChecksSettings,
    ChoosesRequests,
    Documents,
    FollowsDeclarations,
    Handler,
    Records,
    Scope,
    SourceResult,
    WebPages,
)
from groundhook.core.registry import Deferred
from groundhook.core.settings import Settings
from groundhook.core.types.search import SEARCH_TYPES, Item, RecordQuery, SearchType
from groundhook.host.app.parts import SOURCE, make_part, part_failure
from groundhook.host.app.plugins import PluginContext, Source
from groundhook.host.config.packages import App
from groundhook.host.search.joined import Joined

if TYPE_CHECKING:
    from groundhook.core.tool_ports import Collections
    from groundhook.handlers.db.database import Database
    from groundhook.handlers.kb.knowledge_base import KnowledgeBase
    from groundhook.host.app.exact_texts import ExactTexts

Made = dict[Source, Handler]


class AppSources:
    """`handlers` has one handler for each search type. Documents and records come from the first
    source that provides them, so this also implements `Documents` and `Records`. `texts` opens the
    exact texts of the knowledge base's documents."""

    def __init__(
        self,
        context: PluginContext,
        texts: Callable[[], ExactTexts],
        made: Made | None = None,
    ) -> None:
        self._context = context
        self.texts = texts
        # As first made, with the declarations of that time; `_current` has this reading's.
        self._made: Made = {} if made is None else made
        self._current: Made = {}
        self.handlers = Deferred[Handler](
            "search type", {type: partial(self._join_type, type) for type in SEARCH_TYPES}
        )

    def with_app(self, app: App) -> AppSources:
        """Return the same sources over another reading of the app's files."""
        context = replace(self._context, collections=app.collections, models=app.models)
        return AppSources(context, self.texts, self._made)

    async def imported(self, type: SearchType) -> None:
        """Import the modules of a type's sources, in a thread. Raises PluginError."""
        for name in self._list_names(type):
            source = self._context.plugins.sources[name]
            if source not in self._made and source.module:
                try:
                    await anyio.to_thread.run_sync(import_module, source.module)
                except Exception as exc:  # the import of third-party code may raise anything
                    part = self._context.plugins.sources.part(name) or f"the search source {name!r}"
                    raise part_failure(part, exc) from exc

    @property
    def knowledge_base(self) -> KnowledgeBase:
        """The built-in source of type kb, even if another one serves searches."""
        return cast("KnowledgeBase", self._make_source("kb", built_in=True))

    @property
    def database(self) -> Database:
        """The built-in source of type db, even if another one serves searches."""
        return cast("Database", self._make_source("db", built_in=True))

    def collections(self, app: App, scope: Scope, assistant_id: str) -> Collections:
        """Return the collections that tools reach by the names of an assistant ("": the app's)."""
        # Imported here because most apps have no toolkit.
        from groundhook.host.app.collections import AppCollections

        return AppCollections(app, lambda: self.knowledge_base, self.texts, assistant_id, scope)

    def _make_source(self, name: str, *, built_in: bool = False) -> Handler:
        """Return the source of a name, over this reading's declarations. Raises PluginError if it
        cannot be made."""
        sources = self._context.plugins.sources
        source = sources.built_in(name) if built_in else sources[name]
        part = "" if built_in else sources.part(name)
        if source not in self._current:
            if source not in self._made:
                self._made[source] = make_part(part, SOURCE, partial(source.make, self._context))
            handler = self._made[source]
            # From the one first made, which has the connections and processes: they are shared.
            if isinstance(handler, FollowsDeclarations):
                handler = handler.with_declarations(self._context.collections, self._context.models)
            self._current[source] = handler
        return self._current[source]

    def web_configured(self, settings: Settings) -> bool:
        """Return whether a web search can run under these settings."""
        return self.web_problem(settings) is None

    def web_problem(self, settings: Settings) -> HostError | None:
        """Return why a web search cannot run under these settings; None if it can."""
        problems = [
            source.problem(settings.search.web, settings.uses.web)
            if isinstance(source, ChecksSettings)
            else None
            for source in self._list_sources("web")
        ]
        if not problems:
            return SourceNotConfigured("no web search provider is configured")
        return None if None in problems else problems[0]

    async def fetch_document(
        self, collection: str, document_id: str, scope: Scope, /
    ) -> SourceResult:
        """Return the document from the first source that has it. Raises SourceError."""
        able: list[Documents] = [
            one for one in self._list_sources("kb") if isinstance(one, Documents)
        ]
        problem: SourceError | None = None
        for source in able or [self.knowledge_base]:
            try:
                return await source.fetch_document(collection, document_id, scope)
            # A refusal is final: another source must not answer in place of this one.
            except NotPermitted:
                raise
            except SourceError as exc:
                problem = problem or exc
        raise problem or SourceError(f"no source has the document {document_id!r}")

    async def fetch_page(self, url: str, scope: Scope, /) -> Item:
        """Return a page from the first source that reads pages. Raises SourceError,
        IngestError, NotPermitted."""
        await self.imported("web")
        for source in self._list_sources("web"):
            if isinstance(source, WebPages):
                return await source.fetch_page(url, scope)
        raise SourceNotConfigured("no source reads pages of the web")

    async def records(self, query: RecordQuery, scope: Scope, /) -> list[dict[str, Any]]:
        """Return the records of a query from the first source that reads records. Raises
        SourceError."""
        able = (source for source in self._list_sources("db") if isinstance(source, Records))
        source = next(able, None) or self.database
        return await source.records(query, scope)

    def _list_sources(self, type: SearchType) -> Iterator[Handler]:
        for name in self._list_names(type):
            yield self._make_source(name)

    def _join_type(self, type: SearchType) -> Handler:
        sources = {name: self._make_source(name) for name in self._list_names(type)}
        only = next(iter(sources.values())) if len(sources) == 1 else None
        if only is None or isinstance(only, ChoosesRequests):
            return Joined(sources)
        return only  # nearly always: no task group, no merging

    def _list_names(self, type: SearchType) -> list[str]:
        sources = self._context.plugins.sources
        return [name for name, source in sources.items() if source.type == type]
